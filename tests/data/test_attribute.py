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


def _levels(levels: Any, kind: str = "ordinal") -> Any:
    return {"grade": {"kind": kind, "levels": levels}}


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        *(
            (
                {"salary": {"kind": "continuous", "weight": weight}},
                "'salary' has weight .* positive",
            )
            for weight in (0, -1, float("nan"), float("inf"), "2", None, True)
        ),
        (_levels(()), "'grade' is ordinal but has 0 declared"),
        (_levels(("low",)), "'grade' is ordinal but has 1 declared"),
        (_levels(("clerk", "cook"), "nominal"), "'grade' is nominal and cannot have levels"),
        (_levels(["low", "mid", "low"]), "declares a level twice"),
        (_levels([1, 2, 1.0]), "declares a level twice"),
        (_levels("low"), "levels of type str"),
        (_levels({"low", "high"}), "levels of type set"),
        (_levels(3), "levels of type int"),
        (_levels(["low", None]), "missing value as a level"),
        (_levels([1.0, float("nan")]), "missing value as a level"),
        (_levels([["low"], ["high"]]), "not plain values"),
        *(
            ({"salary": kind}, "unknown kind .* Allowed: continuous, ordinal, nominal")
            for kind in ("numeric", "Continuous", 3)
        ),
        ({"salary": None}, "'salary' has no kind"),
        ({"salary": {"weight": 2.0}}, "'salary' has no kind"),
        (
            {"salary": {"kind": "continuous", "scale": 1, "bounds": (0, 1)}},
            r"unknown settings \['bounds', 'scale'\]",
        ),
        (
            {"income": Attribute(name="salary", kind=AttributeKind.CONTINUOUS)},
            "'salary' is declared under the name 'income'",
        ),
        ({}, "No attributes to compare people on"),
        (["salary"], "not as list"),
    ],
)
def test_declarations_that_are_refused(declared: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        read_attributes(declared)
