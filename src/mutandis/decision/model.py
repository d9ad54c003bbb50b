"""Functions and fitted models as b(); scores cut by thresholds, and answers in words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mutandis.data.columns import describe_levels, is_number
from mutandis.data.formula import Formula
from mutandis.decision.maker import (
    BooleanMaker,
    DecisionMaker,
    DescribedMaker,
    LevelMaker,
    MakerWrapper,
    describe_maker,
    distinct_answers,
    read_answers,
    read_scores,
    select_columns,
)
from mutandis.decision.rule import FormulaScores, Rule
from mutandis.errors import DecisionError, listed
from mutandis.frames import open_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

Favourable = Literal["above", "below"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """The file of a model, by name and content; not where on the machine it was."""

    name: str
    sha256: str

    def describe(self) -> dict[str, Any]:
        return {"file": self.name, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class FunctionMaker(DescribedMaker):
    """A function from a table, in the caller's own frame type, to one answer per row."""

    function: Callable[[Any], Any]
    columns: tuple[str, ...] = ()
    reference: str | None = None  # module:function
    file: ModelFile | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns

    @property
    def label(self) -> str:
        return type(self).__name__ if self.reference is None else f"function {self.reference}"

    def decide(self, frame: Any, /) -> Any:
        if not self.columns:
            return self.function(frame)
        return self.function(select_columns(frame, self.columns).to_native())

    def describe(self) -> dict[str, Any]:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return {
            "kind": "function" if self.reference is None else "python",
            "function": self.reference or name,
            **({} if self.file is None else self.file.describe()),
            "columns": list(self.columns) or None,
        }


@dataclass(frozen=True, slots=True)
class ModelMaker(DescribedMaker):
    """A fitted model with a `predict` method, as those of scikit-learn have."""

    model: Any
    columns: tuple[str, ...] = ()
    file: ModelFile | None = None
    kind: str = "model"

    def __post_init__(self) -> None:
        own = self._own_columns
        if own and self.columns and set(own) != set(self.columns):
            raise DecisionError(
                f"{self.label} was fitted on the columns {listed(own)}, but columns= names "
                f"{listed(self.columns)}. Leave columns out, or name the same ones."
            )
        count = getattr(self.model, "n_features_in_", None)
        if self.columns and isinstance(count, int | np.integer) and count != len(self.columns):
            raise DecisionError(
                f"{self.label} was fitted on {count} columns, but {len(self.columns)} are named. "
                "Name the columns that it was fitted on, in that order."
            )

    @property
    def _own_columns(self) -> tuple[str, ...]:
        names = getattr(self.model, "feature_names_in_", None)
        return () if names is None else tuple(str(name) for name in names)

    @property
    def names(self) -> tuple[str, ...]:
        return self._own_columns or self.columns

    @property
    def label(self) -> str:
        if self.file is None:
            return type(self).__name__
        return f"{type(self.model).__name__} in {self.file.name!r}"

    def decide(self, frame: Any, /) -> Any:
        return self.model.predict(self.features(frame))

    def features(self, frame: Any) -> Any:
        """Select the columns that it was fitted on or else that are named; or the whole table."""
        if not self.names:
            return frame
        chosen = select_columns(frame, self.names)
        # a model that was fitted on a bare matrix complains of column names
        return chosen.to_native() if self._own_columns else chosen.to_numpy()

    def describe(self) -> dict[str, Any]:
        """Describe the model by its type; its repr may contain anything."""
        return {
            "kind": self.kind,
            "type": type(self.model).__name__,
            **({} if self.file is None else self.file.describe()),
            "columns": list(self.names) or None,
        }


@dataclass(frozen=True, slots=True)
class ModelScores(MakerWrapper):
    """The scores of a fitted model, for a threshold."""

    maker: ModelMaker
    score_of: Any = None  # one of the model's classes, if it has any: which one is not guessed

    def __post_init__(self) -> None:
        if self.source != "predict":
            self._class_position()
        elif self.score_of is not None:
            raise DecisionError(
                f"{self.label} gives one number per row, which is not the score of a class. Leave "
                "score_of out."
            )
        elif self._classes:
            raise DecisionError(
                f"{self.label} predicts classes, not scores: a threshold needs predict_proba or "
                "decision_function. Leave the threshold out to take its predictions as decisions."
            )

    @property
    def source(self) -> str:
        """The method that gives the scores."""
        offered = ("predict_proba", "decision_function")
        # a support vector machine has the attribute only if it was told to estimate probabilities
        return next((n for n in offered if callable(getattr(self.maker.model, n, None))), "predict")

    @property
    def _classes(self) -> list[Any]:
        classes = getattr(self.maker.model, "classes_", None)
        return [] if classes is None else np.asarray(classes).tolist()

    def _class_position(self) -> int:
        classes = self._classes
        if not classes:
            raise DecisionError(f"{self.label} does not state its classes. Is it fitted?")
        matches = [place for place, each in enumerate(classes) if each == self.score_of]
        if self.score_of is None or not matches:
            found = "no class is named"
            if self.score_of is not None:
                found = f"{self.score_of!r} is not one of them"
            raise DecisionError(
                f"{self.label} has the classes {', '.join(map(repr, classes[:10]))}, and {found}. "
                "Name the class that the scores are for (score_of), and which side of the "
                "threshold is favourable."
            )
        return matches[0]

    def decide(self, frame: Any, /) -> Any:
        scores = getattr(self.maker.model, self.source)(self.maker.features(frame))
        if self.source == "predict":
            return scores
        scores, place = np.asarray(scores), self._class_position()
        # a decision function of two classes is for the second
        if self.source == "decision_function" and scores.ndim == 1:
            return scores if place == 1 else -scores
        return scores[:, place]

    def describe(self) -> dict[str, Any]:
        source = {"score_from": self.source, "score_of": self.score_of}
        return {**self.maker.describe(), **source}


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
        above = _scores(self, frame) >= self.threshold
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
        if any(one == other or (one > other) != falls for one, other in pairwise(self.thresholds)):
            raise DecisionError(
                f"threshold={list(self.thresholds)!r} is not in order. The first one separates the "
                f"best level from the next: where {self.favourable} is favourable, each is "
                f"{'lower' if falls else 'higher'} than the one before."
            )

    @property
    def levels(self) -> int:
        return len(self.thresholds) + 1

    def decide(self, frame: Any, /) -> NDArray[np.int64]:
        scores, above = _scores(self, frame), self.favourable == "above"
        # a score that equals a threshold counts as above
        missed = [scores < each if above else scores >= each for each in self.thresholds]
        return np.asarray(np.sum(missed, axis=0), dtype=np.int64)

    def describe(self) -> dict[str, Any]:
        cuts = {"threshold": [float(each) for each in self.thresholds]}
        return {**describe_maker(self.maker), **cuts, "favourable": self.favourable}


def _scores(maker: MakerWrapper, frame: Any) -> NDArray[np.float64]:
    answer = maker.maker.decide(frame)
    return read_scores(answer, frame, rows=len(open_frame(frame)), name=maker.label)


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
        values = read_answers(answer, frame, rows=len(open_frame(frame)), name=self.label)
        answers, _ = distinct_answers(values, name=self.label)
        granted = [_same(level, self.favourable) for level in answers.levels]
        refused = [_same(level, self.unfavourable) for level in answers.levels]
        if sum(granted) + sum(refused) < len(answers.levels):
            raise DecisionError(
                f"The decision maker ({self.label}) returned {len(granted)} distinct answers of "
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


def as_scoring_maker(value: object) -> DecisionMaker:
    """Make a decision maker that answers with scores: a formula gives them, others say so."""
    if isinstance(value, str):
        value = Formula.parse(value)
    if isinstance(value, Formula):
        return FormulaScores(value)
    maker = as_decision_maker(value)
    return maker.scoring() if isinstance(maker, DescribedMaker) else maker


def as_decision_maker(value: object) -> DecisionMaker:
    """Make a decision maker of a rule, a formula, a function or a model, or take one as it is."""
    if isinstance(value, str):
        return Rule.parse(value)
    if isinstance(value, Formula):
        return Rule(value)
    if isinstance(value, type):
        raise DecisionError(
            f"{value.__name__} is a class, not a decision maker. Give an object made from it."
        )
    if isinstance(value, DecisionMaker):
        return value
    if callable(getattr(value, "predict", None)):
        return ModelMaker(value)
    if callable(value):
        return FunctionMaker(value)
    raise DecisionError(
        f"{type(value).__name__} is not a decision maker. Allowed are a rule such as "
        "'salary > 30000', a function that takes a table and gives one answer per row, a fitted "
        "model with a predict method, or an object with a decide method."
    )


def with_threshold(
    decision: object,
    threshold: float | Sequence[float],
    *,
    favourable: Favourable = "above",
    score_of: Any = None,
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
    score_of
        For a model: the class that the scores are for.

    Examples
    --------
    >>> maker = with_threshold("0.6 * UGPA + 0.4 * LSAT", 20.8)
    >>> maker.decide({"UGPA": [3.0, 3.5], "LSAT": [40, 48]}).tolist()
    [False, True]
    >>> maker = with_threshold("income - debt", [40, 20])
    >>> maker.decide({"income": [50, 45, 30], "debt": [5, 25, 20]}).tolist()
    [0, 1, 2]
    """
    maker = as_scoring_maker(decision)
    if isinstance(maker, ModelMaker):
        maker = ModelScores(maker, score_of)
    elif score_of is not None:
        raise DecisionError("score_of names a class, and this is not a fitted model. Leave it out.")
    if isinstance(threshold, list | tuple):
        return Graded(maker, tuple(threshold), favourable)
    return Thresholded(maker, threshold, favourable)  # type: ignore[arg-type]  # it checks
