"""`mutandis explore`: look into a folder of results in a web browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.cli.terminal import echo
from mutandis.files.saved_audit import open_results
from mutandis.registry import find

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["run_explore"]


def run_explore(
    folder: Path, other: Path | None, *, host: str, port: int, open_browser: bool
) -> None:
    """Open the results, and serve their pages until Ctrl-C."""
    find("room", "explorer").serve(
        open_results(folder),
        name=folder.resolve().name,
        other=None if other is None else open_results(other),
        other_name="" if other is None else other.resolve().name,
        host=host,
        port=port,
        open_browser=open_browser,
        say=echo,
    )
