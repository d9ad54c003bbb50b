"""Scores turned into decisions by a threshold, and answers in words of their own."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from mutandis.data.columns import describe_levels
from mutandis.decision.answers import check_order, distinct_answers, one_a_row, scores_of
from mutandis.decision.maker import DecisionMaker, DescribedMaker, describe_maker, label_of
from mutandis.errors import DecisionError
from mutandis.frames import open_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Favourable", "RelabelledMaker", "Threshold", "Thresholded"]

Favourable = Literal["above", "below"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Where scores are cut in two, and which side is the favourable one.

    A score that equals the threshold counts as above: "above" grants what is at least the
    threshold, "below" grants what is less than it.

    Parameters
    ----------
    value
        The threshold.
    favourable
        "above" where high scores are good (an approval, a rating), "below" where they are bad (the
        risk of a default).

    Examples
    --------
    >>> Threshold(0.5).grants(np.array([0.4, 0.5, 0.6])).tolist()
    [False, True, True]
    >>> Threshold(0.5, "below").grants(np.array([0.4, 0.5, 0.6])).tolist()
    [True, False, False]
    """

    value: float
    favourable: Favourable = "above"

    def __post_init__(self) -> None:
        value: object = self.value
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not isfinite(self.value):
            raise DecisionError(
                f"threshold={self.value!r} is no number. Give the score at which decisions part, "
                "such as 0.5."
            )
        if self.favourable not in get_args(Favourable):
            raise DecisionError(
                f"favourable={self.favourable!r} is unknown. Say which scores get the favourable "
                "outcome: 'above' (at least the threshold) or 'below'."
            )

    def grants(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which scores get the favourable outcome."""
        above = scores >= self.value
        return above if self.favourable == "above" else ~above

    def describe(self) -> dict[str, Any]:
        """Describe it as plain data."""
        return {"threshold": float(self.value), "favourable": self.favourable}


@dataclass(frozen=True, slots=True)
class Thresholded(DescribedMaker):
    """A decision maker whose answers are scores, and the threshold that makes decisions of them.

    Examples
    --------
    >>> from mutandis.decision import FunctionMaker
    >>> import pandas as pd
    >>> risk = FunctionMaker(lambda table: table["risk"] / 10)
    >>> maker = Thresholded(risk, Threshold(0.5, "below"))
    >>> maker.decide(pd.DataFrame({"risk": [2, 5, 9]})).tolist()
    [True, False, False]
    """

    true_is_favourable: ClassVar[bool] = True
    """How `decide` reads the answers: true is always the positive outcome."""

    scorer: DecisionMaker
    threshold: Threshold

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the scores need."""
        return self.scorer.names if isinstance(self.scorer, DescribedMaker) else ()

    @property
    def label(self) -> str:
        """What error messages call it: the one who scores."""
        return label_of(self.scorer)

    def decide(self, frame: Any, /) -> NDArray[np.bool_]:
        """Ask for scores, and tell which rows are granted."""
        answer = self.scorer.decide(frame)
        scores = scores_of(answer, rows=len(open_frame(frame)), name=self.label)
        check_order(answer, frame, name=self.label)
        return self.threshold.grants(scores)

    def describe(self) -> dict[str, Any]:
        """Describe who scores, and the threshold."""
        return {**describe_maker(self.scorer), **self.threshold.describe()}


@dataclass(frozen=True, slots=True, kw_only=True)
class RelabelledMaker(DescribedMaker):
    """A decision maker that answers in two words of its own instead of the outcome's values.

    Parameters
    ----------
    maker
        Who decides.
    favourable, unfavourable
        What it answers where the outcome is granted, and where it is not.

    Examples
    --------
    >>> from mutandis.decision import FunctionMaker
    >>> maker = RelabelledMaker(
    ...     maker=FunctionMaker(lambda table: ["DENY", "ACCEPT"]),
    ...     favourable="ACCEPT",
    ...     unfavourable="DENY",
    ... )
    >>> maker.decide({"salary": [10, 20]}).tolist()
    [False, True]
    """

    true_is_favourable: ClassVar[bool] = True

    maker: DecisionMaker
    favourable: Any
    unfavourable: Any

    def __post_init__(self) -> None:
        if _same(self.favourable, self.unfavourable):
            raise DecisionError(
                f"The favourable and the unfavourable answer are both {self.favourable!r}. "
                "Name two different ones."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the decisions need."""
        return self.maker.names if isinstance(self.maker, DescribedMaker) else ()

    @property
    def label(self) -> str:
        """What error messages call it: the one who decides."""
        return label_of(self.maker)

    def decide(self, frame: Any, /) -> NDArray[np.bool_]:
        """Ask, and tell which rows are granted; any third answer is refused."""
        answer = self.maker.decide(frame)
        values = one_a_row(answer, rows=len(open_frame(frame)), name=self.label)
        check_order(answer, frame, name=self.label)
        answers, _ = distinct_answers(values, name=self.label)
        granted = [_same(level, self.favourable) for level in answers.levels]
        known = [
            good or _same(level, self.unfavourable)
            for good, level in zip(granted, answers.levels, strict=True)
        ]
        if not all(known):
            shown = describe_levels(answers)
            raise DecisionError(
                f"The decision maker ({self.label}) gave back {len(known)} distinct answers of "
                f"type {values.dtype} ({shown}). Declared are {self.favourable!r} for favourable "
                f"and {self.unfavourable!r} for unfavourable. Declare what it answers."
            )
        return np.array(granted, dtype=np.bool_)[answers.codes]

    def describe(self) -> dict[str, Any]:
        """Describe who decides, and the words."""
        words = {"favourable": self.favourable, "unfavourable": self.unfavourable}
        return {**describe_maker(self.maker), "answers": words}


def _same(one: Any, other: Any) -> bool:
    """Compare two answers; True is not 1 here, since a service that says both means two things."""
    truths = isinstance(one, bool), isinstance(other, bool)
    return truths[0] == truths[1] and bool(one == other)
