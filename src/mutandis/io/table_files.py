"""Tables in files: CSV with any separator, Parquet, JSON lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_table"]

_READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".txt": "read_csv",
    ".parquet": "read_parquet",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}


def read_table(path: Path) -> Any:
    """Read a table from a file, as a pandas frame; the separator of a CSV file is found out.

    Raises
    ------
    InputError
        There is no such file, its ending is unknown, or it cannot be read as what it ends in.
    """
    import duckdb

    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"The ending of {path.name!r} does not tell what it holds. Tables are read from files "
            f"that end in {', '.join(_READERS)}."
        )
    if not path.is_file():
        raise InputError(f"There is no file {path.name!r} where the settings say. Check the path.")
    # its own connection: nothing is shared, and nothing is fetched from anywhere
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        try:
            return getattr(connection, reader)(str(path)).df()
        except duckdb.Error as error:
            raise InputError(
                f"{path.name!r} cannot be read as {path.suffix[1:]} "
                f"({type(error).__name__}). Check that it is what its ending says, that every row "
                "has the same number of fields, and that it is encoded as UTF-8."
            ) from error
