"""The page: every kind of audit, hostile names, and nothing from elsewhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.errors import PlanError, UnknownIdError
from mutandis.report.case_file import case_document
from mutandis.report.case_model import CaseDocument

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

HOSTILE = "<script>alert('x')</script>\"{{7*7}}\\'; @import url(//e.vil) =1+1\u202e"
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Collect tags, the text of every table by its id, and check that tags are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self._open: list[str] = []
        self._table = ""
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "table":
            self._table = found["id"] or ""
            self.tables[self._table] = []
        elif tag == "tr":
            self.tables[self._table].append([])
        elif tag in {"td", "th"}:
            self.tables[self._table][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self._open):
            self.tables[self._table][-1][-1] += data.strip()


def check_page(html: str) -> Page:
    """Check what holds for every page, whatever was audited."""
    page = Page(html)
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))
    for tag, attributes in page.tags:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
        assert "src" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        link = attributes.get("href") or attributes.get("xlink:href") or "#"
        assert link.startswith("#")
        assert link == "#" or link[1:] in names
        for reference in ("aria-labelledby", "aria-describedby"):
            for name in (attributes.get(reference) or "").split():
                assert name in names
        if tag == "svg":
            assert attributes["role"] == "img"
            assert attributes["aria-labelledby"]
        if tag == "th":
            assert attributes["scope"] in {"col", "row", "colgroup"}
    styles = [html[html.index("<style>") : html.index("</style>")]]
    styles += [value for _, attributes in page.tags for value in attributes.values() if value]
    assert html.count("<style") == 1
    for style in styles if HOSTILE[:9] not in html else styles[:1]:
        assert not re.search(r"url\((?!#)", style)
        assert "@import" not in style
    assert "default-src 'none'" in html
    assert sum(tag == "table" for tag, _ in page.tags) == html.count("<caption")
    assert [tag for tag, _ in page.tags].count("h1") == 1
    return page


def check_plain(value: Any) -> None:
    """Check that JSON holds nothing but plain types."""
    if isinstance(value, dict):
        assert all(isinstance(key, str) for key in value)
        for part in value.values():
            check_plain(part)
    elif isinstance(value, list):
        for part in value:
            check_plain(part)
    else:
        assert value is None or isinstance(value, str | int | float | bool)


@pytest.mark.few("multiple", "coupled", "matched-draws", "insufficient", "cf")
def test_every_kind_of_audit_has_a_case_file(any_audit: mm.Audit) -> None:
    found = any_audit.findings()
    # the first one last: other tests ask for her file again
    for who, redact in product([found["id"].iloc[-1], found["id"].iloc[0]], [False, True]):
        document = any_audit.case_file(who, redact=redact)
        check_page(document.to_html())
        data = json.loads(document.to_json())
        check_plain(data)
        assert (data["schema"], data["schema_version"]) == ("mutandis-case", 1)
        assert data["complainant"]["id"] == who
        row = found.set_index("id").loc[who]
        told = data["verdict"]["verdict"]
        sizes = [row["n_control"], row["n_test"]]
        method, k = any_audit.plan.settings.primary
        if method == "cst_matched":
            # who stands for several people counts as one person, and the others in proportion
            place = any_audit.case(who).groups(method, k=k).test.place
            sizes.append(place.sum() / max(1, place.max(initial=0)))
        few = redact and min(sizes) < 10
        assert told == row["verdict"] or (few and told == "withheld")
        assert data["provenance"]["redacted"] is redact
        assert data["redaction"]["redacted"] is redact


def test_the_same_audit_gives_the_same_bytes(audit_of: Callable[[str], mm.Audit]) -> None:
    audit = audit_of("full")
    who = audit.findings()["id"].iloc[0]
    # each a copy that remembers nothing of the other
    first, second = (case_document(replace(audit), who) for _ in range(2))
    assert first.to_html() == second.to_html()
    assert first.to_json() == second.to_json()


def hostile_audit(table: pd.DataFrame) -> mm.Audit:
    names = {
        "gender": f"gender {HOSTILE}",
        "salary": f"salary {HOSTILE}",
        "job": f"job {HOSTILE}",
        "granted": f"granted {HOSTILE}",
    }
    nasty = table.assign(
        name=[f"{HOSTILE} {row}" for row in range(len(table))],
        gender=table.gender.map({"f": f"f{HOSTILE}", "m": f"m{HOSTILE}"}),
        job=table.job + HOSTILE,
        granted=table.granted.map({"yes": f"yes{HOSTILE}", "no": f"no{HOSTILE}"}),
    ).rename(columns=names)
    return mm.audit(
        nasty,
        id="name",
        outcome=names["granted"],
        negative=f"no{HOSTILE}",
        protected=mm.Protection(names["gender"], value=f"f{HOSTILE}", reference=f"m{HOSTILE}"),
        attributes={names["salary"]: "continuous", names["job"]: "nominal"},
        worldview=mm.Worldview({names["salary"]: mm.Linear(names["gender"])}),
        ks=(5, 10),
    )


@pytest.mark.parametrize("redact", [False, True])
def test_hostile_names_and_values_stay_text(
    made_up_applicants: Callable[..., pd.DataFrame],
    with_source: Callable[[mm.Audit, dict[str, Any]], mm.Audit],
    redact: bool,
) -> None:
    audit = with_source(hostile_audit(made_up_applicants()), {"file": HOSTILE})
    who = audit.findings()["id"].iloc[0]
    document = case_document(audit, who, redact=redact)
    html = document.to_html()
    page = check_page(html)
    assert "<script" not in html
    assert "{{7*7}}" in html  # not 49: nothing in a value is a template
    assert "\u202e" not in html  # would turn the rest of the line around
    assert not any("alert" in tag for tag, _ in page.tags)
    style = html[html.index("<style>") + 7 : html.index("</style>")]
    assert "<" not in style
    assert json.loads(document.to_json())["complainant"]["id"] == who


def test_the_footer_cannot_leave_its_string(audit_of: Callable[[str], mm.Audit]) -> None:
    document = case_document(audit_of("st"), audit_of("st").findings()["id"].iloc[0])
    html = document.to_html()
    content = re.search(r'@bottom-left \{\s*content: "([^"]*)";', html)
    assert content is not None
    assert re.fullmatch(r"([A-Za-z0-9]|\\[0-9a-f]+ )*", content[1])


def test_long_lists_are_cut_on_the_page_and_whole_in_the_data() -> None:
    rows = 700
    table = {
        "woman": [1] * 300 + [0] * (rows - 300),
        "salary": [10.0] * 299 + [11.0] + [10.0] * (rows - 300),
        "granted": ["no", "yes"] * (rows // 2),
    }
    audit = mm.audit(
        table,
        outcome="granted",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous"},
        ks=(5,),
    )
    document = audit.case_file(0)
    page = Page(document.to_html())
    assert len(page.tables["part1-test"]) - 2 == 250
    assert "150 more people are listed in the JSON file." in document.to_html()
    data = json.loads(document.to_json())
    test = data["parts"][0]["test"]
    assert len(test["members"]) == test["people"] == 400
    assert test["members"][0]["place_text"] == "1/80"


@pytest.mark.parametrize("ending", ["html", "json"])
def test_files_are_written_whole(
    audit_of: Callable[[str], mm.Audit], tmp_path: Path, ending: str
) -> None:
    audit = audit_of("st")
    who = audit.findings()["id"].iloc[0]
    document = audit.case_file(who, tmp_path / f"case.{ending}")
    written = (tmp_path / f"case.{ending}").read_text(encoding="utf-8")
    assert written == (document.to_html() if ending == "html" else document.to_json())
    assert [path.name for path in tmp_path.iterdir()] == [f"case.{ending}"]


def test_other_endings_are_refused(audit_of: Callable[[str], mm.Audit], tmp_path: Path) -> None:
    audit = audit_of("st")
    with pytest.raises(PlanError, match=r"\.html, \.json, \.pdf, not as '\.odt'"):
        audit.case_file(audit.findings()["id"].iloc[0], tmp_path / "case.odt")


def test_who_is_no_complainant_has_no_case_file(audit_of: Callable[[str], mm.Audit]) -> None:
    with pytest.raises(UnknownIdError, match="No row has this id"):
        audit_of("st").case_file("nobody")


def test_provenance_says_where_the_table_came_from(
    audit_of: Callable[[str], mm.Audit],
    with_source: Callable[[mm.Audit, dict[str, Any]], mm.Audit],
) -> None:
    audit = with_source(audit_of("st"), {"file": "loans.csv"})
    document = audit.case_file(audit.findings()["id"].iloc[0])
    assert isinstance(document, CaseDocument)
    assert document.as_dict()["provenance"]["source"] == {"file": "loans.csv"}
    assert document.as_dict()["provenance"]["data"] == audit.provenance.as_dict()["data"]
    assert "loans.csv" in document.to_html()


def test_every_field_of_the_data_is_documented(audit_of: Callable[[str], mm.Audit]) -> None:
    path = Path(__file__).parents[2] / "docs" / "reference" / "results.md"
    text = path.read_text(encoding="utf-8").partition("### The JSON file")[2]
    table = text[text.index("| field | holds |") :]
    audit = audit_of("full")
    data = audit.case_file(audit.findings()["id"].iloc[0]).as_dict()
    part = data["parts"][0]
    named = [
        *data.keys(),
        *data["complainant"],
        *data["verdict"],
        *data["own_case"],
        *part,
        *part["movements"][0],
        *part["movements"][0]["causes"][0],
        *part["control"],
        *part["control"]["members"][0],
        *part["support"][0],
        *data["redaction"],
        *data["provenance"],
    ]
    documented = set(re.findall(r"\w+", table)) | {"schema", "schema_version", "role"}
    assert set(named) <= documented
    assert f"`schema_version` {data['schema_version']};" in text
