"""The contract of equation families.

A family declares an equation (`Equation`: its causes and settings), fits it to a population
(`Fitted`), abducts each row's noise from the facts, and predicts each row's value from changed
causes and that noise. What noise looks like is up to the family: it is passed from `abduct` to
`predict` as it is. Where the facts do not determine the noise (a count, a category), `abduct`
returns one value that represents its posterior, or with a generator a draw from it. Prediction is
deterministic given the noise. A family is a module here, and a name among
`config.worldview.FAMILIES` if files can hold it.

*Monotone coupling.* A count or an ordered level is read as X = F⁻¹(u | pa), where u is uniform and
F the distribution that the equation gives to people with the causes pa. The fact x determines u up
to the interval from F(x-1 | pa) to F(x | pa). The point version takes the middle of the interval,
the sampled version a uniform draw from it; under other causes the value is F⁻¹(u | pa'). That u is
the same in both worlds is an assumption which no data can test. In the upper tail u is so near 1
that floating-point numbers cannot distinguish it from 1, so the smaller of u and 1 - u is kept, as
a logarithm, which has no smallest value.

*Residuals.* Additive noise is its own residual. A rank, put on the normal scale, is a randomised
quantile residual (Dunn and Smyth 1996, *Journal of Computational and Graphical Statistics* 5,
236-244), standard normal and independent of the causes if the equation is right. The residuals of a
category are the differences between its indicators and their probabilities.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from mutandis.data.columns import Categories, Numbers, frozen
from mutandis.errors import EquationError, FormulaError
from mutandis.scm.dependence import MOST_GROUPS, SMALLEST_GROUP, dot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from mutandis.data.columns import Column, Columns, Floats

Noise = TypeVar("Noise")
Rng = np.random.Generator | None
"""The source of random numbers; None for the one value that represents all draws."""

MONOTONE = "monotone coupling"
"""The name of the assumption in results."""
DEVIANCE = "deviance explained"
NOT_GIVEN = "its equation does not give its noise as numbers"

# Tails whose logarithms differ by less than this are equal up to rounding and the fitting penalty.
# Small groups have round shares, and the middle of one interval is often the end of another: then
# F(x) = u, and x is the counterfactual.
_EQUAL = 1e-8
# shares of an interval are strictly between 0 and 1
_EDGE = 2.0**-53
# relative range of residuals below which the causes determine the attribute
_NOTHING = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Residuals of an equation, and how much of the attribute it explains."""

    vectors: tuple[Floats, ...] = ()  # one, or one for each category; none if there is no noise
    standard: bool = False  # whether residuals are standard normal if the equation is right
    spreading: bool = True  # whether they spread equally if it is; those of categories do not
    reason: str = ""  # why there are no residuals
    measure: str = "not available"  # the measure of fit
    fit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """Predicted values of all rows, and how many of them were cut off at bounds."""

    column: Column
    clipped: int = 0

    @property
    def values(self) -> Floats:
        return numbers_of(self.column)


class Declaration:
    """A frozen object that is written as the call that makes it, without default values."""

    __slots__ = ()

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _argument(self, name: str) -> Any:
        """Return the value of an argument."""
        return getattr(self, name)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that are not at their default, by name."""
        return {
            name: value
            for name, argument in signature(type(self)).parameters.items()
            if (value := self._argument(name)) != argument.default
        }

    def __repr__(self) -> str:
        shown: list[str] = []
        parameters = signature(type(self)).parameters
        for name, value in self.arguments().items():
            written = dict(value) if isinstance(value, Mapping) else value
            if parameters[name].kind is Parameter.VAR_POSITIONAL:
                shown += map(repr, written)
            elif parameters[name].kind is not Parameter.KEYWORD_ONLY:
                shown.append(repr(written))
            else:
                shown.append(f"{name}={written!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


class Equation(Declaration):
    """An equation as declared: causes and settings, before it is fitted.

    Subclasses are frozen dataclasses whose fields hold the arguments that they were made with.
    """

    __slots__ = ()

    # the assumption by which noise that the facts leave open carries over to other causes
    coupling: str | None = None

    if TYPE_CHECKING:

        @property
        def parents(self) -> tuple[str, ...]:
            """The direct causes, by column name."""

    @abstractmethod
    def fit(self, child: Column, parents: Columns) -> Fitted[Any]:
        """Estimate the equation from factual columns, in the canonical order of rows."""
        raise NotImplementedError

    def with_parents(self, *names: str) -> Self | None:
        """Declare the same equation with further causes; None if the family cannot have them."""
        given, declared = self.arguments(), signature(type(self)).parameters.get("parents")
        if declared is None or declared.kind is not Parameter.VAR_POSITIONAL:
            return None
        return type(self)(*given.pop("parents"), *names, **given)

    def alternative(self) -> tuple[str, Equation] | None:
        """Return another family for the same attribute and its description, if there is one."""
        return None


class Fitted(Generic[Noise]):
    """An equation with its coefficients."""

    __slots__ = ()

    @abstractmethod
    def abduct(self, child: Column, parents: Columns, *, rng: Rng = None) -> Noise:
        """Recover each row's noise from the facts; with `rng`, a draw where facts leave it open."""
        raise NotImplementedError

    @abstractmethod
    def predict(self, parents: Columns, noise: Noise) -> Predicted:
        """Return each row's value under these causes and the abducted noise."""
        raise NotImplementedError

    def leftover(self, child: Column, parents: Columns, noise: Noise) -> Leftover:
        """Return residuals and goodness of fit, for the check of a worldview."""
        return Leftover(reason=NOT_GIVEN)


class HiddenCause(Protocol):
    """An unobserved common cause of several attributes, as declared."""

    @property
    def name(self) -> str:
        """Its name, which is no column."""

    @property
    def equations(self) -> Mapping[str, Equation]:
        """The equation of each attribute that it drives."""

    @property
    def residual_noise(self) -> bool:
        """Whether each attribute keeps its own noise in the counterfactual world."""

    @property
    def couplings(self) -> Mapping[str, str]:
        """The attributes whose counterfactuals rest on an assumption about it, with its name."""

    def fit(self, columns: Columns) -> FittedHiddenCause:
        """Estimate it from factual columns."""


class FittedHiddenCause(Protocol):
    """A hidden common cause with its coefficients."""

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that it is learned from."""

    @property
    def equations(self) -> Mapping[str, Fitted[Any]]:
        """The equation of each attribute given the hidden cause."""

    def abduct(self, columns: Columns, *, rng: Rng = None) -> Mapping[str, Any]:
        """Recover it from the facts, and the noise of each attribute that it drives."""


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
    """Add the attribute's name to errors of its equation, which does not know it."""
    try:
        yield
    except (EquationError, FormulaError) as error:
        kind = EquationError if isinstance(error, EquationError) else FormulaError
        raise kind(f"Equation for {child!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class KnownLevels:
    """The levels that occurred when an equation was fitted, in the order it uses."""

    # looked up by value, not by code: another table may have other levels, or another order
    levels: tuple[Any, ...]

    @classmethod
    def of(cls, column: Categories, order: Sequence[Any] | None = None) -> KnownLevels:
        """Take the levels that occur, in the column's order or in the given one."""
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
        if unknown := int((places < 0).sum()):
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
        if absent := int((codes < 0).sum()):
            raise EquationError(
                f"{absent} of {len(codes)} rows would have a level that the column of this table "
                "does not have. Declare the same levels for both tables: attributes={'grade': "
                "{'kind': 'ordinal', 'levels': [...]}}."
            )
        return Categories(codes, levels)


# --- noise ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """The logarithms of P(X ≤ x) and of P(X > x), each to its own precision."""

    below: Floats
    above: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class MonotoneNoise:
    """Each row's rank u among rows with the same causes."""

    factual: Floats
    explained: Floats  # identifies the distribution: where it is unchanged, so is the value
    log_tail: Floats  # the logarithm of the smaller of u and 1 - u, or nearly so
    upper: NDArray[np.bool_]  # whether that is 1 - u

    @classmethod
    def between(
        cls, before: Tails, at: Tails, *, explained: Floats, rng: Rng, **further: Any
    ) -> Self:
        """Place u between F(x-1) and F(x): the middle, or with `rng` a draw."""
        rows = len(at.below)
        share = np.full(rows, 0.5) if rng is None else np.clip(rng.random(rows), _EDGE, 1 - _EDGE)
        upper = before.above < at.below
        # u = F(x) - (1 - share) · (F(x) - F(x-1)), and the same for 1 - u, without cancellation
        with np.errstate(invalid="ignore"):
            low = at.below + np.log1p((1.0 - share) * np.expm1(before.below - at.below))
            high = before.above + np.log1p(share * np.expm1(at.above - before.above))
        return cls(
            explained=frozen(explained),
            log_tail=frozen(np.where(upper, high, low)),
            upper=frozen(upper),
            **further,
        )

    @property
    def rank(self) -> Floats:
        """The u of each row, as precisely as one number can hold it."""
        return np.where(self.upper, -np.expm1(self.log_tail), np.exp(self.log_tail))

    def is_beyond(self, tails: Tails) -> NDArray[np.bool_]:
        """Mark rows whose u is beyond F(x), so that the counterfactual is above x."""
        high = tails.above > self.log_tail + _EQUAL
        return np.where(self.upper, high, tails.below < self.log_tail - _EQUAL)


def of_residual(residual: Floats, response: Floats, *, measure: str | None = None) -> Leftover:
    """Describe additive noise; the response is on the scale on which the noise was added."""
    if not np.isfinite(residual).all():
        return Leftover(reason=NOT_GIVEN)
    nothing = np.ptp(residual) <= _NOTHING * np.ptp(response)
    return Leftover(
        vectors=() if nothing else (residual,),
        reason="its causes determine it, so no noise is left over" if nothing else "",
        measure=measure or "not available",
        fit=_r_squared(response, residual) if measure else None,
    )


def of_ranks(noise: MonotoneNoise, *, fit: float | None) -> Leftover | None:
    """Describe ranks by their normal quantiles; None where one is not finite."""
    from scipy.special import ndtri_exp

    quantiles: Floats = ndtri_exp(noise.log_tail)
    normal = np.where(noise.upper, -quantiles, quantiles)
    if not np.isfinite(normal).all():
        return None
    return Leftover(vectors=(normal,), standard=True, measure=DEVIANCE, fit=fit)


def of_probabilities(table: Floats, observed: NDArray[np.intp]) -> Leftover:
    """Describe categories by indicator minus probability, but for the largest and rare ones."""
    counts = np.bincount(observed, minlength=table.shape[1])
    by_size = np.argsort(-counts, kind="stable").tolist()
    kept = [place for place in by_size[1:MOST_GROUPS] if counts[place] >= SMALLEST_GROUP]
    return Leftover(
        vectors=tuple((observed == place) - table[:, place] for place in kept),
        spreading=False,
        reason=f"all categories but one have fewer than {SMALLEST_GROUP} rows",
        measure=DEVIANCE,
        fit=categorical_deviance(table, observed),
    )


def categorical_deviance(table: Floats, observed: NDArray[np.intp]) -> float | None:
    """Compute the share of the deviance that probabilities explain."""
    counts = np.bincount(observed, minlength=table.shape[1])
    without = float(np.add.reduce(np.log(counts[observed] / len(observed))))
    with np.errstate(divide="ignore"):
        own = np.log(table[np.arange(len(observed)), observed])
    with_causes = float(np.add.reduce(own))
    return 1.0 - with_causes / without if without and np.isfinite(with_causes) else None


def _r_squared(response: Floats, residual: Floats) -> float | None:
    centred = response - np.add.reduce(response) / len(response)
    scale = float(np.abs(centred).max())
    if scale == 0.0:
        return None
    centred, residual = centred / scale, residual / scale
    return 1.0 - dot(residual, residual) / dot(centred, centred)
