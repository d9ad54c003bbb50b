"""All complainants as a table that is filtered, sorted and paged on the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories, Numbers, plain_value
from mutandis.errors import PlanError
from mutandis.numeric.order import order_of_ids
from mutandis.report.formatting import capitalised
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.data.columns import Column
    from mutandis.verdicts.findings import Findings

__all__ = ["ANSWERS", "VERDICTS", "Page", "PeopleColumn", "PeopleTable", "Selection"]

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
