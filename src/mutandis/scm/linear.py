"""Linear equations with additive noise: straight lines, or factors under the log link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutandis.errors import EquationError
from mutandis.numeric.order import ReorderedColumns
from mutandis.scm.family import numbers_of
from mutandis.scm.numeric import (
    AdditiveEquation,
    Bounds,
    FittedAdditiveEquation,
    LinkName,
    linked,
)
from mutandis.scm.predictor import LinearPredictor, fit_linear_predictor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mutandis.data.columns import Column, Columns, Floats


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Linear(AdditiveEquation):
    """X = b0 + b1·pa1 + b2·pa2 + … + U, fitted by least squares.

    Numeric parents enter linearly; nominal parents have one shift per level, against the first
    level that occurs.

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
        Round predictions to this many decimals, half to even.
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
    >>> all_zero = {"Gender": Numbers(np.zeros(4))}
    >>> fitted.predict(all_zero, fitted.abduct(salary, gender)).values.tolist()
    [40.0, 60.0, 45.0, 55.0]
    """

    parents: tuple[str, ...]
    interactions: bool

    def __init__(
        self,
        *parents: str,
        link: LinkName = "identity",
        interactions: bool = False,
        bounds: Bounds | None = None,
        decimals: int | None = None,
        levels: Iterable[float] | None = None,
    ) -> None:
        self._set(parents=parents, interactions=_read_interactions(interactions, parents))
        self._set_numeric(link=link, bounds=bounds, decimals=decimals, levels=levels)

    def fit(self, child: Column, parents: Columns) -> FittedLinear:
        predictor = fit_linear_predictor(
            linked(numbers_of(child), self.link),
            ReorderedColumns(parents, self.parents),
            interactions=self.interactions,
        )
        return FittedLinear(predictor=predictor, **self.numeric)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLinear(FittedAdditiveEquation):
    """A linear equation with its coefficients."""

    predictor: LinearPredictor

    def explained(self, parents: Columns, *, rows: int) -> Floats:
        return self.predictor.at(parents, rows=rows)


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
