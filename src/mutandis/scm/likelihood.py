"""Maximum likelihood for discrete equations: Newton's method on an orthogonal basis of the causes.

Newton's method wants columns that are independent of each other and of about the same size. So it
works on an orthogonal basis of the declared causes, and the coefficients are translated back at the
end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mutandis.errors import EquationError
from mutandis.numeric.least_squares import require_few
from mutandis.scm.predictor import (
    LinearPredictor,
    SingleTerm,
    fit_linear_predictor,
)

if TYPE_CHECKING:
    from mutandis.data.columns import Columns, Floats


RIDGE = 1e-10
"""The penalty per row on the variance of a linear predictor, in units of log-likelihood.

Where a cause determines an attribute perfectly (no row of one status has one of the levels), the
likelihood grows forever with the coefficient. The penalty RIDGE/2 · rows · variance stops it where
the probability is about 1e-9; elsewhere it changes a coefficient in the ninth digit or later. The
variance of the predictor over the rows depends neither on the units of the causes nor on the order
in which they are listed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """An intercept and the causes, as columns that are orthogonal and have mean square 1."""

    terms: tuple[SingleTerm, ...]
    """The declared causes, with coefficients of no meaning."""
    basis: Floats
    """One row per person; a column of ones for the intercept, then one for each slope or level."""
    triangle: Floats
    """The upper triangle R in: declared columns = basis · R."""

    @classmethod
    def of(cls, parents: Columns, *, rows: int) -> Design:
        """Build the basis, or refuse causes that are constant or collinear."""
        rough = fit_linear_predictor(np.zeros(rows), parents)
        terms = tuple(term for term in rough.terms if isinstance(term, SingleTerm))
        columns = [values for term in terms for values in term.design(parents[term.parent])]
        basis = np.ones((1 + len(columns), rows))
        triangle = np.eye(1 + len(columns))
        for place, values in enumerate(columns, start=1):
            # a power of two, so that dividing by it rounds nothing; then squares cannot overflow
            scale = float(np.ldexp(1.0, np.frexp(np.abs(values).max())[1]))
            rest = values / scale
            for before in range(place):
                share = float(np.add.reduce(basis[before] * rest)) / rows
                rest -= share * basis[before]
                triangle[before, place] = share * scale
            length = (float(np.add.reduce(rest * rest)) / rows) ** 0.5
            basis[place] = rest / length
            triangle[place, place] = length * scale
        return cls(terms=terms, basis=np.ascontiguousarray(basis.T), triangle=triangle)

    @property
    def size(self) -> int:
        return len(self.triangle)

    def penalties(self) -> Floats:
        """Return the weight of each squared coefficient in the penalty: none for the intercept."""
        return np.array([0.0, *[RIDGE * len(self.basis)] * (self.size - 1)])

    def penalty(self, coefficients: Floats) -> float:
        """Compute the penalty on the variance of a linear predictor over the rows."""
        return float(np.add.reduce(self.penalties() * coefficients**2)) / 2

    def sums(self, weights: Floats) -> Floats:
        """Sum each column of the basis over the rows, with a weight for each row."""
        # pairwise sums, column by column: near the minimum, the gradient is all cancellation
        return np.array([float(np.add.reduce(column * weights)) for column in self.basis.T])

    def at(self, coefficients: Floats) -> Floats:
        # not BLAS: the number of threads is not to change a bit
        predictor: Floats = np.einsum("rc,c->r", self.basis, coefficients)
        return predictor

    def predictor(self, coefficients: Floats) -> LinearPredictor:
        """Translate coefficients of the basis into those of the declared causes."""
        own = np.zeros(self.size)
        for place in reversed(range(self.size)):
            explained = float(np.add.reduce(self.triangle[place] * own))
            own[place] = (coefficients[place] - explained) / self.triangle[place, place]
        intercept, *others = own.tolist()
        remaining = iter(others)
        terms = tuple(term.with_coefficients(remaining) for term in self.terms)
        return LinearPredictor(intercept=intercept, terms=terms)


def row_products(left: Floats, right: Floats) -> Floats:
    products: Floats = np.einsum("ra,rb->ab", left, right)
    return products


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

    def value(self, point: Floats) -> float:
        """Compute the loss; infinite where the coefficients are not allowed."""

    def derivatives(self, point: Floats) -> tuple[Floats, Floats]:
        """Compute the gradient and the matrix of second derivatives."""


def minimise(loss: Loss, start: Floats) -> Floats:
    """Find the minimum of a convex loss by Newton's method, halving steps that overshoot."""
    require_few(len(start))
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
    point: Floats,
    height: float,
    step: Floats,
    slope: float,
) -> tuple[Floats, float] | None:
    """Halve the step until the loss falls by enough."""
    share = 1.0
    for _ in range(_HALVINGS):
        candidate = point - share * step
        reached = loss.value(candidate)
        if reached <= height - _SUFFICIENT * share * slope + _ROUNDING * (1 + abs(height)):
            return candidate, reached
        share /= 2
    return None


def solve_positive(matrix: Floats, right: Floats) -> Floats:
    """Solve with a symmetric positive matrix by elimination, without BLAS and its threads."""
    rest = np.column_stack([matrix, right])
    size = len(right)
    diagonal = np.diagonal(matrix).copy()
    pivots = np.empty(size)
    for place in range(size):
        # one that rounding has left without a value: what the loss does not depend on stays
        pivot = rest[place, place]
        pivots[place] = pivot if pivot > np.finfo(np.float64).eps * diagonal[place] else np.inf
        factors = rest[place + 1 :, place] / pivots[place]
        rest[place + 1 :, place:] -= np.outer(factors, rest[place, place:])
    solution = np.zeros(size)
    for place in reversed(range(size)):
        known = float(np.add.reduce(rest[place, place + 1 : size] * solution[place + 1 :]))
        solution[place] = (rest[place, size] - known) / pivots[place]
    return solution
