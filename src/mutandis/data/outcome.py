"""The decision that was taken on each row: negative, or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import describe_levels, frozen
from mutandis.errors import MissingValuesError, OutcomeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.data.columns import Categories


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A binary outcome column: its unfavourable and its favourable value, and the negative rows."""

    column: str
    negative: Any
    positive: Any
    is_negative: NDArray[np.bool_]

    @classmethod
    def read(cls, column: str, categories: Categories, *, negative: object) -> Outcome:
        """Read the outcome column; it must hold exactly two values, one of them `negative`."""
        lacking = int(categories.missing().sum())
        if lacking:
            raise MissingValuesError(
                f"Outcome {column!r} has {lacking} missing values. "
                "Complete them, or leave these rows out."
            )
        # levels that no row has are left over from dropped rows: they do not count
        occurring = np.flatnonzero(categories.counts()).tolist()
        shown = describe_levels(categories)
        if len(occurring) != 2:
            values = "distinct value" if len(occurring) == 1 else "distinct values"
            raise OutcomeError(
                f"Outcome {column!r} has {len(occurring)} {values} ({shown}), not two. "
                "Counterfactual situation testing compares refusals: give an outcome with one "
                "favourable and one unfavourable value."
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

    def labels(self, is_negative: NDArray[np.bool_]) -> NDArray[Any]:
        """Give the outcome values that belong to a mask of negatives."""
        pair = (self.positive, self.negative)
        # numpy would turn (1, "no") into text: values of two types stay as they are
        alike = type(self.positive) is type(self.negative)
        values = np.array(pair, dtype=None if alike else object)
        return values[np.asarray(is_negative, dtype=np.bool_).astype(np.intp)]
