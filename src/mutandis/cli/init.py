"""`mutandis init` and `mutandis demo`: a first audit file, and an audit to look at."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mutandis.cli.audit import counts_table, show_headline, summary_of
from mutandis.cli.options import Json, app
from mutandis.cli.terminal import answer, echo, invocation, make_console
from mutandis.errors import InputError, OutputError, listed, printable, shown, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mutandis.auditing.audit import Audit
    from mutandis.store.initial_config import Profile

_LISTED = 30  # columns to choose from, on one screen
_ROLES = ("outcome", "protected", "id")


@app.command()
def init(
    data: Annotated[
        str, typer.Argument(help="A file, a folder, a pattern, or the address of a database.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="The audit file to write.")] = Path("audit.yaml"),
    outcome: Annotated[str | None, typer.Option(help="The column with the decision.")] = None,
    negative: Annotated[str | None, typer.Option(help="Its unfavourable value.")] = None,
    protected: Annotated[str | None, typer.Option(help="The protected attribute.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="Its value that the others are compared with.")
    ] = None,
    id: Annotated[  # noqa: A002 - the name of the option
        str | None, typer.Option(help="A column with a unique value a row.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="The query, for a database.")] = None,
    separator: Annotated[str | None, typer.Option(help="Of CSV, if it is not found out.")] = None,
    decimal: Annotated[str | None, typer.Option(help="Of CSV: the decimal mark.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of CSV, if it is not UTF-8.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an older file.")] = False,
) -> None:
    """Look at a table, and write a commented audit file with guesses to be corrected.

    On a terminal it asks for the outcome and the protected attribute where they are not clear.
    """
    from mutandis.config.fields import placed
    from mutandis.config.sections import DataSection, open_source
    from mutandis.frames import check_columns
    from mutandis.store.initial_config import draft_config, profile_columns
    from mutandis.store.sources import read_source
    from mutandis.store.text_files import write_atomically

    _check_target(out, force=force)
    reading = {"query": query, "separator": separator, "decimal": decimal, "encoding": encoding}
    known = {
        "outcome": outcome,
        "negative": negative,
        "protected": protected,
        "reference": reference,
        "id": id,
    }
    section = _data_section(data, reading, out)
    with placed(None):
        source = open_source(DataSection(**section), folder=out.parent)
    table = read_source(source).to_pandas()
    check_columns(filter(None, (known[role] for role in _ROLES)), list(table.columns))
    if not len(table):
        raise InputError("The table has no rows. Check the file or query that it came from.")
    if _is_terminal():
        known = _Questions(profile_columns(table), known).ask()
    text = draft_config(table, data=section, title=source.name, **known)
    write_atomically(out, text)
    _show_next(data, out, text)


@app.command()
def schema() -> None:
    """Print the JSON Schema of audit files, for editors that complete and check them."""
    from mutandis.config.schema import audit_file_schema

    echo(json.dumps(audit_file_schema(), indent=2))


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
    """Return the section `data`, with paths relative to the file that is to be written."""
    further = {key: value for key, value in reading.items() if value is not None}
    if "://" in data:
        return {"url": data, **further}
    path = Path(data)
    if not path.is_absolute():
        path = Path(os.path.relpath(path, out.parent))
    return {"source": path.as_posix(), **further}


def _show_next(data: str, out: Path, text: str) -> None:
    from mutandis.config.schema import FILL_IN

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
    """Questions on a terminal: columns that are not clear, and the values that matter."""

    def __init__(self, profiles: Sequence[Profile], known: Mapping[str, str | None]) -> None:
        self._profiles = {each.name: each for each in profiles}
        self._known = dict(known)

    def ask(self) -> dict[str, str | None]:
        """Ask, and return what is known then."""
        from mutandis.store.initial_config import name_outcomes, name_statuses

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


_DECISIONS, _CONFIG, _RESULTS = "decisions.csv", "audit.yaml", "results"

_AUDIT = """\
data: {source: decisions.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}   # 1: female
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview:
  AnnualSalary:   {equation: linear, parents: [Gender]}
  AccountBalance: {equation: linear, parents: [AnnualSalary, Gender]}
decision: {rule: "AnnualSalary + 5 * AccountBalance > 225000"}
ks: [15, 30, 50, 100]
"""


@app.command()
def demo(
    *,
    out: Annotated[Path, typer.Option(help="Folder for the output files.")] = Path("mutandis-demo"),
    n: Annotated[int, typer.Option(help="Loan applications to draw.")] = 5000,
    share: Annotated[
        float, typer.Option(help="P(A = 1): 0.35 as in the published data, or 0.45 as in the text.")
    ] = 0.35,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 7,
    json: Json = False,
) -> None:
    """Audit the paper's loan scenario, generated afresh: data, worldview, D^CF, all methods."""
    from mutandis.datasets import loan
    from mutandis.store.audit_file import read_plan
    from mutandis.store.output_folder import check_output, output_folder
    from mutandis.store.text_files import write_csv

    check_output(out, replace=True, known=_is_demo)
    with output_folder(out, replace=True, known=_is_demo) as folder:
        decisions = loan(n=n, seed=seed, protected_share=share)
        columns = {name: decisions[name].to_numpy() for name in decisions.columns}
        write_csv(folder / _DECISIONS, columns)
        (folder / _CONFIG).write_text(_AUDIT, encoding="utf-8")
        found = read_plan(folder / _CONFIG).run()
        found.save(folder / _RESULTS)
    if json:
        answer(summary_of(found), (), as_json=True)
    else:
        _show_demo(found, out)


def _is_demo(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} <= {_DECISIONS, _CONFIG, _RESULTS}


def _show_demo(found: Audit, out: Path) -> None:
    from mutandis.store.results_folder import REPORT

    console = make_console()
    refused, women = found.study.outcomes, found.study.people
    men = found.plan.strata[0].test
    would_be = found.refused_counterfactually
    assert would_be is not None, "the audit file has a decision"  # noqa: S101 - for the reader
    console.print(
        f"Loan applications: {len(refused):,} decisions, {len(women):,} by women.\n"
        f"Refused: {refused[women].mean():.1%} of the women, {refused[men].mean():.1%} of the "
        f"men.\nHad the women been men, by this worldview: {would_be.mean():.1%}.\n",
        highlight=False,
    )
    show_headline(console, found)
    console.print(
        counts_table(
            found,
            "Complainants with evidence: Δp > 0\n"
            "(* significant: one-sided test, α = 5 %; adjusted: for their number)",
        )
    )
    console.print(
        "ST compares each woman with men like her; CST with men like the man she would\n"
        "have been, without (w/o) or with (w/) the two of them counted in; CF compares\n"
        "only those two. CST (matched), the headline of the report, compares the k women\n"
        "most like her with the men whom those women would have been. What remains after\n"
        "adjustment is prima facie evidence, given this worldview: it is not proof.\n",
        highlight=False,
    )
    findings = found.evaluate()
    found_first = findings.ids[findings.significant_adjusted & findings.is_negative]
    who = found_first[0] if len(found_first) else findings.ids[0]
    for line in (
        f"The table and the audit file:  {out / _DECISIONS}, {out / _CONFIG}",
        f"The report, for your browser:  {out / _RESULTS / REPORT}",
        f"Next, one person's case file:  {invocation()} case {out / _RESULTS} {who}",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
