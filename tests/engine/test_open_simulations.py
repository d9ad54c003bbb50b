"""Open counterfactuals with the true SCM and coupling, beside the true counterfactuals.

The noise of each person is known here, and so is the person that each would have been. An audit
that is told has to find, on average, what an audit finds that only knows the equations and draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import poisson

import mutandis as mm
from mutandis.scm.family import Equation

if TYPE_CHECKING:
    from mutandis.data.columns import Column, Columns
    from mutandis.scm.family import Fitted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mutandis.errors.MutandisWarning"),
]

KINDS = ("categorical", "ordinal", "count")
LEVELS = ("a", "b", "c", "d")
K, TABLES = 50, 30
# what a level is worth to the one who decides
WORTH = np.array([-1.0, 0.0, 0.6, 1.4])


def attribute_of(kind: str, woman: Any, noise: dict[str, Any]) -> Any:
    """The structural equation of z: its value under a status, given a person's noise."""
    if kind == "categorical":  # Gumbel-max
        scores = np.where(woman[:, None] == 1, [0.8, 0.2, -0.2, -0.8], [0.0, 0.3, 0.2, 0.1])
        return np.argmax(scores + noise["gumbel"], axis=1)
    if kind == "ordinal":  # proportional odds
        return np.digitize(noise["logistic"] - 0.9 * woman, [-1.2, 0.2, 1.4])
    return poisson.ppf(noise["uniform"], np.exp(0.9 - 0.5 * woman)).astype(int)


def make_table(kind: str, size: int, seed: int, *, harm: float) -> tuple[Any, Any]:
    """A table, and its true counterfactuals under do(woman := 0)."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    woman = (rng.random(size) < 0.2).astype(int)
    noise = {
        "gumbel": rng.gumbel(size=(size, 4)),
        "logistic": rng.logistic(size=size),
        "uniform": rng.random(size),
    }
    fact, would_be = (attribute_of(kind, status, noise) for status in (woman, np.zeros_like(woman)))
    x = rng.normal(size=size)
    worth = 0.5 * (fact - 2) if kind == "count" else WORTH[fact]
    refused = rng.random(size) < expit(-1.5 * (x + 1.2 * worth - harm * woman))

    def column(z: Any) -> Any:
        return z.astype(float) if kind == "count" else np.array(LEVELS)[z]

    table = {"woman": woman, "x": x, "z": column(fact), "y": np.where(refused, "no", "yes")}
    return table, {"x": x, "z": column(would_be)}


@dataclass(frozen=True, kw_only=True)
class Known(Equation):
    """An equation whose coefficients are known, so that no table has to show them."""

    parents: tuple[str, ...]
    coupling: str
    fitted: Fitted[Any]

    def fit(self, child: Column, parents: Columns) -> Fitted[Any]:
        return self.fitted


def declared(kind: str) -> Any:
    if kind == "categorical":
        return mm.Categorical("woman")
    return mm.Count("woman") if kind == "count" else mm.Ordinal("woman", levels=LEVELS)


def attributes(kind: str) -> dict[str, Any]:
    z: Any = {"categorical": "nominal", "count": "continuous"}.get(kind)
    if kind == "ordinal":
        z = mm.Attribute(name="z", kind=mm.AttributeKind.ORDINAL, levels=LEVELS)
    return {"x": "continuous", "z": z}


@cache
def true_worldview(kind: str) -> mm.Worldview:
    """Estimate the equation where there are so many rows that nothing is left to estimate."""
    table, _ = make_table(kind, 400_000, 99, harm=0.0)
    plan = mm.plan(table, **settings(kind), worldview=mm.Worldview({"z": declared(kind)}))
    assert plan.worldview is not None
    fitted = plan.worldview.fit(plan.population).equations["z"]
    equation = declared(kind)
    return mm.Worldview({"z": Known(parents=("woman",), coupling=equation.coupling, fitted=fitted)})


def settings(kind: str) -> dict[str, Any]:
    return {
        "outcome": "y",
        "negative": "no",
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": attributes(kind),
        "methods": ["cst_matched"],
        "ks": (K,),
    }


def measure(kind: str, seed: int, harm: float, source: str) -> tuple[float, float]:
    """The mean Δp of all who are tested, and the share that is significant after adjustment."""
    table, truth = make_table(kind, 3000, seed, harm=harm)
    chosen: dict[str, Any] = {}
    if source == "point":
        chosen = {"uncertainty": mm.Uncertainty(draws=0)}
    chosen |= (
        {"counterfactuals": truth}
        if source == "true"
        else {"worldview": true_worldview(kind), "seed": seed}
    )
    found = mm.audit(table, **settings(kind), **chosen).evaluate("cst_matched", K)
    tested = ~found.comparison.insufficient
    assert tested.mean() > 0.95
    delta_p = float(found.comparison.delta_p[tested].mean())
    return 100 * delta_p, 100 * float(found.significant_adjusted.mean())


def averaged(kind: str, harm: float, source: str, tables: int = TABLES) -> Any:
    return np.mean([measure(kind, seed, harm, source) for seed in range(tables)], axis=0)


@pytest.mark.parametrize("harm", [0.0, 0.4])
@pytest.mark.parametrize("kind", KINDS)
def test_draws_find_what_the_true_counterfactuals_find(kind: str, harm: float) -> None:
    """Within 3 points, on average over tables: mean Δp, and the share that is significant."""
    truth, drawn = (averaged(kind, harm, source) for source in ("true", "drawn"))
    assert truth[0] > 10
    assert np.abs(drawn - truth).max() < 3


def test_one_point_each_does_not_find_it() -> None:
    """The most likely category is the fact for nearly all, and so nothing is found."""
    truth, point = (averaged("categorical", 0.0, source, 3) for source in ("true", "point"))
    assert truth[0] > point[0] + 10
    assert truth[1] > point[1] + 20
