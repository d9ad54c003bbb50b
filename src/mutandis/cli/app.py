"""The command line: each command is a thin function over the Python API."""

from __future__ import annotations

import sys
from contextlib import suppress
from traceback import format_exc
from typing import Annotated

import typer

from mutandis import __version__
from mutandis.cli import audit, init, results  # noqa: F401 - each registers its commands
from mutandis.cli.exit_codes import Stopped, end_now, explain, stoppable
from mutandis.cli.options import app
from mutandis.cli.terminal import echo, explained_writes
from mutandis.errors import OutputError
from mutandis.limits import check_address_space

__all__ = ["app", "main"]

# the others read a table, which takes more memory
_WITHOUT_TABLE = {"case", "explore", "export", "power"}
_debug = False


def _show_version(value: bool) -> None:  # noqa: FBT001 - typer's callback
    if value:
        echo(f"mutandis {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    global _debug  # noqa: PLW0603 - one process, one command
    _debug = debug
    check_address_space(table=context.invoked_subcommand not in _WITHOUT_TABLE)


def main() -> None:
    """Run the command line; every error is one paragraph, not a traceback."""
    with stoppable() as came, explained_writes():
        try:
            try:
                app()
            finally:
                sys.stdout.flush()
        except (Exception, Stopped, KeyboardInterrupt) as error:  # noqa: BLE001 - any is explained
            code, paragraph = explain(error, came)
            if came:
                end_now(code)
            # where stderr cannot be written to, the code still tells
            with suppress(Stopped, OutputError):
                if _debug and paragraph:
                    echo(format_exc(), err=True)
                if paragraph:
                    echo(f"mutandis: {paragraph}", err=True)
            sys.exit(code)
