"""Documents on paper and on screens: whole PDF files, nothing fetched, no column cut."""

from __future__ import annotations

import builtins
import re
import shutil
import subprocess
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.errors import MutandisError
from mutandis.report.html import pdf_unavailable, to_pdf

if TYPE_CHECKING:
    from pathlib import Path

_unavailable = pdf_unavailable()
needs_pdf = pytest.mark.skipif(_unavailable is not None, reason=_unavailable or "")
REFUSED, GRANTED = "outcomeno", "outcomeyes"


def read_pdf(path: Path, *options: str) -> str:
    """Read a PDF file with the tool that most people read PDF files with."""
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("pdftotext (Debian package poppler-utils) is not installed")
    done = subprocess.run(  # noqa: S603 - our own file
        [program, *options, str(path), "-"], check=True, capture_output=True, text=True
    )
    return done.stdout


def pages(path: Path) -> list[str]:
    return read_pdf(path, "-layout").split("\f")[:-1]


@cache
def wide_document(attributes: int) -> Any:
    rng = np.random.default_rng(attributes)
    rows = 120
    woman = rng.integers(0, 2, rows)
    names = [f"a_rather_long_name_{number}" for number in range(attributes)]
    table = {name: np.round(rng.normal(50_000 - 4_000 * woman, 9_000), 2) for name in names}
    audit = mm.audit(
        {
            "woman": woman,
            **table,
            "answer": np.where(table[names[0]] > 48_000, GRANTED, REFUSED),
        },
        outcome="answer",
        negative=REFUSED,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes=dict.fromkeys(names, "continuous"),
        worldview=mm.Worldview({name: mm.Linear("woman") for name in names[:3]}),
        ks=(10,),
        uncertainty=mm.Uncertainty(refits=0, tipping=False),
    )
    return audit.case_file(audit.findings()["id"].iloc[0])


@pytest.mark.parametrize("attributes", [2, 4, 8, 20])
def test_what_was_decided_comes_before_the_attributes(attributes: int) -> None:
    page = wide_document(attributes).to_html()
    for role in ("control", "test"):
        table = re.search(rf'<table id="part1-{role}".*?</table>', page, re.DOTALL)
        assert table is not None
        heads = re.findall(r"<th [^>]*>([^<]*)</th>", table[0].split("</thead>")[0])
        assert heads[:4] == ["Person", "Outcome", "Distance", "Place"]
        members = getattr(wide_document(attributes).parts[0], role).members
        outcomes = re.findall(rf"<td>({REFUSED}|{GRANTED})</td>", table[0])
        assert outcomes == [each.outcome for each in members]
        for number in range(attributes):
            assert f"a_rather_long_name_{number}" in table[0]


@pytest.mark.slow
@pytest.mark.parametrize("attributes", [8, 20])
def test_no_column_is_cut_on_a_screen(browser: Any, tmp_path: Path, attributes: int) -> None:
    wide_document(attributes).write(tmp_path / "case.html")
    for width in (1280, 400):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto((tmp_path / "case.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for role in ("control", "test"):
            inside, room = page.locator(f"#part1-{role}").evaluate(
                "t => [t.parentElement.scrollWidth, t.parentElement.clientWidth]"
            )
            assert inside <= room
        page.close()


@pytest.mark.slow
@needs_pdf
@pytest.mark.parametrize("attributes", [8, 20])
def test_no_column_is_cut_on_paper(tmp_path: Path, attributes: int) -> None:
    document = wide_document(attributes)
    document.write(tmp_path / "case.pdf")
    text = read_pdf(tmp_path / "case.pdf", "-bbox")
    wide = float(re.findall(r'<page width="([\d.]+)"', text)[0])
    words = re.findall(r'xMin="([\d.-]+)".*?xMax="([\d.-]+)".*?>([^<]*)</word>', text)
    assert all(float(left) >= 0 and float(right) <= wide for left, right, _ in words)
    outcomes = [word for _, _, word in words if word in {REFUSED, GRANTED}]
    assert len(outcomes) >= sum(len(group.members) for group in document.parts[0].groups)


@pytest.mark.slow
def test_a_report_folds_on_screens_and_opens_on_paper(
    browser: Any, loan_audit: mm.Audit, tmp_path: Path
) -> None:
    loan_audit.report(tmp_path / "report.html")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((tmp_path / "report.html").as_uri())
    size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    width, height = page.evaluate(size)
    assert width == 1280
    assert height <= 8_000
    assert not page.locator("#attributes").is_visible()
    page.get_by_text("Attributes, as they are").click()
    assert page.locator("#attributes").is_visible()
    # contents stay in view
    page.locator("#section-repeat").scroll_into_view_if_needed()
    assert page.get_by_role("link", name="The answer").is_visible()
    assert 0 <= page.locator(".contents").bounding_box()["y"] < 900
    page.set_viewport_size({"width": 400, "height": 900})
    assert page.evaluate(size)[0] == 400
    page.pdf(path=str(tmp_path / "report.pdf"), prefer_css_page_size=True)
    page.close()
    read = pages(tmp_path / "report.pdf")
    text = " ".join(" ".join(read).split())
    assert "What a verdict does not say" in text
    assert "sha256" in text
    assert len(read) <= 18


@pytest.mark.slow
@needs_pdf
def test_a_case_file_as_pdf(loan_audit: mm.Audit, tmp_path: Path) -> None:
    path = tmp_path / "case.pdf"
    path.write_bytes(b"older")
    document = loan_audit.case_file(5, path)
    assert path.read_bytes() == to_pdf(document.to_html())
    assert [each.name for each in tmp_path.iterdir()] == ["case.pdf"]
    read = pages(path)
    for number, text in enumerate(read, start=1):
        assert re.search(rf"Case file · complainant 5\s+{number}\s*/\s*{len(read)}\s*$", text)
    everything = " ".join(" ".join(read).split())
    # the two answers are next to each other, and so are their lines in the text
    for answer in (document.verdict, document.own_case):
        assert answer.sentence[:30] in everything
    assert re.search(r"significant-adjusted +own case: yes +refused", "\n".join(read))
    assert "0.633 [0.482, 0.762]" in everything
    # long tables repeat their header
    listing = [
        text for text in read if len(re.findall(r"^ *\d+ +-?1 +0\.\d{4}", text, re.MULTILINE)) > 5
    ]
    assert len(listing) > 2
    for text in listing:
        assert re.search(r"Person\s+Outcome\s+Distance", text)


@needs_pdf
def test_hostile_ids_stay_in_the_footer(tmp_path: Path) -> None:
    who = '"} * {display: none} <b>'
    audit = mm.audit(
        {
            "who": [who, "b", "c", "d"],
            "woman": [1, 1, 0, 0],
            "salary": [1.0, 2.0, 1.0, 2.0],
            "granted": [0, 1, 1, 0],
        },
        outcome="granted",
        negative=0,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous"},
        ks=(1,),
        id="who",
    )
    audit.case_file(who, tmp_path / "case.pdf")
    assert all(f"complainant {who}" in text for text in pages(tmp_path / "case.pdf"))


@needs_pdf
@pytest.mark.parametrize(
    "page",
    [
        '<link rel="stylesheet" href="http://127.0.0.1:9/style.css">',
        '<img src="file:///etc/hostname">',
        "<style>body { background: url(http://127.0.0.1:9/x.png) }</style>",
        "<style>@font-face { font-family: x; src: url(http://127.0.0.1:9/x.ttf) }</style>",
    ],
)
def test_nothing_is_fetched(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket
    import urllib.request

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr(socket.socket, "connect", fail)
    monkeypatch.setattr(urllib.request, "urlopen", fail)
    with pytest.raises(MutandisError, match="outside itself"):
        to_pdf(f"<html><body>{page}<p style='font-family: x'>text</p></body></html>")


def importing_weasyprint(patch: pytest.MonkeyPatch, act: Any) -> None:
    original = builtins.__import__

    def imported(name: str, *rest: Any, **options: Any) -> Any:
        if name == "weasyprint":
            act()
        return original(name, *rest, **options)

    patch.setattr(builtins, "__import__", imported)


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ImportError, r"pip install 'mutandis\[pdf\]'"),
        (OSError, "libpango.*libharfbuzz-subset0"),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, raised: type[Exception], told: str
) -> None:
    def fail() -> None:
        raise raised

    importing_weasyprint(monkeypatch, fail)
    with pytest.raises(MutandisError, match=told):
        to_pdf("<p>text</p>")
    assert re.search(told, str(pdf_unavailable()))


@needs_pdf
def test_what_a_later_weasyprint_will_need_is_no_error_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    # what WeasyPrint says at its first import where HarfBuzz-Subset is missing
    said = "HarfBuzz-Subset will be required by future versions of WeasyPrint."
    importing_weasyprint(monkeypatch, lambda: warnings.warn(said, DeprecationWarning, stacklevel=2))
    assert pdf_unavailable() is None
