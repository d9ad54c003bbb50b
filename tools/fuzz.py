"""Gives the readers of mutandis damaged and hostile inputs, and looks at what happens.

An input may be read, or be refused by an error of mutandis whose message holds no cell. Anything
else is a failure: another exception, a warning of another library, a dead process, more than a few
seconds, or more than 2 GB. Inputs are mutations of a few small ones, drawn by
`random.Random("seed/target/number")`, so that each can be made again alone.

What fails is made as small as possible and written to tests/fuzz/corpus, where an ordinary test
replays it (tests/fuzz/test_fuzz_corpus.py) and the next run starts from it too.

    python tools/fuzz.py              # some 25 minutes on one core
    python tools/fuzz.py --quick      # half a minute
    python tools/fuzz.py --only csv --seed 7 --scale 0.1
    python tools/fuzz.py --only csv --seed 7 --number 4711    # one input again, with its traceback
"""

from __future__ import annotations

import argparse
import hashlib
import json
import mmap
import os
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuzz_targets import CANARY, TARGETS

from mutandis.errors import MutandisError, MutandisWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fuzz_targets import Target

CORPUS = Path(__file__).parents[1] / "tests" / "fuzz" / "corpus"
MEMORY = 2 * 10**9
# of processor time for one input, and of waiting before a process counts as stuck
SECONDS, STUCK = 5.0, 60.0
QUICK = 0.03

_PART = re.compile(rb"[A-Za-z_]+|[0-9]+|\s+|[\x80-\xff]+|.", re.DOTALL)
_NUMBERS = (0, 1, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63)
# what readers stumble over: other scripts, halves of characters, controls, size
_STRANGE = tuple(
    text.encode("utf-8", "surrogatepass")
    for text in (
        *("\0", "\ud800", "\u202e", "\x1b[31m", "\x85", "\u2028", "\ufeff", "\U0001f600", "ﬁ", "٣"),
        *("9" * 400, "1e400", "-1e-400", "nan", "inf", "-0", "0x10", "1_0", "007", "1e16", "½"),
        *(
            "null",
            "true",
            "~",
            "''",
            '""',
            "'",
            '"',
            "`",
            "\\",
            "\\u0000",
            "\\ud800",
            "\\UFFFFFFFF",
        ),
        *("[" * 200, "(" * 300, "{" * 50, "<" * 20, "-" * 500, "a" * 5000, "x" * 300, "é" * 130),
        *(
            "\r",
            "\r\n",
            "\n",
            "\t",
            " ",
            ",",
            ";",
            ":",
            "#",
            "*",
            "&",
            "!",
            "%",
            "@",
            "|",
            ">",
            "=",
            "-",
        ),
        *(
            "/",
            "..",
            "../..",
            "//",
            "$",
            "{}",
            "[]",
            "()",
            "''''",
            "\n\n",
            "---\n",
            "...\n",
            "%YAML 9.9\n",
        ),
    )
)


# what a value of a document may be replaced by
_VALUES = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        5,
        1.5,
        -0.0,
        1e-300,
        1e300,
        10**400,
        -(10**20),
        2**63,
        2**31,
    ),
    *("", " ", "x", "no", "1", "1e400", "nan", "$protected", "\0", "\ud800", "\u202e", "a" * 300),
    *([], {}, [[]], [None], ["x", "x"], [0, 0], {"x": 1}, {"": None}, [[1], {"a": []}], [1] * 50),
)


def mutate(chance: random.Random, target: Target, seeds: Sequence[bytes]) -> bytes:
    """Change a seed in one or a few places: values of a document, words, or bytes."""
    content = chance.choice(seeds)
    if target.parse is not None and chance.random() < 0.6:
        with suppress(Exception):  # seeds of the corpus need not be documents
            return _change_document(chance, json.loads(_as_json(content, target.parse)))
    change = _change_bytes if target.binary else _change_parts
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5, 9))):
        content = change(chance, content, target, seeds)
    return content[:200_000]


@lru_cache(maxsize=1000)
def _as_json(content: bytes, parse: Callable[[bytes], Any]) -> str:
    return json.dumps(parse(content))


def _change_document(chance: random.Random, document: Any) -> bytes:
    """Replace, remove, rename or repeat values; write the document as JSON, which YAML reads."""
    root = [document]
    for _ in range(chance.choice((1, 1, 1, 2, 2, 4))):
        places = list(_places(root))
        holder, key = chance.choice(places)
        other, there = chance.choice(places)
        match chance.randrange(8):
            case 0 if len(places) > 1 and holder is not root:
                del holder[key]
            case 1 if isinstance(holder, dict):
                names = [each for part, each in places if isinstance(part, dict)]
                holder[chance.choice([*names, "x", ""])] = holder.pop(key)
            case 2:
                holder[key] = deepcopy(other[there])
            case 3:
                holder[key] = [holder[key]]
            case 4 if isinstance(holder[key], list):
                holder[key] *= chance.choice((2, 3, 40))
            case _:
                holder[key] = deepcopy(chance.choice(_VALUES))
    return json.dumps(root[0], ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")


def _places(part: Any) -> Iterator[tuple[Any, Any]]:
    """List every value of a document, as what holds it and where."""
    keys = list(part) if isinstance(part, dict) else range(len(part))
    for key in keys:
        yield part, key
        if isinstance(part[key], dict | list):
            yield from _places(part[key])


def _change_parts(
    chance: random.Random, content: bytes, target: Target, seeds: Sequence[bytes]
) -> bytes:
    """Change words, numbers and signs of a text."""
    parts: list[bytes] = _PART.findall(content) or [b""]
    here, width = chance.randrange(len(parts)), chance.choice((1, 1, 1, 2, 3, 5, 10, 30))
    match chance.randrange(9):
        case 0:
            parts[here : here + width] = []
        case 1:
            parts[here:here] = parts[here : here + width] * chance.choice((1, 1, 1, 2, 50))
        case 2 | 3:
            parts[here] = chance.choice(target.words)
        case 4:
            parts[here : here + width] = [chance.choice(_STRANGE)]
        case 5:
            parts.insert(here, chance.choice(target.words + _STRANGE))
        case 6:
            there = chance.randrange(len(parts))
            parts[here], parts[there] = parts[there], parts[here]
        case 7:
            others: list[bytes] = _PART.findall(chance.choice(seeds)) or [b""]
            there = chance.randrange(len(others))
            parts[here : here + width] = others[there : there + width]
        case _:
            return _change_bytes(chance, content, target, seeds)
    return b"".join(parts)


def _change_bytes(
    chance: random.Random, content: bytes, target: Target, seeds: Sequence[bytes]
) -> bytes:
    """Change some bytes, whatever they mean."""
    found = bytearray(content or b"\0")
    here, width = chance.randrange(len(found)), chance.choice((1, 1, 2, 4, 8, 30, 200))
    match chance.randrange(8):
        case 0:
            found[here] ^= 1 << chance.randrange(8)
        case 1:
            found[here] = chance.randrange(256)
        case 2:
            del found[here : here + width]
        case 3:
            found[here:here] = found[here : here + width] * chance.choice((1, 1, 3, 100))
        case 4:
            form = chance.choice(("<I", "<Q", "<H", ">I", "B"))
            number = chance.choice(_NUMBERS) % 256 ** struct.calcsize(form)
            found[here : here + struct.calcsize(form)] = struct.pack(form, number)
        case 5:
            other = chance.choice(seeds)
            there = chance.randrange(len(other) or 1)
            found[here : here + width] = other[there : there + width]
        case 6:
            found[here : here + len(word)] = (word := chance.choice(target.words))
        case _:
            del found[here:]
    return bytes(found)


@dataclass(slots=True)
class Failure:
    """What went wrong, and the smallest input for which it does."""

    target: str
    number: int
    what: str
    times: int = 1
    content: bytes = field(default=b"", repr=False)


def judge(run: Callable[[bytes], Any], content: bytes) -> tuple[str, str] | None:
    """Run one input; say what is wrong with what happened, and where, or give None."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", MutandisWarning)
            run(content)
    except MutandisError as error:
        told = _messages(error)
        if CANARY in told:
            return "a message holds a cell", f"{type(error).__name__}: {told}"
        if not told.strip():
            return "a message is empty", type(error).__name__
    except (Exception, SystemExit) as error:  # noqa: BLE001 - that is what is looked for
        frames = traceback.extract_tb(error.__traceback__)
        ours = [each for each in frames if f"{os.sep}mutandis{os.sep}" in each.filename]
        last = (ours or frames)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return f"{type(error).__name__} at {place}", "".join(traceback.format_exception(error))
    spent = time.process_time() - began
    return ("too slow", f"{spent:.1f} s of processor time") if spent > SECONDS else None


def _messages(error: BaseException) -> str:
    """Give all messages that a traceback would show."""
    told = []
    current: BaseException | None = error
    while current is not None and len(told) < 10:
        told.append(str(current))
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
    return "\n".join(told)


def shrink(run: Callable[[bytes], Any], content: bytes, what: str) -> bytes:
    """Take out what is not needed for the same failure, for ten seconds at most."""
    until = time.monotonic() + 10
    width = max(len(content) // 2, 1)
    while time.monotonic() < until:
        for start in range(0, len(content), width):
            shorter = content[:start] + content[start + width :]
            found = judge(run, shorter)
            if found is not None and found[0] == what:
                content = shorter
                break
            if time.monotonic() > until:
                break
        else:
            if width == 1:
                break
            width = max(width // 2, 1)
    return content


def seeds_of(target: Target, own: Sequence[bytes]) -> list[bytes]:
    """List the inputs to start from: those of the target, and the corpus."""
    kept = sorted((CORPUS / target.name).glob("*"))
    return [*own, *(path.read_bytes() for path in kept)]


def input_of(target: Target, seeds: Sequence[bytes], seed: str, number: int) -> bytes:
    """Make an input again by its number."""
    chance = random.Random(f"{seed}/{target.name}/{number}")  # noqa: S311 - nothing is secret
    return mutate(chance, target, seeds)


def _work(target: Target, numbers: range, seed: str, shared: mmap.mmap, log: int) -> None:
    """Run inputs one after the other, in a process of their own; log the failures."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_memory_folder()) as folder:
        os.chdir(folder)
        own, run = target.prepare(Path(folder))
        seeds = seeds_of(target, own)
        run(own[0])  # is good: a reader that refuses everything would pass
        for content in own:
            judge(run, content)  # what is loaded and reserved once does not count
        resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes() + MEMORY,) * 2)
        known: dict[str, int] = {}
        for number in numbers:
            shared[:8] = struct.pack("<Q", number)
            content = input_of(target, seeds, seed, number)
            found = judge(run, content)
            if found is None:
                continue
            known[found[0]] = known.get(found[0], 0) + 1
            smallest = shrink(run, content, found[0]) if known[found[0]] == 1 else b""
            line = [number, found[0], found[1][-3000:], smallest.hex()]
            os.write(log, json.dumps(line).encode() + b"\n")


def _data_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmData:\s*([0-9]+) kB", status)[1]) * 1024


def _memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder in it


def fuzz(target: Target, count: int, seed: str) -> Iterator[Failure]:
    """Run a target in other processes until all inputs were tried; give what failed."""
    shared = mmap.mmap(-1, 8)
    start = 0
    while start < count:
        with tempfile.TemporaryFile() as log:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
                        os.dup2(nowhere.fileno(), 1)
                    _work(target, range(start, count), seed, shared, log.fileno())
                    code = 0
                except BaseException:  # noqa: BLE001 - shown, and then the process ends
                    traceback.print_exc()
                finally:
                    os._exit(code)
            ended = _wait(child, shared)
            log.seek(0)
            yield from _failures(target, log.read().decode().splitlines())
        if ended == "exit 0":
            return
        if ended == "exit 1":
            raise SystemExit(f"The target {target.name} does not work.")
        (number,) = struct.unpack("<Q", shared[:8])
        yield Failure(target.name, number, f"the process ended by {ended}")
        start = number + 1


def _wait(child: int, shared: mmap.mmap) -> str:
    """Wait for a process; end it if one input takes too long."""
    last, since = b"", time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return f"exit {code}" if code >= 0 else signal.Signals(-code).name
        if shared[:8] != last:
            last, since = shared[:8], time.monotonic()
        elif time.monotonic() - since > STUCK:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"being stuck for {STUCK:.0f} s"
        time.sleep(0.05)


def _failures(target: Target, lines: Sequence[str]) -> Iterator[Failure]:
    found: dict[str, Failure] = {}
    for line in lines:
        number, what, told, content = json.loads(line)
        if what in found:
            found[what].times += 1
        else:
            found[what] = Failure(target.name, number, what, content=bytes.fromhex(content))
            print(f"\n{target.name} {number}: {what}\n{told}", file=sys.stderr)
    yield from found.values()


def keep(failure: Failure, seed: str) -> Path:
    """Write a failing input to the corpus."""
    content = failure.content
    if not content:  # the process died: the input is made again, as it was
        (target,) = (each for each in TARGETS if each.name == failure.target)
        with tempfile.TemporaryDirectory() as folder:
            own, _ = target.prepare(Path(folder))
        content = input_of(target, seeds_of(target, own), seed, failure.number)
    path = CORPUS / failure.target / hashlib.sha256(content).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _run_again(target: Target, seed: str, number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        own, run = target.prepare(Path(folder))
        content = input_of(target, seeds_of(target, own), seed, number)
        print(content[:2000])
        print(*(judge(run, content) or ("nothing is wrong",)), sep="\n")


def main() -> int:
    """Fuzz, and say how much was tried and what failed."""
    parser = argparse.ArgumentParser(description="Give hostile inputs to every reader.")
    parser.add_argument("--seed", default="1", help="another one draws other inputs")
    parser.add_argument("--quick", action="store_true", help="half a minute")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many inputs")
    parser.add_argument("--only", choices=[each.name for each in TARGETS], help="one target")
    parser.add_argument("--number", type=int, help="run this input of --only again")
    parser.add_argument("--json", type=Path, help="where to write the counts")
    parser.add_argument("--keep", action="store_true", help="write what fails to the corpus")
    given = parser.parse_args()
    chosen = [each for each in TARGETS if given.only in (None, each.name)]
    if given.number is not None:
        _run_again(chosen[0], given.seed, given.number)
        return 0
    scale = QUICK if given.quick else given.scale
    failures: list[Failure] = []
    rows = []
    for target in chosen:
        count = max(round(target.inputs * scale), 20)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        failed = list(fuzz(target, count, given.seed))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        failures += failed
        rows.append({"target": target.name, "inputs": count, "seconds": round(spent, 1)})
        print(
            f"{target.name:12} {count:9,} inputs {spent:7.1f} s of processor time  "
            f"{len(failed)} kinds of failure",
            flush=True,
        )
    total = sum(row["inputs"] for row in rows)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"{'all':12} {total:9,} inputs, at most {peak:,} MB; seed {given.seed}")
    for each in failures:
        kept = f", kept as {keep(each, given.seed)}" if given.keep else ""
        print(f"{each.target} {each.number}: {each.what}, {each.times} times{kept}")
    if given.json:
        with suppress(KeyError):
            given.json.write_text(
                json.dumps({"seed": given.seed, "peak_mb": peak, "targets": rows})
            )
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
