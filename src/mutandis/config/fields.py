"""The types of settings, and their errors.

Pydantic checks settings; what it finds is translated here, once: what was found, what is allowed.
In Python an error names the keyword argument (``alpha=2 is not allowed``), in a file the line and
the key (``audit.yaml, line 3, at 'alpha': 2 is not allowed``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import wraps
from typing import Annotated, Any, ClassVar, TypeVar, cast, dataclass_transform

import numpy as np
import pydantic
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import ArgsKwargs, PydanticCustomError

from mutandis.config.yaml import Document, Steps, write_flow
from mutandis.errors import MutandisError, PlanError, SettingsError, listed, shown, suggest

__all__ = [
    "At",
    "FileSection",
    "Flag",
    "Name",
    "Number",
    "Section",
    "Size",
    "Value",
    "Values",
    "Whole",
    "allowed",
    "check",
    "check_keys",
    "explain",
    "fault",
    "given",
    "inside",
    "one_of",
    "placed",
    "section",
    "several",
]

T = TypeVar("T")


class At(ValueError):  # noqa: N818 - carries an error to where lines are known
    """An error of ours about a value further inside the one that is checked."""

    def __init__(self, path: Steps, error: MutandisError) -> None:
        super().__init__(str(error))
        self.path = path
        self.error = error


def fault(message: str, *path: str | int) -> At:
    """Make the error about a section of a file, or about a value inside it."""
    return At(path, SettingsError(message))


@contextmanager
def inside(*path: str | int) -> Iterator[None]:
    """Note where inside a section an error of ours was raised."""
    try:
        yield
    except MutandisError as error:
        raise At(path, error) from None


@contextmanager
def placed(document: Document | None, *path: str | int) -> Iterator[None]:
    """Translate what a section is refused for, and name the line if it is from a file."""
    try:
        yield
    except ValidationError as error:
        raise explain(error, document) from None
    except At as error:
        if document is None:
            raise error.error from None
        raise _at(document, steps((*path, *error.path), document.data), error.error) from None
    except MutandisError as error:
        if document is None:
            raise
        raise _at(document, path, error) from error


def _at(document: Document, path: Steps, error: MutandisError) -> MutandisError:
    kind = SettingsError if type(error) is PlanError else type(error)
    return kind(f"{document.place(path)}: {error}")


def allowed(wanted: str, example: Any = None) -> WrapValidator:
    """Describe what is allowed in one phrase, whatever error the type reports."""

    def read(value: Any, check: Callable[[Any], Any]) -> Any:
        try:
            return check(value)
        except ValidationError as error:
            if any(map(_knows_better, error.errors(include_url=False))):
                raise
            raise _refuse(wanted, example) from None

    return WrapValidator(read)


def _knows_better(detail: Any) -> bool:
    """Whether an error is one of ours, or about an item of a list."""
    return detail["type"] == "value_error" or bool(detail["loc"] and detail["type"] != "missing")


def one_of(names: Callable[[], Iterable[str]]) -> AfterValidator:
    """Allow the names that are known when a value is checked."""

    def read(value: Any) -> Any:
        if value in (known := tuple(names())):
            return value
        raise PydanticCustomError("choice", "{expected}", {"expected": ", ".join(map(repr, known))})

    return AfterValidator(read)


def _refuse(wanted: str, example: Any = None) -> PydanticCustomError:
    return PydanticCustomError("allowed", "{wanted}", {"wanted": wanted, "example": example})


# --- types ----------------------------------------------------------------------------------------


def _name(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value
    raise _refuse("a name; decimals, null, true and false are names only in quotes")


def _value(value: Any) -> Any:
    value = _plain(value)
    if isinstance(value, str | bool | int | float):
        return value
    raise _refuse("a text, a number or a boolean; put 'null' in quotes")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _values(value: Any) -> Any:
    return [_value(each) for each in value] if isinstance(value, list) else _value(value)


_SCALAR: dict[str, Any] = {"type": ["string", "number", "boolean"]}

Name = Annotated[str, BeforeValidator(_name), WithJsonSchema({"type": ["string", "number"]})]
"""A name: ``2020`` is the name '2020'."""

Value = Annotated[Any, BeforeValidator(_value), WithJsonSchema(_SCALAR)]
"""A text, a number or a boolean."""

Values = Annotated[
    Any,
    BeforeValidator(_values),
    WithJsonSchema({"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}),
]
"""One value, or a list of them."""

Flag = Annotated[bool, Field(strict=True)]
Whole = Annotated[int, BeforeValidator(_plain), Field(strict=True)]
Size = Annotated[Whole, Field(ge=1), allowed("an integer of at least 1")]
Number = Annotated[float, BeforeValidator(_plain), Field(strict=True, allow_inf_nan=False)]


# --- sections -------------------------------------------------------------------------------------

_CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=True, use_attribute_docstrings=True)


def check_keys(data: Any, known: Mapping[str, bool], what: str, maker: str) -> None:
    """Refuse what is no mapping, an unknown key, and a required key that is missing."""
    if not isinstance(data, Mapping):
        raise PydanticCustomError("mapping", "{what}", {"what": what, "maker": maker})
    for key in data:
        if key not in known:
            raise fault(
                f"{shown(key)} is not a key of {what}.{suggest(key, known)} "
                f"It can have {listed(known, near=key)}.",
                key,
            )
    for key, required in known.items():
        if required and key not in data:
            raise fault(f"{shown(key)} is missing. Without it this is not {what}.")


class FileSection(BaseModel):
    """A mapping in a file; `what` is what messages call it."""

    model_config = ConfigDict(**_CONFIG, strict=True, frozen=True)
    what: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _check(cls, data: Any) -> Any:
        cls.check(data)
        return data

    @classmethod
    def check(cls, written: Any) -> None:
        """Refuse what is no mapping, an unknown key, and a required key that is missing."""
        known = {key: each.is_required() for key, each in cls.model_fields.items()}
        check_keys(written, known, cls.what, cls.__name__.lstrip("_"))


def given(section: BaseModel) -> dict[str, Any]:
    """Return what is written in a section, by key; its defaults are left out."""
    return {key: getattr(section, key) for key in section.model_fields_set}


class Section:
    """Settings that are a section of a file and a value object of Python."""

    __slots__ = ()
    what: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _check(cls, data: Any) -> Any:
        known = {each.name: each.default is MISSING for each in fields(cast("Any", cls))}
        if isinstance(data, ArgsKwargs):
            check_keys(data.kwargs or {}, dict.fromkeys(known, False), cls.__name__, "")
        elif not isinstance(data, cls):
            what = cls.what or f"the section {cls.__name__.lower()!r}"
            check_keys(data, known, what, cls.__name__)
        return data


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
def section(kind: type[T]) -> type[T]:
    """Make a frozen value object whose values are checked, with errors of ours."""
    made: Any = pydantic_dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)(kind)
    checked = made.__init__

    @wraps(checked)
    def init(self: Any, **values: Any) -> None:
        try:
            checked(self, **values)
        except ValidationError as error:
            raise explain(error) from None

    made.__init__ = init
    return cast("type[T]", made)


def check(name: str, kind: Any, value: Any) -> Any:
    """Check one argument of a function.

    Examples
    --------
    >>> check("threads", Size, 0)
    Traceback (most recent call last):
    mutandis.errors.PlanError: threads=0 is not allowed. Give an integer of at least 1.
    """
    try:
        return pydantic.TypeAdapter(dict[str, kind]).validate_python({name: value})[name]
    except ValidationError as error:
        raise explain(error) from None


# --- errors ---------------------------------------------------------------------------------------

_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a text",
    "list_type": "a list, in square brackets",
    "tuple_type": "a list, in square brackets",
    "greater_than_equal": "a number of at least {ge:g}",
    "greater_than": "a number above {gt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "dict_type": "a mapping, written as 'key: value' lines or {{key: value, …}}",
    "mapping": "{what} as a mapping, written as 'key: value' lines or {{key: value, …}}",
}


def explain(error: ValidationError, document: Document | None = None) -> MutandisError:
    """Translate the first error: of a file the first in it, otherwise that of the first argument.

    Examples
    --------
    >>> try:
    ...     pydantic.TypeAdapter(dict[str, Whole]).validate_python({"ks": 1, "seed": "x"})
    ... except ValidationError as error:
    ...     print(explain(error))
    ...     print(explain(error, Document(data={"seed": "x"}, lines={(): 1, ("seed",): 4})))
    seed='x' is not allowed. Give a whole number.
    Line 4, at 'seed': 'x' is not allowed. Give a whole number.
    """
    problems = error.errors(include_url=False)
    if document is None:
        detail = problems[0]
        names = [each for each in detail["loc"] if isinstance(each, str)]
        subject = f"{names[-1]}={shown(detail['input'])}" if names else ""
        return _inner(detail) or PlanError(_sentence(detail, subject, python=True))
    paths = [steps(_path(detail), document.data) for detail in problems]
    places = zip(paths, problems, strict=True)
    path, detail = min(places, key=lambda problem: document.line(problem[0]))
    inner = _inner(detail)
    if inner is not None:
        return _at(document, path, inner)
    return document.error(path, _sentence(detail, _found(document.value(path))))


def _inner(detail: Any) -> MutandisError | None:
    """Return the error of ours that a check raised, if one did."""
    error = detail.get("ctx", {}).get("error")
    error = error.error if isinstance(error, At) else error
    return error if isinstance(error, MutandisError) else None


def steps(path: Steps, data: Any) -> Steps:
    """Return the steps of a path that are in a file: others are kinds, and implied keys."""
    found: list[str | int] = []
    for step in path:
        inside: Container[Any] = data if isinstance(data, dict) else ()
        inside = range(len(data)) if isinstance(data, list) else inside
        if step in inside:
            found.append(step)
            data = data[step]
    return tuple(found)


def _path(detail: Any) -> Steps:
    error = detail.get("ctx", {}).get("error")
    return (*detail["loc"], *(error.path if isinstance(error, At) else ()))


def _sentence(detail: Any, subject: str, *, python: bool = False) -> str:
    context = detail.get("ctx", {})
    if "expected" in context:
        choices = re.findall("'([^']*)'", context["expected"])
        known = ", ".join(each if re.search(r"\w", each) else repr(each) for each in choices)
        return f"{subject} is unknown.{suggest(detail['input'], choices)} Allowed: {known}."
    wanted, example = context.get("wanted"), context.get("example")
    if wanted is None:
        wanted = _WANTED.get(detail["type"], "another value").format(**context)
    if python and detail["type"] == "mapping":
        wanted = f"{context['maker']}(…)"
    such = "" if example is None else f", such as {write_flow(example)}"
    return f"{subject} is not allowed. Give {wanted}{such}."


def _found(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return "A mapping" if isinstance(value, Mapping) else "A list"
    if value is None:
        return "Nothing"
    written = write_flow(value)
    return written if not isinstance(value, str) and len(written) < 40 else shown(value)


def several(value: Any) -> Any:
    """Return the items of a list, a range or another iterable; a text is none of them."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        return value
    return tuple(value)
