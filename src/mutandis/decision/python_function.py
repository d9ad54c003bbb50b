"""A function named as ``module:function``: found by Python's own import, from a folder or not."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutandis.decision.adapters import FunctionMaker, as_decision_maker
from mutandis.decision.model_file import ModelFile, read_model_file
from mutandis.decision.models import ModelMaker
from mutandis.decision.selection import read_columns
from mutandis.errors import DecisionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from mutandis.decision.maker import DecisionMaker

__all__ = ["load_function", "searched"]


def load_function(
    reference: str, *, folder: str | Path | None = None, columns: Iterable[str] | None = None
) -> DecisionMaker:
    """Import a decision maker: a function of a table, or an object that predicts or decides.

    Importing a module runs it, and so does asking the function: name only code that you trust.

    Parameters
    ----------
    reference
        ``module:function``, as in ``bank.credit:decide``.
    folder
        Where modules are looked for first, while this one is imported and not any longer.
    columns
        The columns that the function is shown. Default: the whole table.

    Examples
    --------
    >>> load_function("bank.credit.decide")
    Traceback (most recent call last):
    mutandis.errors.DecisionError: 'bank.credit.decide' is no reference to a function. Write
    module:function, as in bank.credit:decide.
    >>> load_function("operator:truth").describe()["function"]
    'operator:truth'
    """
    module_name, name = _parts(reference)
    module = _imported(module_name, None if folder is None else Path(folder))
    found = _member(module, name, reference)
    maker = as_decision_maker(found)
    file = _source_of(module)
    if isinstance(maker, FunctionMaker):
        return FunctionMaker(maker.function, read_columns(columns), reference, file)
    if isinstance(maker, ModelMaker):
        return ModelMaker(maker.model, read_columns(columns), file, "python")
    return maker


def _parts(reference: str) -> tuple[str, str]:
    module, colon, name = reference.partition(":")
    names = [*module.split("."), name]
    if not colon or not all(part.isidentifier() for part in names):
        raise DecisionError(
            f"{reference!r} is no reference to a function. Write module:function, as in "
            "bank.credit:decide."
        )
    return module, name


@contextmanager
def searched(folder: Path | None) -> Iterator[None]:
    """Look for modules in a folder first, for as long as the block runs."""
    if folder is None:
        yield
        return
    place = str(folder.resolve())
    sys.path.insert(0, place)
    importlib.invalidate_caches()  # the folder may be younger than what Python remembers of it
    try:
        yield
    finally:
        if place in sys.path:
            sys.path.remove(place)


def _imported(name: str, folder: Path | None) -> ModuleType:
    _refuse_namesake(name.partition(".")[0], folder)
    try:
        with searched(folder):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        looked = "" if folder is None else " in the folder of the settings and"
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise DecisionError(
                f"The module {name!r} needs a module {error.name!r}, which is not there. Install "
                "it beside mutandis."
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
    """Refuse a module of the folder that Python would mistake for one that it already has."""
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


def _member(module: ModuleType, name: str, reference: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        known = [each for each in vars(module) if not each.startswith("_")]
        close = get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise DecisionError(
            f"The module {module.__name__!r} has no function {name!r}.{hint} It was named as "
            f"{reference!r}."
        ) from None


def _source_of(module: ModuleType) -> ModelFile | None:
    """Hash the file that a module was read from; there is none behind what is built in."""
    place = getattr(module, "__file__", None)
    return None if place is None else read_model_file(place, what="module")[1]
