"""The columns that a decision maker is shown: those it needs, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.errors import DecisionError
from mutandis.frames import check_columns, open_frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    import narwhals as nw

__all__ = ["opened_columns", "read_columns"]


def read_columns(columns: Iterable[str] | str | None) -> tuple[str, ...]:
    """Take a list of column names, each once.

    Examples
    --------
    >>> read_columns(["salary", "balance"])
    ('salary', 'balance')
    """
    if isinstance(columns, str):
        raise DecisionError(f"columns= takes a list, not a text. Write columns=[{columns!r}].")
    names = tuple(columns or ())
    for name in names:
        if not isinstance(name, str):
            raise DecisionError(f"columns= takes names of columns, not {type(name).__name__}.")
        if names.count(name) > 1:
            raise DecisionError(f"columns= names {name!r} more than once. Name each column once.")
    return names


def opened_columns(frame: Any, names: tuple[str, ...]) -> nw.DataFrame[Any]:
    """Give the named columns of any dataframe, in that order; refuse names that it does not have.

    Examples
    --------
    >>> opened_columns({"id": [7], "salary": [10]}, ("salary",)).columns
    ['salary']
    """
    opened = open_frame(frame)
    check_columns(names, opened.columns)
    return opened.select(names)
