"""The protected attribute, and the reference it is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import describe_levels, in_order
from mutandis.errors import PlanError, ProtectionError

if TYPE_CHECKING:
    from mutandis.data.columns import Categories


@dataclass(frozen=True, slots=True, init=False)
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
    values: tuple[Any, ...]
    reference: Any
    pool: bool

    def __init__(
        self, attribute: str, *, value: object = None, reference: object, pool: bool = False
    ) -> None:
        if reference is None:
            raise PlanError(
                f"Protection on {attribute!r} has no reference. "
                "Name the status that the counterfactual takes: reference='male'."
            )
        values = _read_values(attribute, value)
        if reference in values:
            raise PlanError(
                f"Protection on {attribute!r}: the reference {reference!r} is also a protected "
                "value. The reference is the status that the counterfactual takes: name another."
            )
        object.__setattr__(self, "attribute", attribute)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "reference", reference)
        object.__setattr__(self, "pool", pool)

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
