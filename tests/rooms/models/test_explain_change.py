"""Why a decision changes: trees walked by hand, sums of columns, conditions of rules."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.data.formula import Formula
from mutandis.decision.model import ModelMaker, as_decision_maker
from mutandis.decision.rule import FormulaScores, Rule

tree = pytest.importorskip("sklearn.tree")
linear = pytest.importorskip("sklearn.linear_model")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    pay, balance = rng.normal(50, 10, 400).round(1), rng.normal(5, 3, 400).round(2)
    woman = rng.integers(0, 2, 400)
    granted = pay + 4 * balance - 3 * woman + rng.normal(0, 4, 400) > 68
    return pd.DataFrame(
        {"pay": pay, "balance": balance, "woman": woman, "granted": np.where(granted, "yes", "no")}
    )


X = ["pay", "balance", "woman"]


def pairs(table: pd.DataFrame) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    return [
        (here, here.assign(pay=here["pay"] + step, balance=here["balance"] + rise, woman=0))
        for here in (table.iloc[[row]] for row in range(60))
        for step, rise in ((0.0, 0.0), (4.0, 0.0), (15.0, 0.0), (0.0, 6.0))
    ]


def walk(model: Any, row: pd.DataFrame) -> list[tuple[str, str, float]]:
    """Follow the tree question by question."""
    nodes, node, path = model.tree_, 0, []
    while nodes.children_left[node] >= 0:
        name, border = X[nodes.feature[node]], nodes.threshold[node]
        left = np.float32(row[name].iloc[0]) <= border
        path.append((name, "≤" if left else ">", float(border)))
        node = nodes.children_left[node] if left else nodes.children_right[node]
    return path


def test_a_tree_is_walked_as_by_hand(table: pd.DataFrame) -> None:
    model = tree.DecisionTreeClassifier(max_depth=5, random_state=0).fit(table[X], table["granted"])
    maker = ModelMaker(model)
    seen = set()
    sides = zip(*pairs(table), strict=True)
    predicted = [model.predict(pd.concat(side)[X]) for side in sides]
    for (before, after), *answers in zip(pairs(table), *predicted, strict=True):
        lines = maker.explain_change(before, after)
        here, there = walk(model, before), walk(model, after)
        if here == there:
            asked = f"The decision tree asks both records the same {len(here)} questions and gets"
            assert lines == (f"{asked} the same answers: {answers[0]}.",)
            seen.add("same")
            continue
        common = next(i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b)
        name, _, border = here[common]
        assert lines[0].startswith(
            f"The decision tree separates the two records at its question {common + 1}, whether "
            f"{name} is at most {border:,.6g}"
        )
        if common:
            assert lines[1] == f"Before that, both have {said(here[:common])}."
        assert lines[-2] == f"On record: {said(here[common:])}; the answer is {answers[0]}."
        assert lines[-1] == f"Counterfactual: {said(there[common:])}; the answer is {answers[1]}."
        seen.add("at once" if not common else "later")
    assert seen == {"same", "at once", "later"}


def said(path: list[tuple[str, str, float]]) -> str:
    written = (f"{name} {sign} {border:,.6g}" for name, sign, border in path)
    return ", ".join(written).replace("-", "−")


@pytest.mark.parametrize("scaled", [False, True])
def test_contributions_add_up_to_the_change_of_the_score(table: pd.DataFrame, scaled: bool) -> None:
    model = linear.LogisticRegression(max_iter=1000)
    if scaled:
        model = pipeline.make_pipeline(preprocessing.StandardScaler(), model)
    model.fit(table[X], table["granted"])
    for before, after in pairs(table)[:20]:
        lines = ModelMaker(model).explain_change(before, after)
        scores = [float(model.decision_function(each[X])[0]) for each in (before, after)]
        numbers = [number(each) for each in re.findall(r"−?[\d,.]+\d", lines[0])]
        assert numbers[:2] == pytest.approx(scores, rel=1e-4, abs=1e-4)
        assert lines[0].startswith("The score for yes is ")
        changes = [number(line.rsplit(" by ", 1)[1].rstrip(".")) for line in lines[1:]]
        assert sum(changes) == pytest.approx(scores[1] - scores[0], rel=1e-4, abs=1e-4)
        assert [abs(each) for each in changes] == sorted(map(abs, changes), reverse=True)


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-").replace("+", ""))


def test_of_other_models_nothing_is_said(table: pd.DataFrame) -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    model = neighbors.KNeighborsClassifier().fit(table[X], table["granted"])
    assert ModelMaker(model).explain_change(*pairs(table)[1]) == ()
    several = linear.LogisticRegression(max_iter=2000).fit(table[X], np.arange(400) % 3)
    assert ModelMaker(several).explain_change(*pairs(table)[1]) == ()
    counts = linear.PoissonRegressor().fit(table[X], table["balance"].abs())
    assert ModelMaker(counts).explain_change(*pairs(table)[1]) == ()

    class Pretender:
        tree_ = None

        def predict(self, rows: Any) -> Any:
            return ["no"] * len(rows)

    assert ModelMaker(Pretender(), columns=("pay",)).explain_change(*pairs(table)[1]) == ()
    assert (
        as_decision_maker(lambda frame: ["no"] * len(frame)).explain_change(  # type: ignore[attr-defined]
            *pairs(table)[1]
        )
        == ()
    )


def test_a_rule_names_the_conditions_that_change() -> None:
    rule = Rule.parse("(pay > 50 and balance >= 2) or (job == 'cook' and woman == 0)")
    before = pd.DataFrame({"pay": [48.0], "balance": [3.0], "woman": [1], "job": ["cook"]})
    after = before.assign(pay=52.5, woman=0)
    then = "does not hold on record and holds in the counterfactual"
    assert rule.explain_change(before, after) == (
        f"The condition pay > 50 {then}; pay is 48 and 52.5.",
        f"The condition woman == 0 {then}; woman is 1 and 0.",
    )
    # quoted as it was written, and what it reads by its label
    assert rule.explain_change(before, after, {"pay": "income", "woman": "sex"}.__getitem__) == (
        f"The condition pay > 50 {then}; income is 48 and 52.5.",
        f"The condition woman == 0 {then}; sex is 1 and 0.",
    )
    assert rule.explain_change(before, before) == ()
    assert FormulaScores(Formula.parse("pay + balance")).explain_change(before, after) == ()


def test_the_case_file_shows_it(table: pd.DataFrame, tmp_path: Any) -> None:
    model = tree.DecisionTreeClassifier(max_depth=4, random_state=0).fit(table[X], table["granted"])

    def run(decision: Any) -> mm.Audit:
        return mm.audit(
            table,
            outcome="granted",
            negative="no",
            protected=mm.Protection("woman", value=1, reference=0),
            attributes={"pay": "continuous", "balance": "continuous"},
            worldview=mm.Worldview({"pay": mm.Linear("woman"), "balance": mm.Linear("woman")}),
            decision=decision,
            ks=(15,),
            uncertainty=mm.Uncertainty(refits=1, tipping=False),
        )

    found = run(model)
    other = found.counterfactuals()
    changes = (model.predict(table[X]) == "no") & (model.predict(other[X]) == "yes")
    who = int(np.flatnonzero(changes & (table["woman"] == 1))[0])
    document = found.case_file(who)
    assert document.parts[0].decision[0].startswith("The decision tree separates the two records")
    assert "How the decision maker comes to its answers" in document.to_html()
    assert found.case_file(who, redact=True).parts[0].decision == ()
    # a rule is known after the results were opened again, a model is not loaded
    found.save(tmp_path / "model")
    assert mm.open_results(tmp_path / "model").case_file(who).parts[0].decision == ()
