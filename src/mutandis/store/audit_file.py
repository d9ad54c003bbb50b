"""An audit in a file: a plan from YAML, who decides in it, and YAML from a plan."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutandis.auditing.plan import Origin, plan
from mutandis.config.fields import FileSection, fault, given, inside, placed
from mutandis.config.schema import kind_of_maker, read_audit_file
from mutandis.config.worldview import describe_worldview
from mutandis.config.yaml import read_text, read_yaml, write_yaml
from mutandis.data.columns import jsonable
from mutandis.data.formula import Formula
from mutandis.decision.maker import DecisionContext, describe_maker
from mutandis.decision.model import RelabelledMaker, with_threshold
from mutandis.decision.rule import FormulaScores, Rule
from mutandis.errors import WorldviewError
from mutandis.registry import find
from mutandis.store.files import hash_file
from mutandis.store.tables import open_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.auditing.counterfactual_table import CounterfactualTable
    from mutandis.auditing.plan import Plan
    from mutandis.config.schema import DecisionSection
    from mutandis.data.attribute import Attribute
    from mutandis.data.population import Population
    from mutandis.data.protection import Protection
    from mutandis.decision.maker import DecisionMaker, Made
    from mutandis.scm import Worldview
    from mutandis.store.tables import Source

__all__ = [
    "Decider",
    "SavedInputs",
    "added_sections",
    "load_decision",
    "read_arguments",
    "read_plan",
    "read_plan_text",
    "write_plan",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedInputs:
    """What an audit was made from, as a results folder keeps it."""

    population: Population
    counterfactuals: CounterfactualTable | None  # where no file can hold the worldview
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
    added: Mapping[str, Any] | None = None,
    saved: SavedInputs | None = None,
) -> Plan:
    """Read the text of an audit file, as it was in a folder under a name.

    Sections that were `added` to an audit replace those of the file. With inputs that a results
    folder has `saved`, nothing else is loaded.
    """
    source, files, arguments = read_arguments(
        text, folder=folder, name=name, trust_code=trust_code, added=added, saved=saved
    )
    described = source.describe()
    if saved is None:
        # before the table is read: a change in between is noticed by the next who verifies
        described["sha256"] = source.sha256()
    labels = arguments.pop("labels", None)
    planned = plan(source if saved is None else saved.population, **arguments)
    if labels is not None:
        with placed(read_yaml(text, source=name), "labels"):
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
    added: Mapping[str, Any] | None = None,
    saved: SavedInputs | None = None,
) -> tuple[Source, tuple[Path, ...], dict[str, Any]]:
    """Read where the table is, which further files were read, and the arguments of `plan`.

    Next to these, `labels` has the labels, if there are any.
    """
    document = read_yaml(text, source=name)
    if added:
        document.data.update(added)
    written = read_audit_file(document)
    with placed(document, "data"):
        source = open_source(written.data, folder=folder)
    arguments = {
        each.name: getattr(written, each.name)
        for each in fields(written)
        if each.name in document.data and each.name not in {"data", "decision"}
    }
    arguments |= {"id": written.data.id, "missing": written.data.missing, **written.outcome}
    if saved is not None:
        arguments["decision"] = saved.decision
        if written.worldview is None:
            arguments["counterfactuals"] = saved.counterfactuals
        return source, (), arguments
    protected = written.protected
    statuses = protected if isinstance(protected, list) else [protected]
    columns = dict.fromkeys([*written.attributes, *(each.attribute for each in statuses)])
    # last, since it may load a model; it is shown no ids and no outcomes unless it asks for them
    with placed(document, "decision"):
        decider = load_decision(
            written.decision,
            folder=folder,
            columns=tuple(columns),
            trust_code=trust_code,
            scores=getattr(written.outcome["outcome"], "numeric", False),
        )
    return source, decider.files, {**arguments, "decision": decider.maker}


# --- who decides ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Who decides, as `mutandis.plan` takes it (None: only recorded decisions), and its files."""

    maker: DecisionMaker | str | None = None
    files: tuple[Path, ...] = ()


def load_decision(
    section: DecisionSection | None,
    *,
    folder: Path,
    columns: tuple[str, ...],
    trust_code: bool,
    scores: bool,
) -> Decider:
    """Load the decision maker and the files that it names, relative to a folder.

    `columns` is what functions and endpoints get if the section does not say: the attributes that
    people are compared on, then the protected ones; no ids and no outcomes. Only the caller can
    trust code, not the file.
    """
    if section is None or section.recorded:
        return Decider()
    written = _plain(section)
    if scores and "threshold" in written:
        raise fault(
            "The outcome is a score, which is compared as it is. Leave the threshold out.",
            "threshold",
        )
    kind = kind_of_maker(written)
    context = DecisionContext(
        folder=folder,
        columns=columns,
        trust_code=trust_code,
        scores=scores or "threshold" in written,
    )
    with inside(kind):
        if kind == "rule":
            made: Decider | Made = Decider(maker=_check_rule(written, scores=scores))
        else:
            made = find("decision", kind)(written, context)
    finish = _with_threshold if "threshold" in written else _with_answers
    return Decider(maker=finish(made.maker, written), files=made.files)


def _plain(section: FileSection) -> dict[str, Any]:
    """Return what is written in a section, and in those inside it, as plain data."""
    found = given(section)
    return {k: _plain(v) if isinstance(v, FileSection) else v for k, v in found.items()}


def _check_rule(written: dict[str, Any], *, scores: bool) -> str:
    """Parse the rule here, where the line of an error is known."""
    text: str = written["rule"]
    formula = Formula.parse(text)
    if scores:
        FormulaScores(formula)
    elif "threshold" not in written:
        Rule.parse(text)
    return text


def _with_threshold(maker: Any, written: Mapping[str, Any]) -> Any:
    if "answers" in written:
        raise fault(
            "Answers in words and a threshold for scores do not go together. Keep one of them.",
            "answers",
        )
    keys = ("favourable", "score_of")
    chosen = {key: written[key] for key in keys if key in written}
    with inside("threshold"):
        return with_threshold(maker, written["threshold"], **chosen)


def _with_answers(maker: Any, written: Mapping[str, Any]) -> Any:
    for key in ("favourable", "score_of"):
        if key in written:
            raise fault(
                f"{key!r} is about scores, and there is no threshold to compare them with. "
                "Write threshold: 0.5, or leave it out.",
                key,
            )
    if "answers" not in written:
        return maker
    with inside("answers"):
        return RelabelledMaker(maker=maker, **written["answers"])


# --- writing --------------------------------------------------------------------------------------


def added_sections(text: str, planned: Plan) -> dict[str, Any]:
    """Return the section `uncertainty` of a plan that asks for more than its audit file says."""
    doubt = planned.settings.uncertainty
    written = read_yaml(text).data.get("uncertainty") or {}
    others = {**_worldviews(doubt.worldviews), **(written.get("worldviews") or {})}
    wanted = written | ({"variants": True} if doubt.variants else {})
    wanted |= {"worldviews": others} if others else {}
    if wanted == written:
        return {}
    # tipping points are found wherever worldviews are compared
    wanted = {name: value for name, value in wanted.items() if name != "tipping" or value}
    return {"uncertainty": jsonable(wanted)}


def write_plan(planned: Plan) -> str:
    """Write a plan as an audit file has it, except for the section on data.

    What no file can hold (a function, a model, an equation around an object) is in a comment.
    """
    protected = [_protection(each) for each in planned.protections]
    sections: dict[str, Any] = {
        "outcome": planned.outcome.declaration,
        "protected": protected if planned.combine else protected[0],
        **({"combine": planned.combine} if planned.combine else {}),
        "attributes": {each.name: _attribute(each) for each in planned.attributes},
    }
    others = planned.settings.uncertainty.worldviews or {}
    lacking = others.keys() - _worldviews(others).keys()
    return (
        write_yaml(jsonable(sections))
        + _worldview(planned)
        + _decision(planned)
        + write_yaml(jsonable(_settings(planned.settings)))
        + (write_yaml({"labels": planned.labels.as_dict()}) if planned.labels else "")
        + "".join(_comment(f"worldview {n!r}", repr(others[n])) for n in others if n in lacking)
    )


def _settings(section: Any) -> dict[str, Any]:
    """Return the settings of a section that are not None, and those of sections inside it."""
    written = {}
    for each in fields(section):
        value = getattr(section, each.name)
        if is_dataclass(value):
            value = _settings(value)
        if each.name == "worldviews":
            value = _worldviews(value) or None
        if value is not None:
            written[each.name] = list(value) if isinstance(value, tuple) else value
    return written


def _worldviews(worldviews: Mapping[str, Worldview] | None) -> dict[str, Any]:
    """Describe those worldviews that a file can hold."""
    described = {}
    for name, each in (worldviews or {}).items():
        with suppress(WorldviewError):
            described[name] = describe_worldview(each)
    return described


def _protection(protection: Protection) -> dict[str, Any]:
    values = list(protection.values)
    value = {"value": values[0] if len(values) == 1 else values} if values else {}
    pool = {"pool": True} if protection.pool else {}
    return {
        "attribute": protection.attribute,
        **value,
        "reference": protection.reference,
        **pool,
    }


def _attribute(attribute: Attribute) -> Any:
    further: dict[str, Any] = {
        **({"levels": list(attribute.levels)} if attribute.levels else {}),
        **({"weight": attribute.weight} if attribute.weight != 1 else {}),
        **({"compare_missing": True} if attribute.compare_missing else {}),
    }
    return {"kind": attribute.kind.value, **further} if further else attribute.kind.value


def _worldview(planned: Plan) -> str:
    if planned.counterfactuals is not None:
        return "# counterfactuals: supplied as a table\n"
    if planned.worldview is None:
        return "# worldview: none\n"
    try:
        return write_yaml({"worldview": describe_worldview(planned.worldview)})
    except WorldviewError:
        return _comment("worldview", repr(planned.worldview))


def _decision(planned: Plan) -> str:
    if planned.decision is None:
        return write_yaml({"decision": {"recorded": True}})
    described = describe_maker(planned.decision)
    if set(described) == {"kind", "rule"}:  # also of results, which hold the description alone
        return write_yaml({"decision": {"rule": described["rule"]}})
    return _comment("decision", "; ".join(f"{name} {each}" for name, each in described.items()))


def _comment(name: str, text: str) -> str:
    """Keep to one line: text after a line break would be read as a setting."""
    return f"# {name}: {' '.join(text.split())}\n"
