"""What is documented once serves several, and each gets its own entry on the documentation site.

Docstrings say `alpha, tau` where one sentence serves both: Griffe, which reads them, gives
the first name's type and default to all of them. And a method without a docstring is documented
where a base class defines it, as `help` shows it.
"""

from __future__ import annotations

from typing import Any

import griffe


class SharedEntries(griffe.Extension):
    """Takes the types of documented parameters from the signature, name by name."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go through a package when all of it has been read."""
        _correct(pkg)


def _correct(thing: griffe.Object) -> None:
    for name, member in list(thing.members.items()):
        if isinstance(member, griffe.Alias):
            continue
        if isinstance(member, griffe.Class) and _is_section(member):
            member.set_member("__init__", _made_of_fields(member))
        if isinstance(thing, griffe.Class) and isinstance(member, griffe.Function):
            member.docstring = member.docstring or _inherited(thing, name)
        if member.docstring is not None:
            _correct_docstring(member.docstring, _types(member))
        _correct(member)


def _is_section(thing: griffe.Class) -> bool:
    """Return whether a class becomes a dataclass by the decorator of settings."""
    return any(each.callable_path.endswith(".section") for each in thing.decorators)


def _made_of_fields(thing: griffe.Class) -> griffe.Function:
    """Return the signature of a class of settings."""
    fields = [
        griffe.Parameter(
            each.name,
            annotation=each.annotation,
            kind=griffe.ParameterKind.keyword_only,
            default=each.value,
        )
        for each in thing.members.values()
        if isinstance(each, griffe.Attribute) and "property" not in each.labels and each.annotation
    ]
    own = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    return griffe.Function("__init__", parameters=griffe.Parameters(own, *fields), returns="None")


def _inherited(thing: griffe.Class, name: str) -> griffe.Docstring | None:
    if name.startswith("_"):
        return None
    defined = (base.members[name] for base in thing.mro() if name in base.members)
    return next((method.docstring for method in defined if method.docstring), None)


def _types(thing: griffe.Object) -> dict[str, tuple[Any, Any]]:
    """Find type and default of each parameter: of a function, or of a dataclass's fields."""
    if isinstance(thing, griffe.Class):
        made = thing.members.get("__init__")
        if not isinstance(made, griffe.Function):
            fields = thing.members.items()
            return {
                name: (field.annotation, field.value)
                for name, field in fields
                if isinstance(field, griffe.Attribute)
            }
        thing = made
    if not isinstance(thing, griffe.Function):
        return {}
    return {each.name: (each.annotation, each.default) for each in thing.parameters}


def _correct_docstring(docstring: griffe.Docstring, types: dict[str, tuple[Any, Any]]) -> None:
    for section in docstring.parsed:
        if section.kind is griffe.DocstringSectionKind.parameters:
            for entry in section.value:
                if entry.name in types:
                    entry.annotation, entry.value = types[entry.name]
