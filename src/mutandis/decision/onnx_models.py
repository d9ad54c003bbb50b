"""Models in ONNX files, asked through onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.decision.maker import DescribedMaker
from mutandis.decision.model_file import ModelFile, read_model_file
from mutandis.decision.onnx_inputs import Input, assign_columns
from mutandis.decision.onnx_outputs import choose_output, one_score
from mutandis.decision.selection import opened_columns
from mutandis.errors import DecisionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["OnnxMaker", "load_onnx"]

# rows asked at once: enough to be fast, few enough that a deep model's layers fit into memory
_ROWS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxMaker(DescribedMaker):
    """A model in an ONNX file; build one with `load_onnx`.

    Parameters
    ----------
    file
        Which file it came from.
    inputs
        What the model is fed: each input, and the columns that go into it.
    output
        The output that is read.
    scores
        Whether the output is a score for a threshold; otherwise it is a decision.
    score_of
        The class that the score speaks for, where the output has several.
    session
        The model, ready to be asked.
    """

    file: ModelFile
    inputs: tuple[Input, ...]
    output: str
    scores: bool
    score_of: Any
    session: Any = field(repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the model takes."""
        return tuple(dict.fromkeys(name for each in self.inputs for name in each.columns))

    @property
    def label(self) -> str:
        """What error messages call it."""
        return f"ONNX model {self.file.name!r}"

    def decide(self, frame: Any, /) -> NDArray[Any]:
        """Give the model's label for each row, or its score."""
        opened = opened_columns(frame, self.names)
        fed = {each.name: each.fed(opened, model=self.label) for each in self.inputs}
        rows = len(opened)
        size = next((each.rows for each in self.inputs if each.rows), None)
        answers = [self._asked(part) for part in _parts(fed, rows=rows, size=size)]
        if not answers:
            return np.empty(0, dtype=np.object_)
        joined = np.concatenate(answers)
        # the last part of a model with a fixed number of rows was filled up
        return joined if size is None else joined[:rows]

    def _asked(self, fed: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        (answer,) = self.session.run([self.output], dict(fed))
        if not self.scores:
            return np.asarray(answer)
        return one_score(answer, score_of=self.score_of, output=self.output, model=self.label)

    def scoring(self) -> OnnxMaker:
        """Give the model itself, if it was loaded for its scores."""
        if self.scores:
            return self
        raise DecisionError(
            f"The {self.label} was loaded for its decisions. Load it with scores=True to set a "
            "threshold."
        )

    def describe(self) -> dict[str, Any]:
        """Describe the file, and what goes in and comes out."""
        return {
            "kind": "onnx",
            **self.file.describe(),
            "columns": list(self.names),
            "output": self.output,
            **({"score_of": self.score_of} if self.scores else {}),
        }


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
        model with an input for each column, the columns to feed. A mapping: the columns of each
        input by the input's name. Default: each input is the column of the same name.
    output
        The output to read. Default: the only one that can be meant.
    scores
        Read scores, for a threshold (see `Thresholded`), instead of decisions.
    score_of
        The class that the score speaks for, where the output has several: its name where the
        output has names (ZipMap), else its position, counted from 0.

    Raises
    ------
    DecisionError
        The file cannot be read, columns and inputs do not fit, or onnxruntime is missing.
    """
    runtime = _library()
    content, file = read_model_file(path, what="ONNX model")
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # errors arrive as exceptions; its log may quote data
    try:
        # from bytes: what was hashed is what runs, and no other file is opened on its behalf
        session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise DecisionError(
            f"{file.name!r} cannot be loaded as an ONNX model ({type(error).__name__}). Check that "
            "it is one, that it keeps its weights in the same file, and that this version of "
            "onnxruntime knows its operators."
        ) from error
    label = f"ONNX model {file.name!r}"
    offered = {each.name: (each.type, list(each.shape)) for each in session.get_outputs()}
    chosen = choose_output(offered, output, scores=scores, score_of=score_of, model=label)
    return OnnxMaker(
        file=file,
        inputs=assign_columns(session.get_inputs(), columns, model=label),
        output=chosen,
        scores=scores,
        score_of=score_of,
        session=session,
    )


def _library() -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise DecisionError(
            "ONNX models need the library onnxruntime. Install it: pip install 'mutandis[onnx]'."
        ) from None
    return onnxruntime


def _parts(
    fed: Mapping[str, NDArray[Any]], *, rows: int, size: int | None
) -> Iterator[dict[str, NDArray[Any]]]:
    """Cut the rows into parts; those of a model with a fixed number of rows are all that long."""
    step = size or _ROWS
    for start in range(0, rows, step):
        part = {name: values[start : start + step] for name, values in fed.items()}
        lacking = step - min(step, rows - start) if size else 0
        if lacking:
            part = {
                name: np.concatenate([values, np.repeat(values[-1:], lacking, axis=0)])
                for name, values in part.items()
            }
        yield part
