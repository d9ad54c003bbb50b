"""Ends commands at random moments, and looks at what they leave behind.

A results folder is made from a small table. Then commands that write to it or read it are started
one after the other (audit, case, report, verify, verify --rerun, export), and each is ended by
SIGKILL, SIGTERM or SIGINT at a moment drawn from a seed, while another process keeps opening the
folder. After each, the results have to be the older ones or whole new ones, `verify` has to pass,
whatever file the command writes has to be whole, and the same command has to run to its end.

    python tools/kills.py                      # 100 kills, some ten minutes
    python tools/kills.py --kills 8 --seed 3
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

# loaded before the forks, so that no command spends its time on it
import duckdb  # noqa: F401
import pandas as pd  # noqa: F401
import scipy.spatial
import scipy.stats  # noqa: F401

import mutandis as mm
from mutandis.cli import app
from mutandis.report import case_file  # noqa: F401
from mutandis.store import saved_audit, verification  # noqa: F401
from mutandis.store.results_folder import read_record

if TYPE_CHECKING:
    from collections.abc import Callable

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CONFIG = """\
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview: {AnnualSalary: {equation: linear, parents: [Gender]}}
ks: [K]
"""


@dataclass(slots=True)
class Seen:
    """What happened, counted."""

    kills: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class State(NamedTuple):
    """Which audit the results are of, what is wrong with them, and hashes of what was written."""

    audit: str
    wrong: tuple[str, ...]
    written: dict[str, str]


class Ground:
    """A folder with a table, two audits of it, and one place for results."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "out"
        self.files = {"export": folder / "people.csv", "report": folder / "page.html"}
        table = mm.datasets.loan(n=80, seed=1)
        table.insert(0, "id", range(1, len(table) + 1))
        table.to_csv(folder / "loan.csv", index=False)
        for name, k in (("a", 3), ("b", 5)):
            text = CONFIG.replace("loan.csv", "loan.csv, id: id").replace("K", str(k))
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        self.ids = [str(each) for each in table["id"][table["Gender"] == 1]]

    def audited(self) -> str:
        return str(read_record(self.out).data["config"]["name"])

    def command(self, action: str, chance: random.Random) -> Callable[[], object]:
        """Draw what to run."""
        out = str(self.out)
        if action == "report":
            return lambda: mm.open_results(out).report().write(self.files["report"])
        other = "b" if self.out.exists() and self.audited() == "a.yaml" else "a"
        words = {
            "audit": ["audit", str(self.folder / f"{other}.yaml"), "--out", out, "--force"],
            "case": ["case", out, chance.choice(self.ids), *chance.choice(([], ["--redact"]))],
            "verify": ["verify", out],
            "rerun": ["verify", out, "--rerun"],
            "export": ["export", out, str(self.files["export"])],
        }[action]

        def run() -> None:
            sys.argv = ["mutandis", *words]
            app.main()

        return run

    def state(self) -> State:
        wrong = mm.verify_results(self.out).differences
        written = {
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in self.files.items()
            if path.exists()
        }
        return State(self.audited(), wrong, written)

    def left(self) -> list[str]:
        return sorted(path.name for path in self.folder.rglob(".mutandis-*"))


def start(run: Callable[[], object]) -> int:
    """Run something in a process of its own, as the program runs it."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        run()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        os._exit(code)


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def start_reader(ground: Ground) -> Callable[[], dict[str, int]]:
    """Open the results again and again, as pages and notebooks do; the answer ends it."""
    stop, stopping = os.pipe()
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(stopping)
        counts: Counter[str] = Counter()
        while not select.select([stop], [], [], 0.05)[0]:
            try:
                found = mm.open_results(ground.out)
                found.findings()
                found.case(int(ground.ids[0])).explain_pattern()
                counts["read"] += 1
            except BaseException:  # noqa: BLE001 - counted, and shown
                counts[traceback.format_exc()] += 1
        os.write(telling, json.dumps(counts).encode()[:60_000])
        os._exit(0)
    os.close(stop)
    os.close(telling)

    def end() -> dict[str, int]:
        os.close(stopping)
        os.waitpid(child, 0)
        with os.fdopen(told, "rb") as file:
            return dict(json.loads(file.read()))

    return end


def wait_for_moment(ground: Ground, seconds: float, *, aimed: bool) -> None:
    """Wait; if aimed, from when the command has begun to write."""
    if aimed:
        before, until = ground.left(), time.monotonic() + 20
        while ground.left() == before and time.monotonic() < until:
            time.sleep(0.001)
    time.sleep(seconds)


def attempt(ground: Ground, action: str, usual: float, chance: random.Random, seen: Seen) -> None:
    """Start a command, end it, and look; it counts if it was ended before it was done."""
    number, aimed = chance.choice(SIGNALS), chance.random() < 0.4 and action in WRITING
    moment = chance.uniform(0, 0.2 if aimed else 1.1 * usual)
    drawn = chance.getstate()  # the run that follows gets the same arguments
    before, there = ground.state(), ground.left()
    end_reader = start_reader(ground)
    child = start(ground.command(action, chance))
    wait_for_moment(ground, moment, aimed=aimed)
    with suppress(ProcessLookupError):
        os.kill(child, number)
    code = wait(child)
    reads = end_reader()
    after, left = ground.state(), set(ground.left()) - set(there)
    chance.setstate(drawn)
    ended = wait(start(ground.command(action, chance)))
    seen.reads["read"] += reads.pop("read", 0)
    seen.reads["failed"] += sum(reads.values())
    whole = ground.state()
    faults = [
        *(f"a reader met\n{each}" for each in reads),
        *([f"exit {code}"] if code not in {0, -number, 128 + number} else []),
        *([f"the run after it ended by {ended}"] if ended else []),
        *find_faults(ground, action, before, after, whole),
    ]
    where = f"{action}, {number.name} after {moment:.3f} s{' of writing' if aimed else ''}"
    seen.failures += [f"{where}: {each}" for each in faults]
    if code != 0:
        seen.kills[f"{action} {number.name}"] += 1
        seen.ends[str(code)] += 1
        seen.after["older results" if after.audit == before.audit else "new results"] += 1
        seen.after["with a temporary file or folder"] += bool(left)


def find_faults(
    ground: Ground, action: str, before: State, after: State, whole: State
) -> list[str]:
    """Compare what was there before, after the kill, and after the same command ran to its end."""
    faults = [*after.wrong, *whole.wrong]
    if after.audit != before.audit and action != "audit":
        faults.append("other results")
    for name, sha256 in after.written.items():
        if sha256 not in {before.written.get(name), whole.written.get(name)}:
            faults.append(f"{ground.files[name].name} is half written")
    # a single file's temporary one hinders nothing, and is not looked for
    return faults + [f"left behind: {name}" for name in ground.left() if name.count("-") > 1]


WRITING = ("audit", "case", "export", "report")
ACTIONS = (*WRITING, "audit", "case", "verify", "rerun")


def run(kills: int, seed: str, folder: Path, seen: Seen) -> None:
    """End so many commands, and count."""
    chance = random.Random(seed)  # noqa: S311 - nothing is secret
    ground, usual = Ground(folder), {}
    for action in ("audit", *ACTIONS):
        began = time.monotonic()
        if wait(start(ground.command(action, chance))) != 0:
            raise SystemExit(f"{action} does not run.")
        usual[action] = time.monotonic() - began
    for _ in range(10 * kills):
        if seen.kills.total() == kills:
            break
        action = chance.choice(ACTIONS)
        print(f"{seen.kills.total()} of {kills}: {action}", file=sys.stderr)
        attempt(ground, action, usual[action], chance, seen)


def main() -> int:
    """Kill, and say what was seen."""
    parser = argparse.ArgumentParser(description="End commands at random moments.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", default="1", help="another one draws other moments")
    given = parser.parse_args()
    seen = Seen()
    # what was seen is told even if it is ended itself
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory(prefix="kills-") as folder:
        run(given.kills, given.seed, Path(folder), seen)
    found = {"seed": given.seed, "killed": seen.kills.total(), "failures": len(seen.failures)}
    counts = ("kills", "ends", "after", "reads")
    found |= {name: dict(sorted(getattr(seen, name).items())) for name in counts}
    print(json.dumps(found, indent=2))
    for each in seen.failures:
        print(each, file=sys.stderr)
    return bool(seen.failures) or seen.kills.total() < given.kills


if __name__ == "__main__":
    sys.exit(main())
