"""A report in plain words: its summary, and what limits its findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.sentences import list_reasons
from mutandis.auditing.sham import counted_by
from mutandis.auditing.tipping import summarise_grades
from mutandis.errors import PlanError
from mutandis.report.formatting import (
    count,
    group_by_value,
    listed,
    percent,
    plural,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.sham import ShamAudits
    from mutandis.decision.agreement import RecordAgreement
    from mutandis.report.context import ReportContext
    from mutandis.scm import Diagnosis

__all__ = [
    "Caution",
    "cautions_of",
    "describe_flips",
    "describe_headline",
    "describe_sham",
    "diagnosis_sections",
    "summarise",
]

# of sentences that only reassure; problems are all said
_MOST_SENTENCES = 40


def summarise(context: ReportContext) -> list[str]:
    """Say in a few paragraphs what was asked and what was found."""
    writers = (
        _asked,
        _rates,
        _pattern,
        _above_noise,
        _robust,
        _own_cases,
        _evidence,
        _other_methods,
    )
    return [paragraph for write in writers if (paragraph := write(context))]


def _asked(context: ReportContext) -> str:
    plan = context.plan
    how = {
        None: "",
        "multiple": (
            " Multiple discrimination was looked for: each ground was examined by itself, and a "
            "complainant counts only if she is found on every one."
        ),
        "intersectional": (
            " Intersectional discrimination was looked for: the grounds were examined together, "
            "as one status."
        ),
    }[plan.combine]
    better = "" if context.worse else " Better treatment was looked for, not worse."
    return (
        f"{plural(len(plan.population), 'decision')} on "
        f"{context.labels.column(plan.outcome.column)} were examined. "
        f"{context.count_people(len(context.headline))} (the complainants) "
        f"{'was' if len(context.headline) == 1 else 'were each'} compared with "
        f"{context.others}. {context.words.counts}"
        f"{how}{better}"
    )


def _rates(context: ReportContext) -> str:
    """Return the averages of complainants and of others, on record and of the counterfactuals."""
    study, words, parts = context.audit.study, context.words, context.parts
    rows, facts = study.people, study.outcomes

    def mean(outcomes: NDArray[Any]) -> str:
        return words.average(words.average_of(outcomes))

    theirs = mean(facts[study.reference]) if len(parts) == 1 else None
    on_record = f"{words.on_record(mean(facts[rows]), theirs)}."
    would_be = context.audit.refusal_cf
    if len(parts) > 1 or would_be is None:
        return on_record
    return (
        f"{on_record} Had the complainants been {context.reference}, by "
        f"{context.source_of_counterfactuals}, {words.would_have_been(mean(would_be[rows]))}."
    )


def _pattern(context: ReportContext) -> str:
    """Say for how many the headline finds a pattern, after adjustment if that was made."""
    method, _ = context.primary
    if not method.count_neighbours:
        return ""
    row, settings = context.headline.counts(), context.plan.settings
    claim = "discrimination" if context.worse else "favourable treatment"
    given = context.source_of_counterfactuals
    given = f", given {given}," if method.needs_counterfactual else ""
    adjusted = settings.evidence.adjust != "none"
    number = row["significant_adjusted"] if adjusted else row["significant"]
    counted = (
        f"all complainants tested taken into account ({_named(settings.evidence.adjust)})"
        if adjusted
        else "each taken by itself; the number of complainants tested was not adjusted for"
    )
    found = f"a pattern of {claim} among people like the complainant"
    if not number:
        return (
            f"{context.where}{given} finds {found} for none of the "
            f"{plural(row['complainants'], 'complainant')}, {counted}. That does not rule it out."
            f"{_left_out(context)}"
        )
    return (
        f"{context.where}{given} finds {found}, which chance alone hardly explains, for "
        f"{count(number)} of {plural(row['complainants'], 'complainant')} "
        f"({percent(number / row['complainants'])}), {counted}: prima facie evidence."
        f"{_left_out(context)}"
    )


_COUNTED = {
    "cases": "Evidence for",
    "significant": "Significant for",
    "significant_adjusted": "Significant after adjustment for",
}


def describe_headline(audit: Audit) -> str:
    """Write the headline count, with those of sham audits if these were run."""
    method, k = audit.plan.choose(None, None)
    row, counted = audit.count(method.name, k), counted_by(audit.plan, method)
    people = plural(row["complainants"], "complainant")
    said = f"{_COUNTED[counted]} {count(row[counted])} of {people}."
    return " ".join([said, *(describe_sham(each) for each in [audit.sham_audits] if each)])


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


def _above_noise(context: ReportContext) -> str:
    sham = context.audit.sham_audits
    return "" if sham is None else describe_sham(sham)


def _robust(context: ReportContext) -> str:
    return summarise_grades(context.audit)


def _own_cases(context: ReportContext) -> str:
    """Say how many of them were refused themselves, and have a case of their own."""
    found = context.headline
    pattern = found.has_pattern
    if not pattern.any():
        return ""
    concerned = found.is_negative if context.worse else ~found.is_negative
    words, number = context.words, count(int((pattern & concerned).sum()))
    said = f"{number} of these {count(int(pattern.sum()))} were "
    said += words.themselves(worse=context.worse)
    if context.own is not None:
        own = count(int((pattern & context.own).sum()))
        tau = context.plan.settings.tau
        said += f", and {words.have_own_case(own, worse=context.worse, tau=tau)}"
    return f"{said}. The others are part of the pattern only."


def _evidence(context: ReportContext) -> str:
    """Say what the paper's definition counts, below what is claimed."""
    method, _ = context.primary
    row, settings = context.headline.counts(), context.plan.settings
    beyond = settings.measure.condition(settings.tau, worse=context.worse)
    sense = (
        "by the measure of this audit" if settings.measure.is_ratio else "in the sense of the paper"
    )
    said = (
        f"Evidence {sense} ({beyond}) there is for {count(row['cases'])} of "
        f"{plural(row['complainants'], 'complainant')} ({percent(row['share'])})"
    )
    if not method.count_neighbours:
        return f"{said}, by {context.where}, to which no test applies."
    return (
        f"{said}; for {count(row['significant'])} chance alone hardly explains the difference if "
        f"each is taken by itself (one-sided test at the level α = {settings.alpha:g})."
        + (" Both counts can be large where there is nothing to find." if row["cases"] else "")
    )


def _named(adjust: str) -> str:
    return "–".join(part.capitalize() for part in adjust.split("-"))


def _other_methods(context: ReportContext) -> str:
    method, k = context.primary
    others = [each for each in context.methods if each is not method]
    if not others:
        return ""
    said = listed(
        f"{each.title} for {count(context.audit.count(each.name, k)['cases'])}" for each in others
    )
    return f"The other methods find evidence at k = {k}: {said}."


def _left_out(context: ReportContext) -> str:
    """Say about how many there is no verdict, and why."""
    found = context.headline
    left_out = found.comparison.insufficient
    if not left_out.any():
        return ""
    why = list_reasons(found.test.unfit()[left_out].tolist(), labels=context.labels)
    return (
        f" About {plural(int(left_out.sum()), 'complainant')} nothing can be said ({why}). They "
        "are counted among the complainants and have no verdict."
    )


def describe_flips(context: ReportContext) -> Iterator[str]:
    """Say how many complainants' outcomes change with their status."""
    for part, audit in context.parts.items():
        study, refusal = audit.study, audit.refusal_cf
        if refusal is None:
            continue
        rows = study.people
        before, after = study.outcomes[rows], refusal[rows]
        drawn = audit.world.decided_parts is not None
        changed = context.words.changed(before, after, drawn=drawn)
        yield f"In the counterfactual world{context.by_part(part)}{changed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """One thing to know; `serious` ones are said in the summary too."""

    about: str
    sentence: str
    serious: bool = False


def diagnosis_sections(diagnosis: Diagnosis) -> dict[str, tuple[str, ...]]:
    """Give what the diagnosis says under its headings; all problems, and of much else the first."""
    return {
        heading: said if heading.startswith("Problems") else _beginning(said)
        for heading, said in diagnosis.sections().items()
    }


def _beginning(said: tuple[str, ...]) -> tuple[str, ...]:
    more = len(said) - _MOST_SENTENCES
    if more <= 0:
        return said
    left_out = f"{plural(more, 'further sentence')} of this kind; worldview.check() gives them all."
    return (*said[:_MOST_SENTENCES], left_out)


def cautions_of(context: ReportContext, diagnosis: Diagnosis | None) -> tuple[Caution, ...]:
    """Collect what limits the findings, in the order of the pipeline."""
    return (
        *_rows_dropped(context),
        *_of_worldview(context, diagnosis),
        *_of_counterfactuals(context),
        *_of_decision(context),
        *_of_groups(context),
        *_of_tests(context),
    )


def _rows_dropped(context: ReportContext) -> Iterator[Caution]:
    dropped = context.plan.population.dropped
    if dropped:
        column = context.labels.column
        said = listed(f"{count(number)} for {column(name)}" for name, number in dropped.items())
        yield Caution(
            about="Missing values",
            sentence=f"Rows left out because a value is missing, by the column that lacks it: "
            f"{said}. Who lacks a value may differ from who does not.",
        )
    else:
        yield Caution(about="Missing values", sentence="No row was left out for a missing value.")
    compared = context.plan.compared_missing
    if compared:
        column = context.labels.column
        said = listed(f"{count(number)} of {column(name)}" for name, number in compared.items())
        yield Caution(
            about="Missing values",
            sentence=f"Values that are missing are compared, as different from all others and from "
            f"each other: {said}. They may well be equal to the values that they were told apart "
            "from.",
        )


def _of_worldview(context: ReportContext, diagnosis: Diagnosis | None) -> Iterator[Caution]:
    if diagnosis is not None and diagnosis.problems:
        yield _caution_of_problems(diagnosis)
    for part, audit in context.parts.items():
        held = audit.provenance.computed["held"]
        if held:
            yield Caution(
                about=f"Resolving attributes{context.by_part(part)}",
                sentence=f"{listed(map(context.labels.column, held))} kept as on record, "
                f"although the status affects {'it' if len(held) == 1 else 'them'}: the worldview "
                "says that the decision may rightly use what is there.",
            )


def _caution_of_problems(diagnosis: Diagnosis) -> Caution:
    found = f"{plural(len(diagnosis.problems), 'problem')} in {plural(diagnosis.tests, 'test')}"
    large, unknown = (len(diagnosis.by_severity(each)) for each in ("large", "unknown"))
    if not large and not unknown:
        moved = "None of them moves counterfactuals noticeably"
    else:
        far = [f"noticeably for {count(large)} of them"] if large else []
        far += [f"by an unknown amount for {count(unknown)}"] if unknown else []
        moved = f"Mending them moves counterfactuals {listed(far)}"
    return Caution(
        about="The worldview and the data",
        sentence=f"The table contradicts the worldview: {found}. {moved}; see the section on the "
        "worldview.",
        serious=bool(large or unknown),
    )


def _of_counterfactuals(context: ReportContext) -> Iterator[Caution]:
    if context.plan.counterfactuals is not None:
        yield Caution(
            about="Counterfactuals",
            sentence="The counterfactuals were supplied as a table. How they were made is not "
            "known here and was not checked.",
        )
    for part, audit in context.parts.items():
        clipped = {name: number for name, number in audit.clipped.items() if number}
        if clipped:
            rows = len(context.plan.population)
            said = listed(
                f"{count(number)} of {context.labels.column(name)} "
                f"({percent(number / rows)} of all rows)"
                for name, number in clipped.items()
            )
            yield Caution(
                about=f"Values moved to their bounds{context.by_part(part)}",
                sentence=f"Counterfactual values that the equations led beyond what can be, and "
                f"that were moved to the bounds: {said}.",
            )
    couplings = context.audit.provenance.computed["couplings"]
    for coupling, names in group_by_value(couplings).items():
        yield Caution(
            about=f"Assumed for {listed(map(context.labels.column, names))}",
            sentence=f"{'Its' if len(names) == 1 else 'Their'} counterfactuals rest on {coupling}, "
            "which no data can test.",
        )


def _on_scale(agreement: RecordAgreement) -> str:
    """Say where b() differs from scores or levels on record; nothing of two sides."""
    if agreement.refused is not None or not agreement.differing:
        return ""
    said = f", a better one in {count(agreement.better)}, and a worse one in "
    said += count(agreement.worse)
    if agreement.unexplained is None:
        return said
    return f"{said}; it leaves {percent(agreement.unexplained)} of the variation on record open"


def _of_decision(context: ReportContext) -> Iterator[Caution]:
    agreement = context.audit.with_record
    plan = context.plan
    if agreement is not None:
        rows = agreement.rows
        same = f"{count(rows - agreement.differing)} of {plural(rows, 'row')}"
        yield Caution(
            about="The decision maker and the record",
            sentence=f"b(X) gives the outcome on record in {same} "
            f"({percent(1 - agreement.differing / rows)}){_on_scale(agreement)}."
            + (
                ""
                if not agreement.differing
                else " Where it does not, counterfactual outcomes answer for another decision "
                "maker than the one who decided."
            ),
            serious=agreement.disagreement > 0.05,
        )
    elif plan.counterfactuals is not None and plan.counterfactuals.is_negative is not None:
        yield Caution(
            about="The decision maker",
            sentence="The outcomes of counterfactuals came with the table of counterfactuals.",
        )
    else:
        yield Caution(
            about="The decision maker",
            sentence="No new decisions could be obtained: outcomes are those on record. "
            "Methods that need the outcome of a counterfactual were not run.",
        )


def _of_groups(context: ReportContext) -> Iterator[Caution]:
    method, _ = context.primary
    insufficient = context.headline.comparison.insufficient
    if insufficient.any():
        similarity = context.plan.settings.similarity
        limit = (
            ""
            if similarity.max_distance is None
            else f" within distance {similarity.max_distance:g}"
        )
        unfit = context.headline.test.unfit()[insufficient].tolist()
        why = list_reasons(
            unfit,
            small=f"a group holds fewer than {similarity.min_group} people{limit}",
            labels=context.labels,
        )
        yield Caution(
            about="No comparable people",
            sentence=f"{count(int(insufficient.sum()))} of "
            f"{plural(len(insufficient), 'complainant')} get no verdict ({context.where}): {why}.",
        )
    if not any(each.count_neighbours for each in context.methods):
        return
    for part, audit in context.parts.items():
        if method.count_neighbours:
            yield from _of_support(context, part, audit)


def _of_support(context: ReportContext, part: str, audit: Audit) -> Iterator[Caution]:
    method, k = context.primary
    try:
        support = audit.measure_support(method.name, k)
    except PlanError:
        return
    total = len(support.ids)
    far = int((support.control.off_support | support.test.off_support).sum())
    outside = int(np.any(list(support.outside.values()), axis=0).sum()) if support.outside else 0
    center = "counterfactual" if method.needs_counterfactual else "own values"
    yield Caution(
        about=f"Support{context.by_part(part)}",
        sentence=f"{count(far)} of {plural(total, 'complainant')} ({percent(far / total)}) "
        "have a group that reaches farther than 99 of 100 groups in that space; for "
        f"{count(outside)} the {center} {'lies' if method.needs_counterfactual else 'lie'} beyond "
        f"all people they are compared with on some attribute ({context.where}).",
        serious=far > 0.1 * total,
    )


def _of_tests(context: ReportContext) -> Iterator[Caution]:
    settings, found = context.plan.settings, context.headline
    if not context.primary[0].count_neighbours:
        return
    degenerate = int((found.comparison.interval.degenerate & found.comparison.significant).sum())
    if degenerate:
        yield Caution(
            about="Intervals of no width",
            sentence=f"{plural(degenerate, 'significant case')} of {context.where} rest on an "
            f"interval without width ({settings.interval}: all were {context.labels.negative} in "
            "one group and none in the other). Their significance cannot be relied on.",
            serious=True,
        )
    if settings.evidence.adjust == "none":
        yield Caution(
            about="Many tests",
            sentence=f"p-values were not adjusted for {plural(len(found), 'complainant')}: with "
            f"nothing to find, about {percent(settings.alpha)} of them would be significant.",
            serious=True,
        )
