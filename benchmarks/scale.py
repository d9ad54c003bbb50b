"""What an audit by workers costs: time, processor time and memory, beside the audit by one process.

``python benchmarks/scale.py 3e6 3e7`` makes tables of that many rows and five columns, in Parquet
files of a million rows, audits each with ``mutandis audit --cluster local:2 --memory 3GB``, and
prints the wall-clock time, the processor time of all processes, and the most memory that the
process that asks and one worker hold, pages of mapped files aside. ``--alone`` runs the audit of
one process beside it, and compares the files of both results. ``--sham N`` runs N sham audits (none
otherwise).
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

_COLUMNS = 5
_PART = 1_000_000


def write_table(folder: Path, rows: int) -> None:
    """Write a chain of causes in which a status lowers every attribute, a file per part."""
    folder.mkdir()
    size = min(_PART, rows // 2)
    for number, start in enumerate(range(0, rows, size)):
        part = min(size, rows - start)
        rng = np.random.default_rng([1, number])
        protected = rng.random(part) < 0.35
        table = {"status": np.where(protected, "protected", "reference")}
        before = np.zeros(part)
        for column in range(_COLUMNS):
            before = rng.normal(size=part) - 0.3 * protected + 0.3 * before
            table[f"x{column}"] = before
        refused = rng.random(part) < 1 / (1 + np.exp(1.2 + before + 0.4 * ~protected))
        table["refused"] = np.where(refused, "yes", "no")
        pq.write_table(pa.table(table), folder / f"part-{number:04}.parquet")


def write_audit(path: Path, table: Path) -> None:
    """Write the audit file."""
    edges = [f"    - status -> x{column}" for column in range(_COLUMNS)]
    edges += [f"    - x{column - 1} -> x{column}" for column in range(1, _COLUMNS)]
    path.write_text(
        "\n".join(
            [
                f"data: {{source: {table.name}}}",
                "outcome: {column: refused, negative: 'yes'}",
                "protected: {attribute: status, value: protected, reference: reference}",
                "attributes:",
                *(f"  x{column}: continuous" for column in range(_COLUMNS)),
                "worldview:",
                "  edges:",
                *edges,
                "methods: [st, cst_matched]",
                "ks: [30]",
                "uncertainty: {refits: 0, tipping: false}",
                "",
            ]
        )
    )


def run(command: list[str]) -> tuple[float, float, float, float]:
    """Run a command; give seconds, processor seconds, and the peaks of memory in GB.

    The peaks are that of the process itself, and the largest of those that it starts.
    """
    begin = time.perf_counter()
    process = psutil.Popen(command, stdout=subprocess.DEVNULL)
    spent: dict[int, float] = {}
    peak = {"own": 0, "worker": 0}
    while process.poll() is None:
        try:
            everyone = [process, *process.children(recursive=True)]
        except psutil.Error:
            break
        for each in everyone:
            try:
                times, held = each.cpu_times(), each.memory_info()
            except psutil.Error:
                continue
            spent[each.pid] = times.user + times.system
            kind = "own" if each.pid == process.pid else "worker"
            peak[kind] = max(peak[kind], held.rss - held.shared)  # without mapped files
        time.sleep(0.2)
    if process.wait():
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return (
        time.perf_counter() - begin,
        sum(spent.values()),
        peak["own"] / 1e9,
        peak["worker"] / 1e9,
    )


def contents(folder: Path) -> dict[str, str]:
    """Give the hash of each file of results."""
    files = (each for each in folder.rglob("*") if each.is_file() and each.name != "audit.json")
    return {
        str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in files
    }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="+", type=lambda text: int(float(text)))
    parser.add_argument("--cluster", default="local:2")
    parser.add_argument("--memory", default="3GB")
    parser.add_argument("--sham", type=int, default=0)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--folder", type=Path, help="where tables and results are kept")
    asked = parser.parse_args()
    print("rows | run | seconds | processor seconds | own GB | worker GB")
    with TemporaryDirectory(dir=asked.folder) as temporary:
        for rows in asked.rows:
            folder = Path(temporary) / f"{rows}"
            folder.mkdir()
            write_table(folder / "table", rows)
            write_audit(folder / "audit.yaml", folder / "table")
            command = [sys.executable, "-m", "mutandis", "audit", str(folder / "audit.yaml")]
            command += ["--sham", str(asked.sham)]
            runs = {asked.cluster: ["--cluster", asked.cluster, "--memory", asked.memory]}
            if asked.alone:
                runs = {"alone": []} | runs
            results = []
            for name, options in runs.items():
                results.append(folder / name.replace(":", "-"))
                measured = run([*command, "--out", str(results[-1]), *options])
                print(
                    f"{rows:,} | {name} | " + " | ".join(f"{x:.1f}" for x in measured), flush=True
                )
            if asked.alone:
                same = contents(results[0]) == contents(results[1])
                print("the same bytes" if same else "OTHER BYTES")


if __name__ == "__main__":
    main()
