"""A case: everything about one complainant, as a view on an audit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from html import escape
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.sentences import answer_own_case, explain, explain_drawn, explain_own_case
from mutandis.data.columns import Numbers, plain_value
from mutandis.engine.members import Lister, Members
from mutandis.engine.tally import CST_MATCHED, METHODS, Pair
from mutandis.errors import PlanError, UnknownIdError, printable
from mutandis.numeric.order import rank_ids
from mutandis.verdicts.findings import weakest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.results import Ground
    from mutandis.auditing.sentences import Answer
    from mutandis.data.columns import Column
    from mutandis.data.population import Population
    from mutandis.engine.members import Listed
    from mutandis.engine.tally import Method

__all__ = ["Case", "drawn_values", "list_members", "locate", "open_case"]

_Drawn = tuple[tuple[Any, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Case:
    """One complainant.

    Parameters
    ----------
    audit, place, row
        The audit, the complainant's place among all complainants, and the row of the table.
    factual, counterfactual
        The attributes, as they are and as they would have been; None without counterfactuals.
    results
        The row of the findings, for each (method, k).
    drawn
        By attribute that the facts leave open: the values that it has in draws, each with the share
        of draws, the most frequent first. The comparison averages over the draws; the one value in
        `counterfactual` decides nothing.

    Examples
    --------
    >>> import mutandis as mm
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=400, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous"},
    ...     worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
    ...     ks=(10,),
    ... )
    >>> case = found.case(found.findings()["id"].iloc[0])
    >>> case.result("cst_without", k=10)["verdict"]
    'evidence'
    >>> case.own_case
    'yes'
    """

    audit: Audit
    place: int
    row: int
    factual: Mapping[str, Any]
    counterfactual: Mapping[str, Any] | None
    results: Mapping[tuple[str, int], Mapping[str, Any]]
    drawn: Mapping[str, _Drawn] = field(default_factory=dict)

    @property
    def id(self) -> Any:
        """The complainant's id."""
        return plain_value(self.audit.plan.population.ids[self.row])

    @property
    def outcome(self) -> Any:
        """The outcome on record."""
        return next(iter(self.results.values()))["outcome"]

    @property
    def outcome_cf(self) -> Any:
        """The outcome of the counterfactual; None where it is not known."""
        return next(iter(self.results.values()))["outcome_cf"]

    @property
    def outcome_cf_share(self) -> float | None:
        """The share of draws with the counterfactual outcome; None where it is not open."""
        world = self.audit.ground.world
        drawn, would_be = world.decided_parts, world.decided
        numeric = self.audit.plan.outcome.kind.numeric
        if drawn is None or would_be is None or numeric or len(self.audit.grounds) > 1:
            return None
        return float((drawn[:, self.place] == would_be[self.row]).mean())

    @property
    def couplings(self) -> Mapping[str, str]:
        """The attributes whose counterfactual rests on an assumption that no data can test."""
        found: Mapping[str, str] = self.audit.provenance.computed["couplings"]
        return found

    def result(self, method: str, *, k: int) -> Mapping[str, Any]:
        """Return the row of the findings under one method and one k."""
        if (method, k) not in self.results:
            raise PlanError(f"The audit did not run method {method!r} at k={k}.")
        return self.results[method, k]

    def groups(self, method: str, *, k: int) -> Pair[Members]:
        """List the people in the control and the test group; they are searched when asked for.

        Of several grounds, those of the one with the weakest evidence.
        """
        return list_members(self._ground(method, k), self.place, METHODS[method], k)

    def balance(self, method: str, k: int) -> Pair[Mapping[str, float]]:
        """Compare the search centers with the people around them, by attribute."""
        from mutandis.auditing.support import measure_balance

        ground, asked = self._ground(method, k), METHODS[method]
        groups = list_members(ground, self.place, asked, k)
        return measure_balance(ground.study, ground.world, self.row, asked, groups)

    def _ground(self, method: str, k: int) -> Ground:
        self.result(method, k=k)
        grounds = self.audit.grounds
        if len(grounds) == 1:
            return grounds[0]
        found = self.audit.evaluate(method, k, places=np.array([self.place]))
        against = np.stack([each.against for each in found.parts.values()])
        return grounds[int(weakest(against, worse=self.audit.plan.rule.worse)[0])]

    def explain(self, method: str | None = None, k: int | None = None) -> str:
        """Describe in careful sentences what was found: the pattern, and then the own case."""
        return f"{self.explain_pattern(method, k)} {self.explain_own_case()}"

    def explain_pattern(self, method: str | None = None, k: int | None = None) -> str:
        """Describe in one sentence what was found about people like the complainant."""
        primary_method, primary_k = self.audit.plan.settings.primary
        method, k = method or primary_method, primary_k if k is None else k
        return explain(self.result(method, k=k), method, k, self.audit.plan)

    @property
    def own_case(self) -> Answer:
        """Whether there is a case of one's own: refused, although most people alike were not.

        Of a score: whether it is worse than the mean of theirs, by more than τ. These are the
        people most like the complainant's counterfactual, where the audit runs `cst_matched`.
        """
        return answer_own_case(self.own_result(), self.audit.plan)

    def explain_own_case(self) -> str:
        """Describe the decisions on the complainant, and on people like the counterfactual."""
        return explain_own_case(self.own_result(), self.audit.plan)

    def own_result(self) -> dict[str, Any]:
        """Return the row of the headline, with the own case of the matched comparison."""
        kind, primary = self.audit.plan.outcome.kind, self.audit.plan.settings.primary
        matched = kind.plain(self.results.get((CST_MATCHED.name, primary[1]), {}))
        own = {name: matched.get(name) for name in ("p_own", "own_case")}
        return {**kind.plain(self.results[primary]), **own}

    def __repr__(self) -> str:
        """Name the case and its two answers; no value of a row."""
        method, k = self.audit.plan.settings.primary
        verdict = self.results[method, k]["verdict"]
        return f"Case({method} at k={k}: {verdict}; own case: {self.own_case})"

    def _repr_html_(self) -> str:
        """Show the page of text in a notebook."""
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        """Show the case as a page of text."""
        write, share = self.audit.plan.words.value, self.outcome_cf_share
        would_be = "not decided" if self.outcome_cf is None else write(self.outcome_cf)
        would_be += "" if share is None else f" (in {share:.0%} of draws)"
        method, k = self.audit.plan.settings.primary
        verdict = self.results[method, k]["verdict"]
        lines = [
            f"Complainant {self.id}: outcome {write(self.outcome)}, counterfactual {would_be}",
            *self._attribute_lines(),
            f"Pattern among similar people ({method} at k = {k}): {verdict}",
            *wrap(self.explain_own_case(), width=96, subsequent_indent="  "),
            *self._result_lines(),
        ]
        return printable("\n".join(lines))

    def _attribute_lines(self) -> Iterator[str]:
        labels = self.audit.plan.labels
        width = max((len(labels.column(name)) for name in self.factual), default=0)
        for name, value in self.factual.items():
            show = partial(labels.level, name, show=_show)
            line = f"  {labels.column(name):<{width}}  {show(value)}"
            if self.counterfactual is not None:
                would_be = self.counterfactual[name]
                likely = explain_drawn(would_be, self.drawn.get(name, ()), show)
                line += f"  →  {show(would_be)}{f' ({likely})' if likely else ''}"
            if name in self.couplings:
                line += f"  (assuming {self.couplings[name]}, which no data can test)"
            yield line

    def _result_lines(self) -> Iterator[str]:
        words, measure = self.audit.plan.words, self.audit.plan.settings.measure
        drawn = any("verdict_share" in result for result in self.results.values())
        (control, test), wide = words.row()
        ratio = f"{measure.symbol:>15}" if measure.is_ratio else ""
        stays = f"{'verdict stays':>30}" if drawn else ""
        yield (
            f"  {'method':<12} {'k':>4} {control:>{wide + 2}} {test:>{wide}} "
            f"{words.symbol:>{wide}}{ratio}  interval          verdict{stays}"
        )
        # the interval is that of the measure
        ends = [f"{measure.column}_{end}" if measure.is_ratio else f"ci_{end}" for end in _ENDS]
        for (method, k), result in self.results.items():
            row, verdict = words.kind.plain(result), result["verdict"]
            low, high = (row[each] for each in ends)
            control, test, delta = (words.number(row[each]) for each in _SHOWN)
            ratio = f"{row[measure.column]:>15.3f}" if measure.is_ratio else ""
            show = words.number
            interval = "" if np.isnan(low) else f"[{show(low):>6}, {show(high):>6}]"
            share = f"{row['verdict_share']:>{37 - len(verdict)}.2f}" if drawn else ""
            yield (
                f"  {method:<12} {k:>4} {control:>{wide + 2}} {test:>{wide}} "
                f"{delta:>{wide}}{ratio}  {interval:<16}  {verdict}{share}"
            )


_ENDS = ("low", "high")
_SHOWN = ("p_control", "p_test", "delta_p")


def _show(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def open_case(audit: Audit, person: Any) -> Case:
    """Collect the results of one complainant, whose id is given."""
    from mutandis.auditing.robustness import add_robustness

    place, row = locate(audit, person)
    only, results = np.array([place]), {}
    for method, k in audit.results.summaries:
        found = audit.evaluate(method, k, places=only)
        if (method, k) == audit.plan.settings.primary:
            found = add_robustness(audit, found, place)
        columns = found.columns().items()
        results[method, k] = MappingProxyType({name: plain_value(x[0]) for name, x in columns})
    # several interventions have no counterfactual in common
    other = audit.ground.world.point if len(audit.grounds) == 1 else None
    return Case(
        audit=audit,
        place=place,
        row=row,
        factual=_attributes(audit, audit.plan.population, row),
        counterfactual=None if other is None else _attributes(audit, other, row),
        results=MappingProxyType(results),
        drawn={} if other is None else drawn_values(audit.ground, row),
    )


def locate(audit: Audit, person: Any) -> tuple[int, int]:
    """Find a complainant's place among the complainants, and the row."""
    ids = audit.plan.population.ids
    # a list would be compared element by element
    same = ids == person if np.ndim(person) == 0 else np.zeros(len(ids), dtype=np.bool_)
    matches = np.flatnonzero(same)
    if not len(matches):
        column = audit.plan.id
        known = "row positions, from 0" if column is None else f"the values of {column!r}"
        raise UnknownIdError(f"No row has this id. Ids in this audit are {known}.")
    row = int(matches[0])
    rows = audit.study.people
    place = int(np.searchsorted(rows, row))
    if place == len(rows) or rows[place] != row:
        raise UnknownIdError(
            f"This row is not a complainant: its protected attribute {audit.plan.status} does "
            "not have a protected value."
        )
    return place, row


def _attributes(audit: Audit, population: Population, row: int) -> Mapping[str, Any]:
    only, names = np.array([row]), [each.name for each in audit.plan.attributes]
    return MappingProxyType({name: _cell(population.part(name, only)) for name in names})


def drawn_values(ground: Ground, row: int) -> Mapping[str, _Drawn]:
    """Return the values that open attributes of one row have in draws, the most frequent first."""
    draws, only = ground.world.draws, np.array([row])
    found: dict[str, _Drawn] = {}
    for name in sorted(draws[0].changed) if draws else ():
        values = Counter(_cell(drawn.part(name, only)) for drawn in draws)
        if len(values) > 1 or name in ground.computed["couplings"]:
            order = sorted(values.items(), key=lambda pair: (-pair[1], str(pair[0])))
            found[name] = tuple((value, number / len(draws)) for value, number in order)
    return MappingProxyType(found)


def _cell(column: Column) -> Any:
    """Return the only value of a column."""
    if isinstance(column, Numbers):
        return float(column.values[0])
    return column.levels[column.codes[0]]


# --- the people of both groups --------------------------------------------------------------------


def list_members(ground: Ground, place: int, method: Method, k: int) -> Pair[Members]:
    """List both groups of one complainant; a center that is counted comes first."""
    row, index = int(ground.study.people[place]), ground.study.ks.index(k)
    lister = Lister(engine=ground.engine, world=ground.world, links=ground.tally.links)
    control, test = [], []
    if method.count_centers:
        control.append(_centers(ground, row, ground.study.outcomes[[row]], np.ones(1)))
        test.append(_counterfactual_centers(ground, lister, place, method, index))
    if method.count_neighbours:
        people = lister.people(row, method, index)
        control.append(_named(ground, people.control))
        test.append(_named(ground, people.test))
    return Pair(control=Members.join(control), test=Members.join(test))


def _named(ground: Ground, listed: Listed) -> Members:
    """Sort people by distance, those at the same distance by their ids."""
    ids = ground.plan.population.ids
    listed = listed.take(np.lexsort((rank_ids(ids[listed.rows]), listed.distance)))
    return Members(
        ids=ids[listed.rows],
        distance=listed.distance,
        place=listed.place,
        is_negative=ground.study.outcomes[listed.rows],
        is_center=np.zeros(len(listed.rows), dtype=np.bool_),
    )


def _counterfactual_centers(
    ground: Ground, lister: Lister, place: int, method: Method, index: int
) -> Members:
    """List a counterfactual once for each outcome, with its part of the draws that have it."""
    row, world = int(ground.study.people[place]), ground.world
    if world.decided_parts is None:
        if world.decided is None:
            raise TypeError("the plan admits no method that needs an outcome that was not decided")
        return _centers(ground, row, world.decided[[row]], np.ones(1))
    decided = world.decided_parts[:, place]
    weight = np.ones(len(decided))
    if method.count_neighbours:
        weight = lister.part_weights(row, index)
    values = np.unique(decided)[::-1]  # the refused first; of a score, the worst
    places = np.array([weight[decided == each].sum() for each in values]) / len(decided)
    return _centers(ground, row, values[places > 0], places[places > 0])


def _centers(
    ground: Ground, row: int, outcomes: NDArray[Any], place: NDArray[np.float64]
) -> Members:
    return Members(
        ids=ground.plan.population.ids[np.full(len(outcomes), row)],
        distance=np.zeros(len(outcomes)),
        place=place,
        is_negative=outcomes,
        is_center=np.ones(len(outcomes), dtype=np.bool_),
    )
