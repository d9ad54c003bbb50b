"""Redaction: a case file that can be shown to others than the parties.

The complainant's own data and the verdicts stay. The people she is compared with lose their ids,
their values are coarsened, and what would tell how few of them had an outcome is withheld.

Which numbers are withheld is decided on cells: the people with and without the unfavourable outcome
in each group. A cell with one to four people is too small to be shown; an empty cell has nothing to
hide. As numbers can be computed from other numbers, more is withheld than the small cells:

* the other cell of the same group, since both add up to its size; the share, which is their
  quotient; and everything computed from it (Δp, bounds, p, q, and what would change the verdict);
* groups of other sizes, where the difference between two of them would be a small cell: the group
  of 15 is a part of the group of 30;
* groups whose last places are shared, where the people inside or those who share are a small cell,
  since the share tells them apart;
* the same group under every method, with or without the search centers, whose outcomes are known;
* whatever else would, together with the verdicts, leave one possibility only
  (`redact_cells`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from mutandis.evidence.findings import Verdict
from mutandis.evidence.methods import METHODS
from mutandis.report.case_model import WITHHELD, Changes, Redaction
from mutandis.report.redact_cells import LEAST, is_small, published_groups
from mutandis.report.redact_values import DISTANCES, bands_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mutandis.auditing.case import Case
    from mutandis.evidence.sentences import ExplanationContext
    from mutandis.report.case_model import (
        CaseDocument,
        Figures,
        GroupList,
        Member,
        Number,
        Part,
        Role,
        SupportCheck,
        VerdictText,
    )
    from mutandis.report.redact_cells import Published
    from mutandis.report.redact_values import Bands, Levels

__all__ = ["redact_case"]

_ROLES: tuple[Role, Role] = ("control", "test")

_NAMES = (
    "The people the complainant is compared with appear under numbers that mean nothing "
    "elsewhere; their values and distances are given in bands, and rare values as “other”."
)
_CELLS = (
    f"Numbers behind which fewer than {LEAST} people stand are withheld, and with them every "
    "number from which they could be computed. “Withheld” does not mean that a number is small: "
    "it may be a neighbour of one that is."
)
_KEPT = "The complainant's own data and the verdicts are complete."
_TOLD = (
    "Some groups are so small that the verdicts alone tell what is withheld elsewhere: consider "
    "carefully to whom this file is given."
)


def redact_case(
    document: CaseDocument, terms: ExplanationContext, cases: Sequence[Case]
) -> CaseDocument:
    """Redact a case file, whose parts come from these cases.

    Its sentences already leave out what is too small to be said.
    """
    published = [published_groups(case) for case in cases]
    numbers = count(1)
    parts = [
        _part(part, case, shown, numbers)
        for part, case, shown in zip(document.parts, cases, published, strict=True)
    ]
    figures = tuple(_figures(row, published) for row in document.figures)
    told = (_TOLD,) if any(each.told for each in published) else ()
    return replace(
        document,
        verdict=_verdict(document, terms, figures),
        figures=figures,
        parts=tuple(parts),
        redaction=Redaction(redacted=True, least=LEAST, sentences=(_NAMES, _CELLS, _KEPT, *told)),
        provenance={**_provenance(document.provenance), "redacted": True},
    )


def _verdict(
    document: CaseDocument, terms: ExplanationContext, figures: tuple[Figures, ...]
) -> VerdictText:
    """Say the verdict, without the numbers if they are withheld."""
    verdict = document.verdict
    row = next(each for each in figures if each.primary)
    hidden = (row.p_control, row.p_test, row.n_control, row.n_test, row.delta_p, row.p_value)
    if WITHHELD not in hidden:
        return verdict
    method = METHODS[verdict.method]
    who = f"complainant {document.complainant.id}"
    subject = f"{method.title} with k = {verdict.k}"
    if verdict.verdict == Verdict.INSUFFICIENT:
        sentence = (
            f"{subject} gives no answer about {who}: there are too few people to compare with."
        )
        return replace(verdict, sentence=sentence)
    given = f", given {terms.given}," if method.needs_counterfactual else ""
    found = "no evidence" if verdict.verdict == Verdict.NO_EVIDENCE else "prima facie evidence"
    claim = (
        "discrimination against" if document.direction == "negative" else "favourable treatment of"
    )
    sentence = (
        f"{subject}{given} provides {found} for {claim} {who} on {terms.ground}"
        f"{_CHANCE.get(verdict.verdict, '')}. The shares behind this are withheld."
    )
    return replace(verdict, sentence=sentence)


_CHANCE = {
    Verdict.NO_EVIDENCE.value: ", which does not rule it out",
    Verdict.EVIDENCE.value: ", a difference that chance may explain",
    Verdict.SIGNIFICANT.value: ", a difference that chance alone hardly explains when the case is "
    "taken by itself",
    Verdict.SIGNIFICANT_ADJUSTED.value: ", a difference that chance alone hardly explains, all "
    "complainants tested taken into account",
}


def _figures(row: Figures, published: Sequence[Published]) -> Figures:
    """Withhold what a row of the findings would tell about too few people."""
    if not METHODS[row.method].count_neighbours:
        return row  # nothing in it but her own outcome and her counterfactual's
    control = all(each.shows(row.method, row.k, "control") for each in published)
    test = all(each.shows(row.method, row.k, "test") for each in published)
    if len(published) > 1:
        # the figures are those of one ground; which one it is would be a hint
        control = test = control and test
    both = control and test
    hidden: dict[str, Any] = {
        name: _if(both, getattr(row, name))
        for name in ("delta_p", "ci_low", "ci_high", "p_value", "q_value")
    }
    people: dict[str, Any] = {
        name: _people(getattr(row, name))
        for name in ("n_control", "n_test", "rows_control", "rows_test")
    }
    return replace(
        row,
        p_control=_if(control, row.p_control),
        p_test=_if(test, row.p_test),
        **hidden,
        **people,
        radius_control=_band(row.radius_control),
        radius_test=_band(row.radius_test),
    )


def _part(part: Part, case: Case, published: Published, numbers: Iterator[int]) -> Part:
    plan = case.audit.plan
    method, k = plan.settings.primary
    bands = bands_of(plan.population, plan.attributes)
    shown = {role: published.shows(method, k, role) for role in _ROLES}
    groups = {
        group.role: _group(group, bands, shown=shown[group.role], numbers=numbers)
        for group in part.groups
    }
    return replace(
        part,
        control=groups.get("control"),
        test=groups.get("test"),
        support=tuple(_support(check, groups.get(check.role)) for check in part.support),
        changes=_changes(part.changes, both=all(shown.values())),
    )


def _group(
    group: GroupList,
    bands: Mapping[str, Bands | Levels],
    *,
    shown: bool,
    numbers: Iterator[int],
) -> GroupList:
    centers = [member for member in group.members if member.role != "person"]
    # a list can be counted
    listed = [] if _is_few(group.people) else group.members
    people = [
        _member(member, bands, shown=shown, place=not _is_few(group.shared))
        for member in listed
        if member.role == "person"
    ]
    # in an order that their bands give, so that it tells nothing more than they do
    people.sort(key=_order)
    return replace(
        group,
        places=_people(group.places),
        people=_people(group.people),
        shared=_people(group.shared),
        refused=_if(shown, group.refused),
        granted=_if(shown, group.granted),
        share=_if(shown, group.share),
        radius=_band(group.radius),
        members=(
            *centers,
            *(replace(member, person=f"person {next(numbers)}") for member in people),
        ),
    )


def _member(
    member: Member, bands: Mapping[str, Bands | Levels], *, shown: bool, place: bool
) -> Member:
    return replace(
        member,
        person="",
        distance=_band(member.distance) or "",
        parts=None,
        values={name: bands[name].band(value) for name, value in member.values.items()},
        place=_if(place, member.place),
        place_text=_if(place, member.place_text),
        outcome=_if(shown, member.outcome),
    )


def _order(member: Member) -> tuple[Any, ...]:
    return (
        0.0 if isinstance(member.place, str) or member.place is None else -member.place,
        DISTANCES.place_of(str(member.distance)),
        *(str(value) for value in member.values.values()),
        str(member.outcome),
    )


def _support(check: SupportCheck, group: GroupList | None) -> SupportCheck:
    few = group is None or group.people == WITHHELD
    return replace(
        check,
        radius=_band(check.radius),
        balance=dict.fromkeys(check.balance, WITHHELD) if few else check.balance,
    )


def _changes(changes: Changes, *, both: bool) -> Changes:
    """Keep what follows from the verdicts alone."""
    kept = replace(changes, evidence_ks=None, significant_ks=None, searched_ks=None)
    if not changes.outcomes:
        needed: Number = None if kept.sufficient_distance is None else WITHHELD
        return replace(kept, sufficient_distance=needed)
    if both:
        return kept
    return Changes(
        withheld=True,
        by_k=kept.by_k,
        herself=kept.herself,
        herself_counted=kept.herself_counted,
        draws=kept.draws,
        draw_share=kept.draw_share,
    )


def _provenance(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Withhold counts of fewer than five, and all counts that stand beside one."""
    data = dict(provenance["data"])
    data["complainants"] = _people(data["complainants"])
    data["dropped"] = _all_or_none(data["dropped"])
    computed = _computed(provenance["computed"], rows=data["rows"])
    return {**provenance, "data": data, "computed": computed}


def _computed(computed: Mapping[str, Any], *, rows: int) -> dict[str, Any]:
    kept = dict(computed)
    kept["clipped"] = _all_or_none(kept.get("clipped", {}))
    kept["distance_rules"] = {
        # "lattice of 9 steps, 3 values off it …" counts people
        name: re.sub(r",.*", "", rule)
        for name, rule in kept.get("distance_rules", {}).items()
    }
    differing = kept.get("disagreement")
    cells = [] if differing is None else [round(differing * rows), rows - round(differing * rows)]
    record = _counts_in(kept.get("with_record"))
    if any(is_small(cell) for cell in [*cells, *record]):
        kept["disagreement"] = WITHHELD
        if "with_record" in kept:
            kept["with_record"] = WITHHELD
    if "parts" in kept:
        kept["parts"] = {name: _computed(part, rows=rows) for name, part in kept["parts"].items()}
    return kept


def _counts_in(record: Any) -> list[int]:
    """Find the counts in a record, however it is built."""
    if isinstance(record, dict):
        return [number for part in record.values() for number in _counts_in(part)]
    if isinstance(record, list | tuple):
        return [number for part in record for number in _counts_in(part)]
    return [record] if isinstance(record, int) and not isinstance(record, bool) else []


def _all_or_none(counts: Mapping[str, int]) -> dict[str, Any]:
    few = any(is_small(number) for number in counts.values())
    return dict.fromkeys(counts, WITHHELD) if few else dict(counts)


def _if(shown: bool, number: Any) -> Any:  # noqa: FBT001
    return number if shown or number is None else WITHHELD


def _is_few(number: Number) -> bool:
    return isinstance(number, int | float) and is_small(int(number))


def _people(number: Number) -> Number:
    return WITHHELD if _is_few(number) else number


def _band(distance: float | str | None) -> str | None:
    if distance is None or isinstance(distance, str):
        return distance
    return DISTANCES.band(distance)
