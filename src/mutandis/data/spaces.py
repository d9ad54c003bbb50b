"""Search spaces (Def. 1): among whom the control and the test group are looked for.

With several protected attributes, *multiple* discrimination asks about one attribute at a time, and
only about people who are protected on every one of them: each attribute keeps its own control and
test space. *Intersectional* discrimination asks about all attributes together: the control space
holds those who are protected on all of them, the test space those who are protected on none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.errors import GroupSizeError, ProtectionError
from mutandis.mapped import in_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Categories
    from mutandis.data.protection import Protection

__all__ = [
    "Combine",
    "ComparedWith",
    "Stratum",
    "check_group_sizes",
    "draw_joint_strata",
    "draw_multiple_strata",
    "draw_strata",
    "largest_sound_k",
    "restrict_complainants",
]

Combine = Literal["multiple", "intersectional"]
ComparedWith = Literal["reference", "complement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Complainants who share their search spaces."""

    label: str  # their protected value, for messages
    complainants: NDArray[np.intp]  # their rows
    # the rows of the control space (they are among them) and of the test space
    control: NDArray[np.intp]
    test: NDArray[np.intp]


def draw_strata(protection: Protection, categories: Categories) -> tuple[Stratum, ...]:
    """Partition D: a stratum per protected value, or one for all of them if they are pooled.

    Rows with other values of the attribute are in no space; they only enter the scale.
    """
    protected, reference = protection.codes(categories)
    test = in_file(np.flatnonzero(categories.codes == reference))
    pools = [protected] if protection.pool else [(code,) for code in protected]
    strata = []
    for codes in pools:
        rows = in_file(np.flatnonzero(np.isin(categories.codes, codes)))
        label = ", ".join(str(categories.levels[code]) for code in codes)
        strata.append(Stratum(label=label, complainants=rows, control=rows, test=test))
    return tuple(strata)


def draw_joint_strata(
    protections: Sequence[Protection],
    statuses: Mapping[str, Categories],
    *,
    test_space: ComparedWith = "reference",
) -> tuple[Stratum, ...]:
    """Partition D for one intervention on all attributes: a stratum per combination of values.

    Combinations without rows are left out; pooled values of an attribute count as one. One
    protection alone gives the strata that it has by itself. The test space holds people of the
    reference status on every attribute, or ("complement") all who are not protected on all.

    Examples
    --------
    >>> from mutandis.data.columns import Categories
    >>> from mutandis.data.protection import Protection
    >>> race = Categories(np.array([0, 0, 1, 1, 1]), ("black", "white"))
    >>> sex = Categories(np.array([0, 1, 0, 1, 1]), ("female", "male"))
    >>> both = (
    ...     Protection("race", value="black", reference="white"),
    ...     Protection("sex", value="female", reference="male"),
    ... )
    >>> (stratum,) = draw_joint_strata(both, {"race": race, "sex": sex})
    >>> stratum.label, stratum.control.tolist(), stratum.test.tolist()
    ('black × female', [0], [3, 4])
    """
    singles = [draw_strata(each, statuses[each.attribute]) for each in protections]
    strata = []
    for combination in product(*singles):
        rows = _shared(stratum.complainants for stratum in combination)
        test = _shared(stratum.test for stratum in combination)
        label = " × ".join(stratum.label for stratum in combination)
        if len(rows):
            strata.append(Stratum(label=label, complainants=rows, control=rows, test=test))
    if not strata:
        raise _no_protected_rows(protections)
    if test_space == "complement":
        protected = np.concatenate([stratum.complainants for stratum in strata])
        rest = np.setdiff1d(np.arange(len(statuses[protections[0].attribute])), protected)
        strata = [replace(stratum, test=rest) for stratum in strata]
    if not len(strata[0].test):
        named = ", ".join(f"{each.attribute!r} = {each.reference!r}" for each in protections)
        raise ProtectionError(
            f"No reference rows: no row has {named} at once. Name other reference values, or "
            "compare with all rows that are not protected on all: test_space='complement'."
        )
    return tuple(strata)


def draw_multiple_strata(
    protections: Sequence[Protection],
    statuses: Mapping[str, Categories],
    *,
    test_space: ComparedWith = "reference",
) -> tuple[tuple[Stratum, ...], ...]:
    """Partition D for each attribute in turn, with those who are protected on all as complainants.

    The spaces in which they are compared stay whole.
    """
    drawn = [draw_joint_strata((each,), statuses, test_space=test_space) for each in protections]
    complainants = _shared(
        np.sort(np.concatenate([stratum.complainants for stratum in strata])) for strata in drawn
    )
    if not len(complainants):
        raise _no_protected_rows(protections)
    return tuple(restrict_complainants(strata, complainants) for strata in drawn)


def restrict_complainants(
    strata: Iterable[Stratum], complainants: NDArray[np.intp]
) -> tuple[Stratum, ...]:
    """Leave out other complainants; the spaces in which these are compared stay whole."""
    mine = [
        replace(stratum, complainants=np.intersect1d(stratum.complainants, complainants))
        for stratum in strata
    ]
    return tuple(stratum for stratum in mine if len(stratum.complainants))


def _shared(rows: Iterable[NDArray[np.intp]]) -> NDArray[np.intp]:
    return reduce(np.intersect1d, rows)


def _no_protected_rows(protections: Sequence[Protection]) -> ProtectionError:
    named = ", ".join(repr(each.attribute) for each in protections)
    return ProtectionError(
        f"No protected rows: no row has a protected value of each of {named}. "
        "Widen the protected values, or audit these attributes one at a time."
    )


def largest_sound_k(strata: Sequence[Stratum]) -> int:
    """Return the largest k, up to 50, at which matched groups are still local.

    With more than a third of the protected rows, or a fifth of the reference rows, a group is no
    longer about people like the complainant, and the matches of different people are the same few.
    """
    return min(50, *(len(s.control) // 3 for s in strata), *(len(s.test) // 5 for s in strata))


def check_group_sizes(strata: Sequence[Stratum], ks: Sequence[int]) -> None:
    """Refuse a k that some search space cannot fill."""
    k = max(ks)
    for stratum in strata:
        others = len(stratum.control) - 1
        if k > others:
            raise GroupSizeError(
                f"k={k} is larger than the control space ({others} protected rows beside the "
                f"complainant, status {stratum.label}). Lower k, or widen the protected group."
            )
        if k > len(stratum.test):
            raise GroupSizeError(
                f"k={k} is larger than the test space ({len(stratum.test)} reference rows). "
                "Lower k, or use a table with more reference rows."
            )
