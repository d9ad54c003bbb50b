"""A distance and a kind of decision maker, added to mutandis by another package."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mutandis.decision.maker import BooleanMaker, DecisionContext, Made
from mutandis.frames import open_frame
from mutandis.geometry.distances import Distance
from mutandis.geometry.embedding import Embedding
from mutandis.geometry.metric import Points


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenths:
    """Rounds every number down to a multiple of a tenth of its range."""

    steps: tuple[int, ...]
    columns: tuple[str, ...]  # the attribute of each coordinate

    def place(self, points: Points) -> Points:
        steps = np.array(self.steps, dtype=np.int64)
        return Points(coordinates=points.coordinates // steps * steps, codes=points.codes)


def _fit(embedding: Embedding, *_: object) -> Embedding:
    columns = tuple(axis.name for axis in embedding.axes)
    tenths = Tenths(steps=tuple(axis.length // 10 for axis in embedding.axes), columns=columns)
    metric = replace(embedding.metric, move=tenths)
    return replace(embedding, metric=metric, own_rules=dict.fromkeys(columns, "in tenths"))


COARSE = Distance(description="differences in tenths of the range, averaged", fit=_fit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard(BooleanMaker):
    """Approves if the points of the columns add up to more than a cut."""

    points: Mapping[str, float]
    cut: float

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.points)

    def decide(self, frame: Any, /) -> Any:
        columns = open_frame(frame)
        return sum(columns[name].to_numpy() * each for name, each in self.points.items()) > self.cut

    def describe(self) -> dict[str, Any]:
        return {"kind": "scorecard", "points": dict(self.points), "cut": self.cut}


def make_scorecard(settings: dict[str, Any], _: DecisionContext) -> Made:
    return Made(maker=Scorecard(**settings["scorecard"]))
