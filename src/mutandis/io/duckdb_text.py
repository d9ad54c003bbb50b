"""What text in a file means: numbers, truths, dates, or text after all.

Decided by every row of a column. A reader that decides by a sample takes the 1.5 in row 60,000 of
a column that began with whole numbers for a 2, and says nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.io.duckdb_tables import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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

# where a few rows tell already that a reading does not fit, the others need not be looked at
_FIRST = 1_000


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
    >>> from mutandis.io.duckdb_tables import connected
    >>> with connected() as connection:
    ...     rows = "(VALUES ('1', '1'), ('2,5', 'a'), (NULL, '3')) AS t(pay, mixed)"
    ...     read_text_columns(connection, rows, ["pay", "mixed"], decimal=",")
    {'pay': 'CAST(replace("pay", \',\', \'.\') AS DOUBLE)', 'mixed': '"mixed"'}
    """
    first = f"(SELECT * FROM {table} LIMIT {_FIRST})"  # noqa: S608
    possible = {column: list(readings) for column in columns}
    for rows in (first, table):
        possible = {
            column: _fitting(
                connection,
                rows,
                column,
                conditions={
                    kind: _condition(column, kind, readings[kind], decimal) for kind in kinds
                },
            )
            for column, kinds in possible.items()
        }
    return {
        column: f"CAST({_text(column, kinds[0], decimal)} AS {kinds[0]})"
        if kinds
        else quoted(column)
        for column, kinds in possible.items()
    }


def _fitting(
    connection: duckdb.DuckDBPyConnection,
    rows: str,
    column: str,
    *,
    conditions: Mapping[str, str],
) -> list[str]:
    if not conditions:
        return []
    name = quoted(column)
    asked = ", ".join(
        f"bool_and({condition}) FILTER (WHERE {name} IS NOT NULL)"
        for condition in conditions.values()
    )
    answers = connection.execute(f"SELECT {asked} FROM {rows}").fetchall()[0]  # noqa: S608
    # a column without any value gives NULL: nothing can be said about it, and it stays text
    return [kind for kind, fits in zip(conditions, answers, strict=True) if fits]


def _condition(column: str, kind: str, reading: str, decimal: str) -> str:
    condition = reading.format(x=_text(column, kind, decimal))
    # with a decimal comma, a point separates thousands or means something else
    pointless = f" AND NOT contains({quoted(column)}, '.')" if decimal != "." else ""
    return condition + (pointless if kind in NUMBERS else "")


def _text(column: str, kind: str, decimal: str) -> str:
    name = quoted(column)
    return f"replace({name}, ',', '.')" if decimal == "," and kind in NUMBERS else name
