"""Ctrl-C and SIGTERM end a command within two seconds, wherever it is."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mutandis.cli.exit_codes import Stopped, explain
from mutandis.errors import DecisionError, OutputError
from mutandis.store.output_folder import recover_output
from tests.cli.conftest import LOAN, write_config
from tests.cli.conftest import PLAIN as CONFIG

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Server

# programs are started and ended by signals
pytestmark = pytest.mark.slow

TOOL = Path(__file__).parents[2] / "tools" / "kills.py"
# The wall clock of a busy machine is not that of the program: what it has to stay below is far
# above two seconds, and far below what each of these would otherwise take.
LATE = 15

# {place} is what is replaced by something that does not end. pbkdf2_hmac stands for any call of
# a library in C that neither looks at signals nor returns.
PROGRAM = """
import hashlib, sys, threading, time
from pathlib import Path
from mutandis.cli import app

def compute():
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)

def hang(*given, **more):
    Path("hanging").touch()
    {hang}

{patch}
sys.argv = ["mutandis", *sys.argv[1:]]
app.main()
"""
SWALLOW = """
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""
THREADS = """
    others = [threading.Thread(target=compute) for _ in range(2)]
    for each in others:
        each.start()
    for each in others:
        each.join()
"""
DUCKDB = """
    import duckdb
    duckdb.sql("SELECT count(*) FROM range(10000000) a, range(1000000) b").fetchall()
"""
READ = "from mutandis.store import duckdb_reader; duckdb_reader.connect = hang"
SEARCH = "from mutandis.auditing import run; run.run_plan = hang"
TIPPING = "from mutandis.auditing import run; run.find_robustness = hang"
DRAW = "from mutandis.auditing.audit import Audit; Audit.report = hang"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_config(tmp_path, CONFIG, rows=60)
    (tmp_path / "out").mkdir()
    return tmp_path


def start(folder: Path, program: str = PROGRAM.format(hang="", patch="")) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", program, "audit", "audit.yaml", "--out", "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )


def wait(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it never got there"
        time.sleep(0.02)
    time.sleep(0.2)  # into the call that does not end


def assert_ends(process: subprocess.Popen[str], number: signal.Signals) -> None:
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=LATE)
    finally:
        process.kill()
    assert (process.returncode, out) == (128 + number, "")
    assert err.startswith("mutandis: Stopped")
    assert err.count("\n") == 1
    assert err.endswith("No half-written results are left.\n")


@pytest.mark.parametrize(
    ("hang", "patch", "number"),
    [
        pytest.param("compute()", READ, signal.SIGINT, id="reading, in C"),
        pytest.param(DUCKDB, READ, signal.SIGTERM, id="reading, in DuckDB"),
        pytest.param(THREADS, SEARCH, signal.SIGTERM, id="searching, in threads"),
        pytest.param(SWALLOW, TIPPING, signal.SIGTERM, id="where the exception is lost"),
        pytest.param("compute()", DRAW, signal.SIGINT, id="drawing, in C"),
    ],
)
def test_a_signal_ends_what_does_not_return(
    folder: Path, hang: str, patch: str, number: signal.Signals
) -> None:
    if patch == TIPPING:  # only a worldview has tipping points
        write_config(folder, LOAN, rows=60)
    process = start(folder, PROGRAM.format(hang=hang, patch=patch))
    wait((folder / "hanging").exists, process)
    assert_ends(process, number)
    assert list((folder / "out").iterdir()) == []
    # what was left beside the results goes with the next run
    recover_output(folder / "out")
    left = {path.name for path in folder.iterdir()}
    assert left == {"audit.yaml", "hanging", "loan.csv", "out"}


def test_a_signal_ends_a_query_of_sqlite(folder: Path) -> None:
    pytest.importorskip("adbc_driver_sqlite", reason="the extra 'db' is not installed")
    sqlite3.connect(folder / "loan.db").close()
    query = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT max(x) AS Gender, 1 AS LoanApproval, 2 AS AnnualSalary FROM n"
    )
    config = CONFIG.replace("source: loan.csv", f"url: 'sqlite:///loan.db', query: '{query}'")
    (folder / "audit.yaml").write_text(config, encoding="utf-8")
    patch = (
        "from mutandis.rooms.database import DatabaseQuery as Q; real = Q._answer\n"
        "Q._answer = lambda *given: (Path('hanging').touch(), real(*given))[1]"
    )
    process = start(folder, PROGRAM.format(hang="", patch=patch))
    wait((folder / "hanging").exists, process)
    assert_ends(process, signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_query_of_postgresql(
    folder: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    import adbc_driver_postgresql.dbapi as driver

    monkeypatch.setenv("PGPASSWORD", postgres.password)
    query = 'SELECT 1 AS "Gender", 1 AS "LoanApproval", 2 AS "AnnualSalary" FROM pg_sleep(300)'
    config = CONFIG.replace("source: loan.csv", f"url: '{postgres.url}', query: '{query}'")
    (folder / "audit.yaml").write_text(config, encoding="utf-8")

    connected = driver.connect(postgres.url, autocommit=True)
    with connected as connection, connection.cursor() as cursor:

        def running() -> int:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE query LIKE '%pg_sleep%' AND state = 'active' AND pid <> pg_backend_pid()"
            )
            return int(cursor.fetchone()[0])

        process = start(folder)
        wait(running, process)
        assert_ends(process, number)
        deadline = time.monotonic() + LATE
        while running() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert running() == 0


# --- what nobody expected -------------------------------------------------------------------------

BROKEN = """
import sys
from mutandis.auditing import run
from mutandis.cli import app

def fail(plan, **more):
    raise ZeroDivisionError("Jane Doe earned 12345")

run.run_plan = fail
sys.argv = ["mutandis", *sys.argv[1:]]
app.main()
"""


def run_broken(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BROKEN, *options, "audit", str(folder / "audit.yaml")]
    return subprocess.run(  # noqa: S603 - our own program
        [*command, "--out", str(folder / "out")], capture_output=True, text=True, check=False
    )


def test_an_unexpected_error_is_named_but_not_quoted(folder: Path) -> None:
    done = run_broken(folder)
    assert done.returncode == 70
    assert "ZeroDivisionError" in done.stderr
    assert "--debug" in done.stderr
    assert "Jane" not in done.stderr
    assert "Traceback" not in done.stderr
    assert list((folder / "out").iterdir()) == []


def test_debug_shows_where_it_happened(folder: Path) -> None:
    done = run_broken(folder, "--debug")
    assert "Traceback" in done.stderr
    assert "Jane" in done.stderr


def test_codes() -> None:
    assert explain(OutputError("No."), []) == (2, "No.")
    assert explain(DecisionError("It failed\n  badly."), []) == (3, "It failed badly.")
    assert explain(KeyboardInterrupt(), [])[0] == 130
    assert explain(MemoryError(), [])[0] == 2
    assert explain(Stopped(143), [143])[0] == 143
    # a library in C has made something of its own of the interruption
    assert explain(RuntimeError("Query interrupted"), [130])[0] == 130


def test_a_few_kills_damage_nothing() -> None:
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-W", "ignore", str(TOOL), "--kills", "6", "--seed", "2"],
        capture_output=True,
        check=False,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert (seen["killed"], seen["failures"], seen["reads"]["failed"]) == (6, 0, 0)
    assert seen["reads"]["read"] > 0
