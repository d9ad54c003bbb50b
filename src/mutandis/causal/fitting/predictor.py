"""Linear predictors fitted by least squares, without a trace of the order of the rows.

The parts are elsewhere: `ordering` has the canonical order into which a worldview puts rows before
it fits anything, `least_squares` the numerics, `terms` what is fitted. Here a population's columns
become the columns of a design, and the coefficients become terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.causal.equations.interactions import cross
from mutandis.causal.fitting.least_squares import (
    Label,
    Scaled,
    is_constant,
    least_squares,
    listed,
    require_rows,
    solve_centred,
)
from mutandis.causal.fitting.ordering import canonical_order
from mutandis.causal.fitting.terms import LevelShifts, LinearPredictor, Slope
from mutandis.data.columns import Categories
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column

__all__ = [
    "LevelShifts",
    "LinearPredictor",
    "Slope",
    "canonical_order",
    "fit_linear_predictor",
    "least_squares",
    "occurring_levels",
    "require_varying",
]


def fit_linear_predictor(
    response: NDArray[np.float64], parents: Mapping[str, Column], *, interactions: bool = False
) -> LinearPredictor:
    """Fit an intercept and one term a parent by least squares.

    Numeric parents enter linearly, nominal ones as dummies against the first level that occurs.

    Parameters
    ----------
    response
        What the parents are to explain.
    parents
        The columns, in the order in which their terms are to be added up.
    interactions
        Also fit one term for each two parents, from the products of their columns.

    Examples
    --------
    >>> job = Categories(np.array([0, 0, 1, 1], dtype=np.int32), ("clerk", "cook"))
    >>> fitted = fit_linear_predictor(np.array([9.0, 11.0, 14.0, 16.0]), {"Job": job})
    >>> fitted.intercept, dict(fitted.terms[0].shifts)
    (10.0, {'clerk': 0.0, 'cook': 5.0})
    """
    if not len(response):
        require_rows(0, coefficients=1 + len(parents))
    # each parent is looked at once: a worldview reorders a column when it is asked for
    declared = [_Declared.of(name, parents[name]) for name in parents]
    design: list[tuple[Label, Scaled]] = [
        (each.name, column) for each in declared for column in each.columns
    ]
    require_rows(len(response), coefficients=1 + len(design))
    _require_varying([each.name for each in declared if each.is_constant])
    levels = {each.name: each.codes for each in declared if each.levels is not None}
    pairs = combinations(parents, 2) if interactions else ()
    crossed = [cross(pair, parents, levels) for pair in pairs]
    design += [
        (product.parents, Scaled.centred(values))
        for product in crossed
        for values in product.columns
    ]
    require_rows(len(response), coefficients=1 + len(design))
    intercept, coefficients = solve_centred(response, design)
    remaining = iter(coefficients)
    single = [each.term(remaining) for each in declared]
    return LinearPredictor(
        intercept=intercept, terms=(*single, *(product.term(remaining) for product in crossed))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """What is kept of a parent: its columns of the design, and what its term needs to know."""

    name: str
    columns: tuple[Scaled, ...]
    is_constant: bool
    codes: tuple[int, ...]
    levels: tuple[Any, ...] | None

    @classmethod
    def of(cls, name: str, column: Column) -> _Declared:
        codes = occurring_levels({name: column}).get(name, ())
        return cls(
            name=name,
            columns=tuple(Scaled.centred(values) for values in _design_columns(column, codes)),
            is_constant=_is_constant(column, codes),
            codes=codes,
            levels=column.levels if isinstance(column, Categories) else None,
        )

    def term(self, coefficients: Iterator[float]) -> Slope | LevelShifts:
        if self.levels is None:
            return Slope(parent=self.name, slope=next(coefficients))
        shifts = {
            self.levels[code]: next(coefficients) if position else 0.0
            for position, code in enumerate(self.codes)
        }
        return LevelShifts(parent=self.name, shifts=MappingProxyType(shifts))


def occurring_levels(parents: Mapping[str, Column]) -> dict[str, tuple[int, ...]]:
    """Find the codes that occur in each column of names, lowest first.

    Examples
    --------
    >>> job = Categories(np.array([2, 0, 2], dtype=np.int32), ("clerk", "none", "cook"))
    >>> occurring_levels({"Job": job})
    {'Job': (0, 2)}
    """
    return {
        name: tuple(np.flatnonzero(column.counts()).tolist())
        for name, column in parents.items()
        if isinstance(column, Categories)
    }


def require_varying(parents: Mapping[str, Column], levels: Mapping[str, Sequence[int]]) -> None:
    """Refuse parents that are the same in every row: whatever they do, it cannot be seen."""
    constant = [
        name for name, column in parents.items() if _is_constant(column, levels.get(name, ()))
    ]
    _require_varying(constant)


def _is_constant(column: Column, codes: Sequence[int]) -> bool:
    return len(codes) < 2 if isinstance(column, Categories) else is_constant(column.values)


def _require_varying(constant: Sequence[str]) -> None:
    if constant:
        raise EquationError(
            f"{listed(constant)} does not vary from row to row, so no effect of it can be "
            f"estimated. Remove {listed(constant)} from the parents, or fit on a table in which "
            "it varies."
        )


def _design_columns(column: Column, codes: Sequence[int]) -> Iterator[NDArray[np.float64]]:
    if isinstance(column, Categories):
        yield from ((column.codes == code).astype(np.float64) for code in codes[1:])
    else:
        yield column.values
