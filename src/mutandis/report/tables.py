"""The numbers in a report's tables, and the complainants that it shows as samples."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.case_sentences import explanation_context
from mutandis.data.columns import plain_value
from mutandis.evidence.agreement import Agreement
from mutandis.evidence.findings import Verdict
from mutandis.evidence.sentences import explain
from mutandis.report.context import compared
from mutandis.report.formatting import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from mutandis.evidence.findings import Findings
    from mutandis.report.context import ReportContext

__all__ = [
    "Samples",
    "agreement_of",
    "choose_samples",
    "count_by_draws",
    "count_verdicts",
    "explain_samples",
    "mean_delta_p",
    "rates_by_status",
    "sample_rows",
    "shown_ks",
    "strata_counts",
    "summarise_delta_p",
    "sweep_records",
]

# more group sizes than these belong in a file, not on a page
_MOST_KS = 12
_STAY = ((1.0, "under every draw"), (0.95, "under 95% or more"), (0.5, "under half or more"))
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


def mean_delta_p(found: Findings) -> float:
    """Average Δp over the complainants who could be compared; NaN if there are none."""
    return summarise_delta_p(found)[1]


def summarise_delta_p(found: Findings) -> list[float]:
    """Give how many could be compared, and the mean, 0, 5, 50, 95 and 100% quantiles of Δp."""
    delta_p = found.comparison.delta_p[compared(found)]
    if not len(delta_p):
        return [0, *[float("nan")] * 6]
    quantiles = np.quantile(delta_p, [0.0, 0.05, 0.5, 0.95, 1.0]).tolist()
    return [len(delta_p), fsum(delta_p.tolist()) / len(delta_p), *quantiles]


def sweep_records(context: ReportContext) -> list[dict[str, Any]]:
    """Give the share of cases and the mean Δp for every method and every k that was run."""
    return [
        {
            "method": method.name,
            "k": k,
            "share": context.findings(method.name, k).counts()["share"],
            "mean_delta_p": mean_delta_p(context.findings(method.name, k)),
        }
        for method in context.methods
        for k in context.plan.settings.ks
    ]


def count_verdicts(context: ReportContext) -> dict[str, dict[Verdict, int]]:
    """Count the verdicts of every method at the headline's k, "insufficient" where it occurs."""
    given = {
        method.title: context.findings(method.name, context.primary[1]).verdicts()
        for method in context.methods
    }
    counts = {
        title: {verdict: int((verdicts == verdict.value).sum()) for verdict in Verdict}
        for title, verdicts in given.items()
    }
    if not any(each[Verdict.INSUFFICIENT] for each in counts.values()):
        for each in counts.values():
            del each[Verdict.INSUFFICIENT]
    return counts


def agreement_of(context: ReportContext) -> Agreement:
    """Find which methods find which complainants at the headline's k."""
    k = context.primary[1]
    found = {method.name: context.findings(method.name, k) for method in context.methods}
    return Agreement.of_methods(found, k=k)


def rates_by_status(context: ReportContext) -> list[tuple[str, int, list[float]]]:
    """Give the share of refusals by status: on record, and in each counterfactual world."""
    worlds = [
        context.plan.outcome.is_negative,
        *(world for _, world in context.decided_worlds),
    ]
    return [
        (
            name,
            len(rows),
            [float(world[rows].mean()) if len(rows) else float("nan") for world in worlds],
        )
        for name, rows in _statuses(context)
    ]


def _statuses(context: ReportContext) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Name the groups of rows: complainants by status, those they are compared with, all."""
    plan = context.plan
    yield f"Complainants: {context.complainants}", context.audit.situation.complainants
    if len(plan.strata) > 1:
        for stratum in plan.strata:
            yield f"of them {plan.protections[0].attribute} = {stratum.label}", stratum.complainants
    for part, audit in context.parts.items():
        label = f"Compared with, on {part}" if part else f"Compared with: {context.others}"
        yield label, np.unique(np.concatenate([stratum.test for stratum in audit.plan.strata]))
    yield "Everybody in the table", np.arange(len(plan.population))


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
                "status": f"{context.plan.protections[0].attribute} = {stratum.label}",
                "complainants": int(members.sum()),
                "cases": cases,
                "share": cases / max(int(members.sum()), 1),
                "significant": int(found.comparison.significant[members].sum()),
                "significant_adjusted": int(found.significant_adjusted[members].sum()),
            }
        )
    return rows


def count_by_draws(context: ReportContext) -> list[tuple[str, int]]:
    """Count the headline's cases by how many draws keep them; empty where none were made."""
    found = context.headline
    if found.draw_share is None:
        return []
    shares = found.draw_share[found.comparison.evidence]
    kept = [(f"of them {label}", int((shares >= least).sum())) for least, label in _STAY]
    return [("all cases", len(shares)), *kept]


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Complainants to look at: their places, by why each was chosen; and the rule in words."""

    places: tuple[tuple[str, int], ...]
    rule: str


def choose_samples(context: ReportContext) -> Samples:
    """Choose five complainants from the largest to the smallest difference, or all if fewer.

    They come from those with the strongest verdict that occurs. No step looks at the order of the
    rows: of equal differences, the smaller id comes first.
    """
    found = context.headline
    members, who = _strongest(context)
    if not len(members):
        return Samples(
            places=(), rule="No complainant could be compared, so there is none to show."
        )
    ranked = _ranked(found, members, worse=context.worse)
    if len(ranked) <= len(_PLACES):
        chosen = [(f"no. {place + 1}", one) for place, one in enumerate(ranked)]
        every = "Shown: the only one" if len(ranked) == 1 else f"Shown are all {len(ranked)}"
        return Samples(
            places=tuple(chosen), rule=f"{every} of the complainants {who}, largest Δp first."
        )
    last = len(ranked) - 1
    return Samples(
        places=tuple((label, ranked[round(share * last)]) for share, label in _PLACES),
        rule=(
            f"Shown are five of the {plural(len(ranked), 'complainant')} {who} in "
            f"{context.where}: those with the largest Δp, the upper quartile, the median, the "
            "lower quartile and the smallest. Of equal differences, the smaller id comes first."
        ),
    )


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


def _ranked(found: Findings, members: NDArray[np.intp], *, worse: bool) -> list[int]:
    """Put members into order: the farthest difference first, then by id."""
    delta_p = found.comparison.delta_p[members]
    ids = found.ids[members]
    try:
        _, by_id = np.unique(ids, return_inverse=True)
    except TypeError:  # a column of several types has no order of its own
        _, by_id = np.unique(ids.astype(str), return_inverse=True)
    order = np.lexsort((by_id, -delta_p if worse else delta_p))
    return [int(place) for place in members[order]]


def sample_rows(context: ReportContext, samples: Samples) -> list[dict[str, Any]]:
    """Give the samples' rows of the headline's findings, and why each was `chosen`."""
    columns = context.headline.columns()
    return [
        {"chosen": label, **{name: plain_value(values[place]) for name, values in columns.items()}}
        for label, place in samples.places
    ]


def explain_samples(context: ReportContext, samples: Samples) -> list[str]:
    """Say in a sentence what was found about the first of them with each verdict."""
    method, k = context.plan.settings.primary
    terms = explanation_context(context.plan)
    first: dict[str, dict[str, Any]] = {}
    for row in sample_rows(context, samples):
        first.setdefault(row["verdict"], row)
    return [explain(row, method, k, terms) for row in first.values()]
