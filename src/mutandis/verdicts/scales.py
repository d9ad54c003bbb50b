"""The answer at three scales: the table, slices and groups of it, and a person's neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mutandis.data.rows import ByRow
from mutandis.engine.likeness import Weighed
from mutandis.verdicts.compare import adjust
from mutandis.verdicts.estimate import total

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mutandis.verdicts.estimate import Estimate, Form

    # the weights of the k nearest others of some people: a sparse row for each of them
    Near = Callable[[int, NDArray[np.intp]], Any]
    # averages over the neighbourhoods of some people, of each size
    Around = Callable[[NDArray[np.intp], Sequence[int]], Sequence["Averages"]]

__all__ = [
    "Due",
    "Effect",
    "Ladder",
    "Slice",
    "Step",
    "climb",
    "contrast",
    "due",
    "halve",
    "slices",
    "table",
]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]
Verdict = Literal["more often", "less often", "not shown", "insufficient"]

LEAST = 30  # people on a side, and effective reference people
CLUSTERS = 20  # with protected people
EVENTS = 5  # expected on a side
GATE, ENTRANCE, RATE = 0.04, 0.01, 0.05  # levels of the ladder
GROUP, STEPS = 200, (200, 100, 50, 25)
_TINY = 1e-9
_TOGETHER = 2000  # neighbourhoods that are summed at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A difference between two averages, with its interval."""

    estimate: float
    low: float | None  # two one-sided bounds; None where events are too few
    high: float | None
    p: float  # one-sided: the protected are not worse off
    verdict: Verdict
    why: str = ""
    could_find: float | None = None  # the smallest difference found with 80 % power; None: none
    rate: float | None = None  # of the protected people counted

    @classmethod
    def refused(cls, why: str) -> Effect:
        """Return the effect where none can be estimated."""
        nothing = float("nan")
        return cls(estimate=nothing, low=None, high=None, p=1.0, verdict="insufficient", why=why)


def _tail(t: Floats | float, freedom: Floats | float) -> Any:
    """Return P(T > t)."""
    return special.stdtr(freedom, -np.asarray(t))


def _quantile(share: float, freedom: Floats | float) -> Any:
    return special.stdtrit(freedom, share)


def everyone(found: Estimate) -> Any:
    """Weigh all comparable people alike, as one group."""
    return by_label(np.zeros(found.size, dtype=np.intp), 1)


def by_label(labels: Rows, number: int) -> Any:
    """Weigh the people of each label alike; -1 belongs to no group."""
    from scipy.sparse import csr_array

    people = np.flatnonzero(labels >= 0)
    size = np.bincount(labels[people], minlength=number)
    return csr_array(
        (1.0 / size[labels[people]], (labels[people], people)), shape=(number, len(labels))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Averages(ByRow):
    """Average differences of some groups of people, with the parts of their variances."""

    estimate: Floats
    rate: Floats  # the mean outcome of the people
    own: Floats  # variance that comes from the people
    reference: Floats  # variance that comes from the reference people
    doubt: Floats  # variance that comes from refits of the worldview
    freedom: Floats  # degrees of freedom
    squares: Floats  # sum of the squared weights of the people
    reference_squares: Floats  # and of the reference people

    @property
    def error(self) -> Floats:
        """The standard error of each average."""
        return np.sqrt(np.maximum(self.own + self.reference + self.doubt, _TINY))

    @property
    def p(self) -> Floats:
        """The one-sided p-values: the people are not worse off."""
        return np.asarray(_tail(self.estimate / self.error, self.freedom))

    def bounds(self, alpha: float) -> tuple[Floats, Floats]:
        """Return the one-sided bounds on either side."""
        reach = _quantile(1 - alpha, self.freedom) * self.error
        return self.estimate - reach, self.estimate + reach


def average(found: Estimate, groups: Any, form: Form | None = None) -> Averages:
    """Average the differences over groups, the rows of a sparse matrix of weights."""
    form, squares = form or found.form(groups), groups.multiply(groups)
    own, reference = (
        squares @ (found.residual**2 + found.drawn),
        found.quadratic(form, found.variance),
    )
    doubt, freedom = _variance_over(groups @ found.refitted), np.diff(groups.indptr) / 2
    if found.clusters is not None:
        # residuals are summed by cluster before they are squared: products count as doubt
        whole = (found.by_cluster(groups, form) ** 2).sum(axis=1) + squares @ found.drawn
        doubt = doubt + whole - own - reference
        member = (groups.sign() @ found.clusters.member).tocsr()
        freedom = np.diff(member.indptr) / 2
    return Averages(
        estimate=form.estimate,
        rate=groups @ found.outcome,
        own=own,
        reference=reference,
        doubt=doubt,
        freedom=freedom,
        squares=np.asarray(squares.sum(axis=1)),
        reference_squares=found.quadratic(form, found.counts.astype(np.float64)),
    )


def _variance_over(values: Floats) -> Floats:
    return np.var(values, axis=1, ddof=1) if values.shape[1] else np.zeros(len(values))


def _covariance(found: Estimate, groups: Any, form: Form) -> Floats:
    """Compute the covariance of the averages of a few groups."""
    refitted = groups @ found.refitted
    doubt = np.zeros((groups.shape[0],) * 2)
    if refitted.shape[1]:
        centred = refitted - refitted.mean(axis=1, keepdims=True)
        doubt = centred @ centred.T / (refitted.shape[1] - 1)
    if found.clusters is None:
        own = groups.multiply((found.residual**2 + found.drawn)[None, :]) @ groups.T
        return np.asarray(own.toarray() + found.products(form) + doubt)
    by_cluster = found.by_cluster(groups, form)
    drawn = (groups.multiply(found.drawn[None, :]) @ groups.T).toarray()
    return np.asarray(by_cluster @ by_cluster.T + drawn + doubt)


def _events(found: Estimate, groups: Any, estimates: Floats, *, binary: bool) -> Floats:
    """Count the outcomes expected of the rarer kind, on the side that has more of them."""
    size = np.diff(groups.indptr)
    if not binary:
        return np.full(len(size), np.inf)
    rate = groups @ found.outcome
    other = np.clip(rate - estimates, 0, 1)
    return np.asarray(size * np.minimum(np.maximum(rate, other), 1 - np.minimum(rate, other)))


# --- the table ------------------------------------------------------------------------------------


def table(found: Estimate, *, binary: bool, alpha: float = 0.05) -> Effect:
    """Test the average difference of all comparable people."""
    groups = everyone(found)
    form = found.form(groups)
    here = average(found, groups, form)
    error = float(here.error[0])
    estimate, quantile = float(here.estimate[0]), float(_quantile(1 - alpha, here.freedom[0]))
    p = float(here.p[0])
    weights = np.asarray(form.direct.toarray()[0] + found.design @ form.modelled[0])
    people = (found.counts @ weights) ** 2 / (found.counts @ weights**2)
    few = _events(found, groups, here.estimate, binary=binary)[0] < EVENTS
    why, verdict = "", _verdict(p, alpha)
    if found.clusters is not None and 2 * here.freedom[0] < CLUSTERS:
        why = (
            f"{2 * here.freedom[0]:.0f} clusters among the protected people; {CLUSTERS} are needed"
        )
        verdict = "insufficient"
    elif people < LEAST:
        why = f"the comparison rests on {people:.0f} effective reference people; {LEAST} are needed"
        verdict = "insufficient"
    return Effect(
        estimate=estimate,
        low=None if few else estimate - quantile * error,
        high=None if few else estimate + quantile * error,
        p=p,
        verdict=verdict,
        why=why,
        could_find=_detectable(found, here, quantile, binary=binary),
        rate=float(here.rate[0]),
    )


def _verdict(p: float, alpha: float) -> Verdict:
    if p <= alpha:
        return "more often"
    return "less often" if p >= 1 - alpha else "not shown"


def _detectable(found: Estimate, here: Averages, quantile: float, *, binary: bool) -> float | None:
    """Return the smallest difference that would have been shown with 80 % power."""
    factor = quantile + float(special.ndtri(0.8))
    variance = float(here.error[0]) ** 2
    least = factor * float(here.error[0])
    if not binary:
        return least
    rate = float(here.rate[0])
    other = min(max(rate - float(here.estimate[0]), 0.0), 1.0)
    own = float(here.own[0]) if found.clusters is None else 0.0
    rest = max(variance - own, 0.0)
    for _ in range(30):
        higher = min(other + least, 1.0)
        grown = own * higher * (1 - higher) / max(rate * (1 - rate), 1e-4)
        least = 0.5 * least + 0.5 * factor * float(np.sqrt(grown + rest))
    return least if other + least < 1 else None


def gap(people: Floats, reference: Floats, *, alpha: float = 0.05) -> Effect:
    """Compare the mean outcomes on record, by Welch's test."""
    sides = people, reference
    squares = [float(each.var(ddof=1)) / len(each) if len(each) > 1 else 0.0 for each in sides]
    error = max(sum(squares) ** 0.5, _TINY)
    parts = [each**2 / max(len(side) - 1, 1) for each, side in zip(squares, sides, strict=True)]
    freedom = sum(squares) ** 2 / sum(parts) if sum(parts) > 0 else 1.0
    estimate = float(people.mean() - reference.mean())
    reach = float(_quantile(1 - alpha, freedom)) * error
    p = float(_tail(estimate / error, freedom))
    return Effect(
        estimate=estimate,
        low=estimate - reach,
        high=estimate + reach,
        p=p,
        verdict=_verdict(p, alpha),
        rate=float(people.mean()),
    )


def contrast(first: Estimate, second: Estimate | None, *, alpha: float = 0.05) -> Effect:
    """Compare two averages of the same people; `second` None: the gap on record.

    The outcomes of the protected cancel. Without a second estimate, the result is the gap less
    the first.
    """
    groups = everyone(first)
    form = first.form(groups)
    form = first.gap(groups).minus(form) if second is None else form.minus(second.form(groups))
    drawn, refitted = first.drawn.copy(), first.refitted
    if second is not None:
        drawn = drawn + second.drawn
        sides = [each for each in (refitted, -second.refitted) if each.shape[1]]
        refitted = np.sum(sides, axis=0) if sides else refitted
    if first.clusters is None:
        within = float(first.quadratic(form, first.variance)[0])
    else:
        within = float((first.by_cluster(groups * 0.0, form) ** 2).sum())
    within += float((groups.multiply(groups) @ drawn)[0])
    between = float(_variance_over(groups @ refitted)[0])
    freedom = float(average(first, groups).freedom[0])
    if between > 0:
        number = refitted.shape[1] - 1
        freedom = (within + between) ** 2 / (within**2 / freedom + between**2 / number)
    error = float(np.sqrt(max(within + between, 0.0)))
    estimate, quantile = float(form.estimate[0]), float(_quantile(1 - alpha, freedom))
    p = float(_tail(estimate / max(error, _TINY), freedom))
    return Effect(
        estimate=estimate,
        low=estimate - quantile * error,
        high=estimate + quantile * error,
        p=p,
        verdict=_verdict(p, alpha),
    )


# --- slices ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The comparable people with one level, or within one quarter, of an attribute."""

    attribute: str
    level: int
    size: int
    estimate: float
    low: float  # simultaneous over all slices
    high: float
    p: float  # Holm


def slices(
    found: Estimate, labels: Mapping[str, Rows], *, binary: bool, alpha: float = 0.05
) -> tuple[tuple[Slice, ...], dict[str, float]]:
    """Estimate the difference in each slice; test whether it differs between those of an attribute.

    The second result has a p-value per attribute, corrected for the number of attributes.
    """
    rows: list[tuple[str, int, int, float, float, float]] = []
    differs: dict[str, float] = {}
    for name, label in labels.items():
        values, size = np.unique(label, return_counts=True)
        chosen = values[(size >= LEAST) & (size < found.size)]
        if not len(chosen):
            continue
        place = np.searchsorted(chosen, label)
        here = np.append(chosen, -1)[place] == label
        groups = by_label(np.where(here, place, -1), len(chosen))
        form = found.form(groups)
        each = average(found, groups, form)
        enough = _events(found, groups, each.estimate, binary=binary) >= EVENTS
        rows += [
            (
                name,
                int(chosen[i]),
                int(size[values == chosen[i]][0]),
                float(each.estimate[i]),
                float(each.error[i]),
                float(each.freedom[i]),
            )
            for i in np.flatnonzero(enough)
        ]
        if enough.sum() > 1:
            covariance = _covariance(found, groups, form)[np.ix_(enough, enough)]
            differs[name] = _heterogeneity(each.estimate[enough], covariance)
    if not rows:
        return (), {}
    estimates, errors, freedoms = (np.array(each) for each in list(zip(*rows, strict=True))[3:])
    holm = adjust(np.asarray(_tail(estimates / errors, freedoms)), method="holm")
    reach = _quantile(1 - alpha / (2 * len(rows)), freedoms) * errors
    found_slices = tuple(
        Slice(
            attribute=name,
            level=level,
            size=size,
            estimate=estimate,
            low=estimate - float(reach[i]),
            high=estimate + float(reach[i]),
            p=float(holm[i]),
        )
        for i, (name, level, size, estimate, *_) in enumerate(rows)
    )
    return found_slices, {name: min(1.0, p * len(differs)) for name, p in differs.items()}


def _heterogeneity(estimates: Floats, covariance: Floats) -> float:
    """Test by Wald's χ² whether all averages are the same."""
    number = len(estimates)
    against = np.eye(number)[1:] - np.eye(number)[0]
    apart = against @ estimates
    spread = np.linalg.pinv(against @ covariance @ against.T)
    return float(special.chdtrc(number - 1, apart @ spread @ apart))


# --- groups and neighbourhoods --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How a group was halved: at a value of a coordinate, or a level against the others."""

    column: int
    middle: float


def halve(columns: Floats, least: int = GROUP) -> list[tuple[Rows, list[tuple[Cut, ...]]]]:
    """Halve people again and again, while both halves keep `least`.

    Each step is cut at the middle of the column of the largest variance, in units of the distance.
    The result has, for each level of the tree, the group of each person, and the cuts that lead to
    each group: positive columns (from 1) are below the middle, negative ones above.
    """
    current: list[tuple[Rows, tuple[Cut, ...]]] = [(np.arange(len(columns)), ())]
    levels: list[tuple[Rows, list[tuple[Cut, ...]]]] = []
    while True:
        following: list[tuple[Rows, tuple[Cut, ...]]] = []
        for people, path in current:
            cut = _cut(columns, people, least)
            if cut is None:
                following.append((people, path))
                continue
            column, middle = cut
            below = columns[people, column] < middle
            following += [
                (people[below], (*path, Cut(column=column + 1, middle=middle))),
                (people[~below], (*path, Cut(column=-column - 1, middle=middle))),
            ]
        if len(following) == len(current):
            return levels
        current = following
        labels = np.empty(len(columns), dtype=np.intp)
        for number, (people, _) in enumerate(current):
            labels[people] = number
        levels.append((labels, [path for _, path in current]))


def _cut(columns: Floats, people: Rows, least: int) -> tuple[int, float] | None:
    if len(people) < 2 * least:
        return None
    here = columns[people]
    variance = here.var(axis=0)
    for column in np.argsort(-variance, kind="stable"):
        if variance[column] <= 1e-12:
            return None
        values, counts = np.unique(here[:, column], return_counts=True)
        below = np.cumsum(counts)[:-1]
        best = int(np.abs(below - len(people) / 2).argmin())
        if min(below[best], len(people) - below[best]) >= least:
            return int(column), float((values[best] + values[best + 1]) / 2)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One scale between the table and a person: a partition into groups, or neighbourhoods."""

    size: float  # of neighbourhoods; the median size of groups
    group: Rows  # by person: the place in `averages`, -1 where it was not needed
    names: tuple[str, ...]  # of groups; neighbourhoods have none
    averages: Averages
    alive: Bools  # by person: established at this step and at all above it


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """From the table over groups to each person's neighbourhood."""

    steps: tuple[Step, ...]
    finest: Rows  # by person: the number of the last step that is established, 0 for none

    def size(self) -> Floats:
        """Return the size of the smallest group or neighbourhood that is established; 0: none."""
        sizes = np.array([0.0, *(each.size for each in self.steps)])
        return sizes[self.finest]


def climb(
    found: Estimate,
    columns: Floats,
    around: Around,
    name: Callable[[Sequence[Cut]], str] = str,
    *,
    least: int = GROUP,
    sizes: Sequence[int] = STEPS,
) -> Ladder:
    """Test the table, then nested groups, then neighbourhoods; a claim needs all steps above."""
    top = float(average(found, everyone(found)).p[0])
    levels = halve(columns, least)
    half = found.size // 2
    ks = [k for k in sizes if k <= half]
    ks = [half, *ks] if LEAST <= half < 50 else ks
    medians = [float(np.median(np.bincount(labels))) for labels, _ in levels]
    planned = [*medians, *map(float, ks)]
    alive, finest = np.full(found.size, top <= GATE), np.zeros(found.size, dtype=np.intp)
    if not planned:
        return Ladder(steps=(), finest=finest)
    wanted = max(50.0, found.size / 8)
    entrance = int(np.argmin([abs(size - wanted) for size in planned]))
    steps: list[Step] = []
    for number, size in enumerate(planned):
        if number < len(levels):
            group, paths = levels[number]
            here = average(found, by_label(group, len(paths)))
        else:
            if number == len(levels):
                asked = np.arange(found.size) if number <= entrance else np.flatnonzero(alive)
                if not len(asked):
                    break
                group, paths = np.full(found.size, -1), []
                group[asked] = np.arange(len(asked))
                neighbourhoods = around(asked, ks)
            here = neighbourhoods[number - len(levels)]
        living = np.unique(group[alive])
        shown = np.zeros(len(here.estimate) + 1, dtype=np.bool_)
        shown[living] = adjust(here.p[living], method="benjamini-hochberg") <= RATE
        alive = alive & shown[group]
        if number == entrance:
            entered = adjust(here.p, method="benjamini-hochberg") <= ENTRANCE
            alive = alive | np.append(entered, False)[group]
        finest[alive] = number + 1
        names = tuple(map(name, paths))
        step = Step(size=size, group=group, names=names, averages=here, alive=alive)
        steps.append(step)
    return Ladder(steps=tuple(steps), finest=finest)


def average_around(found: Estimate, near: Near, people: Rows, sizes: Sequence[int]) -> Averages:
    """Average over the neighbourhoods of some people, of each size in turn."""
    parts = []
    for size in sizes:
        for start in range(0, len(people), _TOGETHER):
            here = average(found, near(size, people[start : start + _TOGETHER]))
            freedom = here.freedom
            if found.clusters is None:
                freedom = np.full(len(here.own), size / 2)
            parts.append(replace(here, freedom=freedom))
    return Averages.join(parts)


def weigh(found: Estimate) -> Weighed:
    """List what `average_summed` needs summed over neighbourhoods."""
    metrics = np.column_stack([found.variance, found.counts])
    products = [found.weights @ (found.design * each[:, None]) for each in metrics.T]
    by_key = np.hstack([found.gradient, *products])
    columns = [found.difference, found.outcome, *found.refitted.T]
    return Weighed(
        columns=np.column_stack([*columns, by_key[found.key]]),
        squared=np.column_stack([found.residual**2 + found.drawn, np.ones(found.size)]),
        key=found.key,
        weights=found.weights,
        metrics=metrics,
    )


def average_summed(
    found: Estimate, sums: tuple[Floats, Floats, Floats], sizes: Sequence[int]
) -> list[Averages]:
    """Make averages of each size from what was summed over neighbourhoods."""
    width, refits = found.design.shape[1], found.refitted.shape[1]
    metrics = found.variance, found.counts
    inner = [total(found.design * each[:, None], found.design) for each in metrics]
    averages = []
    for place, size in enumerate(sizes):
        means, squares, products = (each[:, place] for each in sums)
        ends = 2, 2 + refits, 2 + refits + width, 2 + refits + 2 * width
        known, refitted, gradient, *crosses = np.split(means, ends, axis=1)
        modelled = gradient @ found.inverse
        reference = [
            products[:, metric]
            + 2 * (cross * modelled).sum(axis=1)
            + ((modelled @ inner[metric]) * modelled).sum(axis=1)
            for metric, cross in enumerate(crosses)
        ]
        averages.append(
            Averages(
                estimate=known[:, 0],
                rate=known[:, 1],
                own=squares[:, 0],
                reference=reference[0],
                doubt=_variance_over(refitted),
                freedom=np.full(len(means), size / 2),
                squares=squares[:, 1],
                reference_squares=reference[1],
            )
        )
    return averages


# --- a person's own refusal -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Due(ByRow):
    """Which share of the refusals in some neighbourhoods is due to status."""

    error: Floats  # of the average difference
    low: Floats  # bounds of the probability of necessity (Tian and Pearl); nan where none refused
    high: Floats
    at_least: Floats  # one-sided 95 % limit


def due(here: Averages, *, whole: bool, binary: bool) -> Due:
    """Bound the share of refusals due to status in neighbourhoods, or in the whole table."""
    rate, estimate = here.rate, here.estimate
    own, reference = here.own, here.reference
    if binary and not whole:
        share = np.clip(rate - estimate, 0, 1)
        own = np.maximum(own, rate * (1 - rate) * here.squares)
        reference = np.maximum(reference, share * (1 - share) * here.reference_squares)
    refused, rest = (rate > 0) & binary, reference + here.doubt
    down = np.where(refused, rate, 1.0)
    return Due(
        error=np.sqrt(np.maximum(own + rest, 0.0)),
        low=np.where(refused, np.clip(estimate / down, 0, 1), np.nan),
        high=np.where(refused, np.clip((1 - rate + estimate) / down, 0, 1), np.nan),
        at_least=np.where(refused, _fieller(estimate, rate, own, rest), np.nan),
    )


def _fieller(estimate: Floats, rate: Floats, own: Floats, rest: Floats) -> Floats:
    """Return the largest part of the rate that the estimate exceeds, tested at 5 %."""
    limit = np.zeros(len(rate))
    for part in np.linspace(-1, 1, 401):
        margin = special.ndtri(0.95) * np.sqrt(np.maximum((1 - part) ** 2 * own + rest, 1e-12))
        limit = np.where(estimate - part * rate >= margin, max(part, 0.0), limit)
    return limit


def quarters(values: Floats) -> Rows:
    """Cut at the quartiles; equal values stay together."""
    return np.searchsorted(np.unique(np.quantile(values, [0.25, 0.5, 0.75])), values, side="left")
