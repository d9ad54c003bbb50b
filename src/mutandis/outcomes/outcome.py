"""The contract of a kind of outcome: how it is declared, counted, compared and worded.

Rows hold codes: integers, larger being worse. A kind turns codes into marks, which groups sum,
compares the sums of two groups, and words the result. The base classes hold what most kinds share,
so that a kind states only what differs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isnan
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from mutandis.data.columns import Numbers, frozen
from mutandis.data.rows import ByRow
from mutandis.engine.tally import Sums, difference, exceeds
from mutandis.errors import MissingValuesError
from mutandis.outcomes.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Categories, Column
    from mutandis.data.labels import Labels
    from mutandis.outcomes.measures import Measure

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

__all__ = [
    "Comparison",
    "Declaration",
    "Depth",
    "Direction",
    "Kind",
    "Outcome",
    "Rule",
    "Words",
]

Direction = Literal["negative", "positive"]
"""Whether complainants who are treated worse are looked for, or people who are treated better."""

Depth = Literal["evidence", "significance", "bounds"]
"""How far a comparison goes: each takes longer than the one before."""

MISSING = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What counts as evidence, and how it is tested."""

    kind: Kind
    measure: Measure
    interval: str  # its name; only a binary outcome has several
    tau: Fraction  # the decimal that was written
    alpha: float
    direction: Direction = "negative"

    @property
    def worse(self) -> bool:
        """Whether worse treatment is looked for."""
        return self.direction == "negative"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(ByRow):
    """Control against test group, for each complainant."""

    delta_p: Floats  # Δ, larger where the control group is treated worse
    evidence: Bools  # whether the measure is beyond τ (Def. 5)
    significant: Bools  # whether the one-sided test rejects at level α as well (Def. 6)
    interval: Interval
    insufficient: Bools  # too few people to compare with: neither tested nor counted as a case

    @classmethod
    def of(cls, delta: Floats, evidence: Bools, interval: Interval, *, alpha: float) -> Comparison:
        """Combine evidence and test."""
        return cls(
            delta_p=delta,
            evidence=evidence,
            significant=evidence & (interval.p_value <= alpha),
            interval=interval,
            insufficient=np.zeros_like(evidence),
        )

    def mirrored(self) -> Comparison:
        """Return the comparison of the test group with the control group, signs turned back."""
        # subtracted from zero, since turning the sign of 0 would give -0
        found = self.interval
        bounds = replace(
            found,
            low=0.0 - found.high,
            high=0.0 - found.low,
            measured=None if found.measured is None else found.measured.inverted(),
        )
        return replace(self, delta_p=0.0 - self.delta_p, interval=bounds)


class Declaration(ABC):
    """What a user states about the outcome column; a frozen value."""

    __slots__ = ()

    key: ClassVar[str]  # the argument that states which values are worse
    title: ClassVar[str]  # "a score"
    plural: ClassVar[str]  # "scores"
    example: ClassVar[str]  # how it is written, around the quoted column
    numeric: ClassVar[bool] = False  # whether the column holds numbers
    # the only measure and interval of this kind; None where users choose
    measure: ClassVar[Measure | None] = None
    interval: ClassVar[str | None] = None

    column: str

    @property
    def values(self) -> int | None:
        """Number of values; None if any number is one."""
        return None

    @abstractmethod
    def read(self, column: Column, *, finest: bool = False) -> Outcome:
        """Read the column; `finest` if counterfactuals may have values between those on record."""


class Kind(ABC):
    """What codes of an outcome mean. Every kind is a frozen value."""

    __slots__ = ()

    two_sided: ClassVar[bool] = False  # every code is a refusal (1) or an approval (0)
    numeric: ClassVar[bool] = False  # values are numbers, and need not be on record
    negative: ClassVar[Any] = None  # the unfavourable value, where there is one
    # names of columns in findings tables, where they are not those of shares
    renamed: ClassVar[Mapping[str, str]] = {}

    # --- what is counted ---

    @property
    def width(self) -> int:
        """Number of marks that groups sum."""
        return 1

    @abstractmethod
    def marks(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the marks of codes, as integers or truth values: a column per mark."""

    def codes(self, marks: NDArray[np.int64]) -> NDArray[Any]:
        """Return the codes that have these marks."""
        return np.asarray(marks[..., 0], dtype=np.int64)

    @abstractmethod
    def code(self, values: Column) -> tuple[NDArray[Any], Bools]:
        """Return the codes of values, and which values have one."""

    @property
    def listing(self) -> tuple[Any, ...]:
        """All values in the order of a list; none if any number is one."""
        return ()

    @property
    @abstractmethod
    def unknown(self) -> str:
        """What a value without a code is, as it follows "the outcome is"."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """Which answers a decision maker may give, as it follows "allowed are"."""

    @abstractmethod
    def values(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the values of codes."""

    def column(self, codes: NDArray[Any]) -> Column:
        """Return the values of codes as a column of a table."""
        return Numbers(frozen(self.values(codes)))

    def response(self, codes: NDArray[Any]) -> Floats:
        """Return outcomes as numbers whose averages are compared; larger is worse."""
        return codes.astype(np.float64)

    @abstractmethod
    def pool(self, decided: Sequence[NDArray[Any]], point: NDArray[Any]) -> NDArray[Any]:
        """Return what several draws decide together; `point` is the most likely counterfactual."""

    def expected(
        self, pooled: NDArray[Any], rows: NDArray[np.intp], decided: NDArray[Any] | None
    ) -> NDArray[Any]:
        """Return codes whose average over the draws of some rows is shown."""
        if decided is None:
            return pooled
        found = pooled.astype(np.float64)
        found[rows] = decided.mean(axis=0)
        return found

    def unexplained(self, recorded: NDArray[Any], decided: NDArray[Any]) -> float | None:
        """Return the share of the variation on record that b() leaves open; None without one."""
        return None

    # --- how groups are compared ---

    @property
    def unit(self) -> Fraction:
        """What one of `exact` counts in Δ."""
        return Fraction(1)

    def exact(self, control: Sums, test: Sums) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return Δ of groups that are not empty: numerators over positive denominators."""
        return difference(control, test)

    def differences(self, control: Sums, test: Sums) -> Floats:
        """Return Δ of groups that are not empty, rounded once."""
        return in_units(*self.exact(control, test), self.unit)

    def compare(self, control: Sums, test: Sums, rule: Rule, *, depth: Depth) -> Comparison:
        """Compare groups that are not empty, looking for worse treatment of the control group."""
        exact = self.exact(control, test)
        delta = in_units(*exact, self.unit)
        if depth == "evidence":
            interval = Interval.without_bounds(np.full(len(delta), np.nan))
        else:
            interval = self.test(control, test, rule, delta, bounds=depth == "bounds")
        return Comparison.of(
            delta, self.is_beyond(control, test, rule, exact), interval, alpha=rule.alpha
        )

    def is_beyond(self, control: Sums, test: Sums, rule: Rule, exact: Any) -> Bools:
        """Find where the measure is beyond τ, on integers."""
        numerator, denominator = exact
        return exceeds(numerator, denominator, rule.tau / self.unit)

    @abstractmethod
    def test(
        self, control: Sums, test: Sums, rule: Rule, delta: Floats, *, bounds: bool
    ) -> Interval:
        """Test Δ ≤ τ; without `bounds`, those that take longer than the test may be missing."""

    @abstractmethod
    def averages(self, control: Sums, test: Sums) -> tuple[Floats, Floats]:
        """Return what is shown of both groups, missing where a group is empty."""

    def doubted(self, control: Sums, test: Sums) -> Floats:
        """Return the estimate whose variance over refits enters the test."""
        return test.mean()

    def is_worse(
        self, codes: NDArray[Any], others: Sums, *, tau: Fraction, worse: bool = True
    ) -> Bools:
        """Mark codes that are worse than a group by more than τ (or better), exactly.

        They are not where the group is empty. A kind with two sides marks refusals, whatever the
        group.
        """
        found = np.zeros(len(codes), dtype=np.bool_)
        filled = np.flatnonzero(others.places > 0)
        own, there = self.alone(codes[filled]), others.take(filled)
        sides = (own, there) if worse else (there, own)
        found[filled] = exceeds(*self.exact(*sides), tau / self.unit)
        return found

    def own_case(
        self, codes: NDArray[Any], matches: Sums, rule: Rule
    ) -> tuple[Floats, NDArray[np.object_]]:
        """Compare each complainant with their own matches: what is shown, and yes, no or None."""
        answer = self.is_worse(codes, matches, tau=rule.tau, worse=rule.worse).astype(object)
        answer[matches.places == 0] = None
        return self.own_shown(codes, matches), answer

    def own_shown(self, codes: NDArray[Any], matches: Sums) -> Floats:
        """Return what is shown of own matches, missing where there are none."""
        return self.averages(self.alone(codes), matches)[1]

    def alone(self, codes: NDArray[Any]) -> Sums:
        """Return single people as groups."""
        marks = self.marks(codes).astype(np.int64)
        return Sums.of(marks=marks, places=np.ones(len(codes), dtype=np.int64))

    def against(self, own: Floats) -> Floats:
        """Orient what `own_case` shows: larger where it supports a case of one's own more."""
        return -own

    def for_small_groups(self) -> Kind:
        """Return the same kind with tests of smaller groups, as sham audits need."""
        return self

    # --- how it is worded ---

    def plain(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of findings with the names that it has for shares of refusals."""
        names = {theirs: ours for ours, theirs in self.renamed.items()}
        return {names.get(name, name): value for name, value in row.items()}

    @abstractmethod
    def words(self, column: str, labels: Labels) -> Words:
        """Return the words for documents."""

    @abstractmethod
    def declaration(self) -> Mapping[str, Any]:
        """Return how it is declared in an audit file, without the column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An outcome column, as codes."""

    column: str
    kind: Kind
    codes: NDArray[Any]
    # the values on record, where they are not the values of the codes
    on_record: Column | None = None

    def take(self, rows: NDArray[np.intp]) -> Outcome:
        """Return the outcomes of some rows."""
        record = None if self.on_record is None else self.on_record.take(rows)
        return replace(self, codes=self.codes[rows], on_record=record)

    def recorded(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return the values on record of some rows."""
        if self.on_record is None:
            return self.kind.values(self.codes[rows])
        record = self.on_record.take(rows)
        if isinstance(record, Numbers):
            return record.values
        return array_of(record.levels)[record.codes]

    @property
    def declaration(self) -> dict[str, Any]:
        """How it is declared in an audit file: the column, and which values are worse."""
        return {"column": self.column, **self.kind.declaration()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Words(ABC):
    """How values, averages, differences and evidence of a kind are written in documents.

    Defaults are those of outcomes without sides, of which groups have an average.
    """

    kind: Any  # the kind that the words are for
    column: str
    labels: Labels  # what columns and values are called

    averaged: str  # what is averaged over a group, as it follows its name: "refused", "mean rate"
    compared: str  # what two groups are compared in: "mean rate", "answer"
    worse: str  # which outcomes are worse: "Loan = no", "a higher rate"
    caption: str  # of a table of both averages, their difference and the verdict
    definition: str  # what is compared, and how a difference is formed
    counts: str  # what counts in this audit, as a sentence
    described: str = ""  # what a group is described by alone: "refused (Loan = no)"
    symbol: str = "Δ"  # a difference
    theirs: str = "the mean"  # of the outcomes of others, one's own is compared with
    of_them: str = "worse off"  # a column that counts people with evidence
    with_evidence: str = ""  # who is counted there
    not_themselves: str = "were not themselves worse off than their test group"
    meaning: tuple[str, str] = ("Worse means", "")  # term and explanation
    sides: tuple[str, ...] = ()  # the unfavourable and the favourable one
    side_labels: Mapping[Any, str] = field(default_factory=dict)  # if they have several classes
    width: int = 10  # of a column in a table of text

    def __post_init__(self) -> None:
        """Derive what follows from other words."""
        derived: dict[str, Any] = {
            "described": self.described or self.averaged,
            "meaning": (self.meaning[0], self.worse),
            "with_evidence": self.with_evidence
            or f"those with evidence whose own {self.name} was worse than {self.theirs} of their "
            "test group by more than τ",
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """The outcome."""
        return self.labels.column(self.column)

    # --- numbers ---

    @property
    def decimals(self) -> int:
        """Decimals of a difference."""
        return 3

    def number(self, value: float) -> str:
        """Write a number with the decimals of a difference."""
        # what rounds to zero has no sign
        return f"{round(float(value), self.decimals) + 0.0:,.{self.decimals}f}"

    def difference(self, value: float | str | None) -> str:
        """Write a difference between groups, with a real minus."""
        if isinstance(value, str):
            return value
        if value is None or isnan(value):
            return MISSING
        return self.number(value).replace("-", "−")

    def average(self, value: float | str | None) -> str:
        """Write what is averaged over a group; text is written already."""
        if isinstance(value, str):
            return value
        return MISSING if value is None or isnan(value) else self.share(value)

    def share(self, value: float) -> str:
        """Write an average that is a number."""
        return f"{value:.1%}"

    def value(self, value: Any) -> str:
        """Write a value of the outcome."""
        return self.labels.level(self.column, value)

    @abstractmethod
    def average_of(self, codes: NDArray[Any]) -> float | str:
        """Return what describes the outcomes of some people: their average, or all shares."""

    @abstractmethod
    def facts(self, outcome: Outcome) -> tuple[str, dict[str, Any]]:
        """Describe the column in a few words after the number of decisions, and as plain data."""

    # --- sentences about several people ---

    def no_evidence(self, *, worse: bool) -> str:
        """Predicate of a control group without evidence, before "by more than τ"."""
        than = "worse" if worse else "better"
        return f"did not have a {than} {self.compared} than the test group,"

    def evidence(self) -> str:
        """Verb of a control group with evidence."""
        return "was" if self.kind.two_sided else "had"

    def cautions(self, outcome: Outcome) -> Iterable[str]:
        """Return what a reader must know about the column."""
        return ()

    def changed(self, before: NDArray[Any], after: NDArray[Any], *, drawn: bool) -> str:
        """Count outcomes that change in the counterfactual world, as it follows its name.

        The counterfactual codes of open counterfactuals (`drawn`) are averages over draws.
        """
        better, worse = int((after < before).sum()), int((after > before).sum())
        people = f"{len(before):,} complainant{'' if len(before) == 1 else 's'}"
        return (
            f", {better:,} of {people} would have had a better {self.name} than they had, and "
            f"{worse:,} a worse one."
        )

    def in_groups(self, control: float, test: float) -> str:
        """Write the averages of both groups in a sentence: "60% of the control group refused …"."""
        return (
            f"{self.averaged} {self.average(control)} in the control group, {self.average(test)} "
            "in the test group"
        )

    def in_group(self, average: float) -> str:
        """Write the average of one group under a picture."""
        return f"{self.averaged} {self.average(average)}"

    # --- sentences about one complainant ---

    def decided(self, value: Any) -> str:
        """Name the side of a value, "refused"; empty where outcomes have no sides."""
        return ""

    def is_concerned(self, value: Any, *, worse: bool) -> bool:
        """Return whether a complainant's own outcome is one that is looked for."""
        return True

    def had(self, value: Any) -> str:
        """State what was decided on one person: "was refused (outcome no)"."""
        return f"had the {self.name} {self.value(value)}"

    def averages(
        self, control: float | str | None, test: float | str | None
    ) -> tuple[tuple[str, str], str]:
        """Return the words before and after "the control group", and before "the test group"."""
        before, after = f"the {self.compared} of", f"was {self.average(control)}"
        return (before, after), f"{self.average(test)} in"

    def delta(self, value: float, *, decisions: bool = False) -> str:
        """Write a difference with its symbol; between two single `decisions`, if it is one."""
        return f"{self.symbol} = {self.number(value)}"

    def untested(self, *, several: bool) -> str:
        """State why a difference of `several` people, or between two decisions, is not tested."""
        if several and not self.kind.two_sided:
            return "a difference between too few people to be tested"
        return "a single comparison to which no test applies"

    def own_matches(self, own: float, *, has_case: bool, worse: bool, tau: float) -> str:
        """Compare the own outcome with those of the own matches, as it follows `had`."""
        by = f" by more than τ = {tau:g}" if tau else ""
        return (
            f"{'' if has_case else 'not '}{'worse' if worse else 'better'} than {self.theirs} of "
            f"the people most like the complainant's own counterfactual{by} ({self.own_shown(own)})"
        )

    def own_shown(self, own: float) -> str:
        """Write what describes the own matches."""
        return self.average(own)

    def counterfactual(self, value: Any, own: Any) -> str:
        """State what would have been decided on the counterfactual, as it follows its name."""
        return f"would have had the {self.name} {self.value(value)}"

    def row(self) -> tuple[tuple[str, str], int]:
        """Titles of both averages in a table of text, and the width of a column."""
        names = [self.kind.renamed.get(name, name) for name in ("p_control", "p_test")]
        return (names[0], names[1]), self.width


def capitalised(text: str) -> str:
    """Begin a text with a capital, and leave the rest as it is."""
    return text[:1].upper() + text[1:]


def listed(names: Iterable[object], *, last: str = "and") -> str:
    """Join names as in a sentence."""
    *others, final = [*map(str, names)] or [""]
    return f"{', '.join(others)} {last} {final}" if others else final


def in_units(numerator: NDArray[Any], denominator: NDArray[Any], unit: Fraction) -> Floats:
    """Divide integers that count units, rounded once."""
    if unit != 1:
        numerator = numerator.astype(object) * unit.numerator
        denominator = denominator.astype(object) * unit.denominator
    return np.asarray(numerator / denominator, dtype=np.float64)


def read_complete(column: str, categories: Categories) -> tuple[int, ...]:
    """Return the codes that occur; refuse missing values."""
    lacking = int(categories.missing().sum())
    if lacking:
        raise MissingValuesError(
            f"Outcome {column!r} has {lacking} missing values. "
            "Complete them, or leave these rows out."
        )
    # levels that no row has are left over from dropped rows: they do not count
    return tuple(np.flatnonzero(categories.counts()).tolist())


def array_of(values: Sequence[Any]) -> NDArray[Any]:
    """Return an array of values; values of several types stay as they are."""
    # numpy would turn (1, "no") into text
    alike = len({type(value) for value in values}) == 1
    return np.array(values, dtype=None if alike else object)
