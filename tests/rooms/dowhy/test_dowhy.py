"""DoWhy's models as worldviews: the same counterfactuals as DoWhy's own, and as ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.data.population import Population
from mutandis.errors import CycleError, EquationError, WorldviewError
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
    model = _model(edges, mechanism, **special)
    gcm.fit(model, table)
    return model


def _model(edges: Edges, mechanism: Callable[[], Any] = _linear, **special: Any) -> Any:
    model = gcm.InvertibleStructuralCausalModel(nx.DiGraph(edges))
    for node in model.graph.nodes:
        is_root = model.graph.in_degree(node) == 0
        usual = gcm.EmpiricalDistribution() if is_root else mechanism()
        model.set_causal_mechanism(node, special.get(node, usual))
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


# what cannot be used

ONE: Edges = [("Gender", "Salary")]


def _table(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    gender = rng.integers(0, 2, rows)
    salary = np.exp(3.0 - 0.3 * gender + 0.2 * rng.normal(size=rows))
    balance = np.exp(1.0 + 0.05 * salary - 0.2 * gender + 0.1 * rng.normal(size=rows))
    return pd.DataFrame({"Gender": gender, "Salary": salary, "Balance": balance})


def _named(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(Gender=table["Gender"].map({0: "male", 1: "female"}))


def _exponential() -> Any:
    return _post_nonlinear(gcm.ml.regression.InvertibleExponentialFunction())


def test_what_is_no_model() -> None:
    with pytest.raises(WorldviewError, match="DiGraph is not a graphical causal model"):
        Worldview.from_dowhy(nx.DiGraph(LOAN))


def test_a_node_without_a_mechanism() -> None:
    model = _fitted(ONE, _table())
    model.graph.add_edge("Gender", "Balance")
    with pytest.raises(WorldviewError, match="Node 'Balance' of the DoWhy model has no causal"):
        Worldview.from_dowhy(model)


@pytest.mark.parametrize("unfitted", ["Gender", "Salary"])
def test_a_node_that_is_not_fitted(unfitted: str) -> None:
    model = _model(ONE)
    for node in {"Gender", "Salary"} - {unfitted}:
        gcm.fitting_sampling.fit_causal_model_of_target(model, node, _table())
    with pytest.raises(WorldviewError, match=rf"Node '{unfitted}'.*is not fitted.*gcm\.fit"):
        Worldview.from_dowhy(model)


def test_a_cycle_is_named() -> None:
    model = _fitted([("Gender", "Salary"), ("Salary", "Balance")], _table())
    model.graph.add_edge("Balance", "Salary")
    model.graph.nodes["Salary"]["parents_during_fit"] = ["Balance", "Gender"]
    with pytest.raises(CycleError, match="Balance → Salary → Balance"):
        Worldview.from_dowhy(model)


def test_a_mechanism_that_is_not_invertible() -> None:
    base: Any = gcm.causal_mechanisms.ConditionalStochasticModel

    class Sampler(base):  # type: ignore[misc]
        def fit(self, X: NDArray[Any], Y: NDArray[Any]) -> None:
            pass

        def draw_samples(self, parent_samples: NDArray[Any]) -> NDArray[Any]:
            return np.zeros(len(parent_samples))

        def clone(self) -> Any:
            return Sampler()

    model = _fitted(LOAN, _table(), Salary=Sampler())
    with pytest.raises(WorldviewError, match=r"Node 'Salary'.*\(Sampler\).*AdditiveNoiseModel"):
        Worldview.from_dowhy(model)


def test_a_mechanism_that_only_claims_to_be_invertible() -> None:
    class AtLeastFour:
        def evaluate(self, X: NDArray[Any]) -> NDArray[Any]:
            return np.asarray(np.maximum(X, 4.0))

        def evaluate_inverse(self, X: NDArray[Any]) -> NDArray[Any]:
            return X

    table = _table()
    worldview = Worldview.from_dowhy(_fitted(LOAN, table, Balance=_post_nonlinear(AtLeastFour())))
    lost = int((table["Balance"] < 4.0).sum())
    assert 0 < lost < len(table)
    message = f"'Balance': for {lost} of 400 rows DoWhy's noise does not lead back"
    with pytest.raises(EquationError, match=message):
        worldview.counterfactuals(_people(table), do={"Gender": 0})


def test_an_intervention_that_leads_out_of_all_numbers() -> None:
    table = _table()
    worldview = Worldview.from_dowhy(_fitted(LOAN, table, Balance=_exponential()))
    with pytest.raises(EquationError, match="'Balance': 400 of 400 predicted values"):
        worldview.counterfactuals(_people(table), do={"Salary": 1e6})


def test_nodes_are_columns() -> None:
    table = pd.DataFrame({0: [0, 1, 0, 1], 1: [1.0, 2.0, 3.0, 5.0]})
    model = gcm.InvertibleStructuralCausalModel(nx.DiGraph([(0, 1)]))
    model.set_causal_mechanism(0, gcm.EmpiricalDistribution())
    model.set_causal_mechanism(1, gcm.AdditiveNoiseModel(gcm.ml.create_linear_regressor()))
    gcm.fit(model, table)
    with pytest.raises(WorldviewError, match="Node 0 of the DoWhy model is not text"):
        Worldview.from_dowhy(model)


def test_a_level_that_dowhy_has_not_seen() -> None:
    worldview = Worldview.from_dowhy(_fitted(ONE, _named(_table())))
    other = _named(_table())
    other.loc[[3, 5, 6], "Gender"] = "Jane Roe"
    with pytest.raises(EquationError, match="'Salary': parent 'Gender' has 3 rows") as caught:
        worldview.fit(_people(other))
    assert "Jane Roe" not in str(caught.value)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("Loan", r"no node 'Loan'\. Its nodes are 'Gender', 'Salary'"),
        ("Salary", "outcome 'Salary' causes 'Balance'"),
    ],
)
def test_an_outcome_that_cannot_be_left_out(outcome: str, said: str) -> None:
    with pytest.raises(WorldviewError, match=said):
        Worldview.from_dowhy(_fitted(LOAN, _table()), outcome=outcome)


@pytest.mark.parametrize(
    ("fitted", "given", "said"),
    [
        (_table, lambda: _named(_table()), "holds names, but DoWhy"),
        (lambda: _named(_table()), _table, "held names when DoWhy"),
    ],
)
def test_a_column_in_another_form_than_that_of_the_fit(
    fitted: Callable[[], Any], given: Callable[[], Any], said: str
) -> None:
    worldview = Worldview.from_dowhy(_fitted(ONE, fitted()))
    with pytest.raises(EquationError, match=f"'Salary': parent 'Gender' {said}"):
        worldview.fit(_people(given()))
