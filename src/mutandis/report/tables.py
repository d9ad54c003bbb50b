"""The numbers in a report's tables, and the complainants that it lists."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.robustness import count_grades
from mutandis.auditing.sentences import answer_own_case
from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Categories, plain_value
from mutandis.engine.methods import CST_MATCHED
from mutandis.numeric.order import rows_at_ranks
from mutandis.report.formatting import count, percent, value
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.data.columns import Column
    from mutandis.data.labels import Labels
    from mutandis.report.context import ReportContext

__all__ = [
    "count_fragile",
    "count_verdict_grades",
    "describe_attributes",
    "list_people",
    "rates_by_status",
    "shown_ks",
    "strata_counts",
]

_MOST_KS = 12  # more belong in a file, not on a page
_MOST_PEOPLE = 50  # more belong in a table that can be searched
_MOST_LEVELS = 4  # of an attribute; more are counted together


def shown_ks(context: ReportContext) -> tuple[int, ...]:
    """Choose the group sizes that a table shows: all, or the headline's and some over the range."""
    ks = context.plan.settings.ks
    if len(ks) <= _MOST_KS:
        return ks
    places = np.linspace(0, len(ks) - 1, _MOST_KS).round().astype(int).tolist()
    return tuple(sorted({ks[place] for place in places} | {context.primary[1]}))


def rates_by_status(context: ReportContext) -> list[tuple[str, int, list[float | str]]]:
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
    yield "Everybody in the table", np.arange(len(plan.population))


def _status(context: ReportContext, label: Any) -> str:
    return context.labels.equals(context.plan.protections[0].attribute, label)


def describe_attributes(context: ReportContext) -> list[tuple[str, str, str, str]]:
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


def strata_counts(context: ReportContext) -> list[dict[str, Any]]:
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


def count_fragile(context: ReportContext) -> list[tuple[str, int, int]]:
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


def count_verdict_grades(context: ReportContext) -> dict[str, dict[str, int]] | None:
    """Count the headline's cases by verdict and grade; None where they were not graded."""
    tipping = context.audit.results.tipping
    return None if tipping is None else count_grades(tipping, context.headline.verdicts())


def list_people(context: ReportContext) -> tuple[str, list[dict[str, Any]]]:
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
