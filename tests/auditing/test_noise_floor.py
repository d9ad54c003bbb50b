"""The noise floor: the headline count beside the largest of the placebo audits."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing import noise_floor
from mutandis.engine import matched
from mutandis.errors import PlanError

if TYPE_CHECKING:
    from pathlib import Path

# the package's `run` is the function, and hides the module
run = import_module("mutandis.auditing.run")
WORLDVIEW = mm.Worldview({"salary": mm.Linear("woman"), "balance": mm.Linear("salary", "woman")})


def decisions(
    rows: int = 500, seed: int = 0, *, harm: float = 4.0, shift: float = 2.0
) -> pd.DataFrame:
    """Make noisy decisions that are harder on women, on a grid so that there are ties."""
    rng = np.random.default_rng(seed)
    woman = (rng.random(rows) < 0.35).astype(int)
    salary = np.round(rng.normal(12, 4, rows) - shift * woman)
    balance = np.round(rng.normal(9, 3, rows) + 0.2 * salary, 1)
    refused = rng.random(rows) < 1 / (1 + np.exp(0.5 * (salary + balance - 22 - harm * woman)))
    granted = np.where(refused, "no", "yes")
    return pd.DataFrame({"woman": woman, "salary": salary, "balance": balance, "granted": granted})


def settings(**options: Any) -> dict[str, Any]:
    return {
        "outcome": "granted",
        "negative": "no",
        "protected": mm.Protection("woman", value=1, reference=0),
        "attributes": {"salary": "continuous", "balance": "continuous"},
        "worldview": WORLDVIEW,
        "uncertainty": mm.Uncertainty(refits=0, tipping=False),
        "ks": (10, 30),
        **options,
    }


@pytest.fixture(scope="module")
def audit() -> mm.Audit:
    return mm.audit(decisions(), **settings(seed=3, uncertainty=mm.Uncertainty()))


@pytest.fixture(scope="module")
def of_thirty() -> mm.Audit:
    return mm.audit(decisions(), **settings(ks=(30,)))


def test_it_is_the_placebo_of_the_primary_method(audit: mm.Audit) -> None:
    method, k = audit.plan.settings.primary
    floor = audit.noise_floor
    placebo = audit.placebo(repeats=19, seed=3, kind="a")
    assert floor.lines == tuple(line for line in placebo.lines if line.method == method)
    assert {line.k for line in floor.lines} == {10, 30}
    line = placebo.line("a", method, k, "significant_adjusted")
    row = next(row for row in audit.count_records() if (row["method"], row["k"]) == (method, k))
    assert floor.count == row["significant_adjusted"] > 0
    counts = [Fraction(x).limit_denominator(line.complainants) for x in line.placebos]
    assert floor.largest == int(max(counts) * row["complainants"])
    assert floor.more_than_every_placebo is all(x < line.share for x in counts)
    assert (
        f"for {floor.count} of {row['complainants']} complainants; none of 19 placebo audits "
        f"found more than {floor.largest} (scaled from {line.complainants} placebo complainants"
    ) in floor.sentence()
    assert audit.noise_floor is floor


def test_a_count_beyond_the_largest_is_more_than_every_placebo(of_thirty: mm.Audit) -> None:
    floor = of_thirty.noise_floor
    assert floor.line is not None
    for share, largest in ((0.1, 0.1), (0.1, 0.2), (0.2, 0.1), (0.0, 0.0)):
        line = replace(floor.line, share=share, placebos=(0.0, largest))
        changed = replace(floor, lines=(line,), complainants=1000)
        assert changed.count is not None
        assert changed.largest is not None
        assert changed.more_than_every_placebo is (changed.count > changed.largest)
        assert changed.verdict().startswith(
            "That is more than" if share > largest else "That is not more than"
        )
        assert ("about 1 of 20 tables" in changed.verdict()) is (share > largest)


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ({}, {}),
        # so coarse that many people stand on one point, each left out of her own group
        ({"grain": 4}, {}),
        ({"grain": 4}, {"evidence": mm.Evidence(direction="positive", adjust="holm"), "tau": 0.05}),
        ({"harm": -6.0}, {"evidence": mm.Evidence(adjust="benjamini-yekutieli"), "alpha": 0.45}),
        ({"grain": 2}, {"similarity": mm.Similarity(max_distance=0.1, ties="all")}),
        ({}, {"evidence": mm.Evidence(measure="risk-ratio"), "tau": 1.2}),
    ],
)
def test_no_placebo_depends_on_those_without_evidence(
    table: dict[str, Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than shares is worked out for those with evidence alone, and all counts stay."""
    grain = table.pop("grain", 1)
    data = decisions(rows=400, **table)
    for name in ("salary", "balance"):
        data[name] = np.round(data[name] / grain) * (1 if grain == 1 else grain)
    asked: list[tuple[int, int]] = []
    add = matched._Asked.find

    def spying(self: Any, chosen: Any, *others: Any) -> Any:
        found = add(self, chosen, *others)
        asked.append((len(chosen), len(found)))
        return found

    monkeypatch.setattr(matched._Asked, "find", spying)
    doubt = mm.Uncertainty(refits=0, placebo=6, tipping=False)
    floor = mm.audit(data, **settings(uncertainty=doubt, **options)).noise_floor
    assert len(asked) == 6
    assert 0 < sum(found for _, found in asked) < sum(among for among, _ in asked)
    monkeypatch.setattr(run, "evidence_by", lambda _: None)
    assert mm.audit(data, **settings(uncertainty=doubt, **options)).noise_floor == floor
    assert len(asked) == 6


@pytest.mark.parametrize("most", [20, 1000])
def test_rows_in_another_order_have_the_same_noise_floor(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noise_floor, "_MOST", most)
    table = decisions(rows=300)
    options = settings(ks=(10,), uncertainty=mm.Uncertainty(refits=0, placebo=5, tipping=False))
    floor = mm.audit(table, **options).noise_floor
    assert floor.lines[0].complainants == min(most, round(len(table) * 0.65 * 0.35)) or most > 20
    for seed in (1, 2):
        shuffled = table.sample(frac=1, random_state=seed)
        assert mm.audit(shuffled, **options).noise_floor == floor
    assert mm.plan(table, **options).run(threads=2).noise_floor == floor


def test_the_seed_is_that_of_the_audit() -> None:
    few = mm.Uncertainty(refits=0, placebo=4, tipping=False)
    found = {
        seed: mm.audit(decisions(), **settings(seed=seed, uncertainty=few)).noise_floor
        for seed in (None, 0, 1)
    }
    assert found[None] == found[0]
    assert [line.placebos for line in found[0].lines] != [line.placebos for line in found[1].lines]
    plain, none = mm.Uncertainty(), mm.Uncertainty(refits=0, placebo=0)
    assert mm.plan(decisions(), **settings(uncertainty=plain)).settings.seed == 0
    # placebo=0 draws nothing, so there is no seed to record
    assert mm.plan(decisions(), **settings(uncertainty=none)).settings.seed is None


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_floor, "run_kind", None)  # not to be called
    audit = mm.audit(
        decisions(), **settings(ks=(10,), uncertainty=mm.Uncertainty(refits=0, placebo=0))
    )
    floor = audit.noise_floor
    assert (floor.line, floor.count, floor.largest, floor.more_than_every_placebo) == (None,) * 4
    assert floor.sentence() == "No noise floor: the audit was run with placebo = 0."
    assert floor.verdict() == ""
    assert floor.sentence() in repr(audit)
    assert floor.sentence() in audit.report().html
    with pytest.raises(PlanError, match="placebo=-1 is not allowed"):
        mm.Uncertainty(placebo=-1)


def test_of_many_placebo_complainants_a_sample_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    table, options = decisions(rows=900), settings(ks=(10,))
    everyone = mm.audit(table, **options).noise_floor
    monkeypatch.setattr(noise_floor, "_MOST", 60)
    sampled = mm.audit(table, **options).noise_floor
    assert {line.complainants for line in sampled.lines} == {60}
    assert "(scaled from a sample of 60 placebo complainants)" in sampled.sentence()
    for whole, part in zip(everyone.lines, sampled.lines, strict=True):
        assert whole.share == part.share
        # the same statuses were drawn: a person who has evidence has it in the sample as well
        assert all((60 * share).is_integer() or share != share for share in part.placebos)
        if whole.measure == "cases":
            assert part.mean == pytest.approx(whole.mean, abs=4 * (0.25 / (60 * 19)) ** 0.5)
            assert part.placebos != whole.placebos


@pytest.mark.slow
def test_multiple_discrimination_has_a_noise_floor() -> None:
    table = decisions(rows=900)
    table["old"] = (np.arange(900) % 3 == 0).astype(int)
    audit = mm.audit(
        table,
        **settings(
            protected=[
                mm.Protection("woman", value=1, reference=0),
                mm.Protection("old", value=1, reference=0),
            ],
            worldview=mm.Worldview(
                {"salary": mm.Linear("woman", "old"), "balance": mm.Linear("salary", "woman")}
            ),
            combine="multiple",
            ks=(10,),
        ),
    )
    placebo = audit.placebo(repeats=19, seed=0)
    method, k = audit.plan.settings.primary
    floor = audit.noise_floor
    assert floor.complainants == int(((table["woman"] == 1) & (table["old"] == 1)).sum())
    assert floor.line == placebo.line("a", method, k, "significant_adjusted")


@pytest.mark.parametrize("ready", [False, True])
def test_supplied_counterfactuals_and_situation_testing_have_one(ready: bool) -> None:
    table = decisions()
    given = table[["salary", "balance"]] if ready else None
    floor = mm.audit(table, **settings(worldview=None, counterfactuals=given)).noise_floor
    assert floor.line is not None
    assert floor.line.kind == "a"


def test_where_placebos_cannot_be_run_the_audit_says_why() -> None:
    table = decisions()
    table["job"] = np.where(table["woman"] == 1, np.arange(len(table)) % 3, 0)
    worldview = mm.Worldview({"salary": mm.Linear("woman", "job")})
    audit = mm.audit(table, **settings(worldview=worldview))
    # among men there is one job, and no equation tells what it adds
    assert audit.noise_floor.line is None
    assert audit.noise_floor.sentence().startswith("No noise floor: ")
    assert "'job'" in audit.noise_floor.reason
    assert audit.noise_floor.sentence() in repr(audit)
    too_few = table.iloc[np.concatenate([np.flatnonzero(table["woman"] == x)[:9] for x in (0, 1)])]
    reason = mm.audit(too_few, **settings(ks=(8,))).noise_floor.reason
    assert reason.startswith("In placebo (a), among reference rows only: k=4 is larger than")


def test_an_endpoint_is_not_asked_about_every_row_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_floor, "query_records", lambda maker: ({},) if maker else ())
    options = settings(ks=(10,), decision="salary + balance > 22")
    asked = mm.audit(decisions(), **options, evidence=mm.Evidence(primary=("cst_with", 10)))
    assert asked.noise_floor.line is None
    assert "b() is asked over a network" in asked.noise_floor.sentence()
    # a method that compares outcomes on record alone asks nobody
    plain = mm.audit(decisions(), **options, evidence=mm.Evidence(primary=("cst_without", 10)))
    assert plain.noise_floor.line is not None


def test_what_the_headline_counts_depends_on_its_method() -> None:
    few = mm.Uncertainty(refits=0, placebo=2, tipping=False)
    plain = settings(ks=(10,), uncertainty=few, decision="salary + balance > 22")
    alone = {**plain, "evidence": mm.Evidence(primary=("cf", 10))}
    assert mm.audit(decisions(), **alone).noise_floor.measure == "cases"
    unadjusted = {**plain, "evidence": mm.Evidence(adjust="none")}
    assert mm.audit(decisions(), **unadjusted).noise_floor.measure == "significant"


def test_saved_results_hold_it_and_nothing_is_run_again(
    audit: mm.Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit.save(tmp_path / "results")
    record = json.loads((tmp_path / "results" / "audit.json").read_text("utf-8"))
    assert record["noise_floor"]["count"] == audit.noise_floor.count
    assert record["noise_floor"]["largest"] == audit.noise_floor.largest
    assert record["noise_floor"]["sentence"] == audit.noise_floor.sentence()
    assert "placebo: 19" in record["config"]["text"]
    assert record["provenance"]["settings"]["uncertainty"]["placebo"] == 19
    monkeypatch.setattr(noise_floor, "run_kind", None)  # not to be called
    again = mm.open_results(tmp_path / "results")
    assert again.noise_floor == audit.noise_floor
    assert repr(again) == repr(audit)


def test_documents_set_it_beside_the_headline(of_thirty: mm.Audit) -> None:
    floor = of_thirty.noise_floor
    page = of_thirty.report().html
    assert floor.sentence() in page
    assert floor.verdict() in page.replace("&#39;", "'")
    assert f"<strong>{floor.largest}</strong> <span>at most, significant after adjustment" in page
    someone = int(np.flatnonzero(decisions()["woman"] == 1)[0])
    document = of_thirty.case_file(someone)
    assert document.noise_floor == f"{floor.sentence()} {floor.verdict()}"
    assert floor.sentence() in document.to_html()


def test_a_redacted_case_file_counts_nobody_in_the_table(of_thirty: mm.Audit) -> None:
    someone = int(np.flatnonzero(decisions()["woman"] == 1)[0])
    document = of_thirty.case_file(someone, redact=True)
    assert document.noise_floor == ""
    assert "placebo audits" not in document.to_html()


@pytest.mark.slow
def test_tables_without_discrimination_rarely_exceed_every_placebo() -> None:
    exceeded = 0
    for seed in range(40):
        table = decisions(rows=400, seed=1000 + seed, harm=0.0, shift=0.0)
        options = settings(
            ks=(20,), evidence=mm.Evidence(adjust="none"), uncertainty=mm.Uncertainty()
        )
        exceeded += bool(mm.audit(table, **options).noise_floor.more_than_every_placebo)
    assert exceeded <= 6
