"""What `check` says about wrong worldviews, and what they do to verdicts.

``python benchmarks/wrong_worldviews.py`` prints the tables of docs/diagnostics.md; ``--write`` puts
them there, between markers; ``--tables 20`` and ``--rows 3000`` are how many data sets are drawn
for each line, and how large they are. Everything is drawn from known equations, so that the true
counterfactuals are known: a significant case is false if it is not significant under them.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import mutandis as mm

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DOCS = Path(__file__).parents[1] / "docs" / "diagnostics.md"
NAMES = ("x1", "x2")
RIGHT = mm.Worldview({"x1": mm.Linear("woman"), "x2": mm.Linear("woman", "x1")})
# what being a woman costs in x1, and in x2 beside what follows from x1
COST = np.array([0.8, 0.3])
K = 50
SETTINGS: dict[str, Any] = {
    "outcome": "granted",
    "negative": 0,
    "protected": mm.Protection("woman", value=1, reference=0),
    "attributes": dict.fromkeys(NAMES, "continuous"),
    "methods": ("cst_without",),
    "ks": (K,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    woman: NDArray[np.bool_]
    facts: Floats
    """Two columns, x1 and x2."""
    counterfactual: Floats
    """The same people, had they been men."""


def effect(rng: np.random.Generator, rows: int) -> People:
    """Draw people whose attributes do follow from being a woman."""
    woman = rng.random(rows) < 0.35
    return _with_effect(woman, rng.normal(size=rows), rng.normal(size=rows), share=1.0)


def _with_effect(woman: NDArray[np.bool_], u1: Floats, u2: Floats, *, share: float) -> People:
    cost = share * COST * woman[:, np.newaxis]
    had_been = np.column_stack([u1, 0.5 * u1 + u2])
    x1 = u1 - cost[:, 0]
    facts = np.column_stack([x1, 0.5 * x1 + u2 - cost[:, 1]])
    return People(woman=woman, facts=facts, counterfactual=had_been)


def confounded(rng: np.random.Generator, rows: int) -> People:
    """Draw people of whom half of the difference in x1 follows from a hidden common cause."""
    hidden = rng.normal(size=rows)
    woman = rng.normal(size=rows) - 0.55 * hidden > 0.44
    u1 = 0.45 * hidden + (1 - 0.45**2) ** 0.5 * rng.normal(size=rows)
    return _with_effect(woman, u1, rng.normal(size=rows), share=0.5)


def selected(rng: np.random.Generator, rows: int) -> People:
    """Draw people on whom being a woman has no effect, but who came into the table by it and x1."""
    many = 4 * rows
    woman = rng.random(many) < 0.35
    u1, u2 = rng.normal(size=(2, many))
    # few men with a low x1 apply, and few women with a high one
    enters = rng.random(many) < 1 / (1 + np.exp(np.where(woman, 1.0, -1.0) * u1))
    rows_in = np.flatnonzero(enters)[:rows]
    return _with_effect(woman[rows_in], u1[rows_in], u2[rows_in], share=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    name: str
    draw: Callable[[np.random.Generator, int], People] = effect
    worldview: mm.Worldview = RIGHT


MISTAKES = (
    Mistake(name="none: the worldview is right"),
    Mistake(
        name="an arrow between x1 and x2 is missing",
        worldview=mm.Worldview({"x1": mm.Linear("woman"), "x2": mm.Linear("woman")}),
    ),
    Mistake(
        name="the arrow between x1 and x2 is turned around",
        worldview=mm.Worldview({"x2": mm.Linear("woman"), "x1": mm.Linear("woman", "x2")}),
    ),
    Mistake(
        name="the arrow from A to x2 is missing",
        worldview=mm.Worldview({"x1": mm.Linear("woman"), "x2": mm.Linear("x1")}),
    ),
    Mistake(name="a hidden common cause of A and x1", draw=confounded),
    Mistake(name="selection by A and x1, taken for an effect", draw=selected),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    alarmed: bool
    large: bool
    off: float
    """How far counterfactuals of x1 and x2 are off, in standard deviations, on average."""
    significant: int
    false: int
    women: int


def run(mistake: Mistake, seed: int, rows: int) -> Outcome:
    rng = np.random.default_rng([seed, 12])
    people = mistake.draw(rng, rows)
    refused = rng.random(rows) < 1 / (1 + np.exp(2 * people.facts.sum(axis=1)))
    table = pd.DataFrame(people.facts, columns=list(NAMES)).assign(
        woman=people.woman.astype(int), granted=(~refused).astype(int)
    )
    audit = mm.audit(table, worldview=mistake.worldview, **SETTINGS)
    supposed = audit.counterfactuals()[list(NAMES)].to_numpy()
    true = table.assign(**dict(zip(NAMES, people.counterfactual.T, strict=True)), woman=0)
    truth = mm.audit(table, counterfactuals=true, **SETTINGS)
    found, right = (
        each.findings("cst_without", k=K)["verdict"].str.startswith("significant").to_numpy()
        for each in (audit, truth)
    )
    women = people.woman
    diagnosis = mistake.worldview.check(table, protected="woman", do={"woman": 0})
    errors = np.abs(supposed - people.counterfactual)[women] / people.facts.std(axis=0)
    return Outcome(
        alarmed=bool(diagnosis.problems),
        large=bool(diagnosis.by_severity("large")),
        off=float(errors.mean()),
        significant=int(found.sum()),
        false=int((found & ~right).sum()),
        women=int(women.sum()),
    )


def table_of(tables: int, rows: int) -> str:
    lines = [
        "| mistake | any problem | a large one | off by | significant | of these false |",
        "|---|---|---|---|---|---|",
    ]
    for mistake in MISTAKES:
        found = [run(mistake, seed, rows) for seed in range(tables)]
        significant = sum(each.significant for each in found)
        cells = [
            mistake.name,
            f"{np.mean([each.alarmed for each in found]):.0%}",
            f"{np.mean([each.large for each in found]):.0%}",
            f"{np.mean([each.off for each in found]):.2f} sd",
            f"{significant / sum(each.women for each in found):.0%}",
            f"{sum(each.false for each in found) / max(significant, 1):.0%}",
        ]
        lines.append(f"| {' | '.join(cells)} |".replace("%", " %"))
    return "\n".join(lines)


def null_of(seed: int, rows: int, *, off: float, sharp: bool) -> tuple[float, bool]:
    """Audit a table without discrimination under counterfactuals that are too high by `off` sd."""
    rng = np.random.default_rng([seed, 5])
    woman, x1 = rng.random(rows) < 0.5, rng.normal(size=rows)
    facts = np.column_stack([x1, 0.5 * x1 + rng.normal(size=rows)])
    score = facts.sum(axis=1)
    refused = score < 0 if sharp else rng.random(rows) < 1 / (1 + np.exp(2 * score))
    table = pd.DataFrame(facts, columns=list(NAMES)).assign(
        woman=woman.astype(int), granted=(~refused).astype(int)
    )
    moved = facts + off * facts.std(axis=0) * woman[:, np.newaxis]
    supposed = table.assign(**dict(zip(NAMES, moved.T, strict=True)), woman=0)
    audit = mm.audit(table, counterfactuals=supposed, **SETTINGS)
    verdict = audit.findings("cst_without", k=K)["verdict"]
    return (
        float(verdict.str.startswith("significant").mean()),
        bool((verdict == "significant-adjusted").any()),
    )


def table_of_nulls(tables: int, rows: int) -> str:
    lines = ["| decisions | off by | significant | tables with any adjusted |", "|---|---|---|---|"]
    for sharp in (False, True):
        for off in (0.0, 0.1, 0.2):
            found = [null_of(seed, rows, off=off, sharp=sharp) for seed in range(tables)]
            shares, some = (np.mean(each) for each in zip(*found, strict=True))
            name = "sharp" if sharp else "noisy"
            lines.append(f"| {name} | {off:g} sd | {shares:.0%} | {some:.0%} |".replace("%", " %"))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    for name, make in (("nulls", table_of_nulls), ("wrong worldviews", table_of)):
        made = make(arguments.tables, arguments.rows)
        print(made)
        if arguments.write:
            _put_into_docs(name, made)


def _put_into_docs(name: str, made: str) -> None:
    page = DOCS.read_text(encoding="utf-8")
    marks = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
    text = re.sub(marks, lambda found: f"{found[1]}{made}\n{found[2]}", page, flags=re.DOTALL)
    DOCS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
