"""The numbers in a report's tables, and the complainants that it shows as samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.sentences import answer_own_case
from mutandis.auditing.tipping import count_grades
from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Categories, plain_value
from mutandis.numeric.order import rows_at_ranks
from mutandis.report.context import compared
from mutandis.report.formatting import count, percent, value
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.data.columns import Column
    from mutandis.data.labels import Labels
    from mutandis.report.context import ReportContext

__all__ = [
    "People",
    "count_fragile",
    "count_verdict_grades",
    "describe_attributes",
    "list_people",
    "rates_by_status",
    "shown_ks",
    "strata_counts",
]

# more group sizes than these belong in a file, not on a page
_MOST_KS = 12
# more people than these belong in a table that can be searched
_MOST_PEOPLE = 50
# of an attribute; more are counted together
_MOST_LEVELS = 4


def shown_ks(context: ReportContext) -> tuple[int, ...]:
    """Choose the group sizes that a table shows: all, or the headline's and some over the range."""
    ks = context.plan.settings.ks
    if len(ks) <= _MOST_KS:
        return ks
    places = np.linspace(0, len(ks) - 1, _MOST_KS).round().astype(int).tolist()
    return tuple(sorted({ks[place] for place in places} | {context.primary[1]}))


def rates_by_status(context: ReportContext) -> list[tuple[str, int, list[float | str]]]:
    """Give the share of refusals by status: on record, and in each counterfactual world.

    Of a score, its mean, and of an ordered outcome, the shares of all levels.
    """
    worlds = [
        context.plan.outcome.codes,
        *(world for _, world in context.decided_worlds),
    ]
    return [
        (
            name,
            len(rows),
            [context.words.average_of(world[rows]) for world in worlds],
        )
        for name, rows in _statuses(context)
    ]


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


def _statuses(context: ReportContext) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Name the groups of rows: complainants by status, those they are compared with, all."""
    plan = context.plan
    yield f"Complainants: {context.complainants}", context.audit.study.people
    if len(plan.strata) > 1:
        for stratum in plan.strata:
            yield f"of them {context.status(stratum)}", stratum.complainants
    for part, audit in context.parts.items():
        ground = context.labels.column(part)
        label = f"Compared with, on {ground}" if part else f"Compared with: {context.others}"
        yield label, audit.study.reference
    yield "Everybody in the table", np.arange(len(plan.population))


def strata_counts(context: ReportContext) -> list[dict[str, Any]]:
    """Give the headline's counts by protected value; empty where there is one value only."""
    strata, found = context.plan.strata, context.headline
    if len(strata) < 2:
        return []
    rows = []
    for stratum in strata:
        members = np.isin(context.audit.study.people, stratum.complainants)
        cases = int(found.comparison.evidence[members].sum())
        rows.append(
            {
                "status": context.status(stratum),
                "complainants": int(members.sum()),
                "cases": cases,
                "share": cases / max(int(members.sum()), 1),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The complainants that a report lists: their rows, and the kinds of them that occur."""

    listed: str  # which ones, in words
    kinds: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]


def list_people(context: ReportContext) -> People:
    """List those with the strongest verdict that occurs, kind by kind, largest difference first.

    Of equal differences, the smaller id comes first.
    """
    members, who = _strongest(context)
    if not len(members):
        none = "No complainant could be compared, so there is none to show."
        return People(listed=none, kinds={}, rows=())
    shown: list[tuple[str, int]] = []
    names, sizes = {}, []
    for kind, (name, mask) in _kinds(context).items():
        mine = members[mask[members]]
        if len(mine):
            names[kind] = name
            sizes.append(f"{name}: {count(len(mine))}")
            shown += [(kind, place) for place in _first(context, mine)]
    shown = shown[:_MOST_PEOPLE]
    all_of = "all" if len(shown) == len(members) else f"the first {len(shown)} of all"
    return People(
        listed=(
            f"{all_of.capitalize()} {count(len(members))} {who} ({'; '.join(sizes)}), those with "
            "the largest difference first. `mutandis explore` shows everyone, and filters."
        ),
        kinds=names,
        rows=_rows_of(context, shown),
    )


def _kinds(context: ReportContext) -> dict[str, tuple[str, NDArray[np.bool_]]]:
    """Split complainants by their own outcome, and by whether they have a case of their own.

    One outcome is looked for; people with the other are part of a pattern at most.
    """
    refused, own = context.headline.is_negative, context.own
    concerned = refused if context.worse else ~refused
    names = context.words.concerned(worse=context.worse)
    if own is None:
        return {
            "concerned": (names.concerned, concerned),
            "other": (names.not_concerned, ~concerned),
        }
    return {
        "own": (names.own_case, own),
        "concerned": (names.without, concerned & ~own),
        "other": (names.other, ~concerned & ~own),
    }


def _strongest(context: ReportContext) -> tuple[NDArray[np.intp], str]:
    """Find the complainants with the strongest verdict that occurs, and say who they are."""
    found = context.headline
    tested = context.primary[0].count_neighbours
    groups = (
        (found.significant_adjusted, "whose evidence is significant after adjustment"),
        (found.comparison.significant, "whose evidence is significant taken by itself"),
        (
            found.comparison.evidence,
            "with evidence" + (", none of it significant" if tested else ""),
        ),
        (compared(found), "who could be compared, none of whom has evidence"),
    )
    for mask, who in groups:
        if mask.any():
            return np.flatnonzero(mask), who
    return np.array([], dtype=np.intp), ""


def _first(context: ReportContext, members: NDArray[np.intp]) -> list[int]:
    """Return the places of those who are listed at most: the largest differences, then by id."""
    delta_p = context.headline.comparison.delta_p[members]
    delta_p, ids = -delta_p if context.worse else delta_p, context.headline.ids[members]
    if ids.dtype == object:
        try:
            ids = np.unique(ids, return_inverse=True)[1]
        except TypeError:  # a column of several types has no order of its own
            ids = ids.astype(str)
    ranks = np.arange(min(len(members), _MOST_PEOPLE))
    return [int(each) for each in members[rows_at_ranks([delta_p, ids], ranks)]]


def _rows_of(context: ReportContext, shown: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return rows of the headline's findings, with the kind of each and the answer about them."""
    only, (method, _) = np.array([place for _, place in shown], dtype=np.intp), context.primary
    plain, k = context.words.kind.plain, context.primary[1]
    columns = plain(context.audit.evaluate(method.name, k, places=only).columns())
    nothing = {name: np.full(len(only), None) for name in ("p_own", "own_case")}
    matched = context.matched
    own = nothing if matched is None else plain(matched.take(only).columns())
    columns |= {name: own[name] for name in nothing}
    rows = []
    for number, (kind, _) in enumerate(shown):
        row = {name: plain_value(values[number]) for name, values in columns.items()}
        rows.append(row | {"kind": kind, "answer": answer_own_case(row, context.plan)})
    return rows
