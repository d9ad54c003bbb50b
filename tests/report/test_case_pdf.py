"""PDF: whole files, the same bytes, nothing fetched, headers and footers on every page."""

from __future__ import annotations

import builtins
import re
import shutil
import subprocess
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.errors import MutandisError
from mutandis.report.html import pdf_unavailable, to_pdf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_unavailable = pdf_unavailable()
needs_pdf = pytest.mark.skipif(_unavailable is not None, reason=_unavailable or "")


def pages(path: Path) -> list[str]:
    """Read the text of each page, with the tool that most people read PDF files with."""
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("pdftotext (Debian package poppler-utils) is not installed")
    done = subprocess.run(  # noqa: S603 - our own file
        [program, "-layout", str(path), "-"], check=True, capture_output=True, text=True
    )
    return done.stdout.split("\f")[:-1]


@pytest.mark.slow
@needs_pdf
def test_a_case_file_as_pdf(loan_audit: mm.Audit, tmp_path: Path) -> None:
    path = tmp_path / "case.pdf"
    document = loan_audit.case_file(5, path)
    assert path.read_bytes().startswith(b"%PDF-")
    assert [each.name for each in tmp_path.iterdir()] == ["case.pdf"]
    assert path.read_bytes() == to_pdf(document.to_html())
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    read = pages(path)
    assert len(read) > 4
    for number, text in enumerate(read, start=1):
        assert re.search(rf"Case file · complainant 5\s+{number}\s*/\s*{len(read)}\s*$", text)
    everything = " ".join(" ".join(read).split())
    # the two answers stand beside each other, and so their lines in the text
    for answer in (document.verdict, document.own_case):
        assert answer.sentence[:30] in everything
    assert re.search(r"significant-adjusted +own case: yes +she was refused", "\n".join(read))
    assert "63.3%" in everything
    assert "0.633 [0.482, 0.762]" in everything


@pytest.mark.slow
@needs_pdf
def test_long_tables_repeat_their_header(
    audit_applicants: Callable[..., mm.Audit], tmp_path: Path
) -> None:
    audit = audit_applicants(ks=(70,))
    audit.case_file(audit.findings()["id"].iloc[0], tmp_path / "case.pdf")
    listing = [text for text in pages(tmp_path / "case.pdf") if "applicant-1" in text]
    listing = [text for text in listing if text.count("applicant-") > 5]
    assert len(listing) > 2
    for text in listing:
        assert re.search(r"Person\s+Outcome\s+Distance", text)


@needs_pdf
def test_hostile_ids_stay_in_the_footer(tmp_path: Path) -> None:
    table: dict[str, list[Any]] = {
        "who": ['"} * {display: none} <b>', "b", "c", "d"],
        "woman": [1, 1, 0, 0],
        "salary": [1.0, 2.0, 1.0, 2.0],
        "granted": [0, 1, 1, 0],
    }
    audit = mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous"},
        ks=(1,),
        id="who",
    )
    audit.case_file(table["who"][0], tmp_path / "case.pdf")
    for text in pages(tmp_path / "case.pdf"):
        assert 'complainant "} * {display: none} <b>' in text


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
    original = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name == "weasyprint":
            raise raised(name)
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MutandisError, match=told):
        to_pdf("<p>text</p>")
    assert re.search(told, str(pdf_unavailable()))


@needs_pdf
def test_what_a_later_weasyprint_will_need_is_no_error_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def warning(name: str, *rest: Any, **options: Any) -> Any:
        if name == "weasyprint":
            # what WeasyPrint says at its first import where HarfBuzz-Subset is missing
            warnings.warn(
                "HarfBuzz-Subset will be required by future versions of WeasyPrint. "
                "Please install this library with your package manager.",
                DeprecationWarning,
                stacklevel=2,
            )
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", warning)
    assert pdf_unavailable() is None
