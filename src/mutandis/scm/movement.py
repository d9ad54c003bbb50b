"""How far counterfactuals move where a problem that was found is mended.

Of a problem, one equation is fitted again in the way that the problem suggests: with the arrow, the
bend or the product that is missing, with noise whose width differs, or in another family. All other
equations stay as they are. The counterfactuals of the rows that the intervention changes are then
compared with those of the worldview as it was declared.

An arrow between two effects of A need not move anything. If Y = a + b·A + U is given the further
cause X = c + d·A + V, least squares divides b into a direct part and one through X, b' + e·d, and
do(A) shifts Y by both. docs/diagnostics.md says when that is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import MutandisError
from mutandis.scm.additive import AdditiveEquation, Linear
from mutandis.scm.categorical import Categorical
from mutandis.scm.counterfactual import StructuralEquation, abduct, act, predict
from mutandis.scm.dependence import (
    SMALLEST_GROUP,
    codes_of,
    dot,
    features_of,
    takes_few_values,
)
from mutandis.scm.diagnosis import (
    NOTICEABLE,
    IndependenceCheck,
    Movement,
    ResidualCheck,
)
from mutandis.scm.family import (
    Equation,
    Fitted,
    categories_of,
    numbers_of,
)
from mutandis.scm.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mutandis.data.columns import Columns, Floats
    from mutandis.data.population import Population
    from mutandis.scm.additive import AdditiveNoise, FittedAdditiveEquation
    from mutandis.scm.family import Predicted, Rng
    from mutandis.scm.worldview import FittedWorldview, Worldview

    Derive = Callable[[Columns], dict[str, Column]]
    Width = Callable[[Column], Floats]


# Counterfactuals that differ by less are equal up to the rounding of two fits.
_ROUNDING = 1e-6
# Draws of noise that the facts leave open start here: the same table gets the same diagnosis.
_SEED = 1996
# A bend is a line in as many parts as these cut a numeric cause into.
_CUTS = (0.2, 0.4, 0.6, 0.8)


def generator_of(name: str) -> np.random.Generator:
    # by name, so that another equation's draws change nothing in this one's
    return np.random.default_rng([_SEED, crc32(name.encode())])


_EITHER = "an arrow between them, in either direction"
_DRIVEN = "a hidden cause drives it, which would have to be fitted again"


class _NotMeasuredError(Exception):
    """Says why a problem has no repair that can be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repair:
    said: tuple[str, ...]  # a form, and the columns that it is filled with
    child: str
    equation: Equation

    def describe(self, movement: Movement) -> Movement:
        form, *names = self.said
        return replace(movement, repair=form.format(*names), made_of=self.said)


@dataclass(frozen=True, kw_only=True)
class MovementMeter:
    """A fitted worldview, and the rows that an intervention changes."""

    worldview: Worldview
    fitted: FittedWorldview
    columns: Columns
    """All rows, in their canonical order."""
    do: Mapping[str, Any]
    facts: Population
    """The rows that the intervention changes, in their canonical order."""

    @cached_property
    def before(self) -> Population:
        """Their counterfactuals under the worldview as it was declared."""
        return self._predicted(act(self.facts, self.do), self.fitted.revised(self.do))

    @property
    def _driven(self) -> dict[str, str]:
        """The attributes that hidden causes drive, each with the name of its hidden cause."""
        latents = self.worldview.latents
        return {child: latent.name for latent in latents for child in latent.equations}

    def _predicted(
        self, population: Population, equations: Mapping[str, StructuralEquation]
    ) -> Population:
        """Predict some attributes anew, each from the draws that belong to its name."""
        # drawn before and after a repair from the same seed where the facts leave noise open: a
        # most likely category hides that others have become likelier
        for name, equation in equations.items():
            alone, rng = {name: equation}, generator_of(self._driven.get(name, name))
            noise = abduct(self.facts, alone, self.fitted.latents, rng=rng)
            population = predict(population, alone, noise).population
        return population

    def movement_of(self, check: ResidualCheck | IndependenceCheck) -> Movement:
        """Mend what a check complains of, in each way that there is; give what moves most."""
        try:
            tried = [self._movement_under(repair) for repair in self._repairs(check)]
        except _NotMeasuredError as error:
            return Movement(note=str(error))
        except MutandisError:
            # its text may name columns that were made up here
            return Movement(note="the equation cannot be fitted in that way")
        if not tried:
            return Movement(repair=_EITHER)
        largest = max(tried, key=lambda one: (one.share, one.median or 0.0, one.largest or 0.0))
        if len(tried) > 1 and largest.severity == "none":
            return replace(largest, repair=_EITHER, made_of=())
        return largest

    def _movement_under(self, repair: _Repair) -> Movement:
        child, equation = repair.child, repair.equation
        causes = {name: self.columns[name] for name in equation.parents}
        again = equation.fit(self.columns[child], causes)
        graph = Graph.from_parents({**self.worldview.graph.parents, child: tuple(equation.parents)})
        affected = {child, *graph.descendants([child], held=self.worldview.resolving)}
        mended = replace(
            self.fitted, graph=graph, equations={**self.fitted.equations, child: again}
        ).revised(self.do)
        revised = {name: own for name, own in mended.items() if name in affected}
        after = self._predicted(self.before, revised)
        moved = [self._distance(name, after) for name in revised]
        if not moved:
            return repair.describe(Movement())
        largest = max(moved, key=lambda one: (one.share, one.median or 0.0, one.largest or 0.0))
        return repair.describe(largest)

    def _distance(self, name: str, after: Population) -> Movement:
        """Compare two counterfactual columns, in standard deviations of the facts."""
        one, other = self.before.columns[name], after.columns[name]
        if isinstance(one, Numbers) and isinstance(other, Numbers):
            distances = np.abs(one.values - other.values) / _deviation(self.columns[name])
            largest = float(distances.max())
            return Movement(
                attribute=name if largest > _ROUNDING else None,
                share=float(np.mean(distances >= NOTICEABLE)),
                median=float(np.median(distances)),
                largest=largest,
            )
        share = float(np.mean(_differ(one, other)))
        return Movement(attribute=name if share else None, share=share)

    # --- repairs ----------------------------------------------------------------------------------

    def _repairs(self, check: ResidualCheck | IndependenceCheck) -> Iterator[_Repair]:
        if isinstance(check, IndependenceCheck):
            yield from self._arrows(check)
            return
        child, on = check.child, check.on
        equation = self._equation_of(child)
        if equation is None:
            raise _NotMeasuredError("it has no equation")
        if check.aspect == "level" and on is not None and on not in equation.parents:
            yield self._arrow(on, child)
        elif check.aspect == "level" and on is not None:
            bent = _widened_by(equation, partial(_hinges, on), on)
            yield _Repair(said=("a bend in {}", on), child=child, equation=bent)
        elif check.aspect == "interaction" and on is not None and check.with_column is not None:
            pair = on, check.with_column
            said: tuple[str, ...] = ("an effect of {} that changes with {}", *pair)
            product = _widened_by(equation, partial(_products, *pair), *pair)
            yield _Repair(said=said, child=child, equation=product)
        elif on is not None and isinstance(equation, AdditiveEquation):
            said = ("noise whose width follows {}", on)
            yield _Repair(said=said, child=child, equation=_Spreading(equation, on))
        else:
            yield _other_family(child, equation)

    def _arrows(self, check: IndependenceCheck) -> Iterator[_Repair]:
        """Add an arrow in either direction, as far as the graph and the intervention allow it."""
        first, second = check.first, check.second
        graph, equations = self.worldview.graph, self.worldview.equations
        pairs = [(first, second)]
        # a root stays one, unless both are
        if (first in equations or second not in equations) and second not in graph.descendants(
            [first]
        ):
            pairs.append((second, first))
        free = [(cause, child) for cause, child in pairs if child not in self.do]
        fitted = [(cause, child) for cause, child in free if child not in self._driven]
        if free and not fitted:
            raise _NotMeasuredError(_DRIVEN)
        for cause, child in fitted:
            if not self._is_known_to_move_nothing(cause, child):
                yield self._arrow(cause, child)

    def _is_known_to_move_nothing(self, cause: str, child: str) -> bool:
        """Tell whether an arrow only divides a shift: two straight lines with the same causes."""
        one, other = (self.worldview.equations.get(name) for name in (cause, child))
        if one is None or other is None or set(one.parents) != set(other.parents):
            return False
        straight = all(equation == Linear(*equation.parents) for equation in (one, other))
        return straight and cause not in (*self.worldview.resolving, *self.do)

    def _arrow(self, cause: str, child: str) -> _Repair:
        said = ("an arrow from {} to {}", cause, child)
        equation = self._equation_of(child)
        if equation is None:
            family = Categorical if isinstance(self.columns[child], Categories) else Linear
            return _Repair(said=said, child=child, equation=family(cause))
        return _Repair(said=said, child=child, equation=_widened(equation, cause))

    def _equation_of(self, child: str) -> Equation | None:
        """Find the equation of an attribute; None of a root."""
        if child in self._driven:
            raise _NotMeasuredError(_DRIVEN)
        return self.worldview.equations.get(child)


def _deviation(column: Column) -> float:
    values = column.values if isinstance(column, Numbers) else np.zeros(1)
    centred = values - np.add.reduce(values) / len(values)
    scale = float(np.abs(centred).max()) or 1.0
    return scale * ((dot(centred / scale, centred / scale) / len(values)) ** 0.5 or 1.0)


def _differ(one: Column, other: Column) -> Any:
    """Mark where two columns have different names; equations may order their levels differently."""
    if not isinstance(one, Categories) or not isinstance(other, Categories):
        raise _NotMeasuredError("the other equation gives names instead of numbers")
    codes = np.array([one.code_of(level) for level in other.levels], dtype=object)
    return one.codes != codes[other.codes]


def _other_family(child: str, equation: Equation) -> _Repair:
    other = equation.alternative()
    if other is None:
        raise _NotMeasuredError("there is no other family to compare with")
    return _Repair(said=(other[0],), child=child, equation=other[1])


def _widened(equation: Equation, *names: str) -> Equation:
    """Declare the same equation with further causes."""
    wider = equation.with_parents(*names)
    if wider is None:
        raise _NotMeasuredError("its equation cannot be given further causes")
    return wider


def _widened_by(equation: Equation, learn: Callable[[Columns], Derive], *causes: str) -> _Widened:
    parents = tuple(dict.fromkeys([*equation.parents, *causes]))
    return _Widened(equation=equation, parents=parents, learn=learn)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Widened(Equation):
    """An equation of the same family with further columns, which follow from its causes."""

    equation: Equation
    parents: tuple[str, ...]
    learn: Callable[[Columns], Derive]

    def fit(self, child: Column, parents: Columns) -> _FittedWidened:
        derive = self.learn(parents)
        further = derive(parents)
        if not further:
            raise _NotMeasuredError("the equation has that already")
        fitted = _widened(self.equation, *further).fit(child, {**parents, **further})
        return _FittedWidened(fitted=fitted, derive=derive)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FittedWidened(Fitted[Any]):
    fitted: Fitted[Any]
    derive: Derive

    def abduct(self, child: Column, parents: Columns, *, rng: Rng = None) -> Any:
        return self.fitted.abduct(child, {**parents, **self.derive(parents)}, rng=rng)

    def predict(self, parents: Columns, noise: Any) -> Predicted:
        return self.fitted.predict({**parents, **self.derive(parents)}, noise)


def _hinges(on: str, parents: Columns) -> Derive:
    """Bend a line at the fifths of a cause, or at each of its values if they are few."""
    column = parents[on]
    if isinstance(column, Categories):
        raise _NotMeasuredError("names have no line that could bend")
    distinct = np.unique(column.values)
    cuts = distinct if takes_few_values(column) else np.unique(np.quantile(column.values, _CUTS))
    knots = cuts[(cuts > distinct[0]) & (cuts < distinct[-1])].tolist()

    def derive(columns: Columns) -> dict[str, Column]:
        values = numbers_of(columns[on])
        return {
            _made_up(on, place): Numbers(np.maximum(values - knot, 0.0))
            for place, knot in enumerate(knots)
        }

    return derive


def _products(on: str, other: str, parents: Columns) -> Derive:
    """Multiply two causes: numbers around their means, names as one indicator per further level."""
    first, second = _terms(parents[on]), _terms(parents[other])

    def derive(columns: Columns) -> dict[str, Column]:
        return {
            _made_up(on, other, place, further): Numbers(left(columns[on]) * right(columns[other]))
            for place, left in enumerate(first)
            for further, right in enumerate(second)
        }

    varying = [name for name, column in derive(parents).items() if np.ptp(numbers_of(column)) > 0.0]
    return lambda columns: {
        name: column for name, column in derive(columns).items() if name in varying
    }


def _terms(column: Column) -> list[Width]:
    if isinstance(column, Categories):
        return [partial(_indicator, level) for level in column.occurring()[1:]]
    mean = float(np.add.reduce(column.values) / len(column))
    return [lambda other: numbers_of(other) - mean]


def _indicator(level: object, column: Column) -> Floats:
    categories = categories_of(column)
    return np.asarray(categories.codes == categories.code_of(level), dtype=np.float64)


def _made_up(*parts: object) -> str:
    # with a character that no column of a file can have in its name
    return "\0".join(map(str, parts))


@dataclass(frozen=True, slots=True)
class _Spreading(Equation):
    """An equation with additive noise whose width follows a column: X = f(pa) + s(on)·U."""

    equation: Equation
    on: str

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.equation.parents, self.on]))

    def fit(self, child: Column, parents: Columns) -> _FittedSpreading:
        fitted: Any = self.equation.fit(child, parents)
        noise: AdditiveNoise = fitted.abduct(child, parents)
        return _FittedSpreading(
            fitted=fitted, on=self.on, width=_width_by(parents[self.on], noise.residual)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _FittedSpreading(Fitted[Any]):
    fitted: FittedAdditiveEquation
    on: str
    width: Width

    def abduct(
        self, child: Column, parents: Columns, *, rng: Rng = None
    ) -> tuple[AdditiveNoise, Floats]:
        return self.fitted.abduct(child, parents, rng=rng), self.width(parents[self.on])

    def predict(self, parents: Columns, noise: tuple[AdditiveNoise, Floats]) -> Predicted:
        kept, before = noise
        stretched = kept.residual * (self.width(parents[self.on]) / before - 1.0)
        explained = self.fitted.explained(parents, rows=len(before))
        return self.fitted.finished(kept.carried_to(explained + stretched))


def _width_by(column: Column, residual: Floats) -> Width:
    """Learn the mean absolute deviation from the median of one's own group (Brown, Forsythe)."""
    few = takes_few_values(column)
    groups = codes_of(column) if few else features_of(column).groups
    overall = _mean_deviation(residual)
    large = np.flatnonzero(np.bincount(groups) >= SMALLEST_GROUP).tolist()
    widths = [_mean_deviation(residual[groups == group]) or overall for group in large]
    if isinstance(column, Categories):
        # the codes of groups count the levels that occur
        occurring = column.occurring()
        by_level = {occurring[group]: width for group, width in zip(large, widths, strict=True)}
        return lambda other: categories_of(other).look_up(by_level, otherwise=overall)
    if not large:
        raise _NotMeasuredError("there are too few rows to compare widths")
    places = [float(np.median(column.values[groups == group])) for group in large]
    return lambda other: np.interp(numbers_of(other), places, widths)


def _mean_deviation(residual: Floats) -> float:
    return float(np.add.reduce(np.abs(residual - np.median(residual))) / len(residual))
