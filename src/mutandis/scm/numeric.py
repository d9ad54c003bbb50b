"""Equations of numbers: additive noise, links, and predictions that are rounded and bounded.

Every family whose noise is added, to the value or to its logarithm, abducts and predicts in the
same way; only what its causes explain is worked out differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mutandis.data.columns import Numbers, frozen
from mutandis.errors import EquationError
from mutandis.scm.family import DeclaredEquation, Predicted, numbers_of, read_choice

if TYPE_CHECKING:
    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.scm.family import Rng


Bounds = tuple[float | None, float | None]
Levels = tuple[float, ...]
LinkName = Literal["identity", "log"]

# float64 carries no more decimal digits than these
_DIGITS = 15


@dataclass(frozen=True, slots=True, init=False, repr=False)
class AdditiveEquation(DeclaredEquation):
    """What equations with additive noise declare beside their causes."""

    link: LinkName
    bounds: Bounds | None
    decimals: int | None
    levels: Levels | None

    def _set_numeric(
        self,
        *,
        link: object = "identity",
        bounds: object = None,
        decimals: object = None,
        levels: object = None,
    ) -> None:
        read = read_bounds(bounds)
        self._set(
            link=read_choice("link", link, get_args(LinkName)),
            bounds=read,
            decimals=_read_decimals(decimals),
            levels=read_levels(levels, bounds=read),
        )

    @property
    def numeric(self) -> dict[str, Any]:
        """What the fitted equation takes over from the declared one."""
        names = ("link", "bounds", "decimals", "levels")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveNoise:
    """What abduction finds out about each row of an equation with additive noise."""

    # the two parts whose difference the noise is, rather than the difference: a row whose causes
    # do not change can then be given back its factual value to the last bit
    factual: Floats
    explained: Floats
    """What the equation says of the factual causes: f(pa), or log f(pa) under the log link."""
    link: LinkName = "identity"
    """Whether the noise is added to the value or to its logarithm."""

    @property
    def residual(self) -> Floats:
        """U = x - f(pa), or log x - log f(pa): all that the causes do not explain."""
        return linked(self.factual, self.link) - self.explained

    def carried_to(self, explained: Floats) -> Floats:
        """Give each row's value under causes that explain this much: x + (f(pa') - f(pa))."""
        # f(pa') + U in exact arithmetic; in floating point this alone leaves a value untouched,
        # to the last bit, when the causes do not change
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            change = explained - self.explained
            if self.link == "log":
                return self.factual * np.exp(change)
            moved = self.factual + change
        # x + 0.0 is x in every bit, except that it would turn -0.0 into 0.0
        np.copyto(moved, self.factual, where=change == 0.0)
        return moved


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedAdditiveEquation:
    """A fitted equation X = f(pa) + U, or log X = f(pa) + U."""

    link: LinkName = "identity"
    bounds: Bounds | None = None
    decimals: int | None = None
    levels: Levels | None = None

    def explained(self, parents: Columns, *, rows: int) -> Floats:
        """Compute f(pa), or log f(pa) under the log link, row by row."""
        raise NotImplementedError

    def abduct(
        self,
        child: Column,
        parents: Columns,
        *,
        rng: Rng = None,  # noqa: ARG002 - the facts determine the noise
    ) -> AdditiveNoise:
        """Recover U = x - f(pa), kept as the pair of x and f(pa)."""
        explained = self.explained(parents, rows=len(child))
        factual = numbers_of(child)
        linked(factual, self.link)  # refuses values that the link cannot have
        return AdditiveNoise(factual=factual, explained=frozen(explained), link=self.link)

    def predict(self, parents: Columns, noise: AdditiveNoise) -> Predicted:
        """Move each factual value by what the change in its causes explains, and finish it."""
        return self.finished(noise.carried_to(self.explained(parents, rows=len(noise.factual))))

    def finished(self, values: Floats) -> Predicted:
        return finish(values, decimals=self.decimals, bounds=self.bounds, levels=self.levels)


def linked(values: Floats, link: LinkName) -> Floats:
    """Put values on the scale on which the noise is added."""
    if link == "identity":
        return values
    refused = int((values <= 0.0).sum())
    if refused:
        raise EquationError(
            f"the log link needs values above 0, but {refused} of {len(values)} rows have a value "
            "of 0 or below. Use link='identity', or leave these rows out."
        )
    return np.log(values)


def finish(
    values: Floats,
    *,
    decimals: int | None = None,
    bounds: Bounds | None = None,
    levels: Levels | None = None,
) -> Predicted:
    """Round half to even, then move to the nearest level (of two, the lower), then cut off."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = values if decimals is None else np.round(values, decimals)
    require_finite(rounded)
    beyond = np.zeros(len(rounded), dtype=np.bool_)
    finished = rounded
    if levels is not None:
        beyond = (rounded < levels[0]) | (rounded > levels[-1])
        steps = np.array(levels)
        # half of each rather than half of the sum, which may be too large
        middles = steps[:-1] / 2 + steps[1:] / 2
        finished = steps[np.searchsorted(middles, rounded, side="left")]
    low, high = bounds or (None, None)
    beyond |= finished < (-np.inf if low is None else low)
    beyond |= finished > (np.inf if high is None else high)
    clipped = int(np.count_nonzero(beyond))
    finished = np.clip(finished, low, high) if clipped else finished
    return Predicted(column=Numbers(frozen(finished)), clipped=clipped)


def require_finite(values: Floats) -> None:
    lost = int((~np.isfinite(values)).sum())
    if lost:
        raise EquationError(
            f"{lost} of {len(values)} predicted values are not finite numbers. The causes were "
            "moved further than the equation can follow: check their units, or use the identity "
            "link instead of the log link."
        )


def read_bounds(bounds: object) -> Bounds | None:
    if bounds is None:
        return None
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise EquationError(
            "bounds must be a pair of the lowest and the highest value. "
            "Write None where there is no limit: bounds=(0, None)."
        )
    low, high = (
        bound
        if bound is None
        else _read_finite(
            bound,
            f"A bound is {bound!r}. Bounds are finite numbers, or None where there is no limit.",
        )
        for bound in bounds
    )
    if low is not None and high is not None and low >= high:
        raise EquationError(
            f"bounds=({low}, {high}) leave no room: the lowest value comes first and is below the "
            "highest. Exchange or widen them."
        )
    return None if low is None and high is None else (low, high)


def _read_finite(value: object, message: str) -> float:
    if not isinstance(value, bool) and isinstance(value, Real) and np.isfinite(float(value)):
        return float(value)
    raise EquationError(message)


def _read_decimals(decimals: Any) -> int | None:
    if decimals is None:
        return None
    whole = isinstance(decimals, int | np.integer) and not isinstance(decimals, bool)
    if not whole or abs(int(decimals)) > _DIGITS:
        raise EquationError(
            f"decimals={decimals!r} is not a whole number from -{_DIGITS} to {_DIGITS}. "
            "Leave decimals out to keep predictions as they are."
        )
    return int(decimals)


def read_levels(levels: object, *, bounds: Bounds | None = None) -> Levels | None:
    if levels is None:
        return None
    # a set has no order, and the letters of a text are not numbers
    if isinstance(levels, str | bytes | AbstractSet | Mapping) or not isinstance(levels, Iterable):
        raise EquationError(
            f"levels are given as {type(levels).__name__}. Give the numbers that the attribute can "
            "take, lowest first: levels=(1, 2, 3)."
        )
    read = tuple(
        _read_finite(
            level,
            f"A level is {level!r}. Levels of an attribute that holds numbers are finite numbers.",
        )
        for level in levels
    )
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
