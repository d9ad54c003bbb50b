"""Models as decision makers: functions of modules, and skops, pickle and ONNX files.

Extras: ``onnx``, ``skops`` and ``sklearn``, or ``models`` for all three.

Importing a module and opening a pickle run code, and so may the types of a skops file that are not
known to be harmless. Each requires `trust_code`, which the caller can set and no file can. The
bytes that are hashed for the record are the bytes that are loaded.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutandis.decision.maker import Made, read_columns
from mutandis.decision.model import FunctionMaker, ModelFile, ModelMaker, as_decision_maker
from mutandis.errors import DecisionError, listed, shown, suggest
from mutandis.limits import explain_limit, limit, read_regular, unpacked_bytes
from mutandis.rooms.models.onnx import load_onnx, make_onnx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

    from mutandis.decision.maker import DecisionContext, DecisionMaker

__all__ = [
    "load_function",
    "load_onnx",
    "load_pickle",
    "load_skops",
    "make_onnx",
    "make_pickle",
    "make_python",
    "make_skops",
]

_BYTES = 1_000_000_000
# the description of the model in a skops file; 100 trees of 1,000 nodes take 100 kilobytes
_SCHEMA = "schema.json"
_SCHEMA_BYTES = 50_000_000


# --- kinds of an audit file -----------------------------------------------------------------------


def make_python(settings: dict[str, Any], context: DecisionContext) -> Made:
    """Import ``python: module:function``."""
    reference = settings["python"]
    _require_trust(
        f"The decision is Python code, {shown(reference)}, and was not imported: importing a "
        "module runs it.",
        trust_code=context.trust_code,
    )
    maker = load_function(reference, folder=context.folder, columns=settings.get("columns"))
    own = context.folder / f"{reference.partition(':')[0].replace('.', '/')}.py"
    return Made(maker=_limited(maker, settings, context), files=(own,) if own.is_file() else ())


def make_skops(settings: dict[str, Any], context: DecisionContext) -> Made:
    """Load ``skops: file``."""
    return _make_file(settings, context, "skops", load_skops)


def make_pickle(settings: dict[str, Any], context: DecisionContext) -> Made:
    """Load ``pickle: file``."""
    return _make_file(settings, context, "pickle", load_pickle)


def _make_file(
    settings: dict[str, Any], context: DecisionContext, key: str, load: Callable[..., DecisionMaker]
) -> Made:
    path, columns = context.folder / settings[key], settings.get("columns")
    trust = context.trust_code
    maker = load(path, trust_code=trust, columns=columns, folder=context.folder)
    return Made(maker=_limited(maker, settings, context), files=(path,))


def _limited(
    maker: DecisionMaker, settings: dict[str, Any], context: DecisionContext
) -> DecisionMaker:
    """Limit a function to the declared attributes, unless columns are listed."""
    if isinstance(maker, FunctionMaker) and "columns" not in settings:
        return replace(maker, columns=context.columns)
    return maker


# --- loading --------------------------------------------------------------------------------------


def load_function(
    reference: str, *, folder: str | Path | None = None, columns: Iterable[str] | None = None
) -> DecisionMaker:
    """Import ``module:function``: a function of a table, or an object that decides."""
    module_name, colon, name = reference.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module_name.split("."), name]):
        raise DecisionError(
            f"{reference!r} is not a reference to a function. Write module:function, as in "
            "bank.credit:decide."
        )
    module = _import(module_name, None if folder is None else Path(folder))
    if not hasattr(module, name):
        known = [each for each in vars(module) if not each.startswith("_")]
        raise DecisionError(
            f"The module {module_name!r} has no function {name!r}.{suggest(name, known)} "
            f"It was named as {reference!r}."
        )
    maker = as_decision_maker(getattr(module, name))
    place = getattr(module, "__file__", None)  # none for built-in modules
    file = None if place is None else read_model_file(place, what="module")[1]
    if isinstance(maker, FunctionMaker):
        return FunctionMaker(maker.function, read_columns(columns), reference, file)
    if isinstance(maker, ModelMaker):
        return ModelMaker(maker.model, read_columns(columns), file, "python")
    return maker


def load_skops(
    path: str | Path,
    *,
    trust_code: bool = False,
    columns: Iterable[str] | None = None,
    folder: Path | None = None,
) -> ModelMaker:
    """Load a fitted model from a skops file.

    Parameters
    ----------
    path
        The file.
    trust_code
        Allow types other than those of scikit-learn and NumPy that skops knows to be harmless.
        They can run any program.
    columns
        What the model was fitted on, if it does not store their names.
    folder
        Where the modules of such types are looked for first, while the file is loaded.

    Raises
    ------
    DecisionError
        The file holds types that are not trusted (the message lists them), cannot be read, or the
        library is missing.
    """
    try:
        import skops.io
    except ModuleNotFoundError:
        raise DecisionError(
            "Models in skops files need the library skops. Install it: "
            "pip install 'mutandis[skops]'."
        ) from None
    content, file = read_model_file(path, what="skops model")
    try:
        _check_unpacked(content, file.name)
        unknown = sorted(skops.io.get_untrusted_types(data=content))
        if unknown:
            _require_trust(
                f"The skops file {file.name!r} holds types that are not known to be harmless, and "
                f"was not loaded: {listed(unknown)}. Making them could run code. Look at what "
                "they are.",
                trust_code=trust_code,
            )
        # only types that are not known can come from the folder
        with _search_first(folder if unknown else None):
            model = skops.io.loads(content, trusted=unknown)
    except DecisionError:
        raise
    except Exception as error:
        raise DecisionError(
            f"{file.name!r} cannot be read as a skops file ({type(error).__name__}). Check that "
            "it was saved with skops.io.dump, and that the libraries of the model are installed "
            "in versions that fit."
        ) from error
    return _model_from_file(model, columns=read_columns(columns), file=file, kind="skops")


def load_pickle(
    path: str | Path,
    *,
    trust_code: bool = False,
    columns: Iterable[str] | None = None,
    folder: Path | None = None,
) -> ModelMaker | FunctionMaker:
    """Load a model from a pickle or joblib file that is trusted like a program.

    Parameters
    ----------
    path
        The file.
    trust_code
        Must be True: opening a pickle runs whatever code its author put into it.
    columns
        What the model was fitted on, if it does not store their names; what a function gets.
    folder
        Where modules are looked for first, while the file is loaded.

    Raises
    ------
    DecisionError
        It is not trusted, and was not opened; or it contains nothing that can decide.
    """
    _require_trust(
        f"{Path(path).name!r} is a pickle file, and was not opened: opening one runs whatever "
        "code its author put into it. Save the model as skops or ONNX instead.",
        trust_code=trust_code,
    )
    try:
        import joblib
    except ModuleNotFoundError:
        raise DecisionError(
            "Pickled models need the library joblib. Install it: pip install 'mutandis[sklearn]'."
        ) from None
    content, file = read_model_file(path, what="pickled model")
    try:
        with _search_first(folder):
            # joblib reads plain pickles too
            found = joblib.load(io.BytesIO(content))
    except Exception as error:
        raise DecisionError(
            f"{file.name!r} cannot be loaded ({type(error).__name__}). Check that it was saved by "
            "pickle or joblib, and that the libraries of the model are installed in versions that "
            "fit."
        ) from error
    chosen = read_columns(columns)
    if callable(found) and not isinstance(found, type) and not hasattr(found, "predict"):
        return FunctionMaker(found, chosen, None, file)
    return _model_from_file(found, columns=chosen, file=file, kind="pickle")


def read_model_file(path: str | Path, *, what: str) -> tuple[bytes, ModelFile]:
    """Read a file whole, and hash it; error messages call it `what`."""
    path = Path(path)
    try:
        content = read_regular(path, most=_BYTES)
    except FileNotFoundError:
        raise DecisionError(
            f"There is no file {path.name!r} where the {what} should be. Check the path; it is "
            "read relative to the folder of the settings."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not a path"
        raise DecisionError(
            f"The {what} {path.name!r} cannot be opened: {reason}. Check the path."
        ) from None
    if not content:
        raise DecisionError(f"The {what} {path.name!r} is empty. Check that it was saved.")
    return content, ModelFile(name=path.name, sha256=hashlib.sha256(content).hexdigest())


def _require_trust(refused: str, *, trust_code: bool) -> None:
    if trust_code is not True:
        raise DecisionError(
            f"{refused} If you trust it as you trust a program that you run, say so: --trust-code "
            "on the command line, trust_code=True in Python."
        )


@contextmanager
def _search_first(folder: Path | None) -> Iterator[None]:
    """Look for modules in a folder first while the block runs."""
    if folder is None:
        yield
        return
    place = str(folder.resolve())
    sys.path.insert(0, place)
    importlib.invalidate_caches()  # the folder may be younger than Python's cache of it
    try:
        yield
    finally:
        if place in sys.path:
            sys.path.remove(place)


def _import(name: str, folder: Path | None) -> ModuleType:
    _refuse_namesake(name.partition(".")[0], folder)
    try:
        with _search_first(folder):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        looked = "" if folder is None else " in the folder of the settings and"
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise DecisionError(
                f"The module {name!r} needs a module {error.name!r}, which is not installed. "
                "Install it in the same environment as mutandis."
            ) from error
        raise DecisionError(
            f"There is no module {name!r}. It is looked for{looked} among the installed packages. "
            "Check the spelling, and that the file ends in .py."
        ) from None
    except (Exception, SystemExit) as error:
        raise DecisionError(
            f"The module {name!r} stopped with {type(error).__name__} while it was imported. "
            "Import it yourself to see why."
        ) from error


def _refuse_namesake(top: str, folder: Path | None) -> None:
    """Refuse a module of the folder that Python would confuse with one that is already loaded."""
    if folder is None or top not in sys.modules:
        return
    own = [folder / f"{top}.py", folder / top / "__init__.py"]
    there = {path.resolve() for path in own if path.is_file()}
    loaded = getattr(sys.modules[top], "__file__", None)
    if there and (loaded is None or Path(loaded).resolve() not in there):
        raise DecisionError(
            f"Another module {top!r} is already loaded, so the one in the folder of the settings "
            "cannot be. Give its file another name."
        )


def _check_unpacked(content: bytes, name: str) -> None:
    """Refuse a file that would fill the memory when it is unpacked."""
    sizes = unpacked_bytes(io.BytesIO(content))
    for found, most, what in (
        (sum(sizes.values()), _BYTES, "bytes"),
        (sizes.get(_SCHEMA, 0), _SCHEMA_BYTES, f"bytes of {_SCHEMA}"),
    ):
        if found > limit(most):
            raise DecisionError(
                f"The skops file {name!r} has {found:,} {what} when it is unpacked, and was not "
                f"loaded. {explain_limit(most, what)}"
            )


def _model_from_file(
    model: Any, *, columns: tuple[str, ...], file: ModelFile, kind: str
) -> ModelMaker:
    """Wrap a loaded model; without known columns, it would get the whole table."""
    maker = ModelMaker(model, columns, file, kind)
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise DecisionError(
            f"{file.name!r} holds {type(model).__name__}, which has no predict method. Save the "
            "fitted model itself."
        )
    if not maker.names:
        raise DecisionError(
            f"{maker.label} does not store the names of the columns that it was fitted on. Name "
            "them in that order: columns: [salary, balance]."
        )
    return maker
