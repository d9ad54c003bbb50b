"""What tests of several folders share: the published data, frames of every type, a database.

What one folder shares is in its own file of this name.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import pkgutil
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import settings

import mutandis as mm
from tests.tables import LOAN

if TYPE_CHECKING:
    from types import ModuleType

# With --import-mode=importlib, pytest loads a module of src twice if it comes to it before its
# package, and then no class is itself. Walking the packages loads them; one that cannot be loaded
# is reported by its own tests.
for _ in pkgutil.walk_packages(mm.__path__, "mutandis.", onerror=lambda name: None):
    pass

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_collection_finish() -> None:
    """Look for garbage less often, and not among what was loaded and collected for good."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_unconfigure() -> None:
    """Let all of it go at the end: some libraries say what was not."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave cases of a test to `make test-all`, and try a third of the random examples before."""
    unknown: dict[str, set[str]] = {}
    for item in items:
        kept = item.get_closest_marker("few")
        if kept is not None:
            test, _, name = item.nodeid.partition("[")
            name = name.removesuffix("]")
            unknown.setdefault(test, set(kept.args)).discard(name)
            if name not in kept.args:
                item.add_marker(pytest.mark.slow)
    misspelt = {test: names for test, names in unknown.items() if names}
    if misspelt and not any("::" in each for each in config.args):
        raise pytest.UsageError(f"no such cases: {misspelt}")
    if config.getoption("markexpr") != "not slow":
        return
    for item in items:
        function: Any = getattr(item, "obj", None)
        chosen = getattr(function, "_hypothesis_internal_use_settings", None)
        if chosen is not None:
            fewer = settings(chosen, max_examples=max(chosen.max_examples // 3, 1))
            function._hypothesis_internal_use_settings = fewer


PUBLISHED = (
    "law_school.csv",
    "law_school_do_male.csv",
    "law_school_do_white.csv",
    "loan_application.csv",
    "loan_application_do_male.csv",
)

Columns = Mapping[str, Sequence[Any]]
AsFrame = Callable[[Columns], Any]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Find the folder with the published data, or skip the test and say what to set."""
    named = os.environ.get("MUTANDIS_DATA")
    shared = Path(__file__).parents[2] / "shared"
    folder = Path(named) if named else shared / "data"
    absent = [name for name in PUBLISHED if not (folder / name).is_file()]
    if not absent:
        return folder
    reason = (
        f"The published data is not in {named or '../shared/data'} (no {', '.join(absent)}). "
        "Set MUTANDIS_DATA to the folder that holds it."
    )
    # where the data was promised, its absence is no reason to leave tests out
    if named or (os.environ.get("CI") and shared.is_dir()):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start Chromium without a window, or skip the test and say what to install."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with api.sync_playwright() as playwright:
        # the sandbox of Chromium does not run as root
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def load_benchmark() -> Callable[[str], ModuleType]:
    """Give a loader of benchmarks by name, which are no package."""

    @cache
    def load(name: str) -> ModuleType:
        path = Path(__file__).parents[1] / "benchmarks" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"benchmark_{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # its dataclasses look their own module up
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def plan_loan() -> Callable[..., mm.Plan]:
    """Give the way to plan an audit of loans as they are generated, under any settings."""

    def plan(table: pd.DataFrame, **options: Any) -> mm.Plan:
        chosen: dict[str, Any] = {
            **LOAN,
        }
        return mm.plan(table, **(chosen | options))

    return plan


def _arrow(columns: Columns) -> pa.Table:
    return pa.table({name: list(values) for name, values in columns.items()})


FRAMES: dict[str, AsFrame] = {
    "pandas": lambda columns: pd.DataFrame(dict(columns)),
    "polars": lambda columns: pl.DataFrame(dict(columns)),
    "polars-lazy": lambda columns: pl.LazyFrame(dict(columns)),
    "pyarrow": _arrow,
    "duckdb": lambda columns: duckdb.from_arrow(_arrow(columns)),
    "dict": dict,
}


@pytest.fixture(params=FRAMES)
def as_frame(request: pytest.FixtureRequest) -> AsFrame:
    """Give a maker of frames; a test that asks for it runs once for every frame type."""
    return FRAMES[request.param]


# a PostgreSQL server of the tests' own: started when it is first asked for, gone at the end
_BINARIES = "/usr/lib/postgresql/*/bin/initdb"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server: where it listens, and who may log in."""

    port: int
    user: str
    password: str

    @property
    def url(self) -> str:
        """Where to connect, without the password."""
        return f"postgresql://{self.user}@127.0.0.1:{self.port}/postgres"

    def run(self, *statements: str) -> None:
        """Run statements as the owner of everything, outside the code under test."""
        import adbc_driver_postgresql.dbapi as driver

        address = self.url.replace("@", f":{quote(self.password, safe='')}@")
        with driver.connect(address) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            connection.commit()


def _programs() -> Path | None:
    found = sorted(Path("/").glob(_BINARIES[1:]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


def _as_somebody(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Run the server as an ordinary user, whom it insists on; the folder becomes that user's."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    if os.geteuid() != 0:
        return [], environment
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("PostgreSQL does not run as root, and there is no setpriv to run it otherwise.")
    somebody = pwd.getpwnam("nobody")
    os.chown(folder, somebody.pw_uid, somebody.pw_gid)
    ids = [f"--reuid={somebody.pw_uid}", f"--regid={somebody.pw_gid}", "--clear-groups"]
    return [setpriv, *ids], environment


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(300):
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail(f"PostgreSQL did not start:\n{log.read_text(encoding='utf-8')}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Give a server with a password, or skip the test and say why there is none."""
    pytest.importorskip("adbc_driver_postgresql", reason="the extra 'db' is not installed")
    programs = _programs()
    if programs is None:
        pytest.skip("There is no PostgreSQL server here: apt-get install postgresql")
    password = secrets.token_urlsafe(16) + "/@:%"
    # a short path, and one that an ordinary user can reach
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)
        written = folder / "password"
        written.write_text(password, encoding="utf-8")
        written.chmod(0o644)
        data, log, port = folder / "server" / "data", folder / "log", _free_port()
        data.parent.mkdir()
        prefix, environment = _as_somebody(data.parent)
        _initialise([*prefix, str(programs / "initdb")], data, written, environment)
        process = _start([*prefix, str(programs / "postgres")], data, port, log, environment)
        try:
            _wait(process, port, log)
            yield Server(port=port, user="owner", password=password)
        finally:
            # "fast": it does not wait for connections that a failed test left open
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)


def _initialise(
    command: list[str], data: Path, password: Path, environment: Mapping[str, str]
) -> None:
    options = ["--username=owner", f"--pwfile={password}", "--auth=scram-sha-256", "--no-sync"]
    made = subprocess.run(  # noqa: S603 - the server's own program
        [*command, "-D", str(data), *options, "--encoding=UTF8", "--locale=C"],
        capture_output=True,
        check=False,
        env=environment,
        cwd="/",
        text=True,
    )
    assert made.returncode == 0, made.stderr


def _start(
    command: list[str], data: Path, port: int, log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "off",
        "max_connections": "20",
    }
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - the server's own program
            [*command, "-D", str(data), "-p", str(port), *options],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd="/",
        )
