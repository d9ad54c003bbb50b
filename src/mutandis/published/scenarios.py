"""The three runs of the paper: their data, how each audit is set up, and what was printed.

The data is not part of this package. It is read from a folder that the user names; the README of
the project says where it was published.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mutandis.data.formula import Formula
from mutandis.data.protection import Protection
from mutandis.errors import InputError
from mutandis.scm import Linear, Worldview

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run of the paper: how to read its table and published counterfactuals from a folder."""

    key: str
    title: str
    read: Callable[[Path], pd.DataFrame]
    settings: Mapping[str, Any]  # the arguments of `mutandis.audit` but for table and preset
    read_counterfactuals: Callable[[Path], pd.DataFrame]


_ADMITTED = "0.6 * UGPA + 0.4 * LSAT >= 20.8"


def _read(folder: Path, name: str, **options: Any) -> pd.DataFrame:
    import pandas as pd

    path = folder / name
    if not path.is_file():
        raise InputError(
            f"The data folder has no file {name!r}. Name the folder that holds the published "
            "tables: mutandis reproduce --data FOLDER."
        )
    table: pd.DataFrame = pd.read_csv(path, sep="|", **options)
    return table


def _read_law(folder: Path) -> pd.DataFrame:
    table = _read(folder, "law_school.csv")
    rule = Formula.parse(_ADMITTED)
    scores = {name: table[name].to_numpy() for name in rule.names}
    return table.assign(admitted=rule.evaluate(scores).astype(int))


def _read_law_counterfactuals(folder: Path, name: str) -> pd.DataFrame:
    # 8 header names over 9 fields: the first field is a row name, as R writes it
    table = _read(folder, name, index_col=0)
    renamed = table[["scf_LSAT", "scf_UGPA", "Sex"]].reset_index(drop=True)
    return renamed.rename(columns={"scf_LSAT": "LSAT", "scf_UGPA": "UGPA", "Sex": "sex"})


_LAW_WORLDVIEW = Worldview(
    {
        "LSAT": Linear("sex", "race_nonwhite", decimals=3, bounds=(10, 48)),
        "UGPA": Linear("sex", "race_nonwhite", decimals=3, bounds=(0, 4)),
    }
)

_LAW = {
    "outcome": "admitted",
    "negative": 0,
    "worldview": _LAW_WORLDVIEW,
    "decision": _ADMITTED,
    "ks": (15, 30, 50, 100),
}

SCENARIOS = (
    Scenario(
        key="loan",
        title="Loan applications, by gender",
        read=partial(_read, name="loan_application.csv"),
        settings={
            "outcome": "LoanApproval",
            "negative": -1,
            "protected": Protection("Gender", value=1, reference=0),
            "attributes": {"AnnualSalary": "continuous", "AccountBalance": "continuous"},
            "worldview": Worldview(
                {
                    "AnnualSalary": Linear("Gender", decimals=2),
                    "AccountBalance": Linear("AnnualSalary", "Gender", decimals=2),
                }
            ),
            "decision": "AnnualSalary + 5 * AccountBalance > 225000",
            "ks": (15, 30, 50, 100),
        },
        read_counterfactuals=partial(_read, name="loan_application_do_male.csv"),
    ),
    Scenario(
        key="law_race",
        title="Law school admissions, by race",
        read=_read_law,
        settings={
            **_LAW,
            "protected": Protection("race_nonwhite", value="NonWhite", reference="White"),
            # the race run matches on gender, the gender run does not match on race: as published
            "attributes": {"sex": "nominal", "LSAT": "continuous", "UGPA": "continuous"},
        },
        read_counterfactuals=partial(_read_law_counterfactuals, name="law_school_do_white.csv"),
    ),
    Scenario(
        key="law_gender",
        title="Law school admissions, by gender",
        read=_read_law,
        settings={
            **_LAW,
            "protected": Protection("sex", value="Female", reference="Male"),
            "attributes": {"LSAT": "continuous", "UGPA": "continuous"},
        },
        read_counterfactuals=partial(_read_law_counterfactuals, name="law_school_do_male.csv"),
    ),
)
"""The paper's runs, in the order of its tables."""
