"""One audit: the plan, the run and its provenance."""

from mutandis.auditing.competing import CompetingWorldviews, run_competing
from mutandis.auditing.plan import Plan, Settings, draft_plan
from mutandis.auditing.provenance import Provenance
from mutandis.auditing.run import AuditResult, run

__all__ = [
    "AuditResult",
    "CompetingWorldviews",
    "Plan",
    "Provenance",
    "Settings",
    "draft_plan",
    "run",
    "run_competing",
]
