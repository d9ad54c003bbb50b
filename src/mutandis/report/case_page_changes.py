"""What would change the verdict, as a table and in sentences."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from mutandis.report.case_numbers import known
from mutandis.report.formatting import count, listed, percent, plural, signed, value
from mutandis.report.html import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutandis.report.case_document import CaseDocument
    from mutandis.report.case_model import Changes, Part

__all__ = ["changes_table", "thresholds"]


def changes_table(part: Part, prefix: str) -> Table | None:
    """Show how many outcomes would have to differ."""
    if not part.changes.outcomes:
        return None
    rows = [
        Row(
            cells=(
                f"{each.group.capitalize()} group",
                value(each.outcome),
                count(each.of),
                "; ".join(f"from {step.people:,}: {step.verdict}" for step in each.steps)
                or "no number of them",
            )
        )
        for each in part.changes.outcomes
    ]
    return Table(
        name=f"{prefix}-changes",
        caption="How many people's outcomes would have to differ.",
        columns=(
            Column(label="In the", numeric=False),
            Column(label="with outcome instead"),
            Column(label="who could"),
            Column(label="the verdict, from so many people on", numeric=False),
        ),
        rows=tuple(rows),
        note="Each line changes one group and leaves everything else as it is, the results of all "
        "other complainants included. People who hold the largest part of a place change first.",
    )


def thresholds(part: Part, document: CaseDocument) -> tuple[str, ...]:
    """Say which settings would change the verdict."""
    changes = part.changes
    return tuple(
        sentence
        for sentence in (
            _on_withheld(changes),
            _on_single_decisions(part),
            _on_distance(changes),
            *_on_tau(changes, document),
            *_on_alpha(changes, document),
            *_on_k(changes, part.verdict),
            _on_herself(changes, part.verdict),
            _on_draws(changes),
        )
        if sentence
    )


def _on_withheld(changes: Changes) -> str:
    return (
        "How many outcomes, which τ and which α would change the verdict is withheld: it would "
        "tell numbers behind which fewer than five people stand."
        if changes.withheld
        else ""
    )


def _on_single_decisions(part: Part) -> str:
    return (
        ""
        if part.control is not None
        else "The verdict compares two decisions, on her and on her counterfactual: another "
        "decision on either of them would change it, and nothing else."
    )


def _on_distance(changes: Changes) -> str:
    needed = known(changes.sufficient_distance)
    if needed is None:
        return ""
    return (
        f"Distance: within {needed:.4f} there would be enough people in both groups for a verdict."
    )


def _on_tau(changes: Changes, document: CaseDocument) -> Iterator[str]:
    edge, bound = known(changes.tau_evidence), known(changes.tau_significant)
    if edge is None:
        return
    if edge > document.tau:
        yield (
            f"τ: there is evidence for every minimum deviation below {signed(edge)}, and none from "
            f"there on (the audit set τ = {document.tau:g})."
        )
    elif edge > 0:
        yield f"τ: there would be evidence for a minimum deviation below {signed(edge)}."
    else:
        yield "τ: no minimum deviation, not even 0, would make this evidence."
    if bound is not None and bound >= 0 and edge > 0:
        yield f"The test rejects for every τ up to {signed(bound)}, taken by itself."


def _on_alpha(changes: Changes, document: CaseDocument) -> Iterator[str]:
    alone, adjusted = known(changes.alpha_significant), known(changes.alpha_adjusted)
    if alone is None or (known(changes.tau_evidence) or 0.0) <= document.tau:
        return
    if alone >= 0.5:
        yield "α: no level below 50% would make it significant."
        return
    also = (
        f", and with all complainants taken into account at any of {_level(adjusted)} or more"
        if adjusted is not None and adjusted < 0.5
        else ""
    )
    yield (
        f"α: by itself it is significant at any level of {_level(alone)} or more{also} (the audit "
        f"set α = {document.alpha:g})."
    )


def _on_k(changes: Changes, verdict: str) -> Iterator[str]:
    others = {k: each for k, each in changes.by_k.items() if each != verdict}
    if len(changes.by_k) > 1:
        told = listed([f"{each} at k = {k}" for k, each in others.items()])
        yield (
            f"k: of the group sizes that were run, the verdict is another at {len(others)}: {told}."
            if others
            else f"k: the verdict is the same at every group size that was run "
            f"({listed(changes.by_k)})."
        )
    if changes.evidence_ks is not None and changes.significant_ks is not None:
        yield (
            f"Of all k from 1 to {changes.searched_ks}, there is evidence at "
            f"{_ranges(changes.evidence_ks)}; by itself it is significant at "
            f"{_ranges(changes.significant_ks)}."
        )


def _on_herself(changes: Changes, verdict: str) -> str:
    if changes.herself is None:
        return ""
    doing = "left out of" if changes.herself_counted else "counted in"
    what = f"Herself: with her own outcome {doing} the comparison"
    if changes.herself == verdict:
        return f"{what}, the verdict stays."
    return f"{what}, the verdict would be {changes.herself}."


def _on_draws(changes: Changes) -> str:
    if not changes.draws or changes.draw_share is None:
        return ""
    return (
        f"Draws: {percent(changes.draw_share)} of {plural(changes.draws, 'draw')} of her "
        "counterfactual give evidence."
    )


def _ranges(found: Sequence[tuple[int, int]]) -> str:
    texts = [str(low) if low == high else f"{low} to {high}" for low, high in found]
    return f"k = {listed(texts)}" if texts else "none"


def _level(number: float) -> str:
    """Write a level from which on a test rejects: rounded up, since it does not reject below."""
    if number < 0.001:
        return "0.1%"
    return f"{ceil(number * 1000 - 1e-9) / 1000:.1%}"
