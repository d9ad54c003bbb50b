"""Ready-made counterfactuals: a D^CF that was computed elsewhere, rows aligned with D."""

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
    from collections.abc import Mapping, Sequence

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
    is_negative: NDArray[Any] | None  # who would have been refused, if the table has outcomes

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
        opened, source = open_frame(frame), population.source
        _check_alignment(opened, population, rows_given, attributes, id)
        if len(population) != rows_given:
            opened = opened[population.positions.tolist()]
        kept = {each.attribute for each in protections} | {outcome.column, id}
        shared = [name for name in opened.columns if name in source.columns]
        taken = [name for name in shared if name not in kept]
        columns = _read_columns(opened, taken, population, attributes)
        statuses: dict[str, Column] = {}
        is_reference = np.ones(len(population), dtype=np.bool_)
        for each in protections:
            status = population.categories(each.attribute)
            reference = status.code_of(each.reference)
            statuses[each.attribute] = status.filled(-1 if reference is None else reference)
            is_reference &= status.codes == reference
        for name in (attribute.name for attribute in attributes):
            _warn_if_moved(name, columns[name], population.columns[name], is_reference)
        # a copy: the caller may change the table later
        series = [_as_native(opened[name], source) for name in taken]
        changed = source.with_columns(series).clone()
        moved = replace(population, open_source=lambda: changed).with_columns(statuses)
        return cls(
            population=replace(moved, columns=MappingProxyType({**moved.columns, **columns})),
            is_negative=_read_outcome(opened, outcome) if outcome.column in shared else None,
        )

    def take(self, rows: NDArray[np.intp]) -> CounterfactualTable:
        """Return the counterfactuals of some rows."""
        decided = None if self.is_negative is None else self.is_negative[rows]
        return CounterfactualTable(population=self.population.take(rows), is_negative=decided)


def _check_alignment(
    opened: nw.DataFrame[Any],
    population: Population,
    rows_given: int,
    attributes: Sequence[Attribute],
    id: str | None,  # noqa: A002
) -> None:
    if len(opened) != rows_given:
        raise AlignmentError(
            f"counterfactuals= has {len(opened)} rows, the table of decisions {rows_given}. "
            "Give one counterfactual row per decision, in the same order."
        )
    if id is not None and id in opened.columns:
        given = np.asarray(opened[id].to_numpy())[population.positions]
        differing = int((given != population.ids).sum())
        if differing:
            raise AlignmentError(
                f"counterfactuals= has other values of the id column {id!r} in {differing} rows. "
                "Sort both tables alike: row i of one is row i of the other."
            )
    lacking = [each.name for each in attributes if each.name not in opened.columns]
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
) -> Mapping[str, Column]:
    declared = {each.name: each for each in attributes}
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
    """Return categories with the codes they have in D; levels that D never had come last."""
    if isinstance(column, Numbers) or isinstance(like, Numbers):
        return column
    levels = (*like.levels, *(each for each in column.levels if like.code_of(each) is None))
    place = {level: code for code, level in enumerate(levels)}
    recode = np.array([place[level] for level in column.levels], dtype=np.int32)
    return Categories(frozen(recode[column.codes]), levels)


def _warn_if_moved(
    name: str, column: Column, factual: Column, is_reference: NDArray[np.bool_]
) -> None:
    """Warn if people of the reference status differ from the facts by more than rounding."""
    span = _MOVED * np.ptp(factual.data) if isinstance(factual, Numbers) else 0
    moved = np.abs(column.data[is_reference] - factual.data[is_reference]) > span
    share = float(moved.mean()) if len(moved) else 0.0
    if share > _MOVED_SHARE:
        warnings.warn(
            f"In counterfactuals=, {share:.0%} of the reference rows have another {name!r} "
            "than in fact, although do(reference) leaves them as they are. "
            "Check that both tables are sorted alike.",
            MutandisWarning,
            stacklevel=2,
        )


def _as_native(series: nw.Series[Any], like: nw.DataFrame[Any]) -> nw.Series[Any]:
    """Convert a series to the frame type of D; where it is that already, its type stays."""
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
