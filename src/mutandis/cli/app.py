"""The command line: thin commands over the Python API."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from traceback import format_exc
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from mutandis import __version__
from mutandis.cli.exit_codes import EXIT_CODES, Stopped, end_now, explain, stoppable
from mutandis.cli.terminal import echo, explained_writes
from mutandis.errors import OutputError, printable
from mutandis.limits import check_address_space

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["app", "main"]


class ExportContent(StrEnum):
    """What `mutandis export` writes."""

    PEOPLE = "people"
    COUNTS = "counts"
    LL144 = "ll144"
    PRIMA_FACIE = "prima-facie"
    MODEL_CARD = "model-card"


class _Commands(TyperGroup):
    """The commands; what is wrong with an argument is said without its control characters."""

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

_debug = False

Config = Annotated[Path, typer.Argument(help="An audit in a YAML file.")]
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
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help="Compute elsewhere: local:4 for four processes, tcp://host:8786 for a Dask scheduler.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="About how much memory each process may use, such as 4GB."),
]
Sign = Annotated[
    Path | None,
    typer.Option(metavar="KEYFILE", help="Sign with this private Ed25519 key (a PEM file)."),
]
Base = Annotated[
    Path | None,
    typer.Option(help="Folder that paths in the audit file start from, if it has moved."),
]


def _show_version(value: bool) -> None:
    if value:
        echo(f"mutandis {__version__}")
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
    json: Json = False,
) -> None:
    """Audit the paper's loan scenario, generated afresh: data, worldview, D^CF, all methods."""
    check_address_space()
    from mutandis.cli.demo import run_demo

    run_demo(out, n=n, share=share, seed=seed, as_json=json)


@app.command()
def init(
    data: Annotated[
        str, typer.Argument(help="A file, a folder, a pattern, or the address of a database.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="The audit file to write.")] = Path("audit.yaml"),
    outcome: Annotated[str | None, typer.Option(help="The column with the decision.")] = None,
    negative: Annotated[str | None, typer.Option(help="Its unfavourable value.")] = None,
    protected: Annotated[str | None, typer.Option(help="The protected attribute.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="Its value that the others are compared with.")
    ] = None,
    id: Annotated[  # noqa: A002 - the name of the option
        str | None, typer.Option(help="A column with a unique value a row.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="The query, for a database.")] = None,
    separator: Annotated[str | None, typer.Option(help="Of CSV, if it is not found out.")] = None,
    decimal: Annotated[str | None, typer.Option(help="Of CSV: the decimal mark.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of CSV, if it is not UTF-8.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an older file.")] = False,
) -> None:
    """Look at a table, and write a commented audit file with guesses to be corrected.

    On a terminal it asks for the outcome and the protected attribute where they are not clear.
    """
    check_address_space()
    from mutandis.cli.init import run_init

    run_init(
        data,
        out,
        reading={
            "query": query,
            "separator": separator,
            "decimal": decimal,
            "encoding": encoding,
        },
        known={
            "outcome": outcome,
            "negative": negative,
            "protected": protected,
            "reference": reference,
            "id": id,
        },
        force=force,
    )


@app.command()
def check(
    config: Config,
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Print all that was found about the worldview.")
    ] = False,
    trust_code: TrustCode = False,
    json: Json = False,
) -> None:
    """Do everything short of the search: settings, table, worldview, a trial of the model."""
    check_address_space()
    from mutandis.cli.check import run_check

    run_check(config, trust_code=trust_code, full=full, as_json=json)


@app.command()
def audit(
    config: Config,
    *,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace older results in that folder.")
    ] = False,
    sign: Sign = None,
    trust_code: TrustCode = False,
    threads: Threads = None,
    cluster: Cluster = None,
    memory: Memory = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with a run with --cluster or --memory that was ended early."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Run an audit and write its results: findings, counts, record, report, pictures."""
    check_address_space()
    from mutandis.cli.audit import run_audit

    run_audit(
        config,
        out,
        force=force,
        sign=sign,
        trust_code=trust_code,
        threads=threads,
        cluster=cluster,
        memory=memory,
        resume=resume,
        as_json=json,
    )


@app.command()
def case(
    folder: Annotated[Path, typer.Argument(help="A folder that `mutandis audit` has written.")],
    id: Annotated[str, typer.Argument(help="The complainant.")],  # noqa: A002 - the public name
    *,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="Leave out all other people: verdicts and coarse shares stay."
        ),
    ] = False,
    pdf: Annotated[
        bool,
        typer.Option("--pdf/--no-pdf", help="Print the page as a PDF too, by WeasyPrint."),
    ] = False,
    sign: Sign = None,
) -> None:
    """Write the case file of one complainant, HTML and JSON, into the folder's `cases`."""
    check_address_space(table=False)
    from mutandis.cli.case import run_case

    run_case(folder, id, redact=redact, pdf=pdf, sign=sign)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="A folder that `mutandis audit` has written.")],
    *,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Run the audit again and compare all that it writes.")
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="PUBKEYFILE", help="See whether the results are signed with this key (PEM)."
        ),
    ] = None,
    base: Base = None,
    trust_code: TrustCode = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """See whether results are what was written, and with --rerun whether they come out again."""
    check_address_space()
    from mutandis.cli.verify import run_verify

    raise typer.Exit(
        run_verify(
            folder,
            rerun=rerun,
            key=key,
            base=base,
            trust_code=trust_code,
            threads=threads,
            as_json=json,
        )
    )


@app.command()
def robustness(
    folder: Annotated[Path, typer.Argument(help="A folder that `mutandis audit` has written.")],
    *,
    method: Annotated[
        str | None, typer.Option(help="cst_matched or cst_without (default: the primary one).")
    ] = None,
    k: Annotated[int | None, typer.Option(help="Group size (default: the primary one).")] = None,
    out: Annotated[
        Path | None, typer.Option(help="A CSV file for one row per complainant.")
    ] = None,
    json: Json = False,
) -> None:
    """Say how much of the effect of the status must be real for each verdict to stand."""
    check_address_space(table=False)
    from mutandis.cli.robustness import run_robustness

    run_robustness(folder, method=method, k=k, out=out, as_json=json)


@app.command()
def prevent(
    folder: Annotated[Path, typer.Argument(help="A folder that `mutandis audit` has written.")],
    *,
    rule: Annotated[
        str,
        typer.Option(
            help="Whose decisions are changed: own-case (verdict and a case of her own) or pattern "
            "(verdict alone)."
        ),
    ] = "own-case",
    method: Annotated[
        str | None, typer.Option(help="Whose verdicts are taken (default: the primary method).")
    ] = None,
    k: Annotated[int | None, typer.Option(help="Group size (default: the primary one).")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A file for the table with the changed decisions: .csv, .xlsx, .parquet."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Study what remains when the decisions on confirmed cases are changed; it is no remedy."""
    check_address_space(table=False)
    from mutandis.cli.prevent import run_prevent

    run_prevent(folder, rule=rule, method=method, k=k, out=out, as_json=json)


@app.command()
def compare(
    config: Annotated[
        Path,
        typer.Argument(help="An audit in a YAML file, or a folder that `mutandis audit` wrote."),
    ],
    others: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of other worldviews, or audit files that have one."),
    ] = None,
    *,
    variants: Annotated[
        bool,
        typer.Option("--variants", help="Also try variants that differ in one choice each."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="A CSV file for one row per complainant.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="An SVG file for worldviews against verdicts.")
    ] = None,
    sign: Sign = None,
    trust_code: TrustCode = False,
    json: Json = False,
) -> None:
    """Run one audit under several worldviews: which verdicts stay, and which choice breaks them.

    Where a folder of results is named, they are written anew with the answer in them.
    """
    check_address_space()
    from mutandis.cli.compare import run_compare

    run_compare(
        config,
        others or [],
        variants=variants,
        out=out,
        picture=picture,
        sign=sign,
        trust_code=trust_code,
        as_json=json,
    )


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="A folder that `mutandis audit` has written.")],
    out: Annotated[Path, typer.Argument(help="A file: .csv, .xlsx or .parquet; a text: .md.")],
    *,
    content: Annotated[
        ExportContent,
        typer.Option(
            "--as",
            help="people: one row per complainant. counts: one per method and k. "
            "ll144: rates and impact ratios of groups, as New York's Local Law 144 asks for "
            "them. prima-facie, model-card: a text in Markdown.",
        ),
    ] = ExportContent.PEOPLE,
    method: Annotated[
        str | None, typer.Option(help="people: the method (default: the primary one).")
    ] = None,
    k: Annotated[
        int | None, typer.Option(help="people: the group size (default: the primary one).")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="ll144: a column of categories (default: the protected statuses)."),
    ] = None,
    unknown: Annotated[
        list[str] | None, typer.Option(help="ll144: a value that means that nothing is known.")
    ] = None,
    leave_out_below: Annotated[
        float, typer.Option(help="ll144: the share below which a category gets no ratio.")
    ] = 0.0,
    score: Annotated[
        str | None, typer.Option(help="ll144: a column of scores, for scoring rates.")
    ] = None,
) -> None:
    """Write an audit for others: people, rates of groups, or a text."""
    from mutandis.cli.export import run_counts, run_export, run_impact_ratios, run_text

    if content is ExportContent.PEOPLE:
        run_export(folder, out, method=method, k=k)
    elif content is ExportContent.COUNTS:
        run_counts(folder, out)
    elif content is ExportContent.LL144:
        run_impact_ratios(
            folder, out, by=by, unknown=unknown, leave_out_below=leave_out_below, score=score
        )
    else:
        run_text(folder, out, content.value)


@app.command()
def explore(
    folder: Annotated[Path, typer.Argument(help="A folder that `mutandis audit` has written.")],
    other: Annotated[
        Path | None, typer.Argument(help="Another such folder, to compare it with.")
    ] = None,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on (default: a free one).")
    ] = 0,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but 127.0.0.1 shows the data to others.")
    ] = "127.0.0.1",
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the address in a browser.")
    ] = True,
) -> None:
    """Look into an audit in a web browser: overview, people, one person, worldviews."""
    check_address_space(table=False)
    from mutandis.cli.explore import run_explore

    run_explore(folder, other, host=host, port=port, open_browser=open_browser)


@app.command()
def power(
    *,
    p_control: Annotated[float, typer.Option(help="Share refused among people like her.")],
    p_test: Annotated[
        float, typer.Option(help="Share refused among people like her counterfactual.")
    ],
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
    """Say what groups of k people can show: power, smallest k, smallest difference."""
    check_address_space(table=False)
    from mutandis.cli.power import run_power

    run_power(
        p_control,
        p_test,
        target=target,
        alpha=alpha,
        tau=tau,
        interval=interval,
        measure=measure,
        ks=k or (15, 30, 50, 100),
        k_max=k_max,
        plot=plot,
        as_json=json,
    )


@app.command()
def reproduce(
    data: Annotated[Path, typer.Option(help="Folder with the published data.")],
    json: Json = False,
) -> None:
    """Repeat the paper's tables exactly, then give what its definitions really imply."""
    check_address_space()
    from mutandis.cli.reproduce import run_reproduce

    raise typer.Exit(run_reproduce(data, as_json=json))


def main() -> None:
    """Run the command line; whatever goes wrong is one paragraph, not a traceback."""
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
