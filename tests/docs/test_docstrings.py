"""Names that users meet are documented: numpydoc, every argument, and an example for each name."""

from __future__ import annotations

import enum
import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = sorted(set(mm.__all__) - {"__version__", "datasets"})
# made by the library, never by its users
RESULTS = {"Audit", "Case", "Diagnosis", "Prevention", "ShamAudits"}
DATASETS = sorted(mm.datasets.__all__)


def sections(thing: Any) -> dict[str, str]:
    """Read a numpydoc docstring: its sections by their headings, the summary as ""."""
    text = inspect.getdoc(thing) or ""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$\n?", text, flags=re.MULTILINE)
    return {"": parts[0].strip(), **dict(zip(parts[1::2], parts[2::2], strict=True))}


def described(thing: Any) -> set[str]:
    """Give the names that the section Parameters (or Attributes) describes."""
    found = sections(thing)
    text = found.get("Parameters", "") + found.get("Attributes", "")
    heads = re.findall(r"^(\*{0,2}\w[^\n:]*?)(?: :.*)?$", text, flags=re.MULTILINE)
    return {name.strip(" *") for head in heads for name in head.split(",")}


def arguments(function: Any) -> set[str]:
    return {
        name
        for name in inspect.signature(function).parameters
        if name not in {"self", "cls"} and not name.startswith("_")
    }


def constructed_by(cls: type) -> set[str]:
    """Give the arguments of a class that users call."""
    if issubclass(cls, enum.Enum | Exception) or cls.__name__ in RESULTS:
        return set()
    return arguments(cls)


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Give the public methods and properties that a class, or one of ours above it, defines."""
    for name in dir(cls):
        owner = next((each for each in cls.__mro__ if name in vars(each)), None)
        if name.startswith("_") or owner is None or not owner.__module__.startswith("mutandis"):
            continue
        value = inspect.getattr_static(cls, name)
        if isinstance(value, property):
            yield name, value
        elif isinstance(value, classmethod | staticmethod) or inspect.isfunction(value):
            yield name, getattr(cls, name)


def value_of(name: str) -> Any:
    return getattr(mm, name) if hasattr(mm, name) else getattr(mm.datasets, name)


@pytest.mark.parametrize("name", [*NAMES, *DATASETS])
def test_a_public_name_has_a_docstring_with_an_example(name: str) -> None:
    found = sections(value_of(name))
    assert found[""], f"{name} has no docstring"
    assert ">>>" in found.get("Examples", ""), f"{name} has no example"


def test_audit_takes_what_plan_takes() -> None:
    taken = inspect.signature(mm.audit).parameters
    assert list(taken.values())[:-1] == list(inspect.signature(mm.plan).parameters.values())
    assert {"cluster"} == taken.keys() & described(mm.audit)
    assert "What `plan` takes" in sections(mm.audit)["Parameters"]


@pytest.mark.parametrize("name", [*(each for each in NAMES if each != "audit"), *DATASETS])
def test_every_argument_is_described(name: str) -> None:
    value = value_of(name)
    asked = constructed_by(value) if isinstance(value, type) else arguments(value)
    assert asked <= described(value), f"{name} does not describe {sorted(asked - described(value))}"


@pytest.mark.parametrize("name", [each for each in NAMES if isinstance(value_of(each), type)])
def test_every_public_method_is_described(name: str) -> None:
    missing = [each for each, value in methods(value_of(name)) if not sections(value)[""]]
    assert missing == []
