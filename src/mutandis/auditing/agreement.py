"""Whom several methods, or several audits, agree on."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mutandis.evidence.methods import METHODS
from mutandis.evidence.overlap import Overlap
from mutandis.frames import columns_of, to_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mutandis.evidence.findings import Findings
    from mutandis.pictures.picture import Picture

__all__ = ["Agreement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Which cases several finders share.

    Parameters
    ----------
    overlap
        By whom each complainant is found.
    titles
        What each finder is called in a picture.
    caption
        What a case is here.
    """

    overlap: Overlap
    titles: Mapping[str, str]
    caption: str
    _like: Any = field(repr=False, compare=False)

    @classmethod
    def of_methods(cls, findings: Mapping[str, Findings], *, k: int, like: Any) -> Agreement:
        """Compare the methods of one audit at one k.

        Examples
        --------
        >>> import mutandis as mm
        >>> found = mm.audit(
        ...     {
        ...         "woman": [1, 1, 0, 0, 0, 0],
        ...         "salary": [10.0, 11.0, 10.0, 11.0, 15.0, 16.0],
        ...         "granted": ["no", "no", "no", "no", "yes", "yes"],
        ...     },
        ...     outcome="granted",
        ...     negative="no",
        ...     protected=mm.Protection("woman", value=1, reference=0),
        ...     attributes={"salary": "continuous"},
        ...     counterfactuals={"salary": [15.0, 12.0, 10.0, 11.0, 15.0, 16.0]},
        ...     decision="salary > 12",
        ...     ks=(1,),
        ... )
        >>> print(found.agreement().table().to_string(index=False))
           st  cst_without  cst_with    cf  cases
        False         True      True  True      1
        >>> found.agreement().contains("cst_without", "st")
        True
        """
        first = next(iter(findings.values()))
        found = {name: each.comparison.evidence for name, each in findings.items()}
        return cls(
            overlap=Overlap(ids=first.ids, found=MappingProxyType(found)),
            titles={name: METHODS[name].title for name in findings},
            caption=f"complainants with evidence, k = {k}",
            _like=like,
        )

    @property
    def totals(self) -> dict[str, int]:
        """How many cases each finder has."""
        return self.overlap.totals

    def table(self) -> Any:
        """Give one row per combination of finders that finds somebody, the commonest first.

        Each complainant is counted once: in the row of exactly those who find her.
        """
        records = self.overlap.records()
        empty: dict[str, list[Any]] = {name: [] for name in (*self.overlap.names, "cases")}
        return to_frame(columns_of(records) or empty, self._like)

    def contains(self, finder: str, other: str) -> bool:
        """Tell whether `finder` finds every case that `other` finds."""
        return self.overlap.contains(finder, other)

    def ids(self, *finders: str, exactly: bool = True) -> NDArray[Any]:
        """Give those whom all these finders find, and by default no other does."""
        return self.overlap.ids_found_by(*finders, exactly=exactly)

    def plot(self) -> Picture:
        """Draw all intersections as an UpSet plot."""
        from mutandis.pictures.findings import plot_agreement

        return plot_agreement(
            self.overlap.records(), self.totals, titles=self.titles, caption=self.caption
        )
