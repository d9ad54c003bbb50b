"""Structural equations: how an attribute follows from its causes and its own noise.

An equation is declared (`Equation`), fitted to a population (`FittedEquation`), and then does two
things: it abducts each row's noise from the facts, and predicts each row's value from changed
causes and that noise. What noise looks like is each equation's own affair; the rest of the layer
hands it from `abduct` to `predict` without looking inside.

Where the facts do not determine the noise (a count, a category), `abduct` gives one value that
stands for its posterior, or with a generator one draw from it. Prediction is deterministic given
the noise. Each family has a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from mutandis.data.columns import Categories, Numbers, frozen
from mutandis.errors import EquationError, FormulaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from mutandis.data.columns import Column

__all__ = [
    "Bounds",
    "Equation",
    "FittedEquation",
    "Levels",
    "Predicted",
    "categories_of",
    "coupling_of",
    "finish",
    "naming",
    "numbers_of",
    "read_bounds",
    "read_decimals",
    "read_levels",
    "require_finite",
    "shown_call",
]

Bounds = tuple[float | None, float | None]
Levels = tuple[float, ...]
Noise = TypeVar("Noise")

# float64 carries no more decimal digits than these
_DIGITS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What an equation predicts for each row, and how many values its bounds cut off."""

    column: Column
    clipped: int = 0

    @property
    def values(self) -> NDArray[np.float64]:
        """The predicted numbers."""
        return numbers_of(self.column)


class FittedEquation(Protocol[Noise]):
    """An equation with its coefficients, whatever they are."""

    def abduct(
        self,
        child: Column,
        parents: Mapping[str, Column],
        *,
        rng: np.random.Generator | None = None,
    ) -> Noise:
        """Recover each row's noise from the facts; with `rng`, a draw where facts leave it open."""

    def predict(self, parents: Mapping[str, Column], noise: Noise) -> Predicted:
        """Give each row's value under these causes and the noise that was abducted."""


@runtime_checkable
class Equation(Protocol):
    """An equation as it is declared: its causes, and how it is fitted."""

    @property
    def parents(self) -> tuple[str, ...]:
        """The direct causes, by column name."""

    def fit(self, child: Column, parents: Mapping[str, Column]) -> FittedEquation[Any]:
        """Estimate the equation from factual columns; `parents` holds those it declares.

        A worldview hands over the rows in a canonical order, so that an equation need not mind
        how the table was sorted.
        """


def coupling_of(equation: object) -> str | None:
    """Name the coupling that an equation assumes between the two worlds, if it assumes one.

    Additive noise is determined by the facts. The noise behind a count or a category is not: how
    it carries over to other causes is an assumption that no data can test, and results that rest
    on one are labelled with it.
    """
    coupling = getattr(equation, "coupling", None)
    return coupling if isinstance(coupling, str) else None


def numbers_of(column: Column) -> NDArray[np.float64]:
    """Give a column's numbers, to an equation that explains numbers."""
    if isinstance(column, Numbers):
        return column.values
    raise EquationError(
        "it explains numbers, but the attribute holds names. Use an equation for categories, or "
        "give the column as numbers."
    )


def categories_of(column: Column) -> Categories:
    """Give a column's codes and levels, to an equation that explains categories."""
    if isinstance(column, Categories):
        return column
    raise EquationError(
        "it explains categories, but the attribute holds numbers. Use an equation for numbers, or "
        "declare the attribute as nominal or ordinal."
    )


def finish(
    values: NDArray[np.float64],
    *,
    decimals: int | None = None,
    bounds: Bounds | None = None,
    levels: Levels | None = None,
) -> Predicted:
    """Round predictions half to even, move them to the nearest level, and cut them off at bounds.

    In that order. Of two levels that are as near, the lower is taken. Values beyond the outermost
    levels or beyond the bounds are counted, once each.

    Examples
    --------
    >>> finished = finish(np.array([-0.26, 0.25, 3.99, 4.2]), decimals=1, bounds=(0, 4))
    >>> finished.values.tolist(), finished.clipped
    ([0.0, 0.2, 4.0, 4.0], 2)
    >>> finished = finish(np.array([0.4, 2.5, 7.0]), levels=(1.0, 2.0, 3.0))
    >>> finished.values.tolist(), finished.clipped
    ([1.0, 2.0, 3.0], 2)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = values if decimals is None else np.round(values, decimals)
    require_finite(rounded)
    beyond = np.zeros(len(rounded), dtype=np.bool_)
    finished = rounded
    if levels is not None:
        beyond = (rounded < levels[0]) | (rounded > levels[-1])
        finished = _nearest(rounded, np.array(levels))
    low, high = bounds or (None, None)
    beyond |= finished < (-np.inf if low is None else low)
    beyond |= finished > (np.inf if high is None else high)
    clipped = int(np.count_nonzero(beyond))
    finished = np.clip(finished, low, high) if clipped else finished
    return Predicted(column=Numbers(frozen(finished)), clipped=clipped)


def _nearest(values: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    # half of each rather than half of the sum, which may be too large
    middles = levels[:-1] / 2 + levels[1:] / 2
    chosen: NDArray[np.float64] = levels[np.searchsorted(middles, values, side="left")]
    return chosen


def require_finite(values: NDArray[np.float64]) -> None:
    """Refuse predictions that are infinite or no number at all."""
    lost = int((~np.isfinite(values)).sum())
    if lost:
        raise EquationError(
            f"{lost} of {len(values)} predicted values are not finite numbers. The causes were "
            "moved further than the equation can follow: check their units, or use the identity "
            "link instead of the log link."
        )


@contextmanager
def naming(child: str) -> Iterator[None]:
    """Say of which attribute an equation complains; equations do not know whom they explain."""
    try:
        yield
    except EquationError as error:
        raise EquationError(f"Equation for {child!r}: {error}") from error
    except FormulaError as error:
        raise FormulaError(f"Equation for {child!r}: {error}") from error


def read_bounds(bounds: object) -> Bounds | None:
    """Check declared bounds."""
    if bounds is None:
        return None
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise EquationError(
            "bounds must be a pair of the lowest and the highest value. "
            "Write None where there is no limit: bounds=(0, None)."
        )
    low, high = (_read_bound(bound) for bound in bounds)
    if low is not None and high is not None and low >= high:
        raise EquationError(
            f"bounds=({low}, {high}) leave no room: the lowest value comes first and is below the "
            "highest. Exchange or widen them."
        )
    return None if low is None and high is None else (low, high)


def _read_bound(bound: object) -> float | None:
    if bound is None:
        return None
    if isinstance(bound, bool) or not isinstance(bound, Real) or not np.isfinite(float(bound)):
        raise EquationError(
            f"A bound is {bound!r}. Bounds are finite numbers, or None where there is no limit."
        )
    return float(bound)


def read_decimals(decimals: object) -> int | None:
    """Check declared decimals."""
    if decimals is None:
        return None
    if (
        isinstance(decimals, int | np.integer)
        and not isinstance(decimals, bool)
        and abs(int(decimals)) <= _DIGITS
    ):
        return int(decimals)
    raise EquationError(
        f"decimals={decimals!r} is not a whole number from -{_DIGITS} to {_DIGITS}. "
        "Leave decimals out to keep predictions as they are."
    )


def read_levels(levels: object, *, bounds: Bounds | None = None) -> Levels | None:
    """Check declared levels: ascending numbers, all of them within the declared bounds.

    Examples
    --------
    >>> read_levels(range(1, 4))
    (1.0, 2.0, 3.0)
    """
    if levels is None:
        return None
    # a set has no order, and the letters of a text are no numbers
    if isinstance(levels, str | bytes | AbstractSet | Mapping) or not isinstance(levels, Iterable):
        raise EquationError(
            f"levels are given as {type(levels).__name__}. Give the numbers that the attribute can "
            "take, lowest first: levels=(1, 2, 3)."
        )
    read = tuple(map(_read_level, levels))
    if len(read) < 2:
        raise EquationError(
            f"levels name {len(read)} values. Name at least two, lowest first, or leave levels out."
        )
    if any(lower >= higher for lower, higher in pairwise(read)):
        raise EquationError("levels are not in ascending order. Name each once, lowest first.")
    low, high = bounds or (None, None)
    if (low is not None and read[0] < low) or (high is not None and read[-1] > high):
        raise EquationError(
            f"levels from {read[0]} to {read[-1]} go beyond bounds=({low}, {high}). Widen the "
            "bounds, or leave them out: levels are bounds too."
        )
    return read


def _read_level(level: object) -> float:
    if isinstance(level, bool) or not isinstance(level, Real) or not np.isfinite(float(level)):
        raise EquationError(
            f"A level is {level!r}. Levels of an attribute that holds numbers are finite numbers."
        )
    return float(level)


def shown_call(
    name: str, arguments: Iterable[object], settings: Iterable[tuple[str, object, object]]
) -> str:
    """Show the call that makes an equation, without what is left at its default.

    Parameters
    ----------
    name
        The equation's class.
    arguments
        What the call begins with.
    settings
        Each setting's keyword, its value and its default.

    Examples
    --------
    >>> shown_call("Linear", ["Age"], [("link", "log", "identity"), ("decimals", None, None)])
    "Linear('Age', link='log')"
    """
    shown = [f"{key}={value!r}" for key, value, default in settings if value != default]
    return f"{name}({', '.join([*map(repr, arguments), *shown])})"
