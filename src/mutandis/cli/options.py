"""The command line's application, and the options that several commands share."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from mutandis.cli.exit_codes import EXIT_CODES
from mutandis.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Commands(TyperGroup):
    """The commands; errors about arguments are printed without control characters."""

    def make_context(self, *given: Any, **more: Any) -> Any:
        with _printable_errors():
            return super().make_context(*given, **more)

    def invoke(self, ctx: Any) -> Any:
        with _printable_errors():
            return super().invoke(ctx)


@contextmanager
def _printable_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(getattr(error, "message", None), str):  # one of typer's
            error.message = printable(error.message)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    name="mutandis",
    cls=_Commands,
    help="Detect individual discrimination in tables of decisions by counterfactual situation "
    "testing.",
    epilog="Exit codes: "
    + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
    + ".",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Config = Annotated[Path, typer.Argument(help="An audit in a YAML file.")]
Results = Annotated[Path, typer.Argument(help="A folder that `mutandis audit` has written.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
TrustCode = Annotated[
    bool,
    typer.Option(
        "--trust-code",
        help="Run code that the audit file names: a Python function, a pickle, skops types that "
        "are not known to be harmless.",
    ),
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads of the search (default: all cores).")
]
Method = Annotated[str | None, typer.Option(help="The method (default: the primary one).")]
K = Annotated[int | None, typer.Option(help="The group size (default: the primary one).")]
Sign = Annotated[
    Path | None,
    typer.Option(metavar="KEYFILE", help="Sign with this private Ed25519 key (a PEM file)."),
]
PeopleFile = Annotated[Path | None, typer.Option(help="A CSV file for one row per complainant.")]
