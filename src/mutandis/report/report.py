"""An audit's report: one page of HTML that needs nothing but itself, and its pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from mutandis.auditing.robustness import rules_of
from mutandis.data.columns import jsonable
from mutandis.report import tables
from mutandis.report.context import ReportContext, draw_plan, read_by_decision
from mutandis.report.formatting import listed, percent, value
from mutandis.report.html import CaptionedPicture, render
from mutandis.report.sentences import (
    assumptions_of,
    cautions_of,
    describe_flips,
    describe_patterns,
    limits_of_table,
)
from mutandis.store.audit_file import write_plan
from mutandis.store.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from mutandis.auditing.answer import Answer
    from mutandis.auditing.audit import Audit
    from mutandis.scm import Diagnosis

__all__ = ["Report", "captioned_worldview", "make_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report and its pictures."""

    html: str = field(repr=False)  # the page; the same audit gives the same text
    # the pictures in it as SVG texts, by the stems of their file names
    plots: Mapping[str, str] = field(repr=False)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        write_atomically(path, self.html)

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="800"></iframe>'


def make_report(audit: Audit, *, diagnosis: Diagnosis | None = None) -> Report:
    """Write the report of an audit; the worldview is checked if no diagnosis is given."""
    context, origin = ReportContext(audit=audit), audit.plan.origin
    if diagnosis is None:
        diagnosis = audit.plan.check_worldview()
    if diagnosis is not None:
        diagnosis = diagnosis.with_labels(context.labels)
    worldview, hidden_cause = captioned_worldview(context), _draw_hidden_cause(context)
    answers = [(each, _captioned_answer(each, place)) for place, each in enumerate(audit.answers)]
    html = render(
        "report.html",
        context=context,
        answers=answers,
        labels=context.labels,
        plan=context.plan,
        settings=context.plan.settings,
        tables=tables,
        words=context.words,
        worldview=worldview,
        hidden_cause=hidden_cause,
        summary=describe_patterns(context),
        decision=_describe_decision(context),
        diagnosis=diagnosis,
        flips=describe_flips(context),
        cautions=cautions_of(context, diagnosis),
        assumptions=[*assumptions_of(audit), *limits_of_table(audit)],
        sham=audit.results.sham,
        rules=rules_of(audit),
        compared=audit.results.worldviews,
        settings_text=write_plan(audit.plan),
        data=_facts_of_data(context, None if origin is None else origin.source),
        run=_facts_of_run(context),
    )
    drawn = [each for each in (worldview, hidden_cause) if each is not None]
    drawn += [each for _, each in answers]
    return Report(html=html, plots={each.name: each.drawing.svg for each in drawn})


def _captioned_answer(answer: Answer, place: int) -> CaptionedPicture:
    """Draw the numbers of an answer."""
    rows = "; ".join(f"{title}: {shown}" for title, shown, _ in answer.rows())
    return CaptionedPicture(
        name=f"answer-{place + 1}" if place else "answer",
        drawing=answer.plot(),
        title="Differences with their intervals",
        caption="Right of the line, the protected people are worse off.",
        description=f"{rows}.",
    )


def captioned_worldview(context: ReportContext) -> CaptionedPicture | None:
    """Draw the worldview of a plan, and describe it."""
    plan, column = context.plan, context.labels.column
    drawing = draw_plan(plan)
    if drawing is None or plan.worldview is None:
        return None
    used, outcome = read_by_decision(plan), column(plan.outcome.column)
    arrows = [
        f"{column(child)} is caused by {listed(map(column, causes))}"
        for child, causes in plan.worldview.graph.parents.items()
        if causes
    ]
    alike = [each.name for each in plan.attributes]
    reads = (
        f"What the decision on {outcome} reads is not known here; broken arrows come from what "
        "people are compared on."
    )
    leads = f"People are compared on {listed(map(column, alike))}, and by {outcome}"
    if used:
        reads = f"Dotted arrows show what the decision rule reads to decide {outcome}."
        leads = f"The decision on {outcome} reads {listed(map(column, used))}"
    return CaptionedPicture(
        name="worldview",
        drawing=drawing,
        title="The worldview",
        caption=f"An arrow says that one thing is a cause of another. {reads}",
        description=f"{'; '.join(arrows) if arrows else 'Nothing causes anything'}. {leads}.",
    )


def _draw_hidden_cause(context: ReportContext) -> CaptionedPicture | None:
    if context.audit.results.tipping is None or context.plan.worldview is None:
        return None
    cause = context.audit.hidden_cause()
    effects = cause.effects[0][1]
    if not effects:
        return None
    weakest = effects[0]
    return CaptionedPicture(
        name="hidden-cause",
        drawing=cause.plot(),
        title="How strong a hidden common cause would have to be",
        caption=f"An unmeasured cause of both {context.grounds} and "
        f"{context.labels.column(weakest.attribute)}, the attribute whose effect takes least to "
        "explain away, by what it explains of what is left of each. Lines: how much "
        "of the effect remains; a verdict falls where less remains than "
        "its λ*. Diamonds: causes as strong as the observed ones, and two and three times as "
        "strong.",
        description=f"A cause that explains {percent(weakest.robustness_value(1))} of both would "
        "account for all of the effect.",
    )


def _describe_decision(context: ReportContext) -> str:
    """Describe who decides, from what is on record about them: no secrets, and no rows."""
    described = context.audit.provenance.settings["decision"]
    if described is None:
        return "none: outcomes on record only"
    if set(described) == {"kind", "rule"}:
        return str(described["rule"])
    further = {name: each for name, each in described.items() if name != "kind" and each}
    details = "; ".join(f"{name} {_described(each)}" for name, each in further.items())
    return f"{described['kind']}: {details}" if details else str(described["kind"])


def _described(each: Any) -> str:
    return listed(each) if isinstance(each, list | tuple) else str(jsonable(each))


def _facts_of_data(
    context: ReportContext, source: Mapping[str, Any] | None
) -> list[tuple[str, str]]:
    """List what identifies the data, with what is known of where it came from."""
    data = context.audit.provenance.data
    given = [(str(name), value(each)) for name, each in (source or {}).items() if each is not None]
    facts = [
        ("Rows", f"{data['rows']:,}"),
        ("Complainants", f"{data['complainants']:,}"),
        ("SHA-256 of the columns used", str(data["sha256"])),
    ]
    if data["sha256_counterfactuals"]:
        facts.append(("SHA-256 of the counterfactuals", str(data["sha256_counterfactuals"])))
    return [*given, *facts]


def _facts_of_run(context: ReportContext) -> list[tuple[str, str]]:
    """List what computed the numbers, and how distances were distinguished."""
    column = context.labels.column
    facts = [(name, str(each)) for name, each in context.audit.provenance.versions.items()]
    for part, audit in context.parts.items():
        about, computed = context.by_part(part), audit.provenance.computed
        searched = computed["search"]
        facts += [
            (f"Distances on {column(name)}{about}", str(rule))
            for name, rule in computed["distance_rules"].items()
        ]
        facts += [(f"Search, {name}{about}", str(each)) for name, each in searched.items()]
    return facts
