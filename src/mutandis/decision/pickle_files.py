"""Models in pickle and joblib files, which run code when they are opened: only on request."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutandis.decision.adapters import FunctionMaker
from mutandis.decision.model_file import read_model_file
from mutandis.decision.models import model_from_file
from mutandis.decision.python_function import searched
from mutandis.decision.selection import read_columns
from mutandis.errors import DecisionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mutandis.decision.models import ModelMaker

__all__ = ["load_pickle"]


def load_pickle(
    path: str | Path,
    *,
    trust_pickle: bool = False,
    columns: Iterable[str] | None = None,
    folder: Path | None = None,
) -> ModelMaker | FunctionMaker:
    """Load a model from a pickle or joblib file, if its maker is trusted as far as that.

    Parameters
    ----------
    path
        The file.
    trust_pickle
        Must be True: opening a pickle runs whatever code its maker has put into it.
    columns
        What the model was fitted on, if it does not remember; what a function is shown.
    folder
        Where modules are looked for first, while the file is loaded.

    Raises
    ------
    DecisionError
        It is not trusted, and was not opened; or it holds nothing that can decide.

    Examples
    --------
    >>> load_pickle("model.pkl")
    Traceback (most recent call last):
    mutandis.errors.DecisionError: 'model.pkl' is a pickle file, and was not opened: opening one
    runs whatever code its maker has put into it. ...
    """
    if trust_pickle is not True:
        raise DecisionError(
            f"{Path(path).name!r} is a pickle file, and was not opened: opening one runs whatever "
            "code its maker has put into it. Save the model as skops or ONNX instead. If you trust "
            "the file as you trust a program that you run, say so: --trust-pickle on the command "
            "line, trust_pickle=True in Python."
        )
    content, file = read_model_file(path, what="pickled model")
    try:
        with searched(folder):
            found = _unpickled(content)
    except Exception as error:
        raise DecisionError(
            f"{file.name!r} cannot be loaded ({type(error).__name__}). Check that it was saved by "
            "pickle or joblib, and that the libraries of the model are installed in versions that "
            "fit."
        ) from error
    chosen = read_columns(columns)
    if callable(found) and not isinstance(found, type) and not hasattr(found, "predict"):
        return FunctionMaker(found, chosen, None, file)
    return model_from_file(found, columns=chosen, file=file, kind="pickle")


def _unpickled(content: bytes) -> Any:
    """Load with joblib, which reads plain pickles too, or without it."""
    try:
        import joblib
    except ModuleNotFoundError:
        import pickle

        return pickle.loads(content)  # noqa: S301 - the caller has said in so many words to trust it
    return joblib.load(io.BytesIO(content))
