"""Tipping points: how much of an effect must be real for a verdict to stand.

A worldview attributes the difference between a person and her counterfactual to her status. With a
part λ of it, everyone in the control space alike has the counterfactual x + λ(x^CF - x). At λ = 1
that is the audit; at λ = 0 people are compared with those who are like them as they are. Ordered
levels move by ranks. A name cannot move in part: it is the factual one with weight 1 - λ and the
counterfactual one with weight λ, for all names at once.

The tipping point λ* of a verdict is the least λ such that the verdict is the same or stronger on
all of [λ*, 1], on a grid of twentieths.

The robustness of a verdict is said in one line: how much of the effect must be real, in how many
draws and refits the verdict stays, at which group sizes, and under how many worldviews, where
others were compared.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.progress import discard_report
from mutandis.auditing.results import adjust_all, compare_groups, evidence_by
from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Numbers
from mutandis.data.labels import PLAIN, Labels
from mutandis.data.population import patch_rows
from mutandis.data.rows import ByRow
from mutandis.engine.study import World
from mutandis.engine.tally import Pair, join_pairs
from mutandis.errors import PlanError
from mutandis.verdicts.findings import Robustness, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.auditing.progress import Bars
    from mutandis.auditing.results import Ground
    from mutandis.auditing.worldviews import WorldviewVerdicts
    from mutandis.data.columns import Column
    from mutandis.data.population import Population
    from mutandis.engine.engine import Engine
    from mutandis.engine.methods import Method
    from mutandis.engine.study import Study
    from mutandis.engine.tally import Group
    from mutandis.outcomes.outcome import Comparison
    from mutandis.verdicts.findings import Findings

__all__ = [
    "FRAGILE",
    "MOST_WORLDVIEWS",
    "ROBUST",
    "RULES",
    "STEPS",
    "CurvePoint",
    "Tipping",
    "count_grades",
    "describe_all",
    "describe_verdict",
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

ROBUST, FRAGILE = 0.5, 0.75
"""Up to which λ* a verdict is robust, and from which on it is fragile (docs/robustness.md)."""

MOST_WORLDVIEWS = 0.5
"""The share of the worldviews compared under which a verdict has to hold, or it is fragile."""

RULES = {
    "robust": f"stands with {ROBUST:.0%} of the effect or less",
    "sensitive": f"needs more than {ROBUST:.0%} of the effect and less than {FRAGILE:.0%}",
    "fragile": f"needs {FRAGILE:.0%} of the effect or more, or falls in more than one of ten draws "
    "and refits",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tipping(ByRow):
    """How much of the effect must be real, complainant by complainant."""

    method: str
    k: int
    ids: NDArray[Any]
    # λ*; missing where there is no evidence that could fall
    point: NDArray[np.float64]
    # whose verdict falls under too many draws and refits
    fragile: NDArray[np.bool_]
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
        grade[(self.point <= ROBUST) & (share == 1)] = "robust"
        falls = (self.point >= FRAGILE) | self.fragile | (share < MOST_WORLDVIEWS)
        grade[is_case & falls] = "fragile"
        return grade

    def columns(self) -> dict[str, NDArray[Any]]:
        """Give the table: one row per complainant."""
        unknown = np.isnan(self.point)
        without = {name: stands.astype(object) for name, stands in self.without.items()}
        for stands in without.values():
            stands[unknown] = None
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
    _refuse(method)
    found = audit.test_everyone(method.name, k)
    everyone = np.arange(len(found)) if places is None else places
    bound = found.p_value_bound() if bound is None else bound
    cases = everyone[found.comparison.evidence[everyone]]
    others = everyone[_could_appear(found)[everyone]]
    moved = moved_attributes(audit)
    total, done = STEPS + len(moved) + _BEYOND - STEPS, 0
    trial = _Trials(audit, method, k, np.union1d(cases, others))

    def count(steps: int) -> None:
        nonlocal done
        progress(done := done + steps, total)

    point = np.full(len(found), np.nan)
    fewer = [_part(step) for step in reversed(range(STEPS))]
    falls = trial.first(cases, bound[cases], fewer, stands=False, count=count)
    point[cases] = (STEPS - falls) / STEPS

    without = {name: np.zeros(len(found), dtype=np.bool_) for name in moved}
    held = [_part(STEPS, name) for name in moved]
    for name, stands in zip(moved, trial.stands(cases, bound[cases], held), strict=True):
        without[name][cases] = stands
        count(1)

    appears, more = np.full(len(found), np.nan), range(STEPS + 1, _BEYOND + 1)
    level = np.full(len(others), found.alpha)
    rises = trial.first(others, level, [_part(step) for step in more], stands=True, count=count)
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


def find_robustness(audit: Audit, bars: Bars = lambda _: discard_report) -> Audit:
    """Add tipping points to an audit whose plan asks for them, graded by all that is known."""
    if not audit.plan.settings.uncertainty.tipping:
        return audit
    (method, k), results = audit.plan.choose(None, None), audit.results
    found = results.tipping
    if found is None:
        found = find_tipping(audit, method, k, progress=bars("Trying parts of the effect"))
    if results.worldviews is not None:
        found = replace(found, share=results.worldviews.share)
    return replace(audit, results=replace(results, tipping=found))


def find_with_part(audit: Audit, place: int, method: Method, k: int, part: Fraction) -> Findings:
    """Give one complainant's findings with a part of the effect, all others as they are."""
    _refuse(method)
    places, plan = np.array([place]), audit.plan
    found = audit.test_everyone(method.name, k)
    (groups,) = _Trial.of(audit.ground, method, k, places).groups_with(places, [(part, ())])
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
    """What one complainant's groups say with a part λ of the effect.

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
    _refuse(method)
    verdicts, only = audit.test_everyone(), np.array([place])
    is_case = bool(verdicts.comparison.evidence[place])
    bound = verdicts.p_value_bound()[place] if is_case else verdicts.alpha
    ground = _Trial.of(audit.ground, method, k, only)
    steps = range((STEPS if is_case else _BEYOND) + 1)
    groups = ground.groups_with(only, [_part(step) for step in steps])
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


def tipping_of(audit: Audit, place: int) -> Tipping | None:
    """Give one complainant's tipping point of the headline, found for her alone if need be.

    None where the method of the headline has none.
    """
    method, k = audit.plan.choose(None, None)
    if not method.has_tipping:
        return None
    only, known = np.array([place]), audit.results.tipping
    if known is not None:
        return known.take(only)
    return find_tipping(audit, method, k, places=only)


def rules_of(audit: Audit) -> dict[str, str]:
    """Give the rule of each grade, with what is asked of other worldviews if any were compared."""
    compared = audit.results.worldviews is not None
    return {grade: rule + (_COMPARED[grade] if compared else "") for grade, rule in RULES.items()}


def count_grades(tipping: Tipping, verdicts: NDArray[np.object_]) -> dict[str, dict[str, int]]:
    """Count the verdicts of each grade, the strongest verdict first."""
    order = (Verdict.SIGNIFICANT_ADJUSTED, Verdict.SIGNIFICANT, Verdict.EVIDENCE)
    grades = tipping.grade
    graded = {grade: grades == grade for grade in RULES}
    given = {verdict.value: verdicts == verdict.value for verdict in order}
    return {
        verdict: {grade: int((mine & mask).sum()) for grade, mask in graded.items()}
        for verdict, mine in given.items()
    }


def summarise_grades(audit: Audit) -> str:
    """Say how many verdicts of the strongest kind are robust; empty where that is not asked for."""
    results = audit.results
    if results.tipping is None:
        return ""
    counts = count_grades(results.tipping, results.headline.verdicts())
    for verdict, grades in counts.items():
        number = sum(grades.values())
        if number:
            compared = results.worldviews
            others = ("", "", "") if compared is None else _summarise_worldviews(compared)
            return (
                f"If less of the effect of {audit.plan.status_label} is real: of {number:,} "
                f"{verdict} {'verdict' if number == 1 else 'verdicts'}, {grades['robust']:,} "
                f"robust (stand with {ROBUST:.0%} of it{others[0]}), {grades['sensitive']:,} "
                f"sensitive, {grades['fragile']:,} fragile (need {FRAGILE:.0%} of it, or "
                f"fall in draws and refits{others[1]}).{others[2]}"
            )
    return ""


def _summarise_worldviews(compared: WorldviewVerdicts) -> tuple[str, str, str]:
    """Say what the grades ask of other worldviews, and what the strongest verdicts hold under."""
    strongest = compared.strength[:, 0] == compared.strength[:, 0].max()
    total, number = len(compared.names), int(strongest.sum())
    under = compared.stays_under[strongest]
    everywhere = int((under == total).sum())
    said = (
        f" {everywhere:,} of these {number:,} hold under all {total} worldviews that were "
        f"compared, and each under at least {under.min()}."
    )
    return " and under every worldview", f", or under more than half of {total} worldviews", said


def describe_all(
    audit: Audit, found: Findings, place: int | None = None, *, labels: Labels = PLAIN
) -> Robustness:
    """Say how robust each verdict is; all is missing but for the method and k of the headline.

    The findings are those of everyone, or of the complainant at one place. They are data, and have
    the names of the table unless `labels` are given.
    """
    nothing, missing = np.full(len(found), None, dtype=object), np.full(len(found), np.nan)
    plan = replace(audit.plan, labels=labels)
    if (found.method, found.k) != plan.settings.primary:
        others = {"stays_under": missing, "breaks_under": nothing}
        return Robustness(
            tipping=missing,
            grade=nothing,
            line=nothing,
            worldviews={} if audit.results.worldviews is None else others,
        )
    alone = None if place is None else tipping_of(audit, place)
    tipping = audit.measure_tipping() if alone is None else alone
    chosen = slice(None) if place is None else [place]
    summaries = audit.results.summaries
    stays = [summaries[found.method, k].strength[chosen] >= found.strength for k in audit.ks]
    share = missing if found.verdict_share is None else found.verdict_share
    worldviews, total = _stays_under(audit, chosen)
    under = worldviews.get("stays_under", missing)
    worlds = name_worlds(plan)
    lines: dict[Any, str] = {}
    said = nothing.copy()
    for row in np.flatnonzero(~np.isnan(tipping.point)).tolist():
        ks = tuple(k for k, each in zip(audit.ks, stays, strict=True) if each[row])
        key = (float(tipping.point[row]), _known(share[row]), ks, _known(under[row]))
        if key not in lines:
            lines[key] = describe_verdict(
                plan,
                key[0],
                share=key[1],
                worlds=worlds,
                ks=ks,
                worldviews=None if key[3] is None else (int(key[3]), total),
            )
        said[row] = lines[key]
    return Robustness(tipping=tipping.point, grade=tipping.grade, line=said, worldviews=worldviews)


def _known(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def _stays_under(audit: Audit, chosen: Any) -> tuple[dict[str, NDArray[Any]], int]:
    """Give the columns on other worldviews, if any were compared, and the number of all."""
    found = audit.results.worldviews
    if found is None:
        return {}, 0
    number = np.where(found.has_case, found.stays_under, np.nan)
    columns = {"stays_under": number[chosen], "breaks_under": found.breaks_under[chosen]}
    return columns, len(found.names)


def name_worlds(plan: Plan) -> str:
    """Name the other counterfactuals that verdicts were tried in: "refits"."""
    made = plan.settings.uncertainty
    return " and ".join(name for name in ("draws", "refits") if getattr(made, name))


def describe_verdict(
    plan: Plan,
    point: float,
    *,
    share: float | None = None,
    worlds: str = "refits",
    ks: Collection[int] = (),
    worldviews: tuple[int, int] | None = None,
) -> str:
    """Say in one line how robust a verdict is.

    `share` of the `worlds` leave it the same or stronger, as do these group sizes, and so many of
    so many `worldviews`.
    """
    effect = f"of the effect of {plan.status_label}"
    said = (
        f"even if none {effect} is real"
        if not point
        else f"only if all {effect} is real"
        if point == 1
        else f"as long as at least {point:.0%} {effect} is real"
    )
    more = [] if worldviews is None else [f"under {worldviews[0]} of {worldviews[1]} worldviews"]
    more.append(said)
    if share is not None:
        more.append(f"in {floor(100 * share + 1e-9)}% of {worlds}")
    if len(plan.settings.ks) > 1 and ks:
        more.append(_at_sizes(plan.settings.ks, ks))
    return f"holds {', '.join(more)}"


def _at_sizes(every: Sequence[int], ks: Collection[int]) -> str:
    others = [k for k in every if k not in ks]
    if not others:
        return f"at every k from {every[0]} to {every[-1]}"
    first, last = every.index(min(ks)), every.index(max(ks))
    if len(ks) > 2 and last - first == len(ks) - 1:
        said = f"at k = {min(ks)} to {max(ks)}"
    else:
        said = f"at k = {', '.join(map(str, sorted(ks)))}"
    return f"{said} but not at k = {', '.join(map(str, others))}"


def _refuse(method: Method) -> None:
    if not method.needs_counterfactual:
        raise PlanError(
            f"Method {method.name!r} has no tipping point: it needs counterfactuals. "
            "Ask for 'cst_matched' or 'cst_without'."
        )
    if method.count_centers:
        raise PlanError(
            f"Method {method.name!r} asks the decision maker about counterfactuals, which have no "
            "decision on the way from the fact. Ask for 'cst_matched' or 'cst_without'."
        )


def _could_appear(found: Findings) -> NDArray[np.bool_]:
    return ~(found.comparison.significant | found.comparison.insufficient)


def moved_attributes(audit: Audit) -> tuple[str, ...]:
    """Name the attributes that people are compared on and that an intervention changes."""
    moved: set[str] = set()
    for ground in audit.grounds:
        moved = moved.union(*(_moved(ground.study, each) for each in _worlds(ground.world)))
    return tuple(each.name for each in audit.plan.attributes if each.name in moved)


def _worlds(world: World) -> Sequence[Population]:
    """Return the counterfactual worlds: the draws, or the one that there is."""
    if world.draws:
        return world.draws
    return () if world.point is None else (world.point,)


def _moved(study: Study, world: Population) -> set[str]:
    """Name the attributes in which some protected row differs from the fact."""
    rows = study.protected

    def differs(name: str) -> bool:
        here, there = study.population.part(name, rows), world.part(name, rows)
        return not np.array_equal(here.data, there.data)

    return {each.name for each in study.attributes if differs(each.name)}


# a part of the effect, and the attributes in which none of it is
_Part = tuple[Fraction, Collection[str]]


def _part(step: int, *held: str) -> _Part:
    return Fraction(step, STEPS), held


class _Trials:
    """Tries verdicts of one method at one k in other counterfactual worlds, on all grounds."""

    def __init__(self, audit: Audit, method: Method, k: int, places: NDArray[np.intp]) -> None:
        grounds = audit.grounds if len(places) else ()
        self._grounds = [_Trial.of(each, method, k, places) for each in grounds]

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
        """Tell with which parts there is evidence with at most these p-values, on every ground."""
        stands = np.ones((len(parts), len(places)), dtype=np.bool_)
        at_once = self._at_once(places)
        for start in range(0, len(parts), at_once):
            some = slice(start, start + at_once)
            for ground in self._grounds:
                left = np.flatnonzero(stands[some].any(axis=0))
                if len(left):
                    found = ground.compare(places[left], parts[some])
                    beyond = found.interval.p_value > np.tile(bound[left], len(parts[some]))
                    stands[some, left] &= (found.evidence & ~beyond).reshape(-1, len(left))
        return stands

    def _at_once(self, places: NDArray[np.intp]) -> int:
        """Tell how many parts are tried at once; all of them where no one is left."""
        if not len(places):
            return _BEYOND
        return min(ground.at_once(places) for ground in self._grounds)


@dataclass(frozen=True, slots=True)
class _Trial:
    """One method at one k in worlds with a part of the effect.

    Between two values of a grid, centers lie on twentieths of a step, and midway between these: the
    engine measures on a finer scale than that of the audit.
    """

    ground: Ground
    method: Method
    groups: Pair[Group]
    engine: Engine

    @classmethod
    def of(cls, ground: Ground, method: Method, k: int, places: NDArray[np.intp]) -> _Trial:
        """Prepare the finer scale, which is kept for a page about one person."""
        engine = ground.engine.finer(k, STEPS // 2, keep=len(places) == 1)
        return cls(ground, method, ground.tally.at(method, ground.tally.ks.index(k)), engine)

    def at_once(self, places: NDArray[np.intp]) -> int:
        """Return how many parts of the effect are tried at once for some complainants."""
        world = world_with_part(self.ground, _part(1)[0])
        return self.engine.at_once(self.ground.study.people[places], world)

    def compare(self, places: NDArray[np.intp], parts: Sequence[_Part]) -> Comparison:
        """Compare the groups of some complainants, with one part of the effect after the other."""
        pairs = self.groups_with(places, parts, verdicts_only=True)
        plan = self.ground.plan
        return compare_groups(plan, self.method, join_pairs(pairs), depth="significance")

    def groups_with(
        self, places: NDArray[np.intp], parts: Sequence[_Part], *, verdicts_only: bool = False
    ) -> list[Pair[Group]]:
        """Return the groups of some complainants, with each part of the effect.

        With `verdicts_only`, nothing more may be known of those without evidence.
        """
        tallies = self.engine.tallies(
            (world_with_part(self.ground, part, held=held) for part, held in parts),
            [self.method],
            who=self.ground.study.people[places],
            needed=evidence_by(self.ground.plan) if verdicts_only else None,
        )
        doubt, control = self.groups.test.share.doubt, self.groups.control.take(places)
        doubt = None if doubt is None else doubt[places]
        return [
            Pair(control=control, test=each.at(self.method, 0).test.with_doubt(doubt))
            for each in tallies
        ]


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
