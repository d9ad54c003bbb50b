"""The causes of a discrete attribute as columns on which likelihoods are easily maximised.

Discrete equations are fitted by Newton's method, which wants columns that are independent of each
other and of about the same size. So it works on an orthogonal basis of the declared causes, and
the coefficients are translated back at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from mutandis.causal.fitting.predictor import (
    LevelShifts,
    LinearPredictor,
    Slope,
    fit_linear_predictor,
    occurring_levels,
)
from mutandis.data.columns import Categories

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column

__all__ = ["RIDGE", "Design", "row_products"]

RIDGE = 1e-10
"""What the variance of a linear predictor costs each row, in units of log-likelihood.

Where a cause determines an attribute perfectly (nobody of one status has one of the levels), the
likelihood grows forever with the coefficient. The penalty RIDGE/2 · rows · variance stops it where
the probability is about 1e-9; elsewhere it changes a coefficient in the ninth digit or later. The
variance of the predictor over the rows depends neither on the units of the causes nor on the order
in which they are listed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """An intercept and the causes, as columns that are orthogonal and have mean square 1.

    Parameters
    ----------
    parents
        The causes that it was made from.
    basis
        One row a person, one column for the intercept (all ones) and for each slope or level.
    triangle
        The upper triangle R in: declared columns = basis · R.

    Examples
    --------
    >>> from mutandis.data.columns import Numbers
    >>> design = Design.of({"Age": Numbers(np.array([20.0, 30.0, 40.0, 50.0]))}, rows=4)
    >>> (design.basis[:, 1] ** 2).mean().round(12).item()
    1.0
    >>> predictor = design.predictor(np.array([35.0, 125**0.5]))  # which is the age itself
    >>> round(predictor.intercept, 9), round(predictor.terms[0].slope, 9)
    (0.0, 1.0)
    """

    parents: Mapping[str, Column]
    basis: NDArray[np.float64]
    triangle: NDArray[np.float64]

    @classmethod
    def of(cls, parents: Mapping[str, Column], *, rows: int) -> Design:
        """Build the basis, or refuse causes that are constant or collinear."""
        fit_linear_predictor(np.zeros(rows), parents)  # only for what it refuses
        levels = occurring_levels(parents)
        columns = [
            values
            for name, column in parents.items()
            for values in _columns_of(column, levels.get(name, ()))
        ]
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
        return cls(parents=parents, basis=np.ascontiguousarray(basis.T), triangle=triangle)

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.triangle)

    def penalties(self) -> NDArray[np.float64]:
        """Give the weight of each squared coefficient in the penalty: none for the intercept."""
        return np.array([0.0, *[RIDGE * len(self.basis)] * (self.size - 1)])

    def penalty(self, coefficients: NDArray[np.float64]) -> float:
        """Weigh the variance of a linear predictor over the rows."""
        return float(np.add.reduce(self.penalties() * coefficients**2)) / 2

    def sums(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum each column of the basis over the rows, with a weight for each row."""
        # pairwise sums, column by column: near the minimum, the gradient is all cancellation
        return np.array([float(np.add.reduce(column * weights)) for column in self.basis.T])

    def at(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the linear predictor of each row from coefficients of the basis."""
        # not BLAS: the number of threads is not to change a bit
        predictor: NDArray[np.float64] = np.einsum("rc,c->r", self.basis, coefficients)
        return predictor

    def predictor(self, coefficients: NDArray[np.float64]) -> LinearPredictor:
        """Translate coefficients of the basis into those of the declared causes."""
        own = np.zeros(self.size)
        for place in reversed(range(self.size)):
            explained = float(np.add.reduce(self.triangle[place] * own))
            own[place] = (coefficients[place] - explained) / self.triangle[place, place]
        intercept, *others = own.tolist()
        remaining = iter(others)
        levels = occurring_levels(self.parents)
        terms: list[Slope | LevelShifts] = []
        for name, column in self.parents.items():
            if isinstance(column, Categories):
                first, *further = (column.levels[code] for code in levels[name])
                shifts = {first: 0.0, **{level: next(remaining) for level in further}}
                terms.append(LevelShifts(parent=name, shifts=MappingProxyType(shifts)))
            else:
                terms.append(Slope(parent=name, slope=next(remaining)))
        return LinearPredictor(intercept=intercept, terms=tuple(terms))


def row_products(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum the products of every column of one array with every column of the other.

    Examples
    --------
    >>> row_products(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [10.0]])).tolist()
    [[31.0], [42.0]]
    """
    products: NDArray[np.float64] = np.einsum("ra,rb->ab", left, right)
    return products


def _columns_of(column: Column, codes: Sequence[int]) -> list[NDArray[np.float64]]:
    if isinstance(column, Categories):
        return [(column.codes == code).astype(np.float64) for code in codes[1:]]
    return [column.values]
