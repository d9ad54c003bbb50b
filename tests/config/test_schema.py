"""What an audit file means where it says nothing, and the schema that editors read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from mutandis.config.schema import (
    DecisionSection,
    Evidence,
    Settings,
    Similarity,
    Uncertainty,
    audit_file_schema,
    read_audit_file,
)
from mutandis.config.yaml import read_yaml
from mutandis.errors import SettingsError
from mutandis.outcomes import ALL_INTERVALS, ALL_MEASURES

LEAST = """
data: {source: loans.csv}
outcome: {column: granted, negative: 'no'}
protected: {attribute: gender, reference: male}
attributes: {salary: continuous, job: {kind: nominal}}
"""
SCHEMA = audit_file_schema()


def defaults(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: each["default"] for key, each in schema["properties"].items() if "default" in each}


def test_a_file_that_says_nothing_has_the_defaults_of_the_paper() -> None:
    read = read_audit_file(read_yaml(LEAST))
    found = {key: getattr(read, key) for key in ("methods", "ks", "alpha", "tau", "seed")}
    assert found == {
        "methods": None,
        "ks": (15, 30, 50, 100),
        "alpha": 0.05,
        "tau": 0,
        "seed": None,
    }
    assert (read.combine, read.worldview, read.decision, read.labels) == (None,) * 4
    assert (read.cluster_by, read.uncertainty, read.uncertainty.worlds) == (None, Uncertainty(), 0)
    assert asdict(read.similarity) == {
        "distance": "gower",
        "scaling": "range",
        "ties": "fair",
        "max_distance": None,
        "min_group": 1,
        "test_space": "reference",
    }
    assert asdict(read.evidence) == {
        "measure": "risk-difference",
        "interval": None,
        "adjust": "benjamini-hochberg",
        "direction": "negative",
        "primary": None,
    }
    assert read.data.model_dump() == {
        "source": "loans.csv",
        "missing": "error",
        "decimal": ".",
        "header": False,
        "missing_text": (),
        **dict.fromkeys(("url", "id", "query", "password_env", "separator", "encoding")),
    }


def test_a_decision_that_says_nothing_has_no_threshold() -> None:
    text = LEAST + "decision: {rule: salary > 1}"
    read = read_audit_file(read_yaml(text)).decision
    assert isinstance(read, DecisionSection)
    assert read.model_dump() == {
        "rule": "salary > 1",
        "http": "",
        "recorded": False,
        "favourable": "above",
        **dict.fromkeys(("python", "onnx", "skops", "pickle", "threshold", "columns")),
        **dict.fromkeys(("answers", "score_of", "output")),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{recorded: true, rule: a > 1}", "Name who decides: 'recorded', 'rule' are written"),
        ("{threshold: 1}", "Name who decides. One of: rule"),
        ("{pyton: a}", "'pyton' is not a key of the section 'decision'. Did you mean 'python'?"),
        ("{onnx: a.onnx, scores: 1}", "'scores' is not a key of a decision by ONNX model"),
        ("{rule: a > 1, answers: 1}", "'answers' is not a key of a decision by rule"),
        ("{python: 'a:b', columns: {pay: [a]}}", "Only an ONNX model has columns by input."),
        ("{http: {url: 'https://a.example', deadline: 0}}", "0 is not allowed. Give a number of"),
    ],
)
def test_decisions_that_cannot_be_meant(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_audit_file(read_yaml(f"{LEAST}decision: {text}"))
    assert said in str(caught.value)


def test_the_schema_lists_names_and_defaults() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["required"] == ["data", "outcome", "protected", "attributes"]
    evidence = SCHEMA["$defs"]["Evidence"]["properties"]
    assert evidence["measure"]["enum"] == [*ALL_MEASURES]
    assert evidence["measure"]["type"] == "string"
    interval, nothing = evidence["interval"]["anyOf"]
    assert interval == {"enum": [*ALL_INTERVALS], "type": "string"}
    assert nothing == {"type": "null"}
    distance = SCHEMA["$defs"]["Similarity"]["properties"]["distance"]
    assert distance["type"] == "string"
    assert {"gower", "heom"} <= set(distance["examples"])
    assert defaults(SCHEMA["$defs"]["_Address"]) == {
        "batch": 500,
        "envelope": None,
        "token_variable": None,
        "token_header": "Authorization",
        "timeout": 60,
        "deadline": 3600,
        "retries": 5,
    }
    assert defaults(SCHEMA["$defs"]["_Attribute"]) == {
        "levels": None,
        "weight": 1,
        "compare_missing": False,
    }
    assert defaults(SCHEMA["$defs"]["_Protection"]) == {"value": None, "pool": False}


@pytest.mark.parametrize("kind", [Similarity, Evidence, Uncertainty, Settings])
def test_editors_show_what_the_documentation_says_of_each_setting(kind: type) -> None:
    place = SCHEMA if kind is Settings else SCHEMA["$defs"][kind.__name__]
    documentation = " ".join((kind.__doc__ or "").split())
    for key in kind.__annotations__:
        if not key.startswith("_"):
            described = place["properties"][key]["description"]
            assert f"{key} {described}" in documentation
            assert described.endswith(".")
