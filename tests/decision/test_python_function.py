"""Functions named as module:function."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.data.outcome import Outcome
from mutandis.decision import decide, describe_maker, load_function, required_columns
from mutandis.errors import DecisionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

YES_NO = Outcome(column="granted", negative="no", positive="yes", is_negative=np.array([True]))
TABLE = pd.DataFrame({"who": ["Jane Roe", "John"], "salary": [10, 20]})

CREDIT = """
from helper_of_the_bank import LIMIT

def decide(table):
    assert list(table.columns) == ["salary"]
    return table["salary"] > LIMIT

class Model:
    feature_names_in_ = ["salary"]

    def predict(self, table):
        return ["no"] * len(table)

model = Model()
limit = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "credit_of_the_bank.py").write_text(CREDIT)
    (tmp_path / "helper_of_the_bank.py").write_text("LIMIT = 15\n")
    before, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    # found while it was imported, and not any longer
    assert sys.path == before
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def refused(reference: str, folder: Path | None) -> str:
    with pytest.raises(DecisionError) as caught:
        load_function(reference, folder=folder)
    return str(caught.value)


def test_a_function_beside_the_settings(folder: Path) -> None:
    maker = load_function("credit_of_the_bank:decide", folder=folder, columns=["salary"])
    assert decide(maker, TABLE, YES_NO).tolist() == [True, False]
    assert required_columns(maker) == ("salary",)
    assert describe_maker(maker) == {
        "kind": "python",
        "function": "credit_of_the_bank:decide",
        "file": "credit_of_the_bank.py",
        "sha256": hashlib.sha256(CREDIT.encode()).hexdigest(),
        "columns": ["salary"],
    }


def test_a_model_in_a_module(folder: Path) -> None:
    maker = load_function("credit_of_the_bank:model", folder=folder)
    assert decide(maker, TABLE, YES_NO).tolist() == [True, True]
    assert describe_maker(maker)["type"] == "Model"
    assert "is a class" in refused("credit_of_the_bank:Model", folder)
    assert "int cannot decide" in refused("credit_of_the_bank:limit", folder)


def test_a_module_in_a_package(folder: Path) -> None:
    package = folder / "models_of_the_bank"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "credit.py").write_text("def decide(table): return [True] * len(table)\n")
    maker = load_function("models_of_the_bank.credit:decide", folder=folder)
    assert decide(maker, TABLE, YES_NO).tolist() == [False, False]
    assert "no module 'models_of_the_bank.debit'" in refused(
        "models_of_the_bank.debit:decide", folder
    )


@pytest.mark.parametrize(
    "reference",
    ["decide", "credit.decide", "credit:", ":decide", "credit:a.b", "cre dit:a", "a:b:c", "..os:a"],
)
def test_what_is_no_reference(reference: str) -> None:
    assert "Write module:function" in refused(reference, None)


def test_what_is_not_there(folder: Path) -> None:
    message = refused("credit_of_the_bnak:decide", folder)
    assert "no module 'credit_of_the_bnak'" in message
    assert "in the folder of the settings" in message
    assert "Did you mean 'decide'?" in refused("credit_of_the_bank:decid", folder)
    (folder / "helper_of_the_bank.py").unlink()
    (folder / "other_of_the_bank.py").write_text("import absent_from_the_bank\n")
    message = refused("other_of_the_bank:decide", folder)
    assert "needs a module 'absent_from_the_bank'" in message


@pytest.mark.parametrize("body", ["1 / 0", "raise SystemExit", "def decide(:", "raise ValueError"])
def test_a_module_that_does_not_import(folder: Path, body: str) -> None:
    (folder / "broken_of_the_bank.py").write_text(body)
    assert "while it was imported" in refused("broken_of_the_bank:decide", folder)


def test_a_namesake_is_not_mistaken_for_the_module(folder: Path) -> None:
    (folder / "json.py").write_text("def decide(table): return [True] * len(table)\n")
    assert "Another module 'json' is already loaded" in refused("json:decide", folder)
    # without a file of that name in the folder it is the installed one that is meant
    (folder / "json.py").unlink()
    assert describe_maker(load_function("json:dumps", folder=folder))["function"] == "json:dumps"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError(table['who'][0])", "stopped with ValueError on a table of 2 rows"),
        ("return ['no']", "1 answers (list) for 2 rows"),
        ("return [None, 'no']", "gave no answer in 1 of 2 rows"),
        ("return [float('nan'), 'no']", "gave no answer in 1 of 2 rows"),
        ("import absent_from_the_bank", "stopped with ModuleNotFoundError"),
    ],
)
def test_functions_that_fail(folder: Path, body: str, said: str) -> None:
    (folder / "failing_of_the_bank.py").write_text(f"def decide(table):\n    {body}\n")
    maker: Any = load_function("failing_of_the_bank:decide", folder=folder)
    with pytest.raises(DecisionError) as caught:
        decide(maker, TABLE, YES_NO)
    assert said in str(caught.value)
    assert "function failing_of_the_bank:decide" in str(caught.value)
    assert "Jane" not in str(caught.value)
