"""How often verdicts stand under the true counterfactuals, by their tipping point λ*.

Worlds with the same worldview, x1 ← A and x2 ← x1, A, in which refusals depend on x1 and x2 and
never on A itself:

- right: the worldview is the truth;
- hidden cause: an unmeasured L acts on A and on x1, so that a part of the estimated effect is L's;
- selection: A has a small effect, and women in the table differ mostly by how they came into it;
- no effect: they differ by that alone;
- loan: the loan applications, whose noise is on record; and with an L that acts on A and on the
  salary (x1);
- any effect: a hidden cause, or selection, with effects of A of several sizes;
- half of it hidden: a hidden cause as strong as A's own effect on x1;
- beside selection: women differ in x1 by selection alone, and A has an effect on x2.

A significant verdict of the audit stands if the same comparison with the true counterfactuals is
significant as well. `python benchmarks/robustness.py` prints the table of docs/robustness.md;
`--scan` prints how the shares depend on the strengths of the worlds.
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import mutandis as mm

if TYPE_CHECKING:
    from collections.abc import Callable

BANDS = (0.0, 0.25, 0.5, 0.75, 1.0)


def expit(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _table(
    rng: np.random.Generator,
    a: np.ndarray,
    x1: np.ndarray,
    effect: float,
    *,
    sharp: bool,
    slope: float = 2.0,
    beside: float = 0.0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Decide on everyone, and give the table with the true counterfactuals.

    `effect` is that of A on x1, and `beside` its further one on x2.
    """
    noise = rng.normal(size=len(a))
    x2 = x1 / 2 + noise - beside * a
    merit = x1 + x2
    refused = merit < 0 if sharp else rng.random(len(a)) < expit(-slope * merit)
    table = pd.DataFrame({"a": a, "x1": x1, "x2": x2, "granted": np.where(refused, "no", "yes")})
    other = x1 + effect * a
    return table, pd.DataFrame({"x1": other, "x2": other / 2 + noise})


def right(rng: np.random.Generator, n: int, *, sharp: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    a = (rng.random(n) < 0.3).astype(int)
    return _table(rng, a, rng.normal(size=n) - 0.6 * a, 0.6, sharp=sharp)


def hidden(
    rng: np.random.Generator,
    n: int,
    *,
    sharp: bool,
    effect: float = 0.3,
    strength: float = 0.8,
    loading: float = 0.6,
    slope: float = 2.0,
    beside: float = 0.0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    cause = rng.normal(size=n)
    a = (rng.random(n) < expit(-1 - strength * cause)).astype(int)
    x1 = loading * cause + (1 - loading**2) ** 0.5 * rng.normal(size=n) - effect * a
    return _table(rng, a, x1, effect, sharp=sharp, slope=slope, beside=beside)


def hidden_any(
    rng: np.random.Generator, n: int, *, sharp: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    return hidden(rng, n, sharp=sharp, effect=float(rng.choice([0.2, 0.3, 0.4, 0.6])))


def selection_any(
    rng: np.random.Generator, n: int, *, sharp: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    return selection(rng, n, sharp=sharp, effect=float(rng.choice([0.0, 0.1, 0.2, 0.3, 0.4])))


def selection(
    rng: np.random.Generator,
    n: int,
    *,
    sharp: bool,
    effect: float = 0.2,
    strength: float = 0.8,
    slope: float = 2.0,
    beside: float = 0.0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    before = rng.normal(size=n)
    a = (rng.random(n) < expit(-1 - strength * before)).astype(int)
    x1 = before - effect * a
    return _table(rng, a, x1, effect, sharp=sharp, slope=slope, beside=beside)


def half_hidden(
    rng: np.random.Generator, n: int, *, sharp: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    return hidden(rng, n, sharp=sharp, effect=0.4)


def beside_selection(
    rng: np.random.Generator, n: int, *, sharp: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    return selection(rng, n, sharp=sharp, effect=0.0, strength=1.2, beside=0.6, slope=1.0)


def no_effect(
    rng: np.random.Generator, n: int, *, sharp: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    return selection(rng, n, sharp=sharp, effect=0.0)


def loan(
    rng: np.random.Generator, n: int, *, sharp: bool, hidden: float = 0.0, effect: float = 1.0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw loan applications as the paper does; L has a deviation of 10,000 in salary."""
    cause = rng.normal(size=n)
    a = (rng.random(n) < expit(-0.6 - hidden * cause)).astype(int)
    u1 = 10_000 * rng.poisson(10, n) + 10_000 * hidden * cause
    u2 = 2_500 * rng.standard_normal(n)
    x1 = u1 - effect * 1_500 * rng.poisson(10, n) * a
    x2 = 0.3 * x1 + u2 - effect * 300 * rng.chisquare(4, n) * a
    merit = x1 + 5 * x2 - 225_000
    refused = merit <= 0 if sharp else rng.random(n) < expit(-merit / 30_000)
    table = pd.DataFrame({"a": a, "x1": x1, "x2": x2, "granted": np.where(refused, "no", "yes")})
    return table, pd.DataFrame({"x1": u1, "x2": 0.3 * u1 + u2})


def loan_hidden(
    rng: np.random.Generator, n: int, *, sharp: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    return loan(rng, n, sharp=sharp, hidden=0.8, effect=0.5)


WORLDS = {
    "right worldview": right,
    "hidden common cause": hidden,
    "selection": selection,
    "no effect": no_effect,
    "loan": loan,
    "loan, hidden cause": loan_hidden,
    "hidden, any effect": hidden_any,
    "selection, any effect": selection_any,
    "half of it hidden": half_hidden,
    "beside selection": beside_selection,
}

# the strengths at which the shares are looked at, one by one; a cause that is x1 itself selects
SCAN: dict[str, Callable[..., tuple[pd.DataFrame, pd.DataFrame]]] = {
    **{f"hidden, effect {e:g}": partial(hidden, effect=e) for e in (0.2, 0.3, 0.4, 0.5, 0.6)},
    **{
        f"beside selection, strength {strength:g}, effect {beside:g}, slope {slope:g}": partial(
            hidden, effect=0.0, loading=1.0, strength=strength, beside=beside, slope=slope
        )
        for strength, beside, slope in (
            *product((0.8, 1.2), (0.4, 0.6), (1.0, 4.0)),
            *((1.2, 0.5, 2.0), (1.2, 0.7, 2.0), (2.0, 0.6, 1.0), (2.0, 0.8, 2.0)),
        )
    },
}


def audit(table: pd.DataFrame, k: int, **options: object) -> mm.Audit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.MutandisWarning)
        return mm.audit(
            table,
            outcome="granted",
            negative="no",
            protected=mm.Protection("a", value=1, reference=0),
            attributes={"x1": "continuous", "x2": "continuous"},
            methods=["cst_matched"],
            ks=(k,),
            uncertainty=mm.Uncertainty(refits=0),
            **options,  # type: ignore[arg-type]
        )


def grade(world: str, rng: np.random.Generator, *, n: int, k: int, sharp: bool) -> pd.DataFrame:
    """Give the tipping points of significant verdicts, and whether each stands in truth."""
    table, truth = {**WORLDS, **SCAN}[world](rng, n, sharp=sharp)
    worldview = mm.Worldview({"x1": mm.Linear("a"), "x2": mm.Linear("x1", "a")})
    found = audit(table, k, worldview=worldview)
    true = audit(table, k, counterfactuals=truth)
    verdicts = [f.evaluate().comparison.significant for f in (found, true)]
    tipping = found.tipping()
    women, estimated = table["a"] == 1, found.counterfactuals()
    moved = [(each["x1"] - table["x1"])[women].mean() for each in (truth, estimated)]
    passes = np.all([tipping[f"stands_without_{x}"] == True for x in ("x1", "x2")], axis=0)  # noqa: E712
    return pd.DataFrame(
        {
            "world": world,
            "decisions": "sharp" if sharp else "noisy",
            "band": pd.cut(tipping["tipping"], BANDS, right=False, include_lowest=True)
            .astype(str)
            .where(tipping["tipping"] < 1, "[0.75, 1.0)"),
            "grade": tipping["grade"],
            "table": int(rng.integers(1 << 40)),
            "without": np.where(passes, "passes all", "fails one"),
            "true share": np.where(
                tipping["tipping"] <= moved[0] / moved[1], "λ* up to it", "λ* above it"
            ),
            "stands": verdicts[1],
        }
    )[verdicts[0]]


def _shares(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """Give the share that stands, its standard error over tables, and how many verdicts."""
    sums = table.groupby([by, "world", "table"])["stands"].agg(["sum", "size"]).reset_index()

    def summarise(part: pd.DataFrame) -> str:
        total, tables = part["size"].sum(), len(part)
        share = part["sum"].sum() / total
        spread = ((part["sum"] - share * part["size"]) ** 2).sum() ** 0.5 / total
        error = spread * (tables / max(tables - 1, 1)) ** 0.5
        return f"{share:.2f} ± {error:.2f} ({total:,})"

    worlds = [each for each in (*WORLDS, *SCAN) if each in set(table["world"])]
    return pd.DataFrame(
        {
            world: {at: summarise(part) for at, part in sums[sums["world"] == world].groupby(by)}
            for world in worlds
        }
    )


def _scan(tables: int, *, n: int, k: int) -> None:
    """Print the shares at each strength: half of the tables with sharp rules, or none."""
    for world in SCAN:
        sharp = tables // 2 if world.startswith("hidden") else 0
        each = [(seed, False) for seed in range(tables - sharp)]
        rows = [
            grade(world, np.random.default_rng([seed, 77]), n=n, k=k, sharp=is_sharp)
            for seed, is_sharp in [*each, *((seed, True) for seed in range(sharp))]
        ]
        print(_shares(pd.concat(rows), "band").T.to_string(header=False), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--k", type=int, default=50)
    parser.add_argument("--worlds", nargs="*")
    parser.add_argument("--scan", action="store_true")
    options = parser.parse_args()
    if options.scan:
        _scan(options.tables, n=options.rows, k=options.k)
        return
    rows = [
        grade(
            world, np.random.default_rng([seed, number]), n=options.rows, k=options.k, sharp=sharp
        )
        for number, world in enumerate(WORLDS)
        if options.worlds is None or world in options.worlds
        for sharp in (False, True)
        if not (sharp and world == "beside selection")  # a sharp rule has no slope
        for seed in range(options.tables)
    ]
    table = pd.concat(rows)
    for by in ("band", "grade", "without", "true share"):
        print(_shares(table, by).to_string(), end="\n\n")
    shown = table.pivot_table("stands", ["decisions", "band"], "world")
    print(shown.round(2).to_string())


if __name__ == "__main__":
    main()
