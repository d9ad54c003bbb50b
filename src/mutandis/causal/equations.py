"""Structural equations: how an attribute follows from its causes and its own noise.

An equation is declared (`Equation`), fitted to a population (`FittedEquation`), and then does two
things: it abducts each row's noise from the facts, and predicts each row's value from changed
causes and that noise. What noise looks like is each equation's own affair; the rest of the layer
hands it from `abduct` to `predict` without looking inside.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np

from mutandis.causal.fitting import LinearPredictor, fit_linear_predictor
from mutandis.domain.columns import frozen
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from mutandis.domain import Column

__all__ = [
    "AdditiveNoise",
    "Bounds",
    "Equation",
    "FittedEquation",
    "FittedLinear",
    "Linear",
    "LinkName",
    "Predicted",
    "finish",
    "naming",
    "require_finite",
]

LinkName = Literal["identity", "log"]
Bounds = tuple[float | None, float | None]
Noise = TypeVar("Noise")

# float64 carries no more decimal digits than these
_DIGITS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What an equation predicts for each row, and how many values its bounds cut off."""

    values: NDArray[np.float64]
    clipped: int = 0


class FittedEquation(Protocol[Noise]):
    """An equation with its coefficients, whatever they are."""

    def abduct(self, child: NDArray[np.float64], parents: Mapping[str, Column]) -> Noise:
        """Recover each row's noise from the facts."""

    def predict(self, parents: Mapping[str, Column], noise: Noise) -> Predicted:
        """Give each row's value under these causes and the noise that was abducted."""


@runtime_checkable
class Equation(Protocol):
    """An equation as it is declared: its causes, and how it is fitted."""

    @property
    def parents(self) -> tuple[str, ...]:
        """The direct causes, by column name."""

    def fit(self, child: NDArray[np.float64], parents: Mapping[str, Column]) -> FittedEquation[Any]:
        """Estimate the equation from factual columns; `parents` holds those it declares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """How the linear predictor acts on the attribute: by adding, or by multiplying."""

    forward: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    """The scale on which the equation is linear."""
    shift: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
    """A factual value, moved by a difference on that scale."""


def _add(factual: NDArray[np.float64], change: NDArray[np.float64]) -> NDArray[np.float64]:
    # x + 0.0 is x in every bit, except that it would turn -0.0 into 0.0
    return np.where(change == 0.0, factual, factual + change)


def _multiply(factual: NDArray[np.float64], change: NDArray[np.float64]) -> NDArray[np.float64]:
    return factual * np.exp(change)


def _logarithm(values: NDArray[np.float64]) -> NDArray[np.float64]:
    refused = int((values <= 0.0).sum())
    if refused:
        raise EquationError(
            f"the log link needs values above 0, but {refused} of {len(values)} rows have a value "
            "of 0 or below. Use link='identity', or leave these rows out."
        )
    return np.log(values)


_LINKS: Mapping[LinkName, _Link] = {
    "identity": _Link(forward=np.asarray, shift=_add),
    "log": _Link(forward=_logarithm, shift=_multiply),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveNoise:
    """What abduction finds out about each row of an equation with additive noise.

    It keeps the two parts whose difference the noise is, rather than the difference: a row whose
    causes do not change can then be given back its factual value to the last bit.

    Parameters
    ----------
    factual
        The observed values x.
    explained
        What the equation says of the factual causes: f(pa), or log f(pa) under the log link.
    link
        Whether the noise is added to the value ("identity") or to its logarithm ("log").

    Examples
    --------
    >>> noise = AdditiveNoise(factual=np.array([7.0]), explained=np.array([5.5]))
    >>> noise.residual.tolist()
    [1.5]
    """

    factual: NDArray[np.float64]
    explained: NDArray[np.float64]
    link: LinkName = "identity"

    @property
    def residual(self) -> NDArray[np.float64]:
        """U = x - f(pa), or log x - log f(pa): all that the causes do not explain."""
        return _LINKS[self.link].forward(self.factual) - self.explained


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Linear:
    """X = b0 + b1·pa1 + b2·pa2 + … + U, fitted by least squares.

    Numeric parents enter linearly; nominal parents have one shift a level, against the first level
    that occurs.

    Parameters
    ----------
    *parents
        The direct causes, by column name.
    link
        "identity" as above; "log" for an attribute that is always above 0 and on which causes act
        by factors: log X = b0 + b1·pa1 + … + U.
    bounds
        The lowest and the highest value the attribute can take; None where there is no such limit.
        Predictions beyond are cut off there, and counted.
    decimals
        Round predictions to so many decimals, half to even. Rounding comes before the bounds, and
        both come before the value is passed on to the next equation. They apply to every row, also
        to one on which nothing was changed.

    Examples
    --------
    >>> Linear("Gender", "Age", bounds=(0, None))
    Linear('Gender', 'Age', bounds=(0.0, None))
    >>> from mutandis.domain import Numbers
    >>> gender = {"Gender": Numbers(np.array([0.0, 0.0, 1.0, 1.0]))}
    >>> salary = np.array([40.0, 60.0, 30.0, 40.0])
    >>> fitted = Linear("Gender").fit(salary, gender)
    >>> fitted.predictor.intercept, fitted.predictor.terms[0].slope
    (50.0, -15.0)
    >>> everybody_zero = {"Gender": Numbers(np.zeros(4))}
    >>> fitted.predict(everybody_zero, fitted.abduct(salary, gender)).values.tolist()
    [40.0, 60.0, 45.0, 55.0]
    """

    parents: tuple[str, ...]
    link: LinkName
    bounds: Bounds | None
    decimals: int | None

    def __init__(
        self,
        *parents: str,
        link: LinkName = "identity",
        bounds: Bounds | None = None,
        decimals: int | None = None,
    ) -> None:
        if link not in get_args(LinkName):
            allowed = " or ".join(map(repr, get_args(LinkName)))
            raise EquationError(f"link={link!r} is not known. Use {allowed}.")
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "link", link)
        object.__setattr__(self, "bounds", _read_bounds(bounds))
        object.__setattr__(self, "decimals", _read_decimals(decimals))

    def __repr__(self) -> str:
        """Show the call that makes it, without what is left at its default."""
        settings = [f"link={self.link!r}"] if self.link != "identity" else []
        settings += [f"bounds={self.bounds!r}"] if self.bounds is not None else []
        settings += [f"decimals={self.decimals!r}"] if self.decimals is not None else []
        return f"Linear({', '.join([*map(repr, self.parents), *settings])})"

    def fit(self, child: NDArray[np.float64], parents: Mapping[str, Column]) -> FittedLinear:
        """Estimate the coefficients by least squares."""
        causes = {name: parents[name] for name in self.parents}
        predictor = fit_linear_predictor(_LINKS[self.link].forward(child), causes)
        return FittedLinear(
            predictor=predictor, link=self.link, bounds=self.bounds, decimals=self.decimals
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLinear:
    """A linear equation with its coefficients.

    Notes
    -----
    The counterfactual is computed as x + (f(pa') - f(pa)), and as x · exp(η(pa') - η(pa)) under
    the log link. In exact arithmetic that is f(pa') + U; in floating point it alone leaves a value
    untouched, to the last bit, when the causes do not change.
    """

    predictor: LinearPredictor
    link: LinkName = "identity"
    bounds: Bounds | None = None
    decimals: int | None = None

    def explained(self, parents: Mapping[str, Column], *, rows: int) -> NDArray[np.float64]:
        """Compute f(pa), or log f(pa) under the log link, row by row."""
        return self.predictor.at(parents, rows=rows)

    def abduct(self, child: NDArray[np.float64], parents: Mapping[str, Column]) -> AdditiveNoise:
        """Recover U = x - f(pa), kept as the pair of x and f(pa)."""
        _LINKS[self.link].forward(child)  # a value that the link cannot have has no noise either
        explained = self.explained(parents, rows=len(child))
        return AdditiveNoise(factual=frozen(child), explained=frozen(explained), link=self.link)

    def predict(self, parents: Mapping[str, Column], noise: AdditiveNoise) -> Predicted:
        """Move each factual value by what the change in its causes explains, round, and clip."""
        changed = self.explained(parents, rows=len(noise.factual))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            values = _LINKS[self.link].shift(noise.factual, changed - noise.explained)
        return finish(values, decimals=self.decimals, bounds=self.bounds)


def finish(
    values: NDArray[np.float64],
    *,
    decimals: int | None = None,
    bounds: Bounds | None = None,
) -> Predicted:
    """Round predictions half to even, then cut them off at the bounds and count those.

    Examples
    --------
    >>> finished = finish(np.array([-0.26, 0.25, 3.99, 4.2]), decimals=1, bounds=(0, 4))
    >>> finished.values.tolist(), finished.clipped
    ([0.0, 0.2, 4.0, 4.0], 2)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = values if decimals is None else np.round(values, decimals)
    require_finite(rounded)
    low, high = bounds or (None, None)
    below = rounded < (-np.inf if low is None else low)
    above = rounded > (np.inf if high is None else high)
    clipped = int(below.sum() + above.sum())
    finished = np.clip(rounded, low, high) if clipped else rounded
    return Predicted(values=finished, clipped=clipped)


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


def _read_bounds(bounds: object) -> Bounds | None:
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


def _read_decimals(decimals: object) -> int | None:
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
