"""The public face: plan, audit, and what an audit can be asked.

`call.py` starts an audit, `audit.py` is what comes back; the other files compare audits with each
other.
"""

from mutandis.api.agreeing import Agreement
from mutandis.api.audit import Audit, Flips
from mutandis.api.call import audit
from mutandis.api.comparing import WorldviewComparison, compare_worldviews
from mutandis.api.lattices import AuditLattice, audit_lattice
from mutandis.auditing import draft_plan
from mutandis.inference import analyse_power

__all__ = [
    "Agreement",
    "Audit",
    "AuditLattice",
    "Flips",
    "WorldviewComparison",
    "audit",
    "audit_lattice",
    "compare_worldviews",
    "plan",
    "power",
]

plan = draft_plan
"""Build and check a plan without running it: takes what `audit` takes, but for `progress`."""

power = analyse_power
"""Ask, before an audit, what groups of k people can show."""
