"""Audit files, results folders and models that come from somebody else: no code of theirs is run.

Each attack was first tried by hand on the command line; benchmarks/attacks.md lists them.
"""

from __future__ import annotations

import glob
import gzip
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

import mutandis as mm
from mutandis.cli.exit_codes import explain
from mutandis.errors import DecisionError, OutputError
from mutandis.store.results_folder import write_record
from mutandis.store.tables import TableFiles
from tests.cli.conftest import PLAIN as CONFIG
from tests.cli.conftest import run, without_report, write_config

if TYPE_CHECKING:
    from collections.abc import Iterator

EVIL = "decision: {python: 'evil_module:decide'}\n"
WORLDVIEW = "worldview: {AnnualSalary: {equation: linear, parents: [$protected]}}\n"


def refusal(*arguments: object) -> str:
    """Return the message of the project's own error that ends a command."""
    result = run(*arguments)
    assert isinstance(result.exception, mm.MutandisError), result.exception
    return str(result.exception)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a table, an audit file, and a module that leaves a trace if it is run."""
    write_config(tmp_path, CONFIG, rows=150)
    (tmp_path / "evil_module.py").write_text(
        f"import pathlib\npathlib.Path({str(tmp_path / 'sprung')!r}).touch()\n"
        "def decide(table):\n    return table['AnnualSalary'] > 90000\n",
        encoding="utf-8",
    )
    yield tmp_path
    sys.modules.pop("evil_module", None)


@pytest.fixture
def results(folder: Path) -> Path:
    """The results of an audit, without its report: drawing takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        without_report(patch)
        assert run("audit", folder / "audit.yaml", "--out", folder / "out").exit_code == 0
    return folder / "out"


def rewrite(results: Path, **changes: Any) -> None:
    """Change a record as an attacker does: with hashes that fit again."""
    record = json.loads((results / "audit.json").read_text(encoding="utf-8"))
    for derived in ("format", "version", "outputs", "sha256"):
        del record[derived]
    (results / "audit.json").unlink()
    write_record(results, record | changes)


# --- code from a received folder ------------------------------------------------------------------


@pytest.mark.parametrize("command", ["check", "audit"])
def test_an_audit_file_cannot_have_its_code_run(folder: Path, command: str) -> None:
    config = folder / "audit.yaml"
    config.write_text(CONFIG + EVIL + WORLDVIEW, encoding="utf-8")
    where = () if command == "check" else ("--out", folder / "out")
    result = run(command, config, *where)
    assert isinstance(result.exception, DecisionError)
    message = str(result.exception)
    assert "audit.yaml, line 6" in message
    assert "'evil_module:decide', and was not imported" in message
    assert "--trust-code on the command line, trust_code=True in Python" in message
    with pytest.raises(DecisionError, match="was not imported"):
        mm.read_plan(config)
    assert not (folder / "sprung").exists()
    assert run(command, config, *where, "--trust-code").exit_code == 0
    assert (folder / "sprung").exists()


def test_a_record_cannot_have_its_code_run(folder: Path, results: Path) -> None:
    record = json.loads((results / "audit.json").read_text(encoding="utf-8"))
    rewrite(results, config=record["config"] | {"text": CONFIG + EVIL})
    ids = mm.open_results(results).findings()["id"]
    for _ in range(2):  # and again, should the first have loaded something
        assert run("case", results, ids[0], "--no-pdf").exit_code == 0
        assert run("verify", results).exit_code == 0
        assert "--trust-code" in refusal("verify", results, "--rerun")
    mm.open_results(results).report()
    assert not (folder / "sprung").exists()


def test_hashes_are_checked_before_anything_is_loaded(folder: Path, results: Path) -> None:
    text = (results / "audit.json").read_text(encoding="utf-8")
    changed = text.replace('ks: [3]\\n"', f'ks: [3]\\n{EVIL[:-1]}"')
    assert changed != text
    (results / "audit.json").write_text(changed, encoding="utf-8")
    result = run("verify", results, "--rerun", "--trust-code")
    assert result.exit_code == 1
    assert "audit.json is not what was written" in result.output
    assert "cannot be repeated from something else" in result.output
    assert "audit.json' is missing or has been damaged" in refusal("case", results, "0")
    with pytest.raises(OutputError, match="has been damaged"):
        mm.open_results(results)
    assert not (folder / "sprung").exists()


@pytest.mark.parametrize("trusted", ["", ", trusted: [posix.system]", ", trust_code: true"])
def test_an_audit_file_cannot_say_what_is_trusted(folder: Path, trusted: str) -> None:
    pytest.importorskip("skops")
    from functools import partial

    import skops.io

    model = partial(os.system, f"touch {folder / 'sprung'}")
    (folder / "evil.skops").write_bytes(skops.io.dumps(model))
    config = folder / "audit.yaml"
    config.write_text(
        CONFIG + f"decision: {{skops: evil.skops, columns: [AnnualSalary]{trusted}}}\n" + WORLDVIEW,
        encoding="utf-8",
    )
    expected = "is not a key" if trusted else "not known to be harmless, and was not loaded"
    assert expected in refusal("check", config)
    assert not (folder / "sprung").exists()


# --- bounded work ---------------------------------------------------------------------------------


def fifo(path: Path) -> Path:
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


@pytest.fixture
def hurried() -> Iterator[None]:
    """End a test that waits for a pipe, or reads a device to its end."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("hurried")
def test_pipes_and_devices_are_not_read(folder: Path, results: Path) -> None:
    config = folder / "audit.yaml"
    fifo(folder / "pipe")
    for file in (folder / "pipe", "/dev/zero"):
        assert "a pipe or a device, and not a regular file" in refusal("check", file)
    assert "not a regular file" in refusal("audit", folder / "pipe", "--out", folder / "new")
    for kind in ("onnx", "skops", "pickle"):
        for file in ("/dev/zero", "pipe"):
            config.write_text(f"{CONFIG}decision: {{{kind}: {file}}}\n{WORLDVIEW}", "utf-8")
            assert "not a regular file" in refusal("check", config, "--trust-code")
    fifo(folder / "loan.csv")
    config.write_text(CONFIG, encoding="utf-8")
    assert "no file or folder 'loan.csv'" in refusal("check", config)
    config.write_text(CONFIG.replace("loan.csv", "."), encoding="utf-8")
    assert "not a regular file" in refusal("check", config)
    with pytest.raises(mm.MutandisError, match="not a regular file"):
        mm.Worldview.read(fifo(folder / "world.yaml"))
    for name in ("audit.json", "audit.npz"):
        fifo(results / name)
        assert run("verify", results).exit_code != 0
        assert "not a regular file" in refusal("case", results, "0") or name == "audit.npz"


def test_no_file_is_read_without_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = folder / "audit.yaml"
    config.write_text(CONFIG + "#" * 1_000_000, encoding="utf-8")
    message = refusal("check", config)
    assert "The limit is 1,000,000 bytes" in message
    assert "MUTANDIS_LIMITS=10" in message
    config.write_text(CONFIG + "#" * 600_000, encoding="utf-8")
    assert "The limit is 500,000 characters" in refusal("check", config)
    monkeypatch.setenv("MUTANDIS_LIMITS", "1.5")
    assert run("check", config).exit_code == 0
    for wrong in ("much", "-1", "0", "nan", "inf"):
        monkeypatch.setenv("MUTANDIS_LIMITS", wrong)
        assert "is not a number above 0" in refusal("check", config)


def test_a_packed_model_is_not_unpacked_without_end(folder: Path) -> None:
    pytest.importorskip("skops")
    config = folder / "audit.yaml"
    config.write_text(CONFIG + "decision: {skops: bomb.skops}\n" + WORLDVIEW, encoding="utf-8")
    for name, size in (("schema.json", 60), ("array.npy", 1100)):
        with ZipFile(folder / "bomb.skops", "w", ZIP_DEFLATED, compresslevel=1) as archive:
            with archive.open(name, "w", force_zip64=True) as member:
                for _ in range(size):
                    member.write(bytes(1_000_000))
            if name != "schema.json":
                archive.writestr("schema.json", "{}")
        message = refusal("check", config)
        assert "when it is unpacked, and was not loaded. The limit is" in message
        assert f"has {size},000,000 bytes" in message or "has 1,100,000,002 bytes" in message


def test_packed_results_are_not_unpacked_without_end(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUTANDIS_LIMITS", "1e-6")
    with pytest.raises(OutputError, match="too large"):
        mm.open_results(results)
    monkeypatch.setattr("mutandis.store.results_folder._BYTES", 10**13)
    with pytest.raises(OutputError, match=r"when it is unpacked, .* The limit is 4,000 bytes"):
        mm.open_results(results)


@pytest.mark.usefixtures("hurried")
def test_a_table_of_too_many_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = folder / "audit.yaml"
    monkeypatch.setattr("mutandis.store.tables._ENTRIES", 5)
    (folder / "tables").mkdir()
    for number in range(6):
        shutil.copy(folder / "loan.csv", folder / "tables" / f"{number}.csv")
    for source in ("tables", "tables/*.csv"):
        config.write_text(CONFIG.replace("loan.csv", source), encoding="utf-8")
        message = refusal("check", config)
        assert f"'{source}' names too many files and folders to look through" in message
        assert "The limit is 5 files and folders" in message


def test_patterns_fit_what_glob_fits(tmp_path: Path) -> None:
    for name in ("a.csv", "b/c.csv", "b/d.csv", ".h.csv", "i[1]/j.csv", "k/l.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x,y\n1,2\n", encoding="utf-8")
    (tmp_path / "m").symlink_to(tmp_path / "b")
    for pattern in ("*.csv", "b/*", "*", "[ab].csv", ".*.csv", "m/?.csv", str(tmp_path / "*")):
        whole = os.path.join(glob.escape(str(tmp_path)), pattern)  # noqa: PTH118
        expected = {Path(each) for each in glob.glob(whole)}  # noqa: PTH207
        found = TableFiles(path=pattern, folder=tmp_path).files()
        assert set(found) == {each for each in expected if each.is_file()}, pattern


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("equation", "parents", "limit"),
    [
        ("categorical", "[$protected]", "500 coefficients"),
        ("linear", "[$protected, job]", "2,000 coefficients"),
    ],
)
def test_an_equation_with_very_many_levels(
    folder: Path, equation: str, parents: str, limit: str
) -> None:
    table = mm.datasets.loan(n=11_000, seed=1)
    table["job"] = [f"job {number % 10_000}" for number in range(len(table))]
    table.to_csv(folder / "loan.csv", index=False)
    child = "job" if equation == "categorical" else "AnnualSalary"
    config = CONFIG.replace("AccountBalance: continuous", "job: nominal") + (
        f"worldview: {{{child}: {{equation: {equation}, parents: {parents}}}}}\n"
    )
    (folder / "audit.yaml").write_text(config, encoding="utf-8")
    message = refusal("audit", folder / "audit.yaml", "--out", folder / "out")
    assert f"The limit is {limit}" in message
    assert "Merge rare levels" in message


# --- what is damaged, or is not what it says ------------------------------------------------------


def test_names_that_are_too_long(folder: Path, results: Path) -> None:
    long = "a" * 256
    for command in (
        ("audit", folder / "audit.yaml", "--out", folder / long),
        ("verify", folder / long),
        ("case", folder / long, "1"),
        ("init", folder / "loan.csv", "--out", folder / long),
    ):
        result = run(*command)
        assert result.exception is not None
        code, said = explain(result.exception, [])
        assert code == 2
        assert "File name too long" in said


@pytest.mark.parametrize(
    ("ends", "name", "said"),
    [
        (("\n", "\r\n"), "u1", "different line ends"),
        (("\r\n", "\n"), "u1", "different line ends"),
        (("\r\n",), '"u\n1"', "a line break in its name"),
        (("\n",), '"u\r\n1"', "a line break in its name"),
    ],
)
def test_line_ends(folder: Path, ends: tuple[str, ...], name: str, said: str) -> None:
    lines = (folder / "loan.csv").read_text(encoding="utf-8").splitlines()
    lines[0] = lines[0].replace("u1", name)
    text = "".join(line + ends[place % len(ends)] for place, line in enumerate(lines))
    (folder / "loan.csv").write_bytes(text.encode())
    assert said in refusal("check", folder / "audit.yaml")


def test_a_damaged_packed_table(folder: Path) -> None:
    packed = bytearray(gzip.compress((folder / "loan.csv").read_bytes()))
    packed[200:260] = bytes(60)
    (folder / "loan.csv.gz").write_bytes(packed)
    (folder / "audit.yaml").write_text(CONFIG.replace("loan.csv", "loan.csv.gz"), encoding="utf-8")
    assert "'loan.csv.gz' cannot be read: it is damaged" in refusal("check", folder / "audit.yaml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("loan.csv", 'loan.csv, missing_text: ["\\udc80"]', "half a character"),
        ("source: loan.csv", 'url: "sqlite:///x.db", query: "\\ud800"', "half a character"),
        ("continuous,", f"{{kind: continuous, weight: {'9' * 400}}},", "Give a number"),
    ],
)
def test_values_that_nothing_can_hold(folder: Path, old: str, new: str, said: str) -> None:
    (folder / "audit.yaml").write_text(CONFIG.replace(old, new, 1), encoding="utf-8")
    assert said in refusal("check", folder / "audit.yaml")
