"""Measures: against maximum likelihood by search, plain fractions, and published intervals."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import copysign, inf, isnan, log, nan, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import mutandis as mm
from mutandis.engine.tally import Sums
from mutandis.errors import PlanError
from mutandis.outcomes.binary import REFUSED
from mutandis.outcomes.intervals import Shares
from mutandis.outcomes.measures import MEASURES, Measure
from mutandis.outcomes.outcome import Comparison, Rule
from mutandis.verdicts.compare import compare

RATIOS = ("risk-ratio", "selection-ratio", "odds-ratio")
TAUS = {
    "risk-difference": (0.0, 0.1),
    "risk-ratio": (1.0, 1.25, 2.0),
    "selection-ratio": (1.0, 0.8, 0.5),
    "odds-ratio": (1.0, 1.5, 3.0),
}
NORMAL = NormalDist()


def share(
    negatives: int,
    size: int,
    *,
    split: int = 1,
    people: float | None = None,
    doubt: float | None = None,
) -> Sums:
    return Sums.of(
        marks=np.array([negatives]),
        places=np.array([size]),
        parts=np.array([split]),
        people=None if people is None else np.array([people]),
        doubt=None if doubt is None else np.array([doubt]),
    )


def compared(
    measure: Measure,
    control: Sums,
    test: Sums,
    *,
    tau: float,
    alpha: float = 0.05,
    direction: Any = "negative",
) -> Comparison:
    rule = Rule(
        kind=REFUSED,
        measure=measure,
        interval="miettinen-nurminen",
        tau=Fraction(str(tau)),
        alpha=alpha,
        direction=direction,
    )
    return compare(control, test, rule)


def bounds(measure: Measure, control: Sums, test: Sums, **options: Any) -> tuple[float, float]:
    found = compared(measure, control, test, **options).interval.measured
    assert found is not None
    return float(found.low[0]), float(found.high[0])


# --- the oracle: highest likelihood by search, Pearson's statistic from its definition -----------


def slow_statistic(
    name: str, p_control: float, n_control: float, p_test: float, n_test: float, ratio: float
) -> float:
    """Pearson's chi² at the shares of highest likelihood, as a signed root, with (N - 1) / N."""
    if name == "selection-ratio":
        p_control, p_test = 1 - p_control, 1 - p_test

    def other(test: float) -> float:
        if name == "odds-ratio":
            return ratio * test / (1 - test + ratio * test)
        return ratio * test

    def term(count: float, share: float) -> float:
        return 0.0 if count <= 0 else -inf if share <= 0 else count * log(share)

    def likelihood(test: float) -> float:
        control = other(test)
        return (
            term(n_control * p_control, control)
            + term(n_control * (1 - p_control), 1 - control)
            + term(n_test * p_test, test)
            + term(n_test * (1 - p_test), 1 - test)
        )

    most = 1.0 if name == "odds-ratio" else min(1.0, 1 / ratio)
    # a coarse look first, since the search for a minimum believes in one valley
    grid = np.linspace(0, most, 401)[1:-1]
    best = grid[int(np.argmax([likelihood(each) for each in grid]))]
    step = most / 400
    found = minimize_scalar(
        lambda test: -likelihood(test),
        bounds=(max(best - step, 0), min(best + step, most)),
        method="bounded",
        options={"xatol": 1e-14},
    )
    test = float(found.x)
    control = other(test)
    square = n_control * (p_control - control) ** 2 / (control * (1 - control))
    square += n_test * (p_test - test) ** 2 / (test * (1 - test))
    together = n_control + n_test
    side = p_control - control if name == "odds-ratio" else p_control - ratio * p_test
    sign = -1.0 if name == "selection-ratio" else 1.0
    return sign * copysign(sqrt(square * (together - 1) / together), side)


@pytest.mark.parametrize("name", RATIOS)
def test_p_values_are_those_of_the_likelihood(name: Any) -> None:
    measure, rng = MEASURES[name], np.random.default_rng(5)
    for _ in range(60):
        n_control, size = (int(n) for n in rng.integers(2, 60, size=2))
        x, y = int(rng.integers(1, n_control)), int(rng.integers(1, size)) if size > 1 else 0
        people = float(size * rng.uniform(0.3, 2)) + 1
        tau = float(rng.choice(TAUS[name]))
        control, test = share(x, n_control), share(y, size, people=people)
        found = compared(measure, control, test, tau=tau).interval.p_value[0]
        z = slow_statistic(name, x / n_control, n_control, y / size, people, tau)
        assert found == pytest.approx(NORMAL.cdf(-z), abs=2e-7)


@pytest.mark.parametrize("name", RATIOS)
def test_bounds_are_where_the_statistic_reaches_the_critical_value(name: Any) -> None:
    measure, rng, alpha = MEASURES[name], np.random.default_rng(6), 0.05
    critical = NORMAL.inv_cdf(1 - alpha)
    for _ in range(40):
        n_control, n_test = (int(n) for n in rng.integers(3, 60, size=2))
        x, y = int(rng.integers(1, n_control)), int(rng.integers(1, n_test))
        low, high = bounds(measure, share(x, n_control), share(y, n_test), tau=1.0, alpha=alpha)
        statistic = partial(slow_statistic, name, x / n_control, n_control, y / n_test, n_test)
        ends = (critical, -critical) if measure.worse_above else (-critical, critical)
        assert statistic(low) == pytest.approx(ends[0], abs=2e-5)
        assert statistic(high) == pytest.approx(ends[1], abs=2e-5)


# --- published ----------------------------------------------------------------------------------


def test_published_intervals() -> None:
    # Perondi et al. (2004), 7 of 34 against 1 of 34, as R's PropCIs 0.3 prints it, quoted by the
    # tests of statsmodels (test_confint_2indep_propcis): orscoreci(7, 34, 1, 34, 0.95), iterative
    # and right to four digits
    low, high = bounds(MEASURES["odds-ratio"], share(7, 34), share(1, 34), tau=1.0, alpha=0.025)
    assert [low, high] == pytest.approx([1.246309, 56.486130], rel=5e-4)
    # riskscoreci(7, 34, 1, 34, 0.95), Koopman's, which has no factor (N - 1) / N
    low, high = koopman(share(7, 34), share(1, 34), together=68)
    assert [low, high] == pytest.approx([1.220853, 42.575718], abs=6e-7)
    # Koopman's example, 36 of 40 against 16 of 80, as Nam (1995) gives it, quoted there as well
    low, high = koopman(share(36, 40), share(16, 80), together=120)
    assert [low, high] == pytest.approx([2.940, 7.152], abs=5e-4)


def koopman(control: Sums, test: Sums, *, together: int) -> tuple[float, float]:
    critical = NORMAL.inv_cdf(0.975) * sqrt((together - 1) / together)
    return bounds(MEASURES["risk-ratio"], control, test, tau=1.0, alpha=1 - NORMAL.cdf(critical))


@pytest.mark.parametrize(
    ("name", "theirs"), [("risk-ratio", "ratio"), ("odds-ratio", "odds-ratio")]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning:statsmodels")
def test_agrees_with_statsmodels(name: Any, theirs: str) -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for x, n, y, m in ((7, 34, 1, 34), (28, 385, 53, 377), (36, 40, 16, 80), (9, 15, 4, 13)):
        low, high = bounds(MEASURES[name], share(x, n), share(y, m), tau=1.0, alpha=0.025)
        expected = proportion.confint_proportions_2indep(
            x, n, y, m, compare=theirs, method="score", correction=True
        )
        assert (low, high) == pytest.approx(expected, rel=1e-7)


# --- exact comparison ---------------------------------------------------------------------------


def slow_value(name: str, control: Fraction, test: Fraction) -> float | Fraction:
    top, bottom = {
        "risk-difference": (control - test, Fraction(1)),
        "risk-ratio": (control, test),
        "selection-ratio": (1 - control, 1 - test),
        "odds-ratio": (control * (1 - test), test * (1 - control)),
    }[name]
    if bottom == 0:
        return nan if top == 0 else inf
    return top / bottom


@st.composite
def shares(draw: st.DrawFn) -> Sums:
    size = draw(st.integers(1, 60))
    split = draw(st.sampled_from([1, 1, 2, 7, 60, 10**9 + 7, 10**17]))
    negatives = draw(st.one_of(st.sampled_from([0, size * split]), st.integers(0, size * split)))
    kind: Any = object if split > 10**15 else np.int64
    return Sums.of(
        marks=np.array([negatives], dtype=kind),
        places=np.array([size]),
        parts=np.array([split], dtype=kind),
    )


def fraction(of: Sums) -> Fraction:
    return Fraction(int(of.marks[0, 0]), int(of.places[0]) * int(of.parts[0, 0]))


@given(name=st.sampled_from(list(MEASURES)), control=shares(), test=shares(), data=st.data())
def test_evidence_is_decided_on_fractions(
    name: Any, control: Sums, test: Sums, data: st.DataObject
) -> None:
    measure = MEASURES[name]
    value = slow_value(name, fraction(control), fraction(test))
    tau = data.draw(st.sampled_from(TAUS[name]))
    # also where the value is the threshold itself, written as a decimal
    if (
        isinstance(value, Fraction)
        and Fraction(str(float(value))) == value
        and data.draw(st.booleans())
    ):
        try:
            tau = measure.read_tau(float(value))
        except PlanError:
            assume(False)
    expected = value > Fraction(str(tau)) if measure.worse_above else value < Fraction(str(tau))
    found = measure.is_beyond(control, test, Fraction(str(tau)))
    assert bool(found[0]) == bool(expected)
    shown = float(measure.values(control, test)[0])
    assert isnan(shown) if value != value else shown == float(value)


def test_the_four_fifths_are_exactly_four_fifths() -> None:
    # 40 % against 50 % approved: .4 / .5 is .8, which floats may put on either side
    measure = MEASURES["selection-ratio"]
    for size in (10, 70, 10**6):
        control, test = share(6 * size // 10, size), share(size // 2, size)
        assert not measure.is_beyond(control, test, Fraction("0.8"))[0]
        one_more = share(6 * size // 10 + 1, size)
        assert measure.is_beyond(one_more, test, Fraction("0.8"))[0]


# --- invariants ---------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    name=st.sampled_from(RATIOS),
    n_control=st.integers(1, 40),
    n_test=st.integers(1, 40),
    people=st.floats(1, 80),
    doubt=st.sampled_from([0.0, 0.0, 1e-4, 0.01]),
    direction=st.sampled_from(["negative", "positive"]),
    alpha=st.sampled_from([0.01, 0.05, 0.2]),
    data=st.data(),
)
def test_significance_p_value_and_bound_agree(
    name: Any,
    n_control: int,
    n_test: int,
    people: float,
    doubt: float,
    direction: Any,
    alpha: float,
    data: st.DataObject,
) -> None:
    measure, worse = MEASURES[name], direction == "negative"
    x, y = data.draw(st.integers(0, n_control)), data.draw(st.integers(0, n_test))
    tau = data.draw(st.sampled_from(TAUS[name]))
    control, test = share(x, n_control), share(y, n_test, people=people, doubt=doubt)
    found = compared(measure, control, test, tau=tau, alpha=alpha, direction=direction)
    assert found.interval.measured is not None
    low, high = float(found.interval.measured.low[0]), float(found.interval.measured.high[0])
    threshold, above = measure.threshold(tau, worse=worse), measure.above(worse=worse)
    beyond = low >= threshold if above else high <= threshold
    p_value = float(found.interval.p_value[0])
    assert bool(found.significant[0]) == (p_value <= alpha) == beyond
    value = float(measure.values(control, test)[0])
    assert 0 <= low <= high
    if not isnan(value):
        assert low <= value * (1 + 1e-9)
        assert value <= high * (1 + 1e-9)
        assert bool(found.evidence[0]) == (value > threshold if above else value < threshold)
    else:
        assert (p_value, low, high) == (0.5, 0, inf)
        assert not found.evidence[0]


@settings(deadline=None)
@given(
    name=st.sampled_from(RATIOS),
    x=st.integers(0, 20),
    y=st.integers(0, 30),
    doubt=st.sampled_from([0.0, 0.003]),
    data=st.data(),
)
def test_better_treatment_is_the_mirror_image(
    name: Any, x: int, y: int, doubt: float, data: st.DataObject
) -> None:
    measure, tau = MEASURES[name], data.draw(st.sampled_from(TAUS[name]))
    control, test = share(x, 20), share(y, 30, doubt=doubt)
    better = compared(measure, control, test, tau=tau, direction="positive")
    mirrored = compared(measure, test, control, tau=tau)
    assert better.evidence[0] == mirrored.evidence[0]
    assert better.significant[0] == mirrored.significant[0]
    assert better.interval.p_value[0] == mirrored.interval.p_value[0]
    assert better.delta_p[0] == -mirrored.delta_p[0]
    assert better.interval.measured is not None
    assert mirrored.interval.measured is not None
    with np.errstate(divide="ignore"):
        assert better.interval.measured.low[0] == 1 / mirrored.interval.measured.high[0]
        assert better.interval.measured.high[0] == 1 / mirrored.interval.measured.low[0]


@settings(deadline=None)
@given(x=st.integers(0, 25), y=st.integers(0, 40), people=st.floats(2, 80))
def test_any_ratio_and_any_difference_are_one_test(x: int, y: int, people: float) -> None:
    control, test = share(x, 25), share(y, 40, people=people)
    found = [
        compared(each, control, test, tau=float(each.is_ratio)).interval.p_value[0]
        for each in MEASURES.values()
    ]
    assert found == pytest.approx([found[0]] * 4, abs=1e-9)


def test_the_selection_ratio_is_the_risk_ratio_of_approvals() -> None:
    refusals = bounds(MEASURES["selection-ratio"], share(12, 30), share(5, 40), tau=0.8)
    approvals = bounds(MEASURES["risk-ratio"], share(18, 30), share(35, 40), tau=1.0)
    assert refusals == pytest.approx(approvals, rel=1e-12)


def test_doubt_about_a_ratio_by_hand() -> None:
    # 20 of 30 against 9 of 30 at a ratio of 1: pooled 29/60, N / (N - 1) = 60/59, s² = .004
    control, test = share(20, 30), share(9, 30, doubt=0.004)
    pooled = 29 / 60
    variance = 2 * pooled * (1 - pooled) / 30 * 60 / 59 + 0.004
    found = compared(MEASURES["risk-ratio"], control, test, tau=1.0).interval.p_value[0]
    assert found == pytest.approx(NORMAL.cdf(-(11 / 30) / sqrt(variance)), abs=1e-12)
    # log odds: (p - p̃) / p̃q̃ on both sides, and s² / (p*q*)² with p* = 9.5/31
    adjusted = 9.5 / 31
    spread = pooled * (1 - pooled)
    variance = 2 / (30 * spread) * 60 / 59 + 0.004 / (adjusted * (1 - adjusted)) ** 2
    found = compared(MEASURES["odds-ratio"], control, test, tau=1.0).interval.p_value[0]
    assert found == pytest.approx(NORMAL.cdf(-(11 / 30 / spread) / sqrt(variance)), abs=1e-12)


@pytest.mark.parametrize("name", RATIOS)
def test_the_statistic_falls(name: Any) -> None:
    measure, rng = MEASURES[name], np.random.default_rng(7)
    grid = np.exp(np.linspace(-9, 9, 300))
    assert measure.statistic is not None
    for _ in range(200):
        n_control, people = int(rng.integers(1, 60)), float(rng.uniform(1, 90))
        x = int(rng.choice([0, n_control, int(rng.integers(0, n_control + 1))]))
        test = share(
            int(rng.choice([0, 60, int(rng.integers(0, 61))])),
            60,
            people=people,
            doubt=float(rng.choice([0.0, rng.uniform(0, 0.02)])),
        )
        counts = Shares.of(*measure._counted(share(x, n_control), test))
        many = type(counts)(*(np.full(len(grid), column[0]) for column in counts))
        curve = measure.statistic(many, grid)
        near = np.abs(curve[1:]) < 6  # farther out than any level that is asked for
        assert not np.isnan(curve).any()
        assert (np.diff(curve)[near] <= 1e-9).all()


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tau", "said"),
    [
        ("risk-ratio", 0.0, "tau=0.0 is below 1, or infinite. Give the least ratio p_control"),
        ("risk-ratio", 0.8, "tau=0.8 is below 1"),
        ("risk-ratio", inf, "tau=inf is below 1, or infinite"),
        ("odds-ratio", True, "tau=True is below 1"),
        ("odds-ratio", "2", "tau='2' is below 1"),
        ("selection-ratio", 0.0, "tau=0.0 is outside (0, 1]. Give the ratio"),
        ("selection-ratio", 1.25, "tau=1.25 is outside (0, 1]"),
        ("risk-difference", 1.25, "tau=1.25 is outside [0, 1)"),
    ],
)
def test_tau_and_measure_are_checked_together(name: Any, tau: Any, said: str) -> None:
    with pytest.raises(PlanError, match="tau=") as refused:
        small_plan(tau=tau, evidence=mm.Evidence(measure=name))
    assert str(refused.value).startswith(said)


def test_ratios_have_one_interval() -> None:
    with pytest.raises(PlanError, match="is about differences, and measure='odds-ratio' is a"):
        small_plan(tau=1.0, evidence=mm.Evidence(measure="odds-ratio", interval="wald"))


def small_plan(**options: Any) -> mm.Plan:
    return mm.plan(
        {"woman": [1, 1, 0, 0], "pay": [1.0, 2, 3, 4], "granted": ["no", "no", "yes", "no"]},
        outcome="granted",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"pay": "continuous"},
        ks=(1,),
        **options,
    )
