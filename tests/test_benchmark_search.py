"""The benchmark of the search: it must measure what it says, whichever peers are installed."""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
TIMES = ("search_us", "with_build_us", "ratio_search", "ratio_with_build")
WITHOUT = """
import runpy, sys
sys.modules[sys.argv.pop(1)] = None
sys.path.insert(0, sys.argv.pop(1))
sys.argv[0] = "search.py"
runpy.run_module("search", run_name="__main__")
"""


def run(folder: Path, *arguments: str, program: tuple[str, ...] = ()) -> dict[str, Any]:
    written = folder / "search.json"
    command = [sys.executable, *(program or (str(BENCHMARKS / "search.py"),))]
    small = ["--rows", "1000", "--k", "20", "--minutes", "0.05", "--repeats", "2"]
    done = subprocess.run(  # noqa: S603 - our own program
        [*command, *small, "--data", str(folder), "--json", str(written), *arguments],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "µs per complainant" in done.stdout
    found: dict[str, Any] = json.loads(written.read_text(encoding="utf-8"))
    return found


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("search_engines")


@pytest.fixture
def search(engines: Any) -> Any:
    return importlib.import_module("search")


@pytest.mark.slow
def test_a_small_run_measures_every_search_that_is_installed(tmp_path: Path, engines: Any) -> None:
    written = run(tmp_path, "--only", "8 numeric")
    assert written.keys() == {"cores", "settings", "cases", "growth"}
    assert [case["data"] for case in written["cases"]] == [
        "8 numeric + 4 nominal, independent",
        "8 numeric + 4 nominal, correlated",
    ]
    for case in written["cases"]:
        assert 250 < case["complainants"] < 450
        assert case["ours"]["search_us"] > 0
        assert case["ours"]["with_build_us"] > case["ours"]["search_us"]
        assert case["peers"].keys() == {"scikit-learn", "scipy", "faiss"}
        for peer, timing in case["peers"].items():
            if not engines.is_installed(peer):
                assert timing["status"] == "not installed"
                continue
            assert len(timing["seconds"]) == 2
            assert all(timing[name] > 0 for name in TIMES)
            per_complainant = min(timing["seconds"]) / timing["sample"] * 1e6
            assert timing["search_us"] == pytest.approx(per_complainant)
            ratio = timing["search_us"] / case["ours"]["search_us"]
            assert timing["ratio_search"] == pytest.approx(ratio)


@pytest.mark.slow
def test_what_is_missing_is_named(tmp_path: Path) -> None:
    program = ("-c", WITHOUT, "faiss", str(BENCHMARKS))
    written = run(tmp_path, "--only", "l", program=program)
    loan, law, *others = written["cases"]
    assert loan["status"].startswith("skipped: there is no")
    assert law["status"].startswith("skipped: there is no")
    assert loan["ours"] is None
    measured = [case for case in others if case["status"] == "measured"]
    assert measured
    assert {case["peers"]["faiss"]["status"] for case in measured} == {"not installed"}


def test_growth_is_the_exponent_of_the_whole_cost(search: Any) -> None:
    def case(rows: int, with_build_us: float) -> Any:
        timing = search.Timing(with_build_us=with_build_us)
        return search.Case(
            data="a", shape="a", rows=rows, columns=2, k=9, complainants=rows // 2, ours=timing
        )

    (line,) = search.growth_of([case(1_000, 2.0), case(100_000, 20.0)])
    # a hundred times the rows, each ten times as dear: 10^3 = 100^1.5
    assert math.isclose(line["exponent"], 1.5)
    assert search.growth_of([case(1_000, 2.0)]) == []


@pytest.mark.parametrize("theirs", [[0.1, 0.200002], [0.1, np.nan], []])
def test_a_peer_that_answers_something_else_is_refused(engines: Any, theirs: list[float]) -> None:
    ours = np.array([0.1, 0.2])
    engines.check_agreement(ours, np.array([0.1, 0.2000005]), "peer")
    with pytest.raises(engines.DisagreementError, match="peer"):
        engines.check_agreement(ours, np.array(theirs), "peer")


def test_a_broken_peer_ends_up_in_the_table_and_not_among_the_times(
    search: Any, engines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = engines.SciPy.search
    monkeypatch.setattr(engines.SciPy, "search", lambda self, n, k: right(self, n, k - 1))
    data = importlib.import_module("search_data")
    sources = data.synthetic([1_000], [20], shapes=[(2, 1)], dependences=["correlated"])
    settings = search.Settings(minutes=1, repeats=1, peer_sample=50)
    (case,) = search.measure(sources, settings=settings)
    assert case.peers["scipy"].status.startswith("disagrees: cKDTree")
    assert case.peers["scipy"].search_us is None
    assert case.ours.search_us > 0
