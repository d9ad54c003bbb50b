"""Equations with additive noise: X = f(pa) + U, or log X = f(pa) + U.

All of them abduct and predict in the same way and differ in f: straight lines fitted by least
squares (`Linear`), whatever a regressor learns (`Additive`), or a stated formula (`stated.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np

from mutandis.data.columns import Categories, Numbers, frozen, is_number
from mutandis.errors import EquationError
from mutandis.numeric.order import ReorderedColumns, distinct_rows
from mutandis.scm.family import (
    Equation,
    Fitted,
    Leftover,
    Predicted,
    numbers_of,
    of_residual,
    read_choice,
)
from mutandis.scm.predictor import (
    LinearPredictor,
    Term,
    fit_linear_predictor,
    require_varying,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.scm.family import Rng


Bounds = tuple[float | None, float | None]
Levels = tuple[float, ...]
LinkName = Literal["identity", "log"]

# float64 carries no more decimal digits than these
_DIGITS = 15


@dataclass(frozen=True, slots=True, init=False, repr=False)
class AdditiveEquation(Equation):
    """The settings that equations with additive noise share."""

    link: LinkName
    bounds: Bounds | None
    decimals: int | None
    levels: Levels | None

    def _set_output(
        self,
        *,
        link: object = "identity",
        bounds: object = None,
        decimals: object = None,
        levels: object = None,
    ) -> None:
        read = read_bounds(bounds)
        self._set(
            link=read_choice("link", link, get_args(LinkName)),
            bounds=read,
            decimals=_read_decimals(decimals),
            levels=_read_levels(levels, bounds=read),
        )

    @property
    def output(self) -> dict[str, Any]:
        """What the fitted equation takes over from the declared one."""
        return {name: getattr(self, name) for name in ("link", "bounds", "decimals", "levels")}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveNoise:
    """Noise as the pair of x and f(pa), whose difference it is."""

    # a row whose causes do not change then keeps its factual value to the last bit
    factual: Floats
    explained: Floats  # f(pa), or log f(pa) under the log link
    link: LinkName = "identity"

    @property
    def residual(self) -> Floats:
        """U = x - f(pa), or log x - log f(pa)."""
        return linked(self.factual, self.link) - self.explained

    def carried_to(self, explained: Floats) -> Floats:
        """Return each row's value under other causes: x + (f(pa') - f(pa))."""
        # f(pa') + U in exact arithmetic; in floating point this alone leaves a value untouched,
        # to the last bit, when the causes do not change
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            change = explained - self.explained
            if self.link == "log":
                return self.factual * np.exp(change)
            moved = self.factual + change
        # x + 0.0 is x in every bit, except that it would turn -0.0 into 0.0
        np.copyto(moved, self.factual, where=change == 0.0)
        return moved


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedAdditiveEquation(Fitted[AdditiveNoise]):
    """A fitted equation X = f(pa) + U, or log X = f(pa) + U."""

    link: LinkName = "identity"
    bounds: Bounds | None = None
    decimals: int | None = None
    levels: Levels | None = None

    def explained(self, parents: Columns, *, rows: int) -> Floats:
        """Compute f(pa), or log f(pa) under the log link, row by row."""
        raise NotImplementedError

    def abduct(self, child: Column, parents: Columns, *, rng: Rng = None) -> AdditiveNoise:
        explained = self.explained(parents, rows=len(child))
        factual = numbers_of(child)
        linked(factual, self.link)  # refuses values that the link cannot have
        return AdditiveNoise(factual=factual, explained=frozen(explained), link=self.link)

    def predict(self, parents: Columns, noise: AdditiveNoise) -> Predicted:
        return self.finished(noise.carried_to(self.explained(parents, rows=len(noise.factual))))

    def finished(self, values: Floats) -> Predicted:
        return finish(values, decimals=self.decimals, bounds=self.bounds, levels=self.levels)

    def leftover(self, child: Column, parents: Columns, noise: AdditiveNoise) -> Leftover:
        measure = "R² of the logarithm" if self.link == "log" else "R²"
        residual = noise.residual
        return of_residual(residual, residual + noise.explained, measure=measure)


def linked(values: Floats, link: LinkName) -> Floats:
    """Transform values to the scale on which the noise is added."""
    if link == "identity":
        return values
    refused = int((values <= 0.0).sum())
    if refused:
        raise EquationError(
            f"the log link needs values above 0, but {refused} of {len(values)} rows have a value "
            "of 0 or below. Use link='identity', or leave these rows out."
        )
    return np.log(values)


def finish(
    values: Floats,
    *,
    decimals: int | None = None,
    bounds: Bounds | None = None,
    levels: Levels | None = None,
) -> Predicted:
    """Round half to even, then move to the nearest level (of two, the lower), then cut off."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = values if decimals is None else np.round(values, decimals)
    require_finite(rounded)
    beyond = np.zeros(len(rounded), dtype=np.bool_)
    finished = rounded
    if levels is not None:
        beyond = (rounded < levels[0]) | (rounded > levels[-1])
        steps = np.array(levels)
        # half of each rather than half of the sum, which may be too large
        middles = steps[:-1] / 2 + steps[1:] / 2
        finished = steps[np.searchsorted(middles, rounded, side="left")]
    low, high = bounds or (None, None)
    beyond |= finished < (-np.inf if low is None else low)
    beyond |= finished > (np.inf if high is None else high)
    clipped = int(np.count_nonzero(beyond))
    finished = np.clip(finished, low, high) if clipped else finished
    return Predicted(column=Numbers(frozen(finished)), clipped=clipped)


def require_finite(values: Floats) -> None:
    lost = int((~np.isfinite(values)).sum())
    if lost:
        raise EquationError(
            f"{lost} of {len(values)} predicted values are not finite numbers. The causes were "
            "moved further than the equation can follow: check their units, or use the identity "
            "link instead of the log link."
        )


def read_bounds(bounds: Any) -> Bounds | None:
    if bounds is None:
        return None
    pair = tuple(bounds) if isinstance(bounds, tuple | list) else ()
    if len(pair) != 2 or not all(bound is None or is_number(bound) for bound in pair):
        raise EquationError(
            f"bounds={bounds!r} is not a pair of the lowest and the highest value. Give finite "
            "numbers, and None where there is no limit: bounds=(0, None)."
        )
    low, high = (None if bound is None else float(bound) for bound in pair)
    if low is not None and high is not None and low >= high:
        raise EquationError(
            f"bounds=({low}, {high}) leave no room: the lowest value comes first and is below the "
            "highest. Exchange or widen them."
        )
    return None if low is None and high is None else (low, high)


def _read_decimals(decimals: Any) -> int | None:
    if decimals is None:
        return None
    whole = isinstance(decimals, int | np.integer) and not isinstance(decimals, bool)
    if not whole or abs(int(decimals)) > _DIGITS:
        raise EquationError(
            f"decimals={decimals!r} is not a whole number from -{_DIGITS} to {_DIGITS}. "
            "Leave decimals out to keep predictions as they are."
        )
    return int(decimals)


def _read_levels(levels: Any, *, bounds: Bounds | None) -> Levels | None:
    if levels is None:
        return None
    # a set has no order, and the letters of a text are not numbers
    unordered = isinstance(levels, str | bytes | set | frozenset | Mapping)
    read = () if unordered or not isinstance(levels, Iterable) else tuple(levels)
    if (
        len(read) < 2
        or not all(map(is_number, read))
        or any(lower >= higher for lower, higher in pairwise(map(float, read)))
    ):
        raise EquationError(
            f"levels of type {type(levels).__name__} are not two or more finite numbers in "
            "ascending order. Give the numbers that the attribute can take, each once, lowest "
            "first: levels=(1, 2, 3)."
        )
    read = tuple(map(float, read))
    low, high = bounds or (None, None)
    if (low is not None and read[0] < low) or (high is not None and read[-1] > high):
        raise EquationError(
            f"levels from {read[0]} to {read[-1]} go beyond bounds=({low}, {high}). Widen the "
            "bounds, or leave them out: levels are bounds too."
        )
    return read


# --- straight lines ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Linear(AdditiveEquation):
    """X = b0 + b1·pa1 + b2·pa2 + … + U, fitted by least squares.

    Numeric parents enter linearly; nominal parents have one shift per level, relative to the first
    level that occurs.

    Parameters
    ----------
    *parents
        The direct causes, by column name.
    link
        "identity" as above; "log" for an attribute that is always above 0 and on which causes act
        by factors: log X = b0 + b1·pa1 + … + U.
    interactions
        Add the products of every two parents, so that the effect of one depends on the value of
        the other. Rows with a combination of values that did not occur in the fit are refused.
    bounds
        The lowest and the highest value the attribute can take; None where there is no such limit.
        Predictions beyond are cut off, and counted.
    decimals
        Round predictions to this many decimals, half to even.
    levels
        All values the attribute can take, lowest first. Predictions are moved to the nearest level,
        the lower of two; those beyond the outermost count as cut off.

    Notes
    -----
    Rounding comes first, then levels, then bounds; all three apply to every row, also to rows on
    which nothing was changed, before the value is passed on to the next equation.

    Examples
    --------
    >>> Linear("Gender", "Age", bounds=(0, None))
    Linear('Gender', 'Age', bounds=(0.0, None))
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
        if not isinstance(interactions, bool):
            raise EquationError(
                f"interactions={interactions!r} is neither True nor False. "
                "Use True to add the products of every two parents."
            )
        if interactions and len(parents) < 2:
            raise EquationError(
                f"interactions=True needs two parents or more, and the equation has "
                f"{len(parents)}. Name the parents that act together, or leave interactions out."
            )
        self._set(parents=parents, interactions=interactions)
        self._set_output(link=link, bounds=bounds, decimals=decimals, levels=levels)

    def fit(self, child: Column, parents: Columns) -> FittedLinear:
        predictor = fit_linear_predictor(
            linked(numbers_of(child), self.link),
            ReorderedColumns(parents, self.parents),
            interactions=self.interactions,
        )
        return FittedLinear(predictor=predictor, **self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLinear(FittedAdditiveEquation):
    """A linear equation with its coefficients."""

    predictor: LinearPredictor

    def explained(self, parents: Columns, *, rows: int) -> Floats:
        return self.predictor.at(parents, rows=rows)

    def decompose(self, before: Columns, after: Columns) -> Decomposition:
        """Split the change of one person's attribute into what each changed term did to it."""
        changed = {name for name in after if before[name].data[0] != after[name].data[0]}
        contributions = {}
        for term in self.predictor.terms:
            if not changed.isdisjoint(term.parents):
                change = float((term.at(after) - term.at(before))[0])
                contributions[term.parents] = change if self.link == "identity" else np.exp(change)
        return Decomposition(
            how="sum" if self.link == "identity" else "factor", contributions=contributions
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """A counterfactual change, split by the causes of an equation."""

    how: Literal["sum", "factor"]  # whether amounts add up to the change, or multiply to its factor
    contributions: Mapping[tuple[str, ...], float]  # the amount by parents, in the equation's order

    @property
    def total(self) -> float:
        amounts = list(self.contributions.values())
        return float(np.sum(amounts) if self.how == "sum" else np.prod(amounts))


# --- regressors -------------------------------------------------------------------------------


class Regressor(Protocol):
    """An object that learns a number from a table of numbers, as in scikit-learn."""

    def fit(self, features: Any, target: Any, /) -> Any:
        """Learn from one row of features and one number per person."""

    def predict(self, features: Any, /) -> Any:
        """Return one number per row."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Additive(AdditiveEquation):
    """X = f(pa) + U, where a regressor learns f.

    Numeric parents are passed to the regressor as they are; nominal ones as one indicator per level
    that occurs.

    Parameters
    ----------
    *parents
        The direct causes, by column name.
    regressor
        Any object with fit(features, target) and predict(features): scikit-learn's gradient
        boosting, for example. A copy of it is fitted.
    bounds, decimals, levels
        The values that the attribute can take, as in `Linear`.

    Notes
    -----
    The counterfactual is x + (f(pa') - f(pa)), and exactly x in rows whose causes did not change.

    Whether two fits give the same f is up to the regressor. Many draw random numbers: set its
    random_state, otherwise results cannot be repeated.

    A regressor that reproduces its rows explains x itself: little noise is left, and the
    counterfactual of a person becomes that of others with the same changed causes. An equation is
    used on the rows it was fitted to, without folds. Choose a regressor that does not overfit:
    shallow trees, large leaves, few rounds, as cross-validation finds them.

    Examples
    --------
    >>> class Means:  # the mean of rows with the same first cause
    ...     def fit(self, features, target):
    ...         self.means = {v: target[features[:, 0] == v].mean() for v in features[:, 0]}
    ...
    ...     def predict(self, features):
    ...         return [self.means[v] for v in features[:, 0]]
    >>> Additive("Gender", regressor=Means()).parents
    ('Gender',)
    """

    parents: tuple[str, ...]
    regressor: Regressor = field(hash=False)  # what can be fitted need not be hashable

    def __init__(
        self,
        *parents: str,
        regressor: Regressor,
        bounds: Bounds | None = None,
        decimals: int | None = None,
        levels: Iterable[float] | None = None,
    ) -> None:
        if not parents:
            raise EquationError(
                "an additive equation has no parents for its regressor to learn from. "
                "Name at least one."
            )
        self._set(parents=parents, regressor=_read_regressor(regressor))
        self._set_output(bounds=bounds, decimals=decimals, levels=levels)

    def fit(self, child: Column, parents: Columns) -> FittedAdditive:
        target = np.array(numbers_of(child))  # a copy: regressors may write to what they get
        if len(target) < 2:
            raise EquationError(
                f"a regressor cannot learn anything from {len(target)} rows. Use more rows."
            )
        causes = {name: parents[name] for name in self.parents}
        require_varying(causes)
        encoding = tuple(_encode(name, column) for name, column in causes.items())
        with _foreign_errors(self.regressor, "being copied"):
            regressor = _copied(self.regressor)
        with _foreign_errors(regressor, "fit()"):
            regressor.fit(_features(encoding, causes), target)
        return FittedAdditive(regressor=regressor, encoding=encoding, **self.output)


def _encode(name: str, column: Column) -> Term:
    """Encode a numeric parent as its values, a nominal one as the place of each level."""
    if isinstance(column, Categories):
        places = {level: float(n) for n, level in enumerate(column.occurring())}
        return Term.shifts(name, places)
    return Term.slope(name, 1.0)


def _features(encoding: Iterable[Term], parents: Columns) -> Floats:
    """Build one row per person; refuse levels that did not occur before."""
    columns: list[Floats] = []
    for parent in encoding:
        values = parent.at(parents)
        if parent.nominal[0]:
            columns += [1.0 * (values == place) for place in parent.effects.values()]
        else:
            columns.append(values)
    return np.column_stack(columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressedNoise(AdditiveNoise):
    """Additive noise, and the features of the factual causes, one row per person."""

    features: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedAdditive(FittedAdditiveEquation):
    """An additive equation with a fitted regressor."""

    regressor: Regressor = field(hash=False)
    encoding: tuple[Term, ...]

    def explained(self, parents: Columns, *, rows: int | None = None) -> Floats:
        return self._explained_by(_features(self.encoding, parents))

    def abduct(self, child: Column, parents: Columns, *, rng: Rng = None) -> RegressedNoise:
        features = _features(self.encoding, parents)
        return RegressedNoise(
            factual=numbers_of(child),
            explained=frozen(self._explained_by(features)),
            features=frozen(features),
        )

    def predict(self, parents: Columns, noise: AdditiveNoise) -> Predicted:
        features = _features(self.encoding, parents)
        explained = self._explained_by(features)
        if isinstance(noise, RegressedNoise):
            # asked again among other rows, a regressor may answer with other last bits
            unchanged = (features == noise.features).all(axis=1)
            explained = np.where(unchanged, noise.explained, explained)
        return self.finished(noise.carried_to(explained))

    def _explained_by(self, features: Floats) -> Floats:
        # Each distinct row is asked for once, in an order that depends on the rows alone: the same
        # causes get the same f(pa) even where rounding depends on what is computed together.
        chosen, kinds = distinct_rows(features)
        return _predicted(self.regressor, features[chosen])[kinds]


def _predicted(regressor: Regressor, features: Floats) -> Floats:
    """Ask the regressor, and require one finite number per row."""
    rows, name = len(features), type(regressor).__name__
    with _foreign_errors(regressor, "predict()"):
        answer = regressor.predict(features)
    try:
        values = np.array(answer, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.shape not in {(rows,), (rows, 1)}:
        raise EquationError(
            f"its regressor ({name}) predicted {type(answer).__name__}, which does not hold one "
            f"number for each of {rows} rows. Use a regressor that does, and not a classifier."
        )
    if lost := int(np.count_nonzero(~np.isfinite(values))):
        raise EquationError(
            f"its regressor ({name}) predicted {lost} of {rows} values that are not finite "
            "numbers. Scale the causes, or use another regressor."
        )
    return values.reshape(rows)


@contextmanager
def _foreign_errors(regressor: object, doing: str) -> Iterator[None]:
    """Replace what a regressor raises by its type alone: its text may quote cells."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever code from elsewhere may raise
        raise EquationError(
            f"its regressor ({type(regressor).__name__}) raised {type(error).__name__} in {doing}. "
            "Try it on the parents' columns alone to see why."
        ) from None


def _read_regressor(regressor: Any) -> Any:
    able = all(callable(getattr(regressor, method, None)) for method in ("fit", "predict"))
    if isinstance(regressor, type) or not able:
        shown = regressor.__name__ if isinstance(regressor, type) else type(regressor).__name__
        raise EquationError(
            f"the regressor ({shown}) is not an object with fit() and predict(). "
            "Give one, such as a regressor of scikit-learn, and not its class."
        )
    return regressor


def _copied(regressor: Regressor) -> Regressor:
    """Copy the declared regressor, unfitted if scikit-learn can clone it."""
    if hasattr(regressor, "get_params"):
        from importlib import import_module

        try:
            return import_module("sklearn.base").clone(regressor)  # type: ignore[no-any-return]
        except (ImportError, TypeError, RuntimeError):
            pass  # get_params is not scikit-learn's own
    return deepcopy(regressor)
