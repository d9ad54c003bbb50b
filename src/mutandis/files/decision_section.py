"""The section 'decision' of an audit file: who decides, and how the answers are read.

Decision makers are found in the registry (`mutandis.decision.kinds`). Model files are named
relative to the folder of the audit file, and opened while it is read, so that errors in them are
found before anything is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from mutandis.data.columns import is_number
from mutandis.data.formula import Formula
from mutandis.decision.kinds import DecisionContext, Made
from mutandis.decision.model import ScoreSource
from mutandis.decision.rule import FormulaScores, Rule
from mutandis.decision.threshold import Favourable, RelabelledMaker, with_threshold
from mutandis.errors import listed, suggest
from mutandis.files.yaml_nodes import (
    Entries,
    Items,
    Scalar,
    YamlNode,
    located,
    one_of,
    plain_data,
    read_entries,
    read_flag,
    read_keys,
    read_name,
    read_node,
    read_number,
    read_value,
    read_whole,
)
from mutandis.registry import find, is_known, names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

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
    "timeout": _read_seconds,
    "deadline": _read_seconds,
    "retries": read_whole,
    "backoff": _read_seconds,
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


def read_endpoint(node: YamlNode, *, columns: tuple[str, ...], folder: Path) -> DecisionMaker:
    """Read ``https://…``, or ``{url: https://…, batch: 200, token_variable: BANK_TOKEN, …}``."""
    settings = {"http": _read_address(node), "columns": columns}
    made: Made = find("decision", "http")(settings, DecisionContext(folder=folder))
    return made.maker


def _read_address(node: YamlNode) -> Any:
    if not isinstance(node, Entries):
        return read_name(node, "an address")
    return read_keys(node, _ENDPOINT, required=("url",), what="an endpoint")


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


def _check_rule(read: _Read, context: DecisionContext) -> str:
    """Parse the rule here, where the line of an error is known."""
    text: str = read["rule"]
    formula = Formula.parse(text)
    if context.scores and "threshold" not in read:
        FormulaScores(formula)
    elif not context.scores:
        Rule.parse(text)
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    what: str
    keys: Mapping[str, Reader]


_RULE = _Kind(what="a decision by rule", keys={"rule": read_name, **_SCORED})
_RECORDED = _Kind(what=_SECTION, keys={"recorded": read_flag})
_ONNX = {"columns": _read_columns_by_input, "output": read_name, "score_of": read_value}
_KINDS: Mapping[str, _Kind] = {
    "rule": _RULE,
    "python": _Kind(what="a decision in Python", keys={"python": read_name, **_MODELLED}),
    "onnx": _Kind(what="a decision by ONNX model", keys={"onnx": read_name, **_ANSWERED, **_ONNX}),
    "skops": _Kind(what="a decision by skops model", keys={"skops": read_name, **_MODELLED}),
    "pickle": _Kind(what="a decision by pickled model", keys={"pickle": read_name, **_MODELLED}),
    "http": _Kind(what="a decision over HTTP", keys={"http": _read_address, **_ANSWERED}),
    "recorded": _RECORDED,
}


def _kind_named(name: str) -> _Kind:
    """Return the keys of a kind; one of another package takes anything under its name."""
    own = _Kind(what=f"a decision by {name}", keys={name: plain_data, **_MODELLED})
    return _KINDS.get(name, own)


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
    kind = _kind_named(name)
    read = read_keys(node, kind.keys, what=kind.what)
    if name == "recorded":
        if not read["recorded"]:
            raise node.place.error(f"Say who decides. {_CHOICES}")
        return DecisionSection(decision=None)
    if scores and "threshold" in entries.keys:
        raise entries.keys["threshold"].error(
            "The outcome is a score, which is compared as it is. Leave the threshold out."
        )
    context = DecisionContext(
        folder=folder,
        columns=tuple(columns),
        trust_code=trust_code,
        scores=scores or "threshold" in read,
    )
    with located(entries.keys[name]):
        maker, files = _make(name, read, context)
    decision = _with_threshold if "threshold" in read else _with_answers
    return DecisionSection(decision=decision(maker, read, entries), files=files)


def _make(name: str, read: _Read, context: DecisionContext) -> tuple[Any, tuple[Path, ...]]:
    if name == "rule":
        return _check_rule(read, context), ()
    made: Made = find("decision", name)(read, context)
    return made.maker, made.files


def _kind_of(entries: Entries) -> str:
    found = [key for key in entries.entries if key in _KINDS]
    found = found or [key for key in entries.entries if is_known("decision", key)]
    if len(found) == 1:
        return found[0]
    if found:
        raise entries.keys[found[1]].error(
            f"Say who decides: {listed(found)} are written, and only one of them can."
        )
    known = {key for kind in _KINDS.values() for key in kind.keys}
    for key, place in entries.keys.items():
        if key not in known:
            hint = suggest(key, (*_KINDS, *names("decision")))
            raise place.error(f"{key!r} is not a key of {_SECTION}.{hint} {_CHOICES}")
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
