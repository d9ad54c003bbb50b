"""What the tests of fitted equations share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NewtonStep = Callable[["Callable[[Floats], float]", "Floats"], "Floats"]
"""Gives how far a function's maximum is from a point, by Newton's method."""


@pytest.fixture(scope="session")
def newton_step() -> NewtonStep:
    """Another library's optimum depends on where its iterations stop, and that on the processor.

    Its likelihood does not. So a fit is compared with the maximum of the likelihood itself: there
    the score vanishes. Derivatives are central differences.
    """

    def step_from(function: Callable[[Floats], float], point: Floats) -> Floats:
        size, width = len(point), 1e-4
        units = width * np.eye(size)
        gradient = np.array([(function(point + u) - function(point - u)) for u in units])
        hessian = np.empty((size, size))
        for one in range(size):
            for other in range(size):
                signs = [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]
                hessian[one, other] = sum(
                    sign * function(point + 50 * (first * units[one] + second * units[other]))
                    for first, second, sign in signs
                )
        curvature = -hessian / (4 * (50 * width) ** 2)
        step: Floats = np.linalg.solve(curvature, gradient / (2 * width)).astype(np.float64)
        assert (np.linalg.eigvalsh(hessian) < 0).all(), "the function has no maximum near here"
        return step

    return step_from
