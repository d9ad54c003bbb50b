"""Placebos: what the same audit finds where there is nothing to find.

(a) Reference rows only. Some of them, drawn at random and as large a part as the protected rows are
of the table, are given the protected status on paper. The worldview is refitted and the same audit
is run, with groups that are the same part of this smaller table as k is of the whole. Their
outcomes were decided without that status, so whatever comes out is the noise floor: chance, and the
bias that a smaller and therefore sparser space brings. Where counterfactuals were supplied, those
of these rows are taken, and nothing is refitted.

(b) For counterfactual situation testing: the tables D and D^CF stay, and outcomes are drawn anew
from a model of the reference rows, at x for them and at x^CF for the complainants. Nothing but the
counterfactual shift is left; see `mutandis.evidence.null_outcomes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mutandis.auditing.multiple import run_multiple
from mutandis.auditing.protections import draw_spaces
from mutandis.auditing.run import run_quietly
from mutandis.config.schema import Uncertainty
from mutandis.data.columns import Categories
from mutandis.data.spaces import check_group_sizes, restrict_complainants
from mutandis.engine.engine import Engine
from mutandis.errors import GroupSizeError, PlanError
from mutandis.evidence.null_outcomes import model_null_outcomes
from mutandis.frames import columns_of, to_frame
from mutandis.numeric.order import canonical_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.data.population import Population
    from mutandis.data.spaces import Stratum
    from mutandis.engine.methods import Method

__all__ = ["Placebo", "PlaceboKind", "PlaceboLine", "run_kind", "run_placebo"]

PlaceboKind = Literal["a", "b"]
_MEASURES = ("cases", "significant", "significant_adjusted")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceboLine:
    """One share of complainants, in the audit and in its placebos."""

    # which placebo, and what was asked
    kind: PlaceboKind
    method: str
    k: int
    measure: str  # what is counted: "cases", "significant" or "significant_adjusted"
    share: float  # the share in the real audit
    placebos: tuple[float, ...]  # the share in each repeat
    complainants: int  # the number of complainants in each repeat

    @property
    def mean(self) -> float:
        """The mean over the repeats."""
        return float(np.mean(self.placebos))

    @property
    def largest(self) -> float:
        """The largest of the repeats."""
        return max(self.placebos)

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
    sizes = _asked_ks(ks, result.plan.settings.ks)
    lines: list[PlaceboLine] = []
    for each, chosen in _methods(result.plan, kind).items():
        lines += run_kind(result, each, chosen, sizes, repeats=repeats, seed=seed)
    return Placebo(
        repeats=repeats, seed=seed, lines=tuple(lines), _like=result.plan.population.source
    )


def run_kind(
    result: Audit,
    kind: PlaceboKind,
    methods: tuple[Method, ...],
    sizes: tuple[int, ...],
    *,
    repeats: int,
    seed: int,
    most: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> tuple[PlaceboLine, ...]:
    """Run one kind of placebo; of (a) each repeat is about a sample of at most `most` people."""
    repeat = _relabelled(result, most) if kind == "a" else _redrawn(result, methods)
    taken = _same_parts(result.plan, sizes) if kind == "a" else {k: k for k in sizes}
    small = _quiet(result.plan, methods, tuple(sorted(set(taken.values()))))
    counted = []
    for number in range(repeats):
        # a generator for each repeat: more repeats leave the first ones as they were
        rng = np.random.default_rng([seed, "ab".index(kind), number])
        audited = repeat(small, rng)
        counted.append(_shares(audited, small))
        progress(number + 1, repeats)
    real = _shares(result, _quiet(result.plan, methods, sizes))
    return tuple(
        PlaceboLine(
            kind=kind,
            method=method,
            k=k,
            measure=measure,
            share=share,
            placebos=tuple(shares[method, taken[k], measure] for shares in counted),
            complainants=len(audited.study.people),
        )
        for (method, k, measure), share in real.items()
    )


_Repeat = Callable[["Plan", np.random.Generator], "Audit"]


def _spaces(plan: Plan, population: Population) -> tuple[tuple[Stratum, ...], ...]:
    return draw_spaces(
        plan.protections,
        population,
        combine=plan.combine,
        test_space=plan.settings.similarity.test_space,
    )


def _reference_rows(plan: Plan) -> NDArray[np.intp]:
    """Find the rows that are in a test space; of multiple discrimination, in that of each part."""
    spaces = _spaces(plan, plan.population) if plan.combine == "multiple" else (plan.strata,)
    return reduce(
        np.intersect1d,
        (np.unique(np.concatenate([stratum.test for stratum in strata])) for strata in spaces),
    )


def _same_parts(plan: Plan, ks: tuple[int, ...]) -> dict[int, int]:
    """Give for each k the group size that is the same part of the reference rows as k is of all.

    The bias of a sparser space depends on how large a part of it a group is. With k itself, groups
    of the smaller table would reach farther and the placebo would overstate it.
    """
    rows = _reference_rows(plan)
    everyone = len(rows) + len(_models(plan, rows))
    # round half up, in integers
    return {k: max(1, (2 * k * len(rows) + everyone) // (2 * everyone)) for k in ks}


def _relabelled(result: Audit, most: int | None) -> _Repeat:
    """Prepare placebo (a): audits of the reference rows under a status that is drawn.

    The rows are put into an order that depends on what they hold, so that the same people get a
    status however the table is sorted.
    """
    behind, population = result.plan, result.plan.population
    order = canonical_order(population.columns, ids=population.ids)
    rows = order[np.isin(order, _reference_rows(behind))]
    people = population.take(rows)
    real = {each.attribute: population.categories(each.attribute) for each in behind.protections}
    statuses = np.column_stack([column.codes for column in real.values()])
    sizes = _status_sizes(statuses, _models(behind, rows), rows)
    ready = None if behind.counterfactuals is None else behind.counterfactuals.take(rows)
    outcome = behind.outcome.take(rows)
    # groups are smaller here than those of the audit, which are tested
    outcome = replace(outcome, kind=outcome.kind.for_small_groups())

    def repeat(plan: Plan, rng: np.random.Generator) -> Audit:
        drawn, order = statuses[rows], rng.permutation(len(rows))
        for status, size in sizes:
            drawn[order[:size]], order = status, order[size:]
        relabelled = people.with_columns(
            {
                name: Categories(drawn[:, place], column.levels)
                for place, (name, column) in enumerate(real.items())
            }
        )
        spaces = _spaces(plan, relabelled)
        for strata in spaces:
            _check_sizes(plan, strata)
        chosen = _sample(spaces[0], most, rng)
        pseudo = replace(
            plan, population=relabelled, outcome=outcome, strata=spaces[0], counterfactuals=ready
        )

        def run(part: Plan) -> Audit:
            return run_quietly(
                replace(part, strata=restrict_complainants(part.strata, chosen)),
                result.engine,
                result.provenance,
                verdicts_only=True,
            )

        return run_multiple(pseudo, run) if plan.combine == "multiple" else run(pseudo)

    return repeat


def _sample(
    strata: Sequence[Stratum], most: int | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw some complainants where there are more than that; the groups stay those of all."""
    everyone = np.sort(np.concatenate([stratum.complainants for stratum in strata]))
    if most is None or len(everyone) <= most:
        return everyone
    return np.sort(rng.choice(everyone, most, replace=False))


def _redrawn(result: Audit, methods: tuple[Method, ...]) -> _Repeat:
    """Prepare placebo (b): the same groups, with outcomes drawn from a model."""
    study, world = result.study, result.world
    model = model_null_outcomes(study, world)

    def repeat(plan: Plan, rng: np.random.Generator) -> Audit:
        drawn = model.draw(study.outcomes, rng)
        # judged by who she would be, she would be judged no differently without the status
        same = np.broadcast_to(drawn[study.people], (len(world.draws), len(study.people)))
        other = replace(world, decided=drawn, decided_parts=same if world.draws else None)
        engine = Engine(
            replace(study, outcomes=drawn, ks=plan.settings.ks),
            threads=result.engine.threads,
            workers=result.engine.workers,
        )
        (tally,) = engine.tallies([other], methods)
        return replace(
            result, plan=plan, engine=engine, world=other, tally=tally, verdict_shares={}
        )

    return repeat


def _models(plan: Plan, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Find the rows whose statuses are handed out: the protected ones."""
    complement = plan.settings.similarity.test_space == "complement"
    if plan.combine is None or (plan.combine == "intersectional" and complement):
        return np.unique(np.concatenate([stratum.control for stratum in plan.strata]))
    # If each row had all protected statuses or none, no equation could tell the attributes'
    # effects apart: rows that have some of them are needed too.
    return np.setdiff1d(np.arange(len(plan.population)), rows)


def _status_sizes(
    statuses: NDArray[np.int32], models: NDArray[np.intp], rows: NDArray[np.intp]
) -> list[tuple[NDArray[np.int32], int]]:
    """Give each status that is handed out, and to how many: in its real ratio to the reference.

    Halves would make both spaces equally dense, and so hide the bias that comes from densities.
    """
    everyone = len(rows) + len(models)
    found = zip(*np.unique(statuses[models], axis=0, return_counts=True), strict=True)
    return [(status, max(1, round(len(rows) * int(count) / everyone))) for status, count in found]


def _check_sizes(plan: Plan, strata: tuple[Stratum, ...]) -> None:
    try:
        check_group_sizes(strata, plan.settings.ks)
    except GroupSizeError as error:
        raise GroupSizeError(
            f"In placebo (a), among reference rows only: {error} Or ask for fewer k: "
            "placebo(ks=(15,)), or for placebo(kind='b')."
        ) from None


def _quiet(plan: Plan, methods: tuple[Method, ...], ks: tuple[int, ...]) -> Plan:
    """Give the plan with what the placebo asks for: draws and b() only where they are needed."""
    is_open = plan.worldview is not None and bool(plan.worldview.couplings)
    settings = replace(
        plan.settings,
        ks=ks,
        evidence=replace(plan.settings.evidence, primary=(methods[0].name, ks[0])),
        uncertainty=Uncertainty(
            draws=plan.settings.uncertainty.draws if is_open else 0, refits=0, placebo=0
        ),
    )
    asks = any(method.needs_counterfactual_outcome for method in methods)
    return replace(
        plan, methods=methods, settings=settings, decision=plan.decision if asks else None
    )


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
    able: dict[PlaceboKind, tuple[Method, ...]] = {
        "a": plan.methods,
        "b": ()
        if plan.combine == "multiple"  # each part has counterfactuals of its own
        else tuple(m for m in plan.methods if m.needs_counterfactual and m.count_neighbours),
    }
    wanted = {each: chosen for each, chosen in able.items() if kind in (each, "both") and chosen}
    if wanted:
        return wanted
    names = ", ".join(method.name for method in plan.methods)
    raise PlanError(
        f"Placebo {kind!r} cannot be run for {names}"
        + (" and combine='multiple'" if plan.combine == "multiple" else "")
        + ": it needs a method that compares groups of people with counterfactuals of one "
        "intervention. Placebo 'a' can be run for all methods."
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
