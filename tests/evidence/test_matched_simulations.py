"""The matched comparison where nobody is discriminated, and where somebody is.

Two attributes, x2 follows x1, 15 % protected, and the facts are the counterfactuals: whatever is
found under the null is chance, or the bias of unequal groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import expit

import mutandis as mm

if TYPE_CHECKING:
    from mutandis.verdicts.findings import Findings

pytestmark = pytest.mark.slow

KS = (15, 50, 100)
TABLES = 20


def table_of(seed: int, *, sharp: bool, harm: float = 0.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    size = 3000
    protected = (rng.random(size) < 0.15).astype(int)
    x1 = rng.normal(size=size)
    x2 = x1 / 2 + rng.normal(size=size)
    score = x1 + x2 - harm * protected
    refused = score < 0 if sharp else rng.random(size) < expit(-2 * score)
    return {"status": protected, "x1": x1, "x2": x2, "y": np.where(refused, "no", "yes")}


def found_in(table: dict[str, Any], ks: tuple[int, ...] = KS) -> dict[int, Findings]:
    audit = mm.audit(
        table,
        outcome="y",
        negative="no",
        protected=mm.Protection("status", value=1, reference=0),
        attributes={"x1": "continuous", "x2": "continuous"},
        counterfactuals={name: table[name] for name in ("x1", "x2")},
        methods=["cst_matched"],
        ks=ks,
    )
    return {k: audit.evaluate("cst_matched", k) for k in ks}


@pytest.mark.parametrize(
    ("sharp", "most"),
    [(False, {15: 0.045, 50: 0.06, 100: 0.07}), (True, dict.fromkeys(KS, 0.005))],
    ids=["noisy", "sharp"],
)
def test_hardly_anybody_is_found_where_nobody_is_harmed(
    sharp: bool,
    most: dict[int, float],
) -> None:
    found = [found_in(table_of(seed, sharp=sharp)) for seed in range(TABLES)]
    effective = {15: 44, 50: 138, 100: 269}
    for k in KS:
        each = [one[k] for one in found]
        significant = np.concatenate([one.comparison.significant for one in each])
        assert significant.mean() <= most[k]
        assert sum(bool(one.significant_adjusted.any()) for one in each) <= 3
        tested = np.concatenate([~one.comparison.insufficient for one in each])
        assert tested.mean() >= 0.98
        matchings = [one.test.matching for one in each]
        people = [float(np.median(m.n_effective)) for m in matchings if m is not None]
        assert len(people) == TABLES
        assert np.mean(people) == pytest.approx(effective[k], rel=0.1)


def test_most_of_those_who_are_harmed_are_found() -> None:
    shares = []
    for seed in range(100, 100 + TABLES):
        table = table_of(seed, sharp=False, harm=0.6)
        score = (table["x1"] + table["x2"])[table["status"] == 1]
        harm = expit(-2 * (score - 0.6)) - expit(-2 * score)
        found = found_in(table, ks=(50,))[50]
        shares.append(float(found.significant_adjusted[harm > 0.1].mean()))
    assert np.mean(shares) >= 0.5


def coarse_table(seed: int, *, sharp: bool, step: float, share: float) -> dict[str, Any]:
    """Values are rounded to steps, and a woman is judged as the man she would have been."""
    rng = np.random.default_rng(seed)
    size = 3000
    protected = (rng.random(size) < share).astype(int)
    z1 = rng.normal(size=size)
    z2 = z1 / 2 + rng.normal(size=size)

    def rounded(values: Any) -> Any:
        return np.round(values / step) * step

    score = rounded(z1) + rounded(z2)
    refused = score < 0.01 if sharp else rng.random(size) < expit(-2 * score)
    return {
        "status": protected,
        "x1": rounded(z1 - 0.4 * protected),
        "x2": rounded(z2),
        "y": np.where(refused, "no", "yes"),
    }


@pytest.mark.parametrize("share", [0.15, 0.35])
@pytest.mark.parametrize("step", [0.25, 0.75])
@pytest.mark.parametrize("sharp", [False, True], ids=["noisy", "sharp"])
def test_coarse_values_can_be_compared_and_make_no_cases(
    sharp: bool,
    step: float,
    share: float,
) -> None:
    """The estimated shift is no multiple of a step: every counterfactual falls between values."""
    tested, cases = [], 0
    for seed in range(8):
        table = coarse_table(seed, sharp=sharp, step=step, share=share)
        audit = mm.audit(
            table,
            outcome="y",
            negative="no",
            protected=mm.Protection("status", value=1, reference=0),
            attributes={"x1": "continuous", "x2": "continuous"},
            worldview=mm.Worldview({"x1": mm.Linear("status")}),
            methods=["cst_matched"],
            ks=(50,),
        )
        found = audit.evaluate("cst_matched", 50)
        tested.append(1 - found.comparison.insufficient.mean())
        cases += bool(found.significant_adjusted.any())
        assert found.comparison.significant.mean() <= 0.12
    assert np.mean(tested) >= 0.95
    assert cases <= 1


def draw_people(
    seed: int, *, protected: float, tails: str, offset: float, harm: float, sharp: bool
) -> tuple[dict[str, Any], Any]:
    """Draw a table, and for each row how much likelier a woman there is refused than a man."""
    rng = np.random.default_rng([7, seed])
    size = 2000
    status = (rng.random(size) < protected).astype(int)
    draw = rng.standard_normal if tails == "normal" else lambda n: rng.standard_t(2, n)
    x1 = draw(size)
    x2 = x1 / 2 + draw(size)

    def refusal(score: Any) -> Any:
        return (score < 0).astype(float) if sharp else expit(-2 * score)

    man, woman = (refusal(x1 + x2 + offset - lost) for lost in (0.0, harm))
    refused = rng.random(size) < np.where(status == 1, woman, man)
    table = {"status": status, "x1": x1, "x2": x2, "y": np.where(refused, "no", "yes")}
    return table, (woman - man)[status == 1]


def true_differences(table: dict[str, Any], harm: Any, k: int) -> Any:
    """Average what the k nearest other women lose, found by measuring all distances."""
    women = table["status"] == 1
    scaled = np.column_stack([table[x][women] / np.ptp(table[x]) for x in ("x1", "x2")])
    apart = np.abs(scaled[:, None, :] - scaled[None, :, :]).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    return harm[np.argsort(apart, axis=1)[:, :k]].mean(axis=1)


COVERAGE: dict[str, tuple[dict[str, Any], tuple[float, float]]] = {
    # world, then the share of intervals that hold the true difference: k = 15, 30
    "noisy, nobody harmed": ({}, (0.90, 0.90)),
    "noisy, harm 0.6": ({"harm": 0.6}, (0.90, 0.90)),
    "noisy, harm 0.6, 6 % protected": ({"harm": 0.6, "protected": 0.06}, (0.90, 0.90)),
    "noisy, harm 0.6, half protected": ({"harm": 0.6, "protected": 0.5}, (0.90, 0.90)),
    "noisy, harm 0.6, heavy tails": ({"harm": 0.6, "tails": "t"}, (0.90, 0.90)),
    "noisy, harm 0.6, refusals rare": ({"harm": 0.6, "offset": 2.5}, (0.90, 0.90)),
    "sharp, nobody harmed": ({"sharp": True}, (0.90, 0.90)),
    "sharp, harm 0.6": ({"sharp": True, "harm": 0.6}, (0.90, 0.90)),
}


def covered(world: dict[str, Any], *, tables: int) -> dict[int, list[float]]:
    """Give the share of intervals that hold the true difference, for each k and table."""
    plain = {"protected": 0.15, "tails": "normal", "offset": 0.0, "harm": 0.0, "sharp": False}
    shares: dict[int, list[float]] = {15: [], 30: []}
    for seed in range(tables):
        table, harm = draw_people(seed, **{**plain, **world})
        for k, found in found_in(table, tuple(shares)).items():
            truth, told = true_differences(table, harm, k), ~found.comparison.insufficient
            bounds = found.comparison.interval
            holds = (bounds.low <= truth + 1e-12) & (truth <= bounds.high + 1e-12)
            shares[k].append(float(holds[told].mean()))
    return shares


@pytest.mark.parametrize("world", COVERAGE)
def test_intervals_hold_the_true_difference(world: str) -> None:
    settings, least = COVERAGE[world]
    for shares, share in zip(covered(settings, tables=TABLES).values(), least, strict=True):
        error = float(np.std(shares, ddof=1)) / TABLES**0.5
        assert np.mean(shares) >= share - 2 * error
