"""The publication's own semantics: what was run for EAAMO '23, rounding and all.

Everything in which the published numbers depart from the paper's definitions is here and nowhere
else (docs/adr/0003-errata.md lists and explains it):

* equations: some values and residuals were rounded on the way to the counterfactual;
* scale: z-scores fitted on D and on D^CF separately, which takes part of the counterfactual shift
  away again;
* groups: ties broken by row number, the complainant removed from her k + 1 nearest if she is
  among them, and left in a group of k + 1 others if she is not;
* evidence: Δp and the lower bound of its interval rounded to three decimals before they are
  compared with τ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.data.by_row import ByRow
from mutandis.data.columns import Categories, Numbers
from mutandis.engine.tally import Sums
from mutandis.errors import PlanError
from mutandis.evidence.comparison import Comparison
from mutandis.evidence.groups import Group, Members, Pair
from mutandis.evidence.intervals import INTERVALS, no_interval
from mutandis.evidence.measures import RISK_DIFFERENCE
from mutandis.evidence.methods import Center
from mutandis.evidence.semantics import Grouping, Situation
from mutandis.scm.additive import Linear
from mutandis.scm.family import Equation, Fitted, Predicted, numbers_of
from mutandis.scm.worldview import Worldview
from mutandis.search.distance import Points
from mutandis.search.engine import Progress, discard_progress, group_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.data.columns import Column
    from mutandis.data.population import Population
    from mutandis.evidence.comparison import Depth
    from mutandis.evidence.group_builder import SharedSpaces
    from mutandis.evidence.groups import (
        Centers,
        Counted,
        Groups,
        NearestGroups,
        RowIdentity,
    )
    from mutandis.evidence.intervals import IntervalMethod, IntervalName
    from mutandis.evidence.matched_groups import HasEvidence
    from mutandis.evidence.measures import Measure
    from mutandis.evidence.methods import Method
    from mutandis.evidence.settings import Evidence, Settings
    from mutandis.scm.additive import FittedLinear


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLinear(Equation):
    """A linear equation with the rounding that the publication applied to its attribute.

    The attribute itself was rounded to `factual_decimals`, for the equations only.
    """

    linear: Linear
    factual_decimals: int | None = None
    residual_decimals: int | None = None

    @property
    def parents(self) -> tuple[str, ...]:
        return self.linear.parents

    def fit(self, child: Column, parents: Mapping[str, Column]) -> FittedPublishedLinear:
        """Estimate the coefficients by least squares, from the rounded attribute."""
        rounded = Numbers(_rounded(numbers_of(child), self.factual_decimals))
        fitted = self.linear.fit(rounded, parents)
        return FittedPublishedLinear(equation=self, fitted=fitted)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPublishedLinear(Fitted[Any]):
    """The fitted form: the noise is the rounded residual, and nothing else is kept."""

    equation: PublishedLinear
    fitted: FittedLinear

    def abduct(
        self,
        child: Column,
        parents: Mapping[str, Column],
        *,
        rng: np.random.Generator | None = None,  # noqa: ARG002 - the facts determine the noise
    ) -> NDArray[np.float64]:
        """Recover U = x - f(pa), rounded as published."""
        values = _rounded(numbers_of(child), self.equation.factual_decimals)
        residual = values - self.fitted.explained(parents, rows=len(values))
        return _rounded(residual, self.equation.residual_decimals)

    def predict(self, parents: Mapping[str, Column], noise: NDArray[np.float64]) -> Predicted:
        """Give f(pa') + U, rounded and clipped as declared."""
        values = self.fitted.explained(parents, rows=len(noise)) + noise
        return self.fitted.finished(values)


# The publication treated each attribute in its own way.
_TREATMENT = {
    "AnnualSalary": {"residual_decimals": 2},
    "AccountBalance": {"residual_decimals": 2},
    "LSAT": {"factual_decimals": 0},
}


def _as_published(child: str, equation: Equation) -> Equation:
    if isinstance(equation, Linear) and equation.link == "identity":
        return PublishedLinear(linear=equation, **_TREATMENT.get(child, {}))
    return equation


def _rounded(values: NDArray[np.float64], decimals: int | None) -> NDArray[np.float64]:
    return values if decimals is None else np.round(values, decimals)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores(ByRow):
    """Rows as z-scores, with nominal codes beside them."""

    scores: NDArray[np.float64]
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, population: Population, names: Collection[str]) -> _Scores:
        """Standardise the numbers of one world by that world's own mean and deviation."""
        columns = [population.columns[name] for name in names]
        scores = [_standardised(c.values) for c in columns if isinstance(c, Numbers)]
        codes = [c.codes for c in columns if isinstance(c, Categories)]
        size = len(population)
        return cls(
            scores=np.column_stack(scores) if scores else np.empty((size, 0)),
            codes=np.column_stack(codes) if codes else np.empty((size, 0), dtype=np.int32),
        )

    def distinct(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Group rows that are equal in every bit, as `group_rows` does."""
        # adding 0.0 makes the two zeros one; then equal floats have equal bits
        bits = np.ascontiguousarray(self.scores + 0.0).view(np.int64)
        return group_rows(Points(coordinates=bits, codes=self.codes))

    def distances_from(self, center: _Scores) -> NDArray[np.float64]:
        """Sum mismatches first, then differences in column order: float64 sums depend on it."""
        total = np.zeros(len(self.scores))
        for codes, code in zip(self.codes.T, center.codes.T, strict=True):
            total += codes != code
        for scores, score in zip(self.scores.T, center.scores.T, strict=True):
            total += np.abs(scores - score)
        return total


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # as one contiguous column: another order of summation changes the last bits, and those decide
    column = np.ascontiguousarray(values)
    # a constant column makes no difference: all its scores are 0
    return np.asarray((column - column.mean()) / (column.std() or 1.0), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nearest(ByRow):
    """Each complainant's nearest rows, by distance and then by larger row number."""

    rows: NDArray[np.intp]
    distance: NDArray[np.float64]


def _nearest(centers: _Scores, everyone: _Scores, space: NDArray[np.intp], count: int) -> _Nearest:
    first, group = centers.distinct()
    points_first, standing = everyone.take(space).distinct()
    points = everyone.take(space[points_first])
    sizes = np.bincount(standing)
    on_point = np.split(space[np.argsort(standing, kind="stable")], np.cumsum(sizes)[:-1])
    rows = np.empty((len(first), count), dtype=np.intp)
    distance = np.empty((len(first), count))
    for query in range(len(first)):
        near = points.distances_from(centers.take(first[query : query + 1]))
        order = np.argsort(near, kind="stable")
        enough = near[order[np.argmax(np.cumsum(sizes[order]) >= count)]]
        chosen = order[: np.searchsorted(near[order], enough, side="right")]
        candidates = np.concatenate([on_point[point] for point in chosen])
        apart = np.repeat(near[chosen], sizes[chosen])
        last = np.lexsort((-candidates, apart))[:count]
        rows[query], distance[query] = candidates[last], apart[last]
    return _Nearest(rows=rows, distance=distance).take(group)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedGroups:
    """The published groups, row by row: the k + `extra` nearest rows.

    `keep_own` tells whether the complainants' own rows stay in the group where they are found.
    Counterfactual `centers` compete for a place, under their own row's number.
    """

    nearest: _Nearest
    ks: tuple[int, ...]
    extra: int
    identity: RowIdentity
    own_rows: NDArray[np.intp]
    keep_own: bool = False
    centers: Centers | None = None

    def at(self, index: int) -> Group:
        taken, joins = self._taken(self.ks[index])
        negatives = (self.identity.is_negative[self.nearest.rows] & taken).sum(axis=1)
        size = taken.sum(axis=1)
        if self.centers is not None:
            negatives = negatives + (joins & self.centers.is_negative)
            size = size + joins
        farthest = np.where(taken, self.nearest.distance, -np.inf).max(axis=1)
        size = size.astype(np.int64)
        share = Sums.of(marks=negatives.astype(np.int64), places=size, parts=np.ones_like(size))
        return Group(share=share, rows=size, radius=farthest)

    def members(self, complainant: int, index: int) -> Members:
        """List the people in one complainant's group; a center among them is marked."""
        taken, joins = self._taken(self.ks[index])
        mine = taken[complainant]
        rows = self.nearest.rows[complainant][mine]
        members = self.identity.members(
            rows, self.nearest.distance[complainant][mine], np.ones(len(rows))
        )
        own = self.identity.ids[self.own_rows[complainant]]
        members = replace(members, is_center=members.ids == own)
        if self.centers is None or not joins[complainant]:
            return members
        return Members.join([self.centers.members(complainant, index), members])

    def _taken(self, k: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Mark the rows that are taken, and the centers that join them."""
        rows, distance = self.nearest.rows, self.nearest.distance
        place = np.arange(rows.shape[1])
        taken = np.broadcast_to(place < k + self.extra, rows.shape).copy()
        if not self.keep_own:
            taken &= rows != self.own_rows[:, None]
        if self.centers is None:
            return taken, np.zeros(len(rows), dtype=np.bool_)
        # at distance 0 the center stands behind test rows with a larger number; k + 1 are taken
        ahead = ((distance == 0) & (rows > self.own_rows[:, None])).sum(axis=1)
        crowded = ahead > k
        taken |= crowded[:, None] & (place < k + 1)
        return taken, ~crowded


EXTENSION = "jair25"
"""The preset of the journal extension (JAIR 2025)."""


@dataclass(frozen=True, slots=True)
class AsPublished:
    """What was run for the publication."""

    name: str = "eaamo23"
    preset: str = "eaamo23"
    methods: tuple[str, ...] = ("st", "cst_without", "cst_with", "cf")
    compares_exactly: bool = False
    caution: str = (
        "The definitions were read as in the publication (eaamo23), with its rounding, its scale "
        "for each world and its way with ties. Other findings of this program are not comparable "
        "with these."
    )
    likeness: str = (
        "measured as the publication did: standardised in each world by itself, ties broken by "
        "the order of the table, and rounded before anything is compared. "
        "docs/adr/0003-errata.md tells what that does."
    )

    def settle(self, settings: Settings, attributes: Collection[Attribute]) -> Settings:
        """Take the publication's interval, and refuse settings that it did not have."""
        similarity, evidence, preset = settings.similarity, settings.evidence, self.preset
        if (similarity.ties, similarity.scaling) != ("fair", "range"):
            raise PlanError(
                f"preset={preset!r} has its own ties and scale: ties={similarity.ties!r} and "
                f"scaling={similarity.scaling!r} would have no effect. Leave them out, or leave "
                "the preset out."
            )
        if similarity.distance != "gower":
            raise PlanError(
                f"preset={preset!r} repeats a publication with a distance of its own: "
                f"distance={similarity.distance!r} would have no effect. Leave it out, or leave "
                "the preset out."
            )
        if similarity.max_distance is not None or similarity.min_group != 1:
            raise PlanError(
                f"preset={preset!r} repeats a publication that compared with the k nearest however "
                "far they were: it knows no max_distance and no min_group. Leave them out, or "
                "leave the preset out."
            )
        _check_evidence(evidence, preset)
        for attribute in attributes:
            if attribute.compare_missing:
                raise PlanError(
                    f"preset={preset!r} compares no missing values, but {attribute.name!r} has "
                    "compare_missing. Leave one of the two out."
                )
            if attribute.kind is AttributeKind.ORDINAL or attribute.weight != 1:
                raise PlanError(
                    f"preset={preset!r} knows no ordinal and no weighted attributes, but "
                    f"{attribute.name!r} is one. Declare it otherwise, or leave the preset out."
                )
        return replace(settings, evidence=replace(evidence, interval="wald"))

    def alpha_of_parts(self, alpha: float, grounds: int) -> float:
        """Divide the level by the grounds of multiple discrimination, as the extension did."""
        return alpha / grounds if self.preset == EXTENSION else alpha

    def worldview(self, worldview: Worldview) -> Worldview:
        """Round in each equation what was rounded there."""
        return Worldview(
            {child: _as_published(child, eq) for child, eq in worldview.equations.items()},
            latents=worldview.latents,
            resolving=worldview.resolving,
        )

    def group(
        self,
        situation: Situation,
        methods: Collection[Method],
        *,
        control: NearestGroups | None = None,  # noqa: ARG002 - searched anew
        counted: Mapping[str, Counted] | None = None,  # noqa: ARG002 - its groups are no counts
        matched: Mapping[str, Any] | None = None,  # noqa: ARG002 - the publication has none
        shared: SharedSpaces | None = None,  # noqa: ARG002 - it has scales of its own
        counts_only: bool = False,  # noqa: ARG002 - the publication has no matches
        has_evidence: HasEvidence | None = None,  # noqa: ARG002
        progress: Progress = discard_progress,
    ) -> Grouping:
        """Build the groups of all methods; `ties` and `scaling` of the plan have no say here."""
        names = [attribute.name for attribute in situation.attributes]
        factual = _Scores.of(situation.population, names)
        other = situation.counterfactual
        centers = {Center.FACTUAL: factual}
        if other is not None:
            centers[Center.COUNTERFACTUAL] = _Scores.of(other, names)
        wanted = {method.center for method in methods if method.count_neighbours}
        nearest = _search(situation, factual, factual, in_control=True)
        tests = {
            center: _search(situation, centers[center], factual, in_control=False)
            for center in Center
            if center in wanted
        }
        progress((1 + len(tests)) * len(situation.complainants))
        return Grouping(
            pairs={m.name: _pair(situation, m, nearest, tests) for m in methods},
            distance_rules=dict.fromkeys(names, "float64 z-scores, one scale per world"),
            backends={"control": "as published", "test": "as published"},
        )

    def interval(
        self,
        name: IntervalName,
        depth: Depth,
        measure: Measure = RISK_DIFFERENCE,  # noqa: ARG002 - the publication has one
    ) -> IntervalMethod:
        """Compute the bounds in any case: significance is decided by them."""
        return no_interval if depth == "evidence" else INTERVALS[name]

    def compare(
        self,
        control: Sums,
        test: Sums,
        *,
        tau: float,
        alpha: float,
        interval: IntervalMethod,
        measure: Measure = RISK_DIFFERENCE,  # noqa: ARG002 - the publication has one
    ) -> Comparison:
        """Decide evidence and significance after rounding to three decimals."""
        from scipy.special import ndtri

        bounds = interval(control, test, tau=tau, alpha=alpha)
        delta = control.mean() - test.mean()
        exact = -float(ndtri(alpha))
        margin = (bounds.high - bounds.low) / 2 * (round(exact, 3) / exact)
        bounds = replace(bounds, low=delta - margin, high=delta + margin)
        evidence = np.round(delta, 3) > tau
        return Comparison(
            delta_p=delta,
            evidence=evidence,
            significant=evidence & (np.round(bounds.low, 3) > tau),
            interval=bounds,
            insufficient=np.zeros_like(evidence),
        )


def _check_evidence(evidence: Evidence, preset: str) -> None:
    if evidence.interval not in (None, "wald"):
        raise PlanError(
            f"preset={preset!r} repeats a publication that used the Wald interval, and "
            f"interval={evidence.interval!r} is another one. Leave interval out, or leave the "
            "preset out."
        )
    if evidence.measure != "risk-difference":
        raise PlanError(
            f"preset={preset!r} repeats a publication that compared by the difference of two "
            f"shares, and measure={evidence.measure!r} is another measure. Leave measure out, "
            "or leave the preset out."
        )
    if evidence.direction == "positive" and preset != EXTENSION:
        raise PlanError(
            f"preset={preset!r} repeats a publication that looked for negative discrimination "
            f"only. Leave direction out, take preset={EXTENSION!r}, or leave the preset out."
        )


def _search(
    situation: Situation, centers: _Scores, everyone: _Scores, *, in_control: bool
) -> _Nearest:
    rows = situation.complainants
    spaces = [s.control if in_control else s.test for s in situation.strata]
    width = min(max(situation.ks) + 1, *(len(space) for space in spaces))
    found = _Nearest(
        rows=np.empty((len(rows), width), dtype=np.intp), distance=np.empty((len(rows), width))
    )
    for stratum, space in zip(situation.strata, spaces, strict=True):
        mine = np.searchsorted(rows, stratum.complainants)
        near = _nearest(centers.take(stratum.complainants), everyone, space, width)
        found.rows[mine], found.distance[mine] = near.rows, near.distance
    return found


def _pair(
    situation: Situation, method: Method, control: _Nearest, tests: Mapping[Center, _Nearest]
) -> Pair[Groups]:
    centers = situation.centers() if method.count_centers else None
    if centers is not None and not method.count_neighbours:
        return Pair(control=centers.control, test=centers.test)
    nearest = PublishedGroups(
        nearest=control,
        ks=situation.ks,
        extra=1,
        identity=situation.identity,
        own_rows=situation.complainants,
        keep_own=method.count_centers,
    )
    return Pair(
        control=nearest,
        test=replace(
            nearest,
            nearest=tests[method.center],
            extra=0,
            keep_own=False,
            centers=None if centers is None else centers.test,
        ),
    )


AS_PUBLISHED = AsPublished()
"""The semantics behind ``preset="eaamo23"``."""

AS_EXTENDED = AsPublished(
    name=EXTENSION,
    preset=EXTENSION,
    caution=AS_PUBLISHED.caution.replace(
        "the publication (eaamo23)", f"its extension ({EXTENSION})"
    ),
)
"""The semantics behind ``preset="jair25"``: the same, in both directions and on several grounds."""

READINGS = {each.preset: each for each in (AS_PUBLISHED, AS_EXTENDED)}
"""The semantics of every preset."""
