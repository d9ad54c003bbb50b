"""The numbers that docs/published-runs.md quotes of a hidden cause, measured again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.data.formula import Formula
from mutandis.data.population import Population
from mutandis.replication.eaamo import RUNS
from mutandis.rooms.latent.equations import FittedLatent
from mutandis.scm.count import FittedCount

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from numpy.typing import NDArray

    from mutandis.scm import Worldview
    from mutandis.scm.counterfactual import Counterfactuals

    ShareOfDraws = Callable[[mm.Audit, str, int], NDArray[np.float64]]

# that the hidden cause is the grades in disguise is part of what the page says
pytestmark = pytest.mark.filterwarnings("ignore:The hidden cause 'Knowledge' is all but 'UGPA'")

PAGE = (Path(__file__).parents[2] / "docs" / "published-runs.md").read_text(encoding="utf-8")
BY_KEY = {each.key: each for each in RUNS}
SIZES = (15, 30, 50, 100)
RULE = Formula.parse(BY_KEY["law_race"].settings["decision"])
COLUMNS = ("UGPA", "LSAT", "sex", "race_nonwhite")


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
    lines = PAGE[PAGE.index(heading) :].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    table = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        first, *others = (cell.strip() for cell in line.strip("|").split("|"))
        table[first] = others
    return table


@pytest.fixture(scope="module")
def table(data_folder: Path) -> pd.DataFrame:
    published = BY_KEY["law_race"].read(data_folder)
    rounded = published.assign(LSAT=np.round(published["LSAT"]))
    admitted = RULE.evaluate({name: rounded[name].to_numpy() for name in RULE.names}).astype(int)
    assert int((rounded["LSAT"] != published["LSAT"]).sum()) == 2032
    assert (admitted == published["admitted"]).all()
    return rounded.assign(admitted=admitted)


@pytest.fixture(scope="module")
def people(table: pd.DataFrame) -> Population:
    return Population.from_frame(table, columns=COLUMNS)


POINT = mm.Uncertainty(draws=0)


def _audit(table: pd.DataFrame, run: str, worldview: str, **options: Any) -> mm.Audit:
    settings = {**BY_KEY[run].settings, "worldview": WORLDVIEWS[worldview], **options}
    return mm.audit(table, methods=("cst_without", "cf"), **settings)


def _found(audit: mm.Audit, method: Any, k: int) -> list[bool]:
    found: list[bool] = (audit.findings(method, k=k)["delta_p"] > 0).tolist()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "heading"), [("law_race", "**Race**"), ("law_gender", "**Gender**")]
)
def test_the_tables_of_cases(table: pd.DataFrame, run: str, heading: str) -> None:
    printed = _rows(heading)
    audits = {name: _audit(table, run, name, uncertainty=POINT) for name in WORLDVIEWS}
    assert list(printed) == list(WORLDVIEWS)
    for name, cells in printed.items():
        cases = [sum(_found(audits[name], "cst_without", k)) for k in SIZES]
        assert [*cases, sum(_found(audits[name], "cf", 15))] == [int(cell) for cell in cells]
    complainants = len(audits["two lines"].findings("cf", k=15))
    assert f"{heading} ({complainants:,} " in PAGE
    # "no verdict differs, for any applicant, at any k"
    for without in ("two lines", "line and count"):
        for k in SIZES:
            one, other = (audits[name] for name in (without, f"{without}, hidden cause"))
            assert _found(one, "cst_without", k) == _found(other, "cst_without", k)
        assert _found(one, "cf", 15) == _found(other, "cf", 15)


@pytest.mark.slow
def test_the_table_of_draws(table: pd.DataFrame, share_of_draws: ShareOfDraws) -> None:
    printed = _rows("Draws do not have that bias")
    expected = {}
    for label, run in (("race", "law_race"), ("gender", "law_gender")):
        audit = _audit(
            table, run, "line and count, hidden cause", uncertainty=mm.Uncertainty(draws=20), seed=0
        )
        point = _audit(table, run, "line and count, hidden cause", uncertainty=POINT)
        for what, method in (("CST without centers, k = 15", "cst_without"), ("CF", "cf")):
            share = share_of_draws(audit, method, 15)
            counts = (sum(_found(point, method, 15)), (share > 0.5).sum(), (share >= 0.95).sum())
            expected[f"{label}, {what}"] = [str(int(count)) for count in counts]
    assert printed == expected


def _moved_to(people: Population, worldview: str, **do: str) -> Counterfactuals:
    rng = np.random.default_rng(0)
    return WORLDVIEWS[worldview].counterfactuals(people, do=do, draws=20, rng=rng)


@pytest.mark.slow
def test_how_far_scores_move_at_the_point_and_in_draws(people: Population) -> None:
    for do, column, point, drawn in (
        ({"sex": "Male"}, "sex", 0.97, 0.60),
        ({"race_nonwhite": "White"}, "race_nonwhite", 4.49, 4.49),
    ):
        made = _moved_to(people, "line and count, hidden cause", **do)
        status = people.categories(column)
        protected = status.codes != status.code_of(do[column])
        facts = people.numbers("LSAT")

        def mean(world: Population) -> float:
            return float((world.numbers("LSAT") - facts)[protected].mean())  # noqa: B023

        assert mean(made.population) == pytest.approx(point, abs=0.005)
        assert np.mean([mean(world) for world in made.draws]) == pytest.approx(drawn, abs=0.005)


def test_what_the_data_say_about_the_model(table: pd.DataFrame, people: Population) -> None:
    printed = _rows("Given the causes:")
    groups = table.groupby(["race_nonwhite", "sex"])["LSAT"]
    names = {"NonWhite": "non-white", "White": "white", "Female": "women", "Male": "men"}
    for (race, sex), scores in groups:
        ratio = scores.var(ddof=0) / scores.mean()
        label = f"{names[str(race)]} {names[str(sex)]}"
        assert printed[label] == [f"{scores.mean():.1f}", f"{ratio:.2f}"]
    fitted = WORLDVIEWS["line and count"].fit(people).equations["LSAT"]
    assert isinstance(fitted, FittedCount)
    means = fitted.means(people.columns, rows=len(people))
    pearson = ((people.numbers("LSAT") - means) ** 2 / means).sum() / (len(people) - 3)
    assert printed["all (Pearson statistic of `Count`)"] == ["", f"{pearson:.2f}"]


def _latent(people: Population, worldview: str) -> FittedLatent:
    fitted = WORLDVIEWS[worldview].fit(people).latents[0]
    assert isinstance(fitted, FittedLatent)
    return fitted


def test_the_hidden_cause_is_the_grades_in_disguise(people: Population) -> None:
    with pytest.warns(mm.MutandisWarning, match=r"is all but 'UGPA' itself: it makes up 99.6 %"):
        fitted = _latent(people, "line and count, hidden cause")
    grades, scores = fitted.parameters["UGPA"], fitted.parameters["LSAT"]
    assert f"σ = {grades.deviation:.3f} next to w = {grades.loading:.3f}" in PAGE
    assert f"w = {scores.loading:.3f}: one standard" in PAGE
    residual = people.numbers("UGPA") - grades.predictor.at(people.columns, rows=len(people))
    hidden = fitted.posterior(people.columns).mean
    assert np.corrcoef(hidden, residual)[0, 1] > 0.999


def test_additive_coefficients_are_those_of_the_plain_lines(people: Population) -> None:
    plain: Any = WORLDVIEWS["two lines"].fit(people).equations["UGPA"]
    hidden: Any = _latent(people, "two lines, hidden cause").parameters["UGPA"]
    shifts = [found.predictor.terms[1].shifts["White"] for found in (plain, hidden)]
    assert f"{shifts[0]:.5f} as a plain line, {shifts[1]:.5f} here" in PAGE


def test_the_expectation_moves_everybody(table: pd.DataFrame, people: Population) -> None:
    worldview = WORLDVIEWS["line and count, expectation only"]
    made = worldview.counterfactuals(people, do={"race_nonwhite": "White"})
    scores, facts = made.population.numbers("LSAT"), people.numbers("LSAT")
    white = (table["race_nonwhite"] == "White").to_numpy()
    moved = int((scores[white] != facts[white]).sum())
    assert moved == white.sum()
    assert f"The {moved:,} white applicants move too" in PAGE
    assert f"by {np.abs(scores - facts)[white].mean():.1f} points on average" in PAGE
    assert f"highest counterfactual score is {scores.max():.1f}" in PAGE
    assert f"between {np.floor(scores.min()):.0f} and {np.ceil(scores.max()):.0f}" in PAGE
    assert not RULE.evaluate({name: made.population.numbers(name) for name in RULE.names}).any()
    assert set(made.couplings.values()) == {"latent U, expectation only (Kusner et al. 2017)"}
