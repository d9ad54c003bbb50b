"""What a case file says, as plain data: one frozen record a section.

Numbers are as the audit has them, unrounded. Where a redacted file withholds one, the text
``"withheld"`` stands in its place; None means that there is no such number. `docs/case-file.md`
explains each field for those who read the JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.report.case_movement import Movement

__all__ = [
    "SCHEMA",
    "SCHEMA_VERSION",
    "WITHHELD",
    "Change",
    "Changes",
    "Complainant",
    "Figures",
    "GroupList",
    "Member",
    "Number",
    "Part",
    "Redaction",
    "Status",
    "Step",
    "SupportCheck",
    "VerdictText",
]

SCHEMA: Final = "mutandis-case"
SCHEMA_VERSION: Final = 1

WITHHELD: Final = "withheld"
"""Stands in a redacted file for a number that would point to fewer than five people."""

Number = float | int | Literal["withheld"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One protected attribute of the complainant, and the reference she is set against."""

    attribute: str
    value: Any
    reference: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Complainant:
    """Who complains, and what was decided.

    Parameters
    ----------
    id
        Her id in the table.
    statuses
        The grounds.
    outcome_column, outcome, negative, refused
        The outcome on record, the unfavourable value, and whether she got it.
    outcome_cf
        What would have been decided on her counterfactual; None: nobody decided.
    attributes
        What she is compared on, as it is on record.
    """

    id: Any
    statuses: tuple[Status, ...]
    outcome_column: str
    outcome: Any
    negative: Any
    refused: bool
    outcome_cf: Any
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of a group.

    Parameters
    ----------
    person
        The id; "person 7" in a redacted file.
    role
        "person"; "complainant" or "counterfactual" for a search center that is counted in.
    distance
        To the search center; a band in a redacted file.
    parts
        What each attribute adds to the distance; None where it is not known or withheld.
    values
        The attributes; bands in a redacted file.
    place, place_text
        The part of a place that the person holds, as a number and as a fraction.
    outcome
        What was decided.
    """

    person: Any
    role: Literal["person", "complainant", "counterfactual"]
    distance: float | str
    parts: Mapping[str, float] | None
    values: Mapping[str, Any]
    place: Number
    place_text: str
    outcome: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupList:
    """One group of the complainant.

    Parameters
    ----------
    role, around
        Which group, and around whom it was searched.
    places
        How many places it has: the denominator of the share.
    people, shared
        How many people hold them, centers not counted; and how many of these share.
    refused, granted
        How many of these people had the unfavourable outcome, and how many had not.
    share
        The share of the unfavourable outcome, in places.
    radius
        The distance of the farthest.
    members
        Who they are, nearest first; empty where a redacted file does not say how few they are.
    """

    role: Literal["control", "test"]
    around: str
    places: Number
    people: Number
    shared: Number
    refused: Number
    granted: Number
    share: Number
    radius: float | str | None
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The complainant's row of the findings, under one method and one k.

    The fields are the columns of the findings table; `primary` marks the row of the headline, and
    `draw_share` is None where no draws were made.
    """

    method: str
    title: str
    k: int
    primary: bool
    p_control: Number
    p_test: Number
    delta_p: Number
    ci_low: Number
    ci_high: Number
    p_value: Number
    q_value: Number
    verdict: str
    n_control: Number
    n_test: Number
    rows_control: Number
    rows_test: Number
    radius_control: float | str | None
    radius_test: float | str | None
    draw_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportCheck:
    """Whether there is anyone to compare with, in one group.

    Parameters
    ----------
    role
        Which group.
    radius, typical, limit
        How far it reaches, and the median and the 99th percentile of what is usual there.
    off_support
        Whether it reaches farther than that limit.
    outside
        The attributes in which the search center stands outside the range of the search space.
    balance
        By attribute: how many standard deviations the center stands above the group's mean.
    """

    role: Literal["control", "test"]
    radius: float | str | None
    typical: float | None
    limit: float | None
    off_support: bool
    outside: tuple[str, ...]
    balance: Mapping[str, Number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From so many people on, the verdict is this one."""

    people: int
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How many people's outcomes would have to differ for another verdict.

    Parameters
    ----------
    group, outcome
        In which group, and which outcome these people would have instead.
    of
        How many people there have the other outcome, and could change.
    steps
        The least number of people for each other verdict on the way; empty: not even all of them
        would change it. People who hold the largest part of a place are taken first.
    """

    group: Literal["control", "test"]
    outcome: Any
    of: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What would change the verdict at the primary method and k, computed.

    Parameters
    ----------
    outcomes
        Other outcomes in the groups; empty where that is no question.
    withheld
        Whether outcomes and thresholds are withheld.
    tau_evidence
        From this τ on there is no evidence (where there is), or below it there is.
    tau_significant
        Up to this τ the test rejects; None where no test applies.
    alpha_significant, alpha_adjusted
        From this α on it rejects: the p-value and the q-value.
    by_k
        The verdict at each k that was run.
    evidence_ks, significant_ks
        Of all k from 1 to the largest that was run, those with evidence, and those at which the
        test rejects for this complainant alone; as ranges. None where not computed.
    searched_ks
        The largest of these k.
    herself
        The verdict with her own outcome (and her counterfactual's) counted in, or left out where
        the method counts them; None where it is the same question.
    herself_counted
        Whether they are counted in by the primary method.
    draws, draw_share
        How many draws of the counterfactuals were made, and the share with evidence.
    sufficient_distance
        Where there are too few people within the largest distance allowed: the distance within
        which there would be enough; None elsewhere.
    """

    outcomes: tuple[Change, ...] = ()
    withheld: bool = False
    tau_evidence: Number = None
    tau_significant: Number = None
    alpha_significant: Number = None
    alpha_adjusted: Number = None
    by_k: Mapping[int, str] = field(default_factory=dict)
    evidence_ks: tuple[tuple[int, int], ...] | None = None
    significant_ks: tuple[tuple[int, int], ...] | None = None
    searched_ks: int | None = None
    herself: str | None = None
    herself_counted: bool = False
    draws: int = 0
    draw_share: float | None = None
    sufficient_distance: Number = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictText:
    """The headline.

    Parameters
    ----------
    method, k, verdict
        What was asked, and the answer.
    sentence
        The answer in words.
    """

    method: str
    k: int
    verdict: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The comparison on one ground: all there is, or one of several (multiple discrimination).

    Parameters
    ----------
    ground
        The protected attribute; several of them where they are intervened on together.
    do
        The intervention.
    verdict
        The verdict on this ground.
    movements
        How her attributes moved; empty without counterfactuals.
    control, test
        The groups at the primary method and k; None where the method compares none.
    support
        How well they support the comparison; empty where it is not measured.
    changes
        What would change the verdict.
    """

    ground: tuple[str, ...]
    do: Mapping[str, Any]
    verdict: str
    outcome_cf: Any
    movements: tuple[Movement, ...]
    control: GroupList | None
    test: GroupList | None
    support: tuple[SupportCheck, ...]
    changes: Changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """Whether the file is redacted, and what that means.

    Parameters
    ----------
    redacted
        Whether it is.
    least
        Cells with fewer people than this, but not empty, are withheld.
    sentences
        What was done, in words.
    """

    redacted: bool
    least: int | None = None
    sentences: tuple[str, ...] = ()
