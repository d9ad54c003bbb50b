"""Placebos: what the same audit finds where there is nothing to find.

(a) Reference rows only. Some of them, drawn at random and as large a part as the protected rows are
of the table, are given the protected status on paper. The worldview is refitted and the same audit
is run, with groups that are the same part of this smaller table as k is of the whole. Their
outcomes were decided without that status, so whatever comes out is the noise floor: chance, and the
bias that a smaller and therefore sparser space brings.

(b) For counterfactual situation testing: the tables D and D^CF stay, and outcomes are drawn anew
from a model of the reference rows, at x for them and at x^CF for the complainants. Nothing but the
counterfactual shift is left; see `mutandis.evidence.null_outcomes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mutandis.auditing.protections import draw_spaces
from mutandis.auditing.run import run_quietly
from mutandis.causal.fitting.ordering import canonical_order
from mutandis.data.columns import Categories
from mutandis.errors import GroupSizeError, PlanError
from mutandis.evidence.null_outcomes import model_null_outcomes
from mutandis.evidence.settings import Uncertainty
from mutandis.evidence.spaces import check_group_sizes
from mutandis.frames import columns_of, to_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.data.population import Population
    from mutandis.evidence.methods import Method
    from mutandis.evidence.spaces import Stratum

__all__ = ["Placebo", "PlaceboKind", "PlaceboLine", "run_placebo"]

PlaceboKind = Literal["a", "b"]
_MEASURES = ("cases", "significant", "significant_adjusted")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceboLine:
    """One share of complainants, in the audit and in its placebos.

    Parameters
    ----------
    kind, method, k
        Which placebo, and what was asked.
    measure
        What is counted: "cases", "significant" or "significant_adjusted".
    share
        The share in the real audit.
    placebos
        The share in each repeat.
    """

    kind: PlaceboKind
    method: str
    k: int
    measure: str
    share: float
    placebos: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over the repeats."""
        return float(np.mean(self.placebos))

    @property
    def low(self) -> float:
        """The 5 % quantile over the repeats."""
        return float(np.quantile(self.placebos, 0.05))

    @property
    def high(self) -> float:
        """The 95 % quantile over the repeats."""
        return float(np.quantile(self.placebos, 0.95))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placebo:
    """The noise floor of an audit: its shares beside those of audits without an effect.

    Parameters
    ----------
    repeats, seed
        How often each placebo was run, and the seed of its randomness.
    lines
        One share per kind, method, k and measure.

    Examples
    --------
    >>> import mutandis as mm
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=400, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous"},
    ...     worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
    ...     ks=(10,),
    ... )
    >>> placebo = found.placebo(repeats=3, kind="a")
    >>> placebo.table()[["method", "measure", "share"]].head(2)
      method      measure     share
    0     st        cases  0.182540
    1     st  significant  0.031746
    """

    repeats: int
    seed: int
    lines: tuple[PlaceboLine, ...]
    _like: Any = field(repr=False, compare=False)

    def table(self) -> Any:
        """Give one row per line in the caller's frame type: real share, placebo mean and range."""
        rows = [
            {
                "kind": line.kind,
                "method": line.method,
                "k": line.k,
                "measure": line.measure,
                "share": line.share,
                "placebo_mean": line.mean,
                "placebo_low": line.low,
                "placebo_high": line.high,
            }
            for line in self.lines
        ]
        return to_frame(columns_of(rows), self._like)

    def line(self, kind: PlaceboKind, method: str, k: int, measure: str) -> PlaceboLine:
        """Find one line.

        Parameters
        ----------
        kind
            "a" or "b".
        method, k
            The method and the group size.
        measure
            "cases", "significant" or "significant_adjusted".
        """
        for line in self.lines:
            if (line.kind, line.method, line.k, line.measure) == (kind, method, k, measure):
                return line
        raise PlanError(
            f"No placebo {kind!r} of {measure!r} for method {method!r} at k={k}. "
            "See table() for those that were run."
        )


def run_placebo(
    result: Audit,
    *,
    repeats: int,
    seed: int,
    kind: PlaceboKind | Literal["both"],
    ks: Iterable[int] | None,
) -> Placebo:
    """Run the placebos of an audit; the parameters are those of `Audit.placebo`."""
    _check(repeats, seed, kind)
    if result.plan.combine == "multiple":
        first = result.plan.protections[0].attribute
        raise PlanError(
            "Multiple discrimination is audited on each attribute by itself, and so is its "
            f"placebo: audit.part({first!r}).placebo()."
        )
    sizes = _asked_ks(ks, result.plan.settings.ks)
    methods = _methods(result.plan, kind)
    lines: list[PlaceboLine] = []
    for each, chosen in methods.items():
        repeat = _relabelled(result) if each == "a" else _redrawn(result, chosen)
        taken = {k: _same_part(result.plan, k) if each == "a" else k for k in sizes}
        small = _quiet(result.plan, chosen, tuple(sorted(set(taken.values()))))
        counted = [
            # a generator for each repeat: more repeats leave the first ones as they were
            _shares(repeat(small, np.random.default_rng([seed, "ab".index(each), number])), small)
            for number in range(repeats)
        ]
        lines += [
            PlaceboLine(
                kind=each,
                method=method,
                k=k,
                measure=measure,
                share=share,
                placebos=tuple(shares[method, taken[k], measure] for shares in counted),
            )
            for (method, k, measure), share in _shares(
                result, _quiet(result.plan, chosen, sizes)
            ).items()
        ]
    return Placebo(
        repeats=repeats, seed=seed, lines=tuple(lines), _like=result.plan.population.source
    )


_Repeat = Callable[["Plan", np.random.Generator], "Audit"]


def _reference_rows(plan: Plan) -> NDArray[np.intp]:
    return np.unique(np.concatenate([stratum.test for stratum in plan.strata]))


def _same_part(plan: Plan, k: int) -> int:
    """Give the group size that is the same part of the reference rows as k is of all.

    The bias of a sparser space depends on how large a part of it a group is. With k itself, groups
    of the smaller table would reach farther and the placebo would overstate it.
    """
    rows = _reference_rows(plan)
    everyone = len(rows) + len(_models(plan, rows))
    # round half up, in integers
    return max(1, (2 * k * len(rows) + everyone) // (2 * everyone))


def _relabelled(result: Audit) -> _Repeat:
    """Prepare placebo (a): audits of the reference rows under a status that is drawn.

    The rows are put into an order that depends on what they hold, so that the same people get a
    status however the table is sorted.
    """
    population = result.plan.population
    order = canonical_order(population.columns, ids=population.ids)
    rows = order[np.isin(order, _reference_rows(result.plan))]

    def repeat(plan: Plan, rng: np.random.Generator) -> Audit:
        return run_quietly(_pseudo_plan(plan, rows, rng), threads=result.situation.threads)

    return repeat


def _redrawn(result: Audit, methods: tuple[Method, ...]) -> _Repeat:
    """Prepare placebo (b): the same groups, with outcomes drawn from a model."""
    situation = result.situation
    model = model_null_outcomes(situation)

    def repeat(plan: Plan, rng: np.random.Generator) -> Audit:
        drawn = model.draw(situation.is_negative, rng)
        # judged by who she would be, she would be judged no differently without the status
        other = replace(situation, is_negative=drawn, is_negative_cf=drawn, ks=plan.settings.ks)
        return replace(
            result,
            plan=plan,
            situation=other,
            grouping=plan.semantics.group(other, methods),
            draw_counts=MappingProxyType({}),
        )

    return repeat


def _pseudo_plan(plan: Plan, rows: NDArray[np.intp], rng: np.random.Generator) -> Plan:
    """Give the plan for the reference rows alone, some of which get a protected status."""
    names = [each.attribute for each in plan.protections]
    real = {name: plan.population.categories(name) for name in names}
    statuses = np.column_stack([column.codes for column in real.values()])
    drawn = _draw_statuses(statuses, _models(plan, rows), rows, rng)
    population = _taken(plan.population, rows).with_columns(
        {name: Categories(drawn[:, place], real[name].levels) for place, name in enumerate(names)}
    )
    (strata,) = draw_spaces(
        plan.protections,
        population,
        combine=plan.combine,
        test_space=plan.settings.similarity.test_space,
    )
    _check_sizes(plan, strata)
    return replace(
        plan,
        population=population,
        outcome=replace(plan.outcome, is_negative=plan.outcome.is_negative[rows]),
        strata=strata,
        counterfactuals=None,
    )


def _models(plan: Plan, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Find the rows whose statuses are handed out: the protected ones."""
    if plan.combine is None or plan.settings.similarity.test_space == "complement":
        return np.unique(np.concatenate([stratum.control for stratum in plan.strata]))
    # If each row had all protected statuses or none, no equation could tell the attributes'
    # effects apart: rows that have some of them are needed too.
    return np.setdiff1d(np.arange(len(plan.population)), rows)


def _draw_statuses(
    statuses: NDArray[np.int32],
    models: NDArray[np.intp],
    rows: NDArray[np.intp],
    rng: np.random.Generator,
) -> NDArray[np.int32]:
    """Give rows drawn at random the statuses of others, each in its real ratio to the reference.

    Halves would make both spaces equally dense, and so hide the bias that comes from densities.
    """
    drawn = statuses[rows]
    order, start = rng.permutation(len(rows)), 0
    everyone = len(rows) + len(models)
    for status, count in zip(*np.unique(statuses[models], axis=0, return_counts=True), strict=True):
        size = max(1, round(len(rows) * int(count) / everyone))
        drawn[order[start : start + size]] = status
        start += size
    return drawn


def _check_sizes(plan: Plan, strata: tuple[Stratum, ...]) -> None:
    try:
        check_group_sizes(strata, plan.settings.ks, group_size=plan.settings.similarity.group_size)
    except GroupSizeError as error:
        raise GroupSizeError(
            f"In placebo (a), among reference rows only: {error} Or ask for fewer k: "
            "placebo(ks=(15,)), or for placebo(kind='b')."
        ) from None


def _taken(population: Population, rows: NDArray[np.intp]) -> Population:
    source = population.source[rows]
    return replace(
        population,
        columns=MappingProxyType(
            {name: column.take(rows) for name, column in population.columns.items()}
        ),
        ids=population.ids[rows],
        positions=population.positions[rows],
        open_source=lambda: source,
    )


def _quiet(plan: Plan, methods: tuple[Method, ...], ks: tuple[int, ...]) -> Plan:
    """Give the plan with what the placebo asks for, and without draws, which it does not use."""
    settings = replace(
        plan.settings,
        ks=ks,
        evidence=replace(plan.settings.evidence, primary=(methods[0].name, ks[0])),
        uncertainty=Uncertainty(draws=0),
    )
    return replace(plan, methods=methods, settings=settings)


def _shares(result: Audit, asked: Plan) -> dict[tuple[str, int, str], float]:
    """Give the shares of complainants by method, k and measure, as far as a plan asks for them."""
    shares = {}
    for method in asked.methods:
        for k in asked.settings.ks:
            counts = result.count(method.name, k)
            # counterfactual fairness has evidence or none
            for measure in _MEASURES if method.count_neighbours else _MEASURES[:1]:
                shares[method.name, k, measure] = counts[measure] / counts["complainants"]
    return shares


def _methods(plan: Plan, kind: str) -> dict[PlaceboKind, tuple[Method, ...]]:
    """Tell which methods each kind of placebo can be run for."""
    refit = plan.worldview is not None
    able: dict[PlaceboKind, tuple[Method, ...]] = {
        "a": tuple(m for m in plan.methods if refit or not m.needs_counterfactual),
        "b": tuple(m for m in plan.methods if m.needs_counterfactual and m.count_neighbours),
    }
    wanted = {each: chosen for each, chosen in able.items() if kind in (each, "both") and chosen}
    if wanted:
        return wanted
    names = ", ".join(method.name for method in plan.methods)
    raise PlanError(
        f"Placebo {kind!r} cannot be run for {names}. Placebo 'a' needs worldview= for any method "
        "but 'st', since it refits the worldview; placebo 'b' is for 'cst_without' and 'cst_with'."
    )


def _check(repeats: int, seed: int, kind: str) -> None:
    if kind not in (*get_args(PlaceboKind), "both"):
        raise PlanError(f"kind={kind!r} is unknown. Allowed: 'a', 'b', 'both'.")
    for name, value, least in (("repeats", repeats, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise PlanError(
                f"{name}={value!r} is not allowed. Give an integer of at least {least}."
            )


def _asked_ks(ks: Iterable[int] | None, known: tuple[int, ...]) -> tuple[int, ...]:
    if ks is None:
        return known
    sizes = tuple(sorted(set(ks)))
    if not sizes or not set(sizes) <= set(known):
        raise PlanError(f"ks={list(sizes)} were not run. This audit ran k = {list(known)}.")
    return sizes
