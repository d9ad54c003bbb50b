"""An audit under a method, a k and two levels; all its people, one of them; a trial next to it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mutandis.auditing.robustness import STEPS, find_with_part
from mutandis.data.columns import Categories, Numbers, plain_value
from mutandis.engine.tally import CST_MATCHED, METHODS
from mutandis.errors import PlanError
from mutandis.numeric.order import order_of_ids
from mutandis.report.case_file import case_document
from mutandis.report.context import ReportContext
from mutandis.report.formatting import capitalised
from mutandis.report.sentences import summarise
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.data.columns import Column
    from mutandis.report.case_model import CaseDocument
    from mutandis.verdicts.findings import Findings

__all__ = [
    "ANSWERS",
    "CHANGES",
    "MOST_EFFECT",
    "VERDICTS",
    "Lens",
    "Page",
    "PeopleColumn",
    "PeopleTable",
    "Person",
    "Selection",
    "TwoAudits",
    "View",
]


_ATTRIBUTE = "x:"  # how the keys of attributes begin, so that none can be taken for a finding
_PAGE = 50  # complainants
_MOST_SHOWN = 8  # attributes on a page; all can be filtered by
_SORT = "-delta_p"
ANSWERS = {True: "yes", False: "no", None: "not known"}
"""Whether a complainant has a case of their own."""

VERDICTS = tuple(
    each.value
    for each in (
        Verdict.SIGNIFICANT_ADJUSTED,
        Verdict.SIGNIFICANT,
        Verdict.EVIDENCE,
        Verdict.NO_EVIDENCE,
        Verdict.INSUFFICIENT,
    )
)
"""The verdicts, the strongest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleColumn:
    """One column: its key in addresses, its title on the page, and its values."""

    key: str
    title: str
    values: Column
    shown: bool = True  # on the page
    label: Callable[[Any], str] = str  # what a level is called

    @property
    def is_number(self) -> bool:
        """Whether it has a range rather than levels."""
        return isinstance(self.values, Numbers)

    def levels(self) -> list[tuple[str, str, int]]:
        """List the levels that occur, as text, with their labels and numbers of complainants."""
        if not isinstance(self.values, Categories):
            return []
        counts = zip(self.values.levels, self.values.counts().tolist(), strict=True)
        return [(str(level), self.label(level), number) for level, number in counts if number]

    def at(self, place: int) -> Any:
        """Return one complainant's value."""
        if isinstance(self.values, Numbers):
            value = float(self.values.values[place])
            return None if np.isnan(value) else value
        code = int(self.values.codes[place])
        if code < 0:
            return None
        level = plain_value(self.values.levels[code])
        return level if self.label is str else self.label(level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What an address asks for: filters, an order and a page."""

    levels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    id: str = ""
    sort: str = _SORT
    page: int = 1

    @classmethod
    def read(cls, query: Sequence[tuple[str, str]]) -> Selection:
        """Read the pairs of a query; empty ones are ignored."""
        levels: dict[str, set[str]] = {}
        bounds: dict[str, dict[str, float]] = {"min": {}, "max": {}}
        single = {}
        for name, value in query:
            kind, _, key = name.partition(":")
            if kind == "is" and key:
                levels.setdefault(key, set()).add(value)
            elif kind in bounds and key:
                if value.strip():
                    bounds[kind][key] = _read_number(value)
            else:
                single[name] = value
        page = single.get("page", "")
        return cls(
            levels={key: frozenset(wanted) for key, wanted in levels.items()},
            least=bounds["min"],
            most=bounds["max"],
            id=single.get("id", ""),
            sort=single.get("sort") or _SORT,
            page=max(1, int(page)) if page.isdecimal() and len(page) < 10 else 1,
        )

    def pairs(self, **changes: Any) -> list[tuple[str, str]]:
        """Return the pairs of a query that asks for this, with some changes."""
        single = {"id": self.id, "sort": self.sort, "page": self.page, **changes}
        defaults = {"id": "", "sort": _SORT, "page": 1}
        return [
            *((f"is:{key}", each) for key, some in self.levels.items() for each in sorted(some)),
            *((f"min:{key}", f"{value:.17g}") for key, value in self.least.items()),
            *((f"max:{key}", f"{value:.17g}") for key, value in self.most.items()),
            *((key, str(v)) for key, v in single.items() if v != defaults.get(key)),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some complainants in their order, by their places, and how many there are."""

    places: NDArray[np.intp]
    total: int
    number: int
    pages: int


class PeopleTable:
    """The complainants of one method and k.

    Orders are kept once sorted, so that a page of a million takes some masks and one selection.
    """

    def __init__(
        self,
        audit: Audit,
        found: Findings,
        answers: Categories | None,
        grade: Any = None,
        *,
        ids: NDArray[np.str_],
    ) -> None:
        self.found = found
        self._ids = ids  # as texts, which a part of one is searched for in
        self.columns = {each.key: each for each in _columns(audit, found, answers, grade)}
        self._orders: dict[str, NDArray[np.intp]] = {}

    @property
    def shown(self) -> list[PeopleColumn]:
        """The columns of a page."""
        return [each for each in self.columns.values() if each.shown]

    def select(self, selection: Selection) -> NDArray[np.intp]:
        """Return the places of all who pass the filters, in their order."""
        order = self._order(selection.sort)
        mask = self._mask(selection)
        return order if mask is None else order[mask[order]]

    def page(self, selection: Selection) -> Page:
        """Return one page of them; a page beyond the last is the last."""
        places = self.select(selection)
        pages = max(1, ceil(len(places) / _PAGE))
        number = min(selection.page, pages)
        here = places[(number - 1) * _PAGE : number * _PAGE]
        return Page(places=here, total=len(places), number=number, pages=pages)

    def _mask(self, selection: Selection) -> NDArray[np.bool_] | None:
        masks = []
        for key, wanted in selection.levels.items():
            values = self._filtered(key).values
            if isinstance(values, Categories):
                known = [str(level) in wanted for level in values.levels]
                masks.append(np.array([*known, False])[values.codes])
        for bounds, compare in (
            (selection.least, np.greater_equal),
            (selection.most, np.less_equal),
        ):
            masks += [compare(self._filtered(key).values.data, b) for key, b in bounds.items()]
        if selection.id:
            masks.append(np.strings.find(self._ids, selection.id) >= 0)
        return np.logical_and.reduce(masks) if masks else None

    def _filtered(self, key: str) -> PeopleColumn:
        if key not in self.columns:
            raise PlanError("This view filters by a column that the audit does not have.")
        return self.columns[key]

    def _order(self, sort: str) -> NDArray[np.intp]:
        """Sort once; equal values stay in the order of ids, and missing ones come last."""
        key = sort.removeprefix("-")
        if sort not in self._orders:
            by_id = np.arange(len(self.found))[order_of_ids(self.found.ids)]
            if key == "id":
                order = by_id[::-1] if sort.startswith("-") else by_id
            elif key in self.columns:
                values = self.columns[key].values
                data = values.data[by_id].astype(np.float64)
                # a ratio may be infinite, which is a value; of numbers, NaN alone is missing
                if isinstance(values, Categories):
                    data[values.missing()[by_id]] = np.nan
                order = by_id[np.argsort(-data if sort.startswith("-") else data, kind="stable")]
            else:
                raise PlanError("This view sorts by a column that the audit does not have.")
            self._orders[sort] = order
        return self._orders[sort]


def _columns(
    audit: Audit, found: Findings, answers: Categories | None, grade: Any
) -> list[PeopleColumn]:
    words, labels, population = audit.plan.words, audit.plan.labels, audit.plan.population
    negative = capitalised(words.averaged)
    controls, tests = found.averages()
    numbers = {
        "delta_p": (words.symbol, found.comparison.delta_p),
        **{
            name: (found.measure.symbol.capitalize(), values)
            for name, values in list(found.measured().items())[:1]
        },
        "p_control": (f"{negative}, control", controls),
        "p_test": (f"{negative}, test", tests),
        "q_value": ("q-value", found.q_value),
    }
    strongest = np.array([VERDICTS.index(each.value) for each in Verdict], dtype=np.int32)
    levels = {
        "verdict": (
            "Pattern",
            Categories(strongest[found.verdict_codes().astype(np.intp)], VERDICTS),
        ),
        "own_case": ("Own case", answers),
        "grade": (
            "Robustness",
            None if grade is None else _coded(grade, ["robust", "sensitive", "fragile"]),
        ),
    }
    outcome = PeopleColumn(
        key="outcome",
        title="Outcome",
        values=Numbers(found.outcome)
        if found.kind.numeric
        else _coded(found.outcome, [plain_value(each) for each in found.kind.listing]),
        label=partial(labels.level, audit.plan.outcome.column),
    )
    statuses = [each.attribute for each in audit.plan.protections]
    names = dict.fromkeys([*statuses, *(each.name for each in audit.plan.attributes)])
    return [
        outcome,
        *(
            PeopleColumn(key=key, title=title, values=values)
            for key, (title, values) in levels.items()
            if values is not None
        ),
        *(
            PeopleColumn(key=key, title=title, values=Numbers(values))
            for key, (title, values) in numbers.items()
        ),
        *(
            PeopleColumn(
                key=f"{_ATTRIBUTE}{name}",
                title=labels.column(name),
                values=population.part(name, audit.study.people),
                shown=number < _MOST_SHOWN,
                label=partial(labels.level, name) if name in labels.levels else str,
            )
            for number, name in enumerate(names)
        ),
    ]


def _coded(values: NDArray[Any], levels: Sequence[Any]) -> Categories:
    codes = np.full(len(values), -1, dtype=np.int32)
    for code, level in enumerate(levels):
        codes[values == level] = code
    return Categories(codes, tuple(levels))


def _read_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise PlanError("A bound of a range is not a number. Write it like 0.5 or 12000.")
    return number


_T = TypeVar("_T")
_KEPT = 8  # views; each holds one row of findings per complainant and method


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A method and a k that were run, and the levels of verdicts."""

    method: str
    k: int
    alpha: float
    tau: float

    def pairs(self, base: View) -> list[tuple[str, str]]:
        """Return the pairs of a query that differ from the audit's own."""
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
        """Read a view from a query; what is missing or empty is the audit's own."""
        wanted = query.get("method") or self.base.method
        method, k = self.audit.plan.choose(wanted, _number(query, "k", self.base.k, int))
        return View(
            method=method.name,
            k=k,
            alpha=_number(query, "alpha", self.base.alpha, float),
            tau=_number(query, "tau", self.base.tau, float),
        )

    def audit_at(self, view: View) -> Audit:
        """Return the audit with the levels and the headline of a view."""
        if view == self.base:
            return self.audit
        return self.once(
            ("audit", view),
            lambda: self.audit.with_levels(
                alpha=view.alpha, tau=view.tau, method=view.method, k=view.k
            ),
        )

    def findings(self, view: View) -> Findings:
        """Return verdicts, shares and p-values; bounds, which take long, are for one person."""
        audit = self._at_levels(view)
        return self.once(
            ("findings", view),
            lambda: audit.evaluate(view.method, view.k, depth="significance"),
        )

    def _at_levels(self, view: View) -> Audit:
        """Return the audit with the levels of a view; tests do not depend on the headline."""
        return self.audit_at(replace(view, method=self.base.method, k=self.base.k))

    def counts(self, view: View) -> list[dict[str, Any]]:
        """Count for every method at the k and the levels of a view."""
        found = self._at_levels(view).results.summaries
        return [
            {
                **found[method.name, view.k].counts,
                "title": method.title,
                "chosen": method.name == view.method,
            }
            for method in self.audit.plan.methods
        ]

    def summary(self, view: View) -> list[str]:
        """Summarise what was found, as the report does."""
        return self.once(
            ("summary", view),
            lambda: summarise(_Context(audit=self.audit_at(view), lens=self, view=view)),
        )

    def people(self, view: View) -> PeopleTable:
        """Return the table of all complainants."""
        tipping = self.audit.results.tipping if view == self.base else None
        grades = None if tipping is None else tipping.grade
        rows = self.audit.study.people
        ids = self.once("ids", lambda: self.audit.plan.population.ids[rows].astype(np.str_))
        return self.once(
            ("people", view),
            lambda: PeopleTable(
                self.audit, self.findings(view), self._own_answers(view), grades, ids=ids
            ),
        )

    def _own_answers(self, view: View) -> Categories | None:
        """Return who has a case of their own: "yes", "no" or "not known"; None unless matched."""
        if CST_MATCHED not in self.audit.plan.methods:
            return None
        own = self.findings(replace(view, method=CST_MATCHED.name)).own_case
        if own is None:
            return None
        codes = {answer: code for code, answer in enumerate(ANSWERS)}
        answers = np.array([codes[each] for each in own.tolist()], dtype=np.int32)
        return Categories(answers, tuple(ANSWERS.values()))

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


# --- one complainant ------------------------------------------------------------------------------

MOST_EFFECT = 1.5
"""The largest λ: half as much again as the worldview claims."""


def read_part(text: str) -> Fraction:
    """Read λ, to the nearest twentieth; empty is the whole effect."""
    if not text.strip():
        return Fraction(1)
    try:
        part = Fraction(round(float(text) * STEPS), STEPS)
    except (ValueError, OverflowError):
        part = Fraction(-1)
    if not 0 <= part <= MOST_EFFECT:
        raise PlanError(f"λ is not a number from 0 to {MOST_EFFECT}. Write it like 0.5.")
    return part


class Person:
    """A complainant, by their place among the complainants."""

    def __init__(self, lens: Lens, view: View, place: int) -> None:
        self._lens, self._view, self.place = lens, view, place
        self.audit: Audit = lens.audit_at(view)
        row = int(self.audit.study.people[place])
        self.id: Any = plain_value(self.audit.plan.population.ids[row])

    def document(self, *, redact: bool = False) -> CaseDocument:
        """Return the case file."""
        return self._lens.once(
            ("document", self._view, self.place, redact),
            lambda: case_document(self.audit, self.id, redact=redact),
        )

    def try_part(self, part: Fraction) -> tuple[list[tuple[str, dict[str, Any]]], str]:
        """Compare again with a part of the effect, on each ground; or return why not."""
        method = METHODS[self._view.method]
        try:
            found = [
                (ground, find_with_part(each, self.place, method, self._view.k, part))
                for ground, each in self.audit.parts.items()
            ]
        except PlanError as error:
            return [], str(error)
        return [(ground, _row(each)) for ground, each in found], ""


def _row(found: Findings) -> dict[str, Any]:
    return found.kind.plain({name: plain_value(each[0]) for name, each in found.columns().items()})


# --- an audit and a trial -------------------------------------------------------------------------

CHANGES = {
    "changed": "another verdict",
    "gained": "a pattern in this worldview only",
    "lost": "a pattern in the audit only",
}
"""Whom to list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPerson:
    """Someone whose verdict differs, and their place in the first audit."""

    id: Any
    place: int
    verdicts: tuple[str, str]
    delta_p: tuple[float, float]


class TwoAudits:
    """The people whom an audit and a trial have in common, under one method and k."""

    def __init__(self, first: Lens, second: Lens, view: View) -> None:
        if view.method not in second.audit.methods or view.k not in second.audit.ks:
            raise PlanError(f"The trial did not run {view.method} at k = {view.k}.")
        self._found = (first.findings(view), second.findings(view))
        one, two = (found.ids.astype(np.str_) for found in self._found)
        _, here, there = np.intersect1d(one, two, assume_unique=True, return_indices=True)
        order = np.argsort(here)
        self._places = (here[order], there[order])

    @property
    def common(self) -> int:
        """How many complainants both audits have."""
        return len(self._places[0])

    @property
    def alone(self) -> tuple[int, int]:
        """How many complainants each audit has that the other does not."""
        first, second = (len(found) - self.common for found in self._found)
        return first, second

    def _both(self, read: Callable[[Findings], NDArray[Any]]) -> list[NDArray[Any]]:
        """Read a column of both findings, at the people whom both have."""
        pairs = zip(self._found, self._places, strict=True)
        return [read(found)[places] for found, places in pairs]

    @cached_property
    def _verdicts(self) -> list[NDArray[Any]]:
        return self._both(lambda found: found.verdicts())

    @cached_property
    def masks(self) -> dict[str, NDArray[np.bool_]]:
        """Mark the changes among the common people."""
        before, after = self._both(lambda found: found.has_pattern.astype(np.bool_))
        first, second = self._verdicts
        return {"changed": first != second, "gained": after & ~before, "lost": before & ~after}

    def matrix(self) -> list[tuple[str, list[int]]]:
        """Count people by both verdicts: a row per verdict of the first."""
        first, second = self._verdicts
        return [
            (one, [int(((first == one) & (second == two)).sum()) for two in VERDICTS])
            for one in VERDICTS
        ]

    def people(self, change: str, number: int) -> list[ChangedPerson]:
        """List some of the people with a change, those with the largest change of Δp first."""
        one, two = self._both(lambda found: found.compared)
        apart = np.nan_to_num(np.abs(two - one), nan=2.0)
        chosen = np.flatnonzero(self.masks[change])
        chosen = chosen[np.argsort(-apart[chosen], kind="stable")][:number]
        ids = self._both(lambda found: found.ids)[0]
        deltas = self._both(lambda found: found.comparison.delta_p)
        return [
            ChangedPerson(
                id=plain_value(ids[each]),
                place=int(self._places[0][each]),
                verdicts=(self._verdicts[0][each], self._verdicts[1][each]),
                delta_p=(float(deltas[0][each]), float(deltas[1][each])),
            )
            for each in chosen.tolist()
        ]
