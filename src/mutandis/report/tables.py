"""The tables of a report: counts, verdicts, differences, agreement, refusals in both worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.evidence.agreement import Agreement
from mutandis.evidence.findings import Verdict
from mutandis.report.context import compared
from mutandis.report.formatting import count, percent, signed
from mutandis.report.html import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from mutandis.evidence.findings import Findings
    from mutandis.report.context import Material

__all__ = [
    "agreement_of",
    "agreement_table",
    "counts_table",
    "differences_table",
    "draws_table",
    "rates_table",
    "record_table",
    "strata_table",
    "sweep_records",
    "verdicts_table",
]

# more group sizes than these belong in a file, not on a page
_MOST_KS = 12
_VERDICTS = {
    Verdict.NO_EVIDENCE: "no evidence",
    Verdict.EVIDENCE: "evidence",
    Verdict.SIGNIFICANT: "significant",
    Verdict.SIGNIFICANT_ADJUSTED: "significant, adjusted",
    Verdict.INSUFFICIENT: "insufficient",
}
_STAY = ((1.0, "under every draw"), (0.95, "under 95% or more"), (0.5, "under half or more"))


def shown_ks(material: Material) -> tuple[int, ...]:
    """Choose the group sizes that a table shows: all, or the headline's and some over the range."""
    ks = material.plan.settings.ks
    if len(ks) <= _MOST_KS:
        return ks
    places = np.linspace(0, len(ks) - 1, _MOST_KS).round().astype(int).tolist()
    return tuple(sorted({ks[place] for place in places} | {material.primary[1]}))


def counts_table(material: Material) -> Table:
    """Give the counts of every method and k."""
    ks = shown_ks(material)
    left_out = len(material.plan.settings.ks) - len(ks)
    rows = []
    for method in material.methods:
        for k in ks:
            found = material.findings(method.name, k)
            row = found.counts()
            tested = method.count_neighbours
            rows.append(
                Row(
                    cells=(
                        method.title,
                        count(k),
                        count(row["cases"]),
                        percent(row["share"]),
                        count(row["cases_refused"]),
                        count(row["significant"]) if tested else "–",
                        percent(row["significant_share"]) if tested else "–",
                        count(row["significant_adjusted"]) if _adjusted(material, tested) else "–",
                        signed(mean_delta_p(found)),
                    ),
                    primary=(method.name, k) == material.plan.settings.primary,
                    start=k == ks[0],
                )
            )
    note = "“Of them refused”: cases whose own outcome on record was negative. "
    note += "The shaded row is the headline, fixed before the run. "
    note += (
        "CF is a comparison of two outcomes, to which no test applies." if _has_cf(material) else ""
    )
    note += (
        f" {left_out} further group sizes were run; the table of counts has them all."
        if left_out
        else ""
    )
    return Table(
        name="counts",
        caption="Complainants with evidence, by method and group size k",
        aside=f"of {count(len(material.headline))} complainants",
        columns=(
            Column(label="Method", numeric=False),
            Column(label="k"),
            Column(label="Cases"),
            Column(label="Share"),
            Column(label="Of them refused"),
            Column(label="Significant"),
            Column(label="Share"),
            Column(label="After adjustment"),
            Column(label="Mean Δp"),
        ),
        rows=tuple(rows),
        note=note.strip(),
    )


def _adjusted(material: Material, tested: bool) -> bool:  # noqa: FBT001
    return tested and material.plan.settings.adjust != "none"


def _has_cf(material: Material) -> bool:
    return any(not method.count_neighbours for method in material.methods)


def mean_delta_p(found: Findings) -> float:
    """Average Δp over those who could be compared; NaN if nobody could."""
    delta_p = found.comparison.delta_p[compared(found)]
    return float(delta_p.mean()) if len(delta_p) else float("nan")


def sweep_records(material: Material) -> list[dict[str, Any]]:
    """Give the share of cases and the mean Δp for every method and every k that was run."""
    return [
        {
            "method": method.name,
            "k": k,
            "share": material.findings(method.name, k).counts()["share"],
            "mean_delta_p": mean_delta_p(material.findings(method.name, k)),
        }
        for method in material.methods
        for k in material.plan.settings.ks
    ]


def verdicts_table(material: Material) -> Table:
    """Count the verdicts of every method at the headline's k."""
    k = material.primary[1]
    counts = {
        method.title: _count_verdicts(material.findings(method.name, k))
        for method in material.methods
    }
    present = [
        verdict
        for verdict in Verdict
        if verdict is not Verdict.INSUFFICIENT or any(each[verdict] for each in counts.values())
    ]
    return Table(
        name="verdicts",
        caption=f"Verdicts at k = {k}",
        aside="each complainant has exactly one verdict for each method",
        columns=(
            Column(label="Method", numeric=False),
            *(Column(label=_VERDICTS[verdict].capitalize()) for verdict in present),
            Column(label="Complainants"),
        ),
        rows=tuple(
            Row(
                cells=(
                    title,
                    *(count(each[verdict]) for verdict in present),
                    count(sum(each.values())),
                ),
                primary=title == material.primary[0].title,
            )
            for title, each in counts.items()
        ),
    )


def _count_verdicts(found: Findings) -> dict[Verdict, int]:
    given = found.verdicts()
    return {verdict: int((given == verdict.value).sum()) for verdict in Verdict}


def differences_table(material: Material) -> Table:
    """Summarise Δp by method at the headline's k."""
    k = material.primary[1]
    rows = []
    for method in material.methods:
        found = material.findings(method.name, k)
        delta_p = found.comparison.delta_p[compared(found)]
        cells = [signed(each) for each in _summary(delta_p)]
        rows.append(Row(cells=(method.title, count(len(delta_p)), *cells)))
    return Table(
        name="differences",
        caption=f"Δp over the complainants, k = {k}",
        columns=(
            Column(label="Method", numeric=False),
            Column(label="Compared"),
            Column(label="Mean"),
            Column(label="Smallest"),
            Column(label="5% quantile"),
            Column(label="Median"),
            Column(label="95% quantile"),
            Column(label="Largest"),
        ),
        rows=tuple(rows),
    )


def _summary(delta_p: NDArray[np.float64]) -> list[float]:
    if not len(delta_p):
        return [float("nan")] * 6
    quantiles = np.quantile(delta_p, [0.0, 0.05, 0.5, 0.95, 1.0]).tolist()
    return [float(delta_p.mean()), *quantiles]


def agreement_of(material: Material) -> Agreement:
    """Find who is found by which methods at the headline's k."""
    k = material.primary[1]
    found = {method.name: material.findings(method.name, k) for method in material.methods}
    return Agreement.of_methods(found, k=k)


def agreement_table(material: Material, records: Sequence[dict[str, Any]]) -> Table:
    """Give one row for each combination of methods that finds somebody."""
    return Table(
        name="agreement-table",
        caption=f"Who is found by which methods, k = {material.primary[1]}",
        aside="each complainant is counted once",
        columns=(
            Column(label="Found by exactly", numeric=False),
            Column(label="Complainants"),
        ),
        rows=tuple(
            Row(cells=(_finders(material, record), count(record["cases"]))) for record in records
        ),
    )


def _finders(material: Material, record: dict[str, Any]) -> str:
    return ", ".join(method.title for method in material.methods if record[method.name])


def rates_table(material: Material) -> Table:
    """Give the share of negative outcomes by status, in the factual and counterfactual worlds."""
    plan = material.plan
    facts = plan.outcome.is_negative
    worlds = {
        part: result.situation.is_negative_cf
        for part, result in material.parts.items()
        if result.situation.is_negative_cf is not None
    }
    labels = [
        f"Had they been {_reference(material, part)}"
        if part
        else f"Had they been {material.reference}"
        for part in worlds
    ]
    rows = []
    for name, members in _statuses(material):
        cells = [name, count(len(members)), percent(_share(facts, members))]
        cells += [percent(_share(world, members)) for world in worlds.values()]
        rows.append(Row(cells=tuple(cells)))
    return Table(
        name="rates",
        caption=f"Refused ({material.refused}), by status",
        aside="" if worlds else "nobody decided on counterfactuals: one world only",
        columns=(
            Column(label="People", numeric=False),
            Column(label="Rows"),
            Column(label="On record"),
            *(Column(label=label) for label in labels),
        ),
        rows=tuple(rows),
    )


def _reference(material: Material, part: str) -> str:
    each = next(one for one in material.plan.protections if one.attribute == part)
    return f"{each.attribute} = {each.reference}"


def _statuses(material: Material) -> Iterable[tuple[str, NDArray[np.intp]]]:
    """Name the groups of rows: complainants by status, those they are compared with, all."""
    plan = material.plan
    complainants = material.result.situation.complainants
    yield f"Complainants: {material.complainants}", complainants
    if len(plan.strata) > 1:
        for stratum in plan.strata:
            yield f"of them {plan.protection.attribute} = {stratum.label}", stratum.complainants
    tests = [stratum.test for part in material.parts.values() for stratum in part.plan.strata]
    if not material.result.parts:
        yield f"Compared with: {material.others}", np.unique(np.concatenate(tests))
    else:
        for part, result in material.parts.items():
            rows = np.unique(np.concatenate([each.test for each in result.plan.strata]))
            yield f"Compared with, on {part}", rows
    yield "Everybody in the table", np.arange(len(plan.population))


def _share(is_negative: NDArray[np.bool_], rows: NDArray[np.intp]) -> float:
    return float(is_negative[rows].mean()) if len(rows) else float("nan")


def record_table(material: Material) -> Table | None:
    """Count how b() and the record go together; None where nobody was asked."""
    agreement = material.result.with_record
    if agreement is None:
        return None
    column = material.plan.outcome.column
    return Table(
        name="record",
        caption="What b() decides on the rows as they are, beside the record",
        aside=f"rows by {column}",
        columns=(
            Column(label="On record", numeric=False),
            Column(label=f"b() decides {agreement.negative}"),
            Column(label=f"b() decides {agreement.positive}"),
            Column(label="Rows"),
        ),
        rows=tuple(
            Row(
                cells=(
                    f"{column} = {row['recorded']}",
                    count(row["decided_negative"]),
                    count(row["decided_positive"]),
                    count(row["rows"]),
                )
            )
            for row in agreement.records()
        ),
    )


def strata_table(material: Material) -> Table | None:
    """Give the headline's counts by protected value; None where there is one value only."""
    strata = material.plan.strata
    if len(strata) < 2:
        return None
    found, everybody = material.headline, material.result.situation.complainants
    rows = []
    for stratum in strata:
        mine = np.isin(everybody, stratum.complainants)
        cases = int(found.comparison.evidence[mine].sum())
        rows.append(
            Row(
                cells=(
                    f"{material.plan.protection.attribute} = {stratum.label}",
                    count(int(mine.sum())),
                    count(cases),
                    percent(cases / max(int(mine.sum()), 1)),
                    count(int(found.comparison.significant[mine].sum())),
                    count(int(found.significant_adjusted[mine].sum())),
                )
            )
        )
    return Table(
        name="strata",
        caption=f"By protected value, {material.where}",
        columns=(
            Column(label="Status", numeric=False),
            Column(label="Complainants"),
            Column(label="Cases"),
            Column(label="Share"),
            Column(label="Significant"),
            Column(label="After adjustment"),
        ),
        rows=tuple(rows),
    )


def draws_table(material: Material) -> Table | None:
    """Count the headline's cases by how many draws of the counterfactuals keep them."""
    found, draws = material.headline, material.plan.settings.draws
    if found.draw_share is None:
        return None
    shares = found.draw_share[found.comparison.evidence]
    rows = [Row(cells=("all cases", count(len(shares))))]
    rows += [
        Row(cells=(f"of them {label}", count(int((shares >= least).sum()))))
        for least, label in _STAY
    ]
    return Table(
        name="draws",
        caption=f"Cases that remain under other draws, {material.where}",
        aside=f"{draws} draws of what the facts leave open, seed {material.plan.settings.seed}",
        columns=(
            Column(label="Evidence", numeric=False),
            Column(label="Complainants"),
        ),
        rows=tuple(rows),
    )
