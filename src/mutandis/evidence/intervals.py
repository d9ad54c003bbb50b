"""Confidence intervals for Δp, behind one interface that other intervals join.

Bounds are two one-sided ones at level 1 - α each, the p-value tests H0: π ≤ τ, and both come from
the same statistic. All of it is conditional on the worldview: it says how far chance in *who was
decided upon* could explain Δp, not whether the counterfactual is the right one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from mutandis.evidence.agresti_newcombe import (
    agresti_caffo,
    agresti_caffo_rejects,
    newcombe,
    newcombe_rejects,
)
from mutandis.evidence.fisher import fisher, fisher_rejects
from mutandis.evidence.interval import Interval
from mutandis.evidence.miettinen_nurminen import miettinen_nurminen, score_rejects, score_test
from mutandis.evidence.wald import wald, wald_rejects

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "DEFAULT_INTERVAL",
    "INTERVALS",
    "REJECTS",
    "TESTS",
    "IntervalMethod",
    "IntervalName",
]

IntervalName = Literal["miettinen-nurminen", "agresti-caffo", "newcombe", "wald", "fisher"]
IntervalMethod = Callable[..., Interval]

DEFAULT_INTERVAL: IntervalName = "miettinen-nurminen"

INTERVALS: dict[IntervalName, IntervalMethod] = {
    "miettinen-nurminen": miettinen_nurminen,
    "agresti-caffo": agresti_caffo,
    "newcombe": newcombe,
    "wald": wald,
    "fisher": fisher,
}
"""Every interval by its name; `interval=` of an audit picks one."""

TESTS: dict[IntervalName, IntervalMethod] = {**INTERVALS, "miettinen-nurminen": score_test}
"""The same p-values; bounds that take longer than the test itself are missing: for counting."""

REJECTS: dict[IntervalName, Callable[..., NDArray[np.bool_]]] = {
    "miettinen-nurminen": score_rejects,
    "agresti-caffo": agresti_caffo_rejects,
    "newcombe": newcombe_rejects,
    "wald": wald_rejects,
    "fisher": fisher_rejects,
}
"""The test that belongs to each interval, without the bounds: for planning."""
