"""Fitted DoWhy models as worldviews (extra ``dowhy``).

A `dowhy.gcm.InvertibleStructuralCausalModel` holds what a worldview holds: a graph, and for each
node with causes a mechanism X = g(pa, N) that can be solved for the noise N. Each mechanism becomes
an equation that is fitted already; the three steps are ours.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories, Numbers, frozen, in_order
from mutandis.errors import EquationError, WorldviewError
from mutandis.numeric.order import distinct_rows
from mutandis.scm.additive import finish
from mutandis.scm.family import Equation, Fitted, Leftover, Predicted, numbers_of, of_residual
from mutandis.scm.worldview import Worldview

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.scm.family import Rng


# How far from the fact the value may be that its own noise leads back to, as a part of the largest
# fact: more than rounding leaves, less than what a mechanism misses that has no inverse.
_ROUND_TRIP = 1e-6

_NEEDED = "Give a fitted dowhy.gcm.InvertibleStructuralCausalModel."


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismNoise:
    factual: Floats
    causes: Floats  # categories as ranks of their levels
    residual: Floats  # the noise N, on DoWhy's own scale
    recovered: Floats  # what the mechanism makes of pa and N: x, but for rounding


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DowhyMechanism(Equation, Fitted[MechanismNoise]):
    """A mechanism that DoWhy has fitted: an equation that has its coefficients already."""

    parents: tuple[str, ...]  # in the order in which DoWhy fitted them
    mechanism: Any  # invertible: it has `estimate_noise` and `evaluate`
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, compare=False)
    """For each cause that DoWhy takes for a category, the levels it was fitted on."""

    def __repr__(self) -> str:
        return f"DowhyMechanism({', '.join([*map(repr, self.parents), _describe(self.mechanism)])})"

    def fit(self, child: Column, parents: Columns) -> DowhyMechanism:
        """Check that the columns can be handed to DoWhy; the mechanism stays as it is."""
        numbers_of(child)
        self._causes(parents)
        return self

    def abduct(
        self,
        child: Column,
        parents: Columns,
        *,
        rng: Rng = None,  # noqa: ARG002 - the facts determine the noise
    ) -> MechanismNoise:
        """Solve the mechanism for its noise, and refuse one that cannot be solved."""
        factual, causes = numbers_of(child), self._causes(parents)
        residual = self._ask(self.mechanism.estimate_noise, factual, causes)
        recovered = self._evaluate(causes, residual)
        _check_round_trip(factual, recovered)
        return MechanismNoise(
            factual=factual,
            causes=frozen(causes),
            residual=frozen(residual),
            recovered=frozen(recovered),
        )

    def predict(self, parents: Columns, noise: MechanismNoise) -> Predicted:
        causes = self._causes(parents)
        moved = self._evaluate(causes, noise.residual)
        # g(pa', N) in exact arithmetic; in floating point this alone leaves a value untouched when
        # the causes do not change
        with np.errstate(over="ignore", invalid="ignore"):
            values = noise.factual + (moved - noise.recovered)
        # asked again among other rows, a model may answer with other last bits
        unchanged = (causes == noise.causes).all(axis=1)
        return finish(np.where(unchanged, noise.factual, values))

    def leftover(
        self,
        child: Column,
        parents: Columns,  # noqa: ARG002
        noise: MechanismNoise,
    ) -> Leftover:
        return of_residual(noise.residual, numbers_of(child))

    def _evaluate(self, causes: Floats, residual: Floats) -> Floats:
        return self._ask(lambda n, pa: self.mechanism.evaluate(pa, n), residual, causes)

    def _ask(
        self, question: Callable[[Floats, NDArray[Any]], Any], values: Floats, causes: Floats
    ) -> Floats:
        """Ask DoWhy once for each distinct row, in an order independent of the table."""
        # matrix products round the same row in one way at one place and in another at another
        chosen, kinds = distinct_rows(np.column_stack([values, causes]))
        try:
            # an overflow is not finite, which the callers check
            with np.errstate(all="ignore"):
                answer = np.asarray(question(values[chosen], self._matrix(causes[chosen])))
            return answer.astype(np.float64).reshape(len(chosen))[kinds]
        except (TypeError, ValueError, RuntimeError) as error:
            raise EquationError(
                f"DoWhy's mechanism refuses these rows ({type(error).__name__}). "
                "Give it values such as it was fitted on."
            ) from error

    def _causes(self, parents: Columns) -> Floats:
        return np.column_stack(
            [
                _ranks(name, parents[name], self.levels[name])
                if name in self.levels
                else _numbers(name, parents[name])
                for name in self.parents
            ]
        )

    def _matrix(self, causes: Floats) -> NDArray[Any]:
        """Return the causes as DoWhy expects them: as objects if one of them is a category."""
        if not self.levels:
            return causes
        matrix = causes.astype(np.object_)
        for place, name in enumerate(self.parents):
            if name in self.levels:
                levels = np.array(self.levels[name], dtype=np.object_)
                matrix[:, place] = levels[causes[:, place].astype(np.intp)]
        return matrix


def worldview_from_dowhy(model: Any, *, outcome: str | None = None) -> Worldview:
    """Convert a fitted DoWhy model, as `Worldview.from_dowhy` describes."""
    try:
        from dowhy.gcm import ProbabilisticCausalModel
    except ModuleNotFoundError:
        raise WorldviewError(
            "DoWhy models need the package dowhy, which is not installed. "
            "Install it: pip install 'mutandis[dowhy]'."
        ) from None
    # the base class of all: what has to be invertible is each node, and its error says which
    if not isinstance(model, ProbabilisticCausalModel):
        raise WorldviewError(f"{type(model).__name__} is not a graphical causal model. {_NEEDED}")
    if outcome is not None:
        _check_outcome(model.graph, outcome)
    nodes = [node for node in model.graph.nodes if node != outcome]
    causes = {node: _fitted_parents(model.graph, node) for node in nodes}
    levels = {
        node: found
        for node, parents in causes.items()
        if not parents and (found := _levels_of(model.causal_mechanism(node)))
    }
    return Worldview(
        {
            node: DowhyMechanism(
                parents=parents,
                mechanism=deepcopy(_invertible(node, model.causal_mechanism(node))),
                levels={name: levels[name] for name in parents if name in levels},
            )
            for node, parents in causes.items()
            if parents
        }
    )


def _check_outcome(graph: Any, outcome: str) -> None:
    if outcome not in graph.nodes:
        nodes = ", ".join(map(repr, graph.nodes))
        raise WorldviewError(
            f"The DoWhy model has no node {outcome!r}. Its nodes are {nodes}. "
            "Leave outcome= out if the decision is none of them."
        )
    effects = [node for node in graph.nodes if outcome in graph.predecessors(node)]
    if effects:
        raise WorldviewError(
            f"The DoWhy model says that the outcome {outcome!r} causes "
            f"{', '.join(map(repr, effects))}. An audit asks what leads to the decision: "
            "remove what follows from it from the model."
        )


def _fitted_parents(graph: Any, node: object) -> tuple[str, ...]:
    from dowhy.gcm.causal_models import CAUSAL_MECHANISM, PARENTS_DURING_FIT
    from dowhy.graph import get_ordered_predecessors

    if not isinstance(node, str):
        raise WorldviewError(
            f"Node {node!r} of the DoWhy model is not text. Nodes are columns of the table: name "
            "them so."
        )
    known = graph.nodes[node]
    if CAUSAL_MECHANISM not in known:
        raise WorldviewError(
            f"Node {node!r} of the DoWhy model has no causal mechanism. Assign one with "
            "model.set_causal_mechanism, then fit the model: dowhy.gcm.fit(model, data)."
        )
    parents = list(get_ordered_predecessors(graph, node))
    if known.get(PARENTS_DURING_FIT) != parents:
        raise WorldviewError(
            f"Node {node!r} of the DoWhy model is not fitted, or its causes have changed since. "
            "Fit the model: dowhy.gcm.fit(model, data)."
        )
    return tuple(parents)


def _invertible(node: str, mechanism: Any) -> Any:
    from dowhy.gcm import ClassifierFCM
    from dowhy.gcm.causal_mechanisms import InvertibleFunctionalCausalModel

    if isinstance(mechanism, ClassifierFCM):
        raise WorldviewError(
            f"Node {node!r} of the DoWhy model has causes and holds names (ClassifierFCM): facts "
            "do not determine its noise. Give it as numbers, or use an equation for categories in "
            "a worldview of equations; a decision is left out with outcome=."
        )
    if not isinstance(mechanism, InvertibleFunctionalCausalModel):
        raise WorldviewError(
            f"Node {node!r} of the DoWhy model has a mechanism ({type(mechanism).__name__}) that "
            "cannot be solved for its noise. Assign an invertible one, such as "
            "AdditiveNoiseModel, and fit the model again."
        )
    return mechanism


def _levels_of(root: Any) -> tuple[Any, ...]:
    """Return the levels that a root was fitted on, if DoWhy takes it for a category."""
    from dowhy.gcm import EmpiricalDistribution
    from dowhy.gcm.util.general import is_categorical

    # the distribution that DoWhy has for names; others are of numbers
    if isinstance(root, EmpiricalDistribution) and is_categorical(root.data):
        return tuple(in_order(set(root.data[:, 0].tolist())))
    return ()


def _ranks(name: str, column: Column, levels: Sequence[Any]) -> Floats:
    if not isinstance(column, Categories):
        raise EquationError(
            f"parent {name!r} held names when DoWhy fitted the model, and now holds numbers. "
            "Give it in the same form in both tables, or declare it as nominal."
        )
    place = {level: float(rank) for rank, level in enumerate(levels)}
    ranks: Floats = column.look_up(place, otherwise=np.nan)
    # DoWhy would take an unknown level for none of those it knows, without an error
    unseen = int(np.isnan(ranks).sum())
    if unseen:
        raise EquationError(
            f"parent {name!r} has {unseen} rows with a level that did not occur when DoWhy fitted "
            "the model, so its effect is unknown. Fit on a table in which every level occurs, or "
            "intervene with one that does."
        )
    return ranks


def _numbers(name: str, column: Column) -> Floats:
    if isinstance(column, Numbers):
        return column.values
    # a status of 0 and 1 is nominal to the audit, and a number to DoWhy
    if not all(isinstance(level, Real) for level in column.levels):
        raise EquationError(
            f"parent {name!r} holds names, but DoWhy was not fitted on names. Give the column in "
            "the same form in both tables; a root that holds names needs the mechanism "
            "EmpiricalDistribution."
        )
    table = np.array([float(level) for level in column.levels])
    values: Floats = table[column.codes]
    return values


def _check_round_trip(factual: Floats, recovered: Floats) -> None:
    tolerance = _ROUND_TRIP * np.abs(factual).max(initial=0.0)
    # written so that a NaN counts as lost too
    lost = int((~(np.abs(recovered - factual) <= tolerance)).sum())
    if lost:
        raise EquationError(
            f"for {lost} of {len(factual)} rows DoWhy's noise does not lead back to the fact, so "
            "no counterfactual follows from it. Assign a mechanism that can have these values "
            "(a logarithm has none at 0 or below), and fit the model again."
        )


def _describe(mechanism: object) -> str:
    """Describe a mechanism in words that are the same in every run: not by its address."""
    kind = type(mechanism)
    is_described = kind.__str__ is not object.__str__ or kind.__repr__ is not object.__repr__
    return str(mechanism) if is_described else kind.__name__
