"""Placebos: rebuilt by hand as ordinary audits, and the same whoever asks."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mutandis as mm
from mutandis.errors import GroupSizeError, PlanError
from mutandis.numeric.order import canonical_order

if TYPE_CHECKING:
    from collections.abc import Sequence

KS = (5, 20)
METHODS = ("st", "cst_without", "cst_with", "cf", "cst_matched")
WORLDVIEW = mm.Worldview({"salary": mm.Linear("group"), "balance": mm.Linear("salary", "group")})
RULE = "salary + 2 * balance > 30"


def decisions(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Make people of three groups, on a coarse grid so that there are ties."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["far", "here", "near"], rows, p=[0.15, 0.6, 0.25])
    salary = np.round(rng.normal(12, 4, rows) - 3 * (group == "far") - (group == "near"))
    balance = np.round(rng.normal(9, 3, rows) + 0.2 * salary - 2 * (group == "far"), 1)
    granted = np.where(salary + 2 * balance > 30, "yes", "no")
    return pd.DataFrame({"group": group, "salary": salary, "balance": balance, "granted": granted})


def settings(**options: Any) -> dict[str, Any]:
    return {
        "outcome": "granted",
        "negative": "no",
        "protected": mm.Protection("group", reference="here"),
        "attributes": {"salary": "continuous", "balance": "continuous"},
        "worldview": WORLDVIEW,
        "decision": RULE,
        # placebos are not refitted, nor are the audits that they are set beside here
        "uncertainty": mm.Uncertainty(refits=0, tipping=False),
        "ks": KS,
        **options,
    }


@pytest.fixture(scope="module")
def audited() -> mm.Audit:
    return mm.audit(decisions(), **settings())


def shares(audit: mm.Audit) -> dict[tuple[str, int, str], float]:
    """Read the shares off the public table of counts."""
    found = {}
    for row in audit.counts().to_dict("records"):
        for measure in ("cases", "significant", "significant_adjusted"):
            found[row["method"], row["k"], measure] = row[measure] / row["complainants"]
    return found


def same_part(k: int, reference: int, everybody: int) -> int:
    """Give the k that is the same part of the reference rows as k is of all, half up."""
    return max(1, math.floor(Fraction(k * reference, everybody) + Fraction(1, 2)))


def in_draw_order(audit: mm.Audit, table: pd.DataFrame) -> pd.DataFrame:
    """Sort a table as random numbers are handed out: by what the rows hold."""
    population = audit.plan.population
    return table.iloc[canonical_order(population.columns, ids=population.ids)]


def test_placebo_a_is_an_audit_of_relabelled_reference_rows() -> None:
    table = decisions()
    audit = mm.audit(table, **settings())
    placebo = audit.placebo(repeats=2, seed=7, kind="a")
    ordered = in_draw_order(audit, table)
    for repeat in range(2):
        # by hand: the first of the shuffled reference rows are "far", the next ones "near"
        reference = ordered[ordered["group"] == "here"].reset_index(drop=True)
        size = len(reference)
        order = np.random.default_rng([7, 0, repeat]).permutation(size)
        far, near = ((table["group"] == name).sum() for name in ("far", "near"))
        many = round(size * far / len(table)), round(size * near / len(table))
        status = np.full(size, "here", dtype=object)
        status[order[: many[0]]] = "far"
        status[order[many[0] : sum(many)]] = "near"
        taken = {k: same_part(k, size, len(table)) for k in KS}
        assert all(small < k for k, small in taken.items())
        again = settings(ks=tuple(taken.values()))
        expected = shares(mm.audit(reference.assign(group=status), **again))
        assert {line.method for line in placebo.lines} == set(METHODS)
        for line in placebo.lines:
            wanted = expected[line.method, taken[line.k], line.measure]
            assert line.placebos[repeat] == wanted, line


def test_the_real_shares_stand_beside_the_placebos(audited: mm.Audit) -> None:
    real = shares(audited)
    for line in audited.placebo(repeats=1, kind="both", ks=(20,)).lines:
        assert line.k == 20
        assert line.share == real[line.method, 20, line.measure]


def nearest_share(
    center: Sequence[Any], people: pd.DataFrame, k: int, spans: Sequence[float]
) -> float:
    """Give the share of refusals among the k nearest, fair ties, by plain arithmetic."""
    distance = (
        (people["salary"] - center[0]).abs() / spans[0]
        + (people["balance"] - center[1]).abs() / spans[1]
    ).round(9)
    refused = people["granted"] == "no"
    radius = np.sort(distance)[k - 1]
    inside, rim = distance < radius, distance == radius
    left = k - inside.sum()
    return float((refused[inside].sum() + left * refused[rim].mean()) / k)


def test_placebo_b_is_an_audit_of_redrawn_outcomes() -> None:
    table = decisions(rows=120, seed=3)
    rng = np.random.default_rng(1)
    noisy = np.where(rng.random(len(table)) < 0.25, "no", table["granted"])
    table["granted"] = noisy
    audit = mm.audit(table, **settings(methods=("cst_without", "cst_with"), ks=(5,)))
    placebo = audit.placebo(repeats=2, seed=4, kind="b")
    would_be = audit.counterfactuals()
    spans = tuple(float(np.ptp(table[name])) for name in ("salary", "balance"))
    ordered = in_draw_order(audit, table)
    people = ordered[ordered["group"] == "here"]
    left_out = {
        k: [
            nearest_share((row.salary, row.balance), people.drop(index=row.Index), k, spans)
            for row in people.itertuples()
        ]
        for k in (1, 2, 5, 10, 20, 50)
    }
    outcomes = (people["granted"] == "no").to_numpy()
    errors = {k: ((np.array(found) - outcomes) ** 2).mean() for k, found in left_out.items()}
    best = min(errors, key=lambda k: errors[k])
    assert best > 1  # otherwise nothing would be random here
    complainants = ordered.index[ordered["group"] != "here"]
    centers = would_be.loc[complainants, ["salary", "balance"]].itertuples(index=False)
    probability = left_out[best] + [nearest_share(c, people, best, spans) for c in centers]
    for repeat in range(2):
        random = np.random.default_rng([4, 1, repeat]).random(len(table))
        drawn = table.assign(granted="yes")
        refused = random < np.array(probability)
        drawn.loc[[*people.index, *complainants], "granted"] = np.where(refused, "no", "yes")
        # her counterfactual is treated as she is
        ready = would_be.assign(granted=drawn["granted"])[["salary", "balance", "granted"]]
        redone = settings(methods=("cst_without", "cst_with"), ks=(5,))
        redone |= {"worldview": None, "decision": None, "counterfactuals": ready}
        expected = shares(mm.audit(drawn, **redone))
        for line in placebo.lines:
            assert line.placebos[repeat] == expected[line.method, line.k, line.measure], line


def test_placebos_depend_on_the_seed_and_on_nothing_else() -> None:
    table = decisions()
    one = mm.plan(table, **settings()).run(threads=1).placebo(repeats=3, seed=1)
    two = mm.plan(table, **settings()).run(threads=2).placebo(repeats=3, seed=1)
    assert one == two
    longer = mm.audit(table, **settings()).placebo(repeats=4, seed=1)
    assert [line.placebos[:3] for line in longer.lines] == [line.placebos for line in one.lines]
    other = mm.audit(table, **settings()).placebo(repeats=3, seed=2)
    assert [line.placebos for line in other.lines] != [line.placebos for line in one.lines]


@pytest.mark.parametrize("combine", [None, "intersectional"])
def test_sorting_the_table_in_another_way_changes_no_placebo(combine: Any) -> None:
    # many rows repeat, and rows that are alike but for their outcome are not the same
    table = decisions(rows=400, seed=5).assign(balance=lambda rows: rows["balance"].round())
    table["sex"] = np.where(np.arange(400) % 3 == 0, "f", "m")
    table["granted"] = np.where(np.arange(400) % 7 == 0, "no", table["granted"])
    table["who"] = [f"p{number}" for number in range(400)]
    options = settings(id="who", methods=("st", "cst_without", "cst_with"))
    if combine:
        sexes = mm.Protection("sex", value="f", reference="m")
        groups = mm.Protection("group", value="near", reference="here")
        options |= {"protected": [groups, sexes], "combine": combine}
    first = mm.audit(table, **options).placebo(repeats=3, seed=2)
    for seed in (1, 2):
        shuffled = table.sample(frac=1, random_state=seed)
        assert mm.audit(shuffled, **options).placebo(repeats=3, seed=2) == first
        # not even without ids: rows that are equal in everything are interchangeable
        anonymous = mm.audit(shuffled, **{**options, "id": None})
        assert anonymous.placebo(repeats=3, seed=2) == first


def test_ready_counterfactuals_tell_rows_apart_that_are_alike() -> None:
    rng = np.random.default_rng(4)
    table = decisions(rows=300).assign(balance=np.arange(300) % 2, who=np.arange(300))
    table["granted"] = rng.choice(["no", "yes"], 300)
    here = table["group"] == "here"
    table.loc[~here, "salary"] = 10.0
    ready = table[["salary", "balance"]].copy()
    ready.loc[~here, "salary"] = rng.integers(0, 25, (~here).sum())
    order = rng.permutation(300)
    found = [
        mm.audit(
            table.iloc[rows],
            **settings(
                id="who",
                worldview=None,
                decision=None,
                methods=("cst_without",),
                counterfactuals=ready.iloc[rows],
            ),
        ).placebo(repeats=3, kind="b")
        for rows in (np.arange(300), order)
    ]
    assert found[0] == found[1]


def test_the_table_has_means_and_ranges_in_the_callers_frame_type() -> None:
    audit = mm.audit(pl.DataFrame(decisions().to_dict("list")), **settings(ks=(5,)))
    placebo = audit.placebo(repeats=7, kind="a")
    table = placebo.table()
    assert isinstance(table, pl.DataFrame)
    assert table.columns == [
        *("kind", "method", "k", "measure", "share"),
        *("placebo_mean", "placebo_low", "placebo_high"),
    ]
    first, row = placebo.lines[0], table.row(0, named=True)
    assert row["placebo_mean"] == pytest.approx(sum(first.placebos) / 7)
    # of seven values, 5 % and 95 % lie 0.3 of the way in from the outermost
    ordered = sorted(first.placebos)
    assert row["placebo_low"] == pytest.approx(0.7 * ordered[0] + 0.3 * ordered[1])
    assert row["placebo_high"] == pytest.approx(0.7 * ordered[6] + 0.3 * ordered[5])
    assert placebo.line("a", "st", 5, "cases") is first
    with pytest.raises(PlanError, match="No placebo 'b'"):
        placebo.line("b", "st", 5, "cases")


def test_from_the_record_alone_there_are_placebos_too() -> None:
    audit = mm.audit(decisions(), **settings(decision=None))
    found = {(line.kind, line.method) for line in audit.placebo(repeats=1).lines}
    assert found == {
        ("a", "st"),
        *((kind, method) for kind in "ab" for method in ("cst_without", "cst_matched")),
    }


def test_ready_counterfactuals_are_those_of_the_reference_rows() -> None:
    table = decisions()
    ready = table[["salary", "balance"]].copy()
    rng = np.random.default_rng(5)
    # if they were refitted, or taken from other rows, the counts would be others
    ready["salary"] += np.where(table["group"] == "here", 0.05, 3.0) * rng.random(len(table))
    given = settings(worldview=None, counterfactuals=ready)
    audit = mm.audit(table, **given)
    placebo = audit.placebo(repeats=1, seed=2)
    assert {(line.kind, line.method) for line in placebo.lines} == {
        *(("a", method) for method in METHODS),
        *(("b", method) for method in ("cst_without", "cst_with", "cst_matched")),
    }
    ordered = in_draw_order(audit, table)
    reference = ordered[ordered["group"] == "here"]
    order = np.random.default_rng([2, 0, 0]).permutation(len(reference)).tolist()
    pseudo = reference.reset_index(drop=True)
    for status in ("far", "near"):
        size = round(len(reference) * int((table["group"] == status).sum()) / len(table))
        pseudo.loc[order[:size], "group"] = status
        order = order[size:]
    taken = {k: same_part(k, len(reference), len(table)) for k in KS}
    again = {
        **given,
        "counterfactuals": ready.loc[reference.index].reset_index(drop=True),
        "ks": tuple(taken.values()),
    }
    expected = shares(mm.audit(pseudo, **again))
    for line in placebo.lines:
        if line.kind == "a":
            assert line.placebos == (expected[line.method, taken[line.k], line.measure],), line


def test_placebo_a_of_an_intersection_gives_both_statuses_at_once() -> None:
    table = decisions(rows=600)
    table["sex"] = np.where(np.arange(600) % 3 == 0, "f", "m")
    options = settings(
        protected=[
            mm.Protection("group", value="near", reference="here"),
            mm.Protection("sex", value="f", reference="m"),
        ],
        worldview=mm.Worldview(
            {"salary": mm.Linear("group", "sex"), "balance": mm.Linear("salary", "group")}
        ),
        combine="intersectional",
    )
    audit = mm.audit(table, **options)
    placebo = audit.placebo(repeats=1, seed=3, kind="a")
    ordered = in_draw_order(audit, table)
    here = (ordered["group"] == "here") & (ordered["sex"] == "m")
    reference = ordered[here].reset_index(drop=True)
    order = np.random.default_rng([3, 0, 0]).permutation(len(reference)).tolist()
    pseudo = reference.copy()
    # those with one of the two statuses are there too: otherwise both would be one attribute
    for status, rows in table.groupby(["group", "sex"]):
        if status != ("here", "m"):
            size = round(len(reference) * len(rows) / len(table))
            for name, value in zip(("group", "sex"), status, strict=True):
                pseudo.loc[order[:size], name] = str(value)
            order = order[size:]
    taken = {k: same_part(k, len(reference), len(table)) for k in KS}
    expected = shares(mm.audit(pseudo, **{**options, "ks": tuple(taken.values())}))
    for line in placebo.lines:
        assert line.placebos == (expected[line.method, taken[line.k], line.measure],), line


def people_of_two_statuses(rows: int = 700) -> pd.DataFrame:
    table = decisions(rows=rows)
    table["sex"] = np.where(np.arange(rows) % 3 == 0, "f", "m")
    return table


def of_both(**options: Any) -> dict[str, Any]:
    return settings(
        protected=[
            mm.Protection("group", value="near", reference="here"),
            mm.Protection("sex", value="f", reference="m"),
        ],
        worldview=mm.Worldview(
            {"salary": mm.Linear("group", "sex"), "balance": mm.Linear("salary", "group")}
        ),
        combine="multiple",
        **options,
    )


def test_placebo_a_of_multiple_discrimination_gives_statuses_as_they_come_together() -> None:
    table = people_of_two_statuses()
    audit = mm.audit(table, **of_both(ks=(5, 20)))
    placebo = audit.placebo(repeats=1, seed=3)
    ordered = in_draw_order(audit, table)
    here = (ordered["group"] == "here") & (ordered["sex"] == "m")
    reference = ordered[here].reset_index(drop=True)
    order = np.random.default_rng([3, 0, 0]).permutation(len(reference)).tolist()
    pseudo = reference.copy()
    for status, rows in table.groupby(["group", "sex"]):
        if status != ("here", "m"):
            size = round(len(reference) * len(rows) / len(table))
            for name, value in zip(("group", "sex"), status, strict=True):
                pseudo.loc[order[:size], name] = str(value)
            order = order[size:]
    taken = {k: same_part(k, len(reference), len(table)) for k in KS}
    repeated = mm.audit(pseudo, **of_both(ks=tuple(taken.values())))
    expected = shares(repeated)
    assert {line.kind for line in placebo.lines} == {"a"}
    for line in placebo.lines:
        assert line.placebos == (expected[line.method, taken[line.k], line.measure],), line
        assert line.complainants == repeated.counts()["complainants"].iloc[0]


def test_outcomes_without_multiple_discrimination_are_not_defined() -> None:
    audit = mm.audit(people_of_two_statuses(), **of_both(ks=(5,)))
    with pytest.raises(PlanError, match=r"Placebo 'b' cannot be run for .*combine='multiple'"):
        audit.placebo(kind="b")
    assert audit.part("group").placebo(repeats=1, kind="b").lines


def test_a_k_that_fits_the_audit_may_be_too_large_for_its_placebo() -> None:
    table = decisions()
    largest = int((table["group"] == "far").sum()) - 1
    audit = mm.audit(table, **settings(ks=(5, largest)))
    with pytest.raises(GroupSizeError, match=r"In placebo \(a\).*placebo\(ks=\(15,\)\)"):
        audit.placebo(repeats=1, kind="a")
    assert audit.placebo(repeats=1, kind="a", ks=(5,)).lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "c"}, "kind='c' is unknown"),
        ({"repeats": 0}, "repeats=0 is not allowed. Give an integer of at least 1."),
        ({"seed": -1}, "seed=-1 is not allowed. Give an integer of at least 0."),
        ({"ks": (7,)}, r"ks=\[7\] were not run. This audit ran k = \[5, 20\]."),
        ({"ks": ()}, "were not run"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    audited: mm.Audit, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        audited.placebo(**options)
