"""An audit's report: one page of HTML that needs nothing but itself, its tables and pictures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.robustness import count_grades, rules_of
from mutandis.auditing.sentences import answer_own_case
from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Categories, jsonable, plain_value
from mutandis.engine.tally import CST_MATCHED
from mutandis.numeric.order import rows_at_ranks
from mutandis.report.context import ReportContext, draw_plan, read_by_decision, record_of
from mutandis.report.formatting import as_yaml, count, listed, percent, value
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
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from mutandis.auditing.answer import Answer
    from mutandis.auditing.audit import Audit
    from mutandis.data.attribute import Attribute
    from mutandis.data.columns import Column
    from mutandis.data.labels import Labels
    from mutandis.scm import Diagnosis

__all__ = ["Report", "captioned_worldview", "make_report"]

_MOST_KS = 12  # more belong in a file, not on a page
_MOST_PEOPLE = 20  # more belong in a table that can be searched
_MOST_LEVELS = 4  # of an attribute; more are counted together


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
    context = ReportContext(audit=audit)
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
        attributes=_describe_attributes(context),
        doubted=_count_fragile(context),
        grades=_count_verdict_grades(context),
        ks=_shown_ks(context),
        people=_list_people(context),
        rates=_rates_by_status(context),
        strata=_strata_counts(context),
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
        provenance=as_yaml(
            {name: each for name, each in record_of(audit).items() if name != "settings"}
        ),
    )
    drawn = [each for each in (worldview, hidden_cause) if each is not None]
    drawn += [each for _, each in answers]
    return Report(html=html, plots={each.name: each.drawing.svg for each in drawn})


# --- pictures ------------------------------------------------------------------------------------


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
    if drawing is None:
        return None
    outcome = column(plan.outcome.column)
    reads = (
        f"What the decision (“{outcome}”) reads is not known here; broken arrows come from what "
        "people are compared on."
    )
    if read_by_decision(plan):
        reads = f"Dotted arrows show what the decision rule reads to decide {outcome}."
    return CaptionedPicture(
        name="worldview",
        drawing=drawing,
        title="The worldview",
        caption=f"An arrow says that one thing is a cause of another. {reads}",
        description=drawing.description,
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


# --- tables --------------------------------------------------------------------------------------


def _shown_ks(context: ReportContext) -> tuple[int, ...]:
    """Choose the group sizes that a table shows: all, or the headline's and some over the range."""
    ks = context.plan.settings.ks
    if len(ks) <= _MOST_KS:
        return ks
    places = np.linspace(0, len(ks) - 1, _MOST_KS).round().astype(int).tolist()
    return tuple(sorted({ks[place] for place in places} | {context.primary[1]}))


def _rates_by_status(context: ReportContext) -> list[tuple[str, int, list[float | str]]]:
    """Average outcomes by status: on record, and in each counterfactual world."""
    worlds = [context.plan.outcome.codes, *(world for _, world in context.decided_worlds)]
    return [
        (name, len(rows), [context.words.average_of(world[rows]) for world in worlds])
        for name, rows in _statuses(context)
    ]


def _statuses(context: ReportContext) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Name the groups of rows: complainants by status, those they are compared with, all."""
    plan = context.plan
    yield f"Complainants: {context.complainants}", context.audit.study.people
    if len(plan.strata) > 1:
        for stratum in plan.strata:
            yield f"of them {_status(context, stratum.label)}", stratum.complainants
    for part, audit in context.parts.items():
        ground = context.labels.column(part)
        label = f"Compared with, on {ground}" if part else f"Compared with: {context.others}"
        yield label, audit.study.reference
    yield "All people in the table", np.arange(len(plan.population))


def _status(context: ReportContext, label: Any) -> str:
    return context.labels.equals(context.plan.protections[0].attribute, label)


def _describe_attributes(context: ReportContext) -> list[tuple[str, str, str, str]]:
    """Describe each attribute of complainants, of their counterfactuals, and of the others."""
    rows = []
    for part, audit in context.parts.items():
        study, world = audit.study, audit.ground.world
        drawn = world.draws or ([] if world.point is None else [world.point])
        for attribute in context.plan.attributes:
            name = attribute.name
            column = study.population.columns[name]
            cells = [[column.take(study.people)], [], [column.take(study.reference)]]
            if world.point is not None and name in world.point.changed:
                cells[1] = [each.part(name, study.people) for each in drawn]
            written = [_describe_columns(attribute, each, context.labels) for each in cells]
            called = f"{context.labels.column(name)}{context.by_part(part)}"
            rows.append((called, written[0], written[1] or "as on record", written[2]))
    return rows


def _describe_columns(attribute: Attribute, columns: Sequence[Column], labels: Labels) -> str:
    """Write the mean of numbers, or the shares of the commonest levels."""
    if attribute.kind is AttributeKind.CONTINUOUS:
        numbers = [each.data for each in columns]
        return f"mean {value(float(np.nanmean(np.concatenate(numbers))))}" if numbers else ""
    counts: Counter[Any] = Counter()
    for each in columns:
        levels = each.levels if isinstance(each, Categories) else None
        places, number = np.unique(each.data[~each.missing()], return_counts=True)
        named = places.tolist() if levels is None else [levels[place] for place in places]
        counts.update(dict(zip(named, number.tolist(), strict=True)))
    total = counts.total()
    commonest = sorted(counts.items(), key=lambda each: (-each[1], str(each[0])))
    shown = [
        f"{labels.level(attribute.name, level)} {percent(number / total)}"
        for level, number in commonest[:_MOST_LEVELS]
    ]
    rest = sum(number for _, number in commonest[_MOST_LEVELS:])
    return ", ".join([*shown, f"others {percent(rest / total)}"] if rest else shown)


def _strata_counts(context: ReportContext) -> list[dict[str, Any]]:
    """Count the headline's cases by protected value; empty where there is one value only."""
    strata, found = context.plan.strata, context.headline
    if len(strata) < 2:
        return []
    rows = []
    for stratum in strata:
        members = np.isin(context.audit.study.people, stratum.complainants)
        cases, number = int(found.comparison.evidence[members].sum()), int(members.sum())
        rows.append(
            {
                "status": _status(context, stratum.label),
                "complainants": number,
                "cases": cases,
                "share": cases / max(number, 1),
                "significant": int(found.comparison.significant[members].sum()),
                "significant_adjusted": int(found.significant_adjusted[members].sum()),
            }
        )
    return rows


def _count_fragile(context: ReportContext) -> list[tuple[str, int, int]]:
    """Count the headline's cases by verdict, and those that are fragile; empty if none is known."""
    found = context.headline
    if found.verdict_share is None:
        return []
    verdicts = found.verdicts()
    rows = []
    for each in (Verdict.SIGNIFICANT_ADJUSTED, Verdict.SIGNIFICANT, Verdict.EVIDENCE):
        members = verdicts == each.value
        rows.append((each.value, int(members.sum()), int((members & found.fragile).sum())))
    return rows


def _count_verdict_grades(context: ReportContext) -> dict[str, dict[str, int]] | None:
    """Count the headline's cases by verdict and grade; None where they were not graded."""
    tipping = context.audit.results.tipping
    return None if tipping is None else count_grades(tipping, context.headline.verdicts())


def _list_people(context: ReportContext) -> tuple[str, list[dict[str, Any]]]:
    """Describe and list the complainants with the strongest verdict that occurs.

    The largest difference comes first; of equal differences, the smaller id.
    """
    found, plain = context.headline, context.words.kind.plain
    tested = context.primary[0].count_neighbours
    groups = {
        "whose evidence is significant after adjustment": found.significant_adjusted,
        "whose evidence is significant, unadjusted": found.comparison.significant,
        f"with evidence{', none of it significant' if tested else ''}": found.comparison.evidence,
        "who could be compared, none of whom has evidence": ~found.comparison.insufficient,
    }
    who, members = next(
        ((who, np.flatnonzero(mask)) for who, mask in groups.items() if mask.any()), ("", [])
    )
    if not len(members):
        return "No complainant could be compared, so there is none to show.", []
    only = _largest(context, np.asarray(members))
    method, k = context.primary
    columns = plain(context.audit.evaluate(method.name, k, places=only).columns())
    own = {name: np.full(len(only), None) for name in ("p_own", "own_case")}
    if CST_MATCHED in context.methods:
        matched = plain(context.findings(CST_MATCHED.name, k).take(only).columns())
        own = {name: matched[name] for name in own}
    rows = []
    for place in range(len(only)):
        row = {name: plain_value(each[place]) for name, each in {**columns, **own}.items()}
        rows.append({**row, "answer": answer_own_case(row, context.plan)})
    first = "All" if len(only) == len(members) else f"The first {len(only)} of all"
    return (
        f"{first} {count(len(members))} complainants {who}, those with the largest difference "
        "first. `mutandis explore` shows everyone, and filters."
    ), rows


def _largest(context: ReportContext, members: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the places of those who are listed."""
    found = context.headline
    delta_p, ids = found.comparison.delta_p[members], found.ids[members]
    if ids.dtype == object:
        try:
            ids = np.unique(ids, return_inverse=True)[1]
        except TypeError:  # a column of several types has no order of its own
            ids = ids.astype(str)
    ranks = np.arange(min(len(members), _MOST_PEOPLE))
    return members[rows_at_ranks([-delta_p if context.worse else delta_p, ids], ranks)]
