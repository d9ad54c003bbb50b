"""Another package adds a distance and a kind of decision maker through its entry points."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mutandis as mm
from mutandis import registry
from mutandis.auditing.case import list_members
from mutandis.engine.tally import METHODS
from mutandis.errors import PlanError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator


PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
CONFIG = """\
data: {{source: loan.csv}}
outcome: {{column: LoanApproval, negative: -1}}
protected: {{attribute: Gender, value: 1, reference: 0}}
attributes: {{AnnualSalary: continuous, AccountBalance: continuous}}
worldview:
  AnnualSalary: {{equation: linear, parents: [Gender]}}
  AccountBalance: {{equation: linear, parents: [AnnualSalary, Gender]}}
similarity: {{distance: coarse}}
decision: {{{decision}}}
ks: [40]
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the example by its path, as pip does: a module, and its metadata."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = tmp_path / "site" / "mutandis_plugin_example-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    points = project["entry-points"]["mutandis"]
    lines = [f"{name} = {value}" for name, value in points.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[mutandis]", *lines, ""]))
    monkeypatch.syspath_prepend(str(metadata.parent))
    monkeypatch.syspath_prepend(str(PLUGIN))
    registry._installed.cache_clear()
    yield
    registry._installed.cache_clear()
    sys.modules.pop("mutandis_plugin", None)


@pytest.mark.usefixtures("installed")
def test_an_audit_with_a_distance_and_a_decision_maker_of_another_package(tmp_path: Path) -> None:
    table = mm.datasets.loan(n=300, seed=1)
    table.to_csv(tmp_path / "loan.csv", index=False)
    counted, decided = [], []
    for decision in (
        "scorecard: {points: {AnnualSalary: 1, AccountBalance: 5}, cut: 225000}",
        "rule: AnnualSalary + 5 * AccountBalance > 225000",
    ):
        (tmp_path / "audit.yaml").write_text(CONFIG.format(decision=decision), encoding="utf-8")
        audit = mm.read_plan(tmp_path / "audit.yaml").run()
        counted.append(audit.counts().to_dict("list"))
        decided.append(audit.provenance.as_dict()["settings"]["decision"])
    assert counted[0] == counted[1]
    assert [each["kind"] for each in decided] == ["scorecard", "rule"]
    assert "differences in tenths of the range" in audit.report().html
    # two numbers in tenths of their range, averaged
    twentieths = 20 * list_members(audit.ground, 0, METHODS["st"], 40).control.distance
    np.testing.assert_allclose(twentieths, np.rint(twentieths), atol=1e-6)
    assert twentieths.max() > 0


def test_names_that_are_not_installed_are_refused() -> None:
    with pytest.raises(PlanError, match=r"distance='coarse' is unknown\. Allowed: gower, heom"):
        mm.Similarity(distance="coarse")
    with pytest.raises(SettingsError, match="'coarse' is not a known distance"):
        registry.find("distance", "coarse")


@pytest.mark.usefixtures("installed")
def test_built_in_names_come_first_and_cannot_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.names("distance")[0] == "gower"
    assert registry.names("distance")[-1] == "coarse"
    with pytest.raises(SettingsError, match="'gower' is built in"):
        registry.register("distance", "gower", "mutandis_plugin:COARSE")
    monkeypatch.setattr(registry, "_registered", {})
    registry.register("distance", "broken", "no_such_module:X")
    with pytest.raises(SettingsError, match="cannot be imported from 'no_such_module:X'"):
        registry.find("distance", "broken")
    registry.register("distance", "number", "math:pi")
    with pytest.raises(PlanError, match="is registered as float"):
        mm.audit(
            {"woman": [1, 0] * 4, "pay": range(8), "granted": ["no", "yes", "yes", "no"] * 2},
            outcome="granted",
            negative="no",
            protected=mm.Protection("woman", value=1, reference=0),
            attributes={"pay": "continuous"},
            similarity=mm.Similarity(distance="number"),
            ks=(1,),
        )


@pytest.mark.parametrize("kind", ["decision", "distance", "room", "table"])
def test_every_built_in_name_leads_somewhere(kind: registry.Kind) -> None:
    for name in registry.names(kind):
        if name != "dowhy":
            assert registry.find(kind, name) is not None
