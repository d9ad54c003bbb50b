"""How each family of equations is written in a file, and what is made of it.

One `Family` for each: its name in the file, the class behind it, and the keys it can have. A new
family of equations is one more entry here. The classes are imported when a file asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from mutandis.errors import WorldviewError
from mutandis.files.yaml_lines import Node, Scalar, located, shown
from mutandis.files.yaml_models import (
    Bounds,
    Flag,
    Levels,
    Name,
    NameList,
    Settings,
    Whole,
    choice,
    entries_of,
    listed,
    nearest,
    validated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mutandis.causal import Equation

__all__ = ["FAMILIES", "Family", "describe_equation", "read_equation"]


class _Linear(Settings):
    equation: Name
    parents: NameList
    link: Annotated[str, choice("identity", "log")] = "identity"
    bounds: Bounds = None
    decimals: Whole = None
    levels: Levels = None
    interactions: Flag = False


class _Count(Settings):
    equation: Name
    parents: NameList
    bounds: Bounds = None


class _Ordinal(Settings):
    equation: Name
    parents: NameList
    levels: Levels = None
    method: Annotated[str, choice("logit", "empirical")] = "logit"


class _Categorical(Settings):
    equation: Name
    parents: NameList


class _Stated(Settings):
    equation: Name
    formula: Name
    parents: NameList = ()
    fit: NameList = ()
    link: Annotated[str, choice("identity", "log")] = "identity"
    bounds: Bounds = None
    decimals: Whole = None
    levels: Levels = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family of equations in files.

    Parameters
    ----------
    name
        What the file calls it: ``equation: linear``.
    home
        The module that has its class.
    class_name
        The class.
    keys
        The keys that it can have in a file: the class's arguments, and its fields too, where an
        equation's settings are looked up when it is written.
    fields
        The fields of those keys that are not called like them.
    implied
        What the other settings of an equation say already, and need not be written.
    """

    name: str
    home: str
    class_name: str
    keys: type[Settings]
    fields: Mapping[str, str] = field(default_factory=dict)
    implied: Callable[[Any], Mapping[str, Any]] = field(default=lambda _: {})

    def made_of(self, settings: Settings) -> Equation:
        """Call the class: parents one by one, a formula first, the rest by keyword."""
        written = {key: getattr(settings, key) for key in settings.model_fields_set}
        del written["equation"]
        first = (written.pop("formula"),) if "formula" in written else written.pop("parents")
        made: Equation = getattr(import_module(self.home), self.class_name)(*first, **written)
        return made

    def describes(self, equation: object) -> bool:
        """Tell whether an equation is of this family (and not of a class derived from it)."""
        found = type(equation)
        return (found.__module__, found.__qualname__) == (self.home, self.class_name)

    def settings_of(self, equation: Equation) -> dict[str, Any]:
        """List the settings that are not at their default."""
        implied = self.implied(equation)
        settings: dict[str, Any] = {"equation": self.name}
        for key, spec in self.keys.model_fields.items():
            if key != "equation":
                value = getattr(equation, self.fields.get(key, key))
                if spec.is_required() or value != implied.get(key, spec.default):
                    settings[key] = value
        return settings


def _columns_in_formula(equation: Any) -> dict[str, Any]:
    names = equation.parsed.names
    return {"parents": tuple(name for name in names if name not in equation.coefficients)}


def _family(name: str, keys: type[Settings], **more: Any) -> Family:
    home = f"mutandis.causal.equations.{name}"
    return Family(name=name, home=home, class_name=name.capitalize(), keys=keys, **more)


FAMILIES = (
    _family("linear", _Linear),
    _family("count", _Count),
    _family("ordinal", _Ordinal),
    _family("categorical", _Categorical),
    _family("stated", _Stated, fields={"fit": "coefficients"}, implied=_columns_in_formula),
)


def read_equation(node: Node) -> Equation:
    """Make the equation that a mapping in a file describes.

    Examples
    --------
    >>> from mutandis.files.yaml_lines import read_yaml
    >>> read_equation(read_yaml("{equation: linear, parents: [gender], bounds: [0, null]}"))
    Linear('gender', bounds=(0.0, None))
    """
    entries = entries_of(node, "an equation")
    named = entries.entries.get("equation")
    if not isinstance(named, Scalar) or named.missing:
        example = "{equation: linear, parents: [gender]}"
        raise entries.place.error(
            f"The key 'equation' is missing, which names the family: {example}. "
            f"{_families_there_are()}"
        )
    family = next((family for family in FAMILIES if family.name == named.text), None)
    if family is None:
        raise named.place.error(_unknown_family(named.text))
    article = "an" if family.name[0] in "aeiou" else "a"
    settings = validated(family.keys, entries, what=f"{article} {family.name} equation")
    with located(entries.place):
        return family.made_of(settings)


def describe_equation(child: str, equation: Equation) -> dict[str, Any]:
    """List what has to be written to get this equation back, without what is at its default.

    Examples
    --------
    >>> from mutandis.causal import Linear
    >>> describe_equation("salary", Linear("gender", decimals=2))
    {'equation': 'linear', 'parents': ('gender',), 'decimals': 2}
    """
    family = next((family for family in FAMILIES if family.describes(equation)), None)
    if family is None:
        found = type(equation).__name__
        raise WorldviewError(
            f"The equation for {shown(child)} is of the type {found}, which a file cannot hold. "
            f"{_families_there_are()} Keep this worldview in Python."
        )
    settings = family.settings_of(equation)
    for level in settings.get("levels") or ():
        if not _is_plain(level):
            raise WorldviewError(
                f"The equation for {shown(child)} has a level of type {type(level).__name__}, "
                "which a file cannot hold. Levels in files are text, finite numbers and truths: "
                "convert the column, or keep this worldview in Python."
            )
    return settings


def _is_plain(level: object) -> bool:
    if isinstance(level, np.generic):
        level = level.item()
    return isinstance(level, str | int) or (isinstance(level, float) and isfinite(level))


def _families_there_are() -> str:
    return f"There are {listed([family.name for family in FAMILIES])}."


def _unknown_family(name: str) -> str:
    if name.casefold() == "additive":
        return (
            "An additive equation holds a regressor, which is an object of Python and cannot stand "
            f"in a file. {_families_there_are()} Or write the worldview in Python."
        )
    known = [family.name for family in FAMILIES]
    return f"{shown(name)} is no family of equations.{nearest(name, known)} {_families_there_are()}"
