"""The loan data's noise is known, and so is who was discriminated: how well is she found?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.datasets import loan, loan_counterfactuals, loan_expected_refusals
from mutandis.replication.eaamo import RUNS

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

LOAN = RUNS[0]
KS = (15, 30, 50, 100)
ASKED = [*((method, k) for method in ("st", "cst_without", "cst_with") for k in KS), ("cf", 15)]
DOCS = Path(__file__).parents[2] / "benchmarks" / "known-truth.md"


def is_refused(attributes: pd.DataFrame) -> NDArray[np.bool_]:
    """The bank's rule, written once more."""
    score = attributes["AnnualSalary"] + 5 * attributes["AccountBalance"]
    return (score <= 225_000).to_numpy(dtype=np.bool_)


@dataclass(frozen=True)
class Match:
    """Cases against a truth, over one table or several."""

    true: int = 0
    found: int = 0
    both: int = 0

    @property
    def precision(self) -> float:
        return self.both / self.found if self.found else float("nan")

    @property
    def recall(self) -> float:
        return self.both / self.true

    def __add__(self, other: Match) -> Match:
        return Match(self.true + other.true, self.found + other.found, self.both + other.both)


def matched(audit: mm.Audit, truth: NDArray[np.bool_]) -> dict[tuple[str, int], Match]:
    found = {}
    for method, k in ASKED:
        cases = (audit.findings(method, k=k)["verdict"] != "no-evidence").to_numpy()
        found[method, k] = Match(int(truth.sum()), int(cases.sum()), int((cases & truth).sum()))
    return found


def lines(matches: dict[tuple[str, int], Match]) -> list[str]:
    return [
        f"| {method} | {'' if method == 'cf' else k} | {match.found} | {match.both} | "
        f"{match.precision:.2f} | {match.recall:.2f} |"
        for (method, k), match in matches.items()
    ]


@pytest.fixture(scope="module")
def applications(data_folder: Path) -> pd.DataFrame:
    return LOAN.read(data_folder)


@pytest.fixture(scope="module")
def flips(applications: pd.DataFrame) -> NDArray[np.bool_]:
    """Tell which women were refused, and would not have been as men."""
    women = applications[applications["Gender"] == 1]
    return is_refused(women) & ~is_refused(loan_counterfactuals(women))


@pytest.fixture(scope="module")
def published(applications: pd.DataFrame, flips: NDArray[np.bool_]) -> dict[tuple[str, int], Match]:
    return matched(mm.audit(applications, **LOAN.settings), flips)


def answers(audit: mm.Audit, truth: NDArray[np.bool_]) -> list[str]:
    """Grade the two answers of the matched comparison."""
    rows = []
    for k in KS:
        found = audit.findings("cst_matched", k=k)
        pattern = (found["verdict"] == "significant-adjusted").to_numpy()
        own = found["own_case"].eq(True).to_numpy()
        for name, cases in (("pattern", pattern), ("pattern and own case", pattern & own)):
            match = Match(int(truth.sum()), int(cases.sum()), int((cases & truth).sum()))
            rows.append(
                f"| {name} | {k} | {match.found} | {match.both} | "
                f"{match.precision:.2f} | {match.recall:.2f} |"
            )
    return rows


@pytest.mark.slow
def test_the_page_grades_both_answers(applications: pd.DataFrame, flips: NDArray[np.bool_]) -> None:
    page = DOCS.read_text(encoding="utf-8")
    settings = {name: each for name, each in LOAN.settings.items() if name != "worldview"}
    true = loan_counterfactuals(applications)[["AnnualSalary", "AccountBalance"]]
    for audit, heading in (
        (mm.audit(applications, **LOAN.settings), "the fitted worldview:"),
        (
            mm.audit(applications, counterfactuals=true, **settings),
            "the true counterfactuals:",
        ),
    ):
        table = page.split(heading, 1)[1].split("\n\n", 2)[1].splitlines()[2:]
        assert sorted(table) == sorted(answers(audit, flips))


def test_no_cutoff_on_the_fitted_counterfactual_is_right_often_enough(
    applications: pd.DataFrame, flips: NDArray[np.bool_]
) -> None:
    """The bound of ADR 10: the best rule on the bank's score of x^CF, chosen with the truth."""
    audit = mm.audit(applications, **LOAN.settings)
    women = applications["Gender"].to_numpy() == 1
    refused, would_be = is_refused(applications[women]), audit.counterfactuals()[women]
    score = (would_be["AnnualSalary"] + 5 * would_be["AccountBalance"]).to_numpy()
    order = np.argsort(-score[refused], kind="stable")
    hits = np.cumsum(flips[refused][order])
    lower = hits / np.maximum(np.arange(1, len(hits) + 1), flips.sum())
    assert round(float(lower.max()), 3) == 0.868


def test_357_women_were_truly_refused_for_being_women(
    applications: pd.DataFrame, flips: NDArray[np.bool_]
) -> None:
    women = applications[applications["Gender"] == 1]
    assert (is_refused(women) == (women["LoanApproval"] == -1)).all()
    assert int(flips.sum()) == 357
    # nobody was approved for being a woman
    assert not (~is_refused(women) & is_refused(loan_counterfactuals(women))).any()


@pytest.mark.parametrize(
    ("method", "k", "found", "precision", "recall"),
    [
        ("cf", 15, 376, 0.86, 0.90),
        ("cst_without", 15, 431, 0.77, 0.92),
        ("cst_without", 100, 537, 0.65, 0.97),
        ("st", 15, 54, 0.52, 0.08),
        ("st", 100, 102, 0.25, 0.07),
    ],
)
def test_precision_and_recall_against_the_true_flips(
    published: dict[tuple[str, int], Match],
    method: str,
    k: int,
    found: int,
    precision: float,
    recall: float,
) -> None:
    match = published[method, k]
    assert match.found == found
    assert round(match.precision, 2) == precision
    assert round(match.recall, 2) == recall


def test_the_published_counterfactuals_give_the_same_table(
    applications: pd.DataFrame,
    flips: NDArray[np.bool_],
    published: dict[tuple[str, int], Match],
    data_folder: Path,
) -> None:
    settings = {key: value for key, value in LOAN.settings.items() if key != "worldview"}
    ready = LOAN.read_counterfactuals(data_folder)[["AnnualSalary", "AccountBalance"]]
    audit = mm.audit(applications, counterfactuals=ready, **settings)
    assert matched(audit, flips) == published


def test_with_the_true_counterfactuals_nobody_is_missed(
    applications: pd.DataFrame, flips: NDArray[np.bool_]
) -> None:
    settings = {key: value for key, value in LOAN.settings.items() if key != "worldview"}
    true = loan_counterfactuals(applications)
    found = matched(mm.audit(applications, counterfactuals=true, **settings), flips)
    assert found["cf", 15] == Match(357, 357, 357)
    assert [found["cst_without", k].recall for k in KS] == [1.0] * 4


def test_the_documented_table_is_the_computed_one(
    published: dict[tuple[str, int], Match],
) -> None:
    assert "\n".join(lines(published)) in DOCS.read_text(encoding="utf-8")


# --- the second truth: all who look like her ---------------------------------------------------


def test_expected_refusals_are_calibrated() -> None:
    """Among women whose counterfactuals are refused with probability p, a share p is."""
    table = loan(n=120_000, seed=11)
    women = table[table["Gender"] == 1]
    expected = loan_expected_refusals(women)
    true = is_refused(loan_counterfactuals(women))
    assert ((expected > 0.05) & (expected < 0.95)).sum() > 2000
    bins = np.digitize(expected, np.linspace(0, 1, 11)[1:-1])
    for place in range(10):
        here = bins == place
        error = np.sqrt((expected[here] * (1 - expected[here])).sum()) / here.sum()
        assert abs(expected[here].mean() - true[here].mean()) < 4 * error + 1e-9


def test_expected_refusals_do_not_look_at_the_noise() -> None:
    table = loan(n=500, seed=2)
    hidden = table[["AnnualSalary", "AccountBalance"]]
    assert (loan_expected_refusals(hidden) == loan_expected_refusals(table)).all()


def second_truth(*, tau: float, seeds: tuple[int, ...], rows: int) -> dict[Any, Match]:
    pooled = {asked: Match() for asked in ASKED}
    for seed in seeds:
        table = loan(n=rows, seed=seed)
        women = table[table["Gender"] == 1]
        truth = is_refused(women) - loan_expected_refusals(women) > tau
        audit = mm.audit(table, **{**LOAN.settings, "tau": tau})
        for asked, match in matched(audit, truth).items():
            pooled[asked] += match
    return pooled


@pytest.mark.parametrize("tau", [0.1, 0.5])
def test_the_second_truth_is_found_by_cst_and_not_by_st(tau: float) -> None:
    found = second_truth(tau=tau, seeds=(1, 2, 3), rows=3000)
    assert "\n".join(lines(found)) in DOCS.read_text(encoding="utf-8")
    for k in KS:
        assert found["cst_without", k].recall > 0.8
        assert found["cst_without", k].precision > 0.7
        assert found["st", k].recall < 0.1
