"""Documents about an audit: the report, the case file, and what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.report.case_file import case_document
from mutandis.report.case_model import CaseDocument
from mutandis.report.report import Report, make_report

if TYPE_CHECKING:
    from mutandis.auditing.run import AuditResult
    from mutandis.report.context import FindingsOf

__all__ = [
    "CaseDocument",
    "Report",
    "case_document",
    "make_report",
    "render_report",
    "report_plots",
]


def render_report(result: AuditResult, findings: FindingsOf) -> str:
    """Give the report of an audit as HTML."""
    return make_report(result, findings).html


def report_plots(result: AuditResult, findings: FindingsOf) -> dict[str, str]:
    """Give the pictures of a report as SVG texts, by the stems of their file names."""
    return dict(make_report(result, findings).plots)
