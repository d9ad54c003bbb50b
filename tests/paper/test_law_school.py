"""Worldviews on the law-school data: the tables of docs/published-runs.md, computed again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.data.formula import Formula
from mutandis.data.population import Population
from mutandis.engine.tally import METHODS
from mutandis.replication.eaamo import RUNS

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from mutandis.scm import Worldview

# that the hidden cause is the grades in disguise is part of what the page says
pytestmark = pytest.mark.filterwarnings("ignore:The hidden cause 'Knowledge' is all but 'UGPA'")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "published-runs.md").read_text(encoding="utf-8")
LAW = {"race": RUNS[1], "gender": RUNS[2]}
SIZES = (15, 30, 50, 100)
RULE = Formula.parse(LAW["race"].settings["decision"])
COLUMNS = ("UGPA", "LSAT", "sex", "race_nonwhite")
HIDDEN = "line and count, hidden cause"
POINT = mm.Uncertainty(draws=0)
DRAWN = mm.Uncertainty(draws=20)


def _declared() -> dict[str, Worldview]:
    """Run the code that the page shows."""
    code = re.search(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert code
    names: dict[str, Any] = {}
    exec(code[1], names)  # noqa: S102 - our own page
    declared: dict[str, Worldview] = names["worldviews"]
    return declared


WORLDVIEWS = _declared()


def _rows(heading: str) -> dict[str, list[str]]:
    """Read the first table after a text on the page: its rows by their first cell."""
    text = PAGE[PAGE.index(heading) :]
    table = re.search(r"^\|.*?(?=\n[^|]|\n\Z)", text, re.DOTALL | re.MULTILINE)
    assert table
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].split("\n")]
    return {first: others for first, *others in lines[2:]}


@pytest.fixture(scope="module")
def applicants(data_folder: Path) -> pd.DataFrame:
    """Read the data, with scores that are whole numbers, as counts are."""
    published = LAW["race"].read(data_folder)
    rounded = published.assign(LSAT=np.round(published["LSAT"]))
    admitted = RULE.evaluate({name: rounded[name].to_numpy() for name in RULE.names}).astype(int)
    assert int((rounded["LSAT"] != published["LSAT"]).sum()) == 2032
    assert (admitted == published["admitted"]).all()
    return rounded.assign(admitted=admitted)


def run(table: pd.DataFrame, which: str, worldview: str, **options: Any) -> mm.Audit:
    known = WORLDVIEWS.get(worldview) or mm.Worldview.read(
        ROOT / "examples" / "law-school" / f"worldview-{worldview}.yaml"
    )
    settings = {**LAW[which].settings, "worldview": known, "methods": ("cst_without", "cf")}
    return mm.audit(table, **{**settings, **options})


def found_by(audit: mm.Audit, method: Any, k: int) -> list[bool]:
    found: list[bool] = (audit.findings(method, k=k)["delta_p"] > 0).tolist()
    return found


def share_of_draws(audit: mm.Audit, method: str, k: int) -> NDArray[np.float64]:
    """Return the share of draws that find a difference, each looked at alone."""
    index, asked = audit.ks.index(k), METHODS[method]
    tallies = audit.ground.engine.tallies(audit.ground.world.alone(), [asked])
    pairs = [each.at(asked, index) for each in tallies]
    found = [pair.control.share.mean() - pair.test.share.mean() > 1e-12 for pair in pairs]
    return np.asarray(np.mean(found, axis=0), dtype=np.float64)


@pytest.mark.parametrize("which", ["race", "gender"])
@pytest.mark.parametrize("family", ["linear", "log-linear", "poisson"])
@pytest.mark.few(
    "poisson-race", "linear-race", "log-linear-race", "linear-gender", "log-linear-gender"
)
def test_the_documented_counts(applicants: pd.DataFrame, which: str, family: str) -> None:
    records = run(applicants, which, family).results.records()
    cases = {(row["method"], row["k"]): row["cases"] for row in records}
    cells = [cases["cst_without", k] for k in SIZES] + [cases["cf", 15]]
    assert f"| {which} | {family} | {' | '.join(map(str, cells))} |" in PAGE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "cases", "in_all", "in_few"), [("race", 432, 325, 106), ("gender", 140, 12, 16)]
)
def test_the_documented_draws(
    applicants: pd.DataFrame, which: str, cases: int, in_all: int, in_few: int
) -> None:
    found = run(applicants, which, "poisson", uncertainty=DRAWN, seed=0, ks=(15,))
    share = share_of_draws(found, "cst_without", 15)[found_by(found, "cst_without", 15)]
    assert found.provenance.computed["couplings"] == {"LSAT": "monotone coupling"}
    counts = (len(share), int((share == 1).sum()), int((share <= 0.5).sum()))
    assert counts == (cases, in_all, in_few)


@pytest.mark.slow
@pytest.mark.parametrize(("which", "heading"), [("race", "**Race**"), ("gender", "**Gender**")])
def test_the_tables_of_hidden_causes(applicants: pd.DataFrame, which: str, heading: str) -> None:
    printed = _rows(heading)
    audits = {name: run(applicants, which, name, uncertainty=POINT) for name in WORLDVIEWS}
    assert list(printed) == list(WORLDVIEWS)
    for name, cells in printed.items():
        cases = [sum(found_by(audits[name], "cst_without", k)) for k in SIZES]
        assert [*cases, sum(found_by(audits[name], "cf", 15))] == [int(cell) for cell in cells]
    complainants = len(audits["two lines"].findings("cf", k=15))
    assert f"{heading} ({complainants:,} " in PAGE
    # "no verdict differs, for any applicant, at any k"
    for without in ("two lines", "line and count"):
        one, other = (audits[name] for name in (without, f"{without}, hidden cause"))
        for k in SIZES:
            assert found_by(one, "cst_without", k) == found_by(other, "cst_without", k)
        assert found_by(one, "cf", 15) == found_by(other, "cf", 15)


@pytest.mark.slow
def test_the_table_of_draws_of_a_hidden_cause(applicants: pd.DataFrame) -> None:
    expected = {}
    for which in LAW:
        audit = run(applicants, which, HIDDEN, uncertainty=DRAWN, seed=0)
        point = run(applicants, which, HIDDEN, uncertainty=POINT)
        for what, method in (("CST without centers, k = 15", "cst_without"), ("CF", "cf")):
            share = share_of_draws(audit, method, 15)
            counts = (sum(found_by(point, method, 15)), (share > 0.5).sum(), (share >= 0.95).sum())
            expected[f"{which}, {what}"] = [str(int(count)) for count in counts]
    assert _rows("Draws do not have that bias") == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "value", "point", "drawn"),
    [("sex", "Male", 0.97, 0.60), ("race_nonwhite", "White", 4.49, 4.49)],
)
def test_how_far_scores_move_at_the_point_and_in_draws(
    applicants: pd.DataFrame, column: str, value: str, point: float, drawn: float
) -> None:
    people = Population.from_frame(applicants, columns=COLUMNS)
    rng = np.random.default_rng(0)
    made = WORLDVIEWS[HIDDEN].counterfactuals(people, do={column: value}, draws=20, rng=rng)
    protected, facts = (applicants[column] != value).to_numpy(), people.numbers("LSAT")

    def mean(world: Population) -> float:
        return float((world.numbers("LSAT") - facts)[protected].mean())

    assert mean(made.population) == pytest.approx(point, abs=0.005)
    assert np.mean([mean(world) for world in made.draws]) == pytest.approx(drawn, abs=0.005)


def test_the_hidden_cause_is_the_grades_in_disguise(applicants: pd.DataFrame) -> None:
    people = Population.from_frame(applicants, columns=COLUMNS)
    with pytest.warns(mm.MutandisWarning, match=r"is all but 'UGPA' itself: it makes up 99.6 %"):
        fitted: Any = WORLDVIEWS[HIDDEN].fit(people).latents[0]
    grades = fitted.parameters["UGPA"]
    assert f"σ = {grades.deviation:.3f} next to w = {grades.loading:.3f}" in PAGE
    residual = people.numbers("UGPA") - grades.predictor.at(people.columns, rows=len(people))
    assert np.corrcoef(fitted.posterior(people.columns).mean, residual)[0, 1] > 0.999


def test_the_expectation_moves_everybody(applicants: pd.DataFrame) -> None:
    people = Population.from_frame(applicants, columns=COLUMNS)
    worldview = WORLDVIEWS["line and count, expectation only"]
    made = worldview.counterfactuals(people, do={"race_nonwhite": "White"})
    scores, facts = made.population.numbers("LSAT"), people.numbers("LSAT")
    white = (applicants["race_nonwhite"] == "White").to_numpy()
    assert (scores[white] != facts[white]).all()
    assert f"by {np.abs(scores - facts)[white].mean():.1f} points on average" in PAGE
    assert not RULE.evaluate({name: made.population.numbers(name) for name in RULE.names}).any()
    assert set(made.couplings.values()) == {"latent U, expectation only (Kusner et al. 2017)"}
