"""What holds for every kind of outcome: refusals, scores and ordered levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from tests.tables import LEVELS, WOMEN, audit_people, people_with_answers, people_with_rates

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _answer(frame: Any) -> list[str]:
    worth = 0.3 * np.asarray(frame["income"]) - 0.3 * np.asarray(frame["debt"])
    return list(np.select([worth > 0.8, worth > 0, worth > -0.8], LEVELS[:3], LEVELS[3]))


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of outcome: a table, how it is audited, and words that pages use and do not use."""

    table: Callable[..., dict[str, Any]]
    about: dict[str, Any]
    decision: Any
    difference: str = "delta"
    figures: set[str]
    labels: mm.Labels = mm.Labels()  # noqa: RUF009 - frozen
    redacted: str = "withheld"
    words: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


KINDS = {
    "refusals": Kind(
        table=people_with_answers,
        about={"outcome": "answer", "negative": LEVELS[2:]},
        decision="income - debt > 0",
        difference="delta_p",
        figures={"p_control", "p_test", "delta_p"},
        redacted="50%",
        words=("Δp",),
    ),
    "score": Kind(
        table=people_with_rates,
        about={
            "outcome": mm.Score("rate", worse="higher"),
        },
        labels=mm.Labels(columns={"rate": "interest rate"}),
        decision="5 - 0.1 * income + 0.2 * debt",
        figures={"mean_control", "mean_test", "delta"},
        words=("mean interest rate", "higher is worse"),
        absent=("granted", "Δp"),
    ),
    "order": Kind(
        table=people_with_answers,
        about={
            "outcome": mm.Ordered("answer", best_to_worst=LEVELS),
        },
        labels=mm.Labels(columns={"answer": "reply"}, levels={"answer": {"later": "postponed"}}),
        decision=_answer,
        figures={"worse_control", "worse_test", "delta"},
        words=("the best to the worst: approved, on conditions, postponed, refused",),
        absent=("granted", "Δp", "mean reply"),
    ),
}


@cache
def saved_kind(name: str) -> mm.Audit:
    """Audit a table of a kind, with refits and decisions on counterfactuals."""
    kind = KINDS[name]
    return audit_people(
        kind.table(12),
        decision=kind.decision,
        tau=0.05,
        uncertainty=mm.Uncertainty(refits=2),
        **kind.about,
    ).with_labels(kind.labels)


@pytest.mark.parametrize("name", KINDS)
def test_results_open_again_and_pages_use_words_of_the_kind(name: str, tmp_path: Path) -> None:
    kind, found = KINDS[name], saved_kind(name)
    found.save(tmp_path / "results")
    opened = mm.open_results(tmp_path / "results")
    for method in found.methods:
        for k in found.ks:
            assert opened.findings(method, k=k).equals(found.findings(method, k=k))
    assert opened.counts().equals(found.counts())
    assert opened.with_record == found.with_record
    page = (tmp_path / "results" / "report.html").read_text(encoding="utf-8")
    assert [word for word in kind.words if word not in page] == []
    person = int(found.findings()["id"].iloc[0])
    document, case = opened.case_file(person), opened.case(person)
    assert kind.figures <= set(document.as_dict()["figures"][0])
    for text in (page, document.to_html(), str(case), case.explain()):
        assert [word for word in kind.absent if word in text] == []
    redacted = opened.case_file(person, redact=True).primary.p_control
    assert kind.redacted in str(redacted)
    assert mm.verify_results(tmp_path / "results").differences == ()


@pytest.mark.parametrize("name", KINDS)
def test_every_case_has_a_tipping_point(name: str) -> None:
    found = saved_kind(name)
    cases = found.findings()["verdict"].isin(["evidence", "significant", "significant-adjusted"])
    assert cases.any()
    assert (found.tipping()["tipping"].notna() == cases).all()


@pytest.mark.parametrize("name", KINDS)
def test_several_grounds_have_the_difference_of_the_weakest(name: str) -> None:
    kind = KINDS[name]
    table = kind.table(14, rows=400)
    table["old"] = [i % 2 for i in range(400)]
    worldview = mm.Worldview({"income": mm.Linear("woman", "old"), "debt": mm.Linear("woman")})
    grounds = [WOMEN, mm.Protection("old", value=1, reference=0)]
    found = audit_people(
        table, protected=grounds, combine="multiple", worldview=worldview, **kind.about
    )
    for method in ("cst_without", "cst_matched"):
        rows = found.findings(method, k=20)
        rows = rows[rows["verdict"] != "insufficient"]
        parts = rows[[f"{kind.difference}_woman", f"{kind.difference}_old"]]
        assert rows[kind.difference].tolist() == parts.min(axis=1).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_shuffling_the_rows_changes_no_number(name: str) -> None:
    kind = KINDS[name]
    table = kind.table(8)
    order = np.random.default_rng(0).permutation(len(table["woman"]))
    named = table | {"who": list(range(len(order)))}
    shuffled = {column: [cells[i] for i in order] for column, cells in named.items()}
    doubt = mm.Uncertainty(refits=2)
    one, two = (
        audit_people(each, id="who", uncertainty=doubt, **kind.about) for each in (named, shuffled)
    )
    for method in one.methods:
        for k in one.ks:
            first, second = (
                each.findings(method, k=k).set_index("id").sort_index() for each in (one, two)
            )
            assert first.equals(second)
