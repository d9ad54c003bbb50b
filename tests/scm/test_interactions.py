"""Linear equations in which every two parents also act together."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.data.population import Population
from mutandis.errors import EquationError
from mutandis.scm import Linear
from mutandis.scm.predictor import Interaction, LevelShifts, Slope, fit_linear_predictor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.scm.additive import FittedLinear


def _numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def _names(codes: Sequence[int] | NDArray[Any], levels: Sequence[Any]) -> Categories:
    return Categories(np.array(codes, dtype=np.int32), tuple(levels))


def _people(table: Mapping[str, Any] | pd.DataFrame) -> Population:
    return Population.from_frame(pd.DataFrame(table), columns=map(str, table))


def _fit(response: Any, **parents: Column) -> FittedLinear:
    child = Numbers(np.asarray(response, dtype=np.float64))
    return Linear(*parents, interactions=True).fit(child, parents)


def test_all_products_against_statsmodels() -> None:
    statsmodels = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(1)
    rows = 600
    job, town = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    age, score = rng.normal(40, 10, rows), rng.normal(5, 2, rows)
    response = 3 + 2 * age * (job == 1) - score * age / 7 + 30 * (job == 2) * town
    response = response + rng.normal(0, 2, rows)
    single = [job == 1, job == 2, age, town == 1, score]
    owner = ["Job", "Job", "Age", "Town", "Score"]
    # pairs of parents in declared order, and within each pair one column after the other
    products = [
        single[left] * single[right]
        for first, second in itertools.combinations(["Job", "Age", "Town", "Score"], 2)
        for left, right in itertools.product(range(5), range(5))
        if (owner[left], owner[right]) == (first, second)
    ]
    assert len(products) == 9
    design = np.column_stack([*single, *products]).astype(float)
    oracle = statsmodels.OLS(response, statsmodels.add_constant(design)).fit()

    parents: dict[str, Column] = {
        "Job": _names(job, "abc"),
        "Age": Numbers(age),
        "Town": _names(town, "xy"),
        "Score": Numbers(score),
    }
    fitted = fit_linear_predictor(response, parents, interactions=True)
    jobs, ages, towns, scores, job_age, job_town, job_score, age_town, age_score, town_score = (
        fitted.terms
    )
    assert isinstance(jobs, LevelShifts)
    assert isinstance(ages, Slope)
    assert isinstance(towns, LevelShifts)
    assert isinstance(scores, Slope)
    assert isinstance(job_age, Interaction)
    assert isinstance(job_town, Interaction)
    assert isinstance(job_score, Interaction)
    assert isinstance(age_town, Interaction)
    assert isinstance(age_score, Interaction)
    assert isinstance(town_score, Interaction)
    found: list[float | None]
    found = [fitted.intercept, jobs.shifts["b"], jobs.shifts["c"], ages.slope, towns.shifts["y"]]
    found += [
        scores.slope,
        job_age.effects["b", None],
        job_age.effects["c", None],
        job_town.effects["b", "y"],
    ]
    found += [
        job_town.effects["c", "y"],
        job_score.effects["b", None],
        job_score.effects["c", None],
    ]
    found += [
        age_town.effects[None, "y"],
        age_score.effects[None, None],
        town_score.effects["y", None],
    ]
    assert found == pytest.approx(oracle.params.tolist(), rel=1e-8)
    assert fitted.at(parents, rows=rows) == pytest.approx(oracle.fittedvalues, rel=1e-10)
    # everything with a first level in it is what the others are measured against
    assert (
        job_age.effects["a", None],
        age_town.effects[None, "x"],
        town_score.effects["x", None],
    ) == (0.0, 0.0, 0.0)
    assert [job_town.effects[cell] for cell in [("a", "x"), ("a", "y"), ("b", "x")]] == [0.0] * 3


def test_two_numbers_by_hand() -> None:
    """X = 1 + 2·A + 3·B + 4·A·B, without noise."""
    a, b = np.array([0.0, 0.0, 1.0, 1.0, 2.0]), np.array([0.0, 1.0, 0.0, 1.0, 3.0])
    fitted = _fit(1 + 2 * a + 3 * b + 4 * a * b, A=Numbers(a), B=Numbers(b))
    first, second, product = fitted.predictor.terms
    assert isinstance(first, Slope)
    assert isinstance(second, Slope)
    assert isinstance(product, Interaction)
    assert fitted.predictor.intercept == pytest.approx(1.0)
    assert [first.slope, second.slope, product.effects[None, None]] == pytest.approx(
        [2.0, 3.0, 4.0]
    )
    assert product.parents == ("A", "B")


def _worlds() -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Facts, and the true counterfactual of do(Gender := m); noise is uncorrelated with everything.

    Score = 10 + 3·f + 5·y + 7·f·y - 2·f·Age + 0.5·Age + U, where f and y stand for female and y.
    """
    combinations = itertools.product("fm", "xyz", [20.0, 30.0, 40.0], [-1.5, -0.5, 0.5, 1.5])
    gender, race, age, noise = (np.array(values) for values in zip(*combinations, strict=True))

    def score(female: NDArray[np.bool_]) -> NDArray[np.float64]:
        y = race == "y"
        values: NDArray[np.float64] = (
            10 + 3 * female + 5 * y + 7 * (female & y) - 2 * female * age + 0.5 * age + noise
        )
        return values

    facts = pd.DataFrame(
        {"Gender": gender, "Race": race, "Age": age, "Score": score(gender == "f")}
    )
    return facts, score(np.zeros(len(facts), dtype=np.bool_))


@given(
    cells=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2),
    seed=st.integers(0, 1000),
)
def test_two_nominal_parents_predict_the_mean_of_each_combination(
    cells: set[tuple[int, int]], seed: int
) -> None:
    """Whichever combinations occur, as long as the parents can be told apart at all."""
    ordered = sorted(cells)
    assume(len({one for one, _ in cells}) > 1 and len({other for _, other in cells}) > 1)
    assume(_connected(cells))
    rng = np.random.default_rng(seed)
    picked = np.repeat(ordered, rng.integers(1, 4, len(ordered)), axis=0)
    response = rng.normal(size=len(picked))
    first, second = _names(picked[:, 0], "abcd"), _names(picked[:, 1], "xyz")
    fitted = _fit(response, A=first, B=second)
    means = pd.Series(response).groupby([picked[:, 0], picked[:, 1]]).transform("mean")
    explained = fitted.explained({"A": first, "B": second}, rows=len(picked))
    assert explained == pytest.approx(means.to_numpy(), abs=1e-12)

    others = sorted(set(itertools.product(range(4), range(3))) - cells)
    # only combinations of levels that did occur: others are refused for the level itself
    known = [set(picked[:, column].tolist()) for column in (0, 1)]
    others = [cell for cell in others if cell[0] in known[0] and cell[1] in known[1]]
    if others:
        columns = {
            "A": _names([cell[0] for cell in others], "abcd"),
            "B": _names([cell[1] for cell in others], "xyz"),
        }
        with pytest.raises(EquationError, match=f"'A' and 'B' have {len(others)} rows with a comb"):
            fitted.explained(columns, rows=len(others))


def _connected(cells: set[tuple[int, int]]) -> bool:
    """Tell whether one can walk between all cells, changing one coordinate at a time."""
    waiting, reached = [next(iter(cells))], set[tuple[int, int]]()
    while waiting:
        here = waiting.pop()
        reached.add(here)
        near = {cell for cell in cells if cell[0] == here[0] or cell[1] == here[1]}
        waiting += sorted(near - reached)
    return reached == cells


def test_a_combination_that_never_occurs_has_no_column_and_is_refused_later() -> None:
    gender = _names([0, 0, 0, 1, 1, 1], "fm")
    race = _names([0, 1, 2, 0, 1, 0], "xyz")
    fitted = _fit([1, 2, 3, 4, 9, 6], Gender=gender, Race=race)
    *_, cells = fitted.predictor.terms
    assert isinstance(cells, Interaction)
    assert cells.effects["m", "y"] == pytest.approx((9 - 5) - (2 - 1))
    assert ("m", "z") not in cells.effects
    everybody_male = {"Gender": gender.filled(1), "Race": race}
    with pytest.raises(EquationError) as caught:
        fitted.explained(everybody_male, rows=6)
    assert str(caught.value) == (
        "parents 'Gender' and 'Race' have 1 rows with a combination of values that did not occur "
        "when the equation was fitted, so what they do together is unknown. Fit on a table in "
        "which every combination occurs, or leave the interactions out."
    )


def test_combinations_are_looked_up_by_value_in_another_table() -> None:
    gender, race = _names([0, 0, 1, 1], "fm"), _names([0, 1, 0, 1], "xy")
    fitted = _fit([1, 2, 3, 9], Gender=gender, Race=race)
    other = {"Gender": _names([2, 1], ["?", "m", "f"]), "Race": _names([0, 0], ["y", "-"])}
    assert fitted.explained(other, rows=2) == pytest.approx([2.0, 9.0])


def test_a_level_that_only_zeros_go_with() -> None:
    """Nobody without a job has years in it. Slopes: 2 for clerks, 3 for cooks, unknown for none."""
    job = _names([0, 0, 1, 1, 2, 2], ["none", "clerk", "cook"])
    years = _numbers(0, 0, 1, 5, 2, 4)
    fitted = _fit([10, 10, 22, 30, 36, 42], Job=job, Years=years)
    _, slope, slopes = fitted.predictor.terms
    assert isinstance(slope, Slope)
    assert isinstance(slopes, Interaction)
    assert slopes.effects["none", None] is None
    assert slopes.effects["clerk", None] == 0.0
    assert slope.slope == pytest.approx(2.0)
    assert slopes.effects["cook", None] == pytest.approx(1.0)
    assert fitted.explained({"Job": job, "Years": years}, rows=6) == pytest.approx(
        [10, 10, 22, 30, 36, 42]
    )
    with pytest.raises(EquationError, match="'Job' and 'Years' have 4 rows with a combination"):
        fitted.explained({"Job": job.filled(0), "Years": years}, rows=6)


def test_a_number_before_a_name() -> None:
    years, job = _numbers(1, 2, 1, 3), _names([0, 0, 1, 1], ["a", "b"])
    fitted = _fit([2, 4, 5, 15], Years=years, Job=job)
    *_, slopes = fitted.predictor.terms
    assert isinstance(slopes, Interaction)
    assert (slopes.parents, slopes.nominal) == (("Years", "Job"), (False, True))
    assert slopes.effects[None, "b"] == pytest.approx(3.0)


def test_two_indicators_that_never_meet() -> None:
    a, b = _numbers(0, 0, 1, 1), _numbers(0, 1, 0, 0)
    fitted = _fit([1, 2, 5, 5], A=a, B=b)
    assert fitted.predictor.terms[2] == Interaction(
        parents=("A", "B"), nominal=(False, False), effects={(None, None): None}
    )
    assert fitted.explained({"A": a, "B": b}, rows=4) == pytest.approx([1, 2, 5, 5])
    with pytest.raises(EquationError, match="'A' and 'B' have 1 rows with a combination"):
        fitted.explained({"A": _numbers(1, 1, 1, 1), "B": b}, rows=4)


def test_a_product_that_is_the_same_everywhere() -> None:
    a = _numbers(1, 2, 4, 8)
    b = _numbers(8, 4, 2, 1)
    with pytest.raises(EquationError) as caught:
        _fit([1, 2, 3, 5], A=a, B=b)
    assert str(caught.value) == (
        "the product of 'A' × 'B' is the same in every row, so nothing tells what they do "
        "together. Leave the interactions out, or remove one of these parents."
    )


def test_a_collinear_interaction_is_named() -> None:
    rng = np.random.default_rng(3)
    a, b, c = rng.normal(size=(3, 50))
    with pytest.raises(EquationError) as caught:
        _fit(
            rng.normal(size=50), A=Numbers(a), B=Numbers(b), C=Numbers(2 * a * b - c), D=Numbers(c)
        )
    assert str(caught.value) == (
        "interaction 'A' × 'B' is perfectly collinear with 'C' and 'D': it says nothing that is "
        "not said already, so their effects cannot be told apart. Leave the interactions out, or "
        "remove one of these parents."
    )


def test_interactions_that_determine_each_other() -> None:
    """Gender × Race says who is in the group; group × anything says it again."""
    gender, race = np.array([0, 0, 1, 1] * 6), np.array([0, 1, 0, 1] * 6)
    age = np.random.default_rng(0).normal(size=24)
    group = gender & race
    with pytest.raises(
        EquationError, match="interaction 'Gender' × 'Race' is perfectly collinear with 'Group':"
    ):
        _fit(age, Gender=_names(gender, "fm"), Race=_names(race, "xy"), Group=_names(group, "no"))


def test_a_name_with_one_number_has_no_slope_of_its_own() -> None:
    job, age = _names([0, 0, 0, 1, 1], "ab"), _numbers(1, 2, 3, 7, 7)
    with pytest.raises(
        EquationError, match="interaction 'Job' × 'Age' is perfectly collinear with 'Job':"
    ):
        _fit([1, 2, 3, 4, 5], Job=job, Age=age)


def test_parents_that_cannot_be_told_apart_are_refused_as_without_interactions() -> None:
    town, region = _names([0, 1, 2, 0, 1], "abc"), _names([0, 0, 1, 0, 0], "xy")
    with pytest.raises(EquationError, match="parent 'Region' is perfectly collinear with 'Town':"):
        _fit([1, 2, 3, 4, 5], Town=town, Region=region)


def test_products_count_as_coefficients() -> None:
    gender, race = _names([0, 0, 1, 1], "fm"), _names([0, 1, 0, 1], "xy")
    age = _numbers(20, 35, 30, 50)
    plain = Linear("G", "R", "A").fit(age, {"G": gender, "R": race, "A": _numbers(1, 2, 4, 9)})
    assert len(plain.predictor.terms) == 3
    with pytest.raises(EquationError, match="7 coefficients cannot be fitted to 4 rows"):
        _fit([1, 2, 3, 4], Gender=gender, Race=race, Age=age)


def test_products_too_large_for_a_number() -> None:
    with pytest.raises(EquationError, match="too large or too small for floating-point numbers"):
        _fit([1, 2, 3, 5], A=_numbers(1e200, 2e200, 5e200, 7e200), B=_numbers(1e200, 1, 2, 3e200))


@pytest.mark.parametrize("parents", [(), ("A",)])
def test_interactions_need_two_parents(parents: tuple[str, ...]) -> None:
    with pytest.raises(EquationError) as caught:
        Linear(*parents, interactions=True)
    assert str(caught.value) == (
        f"interactions=True needs two parents or more, and the equation has {len(parents)}. "
        "Name the parents that act together, or leave interactions out."
    )


def test_interactions_are_true_or_false() -> None:
    setting: Any = "all"
    with pytest.raises(EquationError, match="interactions='all' is neither True nor False"):
        Linear("A", "B", interactions=setting)
