"""The section 'data' of an audit file: where the table is, and how it is to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import PlainValidator

from mutandis.files.database_urls import is_url
from mutandis.files.sources import DatabaseQuery, Source, TableFiles
from mutandis.files.yaml_lines import Items, Node, located
from mutandis.files.yaml_models import Flag, Name, Settings, choice, name_of, validated

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.data.population import Missing

__all__ = ["DataSection", "read_data_section"]

_DATABASES = (".db", ".sqlite", ".sqlite3")
_OF_FILES = ("separator", "decimal", "encoding", "header", "missing_text")
_OF_DATABASES = ("query", "password_env")


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


def _texts(node: Node) -> tuple[str, ...]:
    """Read one text, or a list of them."""
    items = node.items if isinstance(node, Items) else (node,)
    return tuple(name_of(item) for item in items)


class _Data(Settings):
    source: Name | None = None
    url: Name | None = None
    query: Name | None = None
    password_env: Name | None = None
    id: Name | None = None
    missing: Annotated[str, choice("error", "drop")] = "error"
    separator: Name | None = None
    decimal: Annotated[str, choice(".", ",")] = "."
    encoding: Name | None = None
    header: Flag = False
    missing_text: Annotated[tuple[str, ...], PlainValidator(_texts)] = ()


def read_data_section(node: Node, *, folder: Path) -> DataSection:
    """Read the section; paths in it are relative to a folder.

    Examples
    --------
    >>> from pathlib import Path
    >>> from mutandis.files.yaml_lines import read_yaml
    >>> written = read_yaml("{source: loans.csv, separator: ';', id: person}")
    >>> read_data_section(written, folder=Path("case")).source.describe()
    {'kind': 'files', 'source': 'loans.csv', 'separator': ';'}
    """
    read = validated(_Data, node, what="the section 'data'")
    with located(node.place):
        source = _source(read, node, folder)
    # `missing` is one of the two: the model has seen to it
    return DataSection(
        source=source, id=read.id, missing="drop" if read.missing == "drop" else "error"
    )


def _source(read: _Data, node: Node, folder: Path) -> Source:
    if (read.source is None) == (read.url is None):
        raise node.place.error(
            "Say where the table is, in one way: 'source' names a file, a folder or a pattern, "
            "'url' a database."
        )
    if read.source is not None and is_url(read.source):
        raise node.place.error(
            "'source' holds an address and not a path. Write the address of a database as 'url', "
            "without a password, and the query beside it."
        )
    url = read.url
    if read.source is not None and read.source.lower().endswith(_DATABASES):
        url = _sqlite_url(read.source)
    unused = _OF_DATABASES if url is None else _OF_FILES
    for key in unused:
        if key in read.model_fields_set:
            what = "databases" if url is None else "files"
            raise node.place.error(f"{key!r} is about {what}, and the table is in none. Drop it.")
    if url is None:
        return TableFiles(
            path=read.source or "",
            folder=folder,
            separator=read.separator,
            decimal=read.decimal,
            encoding=read.encoding,
            header=read.header,
            missing_text=read.missing_text,
        )
    if read.query is None:
        raise node.place.error(
            "A database needs a 'query': one SELECT, such as SELECT * FROM loans."
        )
    # sorted by id, so that the same rows have the same hash whatever order the server likes
    return DatabaseQuery(
        url=url,
        query=read.query,
        password_env=read.password_env,
        order_by=read.id,
        folder=folder,
    )


def _sqlite_url(path: str) -> str:
    from urllib.parse import quote

    return f"sqlite:///{quote(path)}"
