"""Addresses of databases, which may be written down, and passwords, which may not.

A settings file is copied, hashed and handed over together with the results. So an address with a
password in it is refused, and no message ever repeats an address that has not been looked through.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from mutandis.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Address", "is_url"]

_POSTGRES = ("postgresql", "postgres")
# libpq's parameters that say where and how to connect; none of them holds a secret
_PARAMETERS = {
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "gssencmode",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "krbsrvname",
    "options",
    "passfile",
    "port",
    "require_auth",
    "service",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
    "user",
}
_PATIENCE = "10"


def is_url(text: str) -> bool:
    """Tell whether text looks like the address of something, rather than a path.

    Examples
    --------
    >>> is_url("postgresql://db/loans"), is_url("loans/2024.csv")
    (True, False)
    """
    return "://" in text


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a database is, without any password.

    Parameters
    ----------
    kind
        "postgresql" or "sqlite".
    url
        The address as it was written.

    Examples
    --------
    >>> Address.parse("postgresql://auditor@db.bank/loans?sslmode=require").kind
    'postgresql'
    >>> Address.parse("postgresql://auditor:secret@db.bank/loans")
    Traceback (most recent call last):
    mutandis.errors.InputError: The url holds a password. Settings are copied and handed over, ...
    """

    kind: str
    url: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Look an address through; nothing of it is repeated in an error."""
        scheme, separator, _ = url.partition("://")
        if not separator or scheme.lower() not in {*_POSTGRES, "sqlite"}:
            raise InputError(
                "The url is none that can be read. Allowed are "
                "postgresql://user@host:port/database and sqlite:///file.db."
            )
        if scheme.lower() == "sqlite":
            return cls._sqlite(url)
        return cls._postgres(url)

    @classmethod
    def _sqlite(cls, url: str) -> Address:
        parts = urlsplit(url)
        if parts.netloc or not parts.path.strip("/") or parts.query or parts.fragment:
            raise InputError(
                "The url of an SQLite database is sqlite:///file.db, with one more slash for an "
                "absolute path: sqlite:////folder/file.db."
            )
        return cls(kind="sqlite", url=url)

    @classmethod
    def _postgres(cls, url: str) -> Address:
        try:
            parts = urlsplit(url)
            secret = parts.password is not None
            parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
            hosts = parts.netloc.rpartition("@")[2]
            whole = bool(hosts == "" or "," in hosts or parts.port or parts.hostname)
        except ValueError:
            raise cls._unreadable() from None
        # a password with an unescaped '/', '?' or '#' ends up behind the host
        behind = "@" in parts.path or "@" in parts.fragment or bool(parts.fragment)
        if secret or behind or any("password" in name.lower() for name in parameters):
            raise InputError(
                "The url holds a password. Settings are copied and handed over, so take it out, "
                "and set the variable PGPASSWORD, name another variable with password_env, or put "
                "the password into ~/.pgpass (PGPASSFILE). If it has none, write '@' in it as %40."
            )
        if not whole:
            raise cls._unreadable()
        unknown = sorted(set(parameters) - _PARAMETERS)
        if unknown:
            raise InputError(
                f"The url has a parameter that is not known: {unknown[0]!r}. Known are "
                f"{', '.join(sorted(_PARAMETERS))}."
            )
        return cls(kind="postgresql", url=url)

    @staticmethod
    def _unreadable() -> InputError:
        return InputError(
            "The url cannot be read. Write postgresql://user@host:port/database, with %-escapes "
            "for special characters."
        )

    @property
    def name(self) -> str:
        """A short name for sentences: that of the database."""
        parts = urlsplit(self.url)
        return unquote(parts.path.rpartition("/")[2]) or self.kind

    def file(self, folder: Path) -> Path:
        """Give the file of an SQLite database; a relative path is relative to the folder."""
        return folder / unquote(urlsplit(self.url).path[1:])

    def connection_string(self, password_env: str | None) -> str:
        """Add the password, for the driver alone: it must not be kept or shown."""
        parts = urlsplit(self.url)
        place = parts.netloc
        if password_env is not None:
            user, _, host = place.rpartition("@")
            if not user:
                raise InputError("password_env needs a user: postgresql://user@host/database.")
            place = f"{user}:{quote(_password(password_env), safe='')}@{host}"
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
        if "PGCONNECT_TIMEOUT" not in os.environ:
            parameters.setdefault("connect_timeout", _PATIENCE)
        query = urlencode(parameters, quote_via=quote)
        return urlunsplit(("postgresql", place, parts.path, query, ""))


def _password(variable: str) -> str:
    found = os.environ.get(variable)
    if not found:
        # not named here: somebody may have written the password itself
        raise InputError(
            "The environment variable that password_env names is not set. Set it to the password; "
            "password_env is the name of the variable, never the password."
        )
    return found
