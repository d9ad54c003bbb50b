from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = "import sys; sys.argv[0] = 'mutandis'; from mutandis.cli.app import main; main()"


def run(*arguments: str, **variables: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("bash", "complete -o default -F _mutandis_completion mutandis"),
        ("zsh", "#compdef mutandis"),
        ("fish", "complete --command mutandis"),
    ],
)
def test_each_shell_gets_its_script(shell: str, words: str) -> None:
    assert words in run(_MUTANDIS_COMPLETE=f"source_{shell}")


def test_the_scripts_are_answered() -> None:
    found = run(_MUTANDIS_COMPLETE="complete_bash", COMP_WORDS="mutandis c", COMP_CWORD="1")
    assert set(found.split()) == {"check", "case", "compare"}
    for shell in ("zsh", "fish"):
        found = run(
            _MUTANDIS_COMPLETE=f"complete_{shell}",
            _TYPER_COMPLETE_ARGS="mutandis verify --re",
            _TYPER_COMPLETE_FISH_ACTION="get-args",
        )
        assert "--rerun" in found
