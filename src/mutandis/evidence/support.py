"""Records of how well a comparison is supported: whether there is anyone to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["Balance", "Reach", "Support"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """How far each search center stands from the people around it, attribute by attribute.

    Parameters
    ----------
    control, test
        By attribute: (center - mean of the group) / standard deviation in D. For a nominal
        attribute, the same of the indicator of the center's own level. NaN where a group is empty
        or where D does not vary.
    """

    control: Mapping[str, float]
    test: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far groups of one kind reach, against what is usual in their space.

    Parameters
    ----------
    radius
        The distance of each complainant's k-th nearest, whatever caliper is applied after.
    typical, large, limit
        The median, the 95th and the 99th percentile of the same distance among people of that
        space; NaN where the space holds no more than k.
    """

    radius: NDArray[np.float64]
    typical: NDArray[np.float64]
    large: NDArray[np.float64]
    limit: NDArray[np.float64]

    @property
    def off_support(self) -> NDArray[np.bool_]:
        """Whose group reaches farther than 99 of 100 in that space; False where not known."""
        return np.asarray(self.radius > self.limit, dtype=np.bool_)

    def columns(self, group: str) -> dict[str, NDArray[Any]]:
        """Give the columns of the support table for this group."""
        return {
            f"radius_{group}": self.radius,
            f"typical_{group}": self.typical,
            f"large_{group}": self.large,
            f"limit_{group}": self.limit,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """How well each complainant's comparison is supported, under one method and one k.

    Parameters
    ----------
    ids
        The complainants.
    control, test
        How far their groups reach.
    outside
        By attribute: whose search center stands outside the range of the test space, or at a
        level that nobody there has.
    insufficient
        Why a verdict is "insufficient", in words; empty where it is not.
    """

    ids: NDArray[Any]
    control: Reach
    test: Reach
    outside: Mapping[str, NDArray[np.bool_]]
    insufficient: NDArray[np.object_]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Compute the support table: one row per complainant."""
        off = {"control": self.control.off_support, "test": self.test.off_support}
        return {
            "id": self.ids,
            **self.control.columns("control"),
            **self.test.columns("test"),
            "off_support": _listed(off, len(self.ids)),
            "outside": _listed(self.outside, len(self.ids)),
            "insufficient": self.insufficient,
        }


def _listed(marks: Mapping[str, NDArray[np.bool_]], size: int) -> NDArray[np.object_]:
    """List, for each complainant, the names that are marked: "a, b"."""
    listed = np.full(size, "", dtype=object)
    for name, marked in marks.items():
        already = marked & (listed != "")
        listed[already] += ", "
        listed[marked] += name
    return listed
