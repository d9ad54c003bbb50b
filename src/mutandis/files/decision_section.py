"""The section 'decision' of an audit file: who decides, and how the answers are read.

A new kind of decision maker is one more entry of `_KINDS`, which lists its keys. Model files are
named relative to the audit file's folder and opened while it is read, so that what is wrong with
them is found before anything is computed.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

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
from mutandis.decision.model import ScoreSource
from mutandis.decision.threshold import Favourable
from mutandis.errors import MutandisError, SettingsError
from mutandis.files.endpoint_section import read_endpoint
from mutandis.files.yaml_nodes import (
    Entries,
    Items,
    YamlNode,
    YamlPlace,
    listed,
    nearest,
    one_of,
    read_entries,
    read_flag,
    read_keys,
    read_name,
    read_names,
    read_node,
    read_number,
    read_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from mutandis.decision import DecisionMaker
    from mutandis.files.yaml_nodes import Reader

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


# how answers are read, whoever gives them
_ANSWERED: Mapping[str, Reader] = {
    "threshold": read_number,
    "favourable": one_of(*get_args(Favourable)),
}
# decision makers that answer in words of their own
_WORDED: Mapping[str, Reader] = {**_ANSWERED, "columns": read_node, "answers": read_node}
# which scores of a model are meant
_MODELLED: Mapping[str, Reader] = {
    **_WORDED,
    "score_of": read_value,
    "score_from": one_of(*get_args(ScoreSource)),
}
_ANSWERS: Mapping[str, Reader] = {"favourable": read_value, "unfavourable": read_value}


@contextmanager
def _placed(place: YamlPlace) -> Iterator[None]:
    """Say where in the file stands what a decision maker complains of, unless it is said."""
    try:
        yield
    except SettingsError:
        raise
    except MutandisError as error:
        raise type(error)(f"{place}: {error}") from error


def _from_rule(read: dict[str, Any], _: _Context) -> tuple[str, tuple[Path, ...]]:
    # what is wrong with a formula is said here, where its line is known
    if "threshold" in read:
        Formula.parse(read["rule"])
    else:
        Rule.parse(read["rule"])
    return read["rule"], ()


def _from_python(read: dict[str, Any], context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    chosen = _column_list(read.get("columns"))
    maker = load_function(read["python"], folder=context.folder, columns=chosen)
    if isinstance(maker, FunctionMaker) and chosen is None:
        maker = replace(maker, columns=context.columns)
    module = read["python"].partition(":")[0]
    own = context.folder / f"{module.replace('.', '/')}.py"
    return maker, (own,) if own.is_file() else ()


def _from_onnx(read: dict[str, Any], context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    path = context.folder / read["onnx"]
    maker = load_onnx(
        path,
        columns=_columns_by_input(read.get("columns")),
        output=read.get("output"),
        scores="threshold" in read,
        score_of=read.get("score_of"),
    )
    return maker, (path,)


def _from_skops(read: dict[str, Any], context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    path, columns = context.folder / read["skops"], _column_list(read.get("columns"))
    maker = load_skops(
        path, trusted=read.get("trusted", ()), columns=columns, folder=context.folder
    )
    return maker, (path,)


def _from_pickle(read: dict[str, Any], context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    path, columns = context.folder / read["pickle"], _column_list(read.get("columns"))
    maker = load_pickle(
        path, trust_pickle=context.trust_pickle, columns=columns, folder=context.folder
    )
    if isinstance(maker, FunctionMaker) and columns is None:
        maker = replace(maker, columns=context.columns)
    return maker, (path,)


def _from_http(read: dict[str, Any], context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    columns = _column_list(read.get("columns")) or context.columns
    return read_endpoint(read["http"], columns=columns, folder=context.folder), ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    what: str
    keys: Mapping[str, Reader]
    make: Callable[[dict[str, Any], _Context], tuple[Any, tuple[Path, ...]]]


_KINDS = {
    "rule": _Kind(
        what="a decision by rule", keys={"rule": read_name, **_ANSWERED}, make=_from_rule
    ),
    "python": _Kind(
        what="a decision in Python", keys={"python": read_name, **_MODELLED}, make=_from_python
    ),
    "onnx": _Kind(
        what="a decision by ONNX model",
        keys={"onnx": read_name, **_WORDED, "output": read_name, "score_of": read_value},
        make=_from_onnx,
    ),
    "skops": _Kind(
        what="a decision by skops model",
        keys={"skops": read_name, **_MODELLED, "trusted": read_names},
        make=_from_skops,
    ),
    "pickle": _Kind(
        what="a decision by pickled model",
        keys={"pickle": read_name, **_MODELLED},
        make=_from_pickle,
    ),
    "http": _Kind(
        what="a decision over HTTP", keys={"http": read_node, **_WORDED}, make=_from_http
    ),
    "recorded": _Kind(what=_SECTION, keys={"recorded": read_flag}, make=lambda *_: (None, ())),
}


def read_decision_section(
    node: YamlNode | None, *, folder: Path, columns: Sequence[str], trust_pickle: bool = False
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
    >>> from mutandis.files.yaml_nodes import read_yaml
    >>> node = read_yaml("rule: salary + 5 * balance\nthreshold: 225000")
    >>> section = read_decision_section(node, folder=Path("."), columns=())
    >>> section.decision.decide({"salary": [5e4, 2e5], "balance": [1e4, 2e4]}).tolist()
    [False, True]
    """
    if node is None:
        return DecisionSection(decision=None)
    entries = read_entries(node, _SECTION)
    name = _kind_of(entries)
    kind = _KINDS[name]
    read = read_keys(node, kind.keys, what=kind.what)
    context = _Context(folder=folder, columns=tuple(columns), trust_pickle=trust_pickle)
    if name == "recorded":
        return _recorded(read, node)
    with _placed(entries.keys[name]):
        maker, files = kind.make(read, context)
    return DecisionSection(decision=_answered(maker, read, entries), files=files)


def _recorded(read: dict[str, Any], node: YamlNode) -> DecisionSection:
    if not read["recorded"]:
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
    known = {key for kind in _KINDS.values() for key in kind.keys}
    for key, place in entries.keys.items():
        if key not in known:
            raise place.error(
                f"{key!r} is not a key of {_SECTION}.{nearest(key, _KINDS)} {_CHOICES}"
            )
    raise entries.place.error(f"Say who decides. {_CHOICES}")


def _answered(maker: Any, read: dict[str, Any], entries: Entries) -> Any:
    """Put the threshold, or the words of the answers, between the decision maker and the audit."""
    scored = [key for key in ("favourable", "score_of", "score_from") if key in entries.keys]
    if "threshold" not in read:
        if scored:
            raise entries.keys[scored[0]].error(
                f"{scored[0]!r} is about scores, and there is no threshold to compare them with. "
                "Write threshold: 0.5, or leave it out."
            )
        return _worded(maker, read)
    if "answers" in read:
        raise entries.keys["answers"].error(
            "Answers in words and a threshold for scores do not go together. Keep one of them."
        )
    # an ONNX model was told when it was loaded
    score_of = None if "onnx" in read else read.get("score_of")
    with _placed(entries.keys["threshold"]):
        return with_threshold(
            maker,
            read["threshold"],
            favourable=read.get("favourable", "above"),
            score_of=score_of,
            score_from=read.get("score_from"),
        )


def _worded(maker: Any, read: dict[str, Any]) -> Any:
    node = read.get("answers")
    if node is None:
        return maker
    words = read_keys(node, _ANSWERS, required=tuple(_ANSWERS), what="the words of the answers")
    with _placed(node.place):
        return RelabelledMaker(maker=maker, **words)


def _column_list(node: YamlNode | None) -> tuple[str, ...] | None:
    if node is None:
        return None
    if not isinstance(node, Items):
        raise node.place.error("Columns are a list: [salary, balance].")
    return _names(node)


def _columns_by_input(node: YamlNode | None) -> Any:
    """Read a list of columns, or for each input of a model its column or columns."""
    if isinstance(node, Entries):
        return {
            name: _names(part) if isinstance(part, Items) else read_name(part, "a column")
            for name, part in node.entries.items()
        }
    return _column_list(node)


def _names(node: Items) -> tuple[str, ...]:
    names = tuple(read_name(item, "a column") for item in node.items)
    for place, name in enumerate(names):
        if name in names[:place]:
            raise node.items[place].place.error(f"The column {name!r} is listed twice.")
    if not names:
        raise node.place.error("The list of columns is empty. Name at least one, or leave it out.")
    return names
