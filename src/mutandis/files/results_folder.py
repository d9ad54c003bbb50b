"""A folder of results: what is in it, and how to see that it is what was written.

`audit.json` is the record: the settings, where the table was and what it hashed to, the versions,
and a SHA-256 of every other file. It is written last. It also holds a hash of itself, which shows a
slip of the hand; whoever wants to hide a change can compute that anew, so for a signature keep the
hash of `audit.json` elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from mutandis.auditing.plan import Origin
from mutandis.data.columns import jsonable
from mutandis.errors import OutputError
from mutandis.files.table_files import hash_file
from mutandis.limits import read_regular

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
    "find_differences",
    "is_audit_folder",
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
class AuditRecord:
    """What `audit.json` in a results folder says."""

    folder: Path
    data: Mapping[str, Any]

    @property
    def is_intact(self) -> bool:
        """Whether the record is the one that was written, as far as its own hash tells."""
        return bool(self.data["sha256"] == _hash_record(self.data))

    @property
    def outputs(self) -> Mapping[str, str]:
        """The SHA-256 of each file of the folder, by its path in it."""
        return dict(self.data["outputs"])

    @property
    def origin(self) -> Origin:
        """The audit file as it was, and what was read for it."""
        config = self.data["config"]
        return Origin(
            text=config["text"],
            name=config["name"],
            folder=(self.folder / config["folder"]).resolve(),
            source=self.data["source"],
            files=self.data["files"],
        )


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
        data = json.loads(read_regular(path, most=_BYTES).decode("utf-8"))
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
    """Tell whether a path stays in the folder; a record may come from anywhere."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


def is_audit_folder(folder: Path) -> bool:
    """Tell whether a folder holds the results of an audit, and nothing else."""
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


def find_differences(record: AuditRecord) -> list[str]:
    """Hash every file again, and say what is not as the record says."""
    found = []
    if not record.is_intact:
        found.append(f"{RECORD} is not what was written")
    for name, expected in record.outputs.items():
        path = record.folder / name
        if not path.is_file():
            found.append(f"{name} is missing")
        elif hash_file(path) != expected:
            found.append(f"{name} is not what was written")
    further = set(_files(record.folder)) - {RECORD, *record.outputs}
    return [*found, *(f"{name} was not written by the audit" for name in sorted(further))]


def _files(folder: Path) -> Iterator[str]:
    """List the files of a folder, without case files, which are written later."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        plain_folder = path.is_dir() and not path.is_symlink()
        if name.parts[0] != CASES and path.name not in _IGNORED and not plain_folder:
            yield name.as_posix()
