"""The outcome of an audit, and the contract of a kind of outcome.

Rows hold codes: integers, larger being worse. A kind turns codes into marks, which groups sum,
compares the sums of two groups, and words the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from mutandis.data.by_row import ByRow
from mutandis.data.columns import Numbers, frozen
from mutandis.errors import MissingValuesError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from mutandis.data.columns import Categories, Column
    from mutandis.data.labels import Labels
    from mutandis.engine.tally import Sums
    from mutandis.outcomes.intervals import Interval
    from mutandis.outcomes.measures import Measure
    from mutandis.outcomes.words import Words

__all__ = ["Comparison", "Depth", "Direction", "Kind", "Outcome", "Rule"]

Direction = Literal["negative", "positive"]
"""Whether complainants who are treated worse are looked for, or those who are treated better."""

Depth = Literal["evidence", "significance", "bounds"]
"""How far a comparison goes: each takes longer than the one before."""


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

    delta_p: NDArray[np.float64]  # Δ, larger where the control group is treated worse
    evidence: NDArray[np.bool_]  # whether the measure is beyond τ (Def. 5)
    significant: NDArray[np.bool_]  # whether the one-sided test rejects at level α (Def. 6)
    interval: Interval  # the bounds and the p-value
    # too few people to compare with: neither tested nor counted as a case
    insufficient: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        delta: NDArray[np.float64],
        evidence: NDArray[np.bool_],
        interval: Interval,
        *,
        alpha: float,
    ) -> Comparison:
        """Combine evidence and test: significant where both hold."""
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


class Kind(ABC):
    """What codes of an outcome mean. Every kind is a frozen value."""

    __slots__ = ()

    two_sided: ClassVar[bool] = False  # every code is a refusal (1) or an approval (0)
    numeric: ClassVar[bool] = False  # values are numbers, and need not be on record
    # the unfavourable value, where there is one
    negative: ClassVar[Any] = None
    # names of columns in findings tables, where they are not those of shares
    renamed: ClassVar[Mapping[str, str]] = {}

    # --- what is counted ---

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of marks that groups sum."""

    @abstractmethod
    def marks(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the marks of codes, as integers or truth values: a column per mark."""

    @abstractmethod
    def codes(self, marks: NDArray[np.int64]) -> NDArray[Any]:
        """Return the codes that have these marks."""

    @abstractmethod
    def code(self, values: Column) -> tuple[NDArray[Any], NDArray[np.bool_]]:
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

    @abstractmethod
    def ends(self, codes: NDArray[Any]) -> tuple[int, int]:
        """Return the best and the worst code that an outcome could have had."""

    @abstractmethod
    def pool(self, decided: Sequence[NDArray[Any]], point: NDArray[Any]) -> NDArray[Any]:
        """Return what several draws decide together, from the codes of each draw.

        `point` are the codes of the most likely counterfactual.
        """

    def expected(
        self, pooled: NDArray[Any], rows: NDArray[np.intp], decided: NDArray[Any] | None
    ) -> NDArray[Any]:
        """Return codes whose average over the draws of some rows is shown."""
        if decided is None:
            return pooled
        found = pooled.astype(np.float64)
        found[rows] = decided.mean(axis=0)
        return found

    def unexplained(
        self,
        recorded: NDArray[Any],
        decided: NDArray[Any],
    ) -> float | None:
        """Return the share of the variation on record that b() leaves open; None without one."""
        return None

    # --- how groups are compared ---

    @abstractmethod
    def compare(self, control: Sums, test: Sums, rule: Rule, *, depth: Depth) -> Comparison:
        """Compare groups that are not empty, looking for worse treatment of the control group."""

    @abstractmethod
    def differences(self, control: Sums, test: Sums) -> NDArray[np.float64]:
        """Return Δ of groups that are not empty, rounded once."""

    @abstractmethod
    def averages(
        self, control: Sums, test: Sums
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what is shown of both groups, missing where a group is empty."""

    def doubted(self, control: Sums, test: Sums) -> NDArray[np.float64]:
        """Return the estimate whose variance over refits enters the test."""
        return test.mean()

    @abstractmethod
    def is_worse(
        self, codes: NDArray[Any], others: Sums, *, tau: Fraction, worse: bool = True
    ) -> NDArray[np.bool_]:
        """Mark codes that are worse than a group by more than τ (or better), exactly.

        A kind with two sides marks refusals, whatever the group.
        """

    @abstractmethod
    def own_case(
        self, codes: NDArray[Any], matches: Sums, rule: Rule
    ) -> tuple[NDArray[np.float64], NDArray[np.object_]]:
        """Compare each complainant with their own matches: what is shown, and yes, no or None."""

    @abstractmethod
    def against(self, own: NDArray[np.float64]) -> NDArray[np.float64]:
        """Orient what `own_case` shows: larger where it supports a case of one's own more."""

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
        """Return how it is declared in an audit file, beside the column."""


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
