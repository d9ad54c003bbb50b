"""Which cases several methods, or several audits, agree on: all intersections, counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import PlanError
from mutandis.evidence.methods import METHODS
from mutandis.frames import columns_of, to_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mutandis.evidence.findings import Findings
    from mutandis.pictures.picture import Picture

__all__ = ["Agreement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Which cases several finders share: methods of one audit, or several audits.

    Parameters
    ----------
    complainants
        Their ids.
    found
        By name of a finder: whether it finds each of them.
    titles
        What each finder is called in a picture; its name, where it has no other.
    caption
        What a case is here.

    Examples
    --------
    >>> import numpy as np
    >>> agreement = Agreement(
    ...     complainants=np.array([3, 4, 5, 6]),
    ...     found={
    ...         "st": np.array([True, False, False, False]),
    ...         "cf": np.array([True, True, True, False]),
    ...     },
    ... )
    >>> agreement.records()
    [{'st': False, 'cf': True, 'cases': 2}, {'st': True, 'cf': True, 'cases': 1}]
    >>> agreement.contains("cf", "st"), agreement.contains("st", "cf")
    (True, False)
    >>> agreement.ids("cf").tolist()
    [4, 5]
    """

    complainants: NDArray[Any]
    found: Mapping[str, NDArray[np.bool_]]
    titles: Mapping[str, str] = field(default_factory=dict)
    caption: str = "complainants with evidence"
    _like: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of_methods(cls, findings: Mapping[str, Findings], *, k: int, like: Any = None) -> Agreement:
        """Compare the methods of one audit at one k; tables are given in the frame type `like`."""
        return cls(
            complainants=next(iter(findings.values())).ids,
            found={name: each.comparison.evidence for name, each in findings.items()},
            titles={name: METHODS[name].title for name in findings},
            caption=f"complainants with evidence, k = {k}",
            _like=like,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The finders."""
        return tuple(self.found)

    @property
    def totals(self) -> dict[str, int]:
        """How many cases each finder has."""
        return {name: int(mask.sum()) for name, mask in self.found.items()}

    def table(self) -> Any:
        """Give one row per combination of finders that has cases, the commonest first.

        Each complainant is counted once: in the row of exactly those who find her.
        """
        empty: dict[str, list[Any]] = {name: [] for name in (*self.names, "cases")}
        return to_frame(columns_of(self.records()) or empty, self._like)

    def records(self) -> list[dict[str, Any]]:
        """Give the rows of the table as plain records."""
        masks = np.array(list(self.found.values()))
        packed = np.packbits(masks, axis=0)  # sorted as the flags would be, byte by byte
        order = np.lexsort(packed[::-1])
        packed = packed[:, order]
        other = (packed[:, 1:] != packed[:, :-1]).any(axis=0)
        first = np.flatnonzero(np.concatenate([[True], other])[: len(order)])
        counts = np.diff(np.append(first, len(order)))
        rows = [
            {**dict(zip(self.names, flags, strict=True)), "cases": cases}
            for flags, cases in zip(masks[:, order[first]].T.tolist(), counts.tolist(), strict=True)
            if any(flags)
        ]
        return sorted(rows, key=lambda row: -row["cases"])

    def contains(self, finder: str, other: str) -> bool:
        """Tell whether `finder` finds every case that `other` finds."""
        return not bool((self._mask(other) & ~self._mask(finder)).any())

    def ids(self, *finders: str, exactly: bool = True) -> NDArray[Any]:
        """Give those whom all these finders find, and by default no other does."""
        masks = [self._mask(name) for name in finders]
        if exactly:
            masks += [~mask for name, mask in self.found.items() if name not in finders]
        return self.complainants[np.logical_and.reduce(masks, axis=0)]

    def plot(self) -> Picture:
        """Draw all intersections as an UpSet plot."""
        from mutandis.pictures.findings import plot_agreement

        titles = {name: self.titles.get(name, name) for name in self.names}
        return plot_agreement(self.records(), self.totals, titles=titles, caption=self.caption)

    def _mask(self, name: str) -> NDArray[np.bool_]:
        if name not in self.found:
            raise PlanError(f"{name!r} is not among those compared. There are {self.names}.")
        return self.found[name]
