"""Worldviews in files: YAML that two experts can read, and back.

An equation family has no keys of its own here: they are the arguments of its class. A new family is
a class in `FAMILIES`, and the type of each argument that no other family has.
"""

from __future__ import annotations

import re
import warnings
from inspect import Parameter, signature
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
    create_model,
)

from mutandis.config.fields import (
    FileSection,
    Name,
    Number,
    Value,
    Whole,
    allowed,
    fault,
    given,
    inside,
    placed,
)
from mutandis.config.yaml import read_text, read_yaml, write_yaml
from mutandis.data.attribute import CATEGORICAL
from mutandis.data.columns import plain_value
from mutandis.errors import (
    MutandisWarning,
    SettingsError,
    WorldviewError,
    listed,
    shown,
    suggest,
)
from mutandis.registry import find
from mutandis.scm import Categorical, Count, Linear, Ordinal, Stated, Worldview
from mutandis.scm.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from mutandis.scm.family import Equation

__all__ = [
    "FAMILIES",
    "PROTECTED",
    "AnyWorldview",
    "describe_equation",
    "describe_worldview",
    "make_worldview",
    "read_worldview",
    "worldview_from_graph",
    "write_worldview",
]

PROTECTED = "$protected"
"""The word for the protected attributes in an audit file's worldview.

A worldview that says ``parents: [$protected]`` follows when the line `protected` is changed, and
can be used for several grounds.
"""

FAMILIES: Mapping[str, Callable[..., Any]] = {
    each.__name__.lower(): each for each in (Linear, Count, Ordinal, Categorical, Stated)
}
"""The families that a file can name, by their names there."""


# --- types ----------------------------------------------------------------------------------------


def _name_protected(names: list[str], info: ValidationInfo) -> list[str]:
    """Put the protected attributes, one or several, in the place of `$protected`."""
    protected = (info.context or {}).get("protected", (PROTECTED,))
    return [name for each in names for name in (protected if each == PROTECTED else (each,))]


Names = Annotated[
    list[Name], AfterValidator(_name_protected), allowed("a list of names", ["gender", "age"])
]
_Bound = Annotated[Number | None, allowed("a finite number, or null where there is no limit")]
_TYPES: Mapping[str, Any] = {
    "parents": Names,
    "formula": Name,
    "fit": Names,
    "link": Literal["identity", "log"],
    "bounds": Annotated[
        Annotated[list[_Bound], Field(min_length=2, max_length=2)] | None,
        allowed("the lowest and the highest value, with null where there is no limit", [0, None]),
    ],
    "decimals": Whole | None,
    "levels": Annotated[
        list[Value] | None, allowed("a list of levels, low to high", ["low", "mid", "high"])
    ],
    "interactions": bool,
}
"""The type of each argument of an equation, in files."""


def _model_of(family: str) -> Any:
    """Derive the keys of a family from the arguments of its class."""
    article = "an" if family[0] in "aeiou" else "a"
    named = Annotated[str, WithJsonSchema({"const": family})]
    keys: dict[str, Any] = {"equation": (named, ...)}
    for key, argument in signature(FAMILIES[family]).parameters.items():
        is_required = argument.default is Parameter.empty
        keys[key] = (_TYPES[key], ... if is_required else argument.default)
    model = create_model(family.capitalize(), __base__=FileSection, **keys)
    model.what = f"{article} {family} equation"
    return Annotated[model, AfterValidator(_make_equation), Tag(f"({family})")]


def _make_equation(written: BaseModel) -> Equation:
    """Call the class: parents one by one, a formula first, the rest by keyword."""
    arguments = given(written)
    maker = FAMILIES[_family_of(arguments)]
    del arguments["equation"]
    first = next(iter(signature(maker).parameters.values()))
    values = arguments.pop(first.name)
    equation: Equation = maker(
        *(values if first.kind is Parameter.VAR_POSITIONAL else [values]), **arguments
    )
    return equation


def _family_of(written: Any) -> str:
    # nominal is the kind of attribute that categorical equations are for
    name = str(written["equation"])
    return CATEGORICAL if name == "nominal" else name


def _check_family(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    name = written.get("equation")
    if name is None:
        raise fault(
            "The key 'equation' is missing, which names the family: "
            f"{{equation: linear, parents: [gender]}}. {_list_families()}"
        )
    if str(name).casefold() == "additive":
        raise fault(
            "An additive equation holds a regressor, which is an object of Python and cannot "
            f"be in a file. {_list_families()} Or write the worldview in Python.",
            "equation",
        )
    if _family_of(written) not in FAMILIES:
        raise fault(
            f"{shown(name)} is not a family of equations.{suggest(name, FAMILIES)} "
            f"{_list_families()}",
            "equation",
        )
    return written


def _list_families() -> str:
    return f"There are {listed(list(FAMILIES))}."


class _NoEquation(FileSection):
    """The error for what is no mapping."""

    what = "an equation"


if TYPE_CHECKING:
    AnyEquation = Equation
else:
    _MODELS = tuple(_model_of(family) for family in FAMILIES)
    _union = _MODELS[0]
    for _each in _MODELS[1:]:
        _union = _union | _each
    AnyEquation = Annotated[
        _union | Annotated[_NoEquation, Tag("(none)")],
        Discriminator(lambda w: f"({_family_of(w)})" if isinstance(w, dict) else "(none)"),
        BeforeValidator(_check_family),
    ]

Equations = dict[str, AnyEquation]


class _Latent(FileSection):
    what = "a hidden common cause"
    equations: Equations
    residual_noise: bool = True


class _Worldview(FileSection):
    what = "a worldview"
    equations: Equations = Field(default_factory=dict)
    """An equation for each attribute that has causes."""
    latent: dict[str, _Latent] = Field(default_factory=dict)
    """Hidden common causes."""
    resolving: Names = Field(default_factory=list)
    """Attributes that the intervention leaves as they are."""
    edges: Annotated[list[Name], allowed("a list of arrows", ["gender -> salary"])] = Field(
        default_factory=list
    )
    """Arrows instead of equations; all linear."""


# --- reading --------------------------------------------------------------------------------------


def read_worldview(source: str | Path) -> Worldview:
    """Read YAML from a file; text with line breaks is the YAML itself."""
    if isinstance(source, str) and "\n" in source:
        return _parse(source)
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in {".yaml", ".yml"}:
        return _parse(read_text(path), source=path.name)
    raise SettingsError(
        f"The ending of {shown(path.name)} does not tell what it holds. Worldviews are read from "
        "files that end in .yaml or .yml. A graph of networkx: Worldview.from_graph."
    )


def _parse(text: str, *, source: str | None = None) -> Worldview:
    document = read_yaml(text, source=source)
    with placed(document):
        return make_worldview(document.data)


def make_worldview(data: Any, protected: Sequence[str] = (PROTECTED,)) -> Worldview:
    """Make a worldview of what a file holds; `protected` are the names of `$protected` there."""
    worldview: Worldview = TypeAdapter(AnyWorldview).validate_python(
        data, context={"protected": protected}
    )
    return worldview


def _with_sections(written: Any) -> Any:
    """Distinguish sections from attributes, one of which may be called 'edges' too."""
    if not isinstance(written, dict):
        return written
    sections = _Worldview.model_fields
    used = [key for key, part in written.items() if key in sections and not _is_equation(part)]
    for key, part in written.items():
        if used and key not in sections and _is_equation(part):
            raise fault(
                f"The equation for {shown(key)} is next to sections ({listed(used)}). "
                "Move it under 'equations:'.",
                key,
            )
        if not used and not isinstance(part, dict):
            raise fault(
                f"No equation is written for {shown(key)}.{suggest(key, sections)} "
                "Write {equation: linear, parents: [gender]}, for example; without an "
                "equation, an attribute is a root and need not be mentioned.",
                key,
            )
    return written if used else {"equations": written}


def _is_equation(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("equation"), str)


def _make(written: _Worldview) -> Worldview:
    """Put the parts of a worldview together; errors are placed where an equation was written."""
    arrows = _read_edges(written.edges)
    places = _claim(written, arrows)
    latents = []
    for name, latent in written.latent.items():
        with inside("latent", name):
            make = find("room", "latent").Latent
            latents.append(make(name, latent.equations, residual_noise=latent.residual_noise))
    equations = written.equations | {each: Linear(*causes) for each, causes in arrows.items()}
    try:
        Worldview(equations, latents=latents)
    except WorldviewError:
        # an equation whose arrows contradict those above it is the one to look at
        above: dict[str, tuple[str, ...]] = {}
        for child, place in places.items():
            every = (equations, *(latent.equations for latent in latents))
            above[child] = next(each[child].parents for each in every if child in each)
            with inside(*place):
                Graph.from_parents(above)
        raise
    with inside("resolving"):
        return Worldview(equations, latents=latents, resolving=written.resolving)


def _claim(
    written: _Worldview, arrows: Mapping[str, Mapping[str, int]]
) -> dict[str, tuple[str | int, ...]]:
    """Return where the equation of each attribute was written; refuse two for one."""
    claims: list[tuple[str, tuple[str | int, ...]]] = [
        *((child, ("equations", child)) for child in written.equations),
        *((effect, ("edges", min(causes.values()))) for effect, causes in arrows.items()),
    ]
    for name, latent in written.latent.items():
        claims += [(child, ("latent", name, "equations", child)) for child in latent.equations]
    places: dict[str, tuple[str | int, ...]] = {}
    for child, place in claims:
        if child in places:
            raise fault(
                f"{shown(child)} has an equation already, in {str(places[child][0])!r}. "
                "An attribute has one equation with all its causes in it: keep one of the two.",
                *place,
            )
        places[child] = place
    return places


def _read_edges(edges: Sequence[str]) -> dict[str, dict[str, int]]:
    """Read the short form: the causes of each attribute, and the places of the arrows."""
    causes: dict[str, dict[str, int]] = {}
    for number, text in enumerate(edges):
        ends = [end.strip() for end in text.split("->")]
        if len(ends) != 2 or not all(ends):
            raise fault(
                f"{shown(text)} is not one arrow. Write one at a time, cause -> effect. "
                "A name that itself contains '->' goes under 'equations:'.",
                "edges",
                number,
            )
        cause, effect = ends
        if cause in causes.setdefault(effect, {}):
            raise fault(
                f"The arrow {shown(cause)} -> {shown(effect)} is written twice. Keep one.",
                "edges",
                number,
            )
        causes[effect][cause] = number
    return causes


def _as_given(value: Any, read: Callable[[Any], Worldview]) -> Worldview:
    return value if isinstance(value, Worldview) else read(value)


if TYPE_CHECKING:
    AnyWorldview = Worldview
else:
    AnyWorldview = Annotated[
        _Worldview,
        AfterValidator(_make),
        BeforeValidator(_with_sections),
        WrapValidator(_as_given),
    ]
    """A worldview of Python, or one as files have it."""


# --- writing --------------------------------------------------------------------------------------


def write_worldview(worldview: Worldview) -> str:
    """Write a worldview as YAML; reading that gives an equal worldview."""
    return write_yaml(describe_worldview(worldview))


def describe_worldview(worldview: Worldview) -> dict[str, Any]:
    """Return a worldview as the data that its file holds, or raise if no file can hold it."""
    sections: dict[str, Any] = {"equations": _describe_all(worldview.equations)}
    if worldview.latents:
        sections["latent"] = {
            each.name: ({} if each.residual_noise else {"residual_noise": False})
            | {"equations": _describe_all(each.equations)}
            for each in worldview.latents
        }
    if worldview.resolving:
        sections["resolving"] = list(worldview.resolving)
    return sections


def _describe_all(equations: Mapping[str, Equation]) -> dict[str, Any]:
    return {child: describe_equation(child, equation) for child, equation in equations.items()}


def describe_equation(child: str, equation: Equation) -> dict[str, Any]:
    """Return an equation as files have it: its family, and what is not at its default."""
    # a class derived from that of a family may mean something else
    family = next((name for name, maker in FAMILIES.items() if maker is type(equation)), None)
    if family is None:
        raise WorldviewError(
            f"The equation for {shown(child)} is of the type {type(equation).__name__}, which a "
            f"file cannot hold. {_list_families()} Keep this worldview in Python."
        )
    arguments = equation.arguments()
    for level in arguments.get("levels") or ():
        if not _is_storable(level):
            raise WorldviewError(
                f"The equation for {shown(child)} has a level of type {type(level).__name__}, "
                "which a file cannot hold. Levels in files are text, finite numbers and booleans: "
                "convert the column, or keep this worldview in Python."
            )
    return {"equation": family, **arguments}


def _is_storable(level: object) -> bool:
    level = plain_value(level)
    return isinstance(level, str | int) or (isinstance(level, float) and isfinite(level))


# --- graphs ---------------------------------------------------------------------------------------

_NUMERAL = re.compile(r"-?(\.[0-9]+|[0-9]+(\.[0-9]*)?)")


def worldview_from_graph(graph: Any) -> Worldview:  # Any: networkx has no types
    """Make a worldview of a directed graph: every node is linear in the nodes that point to it.

    A node is named by itself if it is text, unless that text is a number and the node has a
    ``label``; any other node is named by its ``label``.
    """
    if not graph.is_directed():
        raise WorldviewError(
            "The graph is undirected: its lines do not tell cause from effect. "
            "Give a directed graph."
        )
    names = _names_of(graph)
    causes = {
        name: [names[cause] for cause in graph.predecessors(node)] for node, name in names.items()
    }
    for name, found in causes.items():
        if name in found:
            raise WorldviewError(
                f"The graph has an arrow from {shown(name)} to itself. Nothing can be its own "
                "cause: take the arrow out."
            )
    worldview = Worldview({name: Linear(*found) for name, found in causes.items() if found})
    alone = [name for name in causes if name not in worldview.names]
    if alone:
        warnings.warn(
            f"No arrow touches {listed(alone)}: the worldview leaves them out, and an intervention "
            "leaves them as they are.",
            MutandisWarning,
            stacklevel=3,
        )
    return worldview


def _names_of(graph: Any) -> dict[Hashable, str]:
    names: dict[Hashable, str] = {}
    for node, data in graph.nodes(data=True):
        label = data.get("label")
        by_itself = isinstance(node, str) and not (label and _NUMERAL.fullmatch(node))
        name = node if by_itself else label
        if isinstance(name, int | float) and not isinstance(name, bool):
            name = str(name)
        if not isinstance(name, str) or not name:
            raise WorldviewError(
                f"The node {shown(node)} of the graph has no name. Nodes are named like the "
                "columns: give it that name as its label."
            )
        if name in names.values():
            raise WorldviewError(
                f"Two nodes of the graph are called {shown(name)}. Give each its own name."
            )
        names[node] = name
    return names
