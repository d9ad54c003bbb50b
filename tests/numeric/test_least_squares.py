"""Least squares on many rows, and what is left of a constant."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from mutandis.numeric import least_squares as module
from mutandis.numeric.least_squares import (
    is_constant,
    least_squares,
    listed,
)


@pytest.mark.parametrize("rows", [1, 2, 16_383, 16_384, 16_385, 50_000])
def test_sums_over_blocks_leave_no_row_out(rows: int) -> None:
    rng = np.random.default_rng(rows)
    left, right = rng.normal(size=(2, rows))
    exact = math.fsum((left * right).tolist())
    assert module._dot(left, right) == pytest.approx(exact, rel=1e-13, abs=1e-13)
    rest = left.copy()
    product = module._subtract(rest, 0.25, right, left)
    assert rest.tolist() == (left - 0.25 * right).tolist()
    assert product is not None
    assert product == pytest.approx(math.fsum((rest * left).tolist()), rel=1e-12, abs=1e-12)
    assert module._subtract(rest, 0.0, right, None) is None


def test_many_rows_against_their_own_normal_equations() -> None:
    """On whole numbers the normal equations are exact integers, whatever the number of rows."""
    rng = np.random.default_rng(0)
    a, b, x = (rng.integers(-50, 50, 60_001) for _ in range(3))
    response = 7 * a - 3 * b + x
    design = np.column_stack([np.ones_like(a), a, b])
    intercept, coefficients = least_squares(
        response.astype(float), [("A", a.astype(float)), ("B", b.astype(float))]
    )
    truth = np.linalg.solve((design.T @ design).astype(float), (design.T @ response).astype(float))
    assert [intercept, *coefficients] == pytest.approx(truth.tolist(), rel=1e-11)


def test_the_columns_that_are_handed_in_stay_as_they_are() -> None:
    a, response = np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.0, 5.0])
    least_squares(response, [("A", a)])
    assert (a.tolist(), response.tolist()) == ([1.0, 2.0, 4.0], [1.0, 0.0, 5.0])


def test_constants_up_to_rounding() -> None:
    assert is_constant(np.array([0.3, 0.1 + 0.2]))
    assert not is_constant(np.array([1e9, 1e9 + 1]))


def test_labels_in_a_sentence() -> None:
    assert listed(["A", ("B", "C")]) == "'A' and 'B' × 'C'"


_FITTED = """
import numpy as np
from mutandis.numeric.least_squares import least_squares
rng = np.random.default_rng(0)
design = [(str(place), rng.normal(size=200_000)) for place in range(6)]
intercept, coefficients = least_squares(rng.normal(size=200_000), design)
print(*(number.hex() for number in (intercept, *coefficients)))
"""


@pytest.mark.slow  # starts processes
def test_the_number_of_threads_changes_no_bit() -> None:
    found = set()
    for threads in ("1", "2", "8"):
        environment = {f"{library}_NUM_THREADS": threads for library in ("OMP", "OPENBLAS", "MKL")}
        done = subprocess.run(  # noqa: S603 - a text of this file
            [sys.executable, "-c", _FITTED],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
    assert len(found.pop().split()) == 7
