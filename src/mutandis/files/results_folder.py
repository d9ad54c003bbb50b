"""A folder of results: what is in it, and how to see that it is what was written.

`audit.json` is the record: the settings, where the table was and what it hashed to, the versions,
and a SHA-256 of every other file. It is written last. It also holds a hash of itself, which shows a
slip of the hand; whoever wants to hide a change can compute that anew, so for a signature keep the
hash of `audit.json` elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mutandis.auditing.plan import Origin
from mutandis.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "CASES",
    "COUNTS",
    "FINDINGS",
    "PLOTS",
    "QUERIES",
    "RECORD",
    "REPORT",
    "STATE",
    "AuditRecord",
    "Difference",
    "find_differences",
    "hash_file",
    "is_audit_folder",
    "jsonable",
    "read_record",
    "write_record",
]

FINDINGS = "findings.parquet"
COUNTS = "counts.csv"
REPORT = "report.html"
RECORD = "audit.json"
QUERIES = "queries.jsonl"
STATE = "audit.npz"
PLOTS = "plots"
CASES = "cases"

_FORMAT = "mutandis-audit"
_VERSION = 1
_CASE_ENDINGS = {".html", ".json", ".pdf"}
# put there by desktops, not by people
_IGNORED = {".DS_Store", "Thumbs.db", "desktop.ini"}
# a record is a few hundred kilobytes even with a thousand attributes
_BYTES = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file that is not what the record says.

    Parameters
    ----------
    name
        Its path in the folder.
    problem
        It is not there, not the same, or not known to the record.
    """

    name: str
    problem: Literal["missing", "changed", "unknown"]

    def __str__(self) -> str:
        """Say it in a few words."""
        words = {
            "missing": "is missing",
            "changed": "is not what was written",
            "unknown": "was not written by the audit",
        }
        return f"{self.name} {words[self.problem]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """What `audit.json` says.

    Parameters
    ----------
    folder
        The results folder.
    data
        Everything in the record.
    """

    folder: Path
    data: Mapping[str, Any]

    @property
    def outputs(self) -> Mapping[str, str]:
        """The SHA-256 of each file of the folder, by its path in it."""
        return dict(self.data["outputs"])

    @property
    def config_text(self) -> str:
        """The audit file as it was."""
        return str(self.data["config"]["text"])

    @property
    def config_name(self) -> str:
        """The name of the audit file."""
        return str(self.data["config"]["name"])

    @property
    def config_folder(self) -> Path:
        """The folder that the paths in the audit file are relative to."""
        return (self.folder / str(self.data["config"]["folder"])).resolve()

    @property
    def origin(self) -> Origin:
        """Where the plan was read from."""
        return Origin(
            text=self.config_text,
            name=self.config_name,
            folder=self.config_folder,
            source=self.data["source"],
            files=self.data["files"],
        )

    @property
    def source_sha256(self) -> str:
        """The hash of the table as it was read."""
        return str(self.data["source"]["sha256"])

    @property
    def population_sha256(self) -> str:
        """The hash of the columns that were used, as they were understood."""
        return str(self.data["provenance"]["data"]["sha256"])


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Hash every file of the folder, and write `audit.json`."""
    outputs = {name: hash_file(folder / name) for name in sorted(_files(folder))}
    whole = jsonable({"format": _FORMAT, "version": _VERSION, **record, "outputs": outputs})
    whole["sha256"] = _hash_record(whole)
    text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / RECORD).write_text(f"{text}\n", encoding="utf-8")


def _hash_record(record: Mapping[str, Any]) -> str:
    others = {key: value for key, value in record.items() if key != "sha256"}
    text = json.dumps(others, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read_record(folder: Path) -> AuditRecord:
    """Read `audit.json`, or say that the folder is no result of an audit."""
    path = folder / RECORD
    if not folder.is_dir():
        raise OutputError(
            f"There is no folder {str(folder)!r}. Name one that `mutandis audit` has written."
        )
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_BYTES).decode("utf-8"))
    except FileNotFoundError:
        raise OutputError(
            f"The folder {str(folder)!r} holds no {RECORD}. Name one that `mutandis audit` has "
            "written."
        ) from None
    except OSError as error:
        raise OutputError(f"{str(path)!r} cannot be opened: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise _not_a_record(path) from None
    if not _is_record(data):
        raise _not_a_record(path)
    if data["version"] > _VERSION:
        raise OutputError(
            f"{str(path)!r} was written by a newer mutandis. Use that one to read it."
        )
    return AuditRecord(folder=folder, data=data)


def _not_a_record(path: Path) -> OutputError:
    return OutputError(
        f"{str(path)!r} is not a record of an audit, or has been damaged. Run the audit again."
    )


def _is_record(data: Any) -> bool:
    try:
        return (
            data["format"] == _FORMAT
            and type(data["version"]) is int
            and isinstance(data["sha256"], str)
            and all(isinstance(data["config"][key], str) for key in ("name", "folder", "text"))
            and isinstance(data["source"]["sha256"], str)
            and isinstance(data["settings"]["data"], dict)
            and isinstance(data["files"], dict)
            and isinstance(data["provenance"]["data"]["sha256"], str)
            and all(_is_inside(n) and isinstance(h, str) for n, h in data["outputs"].items())
        )
    except (AttributeError, KeyError, TypeError):
        return False


def _is_inside(name: str) -> bool:
    """Tell whether a path stays in the folder; a record may come from anybody."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


def is_audit_folder(folder: Path) -> bool:
    """Tell whether a folder holds the results of an audit, and nothing that is somebody else's."""
    try:
        record = read_record(folder)
    except OutputError:
        return False
    return set(_files(folder)) <= {RECORD, *record.outputs} and _only_case_files(folder / CASES)


def _only_case_files(folder: Path) -> bool:
    return not folder.exists() or all(
        path.suffix in _CASE_ENDINGS or path.name in _IGNORED or path.name.startswith(".mutandis-")
        for path in folder.rglob("*")
    )


def find_differences(record: AuditRecord) -> list[Difference]:
    """Hash every file again, and list what is not as the record says."""
    found = []
    if record.data["sha256"] != _hash_record(record.data):
        found.append(Difference(name=RECORD, problem="changed"))
    for name, expected in record.outputs.items():
        path = record.folder / name
        if not path.is_file():
            found.append(Difference(name=name, problem="missing"))
        elif hash_file(path) != expected:
            found.append(Difference(name=name, problem="changed"))
    further = set(_files(record.folder)) - {RECORD, *record.outputs}
    return [*found, *(Difference(name=name, problem="unknown") for name in sorted(further))]


def _files(folder: Path) -> Iterator[str]:
    """List the files of a folder, without case files, which come later and are nobody's result."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        plain_folder = path.is_dir() and not path.is_symlink()
        if name.parts[0] != CASES and path.name not in _IGNORED and not plain_folder:
            yield name.as_posix()


def hash_file(path: Path) -> str:
    """Give the SHA-256 of a file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     hash_file(Path(file.name))[:8]
    'e3b0c442'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def jsonable(value: Any) -> Any:
    """Give plain data that any reader of JSON takes: no NaN, no numpy, names as keys."""
    if isinstance(value, dict):
        return {str(key): jsonable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(part) for part in value]
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)
