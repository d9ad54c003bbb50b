"""Robustness in every output: findings, results folder, case file, report, summaries."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing.robustness import RULES, describe_verdict
from mutandis.errors import MutandisWarning, PlanError
from tests.tables import LOAN

SETTINGS: dict[str, Any] = {
    **LOAN,
    "ks": (10, 20, 30),
    "methods": ["st", "cst_matched"],
    "uncertainty": mm.Uncertainty(refits=4),
}


def audit(**other: Any) -> mm.Audit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        return mm.audit(mm.datasets.loan(n=600, seed=1), **{**SETTINGS, **other})


@pytest.fixture(scope="module")
def found() -> mm.Audit:
    return audit()


@pytest.fixture(scope="module")
def folder(found: mm.Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("robust") / "results"
    found.save(path)
    return path


def test_findings_of_the_headline_say_how_robust_they_are(found: mm.Audit) -> None:
    table, tipping = found.findings(), found.tipping()
    assert table["tipping"].equals(tipping["tipping"])
    assert table["grade"].equals(tipping["grade"])
    assert set(table["grade"].dropna()) == set(RULES)
    assert (table["robustness"].notna() == table["tipping"].notna()).all()
    assert "tipping" not in found.findings("st").columns


@pytest.mark.parametrize(
    ("point", "options", "line"),
    [
        (0.0, {}, "holds even if none of the effect of 'Gender' is real"),
        (1.0, {}, "holds only if all of the effect of 'Gender' is real"),
        (
            0.4,
            {"share": 0.979, "worlds": "draws", "ks": (15, 30, 50), "worldviews": (11, 12)},
            (
                "holds under 11 of 12 worldviews, as long as at least 40% of the effect of "
                "'Gender' is real, in 97% of draws, at k = 15 to 50 but not at k = 100"
            ),
        ),
    ],
)
def test_one_line_for_a_lawyer(point: float, options: Any, line: str, found: mm.Audit) -> None:
    settings = replace(found.plan.settings, ks=(15, 30, 50, 100))
    assert describe_verdict(replace(found.plan, settings=settings), point, **options) == line


def test_results_answer_from_their_folder(
    found: mm.Audit, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = mm.open_results(folder)

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("found again")

    monkeypatch.setattr("mutandis.auditing.robustness.find_tipping", fail)
    assert opened.findings().equals(found.findings())
    assert opened.tipping().equals(found.tipping())
    assert repr(opened) == repr(found)


def test_the_record_counts_grades(found: mm.Audit, folder: Path) -> None:
    told = json.loads((folder / "audit.json").read_text(encoding="utf-8"))["robustness"]
    counts = found.findings().groupby(["verdict", "grade"]).size()
    for verdict, grades in told["verdicts"].items():
        assert grades == {grade: counts.get((verdict, grade), 0) for grade in RULES}
    assert told["rules"] == RULES
    assert told["sentence"] in repr(found)


def test_damaged_tipping_points_are_refused(found: mm.Audit, folder: Path) -> None:
    from mutandis.store.saved_audit import _TIPPING, _arrays_of, _read_tipping

    stored = _arrays_of(found.results.tipping, _TIPPING)
    assert stored is not None
    for name, wrong in (("point", stored["point"][1:]), ("fragile", stored["point"])):
        with pytest.raises(ValueError, match="another array"):
            _read_tipping({**stored, name: wrong}, found)
    assert folder.is_dir()


def test_results_without_tipping_points_find_them_when_asked(found: mm.Audit, folder: Path) -> None:
    older = mm.open_results(folder)
    older = replace(older, results=replace(older.results, tipping=None))
    assert older.findings().equals(found.findings())


def test_the_case_file_has_the_line_the_rule_and_the_curve(found: mm.Audit, folder: Path) -> None:
    table = found.findings().set_index("id")
    opened = mm.open_results(folder)
    for grade in RULES:
        row = table[table["grade"] == grade].iloc[0]
        document = opened.case_file(row.name)
        robust = document.robustness
        assert robust is not None
        assert (robust.tipping, robust.grade) == (row["tipping"], grade)
        assert (robust.rule, robust.sentence) == (RULES[grade], row["robustness"])
        (part,) = document.parts
        curve = part.curve
        assert [each.part for each in curve] == [step / 20 for step in range(21)]
        assert curve[-1].delta_p == pytest.approx(row["delta_p"])
        assert curve[-1].low == pytest.approx(row["ci_low"])
        # the tipping point is where the curve stops to stand
        last = max((each.part for each in curve if not each.stands), default=-0.05)
        assert robust.tipping == pytest.approx(last + 0.05)
        page = document.to_html()
        assert robust.sentence.replace("'", "&#39;") in page
        assert 'id="part1-curve"' in page
        assert json.loads(document.to_json())["robustness"]["grade"] == grade


def test_without_evidence_the_curve_goes_on(found: mm.Audit) -> None:
    tipping = found.tipping()
    who = tipping[tipping["appears"].notna() & tipping["tipping"].isna()].iloc[0]
    document = found.case_file(who["id"])
    curve = document.parts[0].curve
    assert curve[-1].part == 1.5
    assert min(each.part for each in curve if each.stands and each.part > 1) == who["appears"]
    assert f"significant if the effect of the status were {who['appears']:.0%}" in (
        document.to_html()
    )


def test_a_redacted_case_file_says_nothing_of_it(found: mm.Audit) -> None:
    document = found.case_file(found.findings()["id"].iloc[0], redact=True)
    assert document.robustness is None
    assert document.parts[0].curve == ()
    assert "Robustness" not in document.to_html()


def test_the_setting_turns_it_off() -> None:
    off = audit(uncertainty=mm.Uncertainty(refits=0, tipping=False))
    assert "tipping" not in off.findings().columns
    assert "effect" not in repr(off)
    assert off.results.tipping is None
    with pytest.raises(PlanError, match="primary method"):
        audit(methods=["st"], uncertainty=mm.Uncertainty(tipping=True))
    assert not audit(methods=["st"]).plan.settings.uncertainty.tipping


@pytest.mark.slow
@pytest.mark.parametrize("world", ["hidden common cause", "loan, hidden cause", "no effect"])
def test_verdicts_stand_where_enough_of_the_effect_is_real(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The promise of docs/robustness.md, on fewer tables than its benchmark."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    graded = import_module("robustness").grade
    table = pd.concat(
        graded(world, np.random.default_rng([seed, 7]), n=1500, k=40, sharp=sharp)
        for seed in range(2)
        for sharp in (False, True)
    )
    assert len(table) > 300
    stands = table.groupby("true share")["stands"].mean()
    assert stands["λ* up to it"] >= 0.95
    assert stands["λ* above it"] < 0.7
    # the share falls with λ*, up to chance in so few tables
    by_band = table.groupby("band")["stands"].mean()
    assert (np.diff(by_band) <= 0.1).all()
    assert by_band.iloc[-1] < by_band.iloc[0]
