"""The endpoint of a decision over HTTP: an address, or an address with its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import PlainValidator

from mutandis.decision import HttpMaker, RetryPolicy
from mutandis.files.yaml_lines import Entries, Node, Scalar
from mutandis.files.yaml_models import (
    AnyNode,
    Name,
    Settings,
    Whole,
    entries_of,
    name_of,
    validated,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_endpoint"]


def _seconds(node: Node) -> float:
    if isinstance(node, Scalar) and type(node.value) in (int, float) and node.value > 0:
        return float(node.value)
    raise node.place.error("A number of seconds above 0 is needed here.")


_Seconds = Annotated[float, PlainValidator(_seconds)]


class _Endpoint(Settings):
    url: Name
    batch: Whole = 500
    envelope: Name | None = None
    headers: AnyNode = None
    token_variable: Name | None = None
    token_header: Name = "Authorization"  # noqa: S105 - a name, not a secret
    connect_timeout: _Seconds = 10.0
    timeout: _Seconds = 60.0
    deadline: _Seconds = 3600.0
    retries: Whole = 5
    backoff: _Seconds = 0.5
    longest_wait: _Seconds = 60.0
    log: Name | None = None


_RETRY_POLICY = ("connect_timeout", "timeout", "deadline", "retries", "backoff", "longest_wait")


def read_endpoint(node: Node, *, columns: tuple[str, ...], folder: Path) -> HttpMaker:
    """Read ``https://…``, or ``{url: https://…, batch: 200, token_variable: BANK_TOKEN, …}``.

    Parameters
    ----------
    node
        The address, or the mapping.
    columns
        The columns that are sent.
    folder
        The folder that the log is named relative to.

    Examples
    --------
    >>> from pathlib import Path
    >>> from mutandis.files.yaml_lines import read_yaml
    >>> node = read_yaml("{url: https://models.bank.example/credit, batch: 200, retries: 3}")
    >>> endpoint = read_endpoint(node, columns=("salary",), folder=Path("."))
    >>> endpoint.batch, endpoint.retry_policy.retries
    (200, 3)
    """
    if not isinstance(node, Entries):
        return HttpMaker(url=name_of(node, "an address"), columns=columns)
    read: Any = validated(_Endpoint, node, what="an endpoint")
    return HttpMaker(
        url=read.url,
        columns=columns,
        batch=read.batch,
        envelope=read.envelope,
        headers=_read_headers(read.headers),
        token_variable=read.token_variable,
        token_header=read.token_header,
        retry_policy=RetryPolicy(**{name: getattr(read, name) for name in _RETRY_POLICY}),
        log=None if read.log is None else folder / read.log,
    )


def _read_headers(node: Node | None) -> dict[str, str]:
    if node is None:
        return {}
    entries = entries_of(node, "the headers of an endpoint")
    return {name: name_of(part, "the value of a header") for name, part in entries.entries.items()}
