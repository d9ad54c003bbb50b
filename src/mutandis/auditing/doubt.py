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
from mutandis.engine.engine import Engine
from mutandis.engine.study import World
from mutandis.engine.tally import Pair, join_pairs
from mutandis.errors import EquationError, MutandisWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.auditing.results import Ground
    from mutandis.data.population import Population
    from mutandis.engine.tally import Group, Method, Tally
    from mutandis.geometry.index import Progress
    from mutandis.verdicts.findings import Findings

__all__ = ["DRAWS", "REFITS", "doubt_verdict", "refits_of", "weigh_doubt"]

DRAWS, REFITS = 20, 20
"""How many draws and refits are made where nothing else is asked for."""

# with more, refits take longer than the reader of a case waits, and coefficients are known well
_MANY_ROWS = 100_000
# pairs of groups that are compared at once
_TOGETHER = 1 << 13


def refits_of(plan: Plan, number: int) -> Sequence[Population]:
    """Prepare the counterfactuals of equations that are fitted to resampled rows."""
    if plan.worldview is None or not number:
        return ()
    # not the numbers of the draws
    rng = np.random.default_rng([plan.settings.seed or 0, 1])
    return plan.worldview.refits(plan.population, do=plan.do, refits=number, rng=rng)


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
    refittable = [method for method in methods if not method.count_centers]
    tallies = ground.engine.tallies
    refitted: list[Tally] = []
    try:
        if refittable:
            worlds = (World(point=each) for each in refits)
            refitted = list(tallies(worlds, refittable, progress=progress))
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
    indexes = range(len(ground.tally.ks))
    matched = next((method for method in refittable if method.matched), None)
    doubts: dict[int, NDArray[np.float64]] = {}
    if len(refitted) > 1 and matched is not None:
        doubts = {
            index: _variance(ground.plan, _pairs(ground, matched, index, refitted))
            for index in indexes
        }
    ground = replace(ground, tally=ground.tally.with_doubt(doubts))
    shares: dict[str, NDArray[np.float64]] = {}
    for method in methods:
        worlds_of = [*(refitted if method in refittable else ()), *redrawn]
        if worlds_of:
            columns = (_stays(ground, method, index, worlds_of, doubts) for index in indexes)
            shares[method.name] = np.column_stack(list(columns))
    return replace(ground, verdict_shares=shares)


def _stays(
    ground: Ground,
    method: Method,
    index: int,
    tallies: Sequence[Tally],
    doubts: dict[int, NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Compute the share of worlds in which each verdict at one k is the same or stronger."""
    found = evaluate_ground(ground, (method.name, ground.tally.ks[index]), depth="significance")
    doubt = doubts.get(index) if method.matched else None
    pairs = _pairs(ground, method, index, tallies, doubt=doubt)
    return _share_that_stays(ground.plan, method, found, found.p_value_bound(), pairs)


def _pairs(
    ground: Ground,
    method: Method,
    index: int,
    tallies: Iterable[Tally],
    *,
    doubt: NDArray[np.float64] | None = None,
) -> list[Pair[Group]]:
    """Return the control groups of an audit with the test groups of other worlds."""
    control = ground.tally.at(method, index).control
    return [
        Pair(control=control, test=each.at(method, index).test.with_doubt(doubt))
        for each in tallies
    ]


def _variance(plan: Plan, pairs: Sequence[Pair[Group]]) -> NDArray[np.float64]:
    """Compute the variance over refits, in which empty groups are left out."""
    kind = plan.outcome.kind
    shares = np.array([kind.doubted(each.control.share, each.test.share) for each in pairs])
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
    """Compute the share of worlds in which each verdict has a p-value of at most its bound.

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


# --- one complainant -----------------------------------------------------------------------------


def doubt_verdict(audit: Audit, place: int) -> float | None:
    """Return the verdict share of one complainant's headline, from refits made for it alone.

    Only the people of the control group are matched again. None where there is no verdict that
    could fall, where the headline is not the matched comparison, and where refits take too long
    or the equations cannot be fitted to resampled rows.
    """
    plan, ground, worldview = audit.plan, audit.ground, audit.plan.worldview
    (method, k), found, own = plan.choose(None, None), audit.results.headline, np.array([place])
    if worldview is None or worldview.latents or len(plan.population) > _MANY_ROWS:
        return None
    if not method.matched or not found.comparison.evidence[place]:
        return None
    engine = Engine(replace(ground.study, ks=(k,)), threads=ground.engine.threads)
    try:
        worlds = [World(point=each) for each in ground.refits()]
    except EquationError:
        return None
    tallies = engine.tallies(worlds, [method], who=ground.study.people[own])
    pairs = [each.at(method, 0) for each in tallies]
    doubt = _variance(plan, pairs)
    pairs = [Pair(control=each.control, test=each.test.with_doubt(doubt)) for each in pairs]
    share = _share_that_stays(plan, method, found.take(own), found.p_value_bound()[own], pairs)
    return float(share[0])
