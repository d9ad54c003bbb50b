"""`mutandis demo`: the paper's loan scenario, from a generated table to a folder of results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mutandis.cli.render import counts_table, invocation, show_headline, summary_of
from mutandis.cli.terminal import echo, make_console
from mutandis.datasets import loan
from mutandis.files.audit_file import read_plan
from mutandis.files.output_folder import check_output, output_folder
from mutandis.files.results_folder import REPORT
from mutandis.files.text_files import write_csv

if TYPE_CHECKING:
    from pathlib import Path

    from mutandis.auditing.audit import Audit

__all__ = ["run_demo"]

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


def run_demo(out: Path, *, n: int, share: float, seed: int, as_json: bool) -> None:
    """Generate a table, audit it as an audit file says, save the results and print one table."""
    check_output(out, replace=True, known=_is_demo)
    with output_folder(out, replace=True, known=_is_demo) as folder:
        decisions = loan(n=n, seed=seed, protected_share=share)
        columns = {name: decisions[name].to_numpy() for name in decisions.columns}
        write_csv(folder / _DECISIONS, columns)
        (folder / _CONFIG).write_text(_AUDIT, encoding="utf-8")
        found = read_plan(folder / _CONFIG).run()
        found.save(folder / _RESULTS)
    if as_json:
        echo(json.dumps(summary_of(found), indent=2))
    else:
        _show(found, out)


def _is_demo(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} <= {_DECISIONS, _CONFIG, _RESULTS}


def _show(found: Audit, out: Path) -> None:

    console = make_console()
    refused, women = found.situation.is_negative, found.situation.complainants
    men = found.plan.strata[0].test
    would_be = found.refused_counterfactually
    assert would_be is not None, "the audit file has a decision"  # noqa: S101 - for the reader
    console.print(
        f"Loan applications: {len(refused):,} decisions, {len(women):,} by women.\n"
        f"Refused: {refused[women].mean():.1%} of the women, {refused[men].mean():.1%} of the "
        f"men.\nHad the women been men, by this worldview: {would_be.mean():.1%}.\n",
        highlight=False,
    )
    show_headline(console, found)
    console.print(
        counts_table(
            found,
            "Complainants with evidence: Δp > 0\n"
            "(* significant: one-sided test, α = 5 %; adjusted: for their number)",
        )
    )
    console.print(
        "ST compares each woman with men like her; CST with men like the man she would\n"
        "have been, without (w/o) or with (w/) the two of them counted in; CF compares\n"
        "only those two. CST (matched), the headline of the report, compares the k women\n"
        "most like her with the men whom those women would have been. What remains after\n"
        "adjustment is prima facie evidence, given this worldview: it is not proof.\n",
        highlight=False,
    )
    findings = found.evaluate()
    found_first = findings.ids[findings.significant_adjusted & findings.is_negative]
    who = found_first[0] if len(found_first) else findings.ids[0]
    for line in (
        f"The table and the audit file:  {out / _DECISIONS}, {out / _CONFIG}",
        f"The report, for your browser:  {out / _RESULTS / REPORT}",
        f"Next, one person's case file:  {invocation()} case {out / _RESULTS} {who}",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
