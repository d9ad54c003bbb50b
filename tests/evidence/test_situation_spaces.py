"""Search spaces: who is compared with whom, and which k they can fill."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.data.columns import Categories
from mutandis.data.protection import Protection
from mutandis.errors import GroupSizeError, ProtectionError
from mutandis.evidence.spaces import Stratum, check_group_sizes, draw_strata

ORIGIN = Categories(
    np.array([0, 1, 2, 1, 0, 3, 2, 1], dtype=np.int32), ("here", "near", "far", "elsewhere")
)


def drawn(**options: Any) -> list[tuple[str, list[int], list[int], list[int]]]:
    strata = draw_strata(Protection("origin", reference="here", **options), ORIGIN)
    return [(s.label, s.complainants.tolist(), s.control.tolist(), s.test.tolist()) for s in strata]


def test_one_protected_value_is_one_stratum() -> None:
    assert drawn(value="near") == [("near", [1, 3, 7], [1, 3, 7], [0, 4])]


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
        "k=4 is larger than the control space (3 protected rows beside the complainant, status "
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


def test_the_smallest_stratum_decides() -> None:
    with pytest.raises(GroupSizeError, match="2 protected rows"):
        check_group_sizes([stratum(9, 9), stratum(3, 9)], [3])


# --- through the audit -------------------------------------------------------------------------

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


def test_pooled_people_are_compared_with_all_of_them() -> None:
    found = audit(value=["near", "far"], pool=True).findings("st", k=1)
    # 0 has 3 (yes); 1 has 4 (no); 2 has 1 and 4 (no, no); 3 has 0 (no); 4 has 1; 5 has 2 (yes)
    assert found["p_control"].tolist() == [0, 1, 1, 1, 1, 0]


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


def test_rows_of_other_statuses_are_no_complainants() -> None:
    assert audit(value="near").counts()["complainants"].tolist() == [3]
    assert audit(value=["near", "far"]).counts()["complainants"].tolist() == [6]
