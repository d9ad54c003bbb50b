"""Ordered levels without a formula: counterfactuals against fractions, and what is refused."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from mutandis.causal import Ordinal
from mutandis.causal.equations.ordinal import FittedShares
from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import EquationError, KindError

if TYPE_CHECKING:
    from collections.abc import Sequence


GRADES = ("low", "mid", "high", "top")


def _numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def _names(text: str, levels: Sequence[Any]) -> Categories:
    """Read one letter a row, each the beginning of a level."""
    first = [str(level)[0] for level in levels]
    return Categories(np.array([first.index(letter) for letter in text]), tuple(levels))


def _codes(column: Column) -> list[int]:
    assert isinstance(column, Categories)
    return list(column.codes)


def _slow_shares(
    rows: Sequence[tuple[tuple[int, ...], int]],
    own: tuple[int, ...],
    code: int,
    other: tuple[int, ...],
) -> int:
    """Middle of the interval and its inverse, in fractions."""

    def cumulative(cell: tuple[int, ...], upto: int) -> Fraction:
        inside = [level for causes, level in rows if causes == cell]
        return Fraction(sum(level <= upto for level in inside), len(inside))

    u = (cumulative(own, code - 1) + cumulative(own, code)) / 2
    return next(level for level in itertools.count() if cumulative(other, level) >= u)


@pytest.mark.parametrize("seed", range(6))
def test_empirical_counterfactuals_against_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 80
    first = rng.integers(0, 2, size, dtype=np.int32)
    second = rng.integers(0, 3, size, dtype=np.int32)
    level = rng.integers(0, 4, size, dtype=np.int32)
    parents: dict[str, Column] = {
        "S": Categories(second, ("x", "y", "z")),
        "F": Categories(first, ("f", "m")),
    }
    child = Categories(level, GRADES)
    fitted: Any = Ordinal("S", "F", method="empirical").fit(child, parents)
    assert isinstance(fitted, FittedShares)
    noise = fitted.abduct(child, parents)
    for value in (0, 1):
        moved = {**parents, "F": Categories(np.full(size, value, dtype=np.int32), ("f", "m"))}
        found = _codes(fitted.predict(moved, noise).column)
        rows = list(
            zip(zip(second.tolist(), first.tolist(), strict=True), level.tolist(), strict=True)
        )
        expected = [_slow_shares(rows, causes, code, (causes[0], value)) for causes, code in rows]
        assert found == expected


def test_empirical_shares_by_hand_with_a_tie() -> None:
    """Group a: low 2, high 2; group b: low 1, mid 1, high 2. The middle of a's low is F_b(low)."""
    group = _names("aaaabbbb", ("a", "b"))
    child = _names("llhhlmhh", ("low", "mid", "high"))
    fitted: Any = Ordinal("G", method="empirical").fit(child, {"G": group})
    shares = fitted.probabilities({"G": group}, rows=8)[[0, 4]]
    assert shares.tolist() == [[0.5, 0, 0.5], [0.25, 0.25, 0.5]]
    moved = fitted.predict({"G": group.filled(1)}, fitted.abduct(child, {"G": group})).column
    assert _codes(moved) == [0, 0, 2, 2, 0, 1, 2, 2]


def test_empirical_without_causes() -> None:
    child = _names("llmh", ("low", "mid", "high"))
    fitted: Any = Ordinal(method="empirical").fit(child, {})
    assert fitted.probabilities({}, rows=1).tolist() == [[0.5, 0.25, 0.25]]
    assert _codes(fitted.predict({}, fitted.abduct(child, {})).column) == [0, 0, 1, 2]


def test_empirical_draws_have_the_analytic_distribution() -> None:
    """Low in group a is u in [0, 1/2]; in group b that is low, mid and high by 1/5, 2/5, 2/5."""
    group = Categories(np.repeat([0, 1], [20000, 10]), ("a", "b"))
    child = Categories(np.concatenate([np.arange(20000) % 2 * 2, [0, 1, 1, *[2] * 7]]), GRADES[:3])
    fitted: Any = Ordinal("G", method="empirical").fit(child, {"G": group})
    noise = fitted.abduct(child, {"G": group}, rng=np.random.default_rng(7))
    drawn = np.array(_codes(fitted.predict({"G": group.filled(1)}, noise).column))
    observed = np.bincount(drawn[:20000:2], minlength=3)
    assert stats.chisquare(observed, [2000, 4000, 4000]).pvalue > 0.001
    assert (drawn[1:20000:2] == 2).all()


@pytest.mark.parametrize("code", range(2))
def test_combinations_that_were_never_observed(code: int) -> None:
    first, second = _names("aabb", ("a", "b")), _names("xyxx", ("x", "y", "z"))
    child = _names("lhlh", ("low", "high"))
    facts: dict[str, Column] = {"F": first, "S": second}
    fitted: Any = Ordinal("F", "S", method="empirical").fit(child, facts)
    noise = fitted.abduct(child, facts)
    message = "of 4 rows have a combination of parents that did not occur when the equation was fit"
    with pytest.raises(EquationError, match=f"1 {message}"):
        fitted.predict({"F": first.filled(1), "S": second}, noise)
    with pytest.raises(EquationError, match=f"4 {message}"):
        fitted.predict({"F": first, "S": second.filled(2)}, noise)
    with pytest.raises(EquationError, match=f"2 {message}"):
        fitted.abduct(child, {"F": _names("aacc", ("a", "c")), "S": second})
    one: dict[str, Column] = {"F": _names("a", ("a",)), "S": _names("x", ("x",))}
    with pytest.raises(EquationError, match="1 of 1 rows have a level that nobody with the same"):
        fitted.abduct(_names("h", ("low", "high")), one)
    with pytest.raises(KindError, match="Parent 'F' held names when its equation was fitted"):
        fitted.predict({"F": _numbers(0, 0, 0, 0), "S": second}, noise)


def test_empirical_needs_nominal_causes() -> None:
    child = _names("lhlh", ("low", "high"))
    with pytest.raises(
        EquationError, match=r"parent 'Age' holds numbers\. Declare it as nominal or"
    ):
        Ordinal("Age", method="empirical").fit(child, {"Age": _numbers(1, 2, 3, 4)})
