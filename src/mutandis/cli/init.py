"""`mutandis init`: look at a table, and write the draft of an audit file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutandis.cli.terminal import echo
from mutandis.errors import InputError, OutputError
from mutandis.files.initial_config import draft_config
from mutandis.files.sources import read_data_section, read_source
from mutandis.files.text_files import write_atomically
from mutandis.files.yaml_nodes import read_yaml, write_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["run_init"]


def run_init(
    data: str,
    out: Path,
    *,
    reading: Mapping[str, str | None],
    outcome: str | None,
    protected: str | None,
    id: str | None,  # noqa: A002 - the public name of the option
    force: bool,
) -> None:
    """Read the table, guess, and write; `reading` are further keys of the section `data`."""
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
    section = _data_section(data, reading, out)
    source, _ = read_data_section(read_yaml(write_yaml(section)), folder=out.parent)
    table = read_source(source).to_pandas()
    for name in (outcome, protected, id):
        _check_column(name, table.columns)
    if not len(table):
        raise InputError("The table has no rows. Check the file or query that it came from.")
    text = draft_config(
        table,
        data=section,
        title=source.name,
        outcome=outcome,
        protected=protected,
        id=id,
    )
    write_atomically(out, text)
    echo(f"Wrote {out}. Look at the lines marked EDIT 1 and EDIT 2, then run: mutandis check {out}")


def _data_section(data: str, reading: Mapping[str, str | None], out: Path) -> dict[str, Any]:
    """Say where the table is, as seen from the file that is to be written."""
    further = {key: value for key, value in reading.items() if value is not None}
    if "://" in data:
        return {"url": data, **further}
    path = Path(data)
    if not path.is_absolute():
        path = Path(os.path.relpath(path, out.parent))
    return {"source": path.as_posix(), **further}


def _check_column(name: str | None, have: Any) -> None:
    from mutandis.frames import check_columns

    if name is not None:
        check_columns([name], list(have))
