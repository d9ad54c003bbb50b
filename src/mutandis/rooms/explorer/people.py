"""All complainants as a table that is filtered, sorted and paged on the server."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from mutandis.data.columns import Categories, Numbers, plain_value, plain_values
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

__all__ = [
    "ANSWERS",
    "ATTRIBUTE",
    "PAGE_SIZES",
    "VERDICTS",
    "Page",
    "PeopleColumn",
    "PeopleTable",
    "Selection",
]

ATTRIBUTE = "x:"
"""What the keys of attributes begin with, so that none can be taken for a finding."""

PAGE_SIZES = (25, 50, 100, 250)
_SORT = "-delta_p"
ANSWERS = {True: "yes", False: "no", None: "not known"}
"""Whether a complainant has a case of her own."""

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

_GRADES = ("robust", "sensitive", "fragile")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleColumn:
    """One column: what it is called in addresses and on the page, and its values."""

    key: str
    title: str
    values: Column
    shown: bool  # unless others are chosen
    label: Callable[[Any], str] | None = None  # what its levels are called, if not as they are

    @property
    def is_number(self) -> bool:
        """Whether it has a range rather than levels."""
        return isinstance(self.values, Numbers)

    def levels(self) -> list[tuple[str, int]]:
        """List the levels that occur, as text, with the number of complainants."""
        if not isinstance(self.values, Categories):
            return []
        counts = self.values.counts().tolist()
        return [(str(level), n) for level, n in zip(self.values.levels, counts, strict=True) if n]

    def hints(self) -> tuple[str, str] | None:
        """Write the smallest and the largest number, in short; None if there are none."""
        numbers = self.values.data[np.isfinite(self.values.data)] if self.is_number else ()
        if not len(numbers):
            return None
        return _short(float(np.min(numbers))), _short(float(np.max(numbers)))

    def said(self, level: str) -> str:
        """Give what a level is called, by its text."""
        return level if self.label is None else self.label(level)

    def at(self, place: int) -> Any:
        """Give one complainant's value."""
        if isinstance(self.values, Numbers):
            value = float(self.values.values[place])
            return None if np.isnan(value) else value
        code = int(self.values.codes[place])
        level = None if code < 0 else plain_value(self.values.levels[code])
        return level if level is None or self.label is None else self.label(level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What an address asks for: filters, an order, columns and a page."""

    levels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    id: str = ""
    sort: str = _SORT
    columns: tuple[str, ...] = ()
    page: int = 1
    size: int = PAGE_SIZES[0]

    @classmethod
    def read(cls, query: Sequence[tuple[str, str]]) -> Selection:
        """Read the pairs of a query; what is empty asks for nothing."""
        levels: dict[str, set[str]] = {}
        bounds: dict[str, dict[str, float]] = {"min:": {}, "max:": {}}
        columns, single = [], {}
        for name, value in query:
            kind, _, key = name.partition(":")
            if kind == "is" and key:
                levels.setdefault(key, set()).add(value)
            elif kind in {"min", "max"} and key:
                if value.strip():
                    bounds[f"{kind}:"][key] = _read_number(value)
            elif name == "show":
                columns.append(value)
            else:
                single[name] = value
        return cls(
            levels={key: frozenset(wanted) for key, wanted in levels.items()},
            least=bounds["min:"],
            most=bounds["max:"],
            id=single.get("id", ""),
            sort=single.get("sort") or _SORT,
            columns=tuple(dict.fromkeys(columns)),
            page=_read_whole(single.get("page", ""), 1),
            size=min(_read_whole(single.get("size", ""), PAGE_SIZES[0]), PAGE_SIZES[-1]),
        )

    def pairs(self, **changes: Any) -> list[tuple[str, str]]:
        """Give the pairs of a query that asks for this, with some changes."""
        single = {"id": self.id, "sort": self.sort, "size": self.size, "page": self.page, **changes}
        defaults = {"id": "", "sort": _SORT, "size": PAGE_SIZES[0], "page": 1}
        return [
            *((f"is:{key}", each) for key, some in self.levels.items() for each in sorted(some)),
            *((f"min:{key}", f"{value:.17g}") for key, value in self.least.items()),
            *((f"max:{key}", f"{value:.17g}") for key, value in self.most.items()),
            *(("show", key) for key in self.columns),
            *((key, str(v)) for key, v in single.items() if v != defaults.get(key)),
        ]

    def query(self, **changes: Any) -> str:
        """Write the query of an address."""
        return urlencode(self.pairs(**changes))


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

    def choose(self, keys: Sequence[str]) -> list[PeopleColumn]:
        """Give the columns that were chosen, or those that are shown by default."""
        chosen = [self.columns[key] for key in keys if key in self.columns]
        return chosen or [each for each in self.columns.values() if each.shown]

    def select(self, selection: Selection) -> NDArray[np.intp]:
        """Give the places of all who pass the filters, in their order."""
        order = self._order(selection.sort)
        mask = self._mask(selection)
        return order if mask is None else order[mask[order]]

    def page(self, selection: Selection) -> Page:
        """Give one page of them; a page beyond the last is the last."""
        places = self.select(selection)
        pages = max(1, ceil(len(places) / selection.size))
        number = min(selection.page, pages)
        first = (number - 1) * selection.size
        return Page(
            places=places[first : first + selection.size],
            total=len(places),
            number=number,
            pages=pages,
        )

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

    def records(self, places: NDArray[np.intp], columns: Sequence[PeopleColumn]) -> dict[str, Any]:
        """Give the chosen rows as columns of plain values, ids first; names are made unique."""
        found: dict[str, Any] = {"id": self.found.ids[places]}
        for each in columns:
            name = each.key.removeprefix(ATTRIBUTE)
            found[each.key if name in found else name] = plain_values(each.values.take(places))
        return found


def _columns(
    audit: Audit, found: Findings, answers: Categories | None, grade: Any
) -> list[PeopleColumn]:
    words, labels = audit.plan.words, audit.plan.labels
    negative = capitalised(words.averaged)
    controls, tests = found.averages()
    rows, interval = audit.study.people, found.comparison.interval
    strongest = [VERDICTS.index(each.value) for each in Verdict]
    columns = [
        replace(
            _column("outcome", "Outcome", _outcomes(found)),
            label=partial(labels.level, audit.plan.outcome.column),
        ),
        _column("verdict", "Pattern", _recoded(found.verdict_codes(), strongest, VERDICTS)),
    ]
    if answers is not None:
        columns.append(_column("own_case", "Own case", answers))
    if grade is not None:
        columns.append(_column("grade", "Robustness", _coded(grade, _GRADES)))
    columns += [
        _column("delta_p", words.symbol, Numbers(found.comparison.delta_p)),
        *(
            _column(name, found.measure.symbol.capitalize(), Numbers(values))
            for name, values in list(found.measured().items())[:1]
        ),
        _column("p_control", f"{negative}, control", Numbers(controls)),
        _column("p_test", f"{negative}, test", Numbers(tests)),
        _column("p_value", "p-value", Numbers(interval.p_value), shown=False),
        _column("q_value", "q-value", Numbers(found.q_value)),
        _column("radius_control", "Reach, control", Numbers(found.control.radius), shown=False),
        _column("radius_test", "Reach, test", Numbers(found.test.radius), shown=False),
    ]
    if found.p_own is not None:
        own = Numbers(found.p_own)
        columns.append(_column("p_own", words.own_average, own, shown=False))
    population = audit.plan.population
    statuses = [each.attribute for each in audit.plan.protections]
    names = dict.fromkeys([*statuses, *(each.name for each in audit.plan.attributes)])
    columns += [
        replace(
            _column(
                f"{ATTRIBUTE}{name}",
                labels.column(name),
                population.part(name, rows),
                shown=number < 8,
            ),
            label=partial(labels.level, name) if name in labels.levels else None,
        )
        for number, name in enumerate(names)
    ]
    return columns


def _column(key: str, title: str, values: Column, *, shown: bool = True) -> PeopleColumn:
    return PeopleColumn(key=key, title=title, values=values, shown=shown)


def _outcomes(found: Findings) -> Column:
    """Return the outcomes on record, as numbers or by a list of all values."""
    if found.kind.numeric:
        return Numbers(found.outcome)
    return _coded(found.outcome, [plain_value(each) for each in found.kind.listing])


def _recoded(codes: NDArray[Any], places: Sequence[int], levels: Sequence[Any]) -> Categories:
    """Give codes other places among the levels."""
    return Categories(np.array(places, dtype=np.int32)[codes.astype(np.intp)], tuple(levels))


def _coded(values: NDArray[Any], levels: Sequence[Any]) -> Categories:
    codes = np.full(len(values), -1, dtype=np.int32)
    for code, level in enumerate(levels):
        codes[values == level] = code
    return Categories(codes, tuple(levels))


def _short(number: float) -> str:
    return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def _read_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise PlanError("A bound of a range is not a number. Write it like 0.5 or 12000.")
    return number


def _read_whole(text: str, default: int) -> int:
    return max(1, int(text)) if text.isdecimal() and len(text) < 10 else default
