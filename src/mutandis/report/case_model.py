"""A case file as data and as a page: what its JSON holds, and what its redaction reads.

Numbers are as the audit has them, unrounded. In a redacted file a share is a text, its band or
``"withheld"``; None means that there is no such number, or that the file is redacted.
`docs/reference/results.md` explains every field.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from mutandis.data.columns import jsonable
from mutandis.data.labels import PLAIN, Labels
from mutandis.engine.tally import METHODS
from mutandis.errors import PlanError
from mutandis.outcomes import measure_named
from mutandis.outcomes.binary import SHARES
from mutandis.report import sentences
from mutandis.report.formatting import MISSING, as_yaml, signed, value
from mutandis.report.html import CaptionedPicture, render, to_pdf
from mutandis.report.plots import plot_curve
from mutandis.store.files import write_atomically
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from mutandis.auditing.robustness import CurvePoint
    from mutandis.outcomes.outcome import Words
    from mutandis.report.chart import Picture

__all__ = [
    "WITHHELD",
    "CaseDocument",
    "Cause",
    "Complainant",
    "Figures",
    "GroupList",
    "Member",
    "Movement",
    "Number",
    "OwnCase",
    "Part",
    "Redaction",
    "Role",
    "Status",
    "SupportCheck",
    "VerdictRobustness",
    "VerdictText",
]

SCHEMA: Final = "mutandis-case"
SCHEMA_VERSION: Final = 1

WITHHELD: Final = "withheld"
"""Replaces in a redacted file what would tell about fewer than ten people."""

Number = float | int | str | None
Role = Literal["control", "test"]

_FOUND = {Verdict.EVIDENCE, Verdict.SIGNIFICANT, Verdict.SIGNIFICANT_ADJUSTED}
_NOT_DATA = {"worldview", "labels", "settings_text", "words"}  # fields for the page alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One protected attribute of the complainant, and its reference."""

    attribute: str
    value: Any
    reference: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Complainant:
    """Who complains, and what was decided."""

    id: Any
    statuses: tuple[Status, ...]
    outcome_column: str
    outcome: Any
    negative: Any  # None where outcomes have no sides
    refused: bool | None  # as negative
    outcome_cf: Any  # None: not decided; of draws, the outcome of most
    outcome_cf_share: float | None = None  # of draws
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What one cause (or several together) did to an attribute."""

    parents: tuple[str, ...]
    before: Any  # in the actual world, and after in the other: None of several causes
    after: Any
    amount: float | None  # added, or the factor; None where the equation does not tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """How one attribute moved from the actual to the counterfactual world."""

    attribute: str
    compared: bool
    factual: Any
    counterfactual: Any  # of draws, for readers: it decides nothing
    change: float | None
    # the causes' amounts add up ("sum") or multiply ("factor") to the change, but for the remainder
    how: Literal["sum", "factor", "total", "given", "held", "intervened", "unaffected"]
    causes: tuple[Cause, ...] = ()
    remainder: float | None = None  # what rounding, levels or bounds did after the causes
    paths: tuple[str, ...] = ()
    coupling: str = ""
    drawn: tuple[tuple[Any, float], ...] = ()  # values with their share of draws, commonest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of a group: a person, or a search center that is counted in."""

    person: Any
    role: Literal["person", "complainant", "counterfactual"]
    distance: float
    parts: Mapping[str, float] | None  # of the distance, by attribute, where that is known
    values: Mapping[str, Any]
    place: float  # the part of a place that the person holds
    place_text: str  # as a fraction
    outcome: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupList:
    """One group of the complainant, its members nearest first; redacted, without members."""

    role: Role
    around: str
    places: Number  # the denominator of the share; redacted: rounded down to tens
    share: Number
    people: int | None = None  # without search centers
    shared: int | None = None  # people who share a place
    refused: int | None = None
    granted: int | None = None
    radius: float | None = None
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The complainant's row of the findings table under one method and one k."""

    method: str
    title: str
    k: int
    primary: bool
    p_control: Number
    p_test: Number
    delta_p: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p_value: float | None = None
    q_value: float | None = None
    verdict: str
    n_control: int | None = None
    n_test: int | None = None
    rows_control: int | None = None
    rows_test: int | None = None
    radius_control: float | None = None
    radius_test: float | None = None
    verdict_share: float | None = None
    # the measure and its bounds, where it is a ratio; "∞" where it divides by 0
    measured: Number = None
    measured_low: Number = None
    measured_high: Number = None

    @property
    def has_k(self) -> bool:
        """Whether the method compares groups, whose size matters."""
        return METHODS[self.method].count_neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportCheck:
    """How close one group is; redacted, only whether it is off support."""

    role: Role
    radius: float | None = None
    typical: float | None = None  # median radius in its search space
    limit: float | None = None  # 99th percentile
    off_support: bool
    outside: tuple[str, ...] = ()  # attributes in which the center is out of the range there
    # standard deviations by which the center is above the group's mean
    balance: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictText:
    """The headline."""

    method: str
    k: int
    verdict: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRobustness:
    """How wrong the worldview may be before the headline falls (docs/robustness.md)."""

    tipping: float | None  # the least part of the effect with which it stands
    grade: str | None
    rule: str  # of the grade
    sentence: str
    appears: float | None  # the part, above 1, at which something becomes significant
    robustness_value: float | None = None
    hidden_cause: str = ""  # how strong one would have to be, in words
    stands_without: Mapping[str, bool] = field(default_factory=dict)  # attribute at its fact
    worldviews: Mapping[str, str] = field(default_factory=dict)  # verdicts, by worldview compared


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCase:
    """The answer about the complainant alone."""

    answer: str
    sentence: str
    share: float | None = None  # refused among the people most like the own counterfactual


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The comparison on one ground: all there is, or one of several (multiple discrimination)."""

    ground: tuple[str, ...]  # attributes that are intervened on together
    do: Mapping[str, Any]
    verdict: str
    outcome_cf: Any
    movements: tuple[Movement, ...]
    control: GroupList | None  # of the primary method and k; None where that compares no groups
    test: GroupList | None
    support: tuple[SupportCheck, ...]
    worlds: int = 0  # draws and refits
    verdict_share: float | None = None  # of these, where the verdict stays or gets stronger
    curve: tuple[CurvePoint, ...] = ()  # by share of the effect; redacted: empty
    decision: tuple[str, ...] = ()  # why b() decides otherwise on the counterfactual, if known

    @property
    def groups(self) -> tuple[GroupList, ...]:
        """The groups that there are."""
        return tuple(group for group in (self.control, self.test) if group is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """Whether the file is redacted: then nothing is told about fewer than `least` people."""

    redacted: bool
    least: int | None = None
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CaseDocument:
    """Everything about one complainant: data, and a page made from them."""

    complainant: Complainant
    verdict: VerdictText  # the pattern among people like the complainant
    own_case: OwnCase
    robustness: VerdictRobustness | None  # None where it has no meaning, and if redacted
    figures: tuple[Figures, ...]
    parts: tuple[Part, ...]
    whole_table: str  # how many such verdicts there are, with sham audits if these were run
    assumptions: tuple[str, ...]
    limits: tuple[str, ...]
    redaction: Redaction
    provenance: Mapping[str, Any]
    alpha: float
    tau: float
    direction: str
    measure: str = "risk-difference"
    # for the page alone
    worldview: Picture | None = None
    labels: Labels = PLAIN
    settings_text: str = ""  # an audit file; empty if redacted
    words: Words = SHARES

    @property
    def primary(self) -> Figures:
        """The results under the method and k of the headline."""
        return next(row for row in self.figures if row.primary)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data: texts, numbers, truth values, lists and dicts with text keys."""
        named = {
            each.name: jsonable(getattr(self, each.name))
            for each in fields(self)
            if each.name not in _NOT_DATA
        }
        names = self.words.kind.renamed  # of columns, as findings have them
        named["figures"] = [
            {names.get(name, name): each for name, each in row.items()} for row in named["figures"]
        ]
        return {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **named}

    def to_json(self) -> str:
        """Write it as JSON; the same audit gives the same text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """Write it as one page that needs nothing else: no script, no network, no other file."""
        return _render(self)

    def write(self, path: str | PathLike[str]) -> None:
        """Write it to a file, whole or not at all.

        It ends in .html, .json or .pdf (the extra `pdf`).
        """
        writers: dict[str, Callable[[], str | bytes]] = {
            ".html": self.to_html,
            ".json": self.to_json,
            ".pdf": lambda: to_pdf(self.to_html()),
        }
        suffix = Path(path).suffix.lower()
        if suffix not in writers:
            raise PlanError(
                f"A case file is written as {', '.join(writers)}, not as {suffix or 'a file'!r}. "
                "Give the path one of these endings."
            )
        write_atomically(Path(path), writers[suffix]())

    def __repr__(self) -> str:
        """Name the headline, and no data of any person."""
        verdict = self.verdict
        kind = "redacted case file" if self.redaction.redacted else "case file"
        return (
            f"<{kind}: {verdict.verdict}, {verdict.method} at k={verdict.k}; own case: "
            f"{self.own_case.answer}>"
        )


# --- the page ------------------------------------------------------------------------------------


def _render(case: CaseDocument) -> str:
    measure, worse = measure_named(case.measure), case.direction == "negative"
    # τ of a ratio has no place on a scale of differences
    threshold = 0.0 if measure.is_ratio else measure.threshold(case.tau, worse=worse)
    record = {name: each for name, each in case.provenance.items() if name != "settings"}
    return render(
        "case.html",
        case=case,
        footer=_css_text(f"Case file · complainant {value(case.complainant.id)}"),
        figures=_each_once(case.figures),
        worldview=_show_worldview(case),
        settings=case.settings_text or as_yaml(case.provenance),
        record=as_yaml(record) if case.settings_text else "",
        found=case.verdict.verdict in _FOUND,
        interval=partial(_interval, case.words),
        measure=measure,
        measured=_measured,
        words=case.words,
        sentences=sentences,
        curves=[_draw_curve(case, place, threshold) for place in range(len(case.parts))],
    )


def _each_once(figures: Sequence[Figures]) -> list[Figures]:
    """Keep one row of a method that compares no groups: it is the same for all k."""
    alone = [row for row in figures if not row.has_k]
    kept = {row.method: row for row in reversed(alone)}
    kept |= {row.method: row for row in alone if row.primary}
    return [row for row in figures if row.has_k or row is kept[row.method]]


def _draw_curve(case: CaseDocument, place: int, threshold: float) -> CaptionedPicture | None:
    """Draw what the groups say with each part of the effect of the status."""
    part, words = case.parts[place], case.words
    if not part.curve:
        return None
    stands = "the verdict stands" if part.verdict in _FOUND else "the difference is significant"
    return CaptionedPicture(
        name=f"part{place + 1}-curve",
        drawing=plot_curve(part.curve, threshold=threshold, symbol=words.symbol),
        title=f"{words.symbol}, by how much of the effect of the status is real",
        caption="At 100% everyone in the control group has the counterfactual that the worldview "
        "says; at 0% they are compared as they are. The band is the interval. Filled points: "
        f"{stands}.",
        description="; ".join(
            f"{each.part:.0%}: {words.difference(each.delta_p)}{', stands' if each.stands else ''}"
            for each in part.curve
        )
        + ".",
    )


def _show_worldview(case: CaseDocument) -> CaptionedPicture | None:
    if case.worldview is None:
        return None
    return CaptionedPicture(
        name="worldview",
        drawing=case.worldview,
        title="The worldview: who causes whom",
        caption="Changes start at the attribute with the double border and follow the arrows.",
        description=" ".join(case.assumptions[:1]),
    )


def _interval(words: Words, row: Figures) -> str:
    if row.ci_low is None or row.ci_high is None:
        return MISSING
    return f"[{words.difference(row.ci_low)}, {words.difference(row.ci_high)}]"


def _measured(row: Figures, *, value: bool = True) -> str:
    """Write a ratio with its interval, or the interval alone."""
    bounds = signed(row.measured_low), signed(row.measured_high)
    interval = "" if MISSING in bounds else f"[{', '.join(bounds)}]"
    return f"{signed(row.measured)} {interval}".rstrip() if value else interval


def _css_text(text: str) -> str:
    """Write a text so that a style sheet takes every letter of it as a letter."""
    return "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):x} " for c in text)
