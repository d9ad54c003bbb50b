"""b(): asking a decision maker, and checking what it answers.

A decision maker is a stranger's code. What it gives back is looked at before it is believed: one
answer a row, none missing, each of them one of the two outcomes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from mutandis.data.columns import describe_levels, frozen
from mutandis.decision.answers import check_order, distinct_answers, one_a_row
from mutandis.errors import DecisionError, MutandisError
from mutandis.frames import open_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.data.columns import Categories
    from mutandis.data.outcome import Outcome

__all__ = ["DecisionMaker", "DescribedMaker", "decide", "describe_maker", "label_of"]

# More different answers than this are scores or something else; they are counted, not shown.
_SHOWN_ANSWERS = 5


@runtime_checkable
class DecisionMaker(Protocol):
    """Whoever decides: gets a table, answers row by row."""

    def decide(self, frame: Any, /) -> Any:
        """Decide on each row of a table, in the caller's own frame type and in the order of rows.

        The answer is an array, a series or a list of the outcome's two values, or of booleans.
        """


class DescribedMaker(ABC):
    """A decision maker of our own, which can say what it is.

    What a stranger's object says about itself may hold anything, so only these are ever asked.
    """

    __slots__ = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it needs; none if it wants the whole table."""
        return ()

    @property
    def label(self) -> str:
        """What error messages call it."""
        return type(self).__name__

    @abstractmethod
    def decide(self, frame: Any, /) -> Any:
        """Decide on each row, as `DecisionMaker` says."""

    def scoring(self) -> DescribedMaker:
        """Give the same decision maker, asked for scores instead of decisions."""
        return self

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Describe it as plain data for the record: what kind, which file; no secrets, no rows."""


def label_of(maker: object) -> str:
    """Give what error messages call a decision maker."""
    return maker.label if isinstance(maker, DescribedMaker) else type(maker).__name__


def describe_maker(maker: object) -> dict[str, Any]:
    """Describe a decision maker for the record; of a stranger's object, no more than its type.

    Examples
    --------
    >>> from mutandis.decision import as_decision_maker
    >>> describe_maker(as_decision_maker("salary > 15"))
    {'kind': 'rule', 'rule': 'salary > 15'}
    """
    if isinstance(maker, DescribedMaker):
        return maker.describe()
    return {"kind": "object", "type": type(maker).__name__}


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
    >>> from mutandis.data.outcome import Outcome
    >>> granted = Outcome(
    ...     column="granted", negative="no", positive="yes", is_negative=np.array([True, False])
    ... )
    >>> decide(Rule.parse("salary > 15"), pd.DataFrame({"salary": [10, 20]}), granted).tolist()
    [True, False]
    """
    rows = len(open_frame(frame))
    name = label_of(maker)
    try:
        answer = maker.decide(frame)
    except MutandisError:
        raise
    except (Exception, SystemExit) as error:
        raise DecisionError(
            f"The decision maker ({name}) stopped with {type(error).__name__} on a table of {rows} "
            "rows. What it said is not repeated here, because it may quote somebody's data: call "
            "it on the table yourself to see."
        ) from error
    values = one_a_row(answer, rows=rows, name=name)
    check_order(answer, frame, name=name)
    answers, are_booleans = distinct_answers(values, name=name)
    if are_booleans:
        negatives = _negative_booleans(maker, outcome, name=name)
    else:
        negatives = {outcome.negative: True, outcome.positive: False}
    if not all(level in negatives for level in answers.levels):
        raise _not_an_outcome(answers, values.dtype, outcome, name=name)
    by_level = np.array([negatives[level] for level in answers.levels], dtype=np.bool_)
    return frozen(by_level[answers.codes])


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
