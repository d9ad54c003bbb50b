"""Case files about many attributes: no column is cut, on a screen, a telephone or paper."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.report.html import pdf_unavailable
from mutandis.store.audit_file import read_arguments

REFUSED, GRANTED = "outcomeno", "outcomeyes"


@cache
def audit(attributes: int) -> mm.Audit:
    rng = np.random.default_rng(attributes)
    rows = 120
    woman = rng.integers(0, 2, rows)
    table: dict[str, Any] = {"woman": woman}
    for number in range(attributes):
        values = np.round(rng.normal(50_000 - 4_000 * woman, 9_000, rows), 2)
        table[f"a_rather_long_name_{number}"] = values
    table["answer"] = np.where(table["a_rather_long_name_0"] > 48_000, GRANTED, REFUSED)
    names = [name for name in table if name.startswith("a_")]
    return mm.audit(
        pd.DataFrame(table),
        outcome="answer",
        negative=REFUSED,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes=dict.fromkeys(names, "continuous"),
        worldview=mm.Worldview({name: mm.Linear("woman") for name in names[:3]}),
        ks=(10,),
        uncertainty=mm.Uncertainty(refits=0, tipping=False),
    )


def document(attributes: int) -> Any:
    found = audit(attributes)
    return found.case_file(found.findings()["id"].iloc[0])


def listed(attributes: int) -> int:
    return sum(len(group.members) for group in document(attributes).parts[0].groups)


@pytest.mark.parametrize("attributes", [2, 4, 8, 20])
def test_what_was_decided_stands_before_the_attributes(attributes: int) -> None:
    page = document(attributes).to_html()
    for role in ("control", "test"):
        table = re.search(rf'<table id="part1-{role}".*?</table>', page, re.DOTALL)
        assert table is not None
        heads = re.findall(r"<th [^>]*>([^<]*)</th>", table[0].split("</thead>")[0])
        assert heads[:4] == ["Person", "Outcome", "Distance", "Place"]
        members = getattr(document(attributes).parts[0], role).members
        outcomes = re.findall(rf"<td>({REFUSED}|{GRANTED})</td>", table[0])
        assert outcomes == [each.outcome for each in members]
        for number in range(attributes):
            assert f"a_rather_long_name_{number}" in table[0]


def test_settings_are_an_audit_file() -> None:
    found = audit(8)
    page = document(8).to_html()
    text = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)[0].replace("&#39;", "'")
    source = "data: {source: table.csv}\n"
    _, _, read = read_arguments(source + text, folder=Path(), name="page")
    assert read["worldview"] == found.plan.worldview
    assert read["ks"] == (10,)
    assert list(read["attributes"]) == [each.name for each in found.plan.attributes]


@pytest.mark.slow
@pytest.mark.parametrize("attributes", [8, 20])
@pytest.mark.parametrize("width", [1280, 400])
def test_no_column_is_cut_on_a_screen(
    browser: Any, tmp_path: Path, attributes: int, width: int
) -> None:
    document(attributes).write(tmp_path / "case.html")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "case.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for role in ("control", "test"):
        table = page.locator(f"#part1-{role}")
        inside, room = table.evaluate(
            "t => [t.parentElement.scrollWidth, t.parentElement.clientWidth]"
        )
        assert inside <= room
    page.close()


@pytest.mark.slow
@pytest.mark.skipif(pdf_unavailable() is not None, reason="PDF files cannot be made here")
@pytest.mark.parametrize("attributes", [8, 20])
def test_no_column_is_cut_on_paper(tmp_path: Path, attributes: int) -> None:
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("pdftotext (Debian package poppler-utils) is not installed")
    document(attributes).write(tmp_path / "case.pdf")
    done = subprocess.run(  # noqa: S603 - our own file
        [program, "-bbox", str(tmp_path / "case.pdf"), "-"],
        check=True,
        capture_output=True,
        text=True,
    )
    wide = float(re.search(r'<page width="([\d.]+)"', done.stdout)[1])  # type: ignore[index]
    words = re.findall(r'xMin="([\d.-]+)".*?xMax="([\d.-]+)".*?>([^<]*)</word>', done.stdout)
    assert all(float(left) >= 0 and float(right) <= wide for left, right, _ in words)
    outcomes = [word for _, _, word in words if word in {REFUSED, GRANTED}]
    assert len(outcomes) >= listed(attributes)
