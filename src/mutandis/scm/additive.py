"""Additive equations: whatever a regressor learns of the causes, plus noise."""

from __future__ import annotations

from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mutandis.data.columns import Categories, frozen
from mutandis.errors import EquationError
from mutandis.numeric.order import distinct_rows
from mutandis.scm.family import Predicted, numbers_of
from mutandis.scm.numeric import (
    AdditiveEquation,
    AdditiveNoise,
    Bounds,
    FittedAdditiveEquation,
)
from mutandis.scm.predictor import (
    LevelShifts,
    SingleTerm,
    Slope,
    require_varying,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.scm.family import Rng


class Regressor(Protocol):
    """What learns a number from a table of numbers, as scikit-learn's regressors do."""

    def fit(self, features: Any, target: Any, /) -> Any:
        """Learn from one row of features and one number per person."""

    def predict(self, features: Any, /) -> Any:
        """Give one number per row."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Additive(AdditiveEquation):
    """X = f(pa) + U, where a regressor learns f.

    Numeric parents are handed to the regressor as they are; nominal ones as one column per level
    that occurs, which is 1 in the rows that have it and 0 in the others.

    Parameters
    ----------
    *parents
        The direct causes, by column name.
    regressor
        Any object with fit(features, target) and predict(features): scikit-learn's gradient
        boosting, for example. It is copied before it is fitted; the one that is given stays as it
        is.
    bounds, decimals, levels
        The values that the attribute can take, as in `Linear`: predictions are rounded to the given
        decimals, moved to the nearest level, and cut off at the bounds.

    Notes
    -----
    The counterfactual is x + (f(pa') - f(pa)), and exactly x in rows whose causes did not change.

    Whether two fits give the same f is up to the regressor. Many draw random numbers: set its
    random_state, otherwise results cannot be repeated.

    A regressor that reproduces its rows explains x itself: little noise is left, and the
    counterfactual of a person becomes that of others with the same changed causes. An equation is
    used on the rows it was fitted to, and nothing tells it which row of which fold a person was, so
    it does not fit in folds. Choose a regressor that does not over-fit: shallow trees, large
    leaves, few rounds, as cross-validation finds them.

    Examples
    --------
    >>> from mutandis.data.columns import Numbers
    >>> class Means:  # the mean of those who have the same first cause
    ...     def fit(self, features, target):
    ...         self.means = {v: target[features[:, 0] == v].mean() for v in features[:, 0]}
    ...
    ...     def predict(self, features):
    ...         return [self.means[v] for v in features[:, 0]]
    >>> gender = {"Gender": Numbers(np.array([0.0, 0.0, 1.0, 1.0]))}
    >>> salary = Numbers(np.array([40.0, 60.0, 30.0, 40.0]))
    >>> fitted = Additive("Gender", regressor=Means()).fit(salary, gender)
    >>> all_zero = {"Gender": Numbers(np.zeros(4))}
    >>> fitted.predict(all_zero, fitted.abduct(salary, gender)).values.tolist()
    [40.0, 60.0, 45.0, 55.0]
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
        self._set_numeric(bounds=bounds, decimals=decimals, levels=levels)

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
            regressor.fit(features_of(encoding, causes), target)
        return FittedAdditive(regressor=regressor, encoding=encoding, **self.numeric)


def _encode(name: str, column: Column) -> SingleTerm:
    """Give a numeric parent its values, a nominal one the place of each level that occurs."""
    if isinstance(column, Categories):
        places = {level: float(n) for n, level in enumerate(column.occurring())}
        return LevelShifts(parent=name, shifts=MappingProxyType(places))
    return Slope(parent=name, slope=1.0)


def features_of(encoding: Iterable[SingleTerm], parents: Columns) -> Floats:
    """Give one row per person; refuse levels that did not occur before."""
    columns: list[Floats] = []
    for parent in encoding:
        values = parent.at(parents)
        if isinstance(parent, LevelShifts):
            columns += [1.0 * (values == place) for place in parent.shifts.values()]
        else:
            columns.append(values)
    return np.column_stack(columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressedNoise(AdditiveNoise):
    """Additive noise, with the causes as the regressor saw them, one row per person."""

    features: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedAdditive(FittedAdditiveEquation):
    """An additive equation whose regressor has learnt f."""

    regressor: Regressor = field(hash=False)
    encoding: tuple[SingleTerm, ...]

    def explained(self, parents: Columns, *, rows: int | None = None) -> Floats:  # noqa: ARG002
        return self._explained_by(features_of(self.encoding, parents))

    def abduct(
        self,
        child: Column,
        parents: Columns,
        *,
        rng: Rng = None,  # noqa: ARG002 - the facts determine the noise
    ) -> RegressedNoise:
        features = features_of(self.encoding, parents)
        return RegressedNoise(
            factual=numbers_of(child),
            explained=frozen(self._explained_by(features)),
            features=frozen(features),
        )

    def predict(self, parents: Columns, noise: AdditiveNoise) -> Predicted:
        features = features_of(self.encoding, parents)
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
    """Ask the regressor, and check that it answers with one finite number per row."""
    rows, name = len(features), type(regressor).__name__
    with _foreign_errors(regressor, "predict()"):
        answer = regressor.predict(features)
    try:
        values = np.array(answer, dtype=np.float64)
    except (TypeError, ValueError):
        raise EquationError(
            f"its regressor ({name}) predicted {type(answer).__name__}, which does not hold one "
            "number per row. Use a regressor, not a classifier."
        ) from None
    if values.shape not in {(rows,), (rows, 1)}:
        raise EquationError(
            f"its regressor ({name}) predicted values of shape {values.shape} for {rows} rows. "
            "It must give one number per row."
        )
    lost = int(np.count_nonzero(~np.isfinite(values)))
    if lost:
        raise EquationError(
            f"its regressor ({name}) predicted {lost} of {rows} values that are not finite "
            "numbers. Scale the causes, or use another regressor."
        )
    return values.reshape(rows)


@contextmanager
def _foreign_errors(regressor: object, doing: str) -> Iterator[None]:
    """Turn what a regressor raises into an error with its type alone: a text may quote cells."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever code from elsewhere may raise
        raise EquationError(
            f"its regressor ({type(regressor).__name__}) raised {type(error).__name__} in {doing}. "
            "Try it on the parents' columns alone to see why."
        ) from None


def _read_regressor(regressor: Any) -> Regressor:
    methods = ("fit", "predict")
    if isinstance(regressor, type):
        raise EquationError(
            f"regressor={regressor.__name__} is a class. Give an object of it: "
            f"regressor={regressor.__name__}()."
        )
    if not all(callable(getattr(regressor, method, None)) for method in methods):
        raise EquationError(
            f"the regressor ({type(regressor).__name__}) does not have fit() and predict(). "
            "Give one that has, such as a regressor of scikit-learn."
        )
    return regressor  # type: ignore[no-any-return]


def _copied(regressor: Regressor) -> Regressor:
    """Copy the declared regressor, without what it may have learnt before if it knows how."""
    if hasattr(regressor, "get_params"):
        from importlib import import_module

        try:
            return import_module("sklearn.base").clone(regressor)  # type: ignore[no-any-return]
        except (ImportError, TypeError, RuntimeError):
            pass  # get_params is not scikit-learn's own
    return deepcopy(regressor)
