"""Reports and case files of every kind of audit: harmless, readable, whole, and the same again."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.data.attribute import read_attributes
from mutandis.errors import OutputError, PlanError, UnknownIdError
from mutandis.report import graph_plot
from mutandis.report.case_file import case_document
from mutandis.report.chart import COLOURS
from mutandis.report.html import CaptionedPicture, _environment, render
from mutandis.store.audit_file import read_arguments
from tests.report.pages import HOSTILE, Page, check_page

if TYPE_CHECKING:
    from collections.abc import Callable

STYLE = (files("mutandis.report") / "templates" / "style.css").read_text(encoding="utf-8")

# what the report of a kind of audit must and must not have
SAID: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "full": (('id="worldview"', "Actual and counterfactual outcomes"), ()),
    "matched": (("20 refits of the equations to resampled rows",), ()),
    "coupled": (("on an assumption that no data can test",), ()),
    "observed": (
        ("No decision was made on a counterfactual", 'id="worldview"'),
        ("<td>CF", "Had they been gender = m</th>"),
    ),
    "st": (("nowhere: none were needed",), ('id="worldview"', "given the worldview")),
    "supplied": (("supplied as a table",), ('id="worldview"',)),
    "decided": (("came with the table of counterfactuals",), ('id="worldview"',)),
    "cf": (("to which no test applies",), ("with a statistically significant pattern",)),
    "insufficient": (("No conclusion is possible for ", "people within distance 0.01"), ()),
    "alone": (("No complainant could be compared",), ('id="people-table"',)),
    "positive": (("treated better than", "Better treatment was looked for", "Δp < 0"), ()),
    "no-case": (("for none of the ", "none of whom has evidence"), ()),
    "wald": (("not adjusted for", "interval without width"), ("after correction for multiple",)),
    "draws": (("4 refits of the equations to resampled rows", "Of them fragile"), ()),
    "multiple": (
        ("evidence is found on every one", "(do gender)", "(do origin)", "combine: mul"),
        (),
    ),
    "intersectional": (("as one status", "gender = f and origin = far"), ("(do gender)",)),
    "complement": (("everyone but those with gender = f and origin = far",), ()),
    "mixed": (
        (
            "7 rows without a value in 'children'",
            "kept as on record",
            'id="strata"',
        ),
        (),
    ),
}


def first(audit: mm.Audit) -> Any:
    return audit.findings()["id"].iloc[0]


def check_plain(value: Any) -> None:
    """Check that JSON holds nothing but plain types."""
    if isinstance(value, dict):
        assert all(isinstance(key, str) for key in value)
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            check_plain(part)
    else:
        assert value is None or isinstance(value, str | int | float | bool)


# --- every kind ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SAID)
@pytest.mark.few("mixed", "no-case", "alone", "cf", "multiple")
def test_every_kind_of_audit_has_a_report(kind: str, audit_of: Callable[[str], mm.Audit]) -> None:
    report = audit_of(kind).report()
    page = check_page(report.html)
    assert len(report.html.encode()) < 1_000_000
    # the pictures in the page are the files
    assert {each["id"] for each in page.all("figure")} == set(report.plots)
    said, unsaid = SAID[kind]
    for words in said:
        assert words in report.html or words in unescape(report.html)
    for words in unsaid:
        assert words not in report.html.split("</style>")[1]


@pytest.mark.few("multiple", "coupled", "matched-draws", "insufficient", "cf")
def test_every_kind_of_audit_has_a_case_file(any_audit: mm.Audit) -> None:
    found = any_audit.findings().set_index("id")
    method, k = any_audit.plan.settings.primary
    for who in (found.index[0], found.index[-1]):
        for redact in (False, True):
            document = any_audit.case_file(who, redact=redact)
            check_page(document.to_html())
            data = json.loads(document.to_json())
            check_plain(data)
            assert (data["schema"], data["schema_version"]) == ("mutandis-case", 1)
            assert data["complainant"]["id"] == who
            row = found.loc[who]
            sizes = [row["n_control"], row["n_test"]]
            if method == "cst_matched":
                # who stands for several people counts as one, and the others in proportion
                place = any_audit.case(who).groups(method, k=k).test.place
                sizes.append(place.sum() / max(1, place.max(initial=0)))
            told = data["verdict"]["verdict"]
            few = redact and min(sizes) < 10
            assert told == row["verdict"] or (few and told == "withheld")
            assert data["provenance"]["redacted"] is data["redaction"]["redacted"] is redact


# --- hostile names -------------------------------------------------------------------------------


@cache
def hostile_audit() -> mm.Audit:
    """An audit in which every name, level, outcome and id is an attack."""
    rng = np.random.default_rng(11)
    size = 240
    status, number_, level, outcome = HOSTILE[0], HOSTILE[1], HOSTILE[3], HOSTILE[2]
    score = rng.normal(10, 3, size)
    table = pd.DataFrame(
        {
            "id": [f"{HOSTILE[place % len(HOSTILE)]}{place}" for place in range(size)],
            status: np.array([HOSTILE[4], HOSTILE[5]])[rng.integers(0, 2, size)],
            number_: score,
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
        attributes={number_: "continuous", level: "nominal", HOSTILE[6]: "continuous"},
        worldview=mm.Worldview({number_: mm.Linear(status), HOSTILE[6]: mm.Linear(number_)}),
        ks=(5, 10),
    )


@pytest.mark.parametrize("document", ["report", "case", "redacted"])
def test_hostile_names_are_shown_as_text_and_nothing_else(
    document: str,
    audit_of: Callable[[str], mm.Audit],
    with_source: Callable[[mm.Audit, dict[str, Any]], mm.Audit],
) -> None:
    def write(audit: mm.Audit) -> str:
        if document == "report":
            return audit.report().html
        return audit.case_file(first(audit), redact=document == "redacted").to_html()

    page = write(with_source(hostile_audit(), {HOSTILE[0]: HOSTILE[1]}))
    # there, so that something was tested: escaped in the text of the page and of the drawings
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7 * 7 }}{% raw %}" in page
    plain = write(audit_of("observed"))
    assert "://" not in plain
    hostile_tags, plain_tags = (
        Counter(tag for tag, _ in check_page(each).elements if tag in {"h2", "section", "nav"})
        for each in (page, plain)
    )
    assert hostile_tags == plain_tags


def test_the_footer_cannot_leave_its_string() -> None:
    html = case_document(hostile_audit(), first(hostile_audit())).to_html()
    content = re.search(r'@bottom-left \{\s*content: "([^"]*)";', html)
    assert content is not None
    assert re.fullmatch(r"([A-Za-z0-9]|\\[0-9a-f]+ )*", content[1])


def test_cells_are_escaped_and_a_gap_is_an_error() -> None:
    template = """{% import "macros.html" as show %}
    {% call show.table("t", caption, [labels, ["n"]], aside=caption, note=caption) %}
    {{ show.row(cells, cells, primary=true) }}
    {% endcall %}{{ show.facts([cells]) }}{{ show.verdict(caption) }}"""
    filled = _environment().from_string(template)
    page = filled.render(caption="<b>", labels=["<i>"], cells=['"><x>', "<y>"])
    assert not {"b", "i", "x", "y"} & {tag for tag, _ in Page(page).elements}
    assert "&lt;y&gt;" in page
    with pytest.raises(Exception, match="undefined"):
        render("report.html", title="A title and nothing else")


def test_a_drawing_in_a_page_has_words_and_no_address() -> None:
    drawing = mm.Worldview({"salary": mm.Linear("gender")}).draw()
    picture = CaptionedPicture(
        name="a", drawing=drawing, title="<T>", caption="", description='"><script>'
    )
    assert "://" not in picture.svg
    (svg,) = Page(picture.svg).all("svg")
    assert (svg["role"], svg["aria-label"]) == ("img", '<T>. "><script>')


# --- colours -------------------------------------------------------------------------------------


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


def test_every_pair_of_colours_has_contrast_enough_for_text() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    palettes = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", each))
        for each in STYLE.split("@media screen and (prefers-color-scheme: dark)")
    ]
    pairs = [
        *((text, "paper") for text in ("ink", "quiet", "accent", "control", "test", "found")),
        *((text, "tint") for text in ("ink", "quiet")),
        *((text, "partly-tint") for text in ("ink", "partly")),
        *((text, f"{text}-tint") for text in ("found", "clear", "unknown")),
    ]
    for palette in palettes[:2]:
        assert all(contrast(palette[text], palette[ground]) >= 4.5 for text, ground in pairs)
    for name in ("control", "test", "quiet"):
        assert contrast(COLOURS[name], "#ffffff") >= 4.5
    for look in graph_plot._NODES.values():
        assert contrast(look.text, look.fill) >= 7


# --- whole, the same, and as documented ----------------------------------------------------------


def test_the_same_audit_gives_the_same_bytes(audit_of: Callable[[str], mm.Audit]) -> None:
    audit = audit_of("full")
    one, two = (case_document(each, first(audit)) for each in (audit, replace(audit)))
    assert one.to_html() == two.to_html()
    assert one.to_json() == two.to_json()


def test_files_are_written_whole(audit_of: Callable[[str], mm.Audit], tmp_path: Path) -> None:
    audit = audit_of("st")
    (tmp_path / "report.html").write_text("old", encoding="utf-8")
    written = {
        "report.html": audit.report(tmp_path / "report.html").html,
        "case.html": audit.case_file(first(audit), tmp_path / "case.html").to_html(),
        "case.json": audit.case_file(first(audit), tmp_path / "case.json").to_json(),
    }
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == written
    with pytest.raises(OutputError, match="absent"):
        audit.report(tmp_path / "absent" / "report.html")
    with pytest.raises(PlanError, match=r"\.html, \.json, \.pdf, not as '\.odt'"):
        audit.case_file(first(audit), tmp_path / "case.odt")
    with pytest.raises(UnknownIdError, match="No row has this id"):
        audit.case_file("nobody")


@pytest.mark.parametrize("kind", ["multiple", "intersectional", "mixed", "st", "insufficient"])
@pytest.mark.few("mixed")
def test_settings_in_a_page_can_be_read_as_an_audit_file(
    kind: str, audit_of: Callable[[str], mm.Audit]
) -> None:
    audit = audit_of(kind)
    plan = audit.plan
    for page in (audit.report().html, audit.case_file(first(audit)).to_html()):
        text = unescape(page.split("<pre>")[1].split("</pre>")[0])
        source = f"data: {{source: table.csv}}\n{text}"
        _, _, read = read_arguments(source, folder=Path(), name="page")
        assert read.get("combine") == plan.combine
        assert read.get("worldview") == plan.worldview
        protected = read["protected"]
        listed = tuple(protected) if isinstance(protected, list) else (protected,)
        assert listed == plan.protections
        assert read_attributes(read["attributes"]) == plan.attributes
        for name in ("ks", "tau", "similarity", "evidence", "uncertainty", "seed"):
            assert read.get(name) == getattr(plan.settings, name)


def test_provenance_says_where_the_table_came_from(
    audit_of: Callable[[str], mm.Audit],
    with_source: Callable[[mm.Audit, dict[str, Any]], mm.Audit],
) -> None:
    audit = with_source(audit_of("observed"), {"file": "loans.csv", "password": None})
    document = audit.case_file(first(audit))
    data = document.as_dict()["provenance"]
    assert data["source"] == {"file": "loans.csv"}
    assert data["data"] == audit.provenance.as_dict()["data"]
    assert "loans.csv" in document.to_html()
    plan = audit.plan
    assert plan.worldview is not None
    diagnosis = plan.worldview.check(plan.population, protected="gender", do=plan.do, alpha=0.003)
    page = audit.report(diagnosis=diagnosis).html
    assert "a problem is one below 0.003" in page
    assert "file: loans.csv" in page
    assert "password" not in page


def test_every_field_of_the_data_is_documented(audit_of: Callable[[str], mm.Audit]) -> None:
    path = Path(__file__).parents[2] / "docs" / "reference" / "results.md"
    text = path.read_text(encoding="utf-8").partition("### The JSON file")[2]
    table = text[text.index("| field | holds |") :]
    data = audit_of("full").case_file(first(audit_of("full"))).as_dict()
    part = data["parts"][0]
    records = [data, part, part["movements"][0], part["movements"][0]["causes"][0]]
    records += [part["control"], part["control"]["members"][0], part["support"][0]]
    records += [
        data[name] for name in ("complainant", "verdict", "own_case", "redaction", "provenance")
    ]
    documented = set(re.findall(r"\w+", table)) | {"schema", "schema_version", "role"}
    assert {name for record in records for name in record} <= documented
    assert f"`schema_version` {data['schema_version']};" in text


def test_long_lists_are_cut_on_the_page_and_whole_in_the_data() -> None:
    rows = 1500
    audit = mm.audit(
        {
            "woman": [1] * 300 + [0] * (rows - 300),
            "salary": [10.0] * 299 + [11.0] + [10.0] * (rows - 300),
            "granted": ["no", "yes"] * (rows // 2),
        },
        outcome="granted",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous"},
        ks=(5,),
    )
    document = audit.case_file(0)
    page = Page(document.to_html())
    assert len(page.tables["part1-test"]) - 2 == 250
    assert "750 more people are listed in the JSON file." in document.to_html()
    assert "200 people of the group are counted and not listed" in document.to_html()
    test = json.loads(document.to_json())["parts"][0]["test"]
    assert (len(test["members"]), test["people"]) == (1000, 1200)
    assert test["members"][0]["place_text"] == "1/240"


@pytest.mark.slow
def test_many_attributes_and_group_sizes_stay_below_a_megabyte() -> None:
    rng = np.random.default_rng(3)
    names = [f"attribute number {place} with a rather long name" for place in range(60)]
    table: dict[str, Any] = {name: rng.normal(size=300) for name in names}
    table |= {"woman": rng.integers(0, 2, 300), "granted": rng.integers(0, 2, 300)}
    report = mm.audit(
        table,
        outcome="granted",
        negative=0,
        protected=mm.Protection("woman", value=1, reference=0),
        attributes=dict.fromkeys(names, "continuous"),
        ks=range(1, 60),
    ).report()
    assert len(report.html.encode()) < 1_000_000
    # 12 of 59 over the range, and the headline's
    assert "46 further group sizes were run" in report.html


# --- worldviews that the table contradicts -------------------------------------------------------


def test_a_problem_is_said_in_the_summary_if_it_moves_counterfactuals() -> None:
    def report(salary: str, balance: tuple[str, ...], rows: int) -> str:
        return (
            mm.audit(
                mm.datasets.loan(n=rows, seed=1),
                outcome="LoanApproval",
                negative=-1,
                protected=mm.Protection("Gender", value=1, reference=0),
                attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
                worldview=mm.Worldview(
                    {"AnnualSalary": mm.Linear(salary), "AccountBalance": mm.Linear(*balance)}
                ),
                ks=(5, 10),
                uncertainty=mm.Uncertainty(refits=0),
            )
            .report()
            .html
        )

    def summary(page: str) -> str:
        return page.split('<section id="section-findings"')[1].partition("</section>")[0]

    # the balance does depend on gender, in ways that the salary does not show
    page = summary(report("Gender", ("AnnualSalary",), 2000))
    assert "The table contradicts the worldview: 2 problems in 6 tests. " in page
    assert "Mending them moves counterfactuals noticeably for 2 of them; see" in page
    # the balance depends on the salary too, but gender shifts both as it does
    page = report("Gender", ("Gender",), 400)
    assert "The table contradicts the worldview" not in summary(page)
    headings = re.findall("<h4>(.*?)</h4>", page.split("What the data say about it", 1)[1])
    assert headings[0] == "Problems that move no counterfactual"
    assert headings[-1] == "What no table can show"
