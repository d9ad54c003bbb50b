"""What the distances of docs/distances.md cost, and what they find: all in one run.

``python benchmarks/distances.py`` prints both tables. Times are processor time on one thread, of
building the index and of searching for every protected row; distances take turns, and the fastest
of their runs counts. Verdicts are those of the matched comparison on the loan data, which are
generated, and on the law-school data, where ``--data`` has the file.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from search_data import synthetic

import mutandis as mm
from mutandis.data.population import Population
from mutandis.data.protection import Stratum
from mutandis.engine.study import Study
from mutandis.geometry.compiled import CompiledSearch
from mutandis.geometry.index import Queries, Space
from mutandis.registry import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from search_data import Table

# the tables have numbers, which zhang cannot measure
DISTANCES: tuple[str, ...] = tuple(n for n in names("distance") if n != "zhang")
WEIGHTED = "gower, weighted"
_WARM = 64  # queries after which all kernels are compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A table, placed for one distance."""

    space: Space
    queries: Queries
    fit_seconds: float

    @classmethod
    def of(cls, table: Table, name: str) -> Prepared:
        attributes = table.attributes
        if name == WEIGHTED:
            weights = (1.0, 2.0, 0.5, 3.0)
            attributes = tuple(
                replace(each, weight=weights[place % 4]) for place, each in enumerate(attributes)
            )
        population = Population.from_frame(table.frame, attributes=attributes)
        protected, reference = (
            np.flatnonzero(table.is_protected == side) for side in (True, False)
        )
        distance: Any = name.partition(",")[0]
        study = Study(
            population=population,
            attributes=attributes,
            strata=(Stratum(label="", complainants=protected, control=protected, test=reference),),
            outcomes=table.is_negative,
            ks=(1,),
            distance=distance,
        )
        start = process_time()
        embedding = study.embed()
        metric = embedding.metric
        points, centers = (
            metric.place(embedding.apply(population, rows).points)
            for rows in (reference, protected)
        )
        seconds = process_time() - start
        space, _ = Space.of(points, table.is_negative[reference], metric.in_place)
        return cls(space=space, queries=Queries.outside(centers), fit_seconds=seconds)

    def search(self, k: int, queries: int | None = None) -> tuple[float, str]:
        """Give the seconds that an index and all searches take, and which kernel answered."""
        asked = self.queries if queries is None else self.queries.take(np.arange(queries))
        start = process_time()
        search = CompiledSearch(self.space, threads=1)
        search.neighbourhoods(asked, [k])
        return process_time() - start, search.name


def time_searches(rows: int, k: int, repeats: int) -> Iterator[dict[str, Any]]:
    for source in synthetic([rows], [k]):
        table = source.make()
        if source.columns > 12:
            continue
        names = [WEIGHTED, *DISTANCES]
        if any(each.kind.value == "nominal" for each in table.attributes):
            names.remove("rank-mahalanobis")  # levels without an order
        prepared = {name: Prepared.of(table, name) for name in names}
        for each in prepared.values():
            each.search(k, _WARM)
        taken: dict[str, list[tuple[float, str]]] = {name: [] for name in names}
        for _ in range(repeats):
            for name, each in prepared.items():
                taken[name].append(each.search(k))
        base = min(taken["gower"])[0]
        for name in names:
            seconds, kernel = min(taken[name])
            yield {
                "table": f"{source.name}, {source.columns} columns",
                "distance": name,
                "seconds": round(seconds, 2),
                "of gower": round(seconds / base, 2),
                "fit": round(prepared[name].fit_seconds, 2),
                "kernel": kernel,
            }


def scenarios(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    yield (
        "loan",
        {
            "decisions": mm.datasets.loan(seed=7),
            "outcome": "LoanApproval",
            "negative": -1,
            "protected": mm.Protection("Gender", value=1, reference=0),
            "attributes": {"AnnualSalary": "continuous", "AccountBalance": "continuous"},
            "worldview": mm.Worldview(
                {
                    "AnnualSalary": mm.Linear("Gender"),
                    "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
                }
            ),
        },
    )
    path = folder / "law_school.csv"
    if path.exists():
        frame = pd.read_csv(path, sep="|")
        frame["admitted"] = (0.6 * frame["UGPA"] + 0.4 * frame["LSAT"] >= 20.8).astype(int)
        yield (
            "law school",
            {
                "decisions": frame,
                "outcome": "admitted",
                "negative": 0,
                "protected": mm.Protection("race_nonwhite", value="NonWhite", reference="White"),
                "attributes": {"sex": "nominal", "LSAT": "continuous", "UGPA": "continuous"},
                "worldview": mm.Worldview(
                    {
                        "UGPA": mm.Linear("sex", "race_nonwhite", bounds=(0, 4.2)),
                        "LSAT": mm.Linear("sex", "race_nonwhite", bounds=(10, 48)),
                    }
                ),
            },
        )


def compare_verdicts(folder: Path, sham: int) -> Iterator[dict[str, Any]]:
    for name, settings in scenarios(folder):
        decisions = settings.pop("decisions")
        first: set[Any] = set()
        for distance in DISTANCES:
            audit = mm.audit(
                decisions,
                **settings,
                seed=1,
                similarity=mm.Similarity(distance=distance),
                uncertainty=mm.Uncertainty(tipping=False),
            )
            found = audit.findings()
            cases = set(found.loc[found["verdict"] == "significant-adjusted", "id"])
            first = first or cases
            yield {
                "table": name,
                "distance": distance,
                "complainants": len(found),
                "tested": int((found["verdict"] != "insufficient").sum()),
                "significant-adjusted": len(cases),
                "shared with gower": len(cases & first),
                "largest sham count": audit.sham(sham).largest if sham else None,
            }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--k", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sham", type=int, default=19)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", choices=("times", "verdicts"))
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.only != "verdicts":
        times = time_searches(options.rows, options.k, options.repeats)
        print(pd.DataFrame(list(times)).to_string(index=False))
    if options.only != "times":
        verdicts = compare_verdicts(options.data, options.sham)
        print(pd.DataFrame(list(verdicts)).to_string(index=False))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
