"""The JSON Schemas of what a results folder holds."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import pytest
from jsonschema import Draft202012Validator, ValidationError

import mutandis as mm

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def results(written: Path) -> Path:
    return written / "out"


def test_verify_covers_the_schemas(results: Path, tmp_path: Path) -> None:
    name = "schemas/case.schema.json"
    copy = tmp_path / "copy"
    shutil.copytree(results, copy)
    path = copy / name
    path.write_text(path.read_text("utf-8").replace("mutandis", "mutatis", 1), encoding="utf-8")
    assert mm.verify_results(copy).differences == (f"{name} is not what was written",)


def schema(results: Path, name: str) -> Draft202012Validator:
    found = json.loads((results / "schemas" / f"{name}.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(found)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert found["$id"] == f"urn:mutandis:{name}:1"
    assert found["additionalProperties"] is False
    return Draft202012Validator(found)


def rows(results: Path) -> list[dict[str, Any]]:
    found = duckdb.execute("SELECT * FROM read_parquet(?)", [str(results / "findings.parquet")])
    names = [each[0] for each in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def closed(schema: Any) -> list[dict[str, Any]]:
    """List the objects of a schema that name their properties."""
    if isinstance(schema, list):
        return [each for part in schema for each in closed(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if "properties" in schema and schema.get("type") == "object" else []
    return [*own, *(each for part in schema.values() for each in closed(part))]


def test_a_changed_field_fails_everywhere_in_a_case_file(results: Path) -> None:
    validator = schema(results, "case")
    assert all(each["additionalProperties"] is False for each in closed(validator.schema))
    for each in closed(validator.schema):
        lacking = {"data", "computed", "source"} if "versions" in each["properties"] else set()
        assert set(each["properties"]) - set(each["required"]) == lacking


@pytest.mark.parametrize("redacted", [False, True])
def test_case_files_follow_their_schema(results: Path, redacted: bool) -> None:
    validator = schema(results, "case")
    paths = sorted((results / "cases").glob("*.json"))
    assert len(paths) == 2
    case = json.loads(paths[redacted].read_text("utf-8"))
    assert case["redaction"]["redacted"] is redacted
    validator.validate(case)
    case["parts"][0]["movements"][0]["moved"] = True
    with pytest.raises(ValidationError, match="'moved' was unexpected"):
        validator.validate(case)
    del case["parts"][0]["movements"][0]["moved"], case["figures"][0]["p_control"]
    with pytest.raises(ValidationError, match="'p_control' is a required property"):
        validator.validate(case)


def test_the_record_follows_its_schema(results: Path) -> None:
    validator = schema(results, "audit")
    record = json.loads((results / "audit.json").read_text("utf-8"))
    validator.validate(record)
    with pytest.raises(ValidationError, match="'more' was unexpected"):
        validator.validate({**record, "more": 1})


def test_findings_follow_their_schema(results: Path) -> None:
    validator = schema(results, "findings")
    found = rows(results)
    assert len(found) > 100
    for row in found:
        validator.validate(row)
    renamed = {("delta" if name == "delta_p" else name): each for name, each in found[0].items()}
    with pytest.raises(ValidationError):
        validator.validate(renamed)
    with pytest.raises(ValidationError, match="'shouted'"):
        validator.validate({**found[0], "verdict": "shouted"})


@pytest.mark.slow
def test_other_kinds_of_audits_follow_the_schemas_too(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "woman": [1, 0] * 20,
            "foreign": [1, 1, 0, 0] * 10,
            "pay": range(40),
            "job": ["a", "b", "c", "b"] * 10,
            "granted": (["no"] * 3 + ["yes"] * 2) * 8,
            "rate": [each % 7 for each in range(40)],
            "grade": ["a", "b", "c", "b", "c"] * 8,
        }
    )
    status = [mm.Protection(name, value=1, reference=0) for name in ("woman", "foreign")]
    effects: dict[str, Any] = {
        "pay": mm.Linear("woman", "foreign"),
        "job": mm.Categorical("woman", "foreign"),
    }
    kinds: dict[str, dict[str, Any]] = {
        "plain": {"protected": status[0]},
        "ratio under worldviews": {
            "protected": status[0],
            "worldview": mm.Worldview({"pay": mm.Linear("woman")}),
            "tau": 1.25,
            "evidence": mm.Evidence(measure="risk-ratio"),
            "uncertainty": mm.Uncertainty(
                refits=2,
                worldviews={"none": mm.Worldview({"job": mm.Categorical("woman")})},
            ),
        },
        "multiple": {
            "protected": status,
            "combine": "multiple",
            "worldview": mm.Worldview(effects),
            "uncertainty": mm.Uncertainty(draws=2, refits=2),
        },
    }
    two_sides = {"outcome": "granted", "negative": "no"}
    kinds["scores"] = kinds["multiple"] | {"outcome": mm.Score("rate", worse="higher")}
    kinds["levels"] = kinds["multiple"] | {
        "outcome": mm.Ordered("grade", best_to_worst=["a", "b", "c"])
    }
    for name, more in kinds.items():
        audit = mm.audit(
            table,
            attributes={"pay": "continuous", "job": "categorical"},
            ks=(2,),
            **(more if "outcome" in more else more | two_sides),
        )
        audit.save(tmp_path / name)
        who = audit.findings().id.iloc[0]
        for redact in (False, True):
            document, _ = mm.save_case(tmp_path / name, who, redact=redact)
            schema(tmp_path / name, "case").validate(json.loads(document.to_json()))
        record = json.loads((tmp_path / name / "audit.json").read_text("utf-8"))
        schema(tmp_path / name, "audit").validate(record)
        found = rows(tmp_path / name)
        assert ("delta_p_woman" in found[0]) == (name == "multiple")
        assert ("delta_woman" in found[0]) == (name in {"scores", "levels"})
        ratio = name == "ratio under worldviews"
        assert ("risk_ratio_low" in found[0]) == ratio
        assert ("worldviews" in (record["robustness"] or {})) == ratio
        validator = schema(tmp_path / name, "findings")
        for row in found:
            validator.validate(row)
