"""Compiled templates: read instead of compiled, and compiled anew where they are not to be used."""

from __future__ import annotations

import marshal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import pytest

from mutandis.report.html import _environment
from mutandis.report.template_cache import TemplateCache

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], jinja2.Environment]:
    """Give a maker of environments like ours, whose compiled templates are in a folder."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(
        "mutandis.report.template_cache.cache_folder", lambda *_, **__: tmp_path / "cache" / "x"
    )
    (tmp_path / "page.html").write_text("{{ 'a < b'|capitalised }} {{ text }}", encoding="utf-8")

    def environment() -> jinja2.Environment:
        made = _environment().overlay(loader=jinja2.FileSystemLoader(tmp_path), cache_size=9)
        made.bytecode_cache = TemplateCache()
        return made

    return environment


def compiled(patch: pytest.MonkeyPatch) -> list[str]:
    """Note which templates are compiled from now on."""
    names: list[str] = []
    original: Any = jinja2.Environment.compile

    def compile_and_note(self: Any, source: Any, name: Any = None, *more: Any, **other: Any) -> Any:
        names.append(name)
        return original(self, source, name, *more, **other)

    patch.setattr(jinja2.Environment, "compile", compile_and_note)
    return names


def test_a_template_is_compiled_once(
    make: Callable[[], jinja2.Environment], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = compiled(monkeypatch)
    first, second = (make().get_template("page.html").render(text="<i>") for _ in range(2))
    assert first == second == "A &lt; b &lt;i&gt;"
    assert names == ["page.html"]
    assert len(list((tmp_path / "cache" / "x").iterdir())) == 1
    # another text is another template
    (tmp_path / "page.html").write_text("{{ text }}!", encoding="utf-8")
    assert make().get_template("page.html").render(text="<i>") == "&lt;i&gt;!"
    assert names == ["page.html", "page.html"]


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", marshal.dumps(7), marshal.dumps("x" * 9)[:5]]
)
def test_what_is_not_a_template_is_compiled_anew(
    make: Callable[[], jinja2.Environment],
    content: bytes,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    make().get_template("page.html")
    [kept] = (tmp_path / "cache" / "x").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(content)
    names = compiled(monkeypatch)
    assert make().get_template("page.html").render(text="x") == "A &lt; b x"
    assert names == ["page.html"]
    assert kept.read_bytes() == whole


def test_where_nothing_can_be_kept_pages_are_made_all_the_same(
    make: Callable[[], jinja2.Environment], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    make().get_template("page.html")
    assert not (tmp_path / "cache").exists()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "cache").write_text("a file, and no folder", encoding="utf-8")
    assert make().get_template("page.html").render(text="x") == "A &lt; b x"


def test_templates_of_other_settings_and_versions_are_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = Path(TemplateCache().directory)
    assert here.parent.name == "__pycache__"
    monkeypatch.setattr(jinja2, "__version__", "0.0")
    other = Path(TemplateCache().directory)
    assert other != here
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/nowhere")
    folder = Path(TemplateCache().directory)
    assert folder == Path("/nowhere/mutandis/__pycache__") / other.name
