"""`$protected`: a word that stands, in an audit file's worldview, for the protected attribute.

A worldview that says ``parents: [$protected]`` follows when the line `protected` is changed, and
can be used for several grounds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mutandis.files.yaml_lines import Entries, Items, Node, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["PROTECTED", "name_protected"]

PROTECTED = "$protected"


def name_protected(node: Node, names: Sequence[str]) -> Node:
    """Put the protected attributes where a part of a file says `$protected`.

    In a list, several attributes take several places.

    Examples
    --------
    >>> from mutandis.files.yaml_lines import read_yaml
    >>> from mutandis.files.yaml_text import plain_data
    >>> written = read_yaml("salary: {equation: linear, parents: [$protected, age]}")
    >>> plain_data(name_protected(written, ["gender", "race"]))["salary"]["parents"]
    ['gender', 'race', 'age']
    """
    if isinstance(node, Entries):
        return replace(
            node, entries={key: name_protected(part, names) for key, part in node.entries.items()}
        )
    if isinstance(node, Items):
        return replace(node, items=tuple(_expanded(node.items, names)))
    return node


def _expanded(items: Sequence[Node], names: Sequence[str]) -> Iterator[Node]:
    for item in items:
        if isinstance(item, Scalar) and item.text == PROTECTED:
            yield from (replace(item, text=name, quoted=True) for name in names)
        else:
            yield name_protected(item, names)
