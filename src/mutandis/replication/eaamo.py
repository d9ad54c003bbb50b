"""The published runs, EAAMO '23 and its journal extension (JAIR 2025), in NumPy and pandas.

The printed numbers depart from the paper's definitions in several ways, and this module repeats
all of them (docs/adr/0003-errata.md lists and explains them):

* equations: some values and residuals were rounded on the way to the counterfactual;
* scale: z-scores were fitted on D and on D^CF separately;
* groups: ties were broken by row number; the complainant was removed from the k + 1 nearest rows
  if found among them, and otherwise all k + 1 were kept;
* evidence: Δp and the lower bound of its interval were rounded to three decimals before they were
  compared with 0.

The data is not part of this package. It is read from a folder that the user names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from mutandis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Rows: TypeAlias = NDArray[np.intp]
    Bools: TypeAlias = NDArray[np.bool_]

KS = (15, 30, 50, 100)
"""The group sizes of EAAMO '23."""

EXTENDED_KS = (*KS, 250)
"""The group sizes of the journal extension."""

METHODS = ("st", "cst_without", "cst_with", "cf")
"""The methods of both publications."""

Tests: TypeAlias = "dict[tuple[str, int], pd.DataFrame]"
"""By method and k, a table with a row for each complainant."""

_STATUS = "status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """A linear equation, with the rounding that the publication applied to its attribute."""

    parents: tuple[str, ...]
    decimals: int  # of the counterfactual, rounded half to even before the next equation uses it
    bounds: tuple[float, float] | None = None  # of the counterfactual
    factual_decimals: int | None = None  # to which the attribute was rounded for the equations only
    residual_decimals: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A published run: its files, who is compared with whom, the equations and the rule.

    People were matched on the nominal attributes and on the attributes that have an equation.
    """

    key: str
    title: str
    file: str
    counterfactual_file: str
    outcome: str
    negative: int
    protected: str
    value: str | int
    reference: str | int
    equations: Mapping[str, Equation]
    rule: str
    nominal: tuple[str, ...] = ()

    def read(self, folder: Path) -> pd.DataFrame:
        """Read the table of decisions."""
        table = _read(folder, self.file)
        if self.outcome not in table:
            table[self.outcome] = self.decide(table).astype(int)
        if self.protected == _STATUS:
            both = (table["race_nonwhite"] == "NonWhite") & (table["sex"] == "Female")
            table[_STATUS] = np.where(both, "non-white woman", "other")
        return table

    def decide(self, table: pd.DataFrame) -> Bools:
        """Apply the rule: true is favourable."""
        return np.asarray(table.eval(self.rule), dtype=np.bool_)

    def read_counterfactuals(self, folder: Path) -> pd.DataFrame:
        """Read the published counterfactuals, which have the rows of the table."""
        # the law school files have 8 names over 9 fields: the first field is a row name
        table = _read(folder, self.counterfactual_file).reset_index(drop=True)
        if "scf_LSAT" not in table:
            return table
        named = table.rename(columns={"scf_LSAT": "LSAT", "scf_UGPA": "UGPA", "Sex": "sex"})
        return named[["LSAT", "UGPA", "sex"]]

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `mutandis.audit` for the same question under the definitions."""
        from mutandis.data.protection import Protection
        from mutandis.scm import Linear, Worldview

        equations = {
            name: Linear(*each.parents, decimals=each.decimals, bounds=each.bounds)
            for name, each in self.equations.items()
        }
        return {
            "outcome": self.outcome,
            "negative": self.negative,
            "protected": Protection(self.protected, value=self.value, reference=self.reference),
            "attributes": {
                **dict.fromkeys(self.nominal, "nominal"),
                **dict.fromkeys(self.equations, "continuous"),
            },
            "worldview": Worldview(equations),
            "decision": self.rule,
            "ks": KS,
        }


def _read(folder: Path, name: str) -> pd.DataFrame:
    path = folder / name
    if not path.is_file():
        raise InputError(
            f"The data folder has no file {name!r}. Name the folder that holds the published "
            "tables: mutandis reproduce --data FOLDER."
        )
    return pd.read_csv(path, sep="|")


def _law_school(*parents: str) -> dict[str, Equation]:
    return {
        "LSAT": Equation(parents=parents, decimals=3, bounds=(10, 48), factual_decimals=0),
        "UGPA": Equation(parents=parents, decimals=3, bounds=(0, 4)),
    }


_LAW: dict[str, Any] = {
    "file": "law_school.csv",
    "outcome": "admitted",
    "negative": 0,
    "rule": "0.6 * UGPA + 0.4 * LSAT >= 20.8",
}

RUNS = (
    Run(
        key="loan",
        title="Loan applications, by gender",
        file="loan_application.csv",
        counterfactual_file="loan_application_do_male.csv",
        outcome="LoanApproval",
        negative=-1,
        protected="Gender",
        value=1,
        reference=0,
        equations={
            "AnnualSalary": Equation(parents=("Gender",), decimals=2, residual_decimals=2),
            "AccountBalance": Equation(
                parents=("AnnualSalary", "Gender"), decimals=2, residual_decimals=2
            ),
        },
        rule="AnnualSalary + 5 * AccountBalance > 225000",
    ),
    Run(
        key="law_race",
        title="Law school admissions, by race",
        counterfactual_file="law_school_do_white.csv",
        protected="race_nonwhite",
        value="NonWhite",
        reference="White",
        equations=_law_school("sex", "race_nonwhite"),
        nominal=("sex",),  # the run by gender did not match on race
        **_LAW,
    ),
    Run(
        key="law_gender",
        title="Law school admissions, by gender",
        counterfactual_file="law_school_do_male.csv",
        protected="sex",
        value="Female",
        reference="Male",
        equations=_law_school("sex", "race_nonwhite"),
        **_LAW,
    ),
)
"""The runs of EAAMO '23, in the order of its tables."""

INTERSECTION = Run(
    key="law_intersection",
    title="Law school admissions, non-white women",
    counterfactual_file="law_school_do_male.csv",
    protected=_STATUS,
    value="non-white woman",
    reference="other",
    equations=_law_school(_STATUS),
    **_LAW,
)
"""The intersectional run of the journal extension, with its single regressor."""


def find_counterfactuals(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """Compute D^CF: all rows have the reference value, and the equations move what it causes."""
    moved = table.copy()
    moved[run.protected] = run.reference
    for name, equation in run.equations.items():
        factual = _rounded(table[name].to_numpy(dtype=np.float64), equation.factual_decimals)
        design = _design(table, equation.parents, like=table)
        coefficients = np.linalg.lstsq(design, factual)[0]
        residual = _rounded(factual - design @ coefficients, equation.residual_decimals)
        predicted = _design(moved, equation.parents, like=table) @ coefficients
        values = np.round(predicted + residual, equation.decimals)
        moved[name] = values if equation.bounds is None else values.clip(*equation.bounds)
    return moved


def _design(table: pd.DataFrame, parents: Sequence[str], *, like: pd.DataFrame) -> Floats:
    """Return an intercept and the parents; a name is 1 where it is that of the first row."""
    columns = [np.ones(len(table))]
    for parent in parents:
        column, factual = table[parent], like[parent]
        is_number = pd.api.types.is_numeric_dtype(factual)
        columns.append((column if is_number else column == factual.iloc[0]).to_numpy(np.float64))
    return np.column_stack(columns)


def _rounded(values: Floats, decimals: int | None) -> Floats:
    return values if decimals is None else np.round(values, decimals)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nearest:
    """The nearest rows of each complainant, by distance and then by larger row number."""

    own: Rows
    rows: Rows
    distance: Floats

    def first(self, places: int) -> Bools:
        return np.broadcast_to(np.arange(self.rows.shape[1]) < places, self.rows.shape)


def _find_nearest(
    centers: Floats, everyone: Floats, *, nominal: int, own: Rows, space: Rows, width: int
) -> _Nearest:
    """Find the nearest rows of each complainant; equal complainants are searched once."""
    # from larger to smaller row numbers, so that a stable sort breaks ties as published
    space, width = space[::-1], min(width, len(space))
    _, first, same = np.unique(centers[:, own], axis=1, return_index=True, return_inverse=True)
    found, distances = np.empty((len(first), width), np.intp), np.empty((len(first), width))
    for query, row in enumerate(own[first]):
        # mismatches first, then differences in column order: the last bits depend on it
        distance = np.zeros(len(space))
        for place, (center, column) in enumerate(zip(centers[:, row], everyone, strict=True)):
            apart = column[space] - center
            distance += apart != 0 if place < nominal else np.abs(apart)
        near = np.flatnonzero(distance <= np.partition(distance, width - 1)[width - 1])
        chosen = near[np.argsort(distance[near], kind="stable")[:width]]
        found[query], distances[query] = space[chosen], distance[chosen]
    return _Nearest(own=own[:, None], rows=found[same], distance=distances[same])


def _place(run: Run, table: pd.DataFrame) -> Floats:
    """Return codes of nominal attributes and z-scores of this world, a row per attribute."""
    places: list[Any] = [pd.factorize(table[name])[0] for name in run.nominal]
    for name in run.equations:
        # each column by itself: another order of summation changes the last bits and so the ties
        values = table[name].to_numpy(dtype=np.float64)
        places.append((values - values.mean()) / (values.std() or 1.0))
    return np.array(places, dtype=np.float64) + 0.0  # the two zeros become one


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups:
    """What the groups of all methods are counted from."""

    control: _Nearest
    factual: _Nearest
    counterfactual: _Nearest
    refused: Bools
    refused_cf: Bools

    def count(self, method: str, k: int) -> tuple[Rows, Rows, Rows, Rows]:
        """Count refusals and sizes of the control and the test groups of one method."""
        if method == "cf":
            own, one = self.control.own[:, 0], np.ones(len(self.control.own), dtype=np.intp)
            return self.refused[own] * one, one, self.refused_cf[own] * one, one
        near = self.control.first(k + 1)
        if method == "cst_with":
            return *self._sum(self.control, near), *self._with_center(k)
        control = self._sum(self.control, near & (self.control.rows != self.control.own))
        test = self.factual if method == "st" else self.counterfactual
        return *control, *self._sum(test, test.first(k))

    def _sum(self, groups: _Nearest, taken: Bools) -> tuple[Rows, Rows]:
        return (self.refused[groups.rows] & taken).sum(axis=1), taken.sum(axis=1)

    def _with_center(self, k: int) -> tuple[Rows, Rows]:
        """Let the counterfactual compete for k + 1 places, under the row number of its person."""
        around = self.counterfactual
        ahead = ((around.distance == 0) & (around.rows > around.own)).sum(axis=1)
        joins = ahead <= k
        refused, size = self._sum(around, around.first(k) | (around.first(k + 1) & ~joins[:, None]))
        return refused + (joins & self.refused_cf[around.own[:, 0]]), size + joins


def compare(
    run: Run,
    table: pd.DataFrame,
    *,
    ks: Sequence[int] = KS,
    alpha: float = 0.05,
    direction: Literal["negative", "positive"] = "negative",
) -> Tests:
    """Compute one published run, without looking at any definition of the core.

    By method and k, a table of the complainants: ``id`` (the row), ``p_control``, ``p_test``,
    ``n_control``, ``n_test``, ``delta_p``, ``ci_low``, ``ci_high``, ``case``, ``significant``.
    """
    moved = find_counterfactuals(run, table)
    complainants = np.flatnonzero(table[run.protected] == run.value)
    reference = np.flatnonzero(table[run.protected] == run.reference)
    facts, others = _place(run, table), _place(run, moved)
    near = partial(_find_nearest, nominal=len(run.nominal), own=complainants, width=max(ks) + 1)
    groups = _Groups(
        control=near(facts, facts, space=complainants),
        factual=near(facts, facts, space=reference),
        counterfactual=near(others, facts, space=reference),
        refused=(table[run.outcome] == run.negative).to_numpy(),
        refused_cf=~run.decide(moved),
    )
    worse = 1 if direction == "negative" else -1
    return {
        (method, k): compare_shares(*groups.count(method, k), alpha=alpha, worse=worse).assign(
            id=complainants
        )
        for method in METHODS
        for k in ks
    }


def compare_multiple(
    runs: Sequence[Run], table: pd.DataFrame, *, ks: Sequence[int] = KS, alpha: float = 0.05
) -> Tests:
    """Compute multiple discrimination as the extension did: each ground at alpha / grounds.

    By method and k, a table of the complainants of all grounds: ``id``, ``case``, ``significant``.
    """
    grounds = [compare(run, table, ks=ks, alpha=alpha / len(runs)) for run in runs]
    joined = {}
    for asked in grounds[0]:
        found = [each[asked].set_index("id")[["case", "significant"]] for each in grounds]
        everywhere = found[0].loc[sorted(set.intersection(*(set(each.index) for each in found)))]
        for each in found[1:]:
            everywhere &= each.loc[everywhere.index]
        joined[asked] = everywhere.reset_index()
    return joined


def compare_shares(
    refused: Rows, n_control: Rows, refused_test: Rows, n_test: Rows, *, alpha: float, worse: int
) -> pd.DataFrame:
    """Decide evidence and significance after rounding; Wald's interval, with z rounded too."""
    p_control, p_test = refused / n_control, refused_test / n_test
    delta = p_control - p_test
    z = round(NormalDist().inv_cdf(1 - alpha), 3)
    variance = p_control * (1 - p_control) / n_control + p_test * (1 - p_test) / n_test
    margin = np.where(n_control == 1, np.nan, z * np.sqrt(variance))
    case = np.round(worse * delta, 3) > 0
    return pd.DataFrame(
        {
            "p_control": p_control,
            "p_test": p_test,
            "n_control": n_control,
            "n_test": n_test,
            "delta_p": delta,
            "ci_low": delta - margin,
            "ci_high": delta + margin,
            "case": case,
            "significant": case & (np.round(worse * delta - margin, 3) > 0),
        }
    )
