"""Run a plan: counterfactuals, decisions, one search, all methods and all k; and its progress."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from mutandis.auditing.answer import answer_ground
from mutandis.auditing.audit import Audit
from mutandis.auditing.doubt import REFITS, refits_of, weigh_doubt
from mutandis.auditing.provenance import observe, record
from mutandis.auditing.results import Ground, assess
from mutandis.auditing.robustness import find_robustness
from mutandis.auditing.worldviews import find_worldview_verdicts
from mutandis.config.fields import Size, check
from mutandis.data.columns import frozen
from mutandis.data.population import as_overlay, patch_rows
from mutandis.decision.maker import compare_with_record, decide
from mutandis.decision.rule import Rule
from mutandis.engine.engine import Engine
from mutandis.engine.study import Study, World
from mutandis.engine.tally import Center
from mutandis.errors import MutandisWarning, PlanError
from mutandis.geometry.index import discard_progress
from mutandis.mapped import arrays_in_files
from mutandis.workers import open_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from distributed import Client
    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.data.population import Population
    from mutandis.decision.maker import DecisionMaker
    from mutandis.geometry.index import Progress
    from mutandis.outcomes.outcome import Outcome
    from mutandis.scm.counterfactual import Counterfactuals
    from mutandis.verdicts.findings import Findings
    from mutandis.workers import Workers

__all__ = ["count_quietly", "find_headlines", "refits_once", "run_plan", "study_of"]

Report = Callable[[int, int], None]
"""Is called with the number of complainants done, and of all."""

Bars = Callable[[str], Report]
"""Makes a bar with a title."""


def run_plan(
    plan: Plan,
    *,
    threads: int | None,
    progress: bool | Report | None,
    cluster: str | Client | Workers | None = None,
    memory: str | None = None,
    scratch: str | PathLike[str] | None = None,
    bars: Bars | None = None,
) -> Audit:
    """Run a plan; the parameters are those of `Plan.run`, and `bars` makes a bar for each step."""
    number = -1 if threads in (None, -1) else check("threads", Size, threads)
    folder = None if scratch is None else Path(scratch)
    with ExitStack() as stack:
        workers = stack.enter_context(open_workers(cluster, folder, memory, threads=number))
        in_files = nullcontext() if workers is None else arrays_in_files(workers.folder)
        with _follow_run(plan, progress=progress, bars=bars) as steps, in_files:
            agreement = _compare_with_record(plan)
            grounds = tuple(
                _count(each, agreement, threads=number, workers=workers, progress=steps.search)
                for each in plan.by_ground()
            )
            audit = Audit(
                plan=plan,
                grounds=grounds,
                results=assess(plan, grounds),
                provenance=record(plan, [each.computed for each in grounds]),
            )
            audit = _find_what_is_asked(audit, steps.bars)
        if workers is not None:  # the audit goes on asking them
            finalize(workers, stack.pop_all().close)
        return audit


def _find_what_is_asked(audit: Audit, bars: Bars) -> Audit:
    """Add verdicts under other worldviews and tipping points, where the plan asks for them."""
    if audit.plan.settings.uncertainty.compares_worldviews:
        compared = find_worldview_verdicts(audit, bars("Auditing under worldviews"))
        audit = replace(audit, results=replace(audit.results, worldviews=compared))
    if not audit.plan.settings.uncertainty.tipping:
        return audit
    return find_robustness(audit, bars("Trying parts of the effect"))


def count_quietly(plan: Plan, like: Engine) -> Ground:
    """Run a plan on one ground for its counts of verdicts, without progress or warnings.

    It reuses the threads and workers of an engine.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        ground, _ = _search(
            plan,
            Engine(study_of(plan), threads=like.threads, workers=like.workers),
        )
    ground.engine.release()
    return ground


def find_headlines(audit: Audit, plans: Iterable[Plan]) -> Iterator[Findings]:
    """Find the headlines of plans of one method and k that differ in their worldview.

    They have the same control groups as the audit, which are searched once.
    """
    engines: list[Engine] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        for plan in plans:
            for ground in () if engines else audit.grounds:
                study, like = replace(ground.study, ks=plan.settings.ks), ground.engine
                engines.append(Engine(study, threads=like.threads, workers=like.workers))
            grounds = [
                _doubt(*_search(each, engine))
                for each, engine in zip(plan.by_ground(), engines, strict=True)
            ]
            yield assess(plan, grounds).headline


def _count(
    plan: Plan,
    agreement: Mapping[str, Any],
    *,
    threads: int,
    workers: Workers | None,
    progress: Progress,
) -> Ground:
    """Count one ground, with the doubt about its counterfactuals."""
    engine = Engine(study_of(plan), threads=threads, workers=workers)
    found, made = _search(plan, engine, measured=True, progress=progress)
    found = replace(found, computed={**observe(found.tally, made), **agreement})
    found = _doubt(found, made, progress)
    engine.release()
    return replace(found, answer=answer_ground(found))


def _search(
    plan: Plan, engine: Engine, *, progress: Progress = discard_progress, **options: Any
) -> tuple[Ground, Counterfactuals | None]:
    """Make counterfactuals, decide them, and search the groups of all methods."""
    made = _make_counterfactuals(plan)
    counterfactual = made.population if made is not None else _ready_counterfactual(plan)
    decided = _decide_counterfactuals(plan, counterfactual)
    if made is not None:
        counterfactual = as_overlay(
            made.population, plan.population, likely=plan.strata[0].complainants
        )
        made = replace(made, population=counterfactual)
    world = World(point=counterfactual, decided=decided)
    if made is not None and made.couplings:
        world = _with_draws(plan, engine.study, world, made)
    (tally,) = engine.tallies([world], plan.methods, progress=progress, **options)
    ground = Ground(
        plan=plan,
        engine=engine,
        world=world,
        tally=tally,
        computed={},
        refits=refits_once(plan),
    )
    return ground, made


def refits_once(plan: Plan) -> Any:
    """Return what makes the counterfactuals of refitted equations, when first asked for."""
    number = plan.settings.uncertainty.refits or REFITS
    return cache(lambda: list(refits_of(plan, number)))


def _doubt(
    ground: Ground, made: Counterfactuals | None, progress: Progress = discard_progress
) -> Ground:
    if made is None:
        return ground
    plan = ground.plan
    return weigh_doubt(
        ground,
        draws=made.draws,
        refits=_refits_asked_for(ground),
        decide=partial(_decide_counterfactuals, plan),
        progress=progress,
    )


def _refits_asked_for(ground: Ground) -> Iterator[Population]:
    if ground.plan.settings.uncertainty.refits:
        yield from ground.refits()


def study_of(plan: Plan) -> Study:
    """Settle what is counted in an audit."""
    similarity = plan.settings.similarity
    return Study(
        population=plan.population,
        strata=plan.strata,
        attributes=plan.attributes,
        outcomes=plan.outcome.codes,
        mark=plan.outcome.kind.marks,
        ks=plan.settings.ks,
        distance=similarity.distance,
        scaling=similarity.scaling,
        ties=similarity.ties,
        max_distance=similarity.max_distance,
    )


def _make_counterfactuals(plan: Plan) -> Counterfactuals | None:
    """Ask the worldview, if there is one."""
    if plan.worldview is None:
        return None
    doubt = plan.settings.uncertainty
    made = plan.worldview.counterfactuals(
        plan.population,
        do=plan.do,
        draws=doubt.draws or 0,
        rng=np.random.default_rng(plan.settings.seed) if doubt.draws else None,
    )
    if not set(made.moved) & {attribute.name for attribute in plan.attributes}:
        warnings.warn(
            f"In this worldview {plan.status_label} affects none of the attributes: every "
            "counterfactual equals the fact, and CST compares as ST does.",
            MutandisWarning,
            stacklevel=2,
        )
    return made


def _ready_counterfactual(plan: Plan) -> Population | None:
    return None if plan.counterfactuals is None else plan.counterfactuals.population


def _with_draws(plan: Plan, study: Study, world: World, made: Counterfactuals) -> World:
    """Add the draws of an open counterfactual, decided one by one.

    The kind of the outcome pools the decisions on all draws.
    """
    draws: list[tuple[Population, int]] = []
    decided: list[NDArray[Any] | None] = []
    for drawn in made.draws:
        decided.append(_decide_counterfactuals(plan, drawn))
        moved = {name: drawn.part(name, study.protected) for name in made.moved}
        draws.append((patch_rows(plan.population, study.protected, moved), 1))
    world = replace(world, parts=tuple(draws), drawn=True)
    known: Sequence[NDArray[Any]] = [each for each in decided if each is not None]
    if not known or world.decided is None:
        return world
    return replace(
        world,
        decided=frozen(plan.outcome.kind.pool(known, world.decided)),
        decided_parts=np.stack(known)[:, study.people],
    )


def _decide_counterfactuals(plan: Plan, counterfactual: Population | None) -> NDArray[Any] | None:
    """Take the outcomes from the table that has them; otherwise ask b()."""
    if plan.counterfactuals is not None and plan.counterfactuals.is_negative is not None:
        return plan.counterfactuals.is_negative
    if plan.decision is None or counterfactual is None:
        return None
    return _ask(plan.decision, counterfactual, plan.outcome)


def _compare_with_record(plan: Plan) -> dict[str, Any]:
    """Ask b() about the facts, and compare its answers with the record."""
    if plan.decision is None:
        return {"disagreement": None, "with_record": None}
    found = compare_with_record(plan.outcome, _ask(plan.decision, plan.population, plan.outcome))
    return {"disagreement": found.disagreement, "with_record": found.counts()}


def _ask(maker: DecisionMaker, population: Population, outcome: Outcome) -> NDArray[Any]:
    """Ask b() about every row; foreign code gets a copy of the table, which it may write to."""
    if type(maker) is Rule:
        columns = {name: population.as_read_by_rules(name) for name in maker.names}
        return frozen(~maker.decide_columns(columns, rows=len(population)))
    return decide(maker, population.frame(), outcome)


# --- progress -------------------------------------------------------------------------------------


class _Tracker:
    """Turn numbers of searches into numbers of complainants.

    A complainant is searched for several times: for the control group, and for a test group around
    each center. As a run does this for all complainants, one kind of group after the other, a
    search counts as that part of a complainant. The report is called at the start, and whenever
    another complainant is done.
    """

    def __init__(self, report: Report, *, complainants: int, searches: int) -> None:
        self._report = report
        self._complainants = complainants
        self._searches = max(1, searches)
        self._searched = 0
        report(0, complainants)

    def __call__(self, more: int) -> None:
        before = self._searched // self._searches
        self._searched += more
        done = self._searched // self._searches
        if done > before:
            self._report(min(done, self._complainants), self._complainants)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """What the steps of a run report to."""

    search: Progress
    bars: Bars  # of the steps after the search, by what each does


@contextmanager
def _follow_run(
    plan: Plan, *, progress: bool | Report | None, bars: Bars | None = None
) -> Iterator[_Steps]:
    """Follow the run of a plan, and clear all bars away when it ends."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise PlanError(
            f"progress={progress!r} is not allowed. Give True for a bar on the terminal, or a "
            "function that is called with the numbers of complainants done and of all."
        )
    if progress is True and sys.stderr.isatty():
        with _bars() as shown:
            yield _Steps(search=_tracker(shown("Searching"), plan), bars=shown)
    else:
        search = _tracker(progress, plan) if callable(progress) else discard_progress
        yield _Steps(search=search, bars=bars or _no_bar)


def _no_bar(title: str) -> Report:  # noqa: ARG001
    return lambda done, total: None  # noqa: ARG005


def _tracker(report: Report, plan: Plan) -> _Tracker:
    complainants = sum(len(stratum.complainants) for stratum in plan.strata)
    return _Tracker(report, complainants=complainants, searches=_count_searches(plan))


def _count_searches(plan: Plan) -> int:
    """Count how often each complainant is searched for."""
    compared = [method for method in plan.methods if method.count_neighbours]
    centers = {method.center for method in compared}
    if not centers:
        return 0
    drawn = (plan.settings.uncertainty.draws or 0) if Center.COUNTERFACTUAL in centers else 0
    if drawn and _is_open(plan):
        # draws take the place of the one counterfactual; matched groups are found anew in each
        averaged = any(m.needs_counterfactual and not m.matched for m in compared)
        matched = any(m.matched for m in compared)
        drawn = averaged * (drawn - 1) + matched * drawn
    if any(m.needs_counterfactual and not m.count_centers for m in compared):
        drawn += plan.settings.uncertainty.refits or 0
    audits = len(plan.protections) if plan.combine == "multiple" else 1
    return audits * (1 + len(centers) + drawn)


def _is_open(plan: Plan) -> bool:
    """Return whether counterfactuals are open, so that groups are averaged over draws."""
    return plan.worldview is not None and bool(plan.worldview.couplings)


@contextmanager
def _bars() -> Iterator[Bars]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}: {task.completed:,} of {task.total:,}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:

        def bar(title: str) -> Report:
            task = shown.add_task(title, total=0)
            return lambda done, total: shown.update(task, completed=done, total=total)

        yield bar
