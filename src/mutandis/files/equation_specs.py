"""How each family of equations is written in a file, and what is made of it.

A new family of equations is one more `Family` here. The classes are imported when a file asks for
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import WorldviewError
from mutandis.files.yaml_nodes import (
    Scalar,
    YamlNode,
    listed,
    located,
    nearest,
    one_of,
    optional,
    read_bounds,
    read_entries,
    read_flag,
    read_keys,
    read_levels,
    read_name,
    read_names,
    read_whole,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mutandis.causal import Equation
    from mutandis.files.yaml_nodes import Reader

__all__ = ["FAMILIES", "Family", "describe_equation", "read_equation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family of equations in files: ``equation: linear`` with the keys of its class.

    The keys are the arguments of the class and its fields too, where an equation's settings are
    looked up when it is written; `fields` has those that are not called like their key. `implied`
    gives what the other settings of an equation say already, and need not be written.
    """

    name: str
    required: str
    keys: Mapping[str, Reader]
    fields: Mapping[str, str] = field(default_factory=dict)
    implied: Callable[[Any], Mapping[str, Any]] = field(default=lambda _: {})

    @property
    def _home(self) -> str:
        return f"mutandis.causal.equations.{self.name}"

    def _class(self) -> type[Equation]:
        found: type[Equation] = getattr(import_module(self._home), self.name.capitalize())
        return found

    def read(self, node: YamlNode) -> Equation:
        """Call the class: parents one by one, a formula first, the rest by keyword."""
        article = "an" if self.name[0] in "aeiou" else "a"
        keys = {"equation": read_name, **self.keys}
        what = f"{article} {self.name} equation"
        written = read_keys(node, keys, required=(self.required,), what=what)
        del written["equation"]
        first = written.pop(self.required)
        with located(node.place):
            return self._class()(*([first] if isinstance(first, str) else first), **written)

    def describes(self, equation: object) -> bool:
        """Tell whether an equation is of this family (and not of a class derived from it)."""
        found = type(equation)
        return (found.__module__, found.__qualname__) == (self._home, self.name.capitalize())

    def settings_of(self, equation: Equation) -> dict[str, Any]:
        """List the settings that are not at their default."""
        defaults = {
            key: argument.default for key, argument in signature(self._class()).parameters.items()
        }
        defaults.update(self.implied(equation))
        settings: dict[str, Any] = {"equation": self.name}
        for key in self.keys:
            value = getattr(equation, self.fields.get(key, key))
            if key == self.required or value != defaults[key]:
                settings[key] = value
        return settings


def _columns_in_formula(equation: Any) -> dict[str, Any]:
    names = equation.parsed.names
    return {"parents": tuple(name for name in names if name not in equation.coefficients)}


_PARENTS: Mapping[str, Reader] = {"parents": read_names}
_NUMERIC: Mapping[str, Reader] = {
    "link": one_of("identity", "log"),
    "bounds": optional(read_bounds),
    "decimals": optional(read_whole),
    "levels": optional(read_levels),
}

FAMILIES = (
    Family(
        name="linear",
        required="parents",
        keys={**_PARENTS, **_NUMERIC, "interactions": read_flag},
    ),
    Family(name="count", required="parents", keys={**_PARENTS, "bounds": optional(read_bounds)}),
    Family(
        name="ordinal",
        required="parents",
        keys={
            **_PARENTS,
            "levels": optional(read_levels),
            "method": one_of("logit", "empirical"),
        },
    ),
    Family(name="categorical", required="parents", keys=_PARENTS),
    Family(
        name="stated",
        required="formula",
        keys={"formula": read_name, **_PARENTS, "fit": read_names, **_NUMERIC},
        fields={"fit": "coefficients"},
        implied=_columns_in_formula,
    ),
)


def read_equation(node: YamlNode) -> Equation:
    """Make the equation that a mapping in a file describes.

    Examples
    --------
    >>> from mutandis.files.yaml_nodes import read_yaml
    >>> read_equation(read_yaml("{equation: linear, parents: [gender], bounds: [0, null]}"))
    Linear('gender', bounds=(0.0, None))
    """
    entries = read_entries(node, "an equation")
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
    return family.read(entries)


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
