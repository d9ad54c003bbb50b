"""What is needed to repeat an audit: its settings as an audit file has them, versions, hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.report.formatting import listed, plain, value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.report.context import ReportContext

__all__ = ["describe_decision", "facts_of_data", "facts_of_run"]


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
