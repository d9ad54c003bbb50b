"""What the paper prints: Tables 1 to 5 (EAAMO '23, doi 10.1145/3617694.3623222), cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCountTable:
    """A table of cases per method and k: `cells` are (cases, per cent) for k = 15, 30, 50, 100."""

    # left out is its first column, k = 0: no group has 0 members, and only CF is defined there

    number: int
    scenario: str
    decimals: int
    cells: Mapping[str, tuple[tuple[int, str], ...]]


@dataclass(frozen=True, slots=True)
class PrintedCase:
    """A row of Tables 2 and 3: k = 15, search centers included; an asterisk is `significant`."""

    id: int
    p_control: str
    p_test: str
    delta_p: str
    ci_low: str
    ci_high: str
    significant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCaseTable:
    """A table of single complainants of the loan run."""

    number: int
    cases: tuple[PrintedCase, ...]


COUNT_TABLES = (
    PrintedCountTable(
        number=1,
        scenario="loan",
        decimals=1,
        cells={
            "cst_without": ((288, "16.8"), (313, "18.3"), (342, "20"), (395, "23.1")),
            "st": ((55, "3.2"), (65, "3.8"), (84, "5"), (107, "6.3")),
            "cst_with": ((420, "24.5"), (434, "25.4"), (453, "26.5"), (480, "28")),
            "cf": ((376, "22"), (376, "22"), (376, "22"), (376, "22")),
        },
    ),
    PrintedCountTable(
        number=4,
        scenario="law_race",
        decimals=2,
        cells={
            "cst_without": ((256, "7.3"), (309, "8.81"), (337, "9.61"), (400, "11.41")),
            "st": ((33, "0.94"), (51, "1.45"), (61, "1.74"), (64, "1.83")),
            "cst_with": ((286, "8.16"), (309, "8.81"), (337, "9.61"), (400, "11.41")),
            "cf": ((231, "6.59"), (231, "6.59"), (231, "6.59"), (231, "6.59")),
        },
    ),
    PrintedCountTable(
        number=5,
        scenario="law_gender",
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
    PrintedCaseTable(
        number=2,
        cases=(
            PrintedCase(44, "1.00", "0.00", "1.00", "1.00", "1.00", significant=True),
            PrintedCase(55, "0.81", "0.00", "0.81", "0.65", "0.97", significant=True),
            PrintedCase(150, "1.00", "0.94", "0.06", "-0.04", "0.16"),
            PrintedCase(203, "1.00", "0.88", "0.13", "-0.01", "0.26"),
            PrintedCase(218, "0.56", "0.00", "0.56", "0.36", "0.77", significant=True),
        ),
    ),
    PrintedCaseTable(
        number=3,
        cases=(
            PrintedCase(5, "0.06", "0.0", "0.06", "-0.04", "0.16"),
            PrintedCase(147, "0.50", "0.0", "0.5", "0.29", "0.71", significant=True),
            PrintedCase(435, "0.38", "0.0", "0.38", "0.18", "0.58", significant=True),
            PrintedCase(1958, "0.13", "0.0", "0.13", "-0.01", "0.26"),
            PrintedCase(2926, "0.75", "0.0", "0.75", "0.57", "0.93", significant=True),
        ),
    ),
)
