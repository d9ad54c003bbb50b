"""Run the paper's audits and compare every printed cell with what they give."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from mutandis.auditing.plan import audit
from mutandis.published.printed_tables import CASE_TABLES, COUNT_TABLES
from mutandis.published.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mutandis.auditing.audit import Audit
    from mutandis.published.printed_tables import PrintedCaseTable, PrintedCountTable

# cells that cannot follow from their own data, whatever the semantics (docs/adr/0003-errata.md)
_IMPOSSIBLE = {
    "Table 1, ST, k=50, share": "84 of 1,712 is 4.9 %",
    "Table 3, complainant 435, upper bound": "0.375 + 1.645 × 0.121 is 0.574",
}


def half_up(value: float, decimals: int) -> Decimal:
    """Round half up, as the paper's tables do (.125 becomes .13)."""
    return Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountCell:
    """A cell of Tables 1, 4 and 5: printed and ours."""

    method: str
    k: int
    printed: int
    printed_share: Decimal
    cases: int
    share: Decimal
    significant: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """A row of Tables 2 and 3: what is printed, and the same numbers as we get them."""

    id: int
    printed: Mapping[str, Decimal]
    ours: Mapping[str, Decimal]
    printed_significant: bool
    significant: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A printed cell that we do not get, and the reason if there is a known one."""

    where: str
    printed: str
    ours: str
    reason: str

    @property
    def is_known(self) -> bool:
        """Whether the printed cell is known not to follow from its own data."""
        return bool(self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """All audits of the paper, under the publication's semantics and under the definitions."""

    published: Mapping[str, Audit]
    defined: Mapping[str, Audit]

    def differences(self) -> list[Difference]:
        """List every printed cell that the published semantics do not give."""
        found: list[Difference] = []
        for table in COUNT_TABLES:
            found.extend(_count_differences(table, self.published[table.scenario]))
        for cases in CASE_TABLES:
            found.extend(_case_differences(cases, self.published["loan"]))
        return found

    def as_json(self) -> dict[str, dict[str, dict[str, int]]]:
        """Give the published semantics' counts: scenario, k, method, cases."""
        cases: dict[str, dict[str, dict[str, int]]] = {}
        for key, found in self.published.items():
            for row in found.count_records():
                by_k = cases.setdefault(key, {}).setdefault(str(row["k"]), {})
                by_k[row["method"]] = row["cases"]
        return cases


def reproduce(folder: Path) -> Reproduction:
    """Run the three audits twice: as published, and as defined."""
    published, defined = {}, {}
    for scenario in SCENARIOS:
        table = scenario.read(folder)
        published[scenario.key] = audit(table, **scenario.settings, preset="eaamo23")
        defined[scenario.key] = audit(table, **scenario.settings)
    return Reproduction(published=published, defined=defined)


def count_cells(table: PrintedCountTable, found: Audit) -> Iterator[CountCell]:
    """Put a printed table and our counts side by side."""
    counts = {(row["method"], row["k"]): row for row in found.count_records()}
    for method, row in table.cells.items():
        for k, (printed, share) in zip(found.ks, row, strict=True):
            ours = counts[method, k]
            yield CountCell(
                method=method,
                k=k,
                printed=printed,
                printed_share=Decimal(share),
                cases=ours["cases"],
                share=half_up(100 * ours["cases"] / ours["complainants"], table.decimals),
                significant=ours["significant"],
            )


def case_rows(table: PrintedCaseTable, found: Audit) -> Iterator[CaseRow]:
    """Put the printed complainants and ours side by side: k = 15, centers included."""
    for printed in table.cases:
        ours = found.case(printed.id).result("cst_with", k=15)
        yield CaseRow(
            id=printed.id,
            printed={name: half_up(float(getattr(printed, name)), 2) for name in _WORDS},
            ours={name: half_up(ours[name], 2) for name in _WORDS},
            printed_significant=printed.significant,
            significant=ours["verdict"].startswith("significant"),
        )


_WORDS = {
    "p_control": "p_c",
    "p_test": "p_t",
    "delta_p": "Δp",
    "ci_low": "lower bound",
    "ci_high": "upper bound",
}


def _count_differences(table: PrintedCountTable, found: Audit) -> Iterator[Difference]:
    titles = {"st": "ST", "cst_without": "CST (w/o)", "cst_with": "CST", "cf": "CF"}
    for cell in count_cells(table, found):
        where = f"Table {table.number}, {titles[cell.method]}, k={cell.k}"
        if cell.cases != cell.printed:
            yield _difference(f"{where}, cases", cell.printed, cell.cases)
        if cell.share != cell.printed_share:
            yield _difference(f"{where}, share", f"{cell.printed_share} %", f"{cell.share} %")


def _case_differences(table: PrintedCaseTable, found: Audit) -> Iterator[Difference]:
    for row in case_rows(table, found):
        where = f"Table {table.number}, complainant {row.id}"
        for name, printed in row.printed.items():
            if row.ours[name] != printed:
                yield _difference(f"{where}, {_WORDS[name]}", printed, row.ours[name])
        if row.printed_significant != row.significant:
            yield _difference(f"{where}, asterisk", row.printed_significant, row.significant)


def _difference(where: str, printed: object, ours: object) -> Difference:
    return Difference(
        where=where, printed=str(printed), ours=str(ours), reason=_IMPOSSIBLE.get(where, "")
    )
