"""Compare control and test group: Δp, evidence (Def. 5) and significance (Def. 6)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mutandis.results.findings import Comparison
from mutandis.results.interval import Interval
from mutandis.results.share import difference, exceeds

if TYPE_CHECKING:
    from mutandis.inference.intervals import IntervalMethod
    from mutandis.results.findings import Group

__all__ = ["compare", "compare_centers"]


def compare(
    control: Group, test: Group, *, tau: float, alpha: float, interval: IntervalMethod
) -> Comparison:
    """Compare the groups of every complainant.

    Evidence is decided on integers, with τ read as the decimal that was written: nothing is
    rounded before it is compared.
    """
    numerator, denominator = difference(control.share, test.share)
    evidence = exceeds(numerator, denominator, Fraction(str(tau)))
    bounds = interval(control.share, test.share, tau=tau, alpha=alpha)
    return Comparison(
        delta_p=np.asarray(numerator / denominator, dtype=np.float64),
        evidence=evidence,
        significant=evidence & (bounds.p_value <= alpha),
        interval=bounds,
    )


def compare_centers(control: Group, test: Group, *, tau: float) -> Comparison:
    """Compare single centers, as counterfactual fairness does: evidence or none, no interval."""
    numerator, denominator = difference(control.share, test.share)
    evidence = exceeds(numerator, denominator, Fraction(str(tau)))
    missing = np.full(len(evidence), np.nan)
    return Comparison(
        delta_p=np.asarray(numerator / denominator, dtype=np.float64),
        evidence=evidence,
        significant=np.zeros_like(evidence),
        interval=Interval(
            low=missing, high=missing, p_value=missing, degenerate=np.zeros_like(evidence)
        ),
    )
