"""Coarser values: numbers in bands, rare levels together."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Categories, Numbers
from mutandis.report.redact_cells import LEAST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.data.population import Population

__all__ = ["DISTANCES", "Bands", "Levels", "bands_of"]

# bands that a column is cut into, before rounding and merging
_BANDS = 8
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Bands:
    """Numbers in bands: everything below the first edge, between edges, from the last edge on.

    Examples
    --------
    >>> bands = Bands((10.0, 20.0))
    >>> bands.band(9.9), bands.band(10.0), bands.band(25)
    ('below 10', '10 to below 20', '20 or more')
    """

    edges: tuple[float, ...]

    @classmethod
    def of(cls, values: NDArray[np.float64], *, least: int = LEAST) -> Bands:
        """Choose round edges between which at least `least` values lie.

        Examples
        --------
        >>> Bands.of(np.array([*range(0, 100), 5000.0])).edges
        ()
        >>> Bands.of(np.arange(0.0, 100.0)).edges
        (20.0, 40.0, 60.0, 80.0)
        """
        low, high = float(values.min()), float(values.max())
        if not low < high:
            return cls(())
        width = _round_width((high - low) / _BANDS)
        first, last = ceil(low / width), floor(high / width)
        edges: list[float] = []
        ordered = np.sort(values)
        before = 0
        for step in range(first, last + 1):
            edge = float(f"{step * width:.12g}")
            below = int(np.searchsorted(ordered, edge, side="left"))
            # enough in the band that this edge closes, and enough in all that follow
            if below - before >= least and len(ordered) - below >= least:
                edges.append(edge)
                before = below
        return cls(tuple(edges))

    def band(self, value: float) -> str:
        if not self.edges:
            return "any"
        place = bisect_right(self.edges, value)
        if place == 0:
            return f"below {_shown(self.edges[0])}"
        if place == len(self.edges):
            return f"{_shown(self.edges[-1])} or more"
        return f"{_shown(self.edges[place - 1])} to below {_shown(self.edges[place])}"

    def place_of(self, band: str) -> int:
        """Give the place of a band among all, for sorting."""
        names = [self.band(edge) for edge in (float("-inf"), *self.edges)]
        return names.index(band) if band in names else -1


DISTANCES = Bands((0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 1.0, 2.0, 5.0))
"""Distances say how far values are apart: in bands as coarse as those of the values."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Names, the rare ones together."""

    names: dict[Any, str]

    @classmethod
    def of(cls, column: Categories, *, ordered: bool, least: int = LEAST) -> Levels:
        """Put levels that few people have together: neighbours if they have an order.

        Examples
        --------
        >>> jobs = Categories(np.repeat([0, 1, 2, 3], [9, 8, 2, 1]), ("a", "b", "c", "d"))
        >>> Levels.of(jobs, ordered=False).names
        {'a': 'a', 'b': 'other', 'c': 'other', 'd': 'other'}
        >>> Levels.of(jobs, ordered=True).names
        {'a': 'a', 'b': 'b to d', 'c': 'b to d', 'd': 'b to d'}
        """
        counts = column.counts().tolist()
        groups = _neighbours(counts, least) if ordered else _rare(counts, least)
        names = {}
        for group in groups:
            together = (
                f"{column.levels[group[0]]} to {column.levels[group[-1]]}" if ordered else OTHER
            )
            for code in group:
                level = column.levels[code]
                names[level] = str(level) if len(group) == 1 and counts[code] >= least else together
        return cls(names)

    def band(self, level: Any) -> str:
        return self.names.get(level, OTHER)


def _rare(counts: Sequence[int], least: int) -> list[list[int]]:
    """Keep the common levels; put the rare ones together, and as many others as it takes."""
    order = sorted(range(len(counts)), key=lambda code: (counts[code], code))
    together: list[int] = []
    people = 0
    for code in order:
        # a single rare level would be told by what all levels add up to
        if counts[code] >= least and (not people or people >= least):
            break
        together.append(code)
        people += counts[code]
    kept = [[code] for code in range(len(counts)) if code not in together]
    return [*kept, sorted(together)] if together else kept


def _neighbours(counts: Sequence[int], least: int) -> list[list[int]]:
    groups: list[list[int]] = [[]]
    people = 0
    for code, count in enumerate(counts):
        groups[-1].append(code)
        people += count
        if people >= least and sum(counts[code + 1 :]) >= least:
            groups.append([])
            people = 0
    return [group for group in groups if group]


def bands_of(population: Population, attributes: Sequence[Attribute]) -> dict[str, Bands | Levels]:
    """Choose, for each attribute, the bands in which a redacted file gives its values."""
    bands: dict[str, Bands | Levels] = {}
    for attribute in attributes:
        column = population.columns[attribute.name]
        if isinstance(column, Numbers):
            bands[attribute.name] = Bands.of(column.values)
        else:
            ordered = attribute.kind is AttributeKind.ORDINAL
            bands[attribute.name] = Levels.of(column, ordered=ordered)
    return bands


def _round_width(width: float) -> float:
    """Round a width up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(width))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= width * (1 - 1e-9))


def _shown(edge: float) -> str:
    return f"{edge:,.10g}".replace("-", "−")
