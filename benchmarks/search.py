"""How fast our exact search is beside scikit-learn, SciPy and faiss, in one run on the same data.

``make bench`` runs it, ``python benchmarks/search.py --quick`` gives a first impression. For every
table the protected rows ask for their k nearest reference rows; the searches take turns, and the
fastest of their runs counts, so that a noisy machine disturbs all of them alike. Peers, and ours
where it is slow, are timed on a sample of the complainants; the table says on how many.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass, field
from math import log, sqrt
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from search_data import Source, published, synthetic
from search_engines import (
    PEERS,
    DisagreementError,
    Engine,
    Ours,
    Vectors,
    check_agreement,
    is_installed,
    peers_of,
)
from search_tables import growth_table, speed_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

# queries with which every search is tried first, and compared with ours
_PILOT = 8
# seconds that a trial must last to tell which of a peer's algorithms is the fastest
_SETTLED = 0.1
# the last tables may overrun their share by some preparation: what is kept back for that
_RESERVE = 0.07
# a build that would take more than this part of a table's time is not begun, unless it is short
_BUILD_SHARE = 0.15
_SHORT_BUILD = 0.5
# an index over one row in so many foretells how long the whole one takes
_FORETELL = 16
# ours may take so much of the time for searching; the peers share the rest
_OUR_SHARE = 0.4


@dataclass(slots=True, kw_only=True)
class Timing:
    """What was measured of one search on one table at one k."""

    engine: str = ""
    status: str = "measured"
    build_seconds: float = 0.0
    sample: int = 0
    seconds: list[float] = field(default_factory=list)
    search_us: float | None = None
    with_build_us: float | None = None
    ratio_search: float | None = None
    ratio_with_build: float | None = None


@dataclass(slots=True, kw_only=True)
class Case:
    """One table at one k."""

    data: str
    shape: str
    rows: int
    columns: int
    k: int
    complainants: int = 0
    status: str = "measured"
    backend: str = ""
    embedding_seconds: float = 0.0
    ours: Timing | None = None
    peers: dict[str, Timing] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How thoroughly to measure."""

    minutes: float
    repeats: int
    peer_sample: int


@dataclass(slots=True)
class Built:
    """A search whose index is ready."""

    engine: Engine
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    settings = Settings(
        minutes=options.minutes, repeats=options.repeats, peer_sample=options.peer_sample
    )
    sources = [*published(options.data), *synthetic(options.rows, options.k)]
    cases = measure(
        [source for source in sources if options.only in source.name], settings=settings
    )
    growth = growth_of(cases)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    written = {
        "cores": os.cpu_count(),
        "settings": asdict(settings),
        "cases": [asdict(case) for case in cases],
        "growth": growth,
    }
    options.json.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    _print_tables(written)
    print(f"Written to {options.json}.")
    return int(any(_is_broken(case) for case in cases))


def measure(sources: Sequence[Source], *, settings: Settings) -> list[Case]:
    """Measure one table after the other, each in its share of the time that is left."""
    _warm_up()
    end = perf_counter() + 60 * settings.minutes * (1 - _RESERVE)
    cases: list[Case] = []
    pace = 0.0  # seconds that the preparation of a cell took so far: what the next one needs
    for place, source in enumerate(sources):
        left = end - perf_counter()
        weights = [sqrt(later.rows) for later in sources[place:] if not later.missing]
        if source.missing:
            cases += _skipped(source, source.missing)
        elif left < pace * source.rows * source.columns or left <= 0:
            cases += _skipped(source, "skipped: no time left (--minutes)")
        else:
            print(f"{source.name}, {source.rows:,} rows", file=sys.stderr, flush=True)
            found, prepared = _measure_table(
                source, settings, seconds=left * weights[0] / sum(weights)
            )
            pace = max(pace, prepared / (source.rows * source.columns))
            cases += found
    return cases


def _warm_up() -> None:
    """Search two tables once, so that none pays for imports, threads and loading kernels."""
    settings = Settings(minutes=0, repeats=1, peer_sample=_PILOT)
    (source,) = synthetic([1_000], [10], shapes=[(2, 1)], dependences=["independent"])
    _measure_table(source, settings, seconds=0)
    (source,) = synthetic([60_000], [10], shapes=[(6, 0)], dependences=["independent"])
    table = source.make()
    ours = Ours(table, np.flatnonzero(table.is_protected))
    ours.build()
    ours.search(len(ours.order), 10)


def growth_of(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Give the exponent with which our whole cost (build and all complainants) grows with rows."""
    totals: dict[tuple[str, int], dict[int, float]] = {}
    for case in cases:
        if case.shape and case.ours and case.ours.with_build_us:
            by_rows = totals.setdefault((case.shape, case.k), {})
            by_rows[case.rows] = case.ours.with_build_us * case.complainants
    return [
        {
            "data": shape,
            "k": k,
            "from_rows": min(by_rows),
            "to_rows": max(by_rows),
            "exponent": log(by_rows[max(by_rows)] / by_rows[min(by_rows)])
            / log(max(by_rows) / min(by_rows)),
        }
        for (shape, k), by_rows in totals.items()
        if len(by_rows) > 1
    ]


def _measure_table(
    source: Source, settings: Settings, *, seconds: float
) -> tuple[list[Case], float]:
    """Measure one table at every k; tell how long it took until the first search could start."""
    start = perf_counter()
    table = source.make()
    # a sample is the first of them, so they are shuffled once
    order = np.random.default_rng(0).permutation(np.flatnonzero(table.is_protected))
    ours = Ours(table, order)
    # twice: what our engine prepares at its first use in a process is no part of a build
    built = min(_build(ours), _build(ours), key=lambda built: built.seconds)
    prepared = perf_counter() - start
    statuses, ready = _build_peers(
        peers_of(Vectors.of(table, order)), reference=len(table.frame) - len(order), seconds=seconds
    )
    cases = []
    for place, k in enumerate(source.ks):
        left = max(0.0, start + seconds - perf_counter())
        case = Case(
            data=source.name,
            shape=source.shape,
            rows=len(table.frame),
            columns=source.columns,
            k=k,
            complainants=len(order),
            embedding_seconds=ours.embedding_seconds,
            peers={peer: Timing(status=status) for peer, status in statuses.items()},
        )
        _measure_case(case, built, ready, settings, seconds=left / (len(source.ks) - place))
        case.backend = ours.backend
        cases.append(case)
    return cases, prepared


def _build(engine: Engine) -> Built:
    start = perf_counter()
    engine.build()
    return Built(engine, perf_counter() - start)


def _build_peers(
    peers: dict[str, list[Engine]], *, reference: int, seconds: float
) -> tuple[dict[str, str], dict[str, list[Built]]]:
    """Build what is installed and can be built in time; say of every other peer why not."""
    statuses: dict[str, str] = {}
    ready: dict[str, list[Built]] = {}
    for peer, engines in peers.items():
        if not is_installed(peer):
            statuses[peer] = "not installed"
            continue
        ready[peer], too_slow = [], []
        for engine in engines:
            foretold = _foretell(engine, reference)
            if foretold > max(_SHORT_BUILD, _BUILD_SHARE * seconds):
                too_slow.append(f"{engine.name} needs about {foretold:.0f} s to build")
            else:
                ready[peer].append(_build(engine))
        skipped = f"skipped: {', '.join(too_slow)}"
        statuses[peer] = "measured" + (f" ({skipped})" if too_slow else "")
        if not ready[peer]:
            statuses[peer] = skipped
            del ready[peer]
    return statuses, ready


def _foretell(engine: Engine, rows: int) -> float:
    few = max(2, rows // _FORETELL)
    start = perf_counter()
    engine.build(few)
    return (perf_counter() - start) * rows * log(rows) / (few * log(few))


def _measure_case(
    case: Case,
    ours: Built,
    ready: dict[str, list[Built]],
    settings: Settings,
    *,
    seconds: float,
) -> None:
    """Try everything on a few queries, then let the chosen searches take turns."""
    most_of_peers = min(case.complainants, settings.peer_sample)
    expected, _ = _pilot(ours, case.k)
    chosen = {"ours": (ours, _pilot(ours, case.k)[1])}
    for peer, candidates in ready.items():
        try:
            chosen[peer] = _fastest(candidates, case.k, expected, most=most_of_peers)
        except DisagreementError as error:
            case.peers[peer].status = f"disagrees: {error}"
    # a part of the time goes into finding out how many queries fit into the rest
    turn = seconds / (settings.repeats + 1)
    turns = {name: turn * (1 - _OUR_SHARE) / max(1, len(chosen) - 1) for name in chosen}
    turns["ours"] = turn * _OUR_SHARE
    runs: dict[str, tuple[Built, Timing]] = {}
    for name, (built, pace) in chosen.items():
        timing = Timing() if name == "ours" else case.peers[name]
        timing.engine, timing.build_seconds = built.engine.name, built.seconds
        most = case.complainants if name == "ours" else most_of_peers
        timing.sample = _sample(built, case.k, pace, most=most, seconds=turns[name])
        runs[name] = built, timing
    for _ in range(settings.repeats):
        for built, timing in runs.values():
            timing.seconds.append(_time(built.engine, timing.sample, case.k))
    case.ours = runs["ours"][1]
    for _, timing in runs.values():
        _read(timing, case.ours, complainants=case.complainants)


def _pilot(built: Built, k: int) -> tuple[NDArray[np.float64], float]:
    """Answer a few queries; give their distances and the seconds a query took."""
    start = perf_counter()
    distances = built.engine.search(_PILOT, k)
    return distances, (perf_counter() - start) / _PILOT


def _fastest(
    candidates: Sequence[Built], k: int, expected: NDArray[np.float64], *, most: int
) -> tuple[Built, float]:
    """Choose the fastest candidate, once all have answered a few queries as ours did."""
    paces = []
    for built in candidates:
        found, first = _pilot(built, k)
        check_agreement(expected, found, built.engine.name)
        paces.append(_settled_pace(built, k, first, most=most))
    best = int(np.argmin(paces))
    return candidates[best], paces[best]


def _settled_pace(built: Built, k: int, pace: float, *, most: int) -> float:
    """Ask for more until starting threads no longer counts, so that the right one is chosen."""
    queries = _PILOT
    while queries < most and pace * queries < _SETTLED:
        queries = min(8 * queries, most)
        pace = _time(built.engine, queries, k) / queries
    return pace


def _sample(built: Built, k: int, pace: float, *, most: int, seconds: float) -> int:
    """Find how many queries fit into the time, by asking for ever more of them."""
    queries = min(_PILOT, most)
    spent = 0.0
    while queries < most and 8 * pace * queries < seconds - spent:
        queries = min(8 * queries, most)
        took = _time(built.engine, queries, k)
        spent, pace = spent + took, took / queries
    return max(min(_PILOT, most), min(most, int(seconds / pace)))


def _time(engine: Engine, queries: int, k: int) -> float:
    start = perf_counter()
    engine.search(queries, k)
    return perf_counter() - start


def _read(timing: Timing, ours: Timing, *, complainants: int) -> None:
    """Turn seconds into µs per complainant, and those into ratios to ours."""
    timing.search_us = 1e6 * min(timing.seconds) / timing.sample
    timing.with_build_us = timing.search_us + 1e6 * timing.build_seconds / complainants
    if timing is not ours and ours.search_us and ours.with_build_us:
        timing.ratio_search = timing.search_us / ours.search_us
        timing.ratio_with_build = timing.with_build_us / ours.with_build_us


def _skipped(source: Source, why: str) -> list[Case]:
    return [
        Case(
            data=source.name,
            shape=source.shape,
            rows=source.rows,
            columns=source.columns,
            k=k,
            status=why,
            peers={peer: Timing(status=why) for peer in PEERS},
        )
        for k in source.ks
    ]


def _is_broken(case: Case) -> bool:
    return any(timing.status.startswith("disagrees") for timing in case.peers.values())


def _print_tables(written: dict[str, Any]) -> None:
    from rich.console import Console

    # a file or a pipe has no width of its own: give the table what it needs
    console = Console(width=None if sys.stdout.isatty() else 170)
    console.print(speed_table(written["cases"]))
    if written["growth"]:
        console.print(growth_table(written["growth"]))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    parser.add_argument("--rows", type=int, nargs="+", default=None)
    parser.add_argument("--k", type=int, nargs="+", default=None, help="of synthetic tables")
    parser.add_argument("--only", default="", help="tables whose name contains this text")
    parser.add_argument("--minutes", type=float, default=None, help="for everything (15)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peer-sample", type=int, default=None, help="at most so many queries")
    parser.add_argument("--json", type=Path, default=Path("build/bench/search.json"))
    parser.add_argument("--quick", action="store_true", help="1e5 rows, k=100, small samples")
    options = parser.parse_args(arguments)
    options.rows = options.rows or ([100_000] if options.quick else [100_000, 1_000_000])
    options.k = options.k or ([100] if options.quick else [100, 250])
    options.minutes = options.minutes or (1.5 if options.quick else 15.0)
    if min(options.rows) < max(1_000, 10 * max(options.k)):
        parser.error("--rows must be at least 1000, and 10 times the largest --k.")
    options.peer_sample = options.peer_sample or (1_000 if options.quick else 20_000)
    return options


if __name__ == "__main__":
    sys.exit(main())
