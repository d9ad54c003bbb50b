"""The reference lists what there is: keys, columns, public names, pages."""

from __future__ import annotations

import re
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import yaml

import mutandis as mm
from mutandis.config.schema import audit_file_schema
from mutandis.config.worldview import FAMILIES

SCHEMA = audit_file_schema()
DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(name: str) -> str:
    """Give the part of the page on audit files under one heading."""
    found = re.search(
        rf"^## `{name}`\n(.*?)(?=^## |\Z)",
        page("reference/audit-file.md"),
        re.MULTILINE | re.DOTALL,
    )
    assert found is not None, name
    return found[1]


@cache
def keys_of(name: str) -> set[str]:
    return keys_in(SCHEMA["$defs"][name])


def keys_in(schema: Any) -> set[str]:
    """List all keys that a part of the schema names, those of what it refers to included."""
    if isinstance(schema, list):
        return set().union(*map(keys_in, schema))
    if not isinstance(schema, dict):
        return set()
    keys = set(schema.get("properties", {}))
    keys |= keys_of(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else set()
    return keys.union(*map(keys_in, schema.values()))


@pytest.mark.parametrize(
    "name",
    [*("data", "outcome", "protected", "attributes", "worldview", "decision", "labels"),
     *("similarity", "evidence", "uncertainty")],
)  # fmt: skip
def test_every_key_of_a_section_is_listed(name: str) -> None:
    listed = set(re.findall(r"`(\w+)`", section(name)))
    others = keys_in(SCHEMA["properties"]["worldview"]) if name == "uncertainty" else set()
    found = keys_in(SCHEMA["properties"][name]) - others
    assert found
    assert found <= listed


def test_every_section_is_listed() -> None:
    table = page("reference/audit-file.md").split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` ", table, re.MULTILINE)) == set(SCHEMA["properties"])


def test_every_equation_is_listed_with_its_keys() -> None:
    row = re.compile(r"^\| `(\w+)` \| (`(?:parents|formula)`.*) \|$", re.MULTILINE)
    rows = dict(row.findall(section("worldview")))
    assert set(rows) == set(FAMILIES)
    for name, family in FAMILIES.items():
        assert set(signature(family).parameters) <= set(re.findall(r"`(\w+)`", rows[name])), name


def test_the_columns_of_results_are_listed_in_their_order() -> None:
    found = mm.audit(
        mm.datasets.loan(n=200, seed=1),
        outcome="LoanApproval",
        negative=-1,
        protected=mm.Protection("Gender", value=1, reference=0),
        attributes={"AnnualSalary": "continuous"},
        ks=(5,),
    )
    text = page("reference/results.md")
    parts = {part.split("\n")[0]: part for part in text.split("\n## ")[1:]}
    for name, columns in (
        (
            "findings.parquet",
            [
                *("method", "k", *found.findings().columns, "verdict_share", "fragile"),
                *("tipping", "grade", "robustness", "stays_under", "breaks_under"),
            ],
        ),
        ("counts.csv", list(found.counts().columns)),
    ):
        rows = re.findall(r"^\| (`.*?`) \| ", parts[name], re.MULTILINE)
        assert [each for row in rows for each in re.findall(r"`(\w+)`", row)] == columns


def test_every_public_name_is_in_the_reference() -> None:
    entry = re.compile(
        r"^::: mutandis\.([\w.]+)$(?:\n    options: \{heading: (\w+))?", re.MULTILINE
    )
    named = {heading or path for path, heading in entry.findall(page("reference/api.md"))}
    # the errors are listed with their module
    left = {"__version__", "datasets", "MutandisError", "MutandisWarning"}
    assert set(mm.__all__) - left <= named
    assert "errors" in named


def test_every_page_has_its_place_in_the_site() -> None:
    settings = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = set(re.findall(r"[\w/-]+\.md", str(settings["nav"])))
    assert {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} <= listed
    assert settings["theme"]["font"] is False
