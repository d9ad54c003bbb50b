"""The decision that was taken on each row: negative, or not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories, describe_levels, frozen, in_order
from mutandis.data.ordered import LevelScale, Ordered
from mutandis.data.score import Score, ScoreScale
from mutandis.errors import MissingValuesError, OutcomeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.data.labels import Labels
    from mutandis.data.ordered import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An outcome column: its unfavourable and its favourable value, and the negative rows.

    Where it has several classes, the two values are names of both sides: "no or later".
    """

    column: str
    negative: Any
    positive: Any
    is_negative: NDArray[Any]
    # of a score: the values on record, and how they are counted. Then `is_negative` holds the
    # steps of each row from the best value, and there are no two sides. Levels of an ordered
    # outcome are counted likewise
    scores: NDArray[np.float64] | None = None
    scale: Scale | None = None
    # the class of each row, and the unfavourable classes, where several were declared
    classes: Categories | None = None
    negatives: tuple[Any, ...] = ()

    @classmethod
    def read(cls, column: str, categories: Categories, *, negative: object) -> Outcome:
        """Read the outcome column: two values, one of them `negative`, or a list of classes."""
        declared = _read_classes(column, negative)
        _check_complete(column, categories)
        # levels that no row has are left over from dropped rows: they do not count
        occurring = np.flatnonzero(categories.counts()).tolist()
        shown = describe_levels(categories)
        if declared is not None:
            return cls._of_classes(column, categories, declared, occurring)
        if len(occurring) != 2:
            values = "distinct value" if len(occurring) == 1 else "distinct values"
            raise OutcomeError(
                f"Outcome {column!r} has {len(occurring)} {values} ({shown}), not two. "
                "Counterfactual situation testing compares refusals: give an outcome with one "
                "favourable and one unfavourable value, or list the unfavourable ones of several: "
                "negative=['no', 'later']."
            )
        code = categories.code_of(negative)
        if code not in occurring:
            raise OutcomeError(
                f"negative={negative!r} is not a value of outcome {column!r} ({shown}). "
                "Name the unfavourable one of these values."
            )
        occurring.remove(code)
        return cls(
            column=column,
            negative=categories.levels[code],
            positive=categories.levels[occurring[0]],
            is_negative=frozen(categories.codes == code),
        )

    @classmethod
    def of_score(
        cls, declared: Score, values: NDArray[np.float64], *, finest: bool = False
    ) -> Outcome:
        """Read a score; in the `finest` steps where other values may be decided."""
        scale = ScoreScale.fit(declared.column, values, worse=declared.worse, finest=finest)
        return cls(
            column=declared.column,
            negative=None,
            positive=None,
            is_negative=frozen(scale.count(values)),
            scores=values,
            scale=scale,
        )

    @classmethod
    def of_levels(cls, declared: Ordered, categories: Categories) -> Outcome:
        """Read an ordered outcome, all of whose values are in the declared order."""
        column, scale = declared.column, LevelScale(levels=declared.best_to_worst)
        _check_complete(column, categories)
        places = {
            categories.code_of(level): place for place, level in enumerate(declared.best_to_worst)
        }
        occurring = np.flatnonzero(categories.counts()).tolist()
        unknown = [code for code in occurring if code not in places]
        if unknown:
            others = Categories(
                categories.codes[np.isin(categories.codes, unknown)], categories.levels
            )
            raise OutcomeError(
                f"Outcome {column!r} has {len(unknown)} values that best_to_worst= does not name "
                f"({describe_levels(others)}). Name every value, from the best to the worst."
            )
        if len(occurring) < 2:
            raise OutcomeError(
                f"Outcome {column!r} is the same in every row: there is nothing to compare."
            )
        by_code = np.array([places.get(code, 0) for code in range(len(categories.levels))])
        return cls(
            column=column,
            negative=None,
            positive=None,
            is_negative=frozen(by_code[categories.codes].astype(np.int64)),
            scale=scale,
        )

    @classmethod
    def _of_classes(
        cls,
        column: str,
        categories: Categories,
        declared: tuple[Any, ...],
        occurring: Sequence[int],
    ) -> Outcome:
        """Part the classes into the declared ones, which are unfavourable, and all others."""
        codes = [categories.code_of(value) for value in declared]
        for value, code in zip(declared, codes, strict=True):
            if code not in occurring:
                raise OutcomeError(
                    f"negative={list(declared)!r} names {value!r}, which is not a value of outcome "
                    f"{column!r} ({describe_levels(categories)}). Name the unfavourable ones of "
                    "these values."
                )
        others = [code for code in occurring if code not in codes]
        if not others:
            raise OutcomeError(
                f"negative={list(declared)!r} names every value of outcome {column!r}: no decision "
                "would be favourable. Name the unfavourable values only."
            )
        negatives = tuple(categories.levels[code] for code in codes if code is not None)
        positives = [categories.levels[code] for code in others]
        return cls(
            column=column,
            negative=_either(negatives),
            positive=_either(positives),
            is_negative=frozen(~np.isin(categories.codes, others)),
            classes=categories if len(occurring) > 2 else None,
            negatives=negatives,
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """How it is declared to `mutandis.plan`."""
        if isinstance(self.scale, LevelScale):
            return {"outcome": Ordered(self.column, best_to_worst=self.scale.levels)}
        if self.scale is not None:
            return {"outcome": Score(self.column, worse=self.scale.worse)}
        return {"outcome": self.column, "negative": self.declared}

    @property
    def declaration(self) -> dict[str, Any]:
        """How it is declared in an audit file: the column, and what is unfavourable."""
        if isinstance(self.scale, LevelScale):
            return {"column": self.column, "best_to_worst": list(self.scale.levels)}
        if self.scale is not None:
            return {"column": self.column, "worse": self.scale.worse}
        return {"column": self.column, "negative": self.declared}

    @property
    def declared(self) -> Any:
        """The unfavourable value as it is declared: one, or a list of classes."""
        return list(self.negatives) if self.classes is not None else self.negative

    @property
    def sides(self) -> dict[Any, bool]:
        """Whether an outcome is unfavourable, for every value on record and for both sides."""
        sides = {self.positive: False, self.negative: True}
        if self.classes is not None:
            sides |= {level: level in self.negatives for level in self.classes.levels}
        return sides

    @property
    def class_names(self) -> tuple[Any, ...]:
        """The classes that occur, where there are several: the unfavourable ones come first."""
        if self.classes is None:
            return ()
        others = [each for each in self.classes.occurring() if each not in self.negatives]
        return (*self.negatives, *others)

    def said(self, labels: Labels, value: Any) -> str:
        """Give what a value is called, or a side of several classes: "no or later"."""
        if isinstance(self.scale, ScoreScale):
            return f"{value:,.6g}"
        for side, is_negative in ((self.negative, True), (self.positive, False)):
            if self.classes is not None and value == side and value not in self.classes.levels:
                names = [each for each in self.class_names if self.sides[each] is is_negative]
                return str(_either([labels.level(self.column, each) for each in names]))
        return labels.level(self.column, value)

    def take(self, rows: NDArray[np.intp]) -> Outcome:
        """Give the outcomes of some rows."""
        classes = self.classes
        if classes is not None:
            classes = Categories(frozen(classes.codes[rows]), classes.levels)
        scores = None if self.scores is None else self.scores[rows]
        return replace(self, is_negative=self.is_negative[rows], classes=classes, scores=scores)

    def recorded(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Give the values on record for some rows."""
        if self.scores is not None:
            return self.scores[rows]
        if self.classes is None:
            return self.labels(self.is_negative[rows])
        return _array_of(self.classes.levels)[self.classes.codes[rows]]

    def labels(self, is_negative: NDArray[Any]) -> NDArray[Any]:
        """Give the outcome values that belong to a mask of negatives, or to steps."""
        if self.scale is not None:
            return self.scale.values(is_negative)
        values = _array_of((self.positive, self.negative))
        return values[np.asarray(is_negative, dtype=np.bool_).astype(np.intp)]


def _check_complete(column: str, categories: Categories) -> None:
    lacking = int(categories.missing().sum())
    if lacking:
        raise MissingValuesError(
            f"Outcome {column!r} has {lacking} missing values. "
            "Complete them, or leave these rows out."
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


def _array_of(values: Sequence[Any]) -> NDArray[Any]:
    """Make an array; numpy would turn (1, "no") into text: values of two types stay as they are."""
    alike = len({type(value) for value in values}) == 1
    return np.array(values, dtype=None if alike else object)


def _either(values: Sequence[Any]) -> Any:
    """Name one side: its only value, or all of them."""
    if len(values) == 1:
        return values[0]
    words = [str(value) for value in values]
    return f"{', '.join(words[:-1])} or {words[-1]}"
