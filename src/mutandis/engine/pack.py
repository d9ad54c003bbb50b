"""What was counted as arrays by name, as they are stored in files, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mutandis.data.rows import ByRow, group_equal, row_digests
from mutandis.engine.tally import Group, Links, Matching, Nearest, Sums, Tally
from mutandis.geometry.index import Neighbourhoods, RadiusCounts
from mutandis.geometry.metric import Metric
from mutandis.mapped import empty, in_file, take

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from mutandis.mapped import Rows

_Record = TypeVar("_Record", bound=ByRow)
_Arrays = dict[str, Any]

WHOLE = frozenset({"marks", "parts", "places", "rows"})
"""Arrays of integers, which may be larger than 64 bits hold and are then written as text."""

# fields that are records themselves; their arrays have names of their own
_PARTS: dict[Any, dict[str, Any]] = {
    Nearest: {"found": Neighbourhoods, "within": RadiusCounts},
    Group: {"share": Sums, "matching": Matching},
}
_CSR = ("data", "indices", "indptr")
_TAKEN = 1 << 18  # people whose matches are put in order at a time


def pack(record: ByRow) -> _Arrays:
    """Return the arrays of a record by name; nothing is kept of what is missing or all zeros."""
    arrays: _Arrays = {}
    for f in fields(record):
        value = getattr(record, f.name)
        if isinstance(value, ByRow):
            arrays |= pack(value)
        elif isinstance(value, np.ndarray) and (f.name != "overflow_distance" or value.any()):
            arrays[f.name] = value.astype(np.str_) if value.dtype == object else value
    return arrays


def unpack(kind: type[_Record], arrays: Mapping[str, Any], **known: Any) -> _Record:
    """Put a record together from its arrays, and from what is no array."""
    if kind is Nearest and "overflow_distance" not in arrays:
        known["overflow_distance"] = np.broadcast_to(0.0, len(arrays["radius"]))
    values: _Arrays = {}
    for f in fields(kind):
        part = _PARTS.get(kind, {}).get(f.name)
        if part is not None:
            if fields(part)[0].name in arrays:
                values[f.name] = unpack(part, arrays, **known)
        elif f.name in arrays:
            values[f.name] = read_integers(arrays[f.name])
        elif f.name in known:
            values[f.name] = known[f.name]
    return kind(**values)


def read_integers(array: NDArray[Any]) -> NDArray[Any]:
    """Read integers that no array holds, which are written as text."""
    if array.dtype.kind != "U":
        return array
    integers = [int(text) for text in array.ravel().tolist()]
    return np.array(integers, dtype=object).reshape(array.shape)


def gather(parts: Iterable[tuple[Rows, _Arrays]], size: int) -> _Arrays:
    """Put arrays about some rows each into arrays about all rows."""
    into: _Arrays = {}
    for rows, arrays in parts:
        for name, packed in arrays.items():
            array = read_integers(packed)
            if name not in into:
                into[name] = empty((size, *array.shape[1:]), array.dtype)
            if array.dtype == object:
                into[name] = into[name].astype(object)
            into[name][rows] = array
    return into


# --- who matches whom -----------------------------------------------------------------------------


def sparse_arrays(matrix: Any) -> _Arrays:
    """Return a sparse matrix as arrays by name."""
    return {name: getattr(matrix, name) for name in _CSR} | {"width": np.array(matrix.shape[1])}


def sparse_of(arrays: Mapping[str, Any]) -> Any:
    """Put a sparse matrix together from its arrays."""
    from scipy.sparse import csr_array

    shape = (len(arrays["indptr"]) - 1, int(arrays["width"]))
    return csr_array(tuple(arrays[name] for name in _CSR), shape=shape)


def links_arrays(links: Links) -> _Arrays:
    """Return links as arrays that depend on nothing but who matches whom.

    Matches are in the order of the first row that has them; people with the same share them.
    """
    first, key = group_equal(links.key)
    people = _take_sorted(links.people, links.key[first])
    same_first, same = _group_rows(people)
    if len(same_first) < len(first):
        people = _take_sorted(people, same_first)
    arrays = sparse_arrays(people) | {"width": links.people.shape[1]}
    return {"key": take(same, key), "parts": links.parts, **arrays}


def links_of(arrays: Mapping[str, Any]) -> Links:
    """Put links together from their arrays."""
    return Links(key=arrays["key"], people=sparse_of(arrays), parts=arrays["parts"])


def _take_sorted(matrix: Any, rows: Rows) -> Any:
    """Take rows of a sparse matrix, the columns of each sorted."""
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(np.diff(matrix.indptr)[rows], out=indptr[1:])
    indices, data = empty(indptr[-1], np.int32), empty(indptr[-1], matrix.data.dtype)
    for start in range(0, len(rows), _TAKEN):
        part = matrix[rows[start : start + _TAKEN]]
        part.sort_indices()
        here = slice(indptr[start], indptr[start] + len(part.data))
        indices[here], data[here] = part.indices, part.data
    # SciPy would copy arrays of indices that are of two types
    made = type(matrix)((len(rows), matrix.shape[1]), dtype=data.dtype)
    made.data, made.indices, made.indptr = data, indices, in_file(indptr)
    return made


def _group_rows(matrix: Any) -> tuple[Rows, Rows]:
    """Group equal rows of a sparse matrix whose columns are sorted, as `group_equal` does."""
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    entries, size = row_digests([indices, data]), np.diff(indptr)
    sums = np.zeros(len(size), dtype=np.uint64)
    filled = np.flatnonzero(size)
    sums[filled] = np.add.reduceat(entries, indptr[:-1][filled]) if len(filled) else 0
    first, group = group_equal(sums, size)
    for start in range(0, len(size), _TAKEN):
        rows = slice(start, start + _TAKEN)
        mine = np.arange(indptr[rows.start], indptr[min(rows.stop, len(size))])
        theirs = mine + np.repeat(indptr[first[group[rows]]] - indptr[:-1][rows], size[rows])
        if not all(np.array_equal(each[mine], each[theirs]) for each in (indices, data)):
            everyone = np.arange(len(size))  # digests that are equal by chance
            return everyone, everyone
    return first, group


# --- tallies --------------------------------------------------------------------------------------


def tally_arrays(tally: Tally) -> _Arrays:
    """Return a tally as records of arrays, lists, numbers and text."""
    groups = [group for at_k in tally.made.values() for group in at_k]
    return {
        "ks": list(tally.ks),
        "ties": tally.ties,
        "unit": tally.metric.unit,
        "squared": tally.metric.squared,
        "control": None if tally.control is None else pack(tally.control),
        "test": {center: pack(each) for center, each in tally.test.items()},
        "made": {name: [pack(each) for each in at_k] for name, at_k in tally.made.items()},
        "names": list(next((each.matching.names for each in groups if each.matching), ())),
        "own": tally.own,
        "decided": tally.decided,
        "matches": None if tally.matches is None else pack(tally.matches),
        "links": [links_arrays(each) for each in tally.links],
    }


def tally_of(arrays: Mapping[str, Any]) -> Tally:
    """Put a tally together from its records."""
    control, matches, names = arrays["control"], arrays["matches"], tuple(arrays["names"])
    nothing, unit = np.empty(0, np.int64), arrays["unit"]
    return Tally(
        ks=tuple(arrays["ks"]),
        ties=arrays["ties"],
        metric=Metric(mismatch=nothing, unit=unit, squared=arrays["squared"]),
        control=None if control is None else unpack(Nearest, control),
        test={center: unpack(Nearest, each) for center, each in arrays["test"].items()},
        made={
            name: tuple(unpack(Group, each, names=names) for each in at_k)
            for name, at_k in arrays["made"].items()
        },
        own=arrays["own"],
        decided=arrays["decided"],
        matches=None if matches is None else unpack(Sums, matches),
        links=tuple(links_of(each) for each in arrays["links"]),
    )
