"""Power against plain enumeration and against simulation."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.engine.tally import Sums
from mutandis.errors import PlanError
from mutandis.outcomes.binary import REFUSED
from mutandis.outcomes.intervals import INTERVALS
from mutandis.outcomes.measures import MEASURES, RISK_DIFFERENCE
from mutandis.outcomes.outcome import Rule

RULE = Rule(
    kind=REFUSED,
    measure=RISK_DIFFERENCE,
    interval="miettinen-nurminen",
    tau=Fraction(0),
    alpha=0.05,
)
TESTS: list[tuple[str, float]] = [(name, tau) for name in INTERVALS for tau in (0.0, 0.1)]


def power(p_control: float, p_test: float, *, k: int, **options: Any) -> float:
    return mm.power(p_control, p_test, ks=(k,), k_max=1, **options).powers[0]


def smallest_k(p_control: float, p_test: float, **options: Any) -> int | None:
    return mm.power(p_control, p_test, ks=(1,), **options).smallest_k


def smallest_difference(k: int, p_test: float, **options: Any) -> float | None:
    return mm.power(p_test, p_test, ks=(k,), k_max=1, **options).smallest_differences[0]


def share(negatives: np.ndarray[Any, Any], k: int) -> Sums:
    ones = np.ones_like(negatives)
    return Sums.of(marks=negatives, places=k * ones, parts=ones)


def significant(k: int, *, alpha: float, tau: float, interval: str) -> list[list[bool]]:
    """What an audit says of every pair of refusals: rows are the control group's."""
    controls, tests = np.divmod(np.arange((k + 1) ** 2), k + 1)
    rule = replace(RULE, interval=interval, tau=Fraction(str(tau)), alpha=alpha)
    pairs = share(controls, k), share(tests, k)
    found = REFUSED.compare(*pairs, rule, depth="bounds").significant
    rows: list[list[bool]] = found.reshape(k + 1, k + 1).tolist()
    return rows


def enumerated(p_control: float, p_test: float, table: list[list[bool]]) -> float:
    k = len(table) - 1

    def chance(count: int, p: float) -> float:
        return comb(k, count) * p**count * (1 - p) ** (k - count)

    return sum(
        chance(x, p_control) * chance(y, p_test)
        for x in range(k + 1)
        for y in range(k + 1)
        if table[x][y]
    )


@pytest.mark.parametrize(("interval", "tau"), TESTS)
@pytest.mark.parametrize("k", [1, 5, 15, 24])
def test_power_is_the_sum_over_all_outcomes(interval: str, tau: float, k: int) -> None:
    options: dict[str, Any] = {"alpha": 0.05, "tau": tau, "interval": interval}
    table = significant(k, **options)
    for p_control, p_test in ((0.6, 0.3), (0.3, 0.6), (0.95, 0.05), (1.0, 0.0), (0.5, 0.5)):
        expected = enumerated(p_control, p_test, table)
        assert power(p_control, p_test, k=k, **options) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("interval", "tau"), [*TESTS, ("wald", 0.3), ("miettinen-nurminen", 0.7)])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_more_refusals_in_the_control_group_are_never_less_significant(
    interval: str, tau: float, alpha: float
) -> None:
    # power relies on it: it looks for the least that are significant
    for k in (1, 2, 3, 7, 15, 30, 41):
        table = np.array(significant(k, alpha=alpha, tau=tau, interval=interval))
        assert (table[:-1] <= table[1:]).all()
        # nor are fewer in the test group
        assert (table[:, 1:] <= table[:, :-1]).all()


def test_the_smallest_k_is_the_one_after_the_last_that_fails() -> None:
    options: dict[str, Any] = {"alpha": 0.05, "tau": 0.0, "interval": "miettinen-nurminen"}
    curve = [enumerated(0.8, 0.3, significant(k, **options)) for k in range(1, 41)]
    reached = [k for k, found in enumerate(curve, start=1) if found >= 0.8]
    failed = [k for k, found in enumerate(curve, start=1) if found < 0.8]
    # power falls again after it was reached for the first time
    assert min(reached) < max(failed)
    assert smallest_k(0.8, 0.3, k_max=40) == max(failed) + 1


def test_no_k_is_enough_without_a_difference() -> None:
    for p_control, k_max, found in ((0.3, 60, None), (0.6, 33, 33), (0.6, 32, None)):
        assert smallest_k(p_control, 0.3, k_max=k_max) == found
    # even 1 against 0.8 is seldom significant in groups of ten
    assert smallest_difference(10, 0.8) is None
    assert smallest_difference(1, 0.0) is None


@pytest.mark.parametrize(("interval", "tau"), TESTS)
def test_the_smallest_difference_has_just_enough_power(interval: str, tau: float) -> None:
    options: dict[str, Any] = {"alpha": 0.05, "tau": tau, "interval": interval}
    least = smallest_difference(20, 0.2, power=0.8, **options)
    assert least is not None
    table = significant(20, **options)
    assert enumerated(0.2 + least, 0.2, table) >= 0.8
    assert enumerated(0.2 + least - 1e-5, 0.2, table) < 0.8


def test_an_analysis_puts_it_all_together() -> None:
    found = mm.power(0.6, 0.3, power=0.9, ks=(30, 15), alpha=0.01, interval="wald", k_max=90)
    options: dict[str, Any] = {"alpha": 0.01, "interval": "wald"}
    assert found.ks == (15, 30)
    assert found.powers == tuple(power(0.6, 0.3, k=k, **options) for k in (15, 30))
    assert found.smallest_k == smallest_k(0.6, 0.3, power=0.9, k_max=90, **options)
    assert found.smallest_differences == tuple(
        smallest_difference(k, 0.3, power=0.9, **options) for k in (15, 30)
    )
    assert len(found.curve) == 90
    table = found.table()
    assert table.columns.tolist() == ["k", "power", "smallest_difference"]
    assert table["power"].tolist() == list(found.powers)


def test_what_is_not_reached_is_missing() -> None:
    found = mm.power(0.9, 0.85, ks=(5,), k_max=20)
    assert str(found).endswith("Power 0.8 is not reached up to k = 20.")
    assert found.table()["smallest_difference"].isna().tolist() == [True]
    assert found.as_dict()["rows"][0]["smallest_difference"] is None


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"p_control": 1.2}, "p_control=1.2 is not a probability. Give a number from 0 to 1."),
    ({"p_test": -0.1}, "p_test=-0.1 is not a probability. Give a number from 0 to 1."),
    ({"alpha": 0.5}, "alpha=0.5 is outside (0, 0.5). Give a level such as 0.05."),
    ({"tau": 1}, "tau=1 is outside [0, 1). Give a least difference such as 0.1."),
    ({"power": 1.0}, "power=1.0 is outside (0, 1). Give a probability such as 0.8."),
    ({"ks": ()}, "ks is empty. Give at least one group size: ks=(15, 30)."),
    ({"ks": (0,)}, "k=0 is not allowed. Give an integer of at least 1."),
    ({"k_max": True}, "k_max=True is not allowed. Give an integer of at least 1."),
    ({"interval": "guess"}, "interval='guess' is unknown. Allowed: miettinen-nurminen, wald."),
    ({"measure": "risk-ratio"}, "tau=0.0 is below 1"),
    ({"measure": "ratio"}, "Allowed: risk-difference"),
    (
        {"measure": "odds-ratio", "tau": 1.0, "interval": "wald"},
        "interval='wald' is about differences",
    ),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        mm.power(**{"p_control": 0.6, "p_test": 0.3} | options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("measure", "tau"), [("risk-ratio", 1.25), ("selection-ratio", 0.8), ("odds-ratio", 1.5)]
)
@pytest.mark.few("selection-ratio-0.8")
def test_power_of_a_ratio_is_the_sum_over_all_outcomes(measure: Any, tau: float) -> None:
    k, p_control, p_test = 12, 0.7, 0.3
    by, expected, reached = MEASURES[measure], 0.0, np.zeros((k + 1, k + 1), dtype=bool)
    for x in range(k + 1):
        for y in range(k + 1):
            control, test = (
                Sums.of(marks=np.array([n]), places=np.array([k]), parts=np.array([1]))
                for n in (x, y)
            )
            found = by.test(control, test, tau=tau, alpha=0.05)
            reached[x, y] = (
                by.is_beyond(control, test, Fraction(str(tau)))[0] and found.p_value[0] <= 0.05
            )
            if reached[x, y]:
                chance = comb(k, x) * p_control**x * (1 - p_control) ** (k - x)
                expected += chance * comb(k, y) * p_test**y * (1 - p_test) ** (k - y)
    # one more refusal in the control group never makes it less significant
    assert (np.diff(reached.astype(int), axis=0) >= 0).all()
    analysed = mm.power(p_control, p_test, ks=(k,), tau=tau, measure=measure, k_max=k)
    assert analysed.powers[0] == pytest.approx(expected, abs=1e-12)
    assert f"Test of {by.symbol} {'≤' if by.worse_above else '≥'} {tau:g}" in str(analysed)
