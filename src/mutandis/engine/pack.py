"""Tallies as arrays by name, as they are stored in files, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.engine.matched import links_arrays, links_of
from mutandis.engine.tally import Group, Matching, Nearest, Sums, Tally
from mutandis.geometry.index import Neighbourhoods, RadiusCounts
from mutandis.geometry.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = [
    "WHOLE",
    "group_arrays",
    "group_of",
    "nearest_arrays",
    "nearest_of",
    "read_integers",
    "sums_arrays",
    "sums_of",
    "tally_arrays",
    "tally_of",
]

WHOLE = frozenset({"marks", "parts", "places", "rows"})
"""Arrays of integers, which may be larger than 64 bits hold and are then written as text."""


def read_integers(array: NDArray[Any]) -> NDArray[Any]:
    """Read integers that no array holds, which are written as text."""
    if array.dtype.kind != "U":
        return array
    integers = [int(text) for text in array.ravel().tolist()]
    return np.array(integers, dtype=object).reshape(array.shape)


def sums_arrays(sums: Sums) -> dict[str, Any]:
    """Return sums as arrays by name."""
    arrays = {f.name: a for f in fields(Sums) if (a := getattr(sums, f.name)) is not None}
    return {n: a.astype(np.str_) if a.dtype == object else a for n, a in arrays.items()}


def sums_of(arrays: Mapping[str, NDArray[Any]]) -> Sums:
    """Put sums together from their arrays."""
    names = (f.name for f in fields(Sums))
    return Sums(**{name: read_integers(arrays[name]) for name in names if name in arrays})


def group_arrays(group: Group) -> dict[str, Any]:
    """Return groups as arrays by name."""
    arrays = {**sums_arrays(group.share), "rows": group.rows, "radius": group.radius}
    if group.reach is not None:
        arrays["reach"] = group.reach
    if group.matching is not None:
        arrays |= {"n_effective": group.matching.n_effective, "unfit": group.matching.unfit}
    return arrays


def group_of(arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> Group:
    """Put groups together from their arrays; `names` are the attributes."""
    matching = None
    if "unfit" in arrays:
        matching = Matching(n_effective=arrays["n_effective"], unfit=arrays["unfit"], names=names)
    return Group(
        share=sums_of(arrays),
        rows=arrays["rows"],
        radius=arrays["radius"],
        reach=arrays.get("reach"),
        matching=matching,
    )


def nearest_arrays(nearest: Nearest) -> dict[str, Any]:
    """Return the counts around some centers as arrays by name."""
    parts = [nearest.found] if nearest.within is None else [nearest.found, nearest.within]
    return {f.name: getattr(part, f.name) for part in parts for f in fields(part)}


def nearest_of(
    arrays: Mapping[str, NDArray[Any]],
    overflow_distance: NDArray[np.float64],
    limits: NDArray[np.int64] | None,
) -> Nearest:
    """Put the counts around some centers together from their arrays."""
    within = None
    if limits is not None:
        within = RadiusCounts(**{f.name: arrays[f.name] for f in fields(RadiusCounts)})
    return Nearest(
        found=Neighbourhoods(**{f.name: arrays[f.name] for f in fields(Neighbourhoods)}),
        overflow_distance=overflow_distance,
        limits=limits,
        within=within,
    )


def tally_arrays(tally: Tally) -> dict[str, Any]:
    """Return a tally as records of arrays, lists, numbers and text."""

    def counts(nearest: Nearest) -> dict[str, Any]:
        arrays = nearest_arrays(nearest)
        if nearest.overflow_distance.any():
            arrays["overflow_distance"] = nearest.overflow_distance
        return arrays if nearest.limits is None else {**arrays, "limits": nearest.limits}

    return {
        "ks": list(tally.ks),
        "ties": tally.ties,
        "unit": tally.metric.unit,
        "squared": tally.metric.squared,
        "control": None if tally.control is None else counts(tally.control),
        "test": {center: counts(each) for center, each in tally.test.items()},
        "made": {name: [group_arrays(each) for each in at_k] for name, at_k in tally.made.items()},
        "names": list(next((g.matching.names for g in _groups(tally) if g.matching), ())),
        "own": tally.own,
        "decided": tally.decided,
        "matches": None if tally.matches is None else sums_arrays(tally.matches),
        "links": [links_arrays(each) for each in tally.links],
    }


def tally_of(arrays: Mapping[str, Any]) -> Tally:
    """Put a tally together from its records."""

    def nearest(counts: Mapping[str, NDArray[Any]]) -> Nearest:
        nothing = np.broadcast_to(0.0, len(counts["radius"]))
        overflow = counts.get("overflow_distance", nothing)
        return nearest_of(counts, overflow, counts.get("limits"))

    control, matches, names = arrays["control"], arrays["matches"], tuple(arrays["names"])
    return Tally(
        ks=tuple(arrays["ks"]),
        ties=arrays["ties"],
        metric=Metric(
            mismatch=np.empty(0, np.int64), unit=arrays["unit"], squared=arrays["squared"]
        ),
        control=None if control is None else nearest(control),
        test={center: nearest(each) for center, each in arrays["test"].items()},
        made={
            name: tuple(group_of(each, names) for each in at_k)
            for name, at_k in arrays["made"].items()
        },
        own=arrays["own"],
        decided=arrays["decided"],
        matches=None if matches is None else sums_of(matches),
        links=tuple(links_of(each) for each in arrays["links"]),
    )


def _groups(tally: Tally) -> list[Group]:
    return [group for at_k in tally.made.values() for group in at_k]
