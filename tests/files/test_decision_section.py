"""The section 'decision' of an audit file."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.decision.maker import decide, describe_maker, required_columns
from mutandis.decision.model import as_decision_maker
from mutandis.decision.threshold import Thresholded
from mutandis.errors import DecisionError, FormulaError, MutandisError, SettingsError
from mutandis.files.decision_section import DecisionSection, read_decision_section
from mutandis.files.yaml_nodes import read_yaml
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.outcome import Outcome
from mutandis.rooms.endpoint import HttpMaker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

YES_NO = Outcome(
    column="granted",
    kind=BinaryKind(negative="no", positive="yes"),
    codes=np.array([True]),
)
TABLE = pd.DataFrame({"who": ["Jane", "John"], "gender": ["f", "m"], "salary": [10, 20]})


def section(text: str, folder: Path, **options: Any) -> DecisionSection:
    node = read_yaml(text, source="audit.yaml")
    return read_decision_section(node, folder=folder, columns=("salary", "gender"), **options)


def refused(
    text: str, folder: Path, kind: type[MutandisError] = SettingsError, **options: Any
) -> str:
    with pytest.raises(kind) as caught:
        section(text, folder, **options)
    message = str(caught.value)
    # the place is said once
    assert message.startswith("audit.yaml, line ")
    assert message.count("audit.yaml") == 1
    return message


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
    assert section("rule: salary > 15", tmp_path).decision == "salary > 15"
    assert section("recorded: true", tmp_path) == DecisionSection(decision=None)
    assert read_decision_section(None, folder=tmp_path, columns=()).decision is None


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
    maker = as_decision_maker(section(text, folder, trust_code=True).decision)
    assert decide(maker, TABLE, YES_NO).tolist() == [True, False]


def test_functions_are_shown_the_attributes_unless_columns_are_listed(folder: Path) -> None:
    read = section("python: bank_of_the_section:decide", folder, trust_code=True)
    assert required_columns(as_decision_maker(read.decision)) == ("salary", "gender")
    assert read.files == (folder / "bank_of_the_section.py",)
    text = "{python: 'bank_of_the_section:decide', columns: [salary]}"
    listed = section(text, folder, trust_code=True)
    assert required_columns(as_decision_maker(listed.decision)) == ("salary",)


def test_an_endpoint_with_and_without_settings(tmp_path: Path) -> None:
    plain = section("http: https://bank.example/credit", tmp_path).decision
    assert plain == HttpMaker(url="https://bank.example/credit", columns=("salary", "gender"))
    text = """
http:
  url: https://bank.example/credit
  batch: 50
  envelope: instances
  headers: {X-Client: audit}
  token_variable: BANK_TOKEN
  token_header: X-Api-Key
  timeout: 2.5
  deadline: 60
  retries: 0
  backoff: 0.25
  log: queries.jsonl
columns: [salary]
threshold: 0.3
favourable: below
"""
    maker = section(text, tmp_path).decision
    assert isinstance(maker, Thresholded)
    assert (maker.threshold, maker.favourable) == (0.3, "below")
    asked = maker.maker
    assert isinstance(asked, HttpMaker)
    assert asked.scores
    assert (asked.batch, asked.envelope, asked.columns) == (50, "instances", ("salary",))
    assert asked.headers == {"X-Client": "audit"}
    assert (asked.token_variable, asked.token_header) == ("BANK_TOKEN", "X-Api-Key")
    policy = asked.retry_policy
    assert (policy.timeout, policy.deadline) == (2.5, 60)
    assert (policy.retries, policy.backoff) == (0, 0.25)
    assert asked.log == tmp_path / "queries.jsonl"
    assert describe_maker(maker)["kind"] == "http"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "rulle: salary > 3",
            "line 1, at 'rulle': 'rulle' is not a key of the section 'decision'. Did",
        ),
        ("{}", "Say who decides. One of: rule"),
        ("threshold: 0.5", "Say who decides"),
        ("recorded: false", "Say who decides"),
        ("rule: a > 1\nonnx: m.onnx", "line 2, at 'onnx': Say who decides: 'rule', 'onnx' are"),
        ("rule: a > 1\ntreshold: 2", "'treshold' is not a key of a decision by rule. Did you mean"),
        ("rule: a > 1\ncolumns: [a]", "'columns' is not a key of a decision by rule"),
        ("rule: a\nthreshold: high", "line 2, at 'threshold': A number is needed"),
        ("rule: a\nthreshold: 1\nfavourable: abve", "line 3, at 'favourable': 'abve' is not known"),
        ("rule: a > 1\nfavourable: above", "line 2, at 'favourable': 'favourable' is about scores"),
        ("recorded: true\nthreshold: 1", "'threshold' is not a key"),
        ("onnx: m.onnx\ntrusted: [a.B]", "'trusted' is not a key of a decision by ONNX model"),
        ("pickle: m.pkl\ntrust_code: true", "'trust_code' is not a key"),
        ("http: {batch: 3}", "'url' is missing"),
        (
            "http: {url: 'https://a.example', bach: 3}",
            "'bach' is not a key of an endpoint. Did you",
        ),
        ("http: {url: 'https://a.example', timeout: -1}", "A number of seconds above 0"),
        ("http: {url: 'https://a.example', headers: [a]}", "but the headers of an endpoint is a"),
        ("{http: 'https://a.example', columns: salary}", "Columns are a list"),
        ("{http: 'https://a.example', columns: []}", "The list of columns is empty"),
        ("{http: 'https://a.example', columns: [a, a]}", "'a' is listed twice"),
        ("http: https://a.example\nanswers: {favourable: 1}", "'unfavourable' is missing"),
        (
            "http: https://a.example\nanswers: {favourable: 1, unfavourable: 0}\nthreshold: 1",
            "line 2, at 'answers': Answers in words and a threshold",
        ),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\npython: absent_from_the_bank:decide", "line 2, at 'python': There is no module"),
        ("python: decide", "Write module:function"),
        ("onnx: absent.onnx", "line 1, at 'onnx': There is no file 'absent.onnx'"),
        ("skops: absent.skops", "There is no file 'absent.skops'"),
        ("pickle: absent.pkl", "'absent.pkl' is a pickle file, and was not opened"),
        ("http: ftp://bank.example", "not a web address"),
        ("http: {url: 'https://a.example', batch: 0}", "batch=0 is not allowed"),
        ("http: {url: 'https://a.example', headers: {Cookie: s3cret}}", "is a secret"),
        ("http: https://a.example\nanswers: {favourable: 1, unfavourable: 1}", "both 1"),
    ],
)
def test_what_cannot_decide(tmp_path: Path, text: str, said: str) -> None:
    if text.startswith("skops"):
        pytest.importorskip("skops")
    if text.startswith("onnx"):
        pytest.importorskip("onnxruntime")
    trusted = "python" in text
    message = refused(text, tmp_path, DecisionError, trust_code=trusted)
    assert said in message
    assert "s3cret" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rule: __import__('os')", "line 1, at 'rule': "),
        ("rule: a + 1", "gives numbers, not true or false"),
        ("rule: a > 1\nthreshold: 2", "line 2, at 'threshold': The rule 'a > 1' decides already"),
    ],
)
def test_formulas_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(text, tmp_path, FormulaError)


def test_a_pickle_is_trusted_from_outside_the_file(tmp_path: Path) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    features = pd.DataFrame({"salary": [10.0, 12.0, 20.0, 22.0]})
    model = linear_model.LogisticRegression().fit(features, ["no", "no", "yes", "yes"])
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    read = section("pickle: model.pkl", tmp_path, trust_code=True)
    assert read.files == (tmp_path / "model.pkl",)
    assert decide(as_decision_maker(read.decision), TABLE, YES_NO).tolist() == [True, False]
    text = "pickle: model.pkl\nthreshold: 0.5\nscore_of: yes"
    scored = section(text, tmp_path, trust_code=True).decision
    assert decide(as_decision_maker(scored), TABLE, YES_NO).tolist() == [True, False]
    with pytest.raises(DecisionError, match=r"line 2, at 'threshold': .*no class is named"):
        section("pickle: model.pkl\nthreshold: 0.5", tmp_path, trust_code=True)
    io = pytest.importorskip("skops.io")
    (tmp_path / "model.skops").write_bytes(io.dumps(model))
    saved = section("skops: model.skops", tmp_path)
    assert decide(as_decision_maker(saved.decision), TABLE, YES_NO).tolist() == [True, False]


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
    maker = as_decision_maker(read.decision)
    assert required_columns(maker) == ("salary",)
    assert read.files == (tmp_path / "model.onnx",)
    assert decide(maker, TABLE, YES_NO).tolist() == [True, False]
    message = refused("onnx: model.onnx\nthreshold: 1\ncolumns: {pai: a}", tmp_path, DecisionError)
    assert "no input 'pai'. Did you mean 'pay'?" in message
