"""The distances between people that an audit can choose from; the default is Gower's.

Each is a value that is fitted once on the factual D, as an `Embedding` is, and gives a `Metric`: a
way to move points from the lattice of the embedding to places where the distance is a sum of
absolute differences, or the root of a sum of squares, and of mismatches of names. Points keep their
coordinates on the lattice: groups are balanced, drawn between values and described on these, and
only the search measures elsewhere.

Places are whole numbers. Under squares, all places of D lie within 2**25 of each other, so that a
sum of squares has at most 50 bits: float64 holds it, and from centers as far out as the lattice
reaches it fits int64. What is lost: a column without a grid, or with one that has no common measure
with the others, is rounded to 2**-20 of its range or finer, and equal differences in it may be told
apart. Grids of up to 2**11 steps stay grids; at most the weight of such an attribute moves, in the
13th bit or later. `Embedding.rules` says which it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.search.distance import Metric, Points
from mutandis.search.embedding import Term, fill_room

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.search.embedding import Axis, Embedding

__all__ = ["DESCRIPTIONS", "DistanceName", "fit_distance"]

DistanceName = Literal["gower", "heom"]

DESCRIPTIONS: dict[DistanceName, str] = {
    "gower": "each difference divided by its range in the table, then averaged",
    "heom": "the root of the sum of squares, each difference divided by its range in the table",
}
"""How each distance is put together, in a few words."""

# the longest way between two places of D, where distances are squared
_SPAN = 2**25
# a grid with more steps than this is kept only where its steps are whole numbers
_COARSE = 2**11
# a column that is not kept as a grid is rounded to no coarser than half of this part of its range
_LEAST = 2**19


def fit_distance(
    name: DistanceName, embedding: Embedding, attributes: Sequence[Attribute]
) -> Embedding:
    """Give an embedding whose points are measured by another distance."""
    if name == "gower":
        return embedding
    weights = {each.name: each.exact_weight for each in attributes}
    return _fit_heom(embedding, weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescaled:
    """Numbers are multiplied, each by its own ratio, and names stay as they are."""

    ratios: NDArray[np.float64]
    columns: tuple[str, ...]

    def place(self, points: Points) -> Points:
        """Give the place of each point."""
        # values on a grid come out whole, since ratios are those of whole steps
        coordinates = np.rint(points.coordinates * self.ratios).astype(np.int64)
        return Points(coordinates=coordinates, codes=points.codes)


def _fit_heom(embedding: Embedding, weights: Mapping[str, Fraction]) -> Embedding:
    """Fit the heterogeneous Euclidean-overlap metric (Wilson & Martinez 1997, eqs. 3-5).

        d(x, x')² = Σ_i w_i d_i(x_i, x'_i)²

    with d_i = |difference| / range for numbers and ranks, and for names 0 if equal and 1 if not.
    The weights are not in the paper; they default to 1.
    """
    axes = embedding.axes
    total = sum((weights[name] for name in (*_names(axes), *embedding.nominal)), Fraction(0))
    room = Fraction(_SPAN) / _root(total, up=True)
    terms = [
        Term(
            name=axis.name,
            weight=_root(weights[axis.name]) * axis.extent,
            steps=axis.steps,
            least=_LEAST if axis.steps == 1 else 1,
        )
        for axis in axes
    ]
    unit = fill_room(terms, room=room)
    terms = [_settled(term, unit) for term in terms]
    lengths = [term.length(unit) for term in terms]
    ratios = [length / axis.length for length, axis in zip(lengths, axes, strict=True)]
    mismatch = [round(unit**2 * weights[name]) for name in embedding.nominal]
    rules = {
        term.name: _rule(term, length, unit) for term, length in zip(terms, lengths, strict=True)
    }
    metric = Metric(
        mismatch=np.array(mismatch, dtype=np.int64),
        unit=float(unit),
        exact_unit=unit,
        squared=True,
        move=Rescaled(ratios=np.array(ratios, dtype=np.float64), columns=_names(axes)),
    )
    return replace(embedding, metric=metric, own_rules=rules)


def _names(axes: Sequence[Axis]) -> tuple[str, ...]:
    return tuple(axis.name for axis in axes)


def _root(value: Fraction, *, up: bool = False) -> Fraction:
    """Give the root of a fraction: exactly where it is one, else to 60 bits."""
    over, under = isqrt(value.numerator), isqrt(value.denominator)
    if over**2 == value.numerator and under**2 == value.denominator:
        return Fraction(over, under)
    return Fraction(isqrt(value.numerator * 4**60 // value.denominator) + up, 2**60)


def _settled(term: Term, unit: Fraction) -> Term:
    """Give up a grid so fine that its steps would be rounded too coarsely in this unit."""
    if term.steps <= _COARSE or term.is_exact(unit):
        return term
    return replace(term, steps=1, least=_LEAST)


def _rule(term: Term, length: int, unit: Fraction) -> str:
    """Say how equal distances are recognised."""
    if term.steps == 1:
        return f"quantised to 2^-{length.bit_length() - 1}"
    return f"lattice of {term.steps} steps" + ("" if term.is_exact(unit) else ", weight rounded")
