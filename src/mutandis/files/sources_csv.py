"""The first lines of a CSV file: its separator and the names of its columns."""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from mutandis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Header", "read_header", "text_of", "wrong_encoding"]

_SEPARATORS = (",", ";", "\t", "|")
_LINES = 50
# a line of 10,000 columns is far below; a file without line ends is not read to its end
_CHARACTERS = 10_000_000
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the first line of a CSV file tells."""

    separator: str
    names: tuple[str, ...]


def read_header(path: Path, *, separator: str | None, encoding: str, header: bool) -> Header:
    """Read the names of the columns, and find the separator that fits the lines after them.

    Parameters
    ----------
    path
        The file.
    separator
        What stands between fields, if it was said.
    encoding
        How the text is encoded.
    header
        The first line was said to hold the names, whatever it looks like.
    """
    lines = _first_lines(path, encoding)
    if not lines:
        raise InputError(f"{path.name!r} is empty. Check how it was exported.")
    chosen = separator or _best_separator(lines, path.name)
    names = _fields(lines, chosen)[0]
    if separator is not None and len(names) == 1:
        _refuse_other_separator(lines, separator, path.name)
    _check_names(names, path.name, header=header)
    return Header(
        separator=chosen,
        names=tuple(name or f"unnamed_{place}" for place, name in enumerate(names, start=1)),
    )


@contextmanager
def text_of(path: Path, encoding: str) -> Iterator[Any]:
    """Open a file as text, unpacked if it is packed; say so if it cannot be decoded."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    # a byte order mark is no part of the first name
    codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    try:
        with opened(path, "rt", encoding=codec, newline="") as file:
            yield file
    except UnicodeError:
        raise wrong_encoding(path, encoding) from None
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise InputError(f"{path.name!r} cannot be read: {reason}.") from None


def wrong_encoding(path: Path, encoding: str) -> InputError:
    """Say that a file is not encoded as was thought, and what to try instead."""
    try:
        with path.open("rb") as file:
            start = file.read(2)
    except OSError:
        start = b""
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        try_instead = "'encoding: utf-16', which its first bytes stand for,"
    else:
        try_instead = "'encoding: latin-1' (or cp1252, if it comes from Windows)"
    return InputError(
        f"{path.name!r} is not encoded as {encoding}. Write {try_instead} in the section 'data', "
        "or save the file as UTF-8."
    )


def _first_lines(path: Path, encoding: str) -> list[str]:
    with text_of(path, encoding) as file:
        lines = list(islice(iter(lambda: file.readline(_CHARACTERS), ""), _LINES))
    # lines without anything in them stand before the header, or after the last row
    while lines and not lines[0].strip():
        del lines[0]
    return lines


def _fields(lines: list[str], separator: str) -> list[list[str]]:
    before = csv.field_size_limit(_CHARACTERS)
    try:
        return [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:
        return [[line] for line in lines]
    finally:
        csv.field_size_limit(before)


def _best_separator(lines: list[str], name: str) -> str:
    widths = {each: [len(row) for row in _fields(lines, each)] for each in _SEPARATORS}
    several = {each: found for each, found in widths.items() if found[0] > 1}
    if not several:
        return _SEPARATORS[0]
    # the last of many lines may go on after what was looked at
    even = [
        each
        for each, found in several.items()
        if len(set(found[:-1] if len(lines) == _LINES else found)) == 1
    ]
    if even:
        return max(even, key=lambda each: several[each][0])
    if len(several) == 1:
        return next(iter(several))
    raise InputError(
        f"It is not clear what separates the fields of {name!r}: its lines have different numbers "
        "of fields, whatever is tried. Write 'separator: \";\"' (or another) in the section 'data'."
    )


def _refuse_other_separator(lines: list[str], separator: str, name: str) -> None:
    others = [each for each in _SEPARATORS if each != separator and each in lines[0]]
    if others:
        found = _best_separator(lines, name)
        raise InputError(
            f"The first line of {name!r} has no separator {separator!r}, but it has {found!r}. "
            f"Write 'separator: {json.dumps(found)}' in the section 'data', or leave it out to "
            "have it found."
        )


def _check_names(names: list[str], file: str, *, header: bool) -> None:
    if not header and any(_NUMBER.fullmatch(name) for name in names):
        raise InputError(
            f"The first line of {file!r} holds numbers: it seems to be a row and not the names of "
            "the columns. Put a line with their names in front; if these are the names, write "
            "'header: true' in the section 'data'."
        )
