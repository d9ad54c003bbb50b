"""What keeps a column of text from being numbers, said without quoting it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["why_no_numbers"]


def why_no_numbers(codes: NDArray[Any], levels: Sequence[object]) -> str:
    """Say why text is not numbers, if it nearly is: how it continues "has type text".

    Parameters
    ----------
    codes
        For each row, the place of its text among the levels, or -1.
    levels
        The texts.

    Examples
    --------
    >>> why_no_numbers(np.array([0, 1, 1, 2, -1]), ("n/a", "1.5", "2"))[:40]
    ' (1 of 5 rows holds something that is no'
    >>> why_no_numbers(np.array([0, 1]), ("1,5", "2"))
    " (its numbers have a decimal comma: add decimal: ',' to the data of an audit file)"
    """
    odd = np.array([not _is_numeral(str(level)) for level in levels], dtype=np.bool_)
    rows = int(np.append(odd, False)[codes].sum())  # a missing value is not odd
    if rows and all(_is_numeral(str(level).replace(",", ".")) for level in levels):
        return " (its numbers have a decimal comma: add decimal: ',' to the data of an audit file)"
    if not rows or odd.all():
        return ""
    hold = "row holds" if len(codes) == 1 else "rows holds" if rows == 1 else "rows hold"
    return (
        f" ({rows:,} of {len(codes):,} {hold} something that is no number; if it stands for a "
        "missing value, say so where the table is read: 'missing_text' in an audit file)"
    )


def _is_numeral(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
