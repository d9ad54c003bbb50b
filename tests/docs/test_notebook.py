"""The notebook of the examples: its cells run in order, and what they show can be shown."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "loan.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; give the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)  # noqa: S102 - the project's own file
    if last is None:
        return None
    shown = ast.Expression(last.value)  # type: ignore[attr-defined]
    return eval(compile(shown, str(NOTEBOOK), "eval"), names)  # noqa: S307


@pytest.mark.slow
def test_every_cell_runs_and_shows_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells)
    names: dict[str, Any] = {}
    shown = [run_cell("".join(c["source"]), names) for c in cells if c["cell_type"] == "code"]
    ways = ("_repr_html_", "_repr_svg_")
    pages = [
        getattr(each, way)()
        for each in shown
        if each is not None
        for way in ways
        if hasattr(each, way)
    ]
    assert len(pages) >= 7
    assert all(page.lstrip().startswith("<") for page in pages)
    assert (tmp_path / "people.csv").is_file()
    assert (tmp_path / "results" / "report.html").is_file()
    assert names["case"].own_case == "yes"
