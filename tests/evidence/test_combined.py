"""Strata of several protections, against plain Python sets."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.columns import Categories
from mutandis.data.protection import Protection
from mutandis.errors import GroupSizeError, ProtectionError
from mutandis.evidence.spaces import (
    check_group_sizes,
    draw_joint_strata,
    draw_multiple_strata,
    draw_strata,
)

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


def test_pooled_values_share_a_space() -> None:
    pooled = Protection("race", value=["black", "brown"], reference="white", pool=True)
    columns = statuses([(0, 0), (1, 1), (2, 1), (1, 0)])
    (stratum,) = draw_joint_strata((pooled, BY_SEX), columns)
    assert stratum.label == "black, brown × female"
    assert stratum.control.tolist() == [1, 2]


def test_combinations_that_nobody_has_are_left_out() -> None:
    columns = statuses([(0, 0), (1, 1), (2, 0), (0, 1)])
    strata = draw_joint_strata((BY_RACE, BY_SEX), columns)
    assert [s.label for s in strata] == ["black × female"]
    by_race, _ = draw_multiple_strata((BY_RACE, BY_SEX), columns)
    assert [s.label for s in by_race] == ["black"]


def test_an_empty_intersection_is_refused() -> None:
    columns = statuses([(0, 0), (1, 0), (2, 0), (0, 1)])
    for draw in (draw_joint_strata, draw_multiple_strata):
        with pytest.raises(ProtectionError, match="no row has a protected value of each of 'race'"):
            draw((BY_RACE, BY_SEX), columns)


def test_without_reference_rows_the_complement_is_left() -> None:
    columns = statuses([(0, 1), (1, 0), (2, 0), (1, 1)])
    with pytest.raises(ProtectionError, match=r"no row has 'race' = 'white', 'sex' = 'male'"):
        draw_joint_strata((BY_RACE, BY_SEX), columns)
    (stratum,) = draw_joint_strata((BY_RACE, BY_SEX), columns, test_space="complement")
    assert stratum.test.tolist() == [0, 1, 2]
    # of each attribute by itself there are reference rows
    by_race, by_sex = draw_multiple_strata((BY_RACE, BY_SEX), columns)
    assert by_race[0].test.tolist() == [0]
    assert by_sex[0].test.tolist() == [1, 2]


def test_spaces_of_one_row() -> None:
    columns = statuses([(0, 0), (1, 1), (2, 0), (0, 1)])
    with pytest.raises(GroupSizeError, match=r"0 protected rows beside.*black × female"):
        check_group_sizes(draw_joint_strata((BY_RACE, BY_SEX), columns), [1])
    columns = statuses([(0, 0), (1, 1), (1, 1), (2, 0)])
    strata = draw_joint_strata((BY_RACE, BY_SEX), columns)
    check_group_sizes(strata, [1])
    with pytest.raises(GroupSizeError, match="k=2 is larger than the control space"):
        check_group_sizes(strata, [2])
