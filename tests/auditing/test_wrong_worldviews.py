"""Mistakes in a worldview that raise no alarm, and alarms that change no verdict."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def simulation(load_benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return load_benchmark("wrong_worldviews")


@pytest.mark.slow
def test_what_is_not_seen_makes_cases_false_and_what_is_seen_need_not(simulation: Any) -> None:
    tables = 8
    found = {
        mistake.name: [simulation.run(mistake, seed, 3000) for seed in range(1000, 1000 + tables)]
        for mistake in simulation.MISTAKES
    }
    right, missing, turned, direct, hidden, selected = found.values()

    def false(outcomes: list[Any]) -> Any:
        return sum(each.false for each in outcomes) / sum(each.significant for each in outcomes)

    # a missing arrow between effects of A alarms and changes no verdict; a turned one neither
    for outcomes in (missing, turned):
        counts = [(each.significant, each.false) for each in outcomes]
        assert counts == [(each.significant, each.false) for each in right]
        assert [each.off for each in outcomes] == pytest.approx([each.off for each in right])
    assert all(each.alarmed for each in missing)
    assert sum(each.large for each in missing) <= 1
    # a missing effect of A alarms, and is said to move counterfactuals
    assert all(each.large for each in direct)
    # selection and hidden common causes raise no more alarms than a right worldview
    assert sum(each.alarmed for each in (*hidden, *selected)) <= 2
    assert false(right) < 0.05
    assert 0.1 < false(hidden) < 0.4
    assert false(selected) > 0.8


@pytest.mark.slow
def test_a_tenth_of_a_standard_deviation_is_enough_for_cases_without_harm(simulation: Any) -> None:
    found = {
        (sharp, off): [
            simulation.null_of(seed, 3000, off=off, sharp=sharp) for seed in (900, 901, 902)
        ]
        for sharp in (False, True)
        for off in (0.0, 0.1)
    }
    shares = {key: np.mean([share for share, _ in each]) for key, each in found.items()}
    assert shares[False, 0.0] < 0.07 < shares[False, 0.1] - 0.02
    assert shares[True, 0.0] < 0.04 < shares[True, 0.1] - 0.08
    assert [any_adjusted for _, any_adjusted in found[True, 0.1]] == [True] * 3


def test_the_documented_table_has_a_line_for_each_mistake(simulation: Any) -> None:
    page = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    table = re.search(r"<!-- wrong worldviews -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert table is not None
    names = [line.split(" | ")[0].removeprefix("| ") for line in table[1].splitlines()[2:]]
    assert names == [mistake.name for mistake in simulation.MISTAKES]


def test_people_are_drawn_as_they_are_described(simulation: Any) -> None:
    rng = np.random.default_rng(1)
    for draw, share in ((simulation.effect, 1.0), (simulation.confounded, 0.5)):
        people = draw(rng, 20_000)
        moved = (people.counterfactual - people.facts)[people.woman]
        # x2 loses 0.3, and half of what x1 loses
        assert moved == pytest.approx(np.tile(share * np.array([0.8, 0.7]), (len(moved), 1)))
        assert (people.counterfactual == people.facts)[~people.woman].all()
    selected = simulation.selected(rng, 20_000)
    assert (selected.counterfactual == selected.facts).all()
    # and yet women have lower values
    women, men = selected.facts[selected.woman], selected.facts[~selected.woman]
    assert men[:, 0].mean() - women[:, 0].mean() > 0.5
