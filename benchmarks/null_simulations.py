"""What an audit finds where there is nothing to find: null simulations.

``python benchmarks/null_simulations.py`` prints the tables of null-simulations.md, and those
on level and power in docs/distances.md; ``--write`` puts them there, between
the markers; ``--tables 40`` and ``--rows 5000`` are how many data sets are drawn for each line, and
how large they are. Complainants share neighbours, so that they are no independent trials: standard
errors are over data sets.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import poisson

import mutandis as mm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

PAGE = Path(__file__).with_name("null-simulations.md")
DOCS = Path(__file__).parents[1] / "docs"
DISTANCES = DOCS / "distances.md"
METHODS = ("st", "cst_without")
SHARES = (0.5, 0.35, 0.15)
WORLDVIEW = mm.Worldview({"salary": mm.Linear("woman"), "balance": mm.Linear("salary", "woman")})
# what being a woman costs, where it costs anything
SALARY_LOSS, BALANCE_LOSS = 15_000.0, 1_200.0

Shape = Literal["loan", "gauss"]


def people(
    rng: np.random.Generator, *, rows: int, share: float, shape: Shape = "loan", loss: bool = False
) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Draw people, and the score they would have without any loss: positive deserves a loan.

    "loan" has the salaries and balances of the paper's men (few salaries, steep balances); "gauss"
    is two plain Gaussians. With `loss`, women's salary and balance are lowered, not their score.
    """
    woman = rng.binomial(1, share, rows)
    if shape == "gauss":
        salary = rng.standard_normal(rows)
        balance = 0.5 * salary + rng.standard_normal(rows)
        score = salary + balance
    else:
        earned = 10_000.0 * rng.poisson(10, rows)
        saved = 2_500.0 * rng.standard_normal(rows)
        lost = float(loss) * woman
        salary = earned - SALARY_LOSS * lost
        balance = 0.3 * salary + saved - BALANCE_LOSS * lost
        score = (2.5 * earned + 5 * saved - 225_000) / 80_000
    return pd.DataFrame({"woman": woman, "salary": salary, "balance": balance}), score


def noisy(score: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Decide at random, in favour of higher scores."""
    return (rng.random(len(score)) < 1 / (1 + np.exp(-2 * score))).astype(np.int64)


def audit(table: pd.DataFrame, ks: Sequence[int], **options: Any) -> mm.Audit:
    """Audit from the record alone, as b() does not enter the two methods."""
    settings: dict[str, Any] = {"worldview": WORLDVIEW, "methods": METHODS, **options}
    return mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous", "balance": "continuous"},
        ks=ks,
        **settings,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One method and k over many data sets: shares of complainants, one number a data set."""

    label: str
    method: str
    k: int
    shares: dict[str, NDArray[np.float64]]

    def mean(self, what: str = "significant") -> float:
        return float(self.shares[what].mean())

    def error(self, what: str = "significant") -> float:
        """Give the standard error of the mean over data sets."""
        values = self.shares[what]
        return float(values.std(ddof=1) / np.sqrt(len(values)))

    def any_adjusted(self) -> float:
        """Give the share of data sets with some rejection after adjustment."""
        return float((self.shares["adjusted"] > 0).mean())


def _gather(label: str, drawn: Iterator[dict[str, mm.Audit]], *, repeats: int = 0) -> list[Line]:
    """Collect the shares of one audit (and its variants) per data set."""
    found: dict[tuple[str, int], dict[str, list[float]]] = {}
    for audits in drawn:
        for record in audits["real"].results.records():
            shares = found.setdefault((record["method"], record["k"]), {})
            shares.setdefault("cases", []).append(record["share"])
            shares.setdefault("significant", []).append(record["significant_share"])
            adjusted = record["significant_adjusted"] / record["complainants"]
            shares.setdefault("adjusted", []).append(adjusted)
        if repeats:
            plan = audits["real"].plan
            evidence = replace(plan.settings.evidence, adjust="none")
            plan = replace(plan, settings=replace(plan.settings, evidence=evidence))
            each = replace(audits["real"], plan=plan)
            for (method, k), shares in found.items():
                sham = each.sham(repeats, method=method, k=k)
                shares.setdefault("sham", []).append(float(np.mean(sham.found)) / sham.people)
    return [
        Line(
            label=label,
            method=method,
            k=k,
            shares={what: np.array(values) for what, values in shares.items()},
        )
        for (method, k), shares in found.items()
    ]


def simulate_noisy(*, tables: int, rows: int, ks: Sequence[int] = (15, 30, 50)) -> list[Line]:
    """(a) Decisions are noisy, and the status has no effect on anything."""

    def drawn() -> Iterator[dict[str, mm.Audit]]:
        for seed in range(tables):
            rng = np.random.default_rng([1, seed])
            table, score = people(rng, rows=rows, share=0.35)
            yield {"real": audit(table.assign(granted=noisy(score, rng)), ks)}

    return _gather("noisy", drawn())


def simulate_sharp(
    *,
    tables: int,
    rows: int,
    share: float,
    shape: Shape = "loan",
    ks: Sequence[int] = (15, 50, 100),
    repeats: int = 5,
) -> list[Line]:
    """(b) Decisions follow a sharp rule, and the status has no effect on anything."""

    def drawn() -> Iterator[dict[str, mm.Audit]]:
        for seed in range(tables):
            rng = np.random.default_rng([2, seed])
            table, score = people(rng, rows=rows, share=share, shape=shape)
            decided = table.assign(granted=(score > 0).astype(np.int64))
            yield {"real": audit(decided, ks)}

    return _gather(f"{share:g}", drawn(), repeats=repeats)


def simulate_compensating(*, tables: int, rows: int, ks: Sequence[int] = (15,)) -> list[Line]:
    """(c) The status costs salary and balance, and noisy decisions make up for exactly that."""

    def drawn() -> Iterator[dict[str, mm.Audit]]:
        for seed in range(tables):
            rng = np.random.default_rng([3, seed])
            table, score = people(rng, rows=rows, share=0.35, loss=True)
            yield {"real": audit(table.assign(granted=noisy(score, rng)), ks)}

    return _gather("compensating", drawn())


BOTH = ("cst_without", "cst_matched")
# where the two statuses differ although nothing is due to the status: in standard deviations
SELECTED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A world in which nobody is discriminated.

    `differs`: "not" at all; by "selection", which is no effect of the status; or because the status
    costs something that decisions make up for ("compensation").
    """

    differs: Literal["not", "selection", "compensation"]
    sharp: bool
    share: float
    rows: int

    @property
    def label(self) -> str:
        what = {
            "not": "no difference",
            "selection": "selection",
            "compensation": "compensated loss",
        }[self.differs]
        return f"{what}, {'sharp' if self.sharp else 'noisy'}"

    def draw(self, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Draw a table, and its true counterfactuals had everybody been a man."""
        table, score = people(rng, rows=self.rows, share=self.share, shape="gauss")
        would_be = table[["salary", "balance"]].copy()
        if self.differs == "selection":
            moved = SELECTED * table["woman"]
            table = table.assign(salary=table["salary"] - moved)
            would_be = table[["salary", "balance"]].copy()
            score = score - moved.to_numpy()
        elif self.differs == "compensation":
            lost = SELECTED * table["woman"]
            table = table.assign(salary=table["salary"] - lost, balance=table["balance"] - lost)
        decided = score > 0 if self.sharp else noisy(score, rng) == 1
        return table.assign(granted=decided.astype(np.int64)), would_be


def simulate_both(
    world: World, *, tables: int, ks: Sequence[int] = (15, 50, 100), estimated: bool = False
) -> list[Line]:
    """Audit the record by the paper's comparison and by the matched one, k up to n_c / 3."""
    options: dict[str, Any] = {"methods": BOTH}
    sizes = [k for k in ks if k <= world.rows * world.share / 3]

    def drawn() -> Iterator[dict[str, mm.Audit]]:
        for seed in range(tables):
            rng = np.random.default_rng([4, seed])
            table, would_be = world.draw(rng)
            if estimated:
                yield {"real": audit(table, sizes, **options)}
            else:
                ready = {"worldview": None, "counterfactuals": would_be}
                yield {"real": audit(table, sizes, **ready, **options)}

    return _gather(f"{world.label} | {world.share:g}", drawn())


# --- few rows, an estimated worldview, the default k --------------------------------------------

Kind = Literal["normal", "heavy", "grid", "count", "ordinal", "categorical"]
LEVELS = ("a", "b", "c", "d")
WORTH = np.array([-1.2, 0.0, 0.7, 1.7])  # what a level is worth to the one who decides
STEP = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallWorld:
    """A small table in which the status costs something that decisions make up for exactly.

    Two attributes, x and z: Gaussian, heavy-tailed (t with two degrees of freedom), or on a grid
    of few values; or a Gaussian x and a z that the facts leave open.
    """

    kind: Kind
    sharp: bool
    share: float
    rows: int

    @property
    def label(self) -> str:
        what = {
            "normal": "two normal attributes",
            "heavy": "two attributes, t(2)",
            "grid": "two attributes in steps of .75 sd",
        }.get(self.kind, f"one {self.kind} attribute, drawn")
        return f"{what}, {'sharp' if self.sharp else 'noisy'} | {self.share:g}"

    @property
    def is_pair(self) -> bool:
        """Whether the facts determine both attributes."""
        return self.kind in {"normal", "heavy", "grid"}

    @property
    def times(self) -> float:
        """How many times as many tables are drawn as of others."""
        if self.kind == "heavy" and self.sharp:
            # few of them have many cases
            return 4.0 if self.share == 0.2 else 1.5
        return 1.0 if self.sharp else 2.5

    def audit(self, seed: int) -> mm.Audit:
        """Audit the seed-th table."""
        rng = np.random.default_rng([6, get_args(Kind).index(self.kind), seed])
        woman = (rng.random(self.rows) < self.share).astype(int)
        pair = self._pair if self.is_pair else self._open
        columns, equations, attributes, score = pair(rng, woman)
        granted = score > 0 if self.sharp else rng.random(self.rows) < expit(2 * score)
        k = min(50, int(woman.sum()) // 3, int((1 - woman).sum()) // 5)
        return mm.audit(
            {"woman": woman, **columns, "granted": granted.astype(int)},
            outcome="granted",
            negative=0,
            protected=mm.Protection("woman", value=1, reference=0),
            attributes=attributes,
            worldview=mm.Worldview(equations),
            methods=["cst_matched"],
            ks=(k,),
            seed=seed,
        )

    def _pair(self, rng: np.random.Generator, woman: NDArray[np.int64]) -> Any:
        def noise() -> Any:
            heavy = self.kind == "heavy"
            return rng.standard_t(2, self.rows) if heavy else rng.standard_normal(self.rows)

        x = noise()
        z, loss = 0.5 * x + noise(), SELECTED
        if self.kind == "grid":
            x, z, loss = np.round(x / STEP) * STEP, np.round(z / STEP) * STEP, STEP
        columns = {"x": x - loss * woman, "z": z - loss * woman}
        equations = {"x": mm.Linear("woman"), "z": mm.Linear("x", "woman")}
        return columns, equations, {"x": "continuous", "z": "continuous"}, x + z

    def _open(self, rng: np.random.Generator, woman: NDArray[np.int64]) -> Any:
        x, kind = rng.standard_normal(self.rows), self.kind
        attribute: Any = {"count": "continuous", "categorical": "nominal"}.get(kind)
        equation: Any = {"count": mm.Count, "categorical": mm.Categorical}.get(kind)
        if kind == "count":
            noise = rng.random(self.rows)

            def value(status: NDArray[np.int64]) -> Any:
                return poisson.ppf(noise, np.exp(0.9 - 0.5 * status)).astype(int)
        elif kind == "ordinal":
            noise = rng.logistic(size=self.rows)

            def value(status: NDArray[np.int64]) -> Any:
                return np.digitize(noise - 0.9 * status, [-1.2, 0.2, 1.4])

            attribute = mm.Attribute(name="z", kind=mm.AttributeKind.ORDINAL, levels=LEVELS)
        else:
            noise = rng.gumbel(size=(self.rows, 4))

            def value(status: NDArray[np.int64]) -> Any:
                women, men = [0.8, 0.2, -0.2, -0.8], [0.0, 0.3, 0.2, 0.1]
                return np.argmax(np.where(status[:, None] == 1, women, men) + noise, axis=1)

        fact, would_be = value(woman), value(np.zeros_like(woman))
        worth = 0.6 * (would_be - 2) if kind == "count" else WORTH[would_be]
        column = fact.astype(float) if kind == "count" else np.array(LEVELS)[fact]
        made = equation("woman") if equation else mm.Ordinal("woman", levels=LEVELS)
        return {"x": x, "z": column}, {"z": made}, {"x": "continuous", "z": attribute}, x + worth


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallLine:
    """The matched comparison at the default k over many small tables."""

    world: SmallWorld
    k: float
    significant: NDArray[np.float64]
    adjusted: NDArray[np.float64]
    tested: NDArray[np.float64]

    def any_adjusted(self) -> tuple[float, float]:
        """Give the share of tables with some rejection after adjustment, and its error."""
        share = float((self.adjusted > 0).mean())
        return share, float(np.sqrt(share * (1 - share) / len(self.adjusted)))


def simulate_small(world: SmallWorld, *, tables: int) -> SmallLine:
    """Audit many small tables in which nobody is discriminated."""
    found = [world.audit(seed).evaluate() for seed in range(tables)]
    return SmallLine(
        world=world,
        k=float(np.median([each.k for each in found])),
        significant=np.array([each.comparison.significant.mean() for each in found]),
        adjusted=np.array([each.significant_adjusted.mean() for each in found]),
        tested=np.array([1 - each.comparison.insufficient.mean() for each in found]),
    )


# --- every distance and every measure: level and power ------------------------------------------

HARM = (
    0.8  # in the score of two attributes with a deviation of 1.8, where there is something to find
)
CUTS = (-1.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceWorld:
    """People with two numbers, or names of four levels instead, and a name of two levels.

    The statuses differ as in `World`; then `harm` lowers women's scores.
    """

    names: bool
    differs: Literal["not", "selection", "compensation"]
    sharp: bool
    harm: float = 0.0
    share: float = 0.25

    @property
    def label(self) -> str:
        what = {"not": "no difference", "compensation": "loss"}.get(self.differs, self.differs)
        return f"{what}, {'sharp' if self.sharp else 'noisy'}"

    @property
    def attributes(self) -> dict[str, str]:
        kind = "nominal" if self.names else "continuous"
        return {"x": kind, "z": kind, "region": "nominal"}

    def draw(self, rng: np.random.Generator, rows: int) -> tuple[Any, Any, NDArray[np.float64]]:
        """Draw a table, its true counterfactuals, and by how much refusals are likelier."""
        woman = (rng.random(rows) < self.share).astype(int)
        x = rng.standard_normal(rows)
        z, region = 0.5 * x + rng.standard_normal(rows), (rng.random(rows) < 0.3).astype(int)
        if self.differs == "selection":
            x = x - SELECTED * woman
        lost = SELECTED * woman if self.differs == "compensation" else np.zeros(rows)
        would_be, fact = self._columns(x, z, region), self._columns(x - lost, z - lost, region)
        worth = self._worth(x) + self._worth(z) + 0.8 * region
        chances = [self._chance(worth), self._chance(worth - self.harm * woman)]
        granted = (rng.random(rows) < chances[1]).astype(int)
        return {"woman": woman, **fact, "granted": granted}, would_be, chances[0] - chances[1]

    def _columns(self, x: Any, z: Any, region: Any) -> dict[str, Any]:
        shown = (
            (lambda values: np.digitize(values, CUTS)) if self.names else (lambda values: values)
        )
        return {"x": shown(x), "z": shown(z), "region": region}

    def _worth(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.digitize(values, CUTS) - 1.5 if self.names else values

    def _chance(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        return (score > 0).astype(float) if self.sharp else expit(2 * score)


Measured = dict[str, "NDArray[np.float64]"]


def _matched(
    table: Any, would_be: Any, attributes: Any, harmed: NDArray[np.bool_], **options: Any
) -> dict[str, float]:
    """Audit by the matched comparison with the true counterfactuals, and give shares of women."""
    found = mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes=attributes,
        counterfactuals=would_be,
        methods=["cst_matched"],
        ks=(50,),
        uncertainty=mm.Uncertainty(tipping=False),
        **options,
    ).evaluate(depth="significance")
    of_harmed = harmed[table["woman"] == 1]
    return {
        "tested": 1 - float(found.comparison.insufficient.mean()),
        "significant": float(found.comparison.significant.mean()),
        "adjusted": float(found.significant_adjusted.mean()),
        "found": float(found.significant_adjusted[of_harmed].mean()) if of_harmed.any() else 0.0,
    }


def simulate_distance(
    name: str, world: DistanceWorld, *, tables: int, rows: int = 1_000
) -> Measured:
    """Give what the matched comparison finds with a distance, a number per table."""
    drawn = []
    for seed in range(tables):
        table, would_be, harm = world.draw(np.random.default_rng([7, seed]), rows)
        options: Any = {"similarity": mm.Similarity(distance=name)}  # type: ignore[arg-type]
        drawn.append(_matched(table, would_be, world.attributes, harm > 0.1, **options))
    return {what: np.array([each[what] for each in drawn]) for what in drawn[0]}


TAUS = {"risk-difference": 0.1, "risk-ratio": 1.25, "selection-ratio": 0.8, "odds-ratio": 1.5}


def _refused(measure: str, value: float, p_test: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the share of refusals that lies apart from another by so much of a measure."""
    if measure == "risk-difference":
        return p_test + value
    if measure == "risk-ratio":
        return p_test * value
    if measure == "selection-ratio":
        return 1 - (1 - p_test) * value
    odds = value * p_test / (1 - p_test)
    return odds / (1 + odds)


def simulate_measure(
    measure: str,
    apart: tuple[str, float],
    *,
    between: tuple[float, float],
    tables: int,
    rows: int = 1_000,
) -> Measured:
    """Give what is found beyond τ of a measure, where every woman is treated `apart` from a man.

    A quarter are women, and the status costs something in both attributes. Men are refused with
    probabilities `between` two.
    """
    drawn = []
    for seed in range(tables):
        rng = np.random.default_rng([8, seed])
        woman = (rng.random(rows) < 0.25).astype(int)
        x = rng.standard_normal(rows)
        z = 0.5 * x + rng.standard_normal(rows)
        p_test = between[0] + (between[1] - between[0]) * expit(-2 * (x + z))
        refused = np.where(woman == 1, _refused(*apart, p_test), p_test)
        table = {"woman": woman, "x": x - SELECTED * woman, "z": z - SELECTED * woman}
        table["granted"] = (rng.random(rows) >= refused).astype(int)
        attributes = {"x": "continuous", "z": "continuous"}
        evidence = mm.Evidence(measure=measure)  # type: ignore[arg-type]
        options: Any = {"tau": TAUS[measure], "evidence": evidence}
        drawn.append(_matched(table, {"x": x, "z": z}, attributes, woman == 1, **options))
    return {what: np.array([each[what] for each in drawn]) for what in drawn[0]}


# --- tables ------------------------------------------------------------------------------------


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _with_error(line: Line, what: str) -> str:
    return f"{_percent(line.mean(what))} ± {_percent(line.error(what))}"


def _plain_table(lines: list[Line]) -> str:
    head = (
        "| method | k | Δp > 0, % | significant, % | some BH rejection, % of tables |\n"
        "|---|---:|---:|---:|---:|\n"
    )
    return head + "\n".join(
        f"| {line.method} | {line.k} | {_with_error(line, 'cases')} | "
        f"{_with_error(line, 'significant')} | {_percent(line.any_adjusted())} |"
        for line in lines
    )


def _sharp_table(lines: list[Line]) -> str:
    head = (
        "| protected share | method | k | significant, % | sham audits, % |\n"
        "|---:|---|---:|---:|---:|\n"
    )
    return head + "\n".join(
        f"| {line.label} | {line.method} | {line.k} | "
        + " | ".join(_with_error(line, what) for what in ("significant", "sham"))
        + " |"
        for line in lines
    )


def _both_table(lines: list[Line]) -> str:
    """Set the paper's comparison beside the matched one: significant / after adjustment / any."""
    head = (
        "| world | protected | k | CST w/o: significant | adjusted | any | "
        "matched: significant | adjusted | any |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    )

    def cells(line: Line) -> str:
        return " | ".join(
            [
                _with_error(line, "significant"),
                _percent(line.mean("adjusted")),
                _percent(line.any_adjusted()),
            ]
        )

    by_method = {(line.label, line.k, line.method): line for line in lines}
    return head + "\n".join(
        f"| {label} | {k} | {cells(line)} | {cells(by_method[label, k, BOTH[1]])} |"
        for (label, k, method), line in by_method.items()
        if method == BOTH[0]
    )


def _small_table(lines: Iterator[SmallLine]) -> str:
    head = (
        "| world | protected | k | could be compared | significant | adjusted | any |\n"
        "|---|---:|---:|---:|---:|---:|---:|\n"
    )

    def row(line: SmallLine) -> str:
        error = line.significant.std(ddof=1) / np.sqrt(len(line.significant))
        share, doubt = line.any_adjusted()
        said = (
            f"| {line.world.label} | {line.k:.0f} | {_percent(float(line.tested.mean()))} | "
            f"{_percent(float(line.significant.mean()))} ± {_percent(float(error))} | "
            f"{_percent(float(line.adjusted.mean()))} | {_percent(share)} ± {_percent(doubt)} |"
        )
        print(said, flush=True)
        return said

    return head + "\n".join(row(line) for line in lines)


def _cell(found: Measured, what: str) -> str:
    values = found[what]
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{_percent(float(values.mean()))} ± {_percent(float(error))}"


def _any(found: Measured) -> str:
    return _percent(float((found["adjusted"] > 0).mean()))


def _distances_for(*, names: bool) -> list[str]:
    """Give the distances that can measure such attributes."""
    refused = "rank-mahalanobis" if names else "zhang"
    return [each for each in names("distance") if each != refused]


def _level_table(*, names: bool, tables: int, rows: int) -> str:
    worlds = [
        DistanceWorld(names=names, differs=differs, sharp=sharp)  # type: ignore[arg-type]
        for differs, sharp in product(("not", "selection", "compensation"), (False, True))
    ]
    head = f"| `distance` | {' | '.join(world.label for world in worlds)} |\n"
    lines = []
    for name in _distances_for(names=names):
        cells = []
        for world in worlds:
            found = simulate_distance(name, world, tables=tables, rows=rows)
            cells.append(f"{_cell(found, 'significant')} / {_any(found)}")
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return head + f"|---|{'---:|' * len(worlds)}\n" + "\n".join(lines)


def _power_table(*, tables: int, rows: int) -> str:
    head = (
        "| attributes | `distance` | noisy: compared | noisy: found | sharp: compared | "
        "sharp: found |\n|---|---|---:|---:|---:|---:|\n"
    )
    lines = []
    for names in (False, True):
        for name in _distances_for(names=names):
            cells = []
            for sharp in (False, True):
                world = DistanceWorld(names=names, differs="compensation", sharp=sharp, harm=HARM)
                found = simulate_distance(name, world, tables=tables, rows=rows)
                cells += [_percent(float(found["tested"].mean())), _cell(found, "found")]
            what = "names" if names else "numbers"
            lines.append(f"| {what} | `{name}` | {' | '.join(cells)} |")
    return head + "\n".join(lines)


def _measures_table(*, tables: int, rows: int) -> str:
    head = (
        "| men refused | measure | τ | at τ: significant | at τ: any adjusted | "
        "odds × 3: significant | odds × 3: adjusted | Δp = .3: significant | Δp = .3: adjusted |\n"
        "|---|---|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    lines = []
    for between in ((0.15, 0.5), (0.02, 0.1)):
        for measure, tau in TAUS.items():
            at, odds, apart = (
                simulate_measure(measure, each, between=between, tables=tables, rows=rows)
                for each in ((measure, tau), ("odds-ratio", 3.0), ("risk-difference", 0.3))
            )
            cells = [_cell(at, "significant"), _any(at)]
            cells += [_cell(each, what) for each in (odds, apart) for what in _POWER]
            men = f"{between[0]:.0%} to {between[1]:.0%}"
            lines.append(f"| {men} | `{measure}` | {tau:g} | {' | '.join(cells)} |")
    return head + "\n".join(lines)


_POWER = ("significant", "adjusted")


def _small_worlds(rows: int) -> Iterator[SmallWorld]:
    for sharp, kind, share in product((False, True), get_args(Kind), (0.05, 0.2, 0.5)):
        yield SmallWorld(kind=kind, sharp=sharp, share=share, rows=rows)


def _worlds(rows: int) -> Iterator[World]:
    for differs, sharp, share in product(
        ("not", "selection", "compensation"), (False, True), (0.05, 0.15, 0.35, 0.5)
    ):
        yield World(differs=differs, sharp=sharp, share=share, rows=rows)  # type: ignore[arg-type]


def _sections(tables: int, rows: int) -> dict[str, Callable[[], str]]:
    def sharp(shape: Shape, size: int) -> Callable[[], str]:
        return lambda: _sharp_table(
            [
                line
                for share in SHARES
                for line in simulate_sharp(tables=tables, rows=size, share=share, shape=shape)
            ]
        )

    def both(size: int, *, estimated: bool) -> Callable[[], str]:
        return lambda: _both_table(
            [
                line
                for world in _worlds(size)
                if not (estimated and world.differs == "selection")
                for line in simulate_both(world, tables=tables, estimated=estimated)
            ]
        )

    many = {"tables": 4 * tables, "rows": rows // 5}
    return {
        "both": both(3 * rows // 5, estimated=False),
        "both-estimated": both(3 * rows // 10, estimated=True),
        "small": lambda: _small_table(
            simulate_small(world, tables=round(world.times * tables))
            for world in _small_worlds(rows // 12)
        ),
        "noisy": lambda: _plain_table(simulate_noisy(tables=tables, rows=rows)),
        "sharp-loan": sharp("loan", rows),
        "sharp-gauss": sharp("gauss", rows),
        "sharp-gauss-small": sharp("gauss", 3 * rows // 5),
        "compensating": lambda: _plain_table(simulate_compensating(tables=tables, rows=rows)),
        "distances-numbers": lambda: _level_table(names=False, **many),
        "distances-names": lambda: _level_table(names=True, **many),
        "distances-power": lambda: _power_table(**many),
        "measures": lambda: _measures_table(**many),
    }


def _put(name: str, table: str) -> None:
    page = {"distances": DISTANCES}.get(name.partition("-")[0], PAGE)
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(\n<!-- end {name} -->)", re.DOTALL)
    page.write_text(pattern.sub(lambda m: m[1] + table + m[2], text), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--only", help="one of the tables, by its name")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    for name, make in _sections(options.tables, options.rows).items():
        if options.only not in (None, name):
            continue
        table = make()
        print(f"{name}\n\n{table}\n", flush=True)
        if options.write:
            _put(name, table)


if __name__ == "__main__":
    main()
