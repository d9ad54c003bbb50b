"""Change the code in small ways, one at a time, and see whether the tests notice (`make mutants`).

Each mutant is tried by tests of its module in a process of its own, so that changes of what runs
during an import are tried too. A sample of each module is tried, always the same one for a seed,
and the modules take turns until the time is up. The table goes into benchmarks/mutants.md.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKAGE = "src/mutandis"
COPIED = ("benchmarks", "docs", "examples", "src", "tests", "tools")
GOLDEN = "tests/golden/test_golden.py"
# the tests of each module, the quickest first
MODULES: dict[str, tuple[str, ...]] = {
    "auditing/robustness.py": (
        "tests/auditing/test_tipping.py", "tests/auditing/test_robustness.py",
    ),
    "auditing/results.py": ("tests/auditing/test_kept_findings.py", GOLDEN),
    "verdicts/compare.py": ("tests/verdicts/test_compare.py", GOLDEN),
    "verdicts/findings.py": (
        "tests/verdicts/test_findings.py", "tests/auditing/test_kept_findings.py",
    ),
    "verdicts/estimate.py": ("tests/verdicts/test_scales.py", "tests/auditing/test_answer.py"),
    "verdicts/scales.py": ("tests/verdicts/test_scales.py", "tests/auditing/test_answer.py"),
    "engine/tally.py": ("tests/engine/test_tally.py", "tests/engine/test_groups.py", GOLDEN),
    "engine/matched.py": ("tests/engine/test_matched.py", GOLDEN),
    "outcomes/intervals.py": ("tests/outcomes/test_intervals.py", GOLDEN),
    "outcomes/ordered.py": ("tests/auditing/test_ordered.py", GOLDEN),
    "outcomes/score.py": ("tests/auditing/test_scores.py", GOLDEN),
    "config/schema.py": (
        "tests/config/test_schema.py", "tests/auditing/test_audit_plan.py", "tests/config",
    ),
    "data/protection.py": (
        "tests/data/test_protection.py", "tests/engine/test_spaces.py", GOLDEN,
    ),
    "store/saved_audit.py": ("tests/store/test_saved_audit.py", GOLDEN),
    "store/results_folder.py": (
        "tests/store/test_output_folder.py", "tests/store/test_saved_audit.py",
        "tests/store/test_verification.py", "tests/cli/test_case_command.py",
    ),
    "store/verification.py": ("tests/store/test_verification.py",),
    "report/redact.py": ("tests/cli/test_case_command.py", "tests/report/test_redact.py"),
    "rooms/signing.py": ("tests/rooms/test_signing.py",),
}  # fmt: skip
_PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow")
_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One small change of one module."""

    module: str
    line: int
    change: str
    source: str


def main() -> int:
    """Sample, try, and print the score of every module."""
    asked = _arguments()
    unknown = [each for each in asked.modules if each not in MODULES]
    absent = [each for each in _required() if not (ROOT / each).exists()]
    if unknown or absent:
        print(*(f"{each} does not exist; correct MODULES" for each in unknown + absent), sep="\n")
        return 1
    modules = asked.modules or list(MODULES)
    samples = [_sample(each, number=asked.each, seed=asked.seed) for each in modules]
    # one of each module in turn, so that none is left out when the time is up
    mutants = [each for each in chain.from_iterable(zip_longest(*samples)) if each is not None]
    print(f"{len(mutants)} mutants of {len(modules)} modules, at most {asked.minutes:g} minutes")
    if asked.list:
        print(*map(_title, mutants), sep="\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        _print_score(_try_all(mutants, Path(folder), asked.minutes))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="such as report/redact.py; default: all")
    parser.add_argument("--each", type=int, default=60, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--list", action="store_true", help="print the sample, and try nothing")
    return parser.parse_args()


def _required() -> list[str]:
    modules = [f"{PACKAGE}/{each}" for each in MODULES]
    return sorted({*modules, *chain.from_iterable(MODULES.values())})


# --- mutants --------------------------------------------------------------------------------------


def _sample(module: str, *, number: int, seed: int) -> list[Mutant]:
    tree = ast.parse((ROOT / PACKAGE / module).read_text(encoding="utf-8"))
    places = [
        (place, choice)
        for place, node in enumerate(_nodes(tree))
        for choice in range(len(_variants(node)))
    ]
    chosen = random.Random(seed).sample(places, min(number, len(places)))  # noqa: S311 - no secret
    return [_mutant(module, tree, place, choice) for place, choice in chosen]


def _mutant(module: str, tree: ast.Module, place: int, choice: int) -> Mutant:
    changed = deepcopy(tree)
    node = next(node for number, node in enumerate(_nodes(changed)) if number == place)
    variant = _variants(node)[choice]
    change = f"{ast.unparse(node)} → {ast.unparse(variant)}"
    if isinstance(node, ast.Call) and isinstance(variant, ast.Call):
        (left_out,) = (each.arg for each in node.keywords if each not in variant.keywords)
        change = f"{ast.unparse(node.func)}(…) without {left_out}="
    # in its place, whatever refers to it
    node.__class__ = variant.__class__
    node.__dict__ = {**variant.__dict__, "lineno": node.lineno}
    return Mutant(module=module, line=node.lineno, change=change, source=ast.unparse(changed))


def _nodes(tree: ast.AST) -> Iterator[ast.expr]:
    """List the expressions that decide something: no messages, annotations or decorators."""
    for child in _children(tree):
        if isinstance(child, ast.expr):
            yield child
        yield from _nodes(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    left_out: list[ast.AST | None] = [getattr(node, "annotation", None)]
    if isinstance(node, ast.FunctionDef):
        left_out += [*node.decorator_list, node.returns]
    elif isinstance(node, ast.ClassDef):
        left_out += [*node.decorator_list, *node.bases]
    for child in ast.iter_child_nodes(node):
        is_text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        is_public = isinstance(child, ast.Assign) and ast.unparse(child.targets[0]) == "__all__"
        is_message = isinstance(child, ast.Raise | ast.JoinedStr)
        if not (is_text or is_public or is_message) and not any(child is each for each in left_out):
            yield child


_SWAPS: dict[type[ast.AST], type[Any]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
    ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def _variants(node: ast.expr) -> list[ast.expr]:
    """List what one expression may be changed into."""
    found: list[ast.expr] = []
    match node:
        case ast.Compare(left, [operator], others) if type(operator) in _SWAPS:
            found = [ast.Compare(left, [_SWAPS[type(operator)]()], others)]
        case ast.BoolOp(operator, values) if type(operator) in _SWAPS:
            found = [ast.BoolOp(_SWAPS[type(operator)](), values)]
        case ast.BinOp(left, operator, right) if type(operator) in _SWAPS:
            found = [ast.BinOp(left, _SWAPS[type(operator)](), right)]
        case ast.UnaryOp(ast.Not() | ast.Invert() | ast.USub(), operand):
            found = [operand]
        case ast.IfExp(_, body, otherwise):
            found = [body, otherwise]
        case ast.Constant(value):
            found = [ast.Constant(_other(value))]
        case ast.Call(function, arguments, named):
            found = [
                ast.Call(function, arguments, [each for each in named if each is not one])
                for one in named
                if one.arg
            ]
    return found


def _other(value: object) -> str | int | float:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}XX" if isinstance(value, str) else 1


# --- trying them ----------------------------------------------------------------------------------


def _try_all(mutants: list[Mutant], folder: Path, minutes: float) -> list[tuple[Mutant, bool]]:
    """Try mutants in two copies of the project at a time until the time is up: killed or not."""
    until = time.monotonic() + 60 * minutes
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(2):
        copies.put(_copy(folder / str(number)))
    for tests in sorted({MODULES[each.module] for each in mutants}):
        if not _pass(folder / "0", tests):
            raise SystemExit(f"{' or '.join(tests)} fails where nothing was changed.")

    def judge(mutant: Mutant) -> tuple[Mutant, bool] | None:
        if time.monotonic() > until:
            return None
        copy = copies.get()
        try:
            return mutant, _is_killed(copy, mutant)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(max_workers=2) as pool:
        return [each for each in pool.map(judge, mutants) if each is not None]


def _copy(folder: Path) -> Path:
    folder.mkdir()
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (each for each in ROOT.iterdir() if each.suffix in {".md", ".py", ".toml", ".yml"}):
        shutil.copy(path, folder)
    return folder


def _is_killed(copy: Path, mutant: Mutant) -> bool:
    path = copy / PACKAGE / mutant.module
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.source, encoding="utf-8")
    try:
        return not _pass(copy, MODULES[mutant.module])
    finally:
        path.write_text(original, encoding="utf-8")


def _pass(copy: Path, tests: tuple[str, ...]) -> bool:
    """Run tests of a copy; those that do not end in time do not pass."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *_PYTEST, *tests]
    try:
        return not subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=_SECONDS, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return False


def _print_score(tried: list[tuple[Mutant, bool]]) -> None:
    lines = ["| module | tried | killed | survived |", "|---|---|---|---|"]
    for module in (*dict.fromkeys(mutant.module for mutant, _ in tried), "all"):
        found = Counter(killed for mutant, killed in tried if module in {mutant.module, "all"})
        lines.append(f"| {module} | {found.total()} | {found[True]} | {found[False]} |")
    lines += ["", *(f"- {_title(mutant)}" for mutant, killed in tried if not killed)]
    print("\n".join(lines))


def _title(mutant: Mutant) -> str:
    return f"`{mutant.module}:{mutant.line}` {' '.join(mutant.change.split())}"


if __name__ == "__main__":
    sys.exit(main())
