"""The sections 'data' and 'decision' of an audit file: what they can hold, and what they make.

Sources of tables and decision makers are looked up by name when they are needed: neither the
readers of files and databases nor those of models are imported before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, create_model

from mutandis.config.fields import (
    FileSection,
    Name,
    Number,
    Value,
    Whole,
    allowed,
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
_OneOrMore = Annotated[
    Annotated[Name, Tag("(one)")] | Annotated[_Columns, Tag("(list)")],
    Discriminator(lambda value: "(list)" if isinstance(value, list) else "(one)"),
]
_ColumnsByInput = Annotated[
    Annotated[_Columns, Tag("(list)")] | Annotated[dict[str, _OneOrMore], Tag("(inputs)")],
    Discriminator(lambda value: "(inputs)" if isinstance(value, dict) else "(list)"),
]
_Threshold = Annotated[
    Annotated[Number, Tag("(one)")] | Annotated[list[Number], AfterValidator(tuple), Tag("(list)")],
    Discriminator(lambda value: "(list)" if isinstance(value, list) else "(one)"),
]


class _Answers(FileSection):
    what = "a pair of answers"
    favourable: Value
    unfavourable: Value


class _Scored(FileSection):
    """The keys about scores, of every decision maker."""

    what = "a decision by rule"
    threshold: _Threshold | None = None
    """The answer is a score, and this the border."""
    favourable: Literal["above", "below"] = "above"
    """The side of the threshold with the favourable outcome."""


class _Answered(_Scored):
    """The keys of a function, a model or an endpoint."""

    columns: _Columns | None = None
    """What it gets."""
    answers: _Answers | None = None
    """Its words for the two outcomes."""


class _Modelled(_Answered):
    """The keys of what has classes and scores."""

    score_of: Value = None
    """The class that scores are for."""
    score_from: Literal["predict_proba", "decision_function", "predict"] | None = None
    """Where scores come from."""


class _ByRule(_Scored):
    rule: Name
    """A formula."""


class _ByPython(_Modelled):
    what = "a decision in Python"
    python: Name
    """module:function"""


class _ByOnnx(_Answered):
    what = "a decision by ONNX model"
    onnx: Name
    """The file of the model."""
    columns: _ColumnsByInput | None = None  # type: ignore[assignment]  # by input too
    output: Name | None = None
    """Which output."""
    score_of: Value = None
    """The class that scores are for."""


class _BySkops(_Modelled):
    what = "a decision by skops model"
    skops: Name
    """The file of the model."""


class _ByPickle(_Modelled):
    what = "a decision by pickled model"
    pickle: Name
    """The file of the model."""


_Seconds = Annotated[Number, Field(gt=0), allowed("a number of seconds above 0")]


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
    log: Name | None = None


class _ByHttp(_Answered):
    what = "a decision over HTTP"
    http: Annotated[
        Annotated[Name, Tag("(one)")] | Annotated[_Address, Tag("(address)")],
        Discriminator(lambda value: "(address)" if isinstance(value, dict) else "(one)"),
    ]
    """An address, or a mapping with `url` and further settings."""


class _Recorded(FileSection):
    what = "the section 'decision'"
    recorded: bool
    """Nobody can be asked again: there are only recorded decisions."""


_KINDS: Mapping[str, type[FileSection]] = {
    "rule": _ByRule,
    "python": _ByPython,
    "onnx": _ByOnnx,
    "skops": _BySkops,
    "pickle": _ByPickle,
    "http": _ByHttp,
    "recorded": _Recorded,
}


def _kind_of(written: Any) -> str:
    """Name the kind of decision maker that a section is about."""
    if not isinstance(written, dict):
        return ""
    own = [key for key in written if key in _KINDS]
    others = [key for key in written if is_known("decision", key)]
    return next(iter(own or others), "")


def _tag(written: Any) -> str:
    kind = _kind_of(written) or "recorded"
    return kind if kind in _KINDS else "other"


def _check_kind(written: Any) -> Any:
    """Refuse a decision by nobody, or by two."""
    if not isinstance(written, dict):
        return written
    found = [key for key in written if key in _KINDS]
    found = found or [key for key in written if is_known("decision", key)]
    if len(found) > 1:
        raise fault(
            f"Name who decides: {listed(found)} are written, and only one of them can.", found[1]
        )
    known = {key for kind in _KINDS.values() for key in kind.model_fields}
    for key in () if found else written:
        if key not in known:
            raise fault(
                f"{shown(key)} is not a key of the section 'decision'."
                f"{suggest(key, (*_KINDS, *names('decision')))} {_CHOICES}",
                key,
            )
    if not found or (found == ["recorded"] and written["recorded"] is False):
        raise fault(f"Name who decides. {_CHOICES}")
    return written


def _check_other(written: dict[str, Any]) -> FileSection:
    """Check the section of a kind of another package, which takes anything under its name."""
    kind = _kind_of(written)
    model = create_model(kind, __base__=_Modelled, **{kind: (Any, ...)})  # type: ignore[call-overload]  # a name at run time
    model.what = f"a decision by {kind}"
    checked: FileSection = model.model_validate(written)
    return checked


if TYPE_CHECKING:
    DecisionSection = FileSection
else:
    DecisionSection = Annotated[
        Annotated[_ByRule, Tag("(rule)")]
        | Annotated[_ByPython, Tag("(python)")]
        | Annotated[_ByOnnx, Tag("(onnx)")]
        | Annotated[_BySkops, Tag("(skops)")]
        | Annotated[_ByPickle, Tag("(pickle)")]
        | Annotated[_ByHttp, Tag("(http)")]
        | Annotated[_Recorded, Tag("(recorded)")]
        | Annotated[dict, AfterValidator(_check_other), Tag("(other)")],
        Discriminator(lambda written: f"({_tag(written)})"),
        BeforeValidator(_check_kind),
    ]
    """Who decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Who decides, as `mutandis.plan` takes it (None: only recorded decisions), and its files."""

    maker: DecisionMaker | str | None = None
    files: tuple[Path, ...] = ()


def load_decision(
    section: FileSection | None,
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
    if section is None or isinstance(section, _Recorded):
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
    keys = ("favourable", "score_of", "score_from")
    chosen = {key: written[key] for key in keys if key in written}
    with inside("threshold"):
        return with_threshold(maker, written["threshold"], **chosen)


def _with_answers(maker: Any, written: Mapping[str, Any]) -> Any:
    for key in ("favourable", "score_of", "score_from"):
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
