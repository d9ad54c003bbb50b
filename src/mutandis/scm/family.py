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

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from mutandis.data.columns import Categories, Numbers
from mutandis.errors import EquationError, FormulaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column, Columns, Floats


Noise = TypeVar("Noise")
Rng = np.random.Generator | None
"""Where random numbers come from; without it, the one value that stands for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What an equation predicts for each row, and how many values its bounds cut off."""

    column: Column
    clipped: int = 0

    @property
    def values(self) -> Floats:
        return numbers_of(self.column)


class FittedEquation(Protocol[Noise]):
    """An equation with its coefficients, whatever they are."""

    def abduct(self, child: Column, parents: Columns, *, rng: Rng = None) -> Noise:
        """Recover each row's noise from the facts; with `rng`, a draw where facts leave it open."""

    def predict(self, parents: Columns, noise: Noise) -> Predicted:
        """Give each row's value under these causes and the noise that was abducted."""


@runtime_checkable
class Equation(Protocol):
    """An equation as it is declared: its causes, and how it is fitted."""

    @property
    def parents(self) -> tuple[str, ...]:
        """The direct causes, by column name."""

    def fit(self, child: Column, parents: Columns) -> FittedEquation[Any]:
        """Estimate the equation from factual columns, in the canonical order of rows."""


class Declaration:
    """A frozen object that is shown as the call that makes it, without what is at its default."""

    __slots__ = ()

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _argument(self, name: str) -> Any:
        return getattr(self, name)

    def __repr__(self) -> str:
        shown: list[str] = []
        for name, parameter in signature(type(self)).parameters.items():
            value = self._argument(name)
            value = dict(value) if isinstance(value, Mapping) else value
            if parameter.kind is Parameter.VAR_POSITIONAL:
                shown += map(repr, value)
            elif parameter.kind is not Parameter.KEYWORD_ONLY:
                shown.append(repr(value))
            elif value != parameter.default:
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


class DeclaredEquation(Declaration):
    """An equation of one of our families."""

    __slots__ = ()

    def fit(self, child: Column, parents: Columns) -> FittedEquation[Any]:
        """Estimate the equation from factual columns.

        Parameters
        ----------
        child
            The attribute's column.
        parents
            The columns of its causes, by name.
        """
        raise NotImplementedError


def read_choice(setting: str, value: object, allowed: Sequence[str]) -> Any:
    if value in allowed:
        return value
    raise EquationError(f"{setting}={value!r} is not known. Use {' or '.join(map(repr, allowed))}.")


def numbers_of(column: Column) -> Floats:
    if isinstance(column, Numbers):
        return column.values
    raise EquationError(
        "it explains numbers, but the attribute holds names. Use an equation for categories, or "
        "give the column as numbers."
    )


def categories_of(column: Column) -> Categories:
    if isinstance(column, Categories):
        return column
    raise EquationError(
        "it explains categories, but the attribute holds numbers. Use an equation for numbers, or "
        "declare the attribute as nominal or ordinal."
    )


@contextmanager
def naming(child: str) -> Iterator[None]:
    """Add the attribute's name to an equation's errors: equations do not know what they explain."""
    try:
        yield
    except EquationError as error:
        raise EquationError(f"Equation for {child!r}: {error}") from error
    except FormulaError as error:
        raise FormulaError(f"Equation for {child!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class KnownLevels:
    """The levels that occurred when an equation was fitted, in the order it uses."""

    # looked up by value, not by code: another table may have other levels, or another order
    levels: tuple[Any, ...]

    @classmethod
    def of(cls, column: Categories, order: Sequence[Any] | None = None) -> KnownLevels:
        """Take the levels that occur, in the column's order or in the one that is given."""
        present = column.occurring()
        if len(present) < 2:
            raise EquationError(
                "the attribute has the same level in every row, so nothing can be learnt about "
                "it. Remove its equation, or fit on a table in which other levels occur."
            )
        return cls(present if order is None else tuple(one for one in order if one in present))

    def __len__(self) -> int:
        return len(self.levels)

    def places(self, column: Categories) -> NDArray[np.intp]:
        """Translate a column's codes into places among the known levels."""
        place = {level: number for number, level in enumerate(self.levels)}
        places: NDArray[np.intp] = column.look_up(place, otherwise=-1)
        unknown = int((places < 0).sum())
        if unknown:
            raise EquationError(
                f"{unknown} of {len(places)} rows have a level that did not occur when the "
                "equation was fitted, so its probability is unknown. Fit on a table in which "
                "every level occurs, or leave these rows out."
            )
        return places

    def members(self, column: Categories) -> NDArray[np.bool_]:
        """Mark which level each row has, one row of marks per known level."""
        members: NDArray[np.bool_] = self.places(column) == np.arange(len(self))[:, np.newaxis]
        return members

    def column(self, places: NDArray[Any], levels: tuple[Any, ...]) -> Categories:
        """Translate places among the known levels into codes of a column with its own levels."""
        code = {level: number for number, level in enumerate(levels)}
        codes = Categories(places, self.levels).look_up(code, otherwise=-1)
        absent = int((codes < 0).sum())
        if absent:
            raise EquationError(
                f"{absent} of {len(codes)} rows would have a level that the column of this table "
                "does not have. Declare the same levels for both tables: attributes={'grade': "
                "{'kind': 'ordinal', 'levels': [...]}}."
            )
        return Categories(codes, levels)
