"""Compiling kernels: numba is spared what they do not need, and left as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pytest
from numba.core.types.functions import BaseFunction

from mutandis.search.kernels import quick_numba
from mutandis.search.kernels.jit import TRIED, kernel, part, summing_part

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray


def _ours(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function pass for one of the package: others are compiled as numba does it."""
    function.__module__ = "mutandis.search.kernels.tried"
    return function


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Compile in each run: what numba keeps of functions without a module, it cannot load."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))


def _subtractions_looked_up(monkeypatch: pytest.MonkeyPatch) -> int:
    """Compile a kernel with four subtractions; count how often numba looks up what they give."""
    looked_up: list[str] = []
    look_up: Any = BaseFunction.get_call_type

    def noted(self: Any, context: Any, arguments: Any, keywords: Any) -> Any:
        looked_up.append(str(self))
        return look_up(self, context, arguments, keywords)

    @_ours
    def farthest_of(values: NDArray[np.float64], others: NDArray[np.float64]) -> float:
        farthest = 0.0
        for place in range(len(values)):
            apart = values[place] - others[place] - (others[place] - values[place])
            farthest = max(farthest, apart - farthest)
        return farthest

    values, others = np.array([1.0, 5.0, 2.0]), np.array([-3.0, 4.0, 2.5])
    with monkeypatch.context() as patched:
        patched.setattr(BaseFunction, "get_call_type", noted)
        patched.setattr(quick_numba, "_signatures", {})
        assert kernel(farthest_of)(values, others) == farthest_of(values, others)
    return sum("function sub" in name for name in looked_up)


def test_types_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _subtractions_looked_up(monkeypatch) == 1


def test_a_numba_that_was_not_tried_compiles_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba, "__version__", "9.9.9")
    assert _subtractions_looked_up(monkeypatch) >= 4


def test_the_numba_that_is_installed_was_tried() -> None:
    assert numba.__version__.startswith(TRIED)


def test_a_part_can_be_pasted_twice_and_index_from_behind() -> None:
    @part
    @_ours
    def moved(values: NDArray[np.float64], by: int) -> float:
        last: float = values[-1]
        for place in range(len(values) - 1, 0, -1):
            values[place] = values[place - 1] + by
        values[0] = last
        return last

    @kernel
    @_ours
    def move_rows(rows: NDArray[np.float64]) -> float:
        total = 0.0
        for row in range(len(rows)):
            total += moved(rows[row], 1) if row % 2 else moved(rows[-1 - row], 2)
            rows[row, -1] += rows[-1, row]
        return total

    rows = np.arange(16.0).reshape(4, 4)
    expected = rows.copy()
    # parts are what they are in Python, too
    move: Any = moved.py_func  # type: ignore[attr-defined]
    total = 0.0
    for row in range(4):
        total += move(expected[row], 1) if row % 2 else move(expected[-1 - row], 2)
        expected[row, -1] += expected[-1, row]
    assert move_rows(rows) == total
    np.testing.assert_array_equal(rows, expected)


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


def test_numba_is_left_as_it_was() -> None:
    @kernel
    @_ours
    def first_of(values: NDArray[np.float64]) -> float:
        first: float = values[0]
        return first

    @kernel
    @_ours
    def fails(values: Any) -> Any:
        return values.no_such_attribute

    replaced = [(owner, name) for owner, name, _ in quick_numba._replacements()]
    before = [vars(owner)[name] for owner, name in replaced]
    with quick_numba.quick_numba():
        within = [vars(owner)[name] for owner, name in replaced]
    assert all(ours is not numbas for ours, numbas in zip(within, before, strict=True))
    assert first_of(np.ones(3)) == 1.0
    assert [vars(owner)[name] for owner, name in replaced] == before
    with pytest.raises(Exception, match="no_such_attribute"):
        fails(np.ones(3))
    assert [vars(owner)[name] for owner, name in replaced] == before
