"""Worldviews: what the experts agree on about causes and effects, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mutandis.causal.counterfactual import (
    Counterfactuals,
    StructuralEquation,
    abduct,
    act,
    child_values,
    predict,
    require_columns,
)
from mutandis.causal.equations import Equation, FittedEquation, naming
from mutandis.causal.graph import Graph
from mutandis.errors import RootError, WorldviewError

if TYPE_CHECKING:
    from mutandis.domain import Population

__all__ = ["FittedWorldview", "Worldview"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Worldview:
    """A structural causal model: one equation for each attribute that has causes.

    Attributes without an equation are roots: nothing in the worldview causes them, and an
    intervention elsewhere leaves them as they are.

    Parameters
    ----------
    equations
        The equation of each attribute that has causes, by column name.

    Examples
    --------
    >>> import pandas as pd
    >>> from mutandis.causal import Linear
    >>> from mutandis.domain import Population
    >>> worldview = Worldview(
    ...     {"Salary": Linear("Gender"), "Balance": Linear("Salary", "Gender")}
    ... )
    >>> worldview.names
    ('Gender', 'Salary', 'Balance')
    >>> people = Population.from_frame(
    ...     pd.DataFrame(
    ...         {
    ...             "Gender": [0, 0, 1, 1],
    ...             "Salary": [40.0, 60.0, 30.0, 40.0],
    ...             "Balance": [8.0, 12.0, 5.0, 7.0],
    ...         }
    ...     ),
    ...     columns=worldview.names,
    ... )
    >>> counterfactuals = worldview.counterfactuals(people, do={"Gender": 0})
    >>> counterfactuals.moved
    ('Salary', 'Balance')
    >>> counterfactuals.population.numbers("Salary").round(6).tolist()
    [40.0, 60.0, 45.0, 55.0]
    >>> counterfactuals.population.numbers("Balance").round(6).tolist()
    [8.0, 12.0, 9.0, 11.0]
    """

    equations: Mapping[str, Equation]
    graph: Graph = field(compare=False)

    def __init__(self, equations: Mapping[str, Equation]) -> None:
        if not isinstance(equations, Mapping):
            raise WorldviewError(
                f"A worldview was made from {type(equations).__name__}. "
                "Give a dict of equations: Worldview({'Salary': Linear('Gender')})."
            )
        for child, equation in equations.items():
            _check_equation(child, equation)
        graph = Graph.from_parents(
            {child: equation.parents for child, equation in equations.items()}
        )
        object.__setattr__(self, "equations", MappingProxyType(dict(equations)))
        object.__setattr__(self, "graph", graph)

    def __repr__(self) -> str:
        """Show the call that makes it."""
        return f"Worldview({dict(self.equations)!r})"

    def __hash__(self) -> int:
        """Hash as equality compares: the same equations, in whatever order they were written."""
        return hash(frozenset(self.equations.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that the worldview mentions, causes before their effects."""
        return self.graph.names

    def check_root(self, attribute: str) -> None:
        """Refuse a protected attribute that has causes: counterfactual statuses start from it."""
        causes = self.graph.parents.get(attribute, ())
        if causes:
            raise RootError(
                f"The protected attribute {attribute!r} must be a root, but the worldview says "
                f"that it is caused by {', '.join(map(repr, causes))}. "
                f"Remove the equation for {attribute!r}."
            )

    def fit(self, population: Population) -> FittedWorldview:
        """Fit every equation to the facts.

        Parameters
        ----------
        population
            The facts; it holds every column that the worldview mentions.
        """
        require_columns(population, self.names)
        fitted = {}
        for child, equation in self.equations.items():
            values = child_values(population, child)
            causes = {name: population.columns[name] for name in equation.parents}
            with naming(child):
                fitted[child] = equation.fit(values, causes)
        return FittedWorldview(graph=self.graph, equations=MappingProxyType(fitted))

    def counterfactuals(self, population: Population, *, do: Mapping[str, Any]) -> Counterfactuals:
        """Fit to a population, and ask what would have been: see `FittedWorldview`."""
        return self.fit(population).counterfactuals(population, do=do)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedWorldview:
    """A worldview whose equations have their coefficients.

    Parameters
    ----------
    graph
        Who is a cause of whom.
    equations
        The fitted equation of each attribute that has causes.
    """

    graph: Graph
    equations: Mapping[str, FittedEquation[Any]]

    def counterfactuals(self, population: Population, *, do: Mapping[str, Any]) -> Counterfactuals:
        """Ask what would have been: abduction, action, prediction.

        Only effects of the intervened attributes are recomputed; all other columns are passed on
        as they are. An intervened attribute that has an equation of its own loses it.

        Parameters
        ----------
        population
            The facts; not necessarily those that the equations were fitted to.
        do
            The intervened attributes and the value each is set to, for everybody.
        """
        # the equations of M' that something can change in, causes before their effects
        revised = {
            name: StructuralEquation(parents=self.graph.parents[name], fitted=self.equations[name])
            for name in self.graph.descendants(do)
        }
        noise = abduct(population, revised)
        intervened = act(population, do)
        return predict(intervened, revised, noise)


def _check_equation(child: object, equation: object) -> None:
    # a class has the attributes of its instances: Linear instead of Linear("Gender")
    if isinstance(equation, type) or not isinstance(equation, Equation):
        shown = equation.__name__ if isinstance(equation, type) else type(equation).__name__
        raise WorldviewError(
            f"What is given for {child!r} is no equation ({shown}). "
            "An equation has parents and fit(): use Linear('Gender'), for example."
        )
