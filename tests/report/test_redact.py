"""Redaction: who is hidden, what is coarsened, and that withheld numbers cannot be worked out."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.data.columns import Categories
from mutandis.evidence.intervals import INTERVALS
from mutandis.report.case_file import case_document
from mutandis.report.redact_cells import LEAST, Cells, choose_sizes, possible_counts
from mutandis.report.redact_values import Bands, Levels
from mutandis.search.share import Share

if TYPE_CHECKING:
    from numpy.typing import NDArray

Auditing = Callable[..., mm.Audit]
KS = (6, 12, 20)


def cloud(seed: int, rows: int = 240) -> pd.DataFrame:
    """Make up people who do not tie, with outcomes that depend on where they stand, and luck."""
    rng = np.random.default_rng(seed)
    woman = rng.integers(0, 2, rows)
    salary = rng.normal(50 - 6 * woman, 8, rows)
    savings = rng.normal(0.3 * salary, 4, rows)
    lucky = rng.random(rows) < rng.choice([0.02, 0.1, 0.3])
    granted = (salary + savings > rng.choice([50, 60, 66])) ^ lucky
    return pd.DataFrame(
        {
            "who": [f"name-{row}-{seed}" for row in range(rows)],
            "woman": woman,
            "salary": salary,
            "savings": savings,
            "granted": granted.astype(int),
        }
    )


def audit_cloud(seed: int, **options: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": 0,
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"salary": "continuous", "savings": "continuous"},
        "worldview": mm.Worldview({"salary": mm.Linear("woman"), "savings": mm.Linear("salary")}),
        "decision": "salary + savings > 60",
        "ks": KS,
        "id": "who",
        "evidence": mm.Evidence(primary=("cst_without", 12)),
    }
    return mm.audit(cloud(seed), **{**settings, **options})


# --- who and what ---------------------------------------------------------------------------------


def test_nobody_else_is_named(audit_of: Auditing, any_audit: mm.Audit) -> None:
    who = any_audit.findings()["id"].iloc[0]
    document = any_audit.case_file(who, redact=True)
    for text in (document.to_html(), document.to_json()):
        for other in any_audit.plan.population.ids.tolist():
            if other != who:
                # a name that begins another one's is no name of hers
                assert f'"{other}"' not in text
                assert f">{other}<" not in text
    people = [
        member.person
        for part in document.parts
        for group in (part.control, part.test)
        if group is not None
        for member in group.members
        if member.role == "person"
    ]
    assert people == [f"person {number}" for number in range(1, len(people) + 1)]


def test_her_own_data_and_the_verdicts_stay(any_audit: mm.Audit) -> None:
    who = any_audit.findings()["id"].iloc[0]
    full, redacted = (any_audit.case_file(who, redact=each) for each in (False, True))
    assert redacted.complainant == full.complainant
    assert redacted.verdict.verdict == full.verdict.verdict
    assert [row.verdict for row in redacted.figures] == [row.verdict for row in full.figures]
    assert [part.movements for part in redacted.parts] == [part.movements for part in full.parts]
    assert [part.verdict for part in redacted.parts] == [part.verdict for part in full.parts]
    assert redacted.as_dict()["provenance"]["redacted"] is True


def test_values_are_coarse(any_audit: mm.Audit) -> None:
    who = any_audit.findings()["id"].iloc[0]
    population = any_audit.plan.population
    document = any_audit.case_file(who, redact=True)
    for part in document.parts:
        for group in (part.control, part.test):
            for member in group.members if group else ():
                if member.role != "person":
                    continue
                assert member.parts is None
                assert isinstance(member.distance, str)
                for name, shown in member.values.items():
                    assert isinstance(shown, str)
                    column = population.columns[name]
                    assert not isinstance(column, Categories) or shown != "pilot"


def test_bands_hold_enough_people() -> None:
    rng = np.random.default_rng(1)
    for values in (
        rng.normal(0, 1, 300),
        rng.lognormal(3, 1.5, 200),
        np.array([0.0] * 50 + [1e6]),
        rng.integers(0, 4, 60).astype(float),
        np.array([3.0, 4.0, 5.0]),
    ):
        bands = Bands.of(values)
        _, counts = np.unique([bands.band(value) for value in values], return_counts=True)
        assert counts.min() >= min(LEAST, len(values))


def test_a_constant_column_has_one_band() -> None:
    assert Bands.of(np.ones(9)).band(1.0) == "any"


def test_rare_levels_are_put_together() -> None:
    counts = {"a": 40, "b": 30, "c": 3, "d": 2}
    column = Categories(np.repeat(range(4), list(counts.values())), tuple(counts))
    levels = Levels.of(column, ordered=False)
    assert [levels.band(level) for level in "abcd"] == ["a", "b", "other", "other"]
    assert levels.band("never seen") == "other"
    # ordered levels join their neighbours
    assert [Levels.of(column, ordered=True).band(level) for level in "abcd"] == [
        "a",
        "b",
        "c to d",
        "c to d",
    ]


# --- cells ----------------------------------------------------------------------------------------


def hidden_groups(data: dict[str, Any]) -> list[tuple[str, int]]:
    """List the groups whose share is withheld somewhere, by what was searched and k."""
    found = set()
    for row in data["figures"]:
        for role in ("control", "test"):
            if row[f"p_{role}"] == "withheld":
                found.add((searched(row["method"], role), row["k"]))
    return sorted(found)


def searched(method: str, role: str) -> str:
    if role == "control":
        return "control"
    return "factual" if method == "st" else "counterfactual"


def true_cells(audit: mm.Audit, who: Any) -> dict[tuple[str, int], tuple[int, int]]:
    """Count refused and others in every group, from the members themselves."""
    case = audit.case(who)
    cells = {}
    for method in ("st", "cst_without"):
        for k in KS:
            groups = case.groups(method, k=k)
            for role in ("control", "test"):
                negative = getattr(groups, role).is_negative
                cells[searched(method, role), k] = (int(negative.sum()), int((~negative).sum()))
    return cells


def is_small(cell: int) -> bool:
    return 0 < cell < 5


@pytest.mark.parametrize("seed", range(3))
def test_no_small_cell_is_shown_nor_computable_from_two_groups(seed: int) -> None:
    audit = audit_cloud(seed)
    hidden, small = 0, 0
    for who in audit.findings()["id"][::14]:
        data = json.loads(audit.case_file(who, redact=True).to_json())
        cells = true_cells(audit, who)
        withheld = hidden_groups(data)
        shown = [key for key in cells if key not in withheld]
        for key in cells:
            small += any(map(is_small, cells[key]))
            hidden += key in withheld
        for key in shown:
            assert not any(map(is_small, cells[key]))
        for first, second in product(shown, shown):
            if first[0] == second[0]:
                between = [abs(a - b) for a, b in zip(cells[first], cells[second], strict=True)]
                assert not any(map(is_small, between))
    assert hidden >= small > 0


@pytest.mark.parametrize("seed", range(3))
def test_what_is_withheld_is_nowhere_in_the_file(seed: int) -> None:
    audit = audit_cloud(seed)
    looked = 0
    for who in audit.findings()["id"][::16]:
        text = audit.case_file(who, redact=True).to_json()
        data = json.loads(text)
        for row in data["figures"]:
            if row["method"] != "cf" and "withheld" in (row["p_control"], row["p_test"]):
                looked += 1
                found = audit.findings(row["method"], k=row["k"]).set_index("id").loc[who]
                check_row_withheld(row, found, text)
        for role in ("control", "test"):
            check_group_withheld(data["parts"][0], role)
    assert looked


def check_row_withheld(row: dict[str, Any], found: pd.Series[Any], text: str) -> None:
    for name in ("delta_p", "ci_low", "ci_high", "p_value", "q_value"):
        assert row[name] == "withheld"
    for name in ("ci_low", "ci_high", "p_value"):
        # numbers with many digits are nobody else's
        digits = repr(float(found[name]))
        assert len(digits) <= 12 or digits not in text


def check_group_withheld(part: dict[str, Any], role: str) -> None:
    group = part[role]
    if group["share"] == "withheld":
        assert group["refused"] == group["granted"] == "withheld"
        assert {member["outcome"] for member in group["members"]} == {"withheld"}
        assert part["changes"]["withheld"]
        assert part["changes"]["outcomes"] == []
        assert part["changes"]["tau_evidence"] is None


# --- an attack ------------------------------------------------------------------------------------


def verdict_class(verdict: str) -> str:
    """Leave out what depends on all other complainants, whom an attacker does not know."""
    return "significant" if verdict.startswith("significant") else verdict


def classes(control: NDArray[np.int64], test: NDArray[np.int64], size: int) -> NDArray[Any]:
    """Judge arrays of refusals in two groups of one size, by the attacker's own code."""
    sizes, ones = np.full_like(control, size), np.ones_like(control)
    p = INTERVALS["miettinen-nurminen"](
        Share(negatives=control, size=sizes, split=ones),
        Share(negatives=test, size=sizes, split=ones),
        tau=0.0,
        alpha=0.05,
    ).p_value
    return np.where(control <= test, "no-evidence", np.where(p <= 0.05, "significant", "evidence"))


def attack(data: dict[str, Any]) -> dict[tuple[str, int], set[int]]:
    """Work out, from a redacted file alone, how many may have been refused in each group.

    The attacker knows the program: how verdicts are given, that groups of the same center are
    nested, and that a number is withheld only if it or its neighbours make a small cell, or if it
    would tell its partner's, which is then withheld too.
    """
    rows = [row for row in data["figures"] if row["method"] in {"st", "cst_without", "cst_with"}]
    refused = data["complainant"]["refused"]
    refused_cf = data["complainant"]["outcome_cf"] == data["complainant"]["negative"]
    possible: dict[tuple[str, int], set[int]] = {}
    for row in rows:
        centered = row["method"] == "cst_with"
        for role, own in (("control", refused), ("test", refused_cf)):
            key = searched(row["method"], role), row["k"]
            options = possible.setdefault(key, set(range(row["k"] + 1)))
            if row[f"p_{role}"] != "withheld":
                count = round(row[f"p_{role}"] * (row["k"] + centered)) - (own and centered)
                options &= {count}
    known = {key: set(options) for key, options in possible.items()}
    for (what, k), options in possible.items():
        shown = {
            size: min(each)
            for (other, size), each in known.items()
            if other == what and len(each) == 1
        }
        # together with its partner a group may be withheld for another reason: see above
        partners = ["factual", "counterfactual"] if what == "control" else ["control"]
        if len(options) > 1 and all(len(known[partner, k]) == 1 for partner in partners):
            options &= {count for count in options if may_be_withheld(count, k, shown)}
    changed = True
    while changed:
        before = {key: set(options) for key, options in possible.items()}
        for row in rows:
            narrow(row, possible, own=refused, own_cf=refused_cf)
        changed = before != possible
    return possible


def may_be_withheld(count: int, k: int, shown: dict[int, int]) -> bool:
    cells = [count, k - count]
    for size, other in shown.items():
        more, fewer = (count - other, (k - count) - (size - other))
        if (size < k and min(more, fewer) < 0) or (size > k and max(more, fewer) > 0):
            return False  # not nested
        cells += [abs(more), abs(fewer)]
    return any(map(is_small, cells))


def narrow(
    row: dict[str, Any], possible: dict[tuple[str, int], set[int]], *, own: bool, own_cf: bool
) -> None:
    """Keep the numbers with which the verdict comes out."""
    keys = [(searched(row["method"], role), row["k"]) for role in ("control", "test")]
    centered = row["method"] == "cst_with"
    control, test = (np.array(sorted(possible[key]), dtype=np.int64) for key in keys)
    pairs = np.array(list(product(control, test)), dtype=np.int64)
    if not len(pairs):
        return
    found = classes(
        pairs[:, 0] + (own and centered),
        pairs[:, 1] + (own_cf and centered),
        row["k"] + centered,
    )
    kept = pairs[found == verdict_class(row["verdict"])]
    possible[keys[0]] &= set(kept[:, 0].tolist())
    possible[keys[1]] &= set(kept[:, 1].tolist())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_attack_leaves_every_withheld_number_open(seed: int) -> None:
    audit = audit_cloud(seed)
    attacked = 0
    for who in audit.findings()["id"][::14]:
        data = json.loads(audit.case_file(who, redact=True).to_json())
        possible = attack(data)
        cells = true_cells(audit, who)
        withheld = hidden_groups(data)
        for key in withheld:
            assert cells[key][0] in possible[key]  # the attacker does not fool himself
            if tells_small_cell(key, cells, withheld):
                attacked += 1
                assert len(possible[key]) > 1
    assert attacked


def tells_small_cell(
    key: tuple[str, int],
    cells: dict[tuple[str, int], tuple[int, int]],
    withheld: list[tuple[str, int]],
) -> bool:
    """Tell whether knowing a group would tell a small cell, by itself or beside one shown."""
    told = list(cells[key])
    for other, counts in cells.items():
        if other[0] == key[0] and other not in withheld:
            told += [abs(a - b) for a, b in zip(counts, cells[key], strict=True)]
    return any(map(is_small, told))


@pytest.mark.slow
def test_the_attack_succeeds_where_too_little_is_withheld() -> None:
    """The same attack, on files that withhold the small cells and nothing else."""
    broken = 0
    for seed in range(2):
        audit = audit_cloud(seed)
        for who in audit.findings()["id"][::14]:
            data = json.loads(audit.case_file(who, redact=True).to_json())
            full = json.loads(audit.case_file(who).to_json())
            cells = true_cells(audit, who)
            for row, true in zip(data["figures"], full["figures"], strict=True):
                # somebody forgot that the complainant's own outcome can be taken out again
                if row["method"] == "cst_with":
                    row.update(true)
            possible = attack(data)
            broken += any(
                len(possible[key]) == 1 and any(map(is_small, cells[key]))
                for key in hidden_groups(data)
            )
    assert broken


def test_figures_do_not_tell_which_of_several_grounds_is_the_weakest() -> None:
    """They are the figures of one ground: a share that is shown alone would point to it."""
    table = cloud(4, rows=360)
    table["foreign"] = np.random.default_rng(9).integers(0, 2, len(table))
    audit = mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=[
            mm.Protection("woman", value=1, reference=0),
            mm.Protection("foreign", value=1, reference=0),
        ],
        combine="multiple",
        attributes={"salary": "continuous", "savings": "continuous"},
        ks=(12,),
        id="who",
    )
    tempted = 0
    for who in audit.findings()["id"][::3]:
        document = audit.case_file(who, redact=True)
        (row,) = document.figures
        assert (row.p_control == "withheld") is (row.p_test == "withheld")
        shown = {
            role: all(getattr(part, role).share != "withheld" for part in document.parts)
            for role in ("control", "test")
        }
        assert (row.p_control == "withheld") is not all(shown.values())
        # one of the two shares could have been shown by itself
        tempted += shown["control"] is not shown["test"]
    assert tempted > 3


def test_sizes_are_chosen_so_that_nothing_small_lies_between() -> None:
    cells = {10: [Cells(5, 5)], 15: [Cells(7, 8)], 30: [Cells(15, 15)]}
    assert choose_sizes(cells, first=30) == {10, 30}
    assert choose_sizes(cells, first=15) == {15, 30}


def test_people_who_share_places_are_cells_too() -> None:
    assert Cells(12, 20).is_safe()
    assert not Cells(12, 20, refused_sharing=2, granted_sharing=6).is_safe()
    assert not Cells(12, 20, refused_sharing=10, granted_sharing=0).is_safe()  # 2 inside
    assert Cells(12, 20, refused_sharing=6, granted_sharing=8).is_safe()


def test_empty_cells_hide_nobody() -> None:
    assert Cells(0, 15).is_safe()
    assert not Cells(1, 14).is_safe()
    assert [Cells(people, 0).is_safe() for people in (0, 1, 4, 5)] == [True, False, False, True]
    assert possible_counts(6, {}, people=6) == [1, 2, 3, 4, 5]
    assert possible_counts(15, {}, people=15) == [1, 2, 3, 4, 11, 12, 13, 14]
    assert possible_counts(16, {15: Cells(15, 0)}, people=16) == [15, 16]


# --- small groups, small tables -------------------------------------------------------------------


@pytest.mark.slow
def test_people_who_may_not_be_counted_are_not_listed() -> None:
    audit = audit_cloud(0, similarity=mm.Similarity(max_distance=0.03, min_group=1))
    looked = 0
    for who in audit.findings()["id"][::10]:
        full = case_document(audit, who).parts[0]
        redacted = case_document(audit, who, redact=True).parts[0]
        for before, after in ((full.control, redacted.control), (full.test, redacted.test)):
            assert before is not None
            assert after is not None
            if isinstance(before.people, int) and 0 < before.people < 5:
                looked += 1
                assert after.members == ()
                assert (after.people, after.places) == ("withheld", "withheld")
                assert "they are not listed" in case_document(audit, who, redact=True).to_html()
    assert looked


def test_small_counts_in_the_provenance_are_withheld(audit_applicants: Auditing) -> None:
    table = cloud(1).assign(extra=1.0)
    table.loc[[3, 8], "salary"] = np.nan
    table.loc[range(20, 40), "savings"] = np.nan
    audit = mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous", "savings": "continuous"},
        ks=(6,),
        id="who",
        missing="drop",
    )
    who = audit.findings()["id"].iloc[0]
    full, redacted = (audit.case_file(who, redact=each).as_dict() for each in (False, True))
    assert full["provenance"]["data"]["dropped"] == {"salary": 2, "savings": 20}
    # the other one would give it away to whoever knows the rows of the file
    assert redacted["provenance"]["data"]["dropped"] == {
        "salary": "withheld",
        "savings": "withheld",
    }
    assert any("2 rows without a value in 'salary'" in line for line in full["limits"])
    assert not any("2 rows" in line for line in redacted["limits"])


def test_values_that_are_off_the_grid_of_an_attribute_are_not_counted() -> None:
    """How distances were measured is said; that three people have odd values is not."""
    table = cloud(3).round({"salary": 0, "savings": 0})
    table.loc[[5, 50, 150], "salary"] += np.pi / 10
    audit = mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous", "savings": "continuous"},
        ks=(12,),
        id="who",
    )
    who = audit.findings()["id"].iloc[0]
    full, redacted = (
        audit.case_file(who, redact=each).as_dict()["provenance"]["computed"]["distance_rules"]
        for each in (False, True)
    )
    assert "3 values off it" in full["salary"]
    assert redacted["salary"] == full["salary"].partition(",")[0]
    assert redacted["salary"].startswith("lattice of")
    assert redacted["savings"] == full["savings"]
    assert "off it" not in audit.case_file(who, redact=True).to_html()


def test_a_decision_that_hardly_ever_differs_is_not_counted() -> None:
    table = cloud(2)
    table["granted"] = (table.salary + table.savings > 60).astype(int)
    table.loc[:2, "granted"] = 1 - table.loc[:2, "granted"]
    audit = mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous", "savings": "continuous"},
        worldview=mm.Worldview({"salary": mm.Linear("woman")}),
        decision="salary + savings > 60",
        ks=(6,),
        id="who",
    )
    document = audit.case_file(audit.findings()["id"].iloc[0], redact=True).as_dict()
    assert audit.disagreement == pytest.approx(3 / 240)
    assert document["provenance"]["computed"]["disagreement"] == "withheld"
    assert "differs from the record in some of the rows" in " ".join(document["assumptions"])
    assert "1.2%" not in json.dumps(document)
