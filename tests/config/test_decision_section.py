"""The section 'decision' of an audit file."""

from __future__ import annotations

import pickle
import sys
from textwrap import indent
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from mutandis.config.fields import placed
from mutandis.config.schema import read_audit_file
from mutandis.config.yaml import read_yaml
from mutandis.decision.maker import decide, describe_maker, required_columns
from mutandis.decision.model import Thresholded, as_decision_maker
from mutandis.errors import DecisionError
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.outcome import Outcome
from mutandis.rooms.endpoint import HttpMaker
from mutandis.store.audit_file import Decider, load_decision

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

YES_NO = Outcome(
    column="granted",
    kind=BinaryKind(negative="no", positive="yes"),
    codes=np.array([True]),
)
TABLE = pd.DataFrame({"who": ["Jane", "John"], "gender": ["f", "m"], "salary": [10, 20]})


def section(text: str, folder: Path, *, trust_code: bool = False) -> Decider:
    whole = """
data: {source: t.csv}
outcome: {column: granted, negative: 'no'}
protected: {attribute: gender, reference: m}
attributes: {salary: continuous}
decision:
"""
    document = read_yaml(whole + indent(text, "  "))
    with placed(document, "decision"):
        return load_decision(
            read_audit_file(document).decision,
            folder=folder,
            columns=("salary", "gender"),
            trust_code=trust_code,
            scores=False,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    module = "def decide(table):\n    return table['salary'] > 15\n\n\n"
    module += "def score(table):\n    return table['salary'] / 100\n\n\n"
    module += "def answer(table):\n    return ['OK' if value > 15 else 'KO' for value in "
    module += "table['salary']]\n"
    (tmp_path / "bank_of_the_section.py").write_text(module)
    yield tmp_path
    sys.modules.pop("bank_of_the_section", None)


def test_rules_stay_text_and_nobody_stays_nobody(tmp_path: Path) -> None:
    assert section("rule: salary > 15", tmp_path).maker == "salary > 15"
    assert section("recorded: true", tmp_path) == Decider()


@pytest.mark.parametrize(
    "text",
    [
        "rule: salary > 15",
        "rule: salary * 2\nthreshold: 40",
        "{rule: 1 / salary, threshold: 0.06, favourable: below}",
        "python: bank_of_the_section:decide",
        "{python: 'bank_of_the_section:score', threshold: 0.15}",
        "python: bank_of_the_section:answer\nanswers: {favourable: OK, unfavourable: KO}",
        "{python: 'bank_of_the_section:decide', columns: [salary]}",
    ],
)
def test_what_decides_alike(folder: Path, text: str) -> None:
    maker = as_decision_maker(section(text, folder, trust_code=True).maker)
    assert decide(maker, TABLE, YES_NO).tolist() == [True, False]


def test_functions_are_shown_the_attributes_unless_columns_are_listed(folder: Path) -> None:
    read = section("python: bank_of_the_section:decide", folder, trust_code=True)
    assert required_columns(as_decision_maker(read.maker)) == ("salary", "gender")
    assert read.files == (folder / "bank_of_the_section.py",)
    text = "{python: 'bank_of_the_section:decide', columns: [salary]}"
    listed = section(text, folder, trust_code=True)
    assert required_columns(as_decision_maker(listed.maker)) == ("salary",)


def test_an_endpoint_with_and_without_settings(tmp_path: Path) -> None:
    plain = section("http: https://bank.example/credit", tmp_path).maker
    assert plain == HttpMaker(url="https://bank.example/credit", columns=("salary", "gender"))
    text = """
http:
  url: https://bank.example/credit
  batch: 50
  envelope: instances
  token_variable: BANK_TOKEN
  token_header: X-Api-Key
  timeout: 2.5
  deadline: 60
  retries: 0
columns: [salary]
threshold: 0.3
favourable: below
"""
    maker = section(text, tmp_path).maker
    assert isinstance(maker, Thresholded)
    assert (maker.threshold, maker.favourable) == (0.3, "below")
    asked = maker.maker
    assert isinstance(asked, HttpMaker)
    assert asked.scores
    assert (asked.batch, asked.envelope, asked.columns) == (50, "instances", ("salary",))
    assert (asked.token_variable, asked.token_header) == ("BANK_TOKEN", "X-Api-Key")
    assert (asked.timeout, asked.deadline, asked.retries) == (2.5, 60, 0)
    assert describe_maker(maker)["kind"] == "http"


@pytest.mark.slow
def test_a_pickle_is_trusted_from_outside_the_file(tmp_path: Path) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    features = pd.DataFrame({"salary": [10.0, 12.0, 20.0, 22.0]})
    model = linear_model.LogisticRegression().fit(features, ["no", "no", "yes", "yes"])
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    read = section("pickle: model.pkl", tmp_path, trust_code=True)
    assert read.files == (tmp_path / "model.pkl",)
    assert decide(as_decision_maker(read.maker), TABLE, YES_NO).tolist() == [True, False]
    text = "pickle: model.pkl\nthreshold: 0.5\nscore_of: yes"
    scored = section(text, tmp_path, trust_code=True).maker
    assert decide(as_decision_maker(scored), TABLE, YES_NO).tolist() == [True, False]
    with pytest.raises(DecisionError, match="no class is named"):
        section("pickle: model.pkl\nthreshold: 0.5", tmp_path, trust_code=True)
    io = pytest.importorskip("skops.io")
    (tmp_path / "model.skops").write_bytes(io.dumps(model))
    saved = section("skops: model.skops", tmp_path)
    assert decide(as_decision_maker(saved.maker), TABLE, YES_NO).tolist() == [True, False]


def test_the_inputs_of_an_onnx_model(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    helper = pytest.importorskip("onnx").helper
    value = helper.make_tensor_value_info("pay", 1, [None, 1])
    score = helper.make_tensor_value_info("score", 1, [None, 1])
    graph = helper.make_graph(
        [helper.make_node("Identity", ["pay"], ["score"])], "credit", [value], [score]
    )
    opset = [helper.make_opsetid("", 13)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=8)
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    text = "{onnx: model.onnx, columns: {pay: salary}, output: score, threshold: 15}"
    read = section(text, tmp_path)
    maker = as_decision_maker(read.maker)
    assert required_columns(maker) == ("salary",)
    assert read.files == (tmp_path / "model.onnx",)
    assert decide(maker, TABLE, YES_NO).tolist() == [True, False]
    with pytest.raises(DecisionError, match="no input"):
        section("onnx: model.onnx\nthreshold: 1\ncolumns: {pai: a}", tmp_path)
