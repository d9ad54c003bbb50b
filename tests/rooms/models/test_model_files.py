"""Functions of modules, models in skops and pickle files: loaded if they are trusted."""

from __future__ import annotations

import hashlib
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.decision import with_threshold
from mutandis.decision.maker import decide, describe_maker, required_columns
from mutandis.decision.model import FunctionMaker
from mutandis.errors import DecisionError
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.outcome import Outcome
from mutandis.rooms.models import load_function, load_pickle, load_skops

if TYPE_CHECKING:
    from collections.abc import Iterator

YES_NO = Outcome(
    column="granted", kind=BinaryKind(negative="no", positive="yes"), codes=np.array([True])
)
TABLE = pd.DataFrame(
    {
        "who": [f"Jane Roe {number}" for number in range(60)],
        "salary": np.arange(60) * 1000.0,
        "job": ["cook", "clerk", "judge"] * 20,
    }
)
GRANTED = np.where((TABLE["salary"] > 30_000) | (TABLE["job"] == "judge"), "yes", "no")


def fitted(*, matrix: bool = False) -> Any:
    """Fit a pipeline on numbers and names, or a regression on a bare matrix."""
    pytest.importorskip("sklearn")
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    if matrix:
        return LogisticRegression().fit(TABLE[["salary"]].to_numpy() / 1000, GRANTED)
    encoder = ColumnTransformer(
        [("job", OneHotEncoder(), ["job"]), ("salary", StandardScaler(), ["salary"])]
    )
    # little regularised, so that it learns the rule by heart
    model = make_pipeline(encoder, LogisticRegression(C=1e4))
    return model.fit(TABLE[["job", "salary"]], GRANTED)


def saved(model: Any, path: Path) -> Path:
    io = pytest.importorskip("skops.io")
    path.write_bytes(io.dumps(model))
    return path


# --- skops ----------------------------------------------------------------------------------------


def test_a_skops_file_decides_as_the_model_does(tmp_path: Path) -> None:
    path = saved(fitted(), tmp_path / "credit.skops")
    maker = load_skops(path)
    assert required_columns(maker) == ("job", "salary")
    assert decide(maker, TABLE, YES_NO).tolist() == (GRANTED == "no").tolist()
    assert describe_maker(maker) == {
        "kind": "skops",
        "type": "Pipeline",
        "file": "credit.skops",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "columns": ["job", "salary"],
    }
    scored = with_threshold(maker, 0.5, score_of="yes")
    assert decide(scored, TABLE, YES_NO).tolist() == (GRANTED == "no").tolist()


class Odd:
    """A model of nobody's library."""

    feature_names_in_ = ("salary",)

    def predict(self, table: Any) -> Any:
        return ["no"] * len(table)


def test_unknown_types_are_listed_and_refused_until_they_are_trusted(tmp_path: Path) -> None:
    path = saved(Odd(), tmp_path / "odd.skops")
    unknown = f"{Odd.__module__}.Odd"
    with pytest.raises(DecisionError) as caught:
        load_skops(path)
    message = str(caught.value)
    assert f"not known to be harmless, and was not loaded: {unknown!r}." in message
    assert "--trust-code" in message
    with pytest.raises(DecisionError, match="was not loaded"):
        load_skops(path, trust_code="yes")  # type: ignore[arg-type]
    maker = load_skops(path, trust_code=True)
    assert decide(maker, TABLE, YES_NO).all()


def test_what_is_no_skops_model(tmp_path: Path) -> None:
    path = saved({"a": 1}, tmp_path / "dict.skops")
    with pytest.raises(DecisionError, match="holds dict, which has no predict method"):
        load_skops(path)
    (tmp_path / "text.skops").write_text("salary > 3")
    with pytest.raises(DecisionError, match="cannot be read as a skops file"):
        load_skops(tmp_path / "text.skops")
    (tmp_path / "pickle.skops").write_bytes(pickle.dumps([1]))
    with pytest.raises(DecisionError, match="cannot be read as a skops file"):
        load_skops(tmp_path / "pickle.skops")
    with pytest.raises(DecisionError, match=r"no file 'absent\.skops'") as caught:
        load_skops(tmp_path / "absent.skops")
    assert str(tmp_path) not in str(caught.value)
    (tmp_path / "empty.skops").touch()
    with pytest.raises(DecisionError, match="is empty"):
        load_skops(tmp_path / "empty.skops")
    with pytest.raises(DecisionError, match="cannot be opened"):
        load_skops(tmp_path)


# --- pickle ---------------------------------------------------------------------------------------


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickle_is_not_opened_unless_it_is_trusted(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(Trap(sprung)))
    refusals: list[dict[str, Any]] = [{}, {"trust_code": False}, {"trust_code": "yes"}]
    for options in refusals:
        with pytest.raises(DecisionError) as caught:
            load_pickle(path, **options)
        assert "'model.pkl' is a pickle file, and was not opened" in str(caught.value)
        assert "--trust-code" in str(caught.value)
    # not even looked for
    with pytest.raises(DecisionError, match="was not opened"):
        load_pickle(tmp_path / "absent.pkl")
    assert not sprung.exists()
    with pytest.raises(DecisionError, match="holds NoneType"):
        load_pickle(path, trust_code=True)
    assert sprung.exists()


@pytest.mark.parametrize("library", ["pickle", "joblib", "joblib-compressed"])
def test_trusted_pickles_decide(tmp_path: Path, library: str) -> None:
    path = tmp_path / "model.joblib"
    if library.startswith("joblib"):
        joblib = pytest.importorskip("joblib")
        joblib.dump(fitted(), path, compress=3 if library.endswith("compressed") else 0)
    else:
        path.write_bytes(pickle.dumps(fitted()))
    maker = load_pickle(path, trust_code=True)
    assert decide(maker, TABLE, YES_NO).tolist() == (GRANTED == "no").tolist()
    described = describe_maker(maker)
    assert (described["kind"], described["file"]) == ("pickle", "model.joblib")
    assert described["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_is_no_pickled_model(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    for content in ({"a": 1}, "salary > 3", Odd):
        path.write_bytes(pickle.dumps(content))
        with pytest.raises(DecisionError, match="has no predict method"):
            load_pickle(path, trust_code=True)
    path.write_bytes(b"\x80\x04nonsense")
    with pytest.raises(DecisionError, match="cannot be loaded"):
        load_pickle(path, trust_code=True)
    path.write_bytes(pickle.dumps(fitted(matrix=True)))
    with pytest.raises(DecisionError, match="does not store the names"):
        load_pickle(path, trust_code=True)
    path.write_bytes(pickle.dumps(len))
    maker = load_pickle(path, trust_code=True, columns=["salary"])
    assert isinstance(maker, FunctionMaker)
    assert maker.names == ("salary",)


# --- functions named as module:function -----------------------------------------------------------

BANK_TABLE = pd.DataFrame({"who": ["Jane Roe", "John"], "salary": [10, 20]})

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


def import_refused(reference: str, folder: Path | None) -> str:
    with pytest.raises(DecisionError) as caught:
        load_function(reference, folder=folder)
    return str(caught.value)


def test_a_function_beside_the_settings(folder: Path) -> None:
    maker = load_function("credit_of_the_bank:decide", folder=folder, columns=["salary"])
    assert decide(maker, BANK_TABLE, YES_NO).tolist() == [True, False]
    assert required_columns(maker) == ("salary",)
    assert describe_maker(maker) == {
        "kind": "python",
        "function": "credit_of_the_bank:decide",
        "file": "credit_of_the_bank.py",
        "sha256": hashlib.sha256(CREDIT.encode()).hexdigest(),
        "columns": ["salary"],
    }


@pytest.mark.parametrize(
    "reference",
    ["decide", "credit.decide", "credit:", ":decide", "credit:a.b", "cre dit:a", "a:b:c", "..os:a"],
)
def test_what_is_no_reference(reference: str) -> None:
    assert "Write module:function" in import_refused(reference, None)


@pytest.mark.parametrize("body", ["1 / 0", "raise SystemExit", "def decide(:", "raise ValueError"])
def test_a_module_that_does_not_import(folder: Path, body: str) -> None:
    (folder / "broken_of_the_bank.py").write_text(body)
    assert "while it was imported" in import_refused("broken_of_the_bank:decide", folder)


def test_a_namesake_is_not_mistaken_for_the_module(folder: Path) -> None:
    (folder / "json.py").write_text("def decide(table): return [True] * len(table)\n")
    assert "Another module 'json' is already loaded" in import_refused("json:decide", folder)
    # without a file of that name in the folder it is the installed one that is meant
    (folder / "json.py").unlink()
    assert describe_maker(load_function("json:dumps", folder=folder))["function"] == "json:dumps"
