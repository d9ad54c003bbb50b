"""DoWhy's models as worldviews: the same counterfactuals as DoWhy's own, and as ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.data.population import Population
from mutandis.errors import WorldviewError
from mutandis.rooms.dowhy import DowhyMechanism
from mutandis.scm import Linear, Worldview

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

gcm = pytest.importorskip(
    "dowhy.gcm", reason="DoWhy is not installed here; its tests run with `make test-dowhy`"
)
gcm.config.disable_progress_bars()

Edges = list[tuple[str, str]]
LOAN: Edges = [("Gender", "Salary"), ("Salary", "Balance"), ("Gender", "Balance")]


def _people(table: pd.DataFrame) -> Population:
    return Population.from_frame(table, columns=[str(name) for name in table])


def _linear() -> Any:
    return gcm.AdditiveNoiseModel(gcm.ml.create_linear_regressor())


def _fitted(
    edges: Edges, table: pd.DataFrame, mechanism: Callable[[], Any] = _linear, **special: Any
) -> Any:
    """Fit a DoWhy model that has one kind of mechanism everywhere, but for the special nodes."""
    model = gcm.InvertibleStructuralCausalModel(nx.DiGraph(edges))
    for node in model.graph.nodes:
        is_root = model.graph.in_degree(node) == 0
        usual = gcm.EmpiricalDistribution() if is_root else mechanism()
        model.set_causal_mechanism(node, special.get(node, usual))
    gcm.fit(model, table)
    return model


def _of_dowhy(model: Any, table: pd.DataFrame, do: Mapping[str, Any]) -> pd.DataFrame:
    """Ask DoWhy itself."""
    interventions = {name: (lambda _, value=value: value) for name, value in do.items()}
    answer: pd.DataFrame = gcm.counterfactual_samples(model, interventions, observed_data=table)
    return answer


def _assert_same(after: Population, expected: pd.DataFrame, *, names: list[str]) -> None:
    for name in names:
        given = expected[name].to_numpy(dtype=np.float64)
        np.testing.assert_allclose(after.numbers(name), given, rtol=1e-8, atol=1e-8, err_msg=name)


def _loan_table(rows: int = 400, seed: int = 5) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    gender = rng.integers(0, 2, rows)
    salary = np.exp(3.0 - 0.3 * gender + 0.2 * rng.normal(size=rows))
    balance = 5.0 + 0.4 * salary - 2.0 * gender + rng.normal(size=rows)
    return pd.DataFrame({"Gender": gender, "Salary": salary, "Balance": balance})


def _random_model(seed: int) -> tuple[Edges, pd.DataFrame]:
    """Draw a graph of 3 to 6 nodes, with names in no order, and data from a linear model of it."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(list("abcdef"))[: rng.integers(3, 7)].tolist()
    edges: Edges = [(names[0], names[1])]
    columns: dict[str, NDArray[Any]] = {names[0]: rng.integers(0, 3, 150).astype(np.float64)}
    for place, child in enumerate(names[1:], start=1):
        parents = [name for name in names[:place] if rng.random() < 0.6]
        edges += [(parent, child) for parent in parents if (parent, child) not in edges]
        causes = [parent for parent, effect in edges if effect == child]
        effects = sum((rng.normal(0, 2) * columns[cause] for cause in causes), np.zeros(150))
        columns[child] = rng.normal(0, 10) + effects + rng.normal(0, 1 + place, 150)
    return edges, pd.DataFrame(columns)


def _parents(edges: Edges) -> dict[str, list[str]]:
    return {child: [cause for cause, effect in edges if effect == child] for _, child in edges}


@pytest.mark.parametrize("seed", range(12))
def test_linear_models_three_ways(seed: int) -> None:
    edges, table = _random_model(seed)
    model = _fitted(edges, table)
    adapter = Worldview.from_dowhy(model)
    ours = Worldview({child: Linear(*causes) for child, causes in _parents(edges).items()})
    assert set(adapter.graph.names) == set(ours.graph.names)
    people = _people(table)
    root, *others = edges[0]
    inner = others[0]
    interventions: list[dict[str, float]] = [{root: 0.0}, {root: 2.0}, {inner: -3.5}]
    interventions += [{root: 1.0, inner: 4.0}]
    for do in interventions:
        expected = _of_dowhy(model, table, do)
        names = list(adapter.graph.names)
        _assert_same(adapter.counterfactuals(people, do=do).population, expected, names=names)
        _assert_same(ours.counterfactuals(people, do=do).population, expected, names=names)


def test_numbers_by_hand() -> None:
    table = pd.DataFrame({"Gender": [0, 0, 1, 1], "Salary": [40.0, 60.0, 30.0, 40.0]})
    worldview = Worldview.from_dowhy(_fitted([("Gender", "Salary")], table))
    # means are 50 and 35: whoever moves from 1 to 0 gains 15
    after = worldview.counterfactuals(_people(table), do={"Gender": 0}).population
    assert after.numbers("Salary").tolist() == pytest.approx([40, 60, 45, 55], abs=1e-12)


class _Tenfold:
    """An invertible function of a user's own."""

    def evaluate(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(10 * X)

    def evaluate_inverse(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(X / 10)


def _post_nonlinear(function: Any) -> Any:
    return gcm.PostNonlinearModel(
        gcm.ml.create_linear_regressor(), gcm.EmpiricalDistribution(), function
    )


MECHANISMS: dict[str, Callable[[], Any]] = {
    "linear": _linear,
    "polynomial": lambda: gcm.AdditiveNoiseModel(gcm.ml.create_polynom_regressor()),
    "forest on two threads": lambda: gcm.AdditiveNoiseModel(
        gcm.ml.create_random_forest_regressor(n_estimators=30, n_jobs=2, random_state=0)
    ),
    "exponential": lambda: _post_nonlinear(gcm.ml.regression.InvertibleExponentialFunction()),
    "own function": lambda: _post_nonlinear(_Tenfold()),
}


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("do", [{"Gender": 0}, {"Salary": 21.5}, {"Gender": 1, "Salary": 14.0}])
def test_every_invertible_mechanism_as_dowhy_has_it(kind: str, do: dict[str, float]) -> None:
    table = _loan_table().assign(Balance=lambda t: t["Balance"].clip(lower=0.5))
    model = _fitted(LOAN, table, MECHANISMS[kind])
    after = Worldview.from_dowhy(model).counterfactuals(_people(table), do=do).population
    _assert_same(after, _of_dowhy(model, table, do), names=["Salary", "Balance"])


@pytest.mark.parametrize("kind", MECHANISMS)
def test_whoever_has_the_value_already_does_not_change(kind: str) -> None:
    table = _loan_table().assign(Balance=lambda t: t["Balance"].clip(lower=0.5))
    worldview = Worldview.from_dowhy(_fitted(LOAN, table, MECHANISMS[kind]))
    people = _people(table)
    has_it = table["Gender"].to_numpy() == 0
    after = worldview.counterfactuals(people, do={"Gender": 0}).population
    for name in ("Salary", "Balance"):
        before = people.numbers(name)
        assert after.numbers(name)[has_it].tobytes() == before[has_it].tobytes()
        assert (after.numbers(name)[~has_it] != before[~has_it]).any()
    salary = float(table["Salary"].iloc[7])
    after = worldview.counterfactuals(people, do={"Salary": salary}).population
    assert after.numbers("Balance")[7] == people.numbers("Balance")[7]
    assert (after.numbers("Balance") != people.numbers("Balance")).any()


def test_a_cause_without_effect_changes_not_a_bit() -> None:
    table = _loan_table()
    regressor = gcm.ml.create_linear_regressor_with_given_parameters([0.0, 0.3], 0.1)
    edges: Edges = [("Gender", "Balance"), ("Salary", "Balance")]
    worldview = Worldview.from_dowhy(
        _fitted(edges, table, lambda: gcm.AdditiveNoiseModel(regressor))
    )
    people = _people(table)
    after = worldview.counterfactuals(people, do={"Gender": 0})
    assert after.moved == ("Balance",)
    assert after.population.numbers("Balance").tobytes() == people.numbers("Balance").tobytes()


def test_whole_numbers_stay_whole() -> None:
    table = _loan_table()
    table["Dependants"] = np.floor(table["Salary"] / 6).astype(np.int64)
    edges: Edges = [("Gender", "Dependants"), ("Salary", "Dependants"), ("Gender", "Salary")]
    discrete = gcm.DiscreteAdditiveNoiseModel(gcm.ml.create_linear_regressor())
    model = _fitted(edges, table, Dependants=discrete)
    people = _people(table)
    worldview = Worldview.from_dowhy(model)
    after = worldview.counterfactuals(people, do={"Salary": 31.0}).population
    _assert_same(after, _of_dowhy(model, table, {"Salary": 31.0}), names=["Dependants"])
    moved = after.numbers("Dependants")
    assert (moved == np.floor(moved)).all()
    assert (moved != people.numbers("Dependants")).any()


CATEGORIES: dict[str, tuple[list[Any], Any]] = {
    "names": (["female", "male", "other"], "male"),
    "booleans": ([False, True], True),
    # from eight levels on, DoWhy encodes by target instead of one-hot
    "many names": ([f"region {number}" for number in range(12)], "region 4"),
}


@pytest.mark.parametrize("numeric_too", [False, True])
@pytest.mark.parametrize("kind", CATEGORIES)
def test_categorical_causes_as_dowhy_has_them(kind: str, numeric_too: bool) -> None:
    levels, value = CATEGORIES[kind]
    rng = np.random.default_rng(3)
    codes = rng.integers(0, len(levels), 300)
    age = rng.normal(40, 10, 300)
    salary = 30 + 4.0 * (codes % 3) - codes + 0.2 * age + rng.normal(size=300)
    status = pd.Series(levels)[codes].reset_index(drop=True)
    table = pd.DataFrame({"Status": status, "Age": age, "Salary": salary})
    edges: Edges = [("Status", "Salary")] + ([("Age", "Salary")] if numeric_too else [])
    model = _fitted(edges, table)
    people = _people(table)
    after = Worldview.from_dowhy(model).counterfactuals(people, do={"Status": value}).population
    _assert_same(after, _of_dowhy(model, table, {"Status": value}), names=["Salary"])
    has_it = (status == value).to_numpy()
    unmoved = after.numbers("Salary") == people.numbers("Salary")
    assert (unmoved == has_it).all()


def test_fitting_the_model_again_changes_no_worldview() -> None:
    table = _loan_table()
    model = _fitted(LOAN, table)
    people = _people(table)
    worldview = Worldview.from_dowhy(model)
    before = worldview.counterfactuals(people, do={"Gender": 0}).population
    gcm.fit(model, table.assign(Salary=-3 * table["Salary"] + 100 * table["Gender"]))
    after = worldview.counterfactuals(people, do={"Gender": 0}).population
    assert after.numbers("Balance").tobytes() == before.numbers("Balance").tobytes()
    again = Worldview.from_dowhy(model).counterfactuals(people, do={"Gender": 0}).population
    assert (again.numbers("Balance") != before.numbers("Balance")).any()


def test_shuffling_the_rows_changes_not_a_bit() -> None:
    # with eight parents, matrix products round differently at different places
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(1003, 8)), columns=list("abcdefgh"))
    table["y"] = table.sum(axis=1) + rng.normal(size=1003)
    table = pd.concat([table, table.iloc[:100]], ignore_index=True)
    worldview = Worldview.from_dowhy(_fitted([(name, "y") for name in "abcdefgh"], table))
    here = worldview.counterfactuals(_people(table), do={"c": 0.7}).population.numbers("y")
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(table))
        shuffled = _people(table.iloc[order])
        there = worldview.counterfactuals(shuffled, do={"c": 0.7}).population.numbers("y")
        assert there.tobytes() == here[order].tobytes()


# the audit


def _audit(table: pd.DataFrame, **source: Any) -> mm.Audit:
    return mm.audit(
        table,
        outcome="Approved",
        negative=0,
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"Salary": "continuous", "Balance": "continuous"},
        decision="Salary + 2 * Balance > 44",
        ks=(5, 15),
        # a mechanism that DoWhy has fitted is not fitted again
        uncertainty=mm.Uncertainty(refits=0),
        **source,
    )


def _decided() -> pd.DataFrame:
    table = _loan_table()
    return table.assign(Approved=(table["Salary"] + 2 * table["Balance"] > 44).astype(int))


def test_an_audit_from_end_to_end() -> None:
    table = _decided()
    model = _fitted(LOAN, table)
    through_dowhy = _audit(table, worldview=mm.Worldview.from_dowhy(model))
    through_equations = _audit(
        table,
        worldview=Worldview({"Salary": Linear("Gender"), "Balance": Linear("Salary", "Gender")}),
    )
    ready = _of_dowhy(model, table, {"Gender": 0})
    through_a_table = _audit(table, counterfactuals=ready)
    counts = through_dowhy.counts()
    assert counts["cases"].sum() > 0
    assert counts.equals(through_equations.counts())
    assert counts.equals(through_a_table.counts())
    columns = ["id", "outcome_cf", "p_control", "p_test", "delta_p", "verdict"]
    found = through_dowhy.findings("cst_with", k=15)[columns]
    assert found.equals(through_equations.findings("cst_with", k=15)[columns])
    assert "AdditiveNoiseModel using LinearRegression" in str(through_dowhy.provenance)


def test_an_audit_of_a_model_that_has_the_decision_in_it() -> None:
    table = _decided()
    edges: Edges = [*LOAN, ("Salary", "Approved"), ("Balance", "Approved")]
    named = table.assign(Approved=table["Approved"].map({0: "no", 1: "yes"}))
    classifier = gcm.ml.create_logistic_regression_classifier()
    model = _fitted(edges, named, Approved=gcm.ClassifierFCM(classifier))
    with pytest.raises(WorldviewError, match=r"Node 'Approved'.*ClassifierFCM.*outcome="):
        Worldview.from_dowhy(model)
    audit = _audit(table, worldview=Worldview.from_dowhy(model, outcome="Approved"))
    without = _audit(table, worldview=Worldview.from_dowhy(_fitted(LOAN, table)))
    assert audit.counts().equals(without.counts())


# what it says of itself


def test_a_mechanism_is_described_without_addresses() -> None:
    table = _loan_table()
    shown = repr(Worldview.from_dowhy(_fitted(LOAN, table)))
    assert shown == (
        "Worldview({'Salary': DowhyMechanism('Gender', AdditiveNoiseModel using LinearRegression), "
        "'Balance': DowhyMechanism('Gender', 'Salary', AdditiveNoiseModel using LinearRegression)})"
    )

    assert repr(DowhyMechanism(parents=("a",), mechanism=object())) == "DowhyMechanism('a', object)"
    hash(Worldview.from_dowhy(_fitted(LOAN, table)))
