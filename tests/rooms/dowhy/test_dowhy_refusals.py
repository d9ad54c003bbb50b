"""What of a DoWhy model, or of a table for it, cannot be used, and what is said about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from mutandis.data.population import Population
from mutandis.errors import CycleError, EquationError, WorldviewError
from mutandis.scm import Worldview

if TYPE_CHECKING:
    from numpy.typing import NDArray

gcm = pytest.importorskip(
    "dowhy.gcm", reason="DoWhy is not installed here; its tests run with `make test-dowhy`"
)
gcm.config.disable_progress_bars()

Edges = list[tuple[str, str]]
LOAN: Edges = [("Gender", "Salary"), ("Salary", "Balance"), ("Gender", "Balance")]
ONE: Edges = [("Gender", "Salary")]


def _people(table: pd.DataFrame) -> Population:
    return Population.from_frame(table, columns=[str(name) for name in table])


def _table(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    gender = rng.integers(0, 2, rows)
    salary = np.exp(3.0 - 0.3 * gender + 0.2 * rng.normal(size=rows))
    balance = np.exp(1.0 + 0.05 * salary - 0.2 * gender + 0.1 * rng.normal(size=rows))
    return pd.DataFrame({"Gender": gender, "Salary": salary, "Balance": balance})


def _named(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(Gender=table["Gender"].map({0: "male", 1: "female"}))


def _model(edges: Edges, **special: Any) -> Any:
    model = gcm.InvertibleStructuralCausalModel(nx.DiGraph(edges))
    for node in model.graph.nodes:
        is_root = model.graph.in_degree(node) == 0
        linear = gcm.AdditiveNoiseModel(gcm.ml.create_linear_regressor())
        usual = gcm.EmpiricalDistribution() if is_root else linear
        model.set_causal_mechanism(node, special.get(node, usual))
    return model


def _fitted(edges: Edges, table: pd.DataFrame, **special: Any) -> Any:
    model = _model(edges, **special)
    gcm.fit(model, table)
    return model


def _post_nonlinear(function: Any) -> Any:
    regressor = gcm.ml.create_linear_regressor()
    return gcm.PostNonlinearModel(regressor, gcm.EmpiricalDistribution(), function)


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


def test_an_outcome_that_is_no_node() -> None:
    with pytest.raises(WorldviewError, match=r"no node 'Loan'\. Its nodes are 'Gender', 'Salary'"):
        Worldview.from_dowhy(_fitted(LOAN, _table()), outcome="Loan")


def test_an_outcome_that_causes_something() -> None:
    with pytest.raises(WorldviewError, match="outcome 'Salary' causes 'Balance'"):
        Worldview.from_dowhy(_fitted(LOAN, _table()), outcome="Salary")


def test_a_level_that_dowhy_has_not_seen() -> None:
    worldview = Worldview.from_dowhy(_fitted(ONE, _named(_table())))
    other = _named(_table())
    other.loc[[3, 5, 6], "Gender"] = "Jane Roe"
    with pytest.raises(EquationError, match="'Salary': parent 'Gender' has 3 rows") as caught:
        worldview.fit(_people(other))
    assert "Jane Roe" not in str(caught.value)


def test_names_where_dowhy_saw_numbers() -> None:
    worldview = Worldview.from_dowhy(_fitted(ONE, _table()))
    with pytest.raises(EquationError, match="'Salary': parent 'Gender' holds names, but DoWhy"):
        worldview.fit(_people(_named(_table())))


def test_numbers_where_dowhy_saw_names() -> None:
    worldview = Worldview.from_dowhy(_fitted(ONE, _named(_table())))
    with pytest.raises(EquationError, match="'Salary': parent 'Gender' held names when DoWhy"):
        worldview.fit(_people(_table()))
