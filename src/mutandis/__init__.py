"""Counterfactual situation testing: evidence of individual discrimination in decisions.

>>> import mutandis as mm
>>> mm.Protection("Gender", value=1, reference=0).reference
0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mutandis import datasets
    from mutandis.api import Audit, audit, audit_lattice, compare_worldviews, plan, power
    from mutandis.auditing import Placebo
    from mutandis.causal import (
        Additive,
        Categorical,
        Count,
        Diagnosis,
        Given,
        Latent,
        Linear,
        Ordinal,
        Worldview,
        check_worldview,
        sample_latent,
        worldview_from_dowhy,
    )
    from mutandis.domain import Attribute, AttributeKind, Population, Protection
    from mutandis.errors import MutandisError, MutandisWarning
    from mutandis.io.graph_files import worldview_from_graph
    from mutandis.io.worldview_file import read_worldview, write_worldview
    from mutandis.plots.worldview import draw_worldview
    from mutandis.results import Case, Verdict

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
    "Given",
    "Latent",
    "Linear",
    "MutandisError",
    "MutandisWarning",
    "Ordinal",
    "Placebo",
    "Population",
    "Protection",
    "Verdict",
    "Worldview",
    "__version__",
    "audit",
    "audit_lattice",
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
    "Attribute": "mutandis.domain",
    "AttributeKind": "mutandis.domain",
    "Audit": "mutandis.api",
    "Case": "mutandis.results",
    "Categorical": "mutandis.causal",
    "Count": "mutandis.causal",
    "Diagnosis": "mutandis.causal",
    "Given": "mutandis.causal",
    "Latent": "mutandis.causal",
    "Linear": "mutandis.causal",
    "MutandisError": "mutandis.errors",
    "MutandisWarning": "mutandis.errors",
    "Ordinal": "mutandis.causal",
    "Placebo": "mutandis.auditing",
    "Population": "mutandis.domain",
    "Protection": "mutandis.domain",
    "Verdict": "mutandis.results",
    "Worldview": "mutandis.causal",
    "audit": "mutandis.api",
    "audit_lattice": "mutandis.api",
    "check_worldview": "mutandis.causal",
    "compare_worldviews": "mutandis.api",
    "draw_worldview": "mutandis.plots.worldview",
    "plan": "mutandis.api",
    "power": "mutandis.api",
    "read_worldview": "mutandis.io.worldview_file",
    "sample_latent": "mutandis.causal",
    "worldview_from_dowhy": "mutandis.causal",
    "worldview_from_graph": "mutandis.io.graph_files",
    "write_worldview": "mutandis.io.worldview_file",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562)."""
    from importlib import import_module

    if name == "datasets":
        return import_module("mutandis.datasets")
    if name not in _HOMES:
        raise AttributeError(f"module 'mutandis' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
