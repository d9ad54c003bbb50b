"""How long it takes, and how much memory, to read decisions from a Parquet file.

python benchmarks/read.py [--rows N] [--folder FOLDER] [--repeats N] [--json FILE]

Writes a file of 3 numeric and 3 text columns with DuckDB, and reads it into a `Population`, each
time in a process of its own: memory is what the process holds at its peak beyond what it holds when
everything is imported. Beside it the plain way, a pandas frame with text in it. Both must give the
same columns, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NUMBERS = ("salary", "age", "balance")
TEXTS = ("job", "city", "sex")
SECONDS, GIGABYTES, ROWS = 4.0, 2.0, 10_000_000

_DECISIONS = """
COPY (
    SELECT
        round(20000 + 80000 * (hash(i) % 1000003) / 1000003, 2) AS salary,
        CAST(18 + hash(i + 1) % 70 AS INTEGER) AS age,
        (hash(i + 2) % 1000000007) / 1e5 AS balance,
        ['clerk', 'cook', 'nurse', 'judge', 'smith'][CAST(1 + hash(i + 3) % 5 AS BIGINT)] AS job,
        'city ' || (hash(i + 4) % 250) AS city,
        CASE WHEN hash(i + 5) % 2 = 0 THEN 'f' ELSE 'm' END AS sex
    FROM range({rows}) AS t(i)
) TO {file} (FORMAT parquet)
"""


def write_decisions(path: Path, rows: int) -> None:
    """Write a file of decisions that is the same each time."""
    from mutandis.store.duckdb_reader import connect, literal

    with connect() as connection:
        connection.execute(_DECISIONS.format(rows=rows, file=literal(str(path))))


def read(path: Path, way: str) -> Any:
    """Read a file into a population, our way or the plain one."""
    import duckdb

    from mutandis.data.population import Population
    from mutandis.store.tables import TableFiles, read_source

    names = (*NUMBERS, *TEXTS)
    if way == "ours":
        table: Any = read_source(TableFiles(path=str(path)), columns=names)
    else:
        table = duckdb.read_parquet(str(path)).df()
    return Population.from_frame(table, columns=names)


def measure_here(path: Path, way: str) -> dict[str, Any]:
    """Read the file in this process, and say what that took."""
    from importlib import import_module

    from mutandis.auditing.provenance import hash_population

    for name in ("duckdb", "narwhals", "pandas", "mutandis.store.tables"):
        import_module(name)  # not part of what is measured
    before = _memory("VmRSS")
    began, worked = time.perf_counter(), time.process_time()
    population = read(path, way)
    seconds, computing = time.perf_counter() - began, time.process_time() - worked
    peak = _memory("VmHWM") - before
    return {
        "way": way,
        "rows": len(population),
        "seconds": seconds,
        "cpu_seconds": computing,
        "gigabytes": peak / 1e9,
        "sha256": hash_population(population),
    }


def _memory(what: str) -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(what))
    return float(line.split()[1]) * 1024


def measure(path: Path, way: str) -> dict[str, Any]:
    """Read the file in a process of its own."""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, __file__, "--read", str(path), "--way", way],
        capture_output=True,
        check=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def benchmark(rows: int, folder: Path, repeats: int) -> dict[str, Any]:
    """Read a file of so many rows both ways; the fastest of several times counts."""
    path = folder / f"decisions-{rows}.parquet"
    if not path.exists():
        write_decisions(path, rows)
    ours = min((measure(path, "ours") for _ in range(repeats)), key=lambda one: one["seconds"])
    plain = measure(path, "plain")
    if ours["sha256"] != plain["sha256"]:
        raise SystemExit("The two ways give different columns.")
    return {"ours": ours, "plain": plain}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--way", default="ours", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(measure_here(options.read, options.way)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        found = benchmark(options.rows, options.folder or Path(temporary), options.repeats)
    for name, one in found.items():
        print(
            f"{name:5}  {one['rows']:>12,} rows  {one['seconds']:6.2f} s "
            f"({one['cpu_seconds']:.2f} s of computing)  "
            f"{one['gigabytes']:5.2f} GB at the peak, beyond the imports"
        )
    if options.json:
        options.json.write_text(json.dumps(found, indent=2), encoding="utf-8")
    ours = found["ours"]
    if options.rows >= ROWS and (ours["seconds"] >= SECONDS or ours["gigabytes"] >= GIGABYTES):
        raise SystemExit(f"More than {SECONDS:g} s or {GIGABYTES:g} GB.")


if __name__ == "__main__":
    main()
