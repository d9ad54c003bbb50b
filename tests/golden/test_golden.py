"""The numbers of small audits are those that are stored, however the audit was run."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

import mutandis as mm
from tests.golden import frozen
from tests.golden.audits import AUDITS, run_in_tiles, run_quietly

if TYPE_CHECKING:
    from pathlib import Path

_REOPENED = (
    "draws-and-refits",
    "intersectional",
    "multiple",
    "ordered-and-refits",
    "rule-and-refits",
    "score-positive-recorded",
    "several-worldviews",
)
_TILED = (
    ("caliper", 160),
    ("draws-and-refits", 400),
    ("hvdm-selection-ratio", 80),
    ("multiple-scores", 400),
    ("ordered-and-draws", 160),
)


def check(name: str, audit: mm.Audit) -> None:
    """Compare an audit with what is stored, and show the first differences."""
    found = frozen.collect(audit, AUDITS[name].also)
    unequal = frozen.differences(frozen.read(name), found, exact=frozen.is_exact())
    shown = "\n".join(unequal[:12])
    assert not unequal, f"{name} has {len(unequal)} other values than are stored:\n{shown}"


@pytest.mark.parametrize("name", AUDITS)
def test_numbers_are_those_that_are_stored(name: str) -> None:
    check(name, run_quietly(AUDITS[name].plan()))


@pytest.mark.parametrize("name", _REOPENED)
def test_reopened_audits_have_the_same_numbers(name: str, tmp_path: Path) -> None:
    run_quietly(AUDITS[name].plan()).save(tmp_path / "results")
    check(name, mm.open_results(tmp_path / "results"))


@pytest.mark.parametrize(("name", "rows"), _TILED)
def test_tiles_have_the_same_numbers(name: str, rows: int, tmp_path: Path) -> None:
    check(name, run_in_tiles(AUDITS[name].plan(), tmp_path, rows=rows))
    assert len(list(tmp_path.glob("*.npz"))) > 4


def test_every_stored_file_is_of_an_audit() -> None:
    stored = {path.stem for path in frozen.VALUES.glob("*.json")}
    assert stored == {"machine", *AUDITS}


# --- the comparison itself -----------------------------------------------------------------------

TITLE = "findings cst_without 12"


@pytest.fixture(scope="module")
def stored() -> frozen.Tables:
    return frozen.read("rule-and-refits")


def changes(stored: frozen.Tables, column: str, value: object, *, exact: bool) -> list[str]:
    """Compare the stored numbers with a copy in which one value of one column is another."""
    found = deepcopy(stored)
    assert found[TITLE][column][0] != value
    found[TITLE][column][0] = value
    return frozen.differences(stored, found, exact=exact)


@pytest.mark.parametrize("exact", [True, False])
def test_equal_numbers_have_no_differences(stored: frozen.Tables, *, exact: bool) -> None:
    assert frozen.differences(stored, deepcopy(stored), exact=exact) == []


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("column", "value"),
    [("n_control", 11), ("n_control", "0x1.8000000000000p+3"), ("verdict", "evidence"),
     ("fragile", None), ("p_value", None)],
)  # fmt: skip
def test_changed_integers_texts_and_kinds_are_noticed(
    stored: frozen.Tables, column: str, value: object, *, exact: bool
) -> None:
    (difference,) = changes(stored, column, value, exact=exact)
    assert difference.startswith(f"{TITLE}: {column}, row 0: ")


def test_one_bit_is_noticed_where_numbers_are_exact(stored: frozen.Tables) -> None:
    was = stored[TITLE]["p_value"][0]
    digits, exponent = was.split("p")
    flipped = f"{digits[:-1]}{int(digits[-1], 16) ^ 1:x}p{exponent}"
    assert len(changes(stored, "p_value", flipped, exact=True)) == 1
    assert changes(stored, "p_value", flipped, exact=False) == []


def test_larger_deviations_are_noticed_everywhere(stored: frozen.Tables) -> None:
    other = (float.fromhex(stored[TITLE]["ci_low"][0]) * (1 + 1e-8)).hex()
    assert len(changes(stored, "ci_low", other, exact=False)) == 1


def test_missing_tables_columns_and_rows_are_noticed(
    stored: frozen.Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = deepcopy(stored)
    del found["tipping"], found[TITLE]["unfit"]
    found["counts"]["k"].pop()
    assert frozen.differences(stored, found, exact=True) == [
        "counts: k: 10 rows are stored, and there are 9",
        f"{TITLE}: unfit: the column is missing; if it was given up, add it to GONE",
        "tipping: the table is missing; if it was given up, add it to GONE",
    ]
    monkeypatch.setitem(frozen.GONE, "tipping", "a test")
    monkeypatch.setitem(frozen.GONE, f"{TITLE}: unfit", "a test")
    monkeypatch.setitem(frozen.GONE, "k", "a test")
    assert frozen.differences(stored, found, exact=True) == []


def test_renamed_columns_are_still_compared(
    stored: frozen.Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = deepcopy(stored)
    for columns in found.values():
        if "delta_p" in columns:
            columns["delta"] = columns.pop("delta_p")
    monkeypatch.setitem(frozen.RENAMED, "delta_p", "delta")
    assert frozen.differences(stored, found, exact=True) == []
    found[TITLE]["delta"][3] = None
    assert len(frozen.differences(stored, found, exact=True)) == 1


def test_stored_numbers_are_read_as_they_were_written(
    stored: frozen.Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frozen, "VALUES", tmp_path)
    names = ["one of several", "another of several"]
    tables: frozen.Tables = {
        "first": {"name": names, "all": [7, 7], "kinds": [1, True], "none": [None, None]},
        "the same columns": {"name": names, "all": [7, 7], "kinds": [1, 1]},
        "longer": {"name": [*names, "é"], "all": [7, 7, 7]},
        "empty": {"name": []},
    }
    for each in (tables, stored):
        frozen.write("copy", each)
        assert frozen.read("copy") == each
