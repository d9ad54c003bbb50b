"""Pearl's three steps from facts to counterfactuals: abduction, action, prediction.

The paper describes them in its section "Structural Causal Models and Counterfactuals" and works an
example in its Appendix A.1 (where the printed abduction of U3 has a plus that must be a minus:
U3 = X3 - β1·X1 - β2·X2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.causal.draws import Draws
from mutandis.causal.equations.equation import naming, require_finite
from mutandis.data.columns import Categories, Column, Numbers, describe_levels
from mutandis.errors import EquationError, PlanError, UnknownColumnError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mutandis.causal.equations.equation import FittedEquation, Predicted
    from mutandis.causal.latent.latent import FittedLatent
    from mutandis.data.population import Population

__all__ = [
    "Counterfactuals",
    "StructuralEquation",
    "abduct",
    "act",
    "predict",
    "require_columns",
    "take_three_steps",
]

# More column names than these help nobody find the right one.
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuralEquation:
    """A fitted equation of M', and the columns it takes its causes from."""

    parents: tuple[str, ...]
    fitted: FittedEquation[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactuals:
    """D^CF: the population as it would have been.

    Parameters
    ----------
    population
        The same people in the same rows, with the intervened and the recomputed columns exchanged.
    moved
        The attributes that were recomputed, causes before their effects. Empty if the intervened
        attributes cause nothing in this worldview.
    clipped
        For each of them, how many values were cut off at the equation's bounds.
    held
        Resolving attributes that would have moved, had the worldview not held them fixed.
    couplings
        For each moved attribute whose noise the facts leave open, the coupling between the two
        worlds that is assumed for it, and that no data can test.
    draws
        Further counterfactual populations, where they were asked for.
    """

    population: Population
    moved: tuple[str, ...]
    clipped: Mapping[str, int]
    held: tuple[str, ...] = ()
    couplings: Mapping[str, str] = field(default_factory=dict)
    draws: Draws = field(default_factory=Draws)


def abduct(
    population: Population,
    equations: Mapping[str, StructuralEquation],
    latents: Iterable[FittedLatent] = (),
    *,
    rng: np.random.Generator | None = None,
) -> Mapping[str, Any]:
    """Abduct: recover each row's noise from the facts (the first step, P(U | X, A)).

    Parameters
    ----------
    population
        The facts, D.
    equations
        The equations whose attributes will be recomputed. Noise of the others is not needed,
        because an attribute that is no effect of the intervened ones keeps its value.
    latents
        Hidden common causes; the attributes that one drives are abducted together.
    rng
        Draws noise from its posterior where the facts leave it open; without it, noise is the one
        value that stands for its posterior.

    Returns
    -------
    Mapping
        The noise of each attribute, in its equation's own form.

    Examples
    --------
    >>> from mutandis.causal import Linear, Worldview
    >>> from mutandis.data.population import Population
    >>> table = {"Gender": [0, 0, 1, 1], "Salary": [40.0, 60.0, 30.0, 40.0]}
    >>> people = Population.from_frame(table, columns=["Gender", "Salary"])
    >>> fitted = Worldview({"Salary": Linear("Gender")}).fit(people).equations["Salary"]
    >>> equations = {"Salary": StructuralEquation(parents=("Gender",), fitted=fitted)}
    >>> abduct(people, equations)["Salary"].residual.tolist()
    [-10.0, 10.0, -5.0, 5.0]
    """
    noise: dict[str, Any] = {}
    for latent in latents:
        if not equations.keys().isdisjoint(latent.equations):
            require_columns(population, latent.names)
            noise.update(latent.abduct(population.columns, rng=rng))
    for child, equation in equations.items():
        if child not in noise:
            require_columns(population, (*equation.parents, child))
            causes = _causes(population, equation)
            with naming(child):
                noise[child] = equation.fitted.abduct(population.columns[child], causes, rng=rng)
    return MappingProxyType(noise)


def act(population: Population, do: Mapping[str, Any]) -> Population:
    """Act: set the intervened attributes for everybody (the second step, do(A := a')).

    Parameters
    ----------
    population
        The facts, D.
    do
        The value that each intervened attribute takes: one of the levels of a column of names, a
        number in a column of numbers.

    Returns
    -------
    Population
        The facts with the intervened columns exchanged; their effects are not yet recomputed.

    Examples
    --------
    >>> from mutandis.data.population import Population
    >>> people = Population.from_frame({"Gender": [0, 1, 1]}, columns=["Gender"])
    >>> act(people, {"Gender": 0}).numbers("Gender").tolist()
    [0.0, 0.0, 0.0]
    """
    if not do:
        raise PlanError(
            "The intervention is empty: do={} changes nothing. "
            "Name an attribute and the value it is set to: do={'Gender': 0}."
        )
    require_columns(population, do)
    return population.with_columns(
        {name: _held(name, population.columns[name], value) for name, value in do.items()}
    )


def predict(
    intervened: Population, equations: Mapping[str, StructuralEquation], noise: Mapping[str, Any]
) -> Counterfactuals:
    """Predict: carry the change on to all effects (the third step, P(X^CF | X, A)).

    Parameters
    ----------
    intervened
        What `act` made of the facts.
    equations
        The equations of the effects, causes before their effects: each sees the counterfactual
        values of those before it.
    noise
        What `abduct` found.

    Examples
    --------
    >>> from mutandis.causal import Linear, Worldview
    >>> from mutandis.data.population import Population
    >>> table = {"Gender": [0, 0, 1, 1], "Salary": [40.0, 60.0, 30.0, 40.0]}
    >>> people = Population.from_frame(table, columns=["Gender", "Salary"])
    >>> fitted = Worldview({"Salary": Linear("Gender")}).fit(people).equations["Salary"]
    >>> equations = {"Salary": StructuralEquation(parents=("Gender",), fitted=fitted)}
    >>> noise = abduct(people, equations)
    >>> predicted = predict(act(people, {"Gender": 0}), equations, noise)
    >>> predicted.population.numbers("Salary").tolist()
    [40.0, 60.0, 45.0, 55.0]
    """
    population = intervened
    clipped = {}
    for child, equation in equations.items():
        with naming(child):
            predicted = equation.fitted.predict(_causes(population, equation), noise[child])
            column = _checked(predicted, rows=len(population))
        clipped[child] = predicted.clipped
        population = population.with_columns({child: column})
    return Counterfactuals(
        population=population, moved=tuple(equations), clipped=MappingProxyType(clipped)
    )


def take_three_steps(
    population: Population,
    do: Mapping[str, Any],
    equations: Mapping[str, StructuralEquation],
    latents: Iterable[FittedLatent] = (),
    *,
    rng: np.random.Generator | None = None,
) -> Counterfactuals:
    """Abduct, act and predict, one attribute after the other.

    Noise follows from the facts alone, so it is abducted when its attribute is predicted: that of
    all attributes at once would take as much memory as the table.

    Parameters
    ----------
    population
        The facts, D.
    do
        The value that each intervened attribute takes.
    equations
        The equations of the effects, causes before their effects.
    latents
        Hidden common causes; the attributes that one drives are abducted together.
    rng
        Draws noise where the facts leave it open.
    """
    latents = tuple(latents)
    driven = {name for latent in latents for name in latent.equations}
    together = {child: equation for child, equation in equations.items() if child in driven}
    hidden = abduct(population, together, latents, rng=rng)
    changed = act(population, do)
    clipped: dict[str, int] = {}
    for child, equation in equations.items():
        alone = {child: equation}
        noise = hidden if child in hidden else abduct(population, alone, rng=rng)
        made = predict(changed, alone, noise)
        changed = made.population
        clipped.update(made.clipped)
    return Counterfactuals(
        population=changed, moved=tuple(equations), clipped=MappingProxyType(clipped)
    )


def require_columns(population: Population, names: Iterable[str]) -> None:
    """Refuse names that are no columns of the population."""
    unknown = [name for name in dict.fromkeys(names) if name not in population.columns]
    if unknown:
        have = list(population.columns)
        shown = ", ".join(map(repr, have[:_SHOWN])) + (", …" if len(have) > _SHOWN else "")
        raise UnknownColumnError(
            f"The worldview or the intervention names {', '.join(map(repr, unknown))}, which the "
            f"population does not have. It holds {shown}. Correct the name, or read that column "
            "into the population too."
        )


def _causes(population: Population, equation: StructuralEquation) -> Mapping[str, Column]:
    return {name: population.columns[name] for name in equation.parents}


def _held(name: str, column: Column, value: object) -> Column:
    """Give the column that holds the intervened value in every row."""
    if np.ndim(value) != 0:  # type: ignore[arg-type]
        raise PlanError(
            f"do sets {name!r} to a {type(value).__name__}. An intervention sets one value for "
            "everybody: give a single value."
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


def _checked(predicted: Predicted, *, rows: int) -> Column:
    column = predicted.column
    values = column.values if isinstance(column, Numbers) else column.codes
    if values.shape != (rows,):
        raise EquationError(
            f"it predicted values of shape {values.shape} for {rows} rows. "
            "An equation predicts one value a row."
        )
    if isinstance(column, Numbers):
        require_finite(column.values)
    return column
