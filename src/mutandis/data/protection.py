"""Protected attributes, and the search spaces that follow from them (Def. 1).

The control group is looked for among protected people, the test group among people of the reference
status. With several protected attributes, *multiple* discrimination asks about one attribute at a
time, and only about people who are protected on every one of them: each attribute keeps its own
control and test space. *Intersectional* discrimination asks about all attributes together: the
control space holds those who are protected on all of them, the test space those who are protected
on none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mutandis.data.columns import describe_levels, in_order
from mutandis.errors import GroupSizeError, PlanError, ProtectionError
from mutandis.mapped import in_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Categories

Combine = Literal["multiple", "intersectional"]
ComparedWith = Literal["reference", "complement"]


@dataclass(frozen=True, slots=True)
class Protection:
    """A protected attribute, its protected value(s) and the one reference value.

    Parameters
    ----------
    attribute
        The column.
    value
        The protected value, or a list of them. Left out: every value but the reference. Each
        protected value is audited against the reference on its own.
    reference
        The value that the counterfactual takes: do(A := reference).
    pool
        Search the control group among all protected values together.

    Examples
    --------
    >>> Protection("Gender", value=1, reference=0).values
    (1,)
    """

    attribute: str
    value: Any = field(default=None, kw_only=True, repr=False, compare=False)
    reference: Any = field(kw_only=True)
    pool: bool = field(default=False, kw_only=True)
    values: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.reference is None:
            raise PlanError(
                f"Protection on {self.attribute!r} has no reference. "
                "Name the status that the counterfactual takes: reference='male'."
            )
        object.__setattr__(self, "values", _read_values(self.attribute, self.value))
        if self.reference in self.values:
            raise PlanError(
                f"Protection on {self.attribute!r}: the reference {self.reference!r} is also a "
                "protected value. The reference is the status that the counterfactual takes: name "
                "another."
            )

    def codes(self, categories: Categories) -> tuple[tuple[int, ...], int]:
        """Find the protected codes and the reference code, or say which value has no rows."""
        reference = self._code("reference", self.reference, categories)
        if self.values:
            protected = tuple(self._code("protected", value, categories) for value in self.values)
        else:
            # levels without rows are left over from dropped rows
            occurring = np.flatnonzero(categories.counts()).tolist()
            protected = tuple(code for code in occurring if code != reference)
        if not protected:
            raise ProtectionError(
                f"No protected rows: {self.attribute!r} has no value but the reference "
                f"{self.reference!r}. Use a table that holds protected people too."
            )
        return protected, reference

    def _code(self, role: str, value: object, categories: Categories) -> int:
        code = categories.code_of(value)
        if code is None or not categories.counts()[code]:
            raise ProtectionError(
                f"No {role} rows: {self.attribute!r} never has the value {value!r}. "
                f"Its values: {describe_levels(categories)}. Name one that occurs."
            )
        return code


def _read_values(attribute: str, value: object) -> tuple[Any, ...]:
    if value is None:
        return ()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, set | frozenset):
        # a set has no order, and the audits come in the order of the values
        value = in_order(value)
    if not isinstance(value, list | tuple):
        return (value,)
    values = tuple(value)
    if not values:
        raise PlanError(
            f"Protection on {attribute!r} has an empty list of protected values. "
            "Name at least one, or leave value= out to protect all but the reference."
        )
    if any(value in values[:place] for place, value in enumerate(values)):
        raise PlanError(f"Protection on {attribute!r} names a value twice. Name each once.")
    return values


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
    """Partition D for each attribute in turn, with people who are protected on all as complainants.

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
                f"k={k} is larger than the control space ({others} protected rows besides the "
                f"complainant, status {stratum.label}). Lower k, or widen the protected group."
            )
        if k > len(stratum.test):
            raise GroupSizeError(
                f"k={k} is larger than the test space ({len(stratum.test)} reference rows). "
                "Lower k, or use a table with more reference rows."
            )
