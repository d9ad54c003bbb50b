"""Linear equations with additive noise: straight lines, or factors under the log link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutandis.causal.equations.equation import (
    Bounds,
    Levels,
    Predicted,
    finish,
    numbers_of,
    read_bounds,
    read_decimals,
    read_levels,
    shown_call,
)
from mutandis.causal.equations.noise import AdditiveNoise, LinkName, linked, read_link
from mutandis.causal.fitting.ordering import ReorderedColumns
from mutandis.causal.fitting.predictor import LinearPredictor, fit_linear_predictor
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from mutandis.data.columns import Column

__all__ = ["AdditiveNoise", "FittedLinear", "Linear", "LinkName"]


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
    interactions
        Let every two parents also act together, through the products of their columns: the effect
        of one then depends on the value of the other. A combination of values that does not occur
        in the table that the equation is fitted to has no known effect; a row that has it later is
        refused.
    bounds
        The lowest and the highest value the attribute can take; None where there is no such limit.
        Predictions beyond are cut off there, and counted.
    decimals
        Round predictions to so many decimals, half to even.
    levels
        All values the attribute can take, lowest first. Predictions are moved to the nearest of
        them, to the lower of two that are as near; those beyond the outermost are counted along
        with those beyond the bounds.

    Notes
    -----
    Rounding comes first, then the levels, then the bounds, and all of them come before the value is
    passed on to the next equation. They apply to every row, also to one on which nothing was
    changed.

    Examples
    --------
    >>> Linear("Gender", "Age", bounds=(0, None))
    Linear('Gender', 'Age', bounds=(0.0, None))
    >>> import numpy as np
    >>> from mutandis.data.columns import Numbers
    >>> gender = {"Gender": Numbers(np.array([0.0, 0.0, 1.0, 1.0]))}
    >>> salary = Numbers(np.array([40.0, 60.0, 30.0, 40.0]))
    >>> fitted = Linear("Gender").fit(salary, gender)
    >>> fitted.predictor.intercept, fitted.predictor.terms[0].slope
    (50.0, -15.0)
    >>> everybody_zero = {"Gender": Numbers(np.zeros(4))}
    >>> fitted.predict(everybody_zero, fitted.abduct(salary, gender)).values.tolist()
    [40.0, 60.0, 45.0, 55.0]
    """

    parents: tuple[str, ...]
    link: LinkName
    interactions: bool
    bounds: Bounds | None
    decimals: int | None
    levels: Levels | None

    def __init__(
        self,
        *parents: str,
        link: LinkName = "identity",
        interactions: bool = False,
        bounds: Bounds | None = None,
        decimals: int | None = None,
        levels: Iterable[float] | None = None,
    ) -> None:
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "link", read_link(link))
        object.__setattr__(self, "interactions", _read_interactions(interactions, parents))
        object.__setattr__(self, "bounds", read_bounds(bounds))
        object.__setattr__(self, "decimals", read_decimals(decimals))
        object.__setattr__(self, "levels", read_levels(levels, bounds=self.bounds))

    def __repr__(self) -> str:
        """Show the call that makes it, without what is left at its default."""
        settings = [
            ("link", self.link, "identity"),
            ("interactions", self.interactions, False),
            ("bounds", self.bounds, None),
            ("decimals", self.decimals, None),
            ("levels", self.levels, None),
        ]
        return shown_call("Linear", self.parents, settings)

    def fit(self, child: Column, parents: Mapping[str, Column]) -> FittedLinear:
        """Estimate the coefficients by least squares."""
        predictor = fit_linear_predictor(
            linked(numbers_of(child), self.link),
            ReorderedColumns(parents, self.parents),
            interactions=self.interactions,
        )
        return FittedLinear(
            predictor=predictor,
            link=self.link,
            bounds=self.bounds,
            decimals=self.decimals,
            levels=self.levels,
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
    levels: Levels | None = None

    def explained(self, parents: Mapping[str, Column], *, rows: int) -> NDArray[np.float64]:
        """Compute f(pa), or log f(pa) under the log link, row by row."""
        return self.predictor.at(parents, rows=rows)

    def abduct(
        self,
        child: Column,
        parents: Mapping[str, Column],
        *,
        rng: np.random.Generator | None = None,  # noqa: ARG002 - the facts determine the noise
    ) -> AdditiveNoise:
        """Recover U = x - f(pa), kept as the pair of x and f(pa)."""
        return AdditiveNoise.of(child, self.explained(parents, rows=len(child)), link=self.link)

    def predict(self, parents: Mapping[str, Column], noise: AdditiveNoise) -> Predicted:
        """Move each factual value by what the change in its causes explains, and finish it."""
        return self.finished(noise.carried_to(self.explained(parents, rows=len(noise.factual))))

    def finished(self, values: NDArray[np.float64]) -> Predicted:
        """Round predictions, move them to levels and within bounds, as declared."""
        return finish(values, decimals=self.decimals, bounds=self.bounds, levels=self.levels)


def _read_interactions(interactions: object, parents: tuple[str, ...]) -> bool:
    if not isinstance(interactions, bool):
        raise EquationError(
            f"interactions={interactions!r} is neither True nor False. "
            "Give True to let every two parents act together."
        )
    if interactions and len(parents) < 2:
        raise EquationError(
            f"interactions=True needs two parents or more, and the equation has {len(parents)}. "
            "Name the parents that act together, or leave interactions out."
        )
    return interactions
