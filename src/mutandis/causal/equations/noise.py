"""Additive noise: what is left of a value once its causes have explained their part.

Every family of equations whose noise is added, to the value or to its logarithm, abducts and
predicts in the same way; only what its causes explain is worked out differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from mutandis.causal.equations.equation import numbers_of
from mutandis.data.columns import frozen
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from mutandis.data.columns import Column

__all__ = ["AdditiveNoise", "LinkName", "linked", "read_link"]

LinkName = Literal["identity", "log"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """How the predictor acts on the attribute: by adding, or by multiplying."""

    forward: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    """The scale on which the noise is added."""
    shift: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
    """A factual value, moved by a difference on that scale."""


def _add(factual: NDArray[np.float64], change: NDArray[np.float64]) -> NDArray[np.float64]:
    moved = factual + change
    # x + 0.0 is x in every bit, except that it would turn -0.0 into 0.0
    np.copyto(moved, factual, where=change == 0.0)
    return moved


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
    >>> noise.carried_to(np.array([3.0])).tolist()
    [4.5]
    """

    factual: NDArray[np.float64]
    explained: NDArray[np.float64]
    link: LinkName = "identity"

    @classmethod
    def of(
        cls, child: Column, explained: NDArray[np.float64], *, link: LinkName = "identity"
    ) -> AdditiveNoise:
        """Recover U from the facts and what explains them; refuse values the link cannot have."""
        factual = numbers_of(child)
        linked(factual, link)
        return cls(factual=factual, explained=frozen(explained), link=link)

    @property
    def residual(self) -> NDArray[np.float64]:
        """U = x - f(pa), or log x - log f(pa): all that the causes do not explain."""
        return linked(self.factual, self.link) - self.explained

    def carried_to(self, explained: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give each row's value where changed causes explain so much: x + (f(pa') - f(pa)).

        Under the log link that is x · exp(η(pa') - η(pa)). What is too large for a number comes
        out as infinite or NaN.
        """
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return _LINKS[self.link].shift(self.factual, explained - self.explained)


def linked(values: NDArray[np.float64], link: LinkName) -> NDArray[np.float64]:
    """Put values on the scale on which the noise is added.

    Examples
    --------
    >>> linked(np.array([1.0]), "log").tolist()
    [0.0]
    """
    return _LINKS[link].forward(values)


def read_link(link: object) -> LinkName:
    """Check a declared link."""
    for known in get_args(LinkName):
        if link == known:
            return known  # type: ignore[no-any-return]
    allowed = " or ".join(map(repr, get_args(LinkName)))
    raise EquationError(f"link={link!r} is not known. Use {allowed}.")
