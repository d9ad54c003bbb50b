"""Robustness: how much of an effect must be real for a verdict to stand.

A worldview attributes the difference between a person and a counterfactual to the status. With a
part λ of it, everyone in the control space has the counterfactual x + λ(x^CF - x). At λ = 1 that is
the audit; at λ = 0 people are compared with those who are like them as they are. Ordered levels
move by ranks. A name cannot move in part: it is the factual one with weight 1 - λ and the
counterfactual one with weight λ, for all names at once.

The tipping point λ* of a verdict is the least λ such that the verdict is the same or stronger on
all of [λ*, 1], on a grid of twentieths. One line describes the robustness of a verdict: how much of
the effect must be real, in how many draws and refits the verdict stays, at which group sizes, and
under how many worldviews, where others were compared.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mutandis.auditing.results import adjust_all, compare_groups
from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Numbers
from mutandis.data.labels import PLAIN
from mutandis.data.population import patch_rows
from mutandis.data.rows import ByRow
from mutandis.engine.study import World
from mutandis.engine.tally import Pair, join_pairs
from mutandis.errors import PlanError
from mutandis.verdicts.findings import Robustness, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.auditing.results import Ground
    from mutandis.data.columns import Column
    from mutandis.data.population import Population
    from mutandis.engine.study import Study
    from mutandis.engine.tally import Group, Method
    from mutandis.verdicts.findings import Findings

__all__ = [
    "RULES",
    "STEPS",
    "CurvePoint",
    "Tipping",
    "add_robustness",
    "count_grades",
    "describe_all",
    "describe_verdict",
    "each_findings",
    "find_curve",
    "find_robustness",
    "find_tipping",
    "find_with_part",
    "moved_attributes",
    "name_worlds",
    "rules_of",
    "summarise_grades",
    "tipping_of",
    "world_with_part",
]

# up to which λ* a verdict is robust, and from which on it is fragile (docs/robustness.md)
_ROBUST, _FRAGILE = 0.5, 0.75
# the share of worldviews under which a verdict has to hold, or it is fragile
_MOST_WORLDVIEWS = 0.5

RULES = {
    "robust": f"stands with {_ROBUST:.0%} of the effect or less",
    "sensitive": f"needs more than {_ROBUST:.0%} of the effect and less than {_FRAGILE:.0%}",
    "fragile": f"needs {_FRAGILE:.0%} of the effect or more, or falls in more than one of ten "
    "draws and refits",
}
"""The rule of each grade."""

_COMPARED = {
    "robust": ", and under every worldview that was compared",
    "sensitive": ", or falls under some of the worldviews that were compared",
    "fragile": ", or holds under fewer than half of the worldviews that were compared",
}

STEPS = 20
"""The grid of λ: multiples of a twentieth."""

_BEYOND = 30  # where there is no verdict, up to one and a half times the effect

# a part of the effect, and the attributes in which none of it is
_Part: TypeAlias = tuple[Fraction, Collection[str]]


def _part(step: int, *held: str) -> _Part:
    return Fraction(step, STEPS), held


# --- tipping points ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tipping(ByRow):
    """How much of the effect must be real, complainant by complainant."""

    method: str
    k: int
    ids: NDArray[Any]
    point: NDArray[np.float64]  # λ*; missing where there is no evidence that could fall
    fragile: NDArray[np.bool_]  # whose verdict falls under too many draws and refits
    # where nothing is significant: the least λ in (1, 1.5] at which something is; missing elsewhere
    appears: NDArray[np.float64]
    # by attribute that the worldview moves: whether the verdict stands with this one at its fact
    without: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    # the share of worldviews under which it is the same or stronger; None where none were compared
    share: NDArray[np.float64] | None = None

    @property
    def grade(self) -> NDArray[np.object_]:
        """Each verdict's grade, by the rules above; None without evidence."""
        grade = np.full(len(self.point), None, dtype=object)
        is_case = ~np.isnan(self.point)
        share = np.ones(len(self.point)) if self.share is None else self.share
        grade[is_case] = "sensitive"
        grade[(self.point <= _ROBUST) & (share == 1)] = "robust"
        falls = (self.point >= _FRAGILE) | self.fragile | (share < _MOST_WORLDVIEWS)
        grade[is_case & falls] = "fragile"
        return grade

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the table: one row per complainant."""
        without = {name: stands.astype(object) for name, stands in self.without.items()}
        for stands in without.values():
            stands[np.isnan(self.point)] = None
        return {
            "id": self.ids,
            "tipping": self.point,
            "grade": self.grade,
            "appears": self.appears,
            **{f"stands_without_{name}": stands for name, stands in without.items()},
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
    _check_method(method)
    found = audit.evaluate(method.name, k, depth="significance")
    everyone = np.arange(len(found)) if places is None else places
    bound = found.p_value_bound() if bound is None else bound
    is_case = found.comparison.evidence
    could_appear = ~(found.comparison.significant | found.comparison.insufficient)
    cases, others = everyone[is_case[everyone]], everyone[could_appear[everyone]]
    moved, done = moved_attributes(audit), 0
    grounds = audit.grounds if len(cases) or len(others) else ()
    trials = _Trials(grounds, method, k, keep=len(everyone) == 1)

    def count(steps: int) -> None:
        nonlocal done
        progress(done := done + steps, _BEYOND + len(moved))

    point = np.full(len(found), np.nan)
    fewer = [_part(step) for step in reversed(range(STEPS))]
    falls = trials.first(cases, bound[cases], fewer, stands=False, count=count)
    point[cases] = (STEPS - falls) / STEPS

    without = {name: np.zeros(len(found), dtype=np.bool_) for name in moved}
    held = [_part(STEPS, name) for name in moved]
    for name, stands in zip(moved, trials.stands(cases, bound[cases], held), strict=True):
        without[name][cases] = stands
        count(1)

    appears, more = np.full(len(found), np.nan), range(STEPS + 1, _BEYOND + 1)
    level = np.full(len(others), found.alpha)
    rises = trials.first(others, level, [_part(step) for step in more], stands=True, count=count)
    appears[others] = np.array([*(step / STEPS for step in more), np.nan])[rises]
    tipping = Tipping(
        method=method.name,
        k=k,
        ids=found.ids,
        point=point,
        fragile=found.fragile,
        appears=appears,
        without=without,
    )
    return tipping if places is None else tipping.take(places)


def find_robustness(
    audit: Audit,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> Audit:
    """Add tipping points to an audit whose plan asks for them, graded by all that is known."""
    if not audit.plan.settings.uncertainty.tipping:
        return audit
    (method, k), results = audit.plan.choose(None, None), audit.results
    found = results.tipping
    if found is None:
        found = find_tipping(audit, method, k, progress=progress)
    if results.worldviews is not None:
        found = replace(found, share=results.worldviews.share)
    return replace(audit, results=replace(results, tipping=found))


def tipping_of(audit: Audit, place: int) -> Tipping | None:
    """Return one complainant's tipping point of the headline, found alone if need be.

    None where the method of the headline has none.
    """
    method, k = audit.plan.choose(None, None)
    if not method.has_tipping:
        return None
    only, known = np.array([place]), audit.results.tipping
    return find_tipping(audit, method, k, places=only) if known is None else known.take(only)


def add_robustness(audit: Audit, found: Findings, place: int | None = None) -> Findings:
    """Add their robustness to findings, on everyone or on one, where the settings ask for it."""
    if not audit.plan.settings.uncertainty.tipping:
        return found
    return replace(found, robustness=describe_all(audit, found, place))


def each_findings(audit: Audit) -> Iterator[Findings]:
    """Iterate over the findings of every method and k, with their robustness."""
    # mapped, not looped over: findings are gone when the next are made
    keys = audit.results.summaries
    return (add_robustness(audit, audit.evaluate(method, k)) for method, k in keys)


# --- one complainant -----------------------------------------------------------------------------


def find_with_part(audit: Audit, place: int, method: Method, k: int, part: Fraction) -> Findings:
    """Return one complainant's findings with a part of the effect, all others as they are."""
    _check_method(method)
    places, plan = np.array([place]), audit.plan
    found = audit.evaluate(method.name, k, depth="significance")
    (groups,) = _Trials(audit.grounds, method, k, keep=True).groups(
        audit.ground, places, [(part, ())]
    )
    comparison = compare_groups(plan, method, groups)
    p_values = found.comparison.interval.p_value.copy()
    p_values[place] = comparison.interval.p_value[0]
    adjusted = adjust_all(plan, method, p_values)[places]
    return replace(
        found.take(places),
        control=groups.control,
        test=groups.test,
        comparison=comparison,
        q_value=np.where(comparison.insufficient, np.nan, adjusted),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One complainant's comparison with a part λ of the effect.

    Without comparable groups there are no numbers. It `stands` if the verdict is the same or
    stronger; where there is none, if the difference is significant.
    """

    part: float
    delta_p: float | None
    low: float | None
    high: float | None
    stands: bool


def find_curve(audit: Audit, place: int) -> tuple[CurvePoint, ...]:
    """Compute Δp(λ) of one complainant's headline, from none of the effect to all of it.

    Where there is no evidence, it goes on to one and a half times the effect.
    """
    method, k = audit.plan.choose(None, None)
    _check_method(method)
    verdicts, only = audit.results.headline, np.array([place])
    is_case = bool(verdicts.comparison.evidence[place])
    bound = verdicts.p_value_bound()[place] if is_case else verdicts.alpha
    steps = range((STEPS if is_case else _BEYOND) + 1)
    trials = _Trials(audit.grounds, method, k, keep=True)
    groups = trials.groups(audit.ground, only, [_part(step) for step in steps])
    # bounds of all of them take hardly longer than those of one
    found = compare_groups(audit.plan, method, join_pairs(groups))
    stands = found.evidence & ~(found.interval.p_value > bound)

    def number(values: NDArray[np.float64], step: int) -> float | None:
        return None if found.insufficient[step] else float(values[step])

    return tuple(
        CurvePoint(
            part=step / STEPS,
            delta_p=number(found.delta_p, step),
            low=number(found.interval.low, step),
            high=number(found.interval.high, step),
            stands=bool(stands[step]),
        )
        for step in steps
    )


# --- worlds with a part of the effect ------------------------------------------------------------


class _Trials:
    """One method at one k in worlds with a part of the effect, on all grounds.

    Between two values of a grid, centers lie on twentieths of a step, and midway between these: the
    engines measure on a finer scale than that of the audit. `keep` keeps them for later trials.
    """

    def __init__(self, grounds: Sequence[Ground], method: Method, k: int, *, keep: bool) -> None:
        self._grounds, self._method, self._k = grounds, method, k
        self._engines = {each.name: each.engine.finer(k, STEPS // 2, keep=keep) for each in grounds}

    def first(
        self,
        places: NDArray[np.intp],
        bound: NDArray[np.float64],
        parts: Sequence[_Part],
        *,
        stands: bool,
        count: Callable[[int], None],
    ) -> NDArray[np.intp]:
        """Find the first of some parts of the effect with which each verdict stands, or falls.

        It is the number of all of them where there is none.
        """
        first, left, start = np.full(len(places), len(parts)), np.arange(len(places)), 0
        while start < len(parts):
            some = parts[start : start + self._at_once(places[left])]
            found = self.stands(places[left], bound[left], some) == stands
            hit = found.any(axis=0)
            first[left[hit]] = start + found[:, hit].argmax(axis=0)
            left, start = left[~hit], start + len(some)
            count(len(some))
        return first

    def stands(
        self, places: NDArray[np.intp], bound: NDArray[np.float64], parts: Sequence[_Part]
    ) -> NDArray[np.bool_]:
        """Mark the parts with which there is evidence on every ground, with p up to a bound."""
        stands, at_once = np.ones((len(parts), len(places)), np.bool_), self._at_once(places)
        for start in range(0, len(parts), at_once):
            some = slice(start, start + at_once)
            for ground in self._grounds:
                left = np.flatnonzero(stands[some].any(axis=0))
                if not len(left):
                    break
                groups = self.groups(ground, places[left], parts[some])
                found = compare_groups(
                    ground.plan, self._method, join_pairs(groups), depth="significance"
                )
                beyond = found.interval.p_value > np.tile(bound[left], len(parts[some]))
                stands[some, left] &= (found.evidence & ~beyond).reshape(-1, len(left))
        return stands

    def groups(
        self,
        ground: Ground,
        places: NDArray[np.intp],
        parts: Sequence[_Part],
    ) -> list[Pair[Group]]:
        """Return the groups of some complainants on one ground, with each part of the effect."""
        audited = ground.tally.at(self._method, ground.tally.ks.index(self._k))
        control, doubt = audited.control.take(places), audited.test.share.doubt
        tallies = self._engines[ground.name].tallies(
            (world_with_part(ground, part, held=held) for part, held in parts),
            [self._method],
            who=ground.study.people[places],
        )
        doubt = None if doubt is None else doubt[places]
        return [
            Pair(control=control, test=each.at(self._method, 0).test.with_doubt(doubt))
            for each in tallies
        ]

    def _at_once(self, places: NDArray[np.intp]) -> int:
        """Return how many parts are tried at once; all of them where no one is left."""
        if not len(places):
            return _BEYOND
        return min(
            self._engines[each.name].at_once(
                each.study.people[places], world_with_part(each, Fraction(1))
            )
            for each in self._grounds
        )


def world_with_part(ground: Ground, part: Fraction, *, held: Collection[str] = ()) -> World:
    """Attribute a part of every difference to the status, and none in attributes that are held."""
    study, population, rows = ground.study, ground.study.population, ground.study.protected
    kinds = {each.name: each.kind for each in study.attributes}
    mixed: list[tuple[Population, int]] = []
    for world in _worlds(ground.world):
        moved = _moved(study, world).difference(held)
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
    drawn = bool(ground.world.draws)
    if len(mixed) == 1 and not drawn:
        return World(point=mixed[0][0])
    return World(point=mixed[0][0], parts=tuple(mixed), drawn=drawn)


def _toward(fact: Column, other: Column, part: Fraction) -> Column:
    """Go a part of the way from the facts to other values; ordered levels by their ranks."""
    if part == 1:
        return other
    start = fact.data.astype(np.float64)
    return Numbers(start + float(part) * (other.data - start))


def moved_attributes(audit: Audit) -> tuple[str, ...]:
    """Name the attributes that people are compared on and that an intervention changes."""
    moved: set[str] = set()
    for ground in audit.grounds:
        moved = moved.union(*(_moved(ground.study, each) for each in _worlds(ground.world)))
    return tuple(each.name for each in audit.plan.attributes if each.name in moved)


def _worlds(world: World) -> Sequence[Population]:
    """Return the counterfactual worlds: the draws, or the one that there is."""
    return world.draws or (() if world.point is None else (world.point,))


def _moved(study: Study, world: Population) -> set[str]:
    """Name the attributes in which some protected row differs from the fact."""
    rows, facts = study.protected, study.population
    return {
        each.name
        for each in study.attributes
        if not np.array_equal(facts.part(each.name, rows).data, world.part(each.name, rows).data)
    }


def _check_method(method: Method) -> None:
    if not method.has_tipping:
        raise PlanError(
            f"Method {method.name!r} has no tipping point: it needs counterfactuals, and none may "
            "have to be decided on the way from the fact. Ask for 'cst_matched' or 'cst_without'."
        )


# --- grades and words ----------------------------------------------------------------------------


def rules_of(audit: Audit) -> dict[str, str]:
    """Return the rule of each grade, with what is asked of worldviews that were compared."""
    compared = audit.results.worldviews is not None
    return {grade: rule + (_COMPARED[grade] if compared else "") for grade, rule in RULES.items()}


def count_grades(tipping: Tipping, verdicts: NDArray[np.object_]) -> dict[str, dict[str, int]]:
    """Count the verdicts of each grade, the strongest verdict first."""
    grades = tipping.grade
    order = (Verdict.SIGNIFICANT_ADJUSTED, Verdict.SIGNIFICANT, Verdict.EVIDENCE)
    return {
        verdict.value: {
            grade: int(((verdicts == verdict.value) & (grades == grade)).sum()) for grade in RULES
        }
        for verdict in order
    }


def summarise_grades(audit: Audit) -> str:
    """Describe how many of the strongest verdicts are robust; empty without tipping points."""
    results = audit.results
    if results.tipping is None:
        return ""
    counts = count_grades(results.tipping, results.headline.verdicts())
    verdict, grades = next(((v, g) for v, g in counts.items() if sum(g.values())), ("", {}))
    if not verdict:
        return ""
    number, every, most, stays = sum(grades.values()), "", "", ""
    compared = results.worldviews
    if compared is not None:
        total = len(compared.names)
        under = compared.stays_under[compared.strength[:, 0] == compared.strength[:, 0].max()]
        every = " and under every worldview"
        most = f", or under more than half of {total} worldviews"
        stays = (
            f" {int((under == total).sum()):,} of these {len(under):,} hold under all {total} "
            f"worldviews that were compared, and each under at least {under.min()}."
        )
    return (
        f"If less of the effect of {audit.plan.status_label} is real: of {number:,} "
        f"{verdict} {'verdict' if number == 1 else 'verdicts'}, {grades['robust']:,} "
        f"robust (stand with {_ROBUST:.0%} of it{every}), {grades['sensitive']:,} "
        f"sensitive, {grades['fragile']:,} fragile (need {_FRAGILE:.0%} of it, or "
        f"fall in draws and refits{most}).{stays}"
    )


def describe_all(audit: Audit, found: Findings, place: int | None = None) -> Robustness:
    """Describe how robust each verdict of the headline is; of other findings, all is missing.

    The findings are those of everyone, or of the complainant at one place. They are data, and have
    the names of the table.
    """
    nothing, missing = np.full(len(found), None, dtype=object), np.full(len(found), np.nan)
    compared = audit.results.worldviews
    columns = {} if compared is None else {"stays_under": missing, "breaks_under": nothing}
    if (found.method, found.k) != audit.plan.settings.primary:
        return Robustness(tipping=missing, grade=nothing, line=nothing, worldviews=columns)
    chosen: Any = slice(None) if place is None else [place]
    if compared is not None:
        number = np.where(compared.has_case, compared.stays_under, np.nan)
        columns = {"stays_under": number[chosen], "breaks_under": compared.breaks_under[chosen]}
    alone = None if place is None else tipping_of(audit, place)
    tipping = audit.measure_tipping() if alone is None else alone
    share = missing if found.verdict_share is None else found.verdict_share
    under = columns.get("stays_under", missing)
    summaries, plan = audit.results.summaries, replace(audit.plan, labels=PLAIN)
    stays = [summaries[found.method, k].strength[chosen] >= found.strength for k in audit.ks]
    lines: dict[Any, str] = {}
    said = nothing.copy()
    for row in np.flatnonzero(~np.isnan(tipping.point)).tolist():
        ks = tuple(k for k, each in zip(audit.ks, stays, strict=True) if each[row])
        known = [None if np.isnan(each[row]) else float(each[row]) for each in (share, under)]
        point = float(tipping.point[row])
        key = (point, ks, *known)
        if key not in lines:  # many have the same
            lines[key] = describe_verdict(
                plan,
                point,
                share=known[0],
                ks=ks,
                worldviews=None
                if compared is None or known[1] is None
                else (int(known[1]), len(compared.names)),
            )
        said[row] = lines[key]
    return Robustness(tipping=tipping.point, grade=tipping.grade, line=said, worldviews=columns)


def name_worlds(plan: Plan) -> str:
    """Name the other counterfactuals that verdicts were tried in: "refits"."""
    made = plan.settings.uncertainty
    return " and ".join(name for name in ("draws", "refits") if getattr(made, name))


def describe_verdict(
    plan: Plan,
    point: float,
    *,
    share: float | None = None,
    worlds: str = "",
    ks: Collection[int] = (),
    worldviews: tuple[int, int] | None = None,
) -> str:
    """Describe in one line how robust a verdict is.

    It is the same or stronger in a `share` of the `worlds` (default: the plan's), at the group
    sizes `ks`, and under so many of so many `worldviews`.
    """
    effect = f"of the effect of {plan.status_label}"
    said = f"as long as at least {point:.0%} {effect} is real"
    if point in (0, 1):
        said = f"only if all {effect} is real" if point else f"even if none {effect} is real"
    more = [] if worldviews is None else [f"under {worldviews[0]} of {worldviews[1]} worldviews"]
    more.append(said)
    if share is not None:
        more.append(f"in {floor(100 * share + 1e-9)}% of {worlds or name_worlds(plan)}")
    if len(plan.settings.ks) > 1 and ks:
        more.append(_at_sizes(plan.settings.ks, ks))
    return f"holds {', '.join(more)}"


def _at_sizes(every: Sequence[int], ks: Collection[int]) -> str:
    others = [k for k in every if k not in ks]
    if not others:
        return f"at every k from {every[0]} to {every[-1]}"
    first, last = every.index(min(ks)), every.index(max(ks))
    said = f"at k = {', '.join(map(str, sorted(ks)))}"
    if len(ks) > 2 and last - first == len(ks) - 1:
        said = f"at k = {min(ks)} to {max(ks)}"
    return f"{said} but not at k = {', '.join(map(str, others))}"
