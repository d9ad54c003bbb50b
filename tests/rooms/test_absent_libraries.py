"""Without its libraries, a room says what to install; the core imports neither."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mutandis as mm
from mutandis.errors import MutandisError
from mutandis.registry import find
from mutandis.workers import open_workers

if TYPE_CHECKING:
    from collections.abc import Callable


def _open_cluster() -> None:
    with open_workers("local:2"):
        pass


def _explore() -> None:
    table = {"woman": [1, 0] * 3, "pay": range(6), "granted": ["no", "yes", "yes"] * 2}
    status = mm.Protection("woman", value=1, reference=0)
    audit: Any = mm.audit(
        table,
        outcome="granted",
        negative="no",
        protected=status,
        attributes={"pay": "continuous"},
        ks=(1,),
    )
    audit.explore(open_browser=False)


def _ask_endpoint() -> None:
    rooms = find("room", "endpoint")
    rooms.HttpMaker(url="https://bank.example/", columns=("a",)).decide({"a": [1]})


ASKED: dict[str, tuple[str, Callable[[], Any]]] = {
    "cluster": ("distributed", _open_cluster),
    "database": (
        "adbc_driver_sqlite.dbapi",
        lambda: find("table", "sqlite")(url="sqlite:///x.db", query="SELECT 1").column_names(),
    ),
    "dowhy": ("dowhy.gcm", lambda: mm.Worldview.from_dowhy(object())),
    "endpoint": ("httpx", _ask_endpoint),
    "explorer": ("starlette", _explore),
    "onnx": ("onnxruntime", lambda: find("room", "models").load_onnx("x.onnx")),
    "signing": ("cryptography", lambda: find("room", "signing").read_key("key.pem", "private")),
    "skops": ("skops.io", lambda: find("room", "models").load_skops(Path("x.skops"))),
}


@pytest.mark.parametrize("extra", list(ASKED))
def test_what_is_missing_is_named(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, ask = ASKED[extra]
    # None in sys.modules is how Python remembers that there is no such module
    for name in (module.partition(".")[0], module):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MutandisError, match=rf"pip install\s+'mutandis\[{extra}\]'"):
        ask()
