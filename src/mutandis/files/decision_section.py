"""The section 'decision' of an audit file: who decides, and how the answers are read.

A new kind of decision maker is one more entry of `_KINDS`, which lists its keys. Model files are
named relative to the audit file's folder and opened while it is read, so that what is wrong with
them is found before anything is computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from mutandis.data.columns import is_number
from mutandis.data.formula import Formula
from mutandis.decision.model import FunctionMaker, ScoreSource
from mutandis.decision.model_files import load_function, load_pickle, load_skops, require_trust
from mutandis.decision.rule import FormulaScores, Rule
from mutandis.decision.threshold import Favourable, RelabelledMaker, with_threshold
from mutandis.errors import listed, shown, suggest
from mutandis.files.yaml_nodes import (
    Entries,
    Items,
    Scalar,
    YamlNode,
    located,
    one_of,
    read_entries,
    read_flag,
    read_keys,
    read_name,
    read_node,
    read_number,
    read_value,
    read_whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mutandis.decision.endpoint import HttpMaker
    from mutandis.decision.maker import DecisionMaker
    from mutandis.files.yaml_nodes import Reader

__all__ = ["DecisionSection", "read_decision_section", "read_endpoint"]

_SECTION = "the section 'decision'"
_CHOICES = (
    "One of: rule: 'salary > 30000'; python: module:function; onnx, skops or pickle with the file "
    "of a model; http with its address; or recorded: true if there are only recorded decisions."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionSection:
    """Who decides, as `mutandis.audit` takes it (None: only recorded decisions), and its files."""

    decision: DecisionMaker | str | None
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What the other sections, and the command line, say about a decision."""

    folder: Path
    columns: tuple[str, ...]
    trust_code: bool
    scores: bool  # whether the outcome is a score


_Read = dict[str, Any]


# --- an endpoint ----------------------------------------------------------------------------------


def _read_seconds(node: YamlNode) -> float:
    if isinstance(node, Scalar) and is_number(node.value) and node.value > 0:
        return float(node.value)
    raise node.place.error("A number of seconds above 0 is needed here.")


def _read_headers(node: YamlNode) -> dict[str, str]:
    headers = read_entries(node, "the headers of an endpoint")
    return {
        name: read_name(part, "the value of a header") for name, part in headers.entries.items()
    }


_RETRY_POLICY: Mapping[str, Reader] = {
    "connect_timeout": _read_seconds,
    "timeout": _read_seconds,
    "deadline": _read_seconds,
    "retries": read_whole,
    "backoff": _read_seconds,
    "longest_wait": _read_seconds,
}
_ENDPOINT: Mapping[str, Reader] = {
    "url": read_name,
    "batch": read_whole,
    "envelope": read_name,
    "headers": _read_headers,
    "token_variable": read_name,
    "token_header": read_name,
    **_RETRY_POLICY,
    "log": read_name,
}


def read_endpoint(node: YamlNode, *, columns: tuple[str, ...], folder: Path) -> HttpMaker:
    """Read ``https://…``, or ``{url: https://…, batch: 200, token_variable: BANK_TOKEN, …}``."""
    from mutandis.decision.endpoint import HttpMaker, RetryPolicy

    if not isinstance(node, Entries):
        return HttpMaker(url=read_name(node, "an address"), columns=columns)
    read = read_keys(node, _ENDPOINT, required=("url",), what="an endpoint")
    if "log" in read:
        read["log"] = folder / read["log"]
    policy = RetryPolicy(**{key: read.pop(key) for key in _RETRY_POLICY if key in read})
    return HttpMaker(columns=columns, retry_policy=policy, **read)


# --- the kinds of decision makers -----------------------------------------------------------------


def _read_columns(node: YamlNode) -> tuple[str, ...]:
    if not isinstance(node, Items):
        raise node.place.error("Columns are a list: [salary, balance].")
    names = tuple(read_name(item, "a column") for item in node.items)
    for place, name in enumerate(names):
        if name in names[:place]:
            raise node.items[place].place.error(f"The column {name!r} is listed twice.")
    if not names:
        raise node.place.error("The list of columns is empty. Name at least one, or leave it out.")
    return names


def _read_columns_by_input(node: YamlNode) -> Any:
    """Read a list of columns, or for each input of a model its column or columns."""
    if not isinstance(node, Entries):
        return _read_columns(node)
    return {
        name: _read_columns(part) if isinstance(part, Items) else read_name(part, "a column")
        for name, part in node.entries.items()
    }


def _read_threshold(node: YamlNode) -> float | tuple[float, ...]:
    """Read a number, or several for an outcome with an order."""
    if not isinstance(node, Items):
        return read_number(node)
    return tuple(read_number(each) for each in node.items)


# how scores are read, from whichever decision maker
_SCORED: Mapping[str, Reader] = {
    "threshold": _read_threshold,
    "favourable": one_of(*get_args(Favourable)),
}
# a function or a model may also answer in words of its own
_ANSWERED: Mapping[str, Reader] = {**_SCORED, "columns": _read_columns, "answers": read_node}
# which scores of a model are meant
_MODELLED: Mapping[str, Reader] = {
    **_ANSWERED,
    "score_of": read_value,
    "score_from": one_of(*get_args(ScoreSource)),
}
_ANSWERS: Mapping[str, Reader] = {"favourable": read_value, "unfavourable": read_value}


def _from_rule(read: _Read, context: _Context) -> tuple[str, tuple[Path, ...]]:
    # errors in a formula are raised here, where its line is known
    if context.scores:
        FormulaScores(Formula.parse(read["rule"]))
    elif "threshold" in read:
        Formula.parse(read["rule"])
    else:
        Rule.parse(read["rule"])
    return read["rule"], ()


def _from_python(read: _Read, context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    require_trust(
        f"The decision is Python code, {shown(read['python'])}, and was not imported: importing a "
        "module runs it.",
        trust_code=context.trust_code,
    )
    maker = load_function(read["python"], folder=context.folder, columns=read.get("columns"))
    module = read["python"].partition(":")[0]
    own = context.folder / f"{module.replace('.', '/')}.py"
    return _limited(maker, read, context), (own,) if own.is_file() else ()


def _from_onnx(read: _Read, context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    from mutandis.decision.onnx_model import load_onnx

    path = context.folder / read["onnx"]
    maker = load_onnx(
        path,
        columns=read.get("columns"),
        output=read.get("output"),
        scores=context.scores or "threshold" in read,
        # not again with the threshold: the output is chosen while the model is loaded
        score_of=read.pop("score_of", None),
    )
    return maker, (path,)


def _from_skops(read: _Read, context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    path = context.folder / read["skops"]
    maker = load_skops(
        path,
        trust_code=context.trust_code,
        columns=read.get("columns"),
        folder=context.folder,
    )
    return maker, (path,)


def _from_pickle(read: _Read, context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    path = context.folder / read["pickle"]
    maker = load_pickle(
        path,
        trust_code=context.trust_code,
        columns=read.get("columns"),
        folder=context.folder,
    )
    return _limited(maker, read, context), (path,)


def _limited(maker: DecisionMaker, read: _Read, context: _Context) -> DecisionMaker:
    """Give a function no more than the declared attributes, unless columns are listed."""
    if isinstance(maker, FunctionMaker) and "columns" not in read:
        return replace(maker, columns=context.columns)
    return maker


def _from_http(read: _Read, context: _Context) -> tuple[DecisionMaker, tuple[Path, ...]]:
    columns = read.get("columns", context.columns)
    return read_endpoint(read["http"], columns=columns, folder=context.folder), ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    what: str
    keys: Mapping[str, Reader]
    make: Callable[[_Read, _Context], tuple[Any, tuple[Path, ...]]]


_KINDS = {
    "rule": _Kind(what="a decision by rule", keys={"rule": read_name, **_SCORED}, make=_from_rule),
    "python": _Kind(
        what="a decision in Python", keys={"python": read_name, **_MODELLED}, make=_from_python
    ),
    "onnx": _Kind(
        what="a decision by ONNX model",
        keys={
            "onnx": read_name,
            **_ANSWERED,
            "columns": _read_columns_by_input,
            "output": read_name,
            "score_of": read_value,
        },
        make=_from_onnx,
    ),
    "skops": _Kind(
        what="a decision by skops model",
        keys={"skops": read_name, **_MODELLED},
        make=_from_skops,
    ),
    "pickle": _Kind(
        what="a decision by pickled model",
        keys={"pickle": read_name, **_MODELLED},
        make=_from_pickle,
    ),
    "http": _Kind(
        what="a decision over HTTP", keys={"http": read_node, **_ANSWERED}, make=_from_http
    ),
    "recorded": _Kind(what=_SECTION, keys={"recorded": read_flag}, make=lambda *_: (None, ())),
}


def read_decision_section(
    node: YamlNode | None,
    *,
    folder: Path,
    columns: Sequence[str],
    trust_code: bool = False,
    scores: bool = False,
) -> DecisionSection:
    r"""Read the section, and load the files that it names, relative to a folder.

    `columns` is what functions and endpoints get if the section does not say: the attributes that
    people are compared on, then the protected ones; no ids and no outcomes. Only the caller can
    trust code, not the file. What a decision maker complains of is raised with its line.

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
    if name == "recorded":
        if not read["recorded"]:
            raise node.place.error(f"Say who decides. {_CHOICES}")
        return DecisionSection(decision=None)
    if scores and "threshold" in entries.keys:
        raise entries.keys["threshold"].error(
            "The outcome is a score, which is compared as it is. Leave the threshold out."
        )
    context = _Context(folder=folder, columns=tuple(columns), trust_code=trust_code, scores=scores)
    with located(entries.keys[name]):
        maker, files = kind.make(read, context)
    decision = _with_threshold if "threshold" in read else _with_answers
    return DecisionSection(decision=decision(maker, read, entries), files=files)


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
                f"{key!r} is not a key of {_SECTION}.{suggest(key, _KINDS)} {_CHOICES}"
            )
    raise entries.place.error(f"Say who decides. {_CHOICES}")


def _with_threshold(maker: Any, read: _Read, entries: Entries) -> DecisionMaker:
    if "answers" in read:
        raise entries.keys["answers"].error(
            "Answers in words and a threshold for scores do not go together. Keep one of them."
        )
    chosen = {key: read[key] for key in ("favourable", "score_of", "score_from") if key in read}
    with located(entries.keys["threshold"]):
        cut: DecisionMaker = with_threshold(maker, read["threshold"], **chosen)
        return cut


def _with_answers(maker: Any, read: _Read, entries: Entries) -> Any:
    for key in ("favourable", "score_of", "score_from"):
        if key in entries.keys:
            raise entries.keys[key].error(
                f"{key!r} is about scores, and there is no threshold to compare them with. "
                "Write threshold: 0.5, or leave it out."
            )
    node = read.get("answers")
    if node is None:
        return maker
    words = read_keys(node, _ANSWERS, required=tuple(_ANSWERS), what="the words of the answers")
    with located(node.place):
        return RelabelledMaker(maker=maker, **words)
