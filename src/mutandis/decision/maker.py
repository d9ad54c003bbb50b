"""b(): what a decision maker is, how its decisions are read, and how they agree with the record.

A decision maker may be code from anywhere. What it returns is validated before use: one answer per
row, none missing, each of them one of the outcomes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from mutandis.data.columns import Categories, Numbers, describe_levels, frozen
from mutandis.errors import DecisionError, MutandisError
from mutandis.frames import check_columns, open_frame
from mutandis.outcomes.binary import BinaryKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self

    import narwhals as nw
    from numpy.typing import NDArray

    from mutandis.outcomes.outcome import Outcome

# More different answers than this are scores or something else; they are counted, not shown.
_SHOWN_ANSWERS = 5


@runtime_checkable
class DecisionMaker(Protocol):
    """What everyone can write: an object that takes a table and decides on each row."""

    def decide(self, frame: Any, /) -> Any:
        """Return an array, a series or a list of outcomes or of booleans, one per row."""


class DescribedMaker(ABC):
    """A decision maker of this package: only these are asked to describe themselves."""

    __slots__ = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it needs; none if it takes the whole table."""
        return ()

    @property
    def label(self) -> str:
        """The name in error messages."""
        return type(self).__name__

    @property
    def queries(self) -> tuple[dict[str, Any], ...]:
        """The requests sent over a network so far, as plain data."""
        return ()

    @abstractmethod
    def decide(self, frame: Any, /) -> Any:
        """Decide on each row, as `DecisionMaker` says."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Describe it as plain data for the record: what kind, which file; no secrets, no rows."""

    def scoring(self) -> DescribedMaker:
        """Return the same decision maker, which is to answer with scores for a threshold."""
        return self

    def explain_change(
        self, before: Any, after: Any, called: Callable[[str], str] = str
    ) -> tuple[str, ...]:
        """Explain another decision on another record (tables of one row), if that is known.

        `called` translates names of columns for the sentences.
        """
        return ()

    def with_progress(self, on_progress: Callable[[int, int], None]) -> DescribedMaker:
        """Return the same decision maker, which reports its progress if it is slow."""
        return self


@dataclass(frozen=True, slots=True)
class MakerWrapper(DescribedMaker):
    """A decision maker around another one."""

    maker: DecisionMaker

    @property
    def names(self) -> tuple[str, ...]:
        return required_columns(self.maker)

    @property
    def label(self) -> str:
        return label_of(self.maker)

    @property
    def queries(self) -> tuple[dict[str, Any], ...]:
        return query_records(self.maker)

    def explain_change(
        self, before: Any, after: Any, called: Callable[[str], str] = str
    ) -> tuple[str, ...]:
        if not isinstance(self.maker, DescribedMaker):
            return ()
        return self.maker.explain_change(before, after, called)

    def with_progress(self, on_progress: Callable[[int, int], None]) -> Self:
        return replace(self, maker=with_progress(self.maker, on_progress))


class BooleanMaker(DescribedMaker):
    """Answers with booleans that need no interpretation: true is always the positive outcome."""

    __slots__ = ()


class LevelMaker(DescribedMaker):
    """Answers with places in an order of levels, the best being 0."""

    __slots__ = ()

    @property
    @abstractmethod
    def levels(self) -> int:
        """The number of levels."""


def label_of(maker: object) -> str:
    return maker.label if isinstance(maker, DescribedMaker) else type(maker).__name__


def required_columns(maker: DecisionMaker) -> tuple[str, ...]:
    """Return the columns that a decision maker is known to need; none if that is not known."""
    return maker.names if isinstance(maker, DescribedMaker) else ()


def describe_maker(maker: object) -> dict[str, Any]:
    """Describe a decision maker for the record; of an object of other origin, only its type."""
    if isinstance(maker, DescribedMaker):
        return maker.describe()
    return {"kind": "object", "type": type(maker).__name__}


def with_progress(maker: DecisionMaker, on_progress: Callable[[int, int], None]) -> DecisionMaker:
    """Let a slow decision maker report its progress: rows answered, and rows in all."""
    return maker.with_progress(on_progress) if isinstance(maker, DescribedMaker) else maker


def query_records(maker: DecisionMaker | None) -> tuple[dict[str, Any], ...]:
    """Return the requests that a decision maker has sent so far."""
    return maker.queries if isinstance(maker, DescribedMaker) else ()


# --- kinds of decision makers in files ------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionContext:
    """What the other sections of an audit file, and the command line, contribute to a decision.

    Parameters
    ----------
    folder
        Where relative paths start.
    columns
        What a decision maker gets unless `columns` is set: the attributes that people are compared
        on, then the protected ones; no ids and no outcomes.
    trust_code
        Whether the caller allows to run code that the file names. No file can allow it.
    scores
        Whether scores are expected: the outcome is one, or a threshold is set.
    """

    folder: Path = Path()
    columns: tuple[str, ...] = ()
    trust_code: bool = False
    scores: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A decision maker, and the files that it was made from."""

    maker: DecisionMaker
    files: tuple[Path, ...] = ()


class MakerKind(Protocol):
    """Makes a decision maker of the settings of a section: a function that the registry names.

    `settings` are the keys of the section as plain data, the name of the kind among them. Scores
    are cut by a `threshold`, and answers in words are translated, after the maker is made.
    """

    def __call__(self, settings: dict[str, Any], context: DecisionContext) -> Made:
        """Make it; a setting that a threshold must not read again is removed from `settings`."""
        ...


# --- decisions, and the record --------------------------------------------------------------------


def decide(maker: DecisionMaker, frame: Any, outcome: Outcome) -> NDArray[Any]:
    """Return the codes of the outcomes that rows get; the decision maker may write to the frame."""
    rows = len(open_frame(frame))
    name = label_of(maker)
    try:
        answer = maker.decide(frame)
    except MutandisError:
        raise
    except (Exception, SystemExit) as error:
        raise DecisionError(
            f"The decision maker ({name}) stopped with {type(error).__name__} on a table of {rows} "
            "rows. Its message is not repeated here, because it may contain personal data: call "
            "it on the table yourself to see it."
        ) from error
    if isinstance(maker, LevelMaker):
        return frozen(answer)
    kind = outcome.kind
    if kind.numeric:
        scores = read_scores(answer, frame, rows=rows, name=name, wanted=_SCORES)
        return frozen(kind.code(Numbers(scores))[0])
    values = read_answers(answer, frame, rows=rows, name=name)
    answers, are_booleans = distinct_answers(values, name=name)
    if are_booleans and isinstance(kind, BinaryKind):
        negatives = _negative_booleans(maker, outcome.column, kind, name=name)
        return frozen(answers.look_up(negatives, otherwise=False))
    codes, known = kind.code(answers)
    if not known.all():
        raise DecisionError(
            f"{_returned(answers, values.dtype, name=name)} Allowed are {kind.allowed}."
        )
    return frozen(codes)


def _negative_booleans(
    maker: DecisionMaker, column: str, kind: BinaryKind, *, name: str
) -> dict[Any, bool]:
    """Return which boolean is the negative outcome."""
    # A rule states when the favourable outcome is granted. Any other decision maker answers in
    # terms of the outcome column: where that holds booleans, they are those values (rejected=True
    # is a rejection); where it holds other values, true is the positive outcome, and booleans are
    # refused if that could be taken the wrong way round.
    if isinstance(maker, BooleanMaker):
        return {True: False, False: True}
    negative, positive = kind.negative, kind.positive
    if isinstance(negative, bool) and isinstance(positive, bool):
        return {negative: True, positive: False}
    if negative == 1 or positive == 0:
        raise DecisionError(
            f"The decision maker ({name}) returned booleans, and the outcome {column!r} has the "
            f"negative value {negative!r} and the positive value {positive!r}: True could mean "
            f"either. Return {negative!r} and {positive!r} themselves."
        )
    return {True: False, False: True}


def _returned(answers: Categories, dtype: np.dtype[Any], *, name: str) -> str:
    count = len(answers.levels)
    shown = describe_levels(answers) if count <= _SHOWN_ANSWERS else "too many to show"
    return (
        f"The decision maker ({name}) returned {count} distinct answers of type {dtype} "
        f"({shown}) in {len(answers)} rows."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAgreement:
    """Outcomes on record, and what b() decides on the same rows.

    Examples
    --------
    >>> found = RecordAgreement(rows=100, better=4, worse=6, refused=34)
    >>> found.counts_of_sides()
    ((30, 4), (6, 60))
    >>> found.disagreement
    0.1
    """

    rows: int
    better: int  # rows to which b() gives a better outcome than is on record
    worse: int
    refused: int | None = None  # on record; None where outcomes are not refusals or approvals
    # Of scores: the sum of squared differences between both, as a share of that between the record
    # and its mean; 0 where they are the same. None for outcomes without distances.
    unexplained: float | None = None

    @property
    def differing(self) -> int:
        """The rows on which record and b() differ."""
        return self.better + self.worse

    @property
    def disagreement(self) -> float:
        """The share of rows on which both differ; of scores, of the variation not explained."""
        return self.differing / self.rows if self.unexplained is None else self.unexplained

    def counts(self) -> dict[str, Any]:
        """Return all known numbers by name."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def counts_of_sides(self) -> tuple[tuple[int, int], ...]:
        """Return refused and approved on record, each by refused and approved by b(), if known."""
        if self.refused is None:
            return ()
        refused, approved = self.refused, self.rows - self.refused
        return (refused - self.better, self.better), (self.worse, approved - self.worse)


def compare_with_record(outcome: Outcome, decided: NDArray[Any]) -> RecordAgreement:
    """Count how recorded outcomes and b(X) agree; `decided` are codes as `decide` returns them."""
    recorded, kind = outcome.codes, outcome.kind
    return RecordAgreement(
        rows=len(recorded),
        better=int(np.count_nonzero(decided < recorded)),
        worse=int(np.count_nonzero(decided > recorded)),
        refused=int(np.count_nonzero(recorded)) if kind.two_sided else None,
        unexplained=kind.unexplained(recorded, decided),
    )


# --- what goes in ---------------------------------------------------------------------------------


def read_columns(columns: Iterable[str] | str | None) -> tuple[str, ...]:
    """Read a list of column names, each once."""
    if isinstance(columns, str):
        raise DecisionError(f"columns= takes a list, not a text. Write columns=[{columns!r}].")
    names = tuple(columns or ())
    for name in names:
        if not isinstance(name, str):
            raise DecisionError(f"columns= takes names of columns, not {type(name).__name__}.")
        if names.count(name) > 1:
            raise DecisionError(f"columns= names {name!r} more than once. Name each column once.")
    return names


def select_columns(frame: Any, names: tuple[str, ...]) -> nw.DataFrame[Any]:
    """Select columns of any dataframe, in the order of their names."""
    opened = open_frame(frame)
    check_columns(names, opened.columns)
    return opened.select(names)


# --- what comes out -------------------------------------------------------------------------------


def read_answers(answer: Any, frame: Any, *, rows: int, name: str) -> NDArray[Any]:
    """Read an answer to a table as an array with one value per row, in the order of the table."""
    try:
        values = _as_array(answer)
    except (TypeError, ValueError, RuntimeError):
        values = np.array(None)  # what cannot become an array is refused with its type below
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        shape = f" of shape {values.shape}" if values.ndim else ""
        raise DecisionError(
            f"The decision maker ({name}) returned {type(answer).__name__}{shape}, not one "
            "answer per row. Return an array, a series or a list with one outcome for each of the "
            f"{rows} rows (predicted outcomes, not a probability for each of them)."
        )
    if len(values) != rows:
        raise DecisionError(
            f"The decision maker ({name}) returned {len(values)} answers "
            f"({type(answer).__name__}) for {rows} rows. Return exactly one for each row, in the "
            "order of the table."
        )
    _check_order(answer, frame, name=name)
    return values


def _as_array(answer: Any) -> NDArray[Any]:
    import narwhals as nw

    if isinstance(answer, np.ma.MaskedArray):
        answer = answer.tolist()  # None where it is masked; numpy's own conversion forgets
    opened = nw.from_native(answer, allow_series=True, eager_only=True, pass_through=True)
    if isinstance(opened, nw.Series):
        return opened.to_numpy()
    if isinstance(opened, nw.DataFrame):
        return opened[:, 0].to_numpy() if opened.shape[1] == 1 else np.empty(opened.shape)
    # objects: numpy would turn a list such as ["no", 1] into text
    return np.array(answer, dtype=np.object_ if isinstance(answer, list | tuple) else None)


def _check_order(answer: Any, frame: Any, *, name: str) -> None:
    """Refuse a pandas answer whose index shows that its rows are in another order."""
    from narwhals.dependencies import is_pandas_dataframe, is_pandas_series

    if not is_pandas_dataframe(frame) or not (
        is_pandas_series(answer) or is_pandas_dataframe(answer)
    ):
        return
    given, found = frame.index, answer.index
    same_labels = given.nlevels == found.nlevels and bool(given.isin(found).all())
    if same_labels and not found.equals(given):
        raise DecisionError(
            f"The decision maker ({name}) returned the table's index in another order. Answers "
            "are read by position: keep the rows in the order of the table, or, if they are in "
            "that order, return them without their index (.to_numpy())."
        )


def distinct_answers(values: NDArray[Any], *, name: str) -> tuple[Categories, bool]:
    """Find the different answers, and whether they are all booleans; refuse missing ones."""
    import pandas as pd

    try:
        codes, uniques = pd.factorize(values)
    except TypeError:
        raise DecisionError(
            f"The decision maker ({name}) returned answers of type {_type_of_first(values)}, "
            "which cannot be compared. Return one plain value per row."
        ) from None
    missing = int(np.count_nonzero(codes < 0))
    if missing:
        raise DecisionError(
            f"The decision maker ({name}) gave no answer in {missing} of {len(values)} rows. "
            "It must decide on every row: complete what it needs, or leave these rows out."
        )
    are_booleans = pd.api.types.infer_dtype(values, skipna=False) == "boolean"
    return Categories(codes.astype(np.int32), tuple(uniques.tolist())), are_booleans


def _type_of_first(values: NDArray[Any]) -> str:
    return type(values[0]).__name__ if len(values) else str(values.dtype)


_THRESHOLD = (
    "and a threshold was declared, which takes a number for each row. Return scores, or leave the "
    "threshold out if these are decisions."
)
_SCORES = "and the outcome is a score, which takes a number for each row. Return scores."


def read_scores(
    answer: Any, frame: Any, *, rows: int, name: str, wanted: str = _THRESHOLD
) -> NDArray[np.float64]:
    """Read an answer as one number per row; none may be missing, and booleans are not numbers."""
    import pandas as pd

    values = read_answers(answer, frame, rows=rows, name=name)
    present = np.ones(rows, dtype=np.bool_)
    if values.dtype == np.object_:
        present = ~np.asarray(pd.isna(values), dtype=np.bool_)
    if not _are_numbers(values[present]):
        raise DecisionError(
            f"The decision maker ({name}) returned answers of type "
            f"{_type_of_first(values[present])}, {wanted}"
        )
    scores = np.full(rows, np.nan)
    try:
        scores[present] = values[present].astype(np.float64)
    except OverflowError:  # whole numbers that are too large
        scores[present] = [_as_float(value) for value in values[present]]
    missing = int((~np.isfinite(scores)).sum())
    if missing:
        raise DecisionError(
            f"The decision maker ({name}) gave no score (a missing value, NaN, or an infinite one) "
            f"in {missing} of {rows} rows. It must score every row: complete what it needs, or "
            "leave these rows out."
        )
    return scores


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf


def _are_numbers(values: NDArray[Any]) -> bool:
    if values.dtype != np.object_:
        return bool(np.issubdtype(values.dtype, np.number)) and not np.iscomplexobj(values)
    return all(
        isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)
        for value in values.tolist()
    )
