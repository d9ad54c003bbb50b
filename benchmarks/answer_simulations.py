"""How often the answer at three scales is wrong, and how often it finds what is there.

Tables are drawn from worlds in which nobody is treated differently, and from worlds with harm. For
each world: how often the one-sided test of the table rejects at 5 %, how often its interval (two
bounds of 5 % each) holds the truth, in how many tables there is any claim about people, and which
part of these claims is false. With harm: near which part of the people harmed by more than .1 a
difference is established. The tables go into benchmarks/answer-simulations.md.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import mutandis as mm
from mutandis.auditing.answer import answer
from mutandis.auditing.run import study_of

if TYPE_CHECKING:
    from collections.abc import Callable

Floats = NDArray[np.float64]
Rng = np.random.Generator

HARM = 0.6  # logits
HARMED = 0.1  # of a person's probability of refusal, from which on harm is to be found


@dataclass(frozen=True)
class Case:
    """A world: attributes of all rows by status, and logits of refusal without harm."""

    draw: Callable[[Rng, NDArray[np.bool_]], dict[str, Floats]]
    logits: Callable[[dict[str, Floats]], Floats]
    protected: float = 0.15
    nominal: tuple[str, ...] = ()
    clusters: int = 0  # employers of whom each has one status


def _normal(number: int, shift: float = 0.5) -> Callable[..., dict[str, Floats]]:
    def draw(rng: Rng, status: NDArray[np.bool_]) -> dict[str, Floats]:
        common = rng.normal(size=len(status))
        columns = {
            f"x{j}": 0.5 * common + rng.normal(size=len(status)) - shift * status
            for j in range(number)
        }
        return {name: np.asarray(values) for name, values in columns.items()}

    return draw


def _transformed(change: Callable[[Floats], Floats]) -> Callable[..., dict[str, Floats]]:
    def draw(rng: Rng, status: NDArray[np.bool_]) -> dict[str, Floats]:
        return {name: change(values) for name, values in _normal(2)(rng, status).items()}

    return draw


def _heavy(rng: Rng, status: NDArray[np.bool_]) -> dict[str, Floats]:
    return {f"x{j}": rng.standard_t(2, size=len(status)) - 0.5 * status for j in range(2)}


def _pareto(rng: Rng, status: NDArray[np.bool_]) -> dict[str, Floats]:
    return {f"x{j}": rng.pareto(3, size=len(status)) * (1 - 0.3 * status) for j in range(2)}


def _names(rng: Rng, status: NDArray[np.bool_]) -> dict[str, Floats]:
    columns = _normal(2)(rng, status)
    return {
        **columns,
        "c0": rng.integers(0, 4, len(status)).astype(float),
        "c1": np.minimum(rng.poisson(1 + status), 3).astype(float),
    }


def _sum(columns: dict[str, Floats], scale: float = 1.0) -> Floats:
    return np.asarray(-scale * sum(v for n, v in columns.items() if n.startswith("x")))


def _interaction(columns: dict[str, Floats]) -> Floats:
    return -columns["x0"] * columns["x1"] - columns["x0"]


def _threshold(columns: dict[str, Floats]) -> Floats:
    return np.where(columns["x0"] + columns["x1"] < 0, 2.0, -2.0)


def _sinusoid(columns: dict[str, Floats]) -> Floats:
    return 1.5 * np.sin(2 * columns["x0"]) - columns["x1"]


def _levels(columns: dict[str, Floats]) -> Floats:
    return _sum(columns) + 0.7 * (columns["c0"] == 2) - 0.5 * columns["c1"]


CASES = {
    "two numbers": Case(_normal(2), _sum),
    "steep": Case(_normal(2), partial(_sum, scale=2.0)),
    "no difference between groups": Case(_normal(2, 0.0), _sum),
    "far apart": Case(_normal(2, 1.0), _sum),
    "35 % protected": Case(_normal(2), _sum, 0.35),
    "65 % protected": Case(_normal(2), _sum, 0.65),
    "5 % protected": Case(_normal(2), _sum, 0.05),
    "ties": Case(_transformed(np.round), _sum),
    "few values": Case(_transformed(lambda v: (v > 0) * 1.0), _sum),
    "names": Case(_names, _levels, 0.3, ("c0", "c1")),
    "interaction": Case(_normal(2), _interaction, 0.3),
    "threshold": Case(_normal(2), _threshold, 0.3),
    "sinusoid": Case(_normal(2), _sinusoid, 0.3),
    "lognormal": Case(_transformed(np.exp), lambda c: 1 - np.log(c["x0"]) - np.log(c["x1"]), 0.3),
    "t with 2 degrees of freedom": Case(_heavy, partial(_sum, scale=0.5), 0.3),
    "Pareto": Case(_pareto, lambda c: 1 - c["x0"] - c["x1"], 0.3),
    "5 attributes": Case(_normal(5), partial(_sum, scale=0.6), 0.3),
    "12 attributes": Case(_normal(12), partial(_sum, scale=0.3), 0.3),
    "rare refusals": Case(_normal(2), lambda c: _sum(c) - 3.5, 0.3),
    "clusters of one status": Case(_normal(2), _sum, 0.5, clusters=120),
}


def simulate(name: str, rows: int, seed: int, harm: float) -> dict[str, float]:
    """Draw one table, answer it, and compare the answer with the truth."""
    case, rng = CASES[name], np.random.default_rng([list(CASES).index(name), seed, rows])
    employer = None
    if case.clusters:
        employer = rng.integers(0, case.clusters, rows)
        status = (np.arange(case.clusters) < case.protected * case.clusters)[employer]
        effect = rng.normal(0, 0.7, case.clusters)[employer]
    else:
        status, effect = rng.random(rows) < case.protected, np.zeros(rows)
    columns = case.draw(rng, status)
    logits = case.logits(columns) + effect
    before, after = _share(logits), _share(logits + harm * status)
    table = pd.DataFrame({**columns, "status": status.astype(int)})
    for each in case.nominal:
        table[each] = [f"level {value:g}" for value in columns[each]]
    table["refused"] = (rng.random(rows) < after).astype(int)
    return _compare(table, case, employer, after - before)


def _share(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logits)))


def _compare(table: pd.DataFrame, case: Case, employer: Any, truth: Floats) -> dict[str, float]:
    names = [each for each in table.columns if each not in ("status", "refused")]
    plan = mm.plan(
        table,
        outcome="refused",
        negative=1,
        protected=mm.Protection("status", value=1, reference=0),
        attributes={n: "nominal" if n in case.nominal else "continuous" for n in names},
        ks=(5,),
    )
    study = study_of(plan)
    outcome = table["refused"].to_numpy(float)
    found = answer(study, study.embed(), None, outcome, binary=True, cluster=employer)
    here = truth[table["status"] == 1]
    kept, effect = found.people.comparable, found.alike
    claimed, harmed = found.established, here > HARMED
    false = claimed & (here <= 0.01)
    average = float(here[kept].mean()) if kept.any() else 0.0
    known = effect.low is not None and effect.high is not None
    return {
        "answered": float(effect.verdict != "insufficient"),
        "rejected": float(effect.verdict == "more often"),
        "covered": float(effect.low <= average <= effect.high) if known else np.nan,
        "any": float(claimed.any()),
        "false": float(false.sum() / claimed.sum()) if claimed.any() else 0.0,
        "found": float((claimed & harmed).sum() / harmed.sum()) if harmed.any() else np.nan,
    }


def main() -> None:
    """Simulate all worlds, and print a table of each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[1500])
    parser.add_argument("--harm", type=float, default=0.0)
    parser.add_argument("--worlds", nargs="*", default=list(CASES))
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    print("| world | rows | answered | rejected | covered | any claim | false | found |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    with ProcessPoolExecutor(asked.processes) as pool:
        for name in asked.worlds:
            for rows in asked.rows:
                task = partial(simulate, name, rows, harm=asked.harm)
                found = pd.DataFrame(pool.map(task, range(asked.tables), chunksize=5))
                cells = " | ".join(f"{100 * each:.1f}" for each in found.mean())
                print(f"| {name} | {rows:,} | {cells} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", mm.MutandisWarning)
    main()
