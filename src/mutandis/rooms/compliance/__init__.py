"""Texts and measures that authorities ask for: comparisons of whole groups, in tables and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.frames import columns_of, to_frame
from mutandis.rooms.compliance.impact_ratios import compute_impact_ratios
from mutandis.rooms.compliance.propensity import weigh_by_propensity
from mutandis.rooms.compliance.texts import ComplianceText, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.auditing.audit import Audit

__all__ = [
    "ComplianceText",
    "compute_impact_ratios",
    "impact_ratios",
    "propensity_weighted",
    "write_text",
]


def impact_ratios(
    audit: Audit,
    *,
    by: Sequence[str] | None = None,
    unknown: Sequence[Any] = (),
    leave_out_below: float = 0.0,
    score: str | None = None,
) -> Any:
    """Compute the rates of whole groups and their impact ratios (docs/compliance.md).

    They are what New York City's rules on automated employment decision tools ask for (6 RCNY
    § 5-301): the selection rate of each category, divided by the highest one. They compare
    groups as they are, and are no part of situation testing.

    Parameters
    ----------
    audit
        The audit whose people are counted.
    by
        The columns of categories: protected statuses or nominal attributes of the audit, each
        by itself and all of them together. Default: the protected statuses.
    unknown
        Values that say that a category is not known: these people are counted, and left out.
    leave_out_below
        The share of the rows below which a category gets no impact ratio; the rules allow
        0.02. Its people and its rate are shown all the same.
    score
        An attribute that holds a score: the scoring rate is the share above its median.

    Examples
    --------
    >>> import mutandis as mm
    >>> from mutandis.rooms.compliance import impact_ratios
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=400, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous"},
    ...     ks=(10,),
    ... )
    >>> impact_ratios(found)[["category", "applicants", "selected"]].values.tolist()
    [['0', 273, 165], ['1', 126, 48]]
    """
    rows = compute_impact_ratios(
        audit, by=by, unknown=unknown, leave_out_below=leave_out_below, score=score
    )
    return to_frame(columns_of([row.as_row() for row in rows]), audit.plan.population.source)


def propensity_weighted(audit: Audit) -> Any:
    """Compare whole groups, the reference rows weighted to be like the protected ones.

    A table with a row for each protected status (docs/distances.md). Each reference row counts
    e / (1 - e), with its propensity score e, the probability of the protected status given the
    attributes; the difference of the two shares of refusals is then an average over the
    protected (Qureshi et al. 2020). It is about the table, not about a complainant, and
    attributes that the status affects are held as they are.

    Parameters
    ----------
    audit
        The audit of one protected status.

    Examples
    --------
    >>> import mutandis as mm
    >>> from mutandis.rooms.compliance import propensity_weighted
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=2000, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    ...     ks=(10,),
    ... )
    >>> columns = ["p_protected", "p_reference", "p_weighted", "risk_difference"]
    >>> propensity_weighted(found)[columns].round(3).values.tolist()
    [[0.633, 0.38, 0.596, 0.038]]
    """
    rows = [each.as_row() for each in weigh_by_propensity(audit)]
    return to_frame(columns_of(rows), audit.plan.population.source)
