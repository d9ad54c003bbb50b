"""The difference of medians: by hand, free of order, and how often it is found by chance."""

from __future__ import annotations

from fractions import Fraction
from math import comb, sqrt
from statistics import median
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import mutandis as mm
from mutandis.auditing.medians import _median, variance_of_median
from mutandis.errors import PlanError

WOMEN = mm.Protection("woman", value=1, reference=0)


def made_up(seed: int = 1, rows: int = 240) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    woman = (np.arange(rows) % 3 == 0).astype(int)
    income = rng.integers(0, 8, rows).astype(float)
    rate = 5 - 0.1 * income + 0.4 * woman + rng.gamma(2, 0.3, rows)
    return {
        "woman": woman.tolist(),
        "income": income.tolist(),
        "rate": np.round(rate, 1).tolist(),
    }


def audit(table: dict[str, Any], **changes: Any) -> mm.Audit:
    options: dict[str, Any] = {
        "outcome": mm.Score("rate", worse="higher"),
        "protected": WOMEN,
        "attributes": {"income": "continuous"},
        "worldview": mm.Worldview({"income": mm.Linear("woman")}),
        "ks": (8, 20),
        "uncertainty": mm.Uncertainty(refits=0, placebo=0, tipping=False),
    }
    return mm.audit(table, **(options | changes))


def repeated(table: dict[str, Any], members: Any) -> list[Fraction]:
    """Write every score as often as its weight has parts: medians without weights."""
    places = [Fraction(float(each)).limit_denominator(10**6) for each in members.place]
    parts = np.lcm.reduce([each.denominator for each in places])
    return sorted(
        Fraction(str(table["rate"][row]))
        for row, place in zip(members.ids, places, strict=True)
        for _ in range(int(place * int(parts)))
    )


def variance_by_hand(values: list[Fraction], people: float) -> float:
    """Price and Bonett's, with the a-th smallest where (a - 1/2) / n of all values are reached."""
    n = int(people)
    a = max(1, round((n + 1) / 2 - sqrt(n)))
    p = sum(comb(n, i) for i in range(a)) / 2 ** (n - 1)

    def smallest(rank: int) -> Fraction:
        needed = Fraction(2 * rank - 1, 2 * n) * len(values)
        return next(each for i, each in enumerate(values, start=1) if i >= needed)

    return float((float(smallest(n - a + 1) - smallest(a)) / (2 * norm.isf(p / 2))) ** 2)


@pytest.mark.parametrize("method", ["st", "cst_without"])
def test_medians_are_those_of_everyone_written_out(method: str) -> None:
    table = made_up(2)
    found = audit(table, tau=0.1)
    rows = found.medians(method, k=20).set_index("id")
    for her in list(rows.index)[:10]:
        groups = found.case(her).groups(method, k=20)
        here, there = repeated(table, groups.control), repeated(table, groups.test)
        row = rows.loc[her]
        assert row["median_control"] == float(median(here))
        assert row["median_test"] == float(median(there))
        delta = float(median(here) - median(there))
        assert row["delta"] == delta
        error = sqrt(variance_by_hand(here, 20) + variance_by_hand(there, 20))
        assert row["ci_low"] == pytest.approx(delta - norm.isf(0.05) * error, rel=1e-9)
        assert row["ci_high"] == pytest.approx(delta + norm.isf(0.05) * error, rel=1e-9)
        assert row["p_value"] == pytest.approx(norm.sf((delta - 0.1) / error), rel=1e-9)


def test_matched_medians_count_as_effective_people() -> None:
    table = made_up(3)
    found = audit(table)
    rows = found.medians().set_index("id")
    findings = found.findings("cst_matched", k=20).set_index("id")
    compared = findings.index[findings["verdict"] != "insufficient"]
    for her in list(compared)[:6]:
        groups = found.case(her).groups("cst_matched", k=20)
        weights = [Fraction(float(each)).limit_denominator(10**7) for each in groups.test.place]
        rates = [Fraction(str(table["rate"][row])) for row in groups.test.ids]
        half, ordered = sum(weights) / 2, sorted(zip(rates, weights, strict=True))
        below = [sum(w for r, w in ordered if r <= each) for each, _ in ordered]
        low = next(each for (each, _), total in zip(ordered, below, strict=True) if total >= half)
        high = next(each for (each, _), total in zip(ordered, below, strict=True) if total > half)
        assert rows.loc[her, "median_test"] == float((low + high) / 2)
    left_out = findings.index.difference(compared)
    assert rows.loc[left_out, "median_test"].isna().all()


@pytest.mark.slow
def test_order_mirror_and_units() -> None:
    table = made_up(4)
    order = np.random.default_rng(0).permutation(len(table["woman"]))
    named = table | {"who": list(range(len(order)))}
    shuffled = {name: [column[i] for i in order] for name, column in named.items()}
    one, two = (audit(each, id="who").medians() for each in (named, shuffled))
    assert one.equals(two.set_index("id").loc[one["id"]].reset_index())
    turned = table | {"rate": [round(10 - each, 1) for each in table["rate"]]}
    other = audit(turned, outcome=mm.Score("rate", worse="lower")).medians()
    same = ["delta", "ci_low", "ci_high", "p_value"]
    assert other[same].equals(one[same])
    scaled = audit(table | {"rate": [round(100 * each) for each in table["rate"]]}).medians()
    assert scaled["delta"].tolist() == pytest.approx((100 * one["delta"]).tolist(), nan_ok=True)
    better = audit(table, evidence=mm.Evidence(direction="positive")).medians()
    assert better["delta"].equals(one["delta"])
    tested = one["p_value"].notna()
    assert better["p_value"][tested].tolist() == pytest.approx(
        (1 - one["p_value"][tested]).tolist()
    )


def test_few_people_have_medians_and_no_test() -> None:
    rows = audit(made_up(5)).medians("st", k=8)
    assert rows["delta"].notna().all()
    assert rows[["ci_low", "p_value"]].isna().all().all()


def test_long_tails_on_the_better_side_are_cautioned_against() -> None:
    from scipy.stats import skew

    from mutandis.auditing.cautions import _skewness

    table = made_up(7)
    rng = np.random.default_rng(0)
    tail = np.round(10 - rng.lognormal(0, 1.2, 240), 1).tolist()
    assert any("skewness" in each for each in audit(table | {"rate": tail}).cautions())
    other = [round(20 - each, 1) for each in tail]
    assert not any("skewness" in each for each in audit(table | {"rate": other}).cautions())
    steps = rng.integers(0, 1000, 50) ** 2
    assert _skewness(steps) == pytest.approx(float(skew(steps)), rel=1e-12)


def test_what_has_no_medians_says_so() -> None:
    table = made_up(6)
    ordered = audit(table, outcome=mm.Ordered("rate", best_to_worst=sorted(set(table["rate"]))))
    with pytest.raises(PlanError, match="is no score"):
        ordered.medians()
    decided = audit(table, decision="5 - 0.1 * income")
    with pytest.raises(PlanError, match="one method on one ground"):
        decided.medians("cf")


# --- level, beside Welch's test and the percentile-t bootstrap ------------------------------------


def scores(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Any:
    """Draw scores in whole steps; the tail of a lognormal is worse (higher), or better."""
    if kind == "normal":
        return np.rint(1000 * rng.normal(20, 1, shape))
    drawn = np.rint(1000 * np.exp(1.2 * rng.normal(size=shape)))
    return 10_000_000 - drawn if kind == "better tail" else drawn


def welch(control: Any, test: Any) -> Any:
    sides = [each.var(axis=-1, ddof=1) / each.shape[-1] for each in (control, test)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return (control.mean(axis=-1) - test.mean(axis=-1)) / np.sqrt(sides[0] + sides[1]), sides


def rejections(kind: str, sizes: tuple[int, int], tables: int = 600) -> dict[str, float]:
    """Give how often each test rejects at 5 % where both groups have one distribution."""
    from scipy.stats import t

    rng = np.random.default_rng(1)
    control, test = (scores(rng, kind, (tables, size)) for size in sizes)
    statistic, sides = welch(control, test)
    free = (sides[0] + sides[1]) ** 2 / sum(
        v**2 / (n - 1) for v, n in zip(sides, sizes, strict=True)
    )
    found = {"welch": float((t.sf(statistic, free) <= 0.05).mean()), "percentile-t": 0.0}
    medians = 0
    for row, (here, there) in enumerate(zip(control, test, strict=True)):
        again = [
            each[rng.integers(0, len(each), (499, len(each)))] - each.mean()
            for each in (here, there)
        ]
        larger = (welch(*again)[0] >= statistic[row]).sum()
        found["percentile-t"] += float((1 + larger) / 500 <= 0.05) / tables
        groups = [[(int(each), Fraction(1)) for each in sorted(side)] for side in (here, there)]
        spread = sqrt(sum(map(variance_of_median, groups, sizes)))
        medians += float(_median(groups[0]) - _median(groups[1])) / spread >= norm.isf(0.05)
    return found | {"medians": medians / tables}


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(15, 30), (30, 60)])
def test_percentile_t_is_worse_than_welch_and_medians_hold_the_level(
    sizes: tuple[int, int],
) -> None:
    calm, skewed = rejections("normal", sizes), rejections("better tail", sizes)
    assert max(calm.values()) <= 0.08
    assert skewed["percentile-t"] > skewed["welch"] + 0.01
    assert skewed["medians"] <= 0.06
