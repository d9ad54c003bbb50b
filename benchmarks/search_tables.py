"""What benchmarks/search.py shows on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from search_engines import PEERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.table import Table


def speed_table(cases: Iterable[Mapping[str, Any]]) -> Table:
    """Show µs per complainant, of how many, and how many times as long as ours a peer took."""
    from rich.table import Table

    table = Table(
        title="µs per complainant: search alone / with the build shared by all complainants. "
        "×: times as long as ours. n: timed on so many complainants (fastest of the runs)",
        show_lines=True,
    )
    for heading in ("data", "rows", "k", "ours", *PEERS):
        table.add_column(heading, justify="right" if heading in {"rows", "k"} else "left")
    for case in cases:
        ours = case["ours"]
        table.add_row(
            case["data"],
            f"{case['rows']:,}",
            str(case["k"]),
            _ours(case) if ours else case["status"],
            *(_peer(case["peers"][peer], case) if ours else "" for peer in PEERS),
        )
    return table


def growth_table(growth: Iterable[Mapping[str, Any]]) -> Table:
    """Show with which power of the rows our whole cost grows."""
    from rich.table import Table

    table = Table(title="Growth of our whole cost (build and all complainants) with the rows")
    for heading in ("data", "k", "from rows", "to rows", "exponent"):
        table.add_column(heading, justify="left" if heading == "data" else "right")
    for line in growth:
        table.add_row(
            line["data"],
            str(line["k"]),
            f"{line['from_rows']:,}",
            f"{line['to_rows']:,}",
            f"{line['exponent']:.2f}",
        )
    return table


def _ours(case: Mapping[str, Any]) -> str:
    return f"{_times(case['ours'])}\n{case['backend']}, {_sample(case['ours'], case)}"


def _peer(timing: Mapping[str, Any], case: Mapping[str, Any]) -> str:
    if timing["search_us"] is None:
        return str(timing["status"])
    shown = (
        f"{_times(timing)}\n×{timing['ratio_search']:.2f} / ×{timing['ratio_with_build']:.2f}\n"
        f"{timing['engine']}, {_sample(timing, case)}"
    )
    left_out = str(timing["status"]).removeprefix("measured").strip(" ()")
    return f"{shown}\n{left_out}" if left_out else shown


def _times(timing: Mapping[str, Any]) -> str:
    return f"{timing['search_us']:,.1f} / {timing['with_build_us']:,.1f}"


def _sample(timing: Mapping[str, Any], case: Mapping[str, Any]) -> str:
    if timing["sample"] == case["complainants"]:
        return "n = all"
    return f"n = {timing['sample']:,} of {case['complainants']:,}"
