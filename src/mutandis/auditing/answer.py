"""The answer of an audit: three numbers for the table, slices and groups of it, and people.

It goes from the table over nested groups to each person's own neighbourhood, and makes a claim at
each scale only where it holds at all scales above (docs/explanation/answer.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from mutandis.data.columns import Categories
from mutandis.engine.likeness import Cloud, Surroundings, sum_neighbourhoods
from mutandis.engine.study import World
from mutandis.errors import EquationError, printable
from mutandis.verdicts.estimate import Estimate, Regressors, estimate
from mutandis.verdicts.scales import (
    GATE,
    LEAST,
    Averages,
    Cut,
    Effect,
    Ladder,
    Slice,
    Step,
    average_around,
    average_summed,
    by_label,
    climb,
    contrast,
    due,
    gap,
    quarters,
    slices,
    table,
    weigh,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mutandis.auditing.plan import Plan
    from mutandis.auditing.results import Ground
    from mutandis.engine.study import Study
    from mutandis.geometry.embedding import Embedding
    from mutandis.geometry.metric import Points
    from mutandis.report.chart import Picture

__all__ = ["MOST_ROWS", "Answer", "answer"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

_EFFECTS = ("gap", "gap_comparable", "alike", "worldview", "rests_on_worldview", "explained")
_TITLES = {
    "gap": "on record",
    "alike": "alike on record",
    "worldview": "given the worldview",
    "rests_on_worldview": "resting on the worldview",
    "explained": "explained by other attributes",
}
MOST_ROWS = 2_000_000
"""The rows up to which a table is answered, which takes about 700 bytes of memory for each."""
_REFITTED = 20_000  # rows up to which equations are refitted
_TOGETHER = 20_000  # people whose neighbourhoods are summed at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """What is established near each protected person, in the order of the table."""

    comparable: NDArray[np.bool_]
    apart: NDArray[np.int16]  # the attribute that sets a person apart, from 1; 0: comparable
    row: Rows  # the place on the ladder, -1 for people who are not comparable
    step: Floats  # size of the smallest group or neighbourhood established; 0: none
    estimate: Floats  # nan where none is
    low: Floats
    high: Floats
    p: Floats
    due_at_least: Floats  # share of the refusals due to status, of refused people


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What the people and outcomes of an answer are called."""

    people: str = "protected"
    reference: str = "reference"
    refused: str = "refused"
    binary: bool = True

    def size(self, value: float, *, signed: bool = False) -> str:
        """Write a rate or a difference: in points of a hundred, or in units of the score."""
        sign = "+" if signed else ""
        return f"{100 * value:{sign}.1f}" if self.binary else f"{value:{sign}.4g}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer:
    """The answer for one ground: the table, slices and groups of it, and people.

    Positive differences mean that the protected people are worse off.
    """

    gap: Effect  # on record, of all protected people
    gap_comparable: Effect | None  # on record, of those comparable in both worlds
    alike: Effect  # against reference people who are alike on record
    worldview: Effect | None  # against reference people like the counterfactuals
    rests_on_worldview: Effect | None  # worldview - alike
    explained: Effect | None  # gap - worldview, or without one gap - alike
    protected: int
    reference: int
    comparable: int
    slices: tuple[Slice, ...]
    differs: Mapping[str, float]  # by attribute: p that its slices have one effect
    ladder: Ladder | None
    people: People
    words: Words = field(default_factory=Words)

    @property
    def effects(self) -> dict[str, Effect]:
        """The effects by name, without those that were not estimated."""
        known = {name: getattr(self, name) for name in _EFFECTS}
        return {name: each for name, each in known.items() if each is not None}

    @property
    def established(self) -> NDArray[np.bool_]:
        """The protected people for whom a group or neighbourhood shows a difference."""
        return self.people.step > 0

    def as_dict(self) -> dict[str, Any]:
        """Return effects and numbers of people as plain data."""
        effects = {name: asdict(each) for name, each in self.effects.items()}
        for each in effects.values():
            each["estimate"] = None if np.isnan(each["estimate"]) else each["estimate"]
        return {
            **effects,
            "protected": self.protected,
            "reference": self.reference,
            "comparable": self.comparable,
            "established": int(self.established.sum()),
        }

    def to_frame(self) -> Any:
        """Return a table of the effects (pandas), one row each."""
        import pandas as pd

        rows = [{"effect": name, **asdict(each)} for name, each in self.effects.items()]
        return pd.DataFrame(rows).drop(columns="rate")

    def plot(self) -> Picture:
        """Draw the three numbers with their intervals."""
        from mutandis.report.plots import plot_forest

        size = 100.0 if self.words.binary else 1.0

        def end(value: float | None) -> float:
            return np.nan if value is None else size * value

        rows = [
            (_TITLES[name], end(each.estimate), end(each.low), end(each.high))
            for name, each in self.effects.items()
            if name in _TITLES and each.verdict != "insufficient"
        ]
        unit = "points of 100" if self.words.binary else "units of the score"
        return plot_forest(rows, f"Differences in {unit}")

    def rows(self) -> list[tuple[str, str, str]]:
        """Return title, difference with its interval, and verdict of each effect."""
        return [
            (_TITLES[name], self._shown(each), self._judged(each))
            for name, each in self.effects.items()
            if name in _TITLES
        ]

    @property
    def rates(self) -> tuple[str, str]:
        """The mean outcomes on record of the protected and of the reference people."""
        rate = 0.0 if self.gap.rate is None else self.gap.rate
        unit = " %" if self.words.binary else ""
        sides = rate, rate - self.gap.estimate
        first, second = (f"{self.words.size(each)}{unit}" for each in sides)
        return first, second

    def lines(self) -> list[str]:
        """Write the answer in a few lines."""
        words = self.words
        first, second = self.rates
        rows = [("on record", f"{first} against {second}: gap {self._shown(self.gap)}")]
        for name in ("alike", "worldview"):
            effect = getattr(self, name)
            if effect is not None:
                rows.append((_TITLES[name], f"{self._shown(effect)}  {self._judged(effect)}"))
        if self.rests_on_worldview is not None:
            rows.append((_TITLES["rests_on_worldview"], self._shown(self.rests_on_worldview)))
        compared = f"{self.comparable:,} of {self.protected:,}, with {self.reference:,}"
        rows.append(("comparable", f"{compared} {words.reference}"))
        shown = [each for each in self.slices if each.p <= 0.05]
        if self.slices:
            rows.append(("where", f"shown in {len(shown)} of {len(self.slices)} slices"))
        if self.ladder is not None:
            near = f"established near {int(self.established.sum()):,} people"
            rows.append(("who", near))
        width = max(len(title) for title, _ in rows) + 2
        head = f"{words.people} compared with {words.reference}: {words.refused}"
        return [head, *(f"  {title:{width}}{text}" for title, text in rows)]

    def _shown(self, effect: Effect) -> str:
        if effect.verdict == "insufficient":
            return "–"
        size, unit = self.words.size, " points" if self.words.binary else ""
        shown = f"{size(effect.estimate, signed=True)}{unit}"
        if effect.low is None or effect.high is None:
            return shown
        return f"{shown} [{size(effect.low)}, {size(effect.high)}]"

    def _judged(self, effect: Effect) -> str:
        if effect.verdict == "insufficient":
            return f"insufficient: {effect.why}"
        if effect.verdict != "not shown":
            return effect.verdict
        if effect is not self.alike and effect is not self.worldview:  # no power is computed
            return "not shown"
        if effect.could_find is None:
            return "not shown, and no difference could have been shown"
        return f"not shown; could have shown {self.words.size(effect.could_find)}"

    def __repr__(self) -> str:
        """Write the answer in a few lines."""
        return printable("\n".join(self.lines()))

    def _repr_html_(self) -> str:
        """Show the effects in a notebook."""
        head, *rows = self.lines()
        lines = "\n".join(escape(row) for row in rows)
        return f"<p><strong>{escape(head)}</strong></p><pre>{lines}</pre>"

    def packed(self) -> dict[str, Any]:
        """Return all that is stored: plain values and arrays."""
        return {**_plain(self), "words": None}

    @classmethod
    def unpacked(cls, stored: Mapping[str, Any]) -> Answer:
        """Return an answer as it was stored."""
        effects = {
            name: None if stored[name] is None else Effect(**stored[name]) for name in _EFFECTS
        }
        ladder = stored["ladder"]
        return cls(
            **cast("Any", effects),
            **{name: stored[name] for name in ("protected", "reference", "comparable", "differs")},
            slices=tuple(Slice(**each) for each in stored["slices"]),
            ladder=None
            if ladder is None
            else Ladder(steps=tuple(map(_read_step, ladder["steps"])), finest=ladder["finest"]),
            people=People(**stored["people"]),
        )


def _plain(record: Any) -> Any:
    """Turn records into mappings, which arrays and plain values are kept in."""
    if is_dataclass(record):
        return {each.name: _plain(getattr(record, each.name)) for each in fields(record)}
    if isinstance(record, tuple | list):
        return [_plain(each) for each in record]
    return dict(record) if isinstance(record, Mapping) else record


def _read_step(stored: Mapping[str, Any]) -> Step:
    averages = Averages(**stored["averages"])
    return Step(**{**stored, "names": tuple(stored["names"]), "averages": averages})


def _refits(ground: Ground) -> list[World]:
    """Return the worlds of refitted equations; none where these cannot be fitted."""
    if ground.plan.worldview is None or len(ground.plan.population) > _REFITTED:
        return []
    try:
        return [World(point=each) for each in ground.refits()]
    except EquationError:  # weighing the doubt about verdicts says so
        return []


def _clusters(plan: Plan) -> Rows | None:
    """Return the cluster of each row as a number; None where rows are independent."""
    if plan.settings.cluster_by is None:
        return None
    column = plan.population.columns[plan.settings.cluster_by]
    return np.unique(column.data, return_inverse=True)[1].astype(np.intp)


def answer_ground(ground: Ground) -> Answer | None:
    """Answer one ground of an audit from what was made for it; None for very large tables."""
    plan, world = ground.plan, ground.world
    if len(plan.population) > MOST_ROWS:
        return None
    binary = plan.outcome.kind.two_sided
    return answer(
        ground.study,
        ground.engine.embedding,
        None if world.point is None else world,
        plan.outcome.kind.response(plan.outcome.codes),
        binary=binary,
        refits=_refits(ground),
        cluster=_clusters(plan),
        threads=ground.engine.threads,
        alpha=plan.settings.alpha,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One scale on the way from the table to a person."""

    scale: str  # "table", a description of the group, or "nearest"
    size: int
    estimate: float
    low: float
    high: float
    p: float
    established: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Path:
    """What is established on the way from the table to one person."""

    comparable: bool
    apart: str  # the attribute that sets a person apart who is not comparable
    steps: tuple[PathStep, ...]
    step: int  # the size of the smallest group or neighbourhood established, 0 for none
    due_at_least: float | None  # of 1, the share of refusals due to status; of refused people
    words: Words

    def __repr__(self) -> str:
        """Write the path in lines, from the table to the nearest."""
        size, rows = self.words.size, []
        for each in self.steps:
            bounds = f"{size(each.estimate, signed=True)} [{size(each.low)}, {size(each.high)}]"
            shown = "established" if each.established else "not established"
            rows.append((each.scale, f"{each.size:,}", bounds, shown))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            f"  {scale:{widths[0]}}  {number:>{widths[1]}}  {bounds:{widths[2]}}  {shown}"
            for scale, number, bounds, shown in rows
        ]
        return printable("\n".join([self._head, *lines, *self._due]))

    @property
    def _head(self) -> str:
        if not self.comparable:
            return f"No comparable {self.words.reference}: {self.apart!r} sets this person apart."
        if not self.step:
            return "No difference is established near this person."
        return f"A difference is established among {self.step:,} people around this person."

    @property
    def _due(self) -> list[str]:
        if self.due_at_least is None:
            return []
        share = int(100 * self.due_at_least)
        return [f"Of 100 of them {self.words.refused}, at least {share} are so due to status."]


def path_of(found: Answer, place: int, attributes: Sequence[str], alpha: float) -> Path:
    """Return the path of the person at a place among the protected people."""
    people, steps = found.people, []
    comparable = bool(people.comparable[place])
    top = found.alike if found.worldview is None else found.worldview
    nan = float("nan")
    low, high = (nan if each is None else each for each in (top.low, top.high))
    whole = PathStep(
        scale="table",
        size=found.comparable,
        estimate=top.estimate,
        low=low,
        high=high,
        p=top.p,
        established=top.p <= GATE,
    )
    if comparable and found.ladder is not None:
        row = int(people.row[place])
        for each in found.ladder.steps:
            group = int(each.group[row])
            if group < 0:
                break
            here = each.averages.take(np.array([group]))
            bounds = here.bounds(alpha)
            size = int((each.group == group).sum()) if each.names else int(each.size)
            steps.append(
                PathStep(
                    scale=each.names[group] if each.names else "nearest",
                    size=size,
                    estimate=float(here.estimate[0]),
                    low=float(bounds[0][0]),
                    high=float(bounds[1][0]),
                    p=float(here.p[0]),
                    established=bool(each.alive[row]),
                )
            )
    share = float(people.due_at_least[place])
    apart = int(people.apart[place])
    return Path(
        comparable=comparable,
        apart=attributes[apart - 1] if apart else "",
        steps=(whole, *steps),
        step=int(people.step[place]),
        due_at_least=None if np.isnan(share) else share,
        words=found.words,
    )


def slices_table(found: Answer, plan: Plan) -> dict[str, list[Any]]:
    """Return the slices as columns, with the levels or quarters that they hold."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("attribute", "slice", "n", "estimate", "low", "high", "p", "differs")
    }
    for each in found.slices:
        column = plan.population.columns[each.attribute]
        level = f"quarter {each.level + 1}"
        if isinstance(column, Categories):
            level = str(column.levels[each.level])
        values = (each.attribute, level, each.size, each.estimate, each.low, each.high, each.p)
        row = (*values, found.differs.get(each.attribute, float("nan")))
        for name, value in zip(columns, row, strict=True):
            columns[name].append(value)
    return columns


def groups_table(found: Answer, alpha: float) -> dict[str, list[Any]]:
    """Return the nested groups as columns, from the largest to the smallest."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("level", "group", "n", "estimate", "low", "high", "p", "established")
    }
    for level, step in enumerate(found.ladder.steps if found.ladder else (), start=1):
        if not step.names:
            break
        size, (low, high) = np.bincount(step.group), step.averages.bounds(alpha)
        alive = np.zeros(len(step.names), dtype=np.bool_)
        alive[step.group[step.alive]] = True
        for place, name in enumerate(step.names):
            here = (step.averages.estimate, low, high, step.averages.p)
            numbers = [float(each[place]) for each in here]
            row = (level, name, int(size[place]), *numbers, bool(alive[place]))
            for column, value in zip(columns, row, strict=True):
                columns[column].append(value)
    return columns


def words_of(plan: Plan) -> Words:
    """Return what the people and outcomes of a plan are called."""
    labels, (first, *others) = plan.labels, plan.protections
    if others:
        people = " and ".join(labels.column(each.attribute) for each in plan.protections)
        return Words(
            people=f"protected on {people}", refused=labels.negative, binary=_is_binary(plan)
        )
    values = first.values or ("others",)
    names = [labels.people(first.attribute, each) for each in values]
    equals = f"{labels.column(first.attribute)} = {', '.join(map(str, values))}"
    return Words(
        people=", ".join(each for each in names if each) if all(names) else equals,
        reference=labels.people(first.attribute, first.reference)
        or labels.equals(first.attribute, first.reference),
        refused=labels.negative if _is_binary(plan) else labels.column(plan.outcome.column),
        binary=_is_binary(plan),
    )


def _is_binary(plan: Plan) -> bool:
    return plan.outcome.kind.two_sided


def answer(
    study: Study,
    embedding: Embedding,
    world: World | None,
    outcome: Floats,
    *,
    binary: bool,
    refits: Iterable[World] = (),
    cluster: Rows | None = None,
    threads: int = -1,
    alpha: float = 0.05,
) -> Answer:
    """Answer one ground: refusals are 0 and 1, and larger outcomes are worse."""
    protected, reference = len(study.people), len(study.reference)
    record = gap(outcome[study.people], outcome[study.reference], alpha=alpha)
    why = _insufficient(protected, reference, protected)
    if why:
        none = np.zeros(protected, dtype=np.bool_)
        return _refused(record, why, world, _nobody(none, none.astype(np.int16)), reference)
    there = Surroundings(
        study=study, embedding=embedding, outcome=outcome, cluster=cluster, threads=threads
    )
    worlds = [World(), *([] if world is None else [world])]
    approaches = [there.approach(each) for each in worlds]
    sets = [there.comparable(each) for each in approaches]
    kept, alone = np.all(sets, axis=0), ""
    why = _insufficient(protected, reference, int(kept.sum()))
    if why and world is not None:
        # few are alike on record: the worldview is then asked about by itself
        kept, alone = sets[-1], why
        why = _insufficient(protected, reference, int(kept.sum()))
    number, order = int(kept.sum()), np.argsort(there.people)
    apart = np.where(kept, 0, there.apart(approaches[-1])).astype(np.int16)
    if why:
        return _refused(record, why, world, _nobody(kept[order], apart[order]), reference)
    design = _Design(there)
    found = []
    for approach, which in list(zip(approaches, worlds, strict=True))[bool(alone) :]:
        like = there.likeness(approach, kept)
        first = np.zeros(like.match.shape[0], dtype=np.intp)
        first[like.key] = np.flatnonzero(kept)
        found.append(
            estimate(
                like,
                (outcome[there.people[kept]], outcome[there.reference]),
                design.reference,
                [design.of(part.take(first)) for part in approach.parts],
                refits=[
                    [design.of(part.take(first)) for part in there.placed(each)]
                    for each in (refits if which is world else ())
                ],
                model="logistic" if binary else "linear",
                are_draws=bool(which.draws),
            )
        )
    best = found[-1]
    whole = table(best, binary=binary, alpha=alpha)
    alike = Effect.refused(alone) if alone else table(found[0], binary=binary, alpha=alpha)
    rests = None
    if len(found) > 1 and "insufficient" not in (alike.verdict, whole.verdict):
        rests = contrast(best, found[0], alpha=alpha)
    facts = there.facts(kept)
    columns = design.columns(facts.points)[facts.standing]
    ladder: Ladder | None = None
    found_slices: tuple[Slice, ...] = ()
    differs: dict[str, float] = {}
    if whole.verdict != "insufficient":  # nothing is claimed of a part where the whole says nothing
        ladder = climb(best, columns, _around(facts, best), design.name)
        found_slices, differs = slices(best, _labels(there, kept), binary=binary, alpha=alpha)
    return Answer(
        gap=record,
        gap_comparable=gap(outcome[there.people[kept]], outcome[there.reference], alpha=alpha),
        alike=alike,
        worldview=None if world is None else whole,
        rests_on_worldview=rests,
        explained=None if whole.verdict == "insufficient" else contrast(best, None, alpha=alpha),
        protected=protected,
        reference=reference,
        comparable=number,
        slices=found_slices,
        differs=differs,
        ladder=ladder,
        people=_nobody(kept[order], apart[order])
        if ladder is None
        else _people(ladder, kept, apart, best.outcome, order, binary=binary, alpha=alpha),
    )


def _refused(
    record: Effect, why: str, world: World | None, people: People, reference: int
) -> Answer:
    """Return an answer in which nothing but the gap on record is estimated."""
    refused = Effect.refused(why)
    return Answer(
        gap=record,
        gap_comparable=None,
        alike=refused,
        worldview=None if world is None else refused,
        rests_on_worldview=None,
        explained=None,
        protected=len(people.comparable),
        reference=reference,
        comparable=int(people.comparable.sum()),
        slices=(),
        differs={},
        ladder=None,
        people=people,
    )


def _insufficient(protected: int, reference: int, comparable: int) -> str:
    """Explain why nothing can be estimated; empty where it can."""
    if comparable < LEAST or reference < LEAST:
        return (
            f"{comparable} comparable protected and {reference} reference people; at least "
            f"{LEAST} of each are needed"
        )
    if comparable < protected / 2:
        return f"only {comparable} of {protected} protected people have comparable reference people"
    return ""


class _Design:
    """The regressors of points, and their columns in units of the distance."""

    def __init__(self, there: Surroundings) -> None:
        embedding, cloud, population = there.embedding, there.cloud, there.study.population
        self.mismatch, self.axes = embedding.metric.mismatch, embedding.axes
        self.columns_of_levels = [
            (name, level)
            for name in embedding.nominal
            for level in population.categories(name).levels
        ]
        self.levels = [len(population.categories(name).levels) for name in embedding.nominal]
        self.length = np.array([float(axis.length) for axis in embedding.axes])
        self.regressors = Regressors.fit(
            cloud.points.coordinates / self.length, cloud.points.codes, cloud.counts, self.levels
        )
        self.reference = self.of(cloud.points)()

    def of(self, points: Points) -> Callable[[], Floats]:
        """Return what makes the regressors of some points."""
        return lambda: self.regressors.columns(points.coordinates / self.length, points.codes)

    def columns(self, points: Points) -> Floats:
        """Place points so that distances are sums of differences."""
        unit = max([*self.length, *map(float, self.mismatch)], default=1.0)
        blocks = [points.coordinates / unit]
        for code, number, cost in zip(points.codes.T, self.levels, self.mismatch, strict=False):
            blocks.append((code[:, None] == np.arange(number)) * (cost / unit / 2))
        return np.concatenate(blocks, axis=1)

    def name(self, path: Sequence[Cut]) -> str:
        """Describe a group by the cuts that lead to it, as the table has names and values."""
        low: dict[str, float] = {}
        high: dict[str, float] = {}
        levels: list[str] = []
        unit = max([*self.length, *map(float, self.mismatch)], default=1.0)
        for cut in path:
            column = abs(cut.column) - 1
            if column < len(self.axes):
                axis = self.axes[column]
                value = axis.origin + axis.scale * cut.middle * unit / float(axis.length)
                side = high if cut.column > 0 else low
                side[axis.name] = value
                continue
            attribute, level = self.columns_of_levels[column - len(self.axes)]
            levels.append(f"{attribute} {'other than' if cut.column > 0 else '='} {level}")
        numbers = [
            f"{name} {_between(low.get(name), high.get(name))}"
            for name in dict.fromkeys([*low, *high])
        ]
        return ", ".join([*numbers, *levels])


def _between(low: float | None, high: float | None) -> str:
    if low is None:
        return f"below {high:.6g}"
    return f"above {low:.6g}" if high is None else f"{low:.6g} to {high:.6g}"


def _labels(there: Surroundings, kept: NDArray[np.bool_]) -> dict[str, Rows]:
    """Slice comparable people by their recorded attributes: levels, and quarters of numbers."""
    labels, rows = {}, there.people[kept]
    for attribute in there.study.attributes:
        column = there.study.population.part(attribute.name, rows)
        if isinstance(column, Categories):
            labels[attribute.name] = column.codes.astype(np.intp)
        else:
            labels[attribute.name] = quarters(column.values)
    return labels


def _around(facts: Cloud, found: Estimate) -> Callable[[Rows, Sequence[int]], list[Averages]]:
    """Average over neighbourhoods among comparable people, by kernels where there are any."""
    member = by_label(facts.standing, len(facts.points)).multiply(facts.counts[:, None]).tocsr()

    def near(k: int, people: Rows) -> Any:
        weights, _ = facts.nearest(facts.standing[people], k)
        spread = (weights @ member).tolil()
        spread[np.arange(len(people)), people] = 0.0
        return spread.tocsr()

    def around(people: Rows, sizes: Sequence[int]) -> list[Averages]:
        parts = []
        weighed = weigh(found)
        for start in range(0, len(people), _TOGETHER):
            some = people[start : start + _TOGETHER]
            sums = None
            if found.clusters is None:
                sums = sum_neighbourhoods(facts, some, sizes, weighed)
            if sums is None:
                parts.append([average_around(found, near, some, [size]) for size in sizes])
            else:
                parts.append(average_summed(found, sums, sizes))
        return [Averages.join(list(each)) for each in zip(*parts, strict=True)]

    return around


def _nobody(kept: NDArray[np.bool_], apart: NDArray[np.int16]) -> People:
    missing = np.full(len(kept), np.nan)
    names = ("estimate", "low", "high", "p", "due_at_least")
    return People(
        comparable=kept,
        apart=apart,
        row=np.where(kept, np.cumsum(kept) - 1, -1),
        step=np.zeros(len(kept)),
        **dict.fromkeys(names, missing),
    )


def _people(
    ladder: Ladder,
    kept: NDArray[np.bool_],
    apart: NDArray[np.int16],
    outcomes: Floats,
    order: Rows,
    *,
    binary: bool,
    alpha: float,
) -> People:
    """Return each person's smallest established group or neighbourhood, in the table's order."""
    found = _nobody(kept, apart)
    columns = {each.name: getattr(found, each.name).copy() for each in fields(found)}
    rows = np.flatnonzero(kept)
    columns["step"][rows] = ladder.size()
    for number, step in enumerate(ladder.steps, start=1):
        here = np.flatnonzero(ladder.finest == number)
        if not len(here):
            continue
        averages = step.averages.take(step.group[here])
        low, high = averages.bounds(alpha)
        place = rows[here]
        columns["estimate"][place], columns["p"][place] = averages.estimate, averages.p
        columns["low"][place], columns["high"][place] = low, high
        limits = due(averages, whole=False, binary=binary).at_least
        columns["due_at_least"][place] = np.where(outcomes[here] == 1, limits, np.nan)
    return People(**{name: values[order] for name, values in columns.items()})
