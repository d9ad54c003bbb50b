"""The pages of an audit by a ratio: its name, its slider, its column, infinite values."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from tests.tables import LOAN

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.auditing.audit import Audit


@pytest.fixture(scope="module", params=[("risk-ratio", 1.25), ("selection-ratio", 0.8)])
def ratio(request: pytest.FixtureRequest) -> Audit:
    measure, tau = request.param
    return mm.audit(
        mm.datasets.loan(n=400, seed=1),
        **LOAN,
        ks=(10,),
        tau=tau,
        evidence=mm.Evidence(measure=measure),
        uncertainty=mm.Uncertainty(refits=2),
    )


def test_every_page_follows_the_measure(visit: Callable[[Audit], Any], ratio: Audit) -> None:
    client, measure = visit(ratio), ratio.plan.settings.measure
    overview = unescape(client.get("/").text)
    assert f"Threshold τ of the {measure.symbol}" in overview
    assert measure.condition(ratio.plan.settings.tau, worse=True) in overview
    # another threshold counts as another audit does
    other = 2.0 if measure.worse_above else 0.5
    at_other = client.get(f"/?tau={other}")
    assert at_other.status_code == 200
    expected = ratio.with_levels(tau=other).counts().set_index("method")["cases"]
    assert f">{expected['cst_matched']}" in at_other.text
    assert client.get("/?tau=0").status_code == 400  # no threshold of a ratio
    people = client.get(f"/people?sort=-{measure.column}")
    assert people.status_code == 200
    assert measure.symbol.capitalize() in people.text
    if measure.worse_above:
        assert np.isinf(ratio.findings("st")["risk_ratio"]).any()
        assert "∞" in client.get("/people?sort=-risk_ratio&method=st").text
    person = client.get("/person/0")
    assert person.status_code == 200
    assert f"{measure.symbol} " in unescape(person.text)


def test_a_spreadsheet_has_no_infinite_numbers(ratio: Audit, tmp_path: Any) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "people.xlsx"
    ratio.export(path, "st")
    rows = list(openpyxl.load_workbook(path).active.values)
    column = ratio.plan.settings.measure.column
    written = [row[rows[0].index(column)] for row in rows[1:]]
    for cell, value in zip(written, ratio.findings("st")[column], strict=True):
        if np.isnan(value):
            assert cell is None
        elif np.isinf(value):
            assert cell == "inf"
        else:
            assert cell == pytest.approx(value)
