"""D: the table of decisions, as read-only columns with explicit row ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import (
    Categories,
    Column,
    Numbers,
    factorised,
    frozen,
    read_categories,
    read_column,
    read_numbers,
)
from mutandis.data.encoded_table import EncodedTable, with_text
from mutandis.data.overlay import Overlay
from mutandis.data.table_columns import as_read_by_rules, with_exchanged
from mutandis.errors import (
    AlignmentError,
    InputError,
    KindError,
    MissingValuesError,
    PlanError,
    UnknownColumnError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import narwhals as nw
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["Missing", "Population", "check_known", "check_names", "open_frame"]

Missing = Literal["error", "drop"]


def open_frame(frame: Any) -> nw.DataFrame[Any]:
    """Open any dataframe through narwhals; what is lazy is collected into pandas.

    Examples
    --------
    >>> import pandas as pd
    >>> open_frame(pd.DataFrame({"a": [1, 2]})).shape
    (2, 1)
    """
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    if isinstance(frame, Mapping):
        frame = _table_of(frame)
    if isinstance(frame, EncodedTable):
        frame = frame.frame
    try:
        opened = nw.from_native(frame)
        return opened.collect("pandas") if isinstance(opened, nw.LazyFrame) else opened
    except TypeError:
        raise InputError(
            f"Cannot read a table from {type(frame).__name__}. Give a dataframe (pandas, polars, "
            "pyarrow, DuckDB relation, …) or a dict of columns."
        ) from None
    except DuplicateError:
        # pyarrow's `columns` are the data, its `column_names` the names
        names = Counter(getattr(frame, "column_names", None) or frame.columns)
        repeated = ", ".join(repr(name) for name, times in names.items() if times > 1)
        raise InputError(
            f"The table has several columns of the same name: {repeated}. Rename them."
        ) from None
    except ModuleNotFoundError as absent:
        raise InputError(
            f"Collecting a lazy table needs {absent.name}. "
            "Install it, or collect the table before the audit."
        ) from None


def _table_of(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Put columns side by side, by position: an index that a series has is ignored."""
    import pandas as pd

    plain = {
        name: values.array if isinstance(values, pd.Series) else values
        for name, values in columns.items()
    }
    try:
        return pd.DataFrame(plain)
    except (TypeError, ValueError):
        raise InputError(
            "Cannot read a table from this dict. Give one list or array a column, all of the same "
            "length."
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """The decision records that an audit works on.

    Parameters
    ----------
    columns
        The columns that were asked for, by name.
    ids
        One id a row: the id column, or the row's position in the table as it was given.
    positions
        The row's position in the table as it was given (rows may have been dropped).
    source
        The table itself, for decision makers that want all of it. Never written to.
    changed
        The columns that differ from the source: in D^CF, the counterfactual ones.
    dropped
        Rows dropped for a missing value, by column.
    encoded
        The columns of the source that are kept as categoricals, and are text in truth.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"salary": [10.0, 20.0], "job": ["clerk", "cook"]})
    >>> people = Population.from_frame(table, columns=["salary", "job"])
    >>> people.numbers("salary").tolist(), people.categories("job").levels
    ([10.0, 20.0], ('clerk', 'cook'))
    """

    columns: Mapping[str, Column]
    ids: NDArray[Any]
    positions: NDArray[np.intp]
    source: nw.DataFrame[Any]
    changed: frozenset[str] = frozenset()
    dropped: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    encoded: frozenset[str] = frozenset()

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        columns: Iterable[str] = (),
        attributes: Iterable[Attribute] = (),
        id: str | None = None,  # noqa: A002 - the public name of the option
        missing: Missing = "error",
    ) -> Population:
        """Read the columns that are named, and no others.

        Parameters
        ----------
        frame
            Any dataframe that narwhals knows, an `EncodedTable`, or a dict of columns.
        columns
            Columns whose kind follows from their type: numbers, or names.
        attributes
            Columns whose kind is declared.
        id
            A column with a unique value a row. Default: the row's position.
        missing
            What to do with rows that lack a value: refuse ("error"), or leave them out and count
            them ("drop").
        """
        if missing not in get_args(Missing):
            raise PlanError(f"missing={missing!r} is unknown. Allowed: 'error', 'drop'.")
        source = open_frame(frame)
        declared = _declared(attributes)
        names = tuple(dict.fromkeys([*declared, *columns]))
        check_names(source, [*names, *([id] if id else [])])
        if not len(source):
            raise InputError("The table has no rows. Check the file or query that it came from.")
        read = {name: _read(source[name], declared.get(name)) for name in names}
        complete, dropped = _complete_rows(read, rows=len(source), missing=missing)
        positions = np.flatnonzero(complete) if dropped else np.arange(len(source))
        if not len(positions):
            raise InputError(
                f"No row has all the values that are needed: {_describe(read, dropped)}. "
                "Complete them, or leave such a column out."
            )
        # a table read from a file is handed over; any other the caller may change later
        mine = isinstance(frame, EncodedTable) and not dropped
        kept = source if mine else _copied(source, positions)
        return cls(
            columns=MappingProxyType(
                {name: _kept(column, kept[name], positions) for name, column in read.items()}
            ),
            ids=frozen(_unique_ids(kept[id]) if id else positions),
            positions=frozen(positions),
            source=kept,
            dropped=MappingProxyType(dropped),
            encoded=frame.text if isinstance(frame, EncodedTable) else frozenset(),
        )

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.ids)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Give a column's numbers."""
        column = self._column(name)
        if isinstance(column, Numbers):
            return column.values
        raise KindError(f"Column {name!r} holds names, not numbers.")

    def categories(self, name: str) -> Categories:
        """Give a column's codes and levels."""
        column = self._column(name)
        if isinstance(column, Categories):
            return column
        raise KindError(f"Column {name!r} holds numbers, not names.")

    def part(self, name: str, rows: NDArray[np.intp]) -> Column:
        """Give some rows of a column."""
        if isinstance(self.columns, Overlay):
            return self.columns.part(name, rows)
        return self._column(name).take(rows)

    def with_columns(self, columns: Mapping[str, Column]) -> Population:
        """Give the same people with some columns exchanged: how D^CF is made from D."""
        for name, column in columns.items():
            self._column(name)
            if len(column) != len(self):
                raise AlignmentError(
                    f"Column {name!r} has {len(column)} new values for {len(self)} rows. "
                    "Give one a row, in the order of the table."
                )
        _complete_rows(columns, rows=len(self), missing="error")
        return replace(
            self,
            columns=MappingProxyType({**self.columns, **columns}),
            changed=self.changed | columns.keys(),
        )

    def frame(self) -> Any:
        """Give the whole table in the caller's own frame type, with the changed columns in it.

        It is a copy: whoever gets it may write to it. Changed numbers are float64, whatever the
        type was before (a counterfactual of whole numbers need not be whole); changed names keep
        the column's own type.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"salary": [10, 20]}, index=["b", "a"])
        >>> people = Population.from_frame(table, columns=["salary"])
        >>> people.with_columns({"salary": Numbers(np.array([11.5, 20]))}).frame()
           salary
        b    11.5
        a    20.0
        """
        changed = {name: self.columns[name] for name in sorted(self.changed)}
        native = with_exchanged(self.source, changed).to_native()
        return with_text(native, self.encoded) if self.encoded else native

    def as_read_by_rules(self, name: str) -> NDArray[Any]:
        """Give a column as a rule reads it: numbers as float64, all else as the table has it."""
        return as_read_by_rules(self.source[name], self._column(name), changed=name in self.changed)

    def _column(self, name: str) -> Column:
        try:
            return self.columns[name]
        except KeyError:
            held = ", ".join(map(repr, self.columns))
            raise UnknownColumnError(
                f"Unknown column {name!r}. The population holds {held}."
            ) from None


def _declared(attributes: Iterable[Attribute]) -> dict[str, Attribute]:
    declared: dict[str, Attribute] = {}
    for attribute in attributes:
        other = declared.setdefault(attribute.name, attribute)
        if (other.kind, other.levels) != (attribute.kind, attribute.levels):
            raise PlanError(
                f"Column {attribute.name!r} is declared as {other.kind} and as {attribute.kind}, "
                "or with different levels. Declare it in one way."
            )
    return declared


def check_names(source: nw.DataFrame[Any], names: Iterable[str]) -> None:
    """Refuse names that are no columns of the table, with the nearest one that is.

    Examples
    --------
    >>> check_names(open_frame({"salary": [1.0]}), ["Salary"])
    Traceback (most recent call last):
    mutandis.errors.UnknownColumnError: Unknown column 'Salary'. Did you mean 'salary'? ...
    """
    check_known(names, source.columns)


def check_known(names: Iterable[str], have: list[str]) -> None:
    """Refuse names that are not among those of a table, with the nearest one that is."""
    for name in names:
        if name not in have:
            shown = ", ".join(map(repr, have[:20])) + (", …" if len(have) > 20 else "")
            raise UnknownColumnError(
                f"Unknown column {name!r}.{_nearest(name, have)} The table's columns are {shown}."
            )


def _nearest(name: str, have: list[str]) -> str:
    from difflib import get_close_matches

    # pandas allows names that are no text
    close = get_close_matches(str(name), [other for other in have if isinstance(other, str)], n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _read(series: nw.Series[Any], declared: Attribute | None) -> Column:
    """Read a column; numbers may share the memory of the series."""
    if declared is None:
        return read_column(series, share=True)
    if declared.kind is AttributeKind.CONTINUOUS:
        return read_numbers(series, share=True)
    return read_categories(series, declared.levels)


def _copied(source: nw.DataFrame[Any], positions: NDArray[np.intp]) -> nw.DataFrame[Any]:
    """Copy some rows: the caller may change the table later, or the numpy memory below it."""
    if len(positions) == len(source) and source.implementation.is_pandas_like():
        return source.clone()  # where picking all rows would not copy them
    return source[positions]


def _kept(column: Column, copied: nw.Series[Any], positions: NDArray[np.intp]) -> Column:
    """Give the rows of a column that are kept, in memory that nobody else can reach."""
    import narwhals as nw

    if isinstance(column, Numbers) and copied.dtype == nw.Float64:
        return read_numbers(copied, share=True)  # those of the copy: no need for another
    return column if len(positions) == len(column) else column.take(positions)


def _complete_rows(
    columns: Mapping[str, Column], *, rows: int, missing: Missing
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Mark the rows that have every value; refuse, or count, the others."""
    complete = np.ones(rows, dtype=np.bool_)
    counts: dict[str, int] = {}
    for name, column in columns.items():
        lacking = column.missing()
        if lacking.any():
            counts[name] = int(lacking.sum())
            complete &= ~lacking
    if counts and missing == "error":
        raise MissingValuesError(
            f"Missing or infinite values: {_describe(columns, counts)}. "
            "Complete them, or leave these rows out with missing='drop' "
            "(missing: drop in an audit file)."
        )
    return complete, counts


def _describe(columns: Mapping[str, Column], counts: Mapping[str, int]) -> str:
    described = []
    for name, count in counts.items():
        column = columns[name]
        infinite = int(np.isinf(column.values).sum()) if isinstance(column, Numbers) else 0
        parts = [
            f"{number} {what}"
            for number, what in ((count - infinite, "missing"), (infinite, "infinite"))
            if number
        ]
        described.append(f"{name!r} has {' and '.join(parts)}")
    return ", ".join(described)


def _unique_ids(series: nw.Series[Any]) -> NDArray[Any]:
    codes, distinct = factorised(series)
    lacking = int((codes < 0).sum())
    if lacking:
        raise InputError(
            f"The id column {series.name!r} has {lacking} missing values. "
            "Complete them, or leave id= out to use row positions."
        )
    if len(distinct) != len(codes):
        raise InputError(
            f"The id column {series.name!r} has {len(codes)} rows but only {len(distinct)} "
            "distinct values. Ids must be unique; leave id= out to use row positions."
        )
    return np.array(series.to_numpy())
