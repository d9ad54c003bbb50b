"""Run a plan: counterfactuals, decisions, one search, all methods and all k."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.case_sentences import explanation_context
from mutandis.auditing.group_comparison import compare_groups
from mutandis.auditing.provenance import Provenance, record
from mutandis.data.columns import Categories, Numbers, frozen
from mutandis.data.population import as_overlay
from mutandis.decision import Rule, compare_with_record, decide
from mutandis.errors import MutandisWarning, PlanError, UnknownIdError
from mutandis.evidence.case import Case
from mutandis.evidence.findings import Findings, count_cases
from mutandis.evidence.groups import Pair
from mutandis.evidence.multiplicity import adjust
from mutandis.evidence.semantics import Grouping, Situation
from mutandis.evidence.support import measure_balance, measure_support
from mutandis.frames import open_frame
from mutandis.search.engine import discard_progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.causal import Counterfactuals, Draws
    from mutandis.data.outcome import Outcome
    from mutandis.data.population import Population
    from mutandis.decision import DecisionMaker, RecordAgreement
    from mutandis.evidence.comparison import Comparison, Depth
    from mutandis.evidence.groups import Members
    from mutandis.evidence.methods import Method
    from mutandis.evidence.support import Support
    from mutandis.search.engine import Progress

__all__ = ["AuditResult", "run"]

_Key = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What an audit found, in its most compact form; tables are computed on request.

    Parameters
    ----------
    plan
        What was run.
    situation
        D, D^CF, the complainants and both kinds of outcomes.
    grouping
        The groups of every method.
    clipped
        How many counterfactual values their bounds have moved, by attribute.
    disagreement
        The share of rows on which b(X) differs from the recorded outcome (None: no b()).
    draw_counts
        By method: under how many draws each complainant (row) has Δp > τ at each k (column).
    provenance
        What is needed to repeat the audit.
    parts
        The audit of each attribute, where several were audited one by one.
    with_record
        How b(X) and the recorded outcomes go together, as counts (None: no b()).
    """

    plan: Plan
    situation: Situation
    grouping: Grouping
    clipped: Mapping[str, int]
    disagreement: float | None
    draw_counts: Mapping[str, NDArray[np.int64]]
    provenance: Provenance
    parts: Mapping[str, AuditResult] = field(default_factory=dict)
    with_record: RecordAgreement | None = None

    def findings(self, method: Method, k: int, *, depth: Depth = "bounds") -> Findings:
        """Compare the groups of every complainant under one method and one k."""
        plan, settings = self.plan, self.plan.settings
        index = settings.ks.index(k)
        groups = self.grouping.at(method, index)
        comparison = compare_groups(plan, method, groups, depth=depth)
        rows = self.situation.complainants
        is_negative, would_be = self.situation.is_negative, self.situation.is_negative_cf
        return Findings(
            method=method.name,
            k=k,
            ids=plan.population.ids[rows],
            outcome=plan.outcome.labels(is_negative[rows]),
            outcome_cf=None if would_be is None else plan.outcome.labels(would_be[rows]),
            is_negative=is_negative[rows],
            control=groups.control,
            test=groups.test,
            comparison=comparison,
            q_value=self._q_values(comparison.interval.p_value),
            alpha=settings.alpha,
            draw_share=self._draw_share(method, index, comparison),
        )

    def count(self, method: Method, k: int) -> dict[str, Any]:
        """Count the cases under one method and one k: that takes neither bounds nor a table."""
        index, situation = self.plan.settings.ks.index(k), self.situation
        # the groups are not kept: they take much memory
        comparison = compare_groups(
            self.plan, method, self.grouping.at(method, index), depth="significance"
        )
        counts = count_cases(
            comparison,
            self._q_values(comparison.interval.p_value),
            alpha=self.plan.settings.alpha,
            is_negative=situation.is_negative[situation.complainants],
        )
        return {"method": method.name, "k": k, **counts}

    def _draw_share(
        self, method: Method, index: int, comparison: Comparison
    ) -> NDArray[np.float64] | None:
        draws = self.plan.settings.draws
        if not draws:
            return None
        # where no counterfactual has a part, every draw says the same
        share = comparison.evidence.astype(np.float64)
        if method.name in self.draw_counts:
            share = self.draw_counts[method.name][:, index] / draws
        return np.where(comparison.insufficient, np.nan, share)

    def _q_values(self, p_values: NDArray[np.float64]) -> NDArray[np.float64]:
        method = self.plan.settings.adjust
        # what was not adjusted must not count as significant after adjustment
        if method == "none":
            return np.full_like(p_values, np.nan)
        return adjust(p_values, method=method)

    def counterfactual_table(self) -> Any:
        """Give D^CF as a table: with Ŷ^CF as its outcome, or without one if nobody decided."""
        population, would_be = self.situation.counterfactual, self.situation.is_negative_cf
        if population is None:
            return None
        outcome = self.plan.outcome
        if would_be is None:
            return open_frame(population.frame()).drop(outcome.column).to_native()
        recorded = population.categories(outcome.column)
        pair = (recorded.code_of(outcome.positive), recorded.code_of(outcome.negative))
        codes = np.array(pair, dtype=np.int32)[would_be.astype(np.intp)]
        decided = Categories(codes, recorded.levels)
        return population.with_columns({outcome.column: decided}).frame()

    def support(self, method: Method, k: int) -> Support:
        """Measure how well each complainant's groups support the comparison."""
        least = self.plan.settings.min_group
        return measure_support(self.situation, self.grouping, method, k, min_group=least)

    def case(
        self,
        id: Any,  # noqa: A002 - the public name
        findings: Iterable[tuple[_Key, Findings]],
    ) -> Case:
        """Give everything about one complainant; of the findings, her rows alone are kept."""
        complainant, row = self._locate(id)
        sizes = enumerate(self.plan.settings.ks)
        indexes = {(m.name, k): index for index, k in sizes for m in self.plan.methods}

        def members(method: str, k: int) -> Pair[Members]:
            if (method, k) not in indexes:
                raise PlanError(f"The audit did not run method {method!r} at k={k}.")
            pair, index = self.grouping.pairs[method], indexes[method, k]
            return Pair(
                control=pair.control.members(complainant, index),
                test=pair.test.members(complainant, index),
            )

        def her_row(keyed: tuple[_Key, Findings]) -> tuple[_Key, Mapping[str, Any]]:
            key, found = keyed
            row = found.take(np.array([complainant])).columns()
            return key, MappingProxyType({name: _plain(value[0]) for name, value in row.items()})

        # mapped, not looped over: the findings before hers are gone when the next are made
        results = dict(map(her_row, findings))
        first = next(iter(results.values()))
        counterfactual = self.situation.counterfactual
        return Case(
            id=_plain(self.plan.population.ids[row]),
            outcome=first["outcome"],
            outcome_cf=first["outcome_cf"],
            factual=self._attributes(self.plan.population, row),
            counterfactual=None
            if counterfactual is None
            else self._attributes(counterfactual, row),
            results=MappingProxyType(results),
            couplings=self.provenance.computed["couplings"],
            _members=members,
            _balance=partial(measure_balance, self.situation, row),
            _context=explanation_context(self.plan),
        )

    def _locate(self, id: Any) -> tuple[int, int]:  # noqa: A002
        """Find a complainant's place among the complainants, and her row."""
        ids = self.plan.population.ids
        # a list would be compared element by element
        same = ids == id if np.ndim(id) == 0 else np.zeros(len(ids), dtype=np.bool_)
        matches = np.flatnonzero(same)
        if not len(matches):
            raise UnknownIdError("No row has this id. Ids are row positions unless id= was given.")
        row = int(matches[0])
        rows = self.situation.complainants
        place = int(np.searchsorted(rows, row))
        if place == len(rows) or rows[place] != row:
            raise UnknownIdError(
                "This row is no complainant: its protected attribute "
                f"{_protected(self.plan)} does not have a protected value."
            )
        return place, row

    def _attributes(self, population: Population, row: int) -> Mapping[str, Any]:
        values = {}
        for attribute in self.plan.attributes:
            column = population.part(attribute.name, np.array([row]))
            values[attribute.name] = (
                float(column.values[0])
                if isinstance(column, Numbers)
                else column.levels[column.codes[0]]
            )
        return MappingProxyType(values)


def run(plan: Plan, *, progress: Progress = discard_progress) -> AuditResult:
    """Run the audit: every step is a function of the one before it."""
    if plan.combine == "multiple":
        # it runs this function once for each attribute
        from mutandis.auditing.multiple import run_multiple

        return run_multiple(plan, progress=progress)
    made = _counterfactuals(plan)
    counterfactual = made.population if made is not None else _given(plan)
    would_be = _counterfactual_outcomes(plan, counterfactual)
    if made is not None:
        counterfactual = as_overlay(
            made.population, plan.population, likely=plan.strata[0].complainants
        )
        made = replace(made, population=counterfactual)
    situation = Situation(
        population=plan.population,
        counterfactual=counterfactual,
        attributes=plan.attributes,
        strata=plan.strata,
        is_negative=plan.outcome.is_negative,
        is_negative_cf=would_be,
        ks=plan.settings.ks,
        ties=plan.settings.ties,
        scaling=plan.settings.scaling,
        threads=plan.settings.threads,
        group_size=plan.settings.group_size,
        max_distance=plan.settings.max_distance,
    )
    grouping = plan.semantics.group(situation, plan.methods, progress=progress)
    with_record = _compare_with_record(plan)
    clipped = {} if made is None else made.clipped
    return AuditResult(
        plan=plan,
        situation=situation,
        grouping=grouping,
        clipped=clipped,
        disagreement=None if with_record is None else with_record.disagreement,
        draw_counts={}
        if made is None
        else _count_draws(plan, situation, grouping, made.draws, progress=progress),
        provenance=record(plan, grouping, made, with_record=with_record),
        with_record=with_record,
    )


def _counterfactuals(plan: Plan) -> Counterfactuals | None:
    """Ask the worldview, if there is one."""
    if plan.worldview is None:
        return None
    settings = plan.settings
    made = plan.semantics.worldview(plan.worldview).counterfactuals(
        plan.population,
        do=plan.do,
        draws=settings.draws,
        rng=np.random.default_rng(settings.seed) if settings.draws else None,
        bootstrap=settings.bootstrap,
    )
    if not set(made.moved) & {attribute.name for attribute in plan.attributes}:
        warnings.warn(
            f"In this worldview {_protected(plan)} affects none of the attributes: every "
            "counterfactual equals the fact, and CST compares as ST does.",
            MutandisWarning,
            stacklevel=2,
        )
    return made


def _protected(plan: Plan) -> str:
    """Name the protected attributes; together they are one status."""
    return " × ".join(repr(each.attribute) for each in plan.protections)


def _given(plan: Plan) -> Population | None:
    return None if plan.counterfactuals is None else plan.counterfactuals.population


def _count_draws(
    plan: Plan, situation: Situation, grouping: Grouping, draws: Draws, *, progress: Progress
) -> dict[str, NDArray[np.int64]]:
    """Count, for each method that looks at counterfactuals, the draws under which Δp > τ."""
    methods = [m for m in plan.methods if m.needs_counterfactual] if len(draws) else []
    shape = (len(situation.complainants), len(plan.settings.ks))
    counts = {method.name: np.zeros(shape, dtype=np.int64) for method in methods}
    for drawn in draws if methods else ():
        other = replace(
            situation,
            counterfactual=drawn,
            is_negative_cf=_counterfactual_outcomes(plan, drawn),
        )
        regrouped = plan.semantics.group(
            other, methods, control=grouping.control, progress=progress
        )
        for method in methods:
            for index in range(len(plan.settings.ks)):
                found = compare_groups(plan, method, regrouped.at(method, index), depth="evidence")
                counts[method.name][:, index] += found.evidence
    return counts


def _counterfactual_outcomes(
    plan: Plan, counterfactual: Population | None
) -> NDArray[np.bool_] | None:
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


def _ask(maker: DecisionMaker, population: Population, outcome: Outcome) -> NDArray[np.bool_]:
    """Ask b() about everybody; strange code gets a copy of the table, which it may write to."""
    if type(maker) is Rule:
        columns = {name: population.as_read_by_rules(name) for name in maker.names}
        return frozen(~maker.decide_columns(columns, rows=len(population)))
    return decide(maker, population.frame(), outcome)


def _plain(value: Any) -> Any:
    """Give a NumPy scalar as the Python value it stands for."""
    return value.item() if isinstance(value, np.generic) else value
