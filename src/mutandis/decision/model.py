"""Functions and fitted models, and whatever else people have as b()."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mutandis.data.formula import Formula
from mutandis.decision.maker import DecisionMaker, DescribedMaker, MakerWrapper, select_columns
from mutandis.decision.rule import FormulaScores, Rule
from mutandis.errors import DecisionError, listed
from mutandis.registry import find

if TYPE_CHECKING:
    from collections.abc import Callable

ScoreSource = Literal["predict_proba", "decision_function", "predict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """Which file a model came from, by name and content; not where on the machine it was."""

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
        """Give the columns that it was fitted on or else that are named; or the whole table."""
        if not self.names:
            return frame
        chosen = select_columns(frame, self.names)
        # a model that was fitted on a bare matrix complains of column names
        return chosen.to_native() if self._own_columns else chosen.to_numpy()

    def explain_change(
        self, before: Any, after: Any, called: Callable[[str], str] = str
    ) -> tuple[str, ...]:
        found: tuple[str, ...] = find("room", "models").explain_change(self, before, after, called)
        return found

    def describe(self) -> dict[str, Any]:
        """Name the model; its repr may contain anything."""
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
    score_from: ScoreSource | None = None

    def __post_init__(self) -> None:
        if self.score_from is not None and self.score_from not in get_args(ScoreSource):
            raise DecisionError(
                f"score_from={self.score_from!r} is unknown. Allowed: "
                f"{', '.join(get_args(ScoreSource))}."
            )
        if not callable(getattr(self.maker.model, self.source, None)):
            raise DecisionError(f"{self.label} has no method {self.source!r} to take scores from.")
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
        if self.score_from is not None:
            return self.score_from
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
