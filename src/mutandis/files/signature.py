"""Who made a results folder: Ed25519 signatures on its two records (the extra `sign`).

A signature is a file of 64 bytes beside the record, which hashes all other files; OpenSSL checks it
as well. Keys are PEM files, as `openssl genpkey -algorithm ed25519` makes them.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mutandis.errors import SettingsError
from mutandis.limits import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

__all__ = ["find_signature_fault", "read_public_key", "read_signing_key", "sign", "signature_of"]

_PASSWORD = "MUTANDIS_KEY_PASSWORD"  # noqa: S105 - the name of a variable
_BYTES = 10_000
_Half = Literal["private", "public"]


def signature_of(record: Path) -> Path:
    """Name the file that holds a record's signature."""
    return record.with_name(f"{record.name}.sig")


def sign(record: Path, key: Ed25519PrivateKey) -> None:
    """Write a record's signature beside it."""
    signature_of(record).write_bytes(key.sign(record.read_bytes()))


def find_signature_fault(record: Path, key: Ed25519PublicKey) -> str | None:
    """Say what is wrong with a record's signature; None if it was made with this key."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(read_regular(signature_of(record), most=_BYTES), record.read_bytes())
    except FileNotFoundError:
        return "is not signed"
    except (OSError, InvalidSignature):
        return "is not signed with this key"
    return None


def read_signing_key(path: str | os.PathLike[str]) -> Ed25519PrivateKey:
    """Read a private key; its password, if it has one, is taken from the environment."""
    content = _read(path)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    password = os.environ.get(_PASSWORD)
    try:
        with _readable(path, "private"):
            key = load_pem_private_key(content, None if password is None else password.encode())
    except TypeError:
        raise SettingsError(
            f"The key {str(path)!r} has {'no' if password else 'a'} password. Set the environment "
            f"variable {_PASSWORD} for a key that has one, and only then."
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _not_a_key(path, "private")
    return key


def read_public_key(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    """Read a public key."""
    content = _read(path)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    with _readable(path, "public"):
        key = load_pem_public_key(content)
    if not isinstance(key, Ed25519PublicKey):
        raise _not_a_key(path, "public")
    return key


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise SettingsError(
            "Signatures need the package cryptography, which is not installed. "
            "Install it with: pip install 'mutandis[sign]'"
        ) from None
    try:
        return read_regular(Path(path), most=_BYTES)
    except OSError as error:
        raise SettingsError(
            f"The key {str(path)!r} cannot be opened: {error.strerror}. Check the path."
        ) from None


@contextmanager
def _readable(path: str | os.PathLike[str], half: _Half) -> Iterator[None]:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        yield
    except (ValueError, UnsupportedAlgorithm):
        raise _not_a_key(path, half) from None


def _not_a_key(path: str | os.PathLike[str], half: _Half) -> SettingsError:
    made = {
        "private": "openssl genpkey -algorithm ed25519 -out key.pem",
        "public": "openssl pkey -in key.pem -pubout -out key.pub",
    }
    return SettingsError(
        f"{str(path)!r} is not a {half} Ed25519 key in PEM, or its password is another one. This "
        f"makes one: {made[half]}"
    )
