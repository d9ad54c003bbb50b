"""A case in plain words: its assumptions and limits, and what would change the verdict."""

from __future__ import annotations

from functools import partial
from math import floor, log10
from typing import TYPE_CHECKING, Any

from mutandis.auditing.sentences import explain_drawn
from mutandis.data.attribute import AttributeKind
from mutandis.engine.methods import METHODS
from mutandis.report.formatting import (
    MISSING,
    group_by_value,
    listed,
    percent,
    plural,
    value,
)
from mutandis.verdicts.findings import FIRM, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.data.attribute import Attribute
    from mutandis.data.labels import Labels
    from mutandis.report.case_model import (
        CaseDocument,
        Movement,
        Part,
        VerdictRobustness,
    )

__all__ = [
    "assumptions_of",
    "attributes_that_change",
    "doubt_lines",
    "limits_of",
    "movement_cells",
    "movement_lines",
    "movement_paths",
]

_INTERVALS = {
    "miettinen-nurminen": "Miettinen and Nurminen's score method",
    "wald": "Wald's method, which has no width where a group was treated alike",
    "welch": "Welch's method for means, where a group counts as 15 people or more",
    "brunner-munzel": "Brunner and Munzel's method, by permutation where a group counts as fewer "
    "than 15 people",
}
_ADJUSTMENTS = {
    "benjamini-hochberg": "Benjamini and Hochberg's method",
    "benjamini-yekutieli": "Benjamini and Yekutieli's method",
    "holm": "Holm's method",
}


_NO_PROOF = (
    "No verdict proves discrimination. Evidence here is prima facie evidence: a reason for the "
    "decision maker to explain, and the explanation may be a good one."
)
_TWO_ANSWERS = (
    "The pattern is about people like her, and does not say whether she herself was treated "
    "differently. Her own case compares single decisions, to which no test applies."
)
_NO_CLEARANCE = (
    "The absence of evidence is not a finding of equal treatment: groups of this size can miss "
    "even large differences."
)


def assumptions_of(audit: Audit, *, counts: bool = True) -> tuple[str, ...]:
    """Say what the answer takes for granted, with or without numbers of people."""
    plan = audit.plan
    return (
        *_on_counterfactuals(audit),
        _on_likeness(plan),
        *_on_decisions(audit, counts=counts),
        *_on_chance(plan, len(audit.study.people) if counts else None),
    )


def _on_counterfactuals(audit: Audit) -> Iterator[str]:
    plan = audit.plan
    quoted = plan.labels.quoted
    ground = listed([quoted(each.attribute) for each in plan.protections])
    if plan.worldview is None:
        if plan.counterfactuals is None:
            yield (
                "How the complainant's attributes depend on her status was not stated, so she is "
                "compared with people who have the same attributes as they are on record: all "
                "else equal. Attributes that her status has held down already are taken as they "
                "stand."
            )
        else:
            yield (
                "The counterfactuals were supplied as a ready table. This file can show them, but "
                "not how they came about: whoever made them has to explain them."
            )
        return
    yield (
        f"Had {ground} been different, her attributes would have changed in the way that the "
        "worldview says, and in no other: " + "; ".join(_equations(plan)) + ". Whoever disagrees "
        "with the worldview should change it and audit again."
    )
    yield (
        "Whatever moves two of these attributes at the same time is part of the worldview. A "
        "common cause that it leaves out would distort the counterfactual, and the data need not "
        "show it."
    )
    couplings = audit.provenance.computed["couplings"]
    for coupling, names in group_by_value(couplings).items():
        yield (
            f"For {listed(map(quoted, names))} the facts do not determine how chance carries over "
            "to the other world. "
            f"What is assumed about it, {coupling}, no data can test."
        )
    held = {name: None for part in _runs(audit) for name in part.provenance.computed["held"]}
    if held:
        yield (
            f"{listed(map(quoted, held))} {'is' if len(held) == 1 else 'are'} held as on record: "
            "the worldview says that the decision maker may rightly use "
            f"{'it as it stands' if len(held) == 1 else 'them as they stand'} (business necessity)."
        )


def _equations(plan: Plan) -> Iterator[str]:
    if plan.worldview is None:
        return
    hidden = {child: latent.name for latent in plan.worldview.latents for child in latent.equations}
    for child, parents in plan.worldview.graph.parents.items():
        if parents or child in hidden:
            also = [f"the hidden cause {hidden[child]!r}"] if child in hidden else []
            causes = listed([*map(plan.labels.quoted, parents), *also])
            equation = plan.worldview.equations.get(child)
            family = f" ({type(equation).__name__})" if equation is not None else ""
            yield f"{plan.labels.quoted(child)} follows from {causes}{family}"


def _on_likeness(plan: Plan) -> str:
    names = listed([_weighted(each, plan.labels.quoted(each.name)) for each in plan.attributes])
    similarity = plan.settings.similarity
    scale = similarity.description
    ties = (
        "people at the same distance share the last places"
        if plan.settings.similarity.ties == "fair"
        else "all people at the distance of the last place are counted in"
    )
    return (
        f"People are alike if they are near in {names} ({scale}), and nothing else "
        f"matters for the decision. The order of the table has no part in it: {ties}."
    )


def _weighted(attribute: Attribute, quoted: str) -> str:
    kind = "" if attribute.kind is AttributeKind.CONTINUOUS else f", {attribute.kind.value}"
    weight = "" if attribute.weight == 1 else f", weight {attribute.weight:g}"
    aside = (kind + weight).removeprefix(", ")
    return quoted + (f" ({aside})" if aside else "")


def _on_decisions(audit: Audit, *, counts: bool) -> Iterator[str]:
    plan = audit.plan
    if plan.decision is None:
        decided = plan.counterfactuals is not None and plan.counterfactuals.is_negative is not None
        yield "The outcomes compared are those on record. " + (
            "Those of counterfactuals came with the table that was supplied."
            if decided
            else "No decision was made on a counterfactual."
        )
        return
    if audit.disagreement is None:
        return
    how_often = f"differs from the record in {percent(audit.disagreement)} of the rows"
    if audit.with_record is not None and audit.with_record.unexplained is not None:
        how_often = f"leaves {percent(audit.disagreement)} of the variation on record open"
    yield (
        "The outcomes of groups are those on record. The decision on a counterfactual comes from "
        f"a decision maker that {how_often if counts else 'may differ from the record'}."
    )


def _on_chance(plan: Plan, complainants: int | None) -> Iterator[str]:
    settings = plan.settings
    many = "complainants" if complainants is None else plural(complainants, "complainant")
    if not any(method.count_neighbours for method in plan.methods):
        return
    yield (
        f"Intervals are {1 - 2 * settings.alpha:.0%} intervals with {settings.alpha:.0%} on each "
        f"side, by {_INTERVALS[settings.interval]}. They say how far chance in who was decided "
        "upon could explain the difference"
        + (
            ", given the counterfactual; they say nothing about doubt in the counterfactual itself."
            if any(method.needs_counterfactual for method in plan.methods)
            else "."
        )
    )
    if settings.evidence.adjust != "none":
        yield (
            f"All {many} in the table were tested; q-values take that "
            f"into account by {_ADJUSTMENTS[settings.evidence.adjust]}."
        )
    else:
        yield (
            f"All {many} in the table were tested, and p-values are not adjusted for "
            "that: some cases are significant by chance alone."
        )


def limits_of(
    audit: Audit, parts: tuple[Part, ...], verdict: str, *, counts: bool = True
) -> tuple[str, ...]:
    """Say what the answer cannot carry, for this audit and this complainant."""
    return (
        _NO_PROOF,
        _TWO_ANSWERS,
        *((_NO_CLEARANCE,) if verdict in {Verdict.NO_EVIDENCE, Verdict.INSUFFICIENT} else ()),
        *_on_support(parts, audit.plan.labels),
        *(_on_table(audit) if counts else ()),
        *_on_doubt(audit),
    )


def _on_support(parts: tuple[Part, ...], labels: Labels) -> Iterator[str]:
    for part in parts:
        ground = listed(map(labels.quoted, part.ground))
        on = f" on the ground of {ground}" if len(parts) > 1 else ""
        for check in part.support:
            if check.off_support:
                yield (
                    f"Her {check.role} group{on} reaches farther than 99 of 100 groups in the same "
                    "part of the table: its people are not much like her."
                )
            if check.outside:
                yield (
                    f"In {listed(map(labels.quoted, check.outside))} the person compared with the "
                    f"test group{on} stands outside the range of all people there: the comparison "
                    "extrapolates."
                )


def _runs(audit: Audit) -> list[Audit]:
    return list(audit.parts)


def _on_table(audit: Audit) -> Iterator[str]:
    quoted = audit.plan.labels.quoted
    for name, rows in audit.plan.population.dropped.items():
        yield f"{plural(rows, 'row')} without a value in {quoted(name)} took no part."
    for name, rows in audit.plan.compared_missing.items():
        yield (
            f"{plural(rows, 'row')} without a value in {quoted(name)} took part: a missing value "
            "counts as different from every other, and from another missing one."
        )
    for part in _runs(audit):
        for name, number in part.clipped.items():
            if number:
                yield (
                    f"The worldview's bounds cut off {number:,} of the counterfactual values of "
                    f"{quoted(name)} in the table."
                )


def _on_doubt(audit: Audit) -> Iterator[str]:
    doubt = audit.plan.settings.uncertainty
    made = []
    if doubt.draws:
        made.append(f"{plural(doubt.draws, 'draw')} of the noise that the facts leave open")
    if doubt.refits:
        made.append(f"{plural(doubt.refits, 'refit')} of the equations to resampled rows")
    if made:
        yield (
            f"Counterfactuals were doubted by {listed(made)}. The share of them under which a "
            "verdict stays is not a probability of discrimination."
        )
    method, _ = audit.plan.settings.primary
    if METHODS[method].count_centers and not METHODS[method].count_neighbours:
        yield "Counterfactual fairness compares two decisions on one person: no test applies."


def movement_cells(each: Movement, labels: Labels) -> tuple[str, str, str, str]:
    """Write an attribute in both worlds, its change, and through which causes it came."""
    if each.change is None:
        show = partial(labels.level, each.attribute, show=value)
        said = _with_likelihood(show(each.counterfactual), each, show)
        return show(each.factual), said, MISSING, _through(each, labels)
    decimals = _decimals(each)
    said = _with_likelihood(
        _number(each.counterfactual, decimals), each, lambda number: _number(number, decimals)
    )
    change = _amount(each.change, decimals)
    return _number(each.factual, decimals), said, change, _through(each, labels)


def _with_likelihood(shown: str, each: Movement, show: Callable[[Any], str]) -> str:
    said = explain_drawn(each.counterfactual, each.drawn, show)
    return f"{shown} ({said})" if said else shown


_STILL = {
    "given": "as supplied",
    "held": "held as on record (business necessity)",
    "intervened": "set by the intervention",
    "unaffected": "nothing that changed causes it",
}


def _through(each: Movement, labels: Labels) -> str:
    if each.how in _STILL:
        return _STILL[each.how]
    if not each.causes:
        return "no cause of it changed"
    if any(cause.amount is None for cause in each.causes):
        names = listed([" × ".join(map(labels.column, cause.parents)) for cause in each.causes])
        return f"{names}, together" if len(each.causes) > 1 else names
    decimals = _decimals(each)
    parts = [
        f"{' × '.join(map(labels.column, cause.parents))} "
        + (f"× {cause.amount:,.4g}" if each.how == "factor" else _amount(cause.amount, decimals))
        for cause in each.causes
        if cause.amount is not None
    ]
    if each.remainder:
        parts.append(f"rounding and bounds {_amount(each.remainder, decimals)}")
    return "; ".join(parts)


def movement_paths(part: Part, labels: Labels) -> Iterator[str]:
    """Say by which ways the change came."""
    for each in part.movements:
        # one step from what was set is no way worth describing
        if any(len(way) > 2 for way in each.ways):
            ways = (" → ".join(map(labels.column, way)) for way in each.ways)
            yield f"{labels.column(each.attribute)}: {'; '.join(ways)}."


def movement_lines(part: Part, labels: Labels) -> Iterator[str]:
    """Say what is assumed on the ways by which the change came."""
    assumed = {each.attribute: each.coupling for each in part.movements if each.coupling}
    for coupling, names in group_by_value(assumed).items():
        rests = "its counterfactual value rests" if len(names) == 1 else "their values there rest"
        who = listed(map(labels.column, names))
        yield f"{who}: {rests} on an assumption that no data can test, {coupling}."
    drawn = [labels.column(each.attribute) for each in part.movements if each.drawn]
    if drawn:
        yield (
            f"{listed(drawn)}: the facts leave open what would have been. Groups are averaged over "
            "draws of it; the one value in the table is for reading, and decides nothing."
        )


def _decimals(each: Movement) -> int:
    """Give the number of decimals with which the larger of the two values has five digits."""
    largest = max(abs(float(each.factual)), abs(float(each.counterfactual)))
    return max(0, 4 - floor(log10(largest))) if largest > 0 else 0


def _number(number: object, decimals: int) -> str:
    if not isinstance(number, float):
        return value(number)
    shown = f"{number:,.{decimals}f}"
    shown = shown.rstrip("0").rstrip(".") if decimals else shown
    return shown.replace("-", "−")


def _amount(number: float, decimals: int) -> str:
    if number == 0:
        return "0"
    shown = f"{number:+,.{decimals}f}"
    if decimals < 9 and number and not float(shown.replace(",", "")):
        shown = f"{number:+.1g}"  # smaller than it could be shown, but not nothing
    return shown.replace("-", "−")


def doubt_lines(part: Part) -> Iterator[str]:
    """Describe under how many draws and refits the verdict stays."""
    if part.worlds and part.verdict_share is not None:
        fragile = ": it is fragile" if part.verdict_share < FIRM else ""
        yield (
            f"The verdict is the same or stronger under {percent(part.verdict_share)} of "
            f"{part.worlds} draws of what the facts leave open and refits of the equations"
            f"{fragile}."
        )


def worldview_that_changes(document: CaseDocument) -> Iterator[str]:
    """Say how wrong the worldview may be before the headline falls."""
    found = document.robustness
    if found is None:
        return
    yield from _verdicts_by_worldview(found)
    if found.tipping is None:
        if found.appears is not None:
            yield (
                "Worldview: the difference would be significant if the effect of her status were "
                f"{found.appears:.0%} of what the worldview says."
            )
        return
    yield (
        f"Worldview: the verdict is {found.grade}. It {found.sentence}; the rest of the difference "
        "between her and her counterfactual may have other causes."
    )
    if found.hidden_cause:
        yield found.hidden_cause
    yield from attributes_that_change(document)


def attributes_that_change(document: CaseDocument) -> Iterator[str]:
    """Say whether the headline stands with one attribute at a time as on record."""
    known = {} if document.robustness is None else document.robustness.stands_without
    for stands, words in ((False, "falls"), (True, "stands")):
        names = [name for name, each in known.items() if each is stands]
        if names:
            yield (
                f"It {words} with {listed(map(document.labels.quoted, names), last='or')} as on "
                "record, and all else as the worldview says."
            )


def _verdicts_by_worldview(found: VerdictRobustness) -> Iterator[str]:
    """List the worldviews that were compared by the verdict on her."""
    by_verdict: dict[str, list[str]] = {}
    for name, verdict in found.worldviews.items():
        by_verdict.setdefault(verdict, []).append(name)
    if by_verdict:
        said = "; ".join(
            f"{verdict} under {listed(map(repr, names))}" for verdict, names in by_verdict.items()
        )
        yield f"Other worldviews, of {len(found.worldviews)} that were compared: {said}."
