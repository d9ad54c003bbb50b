"""A folder of results: what is in it, how it is recorded, and what is not as it was written.

`audit.json` is the record: the settings, where the table was and what it hashed to, the versions,
and a SHA-256 of every other file. It is written last. A hash of itself shows accidental changes;
against deliberate ones, sign it (`rooms/signing.py`) or keep its hash elsewhere. Case files are
written later and have a record of their own, `cases/SHA256SUMS`, which names the `audit.json` that
they were made from; all files of a case and their record appear together, or none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
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
from mutandis.store.output_folder import locked_folder, output_folder, recover_output

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
    "case_name",
    "expected_files",
    "find_differences",
    "is_audit_folder",
    "read_key",
    "read_record",
    "signature_of",
    "write_case_files",
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

_FORMAT, _VERSION = "mutandis-audit", 1
_CASE_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.redacted)?\.(html|json|pdf)")
_SUM = re.compile(r"(?P<sha256>[0-9a-f]{64})  (?P<name>[!-~]+)")  # as `sha256sum` writes it
_MADE_FROM = f"../{RECORD}"  # the record that case files were made from, seen from their folder
_IGNORED = {".DS_Store", "Thumbs.db", "desktop.ini"}  # put there by desktops, not by people
_BYTES = 50_000_000  # a record has a few hundred kilobytes even with a thousand attributes
# names that mean a device to Windows, whatever follows the dot
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


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


# --- the record -----------------------------------------------------------------------------------


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
        """Return a plan that was read from the audit file with the words that the results have."""
        return plan.with_labels(Labels(**self.data["labels"]))


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
    if not path.exists():
        there = f"The folder {str(folder)!r} holds no {RECORD}"
        there = there if folder.is_dir() else f"There is no folder {str(folder)!r}"
        raise OutputError(f"{there}. Name one that `mutandis audit` has written.")
    try:
        data = json.loads(read_regular(path, most=_BYTES).decode("utf-8"))
    except OSError as error:
        raise OutputError(f"{str(path)!r} cannot be opened: {error.strerror}.") from None
    except (ValueError, RecursionError):
        data = None
    if not _is_record(data):
        raise OutputError(
            f"{str(path)!r} is not a record of an audit, or has been damaged. Run the audit again."
        )
    if data["version"] > _VERSION:
        raise OutputError(
            f"{str(path)!r} was written by a newer mutandis. Use that one to read it."
        )
    return AuditRecord(folder=folder, data=data)


def _is_record(data: Any) -> bool:
    try:
        return (
            data["format"] == _FORMAT
            and type(data["version"]) is int
            and isinstance(data["sha256"], str)
            and all(isinstance(data["config"][key], str) for key in ("name", "folder", "text"))
            and isinstance(data["source"]["sha256"], str)
            and isinstance(data["settings"]["data"], dict)
            and isinstance(data["added"], dict)
            and isinstance(data["files"], dict)
            and isinstance(data["labels"], dict)
            and isinstance(data["provenance"]["data"]["sha256"], str)
            and all(_is_inside(n) and isinstance(h, str) for n, h in data["outputs"].items())
        )
    except (AttributeError, KeyError, TypeError):
        return False


def _is_inside(name: str) -> bool:
    """Whether a path stays in the folder; a record may come from anywhere."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


# --- what is in the folder ------------------------------------------------------------------------


def is_audit_folder(folder: Path) -> bool:
    """Whether a folder holds the results of an audit, and nothing else."""
    try:
        record = read_record(folder)
    except OutputError:
        return False
    recover_output(folder / CASES)
    own = {f"{RECORD}.sig", *expected_files(record)}
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
    cases = {f"{CASES}/{name}": sha256 for name, sha256 in sums.items()}
    return {**record.outputs, **cases, **dict.fromkeys(there)}


def find_differences(record: AuditRecord) -> list[str]:
    """Hash every file again, and say what is not as the records say."""
    found = [] if record.is_intact else [f"{RECORD} is not what was written"]
    _, fault = _look_up_sums(record.folder)
    if fault is not None:
        found.append(f"{_SUMS} {fault}")
    expected = expected_files(record)
    for name, sha256 in expected.items():
        fault = _find_fault(record.folder / name, sha256)
        if fault is not None:
            found.append(f"{name} {fault}")
    for name in sorted(set(_files(record.folder)) - set(expected)):
        by = "`mutandis case`" if name.startswith(f"{CASES}/") else "the audit"
        is_link = (record.folder / name).is_symlink()
        told = "is a link, which mutandis does not write" if is_link else f"was not written by {by}"
        found.append(f"{name} {told}")
    return found


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


def _files(folder: Path) -> Iterator[str]:
    """List the files of a folder, and links and whatever else is no folder."""
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        ignored = stat.S_ISREG(mode) and path.name in _IGNORED
        if not (stat.S_ISDIR(mode) or ignored):
            yield path.relative_to(folder).as_posix()


# --- case files -----------------------------------------------------------------------------------


def case_name(text: str) -> str:
    """Make a file name of an id: the id itself if it is plain, else what is plain in it and a hash.

    Examples
    --------
    >>> case_name("4711"), case_name("../../etc/passwd")
    ('4711', 'etc-passwd-3754d6cb3a')
    """
    if _PLAIN.fullmatch(text) and not _DEVICES.fullmatch(text):
        return text
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40].strip("-")
    return f"{plain or 'id'}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:10]}"


def write_sums(cases: Path, record: Path, sums: Mapping[str, str]) -> None:
    """Write the record of a folder of case files: their hashes, and that of the audit's record."""
    lines = {_MADE_FROM: hash_file(record), **dict(sorted(sums.items()))}
    text = "".join(f"{sha256}  {name}\n" for name, sha256 in lines.items())
    (cases / SUMS).write_text(text, encoding="ascii")


def _look_up_sums(folder: Path) -> tuple[dict[str, str], str | None]:
    """Read the hashes of case files by their names, and say what is wrong with their record."""
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


def write_case_files(
    folder: Path,
    contents: Mapping[str, str | bytes],
    *,
    made_from: str,
    key: RecordKey | None = None,
) -> None:
    """Write files by their names into the folder `cases` of results, and record them.

    The folder is replaced as a whole, by one with the new files in it: whatever happens on the way,
    a full disk or a power cut, leaves the old one or the new one. `made_from` is the SHA-256 of the
    record of the audit that they are about.
    """
    cases = folder / CASES
    if cases.is_symlink():
        raise OutputError(
            f"{str(cases)!r} is a link, and case files are not written to where it leads. Remove "
            "the link."
        )
    with locked_folder(folder):
        recover_output(cases)
        if hash_file(folder / RECORD) != made_from:
            raise OutputError(
                f"The results in {str(folder)!r} were replaced while the case file was made. Write "
                "it again."
            )
        sums, fault = _look_up_sums(folder)
        if fault is not None:
            raise OutputError(
                f"{str(cases / SUMS)!r} {fault}. Move the folder {CASES!r} away and write the case "
                "files again."
            )
        _check_signed(cases, key)
        with output_folder(cases, replace=True, known=_holds_files_only) as temporary:
            if cases.exists():
                shutil.copymode(cases, temporary)
                _link_files(cases, temporary, but={*contents, SUMS, f"{SUMS}.sig"})
            for name, content in contents.items():
                data = content.encode() if isinstance(content, str) else content
                (temporary / name).write_bytes(data)
                sums[name] = hash_file(temporary / name)
            write_sums(temporary, folder / RECORD, sums)
            if key is not None:
                key.sign(temporary / SUMS)


def _check_signed(cases: Path, key: RecordKey | None) -> None:
    """Refuse to leave signed case files unsigned, and to sign those of others."""
    record = cases / SUMS
    if key is None and signature_of(record).exists():
        raise OutputError(
            f"The case files in {str(cases)!r} are signed, and a further one needs the same key: "
            "add --sign KEYFILE (in Python: sign=)."
        )
    fault = key.find_fault(record) if key is not None and record.exists() else None
    if fault is not None:
        raise OutputError(
            f"{str(record)!r} {fault}, and would be signed along with the new case file. Move the "
            f"folder {CASES!r} away and write all of its case files with --sign (in Python: sign=)."
        )


def _holds_files_only(cases: Path) -> bool:
    return all(each.is_file() and not each.is_symlink() for each in cases.iterdir())


def _link_files(old: Path, new: Path, *, but: set[str]) -> None:
    for each in old.iterdir():
        if each.name not in but:
            try:
                os.link(each, new / each.name)
            except OSError:  # a file system without links, or a file of another user
                shutil.copy2(each, new / each.name)
