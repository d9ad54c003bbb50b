"""One rule in every form that a decision maker takes: the audit is the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.decision import with_threshold
from mutandis.decision.maker import DecisionMaker, RecordAgreement
from mutandis.errors import DecisionError, PlanError
from mutandis.rooms.endpoint import HttpMaker
from mutandis.rooms.models import load_onnx, load_skops

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT = 30.0
NAMES = ["salary", "balance"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    gender = rng.integers(0, 2, 300)
    salary = rng.integers(10, 30, 300) + 4.0 * gender
    balance = rng.integers(0, 12, 300).astype(float)
    # the record follows the rule but for a few slips of the clerk
    slip = rng.random(300) < 0.05
    granted = np.where((salary + balance >= LIMIT) ^ slip, "yes", "no")
    columns = {"who": np.arange(300) + 5000, "gender": gender, "salary": salary}
    return pd.DataFrame({**columns, "balance": balance, "granted": granted})


def audit(table: pd.DataFrame, decision: Any) -> mm.Audit:
    return mm.audit(
        table,
        outcome="granted",
        negative="no",
        protected=mm.Protection("gender", value=0, reference=1),
        attributes={"salary": "continuous", "balance": "continuous"},
        worldview=mm.Worldview({"salary": mm.Linear("gender")}),
        decision=decision,
        uncertainty=mm.Uncertainty(refits=0, tipping=False),
        id="who",
        ks=(3, 5),
    )


class Sum:
    """Stands in for a fitted model: it scores by salary + balance."""

    feature_names_in_ = NAMES

    def predict(self, frame: pd.DataFrame) -> Any:
        return frame.sum(axis=1)


def of_function(_: Path) -> DecisionMaker:
    return with_threshold(lambda frame: frame["salary"] + frame["balance"], LIMIT)


def of_rule(_: Path) -> DecisionMaker:
    return with_threshold("salary + balance", LIMIT)


def of_model(_: Path) -> DecisionMaker:
    return with_threshold(Sum(), LIMIT)


def of_skops(folder: Path) -> DecisionMaker:
    """Save a regression that has learnt the sum, and nothing else."""
    io = pytest.importorskip("skops.io")
    linear_model = pytest.importorskip("sklearn.linear_model")
    grid = pd.DataFrame([(a, b) for a in range(4) for b in range(4)], columns=NAMES, dtype=float)
    model = linear_model.LinearRegression().fit(grid, grid.sum(axis=1))
    model.coef_, model.intercept_ = np.array([1.0, 1.0]), 0.0
    (folder / "sum.skops").write_bytes(io.dumps(model))
    return with_threshold(load_skops(folder / "sum.skops"), LIMIT)


def of_onnx(folder: Path) -> DecisionMaker:
    """Save a graph that adds two inputs, in float64."""
    pytest.importorskip("onnxruntime")
    helper = pytest.importorskip("onnx").helper
    values = [helper.make_tensor_value_info(name, 11, [None]) for name in (*NAMES, "sum")]
    graph = helper.make_graph(
        [helper.make_node("Add", NAMES, ["sum"])], "sum", values[:2], values[2:]
    )
    opset = [helper.make_opsetid("", 13)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=8)
    (folder / "sum.onnx").write_bytes(made.SerializeToString())
    return with_threshold(load_onnx(folder / "sum.onnx", scores=True), LIMIT)


@pytest.mark.parametrize("make", [of_function, of_rule, of_model, of_skops, of_onnx])
def test_every_form_gives_the_same_audit(
    table: pd.DataFrame,
    expected: mm.Audit,
    tmp_path: Path,
    make: Callable[[Path], DecisionMaker],
) -> None:
    check_same(table, expected, make(tmp_path))


@pytest.fixture(scope="module")
def expected(table: pd.DataFrame) -> mm.Audit:
    return audit(table, f"salary + balance >= {LIMIT}")


def check_same(table: pd.DataFrame, expected: mm.Audit, maker: Any) -> mm.Audit:
    found = audit(table, maker)
    for method in expected.methods:
        ours, theirs = found.findings(method, k=3), expected.findings(method, k=3)
        pd.testing.assert_frame_equal(ours, theirs)
    decided = (table["salary"] + table["balance"] < LIMIT).to_numpy()
    recorded = (table["granted"] == "no").to_numpy()
    assert found.disagreement == float((decided != recorded).mean()) > 0
    counts = found.with_record
    assert isinstance(counts, RecordAgreement)
    assert counts.better == int((recorded & ~decided).sum())
    assert counts.rows == 300
    described = found.provenance.settings["decision"]
    assert described["threshold"] == LIMIT
    json.dumps(described)
    return found


def test_a_model_that_reads_the_outcome_is_refused(table: pd.DataFrame) -> None:
    endpoint = HttpMaker(url="http://127.0.0.1:9/", columns=("salary", "granted"))
    with pytest.raises(PlanError, match="reads the outcome 'granted'"):
        audit(table, endpoint)


def test_a_failure_reaches_the_caller_as_it_is(table: pd.DataFrame) -> None:
    short = with_threshold(lambda frame: [1.0], LIMIT)
    with pytest.raises(DecisionError, match="1 answers"):
        audit(table, short)
