"""No number of any output depends on the order of rows: shuffled rows give the same, bit for bit.

Rows have ids. What is compared is everything that can be asked of an audit or is written by it;
rows of tables are compared by id. Only the hash of the table and the time may differ.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 440
GRADES = ["low", "mid", "high"]


@cache
def table() -> pd.DataFrame:
    """Applicants with many ties; more than 200 are complainants, so that samples are drawn."""
    rng = np.random.default_rng(0)
    woman = rng.integers(0, 2, ROWS)
    foreign = rng.choice(["yes", "no", "no"], ROWS)
    salary = np.round(20 + 3 * rng.standard_normal(ROWS) - 2 * woman, 1)
    balance = np.round(0.3 * salary + rng.standard_normal(ROWS) - (foreign == "yes"), 2)
    children = rng.poisson(1 + 0.3 * woman)
    grade = np.array(GRADES)[
        np.clip(rng.integers(0, 3, ROWS) - woman * rng.integers(0, 2, ROWS), 0, 2)
    ]
    ok = np.where(salary + balance + rng.standard_normal(ROWS) > 24.5, "yes", "no")
    made = pd.DataFrame(
        {
            "who": [f"person {number:03}" for number in rng.permutation(ROWS)],
            "woman": woman,
            "foreign": foreign,
            "salary": salary,
            "balance": balance,
            "children": children,
            "grade": grade,
            "ok": ok,
        }
    )
    # forty are copies of others in every cell but the id: what the order of rows could decide
    made.loc[ROWS - 40 :, made.columns[1:]] = made.loc[:39, made.columns[1:]].to_numpy()
    return made.astype({"woman": int, "salary": float, "balance": float, "children": int})


def reordered(order: str) -> pd.DataFrame:
    rows = table()
    if order == "sorted":
        return rows.sort_values(["ok", "salary"], kind="stable").reset_index(drop=True)
    return rows.sample(frac=1, random_state=1).reset_index(drop=True)


WOMAN = mm.Protection("woman", value=1, reference=0)
FOREIGN = mm.Protection("foreign", value="yes", reference="no")
LINEAR = {"salary": mm.Linear("woman"), "balance": mm.Linear("salary", "woman", "foreign")}
NUMBERS = {"salary": "continuous", "balance": "continuous"}
SCENARIOS: dict[str, dict[str, Any]] = {
    "fitted": {
        "worldview": mm.Worldview(LINEAR),
        "decision": "salary + balance > 24.5",
        "uncertainty": mm.Uncertainty(refits=4),
    },
    "recorded": {"worldview": mm.Worldview(LINEAR)},
    "coupled": {
        "worldview": mm.Worldview(
            {
                **LINEAR,
                "children": mm.Count("woman"),
                "grade": mm.Ordinal("woman", "children", levels=GRADES),
            }
        ),
        "attributes": {
            **NUMBERS,
            "children": "continuous",
            "grade": {"kind": "ordinal", "levels": GRADES},
        },
        "uncertainty": mm.Uncertainty(draws=3, refits=2),
    },
    "caliper": {
        "worldview": mm.Worldview(LINEAR),
        "similarity": mm.Similarity(max_distance=0.05, min_group=3),
        "decision": "salary + balance > 24.5",
    },
    "multiple": {
        "protected": [WOMAN, FOREIGN],
        "combine": "multiple",
        "worldview": mm.Worldview(LINEAR),
        "decision": "salary + balance > 24.5",
    },
    "intersectional": {
        "protected": [WOMAN, FOREIGN],
        "combine": "intersectional",
        "worldview": mm.Worldview(LINEAR),
        "decision": "salary + balance > 24.5",
    },
}


def audit(rows: pd.DataFrame, scenario: str) -> mm.Audit:
    options: dict[str, Any] = {
        "outcome": "ok",
        "negative": "no",
        "protected": WOMAN,
        "attributes": NUMBERS,
        "uncertainty": mm.Uncertainty(refits=2),
        "ks": (5, 15),
        "id": "who",
        "seed": 4,
    }
    return mm.audit(rows, **{**options, **SCENARIOS[scenario]})


# --- what an audit says ------------------------------------------------------------------------


def exact(value: Any) -> Any:
    """Make a value comparable to the last bit; rows of a frame come by id where they have one."""
    if isinstance(value, pd.DataFrame):
        key = next((name for name in ("id", "who") if name in value), None)
        rows = value if key is None else value.sort_values(key)
        return [exact(list(row)) for row in rows.itertuples(index=False)]
    if isinstance(value, float | np.floating):
        return float(value).hex()
    if isinstance(value, dict):
        return {name: exact(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [exact(each) for each in value]
    return value


# the fingerprint of a table is that of its rows in their order
_HASH = re.compile(r"[0-9a-f]{64}|\b[0-9a-f]{8,16}(?:…|\.\.\.)")


def without_hashes(text: str) -> str:
    return _HASH.sub("HASH", text)


def said(found: mm.Audit) -> Iterator[tuple[str, Any]]:
    """Name and give everything that an audit answers, but for its pages."""
    yield "counts", exact(found.counts())
    yield "repr", repr(found)
    yield "disagreement", found.disagreement
    for method in found.methods:
        for k in found.ks:
            yield f"findings {method} {k}", exact(found.findings(method, k=k))
        if method != "cf":
            yield f"support {method}", exact(found.support(method, k=found.ks[0]))
    for part in found.parts.values() if len(found.grounds) > 1 else (found,):
        yield f"counterfactuals {part.plan.status}", exact(part.counterfactuals())
    provenance = found.provenance.as_dict()
    provenance["data"].pop("sha256")
    yield "provenance", exact(json.loads(without_hashes(json.dumps(provenance, default=str))))


@cache
def straight(scenario: str) -> mm.Audit:
    return audit(table(), scenario)


@cache
def again(scenario: str, order: str = "shuffled") -> mm.Audit:
    return audit(reordered(order), scenario)


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Say which outputs differ: all of them, and not only the first."""
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []


@pytest.mark.parametrize("order", ["shuffled", pytest.param("sorted", marks=pytest.mark.slow)])
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.few("coupled-shuffled", "caliper-shuffled")
def test_everything_an_audit_says(scenario: str, order: str) -> None:
    assert_same(dict(said(straight(scenario))), dict(said(again(scenario, order))))


def test_the_balance_of_people_without_an_id() -> None:
    # their ids are positions, so people at the same distance are listed in the order of rows
    rows = table().drop(columns="who")
    order = np.random.default_rng(2).permutation(len(rows))
    options: dict[str, Any] = {"outcome": "ok", "negative": "no", "protected": WOMAN, "ks": (15,)}
    before, after = (
        mm.audit(each, attributes={"salary": "continuous"}, **options)
        for each in (rows, rows.iloc[order].reset_index(drop=True))
    )
    new_place = np.argsort(order)
    for old in before.findings("st", k=15)["id"]:
        pairs = [
            found.case(int(place)).balance("st", 15)
            for found, place in ((before, old), (after, new_place[old]))
        ]
        groups = [exact([dict(pair.control), dict(pair.test)]) for pair in pairs]
        assert groups[0] == groups[1]


# --- pages -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["fitted", "coupled", "multiple"])
def test_the_report(scenario: str) -> None:
    before, after = straight(scenario).report(), again(scenario).report()
    assert without_hashes(before.html).splitlines() == without_hashes(after.html).splitlines()
    assert before.plots == after.plots


@pytest.mark.slow
@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize("scenario", ["fitted", "coupled", "caliper", "multiple"])
def test_case_files(scenario: str, redact: bool) -> None:
    before, after = straight(scenario), again(scenario)
    complainants = sorted(before.findings()["id"])
    for who in complainants[:: len(complainants) // 2]:
        files = [found.case_file(who, redact=redact) for found in (before, after)]
        first, second = (json.loads(without_hashes(file.to_json())) for file in files)
        assert_same(first, second)
        pages = [without_hashes(file.to_html()).splitlines() for file in files]
        assert pages[0] == pages[1]


# --- the results folder ------------------------------------------------------------------------

CONFIG = """\
data: {source: decisions.csv, id: who}
outcome: {column: ok, negative: no}
protected: {attribute: woman, value: 1, reference: 0}
attributes: {salary: continuous, balance: continuous, children: continuous}
worldview:
  salary: {equation: linear, parents: [$protected]}
  balance: {equation: linear, parents: [salary, $protected]}
  children: {equation: count, parents: [$protected]}
decision: {rule: "salary + balance > 24.5"}
ks: [5, 15]
uncertainty: {draws: 3}
seed: 4
"""


def run(folder: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100"})
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output.replace(str(folder), "")


def written(rows: pd.DataFrame) -> dict[str, Any]:
    """Give everything that the command line prints and writes for a table, by its name."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        rows.to_csv(folder / "decisions.csv", index=False)
        (folder / "audit.yaml").write_text(
            CONFIG.replace("negative: no", "negative: 'no'"), "utf-8"
        )
        config, results = str(folder / "audit.yaml"), folder / "results"
        files: dict[str, Any] = {"check": run(folder, "check", config)}
        files["audit"] = run(folder, "audit", config, "--out", str(results))
        for who in ("person 007", "person 100", "person 321", "person 400"):
            if who in set(rows.loc[rows["woman"] == 1, "who"]):
                files[f"case {who}"] = run(folder, "case", str(results), who, "--no-pdf")
        for path in sorted(results.rglob("*")):
            if path.suffix in {".html", ".csv", ".svg"}:
                files[path.name] = without_hashes(path.read_text("utf-8")).splitlines()
            elif path.suffix == ".json":
                files |= _record(path)
            elif path.suffix == ".parquet":
                found = pd.read_parquet(path).sort_values(["method", "k", "id"])
                files[path.name] = exact(found.drop(columns="id").to_dict("list"))
        return files


def _record(path: Path) -> dict[str, Any]:
    data = json.loads(without_hashes(path.read_text("utf-8")))
    if path.name == "audit.json":
        data["created"] = None
    return {f"{path.name}: {name}": value for name, value in data.items()}


@pytest.mark.slow
def test_the_results_folder() -> None:
    before, after = written(table()), written(reordered("shuffled"))
    assert {"report.html", "counts.csv", "findings.parquet", "audit.json: provenance"} <= set(
        before
    )
    assert_same(before, after)
