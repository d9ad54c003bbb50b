"""Parts of the answer by hand: shares due to status, power, clusters, and rare levels."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from mutandis.verdicts.estimate import _outside
from mutandis.verdicts.scales import LEAST, Averages, _detectable, by_label, due, gap, halve


def averages(**changes: Any) -> Averages:
    """Make three groups: refused in half of all cases, in four of five, and never."""
    values = {
        "estimate": np.array([0.2, 0.2, -0.1]),
        "rate": np.array([0.5, 0.8, 0.0]),
        "own": np.array([0.003, 0.002, 0.001]),
        "reference": np.array([0.001, 0.002, 0.001]),
        "doubt": np.array([0.0, 0.001, 0.0]),
        "freedom": np.full(3, 50.0),
        "squares": np.full(3, 0.01),
        "reference_squares": np.full(3, 0.01),
    }
    return Averages(**{**values, **changes})


def test_doubt_widens_the_interval() -> None:
    here = averages()
    np.testing.assert_allclose(here.error**2, [0.004, 0.005, 0.002])
    low, high = here.bounds(0.05)
    np.testing.assert_allclose(high - low, 2 * stats.t.ppf(0.95, 50) * here.error)
    np.testing.assert_allclose(here.p, stats.t.sf(here.estimate / here.error, 50))


def test_the_share_of_refusals_due_to_status_is_within_the_bounds_by_hand() -> None:
    found = due(averages(), whole=True, binary=True)
    np.testing.assert_allclose(found.low, [0.4, 0.25, np.nan])
    np.testing.assert_allclose(found.high, [1, 0.5, np.nan])
    np.testing.assert_allclose(found.error**2, [0.004, 0.005, 0.002])
    assert (found.at_least[:2] < found.low[:2]).all()
    assert np.isnan(found.at_least[2])
    # without any variance the limit is the share itself, on a grid of 1/200
    nothing = np.zeros(3)
    exact = due(averages(own=nothing, reference=nothing, doubt=nothing), whole=True, binary=True)
    np.testing.assert_allclose(exact.at_least[:2], [0.4, 0.25], atol=0.006)


def test_neighbourhoods_have_at_least_the_variance_of_their_shares() -> None:
    found = due(averages(), whole=False, binary=True)
    # of rates .5 and .8, and of the shares .3 and .6 without the effect, over 100 people
    own, reference, doubt = [0.003, 0.002, 0.001], [0.0021, 0.0024, 0.001], [0, 0.001, 0]
    np.testing.assert_allclose(found.error**2, np.sum([own, reference, doubt], axis=0))
    scores = due(averages(), whole=False, binary=False)
    np.testing.assert_allclose(scores.error**2, [0.004, 0.005, 0.002])
    assert np.isnan([scores.low, scores.high, scores.at_least]).all()


def test_the_smallest_difference_that_could_be_found_has_80_percent_power() -> None:
    here, quantile = averages().take(np.array([0])), 1.65
    found: Any = SimpleNamespace(clusters=None)
    least = _detectable(found, here, quantile, binary=True)
    assert least is not None
    factor = quantile + stats.norm.ppf(0.8)
    share = 0.3 + least  # of the refused, if it were there
    error = np.sqrt(0.003 * share * (1 - share) / 0.25 + 0.001)
    assert least == pytest.approx(factor * error, rel=1e-6)
    of_scores = _detectable(found, here, quantile, binary=False)
    assert of_scores == pytest.approx(factor * np.sqrt(0.004))


def test_the_gap_on_record_is_tested_by_welch() -> None:
    rng = np.random.default_rng(1)
    people, reference = rng.normal(0.4, 2, 40), rng.normal(0, 1, 90)
    found = gap(people, reference)
    welch = stats.ttest_ind(people, reference, equal_var=False, alternative="greater")
    low, high = welch.confidence_interval(0.95)[0], found.estimate * 2
    assert found.estimate == pytest.approx(people.mean() - reference.mean())
    assert found.p == pytest.approx(welch.pvalue)
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high - low)
    assert found.rate == pytest.approx(people.mean())


def test_residuals_less_the_mean_of_the_nearest_in_other_clusters() -> None:
    rng = np.random.default_rng(0)
    rows, points = 12, 5
    standing, clusters = rng.integers(0, points, rows), rng.integers(0, 3, rows)
    values, weights = (
        rng.normal(size=rows),
        rng.random((rows, points)) * (rng.random((rows, points)) < 0.6),
    )
    expected = []
    for row in range(rows):
        others = [each for each in range(rows) if clusters[each] != clusters[row]]
        near = [weights[row, standing[each]] for each in others]
        mean = sum(w * values[each] for w, each in zip(near, others, strict=True))
        expected.append((values[row] - mean) / np.sqrt(1 + sum(w**2 for w in near)))
    found = _outside(csr_array(weights), standing, clusters, values)
    np.testing.assert_allclose(found, expected)


def test_groups_are_halved_while_both_halves_keep_enough_people() -> None:
    columns = np.column_stack([np.arange(8.0), np.zeros(8)])
    levels = halve(columns, least=2)
    assert [labels.tolist() for labels, _ in levels] == [
        [0, 0, 0, 0, 1, 1, 1, 1],
        [0, 0, 1, 1, 2, 2, 3, 3],
    ]
    ((first, *_),) = levels[0][1][:1]
    assert (first.column, first.middle) == (1, 3.5)
    assert [[cut.column for cut in path] for path in levels[1][1]] == [
        [1, 1],
        [1, -1],
        [-1, 1],
        [-1, -1],
    ]
    assert halve(columns, least=5) == []
    assert halve(np.zeros((8, 2)), least=2) == []


def test_people_of_no_group_weigh_nothing() -> None:
    weights = by_label(np.array([1, -1, 0, 1]), 2).toarray()
    assert weights.tolist() == [[0, 0, 1, 0], [0.5, 0, 0, 0.5]]
    assert LEAST == 30
