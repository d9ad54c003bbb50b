"""What an equation leaves over, as numbers that can be tested, and how much it explains.

Additive noise is its own residual. The noise behind a count or an ordered level is known up to an
interval only; drawn from it at random and put on the normal scale, it is a randomised quantile
residual (Dunn and Smyth 1996, *Journal of Computational and Graphical Statistics* 5, 236-244),
which is standard normal and independent of the causes if the equation is right. Of a category,
there is left what its indicators differ by from their probabilities.

Families are told apart by what they offer, not by their names, so that an equation from
elsewhere can be checked as far as it says something about itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories, Numbers
from mutandis.scm.dependence import (
    MOST_GROUPS,
    NOTHING_LEFT,
    SMALLEST_GROUP,
    Conditioning,
    Dependence,
    codes_of,
    dot,
    features_of,
    group_codes,
    indicators,
    mean_dependence,
    normal_departure,
    spread_dependence,
    takes_few_values,
)
from mutandis.scm.diagnosis import ResidualCheck

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.scm.family import FittedEquation


_DEVIANCE = "deviance explained"
# Of an attribute of whose variation no larger part than this is left, nothing is left.
_NOTHING = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    vectors: tuple[Floats, ...] = ()
    """One vector, or one for each category; none if there is nothing to test."""
    standard: bool = False
    """Whether they are standard normal if the equation is right."""
    spreading: bool = True
    """Whether they spread equally if the equation is right; those of categories do not."""
    reason: str = ""
    """Why there are none, where there are none."""


def residuals_of(
    noise: object, fitted: FittedEquation[Any], child: Column, parents: Columns
) -> Residuals:
    rows = len(child)
    values = _numbers(noise, "residual", rows=rows)
    if values is not None:
        # without the scale that the noise was added on, the attribute's own has to do
        explained = _numbers(noise, "explained", rows=rows)
        own = values if isinstance(child, Categories) else child.values
        scale = own if explained is None else values + explained
        if np.ptp(values) <= _NOTHING * np.ptp(scale):
            return Residuals(reason="its causes determine it, so no noise is left over")
        return Residuals(vectors=(values,))
    normal = _normal_quantiles(noise, rows=rows)
    if normal is not None and np.isfinite(normal).all():
        return Residuals(vectors=(normal,), standard=True)
    offered = _Probabilities.of(fitted, child, parents)
    if offered is not None:
        rare = f"all categories but one have fewer than {SMALLEST_GROUP} rows"
        return Residuals(vectors=offered.residuals(), spreading=False, reason=rare)
    return Residuals(reason="its equation does not give its noise as numbers")


def fit_of(
    noise: object, fitted: FittedEquation[Any], child: Column, parents: Columns
) -> tuple[str, float | None]:
    """Choose a measure of how much of an attribute its causes explain, and give its value."""
    own = getattr(fitted, "deviance_explained", None)
    if callable(own):
        return _DEVIANCE, float(own(child, parents))
    residual = _numbers(noise, "residual", rows=len(child))
    explained = _numbers(noise, "explained", rows=len(child))
    if residual is not None and explained is not None:
        log = getattr(noise, "link", "identity") == "log"
        measure = "R² of the logarithm" if log else "R²"
        return measure, _r_squared(explained + residual, residual)
    means = getattr(fitted, "means", None)
    if callable(means) and isinstance(child, Numbers):
        expected = np.asarray(means(parents, rows=len(child)), dtype=np.float64)
        mean = np.add.reduce(child.values) / len(child)
        without = _poisson_deviance(child.values, np.full(len(child), mean))
        left = _poisson_deviance(child.values, expected)
        return _DEVIANCE, 1.0 - left / without if without > 0.0 else None
    offered = _Probabilities.of(fitted, child, parents)
    if offered is not None:
        return _DEVIANCE, offered.deviance_explained()
    return "not available", None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probabilities:
    """What an equation gives to each category, and the category of each row."""

    table: Floats
    observed: NDArray[np.intp]

    @classmethod
    def of(cls, fitted: object, child: Column, parents: Columns) -> _Probabilities | None:
        """Ask the equation; None if it has no probabilities of known levels."""
        known, probabilities = (getattr(fitted, name, None) for name in ("known", "probabilities"))
        if known is None or not callable(probabilities) or not isinstance(child, Categories):
            return None
        table = np.asarray(probabilities(parents, rows=len(child)), dtype=np.float64)
        return cls(table=table, observed=known.places(child))

    def residuals(self) -> tuple[Floats, ...]:
        """Give indicator less probability, of each category but the largest and the rare ones."""
        counts = np.bincount(self.observed, minlength=self.table.shape[1])
        by_size = np.argsort(-counts, kind="stable").tolist()
        kept = [place for place in by_size[1:MOST_GROUPS] if counts[place] >= SMALLEST_GROUP]
        return tuple((self.observed == place) - self.table[:, place] for place in kept)

    def deviance_explained(self) -> float | None:
        counts = np.bincount(self.observed, minlength=self.table.shape[1])
        shares = counts[self.observed] / len(self.observed)
        without = float(np.add.reduce(np.log(shares)))
        own = self.table[np.arange(len(self.observed)), self.observed]
        with np.errstate(divide="ignore"):
            with_causes = float(np.add.reduce(np.log(own)))
        return 1.0 - with_causes / without if without and np.isfinite(with_causes) else None


def _numbers(noise: object, name: str, *, rows: int) -> Floats | None:
    """Read an attribute that holds one finite number per row; None if there is no such."""
    held = getattr(noise, name, None)
    if not isinstance(held, np.ndarray) or held.shape != (rows,) or held.dtype.kind != "f":
        return None
    values: Floats = held.astype(np.float64)
    return values if np.isfinite(values).all() else None


def _normal_quantiles(noise: object, *, rows: int) -> Floats | None:
    """Put u on the normal scale, by the tail that is known more precisely where there is one."""
    from scipy.special import ndtri, ndtri_exp

    log_tail = _numbers(noise, "log_tail", rows=rows)
    upper = getattr(noise, "upper", None)
    if log_tail is not None and isinstance(upper, np.ndarray):
        quantiles: Floats = ndtri_exp(log_tail)
        return np.where(upper, -quantiles, quantiles)
    rank = _numbers(noise, "rank", rows=rows)
    if rank is None:
        return None
    found: Floats = ndtri(rank)
    return found


def _r_squared(response: Floats, residual: Floats) -> float | None:
    centred = response - np.add.reduce(response) / len(response)
    scale = float(np.abs(centred).max())
    if scale == 0.0:
        return None
    centred, residual = centred / scale, residual / scale
    return 1.0 - dot(residual, residual) / dot(centred, centred)


def _poisson_deviance(counts: Floats, means: Floats) -> float:
    from scipy.special import xlogy

    return float(2.0 * np.add.reduce(xlogy(counts, counts / means) - (counts - means)))


_LEVEL = "robust score test"
_SPREAD = "Brown-Forsythe test"
_DISTRIBUTION = "Kolmogorov-Smirnov test"
_TIED = "a hidden cause stands behind both, so that residuals may depend on it"
# Residuals and a column with no larger correlation than this were made uncorrelated by the fit.
_UNCORRELATED = 1e-8
# A factor with more levels than these is taken out only if it is the one with most.
_MANY_LEVELS = 50


def check_residuals(
    child: str,
    residuals: Residuals,
    columns: Columns,
    *,
    parents: Sequence[str],
    attributes: Sequence[str],
    tied: Collection[str] = (),
) -> Iterator[ResidualCheck]:
    """Test residuals on each cause, on further attributes, and on pairs of both."""
    over = tuple(dict.fromkeys([*parents, *attributes]))
    for on in over:
        if not residuals.vectors or on in tied:
            reason = _TIED if residuals.vectors else residuals.reason
            yield _record(Dependence(test="none", note=reason), child=child, on=on, aspect="level")
    if not residuals.vectors:
        return
    equation = _Leftover.of(residuals.vectors, {name: columns[name] for name in parents})
    for on in [name for name in over if name not in tied]:
        features = features_of(columns[on])
        level = equation.level(features.vectors, fitted=on in parents)
        yield _record(level, child=child, on=on, aspect="level")
        if residuals.spreading:
            spread = spread_dependence(residuals.vectors[0], features, test=_SPREAD)
            yield _record(spread, child=child, on=on, aspect="spread")
    for on, other in _pairs([name for name in parents if name not in tied], attributes):
        together = equation.interaction(columns[on], columns[other])
        yield _record(together, child=child, on=on, with_column=other, aspect="interaction")
    if residuals.standard:
        departure = normal_departure(residuals.vectors[0], test=_DISTRIBUTION)
        yield _record(departure, child=child, on=None, aspect="distribution")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leftover:
    """Residuals, and what the fit has made them uncorrelated with."""

    # Least squares makes residuals uncorrelated with the columns that it fits. What a test looks at
    # must have those taken out too, or its variance is wrong. Whether an equation was fitted that
    # way is seen from the residuals themselves, so that no family needs to be known here.
    residuals: tuple[Floats, ...]
    fitted: Conditioning

    @classmethod
    def of(cls, residuals: tuple[Floats, ...], parents: Columns) -> _Leftover:
        factors: list[NDArray[np.intp]] = []
        vectors: list[Floats] = []
        for column in parents.values():
            if isinstance(column, Categories):
                codes = codes_of(column)
                factors += [codes] if _are_free_of_levels(residuals, codes) else []
            else:
                vectors += [column.values] if _are_uncorrelated(residuals, column.values) else []
        factors.sort(key=lambda codes: -int(codes.max()))
        cells = factors[0] if factors else np.zeros(len(residuals[0]), dtype=np.intp)
        for codes in factors[1:]:
            vectors += indicators(codes) if codes.max() < _MANY_LEVELS else ()
        return cls(residuals=residuals, fitted=Conditioning.on_vectors(vectors, cells=cells))

    def level(self, features: Sequence[Floats], *, fitted: bool) -> Dependence:
        result = mean_dependence(self.residuals, features, given=self.fitted, test=_LEVEL)
        if not features:
            return replace(result, note="the column does not vary")
        if fitted and result.note == NOTHING_LEFT:
            free = "the equation fits a mean of its own to each of its values"
            return replace(result, note=free)
        return result

    def interaction(self, one: Column, other: Column) -> Dependence:
        """Test whether the products of two columns explain residuals, beside a curve in each."""
        together = [left * right for left in _design(one) for right in _design(other)]
        if not together:
            return Dependence(test=_LEVEL, note="one of the columns does not vary")
        products = [
            product for product in together if not _are_uncorrelated(self.residuals, product)
        ]
        if not products:
            already = "the equation lets them act together already"
            return Dependence(test=_LEVEL, note=already)
        alone = [*features_of(one).vectors, *features_of(other).vectors]
        given = Conditioning.on_vectors([*self.fitted.basis, *alone], cells=self.fitted.cells)
        return mean_dependence(self.residuals, products, given=given, test=_LEVEL)


def _record(result: Dependence, **about: Any) -> ResidualCheck:
    return ResidualCheck(**about, **asdict(result))


def _pairs(parents: Sequence[str], attributes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pair each protected cause with each other cause, once."""
    protected = [name for name in attributes if name in parents]
    for place, on in enumerate(protected):
        for other in parents:
            if other != on and other not in protected[:place]:
                yield on, other


def _design(column: Column) -> list[Floats]:
    """Give the vectors through which a column acts: indicators, or the number around its mean."""
    if isinstance(column, Categories) or takes_few_values(column):
        return list(indicators(group_codes(column)))
    centred = column.values - np.add.reduce(column.values) / len(column)
    return [centred / float(np.abs(centred).max())]


def _are_uncorrelated(residuals: Sequence[Floats], vector: Floats) -> bool:
    right = _standardised(vector)
    return all(abs(dot(_standardised(left), right)) <= _UNCORRELATED for left in residuals)


def _are_free_of_levels(residuals: Sequence[Floats], codes: NDArray[np.intp]) -> bool:
    counts = np.bincount(codes)
    return all(
        bool((np.abs(sums) <= _UNCORRELATED * counts**0.5).all())
        for sums in (np.bincount(codes, weights=_standardised(left)) for left in residuals)
    )


def _standardised(vector: Floats) -> Floats:
    """Give the vector with mean 0 and length 1, or 0 throughout."""
    centred = vector - np.add.reduce(vector) / len(vector)
    # scaled first: squares of large numbers overflow
    centred /= float(np.abs(centred).max()) or 1.0
    scaled: Floats = centred / (dot(centred, centred) ** 0.5 or 1.0)
    return scaled
