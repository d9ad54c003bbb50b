"""An audit in a file: what `mutandis.audit` takes, as YAML whose errors name the line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import PlainValidator

from mutandis.auditing.plan import MethodName
from mutandis.data.attribute import AttributeKind
from mutandis.data.protection import Protection
from mutandis.evidence.comparison import Direction
from mutandis.evidence.group_size import GroupSize
from mutandis.evidence.intervals import IntervalName
from mutandis.evidence.joint_spaces import Combine, ComparedWith
from mutandis.evidence.multiplicity import Adjustment
from mutandis.files.decision_section import read_decision_section
from mutandis.files.placeholder import name_protected
from mutandis.files.sources_section import read_data_section
from mutandis.files.text_files import read_text
from mutandis.files.worldview_file import worldview_from_node
from mutandis.files.yaml_lines import Entries, Items, Node, Scalar, located, read_yaml, shown
from mutandis.files.yaml_models import (
    AnyNode,
    Flag,
    Levels,
    Name,
    Settings,
    Whole,
    choice,
    entries_of,
    items_of,
    listed,
    name_of,
    nearest,
    number_of,
    validated,
    value_of,
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


def _values(node: Node) -> Any:
    """Read one value, or a list of them."""
    return [value_of(item) for item in node.items] if isinstance(node, Items) else value_of(node)


def _whole_numbers(node: Node) -> tuple[int, ...]:
    numbers = []
    for item in items_of(node, "[15, 30]"):
        if not (isinstance(item, Scalar) and type(item.value) is int):
            raise item.place.error("A whole number is needed here.")
        numbers.append(item.value)
    return tuple(numbers)


def _primary(node: Node) -> tuple[str, int]:
    items = items_of(node, "[cst_without, 30]")
    if len(items) != 2 or not (isinstance(items[1], Scalar) and type(items[1].value) is int):
        raise node.place.error("The primary verdict is a method and a k: [cst_without, 30].")
    return name_of(items[0]), items[1].value


def _method_names(node: Node) -> tuple[str, ...]:
    names = tuple(name_of(item) for item in items_of(node, "[st, cst_without]"))
    for item, name in zip(items_of(node, ""), names, strict=True):
        if name not in get_args(MethodName):
            allowed = get_args(MethodName)
            raise item.place.error(
                f"{shown(name)} is no method.{nearest(name, allowed)} It can be {listed(allowed)}."
            )
    return names


_Number = Annotated[float, PlainValidator(number_of)]
_Value = Annotated[Any, PlainValidator(value_of)]
_Values = Annotated[Any, PlainValidator(_values)]


class _Audit(Settings):
    data: AnyNode
    outcome: AnyNode
    protected: AnyNode
    combine: Annotated[str | None, choice(*get_args(Combine))] = None
    attributes: AnyNode
    worldview: AnyNode = None
    decision: AnyNode = None
    test: AnyNode = None


class _Outcome(Settings):
    column: Name
    negative: _Value


class _Protected(Settings):
    attribute: Name
    value: _Values = None
    reference: _Value
    pool: Flag = False


class _Attribute(Settings):
    kind: Annotated[str, choice(*(kind.value for kind in AttributeKind))]
    levels: Levels = None
    weight: _Number = 1.0


class _Test(Settings):
    ks: Annotated[tuple[int, ...], PlainValidator(_whole_numbers)] = (15, 30, 50, 100)
    alpha: _Number = 0.05
    tau: _Number = 0.0
    methods: Annotated[tuple[str, ...] | None, PlainValidator(_method_names)] = None
    primary: Annotated[tuple[str, int] | None, PlainValidator(_primary)] = None
    interval: Annotated[str | None, choice(*get_args(IntervalName))] = None
    adjust: Annotated[str | None, choice(*get_args(Adjustment))] = None
    ties: Annotated[str | None, choice(*get_args(Ties))] = None
    scaling: Annotated[str | None, choice(*get_args(Scaling))] = None
    group_size: Annotated[str | None, choice(*get_args(GroupSize))] = None
    direction: Annotated[str | None, choice(*get_args(Direction))] = None
    test_space: Annotated[str | None, choice(*get_args(ComparedWith))] = None
    max_distance: Annotated[float | None, PlainValidator(number_of)] = None
    min_group: Whole = None
    draws: Whole = None
    bootstrap: Flag = False
    seed: Whole = None
    threads: Whole = None


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
    sections = validated(_Audit, root, what="an audit")
    data = read_data_section(sections.data, folder=folder)
    outcome = validated(_Outcome, sections.outcome, what="the section 'outcome'")
    settings: dict[str, Any] = {
        "id": data.id,
        "missing": data.missing,
        "outcome": outcome.column,
        "negative": outcome.negative,
        "protected": [_read_protected(part) for part in sections.protected.items]
        if isinstance(sections.protected, Items)
        else _read_protected(sections.protected),
        "attributes": _read_attributes(sections.attributes),
        **_read_test(sections.test),
    }
    if sections.worldview is not None:
        settings["worldview"] = worldview_from_node(
            name_protected(sections.worldview, _protected_names(settings["protected"]))
        )
    if sections.combine is not None:
        settings["combine"] = sections.combine
    # last, since it may load a model
    decided = read_decision_section(
        sections.decision,
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


def _read_protected(node: Node) -> Protection:
    read = validated(_Protected, node, what="the section 'protected'")
    with located(node.place):
        return Protection(
            read.attribute, value=read.value, reference=read.reference, pool=read.pool
        )


def _read_attributes(node: Node) -> dict[str, AttributeDeclaration]:
    entries = entries_of(node, "the section 'attributes'")
    return {name: _read_attribute(part) for name, part in entries.entries.items()}


def _read_attribute(node: Node) -> Any:
    """Read ``continuous``, or ``{kind: ordinal, levels: [low, high]}``."""
    if isinstance(node, Entries):
        read = validated(_Attribute, node, what="an attribute")
        return {"kind": read.kind, "levels": read.levels or (), "weight": read.weight}
    word = name_of(node, "a kind of attribute")
    allowed = tuple(kind.value for kind in AttributeKind)
    if word not in allowed:
        raise node.place.error(
            f"{shown(word)} is no kind of attribute.{nearest(word, allowed)} It can be "
            f"{listed(allowed)}."
        )
    return word


def _shown_columns(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Name what a function or an endpoint is shown if nothing is said: no ids, no outcomes."""
    protected = settings["protected"]
    protections = protected if isinstance(protected, list) else [protected]
    names = [*settings["attributes"], *(each.attribute for each in protections)]
    return tuple(dict.fromkeys(names))


def _read_test(node: Node | None) -> dict[str, Any]:
    if node is None:
        return {}
    read = validated(_Test, node, what="the section 'test'")
    # what is not written is left to the defaults of the audit itself
    return {name: value for name, value in read if name in read.model_fields_set}
