"""Tipping points: how much of an effect must be real for a verdict to stand.

A worldview attributes the difference between a person and her counterfactual to her status. With a
part λ of it, everyone in the control space alike has the counterfactual x + λ(x^CF - x). At λ = 1
that is the audit; at λ = 0 people are compared with those who are like them as they are. Ordered
levels move by ranks. A name cannot move in part: it is the factual one with weight 1 - λ and the
counterfactual one with weight λ, for all names at once.

The tipping point λ* of a verdict is the least λ such that the verdict is the same or stronger on
all of [λ*, 1], on a grid of twentieths.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.group_comparison import compare_groups
from mutandis.data.attribute import AttributeKind
from mutandis.data.by_row import ByRow
from mutandis.data.columns import Numbers
from mutandis.data.population import patch_rows
from mutandis.errors import MutandisWarning, PlanError
from mutandis.evidence.groups import Pair
from mutandis.evidence.spaces import restrict_complainants

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.data.columns import Column
    from mutandis.data.population import Population
    from mutandis.evidence.comparison import Comparison
    from mutandis.evidence.findings import Findings
    from mutandis.evidence.groups import Group, NearestGroups
    from mutandis.evidence.methods import Method
    from mutandis.evidence.semantics import Situation

__all__ = [
    "FRAGILE",
    "ROBUST",
    "STEPS",
    "Tipping",
    "attribute_part",
    "find_tipping",
    "find_with_part",
]

ROBUST, FRAGILE = 0.5, 0.75
"""Up to which λ* a verdict is robust, and from which on it is fragile (docs/robustness.md)."""

STEPS = 20
"""The grid of λ: multiples of a twentieth."""

_FEW = 10  # people whose groups are looked at one by one
_BEYOND = 30  # where there is no verdict, up to one and a half times the effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Tipping(ByRow):
    """How much of the effect must be real, complainant by complainant."""

    method: str
    k: int
    ids: NDArray[Any]
    # λ*; missing where there is no evidence that could fall
    point: NDArray[np.float64]
    # "robust", "sensitive" or "fragile", by λ* and by draws and refits; None without evidence
    grade: NDArray[np.object_]
    # where nothing is significant: the least λ in (1, 1.5] at which something is; missing elsewhere
    appears: NDArray[np.float64]
    # by attribute that the worldview moves: whether the verdict stands with this one at its fact,
    # None where there is no evidence that could fall
    without: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Give the table: one row per complainant."""
        return {
            "id": self.ids,
            "tipping": self.point,
            "grade": self.grade,
            "appears": self.appears,
            **{f"stands_without_{name}": stands for name, stands in self.without.items()},
        }


def find_tipping(
    audit: Audit,
    method: Method,
    k: int,
    *,
    places: NDArray[np.intp] | None = None,
    bound: NDArray[np.float64] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> Tipping:
    """Find the tipping point of every verdict, or of some complainants by their places.

    `bound` are the largest p-values of a verdict; default: those of the verdicts that were given.
    """
    _refuse(audit, method)
    found = audit.compute_findings(method.name, k, depth="significance")
    everyone = np.arange(len(found)) if places is None else places
    bound = found.p_value_bound() if bound is None else bound
    cases = everyone[found.comparison.evidence[everyone]]
    others = everyone[_could_appear(found)[everyone]]
    moved = _moved_attributes(audit)
    total, done = STEPS + len(moved) + _BEYOND - STEPS, 0
    trial = _Trial(audit, method, k, everyone)

    point = np.full(len(found), np.nan)
    standing = cases
    for step in reversed(range(STEPS)):
        stands = trial.stands(standing, bound[standing], part=Fraction(step, STEPS))
        point[standing[~stands]] = (step + 1) / STEPS
        standing = standing[stands]
        progress(done := done + 1, total)
    point[standing] = 0.0

    without = {}
    for name in moved:
        without[name] = answer = np.full(len(found), None, dtype=object)
        answer[cases] = trial.stands(cases, bound[cases], held={name})
        progress(done := done + 1, total)

    appears, waiting = np.full(len(found), np.nan), others
    for step in range(STEPS + 1, _BEYOND + 1):
        level = np.full(len(waiting), found.alpha)
        rises = trial.stands(waiting, level, part=Fraction(step, STEPS))
        appears[waiting[rises]] = step / STEPS
        waiting = waiting[~rises]
        progress(done := done + 1, total)
    tipping = Tipping(
        method=method.name,
        k=k,
        ids=found.ids,
        point=point,
        grade=_grade(point, found.fragile),
        appears=appears,
        without=without,
    )
    return tipping if places is None else tipping.take(places)


def find_with_part(audit: Audit, place: int, method: Method, k: int, part: Fraction) -> Findings:
    """Give one complainant's findings with a part of the effect, all others as they are."""
    _refuse(audit, method)
    places, plan = np.array([place]), audit.plan
    found = audit.compute_findings(method.name, k, depth="significance")
    groups = _Ground.of(audit, method, k, places).groups_with(places, method, part)
    comparison = compare_groups(plan, method, groups)
    p_values = found.comparison.interval.p_value.copy()
    p_values[place] = comparison.interval.p_value[0]
    if method.matched:  # as those unlike are counted in the audit
        p_values = np.where(np.isnan(p_values), 1.0, p_values)
    return replace(
        found.take(places),
        control=groups.control,
        test=groups.test,
        comparison=comparison,
        q_value=np.where(comparison.insufficient, np.nan, audit.adjust(p_values)[places]),
    )


def _grade(point: NDArray[np.float64], fragile: NDArray[np.bool_]) -> NDArray[np.object_]:
    grade = np.full(len(point), None, dtype=object)
    grade[~np.isnan(point)] = "sensitive"
    grade[point <= ROBUST] = "robust"
    grade[(point >= FRAGILE) | (fragile & ~np.isnan(point))] = "fragile"
    return grade


def _refuse(audit: Audit, method: Method) -> None:
    if audit.plan.semantics.preset is not None or not method.needs_counterfactual:
        raise PlanError(
            f"Method {method.name!r} has no tipping point: it needs counterfactuals and the "
            "definitions of this library. Ask for 'cst_matched' or 'cst_without'."
        )
    if method.count_centers:
        raise PlanError(
            f"Method {method.name!r} asks the decision maker about counterfactuals, which have no "
            "decision on the way from the fact. Ask for 'cst_matched' or 'cst_without'."
        )


def _could_appear(found: Findings) -> NDArray[np.bool_]:
    return ~(found.comparison.significant | found.comparison.insufficient)


def _moved_attributes(audit: Audit) -> tuple[str, ...]:
    """Name the attributes that people are compared on and that an intervention changes."""
    moved: set[str] = set()
    for part in audit.parts:
        moved = moved.union(*(_moved(part.situation, world) for world in _worlds(part.situation)))
    return tuple(each.name for each in audit.plan.attributes if each.name in moved)


def _worlds(situation: Situation) -> Sequence[Population]:
    """Give the counterfactual worlds: the draws, or the one that there is."""
    if situation.draws:
        return situation.draws
    return () if situation.counterfactual is None else (situation.counterfactual,)


def _moved(situation: Situation, world: Population) -> set[str]:
    """Name the attributes in which some protected row differs from the fact."""
    rows = situation.protected

    def differs(name: str) -> bool:
        here, there = situation.population.part(name, rows), world.part(name, rows)
        return not np.array_equal(here.data, there.data)

    return {each.name for each in situation.attributes if differs(each.name)}


class _Trial:
    """Tries verdicts of one method at one k in other counterfactual worlds."""

    def __init__(self, audit: Audit, method: Method, k: int, places: NDArray[np.intp]) -> None:
        self._method = method
        self._grounds = [_Ground.of(part, method, k, places) for part in audit.parts]

    def stands(
        self,
        places: NDArray[np.intp],
        bound: NDArray[np.float64],
        *,
        part: Fraction = Fraction(1),
        held: Collection[str] = (),
    ) -> NDArray[np.bool_]:
        """Tell whether there is evidence with at most these p-values, on every ground."""
        stands = np.ones(len(places), dtype=np.bool_)
        for ground in self._grounds:
            left = np.flatnonzero(stands)
            if len(left):
                found = ground.compare(places[left], self._method, part, held)
                stands[left] = found.evidence & ~(found.interval.p_value > bound[left])
        return stands


@dataclass(frozen=True, slots=True)
class _Ground:
    """What does not change from one world to another."""

    audit: Audit
    situation: Situation
    groups: Pair[Group]
    control: NearestGroups

    @classmethod
    def of(cls, audit: Audit, method: Method, k: int, places: NDArray[np.intp]) -> _Ground:
        situation = audit.situation
        strata = restrict_complainants(situation.strata, situation.complainants[places])
        if len(places) <= _FEW:
            # no one else has to be matched
            groups = [audit.members(place, method.name, k).control.ids for place in places.tolist()]
            near = np.isin(audit.plan.population.ids, np.concatenate(groups))
            near[situation.complainants[places]] = True
            strata = tuple(
                replace(each, control=each.control[near[each.control]]) for each in strata
            )
        # between two values of a grid, centers stand on twentieths of a step, and midway of these
        situation = replace(situation, strata=strata, ks=(k,), parts=STEPS // 2)
        control = audit.plan.semantics.group(situation, [method]).nearest["control"]
        return cls(audit, situation, audit.grouping.at(method, audit.ks.index(k)), control)

    def compare(
        self, places: NDArray[np.intp], method: Method, part: Fraction, held: Collection[str]
    ) -> Comparison:
        """Compare the groups of some complainants, with a part of the effect."""
        pair = self.groups_with(places, method, part, held)
        return compare_groups(self.audit.plan, method, pair, depth="significance")

    def groups_with(
        self, places: NDArray[np.intp], method: Method, part: Fraction, held: Collection[str] = ()
    ) -> Pair[Group]:
        """Give the groups of some complainants, with a part of the effect."""
        rows, plan = self.audit.situation.complainants[places], self.audit.plan
        strata = restrict_complainants(self.situation.strata, rows)
        other = attribute_part(replace(self.situation, strata=strata), part, held=held)
        with warnings.catch_warnings():
            # the audit itself has said it already
            warnings.simplefilter("ignore", MutandisWarning)
            grouping = plan.semantics.group(other, [method], control=self.control)
        test, doubt = grouping.at(method, 0).test, self.groups.test.share.doubt
        if doubt is not None:
            test = replace(test, share=replace(test.share, doubt=doubt[places]))
        return Pair(control=self.groups.control.take(places), test=test)


def attribute_part(
    situation: Situation, part: Fraction, *, held: Collection[str] = ()
) -> Situation:
    """Attribute a part of every difference to the status, and none in attributes that are held."""
    population, rows = situation.population, situation.protected
    kinds = {each.name: each.kind for each in situation.attributes}
    mixed: list[tuple[Population, int]] = []
    for world in _worlds(situation):
        moved = _moved(situation, world).difference(held)
        names = {name for name in moved if kinds[name] is AttributeKind.NOMINAL}
        numbers = {
            name: _toward(population.part(name, rows), world.part(name, rows), part)
            for name in moved - names
        }
        switched = {name: world.part(name, rows) for name in names}
        weight = min(part, Fraction(1)) if names else Fraction(1)
        for columns, share in ((numbers, 1 - weight), (numbers | switched, weight)):
            if share:
                mixed.append((patch_rows(population, rows, columns), int(share * STEPS)))
    if len({weight for _, weight in mixed}) == 1:
        mixed = [(world, 1) for world, _ in mixed]
    alone = len(mixed) == 1
    return replace(
        situation,
        counterfactual=mixed[0][0],
        draws=[world for world, _ in mixed] if situation.draws else (),
        worlds=() if alone else mixed,
        is_negative_cf=None,
        refused_in_draws=None,
    )


def _toward(fact: Column, other: Column, part: Fraction) -> Column:
    """Go a part of the way from the facts to other values; ordered levels by their ranks."""
    if part == 1:
        return other
    start = fact.data.astype(np.float64)
    return Numbers(start + float(part) * (other.data - start))
