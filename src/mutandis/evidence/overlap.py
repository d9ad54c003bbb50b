"""Who is found by which of several audits or methods: all intersections, counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

__all__ = ["Overlap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """For each complainant, by whom she is found.

    Parameters
    ----------
    ids
        The complainants.
    found
        By name of a finder: whether it finds each of them.

    Examples
    --------
    >>> import numpy as np
    >>> overlap = Overlap(
    ...     ids=np.array([3, 4, 5, 6]),
    ...     found={
    ...         "st": np.array([True, False, False, False]),
    ...         "cf": np.array([True, True, True, False]),
    ...     },
    ... )
    >>> overlap.records()
    [{'st': False, 'cf': True, 'cases': 2}, {'st': True, 'cf': True, 'cases': 1}]
    >>> overlap.contains("cf", "st"), overlap.contains("st", "cf")
    (True, False)
    >>> overlap.ids_found_by("cf").tolist()
    [4, 5]
    """

    ids: NDArray[Any]
    found: Mapping[str, NDArray[np.bool_]]

    @property
    def names(self) -> tuple[str, ...]:
        """The finders."""
        return tuple(self.found)

    @property
    def totals(self) -> dict[str, int]:
        """How many each finds."""
        return {name: int(mask.sum()) for name, mask in self.found.items()}

    def records(self) -> list[dict[str, Any]]:
        """Give a row for each combination of finders that finds somebody, the commonest first.

        A complainant is counted once: in the row of exactly those who find her.
        """
        masks = np.stack(list(self.found.values()), axis=1)
        combinations, counts = np.unique(masks[masks.any(axis=1)], axis=0, return_counts=True)
        rows = [
            {**dict(zip(self.names, map(bool, flags), strict=True)), "cases": int(count)}
            for flags, count in zip(combinations.tolist(), counts, strict=True)
        ]
        return sorted(rows, key=lambda row: -row["cases"])

    def contains(self, finder: str, other: str) -> bool:
        """Tell whether `finder` finds everybody whom `other` finds."""
        return not bool((self._mask(other) & ~self._mask(finder)).any())

    def ids_found_by(self, *finders: str, exactly: bool = True) -> NDArray[Any]:
        """Give those whom all these find, and by default no other does."""
        return self.ids[self._found_by(finders, exactly=exactly)]

    def _found_by(self, finders: Collection[str], *, exactly: bool) -> NDArray[np.bool_]:
        masks = [self._mask(name) for name in finders]
        if exactly:
            masks += [~mask for name, mask in self.found.items() if name not in finders]
        return np.asarray(np.logical_and.reduce(masks, axis=0), dtype=np.bool_)

    def _mask(self, name: str) -> NDArray[np.bool_]:
        if name not in self.found:
            raise PlanError(f"{name!r} is not among those compared. There are {self.names}.")
        return self.found[name]
