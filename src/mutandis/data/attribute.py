"""Attributes on which people are compared, and how their values are to be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Literal

from mutandis.errors import PlanError
from mutandis.limits import explain_limit, limit

_MOST = 1_000

# of a declaration; the first has to be there
_SETTINGS = {"kind": None, "levels": None, "weight": None, "compare_missing": None}.keys()

MISSING = "(missing)"
"""The level of a missing value, where such are compared."""

CATEGORICAL = "categorical"
"""Another word for nominal, which is understood wherever a kind is named."""


class AttributeKind(StrEnum):
    """How the values of an attribute are compared.

    Examples
    --------
    >>> AttributeKind("nominal")
    <AttributeKind.NOMINAL: 'nominal'>
    """

    CONTINUOUS = "continuous"
    """Numbers: compared by |a - b| over the range in D."""
    ORDINAL = "ordinal"
    """Declared levels in order: compared by their ranks."""
    NOMINAL = "nominal"
    """Names: equal or different; also called categorical."""

    @classmethod
    def _missing_(cls, value: object) -> AttributeKind | None:
        return cls.NOMINAL if value == CATEGORICAL else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute that takes part in the distance.

    Parameters
    ----------
    name
        The column.
    kind
        How its values are compared.
    levels
        For an ordinal attribute all its levels, lowest first.
    weight
        Its share in the distance relative to the others, read as a decimal: 0.1 is one tenth.
    compare_missing
        Of a nominal attribute: compare people whose value is missing as well. A missing value is
        different from every other, a missing one included, as some distances define it.

    Examples
    --------
    >>> Attribute(name="grade", kind=AttributeKind.ORDINAL, levels=("low", "mid", "high")).levels
    ('low', 'mid', 'high')
    """

    name: str
    kind: AttributeKind
    levels: tuple[Any, ...] = ()
    weight: float = 1.0
    compare_missing: bool = False

    def __post_init__(self) -> None:
        # "ordinal" and a list of levels are accepted too
        object.__setattr__(self, "kind", _read_kind(self.name, self.kind))
        object.__setattr__(self, "levels", _read_levels(self.name, self.levels))
        ordinal = self.kind is AttributeKind.ORDINAL
        if ordinal and len(self.levels) < 2:
            raise PlanError(
                f"Attribute {self.name!r} is ordinal but has {len(self.levels)} declared levels. "
                "Declare at least two, lowest first: levels=('low', 'mid', 'high')."
            )
        if self.levels and not ordinal:
            raise PlanError(
                f"Attribute {self.name!r} is {self.kind} and cannot have levels. "
                "Declare it as ordinal, or leave the levels out."
            )
        _check_weight(self.name, self.weight)
        if not isinstance(self.compare_missing, bool):
            raise PlanError(
                f"Attribute {self.name!r} has compare_missing={self.compare_missing!r}. Give True "
                "or False."
            )
        if self.compare_missing and self.kind is not AttributeKind.NOMINAL:
            raise PlanError(
                f"Attribute {self.name!r} is {self.kind}, and missing values are compared in "
                "nominal attributes alone. Leave compare_missing out, and choose what happens to "
                "such rows with missing='error' or missing='drop'."
            )

    @property
    def exact_weight(self) -> Fraction:
        """The weight as the decimal that was written: 0.1 is one tenth, not its nearest float."""
        return Fraction(str(self.weight))


AttributeDeclaration = (
    Attribute | Literal["continuous", "ordinal", "nominal", "categorical"] | Mapping[str, Any]
)


def read_attributes(declarations: Mapping[str, AttributeDeclaration]) -> tuple[Attribute, ...]:
    """Turn the forgiving public form into attributes, in the order of declaration."""
    example = "attributes={'AnnualSalary': 'continuous'}"
    if not isinstance(declarations, Mapping):
        raise PlanError(
            f"Attributes come as column: kind, not as {type(declarations).__name__}: {example}."
        )
    if not declarations:
        raise PlanError(
            f"No attributes to compare people on. Name at least one, with its kind: {example}."
        )
    if len(declarations) > limit(_MOST):
        raise PlanError(
            f"There are {len(declarations):,} attributes to compare people on. With so many, "
            f"no two people are alike: name those that matter. {explain_limit(_MOST, 'attributes')}"
        )
    return tuple(_read(name, declared) for name, declared in declarations.items())


def _read(name: str, declared: AttributeDeclaration) -> Attribute:
    if isinstance(declared, Attribute):
        if declared.name != name:
            raise PlanError(
                f"Attribute {declared.name!r} is declared under the name {name!r}. "
                "Use the column's name in both places."
            )
        return declared
    settings = dict(declared) if isinstance(declared, Mapping) else {"kind": declared}
    unknown = sorted(str(setting) for setting in settings.keys() - _SETTINGS)
    if unknown:
        raise PlanError(
            f"Attribute {name!r} has unknown settings {unknown}. Allowed: {', '.join(_SETTINGS)}."
        )
    return Attribute(name=name, **{"kind": None, **settings})


def _read_kind(name: str, kind: object) -> AttributeKind:
    allowed = ", ".join(AttributeKind)
    if kind is None:
        raise PlanError(f"Attribute {name!r} has no kind. Give one of {allowed}.")
    try:
        return AttributeKind(str(kind))
    except ValueError:
        raise PlanError(
            f"Attribute {name!r} has the unknown kind {kind!r}. Allowed: {allowed}."
        ) from None


def _read_levels(name: str, levels: object) -> tuple[Any, ...]:
    # a string is iterable too, but its letters are not levels
    if isinstance(levels, str | set | frozenset) or not isinstance(levels, Iterable):
        raise PlanError(
            f"Attribute {name!r} has levels of type {type(levels).__name__}. "
            "Give a list, lowest first: levels=['low', 'mid', 'high']."
        )
    read = tuple(levels)
    if any(level is None or level != level for level in read):  # noqa: PLR0124 - NaN is not itself
        raise PlanError(
            f"Attribute {name!r} declares a missing value as a level. Leave it out, and choose "
            "what happens to such rows with missing='error' or missing='drop'."
        )
    try:
        distinct = len(set(read))
    except TypeError:
        raise PlanError(
            f"Attribute {name!r} has levels that are not plain values. Give texts or numbers."
        ) from None
    if distinct != len(read):
        raise PlanError(f"Attribute {name!r} declares a level twice. Name each once.")
    return read


def _check_weight(name: str, weight: object) -> None:
    try:
        usable = Fraction(str(weight)) > 0 and not isinstance(weight, str)
    except (ValueError, ZeroDivisionError):  # NaN and infinity are not fractions
        usable = False
    if not usable:
        raise PlanError(
            f"Attribute {name!r} has weight {weight!r}. "
            "Weights are positive numbers; leave an attribute out to ignore it."
        )
