"""The section 'decision' of an audit file: who decides, and how the answers are read.

One `Settings` for each kind of decision maker lists its keys; a new kind is one more entry of
`_KINDS`. Model files are named relative to the audit file's folder and opened while it is read, so
that what is wrong with them is found before anything is computed.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import PlainValidator

from mutandis.data.formula import Formula
from mutandis.decision import (
    FunctionMaker,
    RelabelledMaker,
    Rule,
    load_function,
    load_onnx,
    load_pickle,
    load_skops,
    with_threshold,
)
from mutandis.decision.models import ScoreSource
from mutandis.decision.threshold import Favourable
from mutandis.errors import MutandisError, SettingsError
from mutandis.files.endpoint_section import read_endpoint
from mutandis.files.yaml_lines import Entries, Items, Node, Place
from mutandis.files.yaml_models import (
    AnyNode,
    Flag,
    Name,
    NameList,
    Settings,
    choice,
    entries_of,
    listed,
    name_of,
    nearest,
    number_of,
    validated,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from mutandis.decision import DecisionMaker

__all__ = ["DecisionSection", "read_decision_section"]

_SECTION = "the section 'decision'"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionSection:
    """What the section says.

    Parameters
    ----------
    decision
        Who decides, as `mutandis.audit` takes it; None if nobody can be asked again.
    files
        The files that were read for it.
    """

    decision: DecisionMaker | str | None
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What the other sections, and the command line, say about a decision."""

    folder: Path
    columns: tuple[str, ...]
    trust_pickle: bool


_Number = Annotated[float | None, PlainValidator(number_of)]
_Value = Annotated[Any, PlainValidator(value_of)]


class _Accumulator(Settings):
    """How answers are read, whoever gives them."""

    threshold: _Number = None
    favourable: Annotated[str | None, choice(*get_args(Favourable))] = None


class _Deciding(_Accumulator):
    """Who decides in words of its own may do so."""

    columns: AnyNode = None
    answers: AnyNode = None


class _Modelled(_Deciding):
    """Which scores of a model are meant."""

    score_of: _Value = None
    score_from: Annotated[str | None, choice(*get_args(ScoreSource))] = None


class _Rule(_Accumulator):
    rule: Name


class _Python(_Modelled):
    python: Name


class _Onnx(_Deciding):
    onnx: Name
    output: Name | None = None
    score_of: _Value = None


class _Skops(_Modelled):
    skops: Name
    trusted: NameList = ()


class _Pickle(_Modelled):
    pickle: Name


class _Http(_Deciding):
    http: AnyNode


class _Recorded(Settings):
    recorded: Flag


class _Answers(Settings):
    favourable: _Value
    unfavourable: _Value


@contextmanager
def _placed(place: Place) -> Iterator[None]:
    """Say where in the file stands what a decision maker complains of, unless it is said."""
    try:
        yield
    except SettingsError:
        raise
    except MutandisError as error:
        raise type(error)(f"{place}: {error}") from error


def _from_rule(read: Any, _: _Context) -> tuple[str, tuple[Path, ...]]:
    # what is wrong with a formula is said here, where its line is known
    if read.threshold is None:
        Rule.parse(read.rule)
    else:
        Formula.parse(read.rule)
    return read.rule, ()


def _from_python(read: Any, context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    chosen = _column_list(read.columns)
    maker = load_function(read.python, folder=context.folder, columns=chosen)
    if isinstance(maker, FunctionMaker) and chosen is None:
        maker = replace(maker, columns=context.columns)
    own = context.folder / f"{read.python.partition(':')[0].replace('.', '/')}.py"
    return maker, (own,) if own.is_file() else ()


def _from_onnx(read: Any, context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    path = context.folder / read.onnx
    maker = load_onnx(
        path,
        columns=_columns_by_input(read.columns),
        output=read.output,
        scores=read.threshold is not None,
        score_of=read.score_of,
    )
    return maker, (path,)


def _from_skops(read: Any, context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    path, columns = context.folder / read.skops, _column_list(read.columns)
    maker = load_skops(path, trusted=read.trusted, columns=columns, folder=context.folder)
    return maker, (path,)


def _from_pickle(read: Any, context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    path, columns = context.folder / read.pickle, _column_list(read.columns)
    maker = load_pickle(
        path, trust_pickle=context.trust_pickle, columns=columns, folder=context.folder
    )
    if isinstance(maker, FunctionMaker) and columns is None:
        maker = replace(maker, columns=context.columns)
    return maker, (path,)


def _from_http(read: Any, context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    columns = _column_list(read.columns) or context.columns
    return read_endpoint(read.http, columns=columns, folder=context.folder), ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    what: str
    keys: type[Settings]
    make: Callable[[Any, _Context], tuple[Any, tuple[Path, ...]]]


_KINDS = {
    "rule": _Kind(what="a decision by rule", keys=_Rule, make=_from_rule),
    "python": _Kind(what="a decision in Python", keys=_Python, make=_from_python),
    "onnx": _Kind(what="a decision by ONNX model", keys=_Onnx, make=_from_onnx),
    "skops": _Kind(what="a decision by skops model", keys=_Skops, make=_from_skops),
    "pickle": _Kind(what="a decision by pickled model", keys=_Pickle, make=_from_pickle),
    "http": _Kind(what="a decision over HTTP", keys=_Http, make=_from_http),
    "recorded": _Kind(what=_SECTION, keys=_Recorded, make=lambda *_: (None, ())),
}


def read_decision_section(
    node: Node | None, *, folder: Path, columns: Sequence[str], trust_pickle: bool = False
) -> DecisionSection:
    r"""Read the section, and load what it names.

    Parameters
    ----------
    node
        The section; None if there is none, which leaves nobody to be asked.
    folder
        The folder that files are named relative to.
    columns
        What functions and endpoints are shown if the section does not say: the attributes that
        people are compared on, then the protected ones. No ids and no outcomes.
    trust_pickle
        Whether pickles may be opened. A file of settings cannot say so itself.

    Raises
    ------
    SettingsError
        The section cannot be read as it is written.
    DecisionError
        What it names cannot decide, with the line that names it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from mutandis.files.yaml_lines import read_yaml
    >>> node = read_yaml("rule: salary + 5 * balance\nthreshold: 225000")
    >>> section = read_decision_section(node, folder=Path("."), columns=())
    >>> section.decision.decide({"salary": [5e4, 2e5], "balance": [1e4, 2e4]}).tolist()
    [False, True]
    """
    if node is None:
        return DecisionSection(decision=None)
    entries = entries_of(node, _SECTION)
    name = _kind_of(entries)
    kind = _KINDS[name]
    read = validated(kind.keys, node, what=kind.what)
    context = _Context(folder=folder, columns=tuple(columns), trust_pickle=trust_pickle)
    if name == "recorded":
        return _recorded(read, node)
    with _placed(entries.keys[name]):
        maker, files = kind.make(read, context)
    return DecisionSection(decision=_answered(maker, read, entries), files=files)


def _recorded(read: Any, node: Node) -> DecisionSection:
    if not read.recorded:
        raise node.place.error(f"Say who decides. {_CHOICES}")
    return DecisionSection(decision=None)


_CHOICES = (
    "One of: rule: 'salary > 30000'; python: module:function; onnx, skops or pickle with the file "
    "of a model; http with its address; or recorded: true if nobody can be asked again."
)


def _kind_of(entries: Entries) -> str:
    found = [key for key in entries.entries if key in _KINDS]
    if len(found) == 1:
        return found[0]
    if found:
        raise entries.keys[found[1]].error(
            f"Say who decides: {listed(found)} are written, and only one of them can."
        )
    known = {key for kind in _KINDS.values() for key in kind.keys.model_fields}
    for key, place in entries.keys.items():
        if key not in known:
            raise place.error(f"{key!r} is no key of {_SECTION}.{nearest(key, _KINDS)} {_CHOICES}")
    raise entries.place.error(f"Say who decides. {_CHOICES}")


def _answered(maker: Any, read: Any, entries: Entries) -> Any:
    """Put the threshold, or the words of the answers, between the decision maker and the audit."""
    scored = [key for key in ("favourable", "score_of", "score_from") if key in entries.keys]
    if read.threshold is None:
        if scored:
            raise entries.keys[scored[0]].error(
                f"{scored[0]!r} is about scores, and there is no threshold to compare them with. "
                "Write threshold: 0.5, or leave it out."
            )
        return _worded(maker, read)
    if getattr(read, "answers", None) is not None:
        raise entries.keys["answers"].error(
            "Answers in words and a threshold for scores do not go together. Keep one of them."
        )
    # an ONNX model was told when it was loaded
    meant: tuple[Any, Any] = (None, None)
    if isinstance(read, _Modelled):
        meant = (read.score_of, read.score_from)
    with _placed(entries.keys["threshold"]):
        return with_threshold(
            maker,
            read.threshold,
            favourable=read.favourable or "above",
            score_of=meant[0],
            score_from=meant[1],
        )


def _worded(maker: Any, read: Any) -> Any:
    node = getattr(read, "answers", None)
    if node is None:
        return maker
    words = validated(_Answers, node, what="the words of the answers")
    with _placed(node.place):
        return RelabelledMaker(
            maker=maker, favourable=words.favourable, unfavourable=words.unfavourable
        )


def _column_list(node: Node | None) -> tuple[str, ...] | None:
    if node is None:
        return None
    if not isinstance(node, Items):
        raise node.place.error("Columns are a list: [salary, balance].")
    return _names(node)


def _columns_by_input(node: Node | None) -> Any:
    """Read a list of columns, or for each input of a model its column or columns."""
    if isinstance(node, Entries):
        return {
            name: _names(part) if isinstance(part, Items) else name_of(part, "a column")
            for name, part in node.entries.items()
        }
    return _column_list(node)


def _names(node: Items) -> tuple[str, ...]:
    names = tuple(name_of(item, "a column") for item in node.items)
    for place, name in enumerate(names):
        if name in names[:place]:
            raise node.items[place].place.error(f"The column {name!r} is listed twice.")
    if not names:
        raise node.place.error("The list of columns is empty. Name at least one, or leave it out.")
    return names
