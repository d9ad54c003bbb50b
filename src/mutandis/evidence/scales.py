"""What is asked of groups whose outcomes are more than two values, whichever kind they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.data.ordered import LevelScale
from mutandis.engine.tally import difference
from mutandis.evidence import levels, scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mutandis.data.ordered import Scale
    from mutandis.engine.tally import Sums
    from mutandis.evidence.comparison import Comparison, Depth

__all__ = ["averages_of", "compare_scaled", "differences_of", "is_worse", "own_average"]


def compare_scaled(
    control: Sums, test: Sums, *, scale: Scale, tau: float, alpha: float, depth: Depth
) -> Comparison:
    """Compare the means of scores, or the relative effect of ordered outcomes."""
    if isinstance(scale, LevelScale):
        return levels.compare_levels(control, test, scale=scale, tau=tau, alpha=alpha, depth=depth)
    return scores.compare_means(control, test, scale=scale, tau=tau, alpha=alpha, depth=depth)


def differences_of(control: Sums, test: Sums, scale: Scale) -> NDArray[np.float64]:
    """Give Δ of groups that are not empty, rounded once."""
    if isinstance(scale, LevelScale):
        return levels.effects_of(control, test)
    found: NDArray[np.float64] = scale.differences(*difference(control, test))
    return found


def averages_of(
    control: Sums, test: Sums, scale: Scale
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the mean scores of both groups, or the shares of pairs in which each has it worse."""
    if isinstance(scale, LevelScale):
        return levels.worse_shares(control, test)
    return scores.means_of(control, scale), scores.means_of(test, scale)


def own_average(outcomes: NDArray[np.int64], others: Sums, scale: Scale) -> NDArray[np.float64]:
    """Give the mean score of others, or θ of each one alone against them."""
    if isinstance(scale, LevelScale):
        return levels.own_effect(outcomes, others, scale)
    return scores.means_of(others, scale)


def is_worse(
    outcomes: NDArray[np.int64], others: Sums, *, scale: Scale, tau: float, worse: bool = True
) -> NDArray[np.bool_]:
    """Tell whose own outcome is worse than those of others by more than τ, or better."""
    if isinstance(scale, LevelScale):
        return levels.is_beyond(outcomes, others, scale=scale, tau=tau, worse=worse)
    return scores.is_worse(outcomes, others, scale=scale, tau=tau, worse=worse)
