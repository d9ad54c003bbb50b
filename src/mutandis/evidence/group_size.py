"""How many rows a test group takes: k, or as large a part of its space as the control group.

The smaller of two spaces is the sparser one, and its k nearest people lie farther away. Near the
border between refusals and approvals the wider group sees more of the other side, so the shares
differ although nobody was treated differently. With "equal-mass" the test group takes k · n_t / n_c
rows: both groups then cover the same part of their spaces, and about the same radius where the two
spaces have the same shape. It still counts as k observations. More rows make its share steadier,
but the control group has k, and no more is claimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.search.share import Share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.evidence.spaces import Stratum

__all__ = ["GroupSize", "counted_as", "rows_in_test"]

GroupSize = Literal["k", "equal-mass"]


def rows_in_test(stratum: Stratum, ks: Sequence[int], *, group_size: GroupSize) -> tuple[int, ...]:
    """Give the number of rows in a test group for each k, halves rounded up, at least one.

    With fewer people in the test space than in the control space the group shrinks below k. It
    never exceeds its space, since k is smaller than the control space.

    Examples
    --------
    >>> from mutandis.evidence.spaces import Stratum
    >>> women, men = np.arange(100), np.arange(100, 350)
    >>> stratum = Stratum(label="women", complainants=women, control=women, test=men)
    >>> rows_in_test(stratum, (1, 15), group_size="equal-mass")
    (3, 38)
    """
    if group_size == "k":
        return tuple(ks)
    control, test = len(stratum.control), len(stratum.test)
    return tuple(max(1, (2 * k * test + control) // (2 * control)) for k in ks)


def counted_as(share: Share, k: int, places: NDArray[np.int64]) -> Share:
    """Give the same shares as shares of k places, whatever the number they were counted in.

    Parameters
    ----------
    share
        Shares of groups of any size.
    k
        The number of places that they are to count as.
    places
        How many rows each group was to take; groups of exactly k stay as they are.

    Examples
    --------
    Three of six rows are one and a half of three places:

    >>> six = np.array([6])
    >>> half = counted_as(Share(negatives=six // 2, size=six, split=six // 6), 3, six)
    >>> int(half.negatives[0]), int(half.size[0]), int(half.split[0])
    (3, 3, 2)
    """
    negatives, split = share.negatives * k, share.split * share.size
    divisor = np.gcd(negatives, split)
    other = places != k
    return Share(
        negatives=np.where(other, negatives // divisor, share.negatives),
        size=np.where(other, k, share.size),
        split=np.where(other, split // divisor, share.split),
    )
