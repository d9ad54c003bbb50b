"""D: the table of decisions, as read-only columns with explicit row ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mutandis.data.attribute import MISSING, Attribute, AttributeKind
from mutandis.data.columns import (
    INEXACT,
    Categories,
    Column,
    Numbers,
    factorise,
    frozen,
    number_levels,
    read_categories,
    read_column,
    read_numbers,
    used_levels,
)
from mutandis.errors import (
    AlignmentError,
    InputError,
    KindError,
    MissingValuesError,
    PlanError,
    UnknownColumnError,
)
from mutandis.frames import EncodedTable, check_columns, open_frame, with_text
from mutandis.mapped import copy, in_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import narwhals as nw
    from numpy.typing import NDArray

Missing = Literal["error", "drop"]

# rows up to which a table that was read from a file is not made a frame: that loads pandas
_SMALL = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Overlay(Mapping[str, Column]):
    """Columns of which most rows are those of another table: only rows that differ are kept."""

    # Under do(A := a') the rows that have status a' already stay as they are, to the last bit. So
    # D^CF repeats D for them, and need not be held twice. Columns are assembled on access.
    base: Mapping[str, Column]
    rows: NDArray[np.intp]  # ascending
    patches: Mapping[str, Column]  # the values in these rows
    whole: Mapping[str, Column]  # columns that are held in full

    def __getitem__(self, name: str) -> Column:
        if name in self.whole:
            return self.whole[name]
        column = self.base[name]
        if name not in self.patches:
            return column
        return _put(column, self.rows, self.patches[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.base)

    def __len__(self) -> int:
        return len(self.base)

    def part(self, name: str, rows: NDArray[np.intp]) -> Column:
        """Return some rows of a column, without assembling the others."""
        if name in self.whole:
            return self.whole[name].take(rows)
        column = self.base[name].take(rows)
        if name not in self.patches:
            return column
        place = self._places(rows)
        differ = np.flatnonzero(place >= 0)
        return _put(column, differ, self.patches[name].take(place[differ]))

    def _places(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Find rows among those that differ; -1 for others."""
        if not len(self.rows):
            return np.full(len(rows), -1)
        place = np.searchsorted(self.rows, rows)
        place[place == len(self.rows)] = 0  # beyond the last of them: compared with the first
        return np.where(self.rows[place] == rows, place, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """The decision records that an audit works on.

    Parameters
    ----------
    columns
        The columns that were asked for, by name.
    ids
        One id per row: the id column, or the row's position in the table as it was given.
    positions
        The row's position in the table as it was given (rows may have been dropped).
    open_source
        Gives the `source`; the table of a saved audit is put together when it is asked for.
    changed
        The columns that differ from the source: in D^CF, the counterfactual ones.
    dropped
        Rows dropped for a missing value, by column.
    encoded
        The columns of the source that are kept as categoricals, but are in fact text.
    plain
        Whether the source has numbers wherever `columns` have them, as in a saved audit.

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
    open_source: Callable[[], nw.DataFrame[Any]]
    changed: frozenset[str] = frozenset()
    dropped: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    encoded: frozenset[str] = frozenset()
    plain: bool = False

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
            A column with a unique value per row. Default: the row's position.
        missing
            What to do with rows that lack a value: refuse ("error"), or leave them out and count
            them ("drop").
        """
        if missing not in get_args(Missing):
            raise PlanError(f"missing={missing!r} is unknown. Allowed: 'error', 'drop'.")
        declared = _declared(attributes)
        names = tuple(dict.fromkeys([*declared, *columns]))
        if isinstance(frame, EncodedTable):
            found = {name: _read_array(name, frame, declared.get(name)) for name in names}
            ids = np.arange(len(frame)) if id is None else _array_ids(frame.arrays.get(id))
            held = {name: column for name, column in found.items() if column is not None}
            if ids is not None and len(held) == len(found):
                return cls(
                    columns=MappingProxyType(held),
                    ids=frozen(ids),
                    positions=frozen(np.arange(len(frame))),
                    open_source=lambda: open_frame(frame),
                    encoded=frame.text,
                    plain=True,
                )
        source = open_frame(frame)
        check_columns([*names, *([id] if id else [])], source.columns)
        if not len(source):
            raise InputError("The table has no rows. Check the file or query that it came from.")
        read = {name: _read(source[name], declared.get(name)) for name in names}
        complete, dropped = _complete_rows(read, rows=len(source), missing=missing)
        positions = in_file(np.flatnonzero(complete) if dropped else np.arange(len(source)))
        if not len(positions):
            raise InputError(
                f"No row has all the values that are needed: {_describe(read, dropped)}. "
                "Complete them, or leave such a column out."
            )
        # a table read from a file is handed over; any other the caller may change later
        handed_over = isinstance(frame, EncodedTable) and not dropped
        kept = source if handed_over else _copy_rows(source, positions)
        return cls(
            columns=MappingProxyType(
                {name: _keep(column, kept[name], positions) for name, column in read.items()}
            ),
            ids=frozen(_unique_ids(kept[id]) if id else positions),
            positions=frozen(positions),
            open_source=lambda: kept,
            dropped=MappingProxyType(dropped),
            encoded=frame.text if isinstance(frame, EncodedTable) else frozenset(),
        )

    @property
    def source(self) -> nw.DataFrame[Any]:
        """The table itself, for decision makers that need all of it. Never written to."""
        return self.open_source()

    def __len__(self) -> int:
        return len(self.ids)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column's numbers."""
        column = self._column(name)
        if isinstance(column, Numbers):
            return column.values
        raise KindError(f"Column {name!r} holds names, not numbers.")

    def categories(self, name: str) -> Categories:
        """Return a column's codes and levels."""
        column = self._column(name)
        if isinstance(column, Categories):
            return column
        raise KindError(f"Column {name!r} holds numbers, not names.")

    def part(self, name: str, rows: NDArray[np.intp]) -> Column:
        """Return some rows of a column."""
        if isinstance(self.columns, Overlay):
            return self.columns.part(name, rows)
        return self._column(name).take(rows)

    def take(self, rows: NDArray[np.intp]) -> Population:
        """Return some of the people, in the order asked for."""
        return replace(
            self,
            columns=MappingProxyType({name: self.part(name, rows) for name in self.columns}),
            ids=self.ids[rows],
            positions=self.positions[rows],
            open_source=lambda: self.source[rows],
        )

    def with_columns(self, columns: Mapping[str, Column]) -> Population:
        """Return the same people with some columns exchanged: how D^CF is made from D."""
        for name, column in columns.items():
            self._column(name)
            if len(column) != len(self):
                raise AlignmentError(
                    f"Column {name!r} has {len(column)} new values for {len(self)} rows. "
                    "Give one per row, in the order of the table."
                )
        _complete_rows(columns, rows=len(self), missing="error")
        return replace(
            self,
            columns=MappingProxyType({**self.columns, **columns}),
            changed=self.changed | columns.keys(),
        )

    def frame(self) -> Any:
        """Return the whole table in the caller's own frame type, with the changed columns in it.

        It is a copy, and may be written to. Changed numbers are float64, whatever the
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
        changed = [
            _series_like(self.source[name], self.columns[name]) for name in sorted(self.changed)
        ]
        rest = [name for name in self.source.columns if name not in self.changed]
        if changed and rest:  # replaced columns are not copied first
            copied = self.source.select(rest).clone()
            native = copied.with_columns(changed).select(self.source.columns).to_native()
        else:
            native = self.source.with_columns(changed).clone().to_native()
        return with_text(native, self.encoded) if self.encoded else native

    def as_read_by_rules(self, name: str) -> NDArray[Any]:
        """Return a column as a rule reads it: numbers as float64, all else as the table has it."""
        column, changed = self._column(name), name in self.changed
        if (changed or self.plain) and isinstance(column, Numbers):
            return column.values
        series = self.source[name]
        if isinstance(column, Numbers) and series.dtype.is_numeric():
            return column.values
        series = _series_like(series, column) if changed else series
        return read_numbers(series).values if series.dtype.is_numeric() else series.to_numpy()

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
        if replace(other, weight=1.0) != replace(attribute, weight=1.0):
            raise PlanError(
                f"Column {attribute.name!r} is declared as {other.kind} and as {attribute.kind}, "
                "or with different levels. Declare it in one way."
            )
    return declared


def _array_ids(array: Any) -> NDArray[Any] | None:
    """Return ids that were read into an array; None if these are not unique whole numbers."""
    ids = _array_numbers(array, "iu")
    return ids if ids is not None and len(np.unique(ids)) == len(ids) else None


def _read_array(name: str, table: EncodedTable, declared: Attribute | None) -> Column | None:
    """Read a column of a small table that was read into arrays; None if it takes a frame.

    That is so where values are missing, where numbers are names or text is to be numbers, and
    where there is something to refuse.
    """
    array = table.arrays.get(name)
    kind, own = (declared.kind, declared.levels) if declared else (None, ())
    if not 0 < len(table) <= _SMALL or (declared is not None and declared.compare_missing):
        return None
    if not isinstance(array, tuple) and kind in {None, AttributeKind.CONTINUOUS}:
        numbers = _array_numbers(array, "iuf")
        if numbers is None or not -INEXACT < numbers.min() <= numbers.max() < INEXACT:
            return None
        return Numbers(numbers.astype(np.float64, copy=False))
    if isinstance(array, tuple):
        codes, levels = used_levels(array[0], list(array[1]))
    elif (numbers := _array_numbers(array, "iu")) is not None:
        distinct, codes = np.unique(numbers, return_inverse=True)
        levels = distinct.tolist()
    else:
        return None
    if kind is AttributeKind.CONTINUOUS or codes.min() < 0 or not set(levels) <= {*(own or levels)}:
        return None
    return number_levels(name, codes, levels, own)


def _array_numbers(array: Any, kinds: str) -> NDArray[Any] | None:
    """Return the numbers of an array of some kinds in which none is missing."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
        return None
    return None if np.ma.getmaskarray(array).any() else np.ma.getdata(array)


def _read(series: nw.Series[Any], declared: Attribute | None) -> Column:
    """Read a column; numbers may share the memory of the series."""
    if declared is None:
        return read_column(series, share=True)
    if declared.kind is AttributeKind.CONTINUOUS:
        return read_numbers(series, share=True)
    found = read_categories(series, declared.levels)
    return _with_missing(found) if declared.compare_missing else found


def _with_missing(column: Categories) -> Categories:
    """Make a level of its own of missing values, the last one, if there are any."""
    if not column.missing().any() and MISSING not in column.levels:
        return column
    # a table that was written by an audit has the level already
    known = tuple(level for level in column.levels if level != MISSING)
    code = {level: code for code, level in enumerate((*known, MISSING))}
    codes = np.array([*(code[level] for level in column.levels), code[MISSING]], dtype=np.int32)
    return Categories(codes[column.codes], (*known, MISSING))


def _copy_rows(source: nw.DataFrame[Any], positions: NDArray[np.intp]) -> nw.DataFrame[Any]:
    """Copy some rows: the caller may change the table later, or the numpy memory below it."""
    if len(positions) == len(source) and source.implementation.is_pandas_like():
        return source.clone()  # where picking all rows would not copy them
    return source[positions]


def _keep(column: Column, copied: nw.Series[Any], positions: NDArray[np.intp]) -> Column:
    """Return the kept rows of a column, in memory that nothing else refers to."""
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
        parts = {"missing": count - infinite, "infinite": infinite}
        shown = " and ".join(f"{number} {what}" for what, number in parts.items() if number)
        described.append(f"{name!r} has {shown}")
    return ", ".join(described)


def _unique_ids(series: nw.Series[Any]) -> NDArray[Any]:
    codes, distinct = factorise(series)
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


def _series_like(original: nw.Series[Any], column: Column) -> nw.Series[Any]:
    """Write a column as a series: numbers as float64, names in the original's own type."""
    import narwhals as nw

    if isinstance(column, Numbers):
        # a copy: not every library makes one
        numbers = column.values.copy()
        return nw.new_series(original.name, numbers, backend=original.implementation)
    # names are picked from rows of the original that hold them
    codes, own = factorise(original)
    some_row = np.full(len(own) + 1, -1)
    some_row[codes] = np.arange(len(codes))
    some_row[-1] = -1  # no row of its own has a level that is not there
    place = {level: code for code, level in enumerate(own)}
    picked = some_row[[place.get(level, -1) for level in column.levels]][column.codes]
    if (picked >= 0).all():
        return original[picked]
    # names that the table never had
    values = [column.levels[code] for code in column.codes.tolist()]
    fresh = nw.new_series(original.name, values, backend=original.implementation)
    return fresh.cast(nw.Categorical()) if original.dtype == nw.Categorical else fresh


def as_overlay(
    population: Population, base: Population, *, likely: NDArray[np.intp] | None = None
) -> Population:
    """Hold a table as what differs from another with the same columns and rows, if that saves."""
    changed = {
        name: (column, base.columns[name])
        for name, column in population.columns.items()
        if column is not base.columns[name]
    }
    differing = {name: _differs(*pair) for name, pair in changed.items()}
    known = {name: differs for name, differs in differing.items() if differs is not None}
    if not known:
        return population
    rows = np.flatnonzero(np.logical_or.reduce(list(known.values())))
    if len(rows) > len(population) // 2:
        return population
    if likely is not None and np.array_equal(rows, likely):
        rows = likely  # no second list of them is kept
    columns = Overlay(
        base.columns,
        rows,
        {name: changed[name][0].take(rows) for name, differs in known.items() if differs.any()},
        {name: changed[name][0] for name in changed if name not in known},
    )
    return replace(population, columns=columns)


def patch_rows(
    base: Population, rows: NDArray[np.intp], columns: Mapping[str, Column]
) -> Population:
    """Return a table with other values of some columns in some rows (ascending), held as these."""
    # a column of other levels has no meaning in the other rows
    alike = {
        name for name, column in columns.items() if _levels(column) == _levels(base.columns[name])
    }
    whole = {
        name: column.take(np.minimum(np.searchsorted(rows, np.arange(len(base))), len(rows) - 1))
        for name, column in columns.items()
        if name not in alike
    }
    patches = {name: columns[name] for name in alike}
    return replace(
        base,
        columns=Overlay(base.columns, rows, patches, whole),
        changed=base.changed | columns.keys(),
    )


def _levels(column: Column) -> tuple[object, ...] | None:
    return column.levels if isinstance(column, Categories) else None


def _differs(column: Column, other: Column) -> NDArray[np.bool_] | None:
    """Mark rows whose bits differ; None for a column that is better held as it is."""
    # one value for all rows takes no memory; other levels are another column
    if _levels(column) != _levels(other) or column.data.strides == (0,):
        return None
    # as integers: -0.0 is not 0.0
    bits = np.int64 if isinstance(column, Numbers) else np.int32
    return np.asarray(column.data.view(bits) != other.data.view(bits))


def _put(column: Column, rows: NDArray[np.intp], patch: Column) -> Column:
    if type(column) is not type(patch):
        raise TypeError("a patch has the type of its column")
    data = copy(column.data)
    data[rows] = patch.data
    return column.with_data(data)
