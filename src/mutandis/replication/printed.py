"""What the paper prints in Tables 1 to 5 (doi 10.1145/3617694.3623222), and what we compute."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from mutandis.replication.eaamo import KS

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from mutandis.replication.eaamo import Tests

Counts: TypeAlias = "Mapping[str, tuple[tuple[int, str], ...]]"
"""By method, the number of cases and their share in per cent at each of `KS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTable:
    """A table of cases per method and k, but for its column k = 0, where only CF is defined."""

    number: int
    run: str
    decimals: int
    cells: Counts

    def ours(self, tests: Tests) -> Counts:
        """Return the same cells as we compute them."""
        found = {key: (int(each["case"].sum()), len(each)) for key, each in tests.items()}
        return {
            method: tuple(
                (cases, str(half_up(100 * cases / people, self.decimals)))
                for cases, people in (found[method, k] for k in KS)
            )
            for method in self.cells
        }


@dataclass(frozen=True, slots=True)
class Case:
    """One complainant of the loan run, CST with centers, k = 15; `significant` is an asterisk."""

    id: int
    p_control: str
    p_test: str
    delta_p: str
    ci_low: str
    ci_high: str
    significant: bool = False


def _as_printed(row: Mapping[Hashable, Any]) -> Case:
    names = ("p_control", "p_test", "delta_p", "ci_low", "ci_high")
    numbers = {name: str(half_up(row[name], 2)) for name in names}
    return Case(id=row["id"], **numbers, significant=bool(row["significant"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTable:
    """A table of single complainants."""

    number: int
    cases: tuple[Case, ...]

    def ours(self, tests: Tests) -> tuple[Case, ...]:
        """Return the same complainants as we compute them."""
        rows = {row["id"]: row for row in tests["cst_with", 15].to_dict("records")}
        return tuple(_as_printed(rows[each.id]) for each in self.cases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A printed cell that differs from ours, and the reason if there is a known one."""

    where: str
    printed: str
    ours: str

    @property
    def reason(self) -> str:
        """Why the printed cell cannot follow from its own data; empty if it could."""
        return _IMPOSSIBLE.get(self.where, "")


def half_up(value: float, decimals: int) -> Decimal:
    """Round half up, as the paper's tables do (.125 becomes .13)."""
    exact = Decimal(repr(float(value)))
    return exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP)


def find_differences(published: Mapping[str, Tests]) -> list[Difference]:
    """List every printed cell that differs from what we compute for its run, by key of the run."""
    return [
        *(found for each in COUNT_TABLES for found in _differing_counts(each, published[each.run])),
        *(found for each in CASE_TABLES for found in _differing_cases(each, published["loan"])),
    ]


COUNT_TABLES = (
    CountTable(
        number=1,
        run="loan",
        decimals=1,
        cells={
            "cst_without": ((288, "16.8"), (313, "18.3"), (342, "20"), (395, "23.1")),
            "st": ((55, "3.2"), (65, "3.8"), (84, "5"), (107, "6.3")),
            "cst_with": ((420, "24.5"), (434, "25.4"), (453, "26.5"), (480, "28")),
            "cf": ((376, "22"), (376, "22"), (376, "22"), (376, "22")),
        },
    ),
    CountTable(
        number=4,
        run="law_race",
        decimals=2,
        cells={
            "cst_without": ((256, "7.3"), (309, "8.81"), (337, "9.61"), (400, "11.41")),
            "st": ((33, "0.94"), (51, "1.45"), (61, "1.74"), (64, "1.83")),
            "cst_with": ((286, "8.16"), (309, "8.81"), (337, "9.61"), (400, "11.41")),
            "cf": ((231, "6.59"), (231, "6.59"), (231, "6.59"), (231, "6.59")),
        },
    ),
    CountTable(
        number=5,
        run="law_gender",
        decimals=2,
        cells={
            "cst_without": ((78, "0.82"), (120, "1.26"), (253, "2.65"), (296, "3.10")),
            "st": ((77, "0.81"), (101, "1.06"), (229, "2.4"), (258, "2.71")),
            "cst_with": ((99, "1.04"), (129, "1.35"), (267, "2.80"), (296, "3.10")),
            "cf": ((56, "0.59"), (56, "0.59"), (56, "0.59"), (56, "0.59")),
        },
    ),
)

CASE_TABLES = (
    CaseTable(
        number=2,
        cases=(
            Case(44, "1.00", "0.00", "1.00", "1.00", "1.00", significant=True),
            Case(55, "0.81", "0.00", "0.81", "0.65", "0.97", significant=True),
            Case(150, "1.00", "0.94", "0.06", "-0.04", "0.16"),
            Case(203, "1.00", "0.88", "0.13", "-0.01", "0.26"),
            Case(218, "0.56", "0.00", "0.56", "0.36", "0.77", significant=True),
        ),
    ),
    CaseTable(
        number=3,
        cases=(
            Case(5, "0.06", "0.0", "0.06", "-0.04", "0.16"),
            Case(147, "0.50", "0.0", "0.5", "0.29", "0.71", significant=True),
            Case(435, "0.38", "0.0", "0.38", "0.18", "0.58", significant=True),
            Case(1958, "0.13", "0.0", "0.13", "-0.01", "0.26"),
            Case(2926, "0.75", "0.0", "0.75", "0.57", "0.93", significant=True),
        ),
    ),
)

_TITLES = {"st": "ST", "cst_without": "CST (w/o)", "cst_with": "CST", "cf": "CF"}
_COLUMNS = ("p_c", "p_t", "Δp", "lower bound", "upper bound", "asterisk")
# however they are computed (docs/adr/0003-errata.md)
_IMPOSSIBLE = {
    "Table 1, ST, k=50, share": "84 of 1,712 is 4.9 %",
    "Table 3, complainant 435, upper bound": "0.375 + 1.645 × 0.121 is 0.574",
}


def _differing_counts(table: CountTable, tests: Tests) -> Iterator[Difference]:
    ours = table.ours(tests)
    for method, row in table.cells.items():
        for k, (cases, share), (own, own_share) in zip(KS, row, ours[method], strict=True):
            where = f"Table {table.number}, {_TITLES[method]}, k={k}"
            if cases != own:
                yield Difference(where=f"{where}, cases", printed=str(cases), ours=str(own))
            if Decimal(share) != Decimal(own_share):
                yield Difference(
                    where=f"{where}, share", printed=f"{share} %", ours=f"{own_share} %"
                )


def _differing_cases(table: CaseTable, tests: Tests) -> Iterator[Difference]:
    for printed, ours in zip(table.cases, table.ours(tests), strict=True):
        cells = zip(_COLUMNS, astuple(printed)[1:], astuple(ours)[1:], strict=True)
        for column, theirs, own in cells:
            if Decimal(theirs) != Decimal(own):
                where = f"Table {table.number}, complainant {printed.id}, {column}"
                yield Difference(where=where, printed=str(theirs), ours=str(own))
