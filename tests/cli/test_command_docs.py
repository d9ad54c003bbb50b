from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from mutandis.cli.app import app
from mutandis.cli.exit_codes import EXIT_CODES

DOCS = Path(__file__).parents[2] / "docs" / "command-line.md"


def test_exit_codes_are_documented_as_they_are() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES
    shown = " ".join(CliRunner().invoke(app, ["--help"]).output.split())
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in shown


def test_every_command_is_mentioned() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert command.callback is not None
        assert f"`{command.callback.__name__}`" in text or (
            f"mutandis {command.callback.__name__}" in text
        )
