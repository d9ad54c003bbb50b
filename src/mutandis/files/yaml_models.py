"""Settings as pydantic models over YAML nodes, with errors that people can act on.

A model lists the keys of one mapping and what each may hold. Pydantic finds the keys that are
unknown or missing and applies the defaults; what a value may be is said by the field types below,
each of which takes a node and complains in a sentence. Mappings inside mappings are validated one
by one, so that every error is about one key on one line.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError

from mutandis.errors import SettingsError
from mutandis.files.yaml_lines import Entries, Items, Node, Scalar, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable


__all__ = [
    "AnyNode",
    "Bounds",
    "Flag",
    "Levels",
    "Name",
    "NameList",
    "Settings",
    "Whole",
    "choice",
    "entries_of",
    "items_of",
    "listed",
    "name_of",
    "nearest",
    "number_of",
    "validated",
    "value_of",
]

# as many names as help to find the right one
_LISTED = 12

_BOUNDS = "[0, null], with null where there is no limit"
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Settings(BaseModel):
    """The keys of one mapping. What is not listed is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


_Model = TypeVar("_Model", bound=Settings)
_Value = TypeVar("_Value")


def validated(model: type[_Model], node: Node, *, what: str) -> _Model:
    """Read a mapping into a model, or say which key on which line is wrong, and why.

    Parameters
    ----------
    model
        The keys and what they may hold.
    node
        The mapping as it was written.
    what
        What the mapping describes, as the error messages are to call it: "a linear equation".

    Examples
    --------
    >>> from mutandis.files.yaml_lines import read_yaml
    >>> class Rounding(Settings):
    ...     decimals: Whole = None
    >>> validated(Rounding, read_yaml("decimals: 2"), what="a rounding").decimals
    2
    >>> validated(Rounding, read_yaml("decimal: 2"), what="a rounding")
    Traceback (most recent call last):
    mutandis.errors.SettingsError: Line 1, at 'decimal': 'decimal' is no key of a rounding. Did you
    mean 'decimals'? It can have 'decimals'.
    """
    entries = entries_of(node, what)
    try:
        return model.model_validate(dict(entries.entries))
    except ValidationError as error:
        problems = [_explained(problem, model, entries, what) for problem in error.errors()]
    # the first in the file; a missing key counts as standing in the last place
    raise min(problems, key=lambda problem: problem[0])[1] from None


def entries_of(node: Node, what: str) -> Entries:
    """Give the mapping that a node is, or say that it is none."""
    if isinstance(node, Entries):
        return node
    raise node.place.error(
        f"{_found(node)}, but {what} is a mapping, written as 'key: value' lines or "
        "{key: value, …}."
    )


def name_of(node: Node, what: str = "a name") -> str:
    """Give a name just as it is written: ``no`` is the name 'no', ``2020`` the name '2020'."""
    if isinstance(node, Scalar) and not node.missing:
        return node.text
    raise node.place.error(f"{_found(node)}, but {what} is needed.")


def number_of(node: Node) -> float:
    """Give the number that is written, or say that there is none."""
    if isinstance(node, Scalar) and type(node.value) in (int, float):
        return float(node.value)
    raise node.place.error("A number is needed here.")


def value_of(node: Node) -> Any:
    """Give the one text, number or truth that is written."""
    if isinstance(node, Scalar) and node.value is not None:
        return node.value
    raise node.place.error("One text, number or truth is needed here.")


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is most like an unknown one, as a sentence; or say nothing.

    Examples
    --------
    >>> nearest("Linnear", ["linear", "count"])
    " Did you mean 'linear'?"
    """
    folded = {other.casefold(): other for other in known}
    close = get_close_matches(name.casefold()[:200], folded, n=1)
    return f" Did you mean {shown(folded[close[0]])}?" if close else ""


def listed(names: Collection[str]) -> str:
    """Quote names one after the other, not too many of them.

    Examples
    --------
    >>> listed(["link", "bounds"])
    "'link', 'bounds'"
    """
    some = ", ".join(shown(name) for name in list(names)[:_LISTED])
    return some if len(names) <= _LISTED else f"{some} and {len(names) - _LISTED} more"


def _explained(
    problem: Any, model: type[Settings], entries: Entries, what: str
) -> tuple[tuple[bool, int], SettingsError]:
    key = str(problem["loc"][0])
    known = list(model.model_fields)
    if problem["type"] == "missing":
        place = entries.place
        error = place.error(f"{shown(key)} is missing. Without it this is not {what}.")
        return (True, place.line), error
    place = entries.keys[key]
    if problem["type"] == "extra_forbidden":
        message = f"{shown(key)} is no key of {what}.{nearest(key, known)} "
        return (False, place.line), place.error(f"{message}It can have {listed(known)}.")
    # the field types below say themselves what is wrong, and where
    reason = problem.get("ctx", {}).get("error")
    error = reason if isinstance(reason, SettingsError) else place.error(f"{problem['msg']}.")
    return (False, place.line), error


def _found(node: Node) -> str:
    if isinstance(node, Entries):
        return "A mapping is written here"
    if isinstance(node, Items):
        return "A list is written here"
    return "Nothing is written here" if node.missing else f"{shown(node.text)} is written here"


def items_of(node: Node, example: str) -> tuple[Node, ...]:
    """Give the items of the list that a node is, or say that it is none."""
    if isinstance(node, Items):
        return node.items
    raise node.place.error(f"{_found(node)}, but a list is needed, in square brackets: {example}.")


def _read_names(node: Node) -> tuple[str, ...]:
    example = f"[{node.text}]" if isinstance(node, Scalar) and node.text else "[gender, age]"
    return tuple(name_of(item) for item in items_of(node, example))


def _read_flag(node: Node) -> bool:
    if isinstance(node, Scalar) and node.text.lower() in _FLAGS:
        return _FLAGS[node.text.lower()]
    raise node.place.error(f"{_found(node)}. Write true or false.")


def _read_whole(node: Node) -> int:
    if isinstance(node, Scalar) and type(node.value) is int:
        return node.value
    raise node.place.error(f"{_found(node)}, but a whole number is needed.")


def _read_bounds(node: Node) -> tuple[float | None, float | None]:
    items = items_of(node, _BOUNDS)
    if len(items) != 2:
        raise node.place.error(f"Bounds are two, the lowest and the highest value: {_BOUNDS}.")
    low, high = (_read_bound(item) for item in items)
    return low, high


def _read_bound(node: Node) -> float | None:
    value = node.value if isinstance(node, Scalar) and not node.missing else node
    if value is None or type(value) is float:
        return value
    try:
        if type(value) is int:
            return float(value)
    except OverflowError:
        pass  # a number of more than 300 digits is none that bounds anything
    raise node.place.error(f"{_found(node)}, but bounds are numbers: {_BOUNDS}.")


def _read_levels(node: Node) -> tuple[Any, ...]:
    return tuple(_read_level(item) for item in items_of(node, "[low, mid, high]"))


def _read_level(node: Node) -> Any:
    if isinstance(node, Scalar) and node.value is not None:
        return node.value
    raise node.place.error(
        f"{_found(node)}, but a level is one text, number or truth. Put 'null' in quotes."
    )


def choice(*allowed: str) -> PlainValidator:
    """Make a field type that takes one of a few words."""

    def read(node: Node) -> str:
        word = name_of(node, f"one of {listed(allowed)}")
        if word in allowed:
            return word
        message = f"{shown(word)} is not known here.{nearest(word, allowed)}"
        raise node.place.error(f"{message} It can be {listed(allowed)}.")

    return PlainValidator(read)


def _optional(read: Callable[[Node], _Value]) -> PlainValidator:
    def read_unless_null(node: Node) -> _Value | None:
        nothing = isinstance(node, Scalar) and not node.missing and node.value is None
        return None if nothing else read(node)

    return PlainValidator(read_unless_null)


AnyNode = Annotated[Any, PlainValidator(lambda node: node)]
Name = Annotated[str, PlainValidator(name_of)]
NameList = Annotated[tuple[str, ...], PlainValidator(_read_names)]
Flag = Annotated[bool, PlainValidator(_read_flag)]
Whole = Annotated[int | None, _optional(_read_whole)]
Bounds = Annotated[tuple[float | None, float | None] | None, _optional(_read_bounds)]
Levels = Annotated[tuple[Any, ...] | None, _optional(_read_levels)]
