"""What the definitions mean, as one exchangeable object.

An audit asks its semantics four things: which equations to use, whom each group holds, how two
groups are compared, and how distances were told equal. `PAPER_DEFINITIONS` answers by the paper's
definitions, read correctly. The publication's own answers are in `as_published`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mutandis.evidence.comparison import compare
from mutandis.evidence.group_builder import GroupBuilder
from mutandis.evidence.groups import CenteredGroups, Centers, Groups, NearestGroups, RowIdentity
from mutandis.evidence.methods import Center
from mutandis.search.embedding import Embedding
from mutandis.search.engine import discard_progress

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from mutandis.causal.worldview import Worldview
    from mutandis.data.attribute import Attribute
    from mutandis.data.population import Population
    from mutandis.evidence.findings import Comparison, Group
    from mutandis.evidence.group_size import GroupSize
    from mutandis.evidence.intervals import IntervalMethod
    from mutandis.evidence.methods import Method
    from mutandis.evidence.spaces import Stratum
    from mutandis.search.embedding import Scaling
    from mutandis.search.engine import Progress
    from mutandis.search.ties import Ties

__all__ = [
    "PAPER_DEFINITIONS",
    "GroupPair",
    "Grouping",
    "PaperDefinitions",
    "Semantics",
    "Situation",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that groups are built from.

    Parameters
    ----------
    population, counterfactual
        D, and D^CF where there is one.
    attributes
        What people are compared on.
    strata
        Complainants and their search spaces.
    is_negative, is_negative_cf
        Who was refused in D, and who would have been in D^CF (None: nobody decided).
    ks, ties, scaling, threads
        How to search.
    group_size
        How many rows a test group takes.
    max_distance
        How far away people may be who are compared (None: any distance).
    """

    population: Population
    counterfactual: Population | None
    attributes: tuple[Attribute, ...]
    strata: tuple[Stratum, ...]
    is_negative: NDArray[np.bool_]
    is_negative_cf: NDArray[np.bool_] | None
    ks: tuple[int, ...]
    ties: Ties
    scaling: Scaling
    threads: int
    group_size: GroupSize = "k"
    max_distance: float | None = None

    @property
    def complainants(self) -> NDArray[np.intp]:
        """The complainants' rows, in the order of the table."""
        if len(self.strata) == 1:
            return self.strata[0].complainants
        return np.sort(np.concatenate([stratum.complainants for stratum in self.strata]))

    @property
    def roll(self) -> RowIdentity:
        """Who the rows of D are."""
        return RowIdentity(ids=self.population.ids, is_negative=self.is_negative)

    def centers(self, *, counterfactual: bool) -> Centers:
        """Give the complainants' own outcomes, as they are or as they would have been."""
        mask = self.is_negative_cf if counterfactual else self.is_negative
        if mask is None:
            raise TypeError("the plan admits no method that needs an outcome nobody decided")
        rows = self.complainants
        return Centers(ids=self.population.ids[rows], is_negative=mask[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPair:
    """The control and the test group of one method."""

    control: Groups
    test: Groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The groups of every method, with what provenance wants to know.

    Parameters
    ----------
    pairs
        By method name.
    distance_rules
        How equal distances were told, by attribute.
    backends
        Which search answered, by what was searched.
    control
        The control groups, which do not depend on the counterfactuals: a grouping of the same
        people under other counterfactuals can take them over. None if nobody was searched for.
    embedding, nearest
        Where people stand, and the groups as they are before any caliper, by what was searched:
        "control", and "factual" or "counterfactual" for the test groups around such centers.
        Missing where the semantics has a scale of its own.
    """

    pairs: Mapping[str, GroupPair]
    distance_rules: Mapping[str, str]
    backends: Mapping[str, str]
    control: Groups | None = None
    embedding: Embedding | None = None
    nearest: Mapping[str, NearestGroups] = field(default_factory=dict)


class Semantics(Protocol):
    """How the definitions are read."""

    @property
    def name(self) -> str:
        """For the provenance."""
        ...

    def worldview(self, worldview: Worldview) -> Worldview:
        """Give the worldview whose equations are to be used."""
        ...

    def group(
        self,
        situation: Situation,
        methods: Collection[Method],
        *,
        control: Groups | None = None,
        progress: Progress = discard_progress,
    ) -> Grouping:
        """Build the groups of all methods and all k in one pass.

        Parameters
        ----------
        situation, methods
            What the groups are built from, and who uses them.
        control
            The control groups, where they are known already.
        progress
            Is told for how many more complainants a search is done.
        """
        ...

    def compare(
        self,
        control: Group,
        test: Group,
        *,
        tau: float,
        alpha: float,
        interval: IntervalMethod,
    ) -> Comparison:
        """Compare the groups of every complainant."""
        ...


@dataclass(frozen=True, slots=True)
class PaperDefinitions:
    """The paper's definitions: one scale for both worlds, fair ties, exact evidence."""

    name: str = "defined"

    def worldview(self, worldview: Worldview) -> Worldview:
        """Take the equations as they were declared."""
        return worldview

    def group(
        self,
        situation: Situation,
        methods: Collection[Method],
        *,
        control: Groups | None = None,
        progress: Progress = discard_progress,
    ) -> Grouping:
        """Search each space once per kind of center; every method and k is served by that."""
        embedding = Embedding.fit(
            situation.population, situation.attributes, scaling=situation.scaling
        )
        finder = GroupBuilder(situation, embedding, progress)
        searched: dict[str, Groups] = {}
        wanted = {m.center for m in methods if m.count_neighbours}
        if wanted:
            searched["control"] = finder.control() if control is None else control
        for center in (center for center in Center if center in wanted):
            searched[center.value] = finder.test(center)
        return Grouping(
            pairs=_pairs(situation, methods, searched),
            distance_rules=embedding.rules,
            backends=finder.backends,
            control=searched.get("control"),
            embedding=embedding,
            nearest=finder.nearest,
        )

    def compare(
        self,
        control: Group,
        test: Group,
        *,
        tau: float,
        alpha: float,
        interval: IntervalMethod,
    ) -> Comparison:
        """Decide evidence on integers."""
        return compare(control, test, tau=tau, alpha=alpha, interval=interval)


def _pairs(
    situation: Situation, methods: Collection[Method], searched: Mapping[str, Groups]
) -> dict[str, GroupPair]:
    """Put the two groups of each method together from what was searched and from the centers."""
    pairs, centers = {}, None
    for method in methods:
        if not method.count_centers:
            pair = GroupPair(control=searched["control"], test=searched[method.center.value])
        else:
            centers = centers or _both_centers(situation)
            pair = _centered(method, searched, *centers)
        pairs[method.name] = pair
    return pairs


def _both_centers(situation: Situation) -> tuple[Centers, Centers]:
    here = situation.centers(counterfactual=False)
    there = situation.centers(counterfactual=True)
    return here, replace(there, ids=here.ids)


def _centered(
    method: Method, searched: Mapping[str, Groups], here: Centers, there: Centers
) -> GroupPair:
    if not method.count_neighbours:
        return GroupPair(control=here, test=there)
    return GroupPair(
        control=CenteredGroups(neighbours=searched["control"], centers=here),
        test=CenteredGroups(neighbours=searched[method.center.value], centers=there),
    )


PAPER_DEFINITIONS = PaperDefinitions()
"""The default semantics."""
