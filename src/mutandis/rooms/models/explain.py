"""Why a fitted model decides differently on another record, for trees and linear models.

A decision tree is described by the questions that it asks, a linear model by what each column adds
to its score. Other models are not explained.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from mutandis.decision.model import ModelMaker

    Row = NDArray[np.float64]

__all__ = ["explain_change"]

# rounding error of a sum in float64, relative to its terms
_ROUNDING = 1e-9


def explain_change(
    maker: ModelMaker, before: Any, after: Any, called: Callable[[str], str]
) -> tuple[str, ...]:
    """Explain the answers of a model to two tables of one row; empty if it cannot be read."""
    try:
        features = [maker.features(frame) for frame in (before, after)]
        answers = [str(maker.model.predict(each)[0]) for each in features]
        estimator, given, names = _last_step(maker, features)
        rows = [_matrix(each) for each in given]
        names = list(map(called, names)) or [f"column {n + 1}" for n in range(rows[0].shape[1])]
        if hasattr(estimator, "tree_"):
            return tuple(_tree_lines(estimator, rows, names, answers))
        if hasattr(estimator, "coef_"):
            return tuple(_linear_lines(estimator, given, rows, names))
    except (AttributeError, IndexError, TypeError, ValueError):
        pass  # an object of another library that looks like one of these
    return ()


def _last_step(maker: ModelMaker, features: Sequence[Any]) -> tuple[Any, list[Any], list[str]]:
    """Return the model at the end of a pipeline, its input, and the names of its columns."""
    model, rows, names = maker.model, list(features), list(maker.names)
    if hasattr(model, "steps") and len(model.steps) > 1:
        head = model[:-1]
        rows = [head.transform(each) for each in rows]
        names = [str(name) for name in head.get_feature_names_out(names or None)]
        model = model[-1]
    return model, rows, names


def _matrix(rows: Any) -> Row:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


def _tree_lines(
    estimator: Any, rows: Sequence[Row], names: Sequence[str], answers: list[str]
) -> list[str]:
    tree = estimator.tree_
    # children have larger numbers than their parents, so that a path is in the order of its nodes
    paths = [sorted(tree.decision_path(each.astype(np.float32)).indices.tolist()) for each in rows]
    if paths[0] == paths[1]:
        count = len(paths[0]) - 1
        same = f"The decision tree asks both records the same {count} questions and gets the same"
        return [f"{same} answers: {answers[0]}."]
    shared = next(n for n, pair in enumerate(zip(*paths, strict=False)) if pair[0] != pair[1])
    node = paths[0][shared - 1]
    column = int(tree.feature[node])
    here, there = (_number(each[0, column]) for each in rows)
    border = _number(tree.threshold[node])
    first = (
        f"The decision tree separates the two records at its question {shared}, whether "
        f"{names[column]} is at most {border}: it is {here} on record, and {there} in the "
        "counterfactual."
    )
    lines = [first]
    if shared > 1:
        lines.append(f"Before that, both have {_conditions(tree, paths[0][:shared], names)}.")
    for which, path, answer in zip(("On record", "Counterfactual"), paths, answers, strict=True):
        conditions = _conditions(tree, path[shared - 1 :], names)
        lines.append(f"{which}: {conditions}; the answer is {answer}.")
    return lines


def _conditions(tree: Any, path: Sequence[int], names: Sequence[str]) -> str:
    found = []
    for node, following in pairwise(path):
        sign = "≤" if tree.children_left[node] == following else ">"
        found.append(f"{names[int(tree.feature[node])]} {sign} {_number(tree.threshold[node])}")
    return ", ".join(found)


def _linear_lines(
    estimator: Any, given: Sequence[Any], rows: Sequence[Row], names: Sequence[str]
) -> list[str]:
    weights = np.asarray(estimator.coef_, dtype=np.float64).reshape(-1)
    if len(weights) != rows[0].shape[1]:
        return []  # several classes, or several outcomes
    offset = float(np.asarray(estimator.intercept_).reshape(-1)[0])
    scores = [float(each[0] @ weights) + offset for each in rows]
    classes = getattr(estimator, "classes_", None)
    answer = estimator.predict if classes is None else estimator.decision_function
    stated = [float(np.asarray(answer(each)).reshape(-1)[0]) for each in given]
    if not np.allclose(scores, stated, rtol=_ROUNDING, atol=_ROUNDING):
        return []  # its answer is no sum of columns
    score = "The value" if classes is None else f"The score for {np.asarray(classes)[1]}"
    above = "" if classes is None else f" (above 0 the answer is {np.asarray(classes)[1]})"
    here, there = map(_number, scores)
    lines = [f"{score} is {here} on record, and {there} in the counterfactual{above}."]
    change = weights * (rows[1][0] - rows[0][0])
    order = sorted(np.flatnonzero(change).tolist(), key=lambda place: (-abs(change[place]), place))
    return lines + [
        f"{names[place]}, from {_number(rows[0][0, place])} to {_number(rows[1][0, place])}, "
        f"changes it by {change[place]:+,.6g}.".replace("-", "−")
        for place in order
    ]


def _number(value: float) -> str:
    return f"{float(value):,.6g}".replace("-", "−")
