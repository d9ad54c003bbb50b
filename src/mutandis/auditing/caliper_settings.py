"""Read `max_distance` and `min_group`: how far away people may be, and how few there may be."""

from __future__ import annotations

from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING

from mutandis.errors import PlanError

if TYPE_CHECKING:
    from mutandis.evidence.spaces import GroupSize

__all__ = ["read_caliper"]


def read_caliper(
    max_distance: object, min_group: object, *, preset: str | None, group_size: GroupSize
) -> tuple[float | None, int]:
    """Take the caliper and the fewest people a group may hold; without a wish, none and one.

    Examples
    --------
    >>> read_caliper(0.1, None, preset=None, group_size="k")
    (0.1, 1)
    >>> read_caliper(-1, None, preset=None, group_size="k")
    Traceback (most recent call last):
    mutandis.errors.PlanError: max_distance=-1 is not allowed. Give the largest distance at which...
    """
    if max_distance is None and min_group is None:
        return None, 1
    if preset is not None:
        raise PlanError(
            f"preset={preset!r} repeats a publication that compared with the k nearest however "
            "far they were: it knows no max_distance and no min_group. Leave them out, or leave "
            "the preset out."
        )
    if group_size != "k" and max_distance is not None:
        raise PlanError(
            f"max_distance and group_size={group_size!r} contradict each other: a caliper takes "
            "from each group what lies too far away, and the groups no longer cover an equal part "
            "of their spaces. Leave one of the two out."
        )
    return _read_distance(max_distance), _read_least(min_group)


def _read_distance(max_distance: object) -> float | None:
    if max_distance is None:
        return None
    # True is a number to Python, but no distance
    if not isinstance(max_distance, bool) and isinstance(max_distance, Real):
        farthest = float(max_distance)
        if isfinite(farthest) and farthest >= 0:
            return farthest
    raise PlanError(
        f"max_distance={max_distance!r} is not allowed. Give the largest distance at which people "
        "are comparable, such as 0.1, or leave it out."
    )


def _read_least(min_group: object) -> int:
    if min_group is None:
        return 1
    if not isinstance(min_group, bool) and isinstance(min_group, Integral) and int(min_group) >= 1:
        return int(min_group)
    raise PlanError(
        f"min_group={min_group!r} is not allowed. Give the fewest people that a group may hold, "
        "an integer of at least 1."
    )
