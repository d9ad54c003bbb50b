"""What tools/fuzz.py gives inputs to: each reader, with a few good inputs to start from."""

from __future__ import annotations

import gzip
import io
import json
import re
import socket
import threading
import zlib
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import yaml

import mutandis as mm
from mutandis.config.schema import Evidence, Settings, Similarity, Uncertainty
from mutandis.data.formula import FUNCTIONS, Formula
from mutandis.decision.maker import decide
from mutandis.decision.model import with_threshold
from mutandis.errors import MutandisError
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.outcome import Outcome
from mutandis.report.report import Report
from mutandis.rooms.endpoint import HttpMaker, read_reply
from mutandis.store import results_folder
from mutandis.store.files import hash_file
from mutandis.store.tables import column_names, read_source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Run = Callable[[bytes], Any]
    Prepare = Callable[[Path], tuple[Sequence[bytes], Run]]

__all__ = ["CANARY", "TARGETS", "Target"]

CANARY = "Qzxcanary"
"""A text that only cells hold: no message may quote it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A reader: how it is set up in an empty folder, and how many inputs a whole run gives it.

    `prepare` gives the inputs to start from, and what reads one; `parse` reads an input as a
    document, if it is one, whose values are changed then.
    """

    name: str
    inputs: int
    prepare: Prepare
    words: tuple[bytes, ...]
    binary: bool = False
    parse: Callable[[bytes], Any] | None = None


def _words(*texts: str) -> tuple[bytes, ...]:
    """List the words, numbers and signs of texts, each once."""
    found = (part for text in texts for part in re.findall(r"[\w$.-]+|[^\w\s]", text))
    return tuple(part.encode() for part in dict.fromkeys(found))


def _as_text(content: bytes) -> str:
    """Read bytes as text; what is no UTF-8 becomes halves of characters."""
    try:
        return content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return content.decode("utf-8", "surrogateescape")


# --- a table, and the texts that are about it -----------------------------------------------------


def _table(rows: int = 24) -> dict[str, list[Any]]:
    return {
        "id": list(range(1, rows + 1)),
        "sex": [("f", "m", "m")[n % 3] for n in range(rows)],
        "age": [20 + n * 7 % 31 for n in range(rows)],
        "pay": [1000.5 + n * 137 % 501 for n in range(rows)],
        "job": [("cook", "clerk", "baker")[n * 5 % 7 % 3] for n in range(rows)],
        "name": [f"{CANARY} {n}" for n in range(rows)],
        "granted": ["no" if n * 3 % 5 < 2 else "yes" for n in range(rows)],
    }


def _csv(separator: str = ",") -> str:
    table = _table()
    lines = [separator.join(table)]
    lines += [separator.join(map(str, row)) for row in zip(*table.values(), strict=True)]
    return "\n".join(lines) + "\n"


_FORMULAS = (
    "age > 3",
    "pay + 5 * `pay` > 225000 and not sex == 'f'",
    "where(age > 0, log(age), 0) ** 2 <= -max(pay, age, 1e3) / sqrt(abs(pay))",
    'job != "cook" or (age - 1) * 2 < 7 < pay',
    "round(pay / 7, 2) + min(age, 2) + exp(-age) >= .5",
    "`a ``b` == 1 or flag",
)
_AUDITS = (
    """\
data: {source: t.csv, id: id, missing: drop}
outcome: {column: granted, negative: 'no'}
protected: {attribute: sex, value: f, reference: m}
attributes:
  age: continuous
  pay: {kind: continuous, weight: 2.5}
  job: {kind: ordinal, levels: [cook, clerk, baker]}
worldview:
  pay: {equation: linear, parents: [$protected, age], bounds: [0, null]}
decision: {rule: "pay + 5 * age > 1200"}
methods: [st, cst_without, cst_matched, cf]
ks: [2, 4]
alpha: 0.05
tau: 0.1
seed: 7
similarity: {ties: fair, max_distance: 0.3, min_group: 2, scaling: range}
evidence: {interval: wald, adjust: benjamini-hochberg, direction: negative, primary: [st, 2]}
uncertainty: {draws: 0, refits: 2}
""",
    """\
data:
  source: "t*.csv"
  separator: ","
  decimal: "."
  encoding: utf-8
  header: true
  missing_text: [NA, '-']
outcome: {column: granted, negative: 'no'}
protected:
  - {attribute: sex, value: [f], reference: m, pool: true}
  - {attribute: job, value: cook, reference: clerk}
combine: multiple
attributes: {age: continuous, pay: continuous}
worldview:
  equations:
    age: {equation: count, parents: [sex]}
    pay: {equation: stated, formula: "1000 + 3 * age"}
  resolving: [age]
decision: {recorded: true}
ks: [3]
""",
    """\
data: {url: "sqlite:///t.db", query: "SELECT * FROM people"}
outcome: {column: granted, negative: 'no'}
protected: {attribute: sex, value: f, reference: m}
attributes: {age: nominal}
decision:
  http:
    {url: "http://127.0.0.1:9/x", batch: 5, envelope: rows, timeout: 1, retries: 0}
  threshold: 0.5
  favourable: above
ks: [2]
""",
)
_WORLDVIEWS = (
    """\
pay: {equation: linear, parents: [sex, age], bounds: [0, null], decimals: 2}
age: {equation: count, parents: [sex], bounds: [0, 99]}
""",
    """\
equations:
  pay: {equation: stated, formula: '3 * age + where(sex == 1, 2, 0)'}
  job: {equation: categorical, parents: [sex]}
  rank: {equation: ordinal, parents: [pay]}
resolving: [job]
latent:
  u:
    equations:
      tax: {equation: linear, parents: [age]}
      fee: {equation: linear, parents: [age]}
    residual_noise: true
""",
    "edges: [sex -> pay, age -> pay, sex -> age]\n",
)
_REPLIES = (
    '["yes","no","yes"]',
    '{"decisions": ["yes", true, 1]}',
    '{"scores": [0.25, 1, -3e2]}',
    '{"predictions": [null, "Qzxcanary", {"a": [1]}]}',
    "<html>Qzxcanary</html>",
)
_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n"
_SETTINGS = " ".join(
    each.name for kind in (Settings, Similarity, Evidence, Uncertainty) for each in fields(kind)
)


# --- readers --------------------------------------------------------------------------------------


def _formula(_: Path) -> tuple[Sequence[bytes], Run]:
    columns = {name: np.array(values) for name, values in _table(8).items()}
    columns["flag"] = columns["age"] > 30
    columns["a `b"] = columns["age"]

    def run(content: bytes) -> None:
        Formula.parse(_as_text(content)).evaluate(columns)

    return [text.encode() for text in _FORMULAS], run


@dataclass(frozen=True, slots=True)
class _Answering:
    """Stands for an endpoint that has answered."""

    answers: list[Any]

    def decide(self, frame: Any, /) -> Any:  # noqa: ARG002
        answers = np.empty(len(self.answers), dtype=np.object_)
        answers[:] = self.answers
        return answers


_OUTCOME = Outcome(
    column="granted",
    kind=BinaryKind(negative="no", positive="yes"),
    codes=np.array([True, False, True]),
)


def _reply(_: Path) -> tuple[Sequence[bytes], Run]:
    frame = {"age": [1, 2, 3]}

    def run(content: bytes) -> None:
        scores = b"scores" in content or bool(len(content) % 2)
        found = read_reply(content, rows=3, scores=scores, label="endpoint")
        answers = _Answering(found)
        # an answer that several rows share may be shown: it is a word for a decision
        shared = sum(CANARY in str(each) for each in found) > 1
        # deciding takes a hundred times as long as reading
        if zlib.crc32(content) % 16 == 0 and not shared:
            decide(with_threshold(answers, 0.5) if scores else answers, frame, _OUTCOME)

    return [text.encode() for text in _REPLIES], run


def _http(_: Path) -> tuple[Sequence[bytes], Run]:
    """Answer every request with the input itself, status line and all, from 127.0.0.1."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=8)
    answer = [b""]

    def serve() -> None:
        while True:
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(2)
                try:
                    connection.recv(65536)
                    connection.sendall(answer[0])
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(1)
                except OSError:
                    pass

    threading.Thread(target=serve, daemon=True).start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/x"

    def run(content: bytes) -> None:
        answer[0] = content
        maker = HttpMaker(url=url, columns=["age"], timeout=1, deadline=2, retries=0)
        decide(maker, {"age": [1, 2, 3]}, _OUTCOME)

    chunked = (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a=b\r\n\r\n"
        '12\r\n["yes","no","yes"]\r\n0\r\n\r\n'
    )
    moved = "HTTP/1.1 302 Found\r\nLocation: http://user:pw@127.0.0.1:9/y\r\n\r\nQzxcanary"
    busy = "HTTP/1.1 429 Too Many\r\nRetry-After: 1\r\nContent-Encoding: gzip\r\n\r\n"
    texts = (_HEAD + _REPLIES[0], _HEAD + _REPLIES[3], chunked, moved, busy)
    return [text.encode() for text in texts], run


def _audit(folder: Path) -> tuple[Sequence[bytes], Run]:
    import sqlite3
    from contextlib import closing

    (folder / "t.csv").write_text(_csv(), encoding="utf-8")
    table = _table()
    with closing(sqlite3.connect(folder / "t.db")) as database, database:
        database.execute("CREATE TABLE people (id, sex, age, pay, job, name, granted)")
        database.executemany(
            "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)", zip(*table.values(), strict=True)
        )
    path = folder / "audit.yaml"

    def run(content: bytes) -> None:
        path.write_bytes(content)
        plan = mm.read_plan(path)
        # running takes a hundred times as long as reading
        endpoint = b"http" in content
        if zlib.crc32(content) % 16 == 0 and not endpoint and _is_small(plan):
            plan.check()
            plan.run(threads=1).findings()

    return [text.encode() for text in _AUDITS], run


def _is_small(plan: Any) -> bool:
    """Tell whether a plan asks for little work: what is asked for on purpose may take long."""
    doubt = plan.settings.uncertainty
    return max(doubt.draws or 0, doubt.refits or 0) <= 20


def _worldview(*seeds: str, ending: str) -> Prepare:
    def prepare(folder: Path) -> tuple[Sequence[bytes], Run]:
        path = folder / f"w{ending}"

        def run(content: bytes) -> None:
            path.write_bytes(content)
            mm.Worldview.read(path)

        return [text.encode() for text in seeds], run

    return prepare


def _tables(ending: str, seeds: Callable[[], Sequence[bytes]], *, pack: bool = False) -> Prepare:
    """Read all columns of a table, and plan an audit of it."""

    def prepare(folder: Path) -> tuple[Sequence[bytes], Run]:
        path = folder / f"t{ending}"

        def run(content: bytes) -> None:
            path.write_bytes(gzip.compress(content, 1) if pack else content)
            try:
                column_names(path)
                read_source(path)
            except MutandisError as error:
                _check_names(error, content)
            try:
                mm.plan(
                    path,
                    outcome="granted",
                    negative="no",
                    protected=mm.Protection("sex", value="f", reference="m"),
                    attributes={"age": "continuous", "pay": "continuous", "job": "nominal"},
                    ks=(2,),
                    missing="drop" if len(content) % 2 else "error",
                )
            except MutandisError as error:
                _check_names(error, content)

        return seeds(), run

    return prepare


def _check_names(error: MutandisError, content: bytes) -> None:
    """Raise an error again, unless the canary got into the names, which messages may quote."""
    text = content.decode("utf-8", "replace")
    first = text.lstrip().splitlines()[0] if text.strip() else ""
    named = CANARY in first if "{" not in first else re.search(rf'{CANARY}[^,]*"\s*:', text)
    if CANARY in str(error) and named:
        return
    raise error


def _parquet() -> list[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = []
    table = pa.table(_table())
    for options in (
        {"compression": "none", "use_dictionary": True},
        {"compression": "zstd", "use_dictionary": False, "data_page_version": "2.0"},
        {"compression": "snappy", "row_group_size": 10},
    ):
        buffer = io.BytesIO()
        pq.write_table(table, buffer, **options)
        found.append(buffer.getvalue())
    return found


def _results(folder: Path) -> Path:
    """Write two audits: one with everything that is stored, one of several grounds."""
    (folder / "t.csv").write_text(_csv(), encoding="utf-8")
    for name, text in (("one", _AUDITS[0]), ("two", _AUDITS[1])):
        (folder / "audit.yaml").write_text(text, encoding="utf-8")
        found = mm.read_plan(folder / "audit.yaml").run(threads=1)
        with patch.object(mm.Audit, "report", lambda *_, **__: Report(html="", plots={})):
            found.save(folder / name)
    return folder


def _use(folder: Path) -> None:
    audit = mm.open_results(folder)
    found = audit.findings()
    if len(found):
        audit.case(found["id"].iloc[0])
    mm.verify_results(folder)


def _write_fitting(folder: Path, record: Any) -> None:
    """Write a record with hashes that fit: whoever can write the folder can do that."""
    if isinstance(record, dict):
        outputs = record.get("outputs")
        if isinstance(outputs, dict) and results_folder.STATE in outputs:
            outputs[results_folder.STATE] = hash_file(folder / results_folder.STATE)
        record["sha256"] = results_folder._hash_record(record)  # noqa: SLF001
    (folder / results_folder.RECORD).write_text(json.dumps(record), encoding="utf-8")


def _record(folder: Path) -> tuple[Sequence[bytes], Run]:
    """Read a changed audit.json, with its hash made to fit in every second case."""
    written = _results(folder)
    path = written / "one" / results_folder.RECORD

    def run(content: bytes) -> None:
        path.write_bytes(content)
        if len(content) % 2:
            try:
                _write_fitting(path.parent, json.loads(content))
            except (ValueError, RecursionError):
                path.write_bytes(content)
        _use(path.parent)

    return [(written / name / results_folder.RECORD).read_bytes() for name in ("one", "two")], run


def _state(folder: Path) -> tuple[Sequence[bytes], Run]:
    """Read a changed header of audit.npz, with arrays as they were and hashes that fit."""
    written = _results(folder)
    stored = written / "one" / results_folder.STATE
    record = json.loads((stored.parent / results_folder.RECORD).read_bytes())
    with np.load(stored) as opened:
        arrays = {name: opened[name] for name in opened.files}
    header = arrays.pop("header").tobytes()

    def run(content: bytes) -> None:
        np.savez(stored, **arrays, header=np.frombuffer(content, dtype=np.uint8))
        _write_fitting(stored.parent, record)
        _use(stored.parent)

    return [header], run


def _npz(folder: Path) -> tuple[Sequence[bytes], Run]:
    """Read a changed audit.npz, with hashes that fit."""
    written = _results(folder)
    stored = written / "one" / results_folder.STATE
    record = json.loads((stored.parent / results_folder.RECORD).read_bytes())
    with np.load(stored) as opened:
        arrays = {name: opened[name] for name in opened.files}
    plain = io.BytesIO()
    np.savez(plain, **arrays)  # not packed, so that a changed byte is not only a bad checksum
    seeds = [stored.read_bytes(), plain.getvalue(), (written / "two" / stored.name).read_bytes()]

    def run(content: bytes) -> None:
        stored.write_bytes(content)
        _write_fitting(stored.parent, record)
        _use(stored.parent)

    return seeds, run


_ROWS = _words(_csv(), "NA inf nan 1e5 2020-01-01 2020-01-01T00:00:00Z true FALSE 12:00 1.5 1,5")
_BYTES = (b"PAR1", b"PK\x03\x04", b"\xff\xff\xff\xff", b"\0\0\0\0", CANARY.encode())
TARGETS = (
    Target(
        "formula", 360_000, _formula, _words(*_FORMULAS, " ".join(FUNCTIONS), "if in is lambda")
    ),
    Target(
        "reply", 600_000, _reply, _words(*_REPLIES, "Infinity NaN -0 1e400 [] {}"), parse=json.loads
    ),
    Target(
        "http", 1_000, _http, _words(_HEAD, *_REPLIES, "chunked gzip Transfer-Encoding 100 301 500")
    ),
    Target(
        "audit",
        8_000,
        _audit,
        _words(*_AUDITS, _SETTINGS, "onnx skops pickle python trusted log"),
        parse=yaml.safe_load,
    ),
    Target(
        "worldview",
        20_000,
        _worldview(*_WORLDVIEWS, ending=".yaml"),
        _words(*_WORLDVIEWS),
        parse=yaml.safe_load,
    ),
    Target("csv", 1_500, _tables(".csv", lambda: [_csv().encode(), _csv(";").encode()]), _ROWS),
    Target("packed", 500, _tables(".csv.gz", lambda: [_csv().encode()], pack=True), _ROWS),
    Target("parquet", 1_500, _tables(".parquet", _parquet), _BYTES, binary=True),
    Target(
        "record",
        2_500,
        _record,
        _words("null true 0 1 -1 1e400 [] {} sha256 outputs config text"),
        parse=json.loads,
    ),
    Target(
        "state",
        2_500,
        _state,
        _words("null true 0 1 -1 array arr_0 arr_1 arr_5 counted parts [] {}"),
        parse=json.loads,
    ),
    Target("npz", 1_500, _npz, _BYTES, binary=True),
)
