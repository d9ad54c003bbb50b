"""Ordered levels: the fit against statsmodels, and monotone counterfactuals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import special, stats
from statsmodels.miscmodels.ordinal_model import OrderedModel  # type: ignore[import-untyped]

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.data.population import Population
from mutandis.errors import EquationError, KindError
from mutandis.scm import Ordinal, Worldview
from mutandis.scm.family import KnownLevels
from mutandis.scm.ordinal import FittedOrdinal, FittedShares
from mutandis.scm.predictor import LevelShifts, LinearPredictor, Slope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tests.scm.conftest import NewtonStep


GRADES = ("low", "mid", "high", "top")


THRESHOLDS = np.array([-1.0, 0.3, 1.7])


def _numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def _names(text: str, levels: Sequence[Any]) -> Categories:
    """Read one letter a row, each the beginning of a level."""
    first = [str(level)[0] for level in levels]
    return Categories(np.array([first.index(letter) for letter in text]), tuple(levels))


def _codes(column: Column) -> list[int]:
    assert isinstance(column, Categories)
    return list(column.codes)


def _sloped(slope: float = 1.0, *, thresholds: Sequence[float] = (-1.0, 0.3, 1.7)) -> FittedOrdinal:
    return FittedOrdinal(
        known=KnownLevels(GRADES[: len(thresholds) + 1]),
        thresholds=tuple(thresholds),
        predictor=LinearPredictor(intercept=0.0, terms=(Slope(parent="A", slope=slope),)),
    )


def _simulated(rows: int, seed: int) -> tuple[Categories, dict[str, Column], NDArray[np.float64]]:
    """Levels cut from 0.8·[b] - 0.5·[c] + 0.05·(Age - 40) + logistic noise."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, rows, dtype=np.int32)
    age = rng.normal(40, 10, rows)
    latent = np.array([0.0, 0.8, -0.5])[codes] + 0.05 * (age - 40) + rng.logistic(size=rows)
    child = Categories(np.searchsorted(THRESHOLDS, latent).astype(np.int32), GRADES)
    parents: dict[str, Column] = {"G": Categories(codes, ("a", "b", "c")), "Age": Numbers(age)}
    return child, parents, np.column_stack([codes == 1, codes == 2, age])


def _fitted_logit(
    child: Column, parents: dict[str, Column], levels: tuple[Any, ...] | None = None
) -> FittedOrdinal:
    fitted = Ordinal(*parents, levels=levels).fit(child, parents)
    assert isinstance(fitted, FittedOrdinal)
    return fitted


def _coefficients(fitted: FittedOrdinal) -> list[float]:
    group, age = fitted.predictor.terms
    assert isinstance(group, LevelShifts)
    assert isinstance(age, Slope)
    return [group.shifts["b"], group.shifts["c"], age.slope]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "probit"}, "method='probit' is not known. Use 'logit' or 'empirical'."),
        ({"levels": "lmh"}, "levels are of type str. Give a list, lowest first"),
        ({"levels": {"a", "b"}}, "levels are of type set. Give a list, lowest first"),
        ({"levels": ["a"]}, "levels=['a'] does not list two or more levels, each once."),
        ({"levels": ["a", "b", "a"]}, "does not list two or more levels, each once."),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EquationError) as caught:
        Ordinal("A", **settings)
    assert message in str(caught.value)


@pytest.mark.parametrize("rows", [60, 500, 4000])
def test_the_fit_maximises_the_likelihood_of_statsmodels(
    rows: int, newton_step: NewtonStep
) -> None:
    child, parents, design = _simulated(rows, seed=rows)
    fitted = _fitted_logit(child, parents)
    design[:, 2] = (design[:, 2] - 40) / 10  # columns of about the same size
    oracle = OrderedModel(child.codes, design, distr="logit")
    slopes = np.array(_coefficients(fitted)) * [1, 1, 10]
    thresholds = np.array(fitted.thresholds) - _coefficients(fitted)[2] * 40
    # its thresholds are the first, and the logarithms of the gaps after it
    found = np.array([*slopes, thresholds[0], *np.log(np.diff(thresholds))])
    assert fitted.probabilities(parents, rows=rows) == pytest.approx(
        oracle.predict(found), abs=1e-10
    )
    assert np.abs(newton_step(oracle.loglike, found)).max() < 1e-6


def test_two_levels_are_a_logistic_regression_by_hand() -> None:
    """Odds of the upper level are 1/3 in group a and 3 in group b."""
    group = _names("aaaabbbb", ("a", "b"))
    child = _names("lllhlhhh", ("low", "high"))
    fitted = _fitted_logit(child, {"G": group})
    (term,) = fitted.predictor.terms
    assert isinstance(term, LevelShifts)
    assert term.shifts["b"] == pytest.approx(2 * math.log(3), rel=1e-8)
    assert fitted.thresholds == pytest.approx([math.log(3)], rel=1e-8)


def test_without_causes_levels_have_the_shares_of_everybody() -> None:
    child = _names("llmmmhhhhh", ("low", "mid", "high"))
    fitted = _fitted_logit(child, {})
    assert fitted.probabilities({}, rows=1)[0] == pytest.approx([0.2, 0.3, 0.5], rel=1e-10)


def test_perfect_separation_gives_probabilities_next_to_zero_and_one() -> None:
    age = Numbers(np.arange(30.0))
    child = Categories(np.repeat([0, 1, 2], 10), ("low", "mid", "high"))
    fitted = _fitted_logit(child, {"Age": age})
    probabilities = fitted.probabilities({"Age": age}, rows=30)
    assert probabilities[np.arange(30), child.codes].min() > 0.99
    assert np.isfinite(fitted.thresholds).all()
    group = Categories(np.repeat([0, 1], 15), ("a", "b"))
    again = _fitted_logit(Categories(np.repeat([0, 1], 15), ("low", "high")), {"G": group})
    assert again.probabilities({"G": group}, rows=30)[0, 1] < 1e-6


def test_declared_order_makes_no_difference_to_how_codes_are_numbered() -> None:
    child, parents, _ = _simulated(300, seed=5)
    plain = _fitted_logit(child, parents)
    alphabetical = tuple(sorted(GRADES))
    recode = np.array([alphabetical.index(grade) for grade in GRADES])
    sorted_child = Categories(recode[child.codes].astype(np.int32), alphabetical)
    restated = _fitted_logit(sorted_child, parents, GRADES)
    assert restated == plain
    moved = {**parents, "Age": Numbers(np.full(300, 55.0))}
    first = plain.predict(moved, plain.abduct(child, parents)).column
    second = restated.predict(moved, restated.abduct(sorted_child, parents)).column
    assert isinstance(first, Categories)
    assert isinstance(second, Categories)
    assert first.levels == GRADES
    assert second.levels == alphabetical
    assert [GRADES[code] for code in first.codes] == [alphabetical[code] for code in second.codes]


def test_levels_that_nobody_has_are_never_predicted() -> None:
    child = Categories(np.array([0, 2, 0, 2, 2, 0]), ("low", "mid", "high"))
    parents: dict[str, Column] = {"A": _numbers(0, 1, 1, 0, 1, 0)}
    fitted = _fitted_logit(child, parents, ("low", "mid", "high"))
    assert fitted.known.levels == ("low", "high")
    for value in (-50.0, 0.0, 50.0):
        noise = fitted.abduct(child, parents)
        predicted = fitted.predict({"A": Numbers(np.full(6, value))}, noise).column
        assert set(_codes(predicted)) <= {0, 2}


@pytest.mark.parametrize(
    ("child", "levels", "message"),
    [
        (
            "lmhh",
            ["low", "mid"],
            "2 of 4 rows have a level that is not among levels=['low', 'mid']",
        ),
        ("llll", None, "the attribute has the same level in every row"),
    ],
)
def test_what_cannot_be_fitted(child: str, levels: Any, message: str) -> None:
    column = _names(child, ("low", "mid", "high"))
    with pytest.raises(EquationError) as caught:
        Ordinal("A", levels=levels).fit(column, {"A": _numbers(1, 2, 3, 4)})
    assert message in str(caught.value)


def test_causes_that_cannot_be_fitted() -> None:
    child = _names("lmhm", ("low", "mid", "high"))
    with pytest.raises(EquationError, match="'A' does not vary from row to row"):
        Ordinal("A").fit(child, {"A": _numbers(1, 1, 1, 1)})
    with pytest.raises(EquationError, match="'B' is perfectly collinear with 'A'"):
        Ordinal("A", "B").fit(child, {"A": _numbers(1, 2, 3, 5), "B": _numbers(2, 4, 6, 10)})
    with pytest.raises(EquationError, match="it explains categories, but the attribute holds num"):
        Ordinal("A").fit(_numbers(1, 2, 3, 4), {"A": _numbers(1, 2, 3, 5)})


def test_a_level_that_the_column_cannot_hold() -> None:
    fitted = _sloped(thresholds=(-1.0, 0.3))
    narrow = Categories(np.array([0, 1]), ("low", "high"))
    noise = fitted.abduct(narrow, {"A": _numbers(0, 0)})
    with pytest.raises(EquationError, match="1 of 2 rows would have a level that the column of"):
        fitted.predict({"A": _numbers(1, 1)}, noise)  # u = 0.134: mid at A = 1


def test_counterfactual_by_hand() -> None:
    """Thresholds 0, log 3: F is 1/2, 3/4 at A = 0. At A = log 3 it is 1/4, 1/2.

    Mid at A = 0 is u = 5/8, which is beyond 1/2: high. Low is u = 1/4, which 1/4 just reaches: low.
    """
    fitted = _sloped(thresholds=(0.0, math.log(3)))
    child = _names("lmh", GRADES[:3])
    noise = fitted.abduct(child, {"A": _numbers(0, 0, 0)})
    assert noise.rank.tolist() == pytest.approx([0.25, 0.625, 0.875], rel=1e-12)
    moved = fitted.predict({"A": Numbers(np.full(3, math.log(3)))}, noise).column
    assert _codes(moved) == [0, 2, 2]


def test_round_shares_tie_whatever_rounding_makes_of_the_fit() -> None:
    """Group a has 1, 1 and 2 of the levels, b has 2, 1 and 1: proportional odds, and round shares.

    High in a is u = 3/4, which F(mid) in b just reaches; low in b is u = 1/4 = F(low) in a.
    """
    group = _names("aaaabbbb", ("a", "b"))
    child = _names("lmhhllmh", ("low", "mid", "high"))
    fitted = _fitted_logit(child, {"G": group})
    noise = fitted.abduct(child, {"G": group})
    assert _codes(fitted.predict({"G": group.filled(1)}, noise).column)[:4] == [0, 0, 1, 1]
    assert _codes(fitted.predict({"G": group.filled(0)}, noise).column)[4:] == [0, 0, 2, 2]


def test_both_tails_keep_their_digits() -> None:
    """At A = ±500 the probabilities of the far levels are e⁻⁵⁰⁰: their ranks still come back."""
    fitted = _sloped()
    for value, code in ((500.0, 0), (-500.0, 3), (2000.0, 1), (-2000.0, 2)):
        child = Categories(np.array([code]), GRADES)
        noise = fitted.abduct(child, {"A": _numbers(value)})
        assert np.isfinite(noise.log_tail).all()
        near = fitted.predict({"A": _numbers(value + math.copysign(0.01, -value))}, noise).column
        assert _codes(near) == [code]
        back = fitted.predict({"A": _numbers(-value)}, noise).column
        assert _codes(back) == [0 if value > 0 else 3]


def test_a_higher_predictor_never_gives_a_lower_level() -> None:
    fitted = _sloped()
    rng = np.random.default_rng(8)
    start = rng.normal(0, 3, 300)
    child = Categories(rng.integers(0, 4, 300, dtype=np.int32), GRADES)
    for generator in (None, rng):
        noise = fitted.abduct(child, {"A": Numbers(start)}, rng=generator)
        paths = np.array(
            [
                _codes(fitted.predict({"A": Numbers(start + step)}, noise).column)
                for step in np.linspace(-12, 12, 49)
            ]
        )
        assert (np.diff(paths, axis=0) >= 0).all()
        assert (paths[24] == child.codes).all()
        assert (paths[0] == 0).sum() > 250


def test_alphabetical_levels_can_be_put_in_order() -> None:
    """A column of names comes with sorted levels; `levels` restates what they mean."""
    table = {"A": ["f", "f", "f", "m", "m", "m"], "X": ["low", "low", "mid", "mid", "high", "high"]}
    people = Population.from_frame(table, columns=["A", "X"])
    assert people.categories("X").levels == ("high", "low", "mid")
    worldview = Worldview({"X": Ordinal("A", levels=("low", "mid", "high"), method="empirical")})
    after = worldview.counterfactuals(people, do={"A": "m"}).population.categories("X")
    assert after.levels == ("high", "low", "mid")
    # low at u = 1/3 is where mid ends among m; mid at u = 5/6 is high
    assert [after.levels[code] for code in after.codes] == [
        "mid",
        "mid",
        "high",
        "mid",
        "high",
        "high",
    ]


def _overlap(
    below: NDArray[np.float64], other: NDArray[np.float64], code: int
) -> NDArray[np.float64]:
    """The share of [F(x-1), F(x)] that each [F'(y-1), F'(y)] covers."""
    edges, others = np.array([0, *below, 1]), np.array([0, *other, 1])
    low, high = edges[code], edges[code + 1]
    covered = np.minimum(others[1:], high) - np.maximum(others[:-1], low)
    shares: NDArray[np.float64] = np.maximum(covered, 0) / (high - low)
    return shares


@pytest.mark.parametrize("code", range(4))
def test_draws_have_the_analytic_distribution(code: int) -> None:
    fitted, rows = _sloped(), 20000
    child = Categories(np.full(rows, code, dtype=np.int32), GRADES)
    rng = np.random.default_rng(code)
    noise = fitted.abduct(child, {"A": Numbers(np.zeros(rows))}, rng=rng)
    drawn = _codes(fitted.predict({"A": Numbers(np.full(rows, 1.1))}, noise).column)
    expected = _overlap(special.expit(THRESHOLDS), special.expit(THRESHOLDS - 1.1), code)
    possible = expected > 1e-12
    observed = np.bincount(drawn, minlength=4)
    assert observed[~possible].sum() == 0
    if possible.sum() > 1:
        outcome = stats.chisquare(observed[possible], rows * expected[possible])
        assert outcome.pvalue > 0.001
    else:
        assert code == 3  # whoever is at the top stays there


def _slow_shares(
    rows: Sequence[tuple[tuple[int, ...], int]],
    own: tuple[int, ...],
    code: int,
    other: tuple[int, ...],
) -> int:
    """Middle of the interval and its inverse, in fractions."""

    def cumulative(cell: tuple[int, ...], upto: int) -> Fraction:
        inside = [level for causes, level in rows if causes == cell]
        return Fraction(sum(level <= upto for level in inside), len(inside))

    u = (cumulative(own, code - 1) + cumulative(own, code)) / 2
    return next(level for level in itertools.count() if cumulative(other, level) >= u)


@pytest.mark.parametrize("seed", range(6))
def test_empirical_counterfactuals_against_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 80
    first = rng.integers(0, 2, size, dtype=np.int32)
    second = rng.integers(0, 3, size, dtype=np.int32)
    level = rng.integers(0, 4, size, dtype=np.int32)
    parents: dict[str, Column] = {
        "S": Categories(second, ("x", "y", "z")),
        "F": Categories(first, ("f", "m")),
    }
    child = Categories(level, GRADES)
    fitted: Any = Ordinal("S", "F", method="empirical").fit(child, parents)
    assert isinstance(fitted, FittedShares)
    noise = fitted.abduct(child, parents)
    for value in (0, 1):
        moved = {**parents, "F": Categories(np.full(size, value, dtype=np.int32), ("f", "m"))}
        found = _codes(fitted.predict(moved, noise).column)
        rows = list(
            zip(zip(second.tolist(), first.tolist(), strict=True), level.tolist(), strict=True)
        )
        expected = [_slow_shares(rows, causes, code, (causes[0], value)) for causes, code in rows]
        assert found == expected


def test_empirical_shares_by_hand_with_a_tie() -> None:
    """Group a: low 2, high 2; group b: low 1, mid 1, high 2. The middle of a's low is F_b(low)."""
    group = _names("aaaabbbb", ("a", "b"))
    child = _names("llhhlmhh", ("low", "mid", "high"))
    fitted: Any = Ordinal("G", method="empirical").fit(child, {"G": group})
    shares = fitted.probabilities({"G": group}, rows=8)[[0, 4]]
    assert shares.tolist() == [[0.5, 0, 0.5], [0.25, 0.25, 0.5]]
    moved = fitted.predict({"G": group.filled(1)}, fitted.abduct(child, {"G": group})).column
    assert _codes(moved) == [0, 0, 2, 2, 0, 1, 2, 2]


def test_empirical_without_causes() -> None:
    child = _names("llmh", ("low", "mid", "high"))
    fitted: Any = Ordinal(method="empirical").fit(child, {})
    assert fitted.probabilities({}, rows=1).tolist() == [[0.5, 0.25, 0.25]]
    assert _codes(fitted.predict({}, fitted.abduct(child, {})).column) == [0, 0, 1, 2]


def test_empirical_draws_have_the_analytic_distribution() -> None:
    """Low in group a is u in [0, 1/2]; in group b that is low, mid and high by 1/5, 2/5, 2/5."""
    group = Categories(np.repeat([0, 1], [20000, 10]), ("a", "b"))
    child = Categories(np.concatenate([np.arange(20000) % 2 * 2, [0, 1, 1, *[2] * 7]]), GRADES[:3])
    fitted: Any = Ordinal("G", method="empirical").fit(child, {"G": group})
    noise = fitted.abduct(child, {"G": group}, rng=np.random.default_rng(7))
    drawn = np.array(_codes(fitted.predict({"G": group.filled(1)}, noise).column))
    observed = np.bincount(drawn[:20000:2], minlength=3)
    assert stats.chisquare(observed, [2000, 4000, 4000]).pvalue > 0.001
    assert (drawn[1:20000:2] == 2).all()


@pytest.mark.parametrize("code", range(2))
def test_combinations_that_were_never_observed(code: int) -> None:
    first, second = _names("aabb", ("a", "b")), _names("xyxx", ("x", "y", "z"))
    child = _names("lhlh", ("low", "high"))
    facts: dict[str, Column] = {"F": first, "S": second}
    fitted: Any = Ordinal("F", "S", method="empirical").fit(child, facts)
    noise = fitted.abduct(child, facts)
    message = "of 4 rows have a combination of parents that did not occur when the equation was fit"
    with pytest.raises(EquationError, match=f"1 {message}"):
        fitted.predict({"F": first.filled(1), "S": second}, noise)
    with pytest.raises(EquationError, match=f"4 {message}"):
        fitted.predict({"F": first, "S": second.filled(2)}, noise)
    with pytest.raises(EquationError, match=f"2 {message}"):
        fitted.abduct(child, {"F": _names("aacc", ("a", "c")), "S": second})
    one: dict[str, Column] = {"F": _names("a", ("a",)), "S": _names("x", ("x",))}
    with pytest.raises(EquationError, match="1 of 1 rows have a level that no row with the same"):
        fitted.abduct(_names("h", ("low", "high")), one)
    with pytest.raises(KindError, match="Parent 'F' held names when its equation was fitted"):
        fitted.predict({"F": _numbers(0, 0, 0, 0), "S": second}, noise)


def test_empirical_needs_nominal_causes() -> None:
    child = _names("lhlh", ("low", "high"))
    with pytest.raises(
        EquationError, match=r"parent 'Age' holds numbers\. Declare it as nominal or"
    ):
        Ordinal("Age", method="empirical").fit(child, {"Age": _numbers(1, 2, 3, 4)})
