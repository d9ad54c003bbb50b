"""Fisher's exact test: no approximation, no interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.errors import PlanError
from mutandis.evidence.distinct_pairs import on_distinct
from mutandis.evidence.interval import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.search.share import Share

__all__ = ["fisher", "fisher_rejects"]

_ROUNDING = 1e-12


@on_distinct
def fisher(control: Share, test: Share, *, tau: float, alpha: float) -> Interval:
    """Test H0: π ≤ 0 exactly, given how many were refused in both groups together.

    Parts of people, which fair ties bring about, are rounded against the claim: refusals in the
    control group down, in the test group up. There are no bounds for Δp in this test; they are
    missing.

    Examples
    --------
    >>> import numpy as np
    >>> from mutandis.search.share import Share
    >>> one = np.array([1])
    >>> all_refused = Share(negatives=3 * one, size=3 * one, split=one)
    >>> none_refused = Share(negatives=0 * one, size=3 * one, split=one)
    >>> fisher(all_refused, none_refused, tau=0.0, alpha=0.05).p_value.tolist()
    [0.05]
    """
    return Interval.without_bounds(_p_value(control, test, tau=tau, alpha=alpha))


def fisher_rejects(control: Share, test: Share, *, tau: float, alpha: float) -> NDArray[np.bool_]:
    """Tell where π ≤ 0 is rejected."""
    return np.asarray(_p_value(control, test, tau=tau, alpha=alpha) <= alpha, dtype=np.bool_)


def _p_value(control: Share, test: Share, *, tau: float, alpha: float) -> NDArray[np.float64]:
    from scipy.stats import hypergeom

    if tau != 0:
        raise PlanError(
            f"interval='fisher' tests against τ = 0 only, not against tau={tau}. "
            "Use 'miettinen-nurminen' for another τ."
        )
    refused_control = control.negatives // control.split
    refused_test = -(-test.negatives // test.split)
    refused = refused_control + refused_test
    # P(at least so many of the refusals fall into the control group)
    p_value = hypergeom.sf(refused_control - 1, control.size + test.size, refused, control.size)
    # the exact p-value is a fraction and may be α itself: rounding must not decide which side
    same = np.abs(p_value - alpha) <= _ROUNDING * alpha
    return np.asarray(np.where(same, alpha, p_value), dtype=np.float64)
