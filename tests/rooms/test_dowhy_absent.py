"""DoWhy is optional: without it everything else works, and asking for it says what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mutandis.errors import WorldviewError
from mutandis.scm import Worldview


def test_without_dowhy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules is how Python remembers that there is no such module
    for name in ("dowhy", "dowhy.gcm"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(WorldviewError, match=r"pip install 'mutandis\[dowhy\]'"):
        Worldview.from_dowhy(object())


def test_dowhy_is_imported_only_where_it_is_used() -> None:
    look = "import sys; from mutandis.scm import Worldview; print(sorted(sys.modules))"
    loaded = subprocess.run(  # noqa: S603 - our own interpreter, a text of our own
        [sys.executable, "-c", look], capture_output=True, text=True, check=True
    ).stdout
    assert "'mutandis.scm'" in loaded
    assert "'dowhy'" not in loaded
