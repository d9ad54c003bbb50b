"""Linear equations: declaration, the two links, and what is done to predictions at the end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mutandis.data.columns import Numbers
from mutandis.errors import EquationError
from mutandis.scm import Linear
from mutandis.scm.additive import FittedLinear, finish
from mutandis.scm.predictor import LinearPredictor, Slope


def _numbers(*values: float) -> Numbers:
    return Numbers(np.array(values))


def _doubling(**settings: Any) -> FittedLinear:
    """η = 1 + 2·A."""
    slope = Slope(parent="A", slope=2.0)
    return FittedLinear(predictor=LinearPredictor(intercept=1.0, terms=(slope,)), **settings)


def test_bounds_may_be_a_list_as_from_a_file() -> None:
    pair: Any = [0, None]
    assert Linear("A", bounds=pair) == Linear("A", bounds=(0.0, None))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"link": "logit"}, "link='logit' is not known. Use 'identity' or 'log'."),
        ({"bounds": (0, 1, 2)}, "bounds=(0, 1, 2) is not a pair of the lowest and the highest"),
        ({"bounds": 3}, "bounds=3 is not a pair of the lowest and the highest value."),
        ({"bounds": ("a", None)}, "Give finite numbers, and None where there is no limit"),
        ({"bounds": (0, math.inf)}, "Give finite numbers, and None where there is no limit"),
        ({"bounds": (True, None)}, "Give finite numbers, and None where there is no limit"),
        ({"bounds": (4, 0)}, "bounds=(4.0, 0.0) leave no room"),
        ({"bounds": (4, 4)}, "bounds=(4.0, 4.0) leave no room"),
        ({"decimals": 1.5}, "decimals=1.5 is not a whole number from -15 to 15."),
        ({"decimals": True}, "decimals=True is not a whole number from -15 to 15."),
        ({"decimals": 400}, "decimals=400 is not a whole number from -15 to 15."),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EquationError) as caught:
        Linear("A", **settings)
    assert message in str(caught.value)


def test_identity_link_by_hand() -> None:
    """f = 1 + 2·A. x = 10 at A = 3: f = 7, U = 3; at A = 0: 1 + 3 = 4."""
    fitted = _doubling()
    noise = fitted.abduct(Numbers(np.array([10.0])), {"A": _numbers(3)})
    assert noise.explained.tolist() == [7.0]
    assert noise.residual.tolist() == [3.0]
    assert fitted.predict({"A": _numbers(0)}, noise).values.tolist() == [4.0]


def test_log_link_by_hand() -> None:
    """η = 1 + 2·A. x = e³·5 at A = 1: η = 3, U = log 5; at A = 0: e¹·5, that is x·e⁻²."""
    fitted = _doubling(link="log")
    noise = fitted.abduct(Numbers(np.array([math.exp(3) * 5])), {"A": _numbers(1)})
    assert noise.residual.tolist() == pytest.approx([math.log(5)], rel=1e-14)
    predicted = fitted.predict({"A": _numbers(0)}, noise).values
    assert predicted.tolist() == pytest.approx([math.e * 5], rel=1e-14)


def test_log_link_is_fitted_on_logarithms() -> None:
    """Geometric means 2 (A = 0: 1 and 4) and 12 (A = 1: 9 and 16): a factor of 6."""
    fitted = Linear("A", link="log").fit(_numbers(1, 4, 9, 16), {"A": _numbers(0, 0, 1, 1)})
    assert fitted.predictor.intercept == pytest.approx(math.log(2))
    (slope,) = fitted.predictor.terms
    assert isinstance(slope, Slope)
    assert slope.slope == pytest.approx(math.log(6))
    noise = fitted.abduct(Numbers(np.array([9.0, 16.0])), {"A": _numbers(1, 1)})
    predicted = fitted.predict({"A": _numbers(0, 0)}, noise).values
    assert predicted.tolist() == pytest.approx([1.5, 16 / 6])


def test_even_a_negative_zero_stays_one() -> None:
    fitted = _doubling()
    causes = {"A": _numbers(5)}
    predicted = fitted.predict(causes, fitted.abduct(Numbers(np.array([-0.0])), causes))
    assert np.signbit(predicted.values).tolist() == [True]


def test_the_residual_form_would_not_be_the_identity() -> None:
    """The reason for the form x + (f(pa') - f(pa)): f + (x - f) loses bits."""
    factual, explained = 0.1, 1e9 / 3
    assert explained + (factual - explained) != factual


def test_log_link_refuses_values_that_are_not_positive() -> None:
    message = (
        "the log link needs values above 0, but 2 of 3 rows have a value of 0 or below. "
        "Use link='identity', or leave these rows out."
    )
    child = np.array([1.0, 0.0, -3.0])
    with pytest.raises(EquationError) as caught:
        Linear("A", link="log").fit(Numbers(child), {"A": _numbers(0, 1, 1)})
    assert str(caught.value) == message
    with pytest.raises(EquationError) as caught:
        _doubling(link="log").abduct(Numbers(child), {"A": _numbers(0, 1, 1)})
    assert str(caught.value) == message


@pytest.mark.parametrize(("link", "cause"), [("log", 1000.0), ("identity", 1e308), ("log", 1e308)])
def test_predictions_that_overflow_are_counted(link: Any, cause: float) -> None:
    fitted = _doubling(link=link)
    noise = fitted.abduct(Numbers(np.array([1.0, 2.0])), {"A": _numbers(0, 0)})
    with pytest.raises(EquationError, match="1 of 2 predicted values are not finite numbers"):
        fitted.predict({"A": _numbers(cause, 1)}, noise)


def test_bounds_do_not_hide_an_overflow() -> None:
    fitted = _doubling(link="log", bounds=(0.0, 10.0))
    noise = fitted.abduct(Numbers(np.array([1.0])), {"A": _numbers(0)})
    with pytest.raises(EquationError, match="1 of 1 predicted values are not finite"):
        fitted.predict({"A": _numbers(1000)}, noise)


def test_predictions_that_vanish_are_zero_without_a_warning() -> None:
    fitted = _doubling(link="log")
    noise = fitted.abduct(Numbers(np.array([1.0])), {"A": _numbers(0)})
    assert fitted.predict({"A": _numbers(-1000)}, noise).values.tolist() == [0.0]


def test_rounding_is_half_to_even_and_comes_before_the_bounds() -> None:
    values = np.array([0.125, 0.375, 0.5, 2.5, -7.0, 48.3])
    finished = finish(values, decimals=2, bounds=(0.25, 48.0))
    assert finished.values.tolist() == [0.25, 0.38, 0.5, 2.5, 0.25, 48.0]
    assert finished.clipped == 3
    assert finish(np.array([0.5, 1.5, 2.5]), decimals=0).values.tolist() == [0.0, 2.0, 2.0]
    assert finish(np.array([1250.0, 1350.0]), decimals=-2).values.tolist() == [1200.0, 1400.0]


def test_a_value_that_rounding_brings_within_bounds_is_not_clipped() -> None:
    finished = finish(np.array([4.0004, 4.0]), decimals=3, bounds=(None, 4.0))
    assert (finished.values.tolist(), finished.clipped) == ([4.0, 4.0], 0)


def test_one_sided_bounds() -> None:
    values = np.array([-1.0, 0.5, 2.0])
    assert finish(values, bounds=(0.0, None)).values.tolist() == [0.0, 0.5, 2.0]
    assert finish(values, bounds=(None, 0.0)).values.tolist() == [-1.0, 0.0, 0.0]
    assert finish(values, bounds=(None, 0.0)).clipped == 2
    assert finish(values).values.tolist() == values.tolist()


def test_finish_counts_what_is_no_number() -> None:
    with pytest.raises(EquationError, match="2 of 3 predicted values are not finite numbers"):
        finish(np.array([np.nan, np.inf, 1.0]), decimals=2)


def test_bounds_apply_to_rows_whose_causes_did_not_change() -> None:
    fitted = _doubling(bounds=(0.0, 4.0), decimals=1)
    causes = {"A": _numbers(1, 1, 1)}
    noise = fitted.abduct(Numbers(np.array([4.5, 2.25, -0.5])), causes)
    predicted = fitted.predict(causes, noise)
    assert (predicted.values.tolist(), predicted.clipped) == ([4.0, 2.2, 0.0], 2)


def test_noise_cannot_be_written_to() -> None:
    child = np.array([1.0])
    noise = _doubling().abduct(Numbers(child), {"A": _numbers(1)})
    with pytest.raises(ValueError, match="read-only"):
        noise.factual[0] = 2.0
    assert child.flags.writeable
