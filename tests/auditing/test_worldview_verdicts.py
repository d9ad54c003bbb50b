"""Verdicts under other worldviews as a part of an audit: findings, grades, results, documents."""

from __future__ import annotations

import json
import shutil
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.auditing.robustness import each_findings
from mutandis.cli.app import app
from mutandis.errors import MutandisWarning, OutputError, PlanError, SettingsError
from mutandis.store import saved_audit
from tests.tables import LOAN

if TYPE_CHECKING:
    from pathlib import Path

BANK = mm.Worldview({"AnnualSalary": mm.Linear("Gender")})
GIVEN = LOAN["worldview"]
STRENGTH = {"evidence": 1, "significant": 2, "significant-adjusted": 3}


def settings(**changes: Any) -> dict[str, Any]:
    return {
        **LOAN,
        "worldview": GIVEN,
        "ks": (10, 15),
        "methods": ["st", "cst_without", "cst_matched"],
        **changes,
    }


def loan() -> pd.DataFrame:
    return mm.datasets.loan(n=220, seed=2)


def quietly(*arguments: Any, **options: Any) -> mm.Audit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        return mm.audit(*arguments, **options)


@pytest.fixture(scope="module")
def found() -> mm.Audit:
    doubt = mm.Uncertainty(refits=2, variants=True, worldviews={"bank": BANK})
    return quietly(loan(), **settings(uncertainty=doubt))


def open_world(rows: int = 240, loss: float = 1.0) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Draw people with an open attribute, which is compared in draws."""
    rng = np.random.default_rng(4)
    woman = rng.integers(0, 2, rows)
    x = rng.normal(size=rows) - 0.8 * loss * woman
    level = np.digitize(rng.logistic(size=rows) - loss * woman, [-0.7, 0.7])
    granted = x + level + 0.3 * rng.normal(size=rows) > 1.2
    table = pd.DataFrame({"woman": woman, "x": x, "z": np.array(["a", "b", "c"])[level]})
    attribute = mm.Attribute(name="z", kind=mm.AttributeKind.ORDINAL, levels=("a", "b", "c"))
    return table.assign(granted=granted.astype(int)), {
        "outcome": "granted",
        "negative": 0,
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"x": "continuous", "z": attribute},
        "ks": (12,),
    }


def check_against_whole_audits(found: mm.Audit, audits: dict[str, mm.Audit]) -> None:
    """Count by hand, in findings of audits that were run under each worldview by themselves."""
    tables = {name: each.findings().set_index("id") for name, each in audits.items()}
    first, rows = next(iter(tables.values())), found.findings().set_index("id")
    seen = set()
    for who, row in rows.iterrows():
        mine = STRENGTH.get(first.loc[who, "verdict"], 0)
        assert row["verdict"] == first.loc[who, "verdict"]
        if not mine:
            assert pd.isna(row["stays_under"])
            assert pd.isna(row["breaks_under"])
            assert pd.isna(row["grade"])
            continue
        weaker = [
            name
            for name, table in tables.items()
            if STRENGTH.get(table.loc[who, "verdict"], 0) < mine
        ]
        stays = len(tables) - len(weaker)
        assert row["stays_under"] == stays
        assert row["breaks_under"] == "; ".join(weaker)
        so_many = f"holds under {stays} of {len(tables)} worldviews, "
        assert row["robustness"] == so_many + first.loc[who, "robustness"].removeprefix("holds ")
        alone = first.loc[who, "grade"]
        if alone == "fragile" or stays < len(tables) / 2:
            assert row["grade"] == "fragile"
        elif alone == "robust" and stays == len(tables):
            assert row["grade"] == "robust"
        else:
            assert row["grade"] == "sensitive"
        seen.add(stays)
    assert len(seen) > 1


@pytest.mark.slow
def test_they_are_those_of_whole_audits(found: mm.Audit) -> None:
    compared = found.results.worldviews
    assert compared is not None
    assert compared.names == (
        "as given",
        "bank = AccountBalance is a root = AccountBalance is resolving",
        "AnnualSalary is a root = AnnualSalary is resolving",
        "AnnualSalary by factors",
        "AccountBalance by factors",
        "AccountBalance with interactions",
    )
    doubt = mm.Uncertainty(refits=2)
    worldviews = dict(mm.vary_worldview(found.plan))
    assert list(worldviews.values()) != [GIVEN]
    in_order = [worldviews.pop("as given")]
    in_order.append(worldviews.pop("AccountBalance is a root = AccountBalance is resolving"))
    in_order += worldviews.values()
    audits = {
        name: quietly(loan(), **settings(worldview=each, uncertainty=doubt))
        for name, each in zip(compared.names, in_order, strict=True)
    }
    check_against_whole_audits(found, audits)


def check_two(table: Any, about: dict[str, Any], own: mm.Worldview, other: mm.Worldview) -> None:
    """Compare with one other worldview, and with audits under each of both."""
    doubt, plain = mm.Uncertainty(refits=0, worldviews={"other": other}), mm.Uncertainty(refits=0)
    found = quietly(table, worldview=own, uncertainty=doubt, **about)
    audits = {
        name: quietly(table, worldview=each, uncertainty=plain, **about)
        for name, each in (("as given", own), ("other", other))
    }
    check_against_whole_audits(found, audits)


@pytest.mark.parametrize("direction", ["negative", "positive"])
@pytest.mark.few("negative")
def test_those_of_open_counterfactuals_are_drawn(direction: Any) -> None:
    """The plan's own worldview leaves nothing open, and another one does."""
    table, about = open_world(loss=1.0 if direction == "negative" else -1.0)
    about["evidence"] = mm.Evidence(direction=direction)
    other = mm.Worldview({"z": mm.Ordinal("woman", levels=("a", "b", "c"))})
    check_two(table, about, mm.Worldview({"x": mm.Linear("woman")}), other)


@pytest.mark.slow
def test_several_grounds_are_compared_together() -> None:
    table, about = open_world()
    table["old"] = np.random.default_rng(8).integers(0, 2, len(table))
    about["protected"] = [
        mm.Protection("woman", value=1, reference=0),
        mm.Protection("old", value=1, reference=0),
    ]
    about |= {"combine": "multiple", "attributes": {"x": "continuous"}, "ks": (8,)}
    both = mm.Worldview({"x": mm.Linear("woman", "old")})
    check_two(table, about, both, mm.Worldview({"x": mm.Linear("woman", "old", interactions=True)}))


def test_other_methods_have_the_columns_and_no_values(found: mm.Audit) -> None:
    other = next(each for each in each_findings(found) if each.method == "st").columns()
    assert np.isnan(other["stays_under"]).all()
    assert set(other["breaks_under"]) == {None}


def test_without_other_worldviews_nothing_is_said_of_them() -> None:
    plain = quietly(loan(), **settings(uncertainty=mm.Uncertainty(refits=0)))
    assert plain.results.worldviews is None
    assert "stays_under" not in plain.findings().columns
    assert "worldview" not in str(plain.findings()["robustness"].dropna().tolist())
    assert set(plain.provenance.settings["uncertainty"]) == {
        "draws",
        "refits",
        "tipping",
    }


def test_other_levels_are_about_other_verdicts(found: mm.Audit) -> None:
    for other in (found.with_levels(alpha=0.01), found.with_levels(k=10)):
        assert other.results.worldviews is None
        assert "stays_under" not in other.findings().columns
    assert found.with_levels().results.worldviews is found.results.worldviews


def test_one_complainants_row_is_hers(found: mm.Audit) -> None:
    table = found.findings()
    row = table[table["stays_under"].notna()].iloc[0]
    mine = found.case(row["id"]).result("cst_matched", k=15)
    for name in ("stays_under", "breaks_under", "robustness", "grade"):
        assert mine[name] == row[name]
    document = found.case_file(row["id"])
    compared = found.results.worldviews
    assert compared is not None
    assert document.robustness is not None
    assert document.robustness.sentence == row["robustness"]
    assert document.robustness.grade == row["grade"]
    assert "worldviews that were compared" in document.robustness.rule
    hers = document.robustness.worldviews
    assert list(hers) == list(compared.names)
    weaker = [
        name
        for name, verdict in hers.items()
        if STRENGTH.get(verdict, 0) < STRENGTH[hers["as given"]]
    ]
    assert "; ".join(weaker) == row["breaks_under"]
    assert json.loads(document.to_json())["robustness"]["worldviews"] == dict(hers)
    assert "Other worldviews, of 6 that were compared" in document.to_html()
    assert found.case_file(row["id"], redact=True).robustness is None


# --- results ------------------------------------------------------------------------------------

AUDIT = """# agreed on 3 May
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview:
  equations:
    AnnualSalary: {equation: linear, parents: [$protected]}
    AccountBalance: {equation: linear, parents: [AnnualSalary, $protected]}
decision: {rule: AnnualSalary + 5 * AccountBalance > 225000}
ks: [15]
uncertainty: {refits: 2} # few, for speed
seed: 1
"""
COMPARED = AUDIT.replace(
    "uncertainty: {refits: 2} # few, for speed\n",
    """uncertainty:
  refits: 2
  variants: true
  worldviews:
    bank:
      equations:
        AnnualSalary: {equation: linear, parents: [Gender]}
""",
)


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with plain results, and with those of an audit that asked for worldviews."""
    path = tmp_path_factory.mktemp("worldviews")
    loan().to_csv(path / "loan.csv", index=False)
    (path / "audit.yaml").write_text(AUDIT, encoding="utf-8")
    (path / "compared.yaml").write_text(COMPARED, encoding="utf-8")
    BANK.write(path / "bank.yaml")
    for name, out in (("audit", "plain"), ("compared", "asked")):
        answer = run("audit", path / f"{name}.yaml", "--out", path / out)
        assert answer.exit_code == 0, answer.output
    return path


@pytest.fixture
def results(base: Path, tmp_path: Path) -> Path:
    for name in ("loan.csv", "bank.yaml"):
        shutil.copy(base / name, tmp_path)
    shutil.copytree(base / "plain", tmp_path / "results")
    return tmp_path / "results"


def test_results_remember_them(base: Path) -> None:
    asked, plan = mm.open_results(base / "asked"), mm.read_plan(base / "compared.yaml")
    fresh = plan.run()
    compared, again = fresh.results.worldviews, asked.results.worldviews
    assert compared is not None
    assert again is not None
    assert again.names == compared.names
    np.testing.assert_array_equal(again.strength, compared.strength)
    np.testing.assert_array_equal(again.delta_p, compared.delta_p)
    pd.testing.assert_frame_equal(asked.findings(), fresh.findings(), check_dtype=False)
    record = json.loads((base / "asked" / "audit.json").read_text(encoding="utf-8"))
    assert record["robustness"]["worldviews"] == compared.summary_records()
    assert mm.verify_results(base / "asked", rerun=True).differences == ()


@pytest.mark.slow
def test_compared_later_they_are_as_if_asked_for(base: Path, results: Path) -> None:
    saved, before = results.parent / "saved", (results / "audit.json").read_bytes()
    answer = run("compare", results, results.parent / "bank.yaml", "--variants", "--save", saved)
    assert answer.exit_code == 0, answer.output
    assert (results / "audit.json").read_bytes() == before
    assert "CST (matched), k = 15, under 6 worldviews" in answer.output
    there, here = (
        {each.relative_to(path).as_posix(): each for each in path.rglob("*") if each.is_file()}
        for path in (base / "asked", saved)
    )
    assert set(there) == set(here)
    for name, path in here.items():
        # the record holds the time, and the report the text of the audit file
        if name not in {"audit.json", "report.html"}:
            assert path.read_bytes() == there[name].read_bytes(), name
    record = json.loads(here["audit.json"].read_text(encoding="utf-8"))
    other = json.loads(there["audit.json"].read_text(encoding="utf-8"))
    for name in ("settings", "provenance", "robustness", "diagnostics"):
        assert record[name] == other[name], name
    assert mm.verify_results(saved, rerun=True).differences == ()
    # what is there is shown, and a further one is added
    again = run("compare", saved, "--json")
    assert json.loads(again.stdout)["worldviews"] == record["robustness"]["worldviews"]
    mm.Worldview({"AccountBalance": mm.Linear("Gender")}).write(results.parent / "third.yaml")
    further = run("compare", saved, results.parent / "third.yaml", "--json")
    names = [each["name"] for each in json.loads(further.stdout)["worldviews"]]
    assert "bank = AccountBalance is a root = AccountBalance is resolving" in names
    assert any(name.startswith("third") for name in names)


def test_people_are_written(results: Path, tmp_path: Path) -> None:
    people, bank = tmp_path / "people.csv", results.parent / "bank.yaml"
    answer = run("compare", results, bank, "--out", people, "--json")
    assert answer.exit_code == 0, answer.output
    breaks = json.loads(answer.stdout)["worldviews"][1]["breaks"]
    assert breaks == (pd.read_csv(people)["breaks_under"] == "bank").sum() > 0


def test_results_are_not_written_over(results: Path) -> None:
    for arguments, kind, words in (
        ((), PlanError, "add --variants"),
        (("--variants", "--save", results), OutputError, "holds results already"),
    ):
        answer = run("compare", results, *arguments)
        assert isinstance(answer.exception, kind), answer.output
        assert words in str(answer.exception)
    assert mm.verify_results(results).differences == ()


def test_verdicts_of_another_kind_are_damage(base: Path, tmp_path: Path) -> None:
    for change in ("strength", "names"):
        folder = tmp_path / change
        shutil.copytree(base / "asked", folder)
        state = saved_audit._read_state(folder / "audit.npz")
        audit = mm.open_results(folder)
        stored = dict(state["worldviews"])
        stored[change] = stored[change] + 9 if change == "strength" else stored[change][:-1]
        with pytest.raises(ValueError, match=r"another array|other verdicts"):
            saved_audit._read_worldviews(stored, audit)


def test_what_no_file_can_hold_is_remembered_all_the_same(tmp_path: Path) -> None:
    other = mm.Worldview({"AnnualSalary": mm.Linear("Gender")}, resolving=["AnnualSalary"])
    doubt = mm.Uncertainty(refits=0, worldviews={"other": other, "bank": BANK})
    found = quietly(loan(), **settings(uncertainty=doubt))
    found.save(tmp_path / "results")
    again = mm.open_results(tmp_path / "results")
    pd.testing.assert_frame_equal(again.findings(), found.findings())
    assert again.plan.settings.uncertainty.worldviews == {"other": other, "bank": BANK}


# --- settings -----------------------------------------------------------------------------------


def test_settings_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="Give worldviews by name"):
        mm.Uncertainty(worldviews=[BANK])  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="Give Worldview"):
        mm.Uncertainty(worldviews={"bank": "bank.yaml"})  # type: ignore[dict-item]
    with pytest.raises(PlanError, match="the audit's own worldview"):
        mm.Uncertainty(worldviews={"as given": BANK})
    both = mm.Uncertainty(variants=True, tipping=False)
    with pytest.raises(PlanError, match="contradict each other"):
        mm.plan(loan(), **settings(uncertainty=both))
    asked = mm.Uncertainty(variants=True)
    with pytest.raises(PlanError, match="it has none"):
        mm.plan(loan(), **settings(uncertainty=asked, worldview=None, methods=["st"]))
    primary = mm.Evidence(primary=("st", 15))
    with pytest.raises(PlanError, match="comparing worldviews needs 'cst_matched'"):
        mm.plan(loan(), **settings(uncertainty=asked, evidence=primary))
    unknown = mm.Worldview({"AnnualSalary": mm.Linear("Gender", "Age")})
    found = quietly(loan(), **settings(uncertainty=mm.Uncertainty(refits=0)))
    with pytest.raises(mm.errors.MutandisError, match="Age"):
        # one that was named is not left out in silence
        found.with_worldviews({"older": unknown})
    (tmp_path / "audit.yaml").write_text(
        AUDIT.replace("refits: 2}", "refits: 2, worldviews: {bank: {equations: 7}}}"),
        encoding="utf-8",
    )
    loan().to_csv(tmp_path / "loan.csv", index=False)
    with pytest.raises(SettingsError, match=r"line 12.*worldviews"):
        mm.read_plan(tmp_path / "audit.yaml")
