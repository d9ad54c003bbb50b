"""All findings of an audit in one Parquet file: every method, every k, every complainant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mutandis.data.equal_rows import number_equal
from mutandis.mapped import uses_files
from mutandis.numeric.order import order_of_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import duckdb
    from numpy.typing import NDArray

    from mutandis.verdicts.findings import Findings

__all__ = ["compare_findings", "write_findings"]

# what each kind of value is in the file, and in memory where some are missing; all else is text
_TYPES: dict[str, tuple[str, Any]] = {
    "b": ("BOOLEAN", np.bool_),
    "i": ("BIGINT", np.int64),
    "u": ("BIGINT", np.int64),
    "f": ("DOUBLE", np.float64),
}
_TEXT: tuple[str, Any] = ("VARCHAR", np.object_)
_BLOCK = 1 << 18  # rows that are made ready to be written at a time
_SMALL = 1 << 15  # findings of fewer rows wait for others
_WORDS = 64  # texts of more than these different ones are handed over one by one


def write_findings(path: Path, findings: Iterable[Findings]) -> None:
    """Write findings one after the other, with the columns `method` and `k` in front.

    Each is sorted by id, so that the order of the table's rows leaves no trace.
    What is not defined (the interval of CF, for example) is null. Findings are taken one at a
    time and wait in a file, so that of many people memory holds those of one method and k only.
    """
    import duckdb

    waiting = path.with_name(f"{path.name}.duckdb")
    try:
        with _connected(waiting) as connection:
            for number, some in enumerate(_together(findings)):
                _add(connection, some, first=not number)
            connection.table("findings").write_parquet(str(path), compression="zstd")
    except (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException) as error:
        # a full disk, mostly; DuckDB's own message names paths
        raise OSError(0, "the findings cannot be written to the disk") from error
    finally:
        waiting.unlink(missing_ok=True)
        waiting.with_name(f"{waiting.name}.wal").unlink(missing_ok=True)


def _together(findings: Iterable[Findings]) -> Iterator[list[Findings]]:
    """Sort findings, and put small ones together, which are written sooner at once."""
    some: list[Findings] = []
    for found in findings:
        some.append(found.take(order_of_ids(found.ids)))
        if sum(map(len, some)) > _SMALL:
            yield some
            some = []
    if some:
        yield some


def _connected(path: Path | None = None) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    import duckdb

    # one thread: the same findings give the same bytes
    config: dict[str, Any] = {"autoinstall_known_extensions": "false", "threads": 1}
    if uses_files():  # what waits in a file need not stay in memory
        config["memory_limit"] = "512MB"
    return duckdb.connect(":memory:" if path is None else str(path), config=config)


def _add(
    connection: duckdb.DuckDBPyConnection, findings: Sequence[Findings], *, first: bool
) -> None:
    parts = [
        found.take(slice(row, row + _BLOCK))
        for found in findings
        for row in range(0, len(found), _BLOCK)
    ]
    known = [each.columns() for each in parts] if len(parts) == len(findings) else []
    kinds: dict[str, set[str]] = {}
    for part, columns in zip(parts, known or (each.columns() for each in parts), strict=True):
        # columns without any value, in one method or in all, get the type that their values have
        answers = {"outcome_cf": part.outcome, "own_case": part.is_negative}
        for name, values in columns.items():
            kinds.setdefault(name, set()).update(_kinds_of(np.asarray(answers.get(name, values))))
    differ = any(len(each) > 1 for each in kinds.values())
    if differ and len(findings) > 1:  # each has types of its own
        for number, found in enumerate(findings):
            _add(connection, [found], first=first and not number)
        return
    types = {n: _TYPES.get("".join(kind), _TEXT) for n, kind in kinds.items()}
    if first:
        declared = {"method": "VARCHAR", "k": "INTEGER"} | {
            n: kind for n, (kind, _) in types.items()
        }
        named = ", ".join(f'"{name}" {kind}' for name, kind in declared.items())
        connection.execute(f"CREATE TABLE findings ({named})")
    if known:
        joined = {name: np.concatenate([each[name] for each in known]) for name in known[0]}
        _insert(connection, parts, joined, types)
        return
    for part in parts:
        _insert(connection, [part], part.columns(), types)


def _insert(
    connection: duckdb.DuckDBPyConnection,
    parts: Sequence[Findings],
    columns: Mapping[str, NDArray[Any]],
    types: Mapping[str, tuple[str, Any]],
) -> None:
    sizes = [len(each) for each in parts]
    methods = _Named([each.method for each in parts], np.repeat(np.arange(len(parts)), sizes))
    arrays: dict[str, NDArray[Any]] = {"k": np.repeat([each.k for each in parts], sizes)}
    texts: list[str | None] = []
    read = [_read_text("method", methods, arrays, texts), "k"]
    for place, (name, values) in enumerate(columns.items()):
        column = f"c{place}"
        if values.dtype.kind in _TYPES:
            arrays[column] = values
            read.append(column)
        elif types[name] is _TEXT:
            read.append(_read_text(column, _Named.of(values), arrays, texts))
        else:
            named, missing = _Named.of(values), f"m{place}"
            lacks = np.array([each is None or each != each for each in named.levels])  # noqa: PLR0124
            filled = [0 if lack else each for each, lack in zip(named.levels, lacks, strict=True)]
            arrays[column] = np.array(filled, dtype=types[name][1])[named.codes]
            arrays[missing] = lacks[named.codes]
            read.append(f"CASE WHEN {missing} THEN NULL ELSE {column} END")
    connection.register("part", arrays)
    connection.execute(f"INSERT INTO findings SELECT {', '.join(read)} FROM part", texts)  # noqa: S608 - ours
    connection.unregister("part")


def _read_text(
    column: str, named: _Named, arrays: dict[str, NDArray[Any]], texts: list[str | None]
) -> str:
    """Hand a column of texts over: numbers of a few words, and the words once, or all texts."""
    said = [None if each is None else str(each) for each in named.levels]
    if len(said) > _WORDS:
        arrays[column] = np.array(said, dtype=np.object_)[named.codes]
        return column
    arrays[column] = named.codes.astype(np.uint8)
    texts += said
    cases = " ".join(f"WHEN {code} THEN ?" for code in range(len(said)))
    return f"CAST(CASE {column} {cases} END AS VARCHAR)" if said else "CAST(NULL AS VARCHAR)"


class _Named(NamedTuple):
    """Objects by numbers: each different one, and which of them each row has.

    Millions of values are a few words, mostly.
    """

    levels: Sequence[Any]
    codes: NDArray[np.intp]

    @classmethod
    def of(cls, values: NDArray[Any]) -> _Named:
        """Tell objects apart, not values: True is not 1."""
        everyone = values.tolist()
        codes = number_equal(np.fromiter(map(id, everyone), np.int64, len(everyone)))
        levels = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.object_)
        levels[codes] = everyone
        return cls(levels.tolist(), codes)


def _kinds_of(values: NDArray[Any]) -> set[str]:
    if values.dtype.kind != "O":
        return {values.dtype.kind}
    known = (value for value in _Named.of(values).levels if value is not None)
    return {np.asarray(value).dtype.kind for value in known}


def compare_findings(first: Path, second: Path) -> dict[str, int]:
    """Count the differences between two files of findings, by column; none if they are equal.

    Numbers are compared by the shortest text that stands for them alone, so to the last bit.
    """
    with _connected() as connection:
        names = [_as_text(connection, path, name) for path, name in ((first, "a"), (second, "b"))]
        counted = connection.execute(
            "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)"
        ).fetchone() or (0, 0)
        if names[0] != names[1] or counted[0] != counted[1]:
            return {"the number of rows or columns": abs(counted[0] - counted[1]) or 1}
        differing = ", ".join(
            f'count(*) FILTER (a."{name}" IS DISTINCT FROM b."{name}")' for name in names[0]
        )
        found = connection.execute(
            f"SELECT {differing} FROM a POSITIONAL JOIN b"  # noqa: S608 - the columns' own names
        ).fetchone()
    return {name: int(count) for name, count in zip(names[0], found or (), strict=True) if count}


def _as_text(connection: duckdb.DuckDBPyConnection, path: Path, name: str) -> list[str]:
    connection.execute(
        f"CREATE TABLE {name} AS SELECT CAST(COLUMNS(*) AS VARCHAR) FROM read_parquet(?)",  # noqa: S608
        [str(path)],
    )
    described = connection.execute(f"SELECT * FROM {name} LIMIT 0").description  # noqa: S608
    return [str(column[0]) for column in described or ()]
