"""Pages as Word documents, through python-docx (the extra `word`).

A page of ours is read and written again, heading by heading and table by table: the same model,
the same words and the same redaction as in HTML and PDF. Tables that are too wide for an upright
page stand on a page of their own that lies on its side.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from html.parser import HTMLParser
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from mutandis.errors import MutandisError
from mutandis.pictures.raster import to_png

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_word", "to_word"]

# of A4, in centimetres
_SHORT, _LONG, _MARGIN = 21.0, 29.7, 2.0
# of tables: the size of letters in points, and how wide letters are and the margins of a cell, in
# centimetres
_LETTERS, _LETTER, _PADDING = 8.0, 0.17, 0.42
_LONGEST = 24  # letters of a word that a column makes room for: longer ones are broken
_EPOCH = datetime(2000, 1, 1)  # noqa: DTZ001 - the same for everyone, wherever they are
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # that a zip file can hold
_SHADED = "F0ECE1"

_SKIPPED = {"head", "nav", "script", "style"}
_BLOCKS = {
    "h1": "Title",
    "h2": "Heading 1",
    "h3": "Heading 2",
    "h4": "Heading 3",
    "li": "List Bullet",
    "figcaption": "Caption",
    "caption": "Caption",
    "p": "Normal",
    "div": "Normal",  # of a list of facts; around other blocks it is empty, and leaves nothing
    "pre": "Normal",
}
_HEADINGS = {"Title", "Heading 1", "Heading 2", "Heading 3"}
_BOLD = {"strong", "b", "dt"}
# pieces that a style sheet sets apart
_APART = {"dd", "dt", "span", "small"}


def to_word(html: str) -> bytes:
    """Give a page of ours as a Word document; the same page gives the same bytes."""
    check_word()
    reader = _PageReader()
    reader.feed(html)
    reader.close()
    writer = _Writer()
    for block in reader.blocks:
        writer.write(block)
    return writer.finish(title=reader.title)


def check_word() -> None:
    """Say what is missing, if no Word document can be written here."""
    try:
        import docx  # noqa: F401
    except ImportError:
        raise MutandisError(
            "Word documents need python-docx, which is not installed. Install it with: pip install "
            "'mutandis[word]'. The HTML file says the same, and word processors open it."
        ) from None


@dataclass(slots=True)
class _Run:
    """A piece of text that looks the same throughout."""

    text: str
    bold: bool = False


@dataclass(slots=True)
class _Paragraph:
    """A paragraph, heading, caption or item of a list."""

    style: str
    runs: list[_Run] = field(default_factory=list)
    quiet: bool = False
    fixed: bool = False  # as typed, with its line breaks

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs)

    def add(self, text: str, *, bold: bool) -> None:
        """Add text; white space counts once, and not at the beginning."""
        if not self.fixed:
            text = re.sub(r"[ \t\n]+", " ", text)
            if not self.text or self.text.endswith((" ", "\n")):
                text = text.lstrip(" ")
        if text:
            self.runs.append(_Run(text, bold))

    def set_apart(self, mark: str = "") -> None:
        """Put a space, and a mark before it, where a style sheet would set something apart."""
        while self.runs and not self.runs[-1].text.rstrip(" "):
            self.runs.pop()
        if self.runs and not self.text.endswith("\n"):
            self.runs[-1].text = self.runs[-1].text.rstrip(" ")
            ended = self.text.endswith((".", ":", "?", "!"))
            self.runs.append(_Run(" " if ended else f"{mark} "))


@dataclass(slots=True)
class _Cell:
    paragraph: _Paragraph
    columns: int = 1
    rows: int = 1
    heading: bool = False
    number: bool = False


@dataclass(slots=True)
class _Table:
    caption: _Paragraph | None = None
    rows: list[list[_Cell]] = field(default_factory=list)
    shaded: set[int] = field(default_factory=set)
    headings: int = 0

    @property
    def width(self) -> int:
        """The number of columns, as the first row has them."""
        return sum(cell.columns for cell in self.rows[0])

    def needs(self, most: int = _LONGEST) -> list[float]:
        """Give what columns need, in centimetres, for words of `most` letters to stay whole."""
        longest = [2.0] * self.width
        for _, x, cell in self.places():
            words = cell.paragraph.text.split() or [""]
            letters = min(max(map(len, words)), most) / cell.columns
            for column in range(x, x + cell.columns):
                longest[column] = max(longest[column], letters)
        return [_LETTER * each + _PADDING for each in longest]

    def places(self) -> Iterator[tuple[int, int, _Cell]]:
        """Give each cell with its row and column, where cells above reach down."""
        taken: set[tuple[int, int]] = set()
        for y, row in enumerate(self.rows):
            x = 0
            for cell in row:
                while (y, x) in taken:
                    x += 1
                yield y, x, cell
                taken |= {(y + dy, x + dx) for dy in range(cell.rows) for dx in range(cell.columns)}


@dataclass(slots=True)
class _Drawing:
    svg: str
    description: str
    width: float  # in inches
    height: float


_Block = _Paragraph | _Table | _Drawing


class _PageReader(HTMLParser):
    """Takes a page of ours apart into paragraphs, tables and drawings."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[_Block] = []
        self.title = ""
        self._open: list[tuple[str, str]] = []
        self._paragraph: _Paragraph | None = None
        self._table: _Table | None = None
        self._svg: ET.TreeBuilder | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if self._svg is not None or tag == "svg":
            self._svg = self._svg or ET.TreeBuilder()
            # the parser of HTML gives names in small letters
            self._svg.start(tag, {_CAMEL.get(name, name): each for name, each in given.items()})
            return
        if tag == "br":
            if self._paragraph is not None:
                self._paragraph.runs.append(_Run("\n"))
            return
        if tag in _VOID:
            return
        self._open.append((tag, given.get("class", "")))
        if not self._is_skipped:
            self._start(tag, given)

    def handle_endtag(self, tag: str) -> None:
        if self._svg is not None:
            self._svg.end(tag)
            if tag == "svg":
                self._end_drawing()
            return
        skipped = self._is_skipped
        while self._open and self._open.pop()[0] != tag:
            pass
        if not skipped:
            self._end(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self._svg is not None:
            self._svg.end(tag)

    def handle_data(self, data: str) -> None:
        if self._svg is not None:
            self._svg.data(data)
        elif self._paragraph is not None and not self._is_skipped:
            tags = {tag for tag, _ in self._open}
            verdict = any("verdict" in names.split() for _, names in self._open)
            self._paragraph.add(data, bold=bool(tags & _BOLD) or verdict)

    @property
    def _is_skipped(self) -> bool:
        return any(tag in _SKIPPED or "skip" in names.split() for tag, names in self._open)

    def _start(self, tag: str, given: dict[str, str]) -> None:
        names = given.get("class", "").split()
        if tag == "table":
            self._end_paragraph()
            self._table = _Table()
        elif self._table is not None and tag in {"tr", "td", "th", "caption"}:
            self._start_in_table(self._table, tag, given)
        elif self._paragraph is not None and tag in _APART:
            self._paragraph.set_apart(_mark_before(self._paragraph, tag, names))
        elif tag in _BLOCKS and self._table is None:
            self._end_paragraph()
            style = "List Number" if self._in_numbered_list(tag) else _BLOCKS[tag]
            self._paragraph = _Paragraph(style, quiet="note" in names, fixed=tag == "pre")

    def _in_numbered_list(self, tag: str) -> bool:
        lists = [each for each, _ in self._open if each in {"ol", "ul"}]
        return tag == "li" and bool(lists) and lists[-1] == "ol"

    def _start_in_table(self, table: _Table, tag: str, given: dict[str, str]) -> None:
        names = given.get("class", "").split()
        if tag == "caption":
            table.caption = self._paragraph = _Paragraph("Caption")
            return
        if tag == "tr":
            if {"primary", "centre"} & set(names):
                table.shaded.add(len(table.rows))
            if any(each == "thead" for each, _ in self._open):
                table.headings = len(table.rows) + 1
            table.rows.append([])
            return
        self._paragraph = _Paragraph("Normal")
        cell = _Cell(
            self._paragraph,
            columns=int(given.get("colspan", 1)),
            rows=int(given.get("rowspan", 1)),
            heading=tag == "th",
            number="number" in names,
        )
        table.rows[-1].append(cell)

    def _end(self, tag: str) -> None:
        if tag == "table" and self._table is not None:
            if self._table.rows:
                self.blocks.append(self._table)
            self._table = self._paragraph = None
        elif tag in {"td", "th", "caption"} and self._table is not None:
            self._paragraph = None
        elif tag == "dt" and self._paragraph is not None:
            self._paragraph.add(":", bold=True)
        elif tag in _BLOCKS and self._table is None:
            self._end_paragraph()

    def _end_paragraph(self) -> None:
        done, self._paragraph = self._paragraph, None
        if done is not None and done.text.strip():
            if done.style == "Title":
                self.title = self.title or done.text.strip()
            self.blocks.append(done)

    def _end_drawing(self) -> None:
        built, self._svg = self._svg, None
        assert built is not None, "an svg has begun"  # noqa: S101 - for the reader
        self._end_paragraph()
        root = built.close()
        words = {child.tag: child.text or "" for child in root if child.tag in {"title", "desc"}}
        self.blocks.append(
            _Drawing(
                ET.tostring(root, encoding="unicode"),
                f"{words.get('title', '')}. {words.get('desc', '')}".strip(),
                width=float(root.attrib["width"]) / 96,
                height=float(root.attrib["height"]) / 96,
            )
        )


def _mark_before(paragraph: _Paragraph, tag: str, names: list[str]) -> str:
    """Choose what stands for a border or a distance on the page."""
    if paragraph.style in _HEADINGS and tag == "small":
        return ":"
    if paragraph.style == "Caption":
        return "."
    return ";" if "verdict" in names else ""


_VOID = {"meta", "link", "img", "hr", "input", "col", "wbr"}
_CAMEL = {"viewbox": "viewBox"}


class _Writer:
    """Writes blocks one after the other, and turns the page where a table needs it."""

    def __init__(self) -> None:
        from docx import Document

        self._document: Any = Document()
        self._lies = False
        self._waiting: list[_Paragraph] = []
        self._set_up(self._document.sections[0])
        normal = self._document.styles["Normal"]
        normal.font.name, normal.font.size = "Arial", _points(10)
        normal.paragraph_format.space_after = _points(6)
        self._document.styles["Footer"].font.size = _points(8)
        caption = self._document.styles["Caption"].font
        caption.bold, caption.size, caption.color.rgb = False, _points(9), _dark()
        for name, size in (("Title", 22), ("Heading 1", 15), ("Heading 2", 12), ("Heading 3", 11)):
            style = self._document.styles[name]
            style.font.name, style.font.size = "Arial", _points(size)
            # or a theme of Word takes over
            for each in style.element.rPr.findall(_word("rFonts")):
                for theme in [key for key in each.attrib if key.endswith("Theme")]:
                    del each.attrib[theme]

    def write(self, block: _Block) -> None:
        """Write one block; headings wait for what they head, which may stand on a turned page."""
        if isinstance(block, _Paragraph) and block.style in _HEADINGS:
            self._waiting.append(block)
            return
        # a note belongs to the table above it
        if not (isinstance(block, _Paragraph) and block.quiet):
            self._turn(isinstance(block, _Table) and sum(block.needs()) > _SHORT - 2 * _MARGIN)
        self._write_waiting()
        if isinstance(block, _Table):
            self._write_table(block)
        elif isinstance(block, _Drawing):
            self._write_drawing(block)
        else:
            self._write_paragraph(block)

    def finish(self, *, title: str) -> bytes:
        """Give the bytes, without the time of day in them."""
        self._write_waiting()
        about = self._document.core_properties
        about.author = about.last_modified_by = "mutandis"
        about.title, about.language, about.comments = title, "en", ""
        about.created = about.modified = _EPOCH
        about.revision = 1
        for section in self._document.sections:
            self._write_footer(section, title)
        written = BytesIO()
        self._document.save(written)
        return _without_times(written.getvalue())

    def _set_up(self, section: Any) -> None:
        from docx.enum.section import WD_ORIENT

        width, height = (_LONG, _SHORT) if self._lies else (_SHORT, _LONG)
        section.orientation = WD_ORIENT.LANDSCAPE if self._lies else WD_ORIENT.PORTRAIT
        section.page_width, section.page_height = _centimetres(width), _centimetres(height)
        for side in ("left_margin", "right_margin", "top_margin", "bottom_margin"):
            setattr(section, side, _centimetres(_MARGIN))

    def _turn(self, lie: bool) -> None:  # noqa: FBT001 - one caller
        if lie != self._lies:
            from docx.enum.section import WD_SECTION

            self._lies = lie
            self._set_up(self._document.add_section(WD_SECTION.NEW_PAGE))

    @property
    def _room(self) -> float:
        return (_LONG if self._lies else _SHORT) - 2 * _MARGIN

    def _write_waiting(self) -> None:
        for heading in self._waiting:
            self._write_paragraph(heading)
        self._waiting.clear()

    def _write_paragraph(self, block: _Paragraph) -> Any:
        paragraph = self._document.add_paragraph(style=block.style)
        _fill(paragraph, block, size=8.5 if block.quiet or block.fixed else None)
        if block.fixed:
            for run in paragraph.runs:
                run.font.name = "Courier New"
        return paragraph

    def _write_drawing(self, block: _Drawing) -> None:
        high = _LONG - 2 * _MARGIN - 3
        shrink = min(1.0, self._room / (2.54 * block.width), high / (2.54 * block.height))
        paragraph = self._document.add_paragraph()
        paragraph.paragraph_format.keep_with_next = True
        picture = paragraph.add_run().add_picture(
            BytesIO(to_png(block.svg)), width=_centimetres(2.54 * block.width * shrink)
        )
        about = picture._inline.docPr  # noqa: SLF001 - python-docx has no name for alt text
        about.set("descr", block.description)

    def _write_table(self, block: _Table) -> None:
        if block.caption is not None:
            caption = self._write_paragraph(block.caption)
            caption.paragraph_format.keep_with_next = True
        table = self._document.add_table(rows=len(block.rows), cols=block.width)
        table.style = "Table Grid"
        table.autofit = False
        grid = [list(row.cells) for row in table.rows]
        for column, width in enumerate(self._widths(block)):
            table.columns[column].width = _centimetres(width)
            for row in grid:
                row[column].width = _centimetres(width)
        for y, x, cell in block.places():
            target = grid[y][x]
            if cell.columns > 1 or cell.rows > 1:
                target = target.merge(grid[y + cell.rows - 1][x + cell.columns - 1])
            _fill_cell(target, cell)
        for number, row in enumerate(table.rows):
            _mark_row(row, heading=number < block.headings, shaded=number in block.shaded)
        self._document.add_paragraph().paragraph_format.space_after = _points(2)

    def _widths(self, block: _Table) -> list[float]:
        """Part the width of the page: what each column needs, and the rest by its longest text."""
        # the longest words are broken first
        needs = next(
            (each for each in map(block.needs, range(_LONGEST, 0, -1)) if sum(each) <= self._room),
            block.needs(1),
        )
        asked = [1.0] * block.width
        for _, x, cell in block.places():
            if cell.columns == 1:
                asked[x] = max(asked[x], min(len(cell.paragraph.text), 2 * _LONGEST))
        rest = self._room - sum(needs)
        if rest < 0:
            return [self._room * each / sum(needs) for each in needs]
        return [n + rest * a / sum(asked) for n, a in zip(needs, asked, strict=True)]

    def _write_footer(self, section: Any, title: str) -> None:
        from docx.oxml import OxmlElement

        section.footer.is_linked_to_previous = False
        paragraph = section.footer.paragraphs[0]
        paragraph.add_run(f"Case file · {title} · page ")
        field_run = paragraph.add_run()
        for kind, text in (("begin", ""), (None, "PAGE"), ("end", "")):
            part = OxmlElement("w:fldChar" if kind else "w:instrText")
            if kind:
                part.set(_word("fldCharType"), kind)
            else:
                part.text = text
            field_run._r.append(part)  # noqa: SLF001 - python-docx has no name for fields


def _word(name: str) -> str:
    from docx.oxml.ns import qn

    named: str = qn(f"w:{name}")
    return named


def _points(size: float) -> Any:
    from docx.shared import Pt

    return Pt(size)


def _dark() -> Any:
    from docx.shared import RGBColor

    return RGBColor(0x33, 0x33, 0x33)


def _centimetres(length: float) -> Any:
    from docx.shared import Cm

    return Cm(length)


def _fill(paragraph: Any, block: _Paragraph, *, size: float | None = None) -> None:
    for piece in block.runs:
        run = paragraph.add_run(piece.text)
        run.bold = piece.bold or None
        if size is not None:
            run.font.size = _points(size)


def _fill_cell(target: Any, cell: _Cell) -> None:
    from docx.enum.text import WD_ALIGN_PARAGRAPH

    paragraph = target.paragraphs[0]
    _fill(paragraph, cell.paragraph, size=_LETTERS)
    paragraph.paragraph_format.space_after = _points(1)
    if cell.number:
        paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
    if cell.heading:
        for run in paragraph.runs:
            run.bold = True


def _mark_row(row: Any, *, heading: bool, shaded: bool) -> None:
    """Repeat headings on every page, break no row, and shade what stands out."""
    from docx.oxml import OxmlElement

    properties = row._tr.get_or_add_trPr()  # noqa: SLF001 - python-docx has no names for these
    properties.append(OxmlElement("w:cantSplit"))
    if heading:
        properties.append(OxmlElement("w:tblHeader"))
    if shaded:
        for cell in row.cells:
            shade = OxmlElement("w:shd")
            for name, value in (("val", "clear"), ("color", "auto"), ("fill", _SHADED)):
                shade.set(_word(name), value)
            cell._tc.get_or_add_tcPr().append(shade)  # noqa: SLF001


def _without_times(document: bytes) -> bytes:
    """Pack a document again, with the same time on every file of it."""
    written = BytesIO()
    with ZipFile(BytesIO(document)) as old, ZipFile(written, "w") as new:
        for name in sorted(old.namelist(), key=lambda each: (each != "[Content_Types].xml", each)):
            about = ZipInfo(name, _FIRST_DATE)
            about.compress_type, about.create_system = ZIP_DEFLATED, 3
            new.writestr(about, old.read(name))
    return written.getvalue()
