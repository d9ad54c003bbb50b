"""Counterfactual situation testing: evidence of individual discrimination in decisions.

>>> import mutandis as mm
>>> mm.Protection("Gender", value=1, reference=0).reference
0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mutandis import datasets
    from mutandis.auditing.audit import Audit
    from mutandis.auditing.call import audit
    from mutandis.auditing.intersections import audit_intersections
    from mutandis.auditing.placebo import Placebo
    from mutandis.auditing.plan import draft_plan as plan
    from mutandis.auditing.worldview_comparison import compare_worldviews
    from mutandis.causal import (
        Additive,
        Categorical,
        Count,
        Diagnosis,
        Latent,
        Linear,
        Ordinal,
        Stated,
        Worldview,
        check_worldview,
        sample_latent,
        worldview_from_dowhy,
    )
    from mutandis.data.attribute import Attribute, AttributeKind
    from mutandis.data.population import Population
    from mutandis.data.protection import Protection
    from mutandis.errors import MutandisError, MutandisWarning
    from mutandis.evidence.case import Case
    from mutandis.evidence.power import analyse_power as power
    from mutandis.evidence.verdict import Verdict
    from mutandis.files.graph_files import worldview_from_graph
    from mutandis.files.worldview_file import read_worldview, write_worldview
    from mutandis.pictures.worldview import draw_worldview

__version__ = "0.1.0"

__all__ = [
    "Additive",
    "Attribute",
    "AttributeKind",
    "Audit",
    "Case",
    "Categorical",
    "Count",
    "Diagnosis",
    "Latent",
    "Linear",
    "MutandisError",
    "MutandisWarning",
    "Ordinal",
    "Placebo",
    "Population",
    "Protection",
    "Stated",
    "Verdict",
    "Worldview",
    "__version__",
    "audit",
    "audit_intersections",
    "check_worldview",
    "compare_worldviews",
    "datasets",
    "draw_worldview",
    "plan",
    "power",
    "read_worldview",
    "sample_latent",
    "worldview_from_dowhy",
    "worldview_from_graph",
    "write_worldview",
]

# where each public name lives; imported when first asked for, so that `import mutandis` is instant
_HOMES = {
    "Additive": "mutandis.causal",
    "Attribute": "mutandis.data.attribute",
    "AttributeKind": "mutandis.data.attribute",
    "Audit": "mutandis.auditing.audit",
    "Case": "mutandis.evidence.case",
    "Categorical": "mutandis.causal",
    "Count": "mutandis.causal",
    "Diagnosis": "mutandis.causal",
    "Stated": "mutandis.causal",
    "Latent": "mutandis.causal",
    "Linear": "mutandis.causal",
    "MutandisError": "mutandis.errors",
    "MutandisWarning": "mutandis.errors",
    "Ordinal": "mutandis.causal",
    "Placebo": "mutandis.auditing.placebo",
    "Population": "mutandis.data.population",
    "Protection": "mutandis.data.protection",
    "Verdict": "mutandis.evidence.verdict",
    "Worldview": "mutandis.causal",
    "audit": "mutandis.auditing.call",
    "audit_intersections": "mutandis.auditing.intersections",
    "check_worldview": "mutandis.causal",
    "compare_worldviews": "mutandis.auditing.worldview_comparison",
    "draw_worldview": "mutandis.pictures.worldview",
    "plan": "mutandis.auditing.plan:draft_plan",
    "power": "mutandis.evidence.power:analyse_power",
    "read_worldview": "mutandis.files.worldview_file",
    "sample_latent": "mutandis.causal",
    "worldview_from_dowhy": "mutandis.causal",
    "worldview_from_graph": "mutandis.files.graph_files",
    "write_worldview": "mutandis.files.worldview_file",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562)."""
    from importlib import import_module

    if name == "datasets":
        return import_module("mutandis.datasets")
    if name not in _HOMES:
        raise AttributeError(f"module 'mutandis' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
