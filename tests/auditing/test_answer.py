"""The answer at three scales agrees with its definition, and finds what is there."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from tests.answer_oracle import Oracle

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

WOMEN = mm.Protection("woman", value=1, reference=0)


def people(seed: int, rows: int = 400, *, harm: float = 0.8, ties: int = 8) -> pd.DataFrame:
    """Draw a table with a number, ties, a level, and harm of women in units of logits."""
    rng = np.random.default_rng(seed)
    woman = (rng.random(rows) < 0.35).astype(int)
    income = np.round((rng.normal(size=rows) - 0.4 * woman) * ties) / ties
    city = rng.integers(0, 3, size=rows)
    logits = 0.3 + harm * woman - 1.2 * income + 0.5 * (city == 2)
    refused = rng.random(rows) < 1 / (1 + np.exp(-logits))
    return pd.DataFrame(
        {
            "woman": woman,
            "income": income,
            "city": np.array(["a", "b", "c"])[city],
            "granted": np.where(refused, "no", "yes"),
        }
    )


def audit(table: pd.DataFrame, **options: Any) -> mm.Audit:
    settings: dict[str, Any] = {
        "outcome": "granted",
        "negative": "no",
        "protected": WOMEN,
        "attributes": {"income": "continuous", "city": "nominal"},
        "ks": (5,),
        "uncertainty": mm.Uncertainty(tipping=False),
    }
    return mm.audit(table, **{**settings, **options})


def raised(table: pd.DataFrame) -> pd.DataFrame:
    """Give women the incomes that they would have had as men."""
    return table.assign(income=table["income"] + 0.5 * table["woman"])


def oracle(table: pd.DataFrame, worlds: pd.DataFrame) -> Oracle:
    span = np.ptp(table["income"])

    def place(frame: pd.DataFrame) -> NDArray[np.float64]:
        levels = np.array([frame["city"] == each for each in "abc"]).T / 2
        return np.column_stack([frame["income"] / span, levels])

    woman, refused = table["woman"] == 1, (table["granted"] == "no").to_numpy().astype(np.float64)
    return Oracle(
        reference=place(table[~woman]),
        y0=refused[~woman],
        protected=place(table[woman]),
        y1=refused[woman],
        cf=place(worlds[woman]),
        numbers=1,
    )


@pytest.mark.parametrize("seed", range(4))
def test_people_alike_on_record_are_compared_by_definition(seed: int) -> None:
    table = people(seed, ties=(2, 8, 50, 1000)[seed])
    slow, found = oracle(table, table), audit(table)
    effect = found.answer.alike
    assert effect.estimate == pytest.approx(slow.average(slice(None))[0], abs=1e-9)
    assert (effect.low, effect.high) == pytest.approx(slow.bounds(), abs=1e-9)
    assert (found.answer.people.comparable == slow.kept).all()
    kept = np.flatnonzero(slow.kept)
    for column in found.slices().to_dict("records"):
        if column["attribute"] == "city":
            here = table[table["woman"] == 1].iloc[kept]["city"].to_numpy() == column["slice"]
            assert column["n"] == here.sum()
            assert column["estimate"] == pytest.approx(slow.average(here)[0], abs=1e-9)


def test_rare_levels_have_no_slice() -> None:
    table = people(0)
    table["city"] = np.where(np.arange(len(table)) % 20, "a", "b")
    found = audit(table)
    slices = found.slices()
    (row,) = slices[slices["attribute"] == "city"].to_dict("records")
    kept = table[table["woman"] == 1].iloc[np.flatnonzero(found.answer.people.comparable)]
    assert (row["slice"], row["n"]) == ("a", (kept["city"] == "a").sum())
    assert 0 < (kept["city"] == "b").sum() < 30


def test_counterfactuals_are_compared_by_definition() -> None:
    table = people(7)
    slow, found = oracle(table, raised(table)), audit(table, counterfactuals=raised(table))
    alike = oracle(table, table)
    both = slow.kept & alike.kept
    assert (found.answer.people.comparable == both).all()
    if both.all():
        effect = found.answer.worldview
        assert effect is not None
        assert effect.estimate == pytest.approx(slow.average(slice(None))[0], abs=1e-9)
        rests = found.answer.rests_on_worldview
        assert rests is not None
        difference = slow.average(slice(None))[0] - alike.average(slice(None))[0]
        assert rests.estimate == pytest.approx(difference, abs=1e-9)


def test_neighbourhoods_are_averaged_by_definition() -> None:
    table = people(3, rows=700, harm=2.0)
    slow, found = oracle(table, table), audit(table)
    rows = np.flatnonzero(table["woman"] == 1)[slow.kept]
    for place in (0, 5, 11):
        path = found.person(int(rows[place]))
        near = [each for each in path.steps if each.scale == "nearest"]
        assert near
        for each in near:
            estimate, error = slow.around(place, each.size)
            assert each.estimate == pytest.approx(estimate, abs=1e-9)
            assert each.high - each.low == pytest.approx(2 * error * _t(each.size / 2), abs=1e-9)


def test_compiled_sums_of_neighbourhoods_give_the_same_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("numba")
    table = people(3, rows=700, harm=2.0)
    slow = audit(table).answer.people
    monkeypatch.setattr("mutandis.engine.likeness._WORTH_LOADING", 0)
    fast = audit(table).answer.people
    assert (fast.step == slow.step).all()
    assert fast.step.max() > 0
    for name in ("estimate", "low", "high", "p", "due_at_least"):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), atol=1e-9)


def _t(freedom: float) -> float:
    from scipy import stats

    return float(stats.t.ppf(0.95, freedom))


@cache
def harmed() -> mm.Audit:
    """Audit a table in which women are refused far more often than men like them."""
    return audit(people(1, rows=1500, harm=1.5), counterfactuals=raised(people(1, rows=1500)))


def test_only_what_was_looked_for_is_said_to_be_out_of_reach() -> None:
    answer = harmed().answer
    unknown = replace(answer.gap, verdict="not shown", could_find=None)
    found = replace(answer, gap=unknown, alike=replace(unknown))
    verdicts = {title: verdict for title, _, verdict in found.rows()}
    assert verdicts["on record"] == "not shown"
    assert verdicts["alike on record"] == "not shown, and no difference could have been shown"


def test_harm_is_found_from_the_table_to_people() -> None:
    answer = harmed().answer
    assert (answer.gap.verdict, answer.alike.verdict) == ("more often", "more often")
    assert answer.established.mean() > 0.5
    groups = harmed().groups()
    assert groups["established"].any()
    sizes = groups.groupby("level")["n"].sum()
    assert sizes.min() == sizes.max() == harmed().answer.comparable


def test_refused_people_alone_have_a_share_due_to_status() -> None:
    answer = harmed().answer
    refused = (people(1, rows=1500, harm=1.5).query("woman == 1")["granted"] == "no").to_numpy()
    known = ~np.isnan(answer.people.due_at_least)
    assert (known == (refused & answer.established)).all()
    assert (answer.people.due_at_least[known] <= 1).all()


def test_a_saved_answer_is_read_as_it_was(tmp_path: Path) -> None:
    harmed().save(tmp_path / "results")
    opened = mm.open_results(tmp_path / "results")
    assert repr(opened.answer) == repr(harmed().answer)
    assert opened.groups().equals(harmed().groups())
    assert opened.slices().equals(harmed().slices())


def test_the_order_of_rows_changes_no_bit() -> None:
    table = people(5, rows=500)
    shuffled = table.sample(frac=1, random_state=1)
    first, second = audit(table).answer, audit(shuffled.reset_index(drop=True)).answer
    assert first.as_dict() == second.as_dict()
    assert first.slices == second.slices


def test_few_people_are_refused_an_answer_with_a_reason() -> None:
    table = people(2, rows=60)
    answer = audit(table, ks=(3,)).answer
    assert answer.alike.verdict == "insufficient"
    assert "30" in answer.alike.why
    assert not answer.established.any()


def test_scores_are_compared_in_their_units() -> None:
    table = people(4, rows=600).drop(columns="granted")
    rng = np.random.default_rng(0)
    table["rate"] = 5 + 2 * table["woman"] + table["income"] + rng.normal(size=len(table))
    answer = audit(table, outcome=mm.Score("rate", worse="higher"), negative=None).answer
    assert answer.alike.low is not None
    assert answer.alike.high is not None
    assert answer.alike.low < 2 < answer.alike.high


@pytest.mark.slow
def test_a_thin_difference_of_a_randomised_experiment_is_found() -> None:
    found, draws = 0, 20
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        black = np.arange(5000) % 2
        refused = rng.random(5000) < np.where(black == 1, 0.936, 0.903)
        table = pd.DataFrame(
            {
                "woman": black,
                "income": rng.integers(0, 20, 5000).astype(float),
                "city": rng.choice(list("abc"), 5000),
                "granted": np.where(refused, "no", "yes"),
            }
        )
        found += audit(table, ks=(50,)).answer.alike.verdict == "more often"
    assert found >= 0.9 * draws


def test_people_are_listed_with_their_answer() -> None:
    answer, table = harmed().answer, harmed().people()
    assert table["step"].tolist() == answer.people.step.tolist()
    assert (table["step"] > 0).tolist() == answer.established.tolist()
    assert set(table.columns) >= {"id", "estimate", "low", "high", "p", "due_at_least", "income"}


def test_rows_of_one_employer_are_not_independent() -> None:
    rng = np.random.default_rng(0)
    employer = np.repeat(np.arange(60), 20)
    woman = (employer % 2).astype(int)
    refused = rng.random(1200) < 1 / (1 + np.exp(-rng.normal(size=60)[employer]))
    table = pd.DataFrame(
        {
            "woman": woman,
            "income": rng.integers(0, 30, 1200).astype(float),
            "city": rng.choice(list("abc"), 1200),
            "employer": employer,
            "granted": np.where(refused, "no", "yes"),
        }
    )
    alone, clustered = audit(table).answer.alike, audit(table, cluster_by="employer").answer.alike
    assert alone.estimate == pytest.approx(clustered.estimate, abs=1e-12)
    assert alone.low is not None
    assert clustered.low is not None
    assert clustered.estimate - clustered.low > 1.5 * (alone.estimate - alone.low)
    few = audit(table.assign(employer=table["employer"] % 12), cluster_by="employer")
    assert "clusters" in few.answer.alike.why
    assert not few.answer.established.any()
    assert few.slices().empty


def test_very_large_tables_have_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutandis.auditing.answer.MOST_ROWS", 300)
    found = audit(people(0))
    assert found.answers == ()
    assert "more" not in repr(found).splitlines()[1]
    with pytest.raises(mm.MutandisError, match="400"):
        found.groups()
