"""Linear predictors fitted by least squares, without a trace of the order of the rows.

The parts are elsewhere: `ordering` has the canonical order into which a worldview puts rows before
it fits anything, `least_squares` the numerics, `terms` what is fitted. Here a population's columns
become the columns of a design, and the coefficients become terms.
"""

from __future__ import annotations

from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from mutandis.causal.equations.interactions import cross
from mutandis.causal.fitting.least_squares import is_constant, least_squares, listed, require_rows
from mutandis.causal.fitting.ordering import canonical_order
from mutandis.causal.fitting.terms import LevelShifts, LinearPredictor, Slope
from mutandis.domain import Categories
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.causal.fitting.least_squares import Label
    from mutandis.domain import Column

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
    levels = occurring_levels(parents)
    design: list[tuple[Label, NDArray[np.float64]]] = [
        (name, values)
        for name, column in parents.items()
        for values in _design_columns(column, levels.get(name, ()))
    ]
    require_rows(len(response), coefficients=1 + len(design))
    require_varying(parents, levels)
    pairs = combinations(parents, 2) if interactions else ()
    crossed = [cross(pair, parents, levels) for pair in pairs]
    design += [(product.parents, values) for product in crossed for values in product.columns]
    require_rows(len(response), coefficients=1 + len(design))
    intercept, coefficients = least_squares(response, design)
    remaining = iter(coefficients)
    single = [
        _term(name, column, levels.get(name, ()), remaining) for name, column in parents.items()
    ]
    return LinearPredictor(
        intercept=intercept, terms=(*single, *(product.term(remaining) for product in crossed))
    )


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
        name
        for name, column in parents.items()
        if (len(levels[name]) < 2 if isinstance(column, Categories) else is_constant(column.values))
    ]
    if constant:
        raise EquationError(
            f"{listed(constant)} does not vary from row to row, so no effect of it can be "
            f"estimated. Remove {listed(constant)} from the parents, or fit on a table in which "
            "it varies."
        )


def _design_columns(column: Column, codes: Sequence[int]) -> list[NDArray[np.float64]]:
    if isinstance(column, Categories):
        return [(column.codes == code).astype(np.float64) for code in codes[1:]]
    return [column.values]


def _term(
    name: str, column: Column, codes: Sequence[int], coefficients: Iterator[float]
) -> Slope | LevelShifts:
    if not isinstance(column, Categories):
        return Slope(parent=name, slope=next(coefficients))
    shifts = {
        column.levels[code]: next(coefficients) if position else 0.0
        for position, code in enumerate(codes)
    }
    return LevelShifts(parent=name, shifts=MappingProxyType(shifts))
