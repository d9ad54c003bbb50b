"""Structural equations under a hidden cause: their families, noise given U, and expectations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mutandis.causal.equations.count import Count, FittedCount
from mutandis.causal.equations.coupling import MONOTONE, MonotoneNoise
from mutandis.causal.equations.equation import Predicted, finish, numbers_of
from mutandis.causal.equations.linear import FittedLinear, Linear
from mutandis.causal.equations.noise import linked
from mutandis.causal.equations.poisson import abduct_counts, predict_counts, require_counts
from mutandis.causal.latent.quadrature import NORMAL, POISSON, Family
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mutandis.causal.equations.equation import FittedEquation
    from mutandis.causal.latent.fit import Driven
    from mutandis.data.columns import Column

    Floats = NDArray[np.float64]

__all__ = [
    "EXPECTATION_ONLY",
    "LATENT_MONOTONE",
    "CountGivenHidden",
    "ExpectedGivenHidden",
    "HiddenCount",
    "conditional_equation",
    "coupling_under",
    "family_of",
    "noise_given",
    "response_of",
]

LATENT_MONOTONE = f"latent U with {MONOTONE}"
EXPECTATION_ONLY = "latent U, expectation only (Kusner et al. 2017)"
"""The names of the assumptions, as results are labelled with them."""

DrivenEquation = Linear | Count
"""What a hidden cause can drive."""


def family_of(equation: object) -> Family:
    """Say which distribution an equation has under a hidden cause, or that it has none.

    Examples
    --------
    >>> family_of(Count("Gender")).name
    'Poisson'
    """
    if isinstance(equation, Linear):
        if equation.interactions:
            raise EquationError(
                "interactions=True is not available under a hidden cause. Leave interactions out, "
                "or add the product of two causes to the table and name it as a cause."
            )
        return NORMAL
    if isinstance(equation, Count):
        return POISSON
    shown = equation.__name__ if isinstance(equation, type) else type(equation).__name__
    raise EquationError(
        f"a hidden cause cannot drive what is given here ({shown}). It drives Linear(...), "
        "Linear(..., link='log') and Count(...): use one of these, or take the attribute out of "
        "the hidden cause and give it an equation of its own."
    )


def response_of(equation: DrivenEquation, child: Column) -> Floats:
    """Give an attribute's values on the scale of its family."""
    values = numbers_of(child)
    if isinstance(equation, Linear):
        return linked(values, equation.link)
    require_counts(values)
    return values


def coupling_under(equation: DrivenEquation, *, residual_noise: bool) -> str | None:
    """Name what a counterfactual under a hidden cause assumes, if it assumes anything.

    The residual of an additive equation is determined by the facts, whatever U is.
    """
    if not residual_noise:
        return EXPECTATION_ONLY
    return LATENT_MONOTONE if isinstance(equation, Count) else None


class _Together:
    """An equation that has no noise of its own to abduct unless U is known."""

    __slots__ = ()

    def abduct(
        self,
        child: Column,  # noqa: ARG002 - as every equation has it
        parents: Mapping[str, Column],  # noqa: ARG002
        *,
        rng: np.random.Generator | None = None,  # noqa: ARG002
    ) -> NoReturn:
        """Refuse: U is abducted from all the attributes that it drives, together."""
        raise EquationError(
            "its noise depends on a hidden cause, which is abducted from all the attributes that "
            "it drives. Use abduct() of the fitted hidden cause, with all its columns."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenCount(MonotoneNoise):
    """The rank of a count among rows with the same causes and the same U, and that U.

    Parameters
    ----------
    hidden
        U of each row.
    """

    hidden: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class CountGivenHidden(_Together):
    """A count given its causes and U: Poisson with mean exp(η(pa) + w·U), coupled by rank."""

    fitted: FittedCount
    loading: float

    def explained(self, parents: Mapping[str, Column], hidden: Floats) -> Floats:
        """Compute the logarithm of the expected count, row by row."""
        return self.fitted.explained(parents, rows=len(hidden)) + self.loading * hidden

    def abduct_given(
        self,
        child: Column,
        parents: Mapping[str, Column],
        *,
        hidden: Floats,
        rng: np.random.Generator | None,
    ) -> HiddenCount:
        """Recover each row's rank among rows with the same causes and U: the middle, or a draw."""
        log_means = self.explained(parents, hidden)
        rank = abduct_counts(numbers_of(child), log_means, rng=rng)
        return HiddenCount(
            factual=rank.factual,
            explained=rank.explained,
            log_tail=rank.log_tail,
            upper=rank.upper,
            hidden=hidden,
        )

    def predict(self, parents: Mapping[str, Column], noise: HiddenCount) -> Predicted:
        """Give the count at the same rank among rows with these causes and the same U."""
        counts = predict_counts(self.explained(parents, noise.hidden), noise)
        return finish(counts, bounds=self.fitted.bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedGivenHidden(_Together):
    """An attribute replaced by its expectation given its causes and U; the noise is U itself."""

    fitted: FittedLinear | FittedCount
    loading: float
    deviation: float

    def predict(self, parents: Mapping[str, Column], noise: Floats) -> Predicted:
        """Give the expectation under these causes and U, rounded and clipped as declared."""
        place = self.fitted.explained(parents, rows=len(noise)) + self.loading * noise
        if isinstance(self.fitted, FittedCount):
            with np.errstate(over="ignore"):
                return finish(np.exp(place), bounds=self.fitted.bounds)
        if self.fitted.link == "log":
            with np.errstate(over="ignore"):
                # the mean of a lognormal distribution lies above its median
                return self.fitted.finished(np.exp(place + 0.5 * self.deviation**2))
        return self.fitted.finished(place)


def conditional_equation(
    equation: DrivenEquation, driven: Driven, *, residual_noise: bool
) -> FittedEquation[Any]:
    """Make the fitted equation of an attribute given U.

    An additive equation that keeps its residual is a linear one like any other: U cancels.
    """
    fitted: FittedLinear | FittedCount
    if isinstance(equation, Linear):
        fitted = FittedLinear(
            predictor=driven.predictor,
            link=equation.link,
            bounds=equation.bounds,
            decimals=equation.decimals,
            levels=equation.levels,
        )
    else:
        fitted = FittedCount(predictor=driven.predictor, bounds=equation.bounds)
    if not residual_noise:
        return ExpectedGivenHidden(
            fitted=fitted, loading=driven.loading, deviation=driven.deviation
        )
    if isinstance(fitted, FittedCount):
        return CountGivenHidden(fitted=fitted, loading=driven.loading)
    return fitted


def noise_given(
    equation: FittedEquation[Any],
    child: Column,
    parents: Mapping[str, Column],
    *,
    hidden: Floats,
    rng: np.random.Generator | None,
) -> Any:
    """Abduct an attribute's own noise, U being known."""
    if isinstance(equation, ExpectedGivenHidden):
        return hidden
    if isinstance(equation, CountGivenHidden):
        return equation.abduct_given(child, parents, hidden=hidden, rng=rng)
    return equation.abduct(child, parents, rng=rng)
