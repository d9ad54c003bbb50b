"""Models in ONNX files: inputs by name or as a matrix, labels and scores."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from mutandis.decision import with_threshold
from mutandis.decision.maker import decide, describe_maker, required_columns
from mutandis.errors import DecisionError, KindError, MissingValuesError, UnknownColumnError
from mutandis.outcomes.binary import BinaryKind
from mutandis.outcomes.outcome import Outcome
from mutandis.rooms.models import load_onnx

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytest.importorskip("onnxruntime", reason="ONNX models need onnxruntime (the extra 'onnx')")
onnx = pytest.importorskip("onnx", reason="the tests build ONNX models with onnx")

YES_NO = Outcome(
    column="granted", kind=BinaryKind(negative="no", positive="yes"), codes=np.array([True])
)
ONE_ZERO = Outcome(
    column="granted", kind=BinaryKind(negative=0, positive=1), codes=np.array([True])
)
RNG = np.random.default_rng(5)
TABLE = pd.DataFrame(
    {
        "who": [f"Jane Roe {number}" for number in range(60)],
        "salary": RNG.normal(30, 5, 60),
        "balance": RNG.integers(0, 20, 60),
        "job": ["cook", "clerk", "judge"] * 20,
    }
)
GRANTED = np.where(TABLE["salary"] + TABLE["balance"] > 40, "yes", "no")


def converted(path: Path, *, zipmap: bool = True, numbers: bool = False) -> tuple[Path, Any]:
    """Fit a logistic regression on a matrix and convert it."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="converts scikit-learn models")
    from skl2onnx.common.data_types import FloatTensorType
    from sklearn.linear_model import LogisticRegression

    target = (GRANTED == "yes").astype(int) if numbers else GRANTED
    model = LogisticRegression().fit(TABLE[["salary", "balance"]].to_numpy(), target)
    made = skl2onnx.convert_sklearn(
        model, initial_types=[("X", FloatTensorType([None, 2]))], options={"zipmap": zipmap}
    )
    path.write_bytes(made.SerializeToString())
    return path, model


def by_column(path: Path) -> tuple[Path, Any]:
    """Fit a pipeline on named columns, text among them, and convert it: an input for each."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="converts scikit-learn models")
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encoder = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression())
    model.fit(TABLE[["salary", "job"]], np.where(TABLE["job"] == "judge", "yes", GRANTED))
    types = [("salary", FloatTensorType([None, 1])), ("job", StringTensorType([None, 1]))]
    made = skl2onnx.convert_sklearn(model, initial_types=types)
    path.write_bytes(made.SerializeToString())
    return path, model


def graph(
    path: Path,
    nodes: list[Any],
    inputs: dict[str, tuple[int, list[Any]]],
    outputs: dict[str, tuple[int, list[Any]]],
) -> Path:
    """Write a graph that is built by hand."""
    helper = onnx.helper

    def declared(parts: dict[str, tuple[int, list[Any]]]) -> list[Any]:
        return [
            helper.make_tensor_value_info(name, kind, shape)
            for name, (kind, shape) in parts.items()
        ]

    made = helper.make_model(
        helper.make_graph(nodes, "credit", declared(inputs), declared(outputs)),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    path.write_bytes(made.SerializeToString())
    return path


FLOAT, INT64, STRING, BOOL = 1, 7, 8, 9


def passing(path: Path, kind: int, shape: list[Any], out: int | None = None) -> Path:
    """Write a model that gives back what it gets."""
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    return graph(path, [node], {"x": (kind, shape)}, {"y": (out or kind, shape)})


# --- what comes out of scikit-learn ---------------------------------------------------------------


def test_a_matrix_of_named_columns(tmp_path: Path, as_frame: Callable[[Any], Any]) -> None:
    path, model = converted(tmp_path / "credit.onnx")
    maker = load_onnx(path, columns=["salary", "balance"])
    expected = model.predict(TABLE[["salary", "balance"]].to_numpy()) == "no"
    assert 0 < expected.sum() < 60
    frame = as_frame(TABLE.to_dict("list"))
    assert decide(maker, frame, YES_NO).tolist() == expected.tolist()
    assert required_columns(maker) == ("salary", "balance")
    assert describe_maker(maker) == {
        "kind": "onnx",
        "file": "credit.onnx",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "columns": ["salary", "balance"],
        "output": "output_label",
    }


@pytest.mark.parametrize(("zipmap", "score_of"), [(True, "yes"), (False, 1)])
def test_probabilities_with_a_threshold(tmp_path: Path, zipmap: bool, score_of: Any) -> None:
    path, model = converted(tmp_path / "credit.onnx", zipmap=zipmap)
    maker = load_onnx(path, columns=["salary", "balance"], scores=True, score_of=score_of)
    probability = model.predict_proba(TABLE[["salary", "balance"]].to_numpy())[:, 1]
    assert np.abs(probability - 0.8).min() > 1e-4
    for favourable in ("above", "below"):
        decided = decide(with_threshold(maker, 0.8, favourable=favourable), TABLE, YES_NO)
        assert decided.tolist() == ((probability < 0.8) == (favourable == "above")).tolist()
    assert describe_maker(maker)["score_of"] == score_of
    assert np.abs(maker.decide(TABLE) - probability).max() < 1e-6


def test_an_input_for_each_column(tmp_path: Path) -> None:
    path, model = by_column(tmp_path / "credit.onnx")
    expected = (model.predict(TABLE[["salary", "job"]]) == "no").tolist()
    maker = load_onnx(path)
    assert required_columns(maker) == ("salary", "job")
    assert decide(maker, TABLE, YES_NO).tolist() == expected
    # the columns of the table are called otherwise
    renamed = TABLE.rename(columns={"salary": "annual salary", "job": "occupation"})
    other = load_onnx(path, columns={"salary": "annual salary", "job": ["occupation"]})
    assert decide(other, renamed, YES_NO).tolist() == expected
    typed = TABLE.astype({"job": "category"})
    assert decide(maker, typed, YES_NO).tolist() == expected


# --- shapes and types -----------------------------------------------------------------------------


def test_whole_numbers_are_not_cut_off(tmp_path: Path) -> None:
    maker = load_onnx(passing(tmp_path / "m.onnx", INT64, [None]), columns=["granted"])
    whole = pd.DataFrame({"granted": [0.0, 1.0, 1.0]})
    assert decide(maker, whole, ONE_ZERO).tolist() == [True, False, False]
    with pytest.raises(DecisionError, match=r"cannot hold 1 of 3 values of column 'granted'"):
        decide(maker, pd.DataFrame({"granted": [0, 1, 0.5]}), ONE_ZERO)
    with pytest.raises(DecisionError, match="cannot hold 1 of 2"):
        decide(maker, pd.DataFrame({"granted": [1, 1e300]}), ONE_ZERO)


def test_other_types(tmp_path: Path) -> None:
    truths = load_onnx(passing(tmp_path / "b.onnx", BOOL, [None, 1]), columns=["owner"])
    table = pd.DataFrame({"owner": [True, False, True]})
    assert decide(truths, table, ONE_ZERO).tolist() == [False, True, False]
    with pytest.raises(DecisionError, match="cannot hold 1 of 3"):
        decide(truths, pd.DataFrame({"owner": [0, 1, 2]}), ONE_ZERO)
    names = load_onnx(passing(tmp_path / "s.onnx", STRING, [None]), columns=["code"])
    table = pd.DataFrame({"code": ["no", "yes"]})
    assert decide(names, table, YES_NO).tolist() == [True, False]
    assert names.decide(pd.DataFrame({"code": [3, 4]})).tolist() == ["3", "4"]
    with pytest.raises(DecisionError, match="takes text, but column 'code' holds decimal"):
        names.decide(pd.DataFrame({"code": [3.0, 4.5]}))
    with pytest.raises(MissingValuesError, match="'code' has 1 missing"):
        names.decide(pd.DataFrame({"code": ["no", None]}))
    scores = load_onnx(passing(tmp_path / "f.onnx", FLOAT, [None]), columns=["s"], scores=True)
    table = pd.DataFrame({"s": [0.25, 0.75]})
    assert decide(with_threshold(scores, 0.5), table, YES_NO).tolist() == [True, False]
    with pytest.raises(KindError, match="to be read as numbers"):
        scores.decide(pd.DataFrame({"s": ["a", "b"]}))
    with pytest.raises(DecisionError, match="cannot hold 1 of 2"):
        scores.decide(pd.DataFrame({"s": [1, 1e300]}))
    with pytest.raises(MissingValuesError, match="'s' has 1 missing"):
        scores.decide(pd.DataFrame({"s": [1, None]}))
    with pytest.raises(UnknownColumnError, match="'s'"):
        scores.decide(pd.DataFrame({"t": [1]}))


# --- what is refused ------------------------------------------------------------------------------


def refused(path: Path, **options: Any) -> str:
    with pytest.raises(DecisionError) as caught:
        load_onnx(path, **options)
    return str(caught.value)


def test_columns_that_do_not_fit(tmp_path: Path) -> None:
    path, _ = converted(tmp_path / "credit.onnx")
    message = refused(path)
    assert "one input, 'X', which takes a matrix of 2 columns" in message
    assert "columns: [salary, balance]" in message
    assert "shape [any, 2], and 1 columns" in refused(path, columns=["salary"])
    named, _ = by_column(tmp_path / "named.onnx")
    message = refused(named, columns=["wage", "job"])
    assert "inputs 'salary', 'job', and columns= names 'wage', 'job'" in message
    assert "no columns are named: 'job'" in refused(named, columns={"salary": "wage"})
    assert "no input 'salry'. Did you mean 'salary'?" in refused(named, columns={"salry": "wage"})
    cube = passing(tmp_path / "cube.onnx", FLOAT, [None, 2, 2])
    assert "shape [any, 2, 2]" in refused(cube, columns=["a", "b"], scores=True)


def test_outputs_that_do_not_fit(tmp_path: Path) -> None:
    path, _ = converted(tmp_path / "credit.onnx", zipmap=False)
    columns = {"columns": ["salary", "balance"]}
    assert "no output 'labels'. Did you mean 'label'?" in refused(path, output="labels", **columns)
    message = refused(path, output="probabilities", **columns)
    assert "gives scores (type tensor(float)), not decisions. Declare a threshold" in message
    message = refused(path, output="label", scores=True, **columns)
    assert "Leave the threshold out" in message
    for score_of in (None, 2, -1, "yes", True):
        message = refused(path, scores=True, score_of=score_of, **columns)
        assert "the position of the class" in message
        assert "below 2" in message
    mapped, _ = converted(tmp_path / "mapped.onnx")
    assert "Name the class" in refused(mapped, scores=True, **columns)
    maker = load_onnx(mapped, scores=True, score_of="Yes", columns=["salary", "balance"])
    with pytest.raises(
        DecisionError, match="has the classes 'no', 'yes'; 'Yes' is not one of them"
    ):
        decide(with_threshold(maker, 0.5), TABLE, YES_NO)
    only = passing(tmp_path / "only.onnx", FLOAT, [None])
    assert "no output that could be labels" in refused(only, columns=["s"])
    assert "not the score of a class" in refused(only, columns=["s"], scores=True, score_of=1)
    label = load_onnx(path, **columns)  # type: ignore[arg-type]
    with pytest.raises(DecisionError, match="scores=True"):
        with_threshold(label, 0.5)
    with pytest.raises(DecisionError, match="2 distinct answers"):
        decide(label, TABLE, ONE_ZERO)


def test_what_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "text.onnx"
    path.write_text("salary > 3")
    assert "'text.onnx' cannot be loaded as an ONNX model" in refused(path)
    assert "no file 'absent.onnx'" in refused(tmp_path / "absent.onnx")
