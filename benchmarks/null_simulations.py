"""What an audit finds where there is nothing to find: null simulations.

``python benchmarks/null_simulations.py`` prints the tables of docs/null-simulations.md;
``--write`` puts them there, between the markers; ``--tables 40`` and ``--rows 5000`` are how many
data sets are drawn for each line, and how large they are. Complainants share neighbours, so that
they are no independent trials: standard errors are over data sets.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
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

DOCS = Path(__file__).parents[1] / "docs" / "null-simulations.md"
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
        for record in audits["real"].count_records():
            shares = found.setdefault((record["method"], record["k"]), {})
            shares.setdefault("cases", []).append(record["share"])
            shares.setdefault("significant", []).append(record["significant_share"])
            adjusted = record["significant_adjusted"] / record["complainants"]
            shares.setdefault("adjusted", []).append(adjusted)
        if "equal-mass" in audits:
            for record in audits["equal-mass"].count_records():
                shares = found[record["method"], record["k"]]
                shares.setdefault("equal-mass", []).append(record["significant_share"])
        if repeats:
            for line in audits["real"].placebo(repeats=repeats, kind="a").lines:
                if line.measure == "significant":
                    found[line.method, line.k].setdefault("placebo", []).append(line.mean)
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
            yield {
                "real": audit(decided, ks),
                "equal-mass": audit(decided, ks, similarity=mm.Similarity(group_size="equal-mass")),
            }

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
    options: dict[str, Any] = {"methods": BOTH, "uncertainty": mm.Uncertainty(placebo=0)}
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
            uncertainty=mm.Uncertainty(placebo=0),
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
        "| protected share | method | k | significant, % | placebo (a), % | equal mass, % |\n"
        "|---:|---|---:|---:|---:|---:|\n"
    )
    return head + "\n".join(
        f"| {line.label} | {line.method} | {line.k} | "
        + " | ".join(_with_error(line, what) for what in ("significant", "placebo", "equal-mass"))
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
    }


def _put(name: str, table: str) -> None:
    text = DOCS.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(\n<!-- end {name} -->)", re.DOTALL)
    DOCS.write_text(pattern.sub(lambda m: m[1] + table + m[2], text), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--only", help="one of the tables, by its name")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    for name, make in _sections(options.tables, options.rows).items():
        if options.only not in (None, name):
            continue
        table = make()
        print(f"{name}\n\n{table}\n", flush=True)
        if options.write:
            _put(name, table)


if __name__ == "__main__":
    main()
