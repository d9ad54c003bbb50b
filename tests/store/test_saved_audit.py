"""An audit of a table in memory, saved and opened again."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.config.yaml import read_yaml
from mutandis.errors import DecisionError, OutputError
from mutandis.report.report import Report

if TYPE_CHECKING:
    from pathlib import Path

TABLE = pd.DataFrame(
    {
        "who": [f"p{row}" for row in range(8)],
        "woman": [1, 1, 1, 0, 0, 0, 0, 0],
        "job": ["cook", "clerk", "cook", "clerk", "cook", "clerk", "cook", "clerk"],
        "salary": [10.0, 11.5, 15.0, 10.0, 11.0, 15.0, 16.0, 9.0],
        "granted": ["no", "no", "yes", "no", "no", "yes", "yes", "no"],
    }
)


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mm.Audit, "report", lambda self, **more: Report(html="<p>", plots={}))


def audit(**options: Any) -> mm.Audit:
    return mm.audit(
        TABLE,
        outcome="granted",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous", "job": "nominal"},
        worldview=mm.Worldview({"salary": mm.Linear("woman")}),
        decision="salary > 12",
        uncertainty=mm.Uncertainty(refits=2),
        ks=(1, 2),
        **options,
    )


@pytest.mark.parametrize("id", ["who", None])
def test_the_record_says_that_no_file_was_read(tmp_path: Path, id: str | None) -> None:  # noqa: A002
    audit(id=id).save(tmp_path / "out")
    record = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
    expected = {"source": "(memory)"} if id is None else {"source": "(memory)", "id": id}
    assert read_yaml(record["config"]["text"]).data["data"] == expected
    assert record["source"]["kind"] == "memory"


@pytest.mark.parametrize("id", ["who", None])
def test_it_answers_as_before(tmp_path: Path, id: str | None) -> None:  # noqa: A002
    found = audit(id=id)
    found.save(tmp_path / "out")
    again = mm.open_results(tmp_path / "out")
    for method in found.methods:
        for k in found.ks:
            pd.testing.assert_frame_equal(again.findings(method, k=k), found.findings(method, k=k))
    pd.testing.assert_frame_equal(again.counts(), found.counts())
    who = 0 if id is None else "p0"
    assert str(again.case(who)) == str(found.case(who))
    assert repr(again.case(who).balance("st", 2)) == repr(found.case(who).balance("st", 2))


def test_what_gets_no_smaller_is_stored_as_it_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    woman = rng.random(2000) < 0.4
    table = {"woman": woman, "pay": rng.normal(size=2000) - woman, "no": rng.random(2000) < 0.5}
    found = mm.audit(
        table,
        outcome="no",
        negative=True,
        protected=mm.Protection("woman", value=True, reference=False),
        attributes={"pay": "continuous"},
        ks=(15,),
    )
    found.save(tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "out" / "audit.npz") as archive:
        kinds = {each.compress_type for each in archive.infolist()}
        sizes = {each.file_size // each.compress_size for each in archive.infolist()}
    assert kinds == {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
    assert max(sizes) > 5
    again = mm.open_results(tmp_path / "out")
    pd.testing.assert_frame_equal(again.findings(), found.findings(), check_exact=True)


def test_its_table_has_the_columns_that_were_used(tmp_path: Path) -> None:
    audit(id="who").save(tmp_path / "out")
    table = mm.open_results(tmp_path / "out").plan.population.source.to_native()
    assert sorted(table.columns) == ["granted", "job", "salary", "who", "woman"]
    for name in ("who", "job", "salary", "granted"):
        assert table[name].tolist() == TABLE[name].tolist()


def test_its_decision_maker_is_described_and_not_asked(tmp_path: Path) -> None:
    found = audit()
    found.save(tmp_path / "out")
    maker: Any = mm.open_results(tmp_path / "out").plan.decision
    assert maker.describe() == found.provenance.settings["decision"]
    with pytest.raises(DecisionError, match=r"^This audit was read from its results folder, and"):
        maker.decide(TABLE)


def test_the_file_of_a_case_is_the_same_from_the_folder(tmp_path: Path) -> None:
    found = audit()
    found.save(tmp_path / "out")
    person = found.findings()["id"].iloc[0]
    told = found.case(person).explain_own_case()
    assert mm.open_results(tmp_path / "out").case(person).explain_own_case() == told


def test_a_damaged_or_missing_state_is_refused(tmp_path: Path) -> None:
    audit().save(tmp_path / "out")
    state = tmp_path / "out" / "audit.npz"
    # one more byte at the end: an archive that opens, and is not the one that was written
    state.write_bytes(state.read_bytes() + b"x")
    with pytest.raises(OutputError, match=r"audit\.npz' is missing or has been damaged"):
        mm.open_results(tmp_path / "out")
    state.unlink()
    with pytest.raises(OutputError, match=r"audit\.npz' is missing or has been damaged"):
        mm.open_results(tmp_path / "out")


def test_what_verification_found_as_plain_data(tmp_path: Path) -> None:
    audit().save(tmp_path / "out")
    (tmp_path / "out" / "counts.csv").write_text("", encoding="utf-8")
    found = mm.verify_results(tmp_path / "out", rerun=False)
    assert json.loads(json.dumps(found.as_dict())) == {
        "differences": list(found.differences),
        "files": found.files,
        "source": "not reachable",
        "rerun": False,
    }
    assert len(found.differences) == 1
