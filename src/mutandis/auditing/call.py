"""The call that starts an audit, with every option explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.auditing.audit import Audit
from mutandis.auditing.plan import draft_plan
from mutandis.auditing.progress_bar import check_progress, following
from mutandis.auditing.run import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mutandis.auditing.plan import MethodName, Preset
    from mutandis.auditing.progress import Report
    from mutandis.causal import Worldview
    from mutandis.data.attribute import AttributeDeclaration
    from mutandis.data.population import Missing
    from mutandis.data.protection import Protection
    from mutandis.decision import DecisionMaker
    from mutandis.evidence.comparison import Direction
    from mutandis.evidence.intervals import IntervalName
    from mutandis.evidence.multiplicity import Adjustment
    from mutandis.evidence.spaces import Combine, ComparedWith, GroupSize
    from mutandis.search.embedding import Scaling
    from mutandis.search.ties import Ties

__all__ = ["audit"]


def audit(
    decisions: Any,
    *,
    outcome: str,
    negative: object,
    protected: Protection | Sequence[Protection],
    attributes: Mapping[str, AttributeDeclaration],
    combine: Combine | None = None,
    worldview: Worldview | None = None,
    counterfactuals: Any = None,
    decision: DecisionMaker | Callable[[Any], Any] | str | None = None,
    methods: Sequence[MethodName] | None = None,
    ks: Iterable[int] = (15, 30, 50, 100),
    alpha: float = 0.05,
    tau: float = 0.0,
    direction: Direction = "negative",
    test_space: ComparedWith = "reference",
    interval: IntervalName | None = None,
    adjust: Adjustment = "benjamini-hochberg",
    ties: Ties = "fair",
    scaling: Scaling = "range",
    group_size: GroupSize = "k",
    max_distance: float | None = None,
    min_group: int | None = None,
    missing: Missing = "error",
    id: str | None = None,  # noqa: A002 - the public name of the option
    primary: tuple[MethodName, int] | None = None,
    draws: int | None = None,
    bootstrap: bool = False,
    seed: int | None = None,
    threads: int | None = None,
    progress: bool | Report | None = None,
    preset: Preset | None = None,
) -> Audit:
    """Audit a table of decisions by counterfactual situation testing.

    Parameters
    ----------
    decisions
        The table: pandas, polars, pyarrow, a DuckDB relation, a dict of columns. Never modified.
    outcome, negative
        The outcome column, and its unfavourable value.
    protected
        The protected attribute, its protected value(s) and the reference; or a list of several,
        with `combine`.
    attributes
        What people are compared on: name to "continuous", "nominal", or an `Attribute`.
    combine
        How several protections are combined: "multiple" intervenes on each attribute by itself
        and finds those who are found on every one; "intersectional" intervenes on all together.
        Complainants are protected on all of them (docs/multiple-and-intersectional.md).
    worldview
        The structural equations from which counterfactuals follow.
    counterfactuals
        A ready D^CF instead, rows aligned with the table.
    decision
        b(): a rule such as ``"salary + 5 * balance > 225000"`` (true: favourable), a function of
        the table, or a fitted model. Without it, only "st" and "cst_without" can be run, unless
        `counterfactuals` carries the outcome.
    methods
        Which of "st", "cst_without", "cst_with", "cf". Default: all that the inputs allow.
    ks
        Group sizes. One search serves them all.
    alpha, tau
        Significance level, and the deviation beyond which Δp is evidence.
    direction
        Look for complainants who are treated worse (Δp > τ, "negative"), or better (Δp < -τ,
        "positive").
    test_space
        Look for the test group among people of the reference status ("reference"), or among
        everybody who is not protected on all attributes ("complement").
    interval, adjust
        The interval for Δp with its test: "miettinen-nurminen" (the default), "agresti-caffo",
        "newcombe", "wald" (which the paper uses, and the preset), or "fisher" (a test without
        bounds, τ = 0 only); and the adjustment for many complainants: "benjamini-hochberg",
        "benjamini-yekutieli", "holm" or "none" (no q-values).
    ties
        People at the same distance share the last places ("fair"), or all belong ("all").
    scaling
        Numbers are divided by their range in D ("range"), or were scaled by the caller ("none").
    group_size
        Test groups take k rows ("k"), or k·n_t/n_c of n_t reference and n_c protected rows, so
        that both groups cover an equal part of their spaces, and count as k ("equal-mass").
    max_distance, min_group
        A caliper: people farther away are left out of the groups (default: nobody is). A
        complainant whose groups hold fewer than `min_group` people (default: 1), search centers
        not counted, gets the verdict "insufficient", and is neither tested nor a case.
    missing
        Refuse rows with missing values ("error"), or drop and count them ("drop").
    id
        A column of unique ids. Default: row positions.
    primary
        The (method, k) of the headline verdict, fixed before the run.
    draws, bootstrap
        Draw so many further counterfactual tables, where the facts leave the noise open (hidden
        causes, counts, categories) or, with `bootstrap`, with equations refitted on resampled
        rows. Findings then end with `draw_share`: the share of draws under which Δp > τ. Default:
        20 where a coupling is assumed or the equations are refitted, else none.
    seed, threads
        For anything random (default: 0); for the search (default: all cores). The number of
        threads changes no number of the audit.
    progress
        True shows, where standard error is a terminal, how many complainants are done and how much
        time is left; a function is called with both numbers, done and all. Default: nothing.
    preset
        "eaamo23" repeats the publication's run, with all its quirks.

    Examples
    --------
    >>> import mutandis as mm
    >>> decisions = mm.datasets.loan(n=2000, seed=1)
    >>> found = mm.audit(
    ...     decisions,
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    ...     worldview=mm.Worldview(
    ...         {
    ...             "AnnualSalary": mm.Linear("Gender"),
    ...             "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
    ...         }
    ...     ),
    ...     decision="AnnualSalary + 5 * AccountBalance > 225000",
    ...     ks=(15,),
    ... )
    >>> print(found.counts()[["method", "k", "complainants", "cases"]].to_string(index=False))
         method  k  complainants  cases
             st 15           687     14
    cst_without 15           687    188
       cst_with 15           687    188
             cf 15           687    159
    """
    check_progress(progress)
    plan = draft_plan(
        decisions,
        outcome=outcome,
        negative=negative,
        protected=protected,
        attributes=attributes,
        combine=combine,
        worldview=worldview,
        counterfactuals=counterfactuals,
        decision=decision,
        methods=methods,
        ks=ks,
        alpha=alpha,
        tau=tau,
        direction=direction,
        test_space=test_space,
        interval=interval,
        adjust=adjust,
        ties=ties,
        scaling=scaling,
        group_size=group_size,
        max_distance=max_distance,
        min_group=min_group,
        missing=missing,
        id=id,
        primary=primary,
        draws=draws,
        bootstrap=bootstrap,
        seed=seed,
        threads=threads,
        preset=preset,
    )
    with following(plan, progress=progress) as told:
        return Audit(run(plan, progress=told))
