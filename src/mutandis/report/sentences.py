"""Documents in plain words: what was found, what it rests on, and what limits it.

Each fact has one sentence here, for reports and case files alike. How a case is worded is in
`mutandis.auditing.sentences`, how outcomes are worded in `mutandis.outcomes`.
"""

from __future__ import annotations

from functools import partial
from math import floor, log10
from typing import TYPE_CHECKING, Any

from mutandis.auditing.robustness import summarise_grades
from mutandis.auditing.sentences import explain_drawn, list_reasons
from mutandis.auditing.sham import counted_by
from mutandis.data.attribute import AttributeKind
from mutandis.engine.tally import METHODS
from mutandis.report.formatting import (
    MISSING,
    count,
    group_by_value,
    listed,
    percent,
    plural,
    value,
)
from mutandis.verdicts.findings import FIRM, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mutandis.auditing.answer import Answer
    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.auditing.sham import ShamAudits
    from mutandis.data.attribute import Attribute
    from mutandis.data.labels import Labels
    from mutandis.decision.maker import RecordAgreement
    from mutandis.report.case_model import CaseDocument, Movement, Part
    from mutandis.report.context import ReportContext
    from mutandis.scm import Diagnosis

__all__ = [
    "assumptions_of",
    "attributes_that_change",
    "cautions_of",
    "describe_answer",
    "describe_flips",
    "describe_headline",
    "describe_patterns",
    "describe_sham",
    "doubt_lines",
    "limits_of",
    "limits_of_table",
    "movement_cells",
    "movement_lines",
    "summarise",
    "worldview_that_changes",
]

_MOST_DISAGREEMENT = 0.05  # between b() and the record
_COUNTED = {
    "cases": "Evidence for",
    "significant": "Significant for",
    "significant_adjusted": "Significant after adjustment for",
}
_COMBINED = {
    None: "",
    "multiple": " Multiple discrimination was looked for: each ground was examined by itself, and "
    "a complainant counts only if evidence is found on every one.",
    "intersectional": " Intersectional discrimination was looked for: the grounds were examined "
    "together, as one status.",
}


# --- the summary of a report ----------------------------------------------------------------------


def summarise(context: ReportContext) -> list[str]:
    """Summarise in a few paragraphs what was asked and what was found."""
    return [*map(describe_answer, context.audit.answers), *describe_patterns(context)]


def describe_answer(answer: Answer) -> str:
    """Write outcomes on record and the differences of an answer."""
    words, (mine, theirs) = answer.words, answer.rates
    rows = [f"{title} {shown} ({judged})" for title, shown, judged in answer.rows()]
    return (
        f"On record, {mine} of {count(answer.protected)} ({words.people}) against {theirs} of "
        f"{count(answer.reference)} ({words.reference}): {words.refused}. Differences"
        f"{' in points of 100' if words.binary else ''}: {'; '.join(rows)}."
    )


def describe_patterns(context: ReportContext) -> list[str]:
    """Describe the patterns among people like the complainants, in a few paragraphs."""
    sham = context.audit.results.sham
    paragraphs = (
        _asked(context),
        _pattern(context),
        "" if sham is None else describe_sham(sham),
        summarise_grades(context.audit),
    )
    return [each for each in paragraphs if each]


def _asked(context: ReportContext) -> str:
    plan, number = context.plan, len(context.headline)
    better = "" if context.worse else " Better treatment was looked for, not worse."
    return (
        f"{plural(len(plan.population), 'decision')} "
        f"(“{context.labels.column(plan.outcome.column)}”) were examined. "
        f"{context.count_people(number)} (the complainants) "
        f"{'was' if number == 1 else 'were each'} compared with "
        f"{context.others}. {context.words.counts}{_COMBINED[plan.combine]}{better}"
    )


def _pattern(context: ReportContext) -> str:
    """Count the complainants with a pattern in the headline, after adjustment if that was made."""
    method, _ = context.primary
    row, settings = context.headline.counts(), context.plan.settings
    people = plural(row["complainants"], "complainant")
    beyond = settings.measure.condition(settings.tau, worse=context.worse)
    if not method.count_neighbours:
        return (
            f"{context.where}, to which no test applies, finds evidence ({beyond}) for "
            f"{count(row['cases'])} of {people} ({percent(row['share'])})."
        )
    given = context.source_of_counterfactuals
    given = f", given {given}," if method.needs_counterfactual else ""
    number, counted = row["significant"], "not adjusted for the number of complainants tested"
    if settings.evidence.adjust != "none":
        number = row["significant_adjusted"]
        named = _title(settings.evidence.adjust)
        counted = f"after adjustment for the number of complainants tested ({named})"
    claim = "discrimination" if context.worse else "favourable treatment"
    found = f"a statistically significant pattern of {claim} ({beyond})"
    who, end = f"none of the {people}", "This does not rule it out."
    if number:
        who = f"{count(number)} of {people} ({percent(number / row['complainants'])})"
        end = "This is prima facie evidence."
    return (
        f"{context.where}{given} finds {found} among people like the complainant for {who}, "
        f"{counted}. {end}{_left_out(context)}"
    )


def _title(name: str) -> str:
    """Write the name of a method as people write it: "Benjamini–Hochberg"."""
    return "–".join(part.capitalize() for part in name.split("-"))


def _left_out(context: ReportContext) -> str:
    """Count those about whom no conclusion is possible, by reason."""
    found = context.headline
    left_out = found.comparison.insufficient
    if not left_out.any():
        return ""
    similarity = context.plan.settings.similarity
    far = "" if similarity.max_distance is None else f" within distance {similarity.max_distance:g}"
    why = list_reasons(
        found.test.unfit()[left_out].tolist(),
        small=f"a group holds fewer than {similarity.min_group} people{far}",
        labels=context.labels,
    )
    return (
        f" No conclusion is possible for {plural(int(left_out.sum()), 'complainant')} ({why}). "
        "They are counted among the complainants and have no verdict."
    )


def describe_headline(audit: Audit) -> str:
    """Write the headline count, with those of sham audits if these were run."""
    method, k = audit.plan.choose(None, None)
    row, counted = audit.results.summaries[method.name, k].counts, counted_by(audit.plan, method)
    people = plural(row["complainants"], "complainant")
    said = f"{_COUNTED[counted]} {count(row[counted])} of {people}."
    return said if audit.results.sham is None else f"{said} {describe_sham(audit.results.sham)}"


def describe_sham(sham: ShamAudits) -> str:
    """Write what sham audits found, and what that means for the table as a whole."""
    number = len(sham.found)
    most = (
        f"found at most {count(sham.largest)} (scaled from {count(sham.people)} people each)"
        if max(sham.found)
        else "found none"
    )
    said = (
        f"{plural(number, 'sham audit')}, with the status assigned at random to reference people, "
        f"{most}."
    )
    if not sham.exceeds_all:
        return (
            f"{said} The share in this audit is not larger than in all of them. This does not rule "
            "out discrimination."
        )
    return (
        f"{said} If the status made no difference to any decision, the share would be larger than "
        f"in all of them in about 1 of {number + 1} tables. This tests neither the worldview nor "
        "any single case."
    )


def describe_flips(context: ReportContext) -> Iterator[str]:
    """Count the complainants whose outcomes change with their status."""
    for part, audit in context.parts.items():
        rows, would_be = audit.study.people, audit.ground.expected()
        if would_be is not None:
            drawn = audit.ground.world.decided_parts is not None
            changed = context.words.changed(audit.study.outcomes[rows], would_be[rows], drawn=drawn)
            yield f"In the counterfactual world{context.by_part(part)}{changed}"


# --- cautions about a table -----------------------------------------------------------------------


def cautions_of(context: ReportContext, diagnosis: Diagnosis | None) -> list[str]:
    """List what speaks against relying on the numbers of an audit."""
    agreement, said = context.audit.with_record, list(_on_problems(diagnosis))
    if agreement is not None and agreement.disagreement > _MOST_DISAGREEMENT:
        said.append(describe_agreement(agreement))
    return [*said, *_on_tests(context), *context.audit.cautions()]


def _on_problems(diagnosis: Diagnosis | None) -> Iterator[str]:
    """Count the problems of a worldview that move counterfactuals, or may."""
    if diagnosis is None:
        return
    large, unknown = (len(diagnosis.by_severity(each)) for each in ("large", "unknown"))
    far = [f"noticeably for {count(large)} of them"] if large else []
    far += [f"by an unknown amount for {count(unknown)}"] if unknown else []
    if far:
        yield (
            f"The table contradicts the worldview: {plural(len(diagnosis.problems), 'problem')} in "
            f"{plural(diagnosis.tests, 'test')}. Mending them moves counterfactuals {listed(far)}; "
            "see the section on the worldview."
        )


def _on_tests(context: ReportContext) -> Iterator[str]:
    settings, found = context.plan.settings, context.headline
    if not context.primary[0].count_neighbours:
        return
    degenerate = int((found.comparison.interval.degenerate & found.comparison.significant).sum())
    if degenerate:
        yield (
            f"{plural(degenerate, 'significant case')} of {context.where} rest on an interval "
            f"without width ({settings.interval}: all were {context.labels.negative} in one group "
            "and none in the other). Their significance cannot be relied on."
        )
    if settings.evidence.adjust == "none":
        yield (
            f"p-values were not adjusted for {plural(len(found), 'complainant')}: with nothing to "
            f"find, about {percent(settings.alpha)} of them would be significant."
        )


# --- what every document rests on -----------------------------------------------------------------


def assumptions_of(audit: Audit, *, counts: bool = True) -> tuple[str, ...]:
    """List what the answer takes for granted, with or without numbers of people."""
    plan = audit.plan
    return (
        *_on_counterfactuals(audit),
        _on_likeness(plan),
        *_on_decisions(audit, counts=counts),
        *_on_chance(plan, plural(len(audit.study.people), "complainant") if counts else ""),
    )


def _on_counterfactuals(audit: Audit) -> Iterator[str]:
    plan, quoted = audit.plan, audit.plan.labels.quoted
    ground = listed([quoted(each.attribute) for each in plan.protections])
    if plan.worldview is None:
        if plan.counterfactuals is None:
            yield (
                f"How attributes depend on {ground} was not stated: people are compared with "
                "others who have the same attributes on record, all else equal. Attributes that "
                "the status has lowered already are not corrected."
            )
        else:
            yield (
                "The counterfactuals were supplied as a table. How they were made is not known "
                "here and was not checked: those who made them have to explain them."
            )
        return
    yield (
        f"Had {ground} been different, attributes would have changed as the worldview says, and in "
        f"no other way: {'; '.join(_equations(plan))}. A reader who disagrees with the worldview "
        "should change it and audit again."
    )
    yield (
        "The worldview names everything that moves two of these attributes at the same time. A "
        "common cause that it leaves out would distort counterfactuals, and the data need not "
        "show it."
    )
    for coupling, names in group_by_value(audit.provenance.computed["couplings"]).items():
        yield _assumed(list(map(quoted, names)), coupling)
    held = {
        name: None for part in audit.parts.values() for name in part.provenance.computed["held"]
    }
    if held:
        yield (
            f"{listed(map(quoted, held))} {'is' if len(held) == 1 else 'are'} kept as on record: "
            "by the worldview, the decision maker may rightly use what is there (business "
            "necessity)."
        )


def _assumed(names: list[str], coupling: str) -> str:
    whose = "its counterfactual value rests" if len(names) == 1 else "counterfactual values rest"
    return (
        f"{listed(names)}: the facts leave open how chance carries over to the other world, so "
        f"{whose} on an assumption that no data can test, {coupling}."
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
    similarity = plan.settings.similarity
    names = listed([_weighted(each, plan.labels.quoted(each.name)) for each in plan.attributes])
    ties = (
        "people at the same distance share the last places"
        if similarity.ties == "fair"
        else "all people at the distance of the last place are counted in"
    )
    return (
        f"People are alike if they are near in {names} ({similarity.description}), and nothing "
        f"else matters for the decision. The order of the table does not matter: {ties}."
    )


def _weighted(attribute: Attribute, quoted: str) -> str:
    notes = [] if attribute.kind is AttributeKind.CONTINUOUS else [attribute.kind.value]
    notes += [] if attribute.weight == 1 else [f"weight {attribute.weight:g}"]
    return f"{quoted} ({', '.join(notes)})" if notes else quoted


def _on_decisions(audit: Audit, *, counts: bool) -> Iterator[str]:
    plan, agreement = audit.plan, audit.with_record
    if plan.decision is None:
        decided = plan.counterfactuals is not None and plan.counterfactuals.is_negative is not None
        yield "The outcomes compared are those on record. " + (
            "Those of counterfactuals came with the table of counterfactuals."
            if decided
            else "No decision was made on a counterfactual."
        )
    elif agreement is not None:
        yield "The outcomes of groups are those on record. " + (
            describe_agreement(agreement)
            if counts
            else "The decision on a counterfactual comes from a decision maker that may differ "
            "from the record."
        )


def describe_agreement(agreement: RecordAgreement) -> str:
    """Count the rows in which b() gives the outcome on record."""
    rows, differing = agreement.rows, agreement.differing
    said = (
        "Decisions on counterfactuals come from b(), which gives the outcome on record in "
        f"{count(rows - differing)} of {plural(rows, 'row')} ({percent(1 - differing / rows)})"
    )
    if not differing:
        return f"{said}."
    if agreement.refused is None:  # scores or levels
        said += f", a better one in {count(agreement.better)}, and a worse one in "
        said += count(agreement.worse)
    if agreement.unexplained is not None:
        said += f"; it leaves {percent(agreement.unexplained)} of the variation on record open"
    return (
        f"{said}. Where it does not, counterfactual outcomes answer for another decision maker "
        "than the one who decided."
    )


def _on_chance(plan: Plan, people: str) -> Iterator[str]:
    settings = plan.settings
    if not any(method.count_neighbours for method in plan.methods):
        return
    given = any(method.needs_counterfactual for method in plan.methods)
    beyond = ", given the counterfactual; they do not measure doubt about the counterfactual"
    yield (
        f"Intervals are {1 - 2 * settings.alpha:.0%} intervals with {settings.alpha:.0%} on each "
        f"side ({_title(settings.interval)}). They measure how far chance in who was decided upon "
        f"could explain the difference{beyond if given else ''}."
    )
    tested = f"All {people or 'complainants'} in the table were tested"
    if settings.evidence.adjust != "none":
        named = _title(settings.evidence.adjust)
        yield f"{tested}; q-values take that into account ({named})."
    else:
        yield (
            f"{tested}, and p-values are not adjusted for that: some cases are significant by "
            "chance alone."
        )


def limits_of_table(audit: Audit) -> Iterator[str]:
    """List what is missing from the table, or beyond its bounds."""
    quoted, rows = audit.plan.labels.quoted, len(audit.plan.population)
    for name, number in audit.plan.population.dropped.items():
        yield f"{plural(number, 'row')} without a value in {quoted(name)} took no part."
    for name, number in audit.plan.compared_missing.items():
        yield (
            f"{plural(number, 'row')} without a value in {quoted(name)} took part: a missing value "
            "counts as different from every other, and from another missing one."
        )
    for ground in audit.grounds:
        for name, number in ground.computed["clipped"].items():
            if number:
                yield (
                    f"The worldview's bounds cut off {number:,} of the counterfactual values of "
                    f"{quoted(name)} in the table ({percent(number / rows)} of all rows)."
                )


_NO_PROOF = (
    "No verdict proves discrimination. Evidence here is prima facie evidence: a reason for the "
    "decision maker to explain, and the explanation may be a good one."
)
_TWO_ANSWERS = (
    "The pattern is about people like the complainant, and does not show whether the complainant "
    "was treated differently. The own case compares single decisions, to which no test applies."
)
_NO_CLEARANCE = (
    "The absence of evidence is not a finding of equal treatment: groups of this size can miss "
    "even large differences."
)


def limits_of(
    audit: Audit, parts: tuple[Part, ...], verdict: str, *, counts: bool = True
) -> tuple[str, ...]:
    """List what the answer about one complainant cannot show."""
    limits = [_NO_PROOF, _TWO_ANSWERS]
    if verdict in {Verdict.NO_EVIDENCE, Verdict.INSUFFICIENT}:
        limits.append(_NO_CLEARANCE)
    limits += _on_support(parts, audit.plan.labels)
    limits += limits_of_table(audit) if counts else ()
    doubt, (method, _) = audit.plan.settings.uncertainty, audit.plan.settings.primary
    made = []
    if doubt.draws:
        made.append(f"by {plural(doubt.draws, 'draw')} of the noise that the facts leave open")
    if doubt.refits:
        made.append(f"by {plural(doubt.refits, 'refit')} of the equations to resampled rows")
    if made:
        limits.append(
            f"The uncertainty of counterfactuals was measured {listed(made)}. The share of them "
            "under which a verdict stays is not a probability of discrimination."
        )
    if METHODS[method].count_centers and not METHODS[method].count_neighbours:
        limits.append(
            "Counterfactual fairness compares two decisions on one person: no test applies."
        )
    return tuple(limits)


def _on_support(parts: tuple[Part, ...], labels: Labels) -> Iterator[str]:
    for part in parts:
        ground = listed(map(labels.quoted, part.ground))
        on = f" on the ground of {ground}" if len(parts) > 1 else ""
        for check in part.support:
            if check.off_support:
                yield (
                    f"The {check.role} group{on} reaches farther than 99 of 100 groups in the same "
                    "part of the table: its people are not much like the complainant."
                )
            if check.outside:
                yield (
                    f"In {listed(map(labels.quoted, check.outside))} the person compared with the "
                    f"test group{on} is outside the range of all people there: the comparison "
                    "extrapolates."
                )


# --- how the attributes of one complainant moved --------------------------------------------------

_STILL = {
    "given": "as supplied",
    "held": "held as on record (business necessity)",
    "intervened": "set by the intervention",
    "unaffected": "nothing that changed causes it",
}


def movement_cells(each: Movement, labels: Labels) -> tuple[str, str, str, str]:
    """Write an attribute in both worlds, its change, and through which causes it came."""
    decimals, change = _decimals(each), MISSING
    show: Callable[[Any], str] = partial(labels.level, each.attribute, show=value)
    if each.change is not None:
        show, change = partial(_number, decimals=decimals), _amount(each.change, decimals)
    likely = explain_drawn(each.counterfactual, each.drawn, show)
    would_be = f"{show(each.counterfactual)} ({likely})" if likely else show(each.counterfactual)
    return show(each.factual), would_be, change, _through(each, labels, decimals)


def _through(each: Movement, labels: Labels, decimals: int) -> str:
    if each.how in _STILL:
        return _STILL[each.how]
    if not each.causes:
        return "no cause of it changed"
    names = [" × ".join(map(labels.column, cause.parents)) for cause in each.causes]
    if any(cause.amount is None for cause in each.causes):
        return f"{listed(names)}, together" if len(names) > 1 else names[0]
    amounts = [
        f"× {cause.amount:,.4g}" if each.how == "factor" else _amount(cause.amount or 0.0, decimals)
        for cause in each.causes
    ]
    parts = [f"{name} {amount}" for name, amount in zip(names, amounts, strict=True)]
    if each.remainder:
        parts.append(f"rounding and bounds {_amount(each.remainder, decimals)}")
    return "; ".join(parts)


def _decimals(each: Movement) -> int:
    """Return the number of decimals with which the larger of the two values has five digits."""
    if each.change is None:
        return 0
    largest = max(abs(float(each.factual)), abs(float(each.counterfactual)))
    return max(0, 4 - floor(log10(largest))) if largest > 0 else 0


def _number(number: float, *, decimals: int) -> str:
    shown = f"{number:,.{decimals}f}"
    shown = shown.rstrip("0").rstrip(".") if decimals else shown
    return shown.replace("-", "−")


def _amount(number: float, decimals: int) -> str:
    if number == 0:
        return "0"
    shown = f"{number:+,.{decimals}f}"
    if decimals < 9 and not float(shown.replace(",", "")):
        shown = f"{number:+.1g}"  # smaller than it could be shown, but not nothing
    return shown.replace("-", "−")


def movement_lines(part: Part, labels: Labels) -> Iterator[str]:
    """List what is assumed on the ways by which the change came."""
    assumed = {each.attribute: each.coupling for each in part.movements if each.coupling}
    for coupling, names in group_by_value(assumed).items():
        yield _assumed(list(map(labels.column, names)), coupling)
    drawn = [labels.column(each.attribute) for each in part.movements if each.drawn]
    if drawn:
        yield (
            f"{listed(drawn)}: groups are averaged over draws of what the facts leave open; the "
            "one value in the table is for reading, and decides nothing."
        )


# --- how robust the verdict on one complainant is -------------------------------------------------


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
    """Describe how wrong the worldview may be before the headline falls."""
    found = document.robustness
    if found is None:
        return
    by_verdict = group_by_value(found.worldviews)
    if by_verdict:
        said = "; ".join(
            f"{verdict} under {listed(map(repr, names))}" for verdict, names in by_verdict.items()
        )
        yield f"Other worldviews, of {len(found.worldviews)} that were compared: {said}."
    if found.tipping is not None:
        yield (
            f"Worldview: the verdict is {found.grade}. It {found.sentence}; the rest of the "
            "difference between the complainant and the counterfactual may have other causes."
        )
        if found.hidden_cause:
            yield found.hidden_cause
        yield from attributes_that_change(document)
    elif found.appears is not None:
        yield (
            "Worldview: the difference would be significant if the effect of the status were "
            f"{found.appears:.0%} of what the worldview says."
        )


def attributes_that_change(document: CaseDocument) -> Iterator[str]:
    """Describe whether the headline stands with one attribute at a time as on record."""
    known = {} if document.robustness is None else document.robustness.stands_without
    for stands, words in ((False, "falls"), (True, "stands")):
        names = [name for name, each in known.items() if each is stands]
        if names:
            yield (
                f"It {words} with {listed(map(document.labels.quoted, names), last='or')} as on "
                "record, and all else as the worldview says."
            )
