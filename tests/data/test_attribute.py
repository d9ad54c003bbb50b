"""Declarations of attributes: what is understood, and how the rest is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from mutandis.data.attribute import Attribute, AttributeKind, read_attributes
from mutandis.errors import PlanError


def test_short_and_long_declarations_are_read_in_order() -> None:
    declared = Attribute(name="age", kind=AttributeKind.CONTINUOUS, weight=2)
    attributes = read_attributes(
        {
            "salary": "continuous",
            "age": declared,
            "grade": {"kind": "ordinal", "levels": ["low", "high"], "weight": 0.5},
            "job": {"kind": "nominal"},
        }
    )
    assert [attribute.name for attribute in attributes] == ["salary", "age", "grade", "job"]
    assert attributes[1] is declared
    assert attributes[2] == Attribute(
        name="grade", kind=AttributeKind.ORDINAL, levels=("low", "high"), weight=0.5
    )
    assert attributes[3].kind is AttributeKind.NOMINAL


def test_plain_kinds_and_lists_of_levels_are_understood() -> None:
    grade = Attribute(
        name="grade",
        kind=cast("AttributeKind", "ordinal"),
        levels=cast("tuple[Any, ...]", ["low", "high"]),
    )
    assert grade.kind is AttributeKind.ORDINAL
    assert grade.levels == ("low", "high")
    assert hash(grade) == hash(
        Attribute(name="grade", kind=AttributeKind.ORDINAL, levels=("low", "high"))
    )


@pytest.mark.parametrize(
    ("weight", "exact"),
    [
        (1.0, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (3, Fraction(3)),
        (1e-3, Fraction(1, 1000)),
        (np.float64(0.3), Fraction(3, 10)),
        (np.float32(0.1), Fraction(1, 10)),
    ],
)
def test_weights_are_the_decimals_that_were_written(weight: float, exact: Fraction) -> None:
    attribute = Attribute(name="salary", kind=AttributeKind.CONTINUOUS, weight=weight)
    assert attribute.exact_weight == exact


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), "2", None, True])
def test_unusable_weights_are_refused(weight: Any) -> None:
    with pytest.raises(PlanError, match=r"'salary' has weight .* positive numbers"):
        read_attributes({"salary": {"kind": "continuous", "weight": weight}})


@pytest.mark.parametrize("levels", [(), ("low",)])
def test_an_ordinal_attribute_needs_two_levels(levels: tuple[str, ...]) -> None:
    with pytest.raises(PlanError, match=rf"'grade' is ordinal but has {len(levels)} declared"):
        Attribute(name="grade", kind=AttributeKind.ORDINAL, levels=levels)


def test_only_an_ordinal_attribute_has_levels() -> None:
    with pytest.raises(PlanError, match="'job' is nominal and cannot have levels"):
        Attribute(name="job", kind=AttributeKind.NOMINAL, levels=("clerk", "cook"))


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (["low", "mid", "low"], "declares a level twice"),
        ([1, 2, 1.0], "declares a level twice"),
        ("low", "levels of type str"),
        ({"low", "high"}, "levels of type set"),
        (3, "levels of type int"),
        (["low", None], "missing value as a level"),
        ([1.0, float("nan")], "missing value as a level"),
        ([["low"], ["high"]], "not plain values"),
    ],
)
def test_unusable_levels_are_refused(levels: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_attributes({"grade": {"kind": "ordinal", "levels": levels}})


@pytest.mark.parametrize("kind", ["numeric", "Continuous", 3])
def test_unknown_kinds_are_refused_with_the_allowed_ones(kind: Any) -> None:
    with pytest.raises(PlanError, match=r"unknown kind .* Allowed: continuous, ordinal, nominal"):
        read_attributes({"salary": kind})


@pytest.mark.parametrize("declaration", [None, {"weight": 2.0}])
def test_a_kind_is_not_guessed(declaration: Any) -> None:
    with pytest.raises(PlanError, match="'salary' has no kind"):
        read_attributes({"salary": declaration})


def test_unknown_settings_are_named() -> None:
    with pytest.raises(PlanError, match=r"unknown settings \['bounds', 'scale'\]"):
        read_attributes({"salary": {"kind": "continuous", "scale": 1, "bounds": (0, 1)}})


def test_a_name_is_the_same_in_both_places() -> None:
    salary = Attribute(name="salary", kind=AttributeKind.CONTINUOUS)
    with pytest.raises(PlanError, match="'salary' is declared under the name 'income'"):
        read_attributes({"income": salary})


def test_there_is_something_to_compare_people_on() -> None:
    with pytest.raises(PlanError, match="No attributes to compare people on"):
        read_attributes({})


def test_a_list_of_names_says_nothing_of_kinds() -> None:
    with pytest.raises(PlanError, match="not as list"):
        read_attributes(cast("Any", ["salary"]))
