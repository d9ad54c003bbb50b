"""Scores turned into decisions by a threshold or into levels by several, and answers in words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np

from mutandis.data.columns import describe_levels, is_number
from mutandis.data.formula import Formula
from mutandis.decision.maker import (
    BooleanMaker,
    DescribedMaker,
    LevelMaker,
    MakerWrapper,
    describe_maker,
    distinct_answers,
    read_answers,
    read_scores,
)
from mutandis.decision.model import ModelMaker, ModelScores, as_decision_maker
from mutandis.decision.rule import FormulaScores
from mutandis.errors import DecisionError
from mutandis.frames import open_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.decision.model import ScoreSource

Favourable = Literal["above", "below"]


@dataclass(frozen=True, slots=True)
class Thresholded(MakerWrapper, BooleanMaker):
    """A decision maker whose answers are scores, and the threshold that makes decisions of them."""

    threshold: float
    favourable: Favourable = "above"

    def __post_init__(self) -> None:
        if not is_number(self.threshold):
            raise DecisionError(
                f"threshold={self.threshold!r} is not a number. Give the score that separates the "
                "two decisions, such as 0.5."
            )
        if self.favourable not in get_args(Favourable):
            raise DecisionError(
                f"favourable={self.favourable!r} is unknown. Say which scores get the favourable "
                "outcome: 'above' (at least the threshold) or 'below'."
            )

    def decide(self, frame: Any, /) -> NDArray[np.bool_]:
        answer = self.maker.decide(frame)
        rows = len(open_frame(frame))
        above = read_scores(answer, frame, rows=rows, name=self.label) >= self.threshold
        return above if self.favourable == "above" else ~above

    def describe(self) -> dict[str, Any]:
        cut = {"threshold": float(self.threshold), "favourable": self.favourable}
        return {**describe_maker(self.maker), **cut}


@dataclass(frozen=True, slots=True)
class Graded(MakerWrapper, LevelMaker):
    """A decision maker whose answers are scores, and the thresholds that make levels of them."""

    thresholds: tuple[float, ...]  # between the best level and the next, and so on
    favourable: Favourable = "above"

    def __post_init__(self) -> None:
        for each in self.thresholds:
            Thresholded(self.maker, each, self.favourable)
        falls = self.favourable == "above"
        apart = [
            (one > other) is falls and one != other for one, other in pairwise(self.thresholds)
        ]
        if not all(apart):
            raise DecisionError(
                f"threshold={list(self.thresholds)!r} is not in order. The first one separates the "
                f"best level from the next: where {self.favourable} is favourable, each is "
                f"{'lower' if falls else 'higher'} than the one before."
            )

    @property
    def levels(self) -> int:
        return len(self.thresholds) + 1

    def decide(self, frame: Any, /) -> NDArray[np.int64]:
        answer, rows = self.maker.decide(frame), len(open_frame(frame))
        scores = read_scores(answer, frame, rows=rows, name=self.label)
        # a score that equals a threshold counts as above
        above = self.favourable == "above"
        missed = [scores < each if above else scores >= each for each in self.thresholds]
        return np.asarray(np.sum(missed, axis=0), dtype=np.int64)

    def describe(self) -> dict[str, Any]:
        cuts = {"threshold": [float(each) for each in self.thresholds]}
        return {**describe_maker(self.maker), **cuts, "favourable": self.favourable}


@dataclass(frozen=True, slots=True, kw_only=True)
class RelabelledMaker(MakerWrapper, BooleanMaker):
    """A decision maker that answers in two words of its own instead of the outcome's values."""

    favourable: Any
    unfavourable: Any

    def __post_init__(self) -> None:
        if _same(self.favourable, self.unfavourable):
            raise DecisionError(
                f"The favourable and the unfavourable answer are both {self.favourable!r}. "
                "Name two different ones."
            )

    def decide(self, frame: Any, /) -> NDArray[np.bool_]:
        answer = self.maker.decide(frame)
        rows = len(open_frame(frame))
        values = read_answers(answer, frame, rows=rows, name=self.label)
        answers, _ = distinct_answers(values, name=self.label)
        granted = [_same(level, self.favourable) for level in answers.levels]
        known = [
            good or _same(level, self.unfavourable)
            for good, level in zip(granted, answers.levels, strict=True)
        ]
        if not all(known):
            raise DecisionError(
                f"The decision maker ({self.label}) returned {len(known)} distinct answers of "
                f"type {values.dtype} ({describe_levels(answers)}). Declared are "
                f"{self.favourable!r} for favourable and {self.unfavourable!r} for unfavourable. "
                "Declare what it answers."
            )
        return np.array(granted, dtype=np.bool_)[answers.codes]

    def describe(self) -> dict[str, Any]:
        words = {"favourable": self.favourable, "unfavourable": self.unfavourable}
        return {**describe_maker(self.maker), "answers": words}


def _same(one: Any, other: Any) -> bool:
    """Compare two answers; True is not 1 here: a service that uses both means two things."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


@overload
def with_threshold(
    decision: object,
    threshold: float,
    *,
    favourable: Favourable = "above",
    score_of: Any = None,
    score_from: ScoreSource | None = None,
) -> Thresholded: ...


@overload
def with_threshold(
    decision: object,
    threshold: Sequence[float],
    *,
    favourable: Favourable = "above",
    score_of: Any = None,
    score_from: ScoreSource | None = None,
) -> Graded: ...


def with_threshold(
    decision: object,
    threshold: float | Sequence[float],
    *,
    favourable: Favourable = "above",
    score_of: Any = None,
    score_from: ScoreSource | None = None,
) -> Thresholded | Graded:
    """Make a decision maker of whatever gives scores.

    Parameters
    ----------
    decision
        The text of a formula, a function from a table to scores, a fitted model, or an object
        with a `decide` method that gives scores.
    threshold, favourable
        Where the scores are cut, and which side gets the favourable outcome (a score that equals
        the threshold counts as above). For an outcome with an order, a list: the first threshold
        separates the best level from the next.
    score_of, score_from
        For a model: the class that the scores are for, and the method to take them from.

    Examples
    --------
    >>> maker = with_threshold("0.6 * UGPA + 0.4 * LSAT", 20.8)
    >>> maker.decide({"UGPA": [3.0, 3.5], "LSAT": [40, 48]}).tolist()
    [False, True]
    >>> maker = with_threshold("income - debt", [40, 20])
    >>> maker.decide({"income": [50, 45, 30], "debt": [5, 25, 20]}).tolist()
    [0, 1, 2]
    """
    if isinstance(decision, str):
        decision = Formula.parse(decision)
    maker = (
        FormulaScores(decision) if isinstance(decision, Formula) else as_decision_maker(decision)
    )
    if isinstance(maker, ModelMaker):
        maker = ModelScores(maker, score_of, score_from)
    elif score_of is not None or score_from is not None:
        raise DecisionError(
            "score_of and score_from say which scores of a fitted model are meant, and this is "
            "not a fitted model. Leave them out."
        )
    elif isinstance(maker, DescribedMaker):
        maker = maker.scoring()
    if isinstance(threshold, list | tuple):
        return Graded(maker, tuple(threshold), favourable)
    return Thresholded(maker, threshold, favourable)  # type: ignore[arg-type]  # it checks
