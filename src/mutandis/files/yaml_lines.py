"""YAML as a tree that remembers its lines, without the parts of YAML that surprise people.

A settings file is written by hand, often by somebody who does not program, and what is wrong with
it has to be said with the line it is on. So the text is read into nodes that know their place.

Not all of YAML is let in. A key that is written twice would silently lose its first value; an alias
can blow a page up into gigabytes; a tag can ask for any type. Each is refused. Unquoted words are
read by the rules of YAML 1.2, in which ``no`` and ``on`` are words (YAML 1.1 makes truths of them),
and a node keeps the text as it was written, so that a name is never anything but that text.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from mutandis.errors import MutandisError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import yaml

__all__ = [
    "Entries",
    "Items",
    "Node",
    "Place",
    "Scalar",
    "located",
    "plain_value",
    "read_yaml",
    "shown",
]

# A worldview of a thousand attributes has 100,000 characters. What is longer or deeper than this
# was not written by hand, and would keep the parser busy for minutes.
_CHARACTERS = 500_000
_DEPTH = 16

_SHOWN = 60
_ADDRESS = re.compile(r"://[^\s\'\"]*")

_WHOLE = re.compile(r"[-+]?[0-9]+")
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Mapping[str, Any] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

# what the parser says, and what that means to somebody who has never met a token
_OTHERWISE = "it is not clear what is meant. Check brackets, quotes and indentation"
_PROBLEMS = {
    "mapping values are not allowed here": (
        "there is a colon where none can be. Check the indentation of this line and the one above, "
        "and put text that contains a colon in quotes"
    ),
    "found character '\\t' that cannot start any token": "there is a tab. Indent with spaces",
    "that cannot start any token": (
        "a text begins with a character that has a meaning of its own in YAML. Put it in quotes"
    ),
    "could not find expected ':'": (
        "a colon is missing. Every line of a mapping is 'key: value', with a space after the colon"
    ),
    "found unexpected end of stream": "the file ends inside a quoted text",
    "did not find expected <document start>": (
        "this does not continue what stands above. Check the indentation"
    ),
    "expected ',' or ']'": "a list in square brackets is not closed, or lacks a comma",
    "expected ',' or '}'": "a mapping in braces is not closed, or lacks a comma",
    "expected <block end>": (
        "this line does not continue what stands above. Check the indentation, and that brackets "
        "and quotes are closed"
    ),
    "found unknown escape character": (
        "a backslash in double quotes starts an escape that is unknown. Use single quotes"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something stands: the file, the line, and the keys that lead there.

    Examples
    --------
    >>> str(Place(source="bank.yaml", line=3, trail=("equations", "salary")))
    "bank.yaml, line 3, at 'equations' › 'salary'"
    """

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

    place: Place
    text: str
    quoted: bool

    @property
    def value(self) -> Any:
        """What the text stands for: itself if quoted, else perhaps a number, a truth or nothing."""
        return self.text if self.quoted else plain_value(self.text)

    @property
    def missing(self) -> bool:
        """Whether nothing at all is written."""
        return not self.text and not self.quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list."""

    place: Place
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """A mapping; `keys` tells where each key stands."""

    place: Place
    entries: Mapping[str, Node]
    keys: Mapping[str, Place]


Node: TypeAlias = Scalar | Items | Entries


def shown(name: object) -> str:
    """Quote a name in an error message, its middle left out if it is long.

    Examples
    --------
    >>> shown("salary"), len(shown("x" * 1000))
    ("'salary'", 61)
    """
    # an address may have a password in it
    quoted = _ADDRESS.sub("://…", repr(name))
    half = _SHOWN // 2
    return quoted if len(quoted) <= _SHOWN else f"{quoted[:half]}…{quoted[-half:]}"


def plain_value(text: str) -> Any:
    """Read unquoted text by the core rules of YAML 1.2 (decimal numbers only).

    Examples
    --------
    >>> [plain_value(text) for text in ("no", "true", "12", "1e3", "null", "1_000")]
    ['no', True, 12, 1000.0, None, '1_000']
    """
    if text in _WORDS:
        return _WORDS[text]
    try:
        if _WHOLE.fullmatch(text):
            return int(text)
    except ValueError:  # Python reads no more than some thousand digits
        return text
    return float(text) if _DECIMAL.fullmatch(text) else text


@contextmanager
def located(place: Place | str) -> Iterator[None]:
    """Say where in the file stands what the rest of the program complains of."""
    try:
        yield
    except MutandisError as error:
        raise type(error)(f"{place}: {error}") from error


def read_yaml(text: str, *, source: str | None = None, first_line: int = 1) -> Node:
    r"""Read one YAML document into nodes that know their lines.

    Parameters
    ----------
    text
        The document.
    source
        The name of its file, for error messages.
    first_line
        The number of its first line, if it is a part of a larger file.

    Raises
    ------
    SettingsError
        The text is no YAML, or uses aliases, tags or a key twice, or is too long or too deep.

    Examples
    --------
    >>> node = read_yaml("worldview:\n  salary: {parents: [no]}")
    >>> parents = node.entries["worldview"].entries["salary"].entries["parents"]
    >>> parents.items[0].text, parents.place.line
    ('no', 2)
    """
    start = Place(source=source, line=first_line)
    if len(text) > _CHARACTERS:
        raise start.error(
            f"The text has {len(text):,} characters; up to {_CHARACTERS:,} are read. "
            "Check that it is the right file."
        )
    return _Reader(text, start).document()


class _Reader:
    """Builds the tree from the parser's events, which come one by one: no recursion is unbounded.

    (Composing the parser's own tree first would follow aliases and recurse as deep as the text.)
    """

    def __init__(self, text: str, start: Place) -> None:
        import yaml

        self._yaml = yaml
        self._text = text
        self._start = start
        self._events = self._checked_events()

    def document(self) -> Node:
        """Read the only document there is."""
        next(self._events)  # the start of the stream
        if not isinstance(next(self._events), self._yaml.DocumentStartEvent):
            raise self._start.error("The file is empty. It should hold a mapping of settings.")
        node = self._node(next(self._events), self._start.trail, self._start.line)
        next(self._events)  # the end of the document
        after = next(self._events)
        if not isinstance(after, self._yaml.StreamEndEvent):
            raise self._place(after).error(
                "A second document begins here ('---'). Write one document a file."
            )
        return node

    def _checked_events(self) -> Iterator[yaml.Event]:
        yaml = self._yaml
        try:
            for event in yaml.parse(self._text, Loader=yaml.SafeLoader):
                self._refuse_surprises(event)
                yield event
        except yaml.MarkedYAMLError as error:
            raise self._explained(error) from None
        except yaml.YAMLError:
            raise self._start.error(
                "The file contains control characters, which YAML does not allow. "
                "Save it as plain UTF-8 text."
            ) from None
        except (ValueError, OverflowError) as error:
            if isinstance(error, MutandisError):
                raise
            # the parser takes escapes and directives at their word: "\UFFFFFFFF"
            raise self._start.error(
                "A character code or a number in the file is beyond all limits. Correct it."
            ) from None

    def _refuse_surprises(self, event: yaml.Event) -> None:
        anchor = getattr(event, "anchor", None)
        if anchor:
            raise self._place(event).error(
                f"There is an anchor or alias here ({shown(anchor)}), which are not allowed. "
                "Write the value out, and put text that begins with '*' or '&' in quotes."
            )
        if getattr(event, "tag", None):
            raise self._place(event).error(
                "There is a tag here (it begins with '!'), which are not allowed. "
                "Take it out, and put text that begins with '!' in quotes."
            )

    def _explained(self, error: yaml.MarkedYAMLError) -> SettingsError:
        mark = error.problem_mark or error.context_mark
        last = self._text.rstrip().count("\n")
        line = min(mark.line, last) if mark else 0  # the end of the file is no line to look at
        problem = f"{error.problem}"
        told = next((told for known, told in _PROBLEMS.items() if known in problem), _OTHERWISE)
        place = Place(source=self._start.source, line=self._start.line + line)
        opened = error.context_mark.line if error.context_mark else line
        unclosed = opened < line and re.search("flow|quoted", f"{error.context}")
        since = f" It begins in line {self._start.line + opened}." if unclosed else ""
        return place.error(f"The file cannot be read as YAML from here on: {told}.{since}")

    def _place(self, event: yaml.Event, trail: tuple[str, ...] = ()) -> Place:
        line = event.start_mark.line if event.start_mark else 0
        return Place(source=self._start.source, line=self._start.line + line, trail=trail)

    def _node(self, event: yaml.Event, trail: tuple[str, ...], line: int, depth: int = 1) -> Node:
        if isinstance(event, self._yaml.ScalarEvent):
            place = self._place(event, trail)
            return Scalar(place=place, text=event.value, quoted=event.style is not None)
        # a block begins below its key, but it is the key's line that people look for
        place = Place(source=self._start.source, line=line, trail=trail)
        if depth > _DEPTH:
            raise self._place(event).error(
                f"Lists and mappings are nested more than {_DEPTH} deep here. "
                "Check that all brackets are closed."
            )
        if isinstance(event, self._yaml.SequenceStartEvent):
            return Items(place=place, items=tuple(self._items(trail, depth)))
        return self._entries(place, depth)

    def _items(self, trail: tuple[str, ...], depth: int) -> Iterator[Node]:
        while not isinstance(event := next(self._events), self._yaml.SequenceEndEvent):
            yield self._node(event, trail, self._place(event).line, depth + 1)

    def _entries(self, place: Place, depth: int) -> Entries:
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        while not isinstance(event := next(self._events), self._yaml.MappingEndEvent):
            key = self._key(event, place.trail)
            where = self._place(event, (*place.trail, key))
            if key in keys:
                raise where.error(
                    f"The key {shown(key)} is written twice, first in line {keys[key].line}. "
                    "Keep one of them."
                )
            keys[key] = where
            entries[key] = self._node(next(self._events), where.trail, where.line, depth + 1)
        return Entries(place=place, entries=entries, keys=keys)

    def _key(self, event: yaml.Event, trail: tuple[str, ...]) -> str:
        if not isinstance(event, self._yaml.ScalarEvent):
            raise self._place(event, trail).error(
                "A key is a list or a mapping. Keys are names: put one that begins with '[' or '{' "
                "in quotes."
            )
        if event.style is None and event.value in {"", "<<"}:
            raise self._place(event, trail).error(
                "A key is empty."
                if not event.value
                else "'<<' would merge another mapping. Write its entries out."
            )
        return str(event.value)
