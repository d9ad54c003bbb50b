"""The page itself: it loads and runs nothing, hides nothing in names, and can be read by all."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing.plan import Origin
from mutandis.report import graph_plot
from mutandis.report.chart import COLOURS, Chart
from mutandis.report.html import inline_svg, render

STYLE = (files("mutandis.report") / "templates" / "style.css").read_text(encoding="utf-8")
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=cmd()|' /C calc'!A0",
    "</title></style><svg onload=alert(2)>",
    "{{ 7 * 7 }}{% raw %}",
    "a&b<c>'d'\"e\"",
    "\u202egnp.exe\x00\x1b[31m",
)


def with_source(audit: mm.Audit, source: dict[str, Any]) -> mm.Audit:
    origin = Origin(text="", name="audit.yaml", folder=Path(), source=source, files={})
    return replace(audit, plan=replace(audit.plan, origin=origin))


class Page(HTMLParser):
    """Lists the elements of a page with their attributes, and the text within each."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: Counter[str] = Counter()
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.text[self._open[-1]] += len(data.strip())

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def hostile_audit() -> mm.Audit:
    """An audit in which every name, level, outcome and id is an attack."""
    rng = np.random.default_rng(11)
    size = 240
    status, number, level, outcome = HOSTILE[0], HOSTILE[1], HOSTILE[3], HOSTILE[2]
    score = rng.normal(10, 3, size)
    table = pd.DataFrame(
        {
            "id": [f"{HOSTILE[place % len(HOSTILE)]}{place}" for place in range(size)],
            status: np.array([HOSTILE[4], HOSTILE[5]])[rng.integers(0, 2, size)],
            number: score,
            level: np.array(HOSTILE)[rng.integers(0, len(HOSTILE), size)],
            HOSTILE[6]: rng.integers(0, 5, size),
            outcome: np.where(score + rng.normal(size=size) > 10, HOSTILE[1], HOSTILE[0]),
        }
    )
    return mm.audit(
        table,
        id="id",
        outcome=outcome,
        negative=HOSTILE[0],
        protected=mm.Protection(status, value=HOSTILE[4], reference=HOSTILE[5]),
        attributes={number: "continuous", level: "nominal", HOSTILE[6]: "continuous"},
        worldview=mm.Worldview({number: mm.Linear(status), HOSTILE[6]: mm.Linear(number)}),
        ks=(5, 10),
    )


@cache
def hostile_page() -> str:
    return with_source(hostile_audit(), {HOSTILE[0]: HOSTILE[1]}).report().html


@cache
def plain_page() -> str:
    audit = mm.audit(
        mm.datasets.loan(n=400, seed=1),
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
        ks=(5, 10),
    )
    return audit.report().html


def pages() -> list[Any]:
    return [pytest.param(plain_page, id="plain"), pytest.param(hostile_page, id="hostile")]


@pytest.mark.parametrize("page", pages())
@pytest.mark.few("hostile")
def test_a_page_runs_nothing_and_loads_nothing(page: Any) -> None:
    read = Page(page())
    tags = {tag for tag, _ in read.elements}
    assert not tags & {
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "link",
        "image",
        "base",
        "form",
    }
    for tag, attributes in read.elements:
        assert not [name for name in attributes if name.startswith("on")], tag
        assert not {"src", "srcset", "action", "data", "xlink:href"} & attributes.keys(), tag
        assert attributes.get("href", "#").startswith("#")
        for value in (attributes.get("style", ""), attributes.get("clip-path", "")):
            assert re.sub(r"url\(#[\w.-]+\)", "", value).count("url(") == 0
    style = page().split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    (policy,) = [each for each in read.all("meta") if "http-equiv" in each]
    assert policy["content"].startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_a_plain_page_mentions_no_address_at_all() -> None:
    assert "://" not in plain_page()


def test_hostile_names_are_shown_as_text_and_nothing_else() -> None:
    page = hostile_page()
    # there, so that something was tested: escaped in the text of the page and of the drawings
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "=cmd()|" in page
    assert "{{ 7 * 7 }}{% raw %}" in page
    assert page.count("<title>") == 1
    assert page.count("<style>") == 1
    # what turns the reading direction round or controls a terminal is replaced
    assert "\u202e" not in page
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", page)


def test_hostile_names_change_no_structure() -> None:
    def tags(page: str) -> Counter[str]:
        return Counter(tag for tag, _ in Page(page).elements if tag in {"h2", "section", "nav"})

    hostile, plain = tags(hostile_page()), tags(plain_page())
    assert hostile == plain


@pytest.mark.parametrize("page", pages())
def test_ids_are_unique_and_every_reference_has_its_target(page: Any) -> None:
    read = Page(page())
    ids = Counter(attributes["id"] for _, attributes in read.elements if "id" in attributes)
    assert [name for name, times in ids.items() if times > 1] == []
    assert all(re.fullmatch(r"[A-Za-z][\w.-]*", name) for name in ids)
    for _, attributes in read.elements:
        referred = attributes.get("aria-labelledby", "").split()
        referred += [attributes["href"][1:]] if attributes.get("href", "").startswith("#") else []
        for value in attributes.values():
            referred += re.findall(r"url\(#([^)]*)\)", value)
        assert set(referred) <= ids.keys()


@pytest.mark.parametrize("page", pages())
def test_a_page_can_be_read_out(page: Any) -> None:
    read = Page(page())
    assert read.all("html") == [{"lang": "en"}]
    for landmark in ("header", "nav", "main", "footer"):
        assert len(read.all(landmark)) == 1
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(each.get("scope") in {"col", "row"} for each in read.all("th"))
    assert len(read.all("caption")) == len(read.all("table")) > 5
    assert len(read.all("svg")) == len(read.all("figure")) == len(read.all("desc")) > 1
    for drawing in read.all("svg"):
        assert drawing["role"] == "img"
        assert len(drawing["aria-labelledby"].split()) == 2
    assert read.text["desc"] > 50 * len(read.all("desc"))


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_of_black_on_white_is_as_defined() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *((text, "paper") for text in ("ink", "quiet", "accent", "control", "test", "found")),
        *((text, "tint") for text in ("ink", "quiet")),
        *((text, "partly-tint") for text in ("ink", "partly")),
        *((text, f"{text}-tint") for text in ("found", "clear", "unknown")),
    ],
)
def test_every_pair_of_colours_has_contrast_enough_for_text(text: str, ground: str) -> None:
    palette = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", STYLE))
    assert contrast(palette[text], palette[ground]) >= 4.5


def test_colours_of_the_drawings_stand_out() -> None:
    for name in ("control", "test", "quiet"):
        assert contrast(COLOURS[name], "#ffffff") >= 4.5
    for look in graph_plot._NODES.values():
        assert contrast(look.text, look.fill) >= 7


def test_the_page_is_made_for_paper_too() -> None:
    page = plain_page()
    assert "size: A4" in page
    assert "counter(page)" in page
    assert "break-inside: avoid" in page


def test_a_drawing_in_a_page_has_its_own_ids_and_words() -> None:
    drawing = mm.Worldview({"salary": mm.Linear("gender")}).draw().svg
    one, two = (inline_svg(drawing, name=each, title="<T>", description="D") for each in "ab")
    assert [re.findall(r' id="([^"]*)"', each) for each in (one, two)] == [
        ["a-title", "a-desc"],
        ["b-title", "b-desc"],
    ]
    assert "://" not in one
    assert '<title id="a-title">&lt;T&gt;</title><desc id="a-desc">D</desc>' in one
    chart = Chart(width=72, height=36).picture("Nothing")
    inlined = inline_svg(chart.svg, name="c", title="T", description="D")
    assert 'width="96" height="48"' in inlined
    assert "72pt" in chart.svg


def test_a_template_with_a_gap_is_an_error() -> None:
    with pytest.raises(Exception, match="undefined"):
        render("report.html", title="A title and nothing else")


def test_cells_are_escaped() -> None:
    from mutandis.report.html import _environment

    template = """{% import "macros.html" as show %}
    {% call show.table("t", caption, [labels, ["n"]], aside=caption, note=caption) %}
    {{ show.row(cells, cells, primary=true) }}
    {% endcall %}{{ show.facts([cells]) }}{{ show.verdict(caption) }}"""
    page = (
        _environment()
        .from_string(template)
        .render(caption="<b>", labels=["<i>"], cells=['"><x>', "<y>"])
    )
    assert not {"b", "i", "x", "y"} & {tag for tag, _ in Page(page).elements}
    assert "&lt;y&gt;" in page
