"""The numbers in a report's tables, and the complainants that it shows as samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.case_sentences import explanation_context
from mutandis.auditing.classes import class_records
from mutandis.auditing.tipping import count_grades, describe_all
from mutandis.data.columns import plain_value
from mutandis.data.ordered import LevelScale
from mutandis.evidence.agreement import Agreement
from mutandis.evidence.findings import Verdict, as_shares
from mutandis.evidence.methods import METHODS
from mutandis.evidence.sentences import answer_about_her, explain, explain_own_case
from mutandis.pictures.findings import Differences
from mutandis.report.context import compared
from mutandis.report.formatting import count, plural
from mutandis.search.samples import rows_at_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from mutandis.data.wording import Wording
    from mutandis.report.context import ReportContext

__all__ = [
    "Samples",
    "agreement_of",
    "average_of",
    "choose_samples",
    "compare_each_class",
    "count_fragile",
    "count_verdict_grades",
    "count_verdicts",
    "differences_of",
    "explain_samples",
    "list_people",
    "rates_by_status",
    "sample_robustness",
    "sample_rows",
    "shown_ks",
    "strata_counts",
    "summarise_delta_p",
    "sweep_records",
]

# more group sizes than these belong in a file, not on a page
_MOST_KS = 12
# more people than these belong in a table that can be searched
_MOST_PEOPLE = 50
_PLACES = (
    (0.0, "largest"),
    (0.25, "upper quartile"),
    (0.5, "median"),
    (0.75, "lower quartile"),
    (1.0, "smallest"),
)


def shown_ks(context: ReportContext) -> tuple[int, ...]:
    """Choose the group sizes that a table shows: all, or the headline's and some over the range."""
    ks = context.plan.settings.ks
    if len(ks) <= _MOST_KS:
        return ks
    places = np.linspace(0, len(ks) - 1, _MOST_KS).round().astype(int).tolist()
    return tuple(sorted({ks[place] for place in places} | {context.primary[1]}))


def sweep_records(context: ReportContext) -> list[dict[str, Any]]:
    """Give shares of cases and the mean Δp for every method and every k that was run."""
    records = []
    for method in context.methods:
        for k in context.plan.settings.ks:
            found = context.audit.digest(method.name, k)
            counts = found.counts
            records.append(
                {
                    "method": method.name,
                    "k": k,
                    "share": counts["share"],
                    "adjusted": counts["significant_adjusted"] / counts["complainants"],
                    "mean_delta_p": found.mean,
                }
            )
    return records


def count_verdicts(context: ReportContext) -> dict[str, dict[Verdict, int]]:
    """Count the verdicts of every method at the headline's k, "insufficient" where it occurs."""
    counts = {
        method.title: dict(context.digest(method.name).verdicts) for method in context.methods
    }
    if not any(each[Verdict.INSUFFICIENT] for each in counts.values()):
        for each in counts.values():
            del each[Verdict.INSUFFICIENT]
    return counts


def agreement_of(context: ReportContext) -> Agreement:
    """Find which methods find which complainants at the headline's k."""
    found = {method.name: context.digest(method.name).evidence for method in context.methods}
    return Agreement(complainants=context.headline.ids, found=found)


def differences_of(context: ReportContext, method: str) -> Differences | None:
    """Give Δp of those who could be compared at the headline's k; None where there are none."""
    found = context.digest(method)
    there = ~found.insufficient
    if not there.any():
        return None
    return Differences(
        title=METHODS[method].title, delta_p=found.delta_p[there], evidence=found.evidence[there]
    )


def summarise_delta_p(context: ReportContext, method: str) -> list[float]:
    """Give how many could be compared, and the mean, 0, 5, 50, 95 and 100% quantiles of Δp."""
    found = differences_of(context, method)
    if found is None:
        return [0, *[float("nan")] * 6]
    quantiles = np.quantile(found.delta_p, [0.0, 0.05, 0.5, 0.95, 1.0]).tolist()
    return [len(found.delta_p), context.digest(method).mean, *quantiles]


def rates_by_status(context: ReportContext) -> list[tuple[str, int, list[float | str]]]:
    """Give the share of refusals by status: on record, and in each counterfactual world.

    Of a score, its mean, and of an ordered outcome, the shares of all levels.
    """
    worlds = [
        context.plan.outcome.is_negative,
        *(world for _, world in context.decided_worlds),
    ]
    return [
        (
            name,
            len(rows),
            [average_of(world[rows], context.wording) for world in worlds],
        )
        for name, rows in _statuses(context)
    ]


def average_of(outcomes: NDArray[Any], wording: Wording) -> float | str:
    """Give the share of refusals, the mean score of steps, or all levels with their shares.

    It is missing where there are none.
    """
    scale = wording.scale
    if not len(outcomes):
        return float("nan")
    if scale is None:
        return float(outcomes.mean())
    if isinstance(scale, LevelScale):
        shares = zip(wording.levels, scale.shares(outcomes), strict=True)
        return ", ".join(f"{level} {share:.1%}" for level, share in shares)
    # sums of integers have no order; averages over draws are whole steps or parts of them
    total = fsum(outcomes.tolist()) / len(outcomes)
    return float(scale.best + scale.sign * scale.step * Fraction(total))


def _statuses(context: ReportContext) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Name the groups of rows: complainants by status, those they are compared with, all."""
    plan = context.plan
    yield f"Complainants: {context.complainants}", context.audit.situation.complainants
    if len(plan.strata) > 1:
        for stratum in plan.strata:
            yield f"of them {context.status(stratum)}", stratum.complainants
    for part, audit in context.parts.items():
        ground = context.labels.column(part)
        label = f"Compared with, on {ground}" if part else f"Compared with: {context.others}"
        yield label, audit.situation.reference
    yield "Everybody in the table", np.arange(len(plan.population))


def compare_each_class(context: ReportContext) -> list[dict[str, Any]]:
    """Compare each class of the outcome by itself; empty where there are two values only."""
    if context.plan.outcome.classes is None or context.primary[0].count_centers:
        return []
    return class_records(context.audit)


def strata_counts(context: ReportContext) -> list[dict[str, Any]]:
    """Give the headline's counts by protected value; empty where there is one value only."""
    strata, found = context.plan.strata, context.headline
    if len(strata) < 2:
        return []
    rows = []
    for stratum in strata:
        members = np.isin(context.audit.situation.complainants, stratum.complainants)
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
    if not context.plan.settings.uncertainty.tipping:
        return None
    return count_grades(context.audit.measure_tipping(), context.headline.verdicts())


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Complainants to look at: their places, by why each was chosen; and the rule in words.

    `kinds` names the kinds of them that occur, in their order, and `kind_of` tells each one's.
    `top` are the places of those who are listed, and `listed` says in words who that is.
    """

    places: tuple[tuple[str, int], ...]
    rule: str
    top: tuple[int, ...] = ()
    listed: str
    kinds: Mapping[str, str] = field(default_factory=dict)
    kind_of: Mapping[int, str] = field(default_factory=dict)

    @property
    def first(self) -> tuple[tuple[str, int], ...]:
        """The few who are drawn: those with a case of their own, and then the refused."""
        return self.places[: len(_PLACES)]


def choose_samples(context: ReportContext) -> Samples:
    """Choose, of each kind, five complainants from the largest to the smallest difference.

    They come from those with the strongest verdict that occurs: first those with a case of their
    own, then the other refused ones, then those who were granted. No step looks at the order of
    the rows: of equal differences, the smaller id comes first.
    """
    members, who = _strongest(context)
    if not len(members):
        none = "No complainant could be compared, so there is none to show."
        return Samples(places=(), rule=none, listed=none)
    places: list[tuple[str, int]] = []
    kinds: dict[str, str] = {}
    kind_of: dict[int, str] = {}
    sizes = []
    top: list[int] = []
    people = 0
    for kind, (name, mask) in _kinds(context).items():
        mine = members[mask[members]]
        if not len(mine):
            continue
        chosen = _spread(len(mine))
        ranked = _ranked(context, mine, [*range(min(len(mine), _MOST_PEOPLE)), *chosen.values()])
        places += [(label, ranked[rank]) for label, rank in chosen.items()]
        kinds[kind] = name
        kind_of |= dict.fromkeys(ranked.values(), kind)
        top += [ranked[rank] for rank in range(min(len(mine), _MOST_PEOPLE))]
        sizes.append(f"{name}: {count(len(mine))}")
        people += len(mine)
    only = f"the only one of the complainants {who}" if len(members) == 1 else ""
    some = f"some of the {plural(len(members), 'complainant')} {who}, {context.where}"
    top = top[:_MOST_PEOPLE]
    all_of = "all" if len(top) == people else f"the first {len(top)} of all"
    return Samples(
        places=tuple(places),
        top=tuple(top),
        listed=(
            f"{all_of.capitalize()} {count(people)} {who} ({'; '.join(sizes)}), those with "
            "the largest difference first. `mutandis explore` shows everyone, and filters."
        ),
        rule=(
            f"Shown{':' if only else ' are'} {only or some} ({'; '.join(sizes)}). Of each kind, "
            f"those with the largest {context.wording.symbol}, the upper quartile, the median, the "
            "lower quartile and the smallest are chosen, or all if they are no more than five. Of "
            "equal differences, the smaller id comes first."
        ),
        kinds=kinds,
        kind_of=kind_of,
    )


def _kinds(context: ReportContext) -> dict[str, tuple[str, NDArray[np.bool_]]]:
    """Part complainants by what was decided on them, and by whether they have a case of their own.

    The one outcome is what is looked for; people with the other are part of a pattern at most.
    """
    refused, own = context.headline.is_negative, context.own
    if context.wording.scale is not None:
        return _score_kinds(context)
    concerned = refused if context.worse else ~refused
    words = [context.labels.decided(each) for each in (context.worse, not context.worse)]
    other = (f"{words[1]} themselves", ~concerned)
    if own is None:
        return {"concerned": (f"{words[0]} themselves", concerned), "other": other}
    return {
        "own": (f"{words[0]}, with a case of their own", own),
        "concerned": (f"{words[0]}, without one", concerned & ~own),
        "other": other,
    }


def _score_kinds(context: ReportContext) -> dict[str, tuple[str, NDArray[np.bool_]]]:
    """Part complainants by their own score or level, beside that of others."""
    beside = context.wording.beside
    off, own = context.headline.is_negative, context.own
    concerned = off if context.worse else ~off
    if own is None:
        return {
            "concerned": (f"worse off than {beside}", concerned),
            "other": ("not worse off than that", ~concerned),
        }
    return {
        "own": ("with a case of their own", own),
        "concerned": (f"without one, worse off than {beside}", concerned & ~own),
        "other": ("neither", ~concerned & ~own),
    }


def _spread(people: int) -> dict[str, int]:
    """Name ranks from the first to the last: all, or some of many."""
    last = people - 1
    if last < len(_PLACES):
        return {f"no. {rank + 1}": rank for rank in range(people)}
    return {label: round(share * last) for share, label in _PLACES}


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


def _ranked(context: ReportContext, members: NDArray[np.intp], ranks: list[int]) -> dict[int, int]:
    """Give the places of members at some ranks: the farthest difference first, then by id."""
    delta_p = context.headline.comparison.delta_p[members]
    delta_p, ids = -delta_p if context.worse else delta_p, context.headline.ids[members]
    if ids.dtype == object:
        try:
            ids = np.unique(ids, return_inverse=True)[1]
        except TypeError:  # a column of several types has no order of its own
            ids = ids.astype(str)
    wanted = np.unique(ranks)
    found = rows_at_ranks([delta_p, ids], wanted)
    return dict(zip(wanted.tolist(), members[found].tolist(), strict=True))


def list_people(context: ReportContext, samples: Samples) -> list[dict[str, Any]]:
    """Give the rows of those who are listed, as `sample_rows` does; `chosen` is empty."""
    return _rows_of(context, samples, [("", place) for place in samples.top])


def sample_rows(context: ReportContext, samples: Samples) -> list[dict[str, Any]]:
    """Give the samples' rows of the headline's findings, with both answers about each.

    `chosen` says why, `kind` which kind of complainant she is, and `answer` whether she has a case
    of her own.
    """
    return _rows_of(context, samples, samples.places)


def _rows_of(
    context: ReportContext, samples: Samples, places: Iterable[tuple[str, int]]
) -> list[dict[str, Any]]:
    terms, chosen = explanation_context(context.plan), list(places)
    if not chosen:
        return []
    only, (method, k) = np.array([place for _, place in chosen], dtype=np.intp), context.primary
    columns = as_shares(context.audit.findings_of(only, method.name, k).columns())
    nothing = {name: np.full(len(only), None) for name in ("p_own", "own_case")}
    matched = context.matched
    own = nothing if matched is None else as_shares(matched.take(only).columns())
    columns |= {name: own[name] for name in nothing}
    rows = []
    for number, (label, place) in enumerate(chosen):
        row = {name: plain_value(values[number]) for name, values in columns.items()}
        row |= {"chosen": label, "kind": samples.kind_of[place]}
        rows.append(row | {"answer": answer_about_her(row, terms)})
    return rows


def sample_robustness(
    context: ReportContext, samples: Samples
) -> list[tuple[Any, str, float, str, str]]:
    """Give the samples' verdicts, tipping points, grades and robustness in words."""
    if not context.plan.settings.uncertainty.tipping:
        return []
    found = describe_all(context.audit, context.headline, labels=context.labels)
    verdicts = context.headline.verdicts()
    return [
        (
            plain_value(context.headline.ids[place]),
            verdicts[place],
            float(found.tipping[place]),
            found.grade[place],
            found.line[place],
        )
        for _, place in samples.places
        if found.line[place] is not None
    ]


def explain_samples(context: ReportContext, samples: Samples) -> list[tuple[str, str]]:
    """Say what was found about the first of each kind: the pattern, and her own case."""
    method, k = context.plan.settings.primary
    terms = explanation_context(context.plan)
    first: dict[str, dict[str, Any]] = {}
    for row in sample_rows(context, samples):
        first.setdefault(row["kind"], row)
    return [
        (explain(row, method, k, terms), explain_own_case(row, terms)) for row in first.values()
    ]
