"""How long it takes to fit ten linear equations to a million rows, stage by stage.

Run it with the number of rows: ``python benchmarks/fit.py 1000000``. Ratios are measured in the
same run, so that they mean the same on any machine: against sorting rows by one column after the
other, and against one call of NumPy's least squares for each equation.
"""

from __future__ import annotations

import sys
from time import perf_counter, process_time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from mutandis.data.columns import Categories, Numbers
from mutandis.data.population import Population
from mutandis.numeric.order import canonical_order
from mutandis.scm import Linear, Worldview

if TYPE_CHECKING:
    from collections.abc import Callable

_EQUATIONS = 10
_CAUSES = ("Gender", "Race", "Age")


def simulated(rows: int) -> tuple[Worldview, pd.DataFrame]:
    """Make a chain of attributes with three to five parents each, two of which are names."""
    rng = np.random.default_rng(0)
    table: dict[str, np.ndarray] = {
        "Gender": rng.choice(["female", "male"], rows),
        "Race": rng.choice(list("abcde"), rows),
        "Age": rng.integers(18, 80, rows).astype(np.float64),
    }
    equations: dict[str, Linear] = {}
    for place in range(_EQUATIONS):
        before = [f"X{earlier}" for earlier in range(max(0, place - 2), place)]
        equations[f"X{place}"] = Linear(*_CAUSES, *before)
        mean = 0.1 * table["Age"] - 2.0 * (table["Gender"] == "female")
        for name in before:
            mean += 0.3 * table[name]
        table[f"X{place}"] = mean + rng.normal(0, 5, rows)
    return Worldview(equations), pd.DataFrame(table)


class Time(NamedTuple):
    """Seconds on the clock, and of the processor: others use the machine too."""

    clock: float
    processor: float

    def __str__(self) -> str:
        return f"{self.clock:8.3f} s  {self.processor:8.3f} s of the processor"


def timed(work: Callable[[], object], *, repeats: int = 3) -> Time:
    """Time the fastest of a few runs."""
    times = []
    for _ in range(repeats):
        clock, processor = perf_counter(), process_time()
        work()
        times.append(Time(perf_counter() - clock, process_time() - processor))
    return min(times)


def sort_by_columns(people: Population) -> None:
    columns = people.columns.values()
    np.lexsort([c.codes if isinstance(c, Categories) else c.values for c in columns])


def solve_by_numpy(worldview: Worldview, people: Population) -> None:
    for child, equation in worldview.equations.items():
        design = [np.ones(len(people))]
        for name in equation.parents:
            column = people.columns[name]
            if isinstance(column, Numbers):
                design.append(column.values)
            else:
                design += [column.codes == code for code in range(1, len(column.levels))]
        np.linalg.lstsq(np.column_stack(design), people.numbers(child), rcond=None)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    worldview, table = simulated(rows)
    people = Population.from_frame(table, columns=worldview.names)
    order = canonical_order(people.columns)
    ordered = {name: column.take(order) for name, column in people.columns.items()}

    stages = {
        "canonical order": timed(lambda: canonical_order(people.columns)),
        "rows put in order": timed(lambda: [c.take(order) for c in people.columns.values()]),
        **{
            f"fit of {child}": timed(lambda c=child, e=equation: e.fit(ordered[c], ordered))  # type: ignore[misc]
            for child, equation in worldview.equations.items()
        },
        "Worldview.fit": timed(lambda: worldview.fit(people)),
        "sort by columns": timed(lambda: sort_by_columns(people), repeats=1),
        "NumPy's least squares": timed(lambda: solve_by_numpy(worldview, people), repeats=1),
    }
    print(f"{rows} rows, {_EQUATIONS} linear equations with 3 to 5 parents")
    for stage, time in stages.items():
        print(f"{stage:22}{time}")
    fits = sum(time.processor for stage, time in stages.items() if stage.startswith("fit of"))
    sorting = stages["sort by columns"].processor / stages["canonical order"].processor
    solving = stages["NumPy's least squares"].processor / fits
    print(f"order: {sorting:.1f} times as fast as one column after the other")
    print(f"fits:  {solving:.1f} times as fast as NumPy's least squares")


if __name__ == "__main__":
    main()
