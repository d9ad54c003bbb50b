"""Plug-ins by name: distances, decision makers, table readers and rooms.

A room is an optional part of mutandis, which an extra installs. The core imports none of them: it
looks up what it needs here. A name leads to ``module:attribute``, which is imported when the name
is looked up. Other packages add names as entry points in the group ``mutandis``::

    [project.entry-points.mutandis]
    "distance.coarse" = "my_package:COARSE"

and programs by `register`. Built-in names cannot be replaced. What each kind of plug-in has to
provide is listed in docs/plugins.md.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from mutandis.errors import SettingsError, listed, shown, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Kind", "find", "is_known", "names", "register"]

Kind = Literal["decision", "distance", "room", "table"]

_GROUP = "mutandis"
_WORDS: Mapping[Kind, str] = {
    "decision": "kind of decision maker",
    "distance": "distance",
    "room": "optional part of mutandis",
    "table": "kind of database",
}
_BUILT_IN: Mapping[Kind, Mapping[str, str]] = {
    "decision": {
        "http": "mutandis.rooms.endpoint:make",
        "onnx": "mutandis.rooms.models:make_onnx",
        "pickle": "mutandis.rooms.models:make_pickle",
        "python": "mutandis.rooms.models:make_python",
        "skops": "mutandis.rooms.models:make_skops",
    },
    "distance": {
        "gower": "mutandis.geometry.distances:GOWER",
        "heom": "mutandis.geometry.distances:HEOM",
        "mahalanobis": "mutandis.geometry.distances:MAHALANOBIS",
        "rank-mahalanobis": "mutandis.geometry.distances:RANK_MAHALANOBIS",
        "thanh": "mutandis.rooms.distances:THANH",
        "hvdm": "mutandis.rooms.distances:HVDM",
        "ivdm": "mutandis.rooms.distances:IVDM",
        "propensity": "mutandis.rooms.distances:PROPENSITY",
        "zhang": "mutandis.rooms.distances:ZHANG",
    },
    "room": {
        "cluster": "mutandis.rooms.cluster",
        "compliance": "mutandis.rooms.compliance",
        "dowhy": "mutandis.rooms.dowhy",
        "endpoint": "mutandis.rooms.endpoint",
        "explorer": "mutandis.rooms.explorer.server",
        "latent": "mutandis.rooms.latent",
        "models": "mutandis.rooms.models",
        "prevention": "mutandis.rooms.prevention",
        "signing": "mutandis.rooms.signing",
    },
    "table": {
        "postgresql": "mutandis.rooms.database:DatabaseQuery",
        "postgres": "mutandis.rooms.database:DatabaseQuery",
        "sqlite": "mutandis.rooms.database:DatabaseQuery",
    },
}
_registered: dict[tuple[Kind, str], str] = {}


def find(kind: Kind, name: str) -> Any:
    """Import the target of a name.

    Raises
    ------
    SettingsError
        The name is not known, or the package that provides it cannot be imported.

    Examples
    --------
    >>> find("decision", "crystal ball")
    Traceback (most recent call last):
    mutandis.errors.SettingsError: 'crystal ball' is not a known kind of decision maker. ...
    """
    target = _BUILT_IN[kind].get(name) or _added(kind).get(name)
    if target is None:
        raise SettingsError(
            f"{shown(name)} is not a known {_WORDS[kind]}.{suggest(name, names(kind))} Known are "
            f"{listed(names(kind))}. Correct the name, or install the package that provides it."
        )
    module, _, attribute = target.partition(":")
    try:
        found = import_module(module)
        return getattr(found, attribute) if attribute else found
    except (ImportError, AttributeError) as error:
        if name in _BUILT_IN[kind]:
            raise
        raise SettingsError(
            f"The {_WORDS[kind]} {shown(name)} cannot be imported from {shown(target)} "
            f"({type(error).__name__}). Reinstall the package that provides it."
        ) from error


def is_known(kind: Kind, name: str) -> bool:
    """Return whether a name is built in, registered or installed."""
    return name in _BUILT_IN[kind] or name in _added(kind)


def names(kind: Kind) -> tuple[str, ...]:
    """Return the known names: built-in ones first, in their order."""
    return tuple({**_BUILT_IN[kind], **_added(kind)})


def register(kind: Kind, name: str, target: str) -> None:
    """Add a name to this process; `target` is ``module:attribute``."""
    if name in _BUILT_IN[kind]:
        raise SettingsError(f"The {_WORDS[kind]} {shown(name)} is built in. Choose another name.")
    _registered[kind, name] = target


def _added(kind: Kind) -> dict[str, str]:
    own = {name: target for (of, name), target in _registered.items() if of == kind}
    return {**_installed(kind), **own}


@cache
def _installed(kind: Kind) -> Mapping[str, str]:
    from importlib.metadata import entry_points

    dotted = [(*each.name.partition("."), each.value) for each in entry_points(group=_GROUP)]
    return {name: value for of, _, name, value in sorted(dotted) if of == kind and name}
