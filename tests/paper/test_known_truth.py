"""The loan data's noise is known, and so is who was discriminated against: how many are found?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import poisson

import mutandis as mm
from mutandis.datasets import loan, loan_counterfactuals
from mutandis.replication.eaamo import RUNS

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

LOAN = RUNS[0]
READY = {name: value for name, value in LOAN.settings.items() if name != "worldview"}
KS = (15, 30, 50, 100)
ASKED = [*((method, k) for method in ("st", "cst_without", "cst_with") for k in KS), ("cf", 15)]
PAGE = (Path(__file__).parents[2] / "benchmarks" / "known-truth.md").read_text(encoding="utf-8")


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

    @classmethod
    def of(cls, truth: NDArray[np.bool_], cases: NDArray[np.bool_]) -> Match:
        return cls(int(truth.sum()), int(cases.sum()), int((cases & truth).sum()))

    @property
    def precision(self) -> float:
        return self.both / self.found if self.found else float("nan")

    @property
    def recall(self) -> float:
        return self.both / self.true

    def row(self, *names: object) -> str:
        """Write a row of the page."""
        cells = (*names, self.found, self.both, f"{self.precision:.2f}", f"{self.recall:.2f}")
        return f"| {' | '.join(map(str, cells))} |"

    def __add__(self, other: Match) -> Match:
        return Match(self.true + other.true, self.found + other.found, self.both + other.both)


Matches = dict[tuple[str, int], Match]


def matched(audit: mm.Audit, truth: NDArray[np.bool_]) -> Matches:
    return {
        (method, k): Match.of(
            truth, (audit.findings(method, k=k)["verdict"] != "no-evidence").to_numpy()
        )
        for method, k in ASKED
    }


def is_printed(matches: Matches) -> bool:
    rows = (each.row(m, "" if m == "cf" else k) for (m, k), each in matches.items())
    return "\n".join(rows) in PAGE


@pytest.fixture(scope="module")
def applications(data_folder: Path) -> pd.DataFrame:
    return LOAN.read(data_folder)


@pytest.fixture(scope="module")
def flips(applications: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark the women who were refused, and would not have been as men."""
    women = applications[applications["Gender"] == 1]
    assert (is_refused(women) == (women["LoanApproval"] == -1)).all()
    would_be = is_refused(loan_counterfactuals(women))
    # nobody was approved for being a woman
    assert not (~is_refused(women) & would_be).any()
    return is_refused(women) & ~would_be


@pytest.fixture(scope="module")
def fitted(applications: pd.DataFrame) -> mm.Audit:
    return mm.audit(applications, **LOAN.settings)


def test_precision_and_recall_against_the_true_flips(
    applications: pd.DataFrame, flips: NDArray[np.bool_], fitted: mm.Audit, data_folder: Path
) -> None:
    assert int(flips.sum()) == 357
    found = matched(fitted, flips)
    assert is_printed(found)
    rounded = {key: (each.found, round(each.precision, 2)) for key, each in found.items()}
    assert rounded["cf", 15] == (376, 0.86)
    assert rounded["cst_without", 15] == (431, 0.77)
    assert rounded["st", 100] == (102, 0.25)
    # the published counterfactuals give the same table
    ready = LOAN.read_counterfactuals(data_folder)[["AnnualSalary", "AccountBalance"]]
    assert matched(mm.audit(applications, counterfactuals=ready, **READY), flips) == found


def test_with_the_true_counterfactuals_nobody_is_missed(
    applications: pd.DataFrame, flips: NDArray[np.bool_]
) -> None:
    true = loan_counterfactuals(applications)
    found = matched(mm.audit(applications, counterfactuals=true, **READY), flips)
    assert found["cf", 15] == Match(357, 357, 357)
    assert [found["cst_without", k].recall for k in KS] == [1.0] * 4


@pytest.mark.slow
def test_the_page_grades_both_answers_of_the_matched_comparison(
    applications: pd.DataFrame, flips: NDArray[np.bool_], fitted: mm.Audit
) -> None:
    true = loan_counterfactuals(applications)[["AnnualSalary", "AccountBalance"]]
    for audit, heading in (
        (fitted, "the fitted worldview:"),
        (mm.audit(applications, counterfactuals=true, **READY), "the true counterfactuals:"),
    ):
        rows = []
        for k in KS:
            found = audit.findings("cst_matched", k=k)
            pattern = (found["verdict"] == "significant-adjusted").to_numpy()
            own = pattern & found["own_case"].eq(True).to_numpy()
            rows.append(Match.of(flips, pattern).row("pattern", k))
            rows.append(Match.of(flips, own).row("pattern and own case", k))
        table = PAGE.split(heading, 1)[1].split("\n\n", 2)[1].splitlines()[2:]
        assert sorted(table) == sorted(rows)


# --- the second truth: everybody who is alike ----------------------------------------------------


def expected_refusals(women: pd.DataFrame) -> NDArray[np.float64]:
    """Return the share of women with these attributes who would be refused as men.

    A woman's salary is 10000 J - 1500 P with J, P ~ Poi(10): given it, only every twentieth P is
    possible. The rest of her balance is r = U2 - 300 C with C ~ χ²(4): given r, the density of C is
    proportional to c times that of a normal variable with deviation s = 2500/300 and mean
    -(s r / 2500 + s² / 2), for c > 0. As a man she would be refused if
    2.5 (x1 + 1500 P) + 5 (r + 300 C) <= 225000.
    """
    salary = women["AnnualSalary"].to_numpy(dtype=np.int64)[:, None]
    rest = women["AccountBalance"].to_numpy(dtype=np.float64)[:, None] - 0.3 * salary
    losses = np.arange(61)  # a Poisson variable of mean 10 exceeds this once in 10^25
    earned = salary + 1_500 * losses
    times, left = np.divmod(earned, 10_000)
    weight = np.where(left == 0, poisson.pmf(losses, 10) * poisson.pmf(times, 10), 0.0)
    most = (225_000 - 2.5 * earned - 5 * rest) / 1_500
    deviation = 2_500 / 300
    mean = -(deviation * rest / 2_500 + deviation**2 / 2)

    def upper_integral(bound: Any) -> Any:
        """Integrate c times the normal density from a bound to infinity."""
        z = (bound - mean) / deviation
        return mean * ndtr(-z) + deviation * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)

    refused = 1 - upper_integral(np.maximum(most, 0.0)) / upper_integral(np.zeros_like(rest))
    return np.asarray((weight * refused).sum(axis=1) / weight.sum(axis=1))


def test_expected_refusals_are_calibrated() -> None:
    """Among women whose counterfactuals are refused with probability p, a share p is."""
    table = loan(n=120_000, seed=11)
    women = table[table["Gender"] == 1]
    expected = expected_refusals(women)
    true = is_refused(loan_counterfactuals(women))
    assert ((expected > 0.05) & (expected < 0.95)).sum() > 2000
    bins = np.digitize(expected, np.linspace(0, 1, 11)[1:-1])
    for place in range(10):
        here = bins == place
        error = np.sqrt((expected[here] * (1 - expected[here])).sum()) / here.sum()
        assert abs(expected[here].mean() - true[here].mean()) < 4 * error + 1e-9
    # they do not look at the noise
    hidden = women[["AnnualSalary", "AccountBalance"]]
    assert (expected_refusals(hidden) == expected).all()


@pytest.mark.parametrize("tau", [0.1, 0.5])
def test_the_second_truth_is_found_by_cst_and_not_by_st(tau: float) -> None:
    found: dict[Any, Match] = {asked: Match() for asked in ASKED}
    for seed in (1, 2, 3):
        table = loan(n=3000, seed=seed)
        women = table[table["Gender"] == 1]
        truth = is_refused(women) - expected_refusals(women) > tau
        audit = mm.audit(table, **{**LOAN.settings, "tau": tau})
        for asked, match in matched(audit, truth).items():
            found[asked] += match
    assert is_printed(found)
    for k in KS:
        assert found["cst_without", k].recall > 0.8
        assert found["cst_without", k].precision > 0.7
        assert found["st", k].recall < 0.1
