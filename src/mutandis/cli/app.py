"""The command line: thin commands over the Python API.

Exit codes: 0 done; 1 `reproduce` found a difference that is not a known one; 2 the command, the
settings or the data are at fault.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mutandis import __version__
from mutandis.errors import MutandisError

__all__ = ["app", "main"]

app = typer.Typer(
    name="mutandis",
    help="Detect individual discrimination in tables of decisions by counterfactual situation "
    "testing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_debug = False


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"mutandis {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    global _debug  # noqa: PLW0603 - one process, one command
    _debug = debug


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the output files.")] = Path("mutandis-demo"),
    n: Annotated[int, typer.Option(help="Loan applications to draw.")] = 5000,
    share: Annotated[
        float, typer.Option(help="P(A = 1): 0.35 as in the published data, or 0.45 as in the text.")
    ] = 0.35,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 7,
    json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Audit the paper's loan scenario, generated afresh: data, worldview, D^CF, all methods."""
    from mutandis.cli.demo import run_demo

    run_demo(out, n=n, share=share, seed=seed, as_json=json)


@app.command()
def check(
    config: Annotated[Path, typer.Argument(help="An audit in a YAML file.")],
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check an audit file, its table and its worldview, without running the audit."""
    from mutandis.cli.check import run_check

    run_check(config, as_json=json)


@app.command()
def reproduce(
    data: Annotated[Path, typer.Option(help="Folder with the published data.")],
    json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Repeat the paper's tables exactly, then give what its definitions really imply."""
    from mutandis.cli.reproduce import run_reproduce

    raise typer.Exit(run_reproduce(data, as_json=json))


def main() -> None:
    """Run the command line; an error on purpose is one paragraph, not a traceback."""
    try:
        app()
    except MutandisError as error:
        if _debug:
            raise
        typer.echo(f"mutandis: {error}", err=True)
        sys.exit(2)
