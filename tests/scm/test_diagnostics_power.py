"""Diagnostics by simulation: few false alarms where all is right, and mistakes that are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.data.population import Population
from mutandis.scm import Diagnosis, Linear, Worldview

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.scm.diagnosis import Finding


Table = dict[str, Any]
Rng = np.random.Generator

NOISES: dict[str, Callable[[Rng, int], Any]] = {
    "normal": lambda rng, rows: rng.normal(size=rows),
    "heavy tails": lambda rng, rows: rng.standard_t(3, size=rows),
    "skewed": lambda rng, rows: rng.lognormal(size=rows),
    "whole numbers": lambda rng, rows: rng.poisson(3, size=rows).astype(float),
    "bounded": lambda rng, rows: rng.random(rows),
}


def _people(table: Any) -> Population:
    return Population.from_frame(pd.DataFrame(table), columns=list(table))


def _check(worldview: Worldview, table: Any, **options: Any) -> Diagnosis:
    return worldview.check(_people(table), **options)


def _lowest(diagnosis: Diagnosis) -> float:
    """Give the smallest adjusted p-value: there is a problem at each alpha above it."""
    return min(check.p_adjusted for check in diagnosis.findings if check.p_adjusted is not None)


# --- false alarms ---------------------------------------------------------------------------------

RIGHT = Worldview(
    {
        "x": Linear("status", "job"),
        "y": Linear("x", "status"),
        "z": Linear("y", "age"),
        "v": Linear("x", "job"),
    }
)


def _right_table(rng: Rng, rows: int, noise: str) -> Table:
    def u() -> Any:
        return NOISES[noise](rng, rows)

    status = np.where(rng.random(rows) < 0.25, "f", "m")
    job = rng.choice(list("abcd"), rows, p=[0.5, 0.3, 0.15, 0.05])
    age = rng.gamma(4, 10, rows).round()
    x = 1.0 * (status == "f") + 2.0 * (job == "a") + u()
    y = 0.5 * x - 1.0 * (status == "f") + u()
    return {
        "status": status,
        "job": job,
        "age": age,
        "x": x,
        "y": y,
        "z": y + 0.1 * age + u(),
        "v": -x + 1.0 * (job == "a") + u(),
    }


@pytest.mark.slow
def test_a_right_worldview_raises_few_false_alarms() -> None:
    """Over 400 tables with noise of five kinds, none of which the checks are told."""
    tables, lowest, p_values = 400, [], []
    for seed in range(tables):
        noise = list(NOISES)[seed % len(NOISES)]
        table = _right_table(np.random.default_rng([seed, 1]), 500, noise)
        diagnosis = _check(RIGHT, table, protected="status", do={"status": "m"})
        lowest.append(_lowest(diagnosis))
        p_values += [check.p_value for check in diagnosis.findings if check.p_value is not None]
    for alpha in (0.01, 0.05):
        error = (alpha * (1 - alpha) / tables) ** 0.5
        assert np.mean(np.array(lowest) < alpha) <= alpha + 3 * error
    # the tests are not kept quiet by being dead: each on its own is near its level
    assert len(p_values) >= 30 * tables
    assert 0.035 < np.mean(np.array(p_values) < 0.05) < 0.06


# --- power ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mistake:
    """A worldview that is wrong in one way, and who has to notice."""

    worldview: Worldview
    effect: Callable[[Any, Any, Rng], Any]
    noticed: Callable[[Finding], bool]


def _residual_problem(on: str, aspect: str) -> Callable[[Any], bool]:
    return lambda check: (check.on, check.aspect) == (on, aspect)


def _normal(rng: Rng, like: Any) -> Any:
    return rng.normal(size=len(like))


BOTH = Worldview({"skill": Linear("age"), "x": Linear("status", "age")})
MISTAKES = {
    "a bend": Mistake(
        BOTH,
        lambda female, age, rng: age + female + 0.15 * age**2 + _normal(rng, age),
        _residual_problem("age", "level"),
    ),
    "a protected cause is missing": Mistake(
        Worldview({"skill": Linear("age"), "x": Linear("age")}),
        lambda female, age, rng: age + 0.4 * female + _normal(rng, age),
        _residual_problem("status", "level"),
    ),
    "noise differs by group": Mistake(
        BOTH,
        lambda female, age, rng: age + female + _normal(rng, age) * np.exp(0.3 * female),
        _residual_problem("status", "spread"),
    ),
    "noise grows with a number": Mistake(
        BOTH,
        lambda female, age, rng: age + female + _normal(rng, age) * np.exp(0.15 * age),
        _residual_problem("age", "spread"),
    ),
    "an effect differs by group": Mistake(
        BOTH,
        lambda female, age, rng: age + female + 0.4 * female * age + _normal(rng, age),
        _residual_problem("status", "interaction"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_found_in_a_thousand_rows(name: str) -> None:
    mistake, found = MISTAKES[name], 0
    for seed in range(50):
        rng = np.random.default_rng([seed, 3])
        female, age = rng.random(1000) < 0.3, rng.normal(size=1000)
        table = {
            "status": np.where(female, "f", "m"),
            "age": 40 + 10 * age,
            "skill": age + rng.normal(size=1000),
            "x": mistake.effect(female, age, rng),
        }
        problems = _check(mistake.worldview, table, protected="status").problems
        found += any(map(mistake.noticed, problems))
    assert found >= 45


@pytest.mark.slow
def test_a_missing_arrow_is_found_in_a_thousand_rows() -> None:
    """`x` follows from `skill` too, which is no parent of it and not the protected attribute."""
    found = 0
    for seed in range(50):
        rng = np.random.default_rng([seed, 4])
        female, age = rng.random(1000) < 0.3, rng.normal(size=1000)
        skill = age + rng.normal(size=1000)
        table = {
            "status": np.where(female, "f", "m"),
            "age": age,
            "skill": skill,
            "x": age + 0.2 * skill + rng.normal(size=1000),
        }
        problems = _check(BOTH, table).problems
        pairs = {
            frozenset([check.on, check.child])
            for check in problems
            if check.aspect == "independence"
        }
        found += frozenset(["skill", "x"]) in pairs
    assert found >= 45


def test_p_values_are_adjusted_together() -> None:
    table = _right_table(np.random.default_rng(22), 300, "normal")
    diagnosis = _check(RIGHT, table, protected="status")
    checks = [
        check
        for check in diagnosis.findings
        if check.p_value is not None and check.p_adjusted is not None
    ]
    assert diagnosis.tests == len(checks)
    first = min(checks, key=lambda check: check.p_value or 0.0)
    assert first.p_adjusted == pytest.approx(min(1.0, len(checks) * (first.p_value or 0.0)))
    aspects = {check.aspect for check in checks}
    assert {"independence", "level"} <= aspects
