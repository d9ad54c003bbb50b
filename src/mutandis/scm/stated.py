"""Stated equations: the expert says how causes act, and the rest is noise."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories, describe_levels
from mutandis.data.formula import Formula, Node
from mutandis.errors import EquationError
from mutandis.numeric.least_squares import (
    CollinearError,
    is_constant,
    least_squares,
    listed,
    require_rows,
)
from mutandis.scm.additive import AdditiveEquation, Bounds, FittedAdditiveEquation, LinkName, linked
from mutandis.scm.family import numbers_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column, Columns, Floats


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Stated(AdditiveEquation):
    """X = f(pa) + U, where a formula states f.

    Parameters
    ----------
    formula
        The equation's right-hand side without the noise, in the formula language; its names are
        the parents. A nominal parent is compared with its values: ``Gender == "female"``.
    fit
        Names in the formula that are coefficients to be estimated. The formula must be linear in
        them.
    link
        "identity" as above; "log" for an attribute that is always above 0 and on which causes act
        by factors: log X = f(pa) + U.
    bounds, decimals, levels
        The values that the attribute can take, as in `Linear`.

    Notes
    -----
    The counterfactual is x + (f(pa') - f(pa)), and x · exp(f(pa') - f(pa)) under the log link. A
    constant in the formula makes no difference to it, and the mean of the noise need not be 0.
    Coefficients are therefore estimated by least squares with a constant, also if the formula has
    none or states one; a constant among the coefficients is the mean of the remainder.

    Examples
    --------
    >>> Stated("0.3 * AnnualSalary - 2000 * Gender").parents
    ('AnnualSalary', 'Gender')
    >>> Stated("0.2 * Salary + b * Gender + c", fit=("b", "c")).coefficients
    ('b', 'c')
    """

    formula: str
    parents: tuple[str, ...]
    coefficients: tuple[str, ...]  # the argument `fit`, which is also the name of a method
    parsed: Formula = field(compare=False)

    def __init__(
        self,
        formula: str,
        *,
        fit: Iterable[str] = (),
        link: LinkName = "identity",
        bounds: Bounds | None = None,
        decimals: int | None = None,
        levels: Iterable[float] | None = None,
    ) -> None:
        parsed = Formula.parse(formula)
        if parsed.kind == "boolean":
            raise _true_or_false()
        coefficients = _read_names(fit)
        _check_coefficients(parsed, coefficients)
        self._set(
            parsed=parsed,
            formula=parsed.text,
            parents=tuple(name for name in parsed.names if name not in coefficients),
            coefficients=coefficients,
        )
        self._set_output(link=link, bounds=bounds, decimals=decimals, levels=levels)

    def _argument(self, name: str) -> Any:
        return getattr(self, "coefficients" if name == "fit" else name)

    def fit(self, child: Column, parents: Columns) -> FittedStated:
        response = linked(numbers_of(child), self.link)
        causes = {name: parents[name] for name in self.parents}
        _check_constants(self.parsed, causes)
        fitted = FittedStated(
            formula=self.parsed,
            coefficients=MappingProxyType(self._estimated(response, causes)),
            **self.output,
        )
        # a formula without a result in some row is better refused now than later
        fitted.explained(causes, rows=len(response))
        return fitted

    def _estimated(self, response: Floats, causes: Columns) -> dict[str, float]:
        if not self.coefficients:
            return {}
        rows = len(response)
        require_rows(rows, coefficients=len(self.coefficients))
        fixed = _evaluated(self.parsed, causes, dict.fromkeys(self.coefficients, 0.0), rows=rows)
        design = [
            (name, _evaluated(factor, causes, {}, rows=rows))
            for name, factor in slopes(self.parsed, self.coefficients).items()
        ]
        silent = [name for name, values in design if not values.any()]
        if silent:
            raise EquationError(
                f"nothing can be learnt about {listed(silent)}: what it is multiplied with is 0 in "
                f"all {rows} rows. State it as a number, or take it out of the formula."
            )
        try:
            values = _with_free_constant(response - fixed, design)
        except CollinearError as error:
            raise EquationError(
                f"{listed([error.label])} cannot be told apart from {listed(error.others)}: what "
                "they are multiplied with follows from each other. State one of them as a number, "
                "or take it out of the formula."
            ) from None
        return dict(zip(self.coefficients, values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedStated(FittedAdditiveEquation):
    """A stated equation, with the coefficients that were estimated."""

    formula: Formula
    coefficients: Mapping[str, float]

    def explained(self, parents: Columns, *, rows: int) -> Floats:
        return _evaluated(self.formula, parents, self.coefficients, rows=rows)


def _evaluated(
    formula: Formula, parents: Columns, coefficients: Mapping[str, float], *, rows: int
) -> Floats:
    columns = {
        name: np.full(rows, coefficients[name]) if name in coefficients else _array(parents[name])
        for name in formula.names
    }
    values = formula.evaluate(columns, length=rows)
    if values.dtype == np.bool_:
        raise _true_or_false()
    return values


def _array(column: Column) -> NDArray[Any]:
    """Convert a column to what formulas read: numbers, or levels by their values."""
    if isinstance(column, Categories):
        levels = np.empty(len(column.levels), dtype=np.object_)
        levels[:] = column.levels
        return levels[column.codes]
    # one after the other in memory: NumPy may round functions of scattered values differently
    return np.ascontiguousarray(column.values)


def _with_free_constant(response: Floats, design: Sequence[tuple[str, Floats]]) -> list[float]:
    """Solve the least squares problem with a constant that belongs to the noise."""
    # a column of the design that is itself constant takes the constant's place
    constants = [place for place, (_, values) in enumerate(design) if is_constant(values)]
    if len(constants) > 1:
        first, second = (design[place][0] for place in constants[:2])
        raise CollinearError(second, [first])
    varying = [each for place, each in enumerate(design) if place not in constants]
    constant, coefficients = least_squares(response, varying)
    for place in constants:
        coefficients.insert(place, constant * (1.0 / float(design[place][1][0])))
    return coefficients


def _check_constants(formula: Formula, causes: Columns) -> None:
    """Refuse comparisons with values that a nominal parent does not have: they are never true."""
    for name, value in compared_constants(formula):
        column = causes.get(name)
        if isinstance(column, Categories) and column.code_of(value) is None:
            raise EquationError(
                f"the formula compares {name!r} with {value!r}, which is not a value of that "
                f"column. Its values are {describe_levels(column)}. Correct the formula."
            )


def _check_coefficients(formula: Formula, coefficients: tuple[str, ...]) -> None:
    for name in coefficients:
        if name not in formula.names:
            raise EquationError(
                f"fit names {name!r}, which the formula does not hold. It holds "
                f"{listed(formula.names)}. Name what is to be estimated as it stands there."
            )
    slopes(formula, coefficients)  # for what it refuses


def _read_names(names: Iterable[str]) -> tuple[str, ...]:
    read = () if isinstance(names, str) else tuple(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in read):
        raise EquationError(f"fit={names!r} are not names. Give a tuple of names: fit=('b', 'c').")
    if len(set(read)) < len(read):
        raise EquationError("fit names something twice. Name each once.")
    return read


def _true_or_false() -> EquationError:
    return EquationError(
        "the formula gives true or false, but it explains a number. "
        "Say how much a comparison counts: 2000 * (Gender == 1), for example."
    )


def slopes(formula: Formula, coefficients: Collection[str]) -> dict[str, Formula]:
    """Find g and h of a formula f0 + b·g + c·h that is linear in its coefficients b and c."""
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
    """Find the names that a formula compares by == or != with a constant, and the constants."""
    for node in _walk(formula.root):
        if node.operation != "compare":
            continue
        for operator, sides in zip(node.value, pairwise(node.operands), strict=True):
            for pair in (sides, sides[::-1]) if operator in {"==", "!="} else ():
                match pair:
                    case Node(operation="column", value=name), Node(
                        operation="constant", value=value
                    ):
                        yield name, value


def _slope(node: Node, name: str) -> Node:
    """Differentiate by a name in which the node is linear."""
    if name not in _names(node):
        return Node(operation="constant", place=node.place, value=0.0)
    match node:
        case Node(operation="column"):
            return Node(operation="constant", place=node.place, value=1.0)
        case Node(operation="+" | "-" | "positive" | "negative", operands=operands):
            return replace(node, operands=tuple(_slope(operand, name) for operand in operands))
        case Node(operation="*" | "/", operands=(left, right)) if name not in _names(right):
            return replace(node, operands=(_slope(left, name), right))
        case Node(operation="*", operands=(left, right)) if name not in _names(left):
            return replace(node, operands=(left, _slope(right, name)))
        case Node(operation="where", operands=(condition, *branches)) if name not in _names(
            condition
        ):
            parts = (condition, *(_slope(branch, name) for branch in branches))
            return replace(node, operands=parts)
    raise EquationError(
        f"the formula is not linear in {name!r}: {node.place} does more with it than add, subtract "
        "or multiply it. State it as a number, or write the formula so that it is."
    )


def _names(node: Node) -> list[str]:
    return [part.value for part in _walk(node) if part.operation == "column"]


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for part in node.operands:
        yield from _walk(part)
