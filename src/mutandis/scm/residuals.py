"""Tests of residuals: level, spread, interactions, distribution."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories
from mutandis.scm.dependence import (
    NOTHING_LEFT,
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
from mutandis.scm.diagnosis import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.scm.noise import Leftover


_LEVEL = "robust score test"
_SPREAD = "Brown-Forsythe test"
_DISTRIBUTION = "Kolmogorov-Smirnov test"
_TIED = "both have a hidden cause, so that residuals may depend on it"
# Residuals and a column with no larger correlation than this were made uncorrelated by the fit.
_UNCORRELATED = 1e-8
# A factor with more levels than these is taken out only if it is the one with most.
_MANY_LEVELS = 50


def check_residuals(
    child: str,
    leftover: Leftover,
    columns: Columns,
    *,
    parents: Sequence[str],
    attributes: Sequence[str],
    tied: Collection[str] = (),
) -> Iterator[Finding]:
    """Test residuals on each cause, on further attributes, and on pairs of both."""
    over = tuple(dict.fromkeys([*parents, *attributes]))
    for on in over:
        if not leftover.vectors or on in tied:
            reason = _TIED if leftover.vectors else leftover.reason
            yield _record(Dependence(test="none", note=reason), child=child, on=on, aspect="level")
    if not leftover.vectors:
        return
    equation = _Residuals.of(leftover.vectors, {name: columns[name] for name in parents})
    for on in [name for name in over if name not in tied]:
        features = features_of(columns[on])
        level = equation.level(features.vectors, fitted=on in parents)
        yield _record(level, child=child, on=on, aspect="level")
        if leftover.spreading:
            spread = spread_dependence(leftover.vectors[0], features, test=_SPREAD)
            yield _record(spread, child=child, on=on, aspect="spread")
    for on, other in _pairs([name for name in parents if name not in tied], attributes):
        together = equation.interaction(columns[on], columns[other])
        yield _record(together, child=child, on=on, further=(other,), aspect="interaction")
    if leftover.standard:
        departure = normal_departure(leftover.vectors[0], test=_DISTRIBUTION)
        yield _record(departure, child=child, aspect="distribution")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Residuals:
    """Residuals, and what the fit has made them uncorrelated with."""

    # Least squares makes residuals uncorrelated with the fitted columns. These have to be projected
    # out of the tested columns too, or the variance is wrong. Whether an equation was fitted that
    # way shows in the residuals, so that no family needs to be known here.
    residuals: tuple[Floats, ...]
    fitted: Conditioning

    @classmethod
    def of(cls, residuals: tuple[Floats, ...], parents: Columns) -> _Residuals:
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
            free = "the equation is saturated in this cause"
            return replace(result, note=free)
        return result

    def interaction(self, one: Column, other: Column) -> Dependence:
        """Test whether products of two columns explain residuals, given a curve in each."""
        together = [left * right for left in _design(one) for right in _design(other)]
        if not together:
            return Dependence(test=_LEVEL, note="one of the columns does not vary")
        products = [
            product for product in together if not _are_uncorrelated(self.residuals, product)
        ]
        if not products:
            already = "the equation contains their interaction"
            return Dependence(test=_LEVEL, note=already)
        alone = [*features_of(one).vectors, *features_of(other).vectors]
        given = Conditioning.on_vectors([*self.fitted.basis, *alone], cells=self.fitted.cells)
        return mean_dependence(self.residuals, products, given=given, test=_LEVEL)


def _record(result: Dependence, **about: Any) -> Finding:
    return Finding(**about, **asdict(result))


def _pairs(parents: Sequence[str], attributes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pair each protected cause with each other cause, once."""
    protected = [name for name in attributes if name in parents]
    for place, on in enumerate(protected):
        for other in parents:
            if other != on and other not in protected[:place]:
                yield on, other


def _design(column: Column) -> list[Floats]:
    """Return the vectors through which a column acts: indicators, or centred numbers."""
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
    """Scale a vector to mean 0 and length 1, or 0 throughout."""
    centred = vector - np.add.reduce(vector) / len(vector)
    # scaled first: squares of large numbers overflow
    centred /= float(np.abs(centred).max()) or 1.0
    scaled: Floats = centred / (dot(centred, centred) ** 0.5 or 1.0)
    return scaled
