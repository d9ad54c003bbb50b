"""Outcomes with several classes: each class by itself, beside the declared unfavourable ones.

The audit compares how often the unfavourable classes occur, taken together. Here each class is told
from all others, and compared by the same groups: an unfavourable class is looked for where the
control group has it more often, a favourable one where it has it less often. Each complainant is
then tested once per class, so her p-values are adjusted for the number of classes, by Holm's
procedure, which bounds the chance of a single false finding among them under any dependence.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.doubt import refits_of, weigh_doubt
from mutandis.auditing.run import run_quietly
from mutandis.errors import PlanError
from mutandis.evidence.multiplicity import adjust
from mutandis.evidence.settings import Uncertainty
from mutandis.search.engine import discard_progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.evidence.findings import Findings

__all__ = ["class_records", "compare_classes", "her_class_records"]


def compare_classes(audit: Audit, method: str | None, k: int | None) -> dict[Any, Findings]:
    """Compare every class under one method and k; the unfavourable classes come first."""
    plan = audit.plan
    chosen, size = plan.choose(method, k)
    if plan.outcome.scale is not None:
        what = "has an order" if plan.wording.levels else "is a score"
        raise PlanError(
            f"Outcome {plan.outcome.column!r} {what}, and the audit compares all of it. Classes "
            "are there where negative= is a list of them."
        )
    if plan.outcome.classes is None:
        raise PlanError(
            f"Outcome {plan.outcome.column!r} has two values, and the audit compares them. Classes "
            "are there where negative= is a list and the outcome has more than two values."
        )
    if chosen.count_centers:
        raise PlanError(
            f"Method {chosen.name!r} asks which side the decision maker is on, not which class. "
            "Ask for 'cst_matched', 'cst_without' or 'st'."
        )
    return {value: _compare_class(audit, value, chosen.name, size) for value in _names(audit)}


def _names(audit: Audit) -> tuple[Any, ...]:
    return audit.plan.outcome.class_names


def _compare_class(audit: Audit, value: Any, method: str, k: int) -> Findings:
    """Run the audit with this class as the unfavourable outcome, in its own direction."""
    plan, settings = audit.plan, audit.plan.settings
    other = {"negative": "positive", "positive": "negative"}
    direction: Any = settings.evidence.direction
    if value not in plan.outcome.negatives:
        direction = other[direction]
    doubt = settings.uncertainty
    asked = replace(
        plan,
        outcome=plan.outcome.of_class(value),
        methods=tuple(each for each in plan.methods if each.name == method),
        decision=None,
        settings=replace(
            settings,
            ks=(k,),
            methods=(method,),
            evidence=replace(settings.evidence, direction=direction, primary=(method, k)),
            uncertainty=Uncertainty(draws=doubt.draws, refits=doubt.refits, placebo=0),
        ),
    )
    found = run_quietly(asked, audit.situation, audit.provenance)
    if doubt.refits and plan.combine != "multiple":
        found = weigh_doubt(
            found,
            draws=(),
            refits=refits_of(asked, doubt.refits),
            decide=lambda _: None,
            progress=discard_progress,
        )
    return found.compute_findings(method, k)


def _adjusted(found: Mapping[Any, Findings]) -> NDArray[np.float64]:
    """Adjust the p-values of each complainant (column) for the number of classes (row)."""
    p_values = np.array([each.comparison.interval.p_value for each in found.values()])
    return np.array([adjust(column, method="holm") for column in p_values.T]).T.reshape(
        p_values.shape
    )


def class_records(
    audit: Audit, method: str | None = None, k: int | None = None
) -> list[dict[str, Any]]:
    """Give one record per class: averages over the complainants who are compared, and counts."""
    found = compare_classes(audit, method, k)
    adjusted, alpha = _adjusted(found), audit.plan.settings.alpha
    records = []
    for place, (value, each) in enumerate(found.items()):
        compared = ~each.comparison.insufficient
        rejects = each.comparison.significant & (adjusted[place] <= alpha)
        records.append(
            {
                "class": value,
                "unfavourable": value in audit.plan.outcome.negatives,
                "complainants": int(compared.sum()),
                "p_control": _mean(each.control.share.values()[compared]),
                "p_test": _mean(each.test.share.values()[compared]),
                "delta_p": _mean(each.comparison.delta_p[compared]),
                "cases": int(each.comparison.evidence.sum()),
                "significant": int(each.comparison.significant.sum()),
                "significant_holm": int(rejects.sum()),
            }
        )
    return records


def her_class_records(audit: Audit, place: int, method: str, k: int) -> list[dict[str, Any]]:
    """Give one record per class about one complainant."""
    found = compare_classes(audit, method, k)
    adjusted = _adjusted(found)
    return [
        {
            "class": value,
            "unfavourable": value in audit.plan.outcome.negatives,
            "p_control": float(each.control.share.values()[place]),
            "p_test": float(each.test.share.values()[place]),
            "delta_p": float(each.comparison.delta_p[place]),
            "ci_low": float(each.comparison.interval.low[place]),
            "ci_high": float(each.comparison.interval.high[place]),
            "p_value": float(each.comparison.interval.p_value[place]),
            "p_holm": float(adjusted[row, place]),
        }
        for row, (value, each) in enumerate(found.items())
    ]


def _mean(values: NDArray[np.float64]) -> float:
    return fsum(values.tolist()) / len(values) if len(values) else float("nan")
