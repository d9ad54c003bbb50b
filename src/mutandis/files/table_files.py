"""Tables in files: which files they are, what they hold, and their hash."""

from __future__ import annotations

import codecs
import glob
import hashlib
import json
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from mutandis.errors import InputError

__all__ = ["FileFormat", "TableFiles"]


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
_ONLY_CSV = ("separator", "decimal", "encoding", "header", "missing_text")


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
        Of CSV: what separates fields (default: found out), the decimal mark (default: a point),
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
        """A short name for sentences."""
        return Path(self.path).name or self.path

    def describe(self) -> dict[str, Any]:
        """Say where the table is and how it is read, as plain data."""
        written: dict[str, Any] = {"kind": "files", "source": self.path}
        if self.separator is not None:
            written["separator"] = self.separator
        if self.decimal != ".":
            written["decimal"] = self.decimal
        if self.encoding is not None:
            written["encoding"] = self.encoding
        if self.header:
            written["header"] = True
        if self.missing_text:
            written["missing_text"] = list(self.missing_text)
        return written

    def files(self) -> tuple[Path, ...]:
        """Find the files, sorted by name; refuse what is not there, or cannot be opened."""
        whole = self.folder / self.path
        try:
            if whole.is_file():
                found = [whole]
            elif whole.is_dir():
                found = _in_folder(whole)
            else:
                found = _fitting(self.folder, self.path)
            for file in found:
                with file.open("rb"):
                    pass
        except InputError:
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "its name is no path"
            raise InputError(f"{self.name!r} cannot be opened: {reason}.") from None
        return tuple(found)

    def format(self, files: tuple[Path, ...]) -> FileFormat:
        """Tell from the endings of the files what they hold; it must be one thing."""
        formats = {_format_of(file) for file in files}
        if len(formats) > 1:
            held = ", ".join(sorted(each.value for each in formats))
            raise InputError(
                f"{self.name!r} stands for files of several formats ({held}). Name those of one, "
                "by a pattern such as 'folder/*.parquet'."
            )
        (found,) = formats
        written = self.describe()
        for key in _ONLY_CSV:
            if found is not FileFormat.CSV and key in written:
                raise InputError(
                    f"{key!r} is about CSV files, and {self.name!r} is {found.value}. Leave it out."
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
                return _hash_file(files[0])
            common = os.path.commonpath([file.parent for file in files])
            digest = hashlib.sha256()
            for file in files:
                line = [file.relative_to(common).as_posix(), _hash_file(file)]
                digest.update(json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise InputError(f"{self.name!r} cannot be read: {error.strerror}.") from None
        return digest.hexdigest()


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
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


def _in_folder(folder: Path) -> list[Path]:
    """List the tables in a folder and below; what is hidden or begins with '_' is no table."""
    found = []
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        files = (Path(parent, name) for name in names if not name.startswith((".", "_")))
        found += [file for file in files if _ending(file) in _ENDINGS]
    if not found:
        raise InputError(
            f"The folder {folder.name!r} holds no table: no file in it ends in "
            f"{', '.join(_ENDINGS)}."
        )
    return sorted(found)


def _fitting(folder: Path, pattern: str) -> list[Path]:
    if not glob.has_magic(pattern):
        raise InputError(
            f"There is no file or folder {Path(pattern).name!r} where the settings say. Check the "
            "path; it is relative to the folder of the settings."
        )
    # the folder's own name may have brackets in it, which are no pattern
    whole = os.path.join(glob.escape(str(folder)), pattern)  # noqa: PTH118 - it is a pattern
    found = sorted(Path(name) for name in glob.glob(whole, recursive=True))  # noqa: PTH207
    files = [path for path in found if path.is_file()]
    if not files:
        raise InputError(
            f"No file fits the pattern {pattern!r}. Check it; it is relative to the folder of the "
            "settings."
        )
    return files
