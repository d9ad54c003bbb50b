"""Pages that are read back: their elements, tables and texts, and what holds for every page."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "link", "img", "br", "hr", "input"}
# markup, scripts, formulas, templates, styles, and characters that control or turn what follows
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=cmd()|' /C calc'!A0",
    "</title></style><svg onload=alert(2)>",
    "{{ 7 * 7 }}{% raw %}",
    "a&b<c>'d'\"e\"\\; @import url(//e.vil)",
    "\u202egnp.exe\x00\x1b[31m",
)


class Page(HTMLParser):
    """A page: its elements in order, tables by id as rows of texts, and how much text there is."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.text: Counter[str] = Counter()
        self._open: list[str] = []
        self._rows: list[list[str]] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)
        if tag == "table":
            self._rows = self.tables[str(dict(attrs)["id"])] = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in {"td", "th"}:
            self._rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.text[self._open[-1]] += len(data.strip())
        if {"td", "th"} & set(self._open):
            self._rows[-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def check_page(html: str) -> Page:
    """Check what holds for every page: it runs and loads nothing, and can be read out."""
    page = Page(html)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[A-Za-z][\w.-]*", name) for name in ids)
    banned = "script img iframe object embed link image base form use foreignobject animate set"
    assert not {tag for tag, _ in page.elements} & set(banned.split())
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")], tag
        assert not {"src", "srcset", "action", "data", "xlink:href"} & attributes.keys(), tag
        assert "url(" not in attributes.get("style", "")
        referred = attributes.get("aria-labelledby", "").split()
        if "href" in attributes:
            assert attributes["href"].startswith("#")
            referred.append(attributes["href"][1:])
        assert set(referred) <= set(ids)
    assert html.count("<style") == html.count("<body>") == 1
    style = html.split("<style>")[1].split("</style>", maxsplit=1)[0]
    assert "url(" not in style
    assert "@import" not in style
    (policy,) = [each for each in page.all("meta") if "http-equiv" in each]
    assert policy["content"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", html)
    assert page.all("html") == [{"lang": "en"}]
    assert [len(page.all(each)) for each in ("header", "nav", "main", "footer")] == [1] * 4
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(each.get("scope") in {"col", "row", "colgroup"} for each in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    drawings = page.all("svg")
    assert len(drawings) == len(page.all("figure"))
    for drawing in drawings:
        assert drawing["role"] == "img"
        assert len(drawing["aria-label"]) > 50
    return page


def number(shown: str) -> float:
    """Read a number as people do: 12,345 or 16.8% or −0.250."""
    plain = shown.replace(",", "").replace("−", "-").replace("+", "")
    return float(plain[:-1]) / 100 if plain.endswith("%") else float(plain)
