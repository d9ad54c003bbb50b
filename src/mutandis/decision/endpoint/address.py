"""The one address that questions go to, and the headers that go with them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, urlsplit

from mutandis.errors import DecisionError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Address", "Token", "check_headers"]

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff]*")
_SECRETS = {
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
}
_SECRET_PARAMETER = re.compile(
    r"code|.*(key|token|secret|password|passwd|pwd|credentials?|signature|sig|auth)", re.IGNORECASE
)
_OURS = {"host", "content-length", "content-type", "transfer-encoding", "connection", "expect"}
_LOCAL = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A checked address; build one with `Address.parse`.

    Parameters
    ----------
    scheme, host, port
        Whom to connect to; without a port, the usual one.
    target
        What to ask there: path and query.

    Examples
    --------
    >>> address = Address.parse("https://models.bank.example:8443/credit?version=2")
    >>> address.shown
    'https://models.bank.example:8443/credit'
    """

    scheme: str
    host: str
    port: int | None
    target: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read an address, or say what is wrong with it; what may be secret is never repeated."""
        if re.search(r"[^\x21-\x7e]", url):
            raise DecisionError(
                "The address of the endpoint holds a space or a character beyond ASCII. Write it "
                "as a browser copies it, with %20 for a space."
            )
        parts, port = _split(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise DecisionError(
                "The address of the endpoint is no web address. It begins with https:// or "
                "http:// and names a host, as in https://models.bank.example/credit."
            )
        if parts.username is not None or parts.password is not None:
            raise DecisionError(
                "The address of the endpoint holds a user name or a password. Secrets do not "
                "belong there: put a token into an environment variable and name the variable "
                "(token_variable)."
            )
        for name, _ in parse_qsl(parts.query, keep_blank_values=True):
            if _SECRET_PARAMETER.fullmatch(name):
                raise DecisionError(
                    f"The address of the endpoint holds {name!r}, which looks like a secret, and "
                    "addresses are kept with the results. Put it into an environment variable and "
                    "name the variable (token_variable), with token_header for the header that "
                    "the endpoint looks for it in."
                )
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(scheme=parts.scheme, host=parts.hostname, port=port, target=target)

    @property
    def shown(self) -> str:
        """The address without its query, which may say more than is needed."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target.partition('?')[0]}"

    @property
    def in_the_clear(self) -> bool:
        """Whether questions travel unencrypted to another machine."""
        return self.scheme == "http" and self.host not in _LOCAL


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port  # read only now, and refused only now
    except ValueError:
        raise DecisionError(
            "The address of the endpoint cannot be read: its host or its port is malformed. Write "
            "it as in https://models.bank.example:8443/credit."
        ) from None
    return parts, port


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that are malformed, ours to set, or secrets written into a file."""
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise DecisionError("Headers are texts. Put names and values in quotes.")
        if name.lower() in _SECRETS:
            raise DecisionError(
                f"The header {name!r} is a secret, which does not belong into settings. Put it "
                "into an environment variable and name the variable (token_variable, and "
                "token_header if it is not Authorization)."
            )
        if name.lower() in _OURS:
            raise DecisionError(f"The header {name!r} is set by mutandis. Leave it out.")
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise DecisionError(
                f"The header {name!r} has a name or a value that HTTP does not allow. Use letters, "
                "digits and hyphens in names, and no line breaks in values."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A secret that is read from the environment when it is needed, and kept nowhere.

    Parameters
    ----------
    variable
        The name of the environment variable.
    header
        The header that carries it. Authorization carries it as a bearer token, any other bare.
    """

    variable: str
    header: str = "Authorization"

    def __post_init__(self) -> None:
        if not _HEADER_NAME.fullmatch(self.header) or self.header.lower() in _OURS:
            raise DecisionError(
                f"token_header={self.header!r} cannot carry a token. Leave it out for "
                "Authorization, or name a header such as X-Api-Key."
            )
        if not self.variable or "=" in self.variable or "\0" in self.variable:
            raise DecisionError(
                "token_variable takes the name of an environment variable, such as BANK_TOKEN "
                "(not the token itself)."
            )

    def headers(self) -> dict[str, str]:
        """Read the secret now."""
        secret = os.environ.get(self.variable, "").strip()
        if not secret:
            # the name may be a secret that was put here by mistake: only what looks like a name
            plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,40}", self.variable)
            named = repr(self.variable) if plain else "that token_variable names"
            raise DecisionError(
                f"The environment variable {named} is not set, and the endpoint's token should be "
                "in it. Set it before the audit."
            )
        if not re.fullmatch(r"[\x21-\x7e]+", secret):
            raise DecisionError(
                f"The environment variable {self.variable!r} holds characters that no token has "
                "(a space, a line break, a letter beyond ASCII). Set it again."
            )
        bearer = self.header.lower() == "authorization"
        return {self.header: f"Bearer {secret}" if bearer else secret}
