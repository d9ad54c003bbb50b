"""Outcomes with two sides: refused or approved, possibly several classes on a side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from mutandis.data.columns import Categories, Numbers, describe_levels, frozen, in_order
from mutandis.data.labels import PLAIN, Labels
from mutandis.errors import OutcomeError
from mutandis.outcomes.outcome import (
    Declaration,
    Kind,
    Outcome,
    Words,
    array_of,
    capitalised,
    listed,
    read_complete,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from mutandis.data.columns import Column
    from mutandis.engine.tally import Sums
    from mutandis.outcomes.intervals import Interval
    from mutandis.outcomes.outcome import Rule

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

__all__ = ["REFUSED", "SHARES", "Binary", "BinaryKind", "BinaryWords"]


@dataclass(frozen=True, slots=True)
class Binary(Declaration):
    """An outcome with an unfavourable value, or a list of unfavourable classes."""

    column: str
    negative: Any = field(kw_only=True)

    key: ClassVar[str] = "negative"
    title: ClassVar[str] = "an outcome with two values"
    plural: ClassVar[str] = "shares of refusals"
    example: ClassVar[str] = "{}, negative='no'"

    @property
    def values(self) -> int:
        """Two sides."""
        return 2

    def read(self, column: Column, *, finest: bool = False) -> Outcome:
        """Read the outcome column: two values, or several classes of which some are declared."""
        if not isinstance(column, Categories):
            raise TypeError("an outcome with two values is read as categories")
        classes = _read_classes(self.column, self.negative)
        occurring, shown = read_complete(self.column, column), describe_levels(column)
        if classes is None and len(occurring) != 2:
            values = "distinct value" if len(occurring) == 1 else "distinct values"
            raise OutcomeError(
                f"Outcome {self.column!r} has {len(occurring)} {values} ({shown}), not two. "
                "Counterfactual situation testing compares refusals: give an outcome with one "
                "favourable and one unfavourable value, or list the unfavourable ones of several: "
                "negative=['no', 'later']."
            )
        codes = {column.code_of(value): value for value in classes or (self.negative,)}
        for code, value in codes.items():
            if code not in occurring:
                raise OutcomeError(
                    f"negative={value!r} is not a value of outcome {self.column!r} ({shown}). Name "
                    "the unfavourable ones of these values."
                )
        others = [code for code in occurring if code not in codes]
        if not others:
            raise OutcomeError(
                f"negative= names every value of outcome {self.column!r}: no decision would be "
                "favourable. Name the unfavourable values only."
            )
        negatives = tuple(column.levels[code] for code in codes if code is not None)
        positives = tuple(column.levels[code] for code in others)
        several = len(occurring) > 2
        kind = BinaryKind(
            negative=_either(negatives),
            positive=_either(positives),
            negatives=negatives if several else (),
            positives=positives if several else (),
        )
        refused = frozen(~np.isin(column.codes, others))
        record = column if several else None
        return Outcome(column=self.column, kind=kind, codes=refused, on_record=record)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryKind(Kind):
    """Refused or not, coded as truth values.

    Where a side has several classes, its value names them: "no or later".
    """

    negative: Any = True  # type: ignore[misc]  # a value of every outcome
    positive: Any = False
    # the classes of each side; empty where the outcome has two values
    negatives: tuple[Any, ...] = ()
    positives: tuple[Any, ...] = ()

    two_sided: ClassVar[bool] = True

    def marks(self, codes: NDArray[Any]) -> NDArray[Any]:
        return codes[..., np.newaxis]

    def codes(self, marks: NDArray[np.int64]) -> Bools:
        return np.asarray(marks[..., 0], dtype=np.bool_)

    @property
    def several(self) -> bool:
        """Whether the outcome has more than two classes."""
        return bool(self.negatives)

    @property
    def classes(self) -> tuple[Any, ...]:
        """All values on record, the unfavourable ones first."""
        return (*self.negatives, *self.positives) or (self.negative, self.positive)

    def code(self, values: Column) -> tuple[Bools, Bools]:
        """Return which values are unfavourable, and which are values of the outcome at all."""
        if isinstance(values, Numbers):
            raise TypeError("an outcome with two values is read as categories")
        sides = {self.positive: False, self.negative: True}
        sides |= dict.fromkeys(self.positives, False) | dict.fromkeys(self.negatives, True)
        return (
            values.look_up(sides, otherwise=False).astype(np.bool_),
            values.look_up(dict.fromkeys(sides, True), otherwise=False).astype(np.bool_),
        )

    @property
    def listing(self) -> tuple[Any, ...]:
        return tuple(sorted(self.classes, key=str))

    @property
    def unknown(self) -> str:
        return f"neither {self.negative!r} nor {self.positive!r}"

    @property
    def allowed(self) -> str:
        values = self.classes
        return (
            f"the outcome's own values, {', '.join(map(repr, values[:-1]))} and {values[-1]!r}, or "
            "booleans. Turn a score or a probability into a decision first, by comparing it with a "
            "threshold"
        )

    def values(self, codes: NDArray[Any]) -> NDArray[Any]:
        # truth values, never positions: b() may answer with 0, 1 or more
        both = array_of((self.positive, self.negative))
        return both[np.asarray(codes, dtype=np.bool_).astype(np.intp)]

    def column(self, codes: NDArray[Any]) -> Column:
        return Categories(codes.astype(np.int32), (self.positive, self.negative))

    def pool(self, decided: Sequence[NDArray[Any]], point: NDArray[Any]) -> Bools:
        """Return what most draws decide; the decision on the point where they are even."""
        refused = np.sum(decided, axis=0)
        return np.where(2 * refused == len(decided), point, 2 * refused > len(decided))

    def is_beyond(self, control: Sums, test: Sums, rule: Rule, exact: Any) -> Bools:
        """Ask the measure, which may be a ratio."""
        return rule.measure.is_beyond(control, test, rule.tau)

    def test(
        self,
        control: Sums,
        test: Sums,
        rule: Rule,
        delta: Floats,
        *,
        bounds: bool,
    ) -> Interval:
        """Test shares by the measure and the interval of the rule."""
        settings: Any = {"tau": float(rule.tau), "alpha": rule.alpha, "interval": rule.interval}
        return rule.measure.test(control, test, bounds=bounds, **settings)

    def averages(self, control: Sums, test: Sums) -> tuple[Floats, Floats]:
        return control.mean(), test.mean()

    def is_worse(
        self,
        codes: NDArray[Any],
        others: Sums,
        *,
        tau: Fraction,
        worse: bool = True,
    ) -> Bools:
        refused = np.asarray(codes, dtype=np.bool_)
        return refused if worse else ~refused

    def own_case(
        self, codes: NDArray[Any], matches: Sums, rule: Rule
    ) -> tuple[Floats, NDArray[np.object_]]:
        """Return who was refused although fewer than half of their own matches were.

        Where better treatment is looked for: approved, although more than half were refused. A
        complainant with the other outcome has no case, whether there are matches or not.
        """
        own = matches.mean()
        concerned = self.is_worse(codes, matches, tau=rule.tau, worse=rule.worse)
        unlike = own < 1 / 2 if rule.worse else own > 1 / 2
        answer = (concerned & unlike).astype(object)
        answer[concerned & np.isnan(own)] = None
        return own, answer

    def words(self, column: str, labels: Labels) -> BinaryWords:
        sides = [_shown(self, side, column, labels) for side in (self.negative, self.positive)]
        worse = f"{labels.column(column)} = {sides[0]}"
        return BinaryWords(
            kind=self,
            column=column,
            labels=labels,
            averaged=labels.negative,
            compared=f"share {labels.negative}",
            worse=worse,
            described=f"{labels.negative} ({worse})",
            caption=f"Shares {labels.negative}, their difference, and the verdict.",
            definition=f"p is the share of a group that was {labels.negative}, Δp = p(control "
            "group) − p(test group).",
            counts=f"“{capitalised(labels.negative)}” means {worse}.",
            symbol="Δp",
            of_them=labels.negative,
            with_evidence="those with evidence whose own outcome on record was negative",
            not_themselves="did not have the unfavourable outcome themselves",
            meaning=(f"{capitalised(labels.negative)} means", ""),
            sides=tuple(sides),
            side_labels=dict(zip((self.negative, self.positive), sides, strict=True))
            if self.several
            else {},
            width=7,
        )

    def declaration(self) -> Mapping[str, Any]:
        return {"negative": list(self.negatives) if self.several else self.negative}


REFUSED: Final = BinaryKind()
"""Truth values without names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryWords(Words):
    """Words for shares of refusals."""

    kind: BinaryKind

    def value(self, value: Any) -> str:
        return _shown(self.kind, value, self.column, self.labels)

    def average_of(self, codes: NDArray[Any]) -> float | str:
        return float(codes.mean()) if len(codes) else float("nan")

    def facts(self, outcome: Outcome) -> tuple[str, dict[str, Any]]:
        refused = int(outcome.codes.sum())
        return f", {refused:,} of them negative.", {"refused": refused}

    def _is_negative(self, value: Any) -> bool:
        return bool(value == self.kind.negative) or value in self.kind.negatives

    def no_evidence(self, *, worse: bool) -> str:
        often = "more" if worse else "less"
        return f"was not {self.labels.negative} {often} often than the test group"

    def cautions(self, outcome: Outcome) -> Iterable[str]:
        if outcome.codes.mean() > 1 / 2:
            negative = self.kind.negative
            shown = self.value(negative)
            yield (
                f"Most people had the outcome {negative if shown == str(negative) else shown!r}, "
                "which was declared to be the unfavourable one. Check that it is."
            )

    def changed(self, before: NDArray[Any], after: NDArray[Any], *, drawn: bool) -> str:
        # to whole people, where these are averages over draws
        granted = round(float((1 - after)[before].sum()))
        refused = round(float(after[~before].sum()))
        return (
            f"{', on average over the draws,' if drawn else ','} {granted:,} of the "
            f"{int(before.sum()):,} complainants who were {self.labels.negative} would not have "
            f"been, and {refused:,} of the {int((~before).sum()):,} others would."
        )

    def in_groups(self, control: float, test: float) -> str:
        return (
            f"{self.average(control)} of the control group {self.labels.negative}, "
            f"{self.average(test)} of the test group"
        )

    def in_group(self, average: float) -> str:
        return f"{self.average(average)} {self.labels.negative}"

    def is_concerned(self, value: Any, *, worse: bool) -> bool:
        return self._is_negative(value) == worse

    def decided(self, value: Any) -> str:
        return self.labels.decided(self._is_negative(value))

    def had(self, value: Any) -> str:
        return f"was {self.decided(value)} (outcome {self.value(value)})"

    def averages(
        self, control: float | str | None, test: float | str | None
    ) -> tuple[tuple[str, str], str]:
        had = f"had the outcome {self.value(self.kind.negative)}"
        return (f"{self.average(control)} of", had), f"{self.average(test)} of"

    def delta(self, value: float, *, decisions: bool = False) -> str:
        return f"{self.symbol} = {value:.{0 if decisions else 3}f}"

    def own_matches(self, own: float, *, has_case: bool, worse: bool, tau: float) -> str:
        half = f"{'fewer' if worse else 'more'} than half"
        how_many = f"although {half}" if has_case else f"and not {half}"
        return (
            f"{how_many} of the people most like the complainant's own counterfactual were "
            f"{self.labels.negative} ({own:.1%})"
        )

    def counterfactual(self, value: Any, own: Any) -> str:
        same = self._is_negative(value) == self._is_negative(own)
        return (
            f"would have been {self.decided(value)} (outcome {self.value(value)}), "
            f"{'like' if same else 'unlike'} the complainant"
        )


def _read_classes(column: str, negative: object) -> tuple[Any, ...] | None:
    """Read a list of unfavourable classes; None where a single value is given."""
    if isinstance(negative, np.ndarray):
        negative = negative.tolist()
    if isinstance(negative, set | frozenset):
        negative = in_order(negative)
    if not isinstance(negative, list | tuple):
        return None
    if not negative:
        raise OutcomeError(
            f"negative= is an empty list. Name at least one unfavourable value of {column!r}."
        )
    if any(value in negative[:place] for place, value in enumerate(negative)):
        raise OutcomeError(f"negative= names a value of {column!r} twice. Name each once.")
    return tuple(negative)


def _shown(kind: BinaryKind, value: Any, column: str, labels: Labels) -> str:
    """Write a value; a side by all of its classes."""
    for side, classes in ((kind.negative, kind.negatives), (kind.positive, kind.positives)):
        if value == side and classes and value not in kind.classes:
            return str(_either([labels.level(column, each) for each in classes]))
    return labels.level(column, value)


def _either(values: Sequence[Any]) -> Any:
    """Name one side: its only value, or all of them."""
    return values[0] if len(values) == 1 else listed(values, last="or")


SHARES: Final = REFUSED.words("", PLAIN)
"""Words without labels."""
