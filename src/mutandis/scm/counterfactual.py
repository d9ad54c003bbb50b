"""Pearl's three steps from facts to counterfactuals: abduction, action, prediction; and draws.

The paper describes them in its section "Structural Causal Models and Counterfactuals" and works an
example in its Appendix A.1 (where the printed abduction of U3 has a plus that must be a minus:
U3 = X3 - β1·X1 - β2·X2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from mutandis.data.attribute import read_attributes
from mutandis.data.columns import Categories, Column, Numbers, describe_levels
from mutandis.data.population import Missing, Population
from mutandis.errors import EquationError, PlanError, UnknownColumnError
from mutandis.mapped import in_file
from mutandis.numeric.order import canonical_order
from mutandis.scm.additive import require_finite
from mutandis.scm.family import naming

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import NDArray

    from mutandis.data.attribute import AttributeDeclaration
    from mutandis.scm.family import Fitted, FittedHiddenCause, Rng
    from mutandis.scm.graph import Graph


# more column names than these do not help to find the right one
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Draws(Sequence["Population"]):
    """A sequence of counterfactual populations, each made when it is asked for.

    Each draw has a generator of its own: it is the same whichever draws were made before it, on
    however many threads, and however the table is sorted.
    """

    states: tuple[np.random.SeedSequence, ...] = ()  # the seed of each draw
    make: Callable[[np.random.Generator], Population] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.states)

    @overload
    def __getitem__(self, index: int) -> Population: ...
    @overload
    def __getitem__(self, index: slice) -> Draws: ...
    def __getitem__(self, index: int | slice) -> Population | Draws:
        """Make a draw, or select some of them."""
        if isinstance(index, slice):
            return Draws(self.states[index], self.make)
        state = self.states[index]
        if self.make is None:
            raise IndexError("these counterfactuals were made without draws")
        return self.make(np.random.default_rng(state))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactuals:
    """D^CF: the population as it would have been."""

    population: Population  # the same rows, with intervened and recomputed columns exchanged
    moved: tuple[str, ...]  # the recomputed attributes, causes before their effects
    clipped: Mapping[str, int]  # how many of their values were cut off at the equation's bounds
    held: tuple[str, ...] = ()  # resolving attributes that would have moved otherwise
    # the coupling between the two worlds that is assumed where the facts leave noise open
    couplings: Mapping[str, str] = field(default_factory=dict)
    draws: Draws = field(default_factory=Draws)  # further populations, where they were requested


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedWorldview:
    """A worldview whose equations have their coefficients."""

    graph: Graph
    equations: Mapping[str, Fitted[Any]]
    latents: tuple[FittedHiddenCause, ...] = ()
    resolving: tuple[str, ...] = ()  # attributes that stay as they are
    couplings: Mapping[str, str] = field(default_factory=dict)  # assumed for each open noise

    def moved_by(self, do: Collection[str]) -> tuple[str, ...]:
        """Return the attributes that an intervention recomputes, causes before their effects."""
        return self.graph.descendants(do, held=self.resolving)

    def counterfactuals(
        self, table: Any, *, do: Mapping[str, Any], draws: int = 0, rng: Rng = None
    ) -> Counterfactuals:
        """Compute counterfactuals; the table need not be the one that was fitted to."""
        population = population_of(table, (*self.graph.names, *do))
        point = self.counterfactuals_once(population, do=do)
        held = [name for name in self.graph.names if name in population.columns]

        def draw(ordered: Population, generator: np.random.Generator) -> Counterfactuals:
            return self.counterfactuals_once(ordered, do=do, rng=generator)

        return replace(
            point, draws=make_draws(population, held, do=do, draws=draws, rng=rng, draw=draw)
        )

    def counterfactuals_once(
        self, population: Population, *, do: Mapping[str, Any], rng: Rng = None
    ) -> Counterfactuals:
        """Abduct, act and predict once, with one draw of the noise if `rng` is given."""
        moved = self.moved_by(do)
        # noise follows from the facts alone, so it is abducted when its attribute is predicted:
        # that of all attributes at once would take as much memory as the table
        noise = self.abduct_hidden(population, moved, rng=rng)
        changed = act(population, do)
        clipped: dict[str, int] = {}
        for child in moved:
            own = noise[child] if child in noise else self.abduct(population, child, rng=rng)
            changed, clipped[child] = self.predict(changed, child, own)
        would_move = self.graph.descendants(do)
        return Counterfactuals(
            population=changed,
            moved=moved,
            clipped=MappingProxyType(clipped),
            held=tuple(name for name in self.resolving if name in would_move),
            couplings={name: self.couplings[name] for name in moved if name in self.couplings},
        )

    def abduct(self, population: Population, child: str, *, rng: Rng = None) -> Any:
        """Recover each row's noise from the facts (abduction, P(U | X, A))."""
        require_columns(population, (*self.graph.parents[child], child))
        causes = {name: population.columns[name] for name in self.graph.parents[child]}
        with naming(child):
            return self.equations[child].abduct(population.columns[child], causes, rng=rng)

    def abduct_hidden(
        self, population: Population, children: Collection[str], *, rng: Rng = None
    ) -> dict[str, Any]:
        """Recover the noise of attributes with a hidden common cause, if any child has it."""
        noise: dict[str, Any] = {}
        for latent in self.latents:
            if not latent.equations.keys().isdisjoint(children):
                require_columns(population, latent.names)
                noise.update(latent.abduct(population.columns, rng=rng))
        return noise

    def predict(self, intervened: Population, child: str, noise: Any) -> tuple[Population, int]:
        """Recompute an attribute from its changed causes (prediction); count values cut off."""
        causes = {name: intervened.columns[name] for name in self.graph.parents[child]}
        with naming(child):
            predicted = self.equations[child].predict(causes, noise)
            column = predicted.column
            if column.data.shape != (len(intervened),):
                raise EquationError(
                    f"it predicted values of shape {column.data.shape} for {len(intervened)} rows. "
                    "An equation predicts one value per row."
                )
            if isinstance(column, Numbers):
                require_finite(column.values)
        kept = column.with_data(in_file(column.data))
        return intervened.with_columns({child: kept}), predicted.clipped


def population_of(
    table: Any,
    names: Iterable[str],
    *,
    attributes: Mapping[str, AttributeDeclaration] | None = None,
    missing: Missing = "error",
) -> Population:
    """Read the named columns of any table; a population is taken as it is."""
    if isinstance(table, Population):
        return table
    declared = read_attributes(attributes) if attributes else ()
    return Population.from_frame(table, columns=names, attributes=declared, missing=missing)


def act(population: Population, do: Mapping[str, Any]) -> Population:
    """Set the intervened attributes in every row (action, do(A := a'))."""
    if not do:
        raise PlanError(
            "The intervention is empty: do={} changes nothing. "
            "Name an attribute and the value it is set to: do={'Gender': 0}."
        )
    require_columns(population, do)
    return population.with_columns(
        {name: _constant(name, population.columns[name], value) for name, value in do.items()}
    )


def _constant(name: str, column: Column, value: object) -> Column:
    if np.ndim(value) != 0:  # type: ignore[arg-type]
        raise PlanError(
            f"do sets {name!r} to a {type(value).__name__}. An intervention sets one value in "
            "all rows: give a single value."
        )
    if isinstance(column, Categories):
        code = column.code_of(value)
        if code is None:
            raise PlanError(
                f"do sets {name!r} to {value!r}, which is not a value of that column. "
                f"Its values are {describe_levels(column)}. Name one of them."
            )
        return column.filled(code)
    if not isinstance(value, Real) or not np.isfinite(float(value)):
        raise PlanError(
            f"do sets {name!r} to {value!r}, but the column holds numbers. Give a finite number, "
            "or declare the column as nominal."
        )
    return Numbers(np.full(len(column), float(value)))


def make_draws(
    population: Population,
    names: Iterable[str],
    *,
    do: Mapping[str, Any],
    draws: int,
    rng: Rng,
    draw: Callable[[Population, np.random.Generator], Counterfactuals],
) -> Draws:
    """Prepare draws, made from rows in an order that depends on their contents."""
    # Random numbers are handed out row by row, so the rows are put into the canonical order of the
    # named columns first, and back afterwards: sorting the table in another way changes no person's
    # draw. Rows that are equal there are ordered by the other columns, then by their ids.
    if draws < 0:
        raise PlanError(f"draws={draws} is negative. Give how many to make, or 0.")
    if not draws:
        return Draws()
    if rng is None:
        raise PlanError(
            f"draws={draws} needs a generator, so that the draws can be repeated. "
            "Pass rng=numpy.random.default_rng(SEED)."
        )
    # four words of the generator's own stream, then a tree of seeds: no draw depends on another
    root = np.random.SeedSequence(rng.integers(0, 2**32, size=4).tolist())
    names = tuple(dict.fromkeys([*names, *do]))
    first = {name: population.columns[name] for name in names}
    others = {name: column for name, column in population.columns.items() if name not in first}
    order = canonical_order(first, others=others, ids=population.ids)
    ordered = take_rows(population, order, names)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))

    def make(generator: np.random.Generator) -> Population:
        made = draw(ordered, generator)
        moved = {name: made.population.columns[name].take(back) for name in made.moved}
        return act(population, do).with_columns(moved)

    return Draws(tuple(root.spawn(draws)), make)


def take_rows(population: Population, rows: NDArray[np.intp], names: Iterable[str]) -> Population:
    """Take some rows of some columns, to compute with."""
    columns = {name: population.columns[name].take(rows) for name in names}
    return replace(
        population,
        columns=MappingProxyType(columns),
        ids=population.ids[rows],
        positions=population.positions[rows],
    )


def require_columns(population: Population, names: Iterable[str]) -> None:
    unknown = [name for name in dict.fromkeys(names) if name not in population.columns]
    if unknown:
        have = list(population.columns)
        shown = ", ".join(map(repr, have[:_SHOWN])) + (", …" if len(have) > _SHOWN else "")
        raise UnknownColumnError(
            f"The worldview or the intervention names {', '.join(map(repr, unknown))}, which the "
            f"population does not have. It holds {shown}. Correct the name, or read that column "
            "into the population too."
        )
