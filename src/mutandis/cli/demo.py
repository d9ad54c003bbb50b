"""`mutandis demo`: the paper's loan scenario, from the generator to the findings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from mutandis.auditing.plan import audit
from mutandis.causal import Linear, Worldview
from mutandis.data.protection import Protection
from mutandis.datasets import loan
from mutandis.files.output_folder import check_output, output_folder
from mutandis.files.text_files import write_csv

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from mutandis.auditing.audit import Audit

__all__ = ["run_demo"]

WORLDVIEW = Worldview(
    {
        "AnnualSalary": Linear("Gender"),
        "AccountBalance": Linear("AnnualSalary", "Gender"),
    }
)


def run_demo(out: Path, *, n: int, share: float, seed: int, as_json: bool) -> None:
    """Generate, audit, write the files and print one table."""
    check_output(out, replace=True, known=_is_demo)
    decisions = loan(n=n, seed=seed, protected_share=share)
    found = audit(
        decisions,
        outcome="LoanApproval",
        negative=-1,
        protected=Protection("Gender", value=1, reference=0),
        attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
        worldview=WORLDVIEW,
        decision="AnnualSalary + 5 * AccountBalance > 225000",
        ks=(15, 30, 50, 100),
        seed=seed,
    )
    files = _write(out, decisions, found)
    if as_json:
        typer.echo(json.dumps(found.count_records(), indent=2))
    else:
        _show(decisions, found, files)


_FILES = {
    "decisions.csv": "D, the decisions",
    "counterfactuals.csv": "D^CF, the same people under do(Gender := 0)",
    "findings.csv": "one row per complainant, method and k",
    "counts.csv": "cases per method and k",
    "provenance.json": "settings, versions and a hash of the data",
}


def _is_demo(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} <= set(_FILES)


def _write(out: Path, decisions: pd.DataFrame, found: Audit) -> dict[Path, str]:
    tables = (decisions, found.counterfactuals(), _all_findings(found), found.counts())
    with output_folder(out, replace=True, known=_is_demo) as folder:
        for name, table in zip(_FILES, tables, strict=False):
            columns = {column: table[column].to_numpy() for column in table.columns}
            write_csv(folder / name, columns)
        text = found.provenance.to_json() + "\n"
        (folder / "provenance.json").write_text(text, encoding="utf-8")
    return {out / name: what for name, what in _FILES.items()}


def _all_findings(found: Audit) -> Any:
    import pandas as pd

    parts = [
        found.findings(method, k=k).assign(method=method, k=k)
        for method in found.methods
        for k in found.ks
    ]
    table = pd.concat(parts, ignore_index=True)
    first = ["method", "k"]
    return table[[*first, *(name for name in table.columns if name not in first)]]


def _show(decisions: pd.DataFrame, found: Audit, files: dict[Path, str]) -> None:
    from rich.console import Console

    from mutandis.cli.render import counts_table

    console = Console()
    female = decisions["Gender"].to_numpy() == 1
    refused = decisions["LoanApproval"].to_numpy() == -1
    would_be = found.situation.is_negative_cf
    would_be = refused if would_be is None else would_be
    console.print(
        f"Loan applications: {len(decisions):,} decisions, {int(female.sum()):,} by women.\n"
        f"Refused: {refused[female].mean():.1%} of the women, {refused[~female].mean():.1%} of "
        f"the men.\nHad the women been men, by this worldview: {would_be[female].mean():.1%}.\n",
        highlight=False,
    )
    console.print(
        counts_table(
            found,
            "Potential individual discrimination: complainants with Δp > 0\n"
            "(* significant: one-sided test, α = 5 %)",
        )
    )
    console.print(
        "ST compares each woman with men like her; CST with men like the man she would\n"
        "have been, without (w/o) or with (w/) the two of them counted in; CF compares\n"
        "only those two. A case is prima facie evidence, given this worldview: it is not\n"
        "proof.\n",
        highlight=False,
    )
    width = max(len(str(path)) for path in files)
    for path, what in files.items():
        console.print(f"  {path!s:<{width}}  {what}", highlight=False, soft_wrap=True)
