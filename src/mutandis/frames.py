"""Any dataframe in, and the caller's own frame type out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import InputError, UnknownColumnError, listed, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

    import narwhals as nw
    import pandas as pd

__all__ = ["EncodedTable", "check_columns", "columns_of", "open_frame", "to_frame", "with_text"]

_SHOWN = 30  # names of columns in a message


def open_frame(frame: Any) -> nw.DataFrame[Any]:
    """Open any dataframe through narwhals; a lazy one is collected into pandas."""
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    if isinstance(frame, Mapping):
        frame = _table_of(frame)
    if isinstance(frame, EncodedTable):
        frame = frame.frame
    try:
        opened = nw.from_native(frame)
        return opened.collect("pandas") if isinstance(opened, nw.LazyFrame) else opened
    except TypeError:
        raise InputError(
            f"Cannot read a table from {type(frame).__name__}. Give a dataframe (pandas, polars, "
            "pyarrow, DuckDB relation, …) or a dict of columns."
        ) from None
    except DuplicateError:
        # pyarrow's `columns` are the data, its `column_names` the names
        names = Counter(getattr(frame, "column_names", None) or frame.columns)
        repeated = ", ".join(repr(name) for name, times in names.items() if times > 1)
        raise InputError(
            f"The table has several columns of the same name: {repeated}. Rename them."
        ) from None
    except ModuleNotFoundError as absent:
        raise InputError(
            f"Collecting a lazy table needs {absent.name}. "
            "Install it, or collect the table before the audit."
        ) from None


def _table_of(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Put columns side by side, by position: the index of a series is ignored."""
    import pandas as pd

    plain = {
        name: values.array if isinstance(values, pd.Series) else values
        for name, values in columns.items()
    }
    try:
        return pd.DataFrame(plain)
    except (TypeError, ValueError):
        raise InputError(
            "Cannot read a table from this dict. Give one list or array per column, all of the "
            "same length."
        ) from None


def to_frame(columns: Mapping[str, Any], like: nw.DataFrame[Any]) -> Any:
    """Build a table of the same frame type as another."""
    import narwhals as nw

    arrays = {name: np.array(values) for name, values in columns.items()}
    # frame libraries infer the type of mixed or missing values from a list, not from an array
    plain = {name: a.tolist() if a.dtype.kind == "O" else a for name, a in arrays.items()}
    table = nw.from_dict(plain, backend=like.implementation)
    if table.implementation.is_pandas():  # whose null is NaN
        return table.to_native()
    # an undefined value is null; other frames distinguish the two
    return table.with_columns(nw.selectors.by_dtype(nw.Float64).fill_nan(None)).to_native()


def columns_of(records: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn records into columns."""
    columns: dict[str, list[Any]] = {}
    for record in records:
        for name, value in record.items():
            columns.setdefault(name, []).append(value)
    return columns


def check_columns(names: Iterable[str], have: list[str]) -> None:
    """Refuse names that are not columns of a table, with the nearest one that is."""
    for name in names:
        if name not in have:
            # pandas allows names that are not text
            near = suggest(name, [other for other in have if isinstance(other, str)])
            raise UnknownColumnError(
                f"Unknown column {name!r}.{near} The table's columns are "
                f"{listed(have, near=name, most=_SHOWN)}."
            )


class EncodedTable:
    """A table read into arrays; the named columns are text, held as codes.

    Text kept as codes lets ten million decisions fit into memory; decision makers get text. The
    arrays become a pandas frame when one is asked for: pandas takes long to load. An array is
    masked where values are missing; text is an array of codes with its levels. Its maker must not
    write to the arrays afterwards.
    """

    def __init__(self, arrays: Mapping[str, Any], *, text: frozenset[str]) -> None:
        self.text, self.arrays = text, dict(arrays)
        self._frame: pd.DataFrame | None = None

    @property
    def frame(self) -> pd.DataFrame:
        if self._frame is None:
            import pandas as pd

            # taken out of the dict, so that memory is given back column by column
            values = {name: _pandas_values(self.arrays.pop(name)) for name in list(self.arrays)}
            self._frame = pd.DataFrame(values, copy=False)
        return self._frame

    def __len__(self) -> int:
        for array in self.arrays.values():
            return len(array[0] if isinstance(array, tuple) else array)
        return len(self.frame)

    @property
    def columns(self) -> list[str]:
        return list(self.arrays) or [str(name) for name in self.frame.columns]

    def to_pandas(self) -> pd.DataFrame:
        return with_text(self.frame, self.text)


def _pandas_values(array: Any) -> Any:
    import pandas as pd

    if isinstance(array, tuple):
        codes, levels = array
        return pd.Categorical.from_codes(codes, categories=pd.Index(levels), validate=False)
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


def with_text(frame: pd.DataFrame, names: frozenset[str]) -> pd.DataFrame:
    """Copy a frame with the categoricals among the named columns written out as text."""
    import pandas as pd

    written = {
        name: _as_text(frame[name])
        for name in frame.columns
        if name in names and isinstance(frame[name].dtype, pd.CategoricalDtype)
    }
    return frame.assign(**written)


def _as_text(series: Any) -> pd.Series[Any]:
    import pandas as pd

    # one more at the end, where code -1 (missing) finds it
    values = np.array([*series.cat.categories, None], dtype=np.object_)
    return pd.Series(values[series.cat.codes.to_numpy()], index=series.index, name=series.name)
