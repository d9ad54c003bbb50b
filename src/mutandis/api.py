"""The public face: plan, audit, and what an audit can be asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mutandis.auditing import draft_plan, run, run_competing
from mutandis.errors import PlanError
from mutandis.situation.methods import METHODS
from mutandis.tables import columns_of, to_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mutandis.auditing import AuditResult, CompetingWorldviews, Plan, Provenance
    from mutandis.auditing.plan import MethodName, Preset
    from mutandis.causal import Worldview
    from mutandis.decision import DecisionMaker
    from mutandis.domain.attribute import AttributeDeclaration
    from mutandis.domain.population import Missing
    from mutandis.domain.protection import Protection
    from mutandis.inference import Adjustment, IntervalName
    from mutandis.results.case import Case
    from mutandis.results.findings import Findings
    from mutandis.similarity.embedding import Scaling
    from mutandis.similarity.ties import Ties

__all__ = ["Audit", "Flips", "WorldviewComparison", "audit", "compare_worldviews", "plan"]

plan = draft_plan
"""Build and check a plan without running it: takes what `audit` takes."""


def audit(
    decisions: Any,
    *,
    outcome: str,
    negative: object,
    protected: Protection,
    attributes: Mapping[str, AttributeDeclaration],
    worldview: Worldview | None = None,
    counterfactuals: Any = None,
    decision: DecisionMaker | Callable[[Any], Any] | str | None = None,
    methods: Sequence[MethodName] | None = None,
    ks: Iterable[int] = (15, 30, 50, 100),
    alpha: float = 0.05,
    tau: float = 0.0,
    interval: IntervalName = "wald",
    adjust: Adjustment = "benjamini-hochberg",
    ties: Ties = "fair",
    scaling: Scaling = "range",
    missing: Missing = "error",
    id: str | None = None,  # noqa: A002 - the public name of the option
    primary: tuple[MethodName, int] | None = None,
    draws: int | None = None,
    bootstrap: bool = False,
    seed: int | None = None,
    threads: int | None = None,
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
        The protected attribute, its protected value(s) and the reference.
    attributes
        What people are compared on: name to "continuous", "nominal", or an `Attribute`.
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
    interval, adjust
        The interval for Δp, and the adjustment for many complainants ("none": no q-values).
    ties
        People at the same distance share the last places ("fair"), or all belong ("all").
    scaling
        Numbers are divided by their range in D ("range"), or were scaled by the caller ("none").
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
        For anything random (default: 0); for the search (default: all cores).
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
    return Audit(
        run(
            draft_plan(
                decisions,
                outcome=outcome,
                negative=negative,
                protected=protected,
                attributes=attributes,
                worldview=worldview,
                counterfactuals=counterfactuals,
                decision=decision,
                methods=methods,
                ks=ks,
                alpha=alpha,
                tau=tau,
                interval=interval,
                adjust=adjust,
                ties=ties,
                scaling=scaling,
                missing=missing,
                id=id,
                primary=primary,
                draws=draws,
                bootstrap=bootstrap,
                seed=seed,
                threads=threads,
                preset=preset,
            )
        )
    )


def compare_worldviews(
    plan: Plan,
    worldviews: Mapping[str, Worldview],
    *,
    method: MethodName | None = None,
    k: int | None = None,
) -> WorldviewComparison:
    """Run one audit under several worldviews, and see whom they agree on.

    Parameters
    ----------
    plan
        What `mutandis.plan` gives; its own worldview is one among those compared only if it is
        listed too.
    worldviews
        The worldviews by name.
    method, k
        Where verdicts are compared; default: the plan's primary ones.

    Examples
    --------
    >>> import mutandis as mm
    >>> bank = mm.Worldview({"AnnualSalary": mm.Linear("Gender")})
    >>> regulator = mm.Worldview(
    ...     {
    ...         "AnnualSalary": mm.Linear("Gender"),
    ...         "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
    ...     }
    ... )
    >>> plan = mm.plan(
    ...     mm.datasets.loan(n=1000, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    ...     worldview=bank,
    ...     ks=(15,),
    ... )
    >>> compared = mm.compare_worldviews(plan, {"bank": bank, "regulator": regulator})
    >>> print(compared.summary()[["worldview", "cases", "found_by_all"]].to_string(index=False))
    worldview  cases  found_by_all
         bank     83            83
    regulator    108            83
    """
    return WorldviewComparison(run_competing(plan, worldviews, method=method, k=k))


@dataclass(frozen=True, slots=True)
class WorldviewComparison:
    """One audit under several worldviews."""

    result: CompetingWorldviews

    def table(self) -> Any:
        """Give one row per complainant: her verdict under each worldview, and who finds her."""
        return to_frame(self.result.columns(), self._like)

    def summary(self) -> Any:
        """Give one row per worldview: its cases, and how many of them the others find too."""
        return to_frame(columns_of(self.result.summary()), self._like)

    def audit(self, name: str) -> Audit:
        """Give the whole audit under one of the worldviews."""
        if name not in self.result.results:
            known = ", ".join(map(repr, self.result.results))
            raise PlanError(f"No worldview is called {name!r}. There are {known}.")
        return Audit(self.result.results[name])

    def plot(self) -> str:
        """Draw, as SVG, how many cases each worldview finds and how many of them are shared."""
        from mutandis.plots import plot_worldviews

        return plot_worldviews(
            self.result.summary(), method=METHODS[self.result.method].title, k=self.result.k
        )

    @property
    def _like(self) -> Any:
        return next(iter(self.result.results.values())).plan.population.source


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Complainants whose outcome changes under do(): what counterfactual fairness looks at."""

    negative_to_positive: int
    positive_to_negative: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Audit:
    """A finished audit.

    Frames come back in the caller's own frame type (pandas, where the table was lazy).

    Examples
    --------
    Two women and their counterfactuals, each next to two men:

    >>> import mutandis as mm
    >>> found = mm.audit(
    ...     {
    ...         "woman": [1, 1, 0, 0, 0, 0],
    ...         "salary": [10.0, 11.0, 10.0, 11.0, 15.0, 16.0],
    ...         "granted": ["no", "no", "no", "no", "yes", "yes"],
    ...     },
    ...     outcome="granted",
    ...     negative="no",
    ...     protected=mm.Protection("woman", value=1, reference=0),
    ...     attributes={"salary": "continuous"},
    ...     counterfactuals={"salary": [15.0, 16.0, 10.0, 11.0, 15.0, 16.0]},
    ...     decision="salary > 12",
    ...     ks=(1,),
    ... )
    >>> found.counts()["cases"].tolist()
    [0, 2, 2, 2]
    >>> found.findings("cst_with", k=1)[["id", "p_control", "p_test", "delta_p"]]
       id  p_control  p_test  delta_p
    0   0        1.0     0.0      1.0
    1   1        1.0     0.0      1.0
    >>> found.case(0).groups("cst_without", k=1).test.ids.tolist()
    [4]
    """

    result: AuditResult
    _cache: dict[tuple[str, int], Findings] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that were run."""
        return tuple(method.name for method in self.result.plan.methods)

    @property
    def ks(self) -> tuple[int, ...]:
        """The group sizes that were run."""
        return self.result.plan.settings.ks

    @property
    def provenance(self) -> Provenance:
        """What is needed to repeat this audit."""
        return self.result.provenance

    @property
    def disagreement(self) -> float | None:
        """The share of rows on which b(X) differs from the recorded outcome."""
        return self.result.disagreement

    def counts(self) -> Any:
        """Count cases for every method and k: a table with one row for each."""
        return to_frame(columns_of(self.count_records()), self._like)

    def count_records(self) -> list[dict[str, Any]]:
        """Give the counts as plain records, one per method and k."""
        return [self._findings(method, k).counts() for method in self.methods for k in self.ks]

    def findings(self, method: str | None = None, *, k: int | None = None) -> Any:
        """Give one row per complainant under one method and k; default: the primary ones."""
        primary_method, primary_k = self.result.plan.settings.primary
        found = self._findings(method or primary_method, primary_k if k is None else k)
        return to_frame(found.columns(), self._like)

    def case(self, id: Any) -> Case:  # noqa: A002 - the public name
        """Give everything about one complainant: her results under all methods and k."""
        return self.result.case(
            id, {(m, k): self._findings(m, k) for m in self.methods for k in self.ks}
        )

    def counterfactuals(self) -> Any:
        """Give D^CF: the table as it would have been, or None if the audit has none.

        Its outcome column holds the counterfactual outcomes; it has none if nobody decided them.
        The table can be handed to another audit as `counterfactuals=`.
        """
        return self.result.counterfactual_table()

    def flips(self) -> Flips | None:
        """Count outcomes that change under do(), in either direction; None if nobody decided."""
        situation = self.result.situation
        if situation.is_negative_cf is None:
            return None
        rows = situation.complainants
        before, after = situation.is_negative[rows], situation.is_negative_cf[rows]
        return Flips(
            negative_to_positive=int((before & ~after).sum()),
            positive_to_negative=int((~before & after).sum()),
        )

    def __repr__(self) -> str:
        """Summarise in two lines."""
        method, k = self.result.plan.settings.primary
        row = self._findings(method, k).counts()
        return (
            f"Audit of {len(self.result.plan.population):,} decisions, "
            f"{row['complainants']:,} complainants; methods {', '.join(self.methods)}; "
            f"k = {', '.join(map(str, self.ks))}\n"
            f"{method} at k={k}: evidence for {row['cases']:,} ({row['share']:.1%}), "
            f"significant for {row['significant']:,}{self._assumed()}"
        )

    def _assumed(self) -> str:
        couplings = self.result.provenance.computed["couplings"]
        assumed = ", ".join(f"{coupling} for {name}" for name, coupling in couplings.items())
        return f"\nassumed, beyond what data can test: {assumed}" if assumed else ""

    @property
    def _like(self) -> Any:
        return self.result.plan.population.source

    def _findings(self, method: str, k: int) -> Findings:
        if method not in self.methods:
            known = "not run here" if method in METHODS else "unknown"
            raise PlanError(f"Method {method!r} is {known}. This audit ran {self.methods}.")
        if k not in self.ks:
            raise PlanError(f"k={k} was not run. This audit ran k = {list(self.ks)}.")
        if (method, k) not in self._cache:
            self._cache[method, k] = self.result.findings(METHODS[method], k)
        return self._cache[method, k]
