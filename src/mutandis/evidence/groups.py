"""Control and test groups: the k nearest in each space, for every complainant and every k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mutandis.evidence.case import Members
from mutandis.evidence.findings import Group
from mutandis.evidence.group_size import counted_as
from mutandis.search.share import Share
from mutandis.search.ties import share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.distance import Metric
    from mutandis.search.embedding import LazyEmbedding
    from mutandis.search.ties import Neighbourhoods, Ties

__all__ = ["CenteredGroups", "Centers", "Groups", "NearestGroups", "RowIdentity"]


class Groups(Protocol):
    """One group for each complainant, for every k."""

    def at(self, index: int) -> Group:
        """Give the groups for the index-th k."""
        ...

    def members(self, complainant: int, index: int) -> Members:
        """List the people in one complainant's group."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RowIdentity:
    """Who the rows of D are, for listing the members of a group."""

    ids: NDArray[Any]
    is_negative: NDArray[np.bool_]

    def members(
        self, rows: NDArray[np.intp], distance: NDArray[np.float64], place: NDArray[np.float64]
    ) -> Members:
        """List rows, nearest first."""
        order = np.lexsort((rows, distance))
        rows = rows[order]
        return Members(
            ids=self.ids[rows],
            distance=distance[order],
            place=place[order],
            is_negative=self.is_negative[rows],
            is_center=np.zeros(len(rows), dtype=np.bool_),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestGroups:
    """The k nearest people, ties shared by policy.

    Parameters
    ----------
    found
        Counts inside and on the radius, per complainant and k.
    ks, ties
        Group sizes and the policy.
    centers
        The search center of each complainant, placed when it is asked for.
    own_rows
        Her own row, where she stands in the space herself; -1 elsewhere.
    overflow_distance
        What each center's distances lack because it lies out of reach.
    points, metric
        All of D, to list members when somebody asks; nobody's place is kept until then.
    spaces, space_of
        The rows of each search space, and which space each complainant is searched in.
    roll
        Who the rows are.
    places
        How many rows each group takes (complainants × ks), where that is not k.
    """

    found: Neighbourhoods
    ks: tuple[int, ...]
    ties: Ties
    centers: LazyEmbedding
    own_rows: NDArray[np.intp]
    overflow_distance: NDArray[np.float64]
    points: LazyEmbedding
    metric: Metric
    spaces: tuple[NDArray[np.intp], ...]
    space_of: NDArray[np.intp]
    roll: RowIdentity
    places: NDArray[np.int64] | None = None

    def at(self, index: int) -> Group:
        """Give the groups for the index-th k."""
        return Group(
            share=self._share(index),
            rows=self.found.inside[:, index] + self.found.rim[:, index],
            radius=self.metric.as_float(self.found.radius[:, index]) + self.overflow_distance,
        )

    def members(self, complainant: int, index: int) -> Members:
        """List the people in one complainant's group, measuring her space once more."""
        space, distance = self.others(complainant)
        radius = self.found.radius[complainant, index]
        within = distance <= radius
        places = self.ks[index] if self.places is None else self.places[complainant, index]
        left = places - self.found.inside[complainant, index]
        on_rim = 1.0 if self.ties == "all" else left / self.found.rim[complainant, index]
        return self.roll.members(
            space[within],
            self.metric.as_float(distance[within]) + self.overflow_distance[complainant],
            np.where(distance[within] < radius, 1.0, on_rim),
        )

    def others(self, complainant: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Give the other rows of one complainant's space, and how far each is from her center."""
        space = self.spaces[self.space_of[complainant]]
        center = self.centers.take(np.array([complainant]))
        distance = self.metric.from_center(center, self.points.take(space))
        others = space != self.own_rows[complainant]
        return space[others], distance[others]

    def _share(self, index: int) -> Share:
        k = self.ks[index]
        if self.places is None:
            return share_of(self.found, index, k=k, ties=self.ties)
        places = self.places[:, index]
        return counted_as(share_of(self.found, index, k=places, ties=self.ties), k, places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Centers:
    """Groups that hold the search centers alone: what counterfactual fairness compares."""

    ids: NDArray[Any]
    is_negative: NDArray[np.bool_]

    def at(self, index: int) -> Group:  # noqa: ARG002 - the same for every k
        """Give the centers as groups of one."""
        one = np.ones(len(self.ids), dtype=np.int64)
        share = Share(negatives=self.is_negative.astype(np.int64), size=one, split=one)
        return Group(share=share, rows=one, radius=np.full(len(one), np.nan))

    def members(self, complainant: int, index: int) -> Members:  # noqa: ARG002
        """List the one center."""
        one = np.array([complainant])
        return Members(
            ids=self.ids[one],
            distance=np.zeros(1),
            place=np.ones(1),
            is_negative=self.is_negative[one],
            is_center=np.ones(1, dtype=np.bool_),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CenteredGroups:
    """Groups to which their search centers are added: denominator k + 1."""

    neighbours: Groups
    centers: Centers

    def at(self, index: int) -> Group:
        """Give the groups for the index-th k."""
        group = self.neighbours.at(index)
        return Group(
            share=group.share.with_center(self.centers.is_negative),
            rows=group.rows + 1,
            radius=group.radius,
        )

    def members(self, complainant: int, index: int) -> Members:
        """List the center, then the people around it."""
        return self.centers.members(complainant, index) + self.neighbours.members(
            complainant, index
        )
