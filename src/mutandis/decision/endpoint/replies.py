"""What an endpoint sends back, read as one answer a row or refused; never quoted."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from mutandis.errors import DecisionError

__all__ = ["read_reply"]

# some model servers call what they send back predictions, whatever it is
_EITHER = "predictions"


def read_reply(body: bytes, *, rows: int, scores: bool, label: str) -> list[Any]:
    """Read the answers to one batch: a list, or an object that holds one.

    Parameters
    ----------
    body
        What was sent back: ``[…]``, ``{"decisions": […]}`` or ``{"scores": […]}``.
    rows
        How many rows were asked about.
    scores
        Whether scores are expected, because a threshold is declared.
    label
        What error messages call the endpoint.

    Examples
    --------
    >>> read_reply(b'{"decisions": ["yes", "no"]}', rows=2, scores=False, label="endpoint")
    ['yes', 'no']
    """
    found = _parsed(body, label=label)
    answers = _answers(found, scores=scores, label=label) if isinstance(found, dict) else found
    if not isinstance(answers, list):
        raise _unreadable(f"{type(answers).__name__} where a list is needed", label)
    if len(answers) != rows:
        raise DecisionError(
            f"The {label} gave back {len(answers)} answers to a batch of {rows} rows. It must "
            "answer each row, in the order in which they were sent."
        )
    lacking = sum(answer is None for answer in answers)
    if lacking:
        raise DecisionError(
            f"The {label} gave no answer (null) in {lacking} of {rows} rows of a batch. It must "
            "decide on every row: complete what it needs, or leave these rows out."
        )
    odd = next((answer for answer in answers if not _is_plain(answer, scores=scores)), None)
    if odd is not None:
        raise DecisionError(
            f"The {label} answered a row with {_kind(odd)}, not with "
            f"{'a number' if scores else 'one text, number or truth'}. "
            + ("A threshold is declared, which takes scores." if scores else "")
        )
    return answers


def _parsed(body: bytes, *, label: str) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        start = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        what = "no JSON"
        if start == b"<":
            what = "an HTML or XML page, such as a login or an error page,"
        elif not start:
            what = "nothing"
        raise _unreadable(what, label) from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _answers(found: dict[str, Any], *, scores: bool, label: str) -> Any:
    wanted, other = ("scores", "decisions") if scores else ("decisions", "scores")
    for key in (wanted, _EITHER):
        if key in found:
            return found[key]
    if other in found:
        remedy = "Leave the threshold out." if scores else "Declare a threshold."
        raise DecisionError(f"The {label} gave back {other}, but {wanted} are expected. {remedy}")
    raise _unreadable("an object without 'decisions' or 'scores'", label)


def _unreadable(what: str, label: str) -> DecisionError:
    return DecisionError(
        f"The {label} gave back {what} instead of its answers. Expected is JSON: a list with one "
        'answer for each row, or {"decisions": […]} or {"scores": […]} with such a list. What it '
        "sent is not repeated here, because it may quote somebody's data."
    )


def _is_plain(answer: Any, *, scores: bool) -> bool:
    if scores:
        return isinstance(answer, int | float) and not isinstance(answer, bool)
    return isinstance(answer, str | int | float | bool)


def _kind(answer: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth"}
    return names.get(type(answer), "something else")
