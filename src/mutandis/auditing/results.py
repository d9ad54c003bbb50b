"""What an audit holds: what was counted on each ground, and the verdicts that follow.

`assess` turns counts into results. A run and an audit that is opened from its folder both call it,
so nothing is computed again when results are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import fsum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.engine.tally import METHODS, Pair, too_small
from mutandis.verdicts.compare import adjust, compare
from mutandis.verdicts.findings import Findings, Verdict, join_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.answer import Answer
    from mutandis.auditing.plan import Plan
    from mutandis.auditing.robustness import Tipping
    from mutandis.auditing.sham import ShamAudits
    from mutandis.auditing.worldviews import WorldviewVerdicts
    from mutandis.data.population import Population
    from mutandis.engine.engine import Engine
    from mutandis.engine.study import Study, World
    from mutandis.engine.tally import Group, Method, Tally
    from mutandis.outcomes.outcome import Comparison, Depth

__all__ = [
    "Ground",
    "Results",
    "Summary",
    "adjust_all",
    "assess",
    "compare_groups",
    "decided_on_all",
    "evaluate",
    "evaluate_ground",
]

# numbers that are summed at a time: as objects they take four times the memory
_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ground:
    """One intervention: who is compared in which world, and what was counted."""

    plan: Plan  # of the audit on this ground alone
    engine: Engine
    world: World
    tally: Tally
    computed: Mapping[str, Any]  # what the run observed, for the provenance
    # returns the counterfactuals of refitted equations, which are made once
    refits: Callable[[], Sequence[Population]]
    # by method: the share of draws and refits under which the verdict on each complainant (row) is
    # the same or stronger, at each k (column)
    verdict_shares: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    answer: Answer | None = None  # None where only verdicts on complainants were asked for

    @property
    def name(self) -> str:
        """The protected attribute."""
        return self.plan.protections[0].attribute

    @property
    def study(self) -> Study:
        """Who is compared with whom, on what, and how."""
        return self.engine.study

    def decided(self) -> NDArray[Any] | None:
        """Return the complainants' counterfactual outcomes as codes; None if b() is not known."""
        return None if self.world.decided is None else self.world.decided[self.study.people]

    def expected(self) -> NDArray[Any] | None:
        """Return all rows' counterfactual outcomes as codes, averaged over draws."""
        if self.world.decided is None:
            return None
        kind = self.plan.outcome.kind
        return kind.expected(self.world.decided, self.study.people, self.world.decided_parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What one method finds at one k."""

    counts: Mapping[str, Any]  # a row of the counts table
    mean: float  # of Δp over everyone who can be compared
    # of each complainant
    q_value: NDArray[np.float64]
    strength: NDArray[np.int8]  # of the verdict, see `Verdict.strength`

    @classmethod
    def of(cls, found: Findings) -> Summary:
        """Summarise findings."""
        codes, comparison = found.verdict_codes(), found.comparison
        compared = comparison.delta_p[~comparison.insufficient]
        blocks = (compared[start : start + _BLOCK] for start in range(0, len(compared), _BLOCK))
        total = fsum(each for block in blocks for each in block.tolist())
        return cls(
            counts=MappingProxyType(found.counts()),
            mean=total / len(compared) if len(compared) else float("nan"),
            q_value=found.q_value,
            strength=np.array([each.strength for each in Verdict], dtype=np.int8)[codes],
        )


_Key = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What follows from the counts of an audit, by method and k."""

    summaries: Mapping[_Key, Summary]
    headline: Findings  # the primary ones, with p-values and without bounds
    # the same for each ground, where several were audited one by one
    grounds: tuple[Results, ...] = ()
    # of the headline, where the plan asks for them
    tipping: Tipping | None = None
    worldviews: WorldviewVerdicts | None = None
    sham: ShamAudits | None = None

    def records(self) -> list[dict[str, Any]]:
        """Return the counts as plain records, one per method and k."""
        return [dict(each.counts) for each in self.summaries.values()]


def assess(plan: Plan, grounds: Sequence[Ground], *, like: Results | None = None) -> Results:
    """Test every complainant under every method and k.

    `like` are results at the same levels with another headline: their tests stay.
    """
    primary = plan.settings.primary
    keys = [(each.name, k) for each in plan.methods for k in plan.settings.ks]
    several = len(grounds) > 1
    summaries: list[dict[_Key, Summary]] = [{} for _ in range(len(grounds) + several)]
    headlines: list[Findings] = []
    for key in keys if like is None else [primary]:
        found = [evaluate_ground(ground, key, depth="significance") for ground in grounds]
        if several:
            found.append(_join(plan, grounds, found))
        for known, each in zip(summaries, found, strict=True):
            known[key] = Summary.of(each)
        if key == primary:
            headlines = found
        del found  # before the next ones take as much memory
    if like is not None:
        summaries = [dict(each.summaries) for each in (*like.grounds, like)]
    *parts, whole = (
        Results(summaries=MappingProxyType(each), headline=headline)
        for each, headline in zip(summaries, headlines, strict=True)
    )
    return replace(whole, grounds=tuple(parts))


def evaluate(
    plan: Plan,
    grounds: Sequence[Ground],
    key: _Key,
    results: Results,
    *,
    depth: Depth = "bounds",
    places: NDArray[np.intp] | None = None,
) -> Findings:
    """Return the findings under one method and k, on all complainants or on some."""
    parts = results.grounds or (results,)
    found = [
        evaluate_ground(ground, key, depth=depth, places=places, known=known.summaries[key])
        for ground, known in zip(grounds, parts, strict=True)
    ]
    return _join(plan, grounds, found, places=places, known=results.summaries[key])


def evaluate_ground(
    ground: Ground,
    key: _Key,
    *,
    depth: Depth,
    places: NDArray[np.intp] | None = None,
    known: Summary | None = None,
) -> Findings:
    """Compare the groups of complainants on one ground; q-values may be known."""
    plan, study, method = ground.plan, ground.study, METHODS[key[0]]
    index, kind = plan.settings.ks.index(key[1]), plan.outcome.kind
    groups = ground.tally.at(method, index)
    if places is None:
        groups = Pair(control=groups.control.kept(), test=groups.test.kept())
    else:
        groups = Pair(control=groups.control.take(places), test=groups.test.take(places))
    chosen = slice(None) if places is None else places
    rows, would_be = study.people[chosen], ground.decided()
    own, share = study.outcomes[rows], _verdict_share(ground, method, index)
    comparison = compare_groups(plan, method, groups, depth=depth)
    found = Findings(
        method=method.name,
        k=key[1],
        ids=plan.population.ids[rows],
        outcome=plan.outcome.recorded(rows),
        outcome_cf=None if would_be is None else kind.values(would_be[chosen]),
        is_negative=kind.is_worse(own, groups.test.share, tau=plan.rule.tau),
        kind=kind,
        control=groups.control,
        test=groups.test,
        comparison=comparison,
        q_value=adjust_all(plan, method, comparison.interval.p_value)
        if known is None
        else known.q_value[chosen],
        alpha=plan.settings.alpha,
        measure=plan.settings.measure,
        verdict_share=None if share is None else share[chosen],
    )
    if ground.tally.matches is not None and method.matched:
        p_own, own_case = kind.own_case(own, ground.tally.matches.take(chosen), plan.rule)
        found = replace(found, p_own=p_own, own_case=own_case)
    return found.kept()


def _verdict_share(ground: Ground, method: Method, index: int) -> NDArray[np.float64] | None:
    if not ground.plan.settings.uncertainty.worlds:
        return None
    known = ground.verdict_shares.get(method.name)
    return np.full(len(ground.study.people), np.nan) if known is None else known[:, index]


def adjust_all(plan: Plan, method: Method, p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjust for everyone whom a method was to compare: the matched one drops those unlike."""
    if plan.settings.evidence.adjust == "none":
        # what was not adjusted must not count as significant after adjustment
        return np.full_like(p_values, np.nan)
    if not method.matched:
        return adjust(p_values, method=plan.settings.evidence.adjust)
    # means of few people are compared and not tested
    untested = np.isnan(p_values)
    adjusted = adjust(np.where(untested, 1.0, p_values), method=plan.settings.evidence.adjust)
    return np.where(untested, np.nan, adjusted)


def _join(
    plan: Plan,
    grounds: Sequence[Ground],
    found: Sequence[Findings],
    *,
    places: NDArray[np.intp] | None = None,
    known: Summary | None = None,
) -> Findings:
    """Join the findings on several grounds; of one alone, there is nothing to join."""
    if len(found) == 1:
        return found[0]
    chosen = slice(None) if places is None else places
    would_be = decided_on_all(plan, grounds)
    parts = {each.name: one for each, one in zip(grounds, found, strict=True)}
    method = METHODS[found[0].method]

    def q_values(comparison: Comparison) -> NDArray[np.float64]:
        return (
            adjust_all(plan, method, comparison.interval.p_value)
            if known is None
            else known.q_value[chosen]
        )

    return join_findings(
        parts,
        worse=plan.rule.worse,
        outcome_cf=None if would_be is None else plan.outcome.kind.values(would_be[chosen]),
        q_values=q_values,
    )


def decided_on_all(plan: Plan, grounds: Sequence[Ground]) -> NDArray[Any] | None:
    """Return the complainants' outcomes, whichever attribute is intervened on.

    Treated worse on every ground means: favourable under every intervention. Treated better on
    every one means: unfavourable under each.
    """
    known = [each for each in (ground.decided() for ground in grounds) if each is not None]
    if not known:
        return None
    # True is more than False, and more steps of a score are worse
    worst = np.max if plan.rule.worse else np.min
    return np.asarray(worst(known, axis=0), dtype=known[0].dtype)


def compare_groups(
    plan: Plan, method: Method, groups: Pair[Group], *, depth: Depth = "bounds"
) -> Comparison:
    """Compare both groups of every complainant; p-values or bounds only where asked for."""
    return compare(
        groups.control.share,
        groups.test.share,
        plan.rule,
        # centers alone, which counterfactual fairness compares, have no test
        depth=depth if method.count_neighbours else "evidence",
        insufficient=too_small(groups, method, least=plan.settings.similarity.min_group),
    )
