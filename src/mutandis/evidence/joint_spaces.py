"""Several protected attributes at once: who complains, and among whom each is compared.

*Multiple* discrimination asks about one attribute at a time, and only about people who are
protected on every one of them: each attribute keeps its own control and test space.
*Intersectional* discrimination asks about all attributes together: the control space holds those
who are protected on all of them, the test space those who are protected on none.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Literal

import numpy as np

from mutandis.errors import ProtectionError
from mutandis.evidence.spaces import Stratum, draw_strata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Categories
    from mutandis.data.protection import Protection

__all__ = ["Combine", "ComparedWith", "draw_joint_strata", "draw_multiple_strata"]

Combine = Literal["multiple", "intersectional"]
ComparedWith = Literal["reference", "complement"]


def draw_joint_strata(
    protections: Sequence[Protection],
    statuses: Mapping[str, Categories],
    *,
    test_space: ComparedWith = "reference",
) -> tuple[Stratum, ...]:
    """Partition D for one intervention on all attributes: a stratum per combination of values.

    Combinations that nobody has are left out; pooled values of an attribute count as one.

    Parameters
    ----------
    protections
        The protected attributes; one alone gives the strata that it has by itself.
    statuses
        The column of each.
    test_space
        Compare with people of the reference status on every attribute ("reference"), or with
        everybody who is not protected on all of them ("complement").

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
    >>> (stratum,) = draw_joint_strata(both, {"race": race, "sex": sex}, test_space="complement")
    >>> stratum.test.tolist()
    [1, 2, 3, 4]
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
        raise _nobody(protections)
    if test_space == "complement":
        protected = np.concatenate([stratum.complainants for stratum in strata])
        rest = np.setdiff1d(np.arange(len(statuses[protections[0].attribute])), protected)
        strata = [replace(stratum, test=rest) for stratum in strata]
    if not len(strata[0].test):
        named = ", ".join(f"{each.attribute!r} = {each.reference!r}" for each in protections)
        raise ProtectionError(
            f"No reference rows: nobody has {named} at once. Name other reference values, or "
            "compare with everybody who is not protected on all: test_space='complement'."
        )
    return tuple(strata)


def draw_multiple_strata(
    protections: Sequence[Protection],
    statuses: Mapping[str, Categories],
    *,
    test_space: ComparedWith = "reference",
) -> tuple[tuple[Stratum, ...], ...]:
    """Partition D for each attribute in turn, with those who are protected on all as complainants.

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
    >>> by_race, by_sex = draw_multiple_strata(both, {"race": race, "sex": sex})
    >>> by_sex[0].complainants.tolist(), by_sex[0].control.tolist(), by_sex[0].test.tolist()
    ([0], [0, 2], [1, 3, 4])
    """
    drawn = [draw_joint_strata((each,), statuses, test_space=test_space) for each in protections]
    complainants = _shared(
        np.sort(np.concatenate([stratum.complainants for stratum in strata])) for strata in drawn
    )
    if not len(complainants):
        raise _nobody(protections)
    return tuple(_restricted(strata, complainants) for strata in drawn)


def _restricted(strata: Iterable[Stratum], complainants: NDArray[np.intp]) -> tuple[Stratum, ...]:
    """Let only some complain; the spaces that they are compared in stay whole."""
    mine = [
        replace(stratum, complainants=np.intersect1d(stratum.complainants, complainants))
        for stratum in strata
    ]
    return tuple(stratum for stratum in mine if len(stratum.complainants))


def _shared(rows: Iterable[NDArray[np.intp]]) -> NDArray[np.intp]:
    return reduce(np.intersect1d, rows)


def _nobody(protections: Sequence[Protection]) -> ProtectionError:
    named = ", ".join(repr(each.attribute) for each in protections)
    return ProtectionError(
        f"No protected rows: nobody has a protected value of each of {named}. "
        "Widen the protected values, or audit these attributes one at a time."
    )
