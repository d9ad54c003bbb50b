"""What is needed to repeat an audit: its settings as an audit file has them, versions, hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.errors import WorldviewError
from mutandis.files.worldview_file import write_worldview
from mutandis.files.yaml_nodes import write_yaml
from mutandis.report.formatting import listed, plain, value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.auditing.plan import Plan
    from mutandis.data.attribute import Attribute
    from mutandis.data.protection import Protection
    from mutandis.report.context import ReportContext

__all__ = ["describe_decision", "facts_of_data", "facts_of_run", "settings_text"]

_TEST = (
    "ks",
    "alpha",
    "tau",
    "primary",
    "interval",
    "adjust",
    "ties",
    "scaling",
    "group_size",
    "direction",
    "test_space",
    "max_distance",
    "min_group",
    "draws",
    "bootstrap",
    "seed",
)


def settings_text(context: ReportContext) -> str:
    """Write the settings as an audit file has them, but for the section on data.

    What no file can hold (a function, a model, an equation around an object) stands in a comment.
    """
    plan = context.plan
    sections: dict[str, Any] = {
        "outcome": {"column": plan.outcome.column, "negative": plain(plan.outcome.negative)},
        "protected": [_protection(each) for each in plan.protections]
        if plan.combine
        else _protection(plan.protection),
    }
    sections |= {"combine": plan.combine} if plan.combine else {}
    sections["attributes"] = {each.name: _attribute(each) for each in plan.attributes}
    text = write_yaml(sections) + _worldview(plan) + _decision(context)
    return text + write_yaml({"test": _test(plan)}) + _preset(plan)


def _protection(protection: Protection) -> dict[str, Any]:
    described: dict[str, Any] = {"attribute": protection.attribute}
    values = plain(list(protection.values))
    if values:
        described["value"] = values[0] if len(values) == 1 else values
    described["reference"] = plain(protection.reference)
    return described | ({"pool": True} if protection.pool else {})


def _attribute(attribute: Attribute) -> Any:
    if not attribute.levels and attribute.weight == 1:
        return attribute.kind.value
    described: dict[str, Any] = {"kind": attribute.kind.value}
    described |= {"levels": plain(list(attribute.levels))} if attribute.levels else {}
    return described | ({"weight": plain(attribute.weight)} if attribute.weight != 1 else {})


def _worldview(plan: Plan) -> str:
    if plan.counterfactuals is not None:
        return "# counterfactuals: supplied as a table\n"
    if plan.worldview is None:
        return "# worldview: none\n"
    try:
        written = write_worldview(plan.worldview)
    except WorldviewError:
        return _comment("worldview", repr(plan.worldview))
    return "worldview:\n" + "".join(f"  {line}\n" for line in written.splitlines())


def _decision(context: ReportContext) -> str:
    from mutandis.decision import Rule

    maker = context.plan.decision
    if maker is None:
        return write_yaml({"decision": {"recorded": True}})
    if isinstance(maker, Rule):
        return write_yaml({"decision": {"rule": maker.formula.text}})
    return _comment("decision", describe_decision(context))


def describe_decision(context: ReportContext) -> str:
    """Say who decides, from what is on record about them: no secrets, and no rows."""
    described = context.result.provenance.settings["decision"]
    if described is None:
        return "none: outcomes on record only"
    if set(described) == {"kind", "rule"}:
        return str(described["rule"])
    further = {name: each for name, each in described.items() if name != "kind" and each}
    told = "; ".join(f"{name} {_told(each)}" for name, each in further.items())
    return f"{described['kind']}: {told}" if told else str(described["kind"])


def _told(each: Any) -> str:
    return listed(each) if isinstance(each, list | tuple) else str(plain(each))


def _comment(name: str, text: str) -> str:
    """Keep to one line: what follows a line break would be read as a setting."""
    return f"# {name}: {' '.join(text.split())}\n"


def _test(plan: Plan) -> dict[str, Any]:
    settings = plan.settings
    chosen = {name: plain(getattr(settings, name)) for name in _TEST}
    chosen["methods"] = [method.name for method in plan.methods]
    return {name: each for name, each in chosen.items() if each is not None}


def _preset(plan: Plan) -> str:
    preset = plan.semantics.preset
    return "" if preset is None else _comment("preset", preset)


def facts_of_data(
    context: ReportContext, source: Mapping[str, Any] | None
) -> tuple[tuple[str, str], ...]:
    """List what identifies the data, with what is known of where it came from."""
    data = context.result.provenance.data
    given = [(str(name), value(each)) for name, each in (source or {}).items() if each is not None]
    facts = [
        ("Rows", f"{data['rows']:,}"),
        ("Complainants", f"{data['complainants']:,}"),
        ("SHA-256 of the columns used", str(data["sha256"])),
    ]
    if data["sha256_counterfactuals"]:
        facts.append(("SHA-256 of the counterfactuals", str(data["sha256_counterfactuals"])))
    return (*given, *facts)


def facts_of_run(context: ReportContext) -> tuple[tuple[str, str], ...]:
    """List what computed the numbers, and how distances were told apart."""
    provenance = context.result.provenance
    facts = [(name, str(version)) for name, version in provenance.versions.items()]
    for part, result in context.parts.items():
        computed = result.provenance.computed
        about = context.by_part(part)
        rules = computed["distance_rules"]
        facts += [(f"Distances on {name}{about}", str(rule)) for name, rule in rules.items()]
        searched = computed["search"]
        facts += [(f"Search, {name}{about}", str(backend)) for name, backend in searched.items()]
    return tuple(facts)
