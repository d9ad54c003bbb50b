"""An audit in a file: what `mutandis.audit` takes, as YAML whose errors name the line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from mutandis.auditing.plan import MethodName
from mutandis.data.attribute import AttributeKind
from mutandis.data.protection import Protection
from mutandis.evidence.comparison import Direction
from mutandis.evidence.intervals import IntervalName
from mutandis.evidence.multiplicity import Adjustment
from mutandis.evidence.spaces import Combine, ComparedWith, GroupSize
from mutandis.files.decision_section import read_decision_section
from mutandis.files.sources import read_data_section
from mutandis.files.text_files import read_text
from mutandis.files.worldview_file import name_protected, worldview_from_node
from mutandis.files.yaml_nodes import (
    Entries,
    Items,
    Scalar,
    YamlNode,
    located,
    one_of,
    optional,
    read_entries,
    read_flag,
    read_items,
    read_keys,
    read_levels,
    read_name,
    read_node,
    read_number,
    read_value,
    read_values,
    read_whole,
    read_yaml,
)
from mutandis.search.embedding import Scaling
from mutandis.search.ties import Ties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.data.attribute import AttributeDeclaration
    from mutandis.files.sources import Source

__all__ = ["AuditFile", "read_audit_file", "read_audit_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFile:
    """What an audit file says.

    Parameters
    ----------
    source
        Where the table is.
    settings
        The keyword arguments of `mutandis.audit`.
    files
        Further files that it names and that were read: the model that decides.
    """

    source: Source
    settings: Mapping[str, Any]
    files: tuple[Path, ...] = ()


def _whole_numbers(node: YamlNode) -> tuple[int, ...]:
    numbers = []
    for item in read_items(node, "[15, 30]"):
        if not (isinstance(item, Scalar) and type(item.value) is int):
            raise item.place.error("A whole number is needed here.")
        numbers.append(item.value)
    return tuple(numbers)


def _primary(node: YamlNode) -> tuple[str, int]:
    items = read_items(node, "[cst_without, 30]")
    if len(items) != 2 or not (isinstance(items[1], Scalar) and type(items[1].value) is int):
        raise node.place.error("The primary verdict is a method and a k: [cst_without, 30].")
    return read_name(items[0]), items[1].value


def _method_names(node: YamlNode) -> tuple[str, ...]:
    read = one_of(*get_args(MethodName), what="method")
    return tuple(read(item) for item in read_items(node, "[st, cst_without]"))


_read_kind = one_of(*(kind.value for kind in AttributeKind), what="kind of attribute")

_AUDIT = {
    "data": read_node,
    "outcome": read_node,
    "protected": read_node,
    "combine": one_of(*get_args(Combine)),
    "attributes": read_node,
    "worldview": read_node,
    "decision": read_node,
    "test": read_node,
}
_OUTCOME = {"column": read_name, "negative": read_value}
_PROTECTED = {
    "attribute": read_name,
    "value": read_values,
    "reference": read_value,
    "pool": read_flag,
}
_ATTRIBUTE = {"kind": _read_kind, "levels": optional(read_levels), "weight": read_number}
_TEST = {
    "ks": _whole_numbers,
    "alpha": read_number,
    "tau": read_number,
    "methods": _method_names,
    "primary": _primary,
    "interval": one_of(*get_args(IntervalName)),
    "adjust": one_of(*get_args(Adjustment)),
    "ties": one_of(*get_args(Ties)),
    "scaling": one_of(*get_args(Scaling)),
    "group_size": one_of(*get_args(GroupSize)),
    "direction": one_of(*get_args(Direction)),
    "test_space": one_of(*get_args(ComparedWith)),
    "max_distance": read_number,
    "min_group": optional(read_whole),
    "draws": optional(read_whole),
    "bootstrap": read_flag,
    "seed": optional(read_whole),
    "threads": optional(read_whole),
}


def read_audit_file(path: str | Path, *, trust_pickle: bool = False) -> AuditFile:
    """Read an audit file; the table and a model are named relative to the file's folder.

    A pickled model is opened only with `trust_pickle`, which the file cannot say itself.

    Raises
    ------
    SettingsError
        The file cannot be read as it is written; the message names the line and the key.
    """
    path = Path(path)
    return read_audit_text(
        read_text(path), folder=path.parent, name=path.name, trust_pickle=trust_pickle
    )


def read_audit_text(text: str, *, folder: Path, name: str, trust_pickle: bool = False) -> AuditFile:
    """Read the text of an audit file, as it stood in a folder under a name.

    A results folder keeps the text, so that the audit can be repeated without the file.
    """
    root = read_yaml(text, source=name)
    required = ("data", "outcome", "protected", "attributes")
    sections = read_keys(root, _AUDIT, required=required, what="an audit")
    data = read_data_section(sections["data"], folder=folder)
    outcome = read_keys(
        sections["outcome"], _OUTCOME, required=tuple(_OUTCOME), what="the section 'outcome'"
    )
    protected = sections["protected"]
    settings: dict[str, Any] = {
        "id": data.id,
        "missing": data.missing,
        "outcome": outcome["column"],
        "negative": outcome["negative"],
        "protected": [_read_protected(part) for part in protected.items]
        if isinstance(protected, Items)
        else _read_protected(protected),
        "attributes": _read_attributes(sections["attributes"]),
    }
    if "test" in sections:
        # what is not written is left to the defaults of the audit itself
        settings.update(read_keys(sections["test"], _TEST, what="the section 'test'"))
    if "worldview" in sections:
        settings["worldview"] = worldview_from_node(
            name_protected(sections["worldview"], _protected_names(settings["protected"]))
        )
    if "combine" in sections:
        settings["combine"] = sections["combine"]
    # last, since it may load a model
    decided = read_decision_section(
        sections.get("decision"),
        folder=folder,
        columns=_shown_columns(settings),
        trust_pickle=trust_pickle,
    )
    if decided.decision is not None:
        settings["decision"] = decided.decision
    return AuditFile(source=data.source, settings=settings, files=decided.files)


def _protected_names(protected: Protection | list[Protection]) -> list[str]:
    several = [protected] if isinstance(protected, Protection) else protected
    return [each.attribute for each in several]


def _read_protected(node: YamlNode) -> Protection:
    required = ("attribute", "reference")
    found = read_keys(node, _PROTECTED, required=required, what="the section 'protected'")
    with located(node.place):
        return Protection(found.pop("attribute"), **found)


def _read_attributes(node: YamlNode) -> dict[str, AttributeDeclaration]:
    entries = read_entries(node, "the section 'attributes'")
    return {name: _read_attribute(part) for name, part in entries.entries.items()}


def _read_attribute(node: YamlNode) -> Any:
    """Read ``continuous``, or ``{kind: ordinal, levels: [low, high]}``."""
    if isinstance(node, Entries):
        found = read_keys(node, _ATTRIBUTE, required=("kind",), what="an attribute")
        levels = found.get("levels") or ()
        return {"kind": found["kind"], "levels": levels, "weight": found.get("weight", 1.0)}
    return _read_kind(node)


def _shown_columns(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Name what a function or an endpoint is shown if nothing is said: no ids, no outcomes."""
    protected = settings["protected"]
    protections = protected if isinstance(protected, list) else [protected]
    names = [*settings["attributes"], *(each.attribute for each in protections)]
    return tuple(dict.fromkeys(names))
