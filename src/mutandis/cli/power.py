"""`mutandis power`: what groups of k people can show, before anybody is audited."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mutandis.cli.render import invocation
from mutandis.cli.terminal import echo
from mutandis.evidence.power import analyse_power as power
from mutandis.files.text_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["run_power"]


def run_power(
    p_control: float,
    p_test: float,
    *,
    target: float,
    alpha: float,
    tau: float,
    interval: Any,
    measure: Any,
    ks: Sequence[int],
    k_max: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compute, draw if asked to, and print."""
    found = power(
        p_control,
        p_test,
        power=target,
        ks=ks,
        alpha=alpha,
        tau=tau,
        interval=interval,
        measure=measure,
        k_max=k_max,
    )
    if plot is not None:
        from mutandis.pictures.power import plot_power

        write_atomically(plot, plot_power(found).svg)
    if as_json:
        echo(json.dumps(found.as_dict(), indent=2))
        return
    echo(str(found))
    echo(f"Next, write such a k into the line ks of an audit file: {invocation()} init TABLE")
