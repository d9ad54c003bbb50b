from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

runner = CliRunner()
DIFFERENCE = ["power", "--p-control", ".6", "--p-test", ".3", "--power", ".8"]


def test_a_small_table() -> None:
    result = runner.invoke(app, DIFFERENCE)
    assert result.exit_code == 0
    *said, following = result.output.strip().splitlines()
    assert "\n".join(said).strip() == str(mm.power(0.6, 0.3))
    assert following.startswith("Next, ")
    assert "From k = 33 on" in result.output


def test_json_holds_the_same_and_nothing_else() -> None:
    options = ["--alpha", ".01", "--tau", ".05", "--interval", "wald", "--k", "10", "--k", "20"]
    result = runner.invoke(app, [*DIFFERENCE, *options, "--k-max", "60", "--json"])
    expected = mm.power(
        0.6, 0.3, power=0.8, alpha=0.01, tau=0.05, interval="wald", ks=(10, 20), k_max=60
    )
    assert json.loads(result.output) == expected.as_dict()


def test_a_picture_on_request(tmp_path: Path) -> None:
    path = tmp_path / "power.svg"
    runner.invoke(app, [*DIFFERENCE, "--k-max", "60", "--plot", str(path)])
    text = path.read_text(encoding="utf-8")
    ET.fromstring(text)  # noqa: S314 - our own file
    assert "k = 33" in text
