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
    from mutandis.auditing.plan import Plan, audit, audit_intersections, plan
    from mutandis.auditing.sham import ShamAudits
    from mutandis.auditing.worldviews import vary_worldview
    from mutandis.config.schema import Evidence, Similarity, Uncertainty
    from mutandis.data.attribute import Attribute, AttributeKind
    from mutandis.data.labels import Labels
    from mutandis.data.population import Population
    from mutandis.data.protection import Protection
    from mutandis.errors import MutandisError, MutandisWarning
    from mutandis.outcomes.ordered import Ordered
    from mutandis.outcomes.score import Score
    from mutandis.report.case_file import save_case
    from mutandis.rooms.latent import Latent
    from mutandis.scm import (
        Additive,
        Categorical,
        Count,
        Diagnosis,
        Linear,
        Ordinal,
        Stated,
        Worldview,
    )
    from mutandis.store.audit_file import read_plan
    from mutandis.store.saved_audit import open_results
    from mutandis.store.verification import verify_results
    from mutandis.verdicts.findings import Verdict
    from mutandis.verdicts.power import analyse_power as power

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
    "Labels",
    "Latent",
    "Linear",
    "MutandisError",
    "MutandisWarning",
    "Ordered",
    "Ordinal",
    "Plan",
    "Population",
    "Protection",
    "Score",
    "ShamAudits",
    "Similarity",
    "Stated",
    "Uncertainty",
    "Verdict",
    "Worldview",
    "__version__",
    "audit",
    "audit_intersections",
    "datasets",
    "open_results",
    "plan",
    "power",
    "read_plan",
    "save_case",
    "vary_worldview",
    "verify_results",
]

# where public names live; imported when first asked for, so that `import mutandis` is instant
_HOMES = {
    "auditing.audit": "Audit",
    "auditing.case": "Case",
    "auditing.sham": "ShamAudits",
    "auditing.plan": "Plan audit audit_intersections plan",
    "auditing.worldviews": "vary_worldview",
    "scm": "Additive Categorical Count Diagnosis Linear Ordinal Stated Worldview",
    "data.attribute": "Attribute AttributeKind",
    "data.labels": "Labels",
    "data.population": "Population",
    "data.protection": "Protection",
    "outcomes.ordered": "Ordered",
    "outcomes.score": "Score",
    "errors": "MutandisError MutandisWarning",
    "verdicts.findings": "Verdict",
    "verdicts.power": "power",
    "config.schema": "Evidence Similarity Uncertainty",
    "store.audit_file": "read_plan",
    "store.saved_audit": "open_results",
    "store.verification": "verify_results",
    "report.case_file": "save_case",
    "rooms.latent": "Latent",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562)."""
    from importlib import import_module

    if name == "datasets":
        return import_module("mutandis.datasets")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'mutandis' has no attribute {name!r}")
    home = import_module(f"mutandis.{_HOME_OF[name]}")
    globals()[name] = value = getattr(home, "analyse_power" if name == "power" else name)
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
