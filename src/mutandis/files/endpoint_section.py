"""The endpoint of a decision over HTTP: an address, or an address with its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.decision import HttpMaker, RetryPolicy
from mutandis.files.yaml_nodes import (
    Entries,
    Scalar,
    YamlNode,
    read_entries,
    read_keys,
    read_name,
    read_whole,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mutandis.files.yaml_nodes import Reader

__all__ = ["read_endpoint"]


def _seconds(node: YamlNode) -> float:
    if isinstance(node, Scalar) and type(node.value) in (int, float) and node.value > 0:
        return float(node.value)
    raise node.place.error("A number of seconds above 0 is needed here.")


def _read_headers(node: YamlNode) -> dict[str, str]:
    headers = read_entries(node, "the headers of an endpoint")
    return {
        name: read_name(part, "the value of a header") for name, part in headers.entries.items()
    }


_RETRY_POLICY: Mapping[str, Reader] = {
    "connect_timeout": _seconds,
    "timeout": _seconds,
    "deadline": _seconds,
    "retries": read_whole,
    "backoff": _seconds,
    "longest_wait": _seconds,
}
_ENDPOINT: Mapping[str, Reader] = {
    "url": read_name,
    "batch": read_whole,
    "envelope": read_name,
    "headers": _read_headers,
    "token_variable": read_name,
    "token_header": read_name,
    **_RETRY_POLICY,
    "log": read_name,
}


def read_endpoint(node: YamlNode, *, columns: tuple[str, ...], folder: Path) -> HttpMaker:
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
    >>> from mutandis.files.yaml_nodes import read_yaml
    >>> node = read_yaml("{url: https://models.bank.example/credit, batch: 200, retries: 3}")
    >>> endpoint = read_endpoint(node, columns=("salary",), folder=Path("."))
    >>> endpoint.batch, endpoint.retry_policy.retries
    (200, 3)
    """
    if not isinstance(node, Entries):
        return HttpMaker(url=read_name(node, "an address"), columns=columns)
    read = read_keys(node, _ENDPOINT, required=("url",), what="an endpoint")
    if "log" in read:
        read["log"] = folder / read["log"]
    policy = RetryPolicy(**{key: read.pop(key) for key in _RETRY_POLICY if key in read})
    return HttpMaker(columns=columns, retry_policy=policy, **read)
