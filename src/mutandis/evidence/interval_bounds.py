"""Bounds from curves: where a statistic crosses its critical value."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from mutandis.search.share import Share

__all__ = ["Counts", "agreeing", "find_crossing"]

# of a difference of shares, or of a z: far below anything that is ever shown
_TOLERANCE = 1e-13


class Counts(NamedTuple):
    """The shares of both groups and their sizes, as floats."""

    p_control: NDArray[np.float64]
    p_test: NDArray[np.float64]
    n_control: NDArray[np.float64]
    n_test: NDArray[np.float64]

    @classmethod
    def of(cls, control: Share, test: Share) -> Counts:
        """Read two shares."""
        return cls(
            p_control=control.values(),
            p_test=test.values(),
            n_control=control.size.astype(np.float64),
            n_test=test.size.astype(np.float64),
        )

    @property
    def delta(self) -> NDArray[np.float64]:
        """Δp."""
        return self.p_control - self.p_test

    @property
    def exchanged(self) -> Counts:
        """The same with control and test group exchanged."""
        return Counts(self.p_test, self.p_control, self.n_test, self.n_control)


def find_crossing(
    falling: Callable[..., NDArray[np.float64]],
    low: NDArray[np.float64] | float,
    high: NDArray[np.float64] | float,
    arguments: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Find where each of many falling curves crosses zero, between low and high.

    A curve that lies below zero throughout gives `low`, one that lies above gives `high`.

    Parameters
    ----------
    falling
        The curves: a function of a place on each, and of the arguments.
    low, high
        Where to look.
    arguments
        What tells the curves apart: at least one column, with an entry for each curve.

    Examples
    --------
    >>> import numpy as np
    >>> find_crossing(lambda x, a: a - x**3, 0.0, 10.0, [np.array([-1.0, 8.0, 2000.0])]).round(9)
    array([ 0.,  2., 10.])
    """
    from scipy.optimize import elementwise

    low = np.broadcast_to(np.asarray(low, dtype=np.float64), arguments[0].shape)
    high = np.broadcast_to(np.asarray(high, dtype=np.float64), arguments[0].shape)
    above, below = falling(low, *arguments) > 0, falling(high, *arguments) < 0
    found = np.where(above, high, low)
    crosses = above & below
    if crosses.any():
        root = elementwise.find_root(
            falling,
            (low[crosses], high[crosses]),
            args=tuple(column[crosses] for column in arguments),
            tolerances={"xatol": _TOLERANCE, "xrtol": _TOLERANCE, "fatol": 0.0, "frtol": 0.0},
        )
        found[crosses] = root.x
    return found


def agreeing(
    low: NDArray[np.float64], p_value: NDArray[np.float64], *, tau: float, alpha: float
) -> NDArray[np.float64]:
    """Keep the last bit of a lower bound from contradicting the p-value that it belongs to.

    Examples
    --------
    >>> import numpy as np
    >>> agreeing(np.array([0.1 - 1e-15]), np.array([0.05]), tau=0.1, alpha=0.05).tolist()
    [0.1]
    """
    rejected = p_value <= alpha
    return np.where(rejected, np.maximum(low, tau), np.minimum(low, np.nextafter(tau, -1)))
