"""What text in a file means: numbers, truths, dates, or text after all.

Decided by every row of a column. A reader that decides by a sample takes the 1.5 in row 60,000 of
a column that began with whole numbers for a 2, and says nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.files.duckdb_tables import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import duckdb

__all__ = ["NUMBERS", "READINGS", "read_text_columns"]

# What text must be like to be read as a type, where {x} is the text with a point for a decimal
# comma. DuckDB itself would take 1_000 for a number, and 1.5 for the whole number 2.
_WHOLE = (
    "TRY_CAST({x} AS BIGINT) IS NOT NULL AND TRY_CAST({x} AS DOUBLE) IS NOT NULL "
    "AND NOT contains({x}, '_') AND NOT contains({x}, '.') AND NOT contains(lower({x}), 'e')"
)
_NUMBER = "TRY_CAST({x} AS DOUBLE) IS NOT NULL AND NOT contains({x}, '_')"

NUMBERS: Mapping[str, str] = {"BIGINT": _WHOLE, "DOUBLE": _NUMBER}
"""How text is read that is known to hold numbers."""

READINGS: Mapping[str, str] = {
    "BOOLEAN": "lower(trim({x})) IN ('true', 'false')",
    **NUMBERS,
    "TIMESTAMP": "TRY_CAST({x} AS TIMESTAMP) IS NOT NULL",
}
"""How text is read, the first that fits every row."""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# Where a few rows tell already that a reading does not fit, the others need not be looked at. Text
# that DuckDB reads so always passes these; whether all of it can be read, DuckDB says.
_FIRST = 100
_PLAUSIBLE: Mapping[str, Callable[[str], bool]] = {
    "BOOLEAN": lambda text: text.strip().lower() in {"true", "false"},
    "BIGINT": lambda text: _is_number(text) and not set(text.lower()) & {".", "e"},
    "DOUBLE": _is_number,
    "TIMESTAMP": lambda text: any(map(str.isdigit, text)) and not _is_number(text),
}
# columns that are asked about in one query
_AT_ONCE = 1_000


def read_text_columns(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: Sequence[str],
    *,
    readings: Mapping[str, str] = READINGS,
    decimal: str = ".",
) -> dict[str, str]:
    r"""Find out how the text columns of a table are read; give an SQL expression for each.

    Examples
    --------
    >>> from mutandis.files.duckdb_tables import connected
    >>> with connected() as connection:
    ...     rows = "(VALUES ('1', '1'), ('2,5', 'a'), (NULL, '3')) AS t(pay, mixed)"
    ...     read_text_columns(connection, rows, ["pay", "mixed"], decimal=",")
    {'pay': 'CAST(replace("pay", \',\', \'.\') AS DOUBLE)', 'mixed': '"mixed"'}
    """
    possible = _plausible(connection, table, columns, list(readings), decimal)
    read: dict[str, str] = {}
    while asked := [(column, kinds.pop(0)) for column, kinds in possible.items() if kinds]:
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            conditions = [_condition(name, kind, readings[kind], decimal) for name, kind in some]
            answers = _all_fit(connection, table, conditions)
            for (column, kind), fits in zip(some, answers, strict=True):
                if fits:
                    read[column] = f"CAST({_text(column, kind, decimal)} AS {kind})"
                    possible[column].clear()
    return {column: read.get(column, quoted(column)) for column in columns}


def _plausible(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: Sequence[str],
    kinds: Sequence[str],
    decimal: str,
) -> dict[str, list[str]]:
    """Leave the readings that the first rows allow."""
    wanted = ", ".join(map(quoted, columns))
    rows = connection.execute(f"SELECT {wanted} FROM {table} LIMIT {_FIRST}").fetchall()  # noqa: S608
    possible = {}
    for place, column in enumerate(columns):
        texts = {row[place].replace(decimal, ".") for row in rows if row[place] is not None}
        possible[column] = [kind for kind in kinds if all(map(_PLAUSIBLE[kind], texts))]
    return possible


def _all_fit(
    connection: duckdb.DuckDBPyConnection, table: str, conditions: Sequence[str]
) -> list[bool | None]:
    """Ask which conditions hold in every row; a column without any value gives None."""
    asked = ", ".join(f"bool_and({condition})" for condition in conditions)
    (answers,) = connection.execute(f"SELECT {asked} FROM {table}").fetchall()  # noqa: S608
    return list(answers)


def _condition(column: str, kind: str, reading: str, decimal: str) -> str:
    condition = reading.format(x=_text(column, kind, decimal))
    # with a decimal comma, a point separates thousands or means something else
    pointless = f" AND NOT contains({quoted(column)}, '.')" if decimal != "." else ""
    whole = condition + (pointless if kind in NUMBERS else "")
    # a missing value says nothing: NULL is left out of bool_and
    return f"CASE WHEN {quoted(column)} IS NOT NULL THEN {whole} END"


def _text(column: str, kind: str, decimal: str) -> str:
    name = quoted(column)
    return f"replace({name}, ',', '.')" if decimal == "," and kind in NUMBERS else name
