"""Sham audits: what the same audit finds where there is nothing to find.

A sham audit keeps the reference rows only and gives a random part of them, as large as the
protected part of the table, the protected status. The worldview is fitted again, and groups are the
same part of these rows as k is of the table (docs/adr/0006-sham-audits.md). No decision was based
on a status that was assigned afterwards, so all findings are due to chance and a sparser space.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mutandis.auditing.results import assess
from mutandis.auditing.run import count_quietly
from mutandis.auditing.settle import draw_spaces
from mutandis.config.schema import Uncertainty
from mutandis.data.columns import Categories
from mutandis.data.protection import check_group_sizes, restrict_complainants
from mutandis.errors import PlanError
from mutandis.numeric.order import canonical_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.engine.tally import Method

__all__ = ["ShamAudits", "counted_by", "sham_audits"]

# complainants of one sham audit: of more, a sample is compared, with groups from all rows
_MOST: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShamAudits:
    """The count of an audit, and those of sham audits.

    Parameters
    ----------
    seed
        Seed of the random statuses.
    method, k
        The method and the group size of the audit.
    counted
        What is counted: "significant_adjusted", "significant" (without adjustment) or "cases"
        (where the method has no test).
    count, complainants
        The count of the audit, and its number of complainants.
    found, people
        The count of each sham audit, and the number of complainants in each.

    Examples
    --------
    >>> sham = ShamAudits(
    ...     seed=0,
    ...     method="st",
    ...     k=15,
    ...     counted="significant",
    ...     count=30,
    ...     complainants=200,
    ...     found=(4, 9, 7),
    ...     people=150,
    ... )
    >>> sham.largest, sham.exceeds_all
    (12, True)
    """

    seed: int
    method: str
    k: int
    counted: str
    count: int
    complainants: int
    found: tuple[int, ...]
    people: int

    @property
    def largest(self) -> int:
        """The largest sham count, scaled to the complainants of the audit and rounded down."""
        return max(self.found) * self.complainants // self.people

    @property
    def exceeds_all(self) -> bool:
        """Whether the audit found a larger share than every sham audit."""
        return self.count * self.people > max(self.found) * self.complainants

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with what follows from it."""
        return {**asdict(self), "largest": self.largest, "exceeds_all": self.exceeds_all}


def sham_audits(
    audit: Audit,
    number: int = 19,
    *,
    method: str | None = None,
    k: int | None = None,
    seed: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> ShamAudits:
    """Run sham audits; the parameters are those of `Audit.sham`."""
    plan, engine = audit.plan, audit.ground.engine
    chosen, size = plan.choose(method, k)
    start = plan.settings.seed or 0 if seed is None else seed
    for name, value, least in (("number", number, 1), ("seed", start, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise PlanError(
                f"{name}={value!r} is not allowed. Give an integer of at least {least}."
            )
    reference, statuses = _restrict_to_reference(plan, chosen, size)
    real = audit.results.summaries[chosen.name, size].counts
    counted = counted_by(plan, chosen)
    found, people = [], 0
    for each in range(number):
        # a generator for each audit: more audits leave the first ones as they were
        sham, who = _assign(reference, statuses, np.random.default_rng([start, 0, each]))
        grounds = [
            count_quietly(replace(one, strata=restrict_complainants(one.strata, who)), engine)
            for one in sham.by_ground()
        ]
        counts = assess(sham, grounds).headline.counts()
        found.append(int(counts[counted]))
        people = int(counts["complainants"])
        progress(each + 1, number)
    return ShamAudits(
        seed=start,
        method=chosen.name,
        k=size,
        counted=counted,
        count=int(real[counted]),
        complainants=int(real["complainants"]),
        found=tuple(found),
        people=people,
    )


def counted_by(plan: Plan, method: Method) -> str:
    """Return what a headline by this method counts: the strictest verdict that it can give."""
    if not method.count_neighbours:
        return "cases"
    return "significant" if plan.settings.evidence.adjust == "none" else "significant_adjusted"


def _restrict_to_reference(
    plan: Plan, method: Method, k: int
) -> tuple[Plan, list[tuple[NDArray[Any], int]]]:
    """Plan an audit of the reference rows in canonical order, with groups of the same part of them.

    Also returns the statuses that are assigned, each with the number of rows that get it.
    """
    population, spaces = plan.population, [each.strata for each in plan.by_ground()]
    tests = (np.unique(np.concatenate([each.test for each in strata])) for strata in spaces)
    rows = reduce(np.intersect1d, tests)
    complement = plan.settings.similarity.test_space == "complement"
    if plan.combine is None or (plan.combine == "intersectional" and complement):
        models = np.unique(np.concatenate([stratum.control for stratum in plan.strata]))
    else:
        # if each row had all statuses or none, no equation could tell their effects apart
        models = np.setdiff1d(np.arange(len(population)), rows)
    everyone = len(rows) + len(models)
    names = [each.attribute for each in plan.protections]
    codes = np.column_stack([population.categories(name).codes for name in names])
    # halves would make both spaces equally dense, and hide the bias of a sparser one
    statuses = [
        (status, max(1, round(len(rows) * int(number) / everyone)))
        for status, number in zip(
            *np.unique(codes[models], axis=0, return_counts=True), strict=True
        )
    ]
    order = canonical_order(population.columns, ids=population.ids)
    rows, size = order[np.isin(order, rows)], (2 * k * len(rows) + everyone) // (2 * everyone)
    outcome, ready = plan.outcome.take(rows), plan.counterfactuals
    is_open = plan.worldview is not None and bool(plan.worldview.couplings)
    settings = replace(
        plan.settings,
        ks=(max(1, size),),
        evidence=replace(plan.settings.evidence, primary=(method.name, max(1, size))),
        uncertainty=Uncertainty(
            draws=plan.settings.uncertainty.draws if is_open else 0, refits=0, tipping=False
        ),
    )
    reference = replace(
        plan,
        population=population.take(rows),
        # groups are smaller than those of the audit
        outcome=replace(outcome, kind=outcome.kind.for_small_groups()),
        counterfactuals=None if ready is None else ready.take(rows),
        methods=(method,),
        decision=plan.decision if method.needs_counterfactual_outcome else None,
        settings=settings,
    )
    return reference, statuses


def _assign(
    reference: Plan, statuses: Sequence[tuple[NDArray[Any], int]], rng: np.random.Generator
) -> tuple[Plan, NDArray[np.intp]]:
    """Assign protected statuses at random; also return the complainants that are compared."""
    names = [each.attribute for each in reference.protections]
    columns = [reference.population.categories(name) for name in names]
    codes = np.column_stack([column.codes for column in columns])
    order = rng.permutation(len(codes))
    for status, size in statuses:
        codes[order[:size]], order = status, order[size:]
    population = reference.population.with_columns(
        {
            name: Categories(codes[:, place], column.levels)
            for place, (name, column) in enumerate(zip(names, columns, strict=True))
        }
    )
    spaces = draw_spaces(
        reference.protections,
        population,
        combine=reference.combine,
        test_space=reference.settings.similarity.test_space,
    )
    for strata in spaces:
        check_group_sizes(strata, reference.settings.ks)
    people = np.sort(np.concatenate([stratum.complainants for stratum in spaces[0]]))
    if len(people) > _MOST:
        people = np.sort(rng.choice(people, _MOST, replace=False))
    return replace(reference, population=population, strata=spaces[0]), people
