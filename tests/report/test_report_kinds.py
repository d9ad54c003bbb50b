"""A report of every kind of audit: what is missing is left out, and what matters is said."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.auditing.plan import Origin
from mutandis.data.attribute import read_attributes
from mutandis.errors import MutandisWarning, OutputError
from mutandis.store.audit_file import read_arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.report.report import Report

WORLDVIEW = mm.Worldview(
    {
        "AnnualSalary": mm.Linear("Gender"),
        "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
    }
)
VOID = {"meta", "link", "img", "br", "hr", "input"}


def with_source(audit: mm.Audit, source: dict[str, Any]) -> mm.Audit:
    origin = Origin(text="", name="audit.yaml", folder=Path(), source=source, files={})
    return replace(audit, plan=replace(audit.plan, origin=origin))


class Balanced(HTMLParser):
    """Checks that every element is closed, in the right order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def loan(n: int = 400, **changed: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "LoanApproval",
        "negative": -1,
        "protected": mm.Protection("Gender", value=1, reference=0),
        "attributes": {"AnnualSalary": "continuous", "AccountBalance": "continuous"},
        "worldview": WORLDVIEW,
        "decision": "AnnualSalary + 5 * AccountBalance > 225000",
        "ks": (5, 10),
        "uncertainty": mm.Uncertainty(refits=0),
        **changed,
    }
    return mm.audit(mm.datasets.loan(n=n, seed=1), **settings)


def grounds(combine: str, **changed: Any) -> mm.Audit:
    rng = np.random.default_rng(5)
    size = 600
    race, sex = rng.integers(0, 2, size), rng.integers(0, 2, size)
    score = np.round(50 + 5 * race + 5 * sex + rng.normal(0, 8, size), 1)
    return mm.audit(
        {
            "race": np.array(["other", "white"])[race],
            "sex": np.array(["female", "male"])[sex],
            "score": score,
            "admitted": np.where(score > 57, "yes", "no"),
        },
        outcome="admitted",
        negative="no",
        protected=[
            mm.Protection("race", value="other", reference="white"),
            mm.Protection("sex", value="female", reference="male"),
        ],
        combine=combine,
        attributes={"score": "continuous"},
        worldview=mm.Worldview({"score": mm.Linear("race", "sex")}),
        decision="score > 57",
        ks=(5, 10),
        uncertainty=mm.Uncertainty(refits=0),
        **changed,
    )


def mixed() -> mm.Audit:
    """Names, ranks, counts, several protected values, missing values, and no decision maker."""
    rng = np.random.default_rng(7)
    size = 500
    origin = rng.choice(["here", "near", "far"], size, p=[0.5, 0.3, 0.2])
    grade = rng.choice(["low", "mid", "high"], size)
    job = rng.choice([f"job {letter}" for letter in "abcdefghijklm"], size)
    children = rng.poisson(1 + (origin == "far"), size).astype(float)
    children[:7] = np.nan
    return mm.audit(
        {
            "origin": origin,
            "grade": grade,
            "job": job,
            "children": children,
            "granted": rng.choice([0, 1], size),
        },
        outcome="granted",
        negative=0,
        protected=mm.Protection("origin", reference="here"),
        attributes={
            "grade": {"kind": "ordinal", "levels": ["low", "mid", "high"]},
            "job": "nominal",
            "children": "continuous",
        },
        worldview=mm.Worldview(
            {"children": mm.Count("origin"), "job": mm.Categorical("origin")}, resolving=["job"]
        ),
        missing="drop",
        ks=(5,),
        uncertainty=mm.Uncertainty(draws=3, refits=2),
        seed=1,
    )


def given() -> mm.Audit:
    table = loan().counterfactuals()
    return loan(worldview=None, counterfactuals=table, decision=None)


def one_complainant() -> mm.Audit:
    """One person is protected on both grounds; on each ground there are others."""
    score = np.arange(40) % 9
    return mm.audit(
        {
            "race": ["other"] * 10 + ["white"] * 30,
            "sex": ["male"] * 9 + ["female"] * 11 + ["male"] * 20,
            "score": score,
            "admitted": np.where(score > 4, "yes", "no"),
        },
        outcome="admitted",
        negative="no",
        protected=[
            mm.Protection("race", value="other", reference="white"),
            mm.Protection("sex", value="female", reference="male"),
        ],
        combine="multiple",
        attributes={"score": "continuous"},
        ks=(3,),
    )


@cache
def quiet(make: Callable[[], mm.Audit]) -> mm.Audit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        return make()


KINDS: dict[str, tuple[Callable[[], mm.Audit], tuple[str, ...], tuple[str, ...]]] = {
    "all methods": (
        lambda: loan(uncertainty=mm.Uncertainty()),
        ('id="worldview"', "20 refits of the equations to resampled rows"),
        (),
    ),
    "observed": (
        lambda: loan(decision=None),
        ("No decision was made on a counterfactual", 'id="worldview"'),
        ("CF", "Had they been Gender = 0</th>"),
    ),
    "situation testing alone": (
        lambda: loan(decision=None, worldview=None),
        ("nowhere: none were needed",),
        ('id="worldview"', "given the worldview"),
    ),
    "counterfactuals given": (
        given,
        ("supplied as a table", "came with the table of counterfactuals"),
        ('id="worldview"',),
    ),
    "counterfactual fairness alone": (
        lambda: loan(methods=["cf"]),
        ("to which no test applies",),
        ("with a statistically significant pattern",),
    ),
    "a caliper": (
        lambda: loan(similarity=mm.Similarity(max_distance=0.02, min_group=3)),
        ("No conclusion is possible for ", "people within distance 0.02"),
        (),
    ),
    "nobody can be compared": (
        lambda: loan(
            n=200, similarity=mm.Similarity(max_distance=1e-9, min_group=3), ks=(5,), methods=["st"]
        ),
        ("No complainant could be compared",),
        ('id="people-table"',),
    ),
    "better treatment": (
        lambda: loan(evidence=mm.Evidence(direction="positive")),
        ("treated better than", "Better treatment was looked for", "Δp &lt; 0"),
        (),
    ),
    "no case at all": (
        lambda: loan(tau=0.99, ks=(5,), methods=["st", "cst_without"], worldview=mm.Worldview({})),
        (
            "for none of the 126 complainants",
            "none of whom has evidence",
        ),
        (),
    ),
    "Wald, not adjusted": (
        lambda: loan(evidence=mm.Evidence(interval="wald", adjust="none")),
        ("not adjusted for", "interval without width"),
        ("after correction for multiple testing",),
    ),
    "draws": (
        lambda: loan(uncertainty=mm.Uncertainty(refits=3), seed=2),
        ("3 refits of the equations to resampled rows, seed 2", "Of them fragile"),
        (),
    ),
    "multiple": (
        lambda: grounds("multiple"),
        (
            "evidence is found on every one",
            "(do race)",
            "(do sex)",
            "Had they been sex = male",
            "combine: mul",
        ),
        (),
    ),
    "intersectional": (
        lambda: grounds("intersectional"),
        ("as one status", "race = other and sex = female"),
        ("(do race)",),
    ),
    "everybody else": (
        lambda: grounds("intersectional", similarity=mm.Similarity(test_space="complement")),
        ("everyone but those with race = other and sex = female",),
        (),
    ),
    "mixed columns": (
        mixed,
        (
            "7 rows without a value in 'children'",
            "no data can test",
            "kept as on record",
            "others ",
            'id="strata"',
        ),
        (),
    ),
    "one complainant": (
        one_complainant,
        ("1 person with race = other and sex = female", "was compared with"),
        (),
    ),
}


@cache
def report_on(kind: str) -> Report:
    return quiet(KINDS[kind][0]).report()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(
    "mixed columns",
    "no case at all",
    "nobody can be compared",
    "counterfactual fairness alone",
)
def test_every_kind_of_audit_has_a_report(kind: str) -> None:
    _, said, unsaid = KINDS[kind]
    report = report_on(kind)
    Balanced(report.html)
    assert len(report.html) < 1_000_000
    for words in said:
        assert words in report.html or words in unescape(report.html)
    body = report.html.split("</style>")[1]
    for words in unsaid:
        assert words not in body
    # the pictures in the page are the files, and the other way round
    assert {name for name in report.plots if f'<figure id="{name}">' in report.html} == set(
        report.plots
    )
    assert body.count("<svg") == len(report.plots)


@pytest.mark.parametrize(
    "kind", ["multiple", "intersectional", "mixed columns", "situation testing alone", "a caliper"]
)
def test_settings_in_the_page_can_be_read_as_an_audit_file(kind: str) -> None:
    audit = quiet(KINDS[kind][0])
    text = unescape(report_on(kind).html.split("<pre>")[1].split("</pre>")[0])
    _, _, read = read_arguments(f"data: {{source: table.csv}}\n{text}", folder=Path(), name="page")
    plan = audit.plan
    assert read.get("combine") == plan.combine
    assert read.get("worldview") == plan.worldview
    protected = read["protected"]
    listed = tuple(protected) if isinstance(protected, list) else (protected,)
    assert listed == plan.protections
    assert read_attributes(read["attributes"]) == plan.attributes
    for name in ("ks", "tau", "similarity", "evidence", "uncertainty", "seed"):
        assert read.get(name) == getattr(plan.settings, name)


def test_verdicts_are_counted_that_fall_under_more_than_a_tenth_of_refits() -> None:
    audit = loan(
        n=800,
        uncertainty=mm.Uncertainty(refits=20),
        seed=1,
        methods=["cst_without"],
        ks=(10,),
    )
    found = audit.findings()
    # 18 of 20 are exactly the border
    assert {1.0, 0.9, 0.85} <= set(found["verdict_share"])
    table = audit.report().html.split("Verdicts that fall easily", 1)[1].split("</table>")[0]
    numbers = [int(each) for each in re.findall(r'<td class="number">(\d+)</td>', table)]
    expected = []
    for verdict in ("significant-adjusted", "significant", "evidence"):
        shares = found.loc[found["verdict"] == verdict, "verdict_share"]
        expected += [len(shares), int((shares < 0.9).sum())]
    assert numbers == expected
    assert expected[1] > 0


def test_a_worldview_that_the_table_contradicts_is_said_in_the_summary() -> None:
    # the balance does depend on gender, in ways that the salary does not show
    wrong = {"AnnualSalary": mm.Linear("Gender"), "AccountBalance": mm.Linear("AnnualSalary")}
    page = loan(n=2000, worldview=mm.Worldview(wrong)).report().html
    summary = page.split("<section", 2)[1].split("</section>")[0]
    assert "The table contradicts the worldview: 2 problems in 6 tests. " in summary
    assert "Mending them moves counterfactuals noticeably for 2 of them; see" in summary
    assert "The table contradicts the worldview" not in report_on("all methods").html


def test_a_problem_that_moves_no_counterfactual_is_not_said_in_the_summary() -> None:
    # the balance depends on the salary too, but gender shifts both as it does
    flat = {"AnnualSalary": mm.Linear("Gender"), "AccountBalance": mm.Linear("Gender")}
    page = loan(worldview=mm.Worldview(flat)).report().html
    summary = page.split("<section", 2)[1].split("</section>")[0]
    assert "The table contradicts the worldview" not in summary
    assert "1 problem in 3 tests. None of them moves counterfactuals noticeably; see" in page
    part = page.split("What the data say about it", 1)[1].split("</section>")[0]
    headings = re.findall("<h4>(.*?)</h4>", part)
    assert headings[:2] == [
        "Problems that move no counterfactual",
        "What agrees with the worldview",
    ]
    assert headings[-1] == "What no table can show"
    assert "<p>Next: ask experts whether" in part


def test_a_report_is_written_whole(tmp_path: Path) -> None:
    audit = loan(n=200, methods=["st"], worldview=None, decision=None)
    target = tmp_path / "report.html"
    target.write_text("old", encoding="utf-8")
    page = audit.report(target).html
    assert target.read_text(encoding="utf-8") == page
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OutputError, match="absent"):
        audit.report(tmp_path / "absent" / "report.html")


@pytest.mark.slow
def test_many_attributes_and_group_sizes_stay_below_a_megabyte() -> None:
    rng = np.random.default_rng(3)
    names = [f"attribute number {place} with a rather long name" for place in range(60)]
    table: dict[str, Any] = {name: rng.normal(size=300) for name in names}
    table["woman"] = rng.integers(0, 2, 300)
    table["granted"] = rng.integers(0, 2, 300)
    audit = quiet(
        lambda: mm.audit(
            table,
            outcome="granted",
            negative=0,
            protected=mm.Protection("woman", value=1, reference=0),
            attributes=dict.fromkeys(names, "continuous"),
            ks=range(1, 60),
        )
    )
    report = audit.report()
    assert len(report.html.encode()) < 1_000_000
    # 12 of 59 over the range, and the headline's
    assert "46 further group sizes were run" in report.html


def test_a_source_is_listed_and_a_diagnosis_is_not_asked_twice() -> None:
    audit = loan(n=200)
    plan = audit.plan
    diagnosis = WORLDVIEW.check(plan.population, protected="Gender", do=plan.do, alpha=0.003)
    sourced = with_source(audit, {"file": "loan.csv", "password": None})
    page = sourced.report(diagnosis=diagnosis).html
    assert "a problem is one below 0.003" in page
    assert "<dt>file</dt><dd>loan.csv</dd>" in page
    assert "password" not in page
