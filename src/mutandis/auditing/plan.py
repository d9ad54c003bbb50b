"""The plan of an audit: every setting checked, and the table read, before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from inspect import signature
from itertools import combinations
from os import PathLike
from typing import TYPE_CHECKING, Any

from mutandis.auditing.counterfactual_table import CounterfactualTable
from mutandis.auditing.settle import (
    apart_from,
    check_missing,
    check_sources,
    choose_methods,
    draw_spaces,
    read_maker,
    read_protections,
    settle_doubt,
    settle_evidence,
    settle_primary,
    settle_robustness,
)
from mutandis.config.schema import (
    Evidence,
    Settings,
    Similarity,
    Uncertainty,
    settle_interval,
)
from mutandis.data.attribute import MISSING, Attribute, AttributeKind, read_attributes
from mutandis.data.columns import Numbers
from mutandis.data.labels import PLAIN, Labels
from mutandis.data.population import Population
from mutandis.data.protection import Stratum, check_group_sizes
from mutandis.decision.maker import required_columns
from mutandis.engine.tally import METHODS, Method
from mutandis.errors import PlanError, printable
from mutandis.frames import EncodedTable, open_frame
from mutandis.geometry.distances import check_distance, distance_named
from mutandis.outcomes import read_declaration
from mutandis.outcomes.outcome import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from distributed import Client

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.check import PlanCheck
    from mutandis.auditing.run import Report
    from mutandis.config.schema import MethodName
    from mutandis.data.attribute import AttributeDeclaration
    from mutandis.data.population import Missing
    from mutandis.data.protection import Combine, Protection
    from mutandis.decision.maker import DecisionMaker
    from mutandis.outcomes.outcome import Declaration, Outcome, Words
    from mutandis.scm import Diagnosis, Worldview
    from mutandis.workers import Workers

__all__ = ["Origin", "Plan", "audit", "audit_intersections", "plan"]

# with more, there are too many combinations to reconcile by eye (and most have no rows)
_MOST_COMBINED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a plan was read from."""

    # the audit file: its text, its name, and the folder that its paths are relative to
    text: str
    name: str
    folder: Path
    # where the table is and the hash that it had before it was read; no secret is in it
    source: Mapping[str, Any]
    # the hashes of the further files that were read, such as a model, by relative path
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan:
    """An audit that can be run: everything named exists, nothing contradicts itself.

    Parameters
    ----------
    population, outcome
        D and its recorded outcomes.
    protections, combine
        Who complains, and how several protections are combined: an intervention on each by itself
        ("multiple") or on all together ("intersectional").
    strata
        Among whom each complainant is compared.
    attributes
        What people are compared on.
    worldview, counterfactuals
        Where counterfactuals come from: equations, or a ready table (at most one of the two).
    decision
        b(), if it can be asked.
    methods
        What is to be run.
    settings
        All other choices.
    id
        The id column; None where ids are row positions.
    origin
        The audit file that the plan was read from, if it was.
    labels
        What columns, values and outcomes are called in documents: see `with_labels`.

    Examples
    --------
    >>> import mutandis as mm
    >>> plan = mm.plan(
    ...     mm.datasets.loan(n=400, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous"},
    ...     ks=(10,),
    ... )
    >>> plan
    Plan of an audit of 399 decisions on the status 'Gender'; methods st; k = 10
    >>> plan.run().counts()["cases"].tolist()
    [23]
    """

    population: Population
    outcome: Outcome
    protections: tuple[Protection, ...]
    combine: Combine | None
    strata: tuple[Stratum, ...]
    attributes: tuple[Attribute, ...]
    worldview: Worldview | None
    counterfactuals: CounterfactualTable | None
    decision: DecisionMaker | None
    methods: tuple[Method, ...]
    settings: Settings
    id: str | None = None
    origin: Origin | None = None
    labels: Labels = PLAIN

    @property
    def do(self) -> dict[str, Any]:
        """The intervention: every protected attribute takes its reference value."""
        return {each.attribute: each.reference for each in self.protections}

    @property
    def compared_missing(self) -> dict[str, int]:
        """How many missing values are compared, by attribute; those without any are left out."""
        found = {}
        for each in (attribute for attribute in self.attributes if attribute.compare_missing):
            column = self.population.categories(each.name)
            code = column.code_of(MISSING)
            if code is not None:
                found[each.name] = int(column.counts()[code])
        return found

    @property
    def words(self) -> Words:
        """How values, averages and differences of its outcome are written."""
        return self.outcome.kind.words(self.outcome.column, self.labels)

    @property
    def rule(self) -> Rule:
        """What counts as evidence, and how it is tested."""
        settings = self.settings
        return Rule(
            kind=self.outcome.kind,
            measure=settings.measure,
            interval=settings.interval,
            tau=Fraction(str(settings.tau)),
            alpha=settings.alpha,
            direction=settings.evidence.direction,
        )

    @property
    def status(self) -> str:
        """The protected attributes, in quotes; together they are one status."""
        return " × ".join(repr(each.attribute) for each in self.protections)

    @property
    def status_label(self) -> str:
        """What the protected attributes are called in documents, in quotes."""
        return " × ".join(self.labels.quoted(each.attribute) for each in self.protections)

    def run(
        self,
        *,
        threads: int | None = None,
        progress: bool | Report | None = None,
        cluster: str | Client | Workers | None = None,
        memory: str | None = None,
        scratch: str | PathLike[str] | None = None,
    ) -> Audit:
        """Run the audit.

        None of the parameters changes a number of the audit.

        Parameters
        ----------
        threads
            Threads of the search (default: all cores).
        progress
            True shows, where standard error is a terminal, the complainants done and the time
            left; a function is called with two numbers, done and all. Default: nothing.
        cluster
            Who computes: `"local:4"` for four processes on this machine, `"tcp://host:8786"` for a
            Dask scheduler, or a Dask client (docs/how-to/large-tables.md). Processes that are
            started here end with the audit. Default: this process.
        memory
            About how much memory each process may use, such as `"4GB"`. Default: what there is.
        scratch
            Folder for the tasks of a run with `cluster` or `memory`; every worker has to see it. A
            later run that names the same folder goes on from what is there. It holds personal
            data, and is kept. Default: a temporary folder.
        """
        from mutandis.auditing.run import run_plan

        return run_plan(
            self,
            threads=threads,
            progress=progress,
            cluster=cluster,
            memory=memory,
            scratch=scratch,
        )

    def with_labels(self, labels: Labels) -> Plan:
        """Return the same plan with words for its columns, values and outcomes.

        They change no number and no finding: sentences, tables and pictures use them.

        Parameters
        ----------
        labels
            The words; columns and values must be those of the audit.
        """
        if not isinstance(labels, Labels):
            raise PlanError(
                f"Labels are {type(labels).__name__}, not Labels. Write Labels(columns={{…}})."
            )
        labels.check(self.population.columns, [each.attribute for each in self.protections])
        return replace(self, labels=labels)

    def check(self) -> PlanCheck:
        """Do everything short of the search: facts, a trial of b(), a check of the worldview."""
        from mutandis.auditing.check import check_plan

        return check_plan(self)

    def check_worldview(self) -> Diagnosis | None:
        """Ask what the table says about the worldview; None without one."""
        if self.worldview is None:
            return None
        first = self.protections[0].attribute
        return self.worldview.check(self.population, protected=first, do=self.do)

    def restricted_to(self, protections: Sequence[Protection], combine: Combine | None) -> Plan:
        """Plan the same audit about some of the protections, combined in another way."""
        similarity = self.settings.similarity
        spaces = draw_spaces(
            protections, self.population, combine=combine, test_space=similarity.test_space
        )
        for strata in spaces:
            check_group_sizes(strata, self.settings.ks)
        return replace(
            self,
            protections=tuple(protections),
            combine=combine,
            strata=spaces[0],
            attributes=self.attributes
            if combine == "multiple"
            else apart_from(self.attributes, protections),
        )

    def by_ground(self) -> tuple[Plan, ...]:
        """Return the plan of each ground: of multiple discrimination, one for each attribute."""
        if self.combine != "multiple":
            return (self,)
        spaces = draw_spaces(
            self.protections,
            self.population,
            combine="multiple",
            test_space=self.settings.similarity.test_space,
        )
        return tuple(
            replace(self.restricted_to([each], None), strata=strata)
            for each, strata in zip(self.protections, spaces, strict=True)
        )

    def choose(self, method: str | None, k: int | None) -> tuple[Method, int]:
        """Take the method and k that are asked for, where they are run; default: the primary."""
        primary_method, primary_k = self.settings.primary
        name, size = method or primary_method, primary_k if k is None else k
        names = [each.name for each in self.methods]
        if name not in names:
            known = "not run here" if name in METHODS else "unknown"
            raise PlanError(f"Method {name!r} is {known}. This audit ran {', '.join(names)}.")
        if size not in self.settings.ks:
            raise PlanError(f"k={size} was not run. This audit ran k = {list(self.settings.ks)}.")
        return METHODS[name], size

    def __repr__(self) -> str:
        """Summarise in one line."""
        return printable(
            f"Plan of an audit of {len(self.population):,} decisions on the status {self.status}; "
            f"methods {', '.join(method.name for method in self.methods)}; "
            f"k = {', '.join(map(str, self.settings.ks))}"
        )


def plan(
    decisions: Any,
    *,
    outcome: str | Declaration,
    negative: object = None,
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
    similarity: Similarity = Similarity(),
    evidence: Evidence = Evidence(),
    uncertainty: Uncertainty = Uncertainty(),
    seed: int | None = None,
    cluster_by: str | None = None,
    missing: Missing = "error",
    id: str | None = None,  # noqa: A002 - the public name of the option
) -> Plan:
    """Plan an audit: read the table and check every setting, without computing anything.

    Parameters
    ----------
    decisions
        The table: pandas, polars, pyarrow, a DuckDB relation, a dict of columns, or the path of a
        file ("decisions.csv", "x.parquet"). Never modified.
    outcome, negative
        The outcome column, and its unfavourable value; of several classes, the list of the
        unfavourable ones. An outcome that is a number is ``Score("rate", worse="higher")``, and one
        with an order is ``Ordered("answer", best_to_worst=["yes", "later", "no"])``, without
        `negative` (docs/outcomes.md).
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
        Which of "st", "cst_without", "cst_with", "cf", "cst_matched". Default: all that the inputs
        allow.
    ks
        Group sizes. One search serves them all.
    alpha, tau
        Significance level, and the deviation beyond which Δp is evidence; of a score, in its units.
    similarity
        Who is compared with whom: scaling, ties, group sizes, caliper.
    evidence
        What counts as evidence: interval, adjustment, direction, the primary verdict.
    uncertainty
        What is doubted: draws of open counterfactuals, refitted equations, the
        worldview.
    seed
        For everything random. Default: 0, recorded with the result.
    cluster_by
        A column that says which rows are not independent, such as applications to one employer.
    missing
        Refuse rows with missing values ("error"), or drop and count them ("drop").
    id
        A column of unique ids. Default: row positions.

    Examples
    --------
    >>> import mutandis as mm
    >>> plan = mm.plan(
    ...     mm.datasets.loan(n=2000, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    ...     ks=(15,),
    ... )
    >>> plan
    Plan of an audit of 1,998 decisions on the status 'Gender'; methods st; k = 15
    >>> plan.run().counts()["cases"].tolist()
    [14]
    """
    declared = read_declaration(outcome, negative)
    outcome = declared.column
    settings = settle_interval(
        Settings(
            methods=methods,
            ks=ks,  # type: ignore[arg-type]  # read into a tuple
            alpha=alpha,
            tau=tau,
            similarity=similarity,
            evidence=settle_evidence(evidence, declared),
            uncertainty=uncertainty,
            seed=seed,
            cluster_by=cluster_by,
        )
    )
    compared = read_attributes(attributes)
    maker = None if decision is None else read_maker(decision, declared)
    needed = required_columns(maker) if maker else ()
    _check_distance(similarity.distance, compared, declared)
    check_missing(compared, worldview, needed)
    protections = read_protections(
        protected, combine, attributes=compared, outcome=outcome, worldview=worldview
    )
    check_sources(worldview, counterfactuals, combine)
    if outcome in needed:
        raise PlanError(
            f"The decision reads the outcome {outcome!r}, which is on record before the decision "
            "is made again: no counterfactual could change it. Decide from the other columns."
        )
    statuses = [each.attribute for each in protections]
    others = [*(worldview.names if worldview else ()), *needed]
    clusters = [] if cluster_by is None or cluster_by in (*others, *attributes) else [cluster_by]
    population, rows_given = _read_population(
        decisions,
        # b() may read any column if it does not say which
        None
        if maker and not needed
        else [*([id] if id else []), outcome, *statuses, *attributes, *others, *clusters],
        read_columns=others,
        attributes=[
            *compared,
            _continuous(outcome) if declared.numeric else _nominal(outcome),
            *map(_nominal, [*statuses, *clusters]),
        ],
        id=id,
        missing=missing,
    )
    recorded = declared.read(
        Numbers(population.numbers(outcome))
        if declared.numeric
        else population.categories(outcome),
        finest=maker is not None or _has_outcome(counterfactuals, outcome),
    )
    spaces = draw_spaces(protections, population, combine=combine, test_space=similarity.test_space)
    for strata in spaces:
        check_group_sizes(strata, settings.ks)
    ready = counterfactuals
    if ready is not None and not isinstance(ready, CounterfactualTable):
        ready = CounterfactualTable.read(
            ready,
            population=population,
            rows_given=rows_given,
            attributes=compared,
            outcome=recorded,
            protections=protections,
            id=id,
        )
    drafted = Plan(
        population=population,
        outcome=recorded,
        protections=protections,
        combine=combine,
        strata=spaces[0],
        attributes=compared,
        worldview=worldview,
        counterfactuals=ready,
        decision=maker,
        methods=choose_methods(
            settings.methods,
            counterfactual=worldview is not None or ready is not None,
            decided=maker is not None or (ready is not None and ready.is_negative is not None),
        ),
        settings=settings,
        id=id,
    )
    return _settle(drafted, spaces)


def _settle(plan: Plan, spaces: Sequence[Sequence[Stratum]]) -> Plan:
    """Settle what was left open: the headline, draws, refits, tipping points, the seed."""
    settings, methods, rows = plan.settings, plan.methods, len(plan.population)
    primary = settle_primary(settings.evidence, methods, settings.ks, spaces)
    tested = any(each.matched for each in methods)
    doubt = settle_doubt(settings.uncertainty, plan.worldview, rows=rows, tested=tested)
    doubt = settle_robustness(doubt, plan.worldview, METHODS[primary[0]], rows=rows)
    settled = replace(
        settings,
        methods=tuple(method.name for method in methods),
        evidence=replace(settings.evidence, primary=primary),
        uncertainty=doubt,
        seed=0 if settings.seed is None and doubt.worlds else settings.seed,
    )
    return replace(plan, settings=settled)


def audit(*arguments: Any, cluster: str | Client | None = None, **settings: Any) -> Audit:
    """Audit a table of decisions by counterfactual situation testing.

    ``mm.audit(…)`` is ``mm.plan(…).run()``.

    Parameters
    ----------
    *arguments, **settings
        What `plan` takes: the table, its roles, where counterfactuals come from, who decided, and
        all settings.
    cluster
        Who computes, as in `Plan.run`: `"local:4"`, `"tcp://host:8786"` or a Dask client. It
        changes no number. Default: this process.

    Examples
    --------
    >>> import mutandis as mm
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=2000, seed=1),
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
    cst_matched 15           687    222
    """
    return plan(*arguments, **settings).run(cluster=cluster)


# editors complete the settings
_taken = signature(plan)
audit.__signature__ = _taken.replace(  # type: ignore[attr-defined]
    parameters=[*_taken.parameters.values(), signature(audit).parameters["cluster"]]
)


def audit_intersections(plan: Plan) -> dict[str, Audit]:
    """Audit each of two or three protected attributes, and every way to combine them.

    The audits are returned by name: a for one attribute, a + b for multiple discrimination on both,
    a × b for the intersection.

    Parameters
    ----------
    plan
        What `mutandis.plan` returns for a list of protections; whether it combines them as
        "multiple" or "intersectional" makes no difference here. An attribute that is intervened
        on takes no part in the distance, wherever it is listed.

    Examples
    --------
    Two attributes, each of which raises the refusals a little. Who is found by the intersection
    and by neither attribute alone?

    >>> import numpy as np
    >>> import mutandis as mm
    >>> rng = np.random.default_rng(0)
    >>> black, woman = rng.integers(0, 2, size=(2, 400))
    >>> score = rng.integers(0, 21, size=400) - 2 * black - 2 * woman
    >>> plan = mm.plan(
    ...     {"black": black, "woman": woman, "score": score, "granted": score >= 10},
    ...     outcome="granted",
    ...     negative=False,
    ...     protected=[
    ...         mm.Protection("black", value=1, reference=0),
    ...         mm.Protection("woman", value=1, reference=0),
    ...     ],
    ...     combine="multiple",
    ...     attributes={"score": "continuous"},
    ...     worldview=mm.Worldview({"score": mm.Linear("black", "woman")}),
    ...     decision="score >= 10",
    ...     ks=(15,),
    ...     evidence=mm.Evidence(primary=("cst_without", 15)),
    ... )
    >>> audits = mm.audit_intersections(plan)
    >>> tables = {name: each.findings() for name, each in audits.items()}
    >>> cases = {name: set(rows["id"][rows["delta_p"] > 0]) for name, rows in tables.items()}
    >>> {name: len(ids) for name, ids in cases.items()}
    {'black': 32, 'woman': 38, 'black + woman': 14, 'black × woman': 46}
    >>> len(cases["black × woman"] - cases["black"] - cases["woman"])
    28
    """
    if not 2 <= len(plan.protections) <= _MOST_COMBINED:
        raise PlanError(
            f"Intersections take two or three protections, not {len(plan.protections)}. "
            "Make the plan with a list of them, and combine='multiple'."
        )
    if plan.counterfactuals is not None:
        raise PlanError(
            "The plan was made with counterfactuals=, one table for one intervention. "
            "Intersections have several interventions: make it with worldview=."
        )
    return {name: each.run() for name, each in dict(_combined(plan)).items()}


def _combined(plan: Plan) -> Iterator[tuple[str, Plan]]:
    for each in plan.protections:
        yield each.attribute, plan.restricted_to([each], None)
    for size in range(2, len(plan.protections) + 1):
        for several in combinations(plan.protections, size):
            names = [each.attribute for each in several]
            yield " + ".join(names), plan.restricted_to(several, "multiple")
            yield " × ".join(names), plan.restricted_to(several, "intersectional")


def _nominal(name: str) -> Attribute:
    return Attribute(name=name, kind=AttributeKind.NOMINAL)


def _continuous(name: str) -> Attribute:
    return Attribute(name=name, kind=AttributeKind.CONTINUOUS)


def _has_outcome(counterfactuals: Any, outcome: str) -> bool:
    """Return whether a table of counterfactuals has outcomes."""
    if isinstance(counterfactuals, CounterfactualTable):
        return counterfactuals.is_negative is not None
    return counterfactuals is not None and outcome in open_frame(counterfactuals).columns


def _check_distance(name: str, attributes: Sequence[Attribute], declared: Declaration) -> None:
    check_distance(name, attributes)
    if declared.values != 2 and distance_named(name).needs_refusals:
        raise PlanError(
            f"distance={name!r} learns from how often people are refused, and "
            f"{declared.column!r} has no unfavourable value. Take another distance, such as "
            "'gower'."
        )


def _read_population(
    decisions: Any, needed: Sequence[str] | None, *, read_columns: Sequence[str], **reading: Any
) -> tuple[Population, int]:
    """Read the needed columns (None: all) of a frame, a file or another source of tables.

    The second result is the number of rows before any were dropped.
    """
    if isinstance(decisions, Population):
        return decisions, len(decisions)
    if isinstance(decisions, str | PathLike) or hasattr(decisions, "sha256"):
        from mutandis.store.tables import read_source

        names = None if needed is None else list(dict.fromkeys(needed))
        decisions = read_source(decisions, columns=names)
    table = decisions if isinstance(decisions, EncodedTable) else open_frame(decisions)
    return Population.from_frame(table, columns=read_columns, **reading), len(table)
