"""Who is protected: declared values against those of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.population import Population
from mutandis.data.protection import Protection
from mutandis.errors import PlanError, ProtectionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mutandis.data.columns import Categories

    AsFrame = Callable[[Mapping[str, Sequence[Any]]], Any]

SECRET = "SECRET-NAME"
RACES = ["black", "white", "asian", "white", "black", "asian"]


def read(frame: Any, **options: Any) -> Categories:
    nominal = [Attribute(name="status", kind=AttributeKind.NOMINAL)]
    return Population.from_frame(frame, attributes=nominal, **options).categories("status")


def found(protection: Protection, categories: Categories) -> tuple[list[Any], Any]:
    protected, reference = protection.codes(categories)
    return [categories.levels[code] for code in protected], categories.levels[reference]


def test_several_values_keep_their_order(as_frame: AsFrame) -> None:
    protection = Protection("status", value=["black", "asian"], reference="white", pool=True)
    assert protection.pool
    assert found(protection, read(as_frame({"status": RACES}))) == (["black", "asian"], "white")


def test_an_omitted_value_protects_all_but_the_reference(as_frame: AsFrame) -> None:
    protection = Protection("status", reference="black")
    assert protection.values == ()
    assert found(protection, read(as_frame({"status": RACES}))) == (["asian", "white"], "black")


@pytest.mark.parametrize(("value", "reference"), [(1, 0), (1.0, 0.0), (True, False)])
@pytest.mark.parametrize("column", [[1, 0, 1], [1.0, 0.0, 1.0], [True, False, True]])
def test_values_match_by_equality(value: Any, reference: Any, column: list[Any]) -> None:
    protection = Protection("status", value=value, reference=reference)
    assert protection.codes(read({"status": column})) == ((1,), 0)


@pytest.mark.parametrize(
    ("value", "values"),
    [
        (1, (1,)),
        (0.5, (0.5,)),
        ("female", ("female",)),
        (["b", "a"], ("b", "a")),
        (("b", "a"), ("b", "a")),
        ({"b", "a", 3}, (3, "a", "b")),
        (np.array([2, 1]), (2, 1)),
        (np.int64(2), (2,)),
    ],
)
def test_values_are_read_from_any_container(value: object, values: tuple[Any, ...]) -> None:
    protection = Protection("status", value=value, reference="reference")
    assert protection.values == values
    assert hash(protection) == hash(Protection("status", value=values, reference="reference"))


@pytest.mark.parametrize(
    ("value", "reference", "said"),
    [
        ("white", "white", "reference 'white' is also a protected value"),
        (["black", "white"], "white", "reference 'white' is also a protected value"),
        ([1.0, 2.0], 1, "reference 1 is also a protected value"),
        ([], "white", "empty list of protected values"),
        (["black", "black"], "white", "names a value twice"),
        ([1, 1.0], "white", "names a value twice"),
        ("black", None, "has no reference"),
    ],
)
def test_protections_that_are_refused(value: Any, reference: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        Protection("status", value=value, reference=reference)


@pytest.mark.parametrize(
    ("options", "rows", "said"),
    [
        (
            {"value": ["black", "Black"], "reference": "white"},
            RACES,
            r"No protected rows: .* value 'Black'\. Its values: 'asian', 'black', 'white'\.",
        ),
        ({"value": "black", "reference": "White"}, RACES, "No reference rows: 'status' never has"),
        ({"reference": "white"}, ["white", "white"], "no value but the reference 'white'"),
    ],
)
def test_a_space_without_rows_is_refused(options: Any, rows: list[str], said: str) -> None:
    with pytest.raises(ProtectionError, match=said):
        Protection("status", **options).codes(read({"status": rows}))


def test_values_of_dropped_rows_protect_nobody() -> None:
    frame = {"status": ["black", "white", "asian"], "salary": [1.0, 2.0, None]}
    people = read(frame, columns=["salary"], missing="drop")
    assert found(Protection("status", reference="white"), people) == (["black"], "white")
    with pytest.raises(ProtectionError, match="No protected rows"):
        Protection("status", value="asian", reference="white").codes(people)
    with pytest.raises(ProtectionError, match="No reference rows"):
        Protection("status", value="black", reference="asian").codes(people)


@pytest.mark.parametrize("rows", [3, 30])
def test_a_column_of_names_is_not_spelled_out(rows: int) -> None:
    people = read({"status": [f"{SECRET} {row}" for row in range(rows)]})
    for protection in (
        Protection("status", reference="white"),
        Protection("status", value="black", reference=f"{SECRET} 0"),
    ):
        with pytest.raises(ProtectionError) as caught:
            protection.codes(people)
        assert SECRET not in str(caught.value)
