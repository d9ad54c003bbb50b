"""The words of documents: what an audit's columns, values and outcomes are called in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from mutandis.data.columns import Categories, describe_levels, plain_value
from mutandis.errors import PlanError, listed, printable, shown, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mutandis.data.columns import Column

__all__ = ["PLAIN", "Labels"]

_LONGEST = 80
_OUTCOME: Final = {"negative": "refused", "positive": "granted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What columns, values and outcomes are called in documents; no number depends on it.

    Every sentence, table and picture asks this object for its words. Findings, exports and JSON
    keep the names and values of the table.

    Parameters
    ----------
    outcome
        What was decided, as it follows "was": {"negative": "refused", "positive": "granted"}.
    columns
        The label of a column, by its name.
    levels
        By column, the label of a value, as one says it of one person: {"Gender": {1: "woman"}}.
    statuses
        By protected attribute, what people with a value are called: {"Gender": {1: "women"}}.

    Examples
    --------
    >>> import mutandis as mm
    >>> labels = mm.Labels(
    ...     outcome={"negative": "refused a loan", "positive": "granted a loan"},
    ...     columns={"AnnualSalary": "annual salary"},
    ...     levels={"Gender": {0: "man", 1: "woman"}},
    ... )
    >>> labels.decided(True), labels.column("AnnualSalary"), labels.level("Gender", 1)
    ('refused a loan', 'annual salary', 'woman')
    >>> labels.level("Gender", 2)
    '2'
    """

    outcome: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    statuses: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _set(self, "outcome", _read_outcome(self.outcome))
        _set(self, "columns", _read_words("columns", self.columns))
        for name in ("levels", "statuses"):
            given = _mapping(name, getattr(self, name))
            read = {str(key): _read_words(f"{name}: {key}", each) for key, each in given.items()}
            _set(self, name, MappingProxyType(read))

    def __bool__(self) -> bool:
        """Whether anything is labelled."""
        return bool(self.outcome or self.columns or self.levels or self.statuses)

    def decided(self, is_negative: bool) -> str:  # noqa: FBT001
        """State what was decided on a person, as it follows "was"."""
        which = "negative" if is_negative else "positive"
        return self.outcome.get(which, _OUTCOME[which])

    @property
    def negative(self) -> str:
        """What was decided where the outcome is the unfavourable one."""
        return self.decided(is_negative=True)

    def column(self, name: str) -> str:
        """Return what a column is called."""
        return self.columns.get(name, name)

    def quoted(self, name: str) -> str:
        """Return what a column is called, in quotation marks, as sentences have it."""
        return repr(self.column(name))

    def level(self, column: str, value: Any, show: Callable[[Any], str] = str) -> str:
        """Return what a value of a column is called."""
        labelled = self.levels.get(column)
        if labelled is None:
            return show(value)
        return labelled.get(_key(value)) or show(value)

    def equals(self, column: str, value: Any, show: Callable[[Any], str] = str) -> str:
        """State that a column has a value: "Gender = 1", "gender = woman"."""
        return f"{self.column(column)} = {self.level(column, value, show)}"

    def people(self, attribute: str, value: Any) -> str | None:
        """Return what people with a protected value are called; None without a label."""
        return self.statuses.get(attribute, {}).get(_key(value))

    def check(self, columns: Mapping[str, Column], statuses: Iterable[str]) -> None:
        """Refuse labels of what the audit does not have."""
        for name in (*self.columns, *self.levels):
            _check_known("column", name, columns)
        for name in self.statuses:
            _check_known("protected attribute", name, list(statuses))
        for name, label in self.columns.items():
            if label != name and label in columns and label not in self.columns:
                raise PlanError(
                    f"Column {shown(name)} is labelled {shown(label)}, the name of another column. "
                    "Readers could not tell them apart: choose another label."
                )
        for part in (self.levels, self.statuses):
            for name, labelled in part.items():
                _check_values(name, labelled, columns[name])

    def restricted(self, values: Mapping[str, Iterable[Any]]) -> Labels:
        """Keep the labels of some values alone, for a document that must not tell of others."""

        def kept(part: Mapping[str, Mapping[Any, str]]) -> dict[str, dict[Any, str]]:
            told = {name: {_key(each) for each in some} for name, some in values.items()}
            return {
                name: {key: label for key, label in labelled.items() if key in told.get(name, ())}
                for name, labelled in part.items()
            }

        return Labels(
            outcome=self.outcome,
            columns=self.columns,
            levels=kept(self.levels),
            statuses=kept(self.statuses),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, as the section `labels` of an audit file has it."""
        parts = {
            "outcome": dict(self.outcome),
            "columns": dict(self.columns),
            "levels": {name: dict(each) for name, each in self.levels.items()},
            "statuses": {name: dict(each) for name, each in self.statuses.items()},
        }
        return {name: part for name, part in parts.items() if part}


def _set(labels: Labels, name: str, value: Any) -> None:
    object.__setattr__(labels, name, value)


def _key(value: Any) -> str:
    """Write a value as the keys of an audit file have it: 1.0 is 1, and True is true."""
    value = plain_value(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _mapping(what: str, given: Any) -> Mapping[Any, Any]:
    if isinstance(given, Mapping):
        return given
    raise PlanError(
        f"Labels of {what} are {type(given).__name__}, not a mapping. Give names and their labels: "
        "{'AnnualSalary': 'annual salary'}."
    )


def _read_outcome(given: Any) -> Mapping[str, str]:
    words = _read_words("outcome", given)
    for key in words:
        if key not in _OUTCOME:
            raise PlanError(
                f"Labels of the outcome have no key {shown(key)}.{suggest(key, _OUTCOME)} "
                "Give negative and positive, as they follow 'was': {'negative': 'refused a loan', "
                "'positive': 'granted a loan'}."
            )
    if len(set({**_OUTCOME, **words}.values())) < len(_OUTCOME):
        raise PlanError("Both outcomes have the same label. Give each a label of its own.")
    return words


def _read_words(what: str, given: Any) -> Mapping[str, str]:
    """Read labels by their keys; each is a short printable text, and none occurs twice."""
    read: dict[str, str] = {}
    for key, label in _mapping(what, given).items():
        if not isinstance(label, str) or not label.strip():
            raise PlanError(f"The label of {shown(key)} ({what}) is no text. Give a word or a few.")
        if printable(label, keep="") != label or len(label) > _LONGEST:
            raise PlanError(
                f"The label of {shown(key)} ({what}) has {len(label):,} characters, or some that "
                f"cannot be shown. Give one line of at most {_LONGEST} printable characters."
            )
        if label in read.values():
            raise PlanError(
                f"Two labels ({what}) are {shown(label)}. Readers could not tell them apart: give "
                "each a label of its own."
            )
        read[_key(key)] = label
    return MappingProxyType(read)


def _check_known(what: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        raise PlanError(
            f"There are labels for {shown(name)}, which is no {what} of this audit."
            f"{suggest(name, names)} It has {listed(names)}."
        )


def _check_values(name: str, labelled: Mapping[Any, str], column: Column) -> None:
    if not isinstance(column, Categories):
        raise PlanError(
            f"There are labels for values of {shown(name)}, which holds numbers. Labels are for "
            "nominal and ordinal attributes, the outcome and protected ones: leave these out."
        )
    known = {_key(each) for each in column.levels}
    for key, label in labelled.items():
        if key not in known:
            raise PlanError(
                f"There is a label for the value {shown(key)} of {shown(name)}, which never has it."
                f" Its values: {describe_levels(column)}. Label these."
            )
        if label != key and label in known and label not in labelled:
            raise PlanError(
                f"The value {shown(key)} of {shown(name)} is labelled {shown(label)}, which is "
                "another of its values. Readers could not tell them apart: choose another label."
            )


PLAIN: Final = Labels()
"""No labels: names and values as the table has them."""
