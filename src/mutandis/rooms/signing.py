"""Ed25519 signatures on the records of a results folder (extra ``signing``: cryptography).

A signature is a file of 64 bytes next to the record, which lists a hash of every other file.
OpenSSL can check it. Keys are PEM files, as ``openssl genpkey -algorithm ed25519`` writes them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mutandis.errors import SettingsError
from mutandis.limits import read_regular
from mutandis.store.results_folder import signature_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

__all__ = ["Key", "read_key"]

_PASSWORD = "MUTANDIS_KEY_PASSWORD"  # noqa: S105 - the name of a variable
_BYTES = 10_000
_HOW = {
    "private": "openssl genpkey -algorithm ed25519 -out key.pem",
    "public": "openssl pkey -in key.pem -pubout -out key.pub",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key pair, or only its public half."""

    public: Ed25519PublicKey
    private: Ed25519PrivateKey | None = None

    def sign(self, record: Path) -> None:
        """Write the signature of a record next to it."""
        if self.private is None:
            raise TypeError("a public key cannot sign")
        signature_of(record).write_bytes(self.private.sign(record.read_bytes()))

    def find_fault(self, record: Path) -> str | None:
        """Describe what is wrong with the signature of a record; None if this key made it."""
        from cryptography.exceptions import InvalidSignature

        try:
            signature = read_regular(signature_of(record), most=_BYTES)
            self.public.verify(signature, record.read_bytes())
        except FileNotFoundError:
            return "is not signed"
        except (OSError, InvalidSignature):
            return "is not signed with this key"
        return None


def read_key(path: str | os.PathLike[str], half: Literal["private", "public"]) -> Key:
    """Read a key; the password of a private one comes from the environment."""
    content = _read(path)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

    try:
        key = _load(content, half)
    except TypeError:
        found = "no" if os.environ.get(_PASSWORD) else "a"
        raise SettingsError(
            f"The key {str(path)!r} has {found} password. Set the environment variable {_PASSWORD} "
            "for a key that has one, and only then."
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, Ed25519PrivateKey):
        return Key(public=key.public_key(), private=key)
    if isinstance(key, Ed25519PublicKey):
        return Key(public=key)
    raise SettingsError(
        f"{str(path)!r} is not a {half} Ed25519 key in PEM, or its password is another one. This "
        f"makes one: {_HOW[half]}"
    )


def _load(content: bytes, half: str) -> Any:
    from cryptography.hazmat.primitives import serialization

    if half == "public":
        return serialization.load_pem_public_key(content)
    password = os.environ.get(_PASSWORD)
    return serialization.load_pem_private_key(
        content, None if password is None else password.encode()
    )


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise SettingsError(
            "Signatures need the package cryptography, which is not installed. "
            "Install it with: pip install 'mutandis[signing]'"
        ) from None
    try:
        return read_regular(Path(path), most=_BYTES)
    except OSError as error:
        raise SettingsError(
            f"The key {str(path)!r} cannot be opened: {error.strerror}. Check the path."
        ) from None
