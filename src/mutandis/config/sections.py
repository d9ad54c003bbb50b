"""The sections 'data' and 'decision' of an audit file: what they can hold, and what they make.

Sources of tables and decision makers are looked up by name when they are needed: neither the
readers of files and databases nor those of models are imported before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from mutandis.config.fields import (
    FileSection,
    Name,
    Number,
    Value,
    Whole,
    allowed,
    check_keys,
    fault,
    given,
    inside,
)
from mutandis.data.formula import Formula
from mutandis.decision.maker import DecisionContext
from mutandis.decision.model import RelabelledMaker, with_threshold
from mutandis.decision.rule import FormulaScores, Rule
from mutandis.errors import listed, shown, suggest
from mutandis.registry import find, is_known, names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mutandis.decision.maker import DecisionMaker, Made

__all__ = ["DataSection", "Decider", "DecisionSection", "load_decision"]


# --- data -----------------------------------------------------------------------------------------


class DataSection(FileSection):
    """Where the table is, and how it is read."""

    what = "the section 'data'"
    source: Name | None = None
    """A file, a folder or a pattern; an SQLite file with `query`."""
    url: Name | None = None
    """Instead of `source`: a database."""
    id: Name | None = None
    """A column with a unique value for each row; default: the row number, from 0."""
    missing: Literal["error", "drop"] = "error"
    """Refuse rows that lack a value, or leave them out and count them."""
    query: Name | None = None
    """Of a database: one SELECT."""
    password_env: Name | None = None
    """Of a database: the environment variable that holds the password."""
    separator: Name | None = None
    """Of CSV: what separates fields; default: detected."""
    decimal: Literal[".", ","] = "."
    """Of CSV: the decimal mark."""
    encoding: Name | None = None
    """Of CSV: how text is encoded; default: UTF-8."""
    header: bool = False
    """Of CSV: the first line holds the names, even if they look like numbers."""
    missing_text: Annotated[
        tuple[Name, ...],
        BeforeValidator(lambda each: tuple(each) if isinstance(each, list) else (each,)),
    ] = ()
    """Of CSV: texts that mark a missing value, next to the empty field."""


# --- decision -------------------------------------------------------------------------------------

_CHOICES = (
    "One of: rule: 'salary > 30000'; python: module:function; onnx, skops or pickle with the file "
    "of a model; http with its address; or recorded: true if there are only recorded decisions."
)
_SCORED = ("threshold", "favourable")
_ANSWERED = (*_SCORED, "columns", "answers")
_MODELLED = (*_ANSWERED, "score_of")
_KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "rule": ("a decision by rule", _SCORED),
    "python": ("a decision in Python", _MODELLED),
    "onnx": ("a decision by ONNX model", (*_ANSWERED, "output", "score_of")),
    "skops": ("a decision by skops model", _MODELLED),
    "pickle": ("a decision by pickled model", _MODELLED),
    "http": ("a decision over HTTP", _ANSWERED),
    "recorded": ("the section 'decision'", ()),
}
"""The keys that each kind of decision maker has next to its own; those of other packages have
the keys of models."""


def _check_columns(names: list[str]) -> tuple[str, ...]:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise fault(f"The column {name!r} is listed twice.", place)
    return tuple(names)


_Columns = Annotated[
    list[Name],
    Field(min_length=1),
    AfterValidator(_check_columns),
    allowed("a list of columns", ["salary", "balance"]),
]


def _either(kind: type, name: str) -> Discriminator:
    """Choose between a list (or a mapping), and one thing in it."""
    return Discriminator(lambda value: f"({name})" if isinstance(value, kind) else "(one)")


_OneOrMore = Annotated[
    Annotated[Name, Tag("(one)")] | Annotated[_Columns, Tag("(list)")], _either(list, "list")
]
_ColumnsByInput = Annotated[
    Annotated[_Columns, Tag("(one)")] | Annotated[dict[str, _OneOrMore], Tag("(inputs)")],
    _either(dict, "inputs"),
]
_Threshold = Annotated[
    Annotated[Number, Tag("(one)")] | Annotated[list[Number], AfterValidator(tuple), Tag("(list)")],
    _either(list, "list"),
]
_Seconds = Annotated[Number, Field(gt=0), allowed("a number of seconds above 0")]


class _Answers(FileSection):
    what = "a pair of answers"
    favourable: Value
    unfavourable: Value


class _Address(FileSection):
    what = "an endpoint"
    url: Name
    batch: Whole = 500
    envelope: Name | None = None
    token_variable: Name | None = None
    token_header: Name = "Authorization"  # noqa: S105 - a name, not a secret
    timeout: _Seconds = 60.0
    deadline: _Seconds = 3600.0
    retries: Whole = 5


class DecisionSection(FileSection):
    """Who decides."""

    model_config = ConfigDict(extra="allow")
    what = "the section 'decision'"
    rule: Name | None = None
    """A formula."""
    python: Name | None = None
    """module:function"""
    onnx: Name | None = None
    """The file of a model."""
    skops: Name | None = None
    """The file of a model."""
    pickle: Name | None = None
    """The file of a model."""
    http: Annotated[
        Annotated[Name, Tag("(one)")] | Annotated[_Address, Tag("(address)")],
        _either(dict, "address"),
    ] = ""
    """An address, or a mapping with `url` and further settings."""
    recorded: bool = False
    """Nobody can be asked again: there are only recorded decisions."""
    threshold: _Threshold | None = None
    """The answer is a score, and this the border."""
    favourable: Literal["above", "below"] = "above"
    """The side of the threshold with the favourable outcome."""
    columns: _ColumnsByInput | None = None
    """What the decision maker gets; of an ONNX model also by input."""
    answers: _Answers | None = None
    """Its words for the two outcomes."""
    score_of: Value = None
    """The class that scores are for."""
    """Where scores come from."""
    output: Name | None = None
    """Of an ONNX model: which output."""

    @classmethod
    def check(cls, written: Any) -> None:
        """Refuse a decision by nobody or by two, and keys of another kind."""
        kind = _kind_of(written) if isinstance(written, dict) else "recorded"
        what, further = _KINDS.get(kind, (f"a decision by {kind}", _MODELLED))
        check_keys(written, {kind: True, **dict.fromkeys(further, False)}, what, "")
        if kind != "onnx" and isinstance(written.get("columns"), dict):
            raise fault("Only an ONNX model has columns by input. List them.", "columns")


def _kind_of(written: Mapping[str, Any]) -> str:
    """Name the kind of decision maker that a section is about."""
    found = [key for key in written if key in _KINDS]
    found = found or [key for key in written if is_known("decision", key)]
    if len(found) > 1:
        raise fault(
            f"Name who decides: {listed(found)} are written, and only one of them can.", found[1]
        )
    for key in () if found else written:
        if key not in DecisionSection.model_fields:
            raise fault(
                f"{shown(key)} is not a key of the section 'decision'."
                f"{suggest(key, (*_KINDS, *names('decision')))} {_CHOICES}",
                key,
            )
    if not found or (found == ["recorded"] and written["recorded"] is False):
        raise fault(f"Name who decides. {_CHOICES}")
    return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Who decides, as `mutandis.plan` takes it (None: only recorded decisions), and its files."""

    maker: DecisionMaker | str | None = None
    files: tuple[Path, ...] = ()


def load_decision(
    section: DecisionSection | None,
    *,
    folder: Path,
    columns: tuple[str, ...],
    trust_code: bool,
    scores: bool,
) -> Decider:
    """Load the decision maker and the files that it names, relative to a folder.

    `columns` is what functions and endpoints get if the section does not say: the attributes that
    people are compared on, then the protected ones; no ids and no outcomes. Only the caller can
    trust code, not the file.
    """
    if section is None or section.recorded:
        return Decider()
    written = _plain(section)
    if scores and "threshold" in written:
        raise fault(
            "The outcome is a score, which is compared as it is. Leave the threshold out.",
            "threshold",
        )
    kind = _kind_of(written)
    context = DecisionContext(
        folder=folder,
        columns=columns,
        trust_code=trust_code,
        scores=scores or "threshold" in written,
    )
    with inside(kind):
        if kind == "rule":
            made: Decider | Made = Decider(maker=_check_rule(written, scores=scores))
        else:
            made = find("decision", kind)(written, context)
    finish = _with_threshold if "threshold" in written else _with_answers
    return Decider(maker=finish(made.maker, written), files=made.files)


def _plain(section: FileSection) -> dict[str, Any]:
    """Return what is written in a section, and in those inside it, as plain data."""
    found = given(section)
    return {k: _plain(v) if isinstance(v, FileSection) else v for k, v in found.items()}


def _check_rule(written: dict[str, Any], *, scores: bool) -> str:
    """Parse the rule here, where the line of an error is known."""
    text: str = written["rule"]
    formula = Formula.parse(text)
    if scores:
        FormulaScores(formula)
    elif "threshold" not in written:
        Rule.parse(text)
    return text


def _with_threshold(maker: Any, written: Mapping[str, Any]) -> Any:
    if "answers" in written:
        raise fault(
            "Answers in words and a threshold for scores do not go together. Keep one of them.",
            "answers",
        )
    keys = ("favourable", "score_of")
    chosen = {key: written[key] for key in keys if key in written}
    with inside("threshold"):
        return with_threshold(maker, written["threshold"], **chosen)


def _with_answers(maker: Any, written: Mapping[str, Any]) -> Any:
    for key in ("favourable", "score_of"):
        if key in written:
            raise fault(
                f"{key!r} is about scores, and there is no threshold to compare them with. "
                "Write threshold: 0.5, or leave it out.",
                key,
            )
    if "answers" not in written:
        return maker
    with inside("answers"):
        return RelabelledMaker(maker=maker, **written["answers"])
