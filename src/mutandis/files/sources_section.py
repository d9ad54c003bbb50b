"""The section 'data' of an audit file: where the table is, and how it is to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mutandis.files.database_urls import is_url
from mutandis.files.sources import DatabaseQuery, Source, TableFiles
from mutandis.files.yaml_nodes import (
    Items,
    YamlNode,
    located,
    one_of,
    read_flag,
    read_keys,
    read_name,
)

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.data.population import Missing

__all__ = ["DataSection", "read_data_section"]

_DATABASES = (".db", ".sqlite", ".sqlite3")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSection:
    """What the section says.

    Parameters
    ----------
    source
        Where the table is.
    id
        The column with a unique value a row.
    missing
        What is done with rows that lack a value.
    """

    source: Source
    id: str | None
    missing: Missing


def _texts(node: YamlNode) -> tuple[str, ...]:
    """Read one text, or a list of them."""
    items = node.items if isinstance(node, Items) else (node,)
    return tuple(read_name(item) for item in items)


_FILE_KEYS = {
    "separator": read_name,
    "decimal": one_of(".", ","),
    "encoding": read_name,
    "header": read_flag,
    "missing_text": _texts,
}
_DATABASE_KEYS = {"query": read_name, "password_env": read_name}
_DATA = {
    "source": read_name,
    "url": read_name,
    "id": read_name,
    "missing": one_of("error", "drop"),
    **_DATABASE_KEYS,
    **_FILE_KEYS,
}


def read_data_section(node: YamlNode, *, folder: Path) -> DataSection:
    """Read the section; paths in it are relative to a folder.

    Examples
    --------
    >>> from pathlib import Path
    >>> from mutandis.files.yaml_nodes import read_yaml
    >>> written = read_yaml("{source: loans.csv, separator: ';', id: person}")
    >>> read_data_section(written, folder=Path("case")).source.describe()
    {'kind': 'files', 'source': 'loans.csv', 'separator': ';'}
    """
    read = read_keys(node, _DATA, what="the section 'data'")
    with located(node.place):
        source = _source(read, node, folder)
    return DataSection(source=source, id=read.get("id"), missing=read.get("missing", "error"))


def _source(read: dict[str, Any], node: YamlNode, folder: Path) -> Source:
    path, url = read.get("source"), read.get("url")
    if (path is None) == (url is None):
        raise node.place.error(
            "Say where the table is, in one way: 'source' names a file, a folder or a pattern, "
            "'url' a database."
        )
    if path is not None and is_url(path):
        raise node.place.error(
            "'source' holds an address and not a path. Write the address of a database as 'url', "
            "without a password, and the query beside it."
        )
    if path is not None and path.lower().endswith(_DATABASES):
        url = _sqlite_url(path)
    for key in _DATABASE_KEYS if url is None else _FILE_KEYS:
        if key in read:
            what = "databases" if url is None else "files"
            raise node.place.error(f"{key!r} is about {what}, and the table is in none. Drop it.")
    if url is None:
        written = {key: read[key] for key in _FILE_KEYS if key in read}
        return TableFiles(path=path or "", folder=folder, **written)
    if "query" not in read:
        raise node.place.error(
            "A database needs a 'query': one SELECT, such as SELECT * FROM loans."
        )
    # sorted by id, so that the same rows have the same hash whatever order the server likes
    written = {key: read[key] for key in _DATABASE_KEYS if key in read}
    return DatabaseQuery(url=url, order_by=read.get("id"), folder=folder, **written)


def _sqlite_url(path: str) -> str:
    from urllib.parse import quote

    return f"sqlite:///{quote(path)}"
