"""One audit as a visitor looks at it: a method, a group size, two levels, and what follows."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mutandis.data.columns import Categories
from mutandis.engine.methods import CST_MATCHED, METHODS
from mutandis.errors import PlanError
from mutandis.report.context import ReportContext
from mutandis.report.sentences import summarise
from mutandis.rooms.explorer.people import ANSWERS, PeopleTable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.verdicts.findings import Findings

__all__ = ["Lens", "View"]

_T = TypeVar("_T")
# the views that are kept: each holds one row of findings per complainant and method
_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What findings are looked at: a method and a k that were run, and the levels of verdicts."""

    method: str
    k: int
    alpha: float
    tau: float

    def pairs(self, base: View) -> list[tuple[str, str]]:
        """Give the pairs of a query that differ from the audit's own."""
        own = {name: getattr(self, name) for name in self.__slots__}
        return [(name, str(each)) for name, each in own.items() if each != getattr(base, name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context(ReportContext):
    """The context of a report whose findings have verdicts and p-values, and no bounds."""

    lens: Lens
    view: View

    def findings(self, method: str, k: int) -> Findings:
        return self.lens.findings(replace(self.view, method=method, k=k))


class Lens:
    """An audit, and the views on it that were asked for last."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        settings = audit.plan.settings
        method, k = settings.primary
        self.base = View(method=method, k=k, alpha=settings.alpha, tau=settings.tau)
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def read_view(self, query: Mapping[str, str]) -> View:
        """Read a view from a query; what is left out or empty is the audit's own."""
        return View(
            method=query.get("method") or self.base.method,
            k=_number(query, "k", self.base.k, int),
            alpha=_number(query, "alpha", self.base.alpha, float),
            tau=_number(query, "tau", self.base.tau, float),
        )

    def audit_at(self, view: View) -> Audit:
        """Give the audit with the levels and the headline of a view."""
        if view == self.base:
            return self.audit
        return self.once(
            ("audit", view),
            lambda: self.audit.with_levels(
                alpha=view.alpha, tau=view.tau, method=view.method, k=view.k
            ),
        )

    def findings(self, view: View) -> Findings:
        """Give verdicts, shares and p-values; bounds take long for many, and are for one person."""
        # what is the headline has no part in tests
        audit = self.audit_at(replace(view, method=self.base.method, k=self.base.k))
        tested = replace(view, alpha=self.base.alpha)

        def find() -> Findings:
            if view != tested and self._tests_once:
                return self.findings(tested).at_level(view.alpha)
            return audit.test_everyone(view.method, view.k)

        return self.once(("findings", view), find)

    @property
    def _tests_once(self) -> bool:
        """Whether the tests of the audit are those at every other α."""
        return len(self.audit.parts) == 1

    def counts(self, view: View) -> list[dict[str, Any]]:
        """Count for every method at the k and the levels of a view."""
        rows = []
        for method in self.audit.plan.methods:
            row = self.findings(replace(view, method=method.name)).counts()
            rows.append({**row, "title": method.title, "chosen": method.name == view.method})
        return rows

    def summary(self, view: View) -> list[str]:
        """Say in a few paragraphs what was found, as the report does."""
        return self.once(
            ("summary", view),
            lambda: summarise(_Context(audit=self.audit_at(view), lens=self, view=view)),
        )

    def own_answers(self, view: View) -> Categories | None:
        """Tell who has a case of her own: "yes", "no" or "not known"; None unless matched."""
        if CST_MATCHED not in self.audit.plan.methods:
            return None
        own = self.findings(replace(view, method=CST_MATCHED.name)).own_case
        if own is None:
            return None
        codes = {answer: code for code, answer in enumerate(ANSWERS)}
        answers = np.array([codes[each] for each in own.tolist()], dtype=np.int32)
        return Categories(answers, tuple(ANSWERS.values()))

    def people(self, view: View) -> PeopleTable:
        """Give the table of all complainants."""
        grades = self.grades(view)
        return self.once(
            ("people", view, grades is None),
            lambda: PeopleTable(
                self.audit, self.findings(view), self.own_answers(view), grades, ids=self.ids
            ),
        )

    @property
    def ids(self) -> NDArray[np.str_]:
        """The ids of the complainants as texts."""
        rows = self.audit.study.people
        return self.once("ids", lambda: self.audit.plan.population.ids[rows].astype(np.str_))

    def can_grade(self, view: View) -> bool:
        """Tell whether verdicts have tipping points: at the levels of the audit alone."""
        same = (view.alpha, view.tau) == (self.base.alpha, self.base.tau)
        return same and METHODS[view.method].has_tipping

    def grades(self, view: View) -> NDArray[np.object_] | None:
        """Give how robust each verdict is, where that was measured; None elsewhere."""
        audit, wanted = self.audit_at(view), (view.method, view.k)
        # the audit finds those of its headline, if it was asked to
        asked = view == self.base and audit.plan.settings.uncertainty.tipping
        return audit.measure_tipping().grade if asked or wanted in audit.tippings else None

    def once(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Make something once, and keep it for a while."""
        if key not in self._kept:
            self._kept[key] = make()
            while len(self._kept) > _KEPT * len(METHODS):
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]  # type: ignore[no-any-return]


def _number(query: Mapping[str, str], name: str, default: Any, kind: type[_T]) -> _T:
    text = query.get(name, "").strip()
    if not text:
        return default  # type: ignore[no-any-return]
    try:
        return kind(text)  # type: ignore[call-arg]
    except ValueError:
        raise PlanError(f"{name} is not a number. Write it like {default}.") from None
