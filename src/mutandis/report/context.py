"""What a report is made of: an audit, its findings, and who is meant by which word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutandis.evidence.findings import Findings
from mutandis.report.formatting import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.auditing.run import AuditResult
    from mutandis.data.protection import Protection
    from mutandis.evidence.methods import Method

__all__ = ["FindingsOf", "Material", "compared", "slug"]

FindingsOf = Callable[[str, int], Findings]
"""Gives the findings under a method and a k; whoever makes a report remembers them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """An audit with its findings.

    Parameters
    ----------
    result
        The audit.
    findings
        Gives the findings under a method and a k.
    """

    result: AuditResult
    findings: FindingsOf

    @property
    def plan(self) -> Plan:
        """What was run."""
        return self.result.plan

    @property
    def methods(self) -> tuple[Method, ...]:
        """The methods that were run."""
        return self.plan.methods

    @property
    def primary(self) -> tuple[Method, int]:
        """The method and k of the headline."""
        name, k = self.plan.settings.primary
        return next(method for method in self.methods if method.name == name), k

    @property
    def headline(self) -> Findings:
        """The findings of the headline."""
        return self.findings(*self.plan.settings.primary)

    @property
    def parts(self) -> Mapping[str, AuditResult]:
        """The audits with groups of their own: one by attribute, or just this one, unnamed."""
        return self.result.parts or {"": self.result}

    @property
    def where(self) -> str:
        """Say what the headline is about: "CST (w/o) with k = 30"."""
        method, k = self.primary
        return f"{method.title} with k = {k}" if method.count_neighbours else method.title

    @property
    def complainants(self) -> str:
        """Say who complains, by their protected values: "Gender = 1"."""
        return " and ".join(_protected(each) for each in self.plan.protections)

    @property
    def reference(self) -> str:
        """Say what status the counterfactual takes: "Gender = 0"."""
        # multiple discrimination intervenes on each ground by itself
        together = " or " if self.plan.combine == "multiple" else " and "
        return together.join(
            f"{each.attribute} = {each.reference}" for each in self.plan.protections
        )

    @property
    def others(self) -> str:
        """Say with whom complainants are compared."""
        if self.plan.settings.test_space == "complement":
            return f"everybody but those with {self.complainants}"
        return f"people with {self.reference}"

    @property
    def refused(self) -> str:
        """Say what a refusal is here."""
        return f"{self.plan.outcome.column} = {self.plan.outcome.negative}"

    @property
    def worse(self) -> bool:
        """Whether worse treatment is looked for, not better."""
        return self.plan.settings.direction == "negative"

    @property
    def source_of_counterfactuals(self) -> str:
        """Say where counterfactuals come from; empty if there are none."""
        if self.plan.worldview is not None:
            return "the worldview"
        return "" if self.plan.counterfactuals is None else "the counterfactuals supplied"

    def by_part(self, part: str) -> str:
        """Name the attribute that a part intervenes on, in brackets; empty where there is one."""
        return f" (do {part})" if part else ""


def _protected(protection: Protection) -> str:
    if not protection.values:
        return f"{protection.attribute} other than {protection.reference}"
    return f"{protection.attribute} = {listed(protection.values, last='or')}"


def compared(found: Findings) -> NDArray[np.bool_]:
    """Mark the complainants who could be compared."""
    return ~found.comparison.insufficient


def slug(name: str) -> str:
    """Give a name that files and ids can have: a few small letters and digits of it.

    Examples
    --------
    >>> slug("Annual Salary (£)"), slug("收入"), slug('"><img src=x>')
    ('annual-salary', 'x', 'img-src-x')
    """
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", letters.lower()).strip("-")[:40].strip("-") or "x"
