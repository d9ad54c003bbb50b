"""Where the time and the memory of a whole audit go: everything but the search, and the search.

``python benchmarks/audit.py`` audits a million made-up rows with five numeric columns, the paper's
four methods and the default k, counts included, and prints the seconds of every step and the peak
of memory. The measurements run in processes of their own: one for the time, one for the resident
memory, and with ``--trace`` one that says which step asked for how much. ``--simulate`` answers
every search at once with made-up counts, so that the rest can be looked at alone. ``--law`` times
the law-school audit. ``--matched`` audits the tables of benchmarks/search-speed.md with the matched
comparison and without it, in turns, and prints what it adds to the processor time and the memory.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tracemalloc
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import wraps
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from search_data import describe_shape, simulate

import mutandis as mm
from mutandis.data.population import Population
from mutandis.engine import matched
from mutandis.engine import nearest as finder
from mutandis.geometry import choose
from mutandis.geometry import index as search
from mutandis.geometry.embedding import Embedding
from mutandis.geometry.index import Neighbourhoods
from mutandis.scm.counterfactual import FittedWorldview
from mutandis.scm.worldview import Worldview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PROTECTED_SHARE = 0.35
# the package's `run` is the function, and hides the module
running = import_module("mutandis.auditing.run")
_METHODS = ("st", "cst_without", "cst_with", "cf")
_LAW_KS = (15, 30, 50, 100, 250)
_SEARCH = ("search: build", "search: ask")
# glibc keeps freed blocks of up to 32 MB for later: here it is to give them back, so that the peak
# is what was in use
_GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072"}
# tables of benchmarks/search-speed.md on which the matched comparison is weighed: numbers and names
_SHAPES = ((2, 0), (5, 0), (8, 4))
_SIZES = (100_000, 1_000_000)
_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(slots=True)
class Step:
    """What one step of an audit cost, the steps within it left out; memory is above the start."""

    seconds: float = 0.0
    processor: float = 0.0
    peak: int = 0


@dataclass(slots=True)
class Meter:
    """Measures steps that may lie within each other."""

    steps: dict[str, Step] = field(default_factory=dict)
    within: list[list[float]] = field(default_factory=list)
    base: int = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._note_peak()
        self.within.append([0.0, 0.0])
        begin = perf_counter(), process_time()
        try:
            yield
        finally:
            clock, processor = perf_counter() - begin[0], process_time() - begin[1]
            measured = self.steps.setdefault(name, Step())
            inner = self.within.pop()
            measured.seconds += clock - inner[0]
            measured.processor += processor - inner[1]
            if self.within:
                self.within[-1][0] += clock
                self.within[-1][1] += processor
            if tracemalloc.is_tracing():
                measured.peak = max(measured.peak, tracemalloc.get_traced_memory()[1] - self.base)
                tracemalloc.reset_peak()

    def _note_peak(self) -> None:
        if tracemalloc.is_tracing():
            outer = self.steps.setdefault("other", Step())
            outer.peak = max(outer.peak, tracemalloc.get_traced_memory()[1] - self.base)
            tracemalloc.reset_peak()

    def wrap(self, owner: Any, attribute: str, name: str) -> None:
        """Measure every call of a function or a method."""
        made = vars(owner)[attribute] if isinstance(owner, type) else getattr(owner, attribute)
        function = made.__func__ if isinstance(made, classmethod) else made

        @wraps(function)
        def measured(*arguments: Any, **options: Any) -> Any:
            with self.step(name):
                return function(*arguments, **options)

        setattr(owner, attribute, classmethod(measured) if function is not made else measured)


class Simulated:
    """A search that answers at once, with counts that could be true."""

    name = "simulated"

    def __init__(self, space: search.Space, **_: Any) -> None:
        self.space = space

    def neighbourhoods(
        self, queries: search.Queries, ks: Sequence[int], **_: Any
    ) -> Neighbourhoods:
        found = Neighbourhoods.empty(len(queries), len(ks))
        share = float(self.space.marks.sum() / self.space.counts.sum())
        rng = np.random.default_rng(0)
        for column, k in enumerate(ks):
            found.radius[:, column] = 10**9 + k
            found.inside[:, column] = k - 1
            found.rim[:, column] = 1
            found.marks_inside[:, column, 0] = rng.binomial(k - 1, share, len(queries))
            found.marks_rim[:, column, 0] = rng.random(len(queries)) < share
        return found


def simulated_table(rows: int, columns: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Make a chain of causes in which a status lowers every attribute, and an audit of it.

    The status and the outcome are true or false: a byte each, and no numbers.
    """
    rng = np.random.default_rng(0)
    status = rng.random(rows) < PROTECTED_SHARE
    table: dict[str, Any] = {"Status": status}
    names = [f"X{place}" for place in range(columns)]
    equations = {}
    score = np.zeros(rows)
    for place, name in enumerate(names):
        before = names[:place]
        values = rng.normal(0, 1, rows) - 0.4 * status
        for cause in before:
            values += 0.3 * table[cause]
        table[name] = values
        score += values
        equations[name] = mm.Linear("Status", *before)
    table["Granted"] = score + rng.normal(0, 0.5, rows) > 0
    settings = {
        "outcome": "Granted",
        "negative": False,
        "protected": mm.Protection("Status", value=True, reference=False),
        "attributes": dict.fromkeys(names, "continuous"),
        "worldview": mm.Worldview(equations),
        "decision": f"{' + '.join(names)} > 0",
        "methods": _METHODS,
    }
    return pd.DataFrame(table), settings


def shaped_table(
    rows: int, numeric: int, nominal: int, *, correlated: bool
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Make a table as `search_data.simulate` does, whose numbers a status lowers, and its audit."""
    made = simulate(rows, numeric, nominal, correlated=correlated)
    table = made.frame.rename(columns=lambda name: name.replace(" ", "_"))
    numbers, names = list(table)[:numeric], list(table)[numeric:]
    table[numbers] -= 0.4 * made.is_protected[:, None]
    table["Status"] = made.is_protected
    score = table[numbers].sum(axis=1)
    noise = np.random.default_rng(1).normal(0, 0.5 * score.std(), rows)
    table["Granted"] = score + noise > 0
    settings = {
        "outcome": "Granted",
        "negative": False,
        "protected": mm.Protection("Status", value=True, reference=False),
        "attributes": dict.fromkeys(numbers, "continuous") | dict.fromkeys(names, "nominal"),
        "worldview": mm.Worldview({name: mm.Linear("Status") for name in numbers}),
        "decision": f"{' + '.join(numbers)} > 0",
        "uncertainty": mm.Uncertainty(refits=0),
    }
    return table, settings


def law_table(folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read the law-school data, and how its gender audit is set up."""
    from mutandis.replication.eaamo import RUNS

    scenario = next(each for each in RUNS if each.key == "law_gender")
    return scenario.read(folder), {**scenario.settings, "methods": _METHODS, "ks": _LAW_KS}


def install(meter: Meter, *, simulate: bool) -> None:
    """Put the meter around the steps of an audit."""
    meter.wrap(Population, "from_frame", "read the table")
    meter.wrap(Worldview, "fit", "fit the worldview")
    meter.wrap(FittedWorldview, "counterfactuals_once", "counterfactuals")
    meter.wrap(running, "decide", "decisions")
    meter.wrap(Embedding, "fit", "embedding: fit")
    meter.wrap(Embedding, "apply", "embedding: apply")
    meter.wrap(running, "record", "provenance")
    meter.wrap(search, "group_rows", "collapse")
    if simulate:
        finder.ChosenSearch = Simulated  # type: ignore[assignment]
        meter.wrap(Simulated, "neighbourhoods", "search: ask")
    meter.wrap(finder, "ChosenSearch", "search: build")
    if not simulate:
        _wrap_answers(meter)


def _wrap_answers(meter: Meter) -> None:
    """Measure what the chosen search answers, whichever it is."""
    build = finder.ChosenSearch
    seen: set[type] = set()

    @wraps(build)
    def chosen(*arguments: Any, **options: Any) -> Any:
        made = build(*arguments, **options)
        if type(made) not in seen:
            seen.add(type(made))
            meter.wrap(type(made), "neighbourhoods", "search: ask")
        return made

    finder.ChosenSearch = chosen


def whole_audit(
    meter: Meter, table: pd.DataFrame, settings: dict[str, Any], *, threads: int | None
) -> mm.Audit:
    """Audit, and count."""
    with meter.step("the rest of the run"):
        audit = mm.plan(table, **settings).run(threads=threads)
    with meter.step("compare and count"):
        audit.counts()
    return audit


def findings_bytes(audit: mm.Audit) -> int:
    """Add up the integer counts that an audit keeps."""
    tally, kept = audit.tally, 0
    for nearest in (tally.control, *tally.test.values()):
        if nearest is not None:
            counts = nearest.found
            kept += sum(getattr(counts, name).nbytes for name in counts.__slots__)
    return kept


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure one thing in this process."""
    meter = Meter()
    # what is imported or compiled at first use belongs to the state after imports
    small, settings = simulated_table(20_000, options.columns)
    worth_loading = choose._WORTH_LOADING  # noqa: SLF001
    if not options.law:
        # a small table would be searched without the kernels that a large one needs
        choose._WORTH_LOADING = 0.0  # noqa: SLF001
    whole_audit(Meter(), small, settings, threads=options.threads)
    choose._WORTH_LOADING = worth_loading  # noqa: SLF001
    if options.law:
        table, settings = law_table(options.data)
        mm.audit(table, **settings).counts()
    else:
        table, settings = simulated_table(options.rows, options.columns)
    install(meter, simulate=options.simulate)
    gc.collect()
    if options.measure == "trace":
        tracemalloc.start()
        meter.base = tracemalloc.get_traced_memory()[0]
    Path("/proc/self/clear_refs").write_text("5")
    before = _resident("VmRSS")
    begin = perf_counter()
    audit = whole_audit(meter, table, settings, threads=options.threads)
    seconds = perf_counter() - begin
    peak = _resident("VmHWM") - before
    return {
        "seconds": seconds,
        "peak": peak,
        "kept": _resident("VmRSS") - before,
        "findings": findings_bytes(audit),
        "numeric": sum(table[name].nbytes for name in settings["attributes"]),
        "search": audit.provenance.computed["search"],
        "complainants": len(audit.study.people),
        "steps": {name: asdict(step) for name, step in meter.steps.items()},
    }


def weigh(options: argparse.Namespace) -> dict[str, Any]:
    """Measure audits without and with the matched comparison, in turns, in this process.

    With ``--measure memory`` one audit, with it or not as ``--with-matched`` says.
    """
    numeric, nominal = options.shape
    shape = {"numeric": numeric, "nominal": nominal, "correlated": options.correlated}
    # all that the inputs allow: without the matched comparison, the paper's four
    methods = {False: _METHODS, True: ("cst_matched", *_METHODS)}
    # what is imported or compiled at first use belongs to the state after imports
    small, settings = shaped_table(20_000, **shape)
    modules = (choose, matched)
    worth_loading = [each._WORTH_LOADING for each in modules]  # noqa: SLF001
    for each in modules:
        each._WORTH_LOADING = 0  # type: ignore[attr-defined] # noqa: SLF001
    whole_audit(Meter(), small, {**settings, "methods": methods[True]}, threads=options.threads)
    for each, value in zip(modules, worth_loading, strict=True):
        each._WORTH_LOADING = value  # type: ignore[attr-defined] # noqa: SLF001
    table, settings = shaped_table(options.rows, **shape)

    def audit(*, matched: bool) -> float:
        gc.collect()
        begin = process_time()
        chosen = {**settings, "methods": methods[matched]}
        whole_audit(Meter(), table, chosen, threads=options.threads)
        return process_time() - begin

    if options.measure == "memory":
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        before = _resident("VmRSS")
        audit(matched=options.with_matched)
        return {"peak": _resident("VmHWM") - before, "before": before}
    pairs = [(audit(matched=False), audit(matched=True)) for _ in range(options.runs)]
    return {"without": [one for one, _ in pairs], "with": [other for _, other in pairs]}


def _resident(what: str) -> int:
    """Read a line of this process's status, in bytes; only Linux has it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {what}: memory is measured on Linux only.")


def show_time(measured: dict[str, Any]) -> None:
    steps = {name: Step(**step) for name, step in measured["steps"].items()}
    searching = [steps.pop(name, Step()) for name in _SEARCH]
    print(f"  {'':<24}   on the clock   of the processor")
    for name, step in sorted(steps.items(), key=lambda each: -each[1].seconds):
        print(f"  {name:<24} {step.seconds:12.3f} s {step.processor:14.3f} s")
    for name, some in (("outside the search", steps.values()), ("search", searching)):
        seconds, processor = (sum(getattr(s, n) for s in some) for n in ("seconds", "processor"))
        print(f"  {name:<24} {seconds:12.3f} s {processor:14.3f} s")
    print(f"  searched by {measured['search']}")


def show_memory(measured: dict[str, Any]) -> None:
    numeric, findings = measured["numeric"], measured["findings"]
    peak = measured["peak"]
    print(
        f"  peak {_mb(peak)} above the start, {_mb(findings)} of it findings; without these "
        f"{(peak - findings) / numeric:.2f} times the numeric data ({_mb(numeric)}); "
        f"kept at the end {_mb(measured['kept'])}"
    )


def show_trace(measured: dict[str, Any]) -> None:
    for name, step in measured["steps"].items():
        print(f"  {name:<24} {_mb(step['peak']):>12}")


def _mb(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"


_SHOWN: dict[str, Callable[[dict[str, Any]], None]] = {
    "time": show_time,
    "memory": show_memory,
    "trace": show_trace,
}


def show_matched(options: argparse.Namespace) -> None:
    """Print a table of what the matched comparison adds, as benchmarks/search-speed.md has it."""
    print("| data | rows | s without | s with | time | MB without | MB with | memory |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for rows in [options.rows] if options.rows else _SIZES:
        for shape in [options.shape] if options.shape else _SHAPES:
            for dependence in ("independent", "correlated"):
                given = ["--rows", str(rows), "--shape", *map(str, shape)]
                given += ["--correlated"] if dependence == "correlated" else []
                time = _in_child("time", *given)
                once = _in_child("memory", *given)["peak"]
                more = _in_child("memory", "--with-matched", *given)["peak"]
                ratios = [
                    other / one for one, other in zip(time["without"], time["with"], strict=True)
                ]
                print(
                    f"| {describe_shape(*shape)}, {dependence} | {rows:,} "
                    f"| {median(time['without']):.1f} | {median(time['with']):.1f} "
                    f"| ×{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
                    f"| {once / 1e6:,.0f} | {more / 1e6:,.0f} | ×{more / once:.2f} |",
                    flush=True,
                )


def _in_child(what: str, *given: str) -> dict[str, Any]:
    """Measure in a process of its own; options that are `given` again win."""
    command = [sys.executable, __file__, *sys.argv[1:], *given, "--measure", what]
    environment = {**os.environ, **_GIVE_BACK} if what == "memory" else None
    done = subprocess.run(  # noqa: S603
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--simulate", action="store_true", help="answer searches at once")
    parser.add_argument("--trace", action="store_true", help="tell which step asks for memory")
    parser.add_argument("--law", action="store_true", help="the law-school gender audit instead")
    parser.add_argument("--matched", action="store_true", help="weigh the matched comparison")
    parser.add_argument("--shape", type=int, nargs=2, help="with --matched: numbers and names")
    parser.add_argument("--runs", type=int, default=3, help="with --matched: pairs of audits")
    parser.add_argument("--correlated", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--with-matched", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, default=_DATA, help="the folder with published data")
    parser.add_argument("--measure", choices=list(_SHOWN), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(weigh(options) if options.matched else measure(options)))
        return 0
    if options.matched:
        show_matched(options)
        return 0
    rows = options.rows or _SIZES[-1]
    print("the law-school data" if options.law else f"{rows:,} rows × {options.columns}")
    for what in ("time", "memory", "trace") if options.trace else ("time", "memory"):
        print(f"{what}:")
        _SHOWN[what](_in_child(what, "--rows", str(rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
