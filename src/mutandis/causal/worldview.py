"""Worldviews: what the experts agree on about causes and effects, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mutandis.causal.counterfactual import (
    Counterfactuals,
    StructuralEquation,
    require_columns,
    take_three_steps,
)
from mutandis.causal.draws import Draws, spawn
from mutandis.causal.equations.equation import Equation, FittedEquation, coupling_of, naming
from mutandis.causal.fitting.ordering import ReorderedColumns, canonical_order
from mutandis.causal.graph import Graph
from mutandis.errors import EquationError, RootError, WorldviewError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from mutandis.causal.diagnostics.diagnosis import Diagnosis
    from mutandis.causal.latent.latent import FittedLatent, Latent
    from mutandis.data.columns import Column
    from mutandis.data.population import Population

__all__ = ["FittedWorldview", "Worldview"]

# A level that one row in a thousand has is lost from a resample of a thousand with probability
# 0.37; so often in a row only if the worldview cannot be bootstrapped at all.
_RESAMPLES = 50


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Worldview:
    """A structural causal model: one equation for each attribute that has causes.

    Attributes without an equation are roots: nothing in the worldview causes them, and an
    intervention elsewhere leaves them as they are.

    Parameters
    ----------
    equations
        The equation of each attribute that has causes, by column name.
    latents
        Hidden common causes, each with the equations of the attributes that it drives.
    resolving
        Attributes that an intervention leaves as they are, although it would move them: the
        decision maker may rightly use them as they stand (business necessity), so the paths
        through them are not followed.

    Examples
    --------
    >>> import pandas as pd
    >>> from mutandis.causal import Linear
    >>> from mutandis.data.population import Population
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
    latents: tuple[Latent, ...]
    resolving: tuple[str, ...]
    graph: Graph = field(compare=False)

    def __init__(
        self,
        equations: Mapping[str, Equation],
        *,
        latents: Iterable[Latent] = (),
        resolving: Iterable[str] = (),
    ) -> None:
        if not isinstance(equations, Mapping):
            raise WorldviewError(
                f"A worldview was made from {type(equations).__name__}. "
                "Give a dict of equations: Worldview({'Salary': Linear('Gender')})."
            )
        for child, equation in equations.items():
            _check_equation(child, equation)
        latents = tuple(latents)
        _check_latents(equations, latents)
        graph = Graph.from_parents(
            {
                child: equation.parents
                for group in (equations, *(latent.equations for latent in latents))
                for child, equation in group.items()
            }
        )
        object.__setattr__(self, "equations", MappingProxyType(dict(equations)))
        object.__setattr__(self, "latents", latents)
        object.__setattr__(self, "resolving", _read_resolving(resolving, graph))
        object.__setattr__(self, "graph", graph)

    def __repr__(self) -> str:
        """Show the call that makes it."""
        settings = [repr(dict(self.equations))]
        settings += [f"latents={self.latents!r}"] if self.latents else []
        settings += [f"resolving={self.resolving!r}"] if self.resolving else []
        return f"Worldview({', '.join(settings)})"

    def __hash__(self) -> int:
        """Hash as equality compares: the same equations, in whatever order they were written."""
        return hash((frozenset(self.equations.items()), self.latents, self.resolving))

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

    @property
    def couplings(self) -> Mapping[str, str]:
        """The attributes whose counterfactuals rest on an assumed coupling, with its name."""
        own = {child: coupling_of(equation) for child, equation in self.equations.items()}
        found = {child: coupling for child, coupling in own.items() if coupling}
        for latent in self.latents:
            # what is assumed of an attribute under a hidden cause, only the hidden cause knows
            found.update(latent.couplings)
        return found

    def fit(self, population: Population) -> FittedWorldview:
        """Fit every equation to the facts.

        Parameters
        ----------
        population
            The facts; it holds every column that the worldview mentions.
        """
        require_columns(population, self.names)
        return self._fit_columns({name: population.columns[name] for name in self.names})

    def counterfactuals(
        self,
        population: Population,
        *,
        do: Mapping[str, Any],
        draws: int = 0,
        rng: np.random.Generator | None = None,
        bootstrap: bool = False,
    ) -> Counterfactuals:
        """Fit to a population, and ask what would have been.

        Parameters
        ----------
        population
            The facts.
        do
            The intervened attributes and the value each is set to, for everybody.
        draws
            How many further counterfactual populations to draw (`Counterfactuals.draws`).
        rng
            Where they are drawn from.
        bootstrap
            Refit the equations for each draw, on as many rows drawn with replacement: the draws
            then show the doubt about the coefficients too. A resample from which a rare level is
            missing, so that an equation cannot be fitted or applied, is drawn again.
        """
        fitted = self.fit(population)
        if not bootstrap:
            return fitted.counterfactuals(population, do=do, draws=draws, rng=rng)

        def refitted(generator: np.random.Generator) -> Population:
            again = self._fit_resampled(population, do, generator)
            return again.counterfactuals_once(population, do=do, rng=generator).population

        point = fitted.counterfactuals(population, do=do)
        return replace(point, draws=Draws(spawn(draws, rng), refitted))

    def check(
        self,
        population: Population,
        *,
        protected: str | None = None,
        do: Mapping[str, Any] | None = None,
        alpha: float = 0.01,
    ) -> Diagnosis:
        """Look for signs that a table contradicts this worldview: see `check_worldview`."""
        from mutandis.causal.diagnostics.check import check_worldview

        return check_worldview(self, population, protected=protected, do=do, alpha=alpha)

    def _fit_resampled(
        self, population: Population, do: Mapping[str, Any], rng: np.random.Generator
    ) -> FittedWorldview:
        """Fit to rows drawn with replacement, and again where a draw has lost a rare level."""
        for attempt in range(_RESAMPLES):
            rows = rng.integers(0, len(population), size=len(population))
            columns = {name: population.columns[name].take(rows) for name in self.names}
            try:
                fitted = self._fit_columns(columns)
                fitted.counterfactuals_once(population, do=do)
            except EquationError:
                if attempt == _RESAMPLES - 1:
                    raise
            else:
                return fitted
        raise AssertionError("the last attempt returns or raises")

    def _fit_columns(self, columns: Mapping[str, Column]) -> FittedWorldview:
        # a column is reordered where it is needed: all of them at once would be a second table
        order = canonical_order(columns)
        ordered = ReorderedColumns(columns, columns, order=order)
        fitted: dict[str, FittedEquation[Any]] = {}
        for child, equation in self.equations.items():
            causes = ReorderedColumns(columns, equation.parents, order=order)
            with naming(child):
                fitted[child] = equation.fit(ordered[child], causes)
        latents = tuple(latent.fit(dict(ordered)) for latent in self.latents)
        for latent in latents:
            fitted.update(latent.equations)
        return FittedWorldview(
            graph=self.graph,
            equations=MappingProxyType(fitted),
            latents=latents,
            resolving=self.resolving,
            couplings=MappingProxyType(dict(self.couplings)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedWorldview:
    """A worldview whose equations have their coefficients.

    Parameters
    ----------
    graph
        Who is a cause of whom.
    equations
        The fitted equation of each attribute that has causes.
    latents
        The fitted hidden common causes.
    resolving
        Attributes that stay as they are.
    couplings
        Attributes whose counterfactuals rest on an assumed coupling, with its name.
    """

    graph: Graph
    equations: Mapping[str, FittedEquation[Any]]
    latents: tuple[FittedLatent, ...] = ()
    resolving: tuple[str, ...] = ()
    couplings: Mapping[str, str] = field(default_factory=dict)

    def counterfactuals(
        self,
        population: Population,
        *,
        do: Mapping[str, Any],
        draws: int = 0,
        rng: np.random.Generator | None = None,
    ) -> Counterfactuals:
        """Ask what would have been: abduction, action, prediction.

        Only effects of the intervened attributes are recomputed; all other columns are passed on
        as they are. An intervened attribute that has an equation of its own loses it.

        Parameters
        ----------
        population
            The facts; not necessarily those that the equations were fitted to.
        do
            The intervened attributes and the value each is set to, for everybody.
        draws
            How many further counterfactual populations to draw (`Counterfactuals.draws`).
        rng
            Where they are drawn from.
        """

        def drawn(generator: np.random.Generator) -> Population:
            return self.counterfactuals_once(population, do=do, rng=generator).population

        point = self.counterfactuals_once(population, do=do)
        return replace(point, draws=Draws(spawn(draws, rng), drawn)) if draws else point

    def counterfactuals_once(
        self,
        population: Population,
        *,
        do: Mapping[str, Any],
        rng: np.random.Generator | None = None,
    ) -> Counterfactuals:
        """Go through the three steps once, with one draw of the noise if `rng` is given."""
        moved = self.graph.descendants(do, held=self.resolving)
        # the equations of M' that something can change in, causes before their effects
        revised = {
            name: StructuralEquation(parents=self.graph.parents[name], fitted=self.equations[name])
            for name in moved
        }
        made = take_three_steps(population, do, revised, self.latents, rng=rng)
        would_move = self.graph.descendants(do)
        return replace(
            made,
            held=tuple(name for name in self.resolving if name in would_move),
            couplings={name: self.couplings[name] for name in moved if name in self.couplings},
        )


def _check_equation(child: object, equation: object) -> None:
    # a class has the attributes of its instances: Linear instead of Linear("Gender")
    if isinstance(equation, type) or not isinstance(equation, Equation):
        shown = equation.__name__ if isinstance(equation, type) else type(equation).__name__
        raise WorldviewError(
            f"What is given for {child!r} is no equation ({shown}). "
            "An equation has parents and fit(): use Linear('Gender'), for example."
        )


def _check_latents(equations: Mapping[str, Equation], latents: tuple[Latent, ...]) -> None:
    explained = list(equations)
    for latent in latents:
        for child in latent.equations:
            if child in explained:
                raise WorldviewError(
                    f"{child!r} has two equations, one of them under the hidden cause "
                    f"{latent.name!r}. Keep one of them."
                )
            explained.append(child)


def _read_resolving(resolving: Iterable[str], graph: Graph) -> tuple[str, ...]:
    if isinstance(resolving, str):
        raise WorldviewError(
            f"resolving={resolving!r} is one text. Give a tuple of names: ({resolving!r},)."
        )
    names = tuple(dict.fromkeys(resolving))
    for name in names:
        if name not in graph.names:
            raise WorldviewError(
                f"The resolving attribute {name!r} is not in the worldview. "
                f"It has {', '.join(map(repr, graph.names))}."
            )
    return names
