"""Strict YAML: plain data, and the line of every key and item.

An audit file is written by hand, and an error has to name the line it is on. `read_yaml` returns
dicts, lists, texts, numbers, booleans and None, with the lines next to them. Not all of YAML is
accepted: a key that is written twice would lose its first value, an alias can expand a page to
gigabytes, and a tag can ask for any type. Unquoted words are read by the core rules of YAML 1.2, in
which ``no`` and ``on`` are texts, and keys are always texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mutandis.errors import SettingsError, shown
from mutandis.limits import explain_limit, limit, read_regular

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "Document",
    "Steps",
    "read_text",
    "read_yaml",
    "write_flow",
    "write_yaml",
]

Steps: TypeAlias = tuple[str | int, ...]
"""The keys, and the positions in lists, that lead to a value."""

# A worldview of a thousand attributes has 100,000 characters. What is longer or deeper than this
# was not written by hand, and would keep the parser busy for minutes.
_CHARACTERS = 500_000
_DEPTH = 16
_BYTES = 1_000_000  # a table that is given by mistake is larger

_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DIGITS = 1000  # a number of more is a text
_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

_UNREADABLE = "The file cannot be read as YAML from here on: "
_PROBLEMS = {
    "mapping values are not allowed": (
        "there is a colon where none can be. Check the indentation of this line and the one above, "
        "and put text that contains a colon in quotes"
    ),
    "found character '\\t'": "there is a tab. Indent with spaces",
    "that cannot start any token": (
        "a text begins with a character that has a meaning of its own in YAML. Put it in quotes"
    ),
    "could not find expected ':'": (
        "a colon is missing. Every line of a mapping is 'key: value', with a space after the colon"
    ),
    "found unexpected end of stream": "the file ends inside a quoted text",
    "expected <document start>": "this does not continue the lines above. Check the indentation",
    "expected ',' or ']'": "a list in square brackets is not closed, or lacks a comma",
    "expected ',' or '}'": "a mapping in braces is not closed, or lacks a comma",
    "expected <block end>": (
        "this line does not continue the lines above. Check the indentation, and that brackets and "
        "quotes are closed"
    ),
    "found unknown escape character": (
        "a backslash in double quotes starts an escape that is unknown. Use single quotes"
    ),
    "": "its meaning is not clear. Check brackets, quotes and indentation",
}
"""What the parser reports, and what it means to a reader who has never met a token."""
_OTHER_PROBLEMS = {
    "found another document": (
        "A second document begins here ('---'). Write one document per file"
    ),
    "maximum depth": (
        f"Lists and mappings are nested more than {_DEPTH} deep here. Check that all brackets are "
        "closed"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a file says, and the line of each of its parts."""

    data: Any
    lines: Mapping[Steps, int]
    source: str | None = None

    def line(self, path: Steps) -> int:
        """Return the line of a value, or of the nearest one that contains it."""
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def value(self, path: Steps) -> Any:
        """Return the value at a path."""
        value = self.data
        for step in path:
            value = value[step]
        return value

    def place(self, path: Steps) -> str:
        """Name the file, the line, and the keys that lead there."""
        line = self.line(path)
        start = f"{self.source}, line {line}" if self.source else f"Line {line}"
        keys = [shown(each) for each in path if isinstance(each, str)]
        return f"{start}, at {' › '.join(keys)}" if keys else start

    def error(self, path: Steps, message: str) -> SettingsError:
        """Make the error that names the place."""
        return SettingsError(f"{self.place(path)}: {message}")


def read_text(path: Path) -> str:
    """Read a file of settings as UTF-8, with or without a byte order mark."""
    try:
        content = read_regular(path, most=_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not a path"
        raise SettingsError(f"{str(path)!r} cannot be opened: {reason}. Check the path.") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(
            f"{path.name}, line {line}: the file is not in UTF-8. Save it as plain UTF-8 text."
        ) from None


def read_yaml(text: str, *, source: str | None = None) -> Document:
    r"""Read one YAML document; refuse aliases, tags, duplicate keys, and what is long or deep.

    Examples
    --------
    >>> document = read_yaml("worldview:\n  salary: {parents: [no, 010]}")
    >>> document.data
    {'worldview': {'salary': {'parents': ['no', 10]}}}
    >>> document.place(("worldview", "salary", "parents"))
    "Line 2, at 'worldview' › 'salary' › 'parents'"
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    start = Document(data=None, lines={(): 1}, source=source)
    if len(text) > limit(_CHARACTERS):
        raise start.error(
            (),
            f"The text has {len(text):,} characters. {explain_limit(_CHARACTERS, 'characters')} "
            "Check that it is the right file.",
        )
    parser = YAML(typ="safe", pure=True)
    parser.max_depth = _DEPTH + 1  # it counts the scalars too
    try:
        root = parser.compose(text)
    except MarkedYAMLError as error:
        raise _explain(error, text, source) from None
    except YAMLError:
        raise start.error(
            (),
            "The file contains control characters, which YAML does not allow. "
            "Save it as plain UTF-8 text.",
        ) from None
    except (AssertionError, OverflowError, ValueError):
        # the parser takes escapes and directives at their word: "\UFFFFFFFF", %YAML 1.3
        raise start.error(
            (), "A character code or a number in the file is beyond all limits. Correct it."
        ) from None
    if root is None:
        raise start.error((), "The file is empty. It should hold a mapping of settings.")
    reader = _Reader(text, source)
    data = reader.read(root, (), 1)
    return Document(data=data, lines=reader.lines, source=source)


def _explain(error: Any, text: str, source: str | None) -> SettingsError:
    mark = error.problem_mark or error.context_mark
    # the end of the file is no line to look at
    line = min(mark.line, text.rstrip().count("\n")) if mark else 0
    place = Document(data=None, lines={(): line + 1}, source=source)
    alias = re.search("found undefined alias '(.*)'", f"{error.problem}")
    if alias:
        return place.error((), _alias_message(alias[1]))
    meanings = _OTHER_PROBLEMS | {key: _UNREADABLE + each for key, each in _PROBLEMS.items()}
    told = next(told for known, told in meanings.items() if known in f"{error.problem}")
    opened = error.context_mark.line if error.context_mark else line
    unclosed = opened < line and re.search("flow|quoted", f"{error.context}")
    since = f" It begins in line {opened + 1}." if unclosed else ""
    return place.error((), f"{told}.{since}")


def _alias_message(name: str) -> str:
    return (
        f"There is an anchor or alias here ({shown(name)}), which are not allowed. "
        "Write the value out, and put text that begins with '*' or '&' in quotes."
    )


class _Reader:
    """Turns the nodes of the parser into plain data, and refuses surprises."""

    def __init__(self, text: str, source: str | None) -> None:
        self.lines: dict[Steps, int] = {}
        self._text = text
        self._source = source

    def read(self, node: Any, path: Steps, line: int) -> Any:
        """Read a node that belongs to a key in this line: there its reader looks for a block."""
        own = node.start_mark.line + 1
        if node.anchor:
            raise self._error(own, (), _alias_message(node.anchor))
        if self._text[node.start_mark.index : node.start_mark.index + 1] == "!":
            raise self._error(
                own,
                (),
                "There is a tag here (it begins with '!'), which are not allowed. "
                "Take it out, and put text that begins with '!' in quotes.",
            )
        if node.id == "scalar":
            # the parser puts a value that is left out where the next key begins
            left_out = not node.value and node.style is None
            self.lines[path] = line if left_out else own
            return self._scalar(node, path)
        self.lines[path] = line
        if node.id == "sequence":
            return [
                self.read(item, (*path, place), item.start_mark.line + 1)
                for place, item in enumerate(node.value)
            ]
        return self._mapping(node, path)

    def _scalar(self, node: Any, path: Steps) -> Any:
        if any("\ud800" <= each <= "\udfff" for each in node.value):
            raise self._error(
                node.start_mark.line + 1,
                path,
                "There is half a character here (a surrogate, \\ud800 to \\udfff). Write the "
                "character itself, or \\U and its eight digits.",
            )
        return _plain(node.value) if node.style is None else node.value

    def _mapping(self, node: Any, path: Steps) -> dict[str, Any]:
        read: dict[str, Any] = {}
        for written, part in node.value:
            line = written.start_mark.line + 1
            key = self._key(written, path, line)
            where = (*path, key)
            if key in read:
                raise self._error(
                    line,
                    where,
                    f"The key {shown(key)} is written twice, first in line {self.lines[where]}. "
                    "Keep one of them.",
                )
            value = self.read(part, where, line)
            if isinstance(value, list | dict):
                self.lines[where] = line
            read[key] = value
        return read

    def _key(self, node: Any, path: Steps, line: int) -> str:
        if node.id != "scalar":
            raise self._error(
                line,
                path,
                "A key is a list or a mapping. Keys are names: put one that begins with '[' or '{' "
                "in quotes.",
            )
        self.read(node, (*path, ""), line)
        del self.lines[(*path, "")]
        if not node.value and node.style is None:
            raise self._error(line, path, "A key is empty.")
        if node.value == "<<" and node.style is None:
            raise self._error(
                line, path, "'<<' would merge another mapping. Write its entries out."
            )
        return str(node.value)

    def _error(self, line: int, path: Steps, message: str) -> SettingsError:
        return Document(data=None, lines={(): line}, source=self._source).error(path, message)


def _plain(text: str) -> Any:
    """Read unquoted text by the core rules of YAML 1.2 (decimal numbers only)."""
    if text in _WORDS:
        return _WORDS[text]
    if not _NUMBER.fullmatch(text):
        return text
    with suppress(ValueError):  # Python reads no more than some thousand digits
        return int(text)
    with suppress(ValueError):
        return float(text) if len(text) < _DIGITS else text
    return text


# --- writing --------------------------------------------------------------------------------------

# text that no reader of YAML 1.1 or 1.2 takes for anything else, inside a list in brackets too
_BARE = re.compile(r"[^\W\d_][\w $*+/().<=-]*|\$?\w*[^\W\d_]\w*|\.{0,2}/[\w./-]+")
_TAKEN = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_NUMERIC = re.compile(r"[\d_]+(e[\d_]*)?|0[xob]\w+", re.IGNORECASE)
_KEY = 1000  # a longer key needs a mark: parsers look no further for its colon


def write_yaml(value: Mapping[str, Any], *, indent: int = 0) -> str:
    """Write a mapping as YAML: one line for each innermost mapping, in the order given.

    Values are mappings, lists, text, numbers, booleans and None.

    Examples
    --------
    >>> print(write_yaml({"job": {"parents": ["no", "2020", "a: b"], "decimals": 2}}), end="")
    job: {parents: ['no', '2020', 'a: b'], decimals: 2}
    """
    if not value:
        return " " * indent + "{}\n"
    lines = []
    for key, part in value.items():
        name = write_flow(key)
        opened = f"? {name}\n{' ' * indent}:" if len(name) > _KEY else f"{name}:"
        nested = isinstance(part, Mapping) and any(
            isinstance(each, Mapping) for each in part.values()
        )
        body = "\n" + write_yaml(part, indent=indent + 2) if nested else f" {write_flow(part)}\n"
        lines.append(" " * indent + opened + body)
    return "".join(lines)


def write_flow(value: Any) -> str:
    """Write a value in one line."""
    if isinstance(value, Mapping):
        pairs = [(write_flow(key), write_flow(part)) for key, part in value.items()]
        written = [f"? {k} : {v}" if len(k) > _KEY else f"{k}: {v}" for k, v in pairs]
        return f"{{{', '.join(written)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_flow, value))}]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, np.generic):
        return write_flow(value.item())
    # YAML 1.1 takes 1e-07 for text
    return re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(value))


def _text(text: str) -> str:
    if not text.isprintable():
        # within single quotes a line break of any kind would be read as a space
        escaped = (c if c.isprintable() and c not in '"\\' else _escape(c) for c in text)
        return f'"{"".join(escaped)}"'
    is_plain = _BARE.fullmatch(text) and text == text.rstrip() and text.lower() not in _TAKEN
    if is_plain and not _NUMERIC.fullmatch(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
