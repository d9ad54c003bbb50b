"""Diagnostics of the paper's worldviews, on the published and on generated data."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]

from mutandis.data.population import Population
from mutandis.datasets import loan
from mutandis.replication.eaamo import RUNS

if TYPE_CHECKING:
    from pathlib import Path


Table = dict[str, Any]
Rng = np.random.Generator


def test_law_school_lacks_a_hidden_common_cause(data_folder: Path) -> None:
    scenario = next(one for one in RUNS if one.key == "law_race")
    table, worldview = scenario.read(data_folder), scenario.settings["worldview"]
    people = Population.from_frame(table, columns=worldview.names)
    start = time.perf_counter()
    diagnosis = worldview.check(people, protected="race_nonwhite", do={"race_nonwhite": "White"})
    assert time.perf_counter() - start < 3.0
    assert diagnosis.rows == 21790
    pair = next(one for one in diagnosis.findings if one.aspect == "independence" and one.further)
    assert {pair.on, pair.child} == {"LSAT", "UGPA"}
    assert pair.test == "robust partial correlation"
    # the partial correlation from two regressions on all combinations of sex and race
    cells = table.groupby(["sex", "race_nonwhite"])[["LSAT", "UGPA"]]
    left = table[["LSAT", "UGPA"]] - cells.transform("mean")
    assert pair.effect == pytest.approx(left.corr().iloc[0, 1], abs=0.001)
    # the arrow would change nothing but for the bounds, at which some scores are cut off
    assert (
        "LSAT and UGPA are not independent given sex and race_nonwhite (partial correlation 0.21, "
        "p < 0.001), although the worldview says that they are: a hidden common cause of both is "
        "missing, or an arrow between them. With an arrow from LSAT to UGPA, counterfactuals of "
        "UGPA move by less than 0.01 standard deviations in the median, by 0.19 at most (0.1 or "
        "more in 1.7 % of the rows)."
    ) in diagnosis.sections()["Problems that move counterfactuals little"]
    fits = {check.child: check.fit for check in diagnosis.equations}
    for child in ("LSAT", "UGPA"):
        dummies = pd.get_dummies(table[["sex", "race_nonwhite"]], drop_first=True, dtype=float)
        expected = sm.OLS(table[child], sm.add_constant(dummies)).fit().rsquared
        assert fits[child] == pytest.approx(expected)


def test_loan_data_is_right_on_average_but_its_noise_differs_by_gender() -> None:
    """The penalties of women vary, by -300 χ²(4) and -1500 Poi(10), and enter their noise."""
    worldview = RUNS[0].settings["worldview"]
    people = Population.from_frame(loan(n=50_000, seed=1), columns=worldview.names)
    diagnosis = worldview.check(people, protected="Gender")
    (problem,) = diagnosis.problems
    assert (problem.child, problem.on, problem.aspect) == ("AccountBalance", "Gender", "spread")
    # √(2500² + 300²·8) over 2500 is 1.056
    assert problem.effect == pytest.approx(1.056, abs=0.02)
    sentence = diagnosis.sentences()[1]
    assert sentence.startswith("AccountBalance: the noise spreads differently over the values of")
    assert "Averages may be right" in sentence
    assert "misses" not in str(diagnosis)


def test_noise_of_the_published_size_is_seen_in_few_rows_only_by_chance() -> None:
    worldview = RUNS[0].settings["worldview"]
    people = Population.from_frame(loan(seed=7), columns=worldview.names)
    diagnosis = worldview.check(people, protected="Gender")
    assert diagnosis.problems == ()
    *_, last = diagnosis.sections()["What no table can show"]
    assert last.startswith("The absence of problems does not show")
    assert diagnosis.sentences()[-1] == diagnosis.next_step
    assert "is correct" not in str(diagnosis)
