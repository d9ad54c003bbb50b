"""Tables in the caller's own frame type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["columns_of", "to_frame"]


def to_frame(columns: Mapping[str, Any], like: nw.DataFrame[Any]) -> Any:
    """Build a table of the same frame type as another.

    Examples
    --------
    >>> import pandas as pd
    >>> from mutandis.data.population import open_frame
    >>> to_frame({"k": [15]}, open_frame(pd.DataFrame())).shape
    (1, 1)
    """
    import narwhals as nw

    plain = {name: _plain(np.array(values)) for name, values in columns.items()}
    table = nw.from_dict(plain, backend=like.implementation)
    # what is not defined is null; pandas writes that as NaN, other frames tell the two apart
    return table.with_columns(nw.selectors.by_dtype(nw.Float64).fill_nan(None)).to_native()


def _plain(values: NDArray[Any]) -> Any:
    """Frame libraries find the type of mixed or missing values in a list, not in an array."""
    return values.tolist() if values.dtype.kind == "O" else values


def columns_of(records: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn records into columns.

    Examples
    --------
    >>> columns_of([{"k": 15, "cases": 2}, {"k": 30, "cases": 3}])
    {'k': [15, 30], 'cases': [2, 3]}
    """
    columns: dict[str, list[Any]] = {}
    for record in records:
        for name, value in record.items():
            columns.setdefault(name, []).append(value)
    return columns
