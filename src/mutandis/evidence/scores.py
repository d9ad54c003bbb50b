"""Compare the scores of control and test group: the difference of means, Welch's interval and test.

Δ is in the units of the score and oriented so that larger is worse. Means and variances are exact:
sums of steps and of their squares. The number of people that a group counts as is that of shares:
its size, or the effective number of a matched group.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.engine.tally import Sums, difference, exceeds
from mutandis.evidence.comparison import Comparison
from mutandis.evidence.intervals import Interval, match_bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.data.score import ScoreScale
    from mutandis.evidence.comparison import Depth

__all__ = ["compare_means", "is_worse", "means_of", "variance_of"]

# degrees of freedom at which Student's distribution is the normal one
_NORMAL = 1e300


def compare_means(
    control: Sums, test: Sums, *, scale: ScoreScale, tau: float, alpha: float, depth: Depth
) -> Comparison:
    r"""Compare means, looking for Δ > τ in units of the score.

    Evidence is decided on integers, with τ read as the decimal that was written.

    Notes
    -----
    The statistic is :math:`t = (\Delta - \tau) / s` with :math:`s^2 = v_c / n_c + v_t / n_t + d`,
    the unbiased variances v of both groups and the variance d of means that rest on estimates (0
    elsewhere). It is compared with Student's distribution with

    .. math:: \nu = \frac{(v_c / n_c + v_t / n_t)^2}
              {(v_c / n_c)^2 / (n_c - 1) + (v_t / n_t)^2 / (n_t - 1)}

    degrees of freedom. Where no one differs from the others in either group, the interval has no
    width and is marked as degenerate. Groups that count as fewer than 15 people are not tested.

    References
    ----------
    Welch (1947), The generalization of "Student's" problem when several different population
    variances are involved, Biometrika 34, 28-35.
    """
    numerator, denominator = difference(control, test)
    evidence = exceeds(numerator, denominator, Fraction(str(tau)) / scale.step)
    delta = scale.differences(numerator, denominator)
    if depth == "evidence":
        interval = Interval.without_bounds(np.full(len(delta), np.nan))
    else:
        interval = _welch(delta, control, test, scale=scale, tau=tau, alpha=alpha)
    return Comparison(
        delta_p=delta,
        evidence=evidence,
        significant=evidence & (interval.p_value <= alpha),
        interval=interval,
        insufficient=np.zeros_like(evidence),
    )


def _welch(
    delta: NDArray[np.float64],
    control: Sums,
    test: Sums,
    *,
    scale: ScoreScale,
    tau: float,
    alpha: float,
) -> Interval:
    from scipy.special import stdtr, stdtrit

    unit, fewest = float(scale.step), max(2, scale.fewest)
    sides, free = [], []
    for share in (control, test):
        people = share.weight
        with np.errstate(divide="ignore", invalid="ignore"):
            sides.append(variance_of(share) * unit**2 / (people - 1))
            free.append(sides[-1] ** 2 / (people - 1))
    chance = sides[0] + sides[1]
    known = [share.doubt * unit**2 for share in (control, test) if share.doubt is not None]
    error = np.sqrt(sum(known, chance))
    degenerate = chance == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        # without any spread there is nothing to estimate it from
        freedom = np.where(degenerate, _NORMAL, chance**2 / (free[0] + free[1]))
        statistic = np.where(delta == tau, 0.0, (delta - tau) / error)
    p_value = np.asarray(stdtr(freedom, -statistic), dtype=np.float64)
    margin = -np.asarray(stdtrit(freedom, alpha)) * error
    few = np.minimum(control.weight, test.weight) < fewest
    p_value[few] = margin[few] = np.nan
    low = delta - margin
    width = margin == 0
    return Interval(
        low=np.where(few | width, low, match_bound(low, p_value, tau=tau, alpha=alpha)),
        high=delta + margin,
        p_value=p_value,
        degenerate=width,
    )


def variance_of(share: Sums) -> NDArray[np.float64]:
    """Give the variance of the steps in each group, divided by its size: exact, rounded once."""
    mean, square = (_fraction(share, column) for column in range(2))
    # E[y²] - E[y]² over a common denominator
    numerator = square[0] * mean[1] ** 2 - mean[0] ** 2 * square[1]
    denominator = square[1] * mean[1] ** 2
    variance = np.full(len(share.places), np.nan)
    filled = np.flatnonzero(denominator > 0)
    variance[filled] = numerator[filled] / denominator[filled]
    return variance


def is_worse(
    steps: NDArray[np.int64], others: Sums, *, scale: ScoreScale, tau: float, worse: bool = True
) -> NDArray[np.bool_]:
    """Tell whose own score is worse than the mean of others by more than τ, exactly.

    With `worse` false: better by more than τ. It is false where there are no others.
    """
    found = np.zeros(len(steps), dtype=np.bool_)
    filled = np.flatnonzero(others.places > 0)
    one = np.ones(len(filled), dtype=np.int64)
    own, there = Sums.of(marks=steps[filled], places=one, parts=one), others.take(filled)
    sides = (own, there) if worse else (there, own)
    found[filled] = exceeds(*difference(*sides), Fraction(str(tau)) / scale.step)
    return found


def means_of(share: Sums, scale: ScoreScale) -> NDArray[np.float64]:
    """Give the mean scores of groups in their units; that of an empty group is missing."""
    return scale.values(share.marks[:, 0], share.places.astype(object) * share.parts[:, 0])


def _fraction(share: Sums, column: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return exact means of a mark as numerators and denominators of Python's integers."""
    whole = share.places.astype(object) * share.parts[:, column].astype(object)
    return share.marks[:, column].astype(object), whole
