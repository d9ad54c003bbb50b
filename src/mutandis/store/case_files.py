"""Case files in a results folder: all files of a case and their record appear together, or none."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from typing import TYPE_CHECKING

from mutandis.errors import OutputError
from mutandis.store.files import hash_file
from mutandis.store.output_folder import locked_folder, output_folder, recover_output
from mutandis.store.results_folder import CASES, RECORD, SUMS, read_sums, signature_of, write_sums

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mutandis.store.results_folder import RecordKey

__all__ = ["case_name", "write_case_files"]

# names that mean a device to Windows, whatever follows the dot
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


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
        sums = read_sums(folder)
        _check_signed(cases, key)
        with output_folder(cases, replace=True, known=_holds_files_only) as temporary:
            if cases.exists():
                shutil.copymode(cases, temporary)
                _link_files(
                    cases, temporary, but={*contents, SUMS, signature_of(cases / SUMS).name}
                )
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
    if key is not None and record.exists():
        fault = key.find_fault(record)
        if fault is not None:
            raise OutputError(
                f"{str(record)!r} {fault}, and would be signed along with the new case file. Move "
                f"the folder {CASES!r} away and write all of its case files with --sign (in "
                "Python: sign=)."
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
