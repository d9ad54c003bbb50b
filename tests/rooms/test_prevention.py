"""The study of prevention: what is relabelled, what remains, and what a model makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.errors import DecisionError, PlanError
from mutandis.rooms.prevention import study_prevention

DecisionTreeClassifier = pytest.importorskip("sklearn.tree").DecisionTreeClassifier
LinearRegression = pytest.importorskip("sklearn.linear_model").LinearRegression

QUIET = mm.Uncertainty(refits=0, tipping=False)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)


def made_up(seed: int = 1, rows: int = 420) -> dict[str, list[Any]]:
    """Make a table in which women of the same salary and town are refused more often."""
    rng = np.random.default_rng(seed)
    woman = np.arange(rows) % 3 == 0
    salary = rng.integers(10, 60, rows) - 4 * woman
    town = rng.choice(["north", "south", "west"], rows)
    worth = salary + 6 * (town == "south") - 9 * woman + rng.normal(0, 3, rows)
    return {
        "who": [f"p{each:03}" for each in rng.permutation(rows)],
        "woman": np.where(woman, "yes", "no").tolist(),
        "salary": salary.astype(float).tolist(),
        "town": town.tolist(),
        "answer": np.where(worth > 32, "granted", "refused").tolist(),
    }


def settings(**changes: Any) -> dict[str, Any]:
    return {
        "outcome": "answer",
        "negative": "refused",
        "protected": mm.Protection("woman", value="yes", reference="no"),
        "attributes": {"salary": "continuous", "town": "nominal"},
        "worldview": mm.Worldview({"salary": mm.Linear("woman")}),
        "ks": (15, 25),
        "id": "who",
        "uncertainty": QUIET,
    } | changes


def mirrored() -> tuple[dict[str, Any], dict[str, Any]]:
    """Look for better treatment: the same table with both outcomes exchanged."""
    table = made_up()
    other = {"granted": "refused", "refused": "granted"}
    table["answer"] = [other[each] for each in table["answer"]]
    return table, settings(evidence=mm.Evidence(direction="positive"))


def relabel_by_hand(table: dict[str, Any], found: mm.Audit, *, own: bool, value: str) -> list[str]:
    """Change the decisions of confirmed cases, row by row, from the table of findings."""
    other = {"granted": "refused", "refused": "granted"}
    confirmed = {
        row["id"]
        for row in found.findings().to_dict("records")
        if row["verdict"] == "significant-adjusted"
        and row["outcome"] == value
        and (row["own_case"] is True or not own)
    }
    pairs = zip(table["who"], table["answer"], strict=True)
    return [other[answer] if who in confirmed else answer for who, answer in pairs]


def rows_of(audit: mm.Audit, method: str = "cst_matched") -> list[dict[str, Any]]:
    found = audit.findings(method, k=25)
    rows: list[dict[str, Any]] = (
        found.sort_values("id").astype(object).where(found.notna(), None).to_dict("records")
    )
    return rows


@pytest.mark.parametrize("rule", ["own-case", "pattern"])
@pytest.mark.parametrize("direction", ["negative", "positive"])
def test_confirmed_cases_are_relabelled_and_the_table_is_audited_again(
    direction: str, rule: Any
) -> None:
    table, options = (made_up(), settings()) if direction == "negative" else mirrored()
    before = {name: list(values) for name, values in table.items()}
    found = mm.audit(table, **options)
    study = study_prevention(found, rule=rule)
    value = "refused" if direction == "negative" else "granted"
    by_hand = relabel_by_hand(table, found, own=rule == "own-case", value=value)
    assert study.decisions()["answer"].tolist() == by_hand
    assert table == before  # the table of the caller stays as it is
    changed = [a != b for a, b in zip(by_hand, table["answer"], strict=True)]
    assert study.relabelled == sum(changed) > 10
    own_cases = study.counts()["pattern_and_own_case"].tolist()
    assert rule == "pattern" or own_cases[0] == study.relabelled
    assert set(study.ids) == set(np.array(table["who"])[changed])
    # what else is in the table is not touched
    rest = ["who", "woman", "salary", "town"]
    assert study.decisions()[rest].to_dict("list") == {name: table[name] for name in rest}

    again = mm.audit(table | {"answer": by_hand}, **options)
    for method in again.methods:
        assert rows_of(study.audits["relabelled"], method) == rows_of(again, method)
    assert study.audits["relabelled"].counts().equals(again.counts())


def test_a_model_is_retrained_on_both_tables() -> None:
    table, options = made_up(), settings()
    found = mm.audit(table, **options)
    study = study_prevention(found, TREE)
    assert not hasattr(TREE, "tree_")  # a copy was trained
    relabelled = relabel_by_hand(table, found, own=True, value="refused")
    features = np.array(
        [
            [salary, *(float(town == each) for each in ("north", "south", "west"))]
            for salary, town in zip(table["salary"], table["town"], strict=True)
        ]
    )
    for name, answers in (("record", table["answer"]), ("relabelled", relabelled)):
        model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(features, answers)
        decided = model.predict(features).tolist()
        assert set(decided) == {"granted", "refused"}
        again = mm.audit(table | {"answer": decided}, **options)
        audited = study.audits[f"model on {name}"]
        assert audited.plan.population.frame()["answer"].tolist() == decided
        assert audited.counts().equals(again.counts())
        assert rows_of(audited) == rows_of(again)


class Remembering:
    """A model that learns from rows in the middle alone, so that it depends on their order."""

    def fit(self, features: Any, answers: Any) -> None:
        middle = len(features) // 2
        self.threshold = float(features.iloc[middle : middle + 3, 0].mean())
        self.answers = sorted(set(answers))

    def predict(self, features: Any) -> Any:
        return np.where(features.iloc[:, 0] > self.threshold, *self.answers)


@pytest.mark.parametrize("model", [TREE, Remembering()])
def test_the_order_of_rows_changes_no_number(model: Any) -> None:
    table = made_up()
    order = np.random.default_rng(5).permutation(len(table["who"]))
    shuffled = {name: [values[each] for each in order] for name, values in table.items()}
    one = study_prevention(mm.audit(table, **settings()), model)
    other = study_prevention(mm.audit(shuffled, **settings()), model)
    assert one.counts().equals(other.counts())
    assert set(one.ids) == set(other.ids)
    for name, audit in one.audits.items():
        assert rows_of(audit) == rows_of(other.audits[name])


def test_the_decision_maker_is_not_asked_again() -> None:
    table = made_up()
    asked: list[int] = []

    def decision(frame: Any) -> Any:
        asked.append(len(frame))
        return np.where(frame["salary"] > 32, "granted", "refused")

    found = mm.audit(table, **settings(decision=decision))
    assert "cst_with" in found.methods
    times = len(asked)
    study = study_prevention(found)
    assert len(asked) == times
    assert study.audits["relabelled"].methods == ("st", "cst_without", "cst_matched")
    assert study.audits["relabelled"].plan.decision is None
    # without b(), the verdicts of the matched comparison are the same
    without = study_prevention(mm.audit(table, **settings()))
    assert study.counts().equals(without.counts())


def test_what_has_no_meaning_is_refused() -> None:
    table = made_up()
    found = mm.audit(table, **settings(decision="salary > 32"))
    with pytest.raises(PlanError, match=r"rule='all' is unknown. Allowed: own-case, pattern"):
        study_prevention(found, rule="all")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="'cf' asks the decision maker, who would repeat"):
        study_prevention(found.with_levels(method="cf"), rule="pattern")
    with pytest.raises(PlanError, match="'st' says nothing about a complainant's own case"):
        study_prevention(found.with_levels(method="st"))
    with pytest.raises(PlanError, match="model= is the class DecisionTreeClassifier"):
        study_prevention(found, DecisionTreeClassifier)
    with pytest.raises(PlanError, match=r"model= is str. Give an object with the methods fit"):
        study_prevention(found, "tree")
    unadjusted = mm.audit(table, **settings(evidence=mm.Evidence(adjust="none")))
    with pytest.raises(PlanError, match="this audit has adjust='none'"):
        study_prevention(unadjusted)


def test_audits_of_another_kind_are_refused() -> None:
    table = made_up()
    several = table | {
        "answer": [
            "later" if a == "refused" and s > 25 else a
            for a, s in zip(table["answer"], table["salary"], strict=True)
        ]
    }
    classes = mm.audit(several, **settings(negative=["refused", "later"]))
    with pytest.raises(PlanError, match="'answer' has more than two values"):
        study_prevention(classes)
    rates = table | {"rate": [5.0 - salary / 10 for salary in table["salary"]]}
    score = mm.Score("rate", worse="higher")
    scored = mm.audit(rates, **settings(outcome=score, negative=None))
    with pytest.raises(PlanError, match="'rate' has more than two values"):
        study_prevention(scored)
    table["old"] = np.random.default_rng(3).choice(["yes", "no"], 420).tolist()
    grounds = [
        mm.Protection("woman", value="yes", reference="no"),
        mm.Protection("old", value="yes", reference="no"),
    ]
    both = mm.Worldview({"salary": mm.Linear("woman", "old")})
    multiple = mm.audit(
        table, **settings(protected=grounds, combine="multiple", worldview=both, ks=(15,))
    )
    with pytest.raises(PlanError, match=r"audit\.parts\['woman'\]"):
        study_prevention(multiple)
    part = multiple.parts["woman"]
    assert study_prevention(part).counts()["complainants"].tolist() == [len(part.findings())] * 2


class Failing:
    def fit(self, features: Any, answers: Any) -> None:
        raise ValueError(f"cannot learn from {answers[0]}")

    def predict(self, features: Any) -> Any:
        return features


def test_a_model_that_does_not_decide_is_refused() -> None:
    found = mm.audit(made_up(), **settings(ks=(25,)))
    with pytest.raises(DecisionError, match=r"Failing.*stopped with ValueError") as caught:
        study_prevention(found, Failing())
    assert "cannot learn" not in str(caught.value)
    numbers = made_up()
    numbers["answer"] = [int(each == "granted") for each in numbers["answer"]]
    other = mm.audit(numbers, **settings(ks=(25,), negative=0))
    with pytest.raises(DecisionError, match="Turn a score or a probability into a decision"):
        study_prevention(other, LinearRegression())
