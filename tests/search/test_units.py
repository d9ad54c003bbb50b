"""The common unit: exact for as many attributes as fit, the same for every order of them."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.errors import PlanError
from mutandis.search.embedding import FINEST, Term, choose_unit

terms = st.lists(
    st.builds(
        Term,
        name=st.just("x"),
        weight=st.sampled_from([Fraction(1), Fraction("0.1"), Fraction("0.5"), Fraction(3)]),
        steps=st.integers(1, 5000),
    ),
    min_size=1,
    max_size=3,
)


@given(terms)
def test_every_half_step_is_whole_where_all_fit(chosen: list[Term]) -> None:
    weight = sum((term.weight for term in chosen), Fraction(0))
    unit = choose_unit(chosen, weight=weight)
    for term in chosen:
        assert term.is_exact(unit)
        half_step = unit * term.weight / (2 * term.steps)
        assert half_step.denominator == 1
        assert term.length(unit) == half_step * 2 * term.steps
    # as large as there is room for, to a factor of two
    assert FINEST / 2 < unit * weight <= FINEST


def test_what_does_not_fit_is_rounded_and_the_others_stay_exact() -> None:
    steps = {"age": 57, "score": 549, "rate": 21, "price": 99_999_989, "income": 99_999_971}
    chosen = [Term(name=name, weight=Fraction(1), steps=count) for name, count in steps.items()]
    units = {choose_unit(order, weight=Fraction(5)) for order in permutations(chosen)}
    assert len(units) == 1
    (unit,) = units
    assert [term.is_exact(unit) for term in chosen] == [True, True, True, False, True]
    for term in chosen:
        length = term.length(unit)
        assert length % (2 * term.steps) == 0
        assert length == pytest.approx(float(unit), rel=2**-24)


def test_grids_that_share_divisors_go_together() -> None:
    # 10**8 and 120_000 share 40_000, so they fit together; a prime of the same size has to stay out
    steps = {"cents": 10**8, "prime": 99_999_989, "odd": 99_999_971, "units": 120_000}
    chosen = {n: Term(name=n, weight=Fraction(1), steps=count) for n, count in steps.items()}
    unit = choose_unit(chosen.values(), weight=Fraction(4))
    assert chosen["cents"].is_exact(unit)
    assert chosen["units"].is_exact(unit)


def test_weights_matter_only_relative_to_each_other() -> None:
    third = Fraction(str(1 / 3))
    steps = (57, 40)
    plain = [Term(name="x", weight=Fraction(1), steps=count) for count in steps]
    thirds = [Term(name="x", weight=third, steps=count) for count in steps]
    unit, unit_thirds = (
        choose_unit(plain, weight=Fraction(2)),
        choose_unit(thirds, weight=2 * third),
    )
    assert [t.length(unit) for t in plain] == [t.length(unit_thirds) for t in thirds]


def test_an_attribute_that_would_vanish_is_refused() -> None:
    heavy = Term(name="heavy", weight=Fraction(10) ** 20, steps=1)
    light = Term(name="light", weight=Fraction(1), steps=10)
    unit = choose_unit([heavy, light], weight=heavy.weight + light.weight)
    with pytest.raises(PlanError, match="'light' counts so little"):
        light.length(unit)


def test_no_terms_still_give_a_unit() -> None:
    assert choose_unit([], weight=Fraction(3)) > 0
