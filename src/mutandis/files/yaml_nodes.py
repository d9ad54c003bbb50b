"""YAML as nodes that know their lines, and the readers that every section of a file shares.

A settings file is written by hand, often by people who do not program, and an error has to name the
line it is on. ruamel.yaml parses the text; its nodes become `Scalar`, `Items` and `Entries`, which
know their place. A section lists its keys with a reader for each, and `read_keys` does the rest.

Not all of YAML is accepted. A key that is written twice would silently lose its first value; an
alias can expand a page to gigabytes; a tag can ask for any type. Each is refused. Unquoted words
are read by the rules of YAML 1.2, in which ``no`` and ``on`` are words (in YAML 1.1 they are
booleans), and a scalar keeps its text as written, so that a name is never anything but that text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mutandis.errors import MutandisError, SettingsError, listed, shown, suggest
from mutandis.limits import explain_limit, limit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

__all__ = [
    "Entries",
    "Items",
    "Reader",
    "Scalar",
    "YamlNode",
    "YamlPlace",
    "located",
    "one_of",
    "optional",
    "plain_data",
    "plain_value",
    "read_bounds",
    "read_entries",
    "read_flag",
    "read_items",
    "read_keys",
    "read_levels",
    "read_name",
    "read_names",
    "read_node",
    "read_number",
    "read_value",
    "read_values",
    "read_whole",
    "read_yaml",
    "write_yaml",
]

# A worldview of a thousand attributes has 100,000 characters. What is longer or deeper than this
# was not written by hand, and would keep the parser busy for minutes.
_CHARACTERS = 500_000
_DEPTH = 16

_WHOLE = re.compile(r"[-+]?[0-9]+")
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Mapping[str, Any] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_BOUNDS = "[0, null], with null where there is no limit"
_TAG = "tag:yaml.org,2002:"
_TYPES = {type(None): "null", bool: "bool", int: "int", float: "float"}

# what the parser says, and what that means to a reader who has never met a token
_UNREADABLE = "The file cannot be read as YAML from here on: "
_PROBLEMS = {
    "mapping values are not allowed": (
        f"{_UNREADABLE}there is a colon where none can be. Check the indentation of this line and "
        "the one above, and put text that contains a colon in quotes"
    ),
    "found character '\\t'": f"{_UNREADABLE}there is a tab. Indent with spaces",
    "that cannot start any token": (
        f"{_UNREADABLE}a text begins with a character that has a meaning of its own in YAML. "
        "Put it in quotes"
    ),
    "could not find expected ':'": (
        f"{_UNREADABLE}a colon is missing. Every line of a mapping is 'key: value', with a space "
        "after the colon"
    ),
    "found unexpected end of stream": f"{_UNREADABLE}the file ends inside a quoted text",
    "expected <document start>": (
        f"{_UNREADABLE}this does not continue what stands above. Check the indentation"
    ),
    "expected ',' or ']'": (
        f"{_UNREADABLE}a list in square brackets is not closed, or lacks a comma"
    ),
    "expected ',' or '}'": f"{_UNREADABLE}a mapping in braces is not closed, or lacks a comma",
    "expected <block end>": (
        f"{_UNREADABLE}this line does not continue what stands above. Check the indentation, and "
        "that brackets and quotes are closed"
    ),
    "found unknown escape character": (
        f"{_UNREADABLE}a backslash in double quotes starts an escape that is unknown. "
        "Use single quotes"
    ),
    "found another document": "A second document begins here ('---'). Write one document per file",
    "maximum depth": (
        f"Lists and mappings are nested more than {_DEPTH} deep here. "
        "Check that all brackets are closed"
    ),
    "": f"{_UNREADABLE}it is not clear what is meant. Check brackets, quotes and indentation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlPlace:
    """Where something stands: the file, the line, and the keys that lead there."""

    source: str | None
    line: int
    trail: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say it as the opening of an error message."""
        start = f"{self.source}, line {self.line}" if self.source else f"Line {self.line}"
        return f"{start}, at {' › '.join(map(shown, self.trail))}" if self.trail else start

    def error(self, message: str) -> SettingsError:
        """Make the error that says what is wrong here."""
        return SettingsError(f"{self}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """One word, number or text."""

    place: YamlPlace
    text: str
    quoted: bool

    @property
    def value(self) -> Any:
        """The text itself if quoted, otherwise the number, boolean or null it may stand for."""
        return self.text if self.quoted else plain_value(self.text)

    @property
    def missing(self) -> bool:
        """Whether nothing at all is written."""
        return not self.text and not self.quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list."""

    place: YamlPlace
    items: tuple[YamlNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """A mapping; `keys` has the place of each key."""

    place: YamlPlace
    entries: Mapping[str, YamlNode]
    keys: Mapping[str, YamlPlace]


YamlNode: TypeAlias = Scalar | Items | Entries
Reader: TypeAlias = "Callable[[YamlNode], Any]"


@contextmanager
def located(place: YamlPlace | str) -> Iterator[None]:
    """Put the place in front of the message of an error of ours that does not name one."""
    try:
        yield
    except SettingsError:
        raise
    except MutandisError as error:
        raise type(error)(f"{place}: {error}") from error


def plain_value(text: str) -> Any:
    """Read unquoted text by the core rules of YAML 1.2 (decimal numbers only)."""
    if text in _WORDS:
        return _WORDS[text]
    try:
        if _WHOLE.fullmatch(text):
            return int(text)
    except ValueError:  # Python reads no more than some thousand digits
        return text
    return float(text) if _DECIMAL.fullmatch(text) else text


def read_yaml(
    text: str, *, source: str | None = None, first_line: int = 1, surrogates: bool = False
) -> YamlNode:
    r"""Read one YAML document; refuse aliases, tags, duplicate keys, and what is long or deep.

    `source` is the name of its file and `first_line` the number of its first line there. Halves of
    characters (`surrogates`) are refused unless nothing is to be encoded.

    Examples
    --------
    >>> node = read_yaml("worldview:\n  salary: {parents: [no]}")
    >>> parents = node.entries["worldview"].entries["salary"].entries["parents"]
    >>> parents.items[0].text, parents.place.line
    ('no', 2)
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    start = YamlPlace(source=source, line=first_line)
    if len(text) > limit(_CHARACTERS):
        raise start.error(
            f"The text has {len(text):,} characters. {explain_limit(_CHARACTERS, 'characters')} "
            "Check that it is the right file."
        )
    parser = YAML(typ="safe", pure=True)
    parser.max_depth = _DEPTH + 1  # it counts the scalars too
    try:
        root = parser.compose(text)
    except MarkedYAMLError as error:
        raise _explain(error, text, start) from None
    except YAMLError:
        raise start.error(
            "The file contains control characters, which YAML does not allow. "
            "Save it as plain UTF-8 text."
        ) from None
    except (AssertionError, OverflowError, ValueError):
        # the parser takes escapes and directives at their word: "\UFFFFFFFF", %YAML 1.3
        raise start.error(
            "A character code or a number in the file is beyond all limits. Correct it."
        ) from None
    if root is None:
        raise start.error("The file is empty. It should hold a mapping of settings.")
    return _Converter(text, start, surrogates=surrogates).convert(root, start)


def _explain(error: Any, text: str, start: YamlPlace) -> SettingsError:
    mark = error.problem_mark or error.context_mark
    # the end of the file is no line to look at
    line = min(mark.line, text.rstrip().count("\n")) if mark else 0
    place = YamlPlace(source=start.source, line=start.line + line)
    alias = re.search("found undefined alias '(.*)'", f"{error.problem}")
    if alias:
        return place.error(_alias_message(alias[1]))
    told = next(told for known, told in _PROBLEMS.items() if known in f"{error.problem}")
    opened = error.context_mark.line if error.context_mark else line
    unclosed = opened < line and re.search("flow|quoted", f"{error.context}")
    since = f" It begins in line {start.line + opened}." if unclosed else ""
    return place.error(f"{told}.{since}")


def _alias_message(name: str) -> str:
    return (
        f"There is an anchor or alias here ({shown(name)}), which are not allowed. "
        "Write the value out, and put text that begins with '*' or '&' in quotes."
    )


class _Converter:
    """Makes our nodes from those of the parser, and refuses what surprises people."""

    def __init__(self, text: str, start: YamlPlace, *, surrogates: bool) -> None:
        self._text = text
        self._start = start
        self._surrogates = surrogates

    def convert(self, node: Any, place: YamlPlace) -> YamlNode:
        """Convert a node that belongs to a key, or to the document, at a place.

        A block begins below its key, but it is the key's line that people look for.
        """
        own = self._place(node)
        if node.anchor:
            raise own.error(_alias_message(node.anchor))
        if self._text[node.start_mark.index : node.start_mark.index + 1] == "!":
            raise own.error(
                "There is a tag here (it begins with '!'), which are not allowed. "
                "Take it out, and put text that begins with '!' in quotes."
            )
        if node.id == "scalar":
            if not self._surrogates and any("\ud800" <= each <= "\udfff" for each in node.value):
                raise own.error(
                    "There is half a character here (a surrogate, \\ud800 to \\udfff). Write the "
                    "character itself, or \\U and its eight digits."
                )
            # the parser puts a value that is left out where the next key begins
            left_out = not node.value and node.style is None
            own = place if left_out else self._place(node, place.trail)
            return Scalar(place=own, text=node.value, quoted=node.style is not None)
        if node.id == "sequence":
            items = (self.convert(item, self._place(item, place.trail)) for item in node.value)
            return Items(place=place, items=tuple(items))
        return self._entries(node, place)

    def _entries(self, node: Any, place: YamlPlace) -> Entries:
        entries: dict[str, YamlNode] = {}
        keys: dict[str, YamlPlace] = {}
        for written, part in node.value:
            key = self._key(written, place.trail)
            where = self._place(written, (*place.trail, key))
            if key in keys:
                raise where.error(
                    f"The key {shown(key)} is written twice, first in line {keys[key].line}. "
                    "Keep one of them."
                )
            keys[key] = where
            entries[key] = self.convert(part, where)
        return Entries(place=place, entries=entries, keys=keys)

    def _key(self, node: Any, trail: tuple[str, ...]) -> str:
        found = self.convert(node, self._place(node, trail))
        if not isinstance(found, Scalar):
            raise found.place.error(
                "A key is a list or a mapping. Keys are names: put one that begins with '[' or '{' "
                "in quotes."
            )
        if found.missing:
            raise found.place.error("A key is empty.")
        if found.text == "<<" and not found.quoted:
            raise found.place.error("'<<' would merge another mapping. Write its entries out.")
        return found.text

    def _place(self, node: Any, trail: tuple[str, ...] = ()) -> YamlPlace:
        line = self._start.line + node.start_mark.line
        return YamlPlace(source=self._start.source, line=line, trail=trail)


def plain_data(node: YamlNode) -> Any:
    """Give what a node holds as dicts, lists and plain values."""
    if isinstance(node, Entries):
        return {name: plain_data(part) for name, part in node.entries.items()}
    if isinstance(node, Items):
        return [plain_data(item) for item in node.items]
    return node.value


def write_yaml(value: Mapping[str, Any]) -> str:
    """Write a mapping as YAML: one line for each innermost mapping, in the order given.

    Values are mappings, lists, text, numbers, booleans and None. Text is quoted wherever a reader
    of YAML 1.1 or 1.2 would take it for something else.

    Examples
    --------
    >>> print(write_yaml({"job": {"parents": ["no", "2020", "a: b"], "decimals": 2}}), end="")
    job: {parents: ['no', '2020', 'a: b'], decimals: 2}
    """
    from ruamel.yaml import YAML

    writer = YAML(typ="safe", pure=True)
    writer.version = (1, 1)  # for its rules of quoting, which are the stricter ones
    writer.allow_unicode = True
    writer.width = 2**31
    written = StringIO()
    writer.serialize(_parser_node(value), written)
    return written.getvalue().removeprefix("%YAML 1.1\n---").lstrip()


def replace_section(text: str, name: str, value: Mapping[str, Any]) -> str:
    r"""Write a section of a document anew, or add it at the end; all other lines stay.

    Where they cannot stay, since the document is one line in braces, all of it is written anew.

    Examples
    --------
    >>> text = "ks: [15] # agreed\nuncertainty: {placebo: 0}\nseed: 1\n"
    >>> print(replace_section(text, "uncertainty", {"variants": True}), end="")
    ks: [15] # agreed
    uncertainty: {variants: true}
    seed: 1
    """
    from ruamel.yaml import YAML

    whole = {**plain_data(read_yaml(text)), name: value}
    start = end = len(text)
    for key, part in YAML(typ="safe", pure=True).compose(text).value:
        if key.value == name:
            start, end = key.start_mark.index, _end_of(part)
    before = text[:start] if start < len(text) or text.endswith("\n") else f"{text}\n"
    changed = f"{before}{write_yaml({name: value})}{text[end:].removeprefix(chr(10))}"
    try:
        is_read = plain_data(read_yaml(changed)) == plain_data(read_yaml(write_yaml(whole)))
    except SettingsError:
        is_read = False
    return changed if is_read else write_yaml(whole)


def _end_of(node: Any) -> int:
    """Find where a node of the parser ends, comments behind it left out."""
    if isinstance(node.value, list) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end_of(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _parser_node(value: Any) -> Any:
    from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

    if isinstance(value, Mapping):
        innermost = not any(isinstance(part, Mapping) for part in value.values())
        pairs = [(_parser_node(key), _parser_node(part)) for key, part in value.items()]
        return MappingNode(f"{_TAG}map", pairs, flow_style=innermost)
    if isinstance(value, list | tuple):
        return SequenceNode(f"{_TAG}seq", [_parser_node(part) for part in value], flow_style=True)
    if isinstance(value, str):
        # the writer quotes what YAML 1.1 takes for a number; `089` is one in 1.2 only
        style = None if isinstance(plain_value(value), str) else "'"
        # within single quotes a line break of any kind would be read as a plain one
        style = style if value.isprintable() else '"'
        return ScalarNode(f"{_TAG}str", str(value), style=style)
    if isinstance(value, np.generic):
        return _parser_node(value.item())
    # YAML 1.1 takes 1e-07 for text
    text = re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(value))
    return ScalarNode(f"{_TAG}{_TYPES[type(value)]}", text)


def read_keys(
    node: YamlNode,
    readers: Mapping[str, Reader],
    *,
    what: str,
    required: Collection[str] = (),
) -> dict[str, Any]:
    """Read a mapping whose keys are listed, each with its reader; give what is written, by key.

    Errors name the first wrong key in the file, then keys that are missing. `what` is what messages
    call the mapping: "a linear equation". Defaults are left to the object that is made of the keys.

    Examples
    --------
    >>> rounding = {"decimals": read_whole}
    >>> read_keys(read_yaml("decimals: 2"), rounding, what="a rounding")
    {'decimals': 2}
    >>> read_keys(read_yaml("decimal: 2"), rounding, what="a rounding")
    Traceback (most recent call last):
    mutandis.errors.SettingsError: Line 1, at 'decimal': 'decimal' is not a key of a rounding. Did
    you mean 'decimals'? It can have 'decimals'.
    """
    mapping = read_entries(node, what)
    found: dict[str, Any] = {}
    for key, part in mapping.entries.items():
        if key not in readers:
            raise mapping.keys[key].error(
                f"{shown(key)} is not a key of {what}.{suggest(key, readers)} "
                f"It can have {listed(readers, near=key)}."
            )
        found[key] = readers[key](part)
    for key in required:
        if key not in found:
            raise mapping.place.error(f"{shown(key)} is missing. Without it this is not {what}.")
    return found


def _describe(node: YamlNode) -> str:
    if isinstance(node, Entries):
        return "A mapping is written here"
    if isinstance(node, Items):
        return "A list is written here"
    return "Nothing is written here" if node.missing else f"{shown(node.text)} is written here"


def read_node(node: YamlNode) -> YamlNode:
    """Leave a node as it is, for a reader of its own."""
    return node


def read_entries(node: YamlNode, what: str) -> Entries:
    """Give the mapping that a node is."""
    if isinstance(node, Entries):
        return node
    raise node.place.error(
        f"{_describe(node)}, but {what} is a mapping, written as 'key: value' lines or "
        "{key: value, …}."
    )


def read_items(node: YamlNode, example: str) -> tuple[YamlNode, ...]:
    """Give the items of the list that a node is."""
    if isinstance(node, Items):
        return node.items
    raise node.place.error(
        f"{_describe(node)}, but a list is needed, in square brackets: {example}."
    )


def read_name(node: YamlNode, what: str = "a name") -> str:
    """Give a name just as it is written: ``no`` is the name 'no', ``2020`` the name '2020'."""
    if isinstance(node, Scalar) and not node.missing:
        return node.text
    raise node.place.error(f"{_describe(node)}, but {what} is needed.")


def read_names(node: YamlNode) -> tuple[str, ...]:
    """Give a list of names."""
    example = f"[{node.text}]" if isinstance(node, Scalar) and node.text else "[gender, age]"
    return tuple(read_name(item) for item in read_items(node, example))


def read_value(node: YamlNode) -> Any:
    """Give one text, number or boolean."""
    if isinstance(node, Scalar) and node.value is not None:
        return node.value
    raise node.place.error(
        f"{_describe(node)}, but a text, a number or a boolean is needed. Put 'null' in quotes."
    )


def read_values(node: YamlNode) -> Any:
    """Give one value, or a list of them."""
    return (
        [read_value(item) for item in node.items] if isinstance(node, Items) else read_value(node)
    )


def _number_of(node: YamlNode) -> float | None:
    value: Any = node.value if isinstance(node, Scalar) else None
    try:
        return float(value) if type(value) in (int, float) else None
    except OverflowError:  # a whole number of more than 300 digits
        return None


def read_number(node: YamlNode) -> float:
    """Give a number."""
    number = _number_of(node)
    if number is None:
        raise node.place.error("A number is needed here.")
    return number


def read_whole(node: YamlNode) -> int:
    """Give a whole number."""
    if isinstance(node, Scalar) and type(node.value) is int:
        return node.value
    raise node.place.error(f"{_describe(node)}, but a whole number is needed.")


def read_flag(node: YamlNode) -> bool:
    """Give a boolean, for which ``yes`` and ``off`` are accepted too."""
    if isinstance(node, Scalar) and node.text.lower() in _FLAGS:
        return _FLAGS[node.text.lower()]
    raise node.place.error(f"{_describe(node)}. Write true or false.")


def read_bounds(node: YamlNode) -> tuple[float | None, float | None]:
    """Give a lower and an upper bound."""
    items = read_items(node, _BOUNDS)
    if len(items) != 2:
        raise node.place.error(f"Bounds are two, the lowest and the highest value: {_BOUNDS}.")
    low, high = (_read_bound(item) for item in items)
    return low, high


def _read_bound(node: YamlNode) -> float | None:
    number = _number_of(node)
    if number is None and not _is_null(node):
        raise node.place.error(f"{_describe(node)}, but bounds are numbers: {_BOUNDS}.")
    return number


def read_levels(node: YamlNode) -> tuple[Any, ...]:
    """Give the levels of an ordinal attribute."""
    return tuple(read_value(item) for item in read_items(node, "[low, mid, high]"))


def one_of(*allowed: str, what: str | None = None) -> Callable[[YamlNode], str]:
    """Make a reader of one of a few words; `what` is what messages call them: "method"."""

    def read(node: YamlNode) -> str:
        word = read_name(node, f"one of {listed(allowed)}")
        if word in allowed:
            return word
        problem = f"is not a valid {what}" if what else "is not known here"
        raise node.place.error(
            f"{shown(word)} {problem}.{suggest(word, allowed)} It can be {listed(allowed)}."
        )

    return read


def _is_null(node: YamlNode) -> bool:
    return isinstance(node, Scalar) and not node.missing and node.value is None


def optional(read: Reader) -> Reader:
    """Make a reader that takes null for "as if it were left out"."""
    return lambda node: None if _is_null(node) else read(node)
