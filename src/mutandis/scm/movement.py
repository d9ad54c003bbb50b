"""How far counterfactuals move once a problem of a worldview is repaired.

One equation is fitted again in the way that the problem suggests: with the missing arrow, bend or
product, with noise whose width differs, or in another family. All other equations are kept. The
counterfactuals of the rows that the intervention changes are then compared with those of the
declared worldview.

An arrow between two effects of A need not move anything. If Y = a + b·A + U is given the further
cause X = c + d·A + V, least squares divides b into a direct part and one through X, b' + e·d, and
do(A) shifts Y by both. docs/diagnostics.md says when that is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.errors import MutandisError
from mutandis.scm.additive import AdditiveEquation, Linear
from mutandis.scm.categorical import Categorical
from mutandis.scm.counterfactual import act
from mutandis.scm.dependence import SMALLEST_GROUP, codes_of, dot, features_of, takes_few_values
from mutandis.scm.diagnosis import NOTICEABLE, Finding, Movement
from mutandis.scm.family import Equation, Fitted, categories_of, numbers_of
from mutandis.scm.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mutandis.data.columns import Columns, Floats
    from mutandis.data.population import Population
    from mutandis.scm.additive import AdditiveNoise
    from mutandis.scm.counterfactual import FittedWorldview
    from mutandis.scm.family import Predicted, Rng
    from mutandis.scm.worldview import Worldview

    Derive = Callable[[Columns], dict[str, Column]]
    Width = Callable[[Column], Floats]


# counterfactuals that differ by less are equal up to the rounding of two fits
_ROUNDING = 1e-6
# draws of noise that the facts leave open start here: the same table gets the same diagnosis
_SEED = 1996
# a bend is a line in as many pieces as these cut a numeric cause into
_CUTS = (0.2, 0.4, 0.6, 0.8)

_EITHER = "an arrow between them, in either direction"
_DRIVEN = "a hidden cause drives it, which would have to be fitted again"


def generator_of(name: str) -> np.random.Generator:
    # by name, so that another equation's draws change nothing in this one's
    return np.random.default_rng([_SEED, crc32(name.encode())])


class _NotMeasuredError(Exception):
    """The reason why a problem has no repair that can be tried."""


class _Repair(NamedTuple):
    """An equation that is fitted again, with other parents or in another way."""

    child: str
    parents: tuple[str, ...]
    fit: Callable[[Column, Columns], Fitted[Any]]
    form: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MovementMeter:
    """A fitted worldview, and the rows that an intervention changes."""

    worldview: Worldview
    fitted: FittedWorldview
    columns: Columns  # all rows, in their canonical order
    do: Mapping[str, Any]
    facts: Population  # the rows that the intervention changes, in their canonical order

    @cached_property
    def before(self) -> Population:
        """Their counterfactuals under the declared worldview."""
        moved = self.fitted.moved_by(self.do)
        return self._predicted(act(self.facts, self.do), self.fitted, moved)

    @cached_property
    def _driven(self) -> dict[str, str]:
        """The attributes with a hidden common cause, and its name."""
        return {child: name for name, own in self.worldview.hidden.items() for child in own}

    def _predicted(
        self, population: Population, fitted: FittedWorldview, names: tuple[str, ...]
    ) -> Population:
        """Predict some attributes anew, each from the draws that belong to its name."""
        # drawn before and after a repair from the same seed where the facts leave noise open: a
        # most likely category hides that others have become likelier
        for name in names:
            rng = generator_of(self._driven.get(name, name))
            if name in self._driven:
                noise = fitted.abduct_hidden(self.facts, [name], rng=rng)[name]
            else:
                noise = fitted.abduct(self.facts, name, rng=rng)
            population, _ = fitted.predict(population, name, noise)
        return population

    def movement_of(self, finding: Finding) -> Movement:
        """Repair what a finding shows, in each way there is; return what moves most."""
        try:
            tried = [self._movement_under(repair) for repair in self._repairs(finding)]
        except _NotMeasuredError as error:
            return Movement(note=str(error))
        except MutandisError:
            # its text may name columns that were made up here
            return Movement(note="the equation cannot be fitted in that way")
        if not tried:
            return Movement(form=_EITHER)
        largest = max(tried, key=lambda one: one.size)
        if len(tried) > 1 and largest.severity == "none":
            return replace(largest, form=_EITHER, columns=())
        return largest

    def _movement_under(self, repair: _Repair) -> Movement:
        child, causes = repair.child, {name: self.columns[name] for name in repair.parents}
        again = repair.fit(self.columns[child], causes)
        graph = Graph.from_parents({**self.worldview.graph.parents, child: repair.parents})
        affected = {child, *graph.descendants([child], held=self.worldview.resolving)}
        repaired = replace(
            self.fitted, graph=graph, equations={**self.fitted.equations, child: again}
        )
        revised = tuple(name for name in repaired.moved_by(self.do) if name in affected)
        after = self._predicted(self.before, repaired, revised)
        moved = [self._distance(name, after) for name in revised]
        largest = max(moved, key=lambda one: one.size, default=Movement())
        return replace(largest, form=repair.form, columns=repair.columns)

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
        if not isinstance(one, Categories) or not isinstance(other, Categories):
            raise _NotMeasuredError("the other equation predicts names instead of numbers")
        # equations may order their levels differently
        codes = np.array([one.code_of(level) for level in other.levels], dtype=object)
        share = float(np.mean(one.codes != codes[other.codes]))
        return Movement(attribute=name if share else None, share=share)

    # --- repairs ----------------------------------------------------------------------------------

    def _repairs(self, finding: Finding) -> Iterator[_Repair]:
        child, on = finding.child, finding.on
        if finding.aspect == "independence":
            yield from self._arrows(str(on), child)
            return
        equation = self._equation_of(child)
        if equation is None:
            raise _NotMeasuredError("it has no equation")
        spreads = finding.aspect == "spread"
        if on is None or (spreads and not isinstance(equation, AdditiveEquation)):
            alternative = equation.alternative()
            if alternative is None:
                raise _NotMeasuredError("there is no other family to compare with")
            form, other = alternative
            yield _Repair(child, other.parents, other.fit, form)
            return
        fit: Any
        columns = (on, *finding.further)
        parents = tuple(dict.fromkeys([*equation.parents, *columns]))
        if spreads:
            fit = partial(_fit_spreading, equation, on)
            yield _Repair(child, parents, fit, "noise whose width follows {}", columns)
        elif finding.aspect == "interaction":
            fit = partial(_fit_widened, equation, partial(_products, on, finding.further[0]))
            yield _Repair(child, parents, fit, "an effect of {} that changes with {}", columns)
        elif on in equation.parents:
            fit = partial(_fit_widened, equation, partial(_hinges, on))
            yield _Repair(child, parents, fit, "a bend in {}", columns)
        else:
            yield self._arrow(on, child)

    def _arrows(self, first: str, second: str) -> Iterator[_Repair]:
        """Add an arrow in either direction, as far as the graph and the intervention allow it."""
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
        yield from (self._arrow(cause, child) for cause, child in fitted)

    def _arrow(self, cause: str, child: str) -> _Repair:
        equation = self._equation_of(child)
        if equation is None:
            family = Categorical if isinstance(self.columns[child], Categories) else Linear
            wider: Equation = family(cause)
        else:
            wider = _widened(equation, cause)
        return _Repair(child, wider.parents, wider.fit, "an arrow from {} to {}", (cause, child))

    def _equation_of(self, child: str) -> Equation | None:
        """Find the equation of an attribute; None for a root."""
        if child in self._driven:
            raise _NotMeasuredError(_DRIVEN)
        return self.worldview.equations.get(child)


def _deviation(column: Column) -> float:
    values = column.values if isinstance(column, Numbers) else np.zeros(1)
    centred = values - np.add.reduce(values) / len(values)
    scale = float(np.abs(centred).max()) or 1.0
    return scale * ((dot(centred / scale, centred / scale) / len(values)) ** 0.5 or 1.0)


# --- columns that follow from causes ----------------------------------------------------------


def _widened(equation: Equation, *names: str) -> Equation:
    wider = equation.with_parents(*names)
    if wider is None:
        raise _NotMeasuredError("its equation cannot be given further causes")
    return wider


def _fit_widened(
    equation: Equation, learn: Callable[[Columns], Derive], child: Column, parents: Columns
) -> _FittedWidened:
    """Fit an equation with further columns, which follow from its causes."""
    derive = learn(parents)
    further = derive(parents)
    if not further:
        raise _NotMeasuredError("the equation has that already")
    fitted = _widened(equation, *further).fit(child, {**parents, **further})
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


# --- noise whose width follows a column -------------------------------------------------------


def _fit_spreading(
    equation: Equation, on: str, child: Column, parents: Columns
) -> _FittedSpreading:
    """Fit an equation with additive noise whose width follows a column: X = f(pa) + s(on)·U."""
    fitted: Any = equation.fit(child, parents)
    width = _width_by(parents[on], fitted.abduct(child, parents).residual)
    return _FittedSpreading(fitted=fitted, on=on, width=width)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FittedSpreading(Fitted[Any]):
    fitted: Any
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
        made: Predicted = self.fitted.finished(kept.carried_to(explained + stretched))
        return made


def _width_by(column: Column, residual: Floats) -> Width:
    """Estimate the mean absolute deviation from the median by group (Brown and Forsythe)."""
    groups = codes_of(column) if takes_few_values(column) else features_of(column).groups
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
