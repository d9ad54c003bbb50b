"""Gumbel-max coupling: its probabilities against the formula, integration and simulation."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import integrate, stats

from mutandis.causal import (
    counterfactual_probabilities,
)
from mutandis.causal.equations.categorical import Race, draw_race, most_probable, winners
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _dirichlet(seed: int, *, rows: int, categories: int, sharpness: float) -> NDArray[np.float64]:
    drawn = np.random.default_rng(seed).dirichlet(np.full(categories, sharpness), rows)
    floored: NDArray[np.float64] = np.maximum(drawn, 1e-12)
    return np.asarray(floored / floored.sum(axis=1, keepdims=True))


def _by_segments(p: NDArray[np.float64], q: NDArray[np.float64], i: int) -> list[float]:
    """Go through the formula for one person, segment by segment, as it is written down.

    P(j) = Σ over segments a with d_j ≤ d_a < d_i of (q_j / R_a)·(1/(1 + c_a) - 1/(1 + c_(a+1))).
    """
    d = p / q
    others = [k for k in range(len(p)) if k != i]

    def c(s: float) -> float:
        return math.fsum(q[k] * max(s - d[k], 0.0) for k in others)

    edges = [*sorted({float(d[k]) for k in others if d[k] < d[i]}), float(d[i])]
    probabilities = [0.0] * len(p)
    for start, end in pairwise(edges):
        rate = math.fsum(q[k] for k in others if d[k] <= start)
        for j in others:
            if d[j] <= start:
                probabilities[j] += q[j] / rate * (1 / (1 + c(start)) - 1 / (1 + c(end)))
    probabilities[i] = 1 / (1 + c(float(d[i])))
    return probabilities


def _by_integration(p: NDArray[np.float64], q: NDArray[np.float64], i: int, j: int) -> float:
    """Integrate over T and over the time at which j comes in, knowing nothing of segments."""
    d = p / q

    def at(t: float) -> float:
        # given T = t: j arrives at s with its density, all others but i have not arrived by then
        def density(s: float) -> float:
            survival = [math.exp(-q[k] * max(s - t * d[k], 0.0)) for k in range(len(p)) if k != i]
            return float(q[j] * math.prod(survival)) if s >= t * d[j] else 0.0

        breaks = sorted({t * float(delay) for delay in d if delay < d[i]})
        value = integrate.quad(density, 0.0, t * d[i], points=breaks or None, limit=200)[0]
        return math.exp(-t) * float(value)

    return float(integrate.quad(at, 0.0, 60.0, limit=200)[0])


def _by_rejection(
    p: NDArray[np.float64], q: NDArray[np.float64], i: int, *, draws: int, seed: int
) -> NDArray[np.intp]:
    """Draw Gumbel noise, keep what leads to the observed category, count the others it leads to."""
    noise = np.random.default_rng(seed).gumbel(size=(draws, len(p)))
    kept = noise[np.argmax(np.log(p) + noise, axis=1) == i]
    return np.bincount(np.argmax(np.log(q) + kept, axis=1), minlength=len(p))


def _agree(observed: NDArray[Any], expected: NDArray[np.float64]) -> bool:
    """Compare counts with probabilities by a chi-square test; rare categories go together."""
    total = observed.sum()
    common = expected * total >= 10
    assert observed[expected <= 1e-15].sum() == 0
    counts = np.append(observed[common], observed[~common].sum())
    means = np.append(expected[common], expected[~common].sum()) * total
    if means[-1] < 10:
        counts[-2], means[-2] = counts[-2] + counts[-1], means[-2] + means[-1]
        counts, means = counts[:-1], means[:-1]
    if len(counts) == 1:
        return True
    return bool(stats.chisquare(counts, means * counts.sum() / means.sum()).pvalue > 0.001)


CASES = [(seed, categories) for seed in range(4) for categories in (2, 3, 6)]


@pytest.mark.parametrize(("seed", "categories"), CASES)
def test_probabilities_against_the_formula_as_written(seed: int, categories: int) -> None:
    rows = 200
    p = _dirichlet(seed, rows=rows, categories=categories, sharpness=0.7)
    q = _dirichlet(seed + 100, rows=rows, categories=categories, sharpness=0.7)
    q[::10] = p[::10]  # every delay is 1
    q[1::10] = np.roll(p[1::10], 1, axis=1)
    observed = np.random.default_rng(seed).integers(0, categories, rows)
    found = counterfactual_probabilities(p, q, observed)
    expected = [_by_segments(p[row], q[row], int(observed[row])) for row in range(rows)]
    assert found == pytest.approx(np.array(expected), abs=1e-12)
    assert found.sum(axis=1) == pytest.approx(np.ones(rows), abs=1e-12)
    assert (found >= 0).all()


@pytest.mark.parametrize("observed", range(3))
def test_probabilities_against_numeric_integration(observed: int) -> None:
    p, q = np.array([0.5, 0.2, 0.3]), np.array([0.15, 0.45, 0.4])
    found = counterfactual_probabilities([p], [q], [observed])[0]
    for other in {0, 1, 2} - {observed}:
        assert found[other] == pytest.approx(_by_integration(p, q, observed, other), abs=1e-7)


@pytest.mark.parametrize(("seed", "categories"), CASES)
def test_probabilities_against_rejection_sampling(seed: int, categories: int) -> None:
    p, q = (
        _dirichlet(seed + more, rows=1, categories=categories, sharpness=2.0)[0] for more in (0, 50)
    )
    observed = int(np.argmax(p / q))  # the one that loses most, so that something happens
    found = counterfactual_probabilities([p], [q], [observed])[0]
    assert found[observed] < 0.999
    assert _agree(_by_rejection(p, q, observed, draws=40000, seed=seed), found)


@pytest.mark.parametrize(("seed", "categories"), CASES)
def test_draws_have_the_analytic_distribution(seed: int, categories: int) -> None:
    p, q = (
        _dirichlet(seed + more, rows=1, categories=categories, sharpness=2.0)[0] for more in (0, 50)
    )
    rows = 20000
    for observed in range(categories):
        places = np.full(rows, observed)
        race = draw_race(places, categories=categories, rng=np.random.default_rng(seed))
        drawn = winners(np.tile(p, (rows, 1)), np.tile(q, (rows, 1)), places, race)
        expected = counterfactual_probabilities([p], [q], [observed])[0]
        assert _agree(np.bincount(drawn, minlength=categories), expected)


def test_two_categories_by_hand() -> None:
    """p = (3/4, 1/4), q = (1/4, 3/4): delays 3 and 1/3, so it stays with 1/(1 + 3/4·8/3) = 1/3."""
    found = counterfactual_probabilities([[0.75, 0.25]] * 2, [[0.25, 0.75]] * 2, [0, 1])
    assert found == pytest.approx(np.array([[1 / 3, 2 / 3], [0, 1]]), abs=1e-15)


@pytest.mark.parametrize("categories", [2, 5, 40])
def test_averaged_over_the_facts_the_coupling_gives_the_counterfactual_distribution(
    categories: int,
) -> None:
    """Σ over i of p_i · P(counterfactual = j | i) = q_j: marginals are preserved exactly."""
    p = _dirichlet(1, rows=1, categories=categories, sharpness=0.5)
    q = _dirichlet(2, rows=1, categories=categories, sharpness=0.5)
    everyone = np.arange(categories)
    conditional = counterfactual_probabilities(
        np.repeat(p, categories, axis=0), np.repeat(q, categories, axis=0), everyone
    )
    assert p[0] @ conditional == pytest.approx(q[0], abs=1e-13)


def test_categories_that_become_impossible_or_possible() -> None:
    p = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    q = np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    found = counterfactual_probabilities(p, q, [0, 0])
    # the first must go: the third had a head start from 0, the second from 1. Before 1 only the
    # third can win, with 1 - 1/(1 + 1/2) = 1/3; after that both, half of the rest each.
    assert found[0] == pytest.approx([0, 1 / 3, 2 / 3], abs=1e-12)
    # the first stays unless the third comes in before it is due, at 1: 1/(1 + 1/2)
    assert found[1] == pytest.approx([2 / 3, 0, 1 / 3], abs=1e-12)


def test_extreme_probabilities_stay_numbers() -> None:
    tiny = 1e-300
    p = np.array([[tiny, 1.0], [1.0, tiny], [tiny, 1.0], [0.5, 0.5]])
    q = np.array([[1.0, tiny], [tiny, 1.0], [tiny, 1.0], [tiny, 1.0]])
    found = counterfactual_probabilities(p, q, [0, 0, 0, 0])
    assert found == pytest.approx(np.array([[1, 0], [0, 1], [1, 0], [0, 1]]), abs=1e-12)


@pytest.mark.parametrize(
    ("factual", "counterfactual", "observed", "message"),
    [
        ([[0.5, 0.5]], [[1.0]], [0], "the probabilities have shapes (1, 2) and (1, 1)"),
        ([[0.5, 0.5]], [[0.5, 0.5]], [0, 1], "and the observed categories (2,)."),
        ([[0.5, 0.6]], [[0.5, 0.5]], [0], "or does not add up to 1."),
        ([[0.5, 0.5]], [[1.5, -0.5]], [0], "a row of probabilities has a negative one"),
        ([[0.5, 0.5]], [[0.5, 0.5]], [2], "an observed category is none of the 2"),
        ([[0.0, 1.0]], [[0.5, 0.5]], [0], "1 of 1 observed categories have probability 0"),
    ],
)
def test_probabilities_that_make_no_sense(
    factual: Any, counterfactual: Any, observed: Any, message: str
) -> None:
    with pytest.raises(EquationError) as caught:
        counterfactual_probabilities(factual, counterfactual, observed)
    assert message in str(caught.value)


def test_the_most_probable_category_and_its_ties() -> None:
    half = np.array([[0.5, 0.5]])
    # one half each: the observed one stays
    assert most_probable(half, np.array([[0.25, 0.75]]), np.array([0])).tolist() == [0]
    assert most_probable(half, np.array([[0.75, 0.25]]), np.array([1])).tolist() == [1]
    assert most_probable(half, np.array([[0.24, 0.76]]), np.array([0])).tolist() == [1]
    # the second and the third are equal, and the observed one hopeless: the first of them
    p, q = np.array([[0.8, 0.1, 0.1]]), np.array([[0.02, 0.49, 0.49]])
    assert most_probable(p, q, np.array([0])).tolist() == [1]
    assert most_probable(p[:, ::-1], q[:, ::-1], np.array([2])).tolist() == [0]


@pytest.mark.parametrize("seed", range(5))
def test_the_category_stays_if_none_gained_more(seed: int) -> None:
    rows, categories = 4000, 5
    p = _dirichlet(seed, rows=rows, categories=categories, sharpness=0.3)
    q = _dirichlet(seed + 9, rows=rows, categories=categories, sharpness=0.3)
    gained = np.argmax(q / p, axis=1)
    race = draw_race(gained, categories=categories, rng=np.random.default_rng(seed))
    assert (winners(p, q, gained, race) == gained).all()
    assert (most_probable(p, q, gained) == gained).all()
    lost = np.argmin(q / p, axis=1)
    race = draw_race(lost, categories=categories, rng=np.random.default_rng(seed))
    assert (winners(p, q, lost, race) != lost).any()


def test_drawn_noise_leads_back_to_the_facts() -> None:
    """The noise as Gumbel noise: the observed category is the argmax, and the rest is standard."""
    rows, p = 20000, np.array([0.5, 0.3, 0.2])
    observed = np.random.default_rng(0).choice(3, rows, p=p)
    race = draw_race(observed, categories=3, rng=np.random.default_rng(1))
    exponential = p * race.won[:, np.newaxis] + race.further
    assert (np.argmin(exponential / p, axis=1) == observed).all()
    gumbel = -np.log(exponential)
    for category in range(3):  # averaged over the facts, the posterior is the prior
        assert stats.kstest(gumbel[:, category], "gumbel_r").pvalue > 0.001


def test_times_on_a_tie_go_to_the_observed_category() -> None:
    race = Race(won=np.array([1.0]), further=np.zeros((1, 3)))
    p = np.full((1, 3), 1 / 3)
    for observed in range(3):
        assert winners(p, p, np.array([observed]), race).tolist() == [observed]
