"""The public face: what an audit gives, in the caller's own frame type."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mutandis as mm
from mutandis.errors import PlanError, UnknownIdError
from mutandis.verdicts.findings import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    AsFrame = Callable[[Mapping[str, Sequence[Any]]], Any]

FINDINGS = [*COLUMNS, "verdict_share", "fragile"]
COUNTS = ["method", "k", "complainants", "cases", "share", "cases_refused", "significant"]
COUNTS += ["significant_share", "significant_adjusted"]
METHODS = ("st", "cst_without", "cst_with", "cf", "cst_matched")
SIZE = 36
_SALARY = [10 + number % 7 + (3 if number % 3 else 0) for number in range(SIZE)]
TABLE: dict[str, list[Any]] = {
    "who": [f"person {number}" for number in range(SIZE)],
    "gender": ["f", "m", "m"] * (SIZE // 3),
    "salary": _SALARY,
    "job": ["cook", "clerk"] * (SIZE // 2),
    "granted": ["yes" if salary >= 15 else "no" for salary in _SALARY],
}
SETTINGS: dict[str, Any] = {
    "outcome": "granted",
    "negative": "no",
    "protected": mm.Protection("gender", value="f", reference="m"),
    "attributes": {"salary": "continuous", "job": "nominal"},
    "worldview": mm.Worldview({"salary": mm.Linear("gender")}),
    "decision": "salary >= 15",
    "uncertainty": mm.Uncertainty(refits=2, tipping=False),
    "ks": (2, 5),
}


def audit(table: Any = None, /, **options: Any) -> mm.Audit:
    return mm.audit(TABLE if table is None else table, **{**SETTINGS, **options})


@pytest.fixture(scope="module")
def found() -> mm.Audit:
    return audit()


# --- frames ------------------------------------------------------------------------------------


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """Give a frame's rows as Python values, whatever its type; what is missing is None."""
    opened = nw.from_native(frame).lazy().collect("pandas")
    columns = [opened[name].to_list() for name in opened.columns]
    return [
        tuple(None if value != value else value for value in row)
        for row in zip(*columns, strict=True)
    ]


def test_frames_come_back_as_they_were_given(as_frame: AsFrame, found: mm.Audit) -> None:
    given = as_frame(TABLE)
    expected_type = type(given) if isinstance(given, pl.DataFrame | pa.Table) else pd.DataFrame
    ours = audit(given)
    for method in found.methods:
        for k in found.ks:
            frame = ours.findings(method, k=k)
            assert type(frame) is expected_type
            assert list(nw.from_native(frame).columns) == FINDINGS
            assert rows_of(frame) == rows_of(found.findings(method, k=k))
    assert type(ours.counts()) is expected_type
    assert list(nw.from_native(ours.counts()).columns) == COUNTS
    assert rows_of(ours.counts()) == rows_of(found.counts())
    assert type(ours.counterfactuals()) is expected_type
    assert rows_of(ours.counterfactuals()) == rows_of(found.counterfactuals())


def test_what_is_not_defined_is_null_where_frames_know_null() -> None:
    for table in (pl.DataFrame(TABLE), pa.table(TABLE)):
        cf = nw.from_native(audit(table).findings("cf", k=2), eager_only=True)
        for name in ("ci_low", "ci_high", "p_value", "q_value", "radius_control", "radius_test"):
            assert cf[name].null_count() == len(cf) > 0
        observed = nw.from_native(audit(table, decision=None).findings("st", k=2), eager_only=True)
        assert observed["outcome_cf"].null_count() == len(observed)
        assert observed["ci_low"].null_count() == 0


# --- counts and findings -----------------------------------------------------------------------


def test_counts_follow_from_findings(found: mm.Audit) -> None:
    counts = found.counts()
    assert list(zip(counts["method"], counts["k"], strict=True)) == [
        (method, k) for method in METHODS for k in (2, 5)
    ]
    for row in counts.itertuples():
        rows = found.findings(row.method, k=row.k)
        # where people are matched, some have nobody to be compared with
        compared = rows["verdict"] != "insufficient"
        assert compared.all() or row.method == "cst_matched"
        cases = compared & (rows["verdict"] != "no-evidence")
        assert row.complainants == len(rows) == SIZE // 3
        assert row.cases == cases.sum() == (compared & (rows["delta_p"] > 0)).sum()
        assert row.share == row.cases / row.complainants
        assert row.cases_refused == (cases & (rows["outcome"] == "no")).sum()
        assert row.significant == rows["verdict"].str.startswith("significant").sum()
        assert row.significant_share == row.significant / row.complainants
        assert row.significant_adjusted == (rows["verdict"] == "significant-adjusted").sum()
    # so that the sums above are about something
    assert 0 < counts["cases_refused"].sum() < counts["cases"].sum()
    assert counts["significant"].sum() > 0


def test_findings_agree_with_themselves(found: mm.Audit) -> None:
    for method in ("st", "cst_without", "cst_with"):
        rows = found.findings(method, k=5)
        assert rows["delta_p"].to_numpy() == pytest.approx(rows["p_control"] - rows["p_test"])
        assert (rows["ci_low"] <= rows["delta_p"]).all()
        assert (rows["delta_p"] <= rows["ci_high"]).all()
        significant = rows["verdict"].str.startswith("significant")
        assert significant.tolist() == (rows["p_value"] <= 0.05).tolist()
        assert (rows["q_value"] >= rows["p_value"]).all()
        adjusted = rows["verdict"] == "significant-adjusted"
        assert adjusted.tolist() == (significant & (rows["q_value"] <= 0.05)).tolist()


def test_findings_default_to_the_primary_method_and_k() -> None:
    ours = audit(evidence=mm.Evidence(primary=("st", 2)))
    assert ours.findings().equals(ours.findings("st", k=2))
    assert ours.findings("cf").equals(ours.findings("cf", k=2))
    assert ours.findings(k=5).equals(ours.findings("st", k=5))


def test_what_was_not_run_cannot_be_asked_for(found: mm.Audit) -> None:
    with pytest.raises(PlanError, match=r"Method 'cst' is unknown\. This audit ran"):
        found.findings("cst", k=2)
    with pytest.raises(PlanError, match=r"k=3 was not run\. This audit ran k = \[2, 5\]\."):
        found.findings("st", k=3)
    with pytest.raises(PlanError, match="Method 'cf' is not run here"):
        audit(methods=["st"]).findings("cf", k=2)


def test_repr_is_a_summary(found: mm.Audit) -> None:
    first, *_, last = repr(found).splitlines()
    assert first == (
        "Audit of 36 decisions, 12 complainants; methods st, cst_without, cst_with, cf, "
        "cst_matched; k = 2, 5"
    )
    # five are more than a third of the twelve
    rows = found.findings("cst_matched", k=2)
    cases = int(((rows["delta_p"] > 0) & (rows["verdict"] != "insufficient")).sum())
    assert last.startswith(f"cst_matched at k=2: evidence for {cases} ({cases / 12:.1%}), sig")


# --- cases -------------------------------------------------------------------------------------


def test_a_case_is_a_view_on_the_findings(found: mm.Audit) -> None:
    for complainant in found.findings("st", k=2)["id"].tolist():
        case = found.case(complainant)
        assert case.id == complainant
        assert type(case.id) is int
        assert case.outcome == TABLE["granted"][complainant]
        assert case.factual == {name: TABLE[name][complainant] for name in ("salary", "job")}
        would_be = found.counterfactuals().loc[complainant]
        assert case.counterfactual == {"salary": would_be["salary"], "job": would_be["job"]}
        assert case.outcome_cf == would_be["granted"]
        assert list(case.results) == [(m, k) for m in found.methods for k in found.ks]
        for method, k in case.results:
            rows = found.findings(method, k=k)
            row = rows[rows["id"] == complainant].iloc[0].to_dict()
            shown = dict(case.result(method, k=k))
            assert list(shown) == FINDINGS
            assert [v for v in shown.values() if v == v] == [v for v in row.values() if v == v]


def test_unknown_ids() -> None:
    numbered, named = audit(), audit(id="who")
    for strange in (SIZE, -1, "person 0", None, [0, 3], 0.5):
        with pytest.raises(UnknownIdError) as raised:
            numbered.case(strange)
        assert str(raised.value) == (
            "No row has this id. Ids in this audit are row positions, from 0."
        )
    with pytest.raises(UnknownIdError, match="No row has this id"):
        named.case(0)
    with pytest.raises(KeyError):
        numbered.case(SIZE)


def test_ids_of_people_who_are_no_complainants(found: mm.Audit) -> None:
    with pytest.raises(UnknownIdError) as raised:
        found.case(1)
    assert str(raised.value) == (
        "This row is not a complainant: its protected attribute 'gender' does not have a protected "
        "value."
    )
    with pytest.raises(UnknownIdError, match="not a complainant"):
        found.case(SIZE - 1)


@pytest.mark.parametrize(
    "ids",
    [
        [f"person {number}" for number in range(SIZE)],
        list(range(1000, 1000 + SIZE)),
        [number + 0.5 for number in range(SIZE)],
    ],
)
def test_an_id_column(ids: list[Any], found: mm.Audit, as_frame: AsFrame) -> None:
    ours = audit(as_frame({**TABLE, "who": ids}), id="who")
    rows = rows_of(ours.findings("cst_with", k=2))
    expected = rows_of(found.findings("cst_with", k=2))
    assert [row[0] for row in rows] == ids[::3]
    assert [row[1:] for row in rows] == [row[1:] for row in expected]
    case = ours.case(ids[3])
    assert case.id == ids[3]
    assert type(case.id) is type(ids[3])
    everybody = found.case(3).groups("st", k=5).control.ids.tolist()
    assert case.groups("st", k=5).control.ids.tolist() == [ids[number] for number in everybody]


def test_what_a_case_was_not_run_for(found: mm.Audit) -> None:
    case = found.case(0)
    with pytest.raises(PlanError, match=r"The audit did not run method 'st' at k=3\."):
        case.result("st", k=3)
    with pytest.raises(PlanError, match=r"The audit did not run method 'sst' at k=2\."):
        case.groups("sst", k=2)


# --- importing ---------------------------------------------------------------------------------


def run_python(code: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own interpreter, our own code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = ["numpy", "pandas", "scipy", "narwhals", "networkx", "polars", "pyarrow"]
    code = f"import sys, mutandis; dir(mutandis); print([n for n in {heavy} if n in sys.modules])"
    assert run_python(code) == "[]"


def test_public_names_are_there() -> None:
    assert dir(mm) == sorted(mm.__all__)
    for name in mm.__all__:
        assert getattr(mm, name) is not None
    assert {"audit", "plan", "Audit", "Worldview", "Linear", "Protection"} <= set(dir(mm))
    with pytest.raises(AttributeError, match="module 'mutandis' has no attribute 'adit'"):
        mm.adit  # noqa: B018


def test_a_plan_takes_what_an_audit_takes() -> None:
    import inspect

    plan, run = inspect.signature(mm.plan), inspect.signature(mm.audit)
    # who computes is asked of a plan when it is run
    taken = list(run.parameters.values())
    assert list(plan.parameters.values()) == taken[:-1]
    assert taken[-1].name == "cluster"
    assert len(plan.parameters) <= 20
