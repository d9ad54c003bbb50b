"""Search spaces: who is compared with whom, under one protection and under several."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mutandis as mm
from mutandis.data.columns import Categories
from mutandis.data.protection import (
    Protection,
    Stratum,
    check_group_sizes,
    draw_joint_strata,
    draw_multiple_strata,
    draw_strata,
)
from mutandis.errors import GroupSizeError, ProtectionError

ORIGIN = Categories(
    np.array([0, 1, 2, 1, 0, 3, 2, 1], dtype=np.int32), ("here", "near", "far", "elsewhere")
)


def drawn(**options: Any) -> list[tuple[str, list[int], list[int], list[int]]]:
    strata = draw_strata(Protection("origin", reference="here", **options), ORIGIN)
    return [(s.label, s.complainants.tolist(), s.control.tolist(), s.test.tolist()) for s in strata]


def test_each_protected_value_has_a_control_space_of_its_own() -> None:
    assert drawn(value=["near", "far"]) == [
        ("near", [1, 3, 7], [1, 3, 7], [0, 4]),
        ("far", [2, 6], [2, 6], [0, 4]),
    ]


def test_all_but_the_reference_are_protected_if_no_value_is_named() -> None:
    assert drawn() == [
        ("near", [1, 3, 7], [1, 3, 7], [0, 4]),
        ("far", [2, 6], [2, 6], [0, 4]),
        ("elsewhere", [5], [5], [0, 4]),
    ]


def test_pooled_values_share_a_control_space() -> None:
    assert drawn(value=["near", "far"], pool=True) == [
        ("near, far", [1, 2, 3, 6, 7], [1, 2, 3, 6, 7], [0, 4])
    ]


def test_nobody_to_compare_is_an_error() -> None:
    with pytest.raises(ProtectionError, match=r"No protected rows: 'origin' never has the value"):
        drawn(value="nowhere")
    with pytest.raises(ProtectionError, match=r"No reference rows: 'origin' never has"):
        draw_strata(Protection("origin", value="near", reference="nowhere"), ORIGIN)


def stratum(protected: int, reference: int) -> Stratum:
    rows = np.arange(protected + reference)
    women, men = rows[:protected], rows[protected:]
    return Stratum(label="woman", complainants=women, control=women, test=men)


def test_k_counts_the_others_in_the_control_space() -> None:
    check_group_sizes([stratum(4, 9)], [1, 3])
    with pytest.raises(GroupSizeError) as raised:
        check_group_sizes([stratum(4, 9)], [1, 4])
    assert str(raised.value) == (
        "k=4 is larger than the control space (3 protected rows besides the complainant, status "
        "woman). Lower k, or widen the protected group."
    )


def test_k_counts_everybody_in_the_test_space() -> None:
    check_group_sizes([stratum(9, 4)], [4])
    with pytest.raises(GroupSizeError) as raised:
        check_group_sizes([stratum(9, 4)], [5])
    assert str(raised.value) == (
        "k=5 is larger than the test space (4 reference rows). "
        "Lower k, or use a table with more reference rows."
    )


# --- through the audit ------------------------------------------------------------------

TABLE: dict[str, list[Any]] = {
    "origin": ["near", "near", "near", "far", "far", "far", "here", "here", "other"],
    "x": [0.0, 1.0, 2.0, 0.0, 1.0, 4.0, 0.0, 4.0, 8.0],
    "ok": ["no", "no", "yes", "yes", "no", "yes", "yes", "no", "yes"],
}


def audit(table: dict[str, list[Any]] = TABLE, *, k: int = 1, **protection: Any) -> mm.Audit:
    return mm.audit(
        table,
        outcome="ok",
        negative="no",
        protected=mm.Protection("origin", reference="here", **protection),
        attributes={"x": "continuous"},
        ks=(k,),
    )


def test_every_protected_value_is_compared_with_its_own_people() -> None:
    found = audit(value=["near", "far"]).findings("st", k=1)
    assert found["id"].tolist() == [0, 1, 2, 3, 4, 5]
    # near: 0 has 1 (no); 1 has 0 and 2 at the same distance (no, yes); 2 has 1 (no)
    # far: 3 has 4 (no); 4 has 3 (yes); 5 has 4 (no)
    assert found["p_control"].tolist() == [1, 0.5, 1, 1, 0, 1]
    # here: 0 (yes), 4 (no); from 2 both are as far
    assert found["p_test"].tolist() == [0, 0, 0.5, 0, 0, 1]


def test_other_values_enter_the_scale_and_nothing_else() -> None:
    with_other = audit(value="near")
    without = audit({name: values[:-1] for name, values in TABLE.items()}, value="near")
    far, near = with_other.findings("st", k=1), without.findings("st", k=1)
    assert far["p_control"].tolist() == near["p_control"].tolist()
    assert far["p_test"].tolist() == near["p_test"].tolist()
    # the range is 8 with that row and 4 without it
    assert far["radius_test"].tolist() == [0, 1 / 8, 2 / 8]
    assert near["radius_test"].tolist() == [0, 1 / 4, 2 / 4]
    for case in map(with_other.case, (0, 1, 2)):
        groups = case.groups("st", k=1)
        assert not {8} & {*groups.control.ids.tolist(), *groups.test.ids.tolist()}


# --- several protections, against plain Python sets -----------------------------------------


RACES = ("white", "black", "brown")
SEXES = ("male", "female")
BY_RACE = Protection("race", value=["black", "brown"], reference="white")
BY_SEX = Protection("sex", value="female", reference="male")


def statuses(people: list[tuple[int, int]]) -> dict[str, Categories]:
    codes = np.array(people, dtype=np.int32).reshape(-1, 2)
    return {"race": Categories(codes[:, 0], RACES), "sex": Categories(codes[:, 1], SEXES)}


people = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=20).map(
    # everybody is there once, so that no protection is empty
    lambda drawn: [*product(range(3), range(2)), *drawn]
)


@given(people)
def test_each_combination_has_its_own_space(rows: list[tuple[int, int]]) -> None:
    strata = draw_joint_strata((BY_RACE, BY_SEX), statuses(rows))
    found = {s.label: (s.complainants.tolist(), s.control.tolist()) for s in strata}
    expected = {}
    for race in (1, 2):
        mine = [i for i, person in enumerate(rows) if person == (race, 1)]
        expected[f"{RACES[race]} × female"] = (mine, mine)
    assert found == expected
    reference = [i for i, person in enumerate(rows) if person == (0, 0)]
    assert all(s.test.tolist() == reference for s in strata)


@given(people)
def test_the_complement_is_everybody_who_is_not_protected_on_all(
    rows: list[tuple[int, int]],
) -> None:
    strata = draw_joint_strata((BY_RACE, BY_SEX), statuses(rows), test_space="complement")
    rest = [i for i, (race, sex) in enumerate(rows) if not (race in (1, 2) and sex == 1)]
    assert all(s.test.tolist() == rest for s in strata)


@given(people)
def test_multiple_keeps_each_attributes_spaces_whole(rows: list[tuple[int, int]]) -> None:
    both = [i for i, (race, sex) in enumerate(rows) if race in (1, 2) and sex == 1]
    by_race, by_sex = draw_multiple_strata((BY_RACE, BY_SEX), statuses(rows))
    assert [s.label for s in by_race] == ["black", "brown"]
    for race, stratum in zip((1, 2), by_race, strict=True):
        assert stratum.complainants.tolist() == [i for i in both if rows[i][0] == race]
        assert stratum.control.tolist() == [i for i, p in enumerate(rows) if p[0] == race]
        assert stratum.test.tolist() == [i for i, p in enumerate(rows) if p[0] == 0]
    (women,) = by_sex
    assert women.complainants.tolist() == both
    assert women.control.tolist() == [i for i, p in enumerate(rows) if p[1] == 1]
    assert women.test.tolist() == [i for i, p in enumerate(rows) if p[1] == 0]


@given(people)
def test_one_protection_alone_has_the_strata_it_always_had(rows: list[tuple[int, int]]) -> None:
    columns = statuses(rows)
    (mine,) = draw_multiple_strata((BY_RACE,), columns)
    for found in (draw_joint_strata((BY_RACE,), columns), mine):
        for stratum, expected in zip(found, draw_strata(BY_RACE, columns["race"]), strict=True):
            assert stratum.label == expected.label
            for name in ("complainants", "control", "test"):
                assert getattr(stratum, name).tolist() == getattr(expected, name).tolist()


def test_an_empty_intersection_is_refused() -> None:
    columns = statuses([(0, 0), (1, 0), (2, 0), (0, 1)])
    for draw in (draw_joint_strata, draw_multiple_strata):
        with pytest.raises(ProtectionError, match="no row has a protected value of each of 'race'"):
            draw((BY_RACE, BY_SEX), columns)


def test_spaces_of_one_row() -> None:
    columns = statuses([(0, 0), (1, 1), (2, 0), (0, 1)])
    with pytest.raises(GroupSizeError, match=r"0 protected rows beside.*black × female"):
        check_group_sizes(draw_joint_strata((BY_RACE, BY_SEX), columns), [1])
    columns = statuses([(0, 0), (1, 1), (1, 1), (2, 0)])
    strata = draw_joint_strata((BY_RACE, BY_SEX), columns)
    check_group_sizes(strata, [1])
    with pytest.raises(GroupSizeError, match="k=2 is larger than the control space"):
        check_group_sizes(strata, [2])
