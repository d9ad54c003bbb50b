"""Compiled kernels and their parts compute what Python computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pytest

from mutandis.geometry.kernels.jit import kernel, summing_part

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray


def _ours(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function pass for one of the package: others are compiled as numba does it."""
    function.__module__ = "mutandis.geometry.kernels.tried"
    return function


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Compile in each run: what numba keeps of functions without a module, it cannot load."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))


def test_sums_in_any_order_stay_where_they_are_allowed() -> None:
    @summing_part
    @_ours
    def in_any_order(values: NDArray[np.float64]) -> float:
        total = 0.0
        for place in range(len(values)):
            total += max(values[place], 0.0)
        return total

    @kernel
    @_ours
    def in_both_ways(values: NDArray[np.float64]) -> tuple[float, float]:
        some = in_any_order(values)
        total = 0.0
        for place in range(len(values)):
            total += max(values[place], 0.0)
        return some, total

    # after 1, each is too small to be seen by itself: only together they are
    values = np.full(4096, 2.0**-53)
    values[0] = 1.0
    assert in_both_ways(values)[1] == 1.0
