"""Doubt about counterfactuals: verdicts under other draws of them, and under refitted equations.

Draws differ in the noise that the facts leave open, refits in the coefficients that were estimated
from the table. Over the refits, the share of refusals in a matched test group varies; that variance
is added to the one under the null, so that a test does not take estimates for facts.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mutandis.auditing.group_comparison import compare_groups
from mutandis.decision.maker import describe_maker
from mutandis.decision.rule import Rule
from mutandis.errors import EquationError, MutandisWarning
from mutandis.evidence.group_builder import SharedSpaces
from mutandis.evidence.groups import join_pairs
from mutandis.evidence.methods import METHODS
from mutandis.evidence.semantics import build_groups, regroup
from mutandis.evidence.spaces import restrict_complainants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.data.population import Population
    from mutandis.evidence.findings import Findings
    from mutandis.evidence.groups import Group, Pair
    from mutandis.evidence.methods import Method
    from mutandis.evidence.semantics import Situation
    from mutandis.outcomes.outcome import Kind
    from mutandis.search.engine import Progress

__all__ = ["DRAWS", "REFITS", "doubt_decision", "doubt_verdict", "refits_of", "weigh_doubt"]

DRAWS, REFITS = 20, 20
"""How often equations are refitted where nothing else is said."""

# with more, refits take longer than the reader of a case waits, and coefficients are known well
_MANY_ROWS = 100_000
# pairs of groups that are compared at once
_TOGETHER = 1 << 13

_World = dict[tuple[str, int], "Pair[Group]"]


def weigh_doubt(
    audit: Audit,
    *,
    draws: Iterable[Population],
    refits: Iterable[Population],
    decide: Callable[[Population], NDArray[np.bool_] | None],
    progress: Progress,
) -> Audit:
    """Add the variance over refits to an audit, and how often each verdict stays.

    `decide` asks b() about another counterfactual world.
    """
    methods = [method for method in audit.plan.methods if method.needs_counterfactual]
    sizes, shared = range(len(audit.ks)), SharedSpaces()
    here = {(m.name, index): audit.grouping.at(m, index) for m in methods for index in sizes}

    def search(others: Iterable[Situation], chosen: Sequence[Method]) -> list[_World]:
        """Search for the test groups in other worlds; control groups stay as they are."""
        groups = regroup(
            others,
            chosen,
            control=audit.grouping.control,
            shared=shared,
            progress=progress,
        )
        return [
            {place: replace(here[place], test=test) for place, test in world.items()}
            for world in groups
        ]

    def redraw() -> list[_World]:
        """Take the groups of each draw: where all of them were averaged, they are known."""
        if not audit.situation.draws:
            others = (_in_world(audit.situation, world, decide(world)) for world in draws)
            return search(others, methods)
        known = [
            {
                (m.name, index): audit.grouping.at(m, index, draw=number)
                for m in methods
                if not m.matched
                for index in sizes
            }
            for number in range(len(audit.situation.draws))
        ]
        others = (_in_world(audit.situation, world) for world in audit.situation.draws)
        found = search(others, [method for method in methods if method.matched])
        return [one | other for one, other in zip(known, found, strict=True)]

    # b() may be slow or cost money: refits leave out the methods that ask it
    chosen = [method for method in methods if not method.count_centers]
    refitted: list[_World] = []
    try:
        if chosen:
            refitted = search((_in_world(audit.situation, world) for world in refits), chosen)
    except EquationError as error:
        warnings.warn(
            f"The equations cannot be fitted to resampled rows: {error} No verdict takes the doubt "
            "about them into account.",
            MutandisWarning,
            stacklevel=2,
        )
    worlds = [*refitted, *(redraw() if methods else ())]
    doubts = _doubts(refitted, audit.plan.outcome.kind)
    audit = replace(audit, grouping=audit.grouping.with_doubt(doubts))
    shares = {method.name: _verdict_shares(audit, method, worlds, doubts) for method in methods}
    return replace(audit, verdict_shares={n: each for n, each in shares.items() if each.size})


def _verdict_shares(
    audit: Audit,
    method: Method,
    worlds: Sequence[_World],
    doubts: Mapping[int, NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Give each verdict's share at every k; empty where a method has no part in these worlds."""
    columns = []
    for index, k in enumerate(audit.ks):
        pairs = [world[method.name, index] for world in worlds if (method.name, index) in world]
        if method.matched:
            pairs = [_doubtful(pair, doubts.get(index)) for pair in pairs]
        if pairs:
            found = audit.compute_findings(method.name, k, depth="significance")
            columns.append(
                _share_that_stays(audit.plan, method, found, found.p_value_bound(), pairs)
            )
    return np.column_stack(columns) if columns else np.empty((0, 0))


def doubt_verdict(audit: Audit, place: int) -> float | None:
    """Give the verdict share of one complainant's headline, from refits made for her alone.

    Only the people of her control group are matched again. None where there is no verdict that
    could fall, where the headline is not the matched comparison, and where refits take too long
    or the equations cannot be fitted to resampled rows.
    """
    plan, situation = audit.plan, audit.situation
    method, k = plan.choose(None, None)
    worldview, rows = plan.worldview, len(plan.population)
    if not method.matched or worldview is None or worldview.latents or rows > _MANY_ROWS:
        return None
    found, own = audit.test_everyone(), np.array([place])
    if not found.comparison.evidence[place]:
        return None
    row = situation.complainants[own]
    ids = audit.members(place, method.name, k).control.ids
    group = np.union1d(row, np.flatnonzero(np.isin(plan.population.ids, ids)))
    strata = [
        replace(each, complainants=row, control=np.intersect1d(group, each.control))
        for each in restrict_complainants(situation.strata, row)
    ]

    shared = SharedSpaces()
    hers = replace(situation, strata=tuple(strata), fitted_on=situation.strata, ks=(k,))
    try:
        others = [_in_world(hers, world) for world in audit.refits]
    except EquationError:
        return None
    first = build_groups(others[0], [method], shared=shared, counts_only=True)
    here = first.at(method, 0)
    groups = regroup(others, [method], control=first.control, shared=shared)
    worlds: list[_World] = [
        {place: replace(here, test=test) for place, test in world.items()} for world in groups
    ]
    doubt = _doubts(worlds, plan.outcome.kind)[0]
    pairs = [_doubtful(world[method.name, 0], doubt) for world in worlds]
    share = _share_that_stays(plan, method, found.take(own), found.p_value_bound()[own], pairs)
    return float(share[0])


def doubt_decision(audit: Audit, place: int) -> tuple[int, str] | None:
    """Count the draws and refits in which b() decides on one counterfactual as it does here.

    Beside the count, all of them are named: "20 refits". None unless b() is a rule, which can be
    asked at any time, and where refits take too long or cannot be made.
    """
    plan, situation = audit.plan, audit.situation
    if not plan.outcome.kind.two_sided:
        return None
    described = {} if plan.decision is None else describe_maker(plan.decision)
    if described.get("kind") != "rule" or plan.worldview is None or plan.worldview.latents:
        return None
    would_be = situation.is_negative_cf
    if would_be is None or len(would_be) > _MANY_ROWS:
        return None
    rule, row = Rule.parse(described["rule"]), situation.complainants[[place]]

    def refuses(world: Population) -> bool:
        her = world.take(row)
        columns = {name: her.as_read_by_rules(name) for name in rule.names}
        return not rule.decide_columns(columns, rows=1)[0]

    try:
        refused = [refuses(world) for world in audit.refits]
    except EquationError:
        return None
    drawn = situation.refused_in_draws
    worlds = f"{len(refused)} refits"
    if drawn is not None:
        refused += drawn[:, place].tolist()
        worlds = f"{len(refused)} draws and refits"
    return refused.count(bool(would_be[row[0]])), worlds


def refits_of(plan: Plan, number: int) -> Sequence[Population]:
    """Prepare the counterfactuals of equations that are fitted to resampled rows."""
    if plan.worldview is None or not number:
        return ()
    # not the numbers of the draws
    rng = np.random.default_rng([plan.settings.seed or 0, 1])
    return plan.worldview.refits(plan.population, do=plan.do, refits=number, rng=rng)


def _in_world(
    situation: Situation, world: Population, would_be: NDArray[np.bool_] | None = None
) -> Situation:
    return replace(
        situation, counterfactual=world, is_negative_cf=would_be, draws=(), refused_in_draws=None
    )


def _doubts(refitted: Sequence[_World], kind: Kind) -> dict[int, NDArray[np.float64]]:
    """Return the variance over refits in matched groups, by the index of k."""
    if len(refitted) < 2:
        return {}

    def doubted(pair: Pair[Group]) -> NDArray[np.float64]:
        return kind.doubted(pair.control.share, pair.test.share)

    return {
        index: _variance(np.array([doubted(world[name, index]) for world in refitted]))
        for name, index in refitted[0]
        if METHODS[name].matched
    }


def _variance(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the variance of each column, whose empty groups are left out."""
    known = ~np.isnan(shares)
    number = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, shares, 0.0).sum(axis=0) / number
    squares = np.where(known, shares - mean, 0.0) ** 2
    return np.asarray(squares.sum(axis=0) / np.maximum(number - 1, 1), dtype=np.float64)


def _doubtful(pair: Pair[Group], doubt: NDArray[np.float64] | None) -> Pair[Group]:
    if doubt is None:
        return pair
    test = pair.test
    return replace(pair, test=replace(test, share=replace(test.share, doubt=doubt)))


def _share_that_stays(
    plan: Plan,
    method: Method,
    found: Findings,
    bound: NDArray[np.float64],
    pairs: Sequence[Pair[Group]],
) -> NDArray[np.float64]:
    """Give the share of worlds in which each verdict is the same or stronger.

    It is missing where there is no evidence that could stay.
    """
    stays = np.zeros(len(found))
    # of few people, all worlds are compared in hardly more time than one
    some = max(1, _TOGETHER // max(1, len(found)))
    for start in range(0, len(pairs), some):
        worlds = pairs[start : start + some]
        other = compare_groups(plan, method, join_pairs(worlds), depth="significance")
        # a comparison of two outcomes has no p-value
        stands = other.evidence & ~(other.interval.p_value > np.tile(bound, len(worlds)))
        stays += stands.reshape(len(worlds), -1).sum(axis=0)
    return np.where(found.comparison.evidence, stays / len(pairs), np.nan)
