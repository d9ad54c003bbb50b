"""Formulas that people write: a small language that can compute and compare, and nothing else.

Decision rules and expert-stated structural equations arrive as text, often in a file that somebody
else wrote. Running such text as Python would hand over the machine. So `formula_reader` parses it
into Python's syntax tree, refuses every node that is not on a short list and copies the rest into a
tree of our own, `expression`, that knows columns, numbers, text and a dozen operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data import expression as tree
from mutandis.data.formula_reader import read_formula
from mutandis.errors import FormulaError, MissingValuesError, UnknownColumnError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["Formula"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A checked formula over the columns of a table.

    Build one with `Formula.parse`. The language has column names (plain, or in backticks), decimal
    numbers, ``+ - * / **`` (the exponent a number from -16 to 16), comparisons (which may be
    chained), ``and``, ``or``, ``not``, text in quotes beside ``==`` and ``!=``, and the functions
    ``abs``, ``exp``, ``log``, ``max``, ``min``, ``round`` (half to even), ``sqrt`` and
    ``where(condition, value, otherwise)``. Nothing else parses.

    Parameters
    ----------
    text
        The formula as it was written.
    names
        The columns it reads, in order of first appearance.
    root
        The checked tree.

    Notes
    -----
    Each row is followed the way Python would follow it: the right side of ``and`` is worked out
    only where the left side holds, a branch of ``where`` only where it is taken. True counts as 1
    and false as 0 in arithmetic, so ``3 * (Gender == 1)`` is a number; the other way round nothing
    is guessed, ``salary and balance`` is an error.

    A name in backticks may hold anything; a backtick in it is written twice. Plain names that
    Python would read as another name (``ﬁeld`` as ``field``), reserved words and names that begin
    with two underscores need backticks too.

    Examples
    --------
    >>> formula = Formula.parse("0.3 * AnnualSalary - 2000 * Gender")
    >>> formula.names
    ('AnnualSalary', 'Gender')
    >>> formula.evaluate(
    ...     {"AnnualSalary": np.array([10000.0, 20000.0]), "Gender": np.array([1, 0])}
    ... ).tolist()
    [1000.0, 6000.0]
    >>> Formula.parse("`Annual Salary` > 15000").evaluate(
    ...     {"Annual Salary": np.array([10000.0, 20000.0])}
    ... ).tolist()
    [False, True]
    """

    text: str
    names: tuple[str, ...]
    root: tree.Node = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Formula:
        """Read a formula, or say which part of it is not in the language and where.

        Examples
        --------
        >>> Formula.parse("a + b > 2 * a").names
        ('a', 'b')
        """
        stripped, names, root = read_formula(text)
        return cls(text=stripped, names=names, root=root)

    def __reduce__(self) -> tuple[Any, ...]:
        # a formula travels as text and is checked again where it arrives
        return Formula.parse, (self.text,)

    @property
    def kind(self) -> tree.Kind:
        """Whether it gives numbers or truths, as far as the text alone tells.

        Examples
        --------
        >>> Formula.parse("a > 2").kind.name, Formula.parse("a + 2").kind.name
        ('TRUTH', 'NUMBER')
        """
        return self.root.kind

    def evaluate(
        self, columns: Mapping[str, NDArray[Any]], *, length: int | None = None
    ) -> NDArray[Any]:
        """Work the formula out for every row: an array of float64, or of bool.

        Parameters
        ----------
        columns
            At least the columns in `names`: numbers, truths or text, one value a row. Others are
            not looked at.
        length
            The number of rows, needed only when there are no columns to tell.

        Raises
        ------
        UnknownColumnError
            A name that is not among the columns.
        MissingValuesError
            A column with missing or infinite values.
        FormulaError
            Text where a number is needed, a number where a truth is needed, or an operation
            without a finite result in some row.

        Examples
        --------
        >>> Formula.parse("1 / x").evaluate({"x": np.array([2.0, 4.0])}).tolist()
        [0.5, 0.25]
        """
        unknown = [name for name in self.names if name not in columns]
        if unknown:
            raise UnknownColumnError(
                f"The formula reads {', '.join(map(repr, unknown))}, which the {len(columns)} "
                "columns at hand do not include. Correct the names, or add the columns."
            )
        bound = {name: _bind(name, columns[name]) for name in self.names}
        lengths = {len(values) for values in (bound or columns).values()}
        lengths |= {length} if length is not None else set()
        if len(lengths) != 1:
            raise FormulaError(
                f"The formula's columns have the lengths {sorted(lengths)}. "
                "Give columns of one length, or length= where there are none."
            )
        rows = tree.Rows(bound, lengths.pop())
        values = self.root.evaluate(rows)
        if values.dtype == np.object_:
            values = self.root.to_numbers(values)
        return np.array(np.broadcast_to(values, rows.count))


def _bind(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Read a column as numbers, truths or text, without gaps."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise FormulaError(f"Column {name!r} has {array.ndim} dimensions; a column has one.")
    if array.dtype.kind in "OUT":
        array = _bind_objects(name, array.astype(np.object_))
    if array.dtype.kind in "iuf":
        array = array.astype(np.float64, copy=False)
        _refuse_gaps(name, int(np.count_nonzero(~np.isfinite(array))))
    elif array.dtype.kind not in "bO":
        raise _unusable(name, str(array.dtype))
    return array


def _bind_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    import pandas as pd

    _refuse_gaps(name, int(np.count_nonzero(pd.isna(array))))
    found = pd.api.types.infer_dtype(array, skipna=False)
    if found in {"string", "empty"}:
        return array
    if found == "boolean":
        return array.astype(np.bool_)
    if found in {"integer", "floating", "mixed-integer-float", "decimal"}:
        try:
            return array.astype(np.float64)
        except OverflowError:
            pass  # an integer beyond float64, said below without the number
    raise _unusable(name, found)


def _refuse_gaps(name: str, count: int) -> None:
    if count:
        raise MissingValuesError(
            f"Column {name!r} has {count} missing or infinite values, and the formula needs it "
            "in every row. Complete them, or leave these rows out."
        )


def _unusable(name: str, found: str) -> FormulaError:
    return FormulaError(
        f"Column {name!r} holds values of type {found}. "
        "Formulas read numbers, truths and text: convert it to one of these."
    )
