"""Whatever is wrong is said in one paragraph; nothing is written, and older results stay whole."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sys
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.cli import app
from mutandis.files.table_files import hash_file
from mutandis.report.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = """\
data: {source: loan.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview: {AnnualSalary: {equation: linear, parents: [$protected]}}
ks: [3]
"""
SECRET = "Jane-Doe-12345"


@dataclass(frozen=True)
class Workplace:
    """A folder with good data, a good config, and results from before."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

    @property
    def table(self) -> pd.DataFrame:
        return pd.read_csv(self.folder / "loan.csv")

    def write_table(self, table: pd.DataFrame, **options: object) -> None:
        table.to_csv(self.folder / "loan.csv", index=False, **options)  # type: ignore[call-overload]

    def write_config(self, old: str = "", new: str = "") -> None:
        assert old in CONFIG
        text = CONFIG.replace(old, new) if old else CONFIG + new
        (self.folder / "audit.yaml").write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> tuple[int, str, str]:
        self.patch.chdir(self.folder)
        self.patch.setattr(sys, "argv", ["mutandis", *arguments])
        self.capture.readouterr()
        code: object = 0
        try:
            app.main()
        except SystemExit as end:
            code = end.code
        output = self.capture.readouterr()
        assert isinstance(code, int | None)
        return code or 0, output.out, output.err

    def snapshot(self) -> dict[str, str]:
        return {
            path.relative_to(self.folder).as_posix(): hash_file(path) if path.is_file() else ""
            for path in self.folder.rglob("*")
            if "__pycache__" not in path.parts
        }

    def refused(self, *words: str, code: int = 2) -> str:
        """Run the audit over the older results, and see that it fails as it should."""
        before = self.snapshot()
        ended, out, err = self.run(
            "audit", "audit.yaml", "--out", "results", "--force", "--trust-code"
        )
        assert (ended, out) == (code, ""), err
        assert self.snapshot() == before
        assert err.startswith("mutandis: ")
        assert err.count("\n") == 1, err  # one paragraph
        assert len(err) < 1200
        assert "Traceback" not in err
        assert SECRET not in err
        for each in words:
            assert each in err, err
        return err


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    mm.datasets.loan(n=80, seed=1).to_csv(folder / "loan.csv", index=False)
    (folder / "audit.yaml").write_text(CONFIG, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys,
            "argv",
            ["mutandis", "audit", str(folder / "audit.yaml"), "--out", str(folder / "results")],
        )
        with pytest.raises(SystemExit) as end:
            app.main()
    assert not end.value.code
    return folder


@pytest.fixture
def workplace(
    good: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Workplace:
    shutil.copytree(good, tmp_path / "copy")
    return Workplace(folder=tmp_path / "copy", capture=capsys, patch=monkeypatch)


def test_a_missing_file(workplace: Workplace) -> None:
    (workplace.folder / "loan.csv").unlink()
    workplace.refused("loan.csv")


def test_a_missing_config(workplace: Workplace) -> None:
    (workplace.folder / "audit.yaml").unlink()
    workplace.refused("audit.yaml", "cannot be opened")


def test_the_wrong_separator(workplace: Workplace) -> None:
    workplace.write_config("source: loan.csv", "source: loan.csv, separator: ;")
    workplace.refused("separator")


def test_a_separator_that_is_found_out(workplace: Workplace) -> None:
    workplace.write_table(workplace.table, sep="|")
    assert workplace.run("check", "audit.yaml")[0] == 0


@pytest.mark.parametrize("content", [b"", b"Gender,LoanApproval,AnnualSalary,AccountBalance\n"])
def test_an_empty_table(workplace: Workplace, content: bytes) -> None:
    (workplace.folder / "loan.csv").write_bytes(content)
    workplace.refused()


def test_duplicate_column_names(workplace: Workplace) -> None:
    path = workplace.folder / "loan.csv"
    header, rest = path.read_text(encoding="utf-8").split("\n", 1)
    path.write_text(
        header.replace("AccountBalance", "AnnualSalary") + "\n" + rest, encoding="utf-8"
    )
    workplace.refused("AnnualSalary")


def test_another_encoding(workplace: Workplace) -> None:
    table = workplace.table
    table["Town"] = "Köln"
    workplace.write_table(table, encoding="latin-1")
    workplace.refused("UTF-8", "encoding")
    workplace.write_config("source: loan.csv", "source: loan.csv, encoding: latin-1")
    assert workplace.run("check", "audit.yaml")[0] == 0


def test_an_encoding_that_does_not_exist(workplace: Workplace) -> None:
    workplace.write_config("source: loan.csv", "source: loan.csv, encoding: utf-99")
    workplace.refused("The encoding is not known")


def test_a_binary_file(workplace: Workplace) -> None:
    (workplace.folder / "loan.csv").write_bytes(bytes(range(256)) * 40)
    workplace.refused()


def test_a_column_of_mixed_types(workplace: Workplace) -> None:
    table = workplace.table.astype({"AnnualSalary": object})
    table.loc[3, "AnnualSalary"] = SECRET
    workplace.write_table(table)
    workplace.refused("AnnualSalary")


def test_ten_thousand_columns_of_which_few_are_needed(workplace: Workplace) -> None:
    table = workplace.table
    more = pd.DataFrame(
        np.zeros((len(table), 10_000), dtype=int), columns=[f"column_{n}" for n in range(10_000)]
    )
    workplace.write_table(pd.concat([table, more], axis=1))
    code, out, err = workplace.run("check", "audit.yaml")
    assert (code, err) == (0, ""), err
    assert "decisions" in out
    workplace.write_config("AccountBalance: continuous", "AccountBalances: continuous")
    workplace.refused("'AccountBalances'", "Did you mean 'AccountBalance'?")


@pytest.mark.slow
def test_ten_thousand_attributes(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    more = "".join(f", column_{n}: continuous" for n in range(10_000))
    workplace.write_config("AccountBalance: continuous", f"AccountBalance: continuous{more}")
    workplace.refused("10,002 attributes", "The limit is 1,000 attributes")
    monkeypatch.setenv("MUTANDIS_LIMITS", "20")
    workplace.refused("column_0")


def test_a_category_that_appears_once(workplace: Workplace) -> None:
    table = workplace.table
    table["Job"] = ["cook", "clerk"] * (len(table) // 2) + ["cook"] * (len(table) % 2)
    table.loc[5, "Job"] = SECRET
    workplace.write_table(table)
    workplace.write_config("AccountBalance: continuous", "AccountBalance: continuous, Job: nominal")
    assert workplace.run("check", "audit.yaml")[0] == 0


def test_a_protected_value_that_appears_once(workplace: Workplace) -> None:
    table = workplace.table
    table["Gender"] = [1] + [0] * (len(table) - 1)
    workplace.write_table(table)
    workplace.refused("k=3")


def test_an_outcome_with_a_third_value(workplace: Workplace) -> None:
    table = workplace.table.astype({"LoanApproval": object})
    table.loc[5, "LoanApproval"] = "pending"
    workplace.write_table(table)
    workplace.refused("LoanApproval")


def test_a_date_column(workplace: Workplace) -> None:
    table = workplace.table
    table["Born"] = pd.date_range("1980-01-01", periods=len(table)).strftime("%Y-%m-%d")
    workplace.write_table(table)
    workplace.write_config(
        "AccountBalance: continuous", "AccountBalance: continuous, Born: continuous"
    )
    workplace.refused("Born")


def test_missing_values(workplace: Workplace) -> None:
    table = workplace.table
    table.loc[[3, 4], "AnnualSalary"] = np.nan
    workplace.write_table(table)
    workplace.refused("AnnualSalary", "2 missing", "missing")
    workplace.write_config("source: loan.csv", "source: loan.csv, missing: drop")
    code, out, _ = workplace.run("check", "audit.yaml")
    assert code == 0
    assert "2 for 'AnnualSalary'" in out


def test_a_config_with_a_slip_of_the_pen(workplace: Workplace) -> None:
    workplace.write_config("attributes:", "atributes:")
    workplace.refused("line 4", "Did you mean 'attributes'?")


def decision(workplace: Workplace, body: str) -> None:
    (workplace.folder / "model_of_ours.py").write_text(
        f"import numpy as np\n\ndef decide(table):\n    {body}\n", encoding="utf-8"
    )
    workplace.write_config("", "decision: {python: model_of_ours:decide}\n")
    # each test has a module of its own, under the same name
    workplace.patch.delitem(sys.modules, "model_of_ours", raising=False)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return np.ones(len(table) - 1, dtype=bool)", ("79", "80")),
        ("return np.where(np.arange(len(table)) == 3, np.nan, 1.0)", ()),
        (f"raise ValueError('{SECRET}')", ("ValueError",)),
        ("return None", ()),
        ("return ['maybe'] * len(table)", ()),
        ("return np.ones((len(table), 2))", ()),
        ("import sys; sys.exit(0)", ("SystemExit",)),
    ],
)
def test_a_model_that_does_not_answer_as_agreed(
    workplace: Workplace, body: str, words: tuple[str, ...]
) -> None:
    rows = len(workplace.table)
    decision(workplace, body)
    numbers = {"79": str(rows - 1), "80": str(rows)}
    workplace.refused(*(numbers.get(each, each) for each in words), code=3)


def test_a_model_that_cannot_be_found(workplace: Workplace) -> None:
    workplace.write_config("", "decision: {python: no_such_module:decide}\n")
    workplace.refused("no_such_module", code=3)


class Endpoint(BaseHTTPRequestHandler):
    """An endpoint that misbehaves in the way its path says."""

    def do_POST(self) -> None:
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        how = self.path.strip("/")
        if how == "slow":
            time.sleep(2)
        status = 500 if how == "error" else 200
        answers = {
            "garbage": b"<html>" + SECRET.encode() + b"</html>",
            "short": json.dumps([1] * (len(rows) - 1)).encode(),
            "null": json.dumps([None] * len(rows)).encode(),
            "error": SECRET.encode(),
        }
        body = answers.get(how, json.dumps([1] * len(rows)).encode())
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("how", ["slow", "error", "garbage", "short", "null"])
def test_an_endpoint_that_misbehaves(workplace: Workplace, address: str, how: str) -> None:
    settings = f"{{url: '{address}/{how}', timeout: 0.3, retries: 1, backoff: 0.01}}"
    workplace.write_config("", f"decision: {{http: {settings}}}\n")
    workplace.refused(code=3)


def test_an_endpoint_that_is_not_there(workplace: Workplace) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        port = taken.getsockname()[1]
        workplace.write_config(
            "", f"decision: {{http: {{url: 'http://127.0.0.1:{port}/', retries: 0}}}}\n"
        )
        workplace.refused(code=3)


def test_an_endpoint_that_behaves(workplace: Workplace, address: str) -> None:
    workplace.patch.setattr(mm.Audit, "report", lambda self, **more: Report(html="", plots={}))
    workplace.write_config("", f"decision: {{http: {{url: '{address}/good', batch: 50}}}}\n")
    code, out, err = workplace.run("audit", "audit.yaml", "--out", "new")
    assert (code, err) == (0, ""), err
    assert "CF" in out
    lines = (workplace.folder / "new" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    assert sum(json.loads(line)["rows"] for line in lines) >= len(workplace.table)
    assert workplace.run("verify", "new", "--rerun")[0] == 0


def test_no_room_on_the_disk(workplace: Workplace) -> None:
    import errno

    from mutandis.files import saved_audit

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    workplace.patch.setattr(saved_audit, "write_numbers", full)
    workplace.refused("No space left on device", "Nothing there has changed")


def test_the_good_one_goes_through(workplace: Workplace) -> None:
    """The tests above would be worth nothing if every audit failed."""
    before = workplace.snapshot()
    code, out, err = workplace.run("audit", "audit.yaml", "--out", "results", "--force")
    assert (code, err) == (0, "")
    assert "results/report.html" in out
    assert workplace.snapshot() != before
