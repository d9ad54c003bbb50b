"""Provenance: what is needed to repeat an audit and to see that it was repeated.

It holds no row of the table, no path and no name of a machine or a person.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections import ChainMap
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Numbers
from mutandis.decision.maker import describe_maker
from mutandis.numeric.order import order_of_ids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.counterfactual_table import CounterfactualTable
    from mutandis.auditing.plan import Plan
    from mutandis.data.population import Population
    from mutandis.engine.tally import Tally
    from mutandis.scm.counterfactual import Counterfactuals

__all__ = [
    "Provenance",
    "current_versions",
    "describe_settings",
    "hash_population",
    "observe",
    "record",
]

_PACKAGES = ("mutandis", "numpy", "scipy", "pandas", "narwhals", "networkx")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where an audit's numbers come from."""

    versions: Mapping[str, str]  # of mutandis, Python and the libraries that compute
    # rows, complainants, rows dropped by column, and a SHA-256 of all columns used
    data: Mapping[str, Any]
    settings: Mapping[str, Any]  # every choice of the plan
    # what the run itself decided or observed: how equal distances were told, which search answered,
    # which attributes moved and which the worldview held, values clipped, the couplings that were
    # assumed, how b() and the record go together
    computed: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    def to_json(self) -> str:
        """Write JSON; the same audit has the same text."""
        return json.dumps(
            self.as_dict(), indent=2, sort_keys=True, ensure_ascii=False, default=_plain
        )


def _plain(value: Any) -> Any:
    """Convert a declared value that JSON does not know (np.int64, a date)."""
    return value.item() if isinstance(value, np.number | np.bool_) else str(value)


def record(plan: Plan, computed: Sequence[Mapping[str, Any]]) -> Provenance:
    """Record a finished run, with what was observed on each ground."""
    return Provenance(
        versions=dict(current_versions()),
        data={
            "rows": len(plan.population),
            "complainants": sum(len(stratum.complainants) for stratum in plan.strata),
            "dropped": dict(plan.population.dropped),
            "sha256": hash_population(plan.population),
            "sha256_counterfactuals": _hash_counterfactuals(plan.counterfactuals),
        },
        settings=describe_settings(plan),
        computed=dict(computed[0]) if len(computed) == 1 else _join_observed(plan, computed),
    )


def observe(tally: Tally, made: Counterfactuals | None) -> dict[str, Any]:
    """Return what a run on one ground itself decided or observed."""
    return {
        "distance_rules": dict(tally.distance_rules),
        "search": dict(tally.backends),
        "moved": [] if made is None else list(made.moved),
        "held": [] if made is None else list(made.held),
        "clipped": {} if made is None else dict(made.clipped),
        "couplings": {} if made is None else dict(made.couplings),
    }


def _join_observed(plan: Plan, computed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Keep what was observed on several grounds apart; b() and couplings are those of all."""
    shared = {name: computed[0][name] for name in ("disagreement", "with_record")}
    couplings = dict(ChainMap(*(dict(each["couplings"]) for each in computed)))
    names = [each.attribute for each in plan.protections]
    return {
        **{name: type(each)() for name, each in computed[0].items() if name not in shared},
        **shared,
        "couplings": couplings,
        "parts": dict(zip(names, map(dict, computed), strict=True)),
    }


@cache
def current_versions() -> Mapping[str, str]:
    """Look versions up once: that reads a file for each package."""
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in _PACKAGES},
    }


def _hash_counterfactuals(table: CounterfactualTable | None) -> str | None:
    if table is None:
        return None
    return hash_population(table.population, table.is_negative)


def hash_population(population: Population, decided: NDArray[np.bool_] | None = None) -> str:
    """Hash ids and columns, row by row in the order of ids, whatever library and order they had.

    Examples
    --------
    >>> from mutandis.data.population import Population
    >>> people = Population.from_frame({"salary": [10, 20]}, columns=["salary"])
    >>> hash_population(people)[:8]
    'b311b9da'
    """
    digest, order = hashlib.sha256(), order_of_ids(population.ids)
    digest.update(b"" if decided is None else np.packbits(decided[order]).tobytes())
    digest.update(_id_bytes(population.ids[order]))
    for name in sorted(population.columns):
        column = population.columns[name]
        if isinstance(column, Numbers):
            head: list[Any] = [name, "numbers"]
            body = np.ascontiguousarray(column.values[order], dtype="<f8")
        else:
            head = [name, "categories", [str(level) for level in column.levels]]
            body = np.ascontiguousarray(column.codes[order], dtype="<i4")
        digest.update(json.dumps(head).encode())
        digest.update(body.data.cast("B") if len(body) else b"")  # no copy of its bytes
    return digest.hexdigest()


def _id_bytes(ids: NDArray[Any]) -> bytes:
    if np.issubdtype(ids.dtype, np.integer):
        return ids.astype("<i8").tobytes()
    return json.dumps([str(each) for each in ids.tolist()]).encode()


def describe_settings(plan: Plan) -> dict[str, Any]:
    """Return all choices of a plan as plain data; other worldviews only if they are compared."""
    worldview, doubt = plan.worldview, plan.settings.uncertainty
    settings = asdict(replace(plan.settings, uncertainty=replace(doubt, worldviews=None)))
    others = {name: repr(each) for name, each in (doubt.worldviews or {}).items()}
    for name, value in (("variants", doubt.variants), ("worldviews", others)):
        del settings["uncertainty"][name]
        settings["uncertainty"] |= {name: value} if value else {}
    return {
        **settings,
        "outcome": plan.outcome.column,
        **{name: each for name, each in plan.outcome.declaration.items() if name != "column"},
        "protected": _describe_protections(plan),
        "attributes": {
            a.name: {"kind": a.kind.value, "levels": list(a.levels), "weight": a.weight}
            | ({"compare_missing": True} if a.compare_missing else {})
            for a in plan.attributes
        },
        "worldview": None if worldview is None else repr(worldview),
        "counterfactuals": "given" if plan.counterfactuals is not None else None,
        "decision": None if plan.decision is None else describe_maker(plan.decision),
    }


def _describe_protections(plan: Plan) -> dict[str, Any]:
    described: list[dict[str, Any]] = [
        {
            "attribute": each.attribute,
            "values": list(each.values),
            "reference": each.reference,
            "pool": each.pool,
        }
        for each in plan.protections
    ]
    return described[0] if plan.combine is None else {plan.combine: described}
