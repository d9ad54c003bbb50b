"""How discrete equations are fitted: Newton's method, the basis it works on, and derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import EquationError
from mutandis.numeric.least_squares import minimise, row_products, solve_positive
from mutandis.scm.categorical import _MultinomialLoss
from mutandis.scm.count import _PoissonLoss
from mutandis.scm.ordinal import _OrdinalLoss
from mutandis.scm.predictor import Design, LevelShifts, Slope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.numeric.least_squares import Loss

ROWS = 60


def _parents(seed: int = 0, rows: int = ROWS) -> dict[str, Column]:
    rng = np.random.default_rng(seed)
    return {
        "Age": Numbers(rng.normal(40, 9, rows)),
        "G": Categories(rng.integers(0, 3, rows, dtype=np.int32), ("a", "b", "c")),
        "Pay": Numbers(rng.lognormal(10, 1, rows)),
    }


def _losses() -> dict[str, tuple[Loss, NDArray[np.float64]]]:
    """Each loss, and a point that is no minimum of it."""
    rng = np.random.default_rng(1)
    design = Design.of(_parents(), rows=ROWS)
    counts = rng.poisson(3.0, ROWS).astype(np.float64)
    members = rng.integers(0, 4, ROWS) == np.arange(4)[:, np.newaxis]
    somewhere = rng.normal(0, 0.4, design.size)
    return {
        "poisson": (_PoissonLoss(design=design, counts=counts), somewhere),
        "ordinal": (
            _OrdinalLoss(design=design, members=members),
            np.concatenate([[-1.1, 0.2, 0.9], somewhere[1:]]),
        ),
        "multinomial": (
            _MultinomialLoss(design=design, members=members),
            rng.normal(0, 0.5, 3 * design.size),
        ),
    }


@pytest.mark.parametrize("name", ["poisson", "ordinal", "multinomial"])
def test_derivatives_against_differences(name: str) -> None:
    loss, point = _losses()[name]
    gradient, curvature = loss.derivatives(point)
    small = 1e-5
    for place, direction in enumerate(np.eye(len(point)) * small):
        slope = (loss.value(point + direction) - loss.value(point - direction)) / (2 * small)
        assert gradient[place] == pytest.approx(slope, rel=1e-6, abs=1e-5)
        ahead, behind = (loss.derivatives(point + sign * direction)[0] for sign in (1, -1))
        bend = (ahead - behind) / (2 * small)
        assert curvature[place] == pytest.approx(bend, rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("name", ["poisson", "ordinal", "multinomial"])
def test_the_minimum_is_flat_and_below_all_around_it(name: str) -> None:
    loss, start = _losses()[name]
    found = minimise(loss, start)
    gradient, _ = loss.derivatives(found)
    assert np.abs(gradient).max() < 1e-8
    rng = np.random.default_rng(2)
    lowest = loss.value(found)
    for _ in range(20):
        assert loss.value(found + rng.normal(0, 1e-2, len(found))) > lowest


def test_ordinal_thresholds_that_do_not_rise_are_not_allowed() -> None:
    loss, point = _losses()["ordinal"]
    falling = point.copy()
    falling[:2] = falling[1::-1]
    assert loss.value(falling) == np.inf
    assert np.isfinite(loss.value(point))


def test_the_basis_is_orthogonal_and_translates_back() -> None:
    parents = _parents()
    design = Design.of(parents, rows=ROWS)
    assert design.basis.T @ design.basis == pytest.approx(ROWS * np.eye(design.size), abs=1e-10)
    coefficients = np.random.default_rng(3).normal(size=design.size)
    predictor = design.predictor(coefficients)
    assert predictor.at(parents, rows=ROWS) == pytest.approx(design.at(coefficients), abs=1e-11)
    age, group, pay = predictor.terms
    assert isinstance(age, Slope)
    assert isinstance(group, LevelShifts)
    assert isinstance(pay, Slope)
    assert (age.parent, group.parent, pay.parent) == ("Age", "G", "Pay")
    assert list(group.shifts) == ["a", "b", "c"]
    assert group.shifts["a"] == 0.0


@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1e8, 1e200])
def test_the_basis_does_not_depend_on_units(scale: float) -> None:
    parents = _parents()
    age = parents["Age"]
    assert isinstance(age, Numbers)
    scaled = {**parents, "Age": Numbers(age.values * scale)}
    plain, other = Design.of(parents, rows=ROWS), Design.of(scaled, rows=ROWS)
    assert other.basis == pytest.approx(plain.basis, abs=1e-12)


def test_the_penalty_is_the_variance_of_the_predictor() -> None:
    design = Design.of(_parents(), rows=ROWS)
    coefficients = np.random.default_rng(4).normal(size=design.size)
    variance = float(design.at(coefficients).var())
    assert design.penalty(coefficients) == pytest.approx(1e-10 / 2 * ROWS * variance, rel=1e-9)


def test_sums_and_products_against_matrices() -> None:
    rng = np.random.default_rng(5)
    design = Design.of(_parents(), rows=ROWS)
    weights = rng.normal(size=ROWS)
    assert design.sums(weights) == pytest.approx(design.basis.T @ weights, abs=1e-10)
    left, right = rng.normal(size=(50, 3)), rng.normal(size=(50, 4))
    assert row_products(left, right) == pytest.approx(left.T @ right, abs=1e-12)


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_elimination_against_lapack(size: int) -> None:
    rng = np.random.default_rng(size)
    factor = rng.normal(size=(size, size + 3))
    matrix, right = factor @ factor.T, rng.normal(size=size)
    assert solve_positive(matrix, right) == pytest.approx(np.linalg.solve(matrix, right), rel=1e-7)


def test_elimination_leaves_alone_what_nothing_depends_on() -> None:
    matrix = np.array([[2.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 2.0]])
    assert solve_positive(matrix, np.array([3.0, 5.0, 3.0])).tolist() == [1.0, 0.0, 1.0]


class _Downhill:
    """A loss that falls forever, and says that it is curved."""

    def value(self, point: NDArray[np.float64]) -> float:
        return -float(point[0])

    def derivatives(
        self, point: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return -np.ones_like(point), np.eye(len(point))


class _Uphill(_Downhill):
    """A loss that rises in the direction in which it says that it falls."""

    def value(self, point: NDArray[np.float64]) -> float:
        return float(point[0])


@pytest.mark.parametrize("loss", [_Downhill(), _Uphill()])
def test_a_loss_without_a_minimum_is_refused(loss: Loss) -> None:
    with pytest.raises(EquationError, match="its coefficients do not settle: the likelihood has"):
        minimise(loss, np.array([0.0]))
