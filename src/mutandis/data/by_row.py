"""Records of arrays that all have the same rows: one per person, query or group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mutandis.mapped import in_file, take, uses_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRow:
    """Arrays, and records of arrays, with the same rows; other fields are the same for all rows."""

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """Give the chosen rows, repeated as often as asked for."""
        kind: Any = type(self)
        found: Self = kind(**{name: _taken(getattr(self, name), rows) for name in _names(kind)})
        return found

    def put(self, rows: NDArray[Any], others: Self) -> None:
        """Write others into some of the rows."""
        for f in fields(self):
            getattr(self, f.name)[rows] = getattr(others, f.name)

    def kept(self) -> Self:
        """Give the same, large arrays of it in files where these are used."""
        if not uses_files():
            return self
        return type(self)(**{f.name: _kept(getattr(self, f.name)) for f in fields(self)})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Put the rows of several behind each other; one alone stays as it is."""
        if len(parts) == 1:
            return parts[0]
        return cls(**{f.name: _joined([getattr(p, f.name) for p in parts]) for f in fields(cls)})


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def _taken(value: Any, rows: NDArray[Any] | slice) -> Any:
    if isinstance(value, np.ndarray):
        return take(value, rows)
    if isinstance(value, ByRow):
        return value.take(rows)
    if isinstance(value, Mapping):
        return {name: _taken(each, rows) for name, each in value.items()}
    return value


def _kept(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return in_file(value)
    if isinstance(value, Mapping):
        return {name: _kept(each) for name, each in value.items()}
    return value.kept() if isinstance(value, ByRow) else value


def _joined(values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, np.ndarray):
        return in_file(np.concatenate(values))
    return first.join(values) if isinstance(first, ByRow) else first
