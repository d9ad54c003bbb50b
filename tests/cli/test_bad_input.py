"""Bad input ends in one paragraph and an exit code; nothing is written, older results stay whole.

One table: what is wrong, the command that meets it, its exit code, and words of the message.
"""

from __future__ import annotations

import errno
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mutandis as mm
from mutandis.cli import app
from mutandis.report.report import Report
from mutandis.store import saved_audit
from mutandis.store.files import hash_file

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
    """A folder with good data, a good audit file, and results from before."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

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

    def refused(self, *command: str, code: int = 2) -> str:
        """Run a command, and check that it fails as every command should."""
        before = self.snapshot()
        ended, out, err = self.run(*command)
        assert (ended, out) == (code, ""), err
        assert self.snapshot() == before
        assert err.startswith("mutandis: ")
        assert err.count("\n") == 1, err  # one paragraph
        assert len(err) < 1200
        assert "Traceback" not in err
        assert SECRET not in err
        return err


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    mm.datasets.loan(n=80, seed=1).to_csv(folder / "loan.csv", index=False)
    (folder / "audit.yaml").write_text(CONFIG, encoding="utf-8")
    command = ["mutandis", "audit", str(folder / "audit.yaml"), "--out", str(folder / "results")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", command)
        patch.setattr(mm.Audit, "report", lambda self, **more: Report(html="<p>", plots={}))
        with pytest.raises(SystemExit) as end:
            app.main()
    assert not end.value.code
    return folder


@pytest.fixture
def workplace(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Workplace:
    shutil.copytree(good, tmp_path / "copy")
    return Workplace(folder=tmp_path / "copy", capture=capsys, patch=monkeypatch)


# --- what can be wrong -----------------------------------------------------------------------

Spoil = Callable[[Path], object]


def data(more: str) -> Spoil:
    """Add keys to the section `data` of the audit file."""
    return config("source: loan.csv", f"source: loan.csv, {more}")


def config(old: str, new: str) -> Spoil:
    """Change the audit file; an empty `old` adds to its end."""
    assert old in CONFIG
    text = CONFIG.replace(old, new) if old else CONFIG + new

    def spoil(folder: Path) -> None:
        (folder / "audit.yaml").write_text(text, encoding="utf-8")

    return spoil


def table(change: Callable[[pd.DataFrame], pd.DataFrame], **options: Any) -> Spoil:
    def spoil(folder: Path) -> None:
        change(pd.read_csv(folder / "loan.csv")).to_csv(folder / "loan.csv", index=False, **options)

    return spoil


def cell(column: str, value: Any) -> Spoil:
    def change(rows: pd.DataFrame) -> pd.DataFrame:
        changed = rows.astype({column: object})
        changed.loc[[3, 4], column] = value
        return changed

    return table(change)


def written(name: str, content: bytes) -> Spoil:
    return lambda folder: (folder / name).write_bytes(content)


def removed(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def header(old: str, new: str) -> Spoil:
    def spoil(folder: Path) -> None:
        names, rest = (folder / "loan.csv").read_text(encoding="utf-8").split("\n", 1)
        (folder / "loan.csv").write_text(f"{names.replace(old, new)}\n{rest}", encoding="utf-8")

    return spoil


def both(*spoils: Spoil) -> Spoil:
    def spoil(folder: Path) -> None:
        for each in spoils:
            each(folder)

    return spoil


def model(body: str) -> Spoil:
    code = f"import numpy as np\n\ndef decide(table):\n    {body}\n"
    return both(
        written("model_of_ours.py", code.encode()),
        config("", "decision: {python: model_of_ours:decide}\n"),
    )


def nothing(folder: Path) -> None:
    """Leave everything as it is: the command itself is wrong."""


@dataclass(frozen=True)
class Case:
    spoil: Spoil
    words: tuple[str, ...]
    command: str
    code: int


AUDIT = "audit audit.yaml --out results --force --trust-code"


def case(spoil: Spoil, *words: str, command: str = AUDIT, code: int = 2) -> Case:
    return Case(spoil, words, command, code)


MIXED = "AccountBalance: continuous, Born: continuous"
BORN = table(lambda rows: rows.assign(Born="1980-01-01"))
MANY = pd.DataFrame(0, index=range(80), columns=[f"column_{n}" for n in range(10_000)])
WIDE = table(lambda rows: pd.concat([rows, MANY.iloc[: len(rows)]], axis=1))
HALF = table(lambda rows: rows.assign(Gender=[1] + [0] * (len(rows) - 1)))
LATIN = table(lambda rows: rows.assign(Town="Köln"), encoding="latin-1")
HEADER = b"Gender,LoanApproval,AnnualSalary,AccountBalance\n"
TWO = both(written("few.csv", b"salary\n1\n2\n"), written("none.csv", b"a\n"))

MATRIX = {
    # the audit file
    "no audit file": case(removed("audit.yaml"), "audit.yaml", "cannot be opened"),
    "a slip of the pen": case(
        config("attributes:", "atributes:"), "line 4", "Did you mean 'attributes'?"
    ),
    "an unknown column": case(
        config("AccountBalance: continuous", "AccountBalances: continuous"),
        "'AccountBalances'",
        "Did you mean 'AccountBalance'?",
        command="check audit.yaml",
    ),
    "an unknown column of many": case(
        both(WIDE, config("AccountBalance: continuous", "AccountBalances: continuous")),
        "'AccountBalances'",
        "Did you mean 'AccountBalance'?",
    ),
    "a level that is none": case(config("ks: [3]", "alpha: 0.7"), "alpha"),
    "k beyond the space": case(config("[3]", "[5000]"), "k=5000"),
    # the table
    "no table": case(removed("loan.csv"), "loan.csv"),
    "the wrong separator": case(data("separator: ;"), "separator"),
    "an empty file": case(written("loan.csv", b"")),
    "a table without rows": case(written("loan.csv", HEADER)),
    "the same column twice": case(header("AccountBalance", "AnnualSalary"), "Annual"),
    "another encoding": case(LATIN, "UTF-8", "encoding"),
    "an encoding that does not exist": case(data("encoding: utf-99"), "The encoding is not known"),
    "a binary file": case(written("loan.csv", bytes(range(256)) * 40)),
    "a number that is text": case(cell("AnnualSalary", SECRET), "AnnualSalary"),
    "a third outcome": case(cell("LoanApproval", "pending"), "LoanApproval"),
    "a date as a number": case(both(BORN, config("AccountBalance: continuous", MIXED)), "Born"),
    "missing values": case(cell("AnnualSalary", None), "AnnualSalary", "2 missing"),
    "a single protected row": case(HALF, "k=3"),
    # the decision maker
    "too few answers": case(model("return np.ones(len(table) - 1, dtype=bool)"), code=3),
    "an answer that is missing": case(
        model("return np.where(np.arange(len(table)) == 3, np.nan, 1.0)"), code=3
    ),
    "a model that fails": case(model(f"raise ValueError('{SECRET}')"), "ValueError", code=3),
    "no answer at all": case(model("return None"), code=3),
    "answers in words": case(model("return ['maybe'] * len(table)"), code=3),
    "answers in two columns": case(model("return np.ones((len(table), 2))"), code=3),
    "a model that ends the program": case(model("raise SystemExit"), "SystemExit", code=3),
    "a model that fails in check": case(
        model("return []"), "0 answers", command="check audit.yaml --trust-code", code=3
    ),
    "no such model": case(
        config("", "decision: {python: no_such_module:decide}\n"), "no_such_module", code=3
    ),
    "code that is not trusted": case(
        model("return None"),
        "line 7",
        "was not imported",
        "--trust-code",
        command="check audit.yaml",
        code=3,
    ),
    # results
    "no folder": case(nothing, "no folder", command="verify absent"),
    "no results": case(nothing, "holds no audit.json", command="verify ."),
    **{
        f"no record, but {text[:30]!r}": case(
            written("results/audit.json", text.encode()), "not a record", command="verify results"
        )
        for text in (" ", "[]", "{}", '{"format": "mutandis-audit"}', "[" * 100_000)
    },
    "a changed record": case(
        written("results/audit.json", b"{}"), "audit.json", command="case results 0"
    ),
    "results are in the way": case(
        removed("loan.csv"), "--force", command="audit audit.yaml --out results"
    ),
    "a foreign file in the way": case(written("results/notes.docx", b"x"), "did not write"),
    "nobody of that name": case(nothing, "row positions, from 0", command="case results Nobody"),
    "a key that is none": case(nothing, "loan.csv", command="case results 1 --sign loan.csv"),
    "an unknown method": case(
        nothing, "'cst' is unknown", command="export results x.csv --method cst"
    ),
    "a k that was not run": case(nothing, "k=4 was not run", command="export results x.csv --k 4"),
    "a file of an unknown kind": case(nothing, "end with one of", command="export results x.doc"),
    "nothing to compare": case(nothing, "No worldviews were compared", command="compare results"),
    # init and the others
    "init of no file": case(nothing, "absent.csv", command="init absent.csv --force"),
    "init of an empty table": case(TWO, "no rows", command="init none.csv --force"),
    "init over an older file": case(nothing, "--force", command="init loan.csv"),
    "init into no folder": case(nothing, "no folder", command="init loan.csv --out no/a.yaml"),
    "init of an unknown column": case(
        TWO, "Did you mean 'salary'?", command="init few.csv --out x.yaml --outcome salaries"
    ),
    "init of a value that is none": case(
        nothing,
        "not a value of the column 'LoanApproval'",
        command="init loan.csv --out x.yaml --outcome LoanApproval --negative no",
    ),
    "init of a value without a column": case(
        TWO, "Name it with --outcome", command="init few.csv --out x.yaml --negative 1"
    ),
    "init of a reference without a column": case(
        TWO, "Name it with --protected", command="init few.csv --out x.yaml --reference 1"
    ),
    "init of a status with many values": case(
        nothing,
        "more than 30 values",
        command="init loan.csv --out x.yaml --protected AnnualSalary --reference 1",
    ),
    "init of a database without a query": case(
        nothing, "query", command="init postgresql://host/db --out x.yaml"
    ),
    "too few people": case(nothing, "n=0", command="demo --n 0"),
    "an unknown measure": case(
        nothing, "'guess'", command="power --p-control 0.6 --p-test 0.3 --measure guess"
    ),
    "no published data": case(nothing, "'loan_application.csv'", command="reproduce --data ."),
}


@pytest.mark.parametrize("wrong", MATRIX)
def test_bad_input_is_one_paragraph_and_an_exit_code(workplace: Workplace, wrong: str) -> None:
    bad = MATRIX[wrong]
    # each case has a module of its own, under the same name
    workplace.patch.delitem(sys.modules, "model_of_ours", raising=False)
    bad.spoil(workplace.folder)
    message = workplace.refused(*bad.command.split(), code=bad.code)
    for each in bad.words:
        assert each in message, message


@pytest.mark.slow
def test_ten_thousand_attributes(workplace: Workplace) -> None:
    more = "".join(f", column_{n}: continuous" for n in range(10_000))
    config("AccountBalance: continuous", f"AccountBalance: continuous{more}")(workplace.folder)
    assert "The limit is 1,000 attributes" in workplace.refused(*AUDIT.split())
    workplace.patch.setenv("MUTANDIS_LIMITS", "20")
    assert "column_0" in workplace.refused(*AUDIT.split())


def test_no_room_on_the_disk(workplace: Workplace) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    workplace.patch.setattr(saved_audit, "write_findings", full)
    message = workplace.refused(*AUDIT.split())
    assert "No space left on device" in message
    assert "Nothing there has changed" in message


# --- what is right all the same ----------------------------------------------------------------

JOB = config("AccountBalance: continuous", "AccountBalance: continuous, Job: nominal")
JOBS = table(lambda rows: rows.assign(Job=[SECRET] + ["cook"] * (len(rows) - 1)))
RIGHT: dict[str, tuple[Spoil, str]] = {
    "another separator": (table(lambda rows: rows, sep="|"), ""),
    "a named encoding": (both(LATIN, data("encoding: latin-1")), ""),
    "many columns": (WIDE, ""),
    "a name that appears once": (
        both(
            JOBS, config("AccountBalance: continuous", "AccountBalance: continuous, Job: nominal")
        ),
        "",
    ),
    "missing values that may be dropped": (
        both(cell("AnnualSalary", None), data("missing: drop")),
        "2 for 'AnnualSalary'",
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_looks_odd_and_is_right(workplace: Workplace, case: str) -> None:
    spoil, said = RIGHT[case]
    spoil(workplace.folder)
    code, out, err = workplace.run("check", "audit.yaml")
    assert (code, err) == (0, "")
    assert said in out


def test_the_good_one_goes_through(workplace: Workplace) -> None:
    """The tests above would be worth nothing if every audit failed."""
    workplace.patch.setattr(mm.Audit, "report", lambda self, **more: Report(html="", plots={}))
    before = workplace.snapshot()
    code, out, err = workplace.run(*AUDIT.split())
    assert (code, err) == (0, "")
    assert "results/report.html" in out
    assert workplace.snapshot() != before
