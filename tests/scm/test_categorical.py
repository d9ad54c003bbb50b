"""Categories: the fit against statsmodels, and counterfactuals of known models."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from scipy import stats

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import EquationError
from mutandis.scm import Categorical
from mutandis.scm.categorical import (
    FittedCategorical,
    Race,
    counterfactual_probabilities,
    draw_race,
    most_probable,
    winners,
)
from mutandis.scm.family import KnownLevels
from mutandis.scm.predictor import LinearPredictor, Term
from tests.scm.columns import names, numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray


JOBS = ("clerk", "cook", "judge", "smith")
SHIFTS = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, -0.5], [-0.4, 0.3, 0.8], [0.5, -1.0, 0.2]])
SLOPES = np.array([0.0, 0.03, -0.02, 0.01])


def _codes(column: Column) -> list[int]:
    assert isinstance(column, Categories)
    return list(column.codes)


def _simulated(
    rows: int, seed: int
) -> tuple[Categories, dict[str, Column], NDArray[np.float64], NDArray[np.float64]]:
    """Jobs with log-odds SHIFTS[job, group] + SLOPES[job]·(Age - 40), and their Gumbel noise."""
    rng = np.random.default_rng(seed)
    group, age = rng.integers(0, 3, rows, dtype=np.int32), rng.normal(40, 10, rows)
    noise = rng.gumbel(size=(rows, 4))
    jobs = np.argmax(SHIFTS.T[group] + SLOPES * (age - 40)[:, np.newaxis] + noise, axis=1)
    parents: dict[str, Column] = {"G": names(group, "abc"), "Age": Numbers(age)}
    design = np.column_stack([np.ones(rows), group == 1, group == 2, age])
    return names(jobs, JOBS), parents, design, noise


@pytest.mark.parametrize("rows", [80, 600, 4000])
def test_the_score_of_statsmodels_vanishes_at_the_coefficients(rows: int) -> None:
    """Newton's next step from them is next to nothing: the likelihood is concave."""
    child, parents, design, _ = _simulated(rows, seed=rows)
    fitted = Categorical("G", "Age").fit(child, parents)
    oracle = sm.MNLogit(child.codes, design)
    found = []
    for predictor in fitted.predictors:
        group, age = (term.coefficients.values() for term in predictor.terms)
        found += [predictor.intercept, *group, *age]
    step = np.linalg.solve(-oracle.hessian(np.array(found)), oracle.score(np.array(found)))
    assert np.abs(step).max() < 1e-6
    probabilities = oracle.predict(np.array(found).reshape(3, 4).T)
    assert fitted.probabilities(parents, rows=rows) == pytest.approx(probabilities, abs=1e-10)


@pytest.mark.parametrize(
    ("groups", "jobs", "shares", "known"),
    [
        # shares within each group; the first level that occurs is 0
        (
            [0] * 8 + [1] * 4,
            [1, 1, 1, 1, 2, 2, 3, 3, 1, 2, 2, 3],
            [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]],
            JOBS[1:],
        ),
        # a category that never occurs in a group: next to nothing, and the others stay exact
        (
            [0] * 60 + [1] * 60,
            [0, 1, 2] * 20 + [0, 1] * 30,
            [[1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0]],
            JOBS[:3],
        ),
        ([0] * 60 + [1] * 60, [0] * 60 + [1] * 60, [[1, 0], [0, 1]], JOBS[:2]),
    ],
)
def test_one_nominal_cause_by_hand(
    groups: list[int], jobs: list[int], shares: list[list[float]], known: tuple[str, ...]
) -> None:
    group, child = names(groups, "ab"), names(jobs, JOBS)
    fitted = Categorical("G").fit(child, {"G": group})
    assert fitted.known.levels == known
    found = fitted.probabilities({"G": group}, rows=len(jobs))
    assert found[[0, -1]] == pytest.approx(np.array(shares), abs=1e-6)
    assert (found > 0).all()
    alone = Categorical().fit(child, {}).probabilities({}, rows=1)[0]
    assert alone == pytest.approx([jobs.count(JOBS.index(job)) / len(jobs) for job in known])


def test_many_categories_and_causes_are_fitted() -> None:
    rng, rows = np.random.default_rng(4), 3000
    parents: dict[str, Column] = {
        "E": names(rng.integers(0, 8, rows), "abcdefgh"),
        "R": names(rng.integers(0, 5, rows), "vwxyz"),
        "Age": Numbers(rng.normal(40, 10, rows)),
    }
    child = names(rng.integers(0, 12, rows), range(12))
    fitted = Categorical("E", "R", "Age").fit(child, parents)
    totals = fitted.probabilities(parents, rows=rows).sum(axis=0)
    # the score equations: with an intercept, expected and observed numbers agree
    assert totals == pytest.approx(child.counts(), rel=1e-6)
    with pytest.raises(EquationError, match="the attribute has the same level in every row"):
        Categorical("Age").fit(child.filled(0), parents)


def _two() -> FittedCategorical:
    predictor = LinearPredictor(intercept=0.0, terms=(Term.slope("A", 2.0),))
    return FittedCategorical(known=KnownLevels(("no", "yes")), predictors=(predictor,))


def test_levels_of_another_table() -> None:
    fitted = _two()
    swapped = names([0, 1], ("yes", "no"))
    noise = fitted.abduct(swapped, {"A": numbers(0, 0)})
    assert noise.observed.tolist() == [1, 0]
    moved = fitted.predict({"A": numbers(-9, -9)}, noise).column
    assert isinstance(moved, Categories)
    assert (moved.levels, _codes(moved)) == (("yes", "no"), [1, 1])
    narrow = fitted.abduct(names([0], ["no"]), {"A": numbers(0)})
    with pytest.raises(EquationError, match="1 of 1 rows would have a level that the column of"):
        fitted.predict({"A": numbers(9)}, narrow)


def test_causes_moved_to_the_end_of_the_world() -> None:
    fitted, child = _two(), names([0, 1], ("no", "yes"))
    for rng in (None, np.random.default_rng(0)):
        noise = fitted.abduct(child, {"A": numbers(0, 0)}, rng=rng)
        assert _codes(fitted.predict({"A": numbers(1e5, 1e5)}, noise).column) == [1, 1]
        assert _codes(fitted.predict({"A": numbers(-1e5, -1e5)}, noise).column) == [0, 0]
        # a fact that the equation gives no probability that a float could hold
        noise = fitted.abduct(child, {"A": numbers(1e5, -1e5)}, rng=rng)
        assert noise.probabilities[[0, 1], [0, 1]].tolist() == [0.0, 0.0]
        assert _codes(fitted.predict({"A": numbers(1e5, -1e5)}, noise).column) == [0, 1]
        assert _codes(fitted.predict({"A": numbers(0, 0)}, noise).column) == [0, 1]


@pytest.mark.slow
def test_counterfactuals_of_a_known_model() -> None:
    """Draws against the truth that the same Gumbel noise makes, facts and counterfactuals jointly.

    The point version is right as often as its own probabilities say.
    """

    def one(rows: int, seed: int) -> tuple[float, float]:
        child, parents, design, noise = _simulated(rows, seed)
        odds = SHIFTS[:, 0] + SLOPES * (design[:, 3] - 40)[:, np.newaxis]
        truth = np.argmax(odds + noise, axis=1)
        fitted = Categorical("G", "Age").fit(child, parents)
        reference = {**parents, "G": names(np.zeros(rows), "abc")}
        drawn = fitted.abduct(child, parents, rng=np.random.default_rng(seed))
        made = np.array(_codes(fitted.predict(reference, drawn).column))
        joint = np.zeros((2, 4, 4))
        np.add.at(joint[0], (child.codes, truth), 1)
        np.add.at(joint[1], (child.codes, made), 1)
        known = fitted.abduct(child, parents)
        point = np.array(_codes(fitted.predict(reference, known).column))
        sure = counterfactual_probabilities(
            known.probabilities, fitted.probabilities(reference, rows=rows), known.observed
        ).max(axis=1)
        calibration = abs(float((point == truth).mean() - sure.mean()))
        return float(np.abs(joint[0] - joint[1]).sum() / (2 * rows)), calibration

    outcomes = np.array([[one(rows, seed) for seed in range(6)] for rows in (200, 3200, 51200)])
    joint, calibration = outcomes.mean(axis=1).T
    assert joint[2] < joint[1] / 2 < joint[0] / 4
    assert joint[2] < 0.01
    assert calibration[2] < 0.005


# --- the coupling ---------------------------------------------------------------------------------


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
    p, q = (
        _dirichlet(seed + more, rows=200, categories=categories, sharpness=0.7) for more in (0, 100)
    )
    q[::10] = p[::10]  # every delay is 1
    q[1::10] = np.roll(p[1::10], 1, axis=1)
    observed = np.random.default_rng(seed).integers(0, categories, 200)
    found = counterfactual_probabilities(p, q, observed)
    expected = [_by_segments(p[row], q[row], int(observed[row])) for row in range(200)]
    assert found == pytest.approx(np.array(expected), abs=1e-12)
    assert found.sum(axis=1) == pytest.approx(np.ones(200), abs=1e-12)
    assert (found >= 0).all()


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


@pytest.mark.parametrize(
    ("p", "q", "observed", "expected"),
    [
        # delays 3 and 1/3, so it stays with 1/(1 + 3/4·8/3) = 1/3
        ([0.75, 0.25], [0.25, 0.75], 0, [1 / 3, 2 / 3]),
        ([0.75, 0.25], [0.25, 0.75], 1, [0, 1]),
        # the first must go: the third had a head start from 0, the second from 1. Before 1 only the
        # third can win, with 1 - 1/(1 + 1/2) = 1/3; after that both, half of the rest each
        ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], 0, [0, 1 / 3, 2 / 3]),
        # the first stays unless the third comes in before it is due, at 1: 1/(1 + 1/2)
        ([0.5, 0.5, 0.0], [0.5, 0.0, 0.5], 0, [2 / 3, 0, 1 / 3]),
        ([1e-300, 1.0], [1.0, 1e-300], 0, [1, 0]),
        ([1.0, 1e-300], [1e-300, 1.0], 0, [0, 1]),
        ([1e-300, 1.0], [1e-300, 1.0], 0, [1, 0]),
        ([0.5, 0.5], [1e-300, 1.0], 0, [0, 1]),
    ],
)
def test_the_coupling_by_hand(
    p: list[float], q: list[float], observed: int, expected: list[float]
) -> None:
    assert counterfactual_probabilities([p], [q], [observed])[0] == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize(
    ("p", "q", "observed", "found"),
    [
        # one half each: the observed one stays
        ([0.5, 0.5], [0.25, 0.75], 0, 0),
        ([0.5, 0.5], [0.75, 0.25], 1, 1),
        ([0.5, 0.5], [0.24, 0.76], 0, 1),
        # the second and the third are equal, and the observed one hopeless: the first of them
        ([0.8, 0.1, 0.1], [0.02, 0.49, 0.49], 0, 1),
        ([0.1, 0.1, 0.8], [0.49, 0.49, 0.02], 2, 0),
    ],
)
def test_the_most_probable_category_and_its_ties(
    p: list[float], q: list[float], observed: int, found: int
) -> None:
    place = most_probable(np.array([p]), np.array([q]), np.array([observed]))
    assert place.tolist() == [found]
    even = np.full((1, len(p)), 1 / len(p))
    race = Race(won=np.array([1.0]), further=np.zeros((1, len(p))))
    assert winners(even, even, np.array([observed]), race).tolist() == [observed]


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
