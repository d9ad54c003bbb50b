"""Compiling kernels: numba looks types up once, and is left as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numba.core.registry import cpu_target
from numba.core.typing.context import BaseContext

from mutandis.search.kernels.jit import kernel, summing_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def _ours(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function pass for one of the package: others are compiled as numba does it."""
    function.__module__ = "mutandis.search.kernels.tried"
    return function


def test_types_are_looked_up_once_for_each_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[tuple[str, Any]] = []
    look_up: Any = BaseContext.resolve_function_type

    def noted(self: BaseContext, function: Any, arguments: Any, keywords: Any) -> Any:
        looked_up.append((str(function), tuple(arguments)))
        return look_up(self, function, arguments, keywords)

    monkeypatch.setattr(BaseContext, "resolve_function_type", noted)

    @_ours
    def farthest_of(values: NDArray[np.float64], others: NDArray[np.float64]) -> float:
        farthest = 0.0
        for place in range(len(values)):
            apart = values[place] - others[place] - (others[place] - values[place])
            farthest = max(farthest, apart - farthest)
        return farthest

    values, others = np.array([1.0, 5.0, 2.0]), np.array([-3.0, 4.0, 2.5])
    assert kernel(farthest_of)(values, others) == farthest_of(values, others)
    subtractions = [call for call in looked_up if "function sub" in call[0]]
    assert len(subtractions) == 1, subtractions


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

    assert first_of(np.ones(3)) == 1.0
    assert "resolve_function_type" not in vars(cpu_target.typing_context)
    with pytest.raises(Exception, match="no_such_attribute"):
        fails(np.ones(3))
    assert "resolve_function_type" not in vars(cpu_target.typing_context)
