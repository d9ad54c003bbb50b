"""What an audit gives: exact shares, columnar findings, cases."""

from mutandis.results.case import Case, GroupMembers
from mutandis.results.findings import COLUMNS, Comparison, Findings, Group
from mutandis.results.interval import Interval
from mutandis.results.share import Share, difference, exceeds
from mutandis.results.support import Balance, Reach, Support
from mutandis.results.verdict import Verdict

__all__ = [
    "COLUMNS",
    "Balance",
    "Case",
    "Comparison",
    "Findings",
    "Group",
    "GroupMembers",
    "Interval",
    "Reach",
    "Share",
    "Support",
    "Verdict",
    "difference",
    "exceeds",
]
