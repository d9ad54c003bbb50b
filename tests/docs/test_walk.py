"""The walk through the code names modules that exist, each of them once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_walk_names_each_module_once() -> None:
    text = (ROOT / "docs" / "walk.md").read_text(encoding="utf-8")
    named = Counter(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.(?:py|html))`", text))
    assert len(named) > 50
    assert [name for name, times in named.items() if times > 1] == []
    missing = [name for name in named if not (ROOT / "src" / "mutandis" / name).is_file()]
    assert missing == []


def test_the_architecture_names_files_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = (
        "auditing|causal|cli|data|decision|evidence|explore|files|pictures|published|report|search"
    )
    named = set(re.findall(rf"`((?:{packages})/[a-z_/]*(?:\.(?:py|html))?)`", text))
    assert len(named) > 20
    missing = [name for name in named if not (ROOT / "src" / "mutandis" / name).exists()]
    assert missing == []
    # one page: as long as a page of this size of type can be
    assert len(text.splitlines()) < 180
