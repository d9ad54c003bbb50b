"""Worldviews in files: YAML that two experts can read, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutandis.causal import Graph, Latent, Linear, Worldview
from mutandis.errors import SettingsError, WorldviewError
from mutandis.files.equation_specs import describe_equation, read_equation
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
    read_entries,
    read_flag,
    read_items,
    read_keys,
    read_names,
    read_node,
    read_yaml,
    shown,
    write_yaml,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mutandis.causal import Equation

__all__ = [
    "PROTECTED",
    "name_protected",
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


_SECTIONS = {
    "equations": read_node,
    "latent": read_node,
    "resolving": read_names,
    "edges": read_node,
}
_LATENT = {"equations": read_node, "residual_noise": read_flag}


def read_worldview(source: str | Path) -> Worldview:
    """Read a worldview from a file.

    Parameters
    ----------
    source
        The path of a ``.yaml`` or ``.yml`` file, or of a graph (``.gml``, ``.dot``, ``.gv``), all
        of whose arrows are read as linear equations. Text with line breaks is taken for the YAML
        itself, as `write_worldview` gives it.

    Raises
    ------
    SettingsError
        The file does not exist, or cannot be read as it is written; the message names the line.
    WorldviewError
        The file can be read, but what it says is no worldview: a cycle, for example.

    Examples
    --------
    >>> worldview = read_worldview('''
    ... equations:
    ...   salary: {equation: linear, parents: [gender], bounds: [0, null]}
    ... edges: [gender -> balance, salary -> balance]
    ... ''')
    >>> worldview.names
    ('gender', 'salary', 'balance')
    >>> worldview.equations["salary"]
    Linear('gender', bounds=(0.0, None))
    """
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
    """Write a worldview as YAML; reading that gives an equal worldview.

    Raises
    ------
    WorldviewError
        An equation that no file can hold: one around a Python object, or of a family of your own.

    Examples
    --------
    >>> print(write_worldview(Worldview({"salary": Linear("gender", decimals=2)})), end="")
    equations:
      salary: {equation: linear, parents: [gender], decimals: 2}
    """
    sections: dict[str, Any] = {"equations": _described(worldview.equations)}
    if worldview.latents:
        sections["latent"] = {
            latent.name: _described_latent(latent) for latent in worldview.latents
        }
    if worldview.resolving:
        sections["resolving"] = worldview.resolving
    return write_yaml(sections)


def _described(equations: Mapping[str, Equation]) -> dict[str, Any]:
    return {child: describe_equation(child, equation) for child, equation in equations.items()}


def _described_latent(latent: Latent) -> dict[str, Any]:
    noise = {} if latent.residual_noise else {"residual_noise": False}
    return {**noise, "equations": _described(latent.equations)}


def worldview_from_node(node: YamlNode) -> Worldview:
    """Make the worldview that a part of a file describes.

    Parameters
    ----------
    node
        A mapping with the sections ``equations``, ``latent``, ``resolving`` and ``edges``, or a
        mapping of attributes to equations directly.

    Examples
    --------
    >>> audit = read_yaml("worldview: {salary: {equation: linear, parents: [gender]}}")
    >>> worldview_from_node(audit.entries["worldview"])
    Worldview({'salary': Linear('gender')})
    """
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
    written = _Written(
        root=root,
        equations=equations,
        places=places,
        latents=latents,
        resolving=sections.get("resolving", ()),
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
    """Put the protected attributes where a part of a file says `$protected`.

    In a list, several attributes take several places.

    Examples
    --------
    >>> from mutandis.files.yaml_nodes import plain_data
    >>> written = read_yaml("salary: {equation: linear, parents: [$protected, age]}")
    >>> plain_data(name_protected(written, ["gender", "race"]))["salary"]["parents"]
    ['gender', 'race', 'age']
    """
    if isinstance(node, Entries):
        return replace(
            node, entries={key: name_protected(part, names) for key, part in node.entries.items()}
        )
    if isinstance(node, Items):
        return replace(node, items=tuple(_expanded(node.items, names)))
    return node


def _expanded(items: Sequence[YamlNode], names: Sequence[str]) -> Iterator[YamlNode]:
    for item in items:
        if isinstance(item, Scalar) and item.text == PROTECTED:
            yield from (replace(item, text=name, quoted=True) for name in names)
        else:
            yield name_protected(item, names)
