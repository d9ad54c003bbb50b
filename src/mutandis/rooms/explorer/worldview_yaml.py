"""An audit file with another worldview, its comments kept."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

from mutandis.config.worldview import (
    PROTECTED,
    describe_equation,
    make_worldview,
    write_worldview,
)
from mutandis.config.yaml import read_yaml
from mutandis.errors import PlanError
from mutandis.store.audit_file import write_plan

if TYPE_CHECKING:
    from mutandis.rooms.explorer.workbench import Draft
    from mutandis.scm import Worldview

__all__ = ["write_draft"]

_SECTIONS = ("equations", "latent", "resolving", "edges")


def write_draft(draft: Draft) -> str:
    """Write the audit file of a draft: the one of the audit, changed where the draft differs.

    What the text says is read again and compared with the draft. Where lines of the worldview
    cannot be changed one by one, it is written anew as a whole.
    """
    origin, wanted = draft.plan.origin, draft.worldview()
    if origin is None:
        return write_plan(draft.to_plan())
    for change in (_change_equations, _replace_worldview):
        text = _edit(origin.text, draft, change)
        if _says(text, draft, wanted):
            return text
    raise PlanError("This worldview cannot be written into the audit file of the results.")


def _edit(text: str, draft: Draft, change: Any) -> str:
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 4096
    document = yaml.load(text)
    change(document, draft)
    if draft.reference is not None:
        protected = document["protected"]
        one = protected[0] if isinstance(protected, list) else protected
        one["reference"] = draft.protections()[0].reference
    written = StringIO()
    yaml.dump(document, written)
    return written.getvalue()


def _change_equations(document: Any, draft: Draft) -> None:
    """Change the lines that differ, and no others."""
    section, wanted = document["worldview"], draft.worldview()
    has_sections = _has_sections(section)
    equations = section.get("equations", {}) if has_sections else section
    statuses = [each.attribute for each in draft.plan.protections]
    for number, child in enumerate(draft.children):
        if child not in equations:  # written as arrows, which are replaced as a whole
            continue
        if child not in wanted.equations:
            del equations[child]
        elif number in draft.families:
            _replace_items(equations[child], describe_equation(child, wanted.equations[child]))
        elif any(each == number for each, _ in draft.off):
            parents, kept = equations[child]["parents"], draft.kept(number)
            names = [_kept_names(each, kept, statuses) for each in parents]
            parents[:] = [name for some in names for name in some]
    if draft.plan.worldview is not None and wanted.resolving != draft.plan.worldview.resolving:
        _change_resolving(document, wanted, has_sections=has_sections)


def _has_sections(section: Any) -> bool:
    return any(
        key in _SECTIONS and not (isinstance(part, dict) and isinstance(part.get("equation"), str))
        for key, part in section.items()
    )


def _kept_names(written: Any, kept: tuple[str, ...], statuses: list[str]) -> list[Any]:
    if written == PROTECTED:
        names = [name for name in statuses if name in kept]
        return [written] if names == statuses else names
    return [written] if str(written) in kept else []


def _replace_items(mapping: Any, settings: dict[str, Any]) -> None:
    for key in [key for key in mapping if key not in settings]:
        del mapping[key]
    for key, value in settings.items():
        if mapping.get(key) != value:
            mapping[key] = list(value) if isinstance(value, tuple) else value


def _change_resolving(document: Any, wanted: Worldview, *, has_sections: bool) -> None:
    if not has_sections:
        document["worldview"] = {"equations": document["worldview"]}
    section = document["worldview"]
    if wanted.resolving:
        section["resolving"] = list(wanted.resolving)
    else:
        section.pop("resolving", None)


def _replace_worldview(document: Any, draft: Draft) -> None:
    from ruamel.yaml import YAML

    document["worldview"] = YAML(typ="rt").load(write_worldview(draft.worldview()))


def _says(text: str, draft: Draft, wanted: Worldview) -> bool:
    statuses = [each.attribute for each in draft.plan.protections]
    try:
        return make_worldview(read_yaml(text).data["worldview"], statuses) == wanted
    except Exception:  # noqa: BLE001 - then it is written in another way
        return False
