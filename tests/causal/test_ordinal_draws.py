"""Draws of ordered levels: their distribution, and the truth of models that made the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from mutandis.causal import FittedOrdinal, Ordinal, Worldview
from mutandis.causal.equations.equation import KnownLevels
from mutandis.causal.fitting.predictor import LinearPredictor, Slope
from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import Categories, Column, Numbers
from mutandis.data.population import Population

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


GRADES = ("low", "mid", "high", "top")


THRESHOLDS = np.array([-1.0, 0.3, 1.7])


def _codes(column: Column) -> list[int]:
    assert isinstance(column, Categories)
    return list(column.codes)


def _sloped(slope: float = 1.0, *, thresholds: Sequence[float] = (-1.0, 0.3, 1.7)) -> FittedOrdinal:
    return FittedOrdinal(
        known=KnownLevels(GRADES[: len(thresholds) + 1]),
        thresholds=tuple(thresholds),
        predictor=LinearPredictor(intercept=0.0, terms=(Slope(parent="A", slope=slope),)),
    )


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


def test_the_same_seed_gives_the_same_draws() -> None:
    fitted = _sloped()
    child = Categories(np.full(200, 1, dtype=np.int32), GRADES)

    def drawn(seed: int) -> list[int]:
        facts = {"A": Numbers(np.zeros(200))}
        noise = fitted.abduct(child, facts, rng=np.random.default_rng(seed))
        return _codes(fitted.predict({"A": Numbers(np.full(200, 0.7))}, noise).column)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


@pytest.mark.parametrize("method", ["logit", "empirical"])
def test_counterfactuals_of_a_known_model(method: Any) -> None:
    """Two groups with a shift of 1.2 in logistic noise; draws against the joint truth."""

    def error(rows: int, seed: int) -> float:
        rng = np.random.default_rng(seed)
        group, noise = rng.integers(0, 2, rows, dtype=np.int32), rng.logistic(size=rows)
        facts = np.searchsorted(THRESHOLDS, noise - 1.2 * group)
        truth = np.searchsorted(THRESHOLDS, noise)
        child = Categories(facts.astype(np.int32), GRADES)
        parents: dict[str, Column] = {"G": Categories(group, ("a", "b"))}
        fitted: Any = Ordinal("G", method=method).fit(child, parents)
        known = fitted.abduct(child, parents, rng=rng)
        reference = Categories(np.zeros(rows, dtype=np.int32), ("a", "b"))
        made = np.array(_codes(fitted.predict({"G": reference}, known).column))
        assert (made[group == 0] == facts[group == 0]).all()
        assert (made >= facts).all()
        joint = np.zeros((2, 4, 4))
        treated = group == 1
        np.add.at(joint[0], (facts[treated], truth[treated]), 1)
        np.add.at(joint[1], (facts[treated], made[treated]), 1)
        return float(np.abs(joint[0] - joint[1]).sum() / (2 * treated.sum()))

    errors = [np.mean([error(rows, seed) for seed in range(6)]) for rows in (200, 3200, 51200)]
    assert errors[1] < errors[0] / 2
    assert errors[2] < errors[1] / 2
    assert errors[2] < 0.02


@pytest.mark.parametrize("method", ["logit", "empirical"])
def test_draws_preserve_the_distribution_of_the_reference(method: Any) -> None:
    rng = np.random.default_rng(21)
    rows = 12000
    status = rng.choice(["f", "m"], rows)
    latent = np.where(status == "f", -0.9, 0.0) + rng.logistic(size=rows)
    grades = np.array(GRADES)[np.searchsorted(THRESHOLDS, latent)]
    people = Population.from_frame(
        pd.DataFrame({"A": status, "X": grades}),
        columns=["A"],
        attributes=[Attribute(name="X", kind=AttributeKind.ORDINAL, levels=GRADES)],
    )
    worldview = Worldview({"X": Ordinal("A", method=method)})
    made = worldview.counterfactuals(people, do={"A": "m"}, draws=1, rng=np.random.default_rng(2))
    assert made.couplings == {"X": "monotone coupling"}
    drawn = made.draws[0].categories("X")
    assert drawn.levels == GRADES
    facts = people.categories("X").codes
    reference = np.bincount(facts[status == "m"], minlength=4)
    treated = np.bincount(drawn.codes[status == "f"], minlength=4)
    factual = np.bincount(facts[status == "f"], minlength=4)
    assert stats.chi2_contingency([treated, reference]).pvalue > 0.001
    assert stats.chi2_contingency([factual, reference]).pvalue < 1e-9
    assert (drawn.codes[status == "m"] == facts[status == "m"]).all()
