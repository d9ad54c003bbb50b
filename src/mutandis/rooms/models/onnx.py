"""Models in ONNX files, run by onnxruntime: what goes in, and which output is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import read_numbers
from mutandis.decision.maker import DescribedMaker, Made, read_columns, select_columns
from mutandis.errors import DecisionError, MissingValuesError, listed, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import narwhals as nw
    from numpy.typing import NDArray

    from mutandis.decision.maker import DecisionContext
    from mutandis.decision.model import ModelFile

# rows per run: enough to be fast, few enough that a deep model's layers fit into memory
_ROWS = 50_000

_SAME = "float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
_TYPES: dict[str, np.dtype[Any]] = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    "tensor(string)": np.dtype(np.object_),
    **{f"tensor({name})": np.dtype(name) for name in _SAME.split()},
}
_SCORES = ("tensor(float)", "tensor(double)", "tensor(float16)", "seq(map(")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """One input as the model declares it, and the columns that go into it, in their order."""

    name: str
    type: str
    columns: tuple[str, ...]
    flat: bool  # one value per row instead of a matrix

    def tensor(self, opened: nw.DataFrame[Any], *, model: str) -> NDArray[Any]:
        """Return the columns as a tensor; values that its type cannot hold are refused."""
        read = _read_texts if self.type == "tensor(string)" else _read_numbers
        parts = [read(opened[name], self, model) for name in self.columns]
        return parts[0] if self.flat else np.column_stack(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxMaker(DescribedMaker):
    """A model in an ONNX file: its output is a score of the class `score_of`, or a decision."""

    file: ModelFile
    inputs: tuple[_Input, ...]
    output: str
    scores: bool
    score_of: Any
    session: Any = field(repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for each in self.inputs for name in each.columns))

    @property
    def label(self) -> str:
        return _label(self.file)

    def decide(self, frame: Any, /) -> NDArray[Any]:
        opened = select_columns(frame, self.names)
        tensors = {each.name: each.tensor(opened, model=self.label) for each in self.inputs}
        answers = [
            self._run({name: values[start : start + _ROWS] for name, values in tensors.items()})
            for start in range(0, len(opened), _ROWS)
        ]
        return np.concatenate(answers) if answers else np.empty(0, dtype=np.object_)

    def _run(self, tensors: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        (answer,) = self.session.run([self.output], dict(tensors))
        return self._scores(answer) if self.scores else np.asarray(answer)

    def _scores(self, answer: Any) -> NDArray[Any]:
        """Return the score of one class in each row."""
        if isinstance(answer, list):
            if any(self.score_of not in row for row in answer):
                known = ", ".join(repr(name) for name in list(answer[0])[:10])
                raise DecisionError(
                    f"Output {self.output!r} of the {self.label} has the classes {known}; "
                    f"{self.score_of!r} is not one of them. Name one of them (score_of)."
                )
            return np.array([row[self.score_of] for row in answer])
        scores = np.asarray(answer)
        if scores.ndim != 2 or scores.shape[1] == 1:
            return scores.reshape(-1) if scores.ndim == 2 else scores
        where = f"Output {self.output!r} of the {self.label}"
        _check_position(self.score_of, scores.shape[1], where)
        return np.asarray(scores[:, self.score_of])

    def scoring(self) -> OnnxMaker:
        if self.scores:
            return self
        raise DecisionError(
            f"The {self.label} was loaded for its decisions. Load it with scores=True to set a "
            "threshold."
        )

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "onnx",
            **self.file.describe(),
            "columns": list(self.names),
            "output": self.output,
            **({"score_of": self.score_of} if self.scores else {}),
        }


def make_onnx(settings: dict[str, Any], context: DecisionContext) -> Made:
    """Load ``onnx: file``, as an audit file names it."""
    path = context.folder / settings["onnx"]
    maker = load_onnx(
        path,
        columns=settings.get("columns"),
        output=settings.get("output"),
        scores=context.scores,
        # removed: the output is chosen while the model is loaded, and the threshold just cuts it
        score_of=settings.pop("score_of", None),
    )
    return Made(maker=maker, files=(path,))


def load_onnx(
    path: str | Path,
    *,
    columns: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    output: str | None = None,
    scores: bool = False,
    score_of: Any = None,
) -> OnnxMaker:
    """Load a model from an ONNX file.

    Parameters
    ----------
    path
        The file. Weights in files of their own are not read.
    columns
        A list: the columns of the matrix that is the model's only input, in its order; or, for a
        model with an input for each column, the columns to use. A mapping: the columns of each
        input by the input's name. Default: each input is the column of the same name.
    output
        The output to read. Default: the only one that can be meant.
    scores
        Read scores, for a threshold (see `with_threshold`), instead of decisions.
    score_of
        The class that the score is for, where the output has several: its name where the output
        has names (ZipMap), else its position, counted from 0.

    Raises
    ------
    DecisionError
        The file cannot be read, columns and inputs do not fit, or onnxruntime is missing.
    """
    from mutandis.rooms.models import read_model_file  # which imports this module

    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise DecisionError(
            "ONNX models need the library onnxruntime. Install it: pip install 'mutandis[onnx]'."
        ) from None
    content, file = read_model_file(path, what="ONNX model")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors arrive as exceptions; its log may quote data
    providers = ["CPUExecutionProvider"]
    try:
        # from bytes: what was hashed is what runs, and no other file is opened on its behalf
        session = onnxruntime.InferenceSession(content, options, providers=providers)
    except Exception as error:
        raise DecisionError(
            f"{file.name!r} cannot be loaded as an ONNX model ({type(error).__name__}). Check that "
            "it is one, that it keeps its weights in the same file, and that this version of "
            "onnxruntime supports its operators."
        ) from error
    model = _label(file)
    chosen = _choose_output(session.get_outputs(), output, scores=scores, model=model)
    if scores:
        _check_class(chosen, score_of, model=model)
    return OnnxMaker(
        file=file,
        inputs=_assign_columns(session.get_inputs(), columns, model=model),
        output=chosen.name,
        scores=scores,
        score_of=score_of,
        session=session,
    )


def _label(file: ModelFile) -> str:
    return f"ONNX model {file.name!r}"


# --- inputs ---------------------------------------------------------------------------------------


def _read_texts(series: nw.Series[Any], wanted: _Input, model: str) -> NDArray[Any]:
    _check_complete(series.name, series.null_count(), model)
    if series.dtype.is_float() or series.dtype.is_decimal():
        raise DecisionError(
            f"Input {wanted.name!r} of the {model} takes text, but column {series.name!r} holds "
            "decimal numbers, which can be written in many ways. Give a column of names."
        )
    return np.array([str(value) for value in series.to_list()], dtype=np.object_)


def _read_numbers(series: nw.Series[Any], wanted: _Input, model: str) -> NDArray[Any]:
    values = read_numbers(series).values
    _check_complete(series.name, int(np.isnan(values).sum()), model)
    kind = _TYPES[wanted.type]
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


def _check_complete(column: str, missing: int, model: str) -> None:
    if missing:
        raise MissingValuesError(
            f"Column {column!r} has {missing} missing values, and the {model} needs every one. "
            "Complete them, or leave these rows out."
        )


def _assign_columns(
    inputs: Sequence[Any],
    columns: Sequence[str] | Mapping[str, str | Sequence[str]] | None,
    *,
    model: str,
) -> tuple[_Input, ...]:
    """Return the columns that go into each input: as listed, as mapped, or of the same name."""
    names = [each.name for each in inputs]
    if not isinstance(columns, Mapping):
        columns = _name_inputs(inputs, read_columns(columns), model=model)
    for name in columns:
        if name not in names:
            raise DecisionError(
                f"The {model} has no input {name!r}.{suggest(str(name), names)} Its inputs "
                f"are {listed(names)}."
            )
    missing = [name for name in names if name not in columns]
    if missing:
        raise DecisionError(
            f"The {model} has inputs for which no columns are named: {listed(missing)}."
        )
    return tuple(_input(each, columns[each.name], model=model) for each in inputs)


def _name_inputs(
    inputs: Sequence[Any], columns: tuple[str, ...], *, model: str
) -> Mapping[str, Sequence[str]]:
    """Find the inputs of a list of columns: one matrix, or an input named after each column."""
    names = [each.name for each in inputs]
    if len(inputs) == 1 and (columns or _width(inputs[0]) == 1):
        return {names[0]: columns or (names[0],)}
    if len(inputs) == 1:
        width = _width(inputs[0])
        raise DecisionError(
            f"The {model} has one input, {names[0]!r}, which takes a matrix of "
            f"{f'{width} columns' if width else 'columns'}, and does not say which. Name them in "
            "the order of the matrix: columns: [salary, balance]."
        )
    if columns and set(names) != set(columns):
        raise DecisionError(
            f"The {model} has the inputs {listed(names)}, and columns= names "
            f"{listed(columns)}. If they have other names in the table, say which goes where: "
            f"columns: {{{names[0]}: {columns[0]}, …}}."
        )
    return {name: (name,) for name in names}


def _input(declared: Any, named: str | Sequence[str], *, model: str) -> _Input:
    columns = read_columns([named] if isinstance(named, str) else named)
    if declared.type not in _TYPES:
        raise DecisionError(
            f"Input {declared.name!r} of the {model} has type {declared.type}, which no column can "
            "be turned into. Export the model with plain tensors as inputs."
        )
    shape, width = list(declared.shape), _width(declared)
    is_open = len(shape) in {1, 2} and not (isinstance(shape[0], int) and shape[0] > 0)
    if not is_open or not columns or width not in {None, len(columns)}:
        shown = ", ".join(str(size) if isinstance(size, int) else "any" for size in shape)
        raise DecisionError(
            f"Input {declared.name!r} of the {model} has the shape [{shown}], and "
            f"{len(columns)} columns are to go into it. Name as many columns as it takes, in its "
            "order, and export it for any number of rows."
        )
    return _Input(name=declared.name, type=declared.type, columns=columns, flat=len(shape) == 1)


def _width(declared: Any) -> int | None:
    """Return the number of columns of an input; None if the model leaves it open."""
    shape = [*declared.shape, 1] if len(declared.shape) == 1 else list(declared.shape)
    return shape[1] if len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 0 else None


# --- outputs --------------------------------------------------------------------------------------


def _choose_output(outputs: Sequence[Any], wanted: str | None, *, scores: bool, model: str) -> Any:
    """Return the named output, or the only one that fits."""
    known = ", ".join(f"{each.name!r} ({each.type})" for each in outputs)
    fitting = [each for each in outputs if each.type.startswith(_SCORES) is scores]
    if wanted is None and len(fitting) == 1:
        return fitting[0]
    if wanted is None:
        kind = "scores" if scores else "labels"
        found = "several outputs" if fitting else "no output"
        remedy = "Name the one to read (output)."
        if not fitting and not scores:
            remedy = "Declare a threshold, to make decisions of its scores."
        raise DecisionError(
            f"The {model} has {found} that could be {kind}; its outputs are {known}. {remedy}"
        )
    named = next((each for each in outputs if each.name == wanted), None)
    if named is None:
        hint = suggest(wanted, [each.name for each in outputs])
        raise DecisionError(f"The {model} has no output {wanted!r}.{hint} Its outputs are {known}.")
    if named not in fitting:
        given, expected = ("labels", "scores") if scores else ("scores", "decisions")
        remedy = "Leave the threshold out" if scores else "Declare a threshold"
        raise DecisionError(
            f"Output {wanted!r} of the {model} gives {given} (type {named.type}), not {expected}. "
            f"{remedy}, or name another output."
        )
    return named


def _check_class(output: Any, score_of: Any, *, model: str) -> None:
    """Check that the class of the score is named, as far as it is declared."""
    where = f"Output {output.name!r} of the {model}"
    shape = list(output.shape)
    if output.type.startswith("seq(map("):
        if score_of is None:
            raise DecisionError(
                f"{where} gives one score for each class. Name the class that the threshold is "
                "about (score_of), and which side of it is favourable."
            )
    elif len(shape) == 2 and shape[1] != 1:
        _check_position(score_of, shape[1] if isinstance(shape[1], int) else None, where)
    elif score_of is not None:
        raise DecisionError(
            f"{where} gives one score per row, which is not the score of a class. Leave score_of "
            "out."
        )


def _check_position(score_of: Any, width: int | None, where: str) -> None:
    fits = type(score_of) is int and score_of >= 0 and (width is None or score_of < width)
    if not fits:
        among = "" if width is None else f" below {width}"
        raise DecisionError(
            f"{where} gives a score for each class, and does not name the classes. Give the "
            f"position of the class that the threshold is about, a whole number{among} counted "
            "from 0 (score_of), and which side of it is favourable."
        )
