"""Interactions that cannot be fitted, or not be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mutandis.causal import FittedLinear, Linear
from mutandis.causal.fitting.predictor import CellShifts, LevelSlopes, ProductSlope
from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import EquationError, KindError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def _numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def _names(codes: Sequence[int] | NDArray[Any], levels: Sequence[Any]) -> Categories:
    return Categories(np.array(codes, dtype=np.int32), tuple(levels))


def _fit(response: Any, **parents: Column) -> FittedLinear:
    child = Numbers(np.asarray(response, dtype=np.float64))
    return Linear(*parents, interactions=True).fit(child, parents)


def test_a_product_that_is_the_same_everywhere() -> None:
    a = _numbers(1, 2, 4, 8)
    b = _numbers(8, 4, 2, 1)
    with pytest.raises(EquationError) as caught:
        _fit([1, 2, 3, 5], A=a, B=b)
    assert str(caught.value) == (
        "the product of 'A' × 'B' is the same in every row, so nothing tells what they do "
        "together. Leave the interactions out, or remove one of these parents."
    )


def test_a_collinear_interaction_is_named() -> None:
    rng = np.random.default_rng(3)
    a, b, c = rng.normal(size=(3, 50))
    with pytest.raises(EquationError) as caught:
        _fit(
            rng.normal(size=50), A=Numbers(a), B=Numbers(b), C=Numbers(2 * a * b - c), D=Numbers(c)
        )
    assert str(caught.value) == (
        "interaction 'A' × 'B' is perfectly collinear with 'C' and 'D': it says nothing that is "
        "not said already, so their effects cannot be told apart. Leave the interactions out, or "
        "remove one of these parents."
    )


def test_interactions_that_determine_each_other() -> None:
    """Gender × Race says who is in the group; group × anything says it again."""
    gender, race = np.array([0, 0, 1, 1] * 6), np.array([0, 1, 0, 1] * 6)
    age = np.random.default_rng(0).normal(size=24)
    group = gender & race
    with pytest.raises(
        EquationError, match="interaction 'Gender' × 'Race' is perfectly collinear with 'Group':"
    ):
        _fit(age, Gender=_names(gender, "fm"), Race=_names(race, "xy"), Group=_names(group, "no"))


def test_a_name_with_one_number_has_no_slope_of_its_own() -> None:
    job, age = _names([0, 0, 0, 1, 1], "ab"), _numbers(1, 2, 3, 7, 7)
    with pytest.raises(
        EquationError, match="interaction 'Job' × 'Age' is perfectly collinear with 'Job':"
    ):
        _fit([1, 2, 3, 4, 5], Job=job, Age=age)


def test_parents_that_cannot_be_told_apart_are_refused_as_without_interactions() -> None:
    town, region = _names([0, 1, 2, 0, 1], "abc"), _names([0, 0, 1, 0, 0], "xy")
    with pytest.raises(EquationError, match="parent 'Region' is perfectly collinear with 'Town':"):
        _fit([1, 2, 3, 4, 5], Town=town, Region=region)


def test_products_count_as_coefficients() -> None:
    gender, race = _names([0, 0, 1, 1], "fm"), _names([0, 1, 0, 1], "xy")
    age = _numbers(20, 35, 30, 50)
    plain = Linear("G", "R", "A").fit(age, {"G": gender, "R": race, "A": _numbers(1, 2, 4, 9)})
    assert len(plain.predictor.terms) == 3
    with pytest.raises(EquationError, match="7 coefficients cannot be fitted to 4 rows"):
        _fit([1, 2, 3, 4], Gender=gender, Race=race, Age=age)


def test_products_too_large_for_a_number() -> None:
    with pytest.raises(EquationError, match="too large or too small for floating-point numbers"):
        _fit([1, 2, 3, 5], A=_numbers(1e200, 2e200, 5e200, 7e200), B=_numbers(1e200, 1, 2, 3e200))


@pytest.mark.parametrize("parents", [(), ("A",)])
def test_interactions_need_two_parents(parents: tuple[str, ...]) -> None:
    with pytest.raises(EquationError) as caught:
        Linear(*parents, interactions=True)
    assert str(caught.value) == (
        f"interactions=True needs two parents or more, and the equation has {len(parents)}. "
        "Name the parents that act together, or leave interactions out."
    )


def test_interactions_are_true_or_false() -> None:
    setting: Any = "all"
    with pytest.raises(EquationError, match="interactions='all' is neither True nor False"):
        Linear("A", "B", interactions=setting)


def test_a_parent_that_changed_its_kind() -> None:
    names, numbers = _names([0], "a"), _numbers(1)
    with pytest.raises(KindError, match=r"'A' held numbers when .* and now holds names"):
        ProductSlope(parents=("A", "B"), slope=1.0).at({"A": names, "B": numbers})
    with pytest.raises(KindError, match=r"'B' held names when .* and now holds numbers"):
        CellShifts(parents=("A", "B"), shifts={}).at({"A": names, "B": numbers})
    with pytest.raises(KindError, match=r"'A' held names when .* and now holds numbers"):
        LevelSlopes(parents=("A", "B"), nominal="A", slopes={}).at({"A": numbers, "B": numbers})
