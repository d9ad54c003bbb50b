"""What an ONNX model gives back: labels, or scores for a threshold."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import DecisionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["choose_output", "one_score"]

_SCORES = ("tensor(float)", "tensor(double)", "tensor(float16)", "seq(map(")


def choose_output(
    offered: Mapping[str, tuple[str, list[Any]]],
    wanted: str | None,
    *,
    scores: bool,
    score_of: Any,
    model: str,
) -> str:
    """Take the output that is named, or the only one that can be meant.

    Parameters
    ----------
    offered
        Type and shape of each output, by name.
    wanted
        The one that is asked for.
    scores, score_of
        Whether it is to give scores, and for which class.
    model
        What error messages call the model.

    Examples
    --------
    >>> offered = {"label": ("tensor(int64)", [None]), "probability": ("tensor(float)", [None, 2])}
    >>> choose_output(offered, None, scores=False, score_of=None, model="model")
    'label'
    >>> choose_output(offered, None, scores=True, score_of=1, model="model")
    'probability'
    """
    if wanted is not None and wanted not in offered:
        close = get_close_matches(wanted, offered, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise DecisionError(
            f"The {model} has no output {wanted!r}.{hint} Its outputs are {_listed(offered)}."
        )
    fitting = [name for name, (kind, _) in offered.items() if kind.startswith(_SCORES) is scores]
    if wanted is None and len(fitting) == 1:
        wanted = fitting[0]
    if wanted is None:
        kind = "scores" if scores else "labels"
        found = "several outputs" if fitting else "no output"
        remedy = "Name the one to read (output)."
        if not fitting and not scores:
            remedy = "Declare a threshold, to make decisions of its scores."
        raise DecisionError(
            f"The {model} has {found} that could be {kind}; its outputs are {_listed(offered)}. "
            f"{remedy}"
        )
    if wanted not in fitting:
        given, lacking = ("labels", "scores") if scores else ("scores", "decisions")
        remedy = "Leave the threshold out" if scores else "Declare a threshold"
        raise DecisionError(
            f"Output {wanted!r} of the {model} gives {given} (type {offered[wanted][0]}), not "
            f"{lacking}. {remedy}, or name another output."
        )
    if scores:
        _check_class(offered[wanted], score_of, output=wanted, model=model)
    return wanted


def _check_class(
    declared: tuple[str, list[Any]], score_of: Any, *, output: str, model: str
) -> None:
    """See that it is said which class a score speaks for, as far as the declaration tells."""
    kind, shape = declared
    if kind.startswith("seq(map("):
        if score_of is None:
            raise DecisionError(
                f"Output {output!r} of the {model} gives one score for each class. Name the class "
                "that the threshold is about (score_of), and which side of it is favourable."
            )
        return
    width = shape[1] if len(shape) == 2 and isinstance(shape[1], int) else None
    if len(shape) == 2 and width != 1:
        _check_position(score_of, width, output=output, model=model)
    elif score_of is not None:
        raise DecisionError(
            f"Output {output!r} of the {model} gives one score a row, which speaks for no class. "
            "Leave score_of out."
        )


def _check_position(score_of: Any, width: int | None, *, output: str, model: str) -> None:
    fits = type(score_of) is int and score_of >= 0 and (width is None or score_of < width)
    if not fits:
        among = "" if width is None else f" below {width}"
        raise DecisionError(
            f"Output {output!r} of the {model} gives a score for each class, and does not name the "
            f"classes. Give the position of the class that the threshold is about, a whole number"
            f"{among} counted from 0 (score_of), and which side of it is favourable."
        )


def one_score(answer: Any, *, score_of: Any, output: str, model: str) -> NDArray[Any]:
    """Take from each row the score of one class.

    Examples
    --------
    >>> one_score([{"no": 0.75, "yes": 0.25}], score_of="yes", output="p", model="m").tolist()
    [0.25]
    >>> one_score(np.array([[0.75, 0.25]]), score_of=0, output="p", model="m").tolist()
    [0.75]
    """
    if isinstance(answer, list):
        if any(score_of not in row for row in answer):
            known = ", ".join(repr(name) for name in list(answer[0])[:10])
            raise DecisionError(
                f"Output {output!r} of the {model} knows the classes {known}; {score_of!r} is none "
                "of them. Name one of them (score_of)."
            )
        return np.array([row[score_of] for row in answer])
    scores = np.asarray(answer)
    if scores.ndim != 2 or scores.shape[1] == 1:
        return scores.reshape(-1) if scores.ndim == 2 else scores
    _check_position(score_of, scores.shape[1], output=output, model=model)
    return np.asarray(scores[:, score_of])


def _listed(offered: Mapping[str, tuple[str, list[Any]]]) -> str:
    return ", ".join(f"{name!r} ({kind})" for name, (kind, _) in offered.items())
