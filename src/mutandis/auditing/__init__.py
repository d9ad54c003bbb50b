"""One audit: the plan, the run and its provenance."""

from mutandis.auditing.competing import CompetingWorldviews, run_competing
from mutandis.auditing.k_sweep import sweep_ks
from mutandis.auditing.placebo import Placebo, run_placebo
from mutandis.auditing.plan import Plan, Settings, draft_plan
from mutandis.auditing.provenance import Provenance
from mutandis.auditing.run import AuditResult, run
from mutandis.auditing.shared_neighbours import SharedNeighbours, measure_shared_neighbours

__all__ = [
    "AuditResult",
    "CompetingWorldviews",
    "Placebo",
    "Plan",
    "Provenance",
    "Settings",
    "SharedNeighbours",
    "draft_plan",
    "measure_shared_neighbours",
    "run",
    "run_competing",
    "run_placebo",
    "sweep_ks",
]
