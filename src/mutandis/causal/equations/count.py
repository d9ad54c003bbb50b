"""Counts: Poisson regression, and counterfactuals by monotone coupling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.causal.equations.coupling import MONOTONE, MonotoneNoise
from mutandis.causal.equations.equation import Bounds, Predicted, finish, numbers_of, read_bounds
from mutandis.causal.equations.poisson import abduct_counts, predict_counts, require_counts
from mutandis.causal.fitting.design import Design, row_products
from mutandis.causal.fitting.newton import minimise
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mutandis.causal.fitting.predictor import LinearPredictor
    from mutandis.data.columns import Column

__all__ = ["Count", "FittedCount"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Count:
    """X ~ Poisson(exp(b0 + b1·pa1 + b2·pa2 + …)), fitted by maximum likelihood.

    Numeric parents enter linearly; nominal parents have one shift a level, against the first level
    that occurs. Causes act by factors on the expected count.

    Parameters
    ----------
    *parents
        The direct causes, by column name.
    bounds
        The lowest and the highest count there can be, whole numbers; None where there is no such
        limit. Predictions beyond are cut off there, and counted. They apply to every row, also to
        one on which nothing was changed.

    Notes
    -----
    A count does not determine the noise behind it. Counterfactuals assume monotone coupling (see
    `coupling.py`): a person keeps her rank among people with the same causes.

    If all counts are 0 at some level of a cause, the likelihood has no maximum. A penalty that is
    too small to be seen anywhere else then keeps the coefficient finite (`design.RIDGE`).

    Examples
    --------
    >>> Count("Gender", bounds=(0, 20))
    Count('Gender', bounds=(0.0, 20.0))
    >>> from mutandis.data.columns import Numbers
    >>> gender = {"Gender": Numbers(np.array([0.0, 0.0, 1.0, 1.0]))}
    >>> jobs = Numbers(np.array([4.0, 8.0, 1.0, 3.0]))
    >>> fitted = Count("Gender").fit(jobs, gender)
    >>> fitted.means(gender, rows=4).round(6).tolist()
    [6.0, 6.0, 2.0, 2.0]
    >>> everybody_zero = {"Gender": Numbers(np.zeros(4))}
    >>> fitted.predict(everybody_zero, fitted.abduct(jobs, gender)).values.tolist()
    [4.0, 8.0, 4.0, 8.0]
    """

    parents: tuple[str, ...]
    bounds: Bounds | None

    def __init__(self, *parents: str, bounds: Bounds | None = None) -> None:
        read = read_bounds(bounds)
        if any(bound is not None and not bound.is_integer() for bound in read or ()):
            raise EquationError(
                f"bounds={read} are not whole numbers, but counts are. Round them inwards."
            )
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "bounds", read)

    def __repr__(self) -> str:
        """Show the call that makes it, without what is left at its default."""
        settings = [f"bounds={self.bounds!r}"] if self.bounds is not None else []
        return f"Count({', '.join([*map(repr, self.parents), *settings])})"

    @property
    def coupling(self) -> str:
        """The assumption that counterfactual counts rest on."""
        return MONOTONE

    def fit(self, child: Column, parents: Mapping[str, Column]) -> FittedCount:
        """Estimate the coefficients by maximum likelihood."""
        counts = numbers_of(child)
        require_counts(counts)
        if not counts.any():
            raise EquationError(
                "the count is 0 in every row, so nothing can be learnt about it. Remove its "
                "equation, or fit on a table in which it occurs."
            )
        design = Design.of({name: parents[name] for name in self.parents}, rows=len(counts))
        mean = float(np.add.reduce(counts)) / len(counts)
        start = np.array([np.log(mean), *[0.0] * (design.size - 1)])
        coefficients = minimise(_PoissonLoss(design=design, counts=counts), start)
        return FittedCount(predictor=design.predictor(coefficients), bounds=self.bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCount:
    """A Poisson regression with its coefficients."""

    predictor: LinearPredictor
    bounds: Bounds | None = None

    def explained(self, parents: Mapping[str, Column], *, rows: int) -> NDArray[np.float64]:
        """Compute the logarithm of the expected count, row by row."""
        return self.predictor.at(parents, rows=rows)

    def means(self, parents: Mapping[str, Column], *, rows: int) -> NDArray[np.float64]:
        """Compute the expected count, row by row."""
        return np.exp(self.explained(parents, rows=rows))

    def abduct(
        self,
        child: Column,
        parents: Mapping[str, Column],
        *,
        rng: np.random.Generator | None = None,
    ) -> MonotoneNoise:
        """Recover each row's rank among rows with the same causes: the middle, or a draw."""
        counts = numbers_of(child)
        return abduct_counts(counts, self.explained(parents, rows=len(counts)), rng=rng)

    def predict(self, parents: Mapping[str, Column], noise: MonotoneNoise) -> Predicted:
        """Give the count at the same rank among rows with these causes, and clip it."""
        explained = self.explained(parents, rows=len(noise.factual))
        return finish(predict_counts(explained, noise), bounds=self.bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PoissonLoss:
    """The negative log-likelihood of counts, with the penalty on the variance of the predictor."""

    design: Design
    counts: NDArray[np.float64]

    def value(self, point: NDArray[np.float64]) -> float:
        predictor = self.design.at(point)
        with np.errstate(over="ignore"):
            unlikely = float(np.add.reduce(np.exp(predictor) - self.counts * predictor))
        return unlikely + self.design.penalty(point)

    def derivatives(
        self, point: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        basis, penalties = self.design.basis, self.design.penalties()
        means = np.exp(self.design.at(point))
        gradient = self.design.sums(means - self.counts) + penalties * point
        curvature = row_products(basis, basis * means[:, np.newaxis]) + np.diag(penalties)
        return gradient, curvature
