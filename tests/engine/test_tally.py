"""Shares are exact: against fractions, on both sides of what int64 can hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutandis.engine.tally import Sums, difference, exceeds

Group = tuple[int, int, int]


@st.composite
def groups(draw: st.DrawFn, most: int) -> Group:
    size, split = draw(st.integers(1, most)), draw(st.integers(1, most))
    return draw(st.integers(0, size * split)), size, split


def share_from(chosen: list[Group]) -> Sums:
    negatives, size, split = (np.array(part, dtype=np.int64) for part in zip(*chosen, strict=True))
    return Sums.of(marks=negatives, places=size, parts=split)


def as_fraction(group: Group) -> Fraction:
    negatives, size, split = group
    return Fraction(negatives, size * split)


def decide(control: Group, test: Group, tau: float) -> bool:
    top, bottom = difference(share_from([control]), share_from([test]))
    return bool(exceeds(top, bottom, Fraction(str(tau)))[0])


SMALL, LARGE = 60, 10**6  # a large group splits its places into parts of 1e-12


@pytest.mark.parametrize("most", [SMALL, LARGE])
@settings(max_examples=150)
@given(data=st.data(), tau=st.sampled_from([0.0, 0.1, 0.05, 0.3, -0.25, 1e-9, 5e-324]))
def test_differences_and_decisions_are_those_of_fractions(
    most: int, data: st.DataObject, tau: float
) -> None:
    pairs = data.draw(st.lists(st.tuples(groups(most), groups(most)), min_size=1, max_size=5))
    control, test = share_from([c for c, _ in pairs]), share_from([t for _, t in pairs])
    expected = [as_fraction(c) - as_fraction(t) for c, t in pairs]
    numerator, denominator = difference(control, test)
    assert [int(n) for n in numerator] == [delta.numerator for delta in expected]
    assert [int(d) for d in denominator] == [delta.denominator for delta in expected]
    # the float is the one nearest to the fraction
    assert (numerator / denominator).tolist() == [float(delta) for delta in expected]
    evidence = exceeds(numerator, denominator, Fraction(str(tau)))
    assert evidence.tolist() == [delta > Fraction(str(tau)) for delta in expected]


@pytest.mark.parametrize("most", [SMALL, LARGE])
@given(data=st.data())
def test_shares_are_the_nearest_floats(most: int, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(groups(most), min_size=1, max_size=5))
    assert share_from(chosen).mean().tolist() == [float(as_fraction(group)) for group in chosen]


def test_a_difference_of_exactly_tau_is_no_evidence() -> None:
    assert 0.3 - 0.2 < 0.1 < 0.8 - 0.7  # floats would decide either way
    assert not decide((3, 10, 1), (2, 10, 1), 0.1)
    assert not decide((8, 10, 1), (7, 10, 1), 0.1)
    # the smallest step beyond, among groups of a million
    assert decide((300_001, 10**6, 1), (2, 10, 1), 0.1)


def test_products_beyond_int64_are_exact() -> None:
    size = 10**6
    split = size - 1
    # denominators of about 1e12 each, their product beyond 2**63; Δp is far below 1e-11
    control = (size * split // 2, size, split)
    test = (size * (split - 2) // 2 - 1, size, split - 2)
    delta = as_fraction(control) - as_fraction(test)
    assert 0 < delta < Fraction(1, 10**11)
    top, bottom = difference(share_from([control]), share_from([test]))
    assert Fraction(int(top[0]), int(bottom[0])) == delta
    assert decide(control, test, 0.0)
    assert not decide(test, control, 0.0)


def test_a_neighbour_with_large_numbers_changes_no_float() -> None:
    """Whether Python's integers take over for one complainant must not touch the others."""
    # a product between 2**53 and 2**63: whole in int64, but no longer a float
    here, there = (272_959_395, 294_225_901, 1), (87_884_853, 153_707_107, 1)
    alone = difference(share_from([here]), share_from([there]))
    large = (1, 10**9, 10**9)
    together = difference(share_from([here, large]), share_from([there, large]))
    assert together[0].dtype == object
    delta = float(as_fraction(here) - as_fraction(there))
    assert alone[0][0] / alone[1][0] == together[0][0] / together[1][0] == delta


@given(groups(SMALL), groups(SMALL), st.integers(1, 50), st.integers(1, 50))
def test_equal_evidence_gives_equal_floats(
    control: Group, test: Group, more: int, other: int
) -> None:
    """Counting every place several times over changes no share and no difference."""
    larger = (control[0] * more, control[1], control[2] * more)
    finer = (test[0] * other, test[1], test[2] * other)
    one = difference(share_from([control]), share_from([test]))
    same = difference(share_from([larger]), share_from([finer]))
    assert [part.tolist() for part in one] == [part.tolist() for part in same]
    assert share_from([control]).mean() == share_from([larger]).mean()


@given(groups(SMALL), st.booleans())
def test_the_center_takes_one_more_place(group: Group, is_negative: bool) -> None:
    with_center = share_from([group]).with_center(np.array([[is_negative]]))
    negatives, size, split = group
    expected = (Fraction(negatives, split) + is_negative) / (size + 1)
    assert with_center.places.tolist() == [size + 1]
    assert with_center.mean().tolist() == [float(expected)]


def test_nobody_gives_nothing() -> None:
    nothing = np.empty(0, np.int64)
    nobody = Sums.of(marks=nothing, places=nothing, parts=nothing)
    top, bottom = difference(nobody, nobody)
    assert exceeds(top, bottom, Fraction(0)).tolist() == []


def test_many_shares_with_integers_of_python_are_divided_correctly() -> None:
    rng = np.random.default_rng(3)
    parts = [3**50 + each for each in range(40)]
    split = [parts[each] for each in rng.integers(0, 40, 12_000)]
    negatives = [
        each * int(top) // 7 for each, top in zip(split, rng.integers(0, 15, 12_000), strict=True)
    ]
    size = rng.integers(0, 3, 12_000)
    shares = Sums.of(
        marks=np.array(negatives, dtype=object),
        places=size,
        parts=np.array(split, dtype=object),
    ).mean()
    for place in range(0, 12_000, 37):
        if not size[place]:
            assert np.isnan(shares[place])
            continue
        whole = Fraction(negatives[place], int(size[place]) * split[place])
        assert shares[place] == float(whole)


@settings(max_examples=100)
@given(st.lists(groups(most=SMALL), min_size=1, max_size=5), st.integers(2**44, 2**49))
def test_a_share_is_one_float_in_whatever_parts(chosen: list[Group], parts: int) -> None:
    expected = [float(as_fraction(group)) for group in chosen]
    finer = [(negatives * parts, size, split * parts) for negatives, size, split in chosen]
    share = share_from(finer)
    large = Sums.of(
        marks=share.marks[:, 0].astype(object),
        places=share.places,
        parts=share.parts[:, 0].astype(object),
    )
    assert share.mean().tolist() == expected
    assert large.mean().tolist() == expected
