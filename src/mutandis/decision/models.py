"""Fitted models in memory: whatever has scikit-learn's `predict`, and scores for a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mutandis.decision.maker import DescribedMaker
from mutandis.decision.selection import opened_columns
from mutandis.errors import DecisionError

if TYPE_CHECKING:
    from mutandis.decision.model_file import ModelFile

__all__ = ["ModelMaker", "ModelScores", "ScoreSource", "model_from_file"]

ScoreSource = Literal["predict_proba", "decision_function", "predict"]


@dataclass(frozen=True, slots=True)
class ModelMaker(DescribedMaker):
    """A fitted model with a `predict` method, as scikit-learn and its kin have.

    It gets the columns that it was fitted on, in that order, if it remembers them
    (`feature_names_in_`); otherwise those that are named, as a matrix; otherwise the whole table.

    Parameters
    ----------
    model
        The fitted model.
    columns
        What it was fitted on, for a model that does not remember.
    file, kind
        The file that it was loaded from, and what kind of file that was.

    Examples
    --------
    >>> import pandas as pd
    >>> class Cut:
    ...     feature_names_in_ = ["salary"]
    ...
    ...     def predict(self, table):
    ...         return (table > 15).to_numpy().ravel()
    >>> maker = ModelMaker(Cut())
    >>> maker.names, maker.decide(pd.DataFrame({"id": [1, 2], "salary": [10, 20]})).tolist()
    (('salary',), [False, True])
    """

    model: Any
    columns: tuple[str, ...] = ()
    file: ModelFile | None = None
    kind: str = "model"

    def __post_init__(self) -> None:
        own = _remembered(self.model)
        if own and self.columns and set(own) != set(self.columns):
            raise DecisionError(
                f"{self.label} was fitted on the columns {_listed(own)}, but columns= names "
                f"{_listed(self.columns)}. Leave columns out, or name the same ones."
            )
        count = getattr(self.model, "n_features_in_", None)
        if self.columns and isinstance(count, int | np.integer) and count != len(self.columns):
            raise DecisionError(
                f"{self.label} was fitted on {count} columns, but {len(self.columns)} are named. "
                "Name the columns that it was fitted on, in that order."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the model was fitted on, as far as it remembers or was told."""
        return _remembered(self.model) or self.columns

    @property
    def label(self) -> str:
        """What error messages call it."""
        if self.file is None:
            return type(self).__name__
        return f"{type(self.model).__name__} in {self.file.name!r}"

    def decide(self, frame: Any, /) -> Any:
        """Predict from the model's own columns."""
        return self.model.predict(self.shown(frame))

    def shown(self, frame: Any) -> Any:
        """Give the table as the model wants to see it."""
        if not self.names:
            return frame
        chosen = opened_columns(frame, self.names)
        # a model that was fitted on a bare matrix complains of column names
        return chosen.to_native() if _remembered(self.model) else chosen.to_numpy()

    def describe(self) -> dict[str, Any]:
        """Name the model; its repr may hold anything."""
        return {
            "kind": self.kind,
            "type": type(self.model).__name__,
            **({} if self.file is None else self.file.describe()),
            "columns": list(self.names) or None,
        }


def model_from_file(
    model: Any, *, columns: tuple[str, ...], file: ModelFile, kind: str
) -> ModelMaker:
    """Take a model that was loaded from a file; it must be clear which columns it is shown.

    A model that does not remember its columns would otherwise get the whole table, with ids and
    outcomes in it.
    """
    maker = ModelMaker(model, columns, file, kind)
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise DecisionError(
            f"{file.name!r} holds {type(model).__name__}, which has no predict method. Save the "
            "fitted model itself."
        )
    if not maker.names:
        raise DecisionError(
            f"{maker.label} does not remember the columns that it was fitted on. Name them in "
            "that order: columns: [salary, balance]."
        )
    return maker


@dataclass(frozen=True, slots=True)
class ModelScores(DescribedMaker):
    """The scores of a fitted model, for a threshold: give it to `Thresholded`.

    Parameters
    ----------
    maker
        The model.
    score_of
        The class that the scores speak for: one of the model's `classes_`. Needed where a model
        has classes; what they mean is nothing to guess at.
    score_from
        The method to ask. Default: `predict_proba`, else `decision_function`, else `predict` of a
        model without classes.

    Notes
    -----
    The `decision_function` of two classes speaks for the second; for the first one its sign is
    turned.
    """

    maker: ModelMaker
    score_of: Any = None
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
            self._place()
        elif self.score_of is not None:
            raise DecisionError(
                f"{self.label} gives one number a row, which speaks for no class. Leave "
                "score_of out."
            )
        elif self._classes:
            raise DecisionError(
                f"{self.label} predicts classes, not scores: a threshold needs predict_proba or "
                "decision_function. Leave the threshold out to take its predictions as decisions."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the model was fitted on."""
        return self.maker.names

    @property
    def label(self) -> str:
        """What error messages call it: the model."""
        return self.maker.label

    @property
    def source(self) -> str:
        """The method that is asked."""
        if self.score_from is not None:
            return self.score_from
        offered = ("predict_proba", "decision_function")
        # a support vector machine has the attribute only if it was told to estimate probabilities
        return next((n for n in offered if callable(getattr(self.maker.model, n, None))), "predict")

    @property
    def _classes(self) -> list[Any]:
        classes = getattr(self.maker.model, "classes_", None)
        return [] if classes is None else np.asarray(classes).tolist()

    def _place(self) -> int:
        """Find the class among those of the model."""
        classes = self._classes
        if not classes:
            raise DecisionError(f"{self.label} does not tell its classes. Is it fitted?")
        matches = [place for place, each in enumerate(classes) if each == self.score_of]
        if self.score_of is None or not matches:
            found = "no class is named" if self.score_of is None else f"{self.score_of!r} is none"
            raise DecisionError(
                f"{self.label} knows the classes {', '.join(map(repr, classes[:10]))}, and {found} "
                "that its scores should speak for. Name one of them (score_of), and which side of "
                "the threshold is favourable."
            )
        return matches[0]

    def decide(self, frame: Any, /) -> Any:
        """Give the score of each row."""
        scores = getattr(self.maker.model, self.source)(self.maker.shown(frame))
        if self.source == "predict":
            return scores
        scores, place = np.asarray(scores), self._place()
        if self.source == "decision_function" and scores.ndim == 1:
            return scores if place == 1 else -scores
        return scores[:, place]

    def describe(self) -> dict[str, Any]:
        """Describe the model, and which of its scores are taken."""
        told = {"score_from": self.source, "score_of": self.score_of}
        return {**self.maker.describe(), **told}


def _remembered(model: Any) -> tuple[str, ...]:
    names = getattr(model, "feature_names_in_", None)
    return () if names is None else tuple(str(name) for name in names)


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:12]))
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"
