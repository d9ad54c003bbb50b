"""The page on who is affected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.auditing.affected import find_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.auditing.audit import Audit


def test_the_page_says_how_to_read_a_rule(visit: Callable[[Audit], Any], loan: Audit) -> None:
    client = visit(loan)
    text = client.get("/affected").text
    found = loan.evaluate()
    assert f"{int(found.has_pattern.sum())} of 200 complainants" in text
    rule = find_rules(loan, found.has_pattern)[0]
    assert f"{rule.lift:.2f}" in text
    assert client.get("/affected?about=own").status_code == 200
    assert client.get("/affected?about=nothing").status_code == 400
