"""Models in skops files: nothing in such a file is run unless its type is trusted."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from mutandis.decision.model_file import read_model_file
from mutandis.decision.models import model_from_file
from mutandis.decision.python_function import searched
from mutandis.decision.selection import read_columns
from mutandis.errors import DecisionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from mutandis.decision.models import ModelMaker

__all__ = ["load_skops"]


def load_skops(
    path: str | Path,
    *,
    trusted: Iterable[str] = (),
    columns: Iterable[str] | None = None,
    folder: Path | None = None,
) -> ModelMaker:
    """Load a fitted model from a skops file.

    Parameters
    ----------
    path
        The file.
    trusted
        The types, beyond those of scikit-learn and NumPy that skops knows to be harmless, that may
        be made from the file. Look at what each of them is before you name it.
    columns
        What the model was fitted on, if it does not remember.
    folder
        Where the modules of trusted types are looked for first, while the file is loaded.

    Raises
    ------
    DecisionError
        The file holds types that are not trusted (the message lists them), cannot be read, or the
        library is missing.
    """
    io = _library()
    content, file = read_model_file(path, what="skops model")
    named = tuple(trusted)
    try:
        unknown = sorted(set(io.get_untrusted_types(data=content)) - set(named))
    except Exception as error:
        raise _unreadable(file.name, error) from error
    if unknown:
        raise _untrusted(file.name, unknown, named)
    try:
        # what is not trusted has nothing to look for in anybody's folder
        with searched(folder if named else None):
            model = io.loads(content, trusted=list(named))
    except Exception as error:
        raise _unreadable(file.name, error) from error
    return model_from_file(model, columns=read_columns(columns), file=file, kind="skops")


def _library() -> Any:
    try:
        import skops.io
    except ModuleNotFoundError:
        raise DecisionError(
            "Models in skops files need the library skops. Install it: "
            "pip install 'mutandis[skops]'."
        ) from None
    return skops.io


def _untrusted(name: str, unknown: Sequence[str], named: Sequence[str]) -> DecisionError:
    close = [
        f"{wrong!r} looks like {found[0]!r}"
        for wrong in named
        if wrong not in unknown and (found := get_close_matches(wrong, unknown, n=1, cutoff=0.8))
    ]
    hint = f" (Among those that are named, {'; '.join(close)}.)" if close else ""
    return DecisionError(
        f"The skops file {name!r} holds types that are not known to be harmless: "
        f"{', '.join(unknown)}.{hint} Making them could run code. If you know what they are and "
        "where the file comes from, name them: trusted: [" + ", ".join(unknown) + "]."
    )


def _unreadable(name: str, error: Exception) -> DecisionError:
    return DecisionError(
        f"{name!r} cannot be read as a skops file ({type(error).__name__}). Check that it was "
        "saved with skops.io.dump, and that the libraries of the model are installed in versions "
        "that fit."
    )
