"""Tests of the independences that a worldview implies, by the kinds of the columns."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from mutandis.causal.diagnostics.contingency import g_dependence
from mutandis.causal.diagnostics.dependence import Dependence, mean_dependence
from mutandis.causal.diagnostics.diagnosis import IndependenceCheck
from mutandis.causal.diagnostics.features import (
    Conditioning,
    crossed,
    group_codes,
    indicators,
    is_nominal,
    takes_few_values,
)
from mutandis.data.columns import Categories

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from mutandis.causal.diagnostics.independences import Independence
    from mutandis.data.columns import Column

    Floats = NDArray[np.float64]

__all__ = ["check_independences"]


def check_independences(
    implied: Iterable[Independence],
    columns: Mapping[str, Column],
    *,
    parents: Mapping[str, Sequence[str]],
    residuals: Mapping[str, Sequence[Floats]],
) -> Iterator[IndependenceCheck]:
    """Test each implied independence, by a test that suits the kinds of the columns.

    Parameters
    ----------
    implied
        What the graph says.
    columns
        The table.
    parents
        The causes of each attribute.
    residuals
        What the equations left over. Where an attribute is held against others given its causes,
        they are on the scale on which its equation is meant; elsewhere the values themselves serve.
    """
    held: dict[tuple[str, ...], Conditioning] = {}
    for statement in implied:
        first, second, given = statement.first, statement.second, statement.given
        fixed = [columns[name] for name in given]
        if given not in held:
            held[given] = Conditioning.on_columns(fixed, rows=len(columns[first]))
        own = residuals.get(second) if set(given) == set(parents[second]) else None
        result = _dependence(columns[first], columns[second], own, fixed=fixed, given=held[given])
        yield IndependenceCheck(first=first, second=second, given=given, **asdict(result))


def _dependence(
    first: Column,
    second: Column,
    residuals: Sequence[Floats] | None,
    *,
    fixed: Sequence[Column],
    given: Conditioning,
) -> Dependence:
    """Choose the test: by counting if both are nominal, by means otherwise."""
    nominal = is_nominal(first), is_nominal(second)
    by_counting = None
    if all(nominal) and all(map(takes_few_values, fixed)):
        strata = crossed(fixed, rows=len(first))
        by_counting = g_dependence(group_codes(first), group_codes(second), strata)
        if by_counting.p_value is not None or not fixed:
            return by_counting
    if any(nominal):
        test = "robust regression score"
    else:
        test = "robust partial correlation" if fixed else "robust correlation"
    # given its own causes, an attribute is what its equation leaves over
    by_means = mean_dependence(
        residuals or _vectors(second), _vectors(first), given=given, test=test
    )
    return by_counting if by_counting and by_means.p_value is None else by_means


def _vectors(column: Column) -> Sequence[Floats]:
    if isinstance(column, Categories) or is_nominal(column):
        return indicators(group_codes(column))
    return [column.values]
