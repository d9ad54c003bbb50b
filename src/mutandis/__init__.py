"""Counterfactual situation testing: evidence of individual discrimination in decisions.

>>> import mutandis as mm
>>> mm.Protection("Gender", value=1, reference=0).reference
0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mutandis import datasets
    from mutandis.api import Audit, audit, plan
    from mutandis.causal import Linear, Worldview
    from mutandis.domain import Attribute, AttributeKind, Population, Protection
    from mutandis.errors import MutandisError, MutandisWarning
    from mutandis.results import Case, Verdict

__version__ = "0.1.0"

__all__ = [
    "Attribute",
    "AttributeKind",
    "Audit",
    "Case",
    "Linear",
    "MutandisError",
    "MutandisWarning",
    "Population",
    "Protection",
    "Verdict",
    "Worldview",
    "__version__",
    "audit",
    "datasets",
    "plan",
]

# where each public name lives; imported when first asked for, so that `import mutandis` is instant
_HOMES = {
    "Attribute": "mutandis.domain",
    "AttributeKind": "mutandis.domain",
    "Audit": "mutandis.api",
    "Case": "mutandis.results",
    "Linear": "mutandis.causal",
    "MutandisError": "mutandis.errors",
    "MutandisWarning": "mutandis.errors",
    "Population": "mutandis.domain",
    "Protection": "mutandis.domain",
    "Verdict": "mutandis.results",
    "Worldview": "mutandis.causal",
    "audit": "mutandis.api",
    "plan": "mutandis.api",
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
