"""Change the code in small ways, one at a time, and see whether the tests notice (`make mutants`).

mutmut makes the changes and runs the tests that reach each changed function; which modules and
tests take part is written under [tool.mutmut] in pyproject.toml. All of them would take hours, so a
sample of each module is tried, always the same one for a seed, within a limit of time. The table
that is printed goes into benchmarks/mutants.md.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
MUTANTS = ROOT / "mutants"
# exit codes of mutmut; every other one is that of tests that failed
SURVIVED, UNTESTED, UNTRIED = (0,), (5, 33, 34), (2, None)


def main() -> int:
    """Sample, run, and print the score of every module."""
    asked = _arguments()
    # Nothing has this name: the mutants are made and the tests run once, to see what reaches what.
    # Only then does mutmut say that there is no such mutant, which is the end of a good start.
    started = subprocess.run(
        [_mutmut(), "run", "nothing"], cwd=ROOT, check=False, stderr=subprocess.PIPE, text=True
    )
    if "nothing matches" not in started.stderr:
        print(started.stderr)
        return 1
    sample = _sample(_read_results(), each=asked.each, seed=asked.seed)
    names = [name for each in sample.values() for name in each]
    print(f"{len(names)} mutants of {len(sample)} modules, at most {asked.minutes:g} minutes")
    try:
        subprocess.run(
            [_mutmut(), "run", "--max-children", "2", *names],
            cwd=ROOT,
            check=False,
            timeout=60 * asked.minutes,
            stdout=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        print("The time is up; what has not been tried is left out.")
    results = _read_results()
    _print_score(sample, {name: code for each in results.values() for name, code in each.items()})
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=60, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30)
    return parser.parse_args()


def _mutmut() -> str:
    return str(Path(sys.executable).with_name("mutmut"))


def _read_results() -> dict[str, dict[str, int | None]]:
    """Read, for each module, what became of its mutants."""
    found = {}
    for path in sorted(MUTANTS.rglob("*.py.meta")):
        module = path.relative_to(MUTANTS / "src").as_posix().removesuffix(".meta")
        found[module] = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return found


def _sample(
    results: dict[str, dict[str, int | None]], *, each: int, seed: int
) -> dict[str, list[str]]:
    rng = random.Random(seed)  # noqa: S311 - a sample, no secret
    return {
        module: rng.sample(sorted(codes), min(each, len(codes)))
        for module, codes in results.items()
    }


def _print_score(sample: dict[str, list[str]], codes: dict[str, int | None]) -> None:
    total: Counter[str] = Counter()
    lines = ["| module | tried | killed | survived | not tested |", "|---|---|---|---|---|"]
    for module, names in sample.items():
        found = Counter(_outcome(codes[name]) for name in names)
        total += found
        lines.append(_row(f"`{module}`", found))
    lines.append(_row("all", total))
    lines += ["", *(f"- `{name}`" for name in sorted(codes) if codes[name] in SURVIVED)]
    print("\n".join(lines))
    print(f"See one of them with: {_mutmut()} show NAME")


def _outcome(code: int | None) -> str:
    if code in UNTRIED:
        return "untried"
    if code in SURVIVED:
        return "survived"
    return "untested" if code in UNTESTED else "killed"


def _row(name: str, found: Counter[str]) -> str:
    tried = found["killed"] + found["survived"] + found["untested"]
    return f"| {name} | {tried} | {found['killed']} | {found['survived']} | {found['untested']} |"


if __name__ == "__main__":
    sys.exit(main())
