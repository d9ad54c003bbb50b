"""The pages of an audit of an order or a score: every one of them, in the words of the outcome."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.rooms.compliance import write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.auditing.audit import Audit

LEVELS = ["approved", "on conditions", "later", "turned down"]


def audit(outcome: Any, **changes: Any) -> Audit:
    rng = np.random.default_rng(1)
    woman = (np.arange(240) % 3 == 0).astype(int)
    income = rng.integers(0, 8, 240).astype(float)
    worth = 0.3 * income - 0.5 * woman + rng.normal(0, 1, 240)
    answer = np.select([worth > 1.5, worth > 0.7, worth > 0], LEVELS[:3], LEVELS[3])
    options: dict[str, Any] = {
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"income": "continuous"},
        "worldview": mm.Worldview({"income": mm.Linear("woman")}),
        "ks": (12,),
        "uncertainty": mm.Uncertainty(refits=2),
    }
    return mm.audit(
        {"woman": woman, "income": income, "answer": answer, "rate": np.round(6 - worth, 1)},
        outcome=outcome,
        **(options | changes),
    )


@pytest.fixture(scope="module", params=["order", "score"])
def scaled(request: pytest.FixtureRequest) -> Audit:
    if request.param == "order":
        return audit(mm.Ordered("answer", best_to_worst=LEVELS))
    return audit(mm.Score("rate", worse="higher"))


@pytest.mark.few("score")
def test_every_page_speaks_of_the_outcome(visit: Callable[[Audit], Any], scaled: Audit) -> None:
    client, levels = visit(scaled), bool(scaled.plan.outcome.kind.listing)
    pages = ["/", "/?tau=0.1", "/people", "/people?sort=-outcome", "/people?sort=-p_own"]
    pages += ["/person/0", "/person/0?effect=0.5", "/workbench"]
    for address in pages:
        answer = client.get(address)
        assert answer.status_code == 200, address
        # the style of a dot is no word
        text = unescape(answer.text).replace('granted"', "")
        for word in ("granted", "Δp", "nan%"):
            assert word not in text, (address, word)
        if levels:
            assert "mean answer" not in text, address
    people, person = (unescape(client.get(each).text) for each in ("/people", "/person/0"))
    assert ("Worse off in pairs, control" in people) == levels
    assert ("as bad as hers, or worse" in person) == levels
    assert ("Mean rate, control" in people) != levels


def test_people_are_in_the_order_of_their_levels(visit: Callable[[Audit], Any]) -> None:
    found = audit(mm.Ordered("answer", best_to_worst=LEVELS))
    page = unescape(visit(found).get("/people?sort=-outcome&size=250").text)
    places = [page.index(f">{level}<") for level in reversed(LEVELS) if f">{level}<" in page]
    assert len(places) >= 3
    assert places == sorted(places)


def test_dots_are_filled_from_her_own_level_on() -> None:
    from mutandis.report.case_file import case_document
    from mutandis.rooms.explorer.person import draw_dots

    found = audit(mm.Ordered("answer", best_to_worst=LEVELS))
    document = case_document(found, int(found.findings()["id"].iloc[0]))
    own = document.complainant.outcome
    group = document.parts[0].groups[0]
    dots = draw_dots(group, document.words, own).dots
    people = [each for each in group.members if each.role == "person"]
    for dot, each in zip(dots, people, strict=True):
        assert dot.refused == (LEVELS.index(each.outcome) >= LEVELS.index(own))


def test_tables_of_people_can_be_exported(scaled: Audit, tmp_path: Any) -> None:
    pytest.importorskip("openpyxl")
    for name in ("people.csv", "people.xlsx"):
        scaled.export(tmp_path / name)
    header = (tmp_path / "people.csv").read_text(encoding="utf-8").splitlines()[0]
    assert ("worse_control" if scaled.plan.outcome.kind.listing else "mean_control") in header
    for kind in ("prima-facie", "model-card"):
        text = str(write_text(scaled, kind))
        assert "refused" not in text.replace("refused to", "")
