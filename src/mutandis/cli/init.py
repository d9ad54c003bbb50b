"""`mutandis init`: look at a table, and write the draft of an audit file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mutandis.cli.render import invocation
from mutandis.cli.terminal import echo
from mutandis.errors import InputError, OutputError, listed, printable, shown, suggest
from mutandis.files.audit_file import FILL_IN
from mutandis.files.initial_config import (
    draft_config,
    name_outcomes,
    name_statuses,
    profile_columns,
)
from mutandis.files.sources import read_data_section, read_source
from mutandis.files.text_files import write_atomically
from mutandis.files.yaml_nodes import read_yaml, write_yaml
from mutandis.frames import check_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mutandis.files.initial_config import Profile

__all__ = ["run_init"]

_LISTED = 30  # columns to choose from, on one screen
_ROLES = ("outcome", "protected", "id")


def run_init(
    data: str,
    out: Path,
    *,
    reading: Mapping[str, str | None],
    known: Mapping[str, str | None],
    force: bool,
) -> None:
    """Read the table, guess, ask what is not clear, and write.

    `reading` are further keys of the section `data`, and `known` are arguments of `draft_config`.
    """
    _check_target(out, force=force)
    section = _data_section(data, reading, out)
    source, _ = read_data_section(read_yaml(write_yaml(section)), folder=out.parent)
    table = read_source(source).to_pandas()
    check_columns(filter(None, (known[role] for role in _ROLES)), list(table.columns))
    if not len(table):
        raise InputError("The table has no rows. Check the file or query that it came from.")
    if _is_terminal():
        known = _Questions(profile_columns(table), known).ask()
    text = draft_config(table, data=section, title=source.name, **known)
    write_atomically(out, text)
    _show_next(data, out, text)


def _check_target(out: Path, *, force: bool) -> None:
    if out.is_symlink() or (out.exists() and not out.is_file()):
        raise OutputError(
            f"{str(out)!r} is not a regular file but a link, a folder or a device, and is not "
            "replaced. Name another file with --out."
        )
    if out.exists() and not force:
        raise OutputError(
            f"There is a file {str(out)!r} already. Name another one with --out, or add --force to "
            "replace it."
        )
    if not out.parent.is_dir():
        raise OutputError(f"There is no folder {str(out.parent)!r} to write to. Make it first.")


def _data_section(data: str, reading: Mapping[str, str | None], out: Path) -> dict[str, Any]:
    """Say where the table is, as seen from the file that is to be written."""
    further = {key: value for key, value in reading.items() if value is not None}
    if "://" in data:
        return {"url": data, **further}
    path = Path(data)
    if not path.is_absolute():
        path = Path(os.path.relpath(path, out.parent))
    return {"source": path.as_posix(), **further}


def _show_next(data: str, out: Path, text: str) -> None:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    blank = [
        option
        for option, section in (("--outcome", "outcome:"), ("--protected", "protected:"))
        if any(line.startswith(section) and FILL_IN in line for line in lines)
    ]
    echo(f"Wrote {out}. Look at the lines marked EDIT 1 and EDIT 2.")
    if blank:
        options = " ".join(f"{option} COLUMN" for option in blank)
        what = " and ".join(option.removeprefix("--") for option in blank)
        # the address of a database may contain a password
        table = "…" if "://" in data else data
        echo(
            f"The names of the columns do not tell the {what}: fill in where the file says "
            f"{FILL_IN!r}, or run: {invocation()} init {table} --force {options}"
        )
    echo(f"Next: {invocation()} check {out}")


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


class _Questions:
    """What is asked on a terminal: the columns that are not clear, and the values that matter."""

    def __init__(self, profiles: Sequence[Profile], known: Mapping[str, str | None]) -> None:
        self._profiles = {each.name: each for each in profiles}
        self._known = dict(known)

    def ask(self) -> dict[str, str | None]:
        """Ask, and give what is known then."""
        self._ask_for(
            "outcome",
            "negative",
            name_outcomes,
            "Which column holds the decision?",
            "Which value of it is the unfavourable one?",
        )
        self._ask_for(
            "protected",
            "reference",
            name_statuses,
            "Which column is the protected attribute?",
            "Which value of it are the others compared with (the reference)?",
        )
        return self._known

    def _ask_for(
        self,
        column: str,
        value: str,
        part: Callable[[Sequence[Profile]], tuple[list[str], list[str]]],
        which: str,
        what: str,
    ) -> None:
        """Ask for a column, unless one is named or clear, and for the value of it that matters."""
        if self._known[column] is not None:
            return
        taken = {self._known[role] for role in _ROLES}
        telling, others = part([e for name, e in self._profiles.items() if name not in taken])
        if len(telling) == 1 or not (telling or others):
            return
        chosen = _choose_column(which, [*telling, *others])
        self._known[column] = chosen
        levels = [str(level) for level in self._profiles[chosen].levels]
        if self._known[value] is None and levels:
            self._known[value] = _choose_value(what, levels)


def _choose_column(question: str, names: Sequence[str]) -> str:
    """Ask until a column is named, by its number or as it is written."""
    echo(question, err=True)
    numbers = {str(number): name for number, name in enumerate(names[:_LISTED], start=1)}
    for number, name in numbers.items():
        echo(f"  {number:>2}  {name}", err=True)
    if len(names) > _LISTED:
        echo(f"  and {len(names) - _LISTED:,} more, to be given by name", err=True)
    return _prompt("Number or name", {**numbers, **{name: name for name in names}}, names)


def _choose_value(question: str, values: Sequence[str]) -> str:
    """Ask until a value is given as it is written: many values are numbers themselves."""
    echo(question, err=True)
    return _prompt(" or ".join(values[:_LISTED]), {each: each for each in values}, values)


def _prompt(text: str, answers: Mapping[str, str], choices: Sequence[str]) -> str:
    def read(answer: str) -> str:
        if answer not in answers:
            hint = suggest(answer, choices)
            said = f"{shown(answer)} is not one of them.{hint} There are "
            raise typer.BadParameter(printable(f"{said}{listed(choices, near=answer)}."))
        return answers[answer]

    chosen: str = typer.prompt(printable(text), value_proc=read, err=True)
    return chosen
