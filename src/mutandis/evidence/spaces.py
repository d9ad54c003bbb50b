"""Search spaces (Def. 1): among whom the control and the test group are looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.errors import GroupSizeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Categories
    from mutandis.data.protection import Protection
    from mutandis.evidence.group_size import GroupSize

__all__ = ["Stratum", "check_group_sizes", "draw_strata"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Complainants who share their search spaces.

    Parameters
    ----------
    label
        Their protected value, for messages.
    complainants
        Their rows.
    control, test
        The rows of the control space (they are among them) and of the test space.
    """

    label: str
    complainants: NDArray[np.intp]
    control: NDArray[np.intp]
    test: NDArray[np.intp]


def draw_strata(protection: Protection, categories: Categories) -> tuple[Stratum, ...]:
    """Partition D: a stratum per protected value, or one for all of them if they are pooled.

    Rows with other values of the attribute are in no space; they only enter the scale.

    Examples
    --------
    >>> from mutandis.data.columns import Categories
    >>> from mutandis.data.protection import Protection
    >>> origin = Categories(np.array([0, 1, 2, 1, 0]), ("here", "near", "far"))
    >>> (stratum,) = draw_strata(Protection("origin", value="near", reference="here"), origin)
    >>> stratum.control.tolist(), stratum.test.tolist()
    ([1, 3], [0, 4])
    """
    protected, reference = protection.codes(categories)
    test = np.flatnonzero(categories.codes == reference)
    pools = [protected] if protection.pool else [(code,) for code in protected]
    strata = []
    for codes in pools:
        rows = np.flatnonzero(np.isin(categories.codes, codes))
        label = ", ".join(str(categories.levels[code]) for code in codes)
        strata.append(Stratum(label=label, complainants=rows, control=rows, test=test))
    return tuple(strata)


def check_group_sizes(
    strata: Sequence[Stratum], ks: Sequence[int], *, group_size: GroupSize = "k"
) -> None:
    """Refuse a k that some search space cannot fill; of equal mass, every test space can.

    Examples
    --------
    >>> two = np.array([0, 1])
    >>> pair = Stratum(label="women", complainants=two, control=two, test=np.array([2, 3]))
    >>> check_group_sizes([pair], [2])
    Traceback (most recent call last):
    mutandis.errors.GroupSizeError: k=2 is larger than the control space (1 protected rows beside...
    """
    k = max(ks)
    for stratum in strata:
        others = len(stratum.control) - 1
        if k > others:
            raise GroupSizeError(
                f"k={k} is larger than the control space ({others} protected rows beside the "
                f"complainant, status {stratum.label}). Lower k, or widen the protected group."
            )
        if group_size == "k" and k > len(stratum.test):
            raise GroupSizeError(
                f"k={k} is larger than the test space ({len(stratum.test)} reference rows). "
                "Lower k, or use a table with more reference rows."
            )
