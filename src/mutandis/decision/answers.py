"""What a decision maker gave back, read as one value a row, before anybody believes it."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories
from mutandis.errors import DecisionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_order", "distinct_answers", "one_a_row", "scores_of"]


def one_a_row(answer: Any, *, rows: int, name: str) -> NDArray[Any]:
    """Read the answer as an array with one value a row."""
    try:
        values = _as_array(answer)
    except (TypeError, ValueError, RuntimeError):
        values = np.array(None)  # what cannot become an array is refused with its type below
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        shape = f" of shape {values.shape}" if values.ndim else ""
        raise DecisionError(
            f"The decision maker ({name}) gave back {type(answer).__name__}{shape}, not one "
            "answer a row. Return an array, a series or a list with one outcome for each of the "
            f"{rows} rows (predicted outcomes, not a probability for each of them)."
        )
    if len(values) != rows:
        raise DecisionError(
            f"The decision maker ({name}) gave back {len(values)} answers "
            f"({type(answer).__name__}) for {rows} rows. Return exactly one for each row, in the "
            "order of the table."
        )
    return values


def _as_array(answer: Any) -> NDArray[Any]:
    import narwhals as nw

    if isinstance(answer, np.ma.MaskedArray):
        answer = answer.tolist()  # None where it is masked; numpy's own conversion forgets
    opened = nw.from_native(answer, allow_series=True, eager_only=True, pass_through=True)
    if isinstance(opened, nw.Series):
        return opened.to_numpy()
    if isinstance(opened, nw.DataFrame):
        return opened[:, 0].to_numpy() if opened.shape[1] == 1 else np.empty(opened.shape)
    # objects: numpy would turn a list such as ["no", 1] into text
    return np.array(answer, dtype=np.object_ if isinstance(answer, list | tuple) else None)


def check_order(answer: Any, frame: Any, *, name: str) -> None:
    """Refuse a pandas answer whose index tells that its rows are in another order."""
    from narwhals.dependencies import is_pandas_dataframe, is_pandas_series

    if not is_pandas_dataframe(frame) or not (
        is_pandas_series(answer) or is_pandas_dataframe(answer)
    ):
        return
    given, found = frame.index, answer.index
    same_labels = given.nlevels == found.nlevels and bool(given.isin(found).all())
    if same_labels and not found.equals(given):
        raise DecisionError(
            f"The decision maker ({name}) gave back the table's index in another order. Answers "
            "are read by position: keep the rows in the order of the table, or, if they are in "
            "that order, return them without their index (.to_numpy())."
        )


def distinct_answers(values: NDArray[Any], *, name: str) -> tuple[Categories, bool]:
    """Find the different answers, and whether they are all booleans; refuse missing ones."""
    import pandas as pd

    try:
        codes, uniques = pd.factorize(values)
    except TypeError:
        raise DecisionError(
            f"The decision maker ({name}) gave back answers of type {_type_of_first(values)}, "
            "which cannot be compared. Return one plain value a row."
        ) from None
    missing = int(np.count_nonzero(codes < 0))
    if missing:
        raise DecisionError(
            f"The decision maker ({name}) gave no answer in {missing} of {len(values)} rows. "
            "It must decide on every row: complete what it needs, or leave these rows out."
        )
    are_booleans = pd.api.types.infer_dtype(values, skipna=False) == "boolean"
    return Categories(codes.astype(np.int32), tuple(uniques.tolist())), are_booleans


def _type_of_first(values: NDArray[Any]) -> str:
    return type(values[0]).__name__ if len(values) else str(values.dtype)


def scores_of(answer: Any, *, rows: int, name: str) -> NDArray[np.float64]:
    """Read the answer as one number a row; none may be missing, and truths are no numbers.

    Examples
    --------
    >>> scores_of([0.25, 1], rows=2, name="a model").tolist()
    [0.25, 1.0]
    >>> scores_of([0.25, float("nan")], rows=2, name="a model")
    Traceback (most recent call last):
    mutandis.errors.DecisionError: The decision maker (a model) gave no score (a missing value, or
    NaN) in 1 of 2 rows. ...
    """
    values = one_a_row(answer, rows=rows, name=name)
    held = values[~_lacking(values)] if values.dtype == np.object_ else values
    if not _are_numbers(held):
        raise DecisionError(
            f"The decision maker ({name}) gave back answers of type {_type_of_first(held)}, and a "
            "threshold was declared, which takes a number for each row. Return scores, or leave "
            "the threshold out if these are decisions."
        )
    scores = np.full(rows, np.nan)
    if values.dtype == np.object_:
        scores[~_lacking(values)] = [float(value) for value in held]
    else:
        scores[:] = values
    missing = int(np.isnan(scores).sum())
    if missing:
        raise DecisionError(
            f"The decision maker ({name}) gave no score (a missing value, or NaN) in {missing} of "
            f"{rows} rows. It must score every row: complete what it needs, or leave these rows "
            "out."
        )
    return scores


def _lacking(values: NDArray[Any]) -> NDArray[np.bool_]:
    import pandas as pd

    return np.asarray(pd.isna(values), dtype=np.bool_)


def _are_numbers(values: NDArray[Any]) -> bool:
    if values.dtype != np.object_:
        return bool(np.issubdtype(values.dtype, np.number)) and not np.iscomplexobj(values)
    return all(
        isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)
        for value in values.tolist()
    )
