"""Few people are matched in many worlds at once: every number is that of one world at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing.robustness import find_curve
from mutandis.engine.engine import Engine

_WORLDVIEW = {"x": mm.Linear("s", "g"), "y": mm.Linear("x", "s", "g")}
AUDITS: dict[str, dict[str, Any]] = {
    "numbers": {"attributes": {"x": "continuous", "y": "continuous"}},
    # counterfactuals fall between values, and are drawn
    "a grid": {"attributes": {"x": "continuous", "grade": "continuous"}},
    "names": {"attributes": {"x": "continuous", "job": "nominal"}},
    "a caliper": {
        "attributes": {"x": "continuous", "y": "continuous"},
        "similarity": mm.Similarity(max_distance=0.06),
    },
    "all ties": {
        "attributes": {"grade": "continuous", "job": "nominal"},
        "similarity": mm.Similarity(ties="all"),
    },
    "two values": {
        "protected": mm.Protection("g", value=["b", "c"], reference="a"),
        "attributes": {"x": "continuous", "grade": "continuous"},
    },
    "two grounds": {
        "protected": [
            mm.Protection("s", value="f", reference="m"),
            mm.Protection("g", value="b", reference="a"),
        ],
        "combine": "multiple",
        "attributes": {"x": "continuous", "y": "continuous"},
    },
}


def people(rows: int = 240, seed: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex, group = rng.choice(["f", "m"], rows), rng.choice(["a", "b", "c"], rows)
    x = np.round(3 * rng.normal(size=rows) - 2 * (sex == "f") - (group == "b"), 1)
    y = rng.normal(size=rows) + 0.5 * x - 1.5 * (sex == "f")
    refused = rng.random(rows) < 1 / (1 + np.exp(0.5 + 0.5 * x + 0.3 * y))
    return pd.DataFrame(
        {
            "s": sex, "g": group, "x": x, "y": y, "grade": np.clip(np.round(y), -4, 4),
            "job": rng.choice(["clerk", "cook"], rows), "refused": refused,
        }
    )  # fmt: skip


def numbers_of(kind: str) -> list[pd.DataFrame]:
    """Audit, and give every table that depends on other worlds."""
    settings = {"protected": mm.Protection("s", value="f", reference="m")} | AUDITS[kind]
    grade = {"grade": mm.Linear("s", "g")}
    audit = mm.audit(
        people(),
        outcome="refused",
        negative=True,
        worldview=mm.Worldview(_WORLDVIEW | grade),
        ks=(5, 12),
        uncertainty=mm.Uncertainty(refits=5, tipping=True),
        **settings,
    )
    tables = [audit.findings(each.name, k=k) for each in audit.plan.methods for k in audit.ks]
    tipping = audit.measure_tipping()
    assert tipping is not None
    return [*tables, pd.DataFrame(tipping.columns())]


@pytest.mark.few("a grid", "names", "a caliper")
@pytest.mark.parametrize("kind", AUDITS)
def test_no_number_changes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = Engine._count_here

    def count(self: Engine, wanted: Any, worlds: Any, *others: Any) -> None:
        sizes.append(len(worlds))
        original(self, wanted, worlds, *others)

    monkeypatch.setattr(Engine, "_count_here", count)
    together = numbers_of(kind)
    assert max(sizes) >= 10
    # some at a time, which divides neither the refits nor the steps
    monkeypatch.setattr(Engine, "_at_once", lambda *_: 3)
    some = numbers_of(kind)
    sizes.clear()
    monkeypatch.setattr(Engine, "_at_once", lambda *_: 1)
    alone = numbers_of(kind)
    assert set(sizes) == {1}
    for table, other, expected in zip(together, some, alone, strict=True):
        pd.testing.assert_frame_equal(table, expected, check_exact=True)
        pd.testing.assert_frame_equal(other, expected, check_exact=True)
    assert any(table["tipping"].gt(0).any() for table in alone if "tipping" in table)


def test_shares_without_a_common_whole_are_joined() -> None:
    """Matches of worlds that were not searched together have wholes of their own."""
    from scipy.sparse import csr_array

    from mutandis.engine.matches import Matches

    def matches(negatives: list[int], whole: int, people: list[list[int]]) -> Matches:
        size = len(negatives)
        return Matches(
            key=np.arange(size)[::-1],
            marks=np.array(negatives)[:, np.newaxis],
            wholes=(whole,),
            found=np.ones(size, dtype=np.bool_),
            people=csr_array(np.array(people, dtype=np.int32)),
            parts=12,
            counts=np.ones(3, dtype=np.int64),
            distance=np.arange(size) / 2,
            squared=False,
            numbers=np.arange(5 * size).reshape(size, 5),
            levels=csr_array(np.eye(size, 7, dtype=np.int64)),
        )

    parts = [matches([1, 3], 4, [[6, 6, 0], [0, 12, 0]]), matches([5], 6, [[4, 4, 4]])]
    joined = Matches.join(parts)
    rows = [np.array([0, 1]), np.array([2])]
    for each, mine in zip(parts, rows, strict=True):
        before, after = each.sums(np.arange(len(mine))), joined.sums(mine)
        assert after.mean().tolist() == before.mean().tolist()
        for name in ("people", "levels"):
            one, other = getattr(each, name).toarray(), getattr(joined, name).toarray()
            assert other[joined.key[mine]].tolist() == one[each.key].tolist()
        for name in ("numbers", "distance", "found"):
            one, other = getattr(each, name), getattr(joined, name)
            assert other[joined.key[mine]].tolist() == one[each.key].tolist()


def prime_table(seed: int) -> pd.DataFrame:
    """Make values that a prime number of men share: the whole of all shares is their product."""
    rng, primes = np.random.default_rng(seed), [7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43]
    men = np.repeat(np.arange(len(primes)), primes)
    women = rng.integers(0, len(primes), 90)
    refused = np.concatenate([np.arange(size) < rng.integers(1, size) for size in primes])
    return pd.DataFrame(
        {
            "s": ["m"] * len(men) + ["f"] * len(women),
            "x": np.concatenate([men, women]).astype(float),
            "refused": np.concatenate([refused, rng.random(len(women)) < 0.7]),
        }
    )


def test_the_last_bits_of_shares_in_large_parts_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def audit() -> mm.Audit:
        return mm.audit(
            prime_table(1),
            outcome="refused",
            negative=True,
            protected=mm.Protection("s", value="f", reference="m"),
            attributes={"x": "continuous"},
            worldview=mm.Worldview({"x": mm.Linear("s")}),
            ks=(20,),
            methods=["cst_matched"],
            uncertainty=mm.Uncertainty(refits=20, tipping=False),
        )

    together = audit()
    share = together.ground.tally.at(together.plan.methods[0], 0).test.share
    assert max((share.places * share.parts[:, 0]).tolist()) > 2**53
    monkeypatch.setattr(Engine, "_at_once", lambda *_: 1)
    pd.testing.assert_frame_equal(together.findings(), audit().findings(), check_exact=True)


def test_averages_are_taken_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With none of the effect names stay; with a part of it, two worlds are averaged."""
    table = people()
    other = table.drop(columns="refused").assign(
        job=np.where(table.s == "f", "clerk", table.job), x=table.x + 2 * (table.s == "f")
    )

    def curves() -> list[Any]:
        audit = mm.audit(
            table,
            outcome="refused",
            negative=True,
            protected=mm.Protection("s", value="f", reference="m"),
            attributes={"x": "continuous", "job": "nominal"},
            counterfactuals=other,
            ks=(12,),
        )
        return [find_curve(audit, place) for place in range(4)] + [audit.findings().to_csv()]

    together = curves()
    monkeypatch.setattr(Engine, "_at_once", lambda *_: 1)
    assert together == curves()
