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
    from mutandis.auditing.case import Case
    from mutandis.auditing.intersections import audit_intersections
    from mutandis.auditing.noise_floor import NoiseFloor
    from mutandis.auditing.placebo import Placebo
    from mutandis.auditing.plan import Plan, audit, plan
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
    )
    from mutandis.data.attribute import Attribute, AttributeKind
    from mutandis.data.population import Population
    from mutandis.data.protection import Protection
    from mutandis.errors import MutandisError, MutandisWarning
    from mutandis.evidence.findings import Verdict
    from mutandis.evidence.power import analyse_power as power
    from mutandis.evidence.settings import Evidence, Similarity, Uncertainty
    from mutandis.files.audit_file import read_plan
    from mutandis.files.saved_audit import open_results
    from mutandis.files.verification import verify_results

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
    "Evidence",
    "Latent",
    "Linear",
    "MutandisError",
    "MutandisWarning",
    "NoiseFloor",
    "Ordinal",
    "Placebo",
    "Plan",
    "Population",
    "Protection",
    "Similarity",
    "Stated",
    "Uncertainty",
    "Verdict",
    "Worldview",
    "__version__",
    "audit",
    "audit_intersections",
    "compare_worldviews",
    "datasets",
    "open_results",
    "plan",
    "power",
    "read_plan",
    "verify_results",
]

# where each public name lives; imported when first asked for, so that `import mutandis` is instant
_HOMES = {
    "Additive": "mutandis.causal",
    "Attribute": "mutandis.data.attribute",
    "AttributeKind": "mutandis.data.attribute",
    "Audit": "mutandis.auditing.audit",
    "Case": "mutandis.auditing.case",
    "Categorical": "mutandis.causal",
    "Count": "mutandis.causal",
    "Diagnosis": "mutandis.causal",
    "Stated": "mutandis.causal",
    "Latent": "mutandis.causal",
    "Linear": "mutandis.causal",
    "MutandisError": "mutandis.errors",
    "MutandisWarning": "mutandis.errors",
    "Evidence": "mutandis.evidence.settings",
    "Ordinal": "mutandis.causal",
    "Plan": "mutandis.auditing.plan",
    "Similarity": "mutandis.evidence.settings",
    "Uncertainty": "mutandis.evidence.settings",
    "open_results": "mutandis.files.saved_audit",
    "read_plan": "mutandis.files.audit_file",
    "verify_results": "mutandis.files.verification",
    "NoiseFloor": "mutandis.auditing.noise_floor",
    "Placebo": "mutandis.auditing.placebo",
    "Population": "mutandis.data.population",
    "Protection": "mutandis.data.protection",
    "Verdict": "mutandis.evidence.findings",
    "Worldview": "mutandis.causal",
    "audit": "mutandis.auditing.plan",
    "audit_intersections": "mutandis.auditing.intersections",
    "compare_worldviews": "mutandis.auditing.worldview_comparison",
    "plan": "mutandis.auditing.plan",
    "power": "mutandis.evidence.power:analyse_power",
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
