"""Print the lines and files of each package of `src` and `tests` (`make size`).

With `--limits`, exit with 1 where a limit is exceeded. Lines are physical lines of Python modules.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
# at most so many lines and files, and lines of one file: what there is, with hardly any room. They
# are lowered with the code, until the goals are reached, and never raised
LIMITS = {"src/mutandis": (49_000, 165), "tests": (41_800, 185)}
GOALS = {"src/mutandis": "35,500 lines, 160 files", "tests": "34,000 lines"}
LONGEST = 900


def main() -> int:
    """Print the table, and what exceeds a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", action="store_true", help="fail where a limit is exceeded")
    asked = parser.parse_args()
    exceeded = [each for folder in LIMITS for each in _print_folder(folder)]
    print("\n".join(exceeded or ["All limits are kept."]))
    return int(asked.limits and bool(exceeded))


def _print_folder(folder: str) -> list[str]:
    root = ROOT / folder
    length = {
        path.relative_to(root): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(root.rglob("*.py"))
    }
    lines, files = Counter[str](), Counter[str]()
    for path, number in length.items():
        package = path.parts[0] if len(path.parts) > 1 else "."
        lines[package] += number
        files[package] += 1
    for package, number in lines.most_common():
        print(f"{number:>8,} lines {files[package]:>4} files  {folder}/{package}")
    total, most, most_files = sum(length.values()), *LIMITS[folder]
    print(f"{total:>8,} lines {len(length):>4} files  {folder} (goal: {GOALS[folder]})\n")
    exceeded = [
        f"{folder}/{path} has {number:,} lines, the limit is {LONGEST:,}"
        for path, number in length.items()
        if number > LONGEST
    ]
    if total > most:
        exceeded.append(f"{folder} has {total:,} lines, the limit is {most:,}")
    if len(length) > most_files:
        exceeded.append(f"{folder} has {len(length)} files, the limit is {most_files}")
    return exceeded


if __name__ == "__main__":
    sys.exit(main())
