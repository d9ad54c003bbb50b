"""The case file as a Word document: what the page says, all of it, and nothing else."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import MutandisError
from mutandis.files.results_folder import is_audit_folder
from mutandis.report.word import to_word

if TYPE_CHECKING:
    from collections.abc import Callable

docx = pytest.importorskip("docx", reason="the extra `word` is not installed")
lxml_html = pytest.importorskip("lxml.html", reason="the extra `word` is not installed")

HOSTILE = "</w:t><script>alert(1)</script>&amp; \u202ex"


@pytest.fixture(scope="module")
def audit() -> mm.Audit:
    table = mm.datasets.loan(n=200, seed=1)
    table["person"] = [f"p{row}q" for row in range(len(table))]
    table.loc[table.index[table["Gender"] == 1][0], "person"] = HOSTILE
    return mm.audit(
        table,
        outcome="LoanApproval",
        negative=-1,
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
        worldview=mm.Worldview(
            {
                "AnnualSalary": mm.Linear("Gender"),
                "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
            }
        ),
        decision="AnnualSalary + 5 * AccountBalance > 225000",
        ks=(15, 30),
        id="person",
        uncertainty=mm.Uncertainty(placebo=2, refits=2),
    )


@pytest.fixture(scope="module")
def saved(audit: mm.Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("word") / "results"
    audit.save(path)
    return path


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """Give a copy of the results, which may be changed."""
    return Path(shutil.copytree(saved, tmp_path / "results"))


@dataclass(frozen=True)
class Written:
    """One case file: the model, the page, and the Word document."""

    case: mm.CaseDocument
    html: str
    word: bytes


@pytest.fixture(scope="module")
def write(audit: mm.Audit) -> Callable[..., Written]:
    """Give the way to write her case file, each kind once."""

    @cache
    def make(*, redact: bool) -> Written:
        case = audit.case_file(HOSTILE, redact=redact)
        return Written(case, case.to_html(), to_word(case.to_html()))

    return make


@pytest.fixture(params=[False, True], ids=["whole", "redacted"])
def written(write: Callable[..., Written], request: pytest.FixtureRequest) -> Written:
    return write(redact=request.param)


def opened(content: bytes) -> Any:
    return docx.Document(BytesIO(content))


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def letters(text: str) -> str:
    """Leave out white space, and marks that stand for borders and distances of the page."""
    return re.sub(r"\s", "", re.sub(r"[:;.](\s|$)", " ", text))


def test_every_table_is_that_of_the_page(written: Written) -> None:
    page, document = lxml_html.fromstring(written.html), opened(written.word)
    tables = page.xpath("//main//table")
    assert len(document.tables) == len(tables) > 1
    for expected, found in zip(tables, document.tables, strict=True):
        cells = [plain(each.text_content()) for each in expected.xpath(".//th|.//td")]
        seen: list[Any] = []
        texts = []
        for row in found.rows:
            for cell in row.cells:
                if cell._tc not in seen:  # merged cells come several times
                    seen.append(cell._tc)
                    texts.append(plain(cell.text))
        assert texts == cells
        rows = [each for each in found.rows if each._tr.xpath("./w:trPr/w:tblHeader")]
        assert len(rows) == len(expected.xpath("./thead/tr"))


def test_every_heading_and_sentence_is_that_of_the_page(written: Written) -> None:
    page, document = lxml_html.fromstring(written.html), opened(written.word)
    texts = [plain(each.text) for each in document.paragraphs]
    headings = [
        letters(each.text)
        for each in document.paragraphs
        if each.style.name == "Title" or each.style.name.startswith("Heading")
    ]
    expected = page.xpath("//header//h1|//main//h1|//main//h2|//main//h3|//main//h4")
    assert headings == [letters(each.text_content()) for each in expected]
    for each in page.xpath("//main//p|//main//li"):
        assert letters(each.text_content()) in [letters(text) for text in texts], (
            each.text_content()
        )
    assert any(plain(page.xpath("//pre")[0].text_content()) == text for text in texts)


def test_pictures_have_letters(written: Written) -> None:
    page, document = lxml_html.fromstring(written.html), opened(written.word)
    described = [each.get("descr") for each in document.element.xpath("//wp:docPr")]
    expected = [plain(each.text_content()) for each in page.xpath("//*[local-name()='desc']")]
    assert len(described) == len(expected)
    for alt, desc in zip(described, expected, strict=True):
        assert plain(alt).endswith(desc)
        assert len(desc) > 20


def test_a_redacted_document_names_no_other_person(
    audit: mm.Audit, write: Callable[..., Written]
) -> None:
    others = {str(each) for each in audit.plan.population.ids} - {HOSTILE}
    for redact, told in ((True, False), (False, True)):
        with ZipFile(BytesIO(write(redact=redact).word)) as packed:
            names = [name for name in packed.namelist() if not name.endswith((".png", ".jpeg"))]
            parts = [packed.read(name).decode("utf-8") for name in names]
        named = set(re.findall(r"p\d+q", " ".join(parts)))
        assert bool(named & others) is told


@pytest.mark.few("whole")
def test_the_same_case_gives_the_same_bytes(written: Written, tmp_path: Path) -> None:
    first = written.word
    assert first == to_word(written.html)
    written.case.write(tmp_path / "case.docx")
    assert (tmp_path / "case.docx").read_bytes() == first
    with ZipFile(BytesIO(first)) as packed:
        assert {each.date_time for each in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert packed.testzip() is None
    about = opened(first).core_properties
    assert (about.author, about.created.year, about.modified.year) == ("mutandis", 2000, 2000)


def test_hostile_names_are_text(write: Callable[..., Written]) -> None:
    document = opened(write(redact=False).word)
    [title] = [each.text for each in document.paragraphs if each.style.name == "Title"]
    # what would turn the direction is marked, as on the page
    assert title == f"Complainant {HOSTILE.replace(chr(0x202E), chr(0xFFFD))}"


def wide(columns: int, word: str) -> str:
    cells = "".join(f"<td>{word}{n}</td>" for n in range(columns))
    return (
        "<main><h2>Before</h2><p>Words</p><h2>Wide</h2><table><caption>Much</caption>"
        f"<tr>{cells}</tr></table><p class='note'>A note</p><p>After</p></main>"
    )


@pytest.mark.parametrize(("columns", "lies"), [(4, False), (16, True)])
def test_a_wide_table_lies_on_its_side(columns: int, lies: bool) -> None:
    document = opened(to_word(wide(columns, "incomprehensible")))
    widths = [section.page_width for section in document.sections]
    heights = [section.page_height for section in document.sections]
    turned = [width > height for width, height in zip(widths, heights, strict=True)]
    assert turned == ([False, True, False] if lies else [False])
    [table] = document.tables
    room = max(widths) if lies else widths[0]
    # Word keeps lengths in twentieths of a point, which are 635 of these units
    rounding = 635 * (columns + 1)
    assert sum(column.width for column in table.columns) <= room - 2 * 720_000 + rounding
    # its heading and its note are on its page
    breaks = [n for n, each in enumerate(document.paragraphs) if each._p.xpath("./w:pPr/w:sectPr")]
    texts = [each.text for each in document.paragraphs]
    if lies:
        first, second = breaks
        assert first < texts.index("Wide") < texts.index("Much") < texts.index("A note")
        assert texts.index("A note") <= second < texts.index("After")


def test_short_words_stay_whole_where_long_ones_are_broken() -> None:
    cells = "".join(f"<td>{'x' * 40}{n}</td>" for n in range(12))
    [table] = opened(
        to_word(f"<main><table><tr><td>0.12345678</td>{cells}</tr></table></main>")
    ).tables
    short, *others = [column.width.cm for column in table.columns]
    assert short + sum(others) <= 29.7 - 2 * 2 + 0.01
    # ten digits of 8 points, each at most 0.16 cm wide
    assert short > 10 * 0.16
    assert max(others) - min(others) < 0.01


def test_what_is_missing_is_said_before_the_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "docx", None)
    with pytest.raises(MutandisError, match=r"pip install 'mutandis\[word\]'"):
        mm.save_case(folder, HOSTILE, word=True)
    assert not (folder / "cases").exists()


def test_from_the_command_line_and_verified(audit: mm.Audit, folder: Path) -> None:
    who = next(str(each) for each in audit.findings().id if each != HOSTILE)
    result = CliRunner().invoke(app, ["case", str(folder), who, "--word", "--redact"])
    assert result.exit_code == 0, result.exception
    path = folder / "cases" / f"{who}.redacted.docx"
    assert str(path) in result.output
    assert path.read_bytes() == to_word(audit.case_file(who, redact=True).to_html())
    assert mm.verify_results(folder).differences == ()
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    expected = f"cases/{path.name} is not what was written"
    assert mm.verify_results(folder).differences == (expected,)


def test_force_replaces_documents_of_ours_and_no_others(folder: Path) -> None:
    mm.save_case(folder, HOSTILE, word=True)
    assert is_audit_folder(folder)
    (folder / "cases" / "notes.docx").touch()
    assert not is_audit_folder(folder)
