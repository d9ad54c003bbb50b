"""Plain values written as YAML that reads back the same."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.files.yaml_lines import Entries, Items, Node, plain_value

if TYPE_CHECKING:
    import yaml

__all__ = ["plain_data", "write_yaml"]


def plain_data(node: Node) -> Any:
    """Give what a file says as plain data, for those who read JSON.

    Examples
    --------
    >>> from mutandis.files.yaml_lines import read_yaml
    >>> plain_data(read_yaml("test: {ks: [15, 30], tau: 0.1}"))
    {'test': {'ks': [15, 30], 'tau': 0.1}}
    """
    if isinstance(node, Entries):
        return {name: plain_data(part) for name, part in node.entries.items()}
    if isinstance(node, Items):
        return [plain_data(item) for item in node.items]
    return node.value


def write_yaml(value: Mapping[str, Any]) -> str:
    """Write a mapping as YAML: one line for each innermost mapping, in the order given.

    Values are mappings, lists, text, numbers, truths and None. Text is quoted wherever a reader of
    YAML 1.1 or 1.2 would take it for something else.

    Examples
    --------
    >>> print(write_yaml({"job": {"parents": ["no", "2020", "a: b"], "decimals": 2}}), end="")
    job: {parents: ['no', '2020', 'a: b'], decimals: 2}
    """
    import yaml

    return str(
        yaml.serialize(_node(value), Dumper=yaml.SafeDumper, allow_unicode=True, width=sys.maxsize)
    )


def _node(value: Any) -> yaml.Node:
    import yaml

    if isinstance(value, Mapping):
        innermost = not any(isinstance(part, Mapping) for part in value.values())
        pairs = [(_node(key), _node(part)) for key, part in value.items()]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=innermost)
    if isinstance(value, list | tuple):
        items = [_node(part) for part in value]
        return yaml.SequenceNode("tag:yaml.org,2002:seq", items, flow_style=True)
    if isinstance(value, str):
        # the dumper quotes what YAML 1.1 takes for a number or a truth; `1e5` it does not know
        style = None if isinstance(plain_value(value), str) else "'"
        # within single quotes a line break of any kind would be read as a plain one
        style = style if value.isprintable() else '"'
        return yaml.ScalarNode("tag:yaml.org,2002:str", str(value), style=style)
    if isinstance(value, np.generic):
        return _node(value.item())
    return yaml.SafeDumper(StringIO()).represent_data(value)
