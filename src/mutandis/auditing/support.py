"""Support: whether there are people to compare with, and what makes the headline doubtful.

A group of the k nearest always exists, however far away its people are. These measures describe how
far that is. They inform and decide nothing: only a caliper (`max_distance`) and `min_group`, both
chosen before the run, make a verdict insufficient.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.sentences import explain_small, explain_unfit, list_reasons
from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Numbers
from mutandis.engine.matches import MATCHES
from mutandis.engine.tally import Center, Pair, too_small
from mutandis.errors import PlanError
from mutandis.numeric.order import rows_at_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.data.labels import Labels
    from mutandis.data.population import Population
    from mutandis.engine.engine import Engine
    from mutandis.engine.members import Members
    from mutandis.engine.study import Study, World
    from mutandis.engine.tally import Group, Method, Tally
    from mutandis.geometry.metric import Metric, Points
    from mutandis.verdicts.findings import Findings

__all__ = [
    "Reach",
    "Support",
    "caution_about",
    "caution_about_matches",
    "measure_balance",
    "measure_support",
    "typical_radii",
]

# people of a space who stand for all of it
SAMPLE = 200
_PERCENTILES = (50, 95, 99)
# with smaller groups, few of those who are treated differently are found after adjustment
_LITTLE_POWER = 30
# the share of complainants who should be comparable
_MOST = 2 / 3
# how many reasons are named for which people cannot be compared
_REASONS = 3
# the part of an attribute's variation that one row may hold where least squares are relied on
_ONE_ROW = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far groups of one kind reach, against what is usual in their space."""

    radius: NDArray[np.float64]  # distance of the k-th nearest, before a caliper is applied
    # percentiles 50, 95 and 99 of that distance among people of the space; NaN if no more than k
    typical: NDArray[np.float64]
    large: NDArray[np.float64]
    limit: NDArray[np.float64]

    @property
    def off_support(self) -> NDArray[np.bool_]:
        """Whose group reaches farther than 99 of 100 in that space; False where not known."""
        return np.asarray(self.radius > self.limit, dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """How well each complainant's comparison is supported, under one method and one k."""

    ids: NDArray[Any]
    control: Reach
    test: Reach
    # by attribute: whose search center is outside the range of the test space, or at a level that
    # does not occur there
    outside: Mapping[str, NDArray[np.bool_]]
    insufficient: NDArray[np.object_]  # why a verdict is "insufficient"; empty where it is not

    def columns(self) -> dict[str, NDArray[Any]]:
        """Compute the support table: one row per complainant."""
        sides = {"control": self.control, "test": self.test}
        off = {name: reach.off_support for name, reach in sides.items()}
        return {
            "id": self.ids,
            **{
                f"{name}_{side}": getattr(reach, name)
                for side, reach in sides.items()
                for name in ("radius", "typical", "large", "limit")
            },
            "off_support": _listed(off, len(self.ids)),
            "outside": _listed(self.outside, len(self.ids)),
            "insufficient": self.insufficient,
        }


def _listed(marks: Mapping[str, NDArray[np.bool_]], size: int) -> NDArray[np.object_]:
    """List, for each complainant, the names that are marked: "a, b"."""
    listed = np.full(size, "", dtype=object)
    for name, marked in marks.items():
        listed[marked & (listed != "")] += ", "
        listed[marked] += name
    return listed


def measure_support(
    engine: Engine, world: World, tally: Tally, method: Method, k: int, *, min_group: int
) -> Support:
    """Measure how well each complainant's groups support the comparison."""
    groups = tally.at(method, tally.ks.index(k))
    if groups.control.reach is None:
        raise PlanError(
            f"Method {method.name!r} compares no groups that could support it. "
            "Ask for one of the other methods."
        )
    reach = groups.test.reach
    return Support(
        ids=engine.study.population.ids[engine.study.people],
        control=_reach(engine, groups.control.reach, k, in_control=True),
        # matched groups are of the nearest few of each member of the control group
        test=_reach(engine, groups.test.radius, MATCHES)
        if reach is None
        else _reach(engine, reach, k),
        outside=_outside_range(engine, _centers(engine, world, tally, method)),
        insufficient=_reasons(engine.study, groups, method, min_group=min_group),
    )


def _centers(engine: Engine, world: World, tally: Tally, method: Method) -> Sequence[Population]:
    """Return the tables in which search centers are."""
    if method.center is Center.FACTUAL or world.point is None:
        return (engine.study.population,)
    # matched alone, and not searched around the one that is shown
    return (world.point,) if method.center.value in tally.test else world.draws or (world.point,)


def _reasons(
    study: Study, groups: Pair[Group], method: Method, *, min_group: int
) -> NDArray[np.object_]:
    centers = int(method.count_centers)
    insufficient = np.flatnonzero(too_small(groups, method, least=min_group))
    known = (groups.test.unfit(), groups.control.share.places, groups.test.share.places)
    why = list(zip(*(each[insufficient].tolist() for each in known), strict=True))
    # many have the same reason: each is worded once
    said = {
        (unfit, control, test): explain_unfit(unfit)
        or explain_small(
            control - centers,
            test - centers,
            max_distance=study.max_distance,
            min_group=min_group,
        )
        for unfit, control, test in set(why)
    }
    reasons = np.full(len(groups.control.rows), "", dtype=object)
    reasons[insufficient] = [said[each] for each in why]
    return reasons


def _reach(
    engine: Engine, radius: NDArray[np.float64], k: int, *, in_control: bool = False
) -> Reach:
    """Compare the radius of each group with what is usual in its space."""
    study, embedding = engine.study, engine.embedding
    usual = np.full((len(study.people), len(_PERCENTILES)), np.nan)
    for stratum in study.strata:
        rows = stratum.control if in_control else stratum.test
        points = embedding.apply(study.population, rows).points
        radii = typical_radii(points, embedding.metric, k)
        if len(radii):
            mine = np.searchsorted(study.people, stratum.complainants)
            usual[mine] = np.percentile(radii, _PERCENTILES)
    typical, large, limit = usual.T
    return Reach(radius=radius, typical=typical, large=large, limit=limit)


def typical_radii(points: Points, metric: Metric, k: int) -> NDArray[np.float64]:
    """Compute the distance of the k-th nearest other for a sample of the people of a space.

    Empty where no person has k others.
    """
    if k >= len(points):
        return np.empty(0)
    sample, placed, there = _sample(points, metric), metric.place(points), metric.in_place
    return metric.as_float(np.array([there.radius(placed, one, k) for one in sample.tolist()]))


def _sample(points: Points, metric: Metric) -> NDArray[np.intp]:
    """Choose at most 200 people, evenly spaced in the order of their attributes.

    They are the same people, however the file is sorted.
    """
    points, size = metric.place(points), len(points)
    number = min(size, SAMPLE)
    keys = [*points.coordinates.T, *points.codes.T]
    return rows_at_ranks(keys, np.arange(number) * size // number)


def _outside_range(engine: Engine, worlds: Sequence[Population]) -> dict[str, NDArray[np.bool_]]:
    """Mark, by attribute, which search centers are beyond all people of the test space.

    For attributes with an order: below the smallest or above the largest value there. For nominal
    ones: at a level that does not occur there. Compared on exact coordinates, so that rounding
    puts no center outside. Of several draws, one is enough.
    """
    study, embedding = engine.study, engine.embedding
    outside = {name: np.zeros(len(study.people), dtype=np.bool_) for name in embedding.names}
    for stratum in study.strata:
        mine = np.searchsorted(study.people, stratum.complainants)
        there = embedding.apply(study.population, stratum.test).points
        for world in worlds:
            here = embedding.apply(world, stratum.complainants).points
            for place, axis in enumerate(embedding.axes):
                values, column = here.coordinates[:, place], there.coordinates[:, place]
                outside[axis.name][mine] |= (values < column.min()) | (values > column.max())
            for place, name in enumerate(embedding.nominal):
                outside[name][mine] |= ~np.isin(here.codes[:, place], there.codes[:, place])
    return outside


def measure_balance(
    study: Study, world: World, row: int, method: Method, groups: Pair[Members]
) -> Pair[Mapping[str, float]]:
    """Compare one complainant's search centers with the people around them, by attribute.

    Each difference is (center - mean of the group) / standard deviation in D; for a nominal
    attribute, the same of the indicator of the center's own level. NaN where a group is empty or
    where D does not vary. Search centers among the members are left out. Where the counterfactual
    is open, the difference is the average over its draws.
    """
    worlds: Sequence[Population] = (study.population,)
    if method.center is Center.COUNTERFACTUAL and world.point is not None:
        worlds = world.draws or (world.point,)
    drawn = [_balance(study, groups.test, each, row) for each in worlds]
    return Pair(
        control=_balance(study, groups.control, study.population, row),
        test={name: fsum(each[name] for each in drawn) / len(drawn) for name in drawn[0]},
    )


def _balance(study: Study, members: Members, world: Population, row: int) -> Mapping[str, float]:
    population, people = study.population, ~members.is_center
    known = np.flatnonzero(np.isin(population.ids, members.ids[people]))
    row_of = dict(zip(population.ids[known].tolist(), known.tolist(), strict=True))
    rows = [row_of[each] for each in members.ids[people].tolist()]
    found, place = {}, members.place[people]
    for attribute in study.attributes:
        # codes are ranks where the attribute is ordinal
        everyone = population.columns[attribute.name].data.astype(np.float64)
        center = float(world.part(attribute.name, np.array([row])).data[0])
        if attribute.kind is AttributeKind.NOMINAL:
            # the indicator of the center's own level
            everyone, center = (everyone == center).astype(np.float64), 1.0
        # sorted, or summed exactly, so that no rounding depends on the order of rows
        spread = float(np.sort(everyone).std())
        if not rows or spread == 0:
            found[attribute.name] = float("nan")
            continue
        mean = fsum((everyone[rows] * place).tolist()) / fsum(place.tolist())
        found[attribute.name] = (center - mean) / spread
    return found


# --- cautions about the headline ----------------------------------------------------------------


def caution_about(audit: Audit) -> list[str]:
    """List what a reader of the headline has to know, in sentences."""
    method, _ = audit.plan.choose(None, None)
    matched = [*_of_sizes(audit), *_of_matches(audit)] if method.matched else []
    return [*matched, *_of_tails(audit), *_of_outcomes(audit)]


def _of_sizes(audit: Audit) -> Iterator[str]:
    """Check whether groups are still about people like the complainant, and large enough."""
    k = audit.plan.settings.primary[1]
    strata = [stratum for ground in audit.grounds for stratum in ground.study.strata]
    protected = min(len(stratum.control) for stratum in strata)
    reference = min(len(stratum.test) for stratum in strata)
    if k > protected // 3:
        yield (
            f"k = {k} is more than a third of the {protected:,} protected rows: such groups are "
            "hardly about people like the complainant."
        )
    if k > reference // 5:
        yield (
            f"k = {k} is more than a fifth of the {reference:,} reference rows: the same people "
            "stand for many."
        )
    if k < _LITTLE_POWER:
        yield (
            f"With k = {k} few cases are found after adjustment, even where there are many; from "
            f"k = {_LITTLE_POWER} on it is better."
        )


def _of_matches(audit: Audit) -> Iterator[str]:
    """Check whether test groups represent enough people, and enough complainants have one."""
    found, k = audit.results.headline, audit.plan.settings.primary[1]
    tested, matching = ~found.comparison.insufficient, found.test.matching
    if matching is not None and tested.any():
        effective = float(np.median(matching.n_effective[tested]))
        if effective < k:
            yield (
                f"Half of the test groups count as fewer than {effective:.0f} people: the same few "
                f"stand for the {k} of the control group."
            )
    yield from caution_about_matches(found, audit.plan.labels)


def caution_about_matches(found: Findings, labels: Labels) -> Iterator[str]:
    """Name the reasons for which people could not be compared, where they are many."""
    left_out = found.comparison.insufficient
    if left_out.mean() > 1 - _MOST:
        reasons = list_reasons(found.test.unfit()[left_out].tolist(), most=_REASONS, labels=labels)
        yield (
            f"{int(left_out.sum()):,} of {len(found):,} complainants could not be compared: "
            f"{reasons}."
        )


def _of_tails(audit: Audit) -> Iterator[str]:
    """Check whether single rows decide an estimated equation, which refits hardly show."""
    from mutandis.scm.additive import AdditiveEquation

    plan = audit.plan
    for name, equation in ({} if plan.worldview is None else plan.worldview.equations).items():
        column = plan.population.columns[name]
        is_estimated = getattr(equation, "coefficients", None) != ()
        if not isinstance(equation, AdditiveEquation) or not isinstance(column, Numbers):
            continue
        if equation.link != "identity" or not is_estimated:
            continue
        # sorted, so that the order of the rows has no effect on the last bit
        values = np.sort(column.values)
        squares = (values - values.mean()) ** 2
        if squares.max() > _ONE_ROW * squares.sum():
            yield (
                f"One row holds {squares.max() / squares.sum():.0%} of the variation of "
                f"{plan.labels.quoted(name)}: an equation that is fitted by least squares depends "
                "on it, more than refits show. A log link or a stated equation may be better."
            )


def _of_outcomes(audit: Audit) -> Iterator[str]:
    """Check whether the unfavourable outcome is the right one, and who the cases are."""
    words, found = audit.plan.words, audit.results.headline
    yield from words.cautions(audit.plan.outcome)
    cases = found.significant_adjusted
    granted = int((cases & ~found.is_negative).sum())
    if 2 * granted > int(cases.sum()):
        yield (
            f"{granted:,} of the {int(cases.sum()):,} complainants with a pattern "
            f"{words.not_themselves}: they are part of the pattern only."
        )
    if audit.disagreement == 0:
        yield (
            "b() reproduces every recorded decision. If it was fitted to the record, what it says "
            "about counterfactuals is not independent evidence."
        )
