"""Small cases of the causal package's inner functions that can be worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mutandis.data.columns import Categories, Numbers
from mutandis.data.formula import Formula
from mutandis.errors import EquationError
from mutandis.numeric.least_squares import (
    Scaled,
    constant_in,
    is_constant,
    least_squares,
    listed,
    solve_centred,
)
from mutandis.numeric.order import ReorderedColumns, canonical_order, distinct_rows
from mutandis.rooms.latent.equations import family_of
from mutandis.rooms.latent.fit import kinds_of_rows
from mutandis.rooms.latent.quadrature import NormalEvidence, draw, moments
from mutandis.scm import Linear
from mutandis.scm.additive import finish, linked
from mutandis.scm.categorical import Race, most_probable, winners
from mutandis.scm.count import abduct_counts, count_at, poisson_tails, predict_counts
from mutandis.scm.dependence import (
    Conditioning,
    crossed,
    features_of,
    g_dependence,
    group_codes,
    holm,
    mean_dependence,
    normal_departure,
    orthonormal,
    spread_dependence,
)
from mutandis.scm.family import KnownLevels
from mutandis.scm.likelihood import Design, minimise, row_products, solve_positive
from mutandis.scm.monotone import (
    MonotoneNoise,
    Tails,
    is_beyond,
    shares,
)
from mutandis.scm.ordinal import Ordinal
from mutandis.scm.predictor import (
    Interaction,
    LevelShifts,
    LinearPredictor,
    Slope,
    fit_linear_predictor,
)
from mutandis.scm.stated import compared_constants, slopes


def _numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def _names(codes: list[int], *levels: str) -> Categories:
    return Categories(np.array(codes, dtype=np.int32), levels)


# --- fitting --------------------------------------------------------------------------------------


def test_least_squares_through_three_points() -> None:
    response, age = np.array([1.0, 3.0, 5.0]), np.array([0.0, 1.0, 2.0])
    assert least_squares(response, [("Age", age)]) == (1.0, [2.0])
    assert solve_centred(response, [("Age", Scaled.of(age))]) == (1.0, [2.0])


def test_columns_that_add_up_to_one() -> None:
    women, men = np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    assert constant_in([("women", women), ("men", men)]) == [1.0, 1.0]
    assert constant_in([("women", women)]) is None
    assert is_constant(np.array([0.3, 0.1 + 0.2]))
    assert listed(["Age", ("Gender", "Race")]) == "'Age' and 'Gender' × 'Race'"


def test_a_nominal_parent_is_fitted_by_its_means() -> None:
    job = _names([0, 0, 1, 1], "clerk", "cook")
    fitted = fit_linear_predictor(np.array([9.0, 11.0, 14.0, 16.0]), {"Job": job})
    (term,) = fitted.terms
    assert isinstance(term, LevelShifts)
    assert (fitted.intercept, dict(term.shifts)) == (10.0, {"clerk": 0.0, "cook": 5.0})


def test_terms_add_up() -> None:
    predictor = LinearPredictor(intercept=1.0, terms=(Slope(parent="Age", slope=0.5),))
    assert predictor.at({"Age": _numbers(20, 30)}, rows=2).tolist() == [11.0, 16.0]
    product = Interaction(
        parents=("Age", "Tenure"), nominal=(False, False), effects={(None, None): 0.5}
    )
    assert product.at({"Age": _numbers(30), "Tenure": _numbers(4)}).tolist() == [60.0]
    slope = Interaction(
        parents=("Job", "Age"),
        nominal=(True, False),
        effects={("clerk", None): 0.0, ("cook", None): 2.0},
    )
    jobs = _names([0, 1], "clerk", "cook")
    assert slope.at({"Job": jobs, "Age": _numbers(30, 40)}).tolist() == [0.0, 80.0]
    shifts = {("f", "x"): 0.0, ("f", "y"): 0.0, ("m", "x"): 0.0, ("m", "y"): 7.0}
    cells = Interaction(parents=("Gender", "Race"), nominal=(True, True), effects=shifts)
    people = {"Gender": _names([0, 1], "f", "m"), "Race": _names([1, 1], "x", "y")}
    assert cells.at(people).tolist() == [0.0, 7.0]


def test_the_age_in_terms_of_an_orthogonal_basis() -> None:
    design = Design.of({"Age": _numbers(20, 30, 40, 50)}, rows=4)
    assert (design.basis[:, 1] ** 2).mean() == pytest.approx(1.0, abs=1e-12)
    predictor = design.predictor(np.array([35.0, 125**0.5]))  # which is the age itself
    (term,) = predictor.terms
    assert isinstance(term, Slope)
    assert (predictor.intercept, term.slope) == pytest.approx((0.0, 1.0), abs=1e-9)
    products = row_products(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [10.0]]))
    assert products.tolist() == [[31.0], [42.0]]


def test_newtons_method_on_a_hyperbola() -> None:
    class Hyperbola:
        def value(self, point: np.ndarray) -> float:
            return float(point[0] + 4 / point[0]) if point[0] > 0 else float("inf")

        def derivatives(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return 1 - 4 / point**2, (8 / point**3).reshape(1, 1)

    assert minimise(Hyperbola(), np.array([0.1])).round(9).tolist() == [2.0]
    solution = solve_positive(np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([8.0, 8.0]))
    assert solution.tolist() == [1.0, 2.0]


def test_orders_and_kinds_of_rows() -> None:
    table = {"Age": _numbers(30, 20), "Pay": _numbers(1, 2)}
    chosen = ReorderedColumns(table, ["Age"], order=np.array([1, 0]))
    assert list(chosen) == ["Age"]
    assert chosen["Age"].values.tolist() == [20.0, 30.0]  # type: ignore[union-attr]
    people, shuffled = _numbers(30, 20, 40), _numbers(40, 30, 20)
    order, again = canonical_order({"Age": people}), canonical_order({"Age": shuffled})
    assert people.values[order].tolist() == shuffled.values[again].tolist()
    matrix = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    rows, kinds = distinct_rows(matrix)
    assert len(rows) == 2
    assert matrix[rows][kinds].tolist() == matrix.tolist()
    rows, kinds = kinds_of_rows({"Age": _numbers(30, 20, 30)})
    assert (sorted(rows.tolist()), kinds[0]) == ([0, 1], kinds[2])


def test_equal_rows_are_ordered_by_other_columns_then_by_ids() -> None:
    columns = {"Age": _numbers(30, 30, 30, 30)}
    ids = np.array(["d", "b", "c", "a"], dtype=object)
    assert ids[canonical_order(columns, ids=ids)].tolist() == ["a", "b", "c", "d"]
    assert canonical_order(columns, ids=np.array([9, 10, 8, 7])).tolist() == [3, 2, 0, 1]
    pay = _numbers(1, 2, 1, 2)
    by_pay = canonical_order(columns, others={"Pay": pay}, ids=ids)
    assert ids[by_pay].tolist() in (["c", "d", "a", "b"], ["a", "b", "c", "d"])
    assert len(set(pay.values[by_pay[:2]].tolist())) == 1


# --- equations ------------------------------------------------------------------------------------


def test_finishing_by_levels_and_the_log_scale() -> None:
    finished = finish(np.array([0.4, 2.5, 7.0]), levels=(1.0, 2.0, 3.0))
    assert (finished.values.tolist(), finished.clipped) == ([1.0, 2.0, 3.0], 2)
    assert Linear("a", levels=range(1, 4)).levels == (1.0, 2.0, 3.0)
    assert linked(np.array([1.0]), "log").tolist() == [0.0]


def test_poisson_tails_and_quantiles() -> None:
    tails = poisson_tails(np.array([2.0, 5000.0]), np.array([5.0, 5.0]))
    assert tails.below.round(6).tolist() == [-2.082229, 0.0]
    assert tails.above.round(6).tolist() == [-0.133134, -29555.860902]
    counts = count_at(np.log([0.5, 1e-12]), np.array([False, True]), np.array([5.0, 5.0]))
    assert counts.tolist() == [5.0, 27.0]


def test_a_count_keeps_its_rank() -> None:
    zero = abduct_counts(np.array([0.0]), np.array([0.0]))  # P(X = 0) = 1/e
    assert (zero.rank * np.e).round(12).tolist() == [0.5]
    noise = abduct_counts(np.array([2.0, 200.0]), np.log([5.0, 5.0]))
    assert predict_counts(np.log([8.0, 8.0]), noise).tolist() == [4.0, 227.0]


def _ranked(log_tail: list[float], upper: list[bool]) -> MonotoneNoise:
    zeros = np.zeros(len(upper))
    return MonotoneNoise(
        factual=zeros, explained=zeros, log_tail=np.log(log_tail), upper=np.array(upper)
    )


def test_ranks_within_intervals() -> None:
    assert shares(2, None).tolist() == [0.5, 0.5]
    at = Tails(below=np.log([0.9]), above=np.log([0.1]))
    before = Tails(below=np.log([0.7]), above=np.log([0.3]))
    noise = MonotoneNoise.between(before, at, factual=np.ones(1), explained=np.zeros(1), rng=None)
    assert (np.exp(noise.log_tail).round(12).tolist(), noise.upper.tolist()) == ([0.2], [True])
    assert _ranked([0.25], [True]).rank.round(12).tolist() == [0.75]
    half = np.log([0.5, 0.5])
    beyond = is_beyond(Tails(below=half, above=half), _ranked([0.25, 0.25], [False, True]))
    assert beyond.tolist() == [False, True]


def test_a_race_under_other_probabilities() -> None:
    race = Race(won=np.array([1.0]), further=np.array([[0.0, 0.3, 2.0]]))
    before, after = np.array([[0.5, 0.25, 0.25]]), np.array([[0.2, 0.4, 0.4]])
    # the times are 2.5, 0.625 + 0.75 and 0.625 + 5
    assert winners(before, after, np.array([0]), race).tolist() == [1]
    tie = np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])  # one half each
    assert most_probable(*tie, np.array([0])).tolist() == [0]


def test_levels_are_known_by_value() -> None:
    known = KnownLevels.of(_names([2, 0], "high", "mid", "low"))
    assert known.levels == ("high", "low")
    column = _names([0, 1, 1], "low", "high")
    assert known.places(column).tolist() == [1, 0, 0]
    assert known.members(column).tolist() == [[False, True, True], [True, False, False]]
    assert known.column(np.array([1, 0]), ("low", "high")).codes.tolist() == [0, 1]


def test_shares_are_counted_within_combinations() -> None:
    gender, grade = _names([0, 0, 0, 1, 1], "f", "m"), _names([0, 0, 1, 0, 1], "low", "high")
    fitted: Any = Ordinal("Gender", method="empirical").fit(grade, {"Gender": gender})
    assert fitted.cumulative.tolist() == [[2, 3], [1, 2]]


def test_what_a_coefficient_is_multiplied_with() -> None:
    factor = slopes(Formula.parse("0.3 * Salary + b * (Age - 18) / 10 + c"), ["b"])["b"]
    assert factor.evaluate({"Age": np.array([28.0, 38.0])}).tolist() == [1.0, 2.0]
    with pytest.raises(
        EquationError, match=r"the formula is not linear in 'b': 'exp\(b\)' \(character 11\)"
    ):
        slopes(Formula.parse("b * Age + exp(b)"), ["b"])
    found = list(compared_constants(Formula.parse('2 * (Job == "cook") + 3 * (1 != Race)')))
    assert found == [("Job", "cook"), ("Race", 1.0)]


# --- hidden causes --------------------------------------------------------------------------------


def test_the_posterior_of_a_hidden_cause_behind_one_normal_attribute() -> None:
    """One normal attribute x = U + noise with σ = 1, seen at 2: the posterior of U is N(1, 1/2)."""
    seen = NormalEvidence(response=np.array([2.0]), predictor=np.zeros(1), loading=1.0)
    found = moments([seen])
    assert found.mean.round(12).tolist() == [1.0]
    assert (found.deviation**2).round(12).tolist() == [0.5]
    place, uniforms = np.array([0, 0, 0]), np.array([0.025, 0.5, 0.975])
    assert draw([seen], found, place, uniforms).round(2).tolist() == [-0.39, 1.0, 2.39]
    assert family_of(Linear("Gender")) is NormalEvidence


# --- diagnostics ----------------------------------------------------------------------------------


def test_dependence_of_means_spreads_and_distributions() -> None:
    cause, noise = np.random.default_rng(3).normal(size=(2, 500))
    nothing = Conditioning.on_columns([], rows=500)
    level = mean_dependence([0.5 * cause + noise], [cause], given=nothing, test="correlation")
    group = np.repeat([0.0, 1.0], 500)
    wider = np.random.default_rng(3).normal(size=1000) * (1 + group)
    spread = spread_dependence(wider, features_of(Numbers(group)), test="Brown-Forsythe")
    half = 0.5 * np.random.default_rng(3).normal(size=500)
    shape = normal_departure(half, test="Kolmogorov-Smirnov")
    for found, effect in ((level, 0.38), (spread, 2.02), (shape, 0.5)):
        assert found.effect == pytest.approx(effect, abs=0.005)
        assert found.p_value is not None
        assert found.p_value < 0.001


def test_counts_in_a_table_and_holms_adjustment() -> None:
    first, second = (np.repeat(one, [30, 10, 10, 30]) for one in ([0, 0, 1, 1], [0, 1, 0, 1]))
    found = g_dependence(first, second, np.zeros(80, dtype=np.intp))
    assert found.statistic == pytest.approx(20.54, abs=0.005)
    assert found.degrees == 1
    assert holm([0.01, 0.04, 0.02]) == [0.03, 0.04, 0.04]


def test_features_of_few_and_of_many_values() -> None:
    few, many = (
        features_of(Numbers(np.repeat([0.0, 1.0, 5.0], 10))),
        features_of(Numbers(np.arange(200.0))),
    )
    assert (len(few.vectors), np.bincount(few.groups).tolist()) == (2, [10, 10, 10])
    assert (len(many.vectors), np.bincount(many.groups).tolist()) == (4, [50, 50, 50, 50])
    jobs = Categories(np.repeat([0, 1, 2, 3], [30, 20, 6, 7]), ("a", "b", "c", "d"))
    assert np.bincount(group_codes(jobs)).tolist() == [30, 20, 13]
    twice = np.array([3.0, 4.0, -3.0, -4.0])
    (direction,) = orthonormal([twice, 2 * twice])
    assert (direction * 50**0.5).round(6).tolist() == [3.0, 4.0, -3.0, -4.0]
    fixed = Conditioning.on_columns([Numbers(np.repeat([0.0, 1.0], 50))], rows=100)
    values = np.concatenate([np.arange(50.0), 1000.0 + np.arange(50.0)])
    assert fixed.residual(values)[[0, 49, 50, 99]].tolist() == [-24.5, 24.5, -24.5, 24.5]
    assert crossed([_numbers(0, 0, 1), _numbers(7, 8, 8)], rows=3).tolist() == [0, 1, 2]


def test_residuals_and_fit_of_two_groups() -> None:
    gender, salary = {"Gender": _numbers(0, 0, 1, 1)}, _numbers(40, 60, 30, 40)
    fitted = Linear("Gender").fit(salary, gender)
    noise = fitted.abduct(salary, gender)
    leftover = fitted.leftover(salary, gender, noise)
    (residual,) = leftover.vectors
    assert residual.tolist() == [-10.0, 10.0, -5.0, 5.0]
    assert leftover.measure == "R²"
    assert leftover.fit == pytest.approx(0.474, abs=0.0005)
