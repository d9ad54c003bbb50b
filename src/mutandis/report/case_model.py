"""A case file as data: what its JSON holds, and what its page and its redaction read.

Numbers are as the audit has them, unrounded. In a redacted file a share is a text, its band or
``"withheld"``; None means that there is no such number, or that the file is redacted.
`docs/reference/results.md` explains every field.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from mutandis.data.columns import jsonable
from mutandis.data.labels import PLAIN, Labels
from mutandis.errors import PlanError
from mutandis.outcomes.binary import SHARES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from mutandis.auditing.tipping import CurvePoint
    from mutandis.outcomes.measures import AnyMeasure
    from mutandis.outcomes.words import Words
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
"""Stands in a redacted file for what would tell about fewer than ten people."""

Number = float | int | str | None
Role = Literal["control", "test"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One protected attribute of the complainant, and the reference she is set against."""

    attribute: str
    value: Any
    reference: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Complainant:
    """Who complains and what was decided.

    `outcome_cf` is None where no decision was made on her counterfactual; where that is open, it is
    the outcome of most draws, `outcome_cf_share` of them. A score is neither negative nor refused.
    """

    id: Any
    statuses: tuple[Status, ...]
    outcome_column: str
    outcome: Any
    negative: Any
    refused: bool | None
    outcome_cf: Any
    outcome_cf_share: float | None = None
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What one cause (or several together) did to an attribute.

    `before` and `after`, the values of the cause in both worlds, are None where several act
    together; the amount added, or the factor, is None where the equation does not tell.
    """

    parents: tuple[str, ...]
    before: Any
    after: Any
    amount: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """How one attribute moved from the factual to the counterfactual world.

    `how` is "sum" (the causes' amounts and `remainder` add up to the change), "factor" (their
    product takes the factual value to the counterfactual one, but for the remainder), "total" (the
    equation gives the change as a whole), "given" (so does the table that was supplied), "held"
    (the worldview holds it fixed), "intervened" (it was set) or "unaffected" (nothing that was set
    causes it). The remainder is what rounding, levels or bounds did after the causes. Where the
    facts leave it open, `drawn` lists the values that it has in draws, each with the share of them,
    the most frequent first: then `counterfactual` is for readers, and decides nothing.
    """

    attribute: str
    compared: bool
    factual: Any
    counterfactual: Any
    change: float | None
    how: Literal["sum", "factor", "total", "given", "held", "intervened", "unaffected"]
    causes: tuple[Cause, ...] = ()
    remainder: float | None = None
    paths: tuple[str, ...] = ()
    # the same, name by name: pages write the labels
    ways: tuple[tuple[str, ...], ...] = field(default=(), metadata={"json": False})
    coupling: str = ""
    drawn: tuple[tuple[Any, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of a group: a person, or a search center that is counted in.

    `parts` is what each attribute adds to the distance, None where that is not known; `place` the
    part of a place that the person holds, as a number and as a fraction.
    """

    person: Any
    role: Literal["person", "complainant", "counterfactual"]
    distance: float
    parts: Mapping[str, float] | None
    values: Mapping[str, Any]
    place: float
    place_text: str
    outcome: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupList:
    """One group of the complainant, its members nearest first.

    Its places are the denominator of its share; `people` (search centers not counted) hold them,
    and `shared` of these share theirs with others. A redacted file lists no members, and gives the
    places without search centers, rounded down to tens, and the band of the share alone.
    """

    role: Role
    around: str
    places: Number
    share: Number
    people: int | None = None
    shared: int | None = None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportCheck:
    """Whether there is anyone to compare with, in one group.

    `typical` and `limit` are the median and the 99th percentile of the radius in its search space;
    `outside` lists the attributes in which the search center stands outside the range there;
    `balance` says how many standard deviations the center stands above the group's mean. A
    redacted file says whether the group is off support, and no more.
    """

    role: Role
    radius: float | None = None
    typical: float | None = None
    limit: float | None = None
    off_support: bool
    outside: tuple[str, ...] = ()
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
    """How much must be believed for the headline to stand (docs/robustness.md).

    `tipping` is the least part of the effect with which it does, `grade` follows by the `rule`, and
    `stands_without` says by attribute whether it stands with this one at its fact. Where nothing is
    significant, `appears` is the part of the effect, more than all of it, at which something is.
    `hidden_cause` says how strong a hidden common cause of her status and an attribute would have
    to be; it would explain at least the part `robustness_value` of both. `worldviews` are her
    verdicts under each worldview that was compared, that of the audit first.
    """

    tipping: float | None
    grade: str | None
    rule: str
    sentence: str
    appears: float | None
    robustness_value: float | None = None
    hidden_cause: str = ""
    stands_without: Mapping[str, bool] = field(default_factory=dict)
    worldviews: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCase:
    """The answer about herself, beside the headline, which is about people like her.

    `share` is that of the refused among the people most like her own counterfactual; None where
    people were not matched, and in a redacted file.
    """

    answer: str
    sentence: str
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The comparison on one ground: all there is, or one of several (multiple discrimination).

    The ground is several attributes where they are intervened on together. The groups are those of
    the primary method and k, None where that method compares none. The verdict stays the same or
    gets stronger in the `verdict_share` of `worlds` draws and refits. `curve` is the comparison at
    each share of the effect of the status, from none on; it is missing in a redacted file.
    """

    ground: tuple[str, ...]
    do: Mapping[str, Any]
    verdict: str
    outcome_cf: Any
    movements: tuple[Movement, ...]
    control: GroupList | None
    test: GroupList | None
    support: tuple[SupportCheck, ...]
    worlds: int = 0
    verdict_share: float | None = None
    curve: tuple[CurvePoint, ...] = ()
    # why b() decides otherwise on her counterfactual, in words; none where its inside is not known
    decision: tuple[str, ...] = ()

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


def _renamed(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Name the figures as findings do."""
    return {names.get(name, name): value for name, value in row.items()}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CaseDocument:
    """Everything about one complainant: data, and a page made from them.

    Parameters
    ----------
    complainant
        Who, and what was decided.
    verdict
        The headline: the pattern among people like her.
    own_case
        Whether she has a case of her own.
    robustness
        How wrong the worldview may be before the headline falls; None where that has no meaning,
        and in a redacted file.
    figures
        Her results under every method and k.
    parts
        The comparison on each ground: her counterfactual, her groups, what would change it.
    whole_table
        How many such verdicts the whole table has, with sham audits if these were run.
    assumptions, limits
        What the answer takes for granted and what it cannot carry, in words.
    redaction
        Whether all people but the complainant are left out, and what is told of groups.
    provenance
        What is needed to repeat the audit.
    alpha, tau, direction, measure
        The level, the minimum deviation, what was looked for, and by which measure.
    worldview
        A drawing for the page; it is not part of the data.
    labels
        What columns, values and outcomes are called on the page; the data have their names.
    settings_text
        The settings as an audit file has them, for the page; empty in a redacted file.
    words
        How averages and differences are written on the page.

    Examples
    --------
    >>> import mutandis as mm
    >>> audit = mm.audit(
    ...     {"woman": [1, 1, 0], "salary": [10.0, 11.0, 10.0], "granted": ["no", "no", "yes"]},
    ...     outcome="granted",
    ...     negative="no",
    ...     protected=mm.Protection("woman", value=1, reference=0),
    ...     attributes={"salary": "continuous"},
    ...     ks=(1,),
    ... )
    >>> document = audit.case_file(0)
    >>> document
    <case file: evidence, st at k=1; own case: not known>
    >>> document.parts[0].test.refused, document.parts[0].test.granted
    (0, 1)
    """

    complainant: Complainant
    verdict: VerdictText
    own_case: OwnCase
    robustness: VerdictRobustness | None
    figures: tuple[Figures, ...]
    parts: tuple[Part, ...]
    whole_table: str
    assumptions: tuple[str, ...]
    limits: tuple[str, ...]
    redaction: Redaction
    provenance: Mapping[str, Any]
    alpha: float
    tau: float
    direction: str
    measure: AnyMeasure = "risk-difference"
    worldview: Picture | None = None
    labels: Labels = PLAIN
    settings_text: str = ""
    words: Words = SHARES

    @property
    def primary(self) -> Figures:
        """Her results under the method and k of the headline."""
        return next(row for row in self.figures if row.primary)

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain data: texts, numbers, truth values, lists and dicts with text keys."""
        named = {
            each.name: jsonable(getattr(self, each.name))
            for each in fields(self)
            if each.name not in {"worldview", "labels", "settings_text", "words"}
        }
        named["figures"] = [_renamed(row, self.words.kind.renamed) for row in named["figures"]]
        return {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **named}

    def to_json(self) -> str:
        """Write it as JSON; the same audit gives the same text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """Write it as one page that needs nothing else: no script, no network, no other file."""
        from mutandis.report.case_page import render_case

        return render_case(self)

    def write(self, path: str | PathLike[str]) -> None:
        """Write it to a file, whole or not at all.

        It ends in .html, .json or .pdf (the extra `pdf`).
        """
        from mutandis.report.html import to_pdf
        from mutandis.store.files import write_atomically

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
        """Give the headline, and no data of any person."""
        verdict = self.verdict
        kind = "redacted case file" if self.redaction.redacted else "case file"
        return (
            f"<{kind}: {verdict.verdict}, {verdict.method} at k={verdict.k}; own case: "
            f"{self.own_case.answer}>"
        )
