"""What the first search on a machine costs: numba compiles the kernels, and keeps them.

``python benchmarks/first_search.py`` audits the same made-up table three times, each in a process
of its own: with an empty folder for machine code, as after a fresh installation, and twice with
what the first one left there. It prints the processor time of each audit, and of the compilation by
kernel, what it calls left out. ``--shape 8 4`` takes another table, ``--all`` prints every type for
which something was compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from time import process_time
from typing import Any, cast

from audit import shaped_table

import mutandis as mm


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Audit in this process; give the seconds in all, and by what was compiled."""
    table, settings = shaped_table(
        options.rows, options.shape[0], options.shape[1], correlated=options.correlated
    )
    begin = process_time()
    from numba.core import event

    compiled: list[tuple[str, str, float]] = []
    within: list[list[float]] = []

    class Listener(event.Listener):
        def on_start(self, _: Any) -> None:
            within.append([process_time(), 0.0])

        def on_end(self, ended: Any) -> None:
            start, inner = within.pop()
            seconds = process_time() - start
            if within:
                within[-1][1] += seconds
            function = ended.data["dispatcher"].py_func
            name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
            compiled.append((name, str(ended.data["args"]), seconds - inner))

    cast("Any", event).register("numba:compile", Listener())
    audit = mm.plan(table, **settings).run(threads=1)
    audit.counts()
    return {
        "seconds": process_time() - begin,
        "compiled": compiled,
        "search": audit.provenance.computed["search"],
    }


def _in_child(folder: str) -> dict[str, Any]:
    command = [sys.executable, __file__, *sys.argv[1:], "--measure"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
    done = subprocess.run(  # noqa: S603
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, second, third = (_in_child(folder) for _ in range(3))
    kernels: dict[str, list[float]] = defaultdict(list)
    for name, types, seconds in first["compiled"]:
        kernels[f"{name} {types}" if options.all else name].append(seconds)
    for name, parts in sorted(kernels.items(), key=lambda each: -sum(each[1])):
        print(f"{sum(parts):8.2f} s  {name}" + (f" ({len(parts)} types)" if parts[1:] else ""))
    again = min(second["seconds"], third["seconds"])
    print(f"searched by {first['search']}; seconds of the processor:")
    print(f"{sum(map(sum, kernels.values())):8.2f} s  compiling {len(first['compiled'])} functions")
    print(f"{first['seconds']:8.2f} s  the first audit, {again:.2f} s a later one")
    print(f"{first['seconds'] - again:8.2f} s  what the first search costs more")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--shape", type=int, nargs=2, default=(5, 2), help="numbers and names")
    parser.add_argument("--correlated", action="store_true")
    parser.add_argument("--all", action="store_true", help="by types of arguments")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options)))
    else:
        show(options)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
