"""Who is affected: short rules that describe the cases, and the mean difference by attribute.

A rule joins at most three conditions on attributes. Its quality is the weighted relative accuracy:
the number of cases that it covers beyond what a random group of its size would hold. Whether a rule
says more than chance is asked by shuffling the cases among the complainants and searching again,
each time in the same way: the p-value of a rule is the share of shuffles in which some rule is
as good. So it takes the search into account. People who meet the same conditions are counted
together, in an order of the conditions: no number depends on the order of the rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from functools import partial
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.data.columns import Categories, Numbers, write_number
from mutandis.data.equal_rows import sort_order
from mutandis.evidence.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.data.columns import Column
    from mutandis.data.labels import Labels
    from mutandis.evidence.findings import Findings

__all__ = [
    "LEAST",
    "RULE_COLUMNS",
    "SHUFFLES",
    "Bar",
    "Chart",
    "Rule",
    "cases_of",
    "find_rules",
    "mean_by_attribute",
    "sort_masks",
]

_CONDITIONS = 3
SHUFFLES = 199
"""How often cases are shuffled."""
_BEAM = 12
_MOST_RULES = 5
_MOST_LEVELS = 12
# of more complainants, a sample is searched; rules are then counted on all
_MOST_SEARCHED = 5_000
# kinds of people that are added up at a time
_TILE = 256
# people who are sorted by what they meet at a time
_BLOCK = 1 << 14
_QUANTILES = (0.25, 0.5, 0.75)
LEAST = 10
"""How many a rule covers at least; of fewer cases, or fewer others, there are no rules."""
_LEAST_SHARE = 0.02
# rules that cover nearly the same people as a better one, or have some of its conditions and no
# others, say nothing new
_SAME = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A description: its conditions, whom it covers, and how it compares with everyone."""

    conditions: tuple[str, ...]
    covered: int
    cases: int
    coverage: float  # the share of all cases that it covers
    share: float  # of cases among those covered
    lift: float  # that share over the share among all complainants
    p_value: float

    @property
    def text(self) -> str:
        """The conditions in one phrase."""
        return " and ".join(self.conditions)

    def record(self) -> dict[str, Any]:
        """Give it as a row of a table."""
        return {**asdict(self), "conditions": self.text}


RULE_COLUMNS = tuple(each.name for each in fields(Rule))
"""The columns of a table of rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The mean difference of some complainants."""

    label: str
    people: int
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The mean difference by one attribute."""

    attribute: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class _Literal:
    """One condition, and who meets it."""

    attribute: str
    text: str
    mask: NDArray[np.bool_]


def cases_of(found: Findings) -> NDArray[np.bool_]:
    """Mark who is described: those with a pattern, or with evidence where nothing is tested."""
    return (
        found.has_pattern if METHODS[found.method].count_neighbours else found.comparison.evidence
    )


def find_rules(audit: Audit, is_case: NDArray[np.bool_], *, seed: int | None = None) -> list[Rule]:
    """Search for rules that describe the cases among the complainants, the best first.

    The seed of the shuffles is that of the plan, unless one is given.
    """
    literals = _literals(audit)
    cases = int(is_case.sum())
    if not literals or min(cases, len(is_case) - cases) < LEAST:
        return []
    rng = np.random.default_rng((audit.plan.settings.seed or 0) if seed is None else seed)
    masks = np.array([each.mask for each in literals])
    rows = _sample(masks, is_case, rng)
    search = _Search(masks[:, rows])
    found = search.rules(is_case[rows])
    shuffled = search.shuffle(int(is_case[rows].sum()), rng)
    better: list[tuple[frozenset[int], NDArray[np.bool_]]] = []
    rules: list[Rule] = []
    for quality, members in found:
        mask = np.logical_and.reduce(masks[sorted(members)])
        if any(_overlap(mask, other) > _SAME for _, other in better):
            continue
        better.append((members, mask))
        if any(members < others for others, _ in better):
            continue
        covered, hit = int(mask.sum()), int((mask & is_case).sum())
        rules.append(
            Rule(
                conditions=tuple(literals[each].text for each in sorted(members)),
                covered=covered,
                cases=hit,
                coverage=hit / cases,
                share=hit / covered,
                lift=hit / covered / (cases / len(is_case)),
                p_value=(1 + int((shuffled >= quality).sum())) / (1 + SHUFFLES),
            )
        )
        if len(rules) == _MOST_RULES:
            break
    return rules


def _sample(
    masks: NDArray[np.bool_], is_case: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Give the complainants to search among: all, or some drawn in an order of what they meet."""
    if len(is_case) <= _MOST_SEARCHED:
        return np.arange(len(is_case))
    order = sort_masks([*masks, is_case])
    return order[rng.choice(len(order), _MOST_SEARCHED, replace=False)]


def sort_masks(masks: Sequence[NDArray[np.bool_]]) -> NDArray[np.intp]:
    """Sort people by what they meet, as `np.lexsort` does the bytes of eight masks each."""
    if len(masks) > 64:
        return np.lexsort(np.packbits(masks, axis=0))
    numbers = np.zeros(len(masks[0]), dtype=np.uint64)
    for start in range(0, len(numbers), _BLOCK):
        block = numbers[start : start + _BLOCK]
        for place, mask in enumerate(masks):
            bit = np.uint64(place // 8 * 8 + 7 - place % 8)
            block |= mask[start : start + _BLOCK].astype(np.uint64) << bit
    return sort_order(numbers)


class _Search:
    """A beam search for conjunctions among people, who are counted by the conditions they meet.

    The quality of a rule is multiplied by their number: it is whole, and exact.
    """

    def __init__(self, masks: NDArray[np.bool_]) -> None:
        _, first, kinds, people = np.unique(
            np.packbits(masks, axis=0).T,
            axis=0,
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        # numpy 2.0 gives them the shape of a column
        self._kinds = kinds.ravel()
        # filled up with kinds of no people, so that tiles are whole
        size = -(-len(people) // _TILE) * _TILE
        self._masks, self._people = np.zeros((len(masks), size)), np.zeros(size)
        self._masks[:, : len(people)], self._people[: len(people)] = masks[:, first], people
        self._tiles = _tiled(self._masks).transpose(1, 2, 0).copy()
        self._total = masks.shape[1]
        self._least = max(LEAST, _LEAST_SHARE * self._total)
        # how many meet each two conditions
        self._pairs = self._sum(self._masks * self._people)
        self._more: dict[frozenset[int], float] = {}  # and each more, once asked for

    def best(self, is_case: NDArray[np.bool_]) -> float:
        """Give the quality of the best rule."""
        return self._best(self._count(self._kinds[is_case]))

    def shuffle(self, cases: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Give the quality of the best rule where as many cases are drawn at random."""
        kinds = np.sort(self._kinds)
        drawn = (rng.choice(kinds, cases, replace=False) for _ in range(SHUFFLES))
        return np.array([self._best(self._count(each)) for each in drawn])

    def rules(self, is_case: NDArray[np.bool_]) -> list[tuple[float, frozenset[int]]]:
        """List rules that are better than none, the best first, of equal ones the shorter."""
        each_rule = self._search(self._count(self._kinds[is_case]))
        found = {members: quality for quality, members in each_rule if quality > 0}
        ordered = sorted(found.items(), key=lambda each: (-each[1], len(each[0]), sorted(each[0])))
        return [(quality, members) for members, quality in ordered]

    def _count(self, kinds: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.bincount(kinds, minlength=len(self._people)).astype(np.float64)

    def _sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up whole numbers over the people who meet each condition, tile by tile.

        For larger products, BLAS starts threads that wait for each other longer than they work.
        """
        return np.asarray((_tiled(values).transpose(1, 0, 2) @ self._tiles).sum(axis=0))

    def _best(self, cases: NDArray[np.float64]) -> float:
        return max((quality for quality, _ in self._search(cases, last=1)), default=0.0)

    def _search(
        self, cases: NDArray[np.float64], *, last: int = _BEAM
    ) -> Iterator[tuple[float, frozenset[int]]]:
        """Give the best rules of one condition, of two, and so many (`last`) of the most."""
        masks, number = self._masks, len(self._masks)
        # what each kind of people adds to the quality
        gains = self._total * cases - cases.sum() * self._people
        groups = [frozenset[int]()]
        covers = np.ones((1, masks.shape[1]))
        for conditions in range(1, _CONDITIONS + 1):
            quality = self._sum(covers * gains)
            for row, members in enumerate(groups):
                quality[row, sorted(members)] = -np.inf
            order = np.argsort(-quality, axis=None, kind="stable")
            seen: dict[frozenset[int], float] = {}
            places = []
            for place in order.tolist():
                row, literal = divmod(place, number)
                most = last if conditions == _CONDITIONS else _BEAM
                if len(seen) == most or not np.isfinite(quality[row, literal]):
                    break
                members = groups[row] | {literal}
                if members not in seen and self._met(members) >= self._least:
                    seen[members] = float(quality[row, literal])
                    places.append((row, literal))
            yield from ((each, members) for members, each in seen.items())
            groups = list(seen)
            if not groups:
                return
            rows, literals = zip(*places, strict=True)
            if conditions < _CONDITIONS:
                covers = covers[list(rows)] * masks[list(literals)]

    def _met(self, members: frozenset[int]) -> float:
        """Count the people who meet all conditions of a rule."""
        if len(members) <= 2:
            return float(self._pairs[min(members), max(members)])
        if members not in self._more:
            met = np.multiply.reduce(self._masks[sorted(members)])
            self._more[members] = float((met * self._people).sum())
        return self._more[members]


def _tiled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cut rows into tiles."""
    return values.reshape(len(values), -1, _TILE)


def _overlap(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    return float((first & second).sum() / max(1, int((first | second).sum())))


def _literals(audit: Audit) -> list[_Literal]:
    return [
        _Literal(name, text, mask)
        for name, column, ordered in _columns(audit)
        for text, mask in _conditions(name, column, audit.plan.labels, ordered=ordered)
        if 0 < mask.sum() < len(mask)
    ]


def _columns(audit: Audit) -> Iterator[tuple[str, Column, bool]]:
    """Give the attributes of the complainants, and whether their levels have an order."""
    rows, population = audit.situation.complainants, audit.plan.population
    kinds = {each.name: each.kind for each in audit.plan.attributes}
    names = dict.fromkeys([*(each.attribute for each in audit.plan.protections), *kinds])
    for name in names:
        yield name, population.part(name, rows), kinds.get(name) is AttributeKind.ORDINAL


def _conditions(
    name: str, column: Column, labels: Labels, *, ordered: bool
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    called = labels.column(name)
    if isinstance(column, Numbers):
        for cut in _cuts(column):
            yield f"{called} ≤ {write_number(cut)}", column.values <= cut
            yield f"{called} > {write_number(cut)}", column.values > cut
        return
    counts = column.counts()
    if ordered:
        for code in np.flatnonzero(counts)[:-1].tolist():
            level = labels.level(name, column.levels[code])
            yield f"{called} at most {level}", column.codes <= code
            yield f"{called} above {level}", column.codes > code
        return
    for code in np.argsort(-counts, kind="stable")[:_MOST_LEVELS].tolist():
        yield f"{called} = {labels.level(name, column.levels[code])}", column.codes == code


def _cuts(column: Numbers) -> list[float]:
    quantiles = np.quantile(column.values, _QUANTILES, method="lower")
    return [float(each) for each in np.unique(quantiles) if each < column.values.max()]


def mean_by_attribute(audit: Audit, delta_p: NDArray[np.float64]) -> list[Chart]:
    """Average the differences by attribute: over quarters of numbers, and over levels."""
    charts, labels = [], audit.plan.labels
    for name, column, ordered in _columns(audit):
        bars = [
            Bar(
                label=label,
                people=int(known.sum()),
                mean=fsum(delta_p[known].tolist()) / int(known.sum()),
            )
            for label, mask in _parts(column, partial(labels.level, name), ordered=ordered)
            if (known := mask & ~np.isnan(delta_p)).any()
        ]
        if len(bars) > 1:
            charts.append(Chart(attribute=labels.column(name), bars=tuple(bars)))
    return charts


def _parts(
    column: Column, said: Callable[[Any], str], *, ordered: bool
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    if isinstance(column, Categories):
        codes = np.flatnonzero(column.counts())
        if not ordered:
            codes = codes[np.argsort(-column.counts()[codes], kind="stable")]
        for code in codes[:_MOST_LEVELS].tolist():
            yield said(column.levels[code]), column.codes == code
        return
    low = -np.inf
    for cut in _cuts(column):
        yield (
            f"{'≤' if low == -np.inf else f'{write_number(low)} to'} {write_number(cut)}",
            ((column.values > low) & (column.values <= cut)),
        )
        low = cut
    yield (f"> {write_number(low)}" if np.isfinite(low) else "all"), column.values > low
