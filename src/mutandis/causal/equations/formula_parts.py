"""What a formula consists of: the factors of its coefficients, the constants it compares with."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mutandis.data import expression as tree
from mutandis.data.formula import Formula
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["compared_constants", "slopes"]


def slopes(formula: Formula, coefficients: Collection[str]) -> dict[str, Formula]:
    """Find what each coefficient is multiplied with in a formula that is linear in all of them.

    A formula f that is linear in b and c is f0 + b·g + c·h, where f0, g and h know neither. The
    result holds g and h, as formulas over the same columns; f0 is what is left when all
    coefficients are 0.

    Examples
    --------
    >>> import numpy as np
    >>> factor = slopes(Formula.parse("0.3 * Salary + b * (Age - 18) / 10 + c"), ["b"])["b"]
    >>> factor.evaluate({"Age": np.array([28.0, 38.0])}).tolist()
    [1.0, 2.0]
    >>> slopes(Formula.parse("b * Age + exp(b)"), ["b"])
    Traceback (most recent call last):
    mutandis.errors.EquationError: the formula is not linear in 'b': 'exp(b)' (character 11) ...
    """
    factors = {}
    for name in coefficients:
        root = _slope(formula.root, name)
        names = tuple(dict.fromkeys(_names(root)))
        together = next((other for other in names if other in coefficients), None)
        if together is not None:
            raise EquationError(
                f"the formula is not linear in {name!r} and {together!r} together: they are "
                "multiplied with each other, so neither can be estimated. State one as a number."
            )
        factors[name] = Formula(text=formula.text, names=names, root=root)
    return factors


def compared_constants(formula: Formula) -> Iterator[tuple[str, Any]]:
    """Find the names that a formula compares by == or != with a constant, and the constants.

    Examples
    --------
    >>> list(compared_constants(Formula.parse('2 * (Job == "cook") + 3 * (1 != Race)')))
    [('Job', 'cook'), ('Race', 1.0)]
    """
    for node in _walk(formula.root):
        if not isinstance(node, tree.ComparisonChain):
            continue
        for operator, sides in zip(node.operators, pairwise(node.operands), strict=True):
            for one, other in (sides, sides[::-1]):
                if (
                    operator in {"==", "!="}
                    and isinstance(one, tree.ColumnName)
                    and isinstance(other, tree.Text | tree.Number)
                ):
                    yield one.name, other.value


def _slope(node: tree.Expression, name: str) -> tree.Expression:
    """Differentiate by a name in which the node is linear."""
    if name not in _names(node):
        return tree.Number(place=node.place, value=0.0)
    match node:
        case tree.ColumnName():
            return tree.Number(place=node.place, value=1.0)
        case tree.Numeric(operation="+" | "-" | "positive" | "negative"):
            parts = tuple(_slope(operand, name) for operand in node.operands)
            return tree.Numeric(place=node.place, operation=node.operation, operands=parts)
        case tree.Numeric(operation="*" | "/", operands=(left, right)) if name not in _names(right):
            parts = (_slope(left, name), right)
            return tree.Numeric(place=node.place, operation=node.operation, operands=parts)
        case tree.Numeric(operation="*", operands=(left, right)) if name not in _names(left):
            parts = (left, _slope(right, name))
            return tree.Numeric(place=node.place, operation="*", operands=parts)
        case tree.Where() if name not in _names(node.condition):
            return tree.Where(
                place=node.place,
                condition=node.condition,
                chosen=_slope(node.chosen, name),
                otherwise=_slope(node.otherwise, name),
            )
    raise EquationError(
        f"the formula is not linear in {name!r}: {node.place} does more with it than add, subtract "
        "or multiply it. State it as a number, or write the formula so that it is."
    )


def _names(node: tree.Expression) -> list[str]:
    return [part.name for part in _walk(node) if isinstance(part, tree.ColumnName)]


def _walk(node: tree.Expression) -> Iterator[tree.Expression]:
    """Give a part of a formula and all parts of it."""
    yield node
    for part in _parts(node):
        yield from _walk(part)


def _parts(node: tree.Expression) -> tuple[tree.Expression, ...]:
    match node:
        case tree.Numeric() | tree.ComparisonChain() | tree.Logic():
            return node.operands
        case tree.Not():
            return (node.operand,)
        case tree.Where():
            return (node.condition, node.chosen, node.otherwise)
        case _:
            return ()
