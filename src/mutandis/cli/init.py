"""The commands before an audit: `init`, `schema`, `demo`, `power`, and `reproduce`."""

from __future__ import annotations

import json as jsons
import os
from dataclasses import astuple
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mutandis.cli.audit import count_lines, headline_lines, summary_of
from mutandis.cli.options import Json, app
from mutandis.cli.terminal import answer, echo, invocation, table_lines, wrap
from mutandis.errors import InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mutandis.auditing.audit import Audit
    from mutandis.replication.eaamo import Tests
    from mutandis.replication.printed import CaseTable, CountTable, Difference


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
    """Look at a table, and write a commented audit file with guesses to be corrected."""
    from mutandis.config.fields import placed
    from mutandis.config.init import draft_config
    from mutandis.config.schema import DataSection
    from mutandis.frames import check_columns
    from mutandis.store.files import write_atomically
    from mutandis.store.tables import open_source, read_source

    _check_target(out, force=force)
    reading = {"query": query, "separator": separator, "decimal": decimal, "encoding": encoding}
    known = {
        "outcome": outcome,
        "negative": negative,
        "protected": protected,
        "reference": reference,
        "id": id,
    }
    section = _data_section(data, reading, out)
    with placed(None):
        source = open_source(DataSection(**section), folder=out.parent)
    table = read_source(source).to_pandas()
    check_columns(filter(None, (outcome, protected, id)), list(table.columns))
    if not len(table):
        raise InputError("The table has no rows. Check the file or query that it came from.")
    text = draft_config(table, data=section, title=source.name, **known)
    write_atomically(out, text)
    for line in _next_steps(data, out, text):
        echo(line)


@app.command()
def schema() -> None:
    """Print the JSON Schema of audit files, for editors that complete and check them."""
    from mutandis.config.schema import audit_file_schema

    echo(jsons.dumps(audit_file_schema(), indent=2))


def _check_target(out: Path, *, force: bool) -> None:
    if out.is_symlink() or (out.exists() and not out.is_file()):
        raise OutputError(
            f"{str(out)!r} is not a regular file but a link, a folder or a device, and is not "
            "replaced. Name another file with --out."
        )
    if out.exists() and not force:
        raise OutputError(
            f"There is a file {str(out)!r} already. Name another one with --out, or add --force to "
            "replace it."
        )
    if not out.parent.is_dir():
        raise OutputError(f"There is no folder {str(out.parent)!r} to write to. Make it first.")


def _data_section(data: str, reading: Mapping[str, str | None], out: Path) -> dict[str, Any]:
    """Return the section `data`, with paths relative to the file that is to be written."""
    further = {key: value for key, value in reading.items() if value is not None}
    if "://" in data:
        return {"url": data, **further}
    path = Path(data)
    if not path.is_absolute():
        path = Path(os.path.relpath(path, out.parent))
    return {"source": path.as_posix(), **further}


def _next_steps(data: str, out: Path, text: str) -> Iterator[str]:
    from mutandis.config.schema import FILL_IN

    yield f"Wrote {out}. Look at the lines marked EDIT 1 and EDIT 2."
    if "a code for missing values?" in text:
        yield "Some numbers look like codes for missing values: it says which, and what to do."
    lines = [line for line in text.splitlines() if FILL_IN in line]
    blank = [
        name
        for name in ("outcome", "protected")
        if any(line.startswith(f"{name}:") for line in lines)
    ]
    if blank:
        options = " ".join(f"--{name} COLUMN" for name in blank)
        # the address of a database may contain a password
        table = "…" if "://" in data else data
        yield (
            f"The names of the columns do not tell the {' and '.join(blank)}: fill in where the "
            f"file says {FILL_IN!r}, or run: {invocation()} init {table} --force {options}"
        )
    yield f"Next: {invocation()} check {out}"


# --- the paper's loan scenario --------------------------------------------------------------------

_DECISIONS, _CONFIG, _RESULTS = "decisions.csv", "audit.yaml", "results"

_AUDIT = """\
data: {source: decisions.csv}
outcome: {column: LoanApproval, negative: -1}
protected: {attribute: Gender, value: 1, reference: 0}   # 1: female
attributes: {AnnualSalary: continuous, AccountBalance: continuous}
worldview:
  AnnualSalary:   {equation: linear, parents: [Gender]}
  AccountBalance: {equation: linear, parents: [AnnualSalary, Gender]}
decision: {rule: "AnnualSalary + 5 * AccountBalance > 225000"}
ks: [15, 30, 50, 100]
"""
_METHODS = (
    "ST compares each woman with similar men; CST with men similar to the woman's counterfactual, "
    "without (w/o) or with (w/) the two of them counted in; CF compares only those two. CST "
    "(matched), the headline of the report, compares the k most similar women with the men whom "
    "those women would have been. What remains after adjustment is prima facie evidence, given "
    "this worldview: it is not proof."
)


@app.command()
def demo(
    *,
    out: Annotated[Path, typer.Option(help="Folder for the output files.")] = Path("mutandis-demo"),
    n: Annotated[int, typer.Option(help="Loan applications to draw.")] = 5000,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 7,
    json: Json = False,
) -> None:
    """Audit the paper's loan scenario, generated afresh: data, worldview, D^CF, all methods."""
    from mutandis.datasets import loan
    from mutandis.store.audit_file import read_plan
    from mutandis.store.files import write_csv
    from mutandis.store.output_folder import check_output, output_folder

    check_output(out, replace=True, known=_is_demo)
    with output_folder(out, replace=True, known=_is_demo) as folder:
        decisions = loan(n=n, seed=seed)
        columns = {name: decisions[name].to_numpy() for name in decisions.columns}
        write_csv(folder / _DECISIONS, columns)
        (folder / _CONFIG).write_text(_AUDIT, encoding="utf-8")
        found = read_plan(folder / _CONFIG).run()
        found.save(folder / _RESULTS)
    answer(summary_of(found), _describe_demo(found, out), as_json=json)


def _is_demo(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} <= {_DECISIONS, _CONFIG, _RESULTS}


def _describe_demo(found: Audit, out: Path) -> Iterator[str]:
    from mutandis.store.results_folder import REPORT

    refused, women, men = found.study.outcomes, found.study.people, found.plan.strata[0].test
    yield f"Loan applications: {len(refused):,} decisions, {len(women):,} by women."
    yield (
        f"Refused: {refused[women].mean():.1%} of the women, "
        f"{refused[men].mean():.1%} of the men.\n"
    )
    yield from headline_lines(found)
    yield from count_lines(found)
    yield wrap(_METHODS) + "\n"
    findings = found.results.headline
    confirmed = findings.ids[findings.significant_adjusted & findings.is_negative]
    who = confirmed[0] if len(confirmed) else findings.ids[0]
    yield f"The table and the audit file:  {out / _DECISIONS}, {out / _CONFIG}"
    yield f"The report, for your browser:  {out / _RESULTS / REPORT}"
    yield f"Next, one person's case file:  {invocation()} case {out / _RESULTS} {who}"


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
    measure: Annotated[
        str, typer.Option(help="What is compared with tau: a difference or a ratio.")
    ] = "risk-difference",
    k: Annotated[list[int] | None, typer.Option(help="Group size; may be repeated.")] = None,
    json: Json = False,
) -> None:
    """Compute what groups of k people can show: power, smallest k, smallest difference."""
    from mutandis.verdicts.power import analyse_power

    found = analyse_power(
        p_control,
        p_test,
        power=target,
        ks=k or (15, 30, 50, 100),
        alpha=alpha,
        tau=tau,
        measure=cast("Any", measure),
    )
    next_step = f"Next, write such a k into the line ks of an audit file: {invocation()} init TABLE"
    answer(found.as_dict(), (str(found), next_step), as_json=json)


# --- the published tables -------------------------------------------------------------------------

_WHY = (
    "They differ because the definitions put facts and counterfactuals on one scale (the "
    "publication standardised each world by itself, which takes part of the counterfactual shift "
    "away again) and let people at equal distance share the last places (the publication took "
    "those who stood lower in the file)."
)


@app.command()
def reproduce(
    data: Annotated[Path, typer.Option(help="Folder with the published data.")],
    *,
    json: Json = False,
) -> None:
    """Repeat the paper's tables exactly, then show the counts under its definitions."""
    from mutandis.auditing.plan import audit
    from mutandis.replication.eaamo import KS, METHODS, RUNS, compare
    from mutandis.replication.printed import find_differences

    published = {run.key: compare(run, run.read(data)) for run in RUNS}
    differences = find_differences(published)
    counts = {
        key: {str(k): {name: int(tests[name, k]["case"].sum()) for name in METHODS} for k in KS}
        for key, tests in published.items()
    }

    def lines() -> Iterator[str]:
        yield "As published\n"
        yield from _published_lines(published, differences)
        yield "As defined (the default)\n"
        for run in RUNS:
            found = audit(run.read(data), **run.settings)
            yield from count_lines(found, f"{run.title} (* significant, α = 5 %)")
        yield wrap(_WHY)
        yield f"Next, the same on new data: {invocation()} demo"

    answer(counts, lines(), as_json=json)
    raise typer.Exit(0 if all(each.reason for each in differences) else 1)


def _published_lines(
    published: Mapping[str, Tests], differences: list[Difference]
) -> Iterator[str]:
    from mutandis.replication.eaamo import KS, RUNS
    from mutandis.replication.printed import CASE_TABLES, COUNT_TABLES

    titles = {run.key: run.title for run in RUNS}
    for table in COUNT_TABLES:
        tests = published[table.run]
        people = len(tests["cf", KS[0]])
        title = f"Table {table.number}. {titles[table.run]} ({people:,} complainants)"
        yield from table_lines(title, *_count_rows(table, tests))
        for cases in CASE_TABLES if table.number == 1 else ():
            title = f"Table {cases.number}. Single complainants, CST (w/), k = 15"
            yield from table_lines(title, *_case_rows(cases, tests))
    if not differences:
        yield "exact: every printed cell comes out."
        return
    is_known = all(each.reason for each in differences)
    yield f"exact, but for {len(differences)} printed cells:" if is_known else "NOT exact:"
    for each in differences:
        known = f" ({each.reason}: the printed cell cannot follow)" if each.reason else ""
        yield f"  {each.where}: printed {each.printed}, ours {each.ours}{known}"
    yield ""


def _count_rows(table: CountTable, tests: Tests) -> Iterator[list[str]]:
    """Yield printed counts, each with ours in the line below."""
    from mutandis.engine.tally import METHODS
    from mutandis.replication.eaamo import KS

    found = table.ours(tests)
    yield ["Method", "", *(f"k = {k}" for k in KS)]
    for method, row in table.cells.items():
        for source, cells in (("printed", row), ("ours", found[method])):
            title = METHODS[method].title if source == "printed" else ""
            yield [title, source, *(f"{cases:,} ({share}%)" for cases, share in cells)]


def _case_rows(table: CaseTable, tests: Tests) -> Iterator[list[str]]:
    """Yield printed complainants, each with our numbers in the line below."""
    yield ["ID", "", "p_c", "p_t", "Δp", "CI (α = 5 %)"]
    for printed, ours in zip(table.cases, table.ours(tests), strict=True):
        for source, each in (("printed", printed), ("ours", ours)):
            p_control, p_test, delta, low, high = (f"{Decimal(x):.2f}" for x in astuple(each)[1:-1])
            mark = "*" if each.significant else " "
            who = str(each.id) if source == "printed" else ""
            yield [who, source, p_control, p_test, f"{delta}{mark}", f"[{low}, {high}]"]
