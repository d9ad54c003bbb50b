"""b(): asking a decision maker, and checking what it answers.

A decision maker is a stranger's code. What it gives back is looked at before it is believed: one
answer a row, none missing, each of them one of the two outcomes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from mutandis.domain.columns import Categories, describe_levels, frozen
from mutandis.domain.population import open_frame
from mutandis.errors import DecisionError, MutandisError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.domain import Outcome

__all__ = ["DecisionMaker", "decide"]

# More different answers than this are scores or something else; they are counted, not shown.
_SHOWN_ANSWERS = 5


@runtime_checkable
class DecisionMaker(Protocol):
    """Whoever decides: gets a table, answers row by row."""

    def decide(self, frame: Any, /) -> Any:
        """Decide on each row of a table, in the caller's own frame type and in the order of rows.

        The answer is an array, a series or a list of the outcome's two values, or of booleans.
        """


def decide(maker: DecisionMaker, frame: Any, outcome: Outcome) -> NDArray[np.bool_]:
    """Ask a decision maker about each row, and mark those it decides against.

    Parameters
    ----------
    maker
        Who decides.
    frame
        The table, handed over as it is. It must be a copy that the decision maker may write to.
    outcome
        The outcome that the answers are read as.

    Returns
    -------
    NDArray[np.bool_]
        Whether each row gets the negative outcome.

    Raises
    ------
    DecisionError
        The decision maker failed, or its answer is not one of two outcomes for each row. Errors
        that mutandis itself raises on the way (a rule that names an unknown column) pass through.

    Notes
    -----
    Booleans are read as follows. A rule states when the favourable outcome is granted, so its true
    is always the positive outcome, its false the negative one. Any other decision maker answers in
    terms of the outcome column: where the column itself holds booleans, they are those values
    (``rejected=True`` is a rejection); where it holds other values, true is the positive outcome.
    Where that could be taken the wrong way round, because the *negative* value is 1 or the
    positive one is 0, booleans are refused.

    Examples
    --------
    >>> import pandas as pd
    >>> from mutandis.decision import Rule
    >>> from mutandis.domain import Outcome
    >>> granted = Outcome(
    ...     column="granted", negative="no", positive="yes", is_negative=np.array([True, False])
    ... )
    >>> decide(Rule.parse("salary > 15"), pd.DataFrame({"salary": [10, 20]}), granted).tolist()
    [True, False]
    """
    rows = len(open_frame(frame))
    name = type(maker).__name__
    try:
        answer = maker.decide(frame)
    except MutandisError:
        raise
    except Exception as error:
        raise DecisionError(
            f"The decision maker ({name}) stopped with {type(error).__name__} on a table of {rows} "
            "rows. What it said is not repeated here, because it may quote somebody's data: call "
            "it on the table yourself to see."
        ) from error
    values = _one_a_row(answer, rows=rows, name=name)
    _check_order(answer, frame, name=name)
    answers, are_booleans = _distinct(values, name=name)
    if are_booleans:
        negatives = _negative_booleans(maker, outcome, name=name)
    else:
        negatives = {outcome.negative: True, outcome.positive: False}
    if not all(level in negatives for level in answers.levels):
        raise _not_an_outcome(answers, values.dtype, outcome, name=name)
    by_level = np.array([negatives[level] for level in answers.levels], dtype=np.bool_)
    return frozen(by_level[answers.codes])


def _one_a_row(answer: Any, *, rows: int, name: str) -> NDArray[Any]:
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


def _check_order(answer: Any, frame: Any, *, name: str) -> None:
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


def _distinct(values: NDArray[Any], *, name: str) -> tuple[Categories, bool]:
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


def _negative_booleans(maker: DecisionMaker, outcome: Outcome, *, name: str) -> dict[Any, bool]:
    """Say which boolean is the negative outcome (see the notes of `decide`)."""
    if getattr(maker, "true_is_favourable", False) is True:
        return {True: False, False: True}
    negative, positive = outcome.negative, outcome.positive
    if isinstance(negative, bool) and isinstance(positive, bool):
        return {negative: True, positive: False}
    if negative == 1 or positive == 0:
        raise DecisionError(
            f"The decision maker ({name}) gave back booleans, and the outcome {outcome.column!r} "
            f"has the negative value {negative!r} and the positive value {positive!r}: True could "
            f"mean either. Return {negative!r} and {positive!r} themselves."
        )
    return {True: False, False: True}


def _not_an_outcome(
    answers: Categories, dtype: np.dtype[Any], outcome: Outcome, *, name: str
) -> DecisionError:
    count = len(answers.levels)
    shown = describe_levels(answers) if count <= _SHOWN_ANSWERS else "too many to show"
    return DecisionError(
        f"The decision maker ({name}) gave back {count} distinct answers of type {dtype} "
        f"({shown}) in {len(answers)} rows. Allowed are the outcome's own values, "
        f"{outcome.negative!r} and {outcome.positive!r}, or booleans. "
        "Turn a score or a probability into a decision first, by comparing it with a threshold."
    )
