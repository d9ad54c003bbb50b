"""Newton's method for the convex losses of discrete equations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from mutandis.errors import EquationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Loss", "minimise", "solve_positive"]

_STEPS = 200
_HALVINGS = 60
# The squared distance from the minimum, in standard errors, at which one more step is the last:
# Newton's method squares it once more.
_SETTLED = 1e-12
# An Armijo condition, with room for the rounding of the loss itself.
_SUFFICIENT = 1e-4
_ROUNDING = 1e-12


class Loss(Protocol):
    """A convex function of the coefficients: a negative log-likelihood with a small penalty."""

    def value(self, point: NDArray[np.float64]) -> float:
        """Give the loss; infinite where the coefficients are not allowed."""

    def derivatives(
        self, point: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the gradient and the matrix of second derivatives."""


def minimise(loss: Loss, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find the minimum of a convex loss by Newton's method, halving steps that overshoot.

    Parameters
    ----------
    loss
        What is minimised.
    start
        Where to begin; the loss is finite there.

    Examples
    --------
    >>> class Hyperbola:
    ...     def value(self, point):
    ...         return float(point[0] + 4 / point[0]) if point[0] > 0 else float("inf")
    ...
    ...     def derivatives(self, point):
    ...         return 1 - 4 / point**2, (8 / point**3).reshape(1, 1)
    >>> minimise(Hyperbola(), np.array([0.1])).round(9).tolist()
    [2.0]
    """
    point, height = start, loss.value(start)
    for _ in range(_STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            gradient, curvature = loss.derivatives(point)
            step = solve_positive(curvature, gradient)
            slope = float(np.add.reduce(gradient * step))
        if slope <= _SETTLED:
            return point - step
        lower = _descend(loss, point, height, step, slope)
        if lower is None:
            break
        point, height = lower
    raise EquationError(
        "its coefficients do not settle: the likelihood has no maximum that floating-point numbers "
        "can find. Look for extreme values among the causes, or give them in other units."
    )


def _descend(
    loss: Loss,
    point: NDArray[np.float64],
    height: float,
    step: NDArray[np.float64],
    slope: float,
) -> tuple[NDArray[np.float64], float] | None:
    """Go along the step, or half of it, or half of that, until the loss is lower by enough."""
    share = 1.0
    for _ in range(_HALVINGS):
        candidate = point - share * step
        reached = loss.value(candidate)
        if reached <= height - _SUFFICIENT * share * slope + _ROUNDING * (1 + abs(height)):
            return candidate, reached
        share /= 2
    return None


def solve_positive(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve with a symmetric positive matrix by elimination, without BLAS and its threads.

    A pivot that rounding has left without a value is taken as infinite: what the loss does not
    depend on stays where it is.

    Examples
    --------
    >>> solve_positive(np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([8.0, 8.0])).tolist()
    [1.0, 2.0]
    """
    rest = np.column_stack([matrix, right])
    size = len(right)
    diagonal = np.diagonal(matrix).copy()
    pivots = np.empty(size)
    for place in range(size):
        pivot = rest[place, place]
        pivots[place] = pivot if pivot > np.finfo(np.float64).eps * diagonal[place] else np.inf
        factors = rest[place + 1 :, place] / pivots[place]
        rest[place + 1 :, place:] -= np.outer(factors, rest[place, place:])
    solution = np.zeros(size)
    for place in reversed(range(size)):
        known = float(np.add.reduce(rest[place, place + 1 : size] * solution[place + 1 :]))
        solution[place] = (rest[place, size] - known) / pivots[place]
    return solution
