"""From a relation in DuckDB to a table in memory: text as codes, everything else as numbers.

The levels of a text column are found and numbered inside DuckDB, so that no string is made for a
row. A column with about as many texts as rows (an id) is taken as it is.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.frames import EncodedTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

__all__ = ["Relation", "connected", "fetched", "literal", "quoted"]

# nothing is fetched from anywhere, and nothing of the table is written to a disk on the way
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
}

# A text column is encoded if the first rows have few enough different texts.
_LOOKED_AT = 100_000
_FEW = 10_000

# A table with more text columns than this is wide and not long: looking each of them up would take
# longer than reading them.
_LONG = 100

# the types that are made need names of their own
_NUMBERS = count()

_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_AS_THEY_ARE = {"UBIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "TIME", "INTERVAL"}
_HUGE = {"HUGEINT", "UHUGEINT", "BIGNUM"}
_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*(\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A table as DuckDB sees it.

    Parameters
    ----------
    connection
        Where it is open.
    relation
        What stands after FROM.
    columns
        The names of its columns in the source, and what DuckDB calls them. DuckDB does not tell
        upper from lower case, and a source may.
    """

    connection: duckdb.DuckDBPyConnection
    relation: str
    columns: Mapping[str, str]


@contextmanager
def connected() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB of our own, in memory, that shares nothing and fetches nothing."""
    import duckdb

    with duckdb.connect(config=_CONFIG) as connection:
        connection.execute("SET enable_progress_bar = false")
        yield connection


def literal(text: str) -> str:
    """Write text as SQL has it.

    Examples
    --------
    >>> literal("l'aquila.csv")
    "'l''aquila.csv'"
    """
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """Write the name of a column or a table as SQL has it.

    Examples
    --------
    >>> quoted('5" screen')
    '"5"" screen"'
    """
    return '"' + name.replace('"', '""') + '"'


def fetched(relation: Relation) -> EncodedTable:
    """Read all of a relation.

    Examples
    --------
    >>> with connected() as connection:
    ...     rows = "(VALUES (1.50, 'cook'), (2.25, 'clerk'), (4.00, 'cook')) AS t(pay, job)"
    ...     names = {"pay": "pay", "Job": "job"}
    ...     table = fetched(Relation(connection=connection, relation=rows, columns=names))
    >>> table.frame["pay"].tolist(), table.frame["Job"].cat.codes.tolist(), table.text
    ([1.5, 2.25, 4.0], [1, 0, 1], frozenset({'Job'}))
    """
    import pandas as pd

    columns = _asked_for(relation)
    # numbered names: those of the source may differ in case only
    wanted = ", ".join(f"{column.sql} AS c{place}" for place, column in enumerate(columns))
    arrays = relation.connection.execute(f"SELECT {wanted} FROM {relation.relation}").fetchnumpy()  # noqa: S608
    values: dict[str, Any] = {}
    text = set()
    for place, (name, column) in enumerate(zip(relation.columns, columns, strict=True)):
        # taken out of the dict, so that memory is given back column by column
        values[name] = _values(arrays.pop(f"c{place}"), column)
        if column.levels is not None:
            text.add(name)
    return EncodedTable(frame=pd.DataFrame(values, copy=False), text=frozenset(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """How a column is asked for; `levels` if its texts arrive as codes."""

    sql: str
    levels: tuple[str, ...] | None = None


def _asked_for(relation: Relation) -> list[_Column]:
    """Decide for each column how it is asked for."""
    names = [quoted(own) for own in relation.columns.values()]
    described = relation.connection.execute(
        f"DESCRIBE SELECT {', '.join(names)} FROM {relation.relation}"  # noqa: S608
    ).fetchall()
    kinds = [str(line[1]) for line in described]
    plain = [_plain_sql(name, kind) for name, kind in zip(names, kinds, strict=True)]
    encode = plain.count(None) <= _LONG
    return [
        _text_column(relation, name, kind, encode=encode) if sql is None else _Column(sql=sql)
        for name, kind, sql in zip(names, kinds, plain, strict=True)
    ]


def _text_column(relation: Relation, name: str, kind: str, *, encode: bool) -> _Column:
    text = f"({name} ->> '$')" if kind == "JSON" else f"CAST({name} AS VARCHAR)"
    return _encoded(relation, text) if encode else _Column(sql=text)


def _plain_sql(name: str, kind: str) -> str | None:
    """Say how a column of this type is asked for; None if as text."""
    if kind in _WHOLE or kind in _AS_THEY_ARE:
        return name
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        # what lies outside (PostgreSQL's infinity) is no date that could be used
        return f"TRY_CAST({name} AS TIMESTAMP)"
    decimal = _DECIMAL.fullmatch(kind)
    if kind in _HUGE or (decimal and decimal[1] == "0"):
        return f"CAST({name} AS BIGINT)"
    return f"CAST({name} AS DOUBLE)" if decimal else None


def _encoded(relation: Relation, text: str) -> _Column:
    connection, rows = relation.connection, relation.relation
    different = connection.execute(
        f"SELECT count(DISTINCT t) FROM (SELECT {text} AS t FROM {rows} LIMIT {_LOOKED_AT})"  # noqa: S608
    ).fetchall()[0][0]
    if different > _FEW:
        return _Column(sql=text)
    made = f"levels_{next(_NUMBERS)}"
    connection.execute(
        f"CREATE TYPE {made} AS ENUM "  # noqa: S608
        f"(SELECT DISTINCT {text} FROM {rows} WHERE {text} IS NOT NULL ORDER BY 1)"
    )
    levels = tuple(connection.execute(f"SELECT enum_range(NULL::{made})").fetchall()[0][0])
    if not levels:
        return _Column(sql=text)
    width = "TINYINT" if len(levels) < 2**7 else "SMALLINT" if len(levels) < 2**15 else "INTEGER"
    code = f"enum_code(CAST({text} AS {made}))"
    return _Column(sql=f"coalesce(CAST({code} AS {width}), -1)", levels=levels)


def _values(array: Any, column: _Column) -> Any:
    import pandas as pd

    if column.levels is not None:
        return pd.Categorical.from_codes(
            np.asarray(array), categories=pd.Index(column.levels), validate=False
        )
    return _without_mask(array) if isinstance(array, np.ma.MaskedArray) else array


def _without_mask(array: np.ma.MaskedArray[Any, Any]) -> Any:
    """Mark missing values in the way of their type, without making floats of whole numbers."""
    import pandas as pd

    mask = np.ma.getmaskarray(array)
    if not mask.any():
        return array.data
    match array.dtype.kind:
        case "i" | "u":
            return pd.arrays.IntegerArray(array.data, mask)
        case "b":
            return pd.arrays.BooleanArray(array.data, mask)
        case "f":
            missing = np.array(np.nan, dtype=array.dtype)
        case "M" | "m":
            missing = np.array("NaT", dtype=array.dtype)
        case _:
            missing = np.array(None)
    return np.where(mask, missing, array.data)
