"""Worldviews in files: YAML that two experts can read, and back.

A new family of equations is one more entry of `FAMILIES`, which lists its keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from inspect import signature
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.causal import (
    Categorical,
    Count,
    Graph,
    Latent,
    Linear,
    Ordinal,
    Stated,
    Worldview,
)
from mutandis.errors import SettingsError, WorldviewError
from mutandis.files.graph_files import GRAPH_READERS
from mutandis.files.text_files import read_text
from mutandis.files.yaml_nodes import (
    Entries,
    Items,
    Scalar,
    YamlNode,
    YamlPlace,
    listed,
    located,
    nearest,
    one_of,
    optional,
    read_bounds,
    read_entries,
    read_flag,
    read_items,
    read_keys,
    read_levels,
    read_name,
    read_names,
    read_node,
    read_whole,
    read_yaml,
    shown,
    write_yaml,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mutandis.causal import Equation
    from mutandis.files.yaml_nodes import Reader

__all__ = [
    "FAMILIES",
    "PROTECTED",
    "Family",
    "name_protected",
    "read_equation",
    "read_worldview",
    "worldview_from_node",
    "write_worldview",
]

PROTECTED = "$protected"
"""The word that stands, in an audit file's worldview, for the protected attributes.

A worldview that says ``parents: [$protected]`` follows when the line `protected` is changed, and
can be used for several grounds.
"""

_ARROW = "->"

_SECTIONS: Mapping[str, Reader] = {
    "equations": read_node,
    "latent": read_node,
    "resolving": read_names,
    "edges": read_node,
}
_LATENT: Mapping[str, Reader] = {"equations": read_node, "residual_noise": read_flag}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family of equations in files: the class that is made, and the keys that it can have.

    The keys are arguments of the class and fields of it, from which an equation is written again;
    `fields` has those that are not called like their key. `implied` gives what the other settings
    of an equation say already, and need not be written.
    """

    maker: Callable[..., Equation]
    required: str
    keys: Mapping[str, Reader]
    fields: Mapping[str, str] = field(default_factory=dict)
    implied: Callable[[Any], Mapping[str, Any]] = field(default=lambda _: {})

    @property
    def name(self) -> str:
        """What files call it: ``equation: linear``."""
        return self.maker.__name__.lower()

    def read(self, node: YamlNode) -> Equation:
        """Call the class: parents one by one, a formula first, the rest by keyword."""
        article = "an" if self.name[0] in "aeiou" else "a"
        keys = {"equation": read_name, **self.keys}
        what = f"{article} {self.name} equation"
        written = read_keys(node, keys, required=(self.required,), what=what)
        del written["equation"]
        first = written.pop(self.required)
        with located(node.place):
            return self.maker(*([first] if isinstance(first, str) else first), **written)

    def settings_of(self, equation: Equation) -> dict[str, Any]:
        """List the settings that are not at their default."""
        arguments = signature(self.maker).parameters
        implied = self.implied(equation)
        settings: dict[str, Any] = {"equation": self.name}
        for key in self.keys:
            value = getattr(equation, self.fields.get(key, key))
            if key == self.required or value != implied.get(key, arguments[key].default):
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
        maker=Linear,
        required="parents",
        keys={**_PARENTS, **_NUMERIC, "interactions": read_flag},
    ),
    Family(maker=Count, required="parents", keys={**_PARENTS, "bounds": optional(read_bounds)}),
    Family(
        maker=Ordinal,
        required="parents",
        keys={
            **_PARENTS,
            "levels": optional(read_levels),
            "method": one_of("logit", "empirical"),
        },
    ),
    Family(maker=Categorical, required="parents", keys=_PARENTS),
    Family(
        maker=Stated,
        required="formula",
        keys={"formula": read_name, **_PARENTS, "fit": read_names, **_NUMERIC},
        fields={"fit": "coefficients"},
        implied=_columns_in_formula,
    ),
)


def read_worldview(source: str | Path) -> Worldview:
    """Read YAML or a graph from a file; text with line breaks is the YAML itself."""
    if isinstance(source, str) and "\n" in source:
        return worldview_from_node(read_yaml(source))
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in GRAPH_READERS:
        return GRAPH_READERS[suffix](read_text(path), path.name)
    if suffix in {".yaml", ".yml"}:
        return worldview_from_node(read_yaml(read_text(path), source=path.name))
    raise SettingsError(
        f"The ending of {shown(path.name)} does not tell what it holds. Worldviews are read from "
        f"files that end in .yaml, .yml, {', '.join(GRAPH_READERS)}."
    )


def write_worldview(worldview: Worldview) -> str:
    """Write a worldview as YAML; reading that gives an equal worldview."""
    sections: dict[str, Any] = {"equations": _describe_equations(worldview.equations)}
    if worldview.latents:
        sections["latent"] = {each.name: _describe_latent(each) for each in worldview.latents}
    if worldview.resolving:
        sections["resolving"] = worldview.resolving
    return write_yaml(sections)


def _describe_latent(latent: Latent) -> dict[str, Any]:
    noise = {} if latent.residual_noise else {"residual_noise": False}
    return {**noise, "equations": _describe_equations(latent.equations)}


def _describe_equations(equations: Mapping[str, Equation]) -> dict[str, Any]:
    return {child: _describe_equation(child, equation) for child, equation in equations.items()}


def _describe_equation(child: str, equation: Equation) -> dict[str, Any]:
    # a class derived from that of a family may mean something else
    family = next((family for family in FAMILIES if family.maker is type(equation)), None)
    if family is None:
        found = type(equation).__name__
        raise WorldviewError(
            f"The equation for {shown(child)} is of the type {found}, which a file cannot hold. "
            f"{_list_families()} Keep this worldview in Python."
        )
    settings = family.settings_of(equation)
    for level in settings.get("levels") or ():
        if not _is_plain(level):
            raise WorldviewError(
                f"The equation for {shown(child)} has a level of type {type(level).__name__}, "
                "which a file cannot hold. Levels in files are text, finite numbers and booleans: "
                "convert the column, or keep this worldview in Python."
            )
    return settings


def _is_plain(level: object) -> bool:
    if isinstance(level, np.generic):
        level = level.item()
    return isinstance(level, str | int) or (isinstance(level, float) and isfinite(level))


def _list_families() -> str:
    return f"There are {listed([family.name for family in FAMILIES])}."


def worldview_from_node(node: YamlNode) -> Worldview:
    """Make a worldview of a mapping with sections, or of one of attributes to equations."""
    root = read_entries(node, "a worldview")
    return (_read_sections(root) if _has_sections(root) else _read_attributes(root)).worldview()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """The parts of a worldview, and where each attribute's equation stands."""

    root: Entries
    equations: Mapping[str, Equation]
    places: Mapping[str, YamlPlace]
    latents: tuple[Latent, ...] = ()
    resolving: tuple[str, ...] = ()

    def worldview(self) -> Worldview:
        """Put the parts together, or say in which line that fails."""
        try:
            return Worldview(self.equations, latents=self.latents, resolving=self.resolving)
        except WorldviewError:
            # an equation whose arrows contradict those above it is the one to look at
            self._check_arrows()
            with located(self.root.place):
                raise

    def _check_arrows(self) -> None:
        parents: dict[str, tuple[str, ...]] = {}
        for group in (self.equations, *(latent.equations for latent in self.latents)):
            for child, equation in group.items():
                parents[child] = equation.parents
                with located(self.places[child]):
                    Graph.from_parents(parents)


def _has_sections(root: Entries) -> bool:
    """Tell sections from attributes, one of which may be called 'edges' too."""
    return any(key in _SECTIONS and not _is_equation(part) for key, part in root.entries.items())


def _is_equation(node: YamlNode) -> bool:
    return isinstance(node, Entries) and isinstance(node.entries.get("equation"), Scalar)


def _read_attributes(root: Entries) -> _Written:
    for key, part in root.entries.items():
        if not isinstance(part, Entries):
            raise root.keys[key].error(
                f"No equation is written for {shown(key)}.{nearest(key, _SECTIONS)} "
                f"Write {{equation: linear, parents: [gender]}}, for example; without an equation, "
                "an attribute is a root and need not be mentioned."
            )
    return _Written(root=root, equations=_read_equations(root), places=root.keys)


def _read_equations(entries: Entries) -> dict[str, Equation]:
    return {child: read_equation(part) for child, part in entries.entries.items()}


def read_equation(node: YamlNode) -> Equation:
    """Make the equation that a mapping in a file describes."""
    entries = read_entries(node, "an equation")
    named = entries.entries.get("equation")
    if not isinstance(named, Scalar) or named.missing:
        raise entries.place.error(
            "The key 'equation' is missing, which names the family: "
            f"{{equation: linear, parents: [gender]}}. {_list_families()}"
        )
    families = {family.name: family for family in FAMILIES}
    if named.text in families:
        return families[named.text].read(entries)
    if named.text.casefold() == "additive":
        raise named.place.error(
            "An additive equation holds a regressor, which is an object of Python and cannot stand "
            f"in a file. {_list_families()} Or write the worldview in Python."
        )
    raise named.place.error(
        f"{shown(named.text)} is not a family of equations.{nearest(named.text, families)} "
        f"{_list_families()}"
    )


def _read_sections(root: Entries) -> _Written:
    for key, part in root.entries.items():
        if key not in _SECTIONS and _is_equation(part):
            raise root.keys[key].error(
                f"The equation for {shown(key)} stands beside sections ("
                f"{listed([key for key in root.entries if key in _SECTIONS])}). "
                "Move it under 'equations:'."
            )
    sections = read_keys(root, _SECTIONS, what="a worldview")
    places: dict[str, YamlPlace] = {}
    equations: dict[str, Equation] = {}
    if "equations" in sections:
        entries = read_entries(sections["equations"], "the section 'equations'")
        equations.update(_read_equations(entries))
        places.update(entries.keys)
    latents = tuple(_read_latents(sections["latent"], places)) if "latent" in sections else ()
    if "edges" in sections:
        equations.update(_read_edges(sections["edges"], places))
    resolving = sections.get("resolving", ())
    written = _Written(
        root=root, equations=equations, places=places, latents=latents, resolving=resolving
    )
    _check_resolving(written)
    return written


def _read_latents(node: YamlNode, places: dict[str, YamlPlace]) -> Iterator[Latent]:
    hidden = read_entries(node, "the section 'latent'")
    for name, part in hidden.entries.items():
        keys = read_keys(part, _LATENT, required=("equations",), what="a hidden common cause")
        entries = read_entries(keys["equations"], "a set of equations")
        equations: Any = _read_equations(entries)  # Any: Latent says which families it takes
        for child, place in entries.keys.items():
            _claim(child, place, places)
        with located(hidden.keys[name]):
            yield Latent(name, equations, residual_noise=keys.get("residual_noise", True))


def _read_edges(node: YamlNode, places: dict[str, YamlPlace]) -> dict[str, Equation]:
    """Read the short form: all the arrows into an attribute make one linear equation."""
    causes: dict[str, list[str]] = {}
    for item in read_items(node, f"[gender {_ARROW} salary]"):
        cause, effect = _read_edge(item)
        if effect not in causes:
            _claim(effect, item.place, places)
        if cause in causes.setdefault(effect, []):
            raise item.place.error(
                f"The arrow {shown(cause)} {_ARROW} {shown(effect)} is written twice. Keep one."
            )
        causes[effect].append(cause)
    return {effect: Linear(*parents) for effect, parents in causes.items()}


def _claim(child: str, place: YamlPlace, places: dict[str, YamlPlace]) -> None:
    if child in places:
        raise place.error(
            f"{shown(child)} has an equation already, in line {places[child].line}. An attribute "
            "has one equation with all its causes in it: keep one of the two."
        )
    places[child] = place


def _read_edge(item: YamlNode) -> tuple[str, str]:
    text = item.text if isinstance(item, Scalar) else ""
    ends = [end.strip() for end in text.split(_ARROW)]
    if len(ends) == 2 and all(ends):
        return ends[0], ends[1]
    raise item.place.error(
        f"{shown(text) if text else 'What is written here'} is not one arrow. Write one at a time, "
        f"cause {_ARROW} effect. A name that itself contains '{_ARROW}' goes under 'equations:'."
    )


def _check_resolving(written: _Written) -> None:
    groups = (written.equations, *(latent.equations for latent in written.latents))
    known = {
        name
        for group in groups
        for child, equation in group.items()
        for name in (child, *equation.parents)
    }
    node = written.root.entries.get("resolving")
    for item in node.items if isinstance(node, Items) else ():
        if isinstance(item, Scalar) and item.text not in known:
            raise item.place.error(
                f"The resolving attribute {shown(item.text)} is not in the worldview."
                f"{nearest(item.text, known)} It has {listed(sorted(known))}."
            )


def name_protected(node: YamlNode, names: Sequence[str]) -> YamlNode:
    """Put the protected attributes, one or several, where a list says `$protected`."""
    if isinstance(node, Entries):
        return replace(
            node, entries={key: name_protected(part, names) for key, part in node.entries.items()}
        )
    if isinstance(node, Items):
        return replace(node, items=tuple(_replace_protected(node.items, names)))
    return node


def _replace_protected(items: Sequence[YamlNode], names: Sequence[str]) -> Iterator[YamlNode]:
    for item in items:
        if isinstance(item, Scalar) and item.text == PROTECTED:
            yield from (replace(item, text=name, quoted=True) for name in names)
        else:
            yield name_protected(item, names)
