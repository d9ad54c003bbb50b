"""What is said about one complainant, under one method and one k."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Verdict"]


class Verdict(StrEnum):
    """Exactly one per complainant, method and k. None of them proves discrimination."""

    NO_EVIDENCE = "no-evidence"
    """The control group was not refused more often than the test group, by more than τ."""
    EVIDENCE = "evidence"
    """It was: prima facie evidence (Def. 5), which chance may explain."""
    SIGNIFICANT = "significant"
    """Evidence that chance hardly explains, taken on its own (Def. 6)."""
    SIGNIFICANT_ADJUSTED = "significant-adjusted"
    """Evidence that chance hardly explains, although many complainants were tested."""
    INSUFFICIENT = "insufficient"
    """There were not enough comparable people."""
