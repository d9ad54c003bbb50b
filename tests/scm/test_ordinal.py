"""Ordered levels: the fit against statsmodels, and monotone counterfactuals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import special, stats
from statsmodels.miscmodels.ordinal_model import OrderedModel  # type: ignore[import-untyped]

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import EquationError
from mutandis.scm import Ordinal
from mutandis.scm.family import KnownLevels
from mutandis.scm.ordinal import FittedOrdinal
from mutandis.scm.predictor import LinearPredictor, Term
from tests.oracle import newton_step
from tests.scm.columns import names, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


GRADES = ("low", "mid", "high", "top")
THRESHOLDS = np.array([-1.0, 0.3, 1.7])


def _letters(text: str, levels: Sequence[Any]) -> Categories:
    """Read one letter a row, each the beginning of a level."""
    first = [str(level)[0] for level in levels]
    return names([first.index(letter) for letter in text], levels)


def _codes(column: Column) -> list[int]:
    assert isinstance(column, Categories)
    return list(column.codes)


def _sloped(*thresholds: float) -> FittedOrdinal:
    return FittedOrdinal(
        known=KnownLevels(GRADES[: len(thresholds) + 1]),
        thresholds=thresholds,
        predictor=LinearPredictor(intercept=0.0, terms=(Term.slope("A", 1.0),)),
    )


def _simulated(rows: int, seed: int) -> tuple[Categories, dict[str, Column], NDArray[np.float64]]:
    """Levels cut from 0.8·[b] - 0.5·[c] + 0.05·(Age - 40) + logistic noise."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, rows, dtype=np.int32)
    age = rng.normal(40, 10, rows)
    latent = np.array([0.0, 0.8, -0.5])[codes] + 0.05 * (age - 40) + rng.logistic(size=rows)
    parents: dict[str, Column] = {"G": names(codes, "abc"), "Age": Numbers(age)}
    design = np.column_stack([codes == 1, codes == 2, (age - 40) / 10])
    return names(np.searchsorted(THRESHOLDS, latent), GRADES), parents, design


@pytest.mark.parametrize(
    ("settings", "message"),
    [
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


@pytest.mark.parametrize(
    ("child", "levels", "message"),
    [
        ("lmhh", ["low", "mid"], "2 of 4 rows have a level that is not among levels="),
        ("llll", None, "the attribute has the same level in every row"),
    ],
)
def test_what_cannot_be_fitted(child: str, levels: Any, message: str) -> None:
    with pytest.raises(EquationError, match=message):
        Ordinal("A", levels=levels).fit(_letters(child, GRADES[:3]), {"A": numbers(1, 2, 3, 4)})


@pytest.mark.parametrize("rows", [60, 500, 4000])
def test_the_fit_maximises_the_likelihood_of_statsmodels(rows: int) -> None:
    child, parents, design = _simulated(rows, seed=rows)
    fitted: Any = Ordinal(*parents).fit(child, parents)
    oracle = OrderedModel(child.codes, design, distr="logit")
    group, (age,) = (term.coefficients.values() for term in fitted.predictor.terms)
    thresholds = np.array(fitted.thresholds) - age * 40
    # its thresholds are the first, and the logarithms of the gaps after it
    found = np.array([*group, 10 * age, thresholds[0], *np.log(np.diff(thresholds))])
    table = fitted.probabilities(parents, rows=rows)
    assert table == pytest.approx(oracle.predict(found), abs=1e-10)
    assert np.abs(newton_step(oracle.loglike, found)).max() < 1e-6


def test_fits_by_hand() -> None:
    """Odds of the upper level are 1/3 in group a and 3 in group b."""
    group: dict[str, Column] = {"G": _letters("aaaabbbb", "ab")}
    fitted: Any = Ordinal("G").fit(_letters("lllhlhhh", ("low", "high")), group)
    assert fitted.predictor.terms[0].effects["b",] == pytest.approx(2 * math.log(3))
    assert fitted.thresholds == pytest.approx([math.log(3)], rel=1e-8)
    alone = Ordinal().fit(_letters("llmmmhhhhh", GRADES[:3]), {})
    assert alone.probabilities({}, rows=1)[0] == pytest.approx([0.2, 0.3, 0.5], rel=1e-10)


def test_perfect_separation_gives_probabilities_next_to_zero_and_one() -> None:
    for cause in (Numbers(np.arange(30.0)), names(np.repeat([0, 1, 2], 10), "abc")):
        child = names(np.repeat([0, 1, 2], 10), GRADES[:3])
        fitted: Any = Ordinal("A").fit(child, {"A": cause})
        probabilities = fitted.probabilities({"A": cause}, rows=30)
        assert probabilities[np.arange(30), child.codes].min() > 0.99
        assert np.isfinite(fitted.thresholds).all()


def test_the_numbers_of_levels_make_no_difference() -> None:
    child, parents, _ = _simulated(300, seed=5)
    alphabetical = tuple(sorted(GRADES))
    recode = np.array([alphabetical.index(grade) for grade in GRADES])
    sorted_child = names(recode[child.codes], alphabetical)
    plain: Any = Ordinal(*parents).fit(child, parents)
    restated: Any = Ordinal(*parents, levels=GRADES).fit(sorted_child, parents)
    assert restated == plain
    moved = {**parents, "Age": Numbers(np.full(300, 55.0))}
    first = plain.predict(moved, plain.abduct(child, parents)).column
    second = restated.predict(moved, restated.abduct(sorted_child, parents)).column
    assert (first.levels, second.levels) == (GRADES, alphabetical)
    assert [GRADES[code] for code in first.codes] == [alphabetical[code] for code in second.codes]


def test_levels_that_nobody_has_are_never_predicted() -> None:
    child, parents = names([0, 2, 0, 2, 2, 0], GRADES[:3]), {"A": numbers(0, 1, 1, 0, 1, 0)}
    fitted: Any = Ordinal("A", levels=GRADES[:3]).fit(child, parents)
    assert fitted.known.levels == ("low", "high")
    for value in (-50.0, 0.0, 50.0):
        predicted = fitted.predict({"A": Numbers(np.full(6, value))}, fitted.abduct(child, parents))
        assert set(_codes(predicted.column)) <= {0, 2}
    narrow = names([0, 1], ("low", "high"))
    strict = _sloped(-1.0, 0.3)
    with pytest.raises(EquationError, match="1 of 2 rows would have a level that the column of"):
        # u = 0.134: mid at A = 1
        strict.predict({"A": numbers(1, 1)}, strict.abduct(narrow, {"A": numbers(0, 0)}))


def test_counterfactuals_by_hand() -> None:
    """Thresholds 0, log 3: F is 1/2, 3/4 at A = 0. At A = log 3 it is 1/4, 1/2.

    Mid at A = 0 is u = 5/8, which is beyond 1/2: high. Low is u = 1/4, which 1/4 just reaches: low.
    """
    fitted = _sloped(0.0, math.log(3))
    noise = fitted.abduct(_letters("lmh", GRADES[:3]), {"A": numbers(0, 0, 0)})
    assert noise.rank.tolist() == pytest.approx([0.25, 0.625, 0.875], rel=1e-12)
    moved = fitted.predict({"A": numbers(*[math.log(3)] * 3)}, noise).column
    assert _codes(moved) == [0, 2, 2]


def test_round_shares_tie_whatever_rounding_makes_of_the_fit() -> None:
    """Group a has 1, 1 and 2 of the levels, b has 2, 1 and 1: proportional odds, and round shares.

    High in a is u = 3/4, which F(mid) in b just reaches; low in b is u = 1/4 = F(low) in a.
    """
    group, child = _letters("aaaabbbb", "ab"), _letters("lmhhllmh", GRADES[:3])
    fitted = Ordinal("G").fit(child, {"G": group})
    noise = fitted.abduct(child, {"G": group})
    assert _codes(fitted.predict({"G": group.filled(1)}, noise).column)[:4] == [0, 0, 1, 1]
    assert _codes(fitted.predict({"G": group.filled(0)}, noise).column)[4:] == [0, 0, 2, 2]


def test_both_tails_keep_their_digits() -> None:
    """At A = ±500 the probabilities of the far levels are e⁻⁵⁰⁰: their ranks still come back."""
    fitted = _sloped(*THRESHOLDS)
    for value, code in ((500.0, 0), (-500.0, 3), (2000.0, 1), (-2000.0, 2)):
        noise = fitted.abduct(names([code], GRADES), {"A": numbers(value)})
        assert np.isfinite(noise.log_tail).all()
        near = fitted.predict({"A": numbers(value + math.copysign(0.01, -value))}, noise).column
        back = fitted.predict({"A": numbers(-value)}, noise).column
        assert (_codes(near), _codes(back)) == ([code], [0 if value > 0 else 3])


def test_a_higher_predictor_never_gives_a_lower_level() -> None:
    fitted, rng = _sloped(*THRESHOLDS), np.random.default_rng(8)
    start, child = rng.normal(0, 3, 300), names(rng.integers(0, 4, 300), GRADES)
    for generator in (None, rng):
        noise = fitted.abduct(child, {"A": Numbers(start)}, rng=generator)
        steps = np.linspace(-12, 12, 49)
        paths = np.array(
            [_codes(fitted.predict({"A": Numbers(start + x)}, noise).column) for x in steps]
        )
        assert (np.diff(paths, axis=0) >= 0).all()
        assert (paths[24] == child.codes).all()
        assert (paths[0] == 0).sum() > 250


@pytest.mark.parametrize("code", range(4))
def test_draws_have_the_analytic_distribution(code: int) -> None:
    """The share of [F(x-1), F(x)] that each [F'(y-1), F'(y)] covers."""
    fitted, rows = _sloped(*THRESHOLDS), 20000
    rng = np.random.default_rng(code)
    child = names(np.full(rows, code), GRADES)
    noise = fitted.abduct(child, {"A": Numbers(np.zeros(rows))}, rng=rng)
    drawn = _codes(fitted.predict({"A": Numbers(np.full(rows, 1.1))}, noise).column)
    edges, others = ([0, *special.expit(THRESHOLDS - step), 1] for step in (0, 1.1))
    low, high = edges[code], edges[code + 1]
    covered = np.minimum(others[1:], high) - np.maximum(others[:-1], low)
    expected = np.maximum(covered, 0) / (high - low)
    possible, observed = expected > 1e-12, np.bincount(drawn, minlength=4)
    assert observed[~possible].sum() == 0
    if code < 3:  # at the top, people stay there
        assert stats.chisquare(observed[possible], rows * expected[possible]).pvalue > 0.001
