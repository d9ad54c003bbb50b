"""How discrete equations are fitted: Newton's method, the basis it works on, and derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mutandis.data.columns import Column, Numbers
from mutandis.errors import EquationError
from mutandis.numeric.least_squares import minimise, row_products, solve_positive
from mutandis.scm.categorical import _MultinomialLoss
from mutandis.scm.count import _PoissonLoss
from mutandis.scm.ordinal import _OrdinalLoss
from mutandis.scm.predictor import Design
from tests.scm.columns import names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.numeric.least_squares import Loss

ROWS = 60


def _parents(unit: float = 1.0) -> dict[str, Column]:
    rng = np.random.default_rng(0)
    return {
        "Age": Numbers(unit * rng.normal(40, 9, ROWS)),
        "G": names(rng.integers(0, 3, ROWS), "abc"),
        "Pay": Numbers(rng.lognormal(10, 1, ROWS)),
    }


DESIGN = Design.of(_parents(), rows=ROWS)


def _losses() -> dict[str, tuple[Loss, NDArray[np.float64]]]:
    """Each loss, and a point that is no minimum of it."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(3.0, ROWS).astype(np.float64)
    members = rng.integers(0, 4, ROWS) == np.arange(4)[:, np.newaxis]
    point = rng.normal(0, 0.4, DESIGN.size)
    rising = np.concatenate([[-1.1, 0.2, 0.9], point[1:]])
    several = rng.normal(0, 0.5, 3 * DESIGN.size)
    return {
        "poisson": (_PoissonLoss(design=DESIGN, counts=counts), point),
        "ordinal": (_OrdinalLoss(design=DESIGN, members=members), rising),
        "multinomial": (_MultinomialLoss(design=DESIGN, members=members), several),
    }


@pytest.mark.parametrize("name", ["poisson", "ordinal", "multinomial"])
def test_derivatives_against_differences_and_minima_below_all_around_them(name: str) -> None:
    loss, point = _losses()[name]
    gradient, curvature = loss.derivatives(point)
    small = 1e-5
    for place, direction in enumerate(np.eye(len(point)) * small):
        slope = (loss.value(point + direction) - loss.value(point - direction)) / (2 * small)
        assert gradient[place] == pytest.approx(slope, rel=1e-6, abs=1e-5)
        ahead, behind = (loss.derivatives(point + sign * direction)[0] for sign in (1, -1))
        assert curvature[place] == pytest.approx((ahead - behind) / (2 * small), rel=1e-6, abs=1e-5)
    found = minimise(loss, point)
    assert np.abs(loss.derivatives(found)[0]).max() < 1e-8
    rng = np.random.default_rng(2)
    around = [loss.value(found + rng.normal(0, 1e-2, len(found))) for _ in range(20)]
    assert min(around) > loss.value(found)


def test_ordinal_thresholds_that_do_not_rise_are_not_allowed() -> None:
    loss, point = _losses()["ordinal"]
    falling = point.copy()
    falling[:2] = falling[1::-1]
    assert loss.value(falling) == np.inf


def test_the_basis_is_orthogonal_and_translates_back() -> None:
    assert DESIGN.basis.T @ DESIGN.basis == pytest.approx(ROWS * np.eye(DESIGN.size), abs=1e-10)
    rng = np.random.default_rng(3)
    coefficients, weights = rng.normal(size=DESIGN.size), rng.normal(size=ROWS)
    found = DESIGN.at(coefficients)
    predictor: Any = DESIGN.predictor(coefficients)
    assert predictor.at(_parents(), rows=ROWS) == pytest.approx(found, abs=1e-11)
    assert [term.parents for term in predictor.terms] == [("Age",), ("G",), ("Pay",)]
    assert predictor.terms[1].effects[("a",)] == 0.0
    # the penalty is the variance of the predictor
    assert DESIGN.penalty(coefficients) == pytest.approx(1e-10 / 2 * ROWS * found.var(), rel=1e-9)
    assert DESIGN.sums(weights) == pytest.approx(DESIGN.basis.T @ weights, abs=1e-10)
    left, right = rng.normal(size=(50, 3)), rng.normal(size=(50, 4))
    assert row_products(left, right) == pytest.approx(left.T @ right, abs=1e-12)
    for unit in (1e-200, 1e-8, 1e8, 1e200):
        other = Design.of(_parents(unit), rows=ROWS)
        assert other.basis == pytest.approx(DESIGN.basis, abs=1e-12)


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_elimination_against_lapack(size: int) -> None:
    rng = np.random.default_rng(size)
    factor = rng.normal(size=(size, size + 3))
    matrix, right = factor @ factor.T, rng.normal(size=size)
    assert solve_positive(matrix, right) == pytest.approx(np.linalg.solve(matrix, right), rel=1e-7)
    # what nothing depends on is left alone
    matrix = np.array([[2.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 2.0]])
    assert solve_positive(matrix, np.array([3.0, 5.0, 3.0])).tolist() == [1.0, 0.0, 1.0]


class _Endless:
    """A loss that falls forever, or rises where it says that it falls."""

    def __init__(self, sign: float) -> None:
        self.sign = sign

    def value(self, point: NDArray[np.float64]) -> float:
        return self.sign * float(point[0])

    def derivatives(self, point: NDArray[np.float64]) -> Any:
        return -np.ones_like(point), np.eye(len(point))


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_loss_without_a_minimum_is_refused(sign: float) -> None:
    with pytest.raises(EquationError, match="its coefficients do not settle: the likelihood has"):
        minimise(_Endless(sign), np.array([0.0]))
