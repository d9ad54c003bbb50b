"""A few complainants to look at, chosen by a rule and not by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.case_sentences import explanation_context
from mutandis.evidence.sentences import explain
from mutandis.report.context import compared
from mutandis.report.formatting import count, p_value, percent, plural, signed, value
from mutandis.report.html import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from mutandis.evidence.findings import Findings
    from mutandis.report.context import Material

__all__ = ["Samples", "choose_samples", "explain_samples", "samples_by_method", "samples_table"]

_PLACES = (
    (0.0, "largest"),
    (0.25, "upper quartile"),
    (0.5, "median"),
    (0.75, "lower quartile"),
    (1.0, "smallest"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Who was chosen, and how.

    Parameters
    ----------
    places
        Their places among the complainants, by why each was chosen.
    rule
        The rule in words.
    """

    places: tuple[tuple[str, int], ...]
    rule: str


def choose_samples(material: Material) -> Samples:
    """Choose five complainants from the largest to the smallest difference, or all if fewer.

    They come from those with the strongest verdict that anybody has. No step looks at the order of
    the rows: of equal differences, the smaller id comes first.
    """
    found = material.headline
    members, who = _pool(material)
    if not len(members):
        return Samples(places=(), rule="Nobody could be compared, so there is nobody to show.")
    ranked = _ranked(found, members, worse=material.worse)
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
            f"{material.where}: those with the largest Δp, the upper quartile, the median, the "
            "lower quartile and the smallest. Of equal differences, the smaller id comes first."
        ),
    )


def _pool(material: Material) -> tuple[NDArray[np.intp], str]:
    """Find those with the strongest verdict that anybody has, and say who they are."""
    found = material.headline
    alone = material.primary[0].count_neighbours
    groups = (
        (found.significant_adjusted, "whose evidence is significant after adjustment"),
        (found.comparison.significant, "whose evidence is significant taken by itself"),
        (
            found.comparison.evidence,
            "with evidence" + (", none of it significant" if alone else ""),
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


def samples_table(material: Material, samples: Samples) -> Table:
    """Give the chosen complainants' rows of the findings."""
    method, _ = material.primary
    rows = [
        Row(
            cells=(
                value(row["id"]),
                label,
                _outcomes(row),
                percent(row["p_control"]),
                percent(row["p_test"]),
                signed(row["delta_p"]),
                _interval(row),
                p_value(row["p_value"]),
                p_value(row["q_value"]),
                str(row["verdict"]),
            )
        )
        for label, row in _rows(material, samples)
    ]
    alpha = material.plan.settings.alpha
    known = material.headline.outcome_cf is not None
    return Table(
        name="samples-table",
        caption=f"Sample complainants, {material.where}",
        columns=(
            Column(label="Complainant", numeric=False),
            Column(label="Chosen as", numeric=False),
            Column(label="Outcome", numeric=False),
            Column(label="Control refused"),
            Column(label="Test refused"),
            Column(label="Δp"),
            Column(label=f"{1 - 2 * alpha:.0%} interval"),
            Column(label="p"),
            Column(label="q"),
            Column(label="Verdict", numeric=False),
        ),
        rows=tuple(rows),
        note=(
            ("Outcome: on record → of the counterfactual. " if known else "")
            + (
                f"Interval: {alpha:.1%} of error on each side, given {_given(material)}. "
                "q: the p-value adjusted for the number of complainants."
                if method.count_neighbours
                else ""
            )
        ),
    )


def _outcomes(row: dict[str, Any]) -> str:
    """Give the outcome on record, and that of the counterfactual where somebody decided it."""
    if row["outcome_cf"] is None:
        return value(row["outcome"])
    return f"{value(row['outcome'])} → {value(row['outcome_cf'])}"


def _given(material: Material) -> str:
    needs = material.primary[0].needs_counterfactual
    return material.source_of_counterfactuals if needs else "the attributes compared on"


def _interval(row: dict[str, Any]) -> str:
    if np.isnan(row["ci_low"]) or np.isnan(row["ci_high"]):
        return "–"
    return f"{signed(row['ci_low'])} to {signed(row['ci_high'])}"


def _rows(material: Material, samples: Samples) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the chosen complainants' rows of the headline's findings."""
    columns = material.headline.columns()
    for label, place in samples.places:
        row = {name: values[place] for name, values in columns.items()}
        yield (
            label,
            {
                name: each.item() if isinstance(each, np.generic) else each
                for name, each in row.items()
            },
        )


def samples_by_method(material: Material, samples: Samples) -> Table:
    """Give the chosen complainants' Δp under every method at the headline's k."""
    k = material.primary[1]
    found = {method.title: material.findings(method.name, k) for method in material.methods}
    ids = material.headline.ids
    return Table(
        name="samples-by-method",
        caption=f"The same complainants by method: Δp, k = {k}",
        columns=(
            Column(label="Complainant", numeric=False),
            *(Column(label=title) for title in found),
            Column(label="Methods with evidence"),
        ),
        rows=tuple(
            Row(
                cells=(
                    value(ids[place]),
                    *(signed(float(each.comparison.delta_p[place])) for each in found.values()),
                    count(sum(bool(each.comparison.evidence[place]) for each in found.values())),
                )
            )
            for _, place in samples.places
        ),
    )


def explain_samples(material: Material, samples: Samples) -> list[str]:
    """Say in a sentence what was found about the first of them with each verdict."""
    method, k = material.plan.settings.primary
    terms = explanation_context(material.plan)
    first: dict[str, dict[str, Any]] = {}
    for _, row in _rows(material, samples):
        first.setdefault(row["verdict"], row)
    return [explain(row, method, k, terms) for row in first.values()]
