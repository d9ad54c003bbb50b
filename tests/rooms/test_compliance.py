"""What authorities ask for: texts, impact ratios by plain loops, weights by another fit."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import PlanError
from mutandis.rooms.compliance import (
    compute_impact_ratios,
    impact_ratios,
    propensity_weighted,
    write_text,
)

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.rooms.compliance import ImpactRatio


def small_audit(status: str = "Gender", **options: Any) -> mm.Audit:
    table = mm.datasets.loan(n=400, seed=1).rename(columns={"Gender": status})
    return mm.audit(
        table,
        outcome="LoanApproval",
        negative=-1,
        protected=mm.Protection(status, value=1, reference=0),
        attributes={"AnnualSalary": "continuous"},
        worldview=mm.Worldview({"AnnualSalary": mm.Linear(status)}),
        ks=(15,),
        uncertainty=mm.Uncertainty(refits=0, tipping=False),
        **options,
    )


@pytest.fixture(scope="module")
def audit() -> mm.Audit:
    return small_audit()


@pytest.mark.parametrize("kind", ["prima-facie", "model-card"])
def test_every_count_is_the_audits(audit: mm.Audit, kind: Any) -> None:
    text = write_text(audit, kind)
    for row in audit.counts().to_dict("records"):
        title = {"st": "ST", "cst_without": "CST (w/o)", "cst_matched": "CST (matched)"}
        cells = [row["cases"], row["significant"], row["significant_adjusted"]]
        line = next(
            line
            for line in text.splitlines()
            if line.startswith(f"| {title.get(row['method'], row['method'])}")
        )
        assert [int(each) for each in re.findall(r"\d+", line)[1:4]] == cells
    assert "not legal advice" in text
    assert audit.provenance.data["sha256"] in text
    number = audit.results.summaries[audit.plan.settings.primary].counts["significant_adjusted"]
    assert f"{number} of {len(audit.findings())} complainants" in text


def test_names_of_the_table_make_no_markup() -> None:
    hostile = "<script>|*x*`\n# y"
    text = write_text(small_audit(hostile), "prima-facie")
    assert "<script>" not in text
    assert "\n# y" not in text
    assert "|*x*" not in text


def test_an_unknown_text_is_refused(audit: mm.Audit) -> None:
    with pytest.raises(PlanError, match=r"'prima' is not a text that can be written.*prima-facie"):
        write_text(audit, "prima")


def test_the_command_writes_each(audit: mm.Audit, tmp_path: Path) -> None:
    results = tmp_path / "results"
    audit.save(results)
    runner = CliRunner()

    def export(*arguments: str) -> str:
        done = runner.invoke(app, ["export", str(results), *arguments])
        assert done.exit_code == 0, done.output
        return done.output

    csv = tmp_path / "ll144.csv"
    assert "2 categories with an impact ratio" in export(str(csv), "--as", "ll144")
    assert csv.read_text().splitlines()[0] == (
        "table,category,applicants,selected,rate,impact_ratio,note"
    )
    text = tmp_path / "summary.md"
    assert "not legal advice" in export(str(text), "--as", "prima-facie")
    assert text.read_text() == write_text(mm.open_results(results), "prima-facie")
    export(str(tmp_path / "card.md"), "--as", "model-card")
    export(str(tmp_path / "people.csv"))
    assert (tmp_path / "people.csv").exists()


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    n = 600
    sex = rng.choice(["F", "M"], n)
    race = rng.choice(["A", "B", "C", "?", "D"], n, p=[0.4, 0.3, 0.2, 0.09, 0.01])
    score = rng.normal(size=n).round(1) + (sex == "M") * 0.3
    return pd.DataFrame(
        {"sex": sex, "race": race, "score": score, "hired": np.where(score > 0.4, "yes", "no")}
    )


def run(table: pd.DataFrame, **options: Any) -> mm.Audit:
    return mm.audit(
        table,
        outcome="hired",
        negative="no",
        protected=mm.Protection("sex", value="F", reference="M"),
        attributes={"race": "nominal", "score": "continuous"},
        ks=(10,),
        **options,
    )


@pytest.fixture(scope="module")
def hiring(table: pd.DataFrame) -> mm.Audit:
    return run(table)


def rows_of(hiring: mm.Audit, **options: Any) -> dict[tuple[str, str], ImpactRatio]:
    arguments: dict[str, Any] = {
        "by": ["sex", "race"],
        "unknown": ["?"],
        "leave_out_below": 0.0,
        "score": None,
        **options,
    }
    return {(row.table, row.category): row for row in compute_impact_ratios(hiring, **arguments)}


@pytest.mark.parametrize("scored", [False, True])
def test_against_plain_loops(hiring: mm.Audit, table: pd.DataFrame, scored: bool) -> None:
    found = rows_of(hiring, score="score" if scored else None)
    middle = sorted(table["score"])[299:301]
    median = sum(middle) / 2
    people = [
        (row.sex, row.race, row.score > median if scored else row.hired == "yes")
        for row in table.itertuples()
    ]
    for name, key in (
        ("sex", lambda p: p[0]),
        ("race", lambda p: p[1]),
        ("sex × race", lambda p: f"{p[0]} × {p[1]}"),
    ):
        known = [p for p in people if "?" not in key(p)]
        everyone, chosen = Counter(map(key, known)), Counter(key(p) for p in known if p[2])
        rates = {each: Fraction(chosen[each], n) for each, n in everyone.items()}
        best = max(rates.values())
        for each, n in everyone.items():
            row = found[name, each]
            assert (row.applicants, row.selected) == (n, chosen[each])
            assert row.impact_ratio == rates[each] / best
        unknown = len(people) - len(known)
        if unknown:
            assert found[name, "unknown"].applicants == unknown
            assert found[name, "unknown"].impact_ratio is None


def test_small_categories_are_left_out_and_counted(hiring: mm.Audit) -> None:
    everyone, most = rows_of(hiring), rows_of(hiring, leave_out_below=0.02)
    small = most["race", "D"]
    assert small.applicants < 12  # of 600
    assert small.impact_ratio is None
    assert "left out of the impact ratios" in small.note
    assert small.rate == everyone["race", "D"].rate
    # who is left out is not the best group either
    ratios = [row.impact_ratio for row in most.values() if row.table == "race"]
    assert max(each for each in ratios if each is not None) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": ["gender"]}, "'gender' is no column of categories in this audit"),
        ({"by": ["score"]}, "'score' is no column of categories"),
        ({"by": "sex"}, r"by= takes a list, not a text. Write by=\['sex'\]"),
        ({"by": []}, "by= is empty"),
        ({"score": "race"}, "score='race' is no column of numbers"),
        ({"leave_out_below": 2}, r"leave_out_below=2 is outside \[0, 1\)"),
    ],
)
def test_what_cannot_be_counted_is_refused(
    hiring: mm.Audit, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        rows_of(hiring, **options)


def test_rows_that_were_dropped_are_counted(table: pd.DataFrame) -> None:
    holes = table.assign(race=table["race"].mask(table["race"] == "?")).sample(frac=1)
    frame = impact_ratios(run(holes, missing="drop"), by=["sex", "race"])
    assert set(frame["table"]) == {"sex", "race", "sex × race"}
    rows = frame.set_index(["table", "category"])
    assert rows.loc[("race", "missing"), "applicants"] == int((table["race"] == "?").sum())
    assert np.isnan(rows.loc[("race", "missing"), "selected"])
    assert ("sex", "missing") not in rows.index


def people(seed: int, *, rows: int = 400, harm: float = 0.0) -> pd.DataFrame:
    """Draw people whose status goes with what matters to the decision, and harms by `harm`."""
    rng = np.random.default_rng(seed)
    x, grade = rng.normal(size=rows), rng.integers(0, 3, rows)
    job = rng.choice(["cook", "clerk", "guard"], rows)
    tends = 0.7 * x - 0.3 * grade + 0.5 * (job == "cook") - 0.6
    woman = (rng.random(rows) < 1 / (1 + np.exp(-tends))).astype(int)
    wanted = 0.8 * x + 0.4 * grade - 0.5 * (job == "guard") - harm * woman
    granted = (rng.random(rows) < 1 / (1 + np.exp(-wanted))).astype(int)
    return pd.DataFrame({"woman": woman, "x": x, "grade": grade, "job": job, "granted": granted})


def weighted(table: pd.DataFrame, **options: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": 0,
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {
            "x": "continuous",
            "grade": {"kind": "ordinal", "levels": [0, 1, 2]},
            "job": "nominal",
        },
        "methods": ["st"],
        "ks": (5,),
    }
    return mm.audit(table, **settings | options)


def design_of(table: pd.DataFrame) -> Any:
    cook, guard = ((table["job"] == job).astype(float) for job in ("cook", "guard"))
    return np.column_stack([np.ones(len(table)), table["x"], table["grade"], cook, guard])


def equations(theta: Any, design: Any, status: Any, refused: Any) -> Any:
    """Return the stacked estimating equations of each row: score, and both shares."""
    log_odds = design @ theta[:-2]
    residual = status - 1 / (1 + np.exp(-log_odds))
    weights = (1 - status) * np.exp(log_odds)
    return np.column_stack(
        [
            residual[:, None] * design,
            status * (refused - theta[-2]),
            weights * (refused - theta[-1]),
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_difference_and_its_error_are_those_of_the_estimating_equations(seed: int) -> None:
    sm = pytest.importorskip("statsmodels.api")
    table = people(seed, harm=0.5)
    design, status = design_of(table), table["woman"].to_numpy(float)
    refused = 1 - table["granted"].to_numpy(float)
    fitted = sm.Logit(status, design).fit(disp=0, tol=1e-12).params
    weights = (1 - status) * np.exp(design @ fitted)
    shares = [refused[status == 1].mean(), (weights * refused).sum() / weights.sum()]
    theta = np.array([*fitted, *shares])
    assert np.abs(equations(theta, design, status, refused).sum(axis=0)).max() < 1e-6

    def total(at: Any) -> Any:
        return equations(at, design, status, refused).sum(axis=0)

    steps = 1e-5 * np.eye(len(theta))
    slope = np.array([(total(theta + h) - total(theta - h)) / 2e-5 for h in steps]).T
    each = equations(theta, design, status, refused)
    bread = np.linalg.inv(slope)
    covariance = bread @ (each.T @ each) @ bread.T
    contrast = np.array([*[0.0] * len(fitted), 1.0, -1.0])
    error = float(np.sqrt(contrast @ covariance @ contrast))

    found = propensity_weighted(weighted(table)).iloc[0]
    assert found["p_protected"] == pytest.approx(shares[0], abs=1e-12)
    assert found["p_reference"] == pytest.approx(refused[status == 0].mean(), abs=1e-12)
    assert found["p_weighted"] == pytest.approx(shares[1], abs=1e-7)
    assert found["risk_difference"] == pytest.approx(shares[0] - shares[1], abs=1e-7)
    margin = norm.ppf(0.95) * error
    assert found["ci_low"] == pytest.approx(shares[0] - shares[1] - margin, abs=1e-6)
    assert found["ci_high"] == pytest.approx(shares[0] - shares[1] + margin, abs=1e-6)
    assert found["p_value"] == pytest.approx(norm.sf((shares[0] - shares[1]) / error), abs=1e-6)
    assert found["n_effective"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-6)
    assert (found["protected"], found["reference"]) == (status.sum(), (1 - status).sum())


def test_weights_balance_what_was_not() -> None:
    table = people(3, rows=1500)
    found = propensity_weighted(weighted(table)).iloc[0]
    women, men = (table.loc[table["woman"] == side, "x"] for side in (1, 0))
    apart = abs(women.mean() - men.mean()) / np.sqrt((women.var(ddof=0) + men.var(ddof=0)) / 2)
    assert found["imbalance"] == pytest.approx(apart)
    assert found["imbalance_weighted"] < 0.1 < found["imbalance"]


def test_sorting_the_table_in_another_way_changes_no_bit() -> None:
    table = people(5)
    again = table.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(
        propensity_weighted(weighted(table)), propensity_weighted(weighted(again)), check_exact=True
    )


def test_what_has_no_propensity_is_refused() -> None:
    table = people(9)
    score = weighted(
        table, outcome=mm.Score("x", worse="lower"), negative=None, attributes={"job": "nominal"}
    )
    with pytest.raises(PlanError, match="not a refusal or an approval"):
        propensity_weighted(score)
    same = table.assign(job="cook")
    with pytest.warns(mm.MutandisWarning, match="constant"):
        alone = weighted(same, attributes={"job": "nominal"})
    with pytest.raises(PlanError, match="No attribute varies"):
        propensity_weighted(alone)
    twice = weighted(
        table.assign(y=2 * table["x"]), attributes={"x": "continuous", "y": "continuous"}
    )
    with pytest.raises(PlanError, match="cannot be explained by the attributes"):
        propensity_weighted(twice)
