"""A folder of results: what is in it, and how to see that it is what was written.

`audit.json` is the record: the settings, where the table was and what it hashed to, the versions,
and a SHA-256 of every other file. It is written last. A hash of itself shows accidental changes;
against deliberate ones, sign it (`rooms/signing.py`) or keep its hash elsewhere. Case files are
written later and have a record of their own, `cases/SHA256SUMS`, which names the `audit.json` that
they were made from.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mutandis.auditing.plan import Origin
from mutandis.data.columns import jsonable
from mutandis.data.labels import Labels
from mutandis.errors import OutputError
from mutandis.limits import read_regular
from mutandis.registry import find
from mutandis.store.files import hash_file
from mutandis.store.output_folder import recover_output

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mutandis.auditing.plan import Plan

__all__ = [
    "CASES",
    "COUNTS",
    "FINDINGS",
    "PLOTS",
    "QUERIES",
    "RECORD",
    "REPORT",
    "SCHEMAS",
    "STATE",
    "SUMS",
    "AuditRecord",
    "RecordKey",
    "expected_files",
    "find_differences",
    "is_audit_folder",
    "read_key",
    "read_record",
    "read_sums",
    "signature_of",
    "write_record",
    "write_sums",
]

FINDINGS = "findings.parquet"
COUNTS = "counts.csv"
REPORT = "report.html"
RECORD = "audit.json"
QUERIES = "queries.jsonl"
STATE = "audit.npz"
SCHEMAS = "schemas"
PLOTS = "plots"
CASES = "cases"
SUMS = "SHA256SUMS"
_SUMS = f"{CASES}/{SUMS}"

_FORMAT = "mutandis-audit"
_VERSION = 1
_CASE_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.redacted)?\.(html|json|pdf)")
# as `sha256sum` writes and checks them
_SUM = re.compile(r"(?P<sha256>[0-9a-f]{64})  (?P<name>[!-~]+)")
# the record that case files were made from, as seen from their folder
_MADE_FROM = f"../{RECORD}"
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

    def label(self, plan: Plan) -> Plan:
        """Give a plan that was read from the audit file the words that the results have."""
        if "labels" not in self.data:  # results of before there were any
            return plan
        return plan.with_labels(Labels(**self.data["labels"]))


class RecordKey(Protocol):
    """A key that signs the records of a results folder, or checks their signatures."""

    def sign(self, record: Path) -> None:
        """Write the signature of a record next to it."""

    def find_fault(self, record: Path) -> str | None:
        """Describe what is wrong with the signature of a record; None if this key made it."""


def read_key(
    path: str | os.PathLike[str] | None, half: Literal["private", "public"]
) -> RecordKey | None:
    """Read a key; None if no file is named."""
    if path is None:
        return None
    key: RecordKey = find("room", "signing").read_key(path, half)
    return key


def signature_of(record: Path) -> Path:
    """Name the file that holds the signature of a record."""
    return record.with_name(f"{record.name}.sig")


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


def write_sums(cases: Path, record: Path, sums: Mapping[str, str]) -> None:
    """Write the record of a folder of case files: their hashes, and that of the audit's record."""
    lines = {_MADE_FROM: hash_file(record), **dict(sorted(sums.items()))}
    text = "".join(f"{sha256}  {name}\n" for name, sha256 in lines.items())
    (cases / SUMS).write_text(text, encoding="ascii")


def read_sums(folder: Path) -> dict[str, str]:
    """Read the hashes of case files by their names, or say that they do not belong to the audit."""
    sums, fault = _look_up_sums(folder)
    if fault is not None:
        raise OutputError(
            f"{str(folder / CASES / SUMS)!r} {fault}. Move the folder {CASES!r} away and write the "
            "case files again."
        )
    return sums


def _look_up_sums(folder: Path) -> tuple[dict[str, str], str | None]:
    """Read the hashes of case files, and say what is wrong with their record."""
    try:
        lines = read_regular(folder / CASES / SUMS, most=_BYTES).decode("ascii").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return {}, None
    except (OSError, UnicodeDecodeError):
        lines = [""]
    found = [_SUM.fullmatch(line) for line in lines]
    sums = {each["name"]: each["sha256"] for each in found if each}
    made_from = sums.pop(_MADE_FROM, None)
    if not all(found) or made_from is None or not all(map(_CASE_FILE.fullmatch, sums)):
        return {}, "is not a record of case files, or has been damaged"
    if made_from != hash_file(folder / RECORD):
        return sums, f"belongs to another {RECORD}"
    return sums, None


def is_audit_folder(folder: Path) -> bool:
    """Tell whether a folder holds the results of an audit, and nothing else."""
    try:
        record = read_record(folder)
    except OutputError:
        return False
    recover_output(folder / CASES)
    sums, _ = _look_up_sums(folder)
    own = {RECORD, f"{RECORD}.sig", *record.outputs, *(f"{CASES}/{name}" for name in sums)}
    return all(_is_case_file(name) or name in own for name in _files(folder))


def _is_case_file(name: str) -> bool:
    path = PurePosixPath(name)
    return path.parts[:-1] == (CASES,) and (
        path.suffix in {".html", ".json", ".pdf"} or name in {_SUMS, f"{_SUMS}.sig"}
    )


def expected_files(record: AuditRecord) -> dict[str, str | None]:
    """List what belongs in the folder by its path in it, with its SHA-256.

    Records, and the signatures that there are, have no hash elsewhere.
    """
    sums, _ = _look_up_sums(record.folder)
    records = [RECORD, f"{RECORD}.sig", _SUMS, f"{_SUMS}.sig"]
    there = [name for name in records if os.path.lexists(record.folder / name)]
    return {
        **record.outputs,
        **{f"{CASES}/{name}": sha256 for name, sha256 in sums.items()},
        **dict.fromkeys(there),
    }


def find_differences(record: AuditRecord) -> list[str]:
    """Hash every file again, and say what is not as the records say."""
    found = []
    if not record.is_intact:
        found.append(f"{RECORD} is not what was written")
    _, fault = _look_up_sums(record.folder)
    if fault is not None:
        found.append(f"{_SUMS} {fault}")
    expected = expected_files(record)
    for name, sha256 in expected.items():
        fault = _find_fault(record.folder / name, sha256)
        if fault is not None:
            found.append(f"{name} {fault}")
    foreign = sorted(set(_files(record.folder)) - set(expected))
    return [*found, *(f"{name} {_describe_foreign(record.folder / name)}" for name in foreign)]


def _find_fault(path: Path, expected: str | None) -> str | None:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return "is a link or a pipe, and not the file that was written"
        if expected is not None and hash_file(path) != expected:
            return "is not what was written"
    except (FileNotFoundError, NotADirectoryError):
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None


def _describe_foreign(path: Path) -> str:
    if path.is_symlink():
        return "is a link, which mutandis does not write"
    return f"was not written by {'`mutandis case`' if path.parent.name == CASES else 'the audit'}"


def _files(folder: Path) -> Iterator[str]:
    """List the files of a folder, and links and whatever else is no folder."""
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        ignored = stat.S_ISREG(mode) and path.name in _IGNORED
        if not (stat.S_ISDIR(mode) or ignored):
            yield path.relative_to(folder).as_posix()
