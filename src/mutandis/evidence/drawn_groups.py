"""Groups around a counterfactual that the facts leave open: the average over draws of it.

Each draw of a counterfactual has groups of its own, found as those of any other counterfactual, and
each has the same part in the average. So p_test is the mean of the shares over the draws, exactly.
Draws add no people: the average counts as one group, the smallest of them, which has k places
unless a caliper cuts it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mutandis.engine.tally import average
from mutandis.evidence.groups import Group, Members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.evidence.groups import Centers, NearestGroups
    from mutandis.search.embedding import LazyEmbedding

__all__ = ["DrawnCenters", "DrawnGroups"]


def _average(groups: Sequence[Group]) -> Group:
    """Average groups; rows and radius are those of the largest and of the widest."""
    return Group(
        share=average([each.share for each in groups]),
        rows=np.max([each.rows for each in groups], axis=0),
        radius=np.fmax.reduce([each.radius for each in groups]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnCenters:
    """The search centers of each draw, with their outcomes."""

    draws: tuple[Centers, ...]

    def at(self, index: int) -> Group:
        """Give the share of draws in which each center is refused, as groups of one."""
        return _average([each.at(index) for each in self.draws])

    def members(self, complainant: int, index: int) -> Members:  # noqa: ARG002
        """List the center once for each outcome, with the part of the draws that have it."""
        return _list_centers(self.draws, complainant, np.ones(len(self.draws)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnGroups:
    """The k nearest people around each draw, averaged."""

    draws: tuple[NearestGroups, ...]  # with the search centers of the draw, where they are counted
    # the most likely counterfactuals: members are listed by distance to them
    origins: LazyEmbedding
    _kept: dict[int, Group] = field(default_factory=dict, init=False, repr=False, compare=False)

    def at(self, index: int) -> Group:
        """Give the groups for the index-th k."""
        if index not in self._kept:
            self._kept[index] = _average([each.at(index) for each in self.draws])
        return self._kept[index]

    def members(self, complainant: int, index: int) -> Members:
        """List everyone in the groups of one complainant, with their places on average.

        Distances are those from her most likely counterfactual.
        """
        nearest = self.draws[0]
        centers = [each.centers for each in self.draws if each.centers is not None]
        rows, _ = nearest.others(complainant)
        places = [
            each.place_at(each.others(complainant)[1], complainant, index) for each in self.draws
        ]
        # shares are averaged: a place in a larger group is a smaller part of it
        sizes = np.array([round(float(each.sum())) for each in places])
        weight = (sizes.min() + bool(centers)) / np.maximum(sizes + bool(centers), 1)
        weight *= bool(sizes.min())
        place = sum(each * part for each, part in zip(places, weight, strict=True)) / len(places)
        near = place > 0
        center = self.origins.place(complainant)
        apart = nearest.metric.from_center(center.points, nearest.points.take(rows[near]))
        distance = nearest.metric.as_float(apart) + center.overflow_distance[0]
        people = nearest.identity.members(rows[near], distance, place[near])
        if not centers:
            return people
        return Members.join([_list_centers(centers, complainant, weight), people])


def _list_centers(
    centers: Sequence[Centers], complainant: int, weight: NDArray[np.float64]
) -> Members:
    decided = np.array([each.is_negative[complainant] for each in centers])
    # the refused first; of a score, the worst
    values = np.unique(decided)[::-1]
    place = np.array([weight[decided == each].sum() for each in values]) / len(centers)
    outcomes = np.flatnonzero(place > 0)
    return Members(
        ids=centers[0].ids[np.full(len(outcomes), complainant)],
        distance=np.zeros(len(outcomes)),
        place=place[outcomes],
        is_negative=values[outcomes],
        is_center=np.ones(len(outcomes), dtype=np.bool_),
    )
