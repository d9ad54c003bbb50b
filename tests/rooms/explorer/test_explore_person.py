"""The page of one complainant against her case; λ against the audit and its tipping points."""

from __future__ import annotations

import re
from fractions import Fraction
from html import unescape
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.auditing.tipping import find_tipping, find_with_part
from mutandis.engine.methods import METHODS
from mutandis.report.formatting import distance, signed
from mutandis.report.sentences import attributes_that_change
from mutandis.rooms.explorer.person import Person, draw_dots
from mutandis.rooms.explorer.view import Lens

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.auditing.audit import Audit

SHOWN = ("p_control", "p_test", "delta_p", "ci_low", "ci_high", "p_value", "q_value", "verdict")


@pytest.mark.parametrize("method", ["cst_matched", "cst_without"])
def test_with_the_whole_effect_her_findings_are_those_of_the_audit(
    loan: Audit, method: str
) -> None:
    expected = loan.findings(method, k=20)
    for place in (0, 7, 50):
        row = find_with_part(loan, place, METHODS[method], 20, Fraction(1)).columns()
        for name in SHOWN:
            np.testing.assert_equal(row[name][0], expected[name].iloc[place], err_msg=name)


def test_the_verdict_falls_at_the_tipping_point(loan: Audit) -> None:
    """What the slider shows on both sides of λ* is what makes it the tipping point."""
    method = METHODS["cst_matched"]
    tipping = find_tipping(loan, method, 20)
    found = loan.evaluate("cst_matched", 20)
    bound = found.p_value_bound()
    places = np.flatnonzero((tipping.point > 0.05) & (tipping.point < 1))[:3]
    assert len(places) == 3
    for place in places.tolist():
        point = Fraction(round(tipping.point[place] * 20), 20)
        for part, stands in ((point, True), (point - Fraction(1, 20), False)):
            there = find_with_part(loan, place, method, 20, part).comparison
            kept = there.evidence[0] & (there.interval.p_value[0] <= bound[place])
            assert kept == stands


def test_attributes_that_change_the_verdict_are_said_as_in_her_case_file(
    visit: Callable[[Audit], Any], loan: Audit
) -> None:
    said = 0
    client = visit(loan)
    for place in np.flatnonzero(loan.evaluate().has_pattern)[:3].tolist():
        document = loan.case_file(int(loan.evaluate().ids[place]))
        known = document.robustness
        assert known is not None
        sentences = list(attributes_that_change(document))
        assert len(sentences) == len(set(known.stands_without.values()))
        assert all(
            sum(repr(name) in each for each in sentences) == 1 for name in known.stands_without
        )
        text = client.get(f"/person/{place}").text
        assert text.count("<p>") + text.count("<p ") == text.count("</p>")
        for sentence in sentences:
            assert sentence in unescape(text)
            assert sentence in unescape(document.to_html())
            said += 1
    assert said


def test_the_page_shows_her_case(visit: Callable[[Audit], Any], loan: Audit) -> None:
    client = visit(loan)
    place = int(np.flatnonzero(loan.evaluate().has_pattern)[0])
    case = loan.case(int(loan.evaluate().ids[place]))
    text = unescape(client.get(f"/person/{place}").text)
    method, k = loan.plan.settings.primary
    assert case.explain_pattern() in text
    assert case.explain_own_case() in text
    result = case.result(method, k=k)
    assert f"Δp = {signed(result['delta_p'])}" in text
    assert f"[{signed(result['ci_low'])}, {signed(result['ci_high'])}]" in text
    members = case.groups(method, k=k)
    for group in (members.control, members.test):
        assert distance(float(group.distance.max())) in text
    assert text.count('<circle class="dot') == len(members.control) + len(members.test)
    other = client.get(f"/person/{place}?k=10&effect=0.5").text
    there = find_with_part(loan, place, METHODS[method], 10, Fraction(1, 2))
    assert f"Δp = {signed(there.comparison.delta_p[0])}" in other
    assert "with 50.0% of the effect at k = 10" in other


def test_methods_without_a_part_of_the_effect_say_so(
    visit: Callable[[Audit], Any], loan: Audit
) -> None:
    answer = visit(loan).get("/person/0?method=st&effect=0.5")
    assert answer.status_code == 200
    assert "has no tipping point" in answer.text


def test_dots_are_people_nearest_first(loan: Audit) -> None:
    lens = Lens(loan)
    document = Person(lens, lens.base, 0).document()
    group = document.parts[0].control
    assert group is not None
    dots = draw_dots(group, document.words, document.complainant.outcome)
    people = [each for each in group.members if each.role == "person"]
    assert len(dots.dots) == len(people)
    assert sum(dot.refused for dot in dots.dots) == group.refused
    assert dots.farthest == people[-1].distance
    assert [dot.farthest for dot in dots.dots].index(True) == len(people) - 1
    assert len({(dot.x, dot.y) for dot in dots.dots}) == len(people)


@pytest.mark.parametrize("kind", ["html", "json"])
def test_the_case_file_is_that_of_the_audit(
    visit: Callable[[Audit], Any], loan: Audit, kind: str
) -> None:
    client = visit(loan)
    id_ = int(loan.evaluate().ids[4])
    for redact in (False, True):
        document = loan.case_file(id_, redact=redact)
        expected = document.to_html() if kind == "html" else document.to_json()
        query = {"format": kind, **({"redact": "yes"} if redact else {})}
        answer = client.get("/person/4/case-file", params=query)
        assert answer.text == expected
        assert "attachment" in answer.headers["content-disposition"]
        assert str(id_) not in answer.headers["content-disposition"]


def test_her_verdicts_under_other_worldviews_are_listed(
    visit: Callable[[Audit], Any], loan: Audit
) -> None:
    name = "<b>the bank's</b>"
    bank = mm.Worldview({"AnnualSalary": mm.Linear("Gender")})
    compared = loan.with_worldviews({name: bank})
    found = compared.measure_worldviews()
    assert found is not None
    place = int(np.flatnonzero(found.stays_under == 1)[0])
    page = visit(compared).get(f"/person/{place}").text
    assert "<b>" not in page
    assert "Under 2 worldviews:" in page
    text = " ".join(unescape(re.sub("<[^>]*>", " ", page)).split())
    for each, verdict in found.verdicts_of(place).items():
        assert f"{each} {verdict}" in text
    assert "holds under 1 of 2 worldviews" in text
    people = visit(compared).get("/people").text
    assert "sensitive" in people


def test_another_format_is_refused(visit: Callable[[Audit], Any], loan: Audit) -> None:
    answer = visit(loan).get("/person/4/case-file?format=exe")
    assert answer.status_code == 400
    assert "html, json, pdf" in answer.text
