"""Inputs that once ended in something else than an error of ours, and a few new ones each time."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mutandis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOLS = Path(__file__).parents[2] / "tools"
KEPT = sorted((Path(__file__).parent / "corpus").glob("*/*"))


@pytest.fixture(scope="module")
def fuzz() -> Iterator[Any]:
    sys.path.insert(0, str(TOOLS))
    yield importlib.import_module("fuzz")
    sys.path.remove(str(TOOLS))


@pytest.mark.parametrize("name", sorted({path.parent.name for path in KEPT}))
@pytest.mark.filterwarnings("ignore::mutandis.MutandisWarning")
def test_what_once_failed_is_read_or_refused(fuzz: Any, name: str, tmp_path: Path) -> None:
    (target,) = (each for each in fuzz.TARGETS if each.name == name)
    _, run = target.prepare(tmp_path)
    for path in (each for each in KEPT if each.parent.name == name):
        assert fuzz.judge(run, path.read_bytes()) is None, path


@pytest.mark.parametrize("name", ["formula", "reply", "worldview"])
def test_new_inputs_are_read_or_refused(fuzz: Any, name: str, tmp_path: Path) -> None:
    (target,) = (each for each in fuzz.TARGETS if each.name == name)
    seeds, run = target.prepare(tmp_path)
    for number in range(50):
        content = fuzz.input_of(target, seeds, "test", number)
        assert content == fuzz.input_of(target, seeds, "test", number)
        assert fuzz.judge(run, content) is None, content


def raise_zero(content: bytes) -> None:
    raise ZeroDivisionError


def quote_a_cell(content: bytes) -> None:
    raise InputError(f"The cell {content.decode()} is wrong.")


def quote_a_cell_as_cause(content: bytes) -> None:
    raise InputError("Something is wrong.") from KeyError(content.decode())


def work_too_long(content: bytes) -> None:
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass


@pytest.mark.parametrize(
    ("run", "what"),
    [
        (raise_zero, "ZeroDivisionError at test_fuzz_corpus.py"),
        (quote_a_cell, "a message holds a cell"),
        (quote_a_cell_as_cause, "a message holds a cell"),
        (work_too_long, "too slow"),
    ],
)
def test_every_kind_of_failure_is_noticed(
    fuzz: Any, run: Any, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "SECONDS", 0.1)
    found = fuzz.judge(run, fuzz.CANARY.encode())
    assert found is not None
    assert found[0].startswith(what)


def test_what_fails_is_made_small(fuzz: Any) -> None:
    def run(content: bytes) -> None:
        if b"x" in content and b"y" in content:
            raise ZeroDivisionError

    (what, _) = fuzz.judge(run, b"aaxbbyccc")
    assert sorted(fuzz.shrink(run, b"aaxbbyccc", what)) == sorted(b"xy")
