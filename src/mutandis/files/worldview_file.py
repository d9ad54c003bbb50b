"""Worldviews in files: YAML that two experts can read, and back.

A new family of equations is one more entry of `FAMILIES`, which lists its keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from inspect import signature
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutandis.data.attribute import CATEGORICAL
from mutandis.data.columns import plain_value
from mutandis.errors import SettingsError, WorldviewError, listed, shown, suggest
from mutandis.files.graph_files import GRAPH_READERS
from mutandis.files.text_files import read_text
from mutandis.files.yaml_nodes import (
    Entries,
    Items,
    Scalar,
    YamlNode,
    YamlPlace,
    located,
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
    write_yaml,
)
from mutandis.registry import find
from mutandis.scm import Categorical, Count, Linear, Ordinal, Stated, Worldview
from mutandis.scm.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mutandis.files.yaml_nodes import Reader
    from mutandis.scm.family import Equation
    from mutandis.scm.hidden import HiddenCause

__all__ = [
    "FAMILIES",
    "PROTECTED",
    "Family",
    "describe_worldview",
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
        return worldview_from_node(read_yaml(source, surrogates=True))
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in GRAPH_READERS:
        return GRAPH_READERS[suffix](read_text(path), path.name)
    if suffix in {".yaml", ".yml"}:
        return worldview_from_node(read_yaml(read_text(path), source=path.name, surrogates=True))
    raise SettingsError(
        f"The ending of {shown(path.name)} does not tell what it holds. Worldviews are read from "
        f"files that end in .yaml, .yml, {', '.join(GRAPH_READERS)}."
    )


def write_worldview(worldview: Worldview) -> str:
    """Write a worldview as YAML; reading that gives an equal worldview."""
    return write_yaml(describe_worldview(worldview))


def describe_worldview(worldview: Worldview) -> dict[str, Any]:
    """Give a worldview as the data that its file holds, or say what no file can hold."""
    sections: dict[str, Any] = {"equations": _describe_equations(worldview.equations)}
    if worldview.latents:
        sections["latent"] = {each.name: _describe_latent(each) for each in worldview.latents}
    if worldview.resolving:
        sections["resolving"] = worldview.resolving
    return sections


def _describe_latent(latent: HiddenCause) -> dict[str, Any]:
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
    level = plain_value(level)
    return isinstance(level, str | int) or (isinstance(level, float) and isfinite(level))


def _list_families() -> str:
    return f"There are {listed([family.name for family in FAMILIES])}."


def worldview_from_node(node: YamlNode) -> Worldview:
    """Make a worldview of a mapping with sections, or of one of attributes to equations."""
    return _WorldviewReader(read_entries(node, "a worldview")).read()


class _WorldviewReader:
    """Collects the parts of a worldview, and where each attribute's equation stands."""

    def __init__(self, root: Entries) -> None:
        self._root = root
        self._equations: dict[str, Equation] = {}
        self._latents: list[HiddenCause] = []
        self._places: dict[str, YamlPlace] = {}

    def read(self) -> Worldview:
        """Put the parts together, or say in which line that fails."""
        sections = self._sections()
        if "equations" in sections:
            self._equations |= self._read_equations(
                sections["equations"], "the section 'equations'"
            )
        if "latent" in sections:
            self._read_latents(sections["latent"])
        if "edges" in sections:
            self._read_edges(sections["edges"])
        self._check_resolving()
        try:
            return Worldview(
                self._equations, latents=self._latents, resolving=sections.get("resolving", ())
            )
        except WorldviewError:
            # an equation whose arrows contradict those above it is the one to look at
            self._check_arrows()
            with located(self._root.place):
                raise

    def _sections(self) -> dict[str, Any]:
        """Tell sections from attributes, one of which may be called 'edges' too."""
        root = self._root
        given = [k for k, part in root.entries.items() if k in _SECTIONS and not _is_equation(part)]
        for key, part in root.entries.items():
            if given and key not in _SECTIONS and _is_equation(part):
                raise root.keys[key].error(
                    f"The equation for {shown(key)} stands beside sections ({listed(given)}). "
                    "Move it under 'equations:'."
                )
            if not given and not isinstance(part, Entries):
                raise root.keys[key].error(
                    f"No equation is written for {shown(key)}.{suggest(key, _SECTIONS)} "
                    "Write {equation: linear, parents: [gender]}, for example; without an "
                    "equation, an attribute is a root and need not be mentioned."
                )
        return read_keys(root, _SECTIONS, what="a worldview") if given else {"equations": root}

    def _read_equations(self, node: YamlNode, what: str) -> dict[str, Any]:
        entries = read_entries(node, what)
        found = {child: read_equation(part) for child, part in entries.entries.items()}
        for child, place in entries.keys.items():
            self._claim(child, place)
        return found

    def _claim(self, child: str, place: YamlPlace) -> None:
        if child in self._places:
            raise place.error(
                f"{shown(child)} has an equation already, in line {self._places[child].line}. An "
                "attribute has one equation with all its causes in it: keep one of the two."
            )
        self._places[child] = place

    def _read_latents(self, node: YamlNode) -> None:
        hidden = read_entries(node, "the section 'latent'")
        for name, part in hidden.entries.items():
            keys = read_keys(part, _LATENT, required=("equations",), what="a hidden common cause")
            equations = self._read_equations(keys["equations"], "a set of equations")
            with located(hidden.keys[name]):
                noise = keys.get("residual_noise", True)
                self._latents.append(
                    find("room", "latent").Latent(name, equations, residual_noise=noise)
                )

    def _read_edges(self, node: YamlNode) -> None:
        """Read the short form: all the arrows into an attribute make one linear equation."""
        causes: dict[str, list[str]] = {}
        for item in read_items(node, f"[gender {_ARROW} salary]"):
            cause, effect = _read_edge(item)
            if effect not in causes:
                self._claim(effect, item.place)
            if cause in causes.setdefault(effect, []):
                raise item.place.error(
                    f"The arrow {shown(cause)} {_ARROW} {shown(effect)} is written twice. Keep one."
                )
            causes[effect].append(cause)
        self._equations |= {effect: Linear(*parents) for effect, parents in causes.items()}

    def _parents(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        for group in (self._equations, *(latent.equations for latent in self._latents)):
            yield from ((child, equation.parents) for child, equation in group.items())

    def _check_arrows(self) -> None:
        above: dict[str, tuple[str, ...]] = {}
        for child, parents in self._parents():
            above[child] = parents
            with located(self._places[child]):
                Graph.from_parents(above)

    def _check_resolving(self) -> None:
        known = {name for child, parents in self._parents() for name in (child, *parents)}
        node = self._root.entries.get("resolving")
        for item in node.items if isinstance(node, Items) else ():
            if isinstance(item, Scalar) and item.text not in known:
                raise item.place.error(
                    f"The resolving attribute {shown(item.text)} is not in the worldview."
                    f"{suggest(item.text, known)} It has "
                    f"{listed(sorted(known), near=item.text)}."
                )


def _is_equation(node: YamlNode) -> bool:
    return isinstance(node, Entries) and isinstance(node.entries.get("equation"), Scalar)


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
    families["nominal"] = families[CATEGORICAL]  # the kind of attribute that it is for
    if named.text in families:
        return families[named.text].read(entries)
    if named.text.casefold() == "additive":
        raise named.place.error(
            "An additive equation holds a regressor, which is an object of Python and cannot stand "
            f"in a file. {_list_families()} Or write the worldview in Python."
        )
    raise named.place.error(
        f"{shown(named.text)} is not a family of equations.{suggest(named.text, families)} "
        f"{_list_families()}"
    )


def _read_edge(item: YamlNode) -> tuple[str, str]:
    text = item.text if isinstance(item, Scalar) else ""
    ends = [end.strip() for end in text.split(_ARROW)]
    if len(ends) == 2 and all(ends):
        return ends[0], ends[1]
    raise item.place.error(
        f"{shown(text) if text else 'What is written here'} is not one arrow. Write one at a time, "
        f"cause {_ARROW} effect. A name that itself contains '{_ARROW}' goes under 'equations:'."
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
