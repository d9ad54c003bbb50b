"""Rates of whole groups and their impact ratios, as New York City's rules ask for them.

These compare groups as they are, not a person with similar people, and are not situation testing.
Rates and ratios are quotients of counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Numbers, is_number, plain_value
from mutandis.errors import PlanError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit

__all__ = ["ImpactRatio", "compute_impact_ratios"]

_LEFT_OUT = "left out of the impact ratios"
_UNKNOWN = "unknown, in no other row"
_DROPPED = "dropped before the audit, since the value is missing; in no other row"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactRatio:
    """One category: its rate, and that rate divided by the highest one.

    `selected` are those with the favourable outcome, or with a score above the median of all.
    `impact_ratio` is None for categories that are left out or unknown, and where no category has a
    rate above 0.
    """

    table: str  # "sex", "race" or "sex × race"
    category: str
    applicants: int
    selected: int | None  # None: not known, since the rows were dropped
    impact_ratio: Fraction | None
    note: str = ""

    @property
    def rate(self) -> Fraction | None:
        """The share of those selected."""
        return None if self.selected is None else Fraction(self.selected, self.applicants)

    def as_row(self) -> dict[str, Any]:
        """Return it as a row of a table."""
        return {
            "table": self.table,
            "category": self.category,
            "applicants": self.applicants,
            "selected": self.selected,
            "rate": None if self.rate is None else float(self.rate),
            "impact_ratio": None if self.impact_ratio is None else float(self.impact_ratio),
            "note": self.note,
        }


def compute_impact_ratios(
    audit: Audit,
    *,
    by: Sequence[str] | None,
    unknown: Sequence[Any],
    leave_out_below: float,
    score: str | None,
) -> list[ImpactRatio]:
    """Compute the categories of each column by itself, and of all of them together."""
    if not (is_number(leave_out_below) and 0 <= leave_out_below < 1):
        raise PlanError(
            f"leave_out_below={leave_out_below!r} is outside [0, 1). Give the share of the rows "
            "below which a category is left out, such as 0.02; 0 leaves none out."
        )
    columns = _read_columns(audit, by)
    selected = _selected(audit, score)
    tables: list[tuple[str, ...]] = [(name,) for name in columns]
    tables += [tuple(columns)] if len(columns) > 1 else []
    unknowns = {str(value) for value in unknown}
    rows = []
    for names in tables:
        own = {name: columns[name] for name in names}
        rows += _one_table(own, selected, unknowns, leave_out_below)
        dropped = sum(audit.plan.population.dropped.get(name, 0) for name in names)
        if dropped:
            rows.append(
                ImpactRatio(
                    table=" × ".join(names),
                    category="missing",
                    applicants=dropped,
                    selected=None,
                    impact_ratio=None,
                    note=_DROPPED,
                )
            )
    return rows


def _read_columns(audit: Audit, by: Sequence[str] | None) -> dict[str, NDArray[np.str_]]:
    """Read the categories of every row, as text, by column."""
    plan = audit.plan
    own = [each.attribute for each in plan.protections]
    if isinstance(by, str):
        raise PlanError(f"by= takes a list, not a text. Write by=[{by!r}].")
    names = list(dict.fromkeys(own if by is None else by))
    allowed = list(dict.fromkeys([*own, *(each.name for each in plan.attributes)]))
    columns = {}
    everyone = np.arange(len(plan.population))
    for name in names:
        found = plan.population.part(name, everyone) if name in allowed else None
        if found is None or (isinstance(found, Numbers) and name not in own):
            raise PlanError(
                f"{name!r} is no column of categories in this audit.{suggest(name, allowed)} Give "
                "protected statuses or nominal attributes of the audit, such as the sex and the "
                "race of people."
            )
        values = np.array([str(plain_value(each)) for each in _values(found)], dtype=np.str_)
        columns[name] = values
    if not columns:
        raise PlanError("by= is empty. Name at least one column.")
    return columns


def _values(column: Any) -> list[Any]:
    if isinstance(column, Numbers):
        return [f"{each:g}" for each in column.values.tolist()]
    return [column.levels[code] for code in column.codes.tolist()]


def _selected(audit: Audit, score: str | None) -> NDArray[np.bool_]:
    """Mark rows that were selected, or have a score above the median."""
    if score is None and not audit.plan.outcome.kind.two_sided:
        # the outcome is a score itself: who did better than the median
        steps = audit.study.outcomes
        return np.asarray(steps < np.median(steps), dtype=np.bool_)
    if score is None:
        return ~audit.study.outcomes
    population = audit.plan.population
    numeric = [each.name for each in audit.plan.attributes]
    found = population.part(score, np.arange(len(population))) if score in numeric else None
    if not isinstance(found, Numbers):
        raise PlanError(
            f"score={score!r} is no column of numbers in this audit.{suggest(score, numeric)} Name "
            "an attribute that holds the score."
        )
    values = found.values
    return np.asarray(values > np.median(values), dtype=np.bool_)


def _one_table(
    columns: dict[str, NDArray[np.str_]],
    selected: NDArray[np.bool_],
    unknowns: set[str],
    leave_out_below: float,
) -> list[ImpactRatio]:
    table = " × ".join(columns)
    stacked = list(columns.values())
    is_unknown = np.any([np.isin(each, sorted(unknowns)) for each in stacked], axis=0)
    levels = [sorted(set(each.tolist()) - unknowns) for each in stacked]
    counted = []
    for values in product(*levels):
        here = np.all([each == value for each, value in zip(stacked, values, strict=True)], axis=0)
        if here.any():
            counted.append((" × ".join(values), int(here.sum()), int((here & selected).sum())))
    least = Fraction(str(leave_out_below)) * len(selected)
    kept = [Fraction(chosen, all_) for _, all_, chosen in counted if all_ >= least]
    best = max(kept, default=Fraction(0))
    rows = [
        ImpactRatio(
            table=table,
            category=name,
            applicants=all_,
            selected=chosen,
            impact_ratio=Fraction(chosen, all_) / best if best and all_ >= least else None,
            note="" if all_ >= least else f"{all_ / len(selected):.1%} of all: {_LEFT_OUT}",
        )
        for name, all_, chosen in counted
    ]
    if is_unknown.any():
        rows.append(
            ImpactRatio(
                table=table,
                category="unknown",
                applicants=int(is_unknown.sum()),
                selected=int((is_unknown & selected).sum()),
                impact_ratio=None,
                note=_UNKNOWN,
            )
        )
    return rows
