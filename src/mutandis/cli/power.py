"""`mutandis power`: what groups of k people can show, before anybody is audited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from mutandis.cli.options import Json, app
from mutandis.cli.terminal import answer, invocation


@app.command()
def power(
    *,
    p_control: Annotated[float, typer.Option(help="Share refused in the control group.")],
    p_test: Annotated[float, typer.Option(help="Share refused in the test group.")],
    target: Annotated[
        float, typer.Option("--power", help="Probability with which the difference is to be found.")
    ] = 0.8,
    alpha: Annotated[float, typer.Option(help="Significance level.")] = 0.05,
    tau: Annotated[float, typer.Option(help="Minimum deviation.")] = 0.0,
    interval: Annotated[
        str, typer.Option(help="Interval, with the test that belongs to it.")
    ] = "miettinen-nurminen",
    measure: Annotated[
        str, typer.Option(help="What is compared with tau: a difference or a ratio.")
    ] = "risk-difference",
    k: Annotated[list[int] | None, typer.Option(help="Group size; may be repeated.")] = None,
    k_max: Annotated[int, typer.Option(help="How far to look for the smallest k.")] = 500,
    plot: Annotated[Path | None, typer.Option(help="Draw power against k, to this file.")] = None,
    json: Json = False,
) -> None:
    """Compute what groups of k people can show: power, smallest k, smallest difference."""
    from mutandis.store.text_files import write_atomically
    from mutandis.verdicts.power import analyse_power

    found = analyse_power(
        p_control,
        p_test,
        power=target,
        ks=k or (15, 30, 50, 100),
        alpha=alpha,
        tau=tau,
        interval=cast("Any", interval),
        measure=cast("Any", measure),
        k_max=k_max,
    )
    if plot is not None:
        from mutandis.report.plots import plot_power

        write_atomically(plot, plot_power(found).svg)
    next_step = f"Next, write such a k into the line ks of an audit file: {invocation()} init TABLE"
    answer(found.as_dict(), (str(found), next_step), as_json=json)
