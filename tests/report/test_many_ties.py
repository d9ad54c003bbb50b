"""Many ties: people who stand on one point are compared once, and a case lists a part of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.engine import matched

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 4000


@pytest.fixture(scope="module")
def tied() -> Iterator[tuple[mm.Audit, list[int]]]:
    """An audit of rows on two points, and how many people each step looked at."""
    rng = np.random.default_rng(1)
    woman = (np.arange(ROWS) % 5 < 2).astype(int)
    salary = np.where(rng.random(ROWS) < 0.5 - 0.1 * woman, 20.0, 10.0)
    granted = np.where(rng.random(ROWS) < salary / 30 - 0.1 * woman, "yes", "no")
    looked: list[int] = []
    add = matched._Totals.add_arrays

    def counting(self: Any, chosen: Any, listing: Any) -> None:
        looked.append(len(self.cells.at(listing)[0]))
        add(self, chosen, listing)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matched._Totals, "add_arrays", counting)
        yield (
            mm.audit(
                {"woman": woman, "salary": salary, "bonus": 2 * salary, "granted": granted},
                outcome="granted",
                negative="no",
                protected=mm.Protection("woman", value=1, reference=0),
                attributes={"salary": "continuous", "bonus": "continuous"},
                worldview=mm.Worldview({"salary": mm.Linear("woman"), "bonus": mm.Linear("woman")}),
                methods=["cst_matched"],
                ks=(15,),
            ),
            looked,
        )


def test_matched_groups_are_made_once_for_each_point(tied: tuple[mm.Audit, list[int]]) -> None:
    audit, looked = tied
    assert len(audit.study.people) == 1600
    # two points, each with one counterfactual; person by person it would be over a million
    assert 0 < sum(looked) <= 8


def test_the_nearest_are_listed_and_all_are_counted(tied: tuple[mm.Audit, list[int]]) -> None:
    document = tied[0].case_file(0)
    control = document.parts[0].control
    assert control is not None
    assert control.people is not None
    assert control.people > 300
    assert len(control.members) == min(control.people, 1000)
    test = document.parts[0].test
    assert test is not None
    assert test.people is not None
    assert test.people > 1000
    assert len(test.members) == 1000
    unlisted = f"{test.people - 1000:,} people of the group are counted and not listed"
    assert unlisted in document.to_html()
