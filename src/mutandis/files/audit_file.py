"""An audit in a file: what `mutandis.plan` takes, as YAML whose errors name the line.

The keys of the file are the arguments of `mutandis.plan`, and its sections the value objects of
`evidence.settings`: they are read by the readers that are defined there.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from mutandis.auditing.plan import Origin, plan
from mutandis.data.attribute import CATEGORICAL, AttributeKind
from mutandis.data.columns import jsonable
from mutandis.data.labels import Labels
from mutandis.data.protection import Protection
from mutandis.data.spaces import Combine
from mutandis.errors import PlanError, WorldviewError
from mutandis.evidence.settings import Evidence, Settings, Similarity, Uncertainty
from mutandis.files.decision_section import read_decision_section
from mutandis.files.sources import read_data_section
from mutandis.files.table_files import hash_file
from mutandis.files.text_files import read_text
from mutandis.files.worldview_file import (
    describe_worldview,
    name_protected,
    worldview_from_node,
    write_worldview,
)
from mutandis.files.yaml_nodes import (
    Entries,
    Items,
    YamlNode,
    YamlPlace,
    located,
    one_of,
    optional,
    plain_data,
    read_entries,
    read_flag,
    read_keys,
    read_levels,
    read_name,
    read_node,
    read_number,
    read_value,
    read_values,
    read_yaml,
    replace_section,
    write_yaml,
)
from mutandis.outcomes.ordered import Ordered
from mutandis.outcomes.score import Score, Worse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mutandis.auditing.counterfactual_table import CounterfactualTable
    from mutandis.auditing.plan import Plan
    from mutandis.data.attribute import Attribute, AttributeDeclaration
    from mutandis.data.population import Population
    from mutandis.decision.maker import DecisionMaker
    from mutandis.files.sources import Source
    from mutandis.scm import Worldview

__all__ = [
    "FILL_IN",
    "SavedInputs",
    "read_arguments",
    "read_plan",
    "read_plan_text",
    "write_doubt",
    "write_plan",
]


def _read_by(each: Field[Any]) -> Callable[[YamlNode], Any]:
    """Give the reader of one setting, or of a section of them, as it is defined."""
    if is_dataclass(each.default):
        return partial(_read_section, type(each.default), f"the section {each.name!r}")
    if each.name == "worldviews":
        return _read_worldviews

    def read(node: YamlNode) -> Any:
        try:
            return each.metadata["read"](each.name, plain_data(node))
        except PlanError as error:
            raise node.place.error(str(error)) from None

    return read


def _read_worldviews(node: YamlNode) -> Any:
    entries = read_entries(node, "the section 'worldviews'")
    return {name: worldview_from_node(part) for name, part in entries.entries.items()}


def _readers(kind: type[Any]) -> dict[str, Callable[[YamlNode], Any]]:
    return {each.name: _read_by(each) for each in fields(kind)}


def _read_section(kind: type[Any], what: str, node: YamlNode) -> Any:
    found = read_keys(node, _readers(kind), what=what)
    with located(node.place):
        return kind(**found)


_KINDS = (*(kind.value for kind in AttributeKind), CATEGORICAL)
_read_kind = one_of(*_KINDS, what="kind of attribute")
_SETTINGS = _readers(Settings)
_AUDIT = {
    "data": read_node,
    "outcome": read_node,
    "protected": read_node,
    "combine": one_of(*get_args(Combine)),
    "attributes": read_node,
    "worldview": read_node,
    "decision": read_node,
    "labels": read_node,
    **_SETTINGS,
    "uncertainty": read_node,
}
_OUTCOME = {
    "column": read_name,
    "negative": read_values,
    "worse": one_of(*get_args(Worse)),
    "best_to_worst": read_levels,
}
_PROTECTED = {
    "attribute": read_name,
    "value": read_values,
    "reference": read_value,
    "pool": read_flag,
}
_LABELS = {each.name: read_node for each in fields(Labels)}
FILL_IN = "FILL IN"
"""What stands in a draft where nothing could be guessed."""
_EDITS = {
    "outcome": ("EDIT 1", "the column with the decision and its unfavourable value belong"),
    "protected": ("EDIT 2", "the protected attribute and its values belong"),
    "attributes": ("EDIT 3", "what people are compared on belongs"),
}
"""The lines that a draft leaves to its reader, by section: their numbers, what belongs there."""
_ATTRIBUTE = {
    "kind": _read_kind,
    "levels": optional(read_levels),
    "weight": read_number,
    "compare_missing": read_flag,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedInputs:
    """What an audit was made from, as a results folder keeps it.

    The counterfactuals take the place of a worldview that no file can hold.
    """

    population: Population
    counterfactuals: CounterfactualTable | None
    decision: DecisionMaker | None


def read_plan(path: str | os.PathLike[str], *, trust_code: bool = False) -> Plan:
    """Read an audit file and its table, and check everything.

    Parameters
    ----------
    path
        The file. Tables and models are named relative to its folder.
    trust_code
        Run the code that the file names: a Python function, a pickled model, or types of a skops
        file that are not known to be harmless. The file cannot say so itself.

    Raises
    ------
    SettingsError
        The file cannot be read as it is written; the message names the line and the key.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mutandis as mm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mm.datasets.loan(n=500).to_csv(Path(folder, "loan.csv"), index=False)
    ...     file = Path(folder, "audit.yaml")
    ...     _ = file.write_text(
    ...         '''
    ... data: {source: loan.csv}
    ... outcome: {column: LoanApproval, negative: -1}
    ... protected: {attribute: Gender, value: 1, reference: 0}
    ... attributes: {AnnualSalary: continuous, AccountBalance: continuous}
    ... ks: [15]
    ... '''
    ...     )
    ...     print(mm.read_plan(file))
    Plan of an audit of 498 decisions on the status 'Gender'; methods st; k = 15
    """
    path = Path(path)
    return read_plan_text(
        read_text(path), folder=path.parent, name=path.name, trust_code=trust_code
    )


def read_plan_text(
    text: str,
    *,
    folder: Path,
    name: str,
    trust_code: bool = False,
    saved: SavedInputs | None = None,
) -> Plan:
    """Read the text of an audit file, as it stood in a folder under a name.

    With inputs that a results folder has `saved`, nothing else is loaded.
    """
    source, files, arguments = read_arguments(
        text, folder=folder, name=name, trust_code=trust_code, saved=saved
    )
    described = source.describe()
    if saved is None:
        # before the table is read: a change in between is noticed by the next who verifies
        described["sha256"] = source.sha256()
    labels = arguments.pop("labels", None)
    planned = plan(source if saved is None else saved.population, **arguments)
    if labels is not None:
        with located(f"{name}, section 'labels'"):
            planned = planned.with_labels(labels)
    origin = Origin(
        text=text,
        name=name,
        folder=folder,
        source=described,
        files={Path(os.path.relpath(path, folder)).as_posix(): hash_file(path) for path in files},
    )
    return replace(planned, origin=origin)


def read_arguments(
    text: str,
    *,
    folder: Path,
    name: str,
    trust_code: bool = False,
    saved: SavedInputs | None = None,
) -> tuple[Source, tuple[Path, ...], dict[str, Any]]:
    """Read where the table is, which further files were read, and the arguments of `plan`.

    Beside these, `labels` has the labels, if there are any.
    """
    root = read_entries(read_yaml(text, source=name), "an audit")
    sections = read_keys(
        root,
        _AUDIT,
        required=("data", "outcome", "protected", "attributes"),
        what="an audit",
    )
    if "tau" in sections:
        try:  # what is allowed depends on the measure
            Settings(tau=sections["tau"], evidence=sections.get("evidence", Evidence()))
        except PlanError as error:
            raise root.entries["tau"].place.error(str(error)) from None
    _check_filled_in(sections)
    source, rows = read_data_section(sections["data"], folder=folder)
    outcome = _read_outcome(sections["outcome"])
    protected = sections["protected"]
    several = isinstance(protected, Items)
    protections = [_read_protected(part) for part in (protected.items if several else [protected])]
    statuses = [each.attribute for each in protections]
    attributes = _read_attributes(sections["attributes"])
    arguments: dict[str, Any] = {
        **outcome,
        "protected": protections if several else protections[0],
        "attributes": attributes,
        "combine": sections.get("combine"),
        **rows,
        **{name: sections[name] for name in _SETTINGS if name in sections},
    }
    if "labels" in sections:
        arguments["labels"] = _read_labels(sections["labels"])
    if "uncertainty" in sections:
        doubt = name_protected(sections["uncertainty"], statuses)
        arguments["uncertainty"] = _SETTINGS["uncertainty"](doubt)
    if "worldview" in sections:
        arguments["worldview"] = worldview_from_node(
            name_protected(sections["worldview"], statuses)
        )
    if saved is not None:
        arguments["decision"] = saved.decision
        if "worldview" not in sections:
            arguments["counterfactuals"] = saved.counterfactuals
        return source, (), arguments
    # last, since it may load a model; it is shown no ids and no outcomes unless it asks for them
    decided = read_decision_section(
        sections.get("decision"),
        folder=folder,
        columns=tuple(dict.fromkeys([*attributes, *statuses])),
        trust_code=trust_code,
        scores=isinstance(outcome["outcome"], Score),
    )
    return source, decided.files, {**arguments, "decision": decided.decision}


def _check_filled_in(sections: Mapping[str, Any]) -> None:
    """Say which of the lines that a draft leaves to its reader are still to be filled in."""
    for name, (edit, what) in _EDITS.items():
        place = _find_blank(sections[name])
        if place is not None:
            raise place.error(f"Fill in {edit}: {FILL_IN!r} still stands where {what}.")


def _find_blank(node: YamlNode) -> YamlPlace | None:
    if isinstance(node, Entries):
        if FILL_IN in node.keys:
            return node.keys[FILL_IN]
        parts: Iterable[YamlNode] = node.entries.values()
    elif isinstance(node, Items):
        parts = node.items
    else:
        return node.place if node.text == FILL_IN else None
    return next(filter(None, map(_find_blank, parts)), None)


_OUTCOME_KINDS = {
    "negative": "'negative' is the unfavourable value",
    "worse": "'worse' the end of a score that is worse",
    "best_to_worst": "'best_to_worst' the order of all values",
}


def _read_outcome(node: YamlNode) -> dict[str, Any]:
    """Read ``{column: granted, negative: 'no'}``, or what is worse of a score or an order."""
    required = ("column",)
    found = read_keys(node, _OUTCOME, required=required, what="the section 'outcome'")
    kinds = [each for each in ("negative", "worse", "best_to_worst") if each in found]
    if len(kinds) > 1:
        raise node.place.error(
            f"{kinds[0]!r} and {kinds[1]!r} contradict each other: {_OUTCOME_KINDS[kinds[0]]}, and "
            f"{_OUTCOME_KINDS[kinds[1]]}. Keep one of them."
        )
    if not kinds:
        raise node.place.error(
            "'negative' is missing in the section 'outcome': the unfavourable value. Where the "
            "decision is a number, write worse: higher, or worse: lower; where its values have an "
            "order, list them all: best_to_worst: [approved, on conditions, refused]."
        )
    if "worse" in found:
        return {"outcome": Score(found["column"], worse=found["worse"])}
    if "best_to_worst" in found:
        with located(node.place):
            levels = found["best_to_worst"]
            return {"outcome": Ordered(found["column"], best_to_worst=levels)}
    return {"outcome": found["column"], "negative": found["negative"]}


def _read_protected(node: YamlNode) -> Protection:
    required = ("attribute", "reference")
    found = read_keys(node, _PROTECTED, required=required, what="the section 'protected'")
    with located(node.place):
        return Protection(found.pop("attribute"), **found)


def _read_labels(node: YamlNode) -> Labels:
    """Read the words of documents: all of them are texts, whatever they look like."""

    def read(part: YamlNode) -> Any:
        if isinstance(part, Entries):
            return {key: read(each) for key, each in part.entries.items()}
        return read_name(part, "a label")

    found = read_keys(node, _LABELS, what="the section 'labels'")
    with located(node.place):
        return Labels(**{key: read(part) for key, part in found.items()})


def _read_attributes(node: YamlNode) -> dict[str, AttributeDeclaration]:
    entries = read_entries(node, "the section 'attributes'")
    return {name: _read_attribute(part) for name, part in entries.entries.items()}


def _read_attribute(node: YamlNode) -> Any:
    """Read ``continuous``, or ``{kind: ordinal, levels: [low, high]}``."""
    if isinstance(node, Entries):
        found = read_keys(node, _ATTRIBUTE, required=("kind",), what="an attribute")
        levels = found.get("levels") or ()
        declared = {"kind": found["kind"], "levels": levels, "weight": found.get("weight", 1.0)}
        return declared | {key: found[key] for key in ("compare_missing",) if key in found}
    return _read_kind(node)


def write_plan(planned: Plan) -> str:
    """Write a plan as an audit file has it, but for the section on data.

    What no file can hold (a function, a model, an equation around an object) stands in a comment.
    """
    sections: dict[str, Any] = {
        "outcome": planned.outcome.declaration,
        "protected": [_protection(each) for each in planned.protections]
        if planned.combine
        else _protection(planned.protections[0]),
    }
    sections |= {"combine": planned.combine} if planned.combine else {}
    sections["attributes"] = {each.name: _attribute(each) for each in planned.attributes}
    return (
        write_yaml(jsonable(sections))
        + _worldview(planned)
        + _decision(planned)
        + write_yaml(jsonable(_settings(planned.settings)))
        + (write_yaml({"labels": planned.labels.as_dict()}) if planned.labels else "")
        + _unwritten_worldviews(planned)
    )


def _settings(section: Any) -> dict[str, Any]:
    """Give the settings of a section that are not None, sections inside it likewise."""
    written = {}
    for each in fields(section):
        value = getattr(section, each.name)
        if isinstance(value, Similarity | Evidence | Uncertainty):
            value = _settings(value)
        if each.name == "worldviews":
            value = _describe_worldviews(value) or None
        if value is not None:
            written[each.name] = list(value) if isinstance(value, tuple) else value
    return written


def _describe_worldviews(worldviews: Mapping[str, Worldview] | None) -> dict[str, Any]:
    """Give those worldviews that a file can hold."""
    described = {}
    for name, each in (worldviews or {}).items():
        with suppress(WorldviewError):
            described[name] = describe_worldview(each)
    return described


def _unwritten_worldviews(planned: Plan) -> str:
    others = planned.settings.uncertainty.worldviews or {}
    lacking = others.keys() - _describe_worldviews(others).keys()
    return "".join(_comment(f"worldview {n!r}", repr(others[n])) for n in others if n in lacking)


def write_doubt(text: str, planned: Plan) -> str:
    """Write what is doubted into the text of an audit file, where the plan says more than it."""
    doubt = planned.settings.uncertainty
    written = plain_data(read_yaml(text)).get("uncertainty") or {}
    others = {**_describe_worldviews(doubt.worldviews), **(written.get("worldviews") or {})}
    # tipping points are found wherever worldviews are compared
    kept = {name: value for name, value in written.items() if name != "tipping" or value}
    wanted = kept | ({"variants": True} if doubt.variants else {})
    wanted |= {"worldviews": others} if others else {}
    return text if wanted == written else replace_section(text, "uncertainty", wanted)


def _protection(protection: Protection) -> dict[str, Any]:
    described: dict[str, Any] = {"attribute": protection.attribute}
    values = list(protection.values)
    if values:
        described["value"] = values[0] if len(values) == 1 else values
    described["reference"] = protection.reference
    return described | ({"pool": True} if protection.pool else {})


def _attribute(attribute: Attribute) -> Any:
    if not attribute.levels and attribute.weight == 1 and not attribute.compare_missing:
        return attribute.kind.value
    described: dict[str, Any] = {"kind": attribute.kind.value}
    described |= {"levels": list(attribute.levels)} if attribute.levels else {}
    described |= {"weight": attribute.weight} if attribute.weight != 1 else {}
    return described | ({"compare_missing": True} if attribute.compare_missing else {})


def _worldview(planned: Plan) -> str:
    if planned.counterfactuals is not None:
        return "# counterfactuals: supplied as a table\n"
    if planned.worldview is None:
        return "# worldview: none\n"
    try:
        written = write_worldview(planned.worldview)
    except WorldviewError:
        return _comment("worldview", repr(planned.worldview))
    return "worldview:\n" + "".join(f"  {line}\n" for line in written.splitlines())


def _decision(planned: Plan) -> str:
    from mutandis.decision.maker import describe_maker

    maker = planned.decision
    if maker is None:
        return write_yaml({"decision": {"recorded": True}})
    described = describe_maker(maker)
    if set(described) == {"kind", "rule"}:  # also of results, which hold the description alone
        return write_yaml({"decision": {"rule": described["rule"]}})
    return _comment("decision", "; ".join(f"{name} {each}" for name, each in described.items()))


def _comment(name: str, text: str) -> str:
    """Keep to one line: what follows a line break would be read as a setting."""
    return f"# {name}: {' '.join(text.split())}\n"
