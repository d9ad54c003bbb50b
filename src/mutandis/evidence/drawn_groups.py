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

from mutandis.evidence.groups import Group, Members
from mutandis.evidence.matches import ROOM
from mutandis.search.share import Share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.evidence.groups import Centers, NearestGroups
    from mutandis.search.embedding import LazyEmbedding

__all__ = ["DrawnCenters", "DrawnGroups", "mean_share"]


def mean_share(shares: Sequence[Share]) -> Share:
    """Average the shares of several groups of the same people, each with the same part.

    A mean counts as the smallest of its groups, and is empty where one of them is.
    """
    size = np.min([each.size for each in shares], axis=0)
    filled = np.flatnonzero(size > 0)
    up, down = np.zeros_like(filled), np.ones_like(filled)
    most = len(shares) * max(
        float(np.max(np.abs(each.values()[filled]), initial=1)) for each in shares
    )
    for each in shares:
        negatives, whole = each.negatives[filled], (each.size * each.split)[filled]
        divisor = np.gcd(negatives, whole)
        negatives, whole = negatives // divisor, whole // divisor
        rest = whole // np.gcd(down, whole)
        # the sum of the shares is at most their number; of scores, that many of the largest
        largest = np.max(down.astype(np.float64) * rest * size[filled], initial=0) * most
        if largest >= ROOM:
            up, down = up.astype(object), down.astype(object)
        up = up * rest + negatives * (down * rest // whole)
        down *= rest
    up, down = up * size[filled], down * len(shares)
    divisor = np.gcd(up, down)
    parts = [np.zeros(len(size), dtype=up.dtype), np.ones(len(size), dtype=up.dtype)]
    parts[0][filled], parts[1][filled] = up // divisor, down // divisor
    tops = np.maximum(parts[1] * np.maximum(size, 1), np.abs(parts[0]))
    if np.max(tops, initial=0) < ROOM:
        parts = [each.astype(np.int64) for each in parts]
    return Share(negatives=parts[0], size=size, split=parts[1])


def _average(groups: Sequence[Group]) -> Group:
    """Average groups; rows and radius are those of the largest and of the widest."""
    return Group(
        share=mean_share([each.share for each in groups]),
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
