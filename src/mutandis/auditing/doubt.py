"""Doubt about counterfactuals: verdicts under other draws of them, and under refitted equations.

Draws differ in the noise that the facts leave open, refits in the coefficients that were estimated
from the table. Over the refits, the share of refusals in a matched test group varies; that variance
is added to the one under the null, so that a test does not take estimates for facts.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.results import compare_groups, evaluate_ground
from mutandis.decision.maker import describe_maker
from mutandis.decision.rule import Rule
from mutandis.engine.engine import Engine
from mutandis.engine.study import World
from mutandis.engine.tally import Pair, join_pairs
from mutandis.errors import EquationError, MutandisWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.auditing.results import Ground
    from mutandis.data.population import Population
    from mutandis.engine.methods import Method
    from mutandis.engine.tally import Group, Tally
    from mutandis.geometry.index import Progress
    from mutandis.verdicts.findings import Findings

__all__ = ["DRAWS", "REFITS", "doubt_decision", "doubt_verdict", "refits_of", "weigh_doubt"]

DRAWS, REFITS = 20, 20
"""How often equations are refitted where nothing else is said."""

# with more, refits take longer than the reader of a case waits, and coefficients are known well
_MANY_ROWS = 100_000
# pairs of groups that are compared at once
_TOGETHER = 1 << 13


def weigh_doubt(
    ground: Ground,
    *,
    draws: Iterable[Population],
    refits: Iterable[Population],
    decide: Callable[[Population], NDArray[Any] | None],
    progress: Progress,
) -> Ground:
    """Add the variance over refits to a ground, and how often each verdict stays.

    `decide` asks b() about another counterfactual world.
    """
    methods = [method for method in ground.plan.methods if method.needs_counterfactual]
    # b() may be slow or cost money: refits leave out the methods that ask it
    chosen = [method for method in methods if not method.count_centers]
    tallies = ground.engine.tallies
    refitted: list[Tally] = []
    try:
        if chosen:
            refitted = list(
                tallies((World(point=each) for each in refits), chosen, progress=progress)
            )
    except EquationError as error:
        warnings.warn(
            f"The equations cannot be fitted to resampled rows: {error} No verdict takes the doubt "
            "about them into account.",
            MutandisWarning,
            stacklevel=2,
        )
    redrawn: list[Tally] = []
    if methods:
        others = ground.world.alone()
        if not ground.world.parts:
            others = (World(point=each, decided=decide(each)) for each in draws)
        redrawn = list(tallies(others, methods, progress=progress))
    doubts = _doubts(ground, chosen, refitted)
    ground = replace(ground, tally=ground.tally.with_doubt(doubts))
    shares = {
        method.name: _verdict_shares(
            ground, method, [*(refitted if method in chosen else ()), *redrawn], doubts
        )
        for method in methods
    }
    return replace(ground, verdict_shares={n: each for n, each in shares.items() if each.size})


def _verdict_shares(
    ground: Ground,
    method: Method,
    tallies: Sequence[Tally],
    doubts: Mapping[int, NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Compute each verdict's share at every k; empty where a method has no other worlds."""
    columns = []
    for index, k in enumerate(ground.tally.ks):
        control = ground.tally.at(method, index).control
        tests = [each.at(method, index).test for each in tallies]
        if method.matched:
            tests = [each.with_doubt(doubts.get(index)) for each in tests]
        if tests:
            found = evaluate_ground(ground, (method.name, k), depth="significance")
            pairs = [Pair(control=control, test=each) for each in tests]
            columns.append(
                _share_that_stays(ground.plan, method, found, found.p_value_bound(), pairs)
            )
    return np.column_stack(columns) if columns else np.empty((0, 0))


def doubt_verdict(audit: Audit, place: int) -> float | None:
    """Give the verdict share of one complainant's headline, from refits made for her alone.

    Only the people of her control group are matched again. None where there is no verdict that
    could fall, where the headline is not the matched comparison, and where refits take too long
    or the equations cannot be fitted to resampled rows.
    """
    plan = audit.plan
    method, k = plan.choose(None, None)
    worldview, rows = plan.worldview, len(plan.population)
    if not method.matched or worldview is None or worldview.latents or rows > _MANY_ROWS:
        return None
    found, own = audit.results.headline, np.array([place])
    if not found.comparison.evidence[place]:
        return None
    ground = audit.ground
    engine = Engine(replace(ground.study, ks=(k,)), threads=ground.engine.threads)
    try:
        worlds = [World(point=each) for each in audit.ground.refits()]
    except EquationError:
        return None
    tallies = list(engine.tallies(worlds, [method], who=audit.study.people[own]))
    doubt = _variance(np.array([_doubted(plan, each.at(method, 0)) for each in tallies]))
    pairs = [
        Pair(control=pair.control, test=pair.test.with_doubt(doubt))
        for pair in (each.at(method, 0) for each in tallies)
    ]
    share = _share_that_stays(plan, method, found.take(own), found.p_value_bound()[own], pairs)
    return float(share[0])


def doubt_decision(audit: Audit, place: int) -> tuple[int, str] | None:
    """Count the draws and refits in which b() decides on one counterfactual as it does here.

    Beside the count, all of them are named: "20 refits". None unless b() is a rule, which can be
    asked at any time, and where refits take too long or cannot be made.
    """
    plan, world = audit.plan, audit.ground.world
    if not plan.outcome.kind.two_sided or len(audit.grounds) > 1:
        return None
    described = {} if plan.decision is None else describe_maker(plan.decision)
    if described.get("kind") != "rule" or plan.worldview is None or plan.worldview.latents:
        return None
    would_be = world.decided
    if would_be is None or len(would_be) > _MANY_ROWS:
        return None
    rule, row = Rule.parse(described["rule"]), audit.study.people[[place]]

    def refuses(other: Population) -> bool:
        person = other.take(row)
        columns = {name: person.as_read_by_rules(name) for name in rule.names}
        return not rule.decide_columns(columns, rows=1)[0]

    try:
        refused = [refuses(each) for each in audit.ground.refits()]
    except EquationError:
        return None
    drawn = world.decided_parts
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


def _doubts(
    ground: Ground, methods: Sequence[Method], refitted: Sequence[Tally]
) -> dict[int, NDArray[np.float64]]:
    """Compute the variance over refits of matched groups, by the index of k."""
    matched = next((method for method in methods if method.matched), None)
    if len(refitted) < 2 or matched is None:
        return {}
    return {
        index: _variance(
            np.array(
                [
                    _doubted(
                        ground.plan,
                        Pair(
                            control=ground.tally.at(matched, index).control,
                            test=each.at(matched, index).test,
                        ),
                    )
                    for each in refitted
                ]
            )
        )
        for index in range(len(ground.tally.ks))
    }


def _doubted(plan: Plan, pair: Pair[Group]) -> NDArray[np.float64]:
    """Return what varies over refits."""
    return plan.outcome.kind.doubted(pair.control.share, pair.test.share)


def _variance(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the variance of each column, whose empty groups are left out."""
    known = ~np.isnan(shares)
    number = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, shares, 0.0).sum(axis=0) / number
    squares = np.where(known, shares - mean, 0.0) ** 2
    return np.asarray(squares.sum(axis=0) / np.maximum(number - 1, 1), dtype=np.float64)


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
