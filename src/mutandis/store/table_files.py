"""Tables in files: which files they are, what they hold, their hash, and the header of CSV."""

from __future__ import annotations

import codecs
import csv
import fnmatch
import glob
import gzip
import hashlib
import json
import os
import re
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import Enum
from io import TextIOWrapper
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from mutandis.errors import InputError
from mutandis.limits import explain_limit, limit, open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "FileFormat",
    "Header",
    "TableFiles",
    "hash_file",
    "open_text",
    "open_unpacked",
    "read_header",
    "wrong_encoding",
]


class FileFormat(Enum):
    """What a file can hold."""

    CSV = "csv"
    PARQUET = "Parquet"
    ARROW = "Arrow"
    JSON = "JSON lines"


_ENDINGS = {
    ".csv": FileFormat.CSV,
    ".tsv": FileFormat.CSV,
    ".txt": FileFormat.CSV,
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
    ".arrow": FileFormat.ARROW,
    ".feather": FileFormat.ARROW,
    ".ipc": FileFormat.ARROW,
    ".json": FileFormat.JSON,
    ".jsonl": FileFormat.JSON,
    ".ndjson": FileFormat.JSON,
}
_PACKED = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson")
_STARTS_AT = "A relative path starts at the folder of the settings, in Python at the current one."

_SEPARATORS = (",", ";", "\t", "|")
_LINES = 50
# files and folders that are looked through for the files of one table
_ENTRIES = 100_000
# a line of 10,000 columns is far below; a file without line ends is not read to its end
_CHARACTERS = 10_000_000
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """A table in a file, in all files of a folder, or in those that a pattern fits.

    Parameters
    ----------
    path
        The file, the folder or the pattern, as it was written.
    folder
        What a relative path is relative to.
    separator, decimal, encoding
        Of CSV: what separates fields (default: detected), the decimal mark (default: a point),
        and how text is encoded (default: UTF-8).
    header
        Of CSV: the first line holds the names, even if they look like numbers.
    missing_text
        Of CSV: texts that stand for a missing value, beside the empty field.

    Examples
    --------
    >>> TableFiles(path="loans/*.csv", folder=Path("/case"), separator=";").describe()
    {'kind': 'files', 'source': 'loans/*.csv', 'separator': ';'}
    """

    path: str
    folder: Path = Path()
    separator: str | None = None
    decimal: str = "."
    encoding: str | None = None
    header: bool = False
    missing_text: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.separator is not None and len(self.separator) != 1:
            raise InputError(
                "A separator is one character, such as ';'. A tab is written as separator: \"\\t\"."
            )
        if self.decimal not in {".", ","}:
            raise InputError("The decimal mark is '.' or ','.")
        if self.encoding is not None and not _is_text_encoding(self.encoding):
            raise InputError(
                "The encoding is not known. Known are utf-8, latin-1, cp1252, utf-16 and others "
                "that Python lists."
            )

    @property
    def name(self) -> str:
        """A short name for messages."""
        return Path(self.path).name or self.path

    def describe(self) -> dict[str, Any]:
        """Say where the table is and how it is read, as plain data."""
        written: dict[str, Any] = {"kind": "files", "source": self.path}
        for each in fields(self)[2:]:  # after path and folder
            value = getattr(self, each.name)
            if value != each.default:
                written[each.name] = list(value) if isinstance(value, tuple) else value
        return written

    def files(self) -> tuple[Path, ...]:
        """Find the files, sorted by name; refuse what is not there, or cannot be opened."""
        whole = self.folder / self.path
        try:
            if whole.is_file():
                found = [whole]
            elif whole.is_dir():
                found = _files_in_folder(whole)
            else:
                found = _files_by_pattern(self.folder, self.path)
            for file in found:
                open_regular(file).close()
        except InputError:
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "its name is not a path"
            raise InputError(f"{self.name!r} cannot be opened: {reason}.") from None
        return tuple(found)

    def format(self, files: tuple[Path, ...]) -> FileFormat:
        """Tell from the endings of the files what they hold, which must be one format."""
        formats = {_format_of(file) for file in files}
        if len(formats) > 1:
            held = ", ".join(sorted(each.value for each in formats))
            raise InputError(
                f"{self.name!r} stands for files of several formats ({held}). Name those of one, "
                "by a pattern such as 'folder/*.parquet'."
            )
        (found,) = formats
        about_csv = [key for key in self.describe() if key not in {"kind", "source"}]
        if about_csv and found is not FileFormat.CSV:
            raise InputError(
                f"{about_csv[0]!r} is about CSV files, and {self.name!r} is {found.value}. Leave "
                "it out."
            )
        return found

    def hive_keys(self, files: tuple[Path, ...]) -> tuple[str, ...]:
        """Name the columns that are written as folders inside the folder, as in year=2020."""
        whole = self.folder / self.path
        if not whole.is_dir():
            return ()
        inside = files[0].relative_to(whole).parts[:-1]
        return tuple(part.partition("=")[0] for part in inside if "=" in part)

    def sha256(self) -> str:
        """Hash the contents: of the file, or of all files with their names."""
        files = self.files()
        try:
            if len(files) == 1:
                return hash_file(files[0])
            common = os.path.commonpath([file.parent for file in files])
            digest = hashlib.sha256()
            for file in files:
                line = [file.relative_to(common).as_posix(), hash_file(file)]
                digest.update(json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise InputError(f"{self.name!r} cannot be read: {error.strerror}.") from None
        return digest.hexdigest()


def hash_file(path: Path) -> str:
    """Give the SHA-256 of a file, in hexadecimal digits."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_text_encoding(name: str) -> bool:
    try:
        return isinstance("a".encode(codecs.lookup(name).name), bytes)
    except (LookupError, ValueError):  # unknown, or a codec of another kind such as base64
        return False


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending == ".gz":
        inner = Path(path.stem).suffix.lower()
        return inner if inner in _PACKED else ending
    return ending


def _format_of(path: Path) -> FileFormat:
    try:
        return _ENDINGS[_ending(path)]
    except KeyError:
        raise InputError(
            f"The ending of {path.name!r} does not tell what it holds. Tables are read from files "
            f"that end in {', '.join(_ENDINGS)} (text files also packed, .gz), and from databases."
        ) from None


def _refuse(error: OSError) -> None:
    raise error


def _files_in_folder(folder: Path) -> list[Path]:
    """List the tables in a folder and below, without those hidden or starting with '_'."""
    found: list[Path] = []
    for parent, folders, names in _walk(folder, folder.name, [0]):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        files = (Path(parent, name) for name in names if not name.startswith((".", "_")))
        found += [file for file in files if _ending(file) in _ENDINGS]
    if not found:
        raise InputError(
            f"The folder {folder.name!r} holds no table: no file in it ends in "
            f"{', '.join(_ENDINGS)}."
        )
    return sorted(found)


def _files_by_pattern(folder: Path, pattern: str) -> list[Path]:
    if not glob.has_magic(pattern):
        raise InputError(
            f"There is no file or folder {Path(pattern).name!r}. Check the path. {_STARTS_AT}"
        )
    files = sorted(path for path in _expand(folder, pattern) if path.is_file())
    if not files:
        raise InputError(f"No file fits the pattern {pattern!r}. Check it. {_STARTS_AT}")
    return files


def _expand(folder: Path, pattern: str) -> set[Path]:
    """Give the paths that a pattern fits, as `glob` does, but without walking the whole disk."""
    places, seen = [folder], [0]
    for part in PurePath(pattern).parts:
        if glob.has_magic(part):
            places = [found for place in places for found in _fitting(place, part, pattern, seen)]
        else:
            places = [place / part for place in places if (place / part).exists()]
    return set(places)


def _fitting(place: Path, part: str, pattern: str, seen: list[int]) -> Iterator[Path]:
    """Give what fits one part of a pattern in a folder; hidden files only if a dot is written."""
    deep = part == "**"
    if deep:
        yield place
    for parent, folders, names in _walk(place, pattern, seen, follow=True):
        shown = [n for n in [*folders, *names] if part[0] == "." or n[0] != "."]
        folders[:] = [name for name in folders if deep and name[0] != "."]
        yield from (Path(parent, n) for n in (shown if deep else fnmatch.filter(shown, part)))


def _walk(
    folder: Path, what: str, seen: list[int], *, follow: bool = False
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk through folders, and count what was seen; refuse to go on without end."""
    onerror = None if follow else _refuse
    for parent, folders, names in os.walk(folder, onerror=onerror, followlinks=follow):
        seen[0] += len(folders) + len(names)
        if seen[0] > limit(_ENTRIES):
            raise InputError(
                f"{what!r} stands for too many files and folders to look through. Name a folder "
                f"closer to the table. {explain_limit(_ENTRIES, 'files and folders')}"
            )
        yield parent, folders, names


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the first lines of a CSV file tell."""

    separator: str
    names: tuple[str, ...]


def read_header(path: Path, *, separator: str | None, encoding: str, header: bool) -> Header:
    """Read the names of the columns, and detect the separator unless one is given.

    With `header`, the first line holds the names whatever it looks like.
    """
    lines = _first_lines(path, encoding)
    if not lines:
        raise InputError(f"{path.name!r} is empty. Check how it was exported.")
    chosen = separator or _best_separator(lines, path.name)
    names = _fields(lines, chosen)[0]
    breaks = sum(len(_LINE_END.findall(name)) for name in names)
    if len({end for line in lines[: breaks + 1] for end in _LINE_END.findall(line)}) > 1:
        raise InputError(
            f"A column of {path.name!r} has a line break in its name, and another kind of line "
            "break than the rows have. Write the name on one line."
        )
    if separator is not None and len(names) == 1:
        _refuse_other_separator(lines, separator, path.name)
    if not header and any(_NUMBER.fullmatch(name) for name in names):
        raise InputError(
            f"The first line of {path.name!r} holds numbers: it seems to be a row and not the "
            "names of the columns. Put a line with their names in front; if these are the names, "
            "write 'header: true' in the section 'data'."
        )
    return Header(
        separator=chosen,
        names=tuple(name or f"unnamed_{place}" for place, name in enumerate(names, start=1)),
    )


@contextmanager
def open_unpacked(path: Path) -> Iterator[Any]:
    """Open a file to read bytes, unpacked if it is packed; explain it if it cannot be read."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rb") as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise InputError(f"{path.name!r} cannot be read: {reason}.") from None


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[Any]:
    """Open a file as text, unpacked if it is packed; explain it if it cannot be decoded."""
    # a byte order mark is no part of the first name
    codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    try:
        with open_unpacked(path) as file, TextIOWrapper(file, encoding=codec, newline="") as text:
            yield text
    except UnicodeError:
        raise wrong_encoding(path, encoding) from None


def wrong_encoding(path: Path, encoding: str) -> InputError:
    """Say that a file is not in the encoding that was assumed, and what to try instead."""
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
    with open_text(path, encoding) as file:
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
            "have it detected."
        )
