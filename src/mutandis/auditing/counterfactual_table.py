"""Ready-made counterfactuals: a D^CF that somebody else computed, rows aligned with D."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import (
    Categories,
    Column,
    Numbers,
    frozen,
    read_categories,
    read_numbers,
)
from mutandis.data.population import Population
from mutandis.errors import AlignmentError, KindError, MissingValuesError, MutandisWarning
from mutandis.frames import open_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    import narwhals as nw
    from numpy.typing import NDArray

    from mutandis.data.attribute import Attribute
    from mutandis.data.protection import Protection
    from mutandis.outcomes.outcome import Outcome

__all__ = ["CounterfactualTable"]

# under do(reference) people of the reference status stay as they are; rounding aside, more than a
# few who move by more than this part of the range mean that rows were mixed up
_MOVED = 0.01
_MOVED_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterfactualTable:
    """D^CF as it was handed in."""

    # D with the counterfactual columns in place and the protected attribute at its reference
    population: Population
    is_negative: NDArray[Any] | None  # who would have been refused, if the table says so

    @classmethod
    def read(
        cls,
        frame: Any,
        *,
        population: Population,
        rows_given: int,
        attributes: Sequence[Attribute],
        outcome: Outcome,
        protections: Sequence[Protection],
        id: str | None,  # noqa: A002 - the public name of the option
    ) -> CounterfactualTable:
        """Read the table and check, as far as can be seen, that its rows are those of D.

        Every column it shares with D replaces D's, the protected attributes excepted, which take
        their reference values whatever the table holds.
        """
        opened = open_frame(frame)
        _check_rows(opened, population, rows_given=rows_given, id=id)
        _check_columns(opened, attributes)
        if len(population) != rows_given:
            opened = opened[population.positions.tolist()]
        names = [name for name in opened.columns if name in population.source.columns]
        kept = {each.attribute for each in protections} | {outcome.column, id}
        taken = [name for name in names if name not in kept]
        columns = _read_columns(opened, taken, population, attributes)
        statuses, is_reference = _at_reference(population, protections)
        _warn_if_reference_moves(population, columns, attributes, is_reference)
        # a copy: the caller may change the table later
        source = population.source.with_columns(
            [_as_native(opened[name], population.source) for name in taken]
        ).clone()
        moved = replace(population, open_source=lambda: source).with_columns(statuses)
        known = {name: column for name, column in columns.items() if name in population.columns}
        return cls(
            population=replace(moved, columns=MappingProxyType({**moved.columns, **known})),
            is_negative=_read_outcome(opened, outcome) if outcome.column in names else None,
        )

    def take(self, rows: NDArray[np.intp]) -> CounterfactualTable:
        """Give the counterfactuals of some rows."""
        decided = self.is_negative
        return CounterfactualTable(
            population=self.population.take(rows),
            is_negative=None if decided is None else decided[rows],
        )


def _at_reference(
    population: Population, protections: Sequence[Protection]
) -> tuple[dict[str, Column], NDArray[np.bool_]]:
    """Set everybody to the reference values, and mark those who have them all in fact."""
    statuses: dict[str, Column] = {}
    is_reference = np.ones(len(population), dtype=np.bool_)
    for each in protections:
        status = population.categories(each.attribute)
        reference = status.code_of(each.reference)
        statuses[each.attribute] = status.filled(-1 if reference is None else reference)
        is_reference &= status.codes == reference
    return statuses, is_reference


def _check_rows(
    opened: nw.DataFrame[Any],
    population: Population,
    *,
    rows_given: int,
    id: str | None,  # noqa: A002
) -> None:
    if len(opened) != rows_given:
        raise AlignmentError(
            f"counterfactuals= has {len(opened)} rows, the table of decisions {rows_given}. "
            "Give one counterfactual row per decision, in the same order."
        )
    if id is None or id not in opened.columns:
        return
    given = np.asarray(opened[id].to_numpy())[population.positions]
    differing = int((given != population.ids).sum())
    if differing:
        raise AlignmentError(
            f"counterfactuals= has other values of the id column {id!r} in {differing} rows. "
            "Sort both tables alike: row i of one is row i of the other."
        )


def _check_columns(opened: nw.DataFrame[Any], attributes: Sequence[Attribute]) -> None:
    lacking = [a.name for a in attributes if a.name not in opened.columns]
    if lacking:
        raise AlignmentError(
            f"counterfactuals= lacks the attributes {', '.join(map(repr, lacking))}. Add them; an "
            "attribute that the protected status does not touch keeps its factual values."
        )


def _read_columns(
    opened: nw.DataFrame[Any],
    names: Sequence[str],
    population: Population,
    attributes: Sequence[Attribute],
) -> dict[str, Column]:
    declared = {a.name: a for a in attributes}
    needed = [name for name in names if name in population.columns]
    try:
        read = Population.from_frame(
            opened,
            columns=[name for name in needed if name not in declared],
            attributes=[declared[name] for name in needed if name in declared],
        )
    except MissingValuesError as error:
        # missing="drop" is about rows of D: the reader's own advice would be wrong here
        found = str(error).partition(". ")[0]
        raise MissingValuesError(
            f"In counterfactuals=: {found}. Give a value to every row that D has."
        ) from None
    except KindError as error:
        raise KindError(f"In counterfactuals=: {error}") from None
    return {name: _recoded(read.columns[name], population.columns[name]) for name in needed}


def _recoded(column: Column, like: Column) -> Column:
    """Give categories the codes they have in D; levels that D never had come after those."""
    if isinstance(column, Numbers) or isinstance(like, Numbers):
        return column
    new = [level for level in column.levels if like.code_of(level) is None]
    levels = (*like.levels, *new)
    place = {level: code for code, level in enumerate(levels)}
    recode = np.array([place[level] for level in column.levels], dtype=np.int32)
    return Categories(frozen(recode[column.codes]), levels)


def _warn_if_reference_moves(
    population: Population,
    columns: dict[str, Column],
    attributes: Sequence[Attribute],
    is_reference: NDArray[np.bool_],
) -> None:
    if not is_reference.any():
        return
    for name in (attribute.name for attribute in attributes):
        moved = _moved(columns[name], population.columns[name])
        share = float(moved[is_reference].mean())
        if share > _MOVED_SHARE:
            warnings.warn(
                f"In counterfactuals=, {share:.0%} of the reference rows have another {name!r} "
                "than in fact, although do(reference) leaves them as they are. "
                "Check that both tables are sorted alike.",
                MutandisWarning,
                stacklevel=2,
            )


def _moved(column: Column, factual: Column) -> NDArray[np.bool_]:
    """Mark rows that differ from the facts by more than rounding explains."""
    if isinstance(column, Numbers) and isinstance(factual, Numbers):
        shift = np.abs(column.values - factual.values)
        return np.asarray(shift > _MOVED * np.ptp(factual.values), dtype=np.bool_)
    if isinstance(column, Categories) and isinstance(factual, Categories):
        return np.asarray(column.codes != factual.codes, dtype=np.bool_)
    raise TypeError("an attribute is read in both tables by its one declared kind")


def _as_native(series: nw.Series[Any], like: nw.DataFrame[Any]) -> nw.Series[Any]:
    """Bring a series into the frame type of D; where it is there already, its own type stays."""
    import narwhals as nw

    if series.implementation is like.implementation:
        return series
    return nw.new_series(series.name, series.to_list(), backend=like.implementation)


def _read_outcome(opened: nw.DataFrame[Any], outcome: Outcome) -> NDArray[Any]:
    kind, series = outcome.kind, opened[outcome.column]
    codes, known = kind.code(read_numbers(series) if kind.numeric else read_categories(series))
    unknown = int((~known).sum())
    if unknown:
        raise AlignmentError(
            f"counterfactuals= has {unknown} rows whose outcome {outcome.column!r} is "
            f"{kind.unknown}. Use the outcome values of the table of decisions, or leave the "
            "column out and give decision=."
        )
    return frozen(codes)
