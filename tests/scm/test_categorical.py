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
from mutandis.errors import EquationError, KindError
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
from mutandis.scm.predictor import LevelShifts, LinearPredictor, Slope

if TYPE_CHECKING:
    from numpy.typing import NDArray


JOBS = ("clerk", "cook", "judge", "smith")


def _numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def _codes(column: Column) -> list[int]:
    assert isinstance(column, Categories)
    return list(column.codes)


SHIFTS = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, -0.5], [-0.4, 0.3, 0.8], [0.5, -1.0, 0.2]])


SLOPES = np.array([0.0, 0.03, -0.02, 0.01])


def _simulated(
    rows: int, seed: int
) -> tuple[Categories, dict[str, Column], NDArray[np.float64], NDArray[np.float64]]:
    """Jobs with log-odds SHIFTS[job, group] + SLOPES[job]·(Age - 40), and their Gumbel noise."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, rows, dtype=np.int32)
    age = rng.normal(40, 10, rows)
    noise = rng.gumbel(size=(rows, 4))
    jobs = np.argmax(SHIFTS.T[group] + SLOPES * (age - 40)[:, np.newaxis] + noise, axis=1)
    parents: dict[str, Column] = {"G": Categories(group, ("a", "b", "c")), "Age": Numbers(age)}
    design = np.column_stack([np.ones(rows), group == 1, group == 2, age])
    return Categories(jobs.astype(np.int32), JOBS), parents, design, noise


def _coefficients(fitted: FittedCategorical) -> NDArray[np.float64]:
    found = []
    for predictor in fitted.predictors:
        group, age = predictor.terms
        assert isinstance(group, LevelShifts)
        assert isinstance(age, Slope)
        found.append([predictor.intercept, group.shifts["b"], group.shifts["c"], age.slope])
    return np.array(found)


@pytest.mark.parametrize("rows", [80, 600, 4000])
def test_the_score_of_statsmodels_vanishes_at_the_coefficients(rows: int) -> None:
    """Newton's next step from them is next to nothing: the likelihood is concave."""
    child, parents, design, _ = _simulated(rows, seed=rows)
    fitted = Categorical("G", "Age").fit(child, parents)
    oracle = sm.MNLogit(child.codes, design)
    found = _coefficients(fitted).ravel()
    step = np.linalg.solve(-oracle.hessian(found), oracle.score(found))
    assert np.abs(step).max() < 1e-6
    probabilities = oracle.predict(found.reshape(3, 4).T)
    assert fitted.probabilities(parents, rows=rows) == pytest.approx(probabilities, abs=1e-10)


def test_one_nominal_cause_by_hand() -> None:
    """The probabilities are the shares within each group; the first level that occurs is 0."""
    group = Categories(np.repeat([0, 1], [8, 4]), ("a", "b"))
    child = Categories(np.array([1, 1, 1, 1, 2, 2, 3, 3, 1, 2, 2, 3]), ("none", *JOBS[:3]))
    fitted = Categorical("G").fit(child, {"G": group})
    assert fitted.known.levels == JOBS[:3]
    shares = fitted.probabilities({"G": group}, rows=12)[[0, 8]]
    assert shares == pytest.approx(np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]), rel=1e-7)
    assert fitted.predictors[0].intercept == pytest.approx(math.log(0.5), rel=1e-7)
    alone = Categorical().fit(child, {})
    assert alone.probabilities({}, rows=1)[0] == pytest.approx([5 / 12, 4 / 12, 3 / 12], rel=1e-9)


def test_a_category_that_never_occurs_in_a_group() -> None:
    """No maximum of the likelihood: the share is next to nothing, and the others stay exact."""
    group = Categories(np.repeat([0, 1], 60), ("a", "b"))
    jobs = np.concatenate([np.tile([0, 1, 2], 20), np.tile([0, 1], 30)]).astype(np.int32)
    fitted = Categorical("G").fit(Categories(jobs, JOBS[:3]), {"G": group})
    shares = fitted.probabilities({"G": group}, rows=120)[[0, 60]]
    assert shares[0] == pytest.approx([1 / 3] * 3, abs=1e-6)
    assert shares[1] == pytest.approx([0.5, 0.5, 0], abs=1e-6)
    assert shares[1, 2] > 0
    separated = Categories(np.repeat([0, 1], 60), JOBS[:2])
    again = Categorical("G").fit(separated, {"G": group}).probabilities({"G": group}, rows=120)
    assert again[[0, 60]] == pytest.approx(np.eye(2), abs=1e-6)


def test_many_categories_and_causes_are_fitted() -> None:
    rng = np.random.default_rng(4)
    rows = 3000
    parents: dict[str, Column] = {
        "E": Categories(rng.integers(0, 8, rows, dtype=np.int32), tuple("abcdefgh")),
        "R": Categories(rng.integers(0, 5, rows, dtype=np.int32), tuple("vwxyz")),
        "Age": Numbers(rng.normal(40, 10, rows)),
    }
    child = Categories(rng.integers(0, 12, rows, dtype=np.int32), tuple(range(12)))
    fitted = Categorical("E", "R", "Age").fit(child, parents)
    totals = fitted.probabilities(parents, rows=rows).sum(axis=0)
    # the score equations: with an intercept, expected and observed numbers agree
    assert totals == pytest.approx(child.counts(), rel=1e-6)


@pytest.mark.parametrize(
    ("child", "parents", "message"),
    [
        ([0, 0, 0, 0], {"A": [1, 2, 3, 4]}, "the attribute has the same level in every row"),
        ([0, 1, 0, 2], {"A": [5, 5, 5, 5]}, "'A' does not vary from row to row"),
        (
            [0, 1, 0, 2],
            {"A": [0, 1, 2, 5], "B": [1, 3, 5, 11]},
            "parent 'B' is perfectly collinear with 'A'",
        ),
    ],
)
def test_what_cannot_be_fitted(
    child: list[int], parents: dict[str, list[float]], message: str
) -> None:
    causes = {name: _numbers(*values) for name, values in parents.items()}
    with pytest.raises(EquationError) as caught:
        Categorical(*causes).fit(Categories(np.array(child), JOBS), causes)
    assert message in str(caught.value)


def _two(slope: float = 2.0) -> FittedCategorical:
    term = Slope(parent="A", slope=slope)
    predictor = LinearPredictor(intercept=0.0, terms=(term,))
    return FittedCategorical(known=KnownLevels(("no", "yes")), predictors=(predictor,))


def test_levels_of_another_table() -> None:
    fitted = _two()
    with pytest.raises(EquationError, match="1 of 2 rows have a level that did not occur when"):
        fitted.abduct(Categories(np.array([0, 1]), ("no", "maybe")), {"A": _numbers(0, 0)})
    swapped = Categories(np.array([0, 1]), ("yes", "no"))
    noise = fitted.abduct(swapped, {"A": _numbers(0, 0)})
    assert noise.observed.tolist() == [1, 0]
    moved = fitted.predict({"A": _numbers(-9, -9)}, noise).column
    assert isinstance(moved, Categories)
    assert (moved.levels, _codes(moved)) == (("yes", "no"), [1, 1])
    narrow = Categories(np.array([0]), ("no",))
    with pytest.raises(EquationError, match="1 of 1 rows would have a level that the column of"):
        fitted.predict({"A": _numbers(9)}, fitted.abduct(narrow, {"A": _numbers(0)}))
    with pytest.raises(KindError, match="'A' held numbers when its equation was fitted"):
        fitted.predict({"A": Categories(np.array([0, 0]), ("x",))}, noise)


def test_causes_moved_to_the_end_of_the_world() -> None:
    fitted = _two()
    child = Categories(np.array([0, 1]), ("no", "yes"))
    for rng in (None, np.random.default_rng(0)):
        noise = fitted.abduct(child, {"A": _numbers(0, 0)}, rng=rng)
        assert _codes(fitted.predict({"A": _numbers(1e5, 1e5)}, noise).column) == [1, 1]
        assert _codes(fitted.predict({"A": _numbers(-1e5, -1e5)}, noise).column) == [0, 0]
        # a fact that the equation gives no probability that a float could hold
        noise = fitted.abduct(child, {"A": _numbers(1e5, -1e5)}, rng=rng)
        assert noise.probabilities[[0, 1], [0, 1]].tolist() == [0.0, 0.0]
        assert _codes(fitted.predict({"A": _numbers(1e5, -1e5)}, noise).column) == [0, 1]
        assert _codes(fitted.predict({"A": _numbers(0, 0)}, noise).column) == [0, 1]


@pytest.mark.slow
def test_counterfactuals_of_a_known_model() -> None:
    """Draws against the truth that the same Gumbel noise makes, facts and counterfactuals jointly.

    The point version is right as often as its own probabilities say.
    """

    def one(rows: int, seed: int) -> tuple[float, float]:
        child, parents, design, noise = _simulated(rows, seed)
        group, age = parents["G"], parents["Age"]
        assert isinstance(group, Categories)
        odds = SHIFTS[:, 0] + SLOPES * (design[:, 3] - 40)[:, np.newaxis]
        truth = np.argmax(odds + noise, axis=1)
        fitted = Categorical("G", "Age").fit(child, parents)
        reference = {"G": group.filled(0), "Age": age}
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
    assert joint[1] < joint[0] / 2
    assert joint[2] < joint[1] / 2
    assert joint[2] < 0.01
    assert calibration[2] < 0.005


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
