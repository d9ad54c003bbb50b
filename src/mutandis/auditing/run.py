"""Run a plan: counterfactuals, decisions, one search, all methods and all k."""

from __future__ import annotations

import warnings
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from mutandis.auditing.audit import Audit
from mutandis.auditing.doubt import refits_of, weigh_doubt
from mutandis.auditing.group_comparison import evidence_by
from mutandis.auditing.multiple import run_multiple
from mutandis.auditing.progress import follow_run
from mutandis.auditing.provenance import record
from mutandis.config.fields import Size, check
from mutandis.data.columns import frozen
from mutandis.data.population import as_overlay, patch_rows
from mutandis.decision.maker import compare_with_record, decide
from mutandis.decision.rule import Rule
from mutandis.engine.engine import Engine
from mutandis.engine.study import Study, World
from mutandis.errors import MutandisWarning
from mutandis.geometry.index import discard_progress
from mutandis.mapped import arrays_in_files
from mutandis.workers import open_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike

    from distributed import Client
    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.auditing.progress import Report
    from mutandis.auditing.provenance import Provenance
    from mutandis.data.population import Population
    from mutandis.decision.maker import DecisionMaker, RecordAgreement
    from mutandis.geometry.index import Progress
    from mutandis.outcomes.outcome import Outcome
    from mutandis.scm.counterfactual import Counterfactuals
    from mutandis.workers import Workers

__all__ = ["run_headlines", "run_plan", "run_quietly", "study_of"]


def run_plan(
    plan: Plan,
    *,
    threads: int | None,
    progress: bool | Report | None,
    cluster: str | Client | Workers | None = None,
    memory: str | None = None,
    scratch: str | PathLike[str] | None = None,
) -> Audit:
    """Run a plan, and show its progress; the parameters are those of `Plan.run`."""
    number = -1 if threads in (None, -1) else check("threads", Size, threads)
    folder = None if scratch is None else Path(scratch)
    with ExitStack() as stack:
        workers = stack.enter_context(open_workers(cluster, folder, memory, threads=number))
        in_files = nullcontext() if workers is None else arrays_in_files(workers.folder)
        with follow_run(plan, progress=progress) as report, in_files:
            audit = _run(plan, threads=number, workers=workers, progress=report)
        if workers is not None:  # the audit goes on asking them
            finalize(workers, stack.pop_all().close)
        return audit


def run_quietly(
    plan: Plan, like: Engine, provenance: Provenance, *, verdicts_only: bool = False
) -> Audit:
    """Run a plan for its counts, without progress, warnings or a record: the audit has all that.

    It reuses the threads and workers of an engine. With `verdicts_only`, nothing more may be known
    of complainants without evidence.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        return _run(
            plan,
            threads=like.threads,
            workers=like.workers,
            progress=discard_progress,
            provenance=provenance,
            verdicts_only=verdicts_only,
        )


def run_headlines(audit: Audit, plans: Iterable[Plan]) -> Iterator[Audit]:
    """Run plans of one method and k that differ from an audit in their worldview.

    They have the same control groups, which are searched once.
    """
    engines: dict[str, Engine] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        for plan in plans:
            for part in () if engines else audit.parts:
                study = replace(part.study, ks=plan.settings.ks)
                engines[part.plan.protections[0].attribute] = Engine(
                    study, threads=part.engine.threads, workers=part.engine.workers
                )
            yield _run(
                plan,
                threads=audit.engine.threads,
                workers=audit.engine.workers,
                progress=discard_progress,
                engines=engines,
            )


def _run(
    plan: Plan,
    *,
    threads: int,
    workers: Workers | None,
    progress: Progress,
    provenance: Provenance | None = None,
    verdicts_only: bool = False,
    engines: Mapping[str, Engine] | None = None,
) -> Audit:
    """Run a plan; `engines`, by protected attribute, have counted the same people before."""
    if plan.combine == "multiple":
        run = partial(_run, threads=threads, workers=workers, progress=progress, engines=engines)
        return run_multiple(plan, run)
    made = _make_counterfactuals(plan)
    counterfactual = made.population if made is not None else _ready_counterfactual(plan)
    decided = _decide_counterfactuals(plan, counterfactual)
    if made is not None:
        counterfactual = as_overlay(
            made.population, plan.population, likely=plan.strata[0].complainants
        )
        made = replace(made, population=counterfactual)
    known = None if engines is None else engines[plan.protections[0].attribute]
    engine = known or Engine(study_of(plan), threads=threads, workers=workers)
    world = World(point=counterfactual, decided=decided)
    if made is not None and made.couplings:
        world = _with_draws(plan, engine.study, world, made)
    (tally,) = engine.tallies(
        [world],
        plan.methods,
        measured=provenance is None and known is None,
        needed=evidence_by(plan) if verdicts_only else None,
        progress=progress,
    )
    with_record = None if provenance else _compare_with_record(plan)
    audit = Audit(
        plan=plan,
        engine=engine,
        world=world,
        tally=tally,
        clipped={} if made is None else made.clipped,
        provenance=provenance or record(plan, tally, made, with_record=with_record),
        with_record=with_record,
    )
    if made is not None and not provenance:
        audit = weigh_doubt(
            audit,
            draws=made.draws,
            refits=refits_of(plan, plan.settings.uncertainty.refits or 0),
            decide=partial(_decide_counterfactuals, plan),
            progress=progress,
        )
    if known is None:
        engine.release()
    return audit


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
    """Hold the draws of an open counterfactual, decided one by one.

    The kind of the outcome pools the decisions on all draws.
    """
    draws, decided = [], []
    for drawn in made.draws:
        decided.append(_decide_counterfactuals(plan, drawn))
        moved = {name: drawn.part(name, study.protected) for name in made.moved}
        draws.append((patch_rows(plan.population, study.protected, moved), 1))
    known = [each for each in decided if each is not None]
    would_be = world.decided
    if not known or would_be is None:
        return replace(world, parts=tuple(draws), drawn=True)
    would_be = plan.outcome.kind.pool(known, would_be)
    return replace(
        world,
        parts=tuple(draws),
        drawn=True,
        decided=frozen(would_be),
        decided_parts=np.stack(known)[:, study.people],
    )


def _decide_counterfactuals(plan: Plan, counterfactual: Population | None) -> NDArray[Any] | None:
    """Take the outcomes from the table that has them; otherwise ask b()."""
    if plan.counterfactuals is not None and plan.counterfactuals.is_negative is not None:
        return plan.counterfactuals.is_negative
    if plan.decision is None or counterfactual is None:
        return None
    return _ask(plan.decision, counterfactual, plan.outcome)


def _compare_with_record(plan: Plan) -> RecordAgreement | None:
    if plan.decision is None:
        return None
    decided = _ask(plan.decision, plan.population, plan.outcome)
    return compare_with_record(plan.outcome, decided)


def _ask(maker: DecisionMaker, population: Population, outcome: Outcome) -> NDArray[Any]:
    """Ask b() about every row; foreign code gets a copy of the table, which it may write to."""
    if type(maker) is Rule:
        columns = {name: population.as_read_by_rules(name) for name in maker.names}
        return frozen(~maker.decide_columns(columns, rows=len(population)))
    return decide(maker, population.frame(), outcome)
