"""What an ONNX model is fed: columns of a table as the tensors that it declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import read_numbers
from mutandis.decision.selection import read_columns
from mutandis.errors import DecisionError, MissingValuesError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["Input", "assign_columns"]

_TYPES: Mapping[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input of a model, and the columns that go into it.

    Parameters
    ----------
    name, type
        As the model declares them: ``tensor(float)``.
    columns
        The columns, in the order of the matrix.
    flat
        Whether it takes one value a row instead of a matrix.
    rows
        How many rows it takes at once, if that is fixed.
    """

    name: str
    type: str
    columns: tuple[str, ...]
    flat: bool = False
    rows: int | None = None

    def fed(self, opened: nw.DataFrame[Any], *, model: str) -> NDArray[Any]:
        """Give the columns as the tensor; what its type cannot hold is refused, never cut off."""
        read = _texts if self.type == "tensor(string)" else _numbers
        parts = [read(opened[name], self, model) for name in self.columns]
        return parts[0] if self.flat else np.column_stack(parts)


def _texts(series: nw.Series[Any], wanted: Input, model: str) -> NDArray[Any]:
    missing = series.null_count()
    if missing:
        raise MissingValuesError(
            f"Column {series.name!r} has {missing} missing values, and the {model} takes it as "
            "text. Complete them, or leave these rows out."
        )
    if series.dtype.is_float() or series.dtype.is_decimal():
        raise DecisionError(
            f"Input {wanted.name!r} of the {model} takes text, but column {series.name!r} holds "
            "decimal numbers, which can be written in many ways. Give a column of names."
        )
    return np.array([str(value) for value in series.to_list()], dtype=np.object_)


def _numbers(series: nw.Series[Any], wanted: Input, model: str) -> NDArray[Any]:
    values = read_numbers(series).values
    missing = int(np.isnan(values).sum())
    if missing:
        raise MissingValuesError(
            f"Column {series.name!r} has {missing} missing values, and the {model} needs every "
            "one. Complete them, or leave these rows out."
        )
    kind = np.dtype(_TYPES[wanted.type])
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            cast = values.astype(kind)
        unfit = ~np.isfinite(cast)
    elif kind.kind == "b":
        cast, unfit = values.astype(kind), (values != 0) & (values != 1)
    else:
        bounds = np.iinfo(kind)
        unfit = (values != np.floor(values)) | (values < bounds.min) | (values > bounds.max)
        cast = np.where(unfit, 0, values).astype(kind)
    count = int(np.count_nonzero(unfit))
    if count:
        raise DecisionError(
            f"Input {wanted.name!r} of the {model} has type {wanted.type}, which cannot hold "
            f"{count} of {len(values)} values of column {series.name!r}. Use a model whose input "
            "takes such numbers (counterfactuals of whole numbers need not be whole: set decimals "
            "in the worldview where they must be)."
        )
    return cast


def assign_columns(
    declared: Iterable[Any],
    columns: Sequence[str] | Mapping[str, str | Sequence[str]] | None,
    *,
    model: str,
) -> tuple[Input, ...]:
    """Say which columns go into which input, or what is unclear about it."""
    inputs = list(declared)
    for each in inputs:
        if each.type not in _TYPES:
            raise DecisionError(
                f"Input {each.name!r} of the {model} has type {each.type}, which no column can "
                "be turned into. Export the model with plain tensors as inputs."
            )
    if isinstance(columns, Mapping):
        chosen = _by_input(inputs, columns, model=model)
    elif len(inputs) == 1 and (columns is not None or _width(inputs[0]) != 1):
        chosen = {inputs[0].name: _matrix(inputs[0], read_columns(columns), model=model)}
    else:
        chosen = _by_name(inputs, read_columns(columns), model=model)
    return tuple(_input(each, chosen[each.name], model=model) for each in inputs)


def _matrix(declared: Any, columns: tuple[str, ...], *, model: str) -> tuple[str, ...]:
    if columns:
        return columns
    width = _width(declared)
    some = f"{width} columns" if width else "columns"
    raise DecisionError(
        f"The {model} has one input, {declared.name!r}, which takes a matrix of {some}, and does "
        "not tell which. Name them in the order of the matrix: columns: [salary, balance]."
    )


def _by_name(inputs: list[Any], columns: tuple[str, ...], *, model: str) -> dict[str, Any]:
    names = [each.name for each in inputs]
    odd = set(names) ^ set(columns)
    if columns and odd:
        raise DecisionError(
            f"The {model} has the inputs {_listed(names)}, and columns= names {_listed(columns)}. "
            "If they are called otherwise in the table, say which goes where: "
            f"columns: {{{names[0]}: {columns[0]}, …}}."
        )
    return {name: (name,) for name in names}


def _by_input(inputs: list[Any], columns: Mapping[str, Any], *, model: str) -> dict[str, Any]:
    names = [each.name for each in inputs]
    for name in columns:
        if name not in names:
            close = get_close_matches(str(name), names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise DecisionError(
                f"The {model} has no input {name!r}.{hint} Its inputs are {_listed(names)}."
            )
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise DecisionError(
            f"The {model} has inputs for which no columns are named: {_listed(lacking)}."
        )
    return {
        name: read_columns([part] if isinstance(part, str) else part)
        for name, part in columns.items()
    }


def _input(declared: Any, columns: tuple[str, ...], *, model: str) -> Input:
    shape, width = list(declared.shape), _width(declared)
    if len(shape) not in {1, 2} or (width is not None and width != len(columns)) or not columns:
        raise DecisionError(
            f"Input {declared.name!r} of the {model} has the shape {_shown(shape)}, and "
            f"{len(columns)} columns are to go into it. Name as many columns as it takes, in its "
            "order."
        )
    rows = shape[0] if isinstance(shape[0], int) and shape[0] > 0 else None
    return Input(
        name=declared.name, type=declared.type, columns=columns, flat=len(shape) == 1, rows=rows
    )


def _width(declared: Any) -> int | None:
    """Count the columns that an input takes; None if the model leaves it open."""
    shape = list(declared.shape)
    if len(shape) == 1:
        return 1
    return shape[1] if len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 0 else None


def _shown(shape: Sequence[Any]) -> str:
    return f"[{', '.join(str(n) if isinstance(n, int) else 'any' for n in shape)}]"


def _listed(names: Iterable[str]) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:12]) + (f" and {len(shown) - 12} more" if len(shown) > 12 else "")
