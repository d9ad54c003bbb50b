"""Redaction: a case file that can be shown to others than the parties.

The rule: a redacted file has the complainant's own record, and of all others only the verdicts on
groups of at least ten people that differ by none or by at least ten, and for the groups of the
headline the share refused, in bands of at least ten people.

* Which groups are told (`told_groups`) depends on who is in which group and never on an outcome.
  The headline comes first; a smaller group inside a larger one needs ten people between them.
* A share is told as one of m equal bands, where m is a tenth of the people, at most 20: so the
  numbers 0 to 9 are never told apart, for neither outcome. Each group has one band, without the own
  outcome: two roundings of one number, or bands of nested groups, could be set off against others.
* Of the own case, the own decision and the counterfactual's are told; the people most like the
  counterfactual are fewer than ten.
* Whatever else is computed from outcomes or distances is not in the file, nor is any hash: a hash
  lets guesses be tried.
* The counterfactual comes from equations fitted to all rows. Its changes are rounded to two digits
  of the standard deviation: the changes and not the values, since the files of many complainants
  would otherwise cut the same coefficient at many places.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import floor, fsum, isnan, log10, nan
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mutandis.auditing.sentences import CHANCE, answer_own_case, describe_claim, explain_own_case
from mutandis.config.schema import Settings
from mutandis.data.columns import Numbers
from mutandis.engine.tally import METHODS, Pair
from mutandis.report.case_model import (
    WITHHELD,
    Figures,
    GroupList,
    OwnCase,
    Redaction,
    SupportCheck,
)
from mutandis.report.sentences import assumptions_of, limits_of
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mutandis.auditing.case import Case
    from mutandis.auditing.plan import Plan
    from mutandis.data.population import Population
    from mutandis.engine.members import Members
    from mutandis.report.case_model import CaseDocument, Movement, Part, VerdictText

__all__ = ["LEAST", "People", "redact_case", "told_groups"]

LEAST: Final = 10
"""Nothing is told about fewer people."""

_BANDS = 20
# places are floats, and thirds of them do not add up to the last bit
_NEARLY = 1e-6

_NO_ROWS = "This file has no row, value or distance of other people."
_GROUPS = (
    f"About others it tells verdicts on groups of at least {LEAST} people. Shares are given in "
    f"bands at least {LEAST} people wide, sizes are rounded down to tens, and the changes in the "
    "counterfactual are rounded."
)
_LEFT_OUT = (
    f"Groups that differ by fewer than {LEAST} people from one that is told are left out. What is "
    "withheld depends on who is in a group, and never on outcomes."
)


@dataclass(frozen=True, slots=True)
class People:
    """The people of one group, the complainant not counted."""

    places: Mapping[Any, float]  # by id
    refused: float  # places of those who were refused

    @classmethod
    def of(cls, members: Members) -> People:
        people = ~members.is_center
        # who is matched to several people holds several places: no one may count as more than one
        place = members.place / max(1.0, members.place[people].max(initial=0.0))
        return cls(
            places=dict(zip(members.ids[people].tolist(), place[people].tolist(), strict=True)),
            # a mean score would tell more than a band
            refused=fsum(place[people & members.is_negative].tolist())
            if members.is_negative.dtype == np.bool_
            else nan,
        )

    @property
    def size(self) -> int:
        """Number of places, rounded down."""
        return floor(fsum(self.places.values()) + _NEARLY)

    def is_apart(self, other: People) -> bool:
        """Return whether these are the same people, or at least ten are in one group alone."""
        if self.places == other.places:
            return True
        everyone = self.places.keys() | other.places.keys()
        apart = fsum(abs(self.places.get(i, 0.0) - other.places.get(i, 0.0)) for i in everyone)
        return apart < _NEARLY or apart > LEAST - _NEARLY

    def band(self) -> str:
        """Return the share of the refused as a band.

        Examples
        --------
        >>> [People(dict.fromkeys(range(30), 1.0), refused).band() for refused in (9, 10, 20, 30)]
        ['under 33%', '33% to 67%', '67% or more', '67% or more']
        >>> People(dict.fromkeys(range(19), 1.0), 4).band()
        'withheld'
        """
        bands = min(self.size // LEAST, _BANDS)
        if bands < 2 or isnan(self.refused):
            return WITHHELD
        share = self.refused / fsum(self.places.values())
        place = min(floor(share * bands + _NEARLY), bands - 1)
        low, high = f"{place / bands:.0%}", f"{(place + 1) / bands:.0%}"
        if place == 0:
            return f"under {high}"
        return f"{low} or more" if place == bands - 1 else f"{low} to {high}"


Told = dict[tuple[str, int], list[Pair[People]]]


def told_groups(cases: Sequence[Case]) -> Told:
    """Choose the methods and sizes to tell, the headline first; outcomes have no part in it."""
    primary = cases[0].audit.plan.settings.primary
    told: Told = {}
    before: list[People] = []
    for method, k in sorted(cases[0].results, key=lambda key: key != primary):
        if not METHODS[method].count_neighbours:
            continue
        members = [case.groups(method, k=k) for case in cases]
        pairs = [Pair(control=People.of(m.control), test=People.of(m.test)) for m in members]
        groups = [group for pair in pairs for group in (pair.control, pair.test)]
        if all(
            group.size >= LEAST and all(group.is_apart(other) for other in [*groups, *before])
            for group in groups
        ):
            told[method, k] = pairs
            before += groups
    return told


def redact_case(document: CaseDocument, whole: Case, cases: Sequence[Case]) -> CaseDocument:
    """Redact a case file of the whole case, whose parts come from these cases."""
    audit, told = whole.audit, told_groups(cases)
    figures = tuple(_figures(document.figures, told))
    primary = next(row for row in figures if row.primary)
    pairs = told.get((primary.method, primary.k), [None] * len(cases))
    parts = tuple(
        _part(part, pair, audit.plan.population)
        for part, pair in zip(document.parts, pairs, strict=True)
    )
    kept = {each.name for each in fields(Settings)} | {"outcome", "negative", "worse"}
    settings = document.provenance["settings"]
    return replace(
        document,
        verdict=_verdict(document, audit.plan, primary),
        own_case=_own_case(whole, primary),
        robustness=None,
        figures=figures,
        parts=parts,
        whole_table="",
        assumptions=assumptions_of(audit, counts=False),
        limits=limits_of(audit, parts, primary.verdict, counts=False),
        redaction=Redaction(redacted=True, least=LEAST, sentences=(_NO_ROWS, _GROUPS, _LEFT_OUT)),
        provenance={
            "versions": document.provenance["versions"],
            "settings": {name: settings[name] for name in settings if name in kept},
            "redacted": True,
        },
        settings_text="",
        labels=document.labels.restricted(_told_values(document, parts)),
    )


def _told_values(document: CaseDocument, parts: Sequence[Part]) -> dict[str, list[Any]]:
    """List the values that the file tells of, by column: others have no label in it."""
    who = document.complainant
    told: dict[str, list[Any]] = {name: [each] for name, each in who.attributes.items()}
    told[who.outcome_column] = [who.outcome, who.outcome_cf, who.negative]
    for status in who.statuses:
        told.setdefault(status.attribute, []).extend([status.value, status.reference])
    for each in (movement for part in parts for movement in part.movements):
        values = [each.factual, each.counterfactual, *(value for value, _ in each.drawn)]
        told.setdefault(each.attribute, []).extend(values)
    return told


def _figures(rows: Sequence[Figures], told: Told) -> Iterator[Figures]:
    """Make rows anew, so that nothing stays in them by mistake."""
    for row in rows:
        pairs = told.get((row.method, row.k), [])
        if not METHODS[row.method].count_neighbours:
            yield replace(row, verdict_share=None)  # the own outcome and the counterfactual's
        elif row.primary or pairs:
            # with several grounds the shares are those of one of them, and which one is not told
            pair = pairs[0] if row.primary and len(pairs) == 1 else None
            yield Figures(
                method=row.method,
                title=row.title,
                k=row.k,
                primary=row.primary,
                verdict=row.verdict if pairs else WITHHELD,
                p_control=WITHHELD if pair is None else pair.control.band(),
                p_test=WITHHELD if pair is None else pair.test.band(),
            )


def _part(part: Part, pair: Pair[People] | None, population: Population) -> Part:
    untold = pair is None and bool(part.groups)
    return replace(
        part,
        verdict=WITHHELD if untold else part.verdict,
        movements=_movements(part.movements, population),
        control=_group(part.control, None if pair is None else pair.control),
        test=_group(part.test, None if pair is None else pair.test),
        support=()
        if untold
        else tuple(
            SupportCheck(role=each.role, off_support=each.off_support) for each in part.support
        ),
        worlds=0,
        verdict_share=None,
        curve=(),
        decision=(),
    )


def _group(full: GroupList | None, people: People | None) -> GroupList | None:
    return full and GroupList(
        role=full.role,
        around=full.around,
        places=WITHHELD if people is None else people.size // LEAST * LEAST,
        share=WITHHELD if people is None else people.band(),
    )


def _movements(movements: Sequence[Movement], population: Population) -> tuple[Movement, ...]:
    """Round what comes from equations that were fitted to everyone."""
    digits = {each.attribute: _digits(population, each.attribute) for each in movements}
    rounded = [_round_change(each, digits[each.attribute]) for each in movements]
    after = {each.attribute: each.counterfactual for each in rounded}
    return tuple(
        replace(
            each,
            causes=tuple(
                replace(
                    cause,
                    after=after.get(cause.parents[0], cause.after)
                    if len(cause.parents) == 1
                    else None,
                    # a factor is no amount of the attribute
                    amount=None
                    if each.how == "factor"
                    else _round(cause.amount, digits[each.attribute]),
                )
                for cause in each.causes
            ),
            remainder=_round(each.remainder, digits[each.attribute]),
        )
        for each in rounded
    )


def _round_change(each: Movement, digits: int) -> Movement:
    if each.change is None or each.how == "intervened":
        return each
    drawn: dict[float, float] = {}
    for number, share in each.drawn:
        near = each.factual + round(number - each.factual, digits)
        drawn[near] = drawn.get(near, 0.0) + share
    change = _round(each.change, digits)
    return replace(
        each,
        change=change,
        counterfactual=each.factual + change,
        drawn=tuple(sorted(drawn.items(), key=lambda pair: (-pair[1], pair[0]))),
    )


def _digits(population: Population, name: str) -> int:
    """Return the decimals with which the standard deviation has two digits."""
    column = population.columns[name]
    # sorted, so that the order of the rows has no part in the last bit
    spread = float(np.std(np.sort(column.values))) if isinstance(column, Numbers) else 0.0
    return 1 - floor(log10(spread)) if spread > 0 else 0


def _round(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits) + 0.0


def _own_case(case: Case, row: Figures) -> OwnCase:
    """Describe the own outcome and the counterfactual's; those most like it are too few."""
    result, plan = case.own_result(), case.audit.plan
    if row.verdict == WITHHELD:  # then no part in a pattern is told either
        result["verdict"] = Verdict.NO_EVIDENCE
    return OwnCase(
        answer=answer_own_case(result, plan, withheld=True),
        sentence=explain_own_case(result, plan, withheld=True),
    )


def _verdict(document: CaseDocument, plan: Plan, row: Figures) -> VerdictText:
    """Word the verdict with bands in place of numbers."""
    method, who = METHODS[row.method], document.complainant.id
    if not method.count_neighbours:
        return document.verdict
    subject = f"{method.title} with k = {row.k}"
    if row.verdict == WITHHELD:
        sentence = (
            f"What {subject} says about complainant {who} is withheld, since it would tell about "
            f"fewer than {LEAST} people."
        )
    elif row.verdict == Verdict.INSUFFICIENT:
        why = "there are too few people to compare with"
        if method.matched:
            why = "no group that is like the control group was found"
        sentence = f"{subject} gives no answer about complainant {who}: {why}."
    else:
        (here, had), there = plan.words.averages(row.p_control, row.p_test)
        shares = f": {here} the control group {had}, against {there} the test group"
        claim = describe_claim(row.verdict, method, row.k, who, plan)
        known = WITHHELD not in {row.p_control, row.p_test}
        sentence = f"{claim}{shares if known else ''}{CHANCE[Verdict(row.verdict)]}."
    return replace(document.verdict, verdict=row.verdict, sentence=sentence)
