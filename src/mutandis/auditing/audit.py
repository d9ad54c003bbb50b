"""A finished audit, and what it can be asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from mutandis.auditing.case import Case
from mutandis.auditing.doubt import REFITS, refits_of
from mutandis.auditing.group_comparison import compare_groups
from mutandis.auditing.members import list_members
from mutandis.auditing.support import measure_balance, measure_support
from mutandis.config.schema import settle_interval
from mutandis.data.columns import Numbers, plain_value, plain_values
from mutandis.data.rows import number_equal
from mutandis.engine.methods import METHODS
from mutandis.engine.tally import Pair
from mutandis.errors import PlanError, UnknownIdError, printable
from mutandis.frames import columns_of, open_frame, to_frame
from mutandis.verdicts.findings import Digest, Findings
from mutandis.verdicts.multiplicity import adjust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from mutandis.auditing.hidden_cause import HiddenCause
    from mutandis.auditing.plan import Plan
    from mutandis.auditing.provenance import Provenance
    from mutandis.auditing.sham import ShamAudits
    from mutandis.auditing.support import Support
    from mutandis.auditing.tipping import Tipping
    from mutandis.auditing.worldviews import WorldviewVerdicts
    from mutandis.data.columns import Column
    from mutandis.data.labels import Labels
    from mutandis.data.population import Population
    from mutandis.decision.maker import RecordAgreement
    from mutandis.engine.engine import Engine
    from mutandis.engine.members import Members
    from mutandis.engine.methods import Method
    from mutandis.engine.study import Study, World
    from mutandis.engine.tally import Group, Tally
    from mutandis.outcomes.outcome import Comparison, Depth
    from mutandis.report.case_model import CaseDocument
    from mutandis.report.report import Report
    from mutandis.scm import Diagnosis, Worldview

__all__ = ["Audit", "Flips"]

# Findings follow from integer counts. They are kept once worked out, unless a large audit would
# fill the memory with them: a row of findings takes about 170 bytes.
_KEPT = 500_000
# up to so many complainants, the bounds of all take hardly longer than those of one
_FEW = 1_000
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Complainants whose outcome changes under do(): what counterfactual fairness looks at.

    Of scores and ordered outcomes: who would have had a better one, and who a worse one.
    """

    negative_to_positive: int
    positive_to_negative: int


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Audit:
    """A finished audit.

    Frames come back in the caller's own frame type (pandas, where the table was lazy or a file).

    Parameters
    ----------
    plan
        What was run.
    engine
        Who is compared with whom, and what counts them: for members of groups, and other worlds.
    world
        The counterfactual world, D^CF, with its decisions.
    tally
        What was counted: the groups of every method, as integers.
    clipped
        The number of counterfactual values that their bounds have moved, by attribute.
    provenance
        What is needed to repeat the audit.
    with_record
        How b(X) and the recorded outcomes go together, as counts (None: no b()).
    verdict_shares
        By method: the share of draws and refits under which the verdict on each complainant (row)
        is the same or stronger, at each k (column); see docs/explanation/verdicts.md.
    sham_audits
        Sham audits that documents show, if there are any: see `with_sham`.
    tippings
        Tipping points by method and k, as far as they were found: see `measure_tipping`.
    compared
        The headline's verdicts under other worldviews, as far as they were compared: see
        `measure_worldviews`.

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
    [0, 2, 2, 2, 0]
    >>> found.findings("cst_with", k=1)[["id", "p_control", "p_test", "delta_p"]]
       id  p_control  p_test  delta_p
    0   0        1.0     0.0      1.0
    1   1        1.0     0.0      1.0
    >>> found.case(0).groups("cst_without", k=1).test.ids.tolist()
    [4]
    """

    plan: Plan
    engine: Engine
    world: World
    tally: Tally
    clipped: Mapping[str, int]
    provenance: Provenance
    with_record: RecordAgreement | None = None
    verdict_shares: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    sham_audits: ShamAudits | None = None
    tippings: dict[tuple[str, int], Tipping] = field(default_factory=dict)
    compared: list[WorldviewVerdicts] = field(default_factory=list)
    _findings: dict[tuple[str, int], Findings] = field(default_factory=dict, init=False)
    _tested: dict[tuple[str, int], Findings] = field(default_factory=dict, init=False)
    _counts: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict, init=False)
    _digests: dict[tuple[str, int], Digest] = field(default_factory=dict, init=False)
    # q-values that occur, and which of them each complainant has
    _q_values: dict[tuple[str, int], tuple[NDArray[np.float64], NDArray[Any]]] = field(
        default_factory=dict, init=False
    )
    # what was asked for last, by its kind: of many complainants, each takes a while
    _last: dict[str, tuple[Any, Any]] = field(default_factory=dict, init=False)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that were run."""
        return tuple(method.name for method in self.plan.methods)

    @property
    def study(self) -> Study:
        """Who is compared with whom, on what, and how."""
        return self.engine.study

    @property
    def ks(self) -> tuple[int, ...]:
        """The group sizes that were run."""
        return self.plan.settings.ks

    @property
    def parts(self) -> tuple[Audit, ...]:
        """The audits with groups of their own: this one, or one per attribute ("multiple")."""
        return (self,)

    @property
    def by_ground(self) -> dict[str, Audit]:
        """The parts by protected attribute; one part alone has the empty name."""
        if len(self.parts) == 1:
            return {"": self.parts[0]}
        return {part.plan.protections[0].attribute: part for part in self.parts}

    @property
    def disagreement(self) -> float | None:
        """The share of rows on which b(X) differs from the recorded outcome (None: no b()).

        Of scores, the share of their variation on record that b(X) does not explain.
        """
        return None if self.with_record is None else self.with_record.disagreement

    @property
    def compares_worldviews(self) -> bool:
        """Whether verdicts are given under other worldviews too, now or when they were saved."""
        return bool(self.compared) or self.plan.settings.uncertainty.compares_worldviews

    def part(self, attribute: str) -> Audit:
        """Give the audit of one protected attribute, where several were audited one by one.

        Parameters
        ----------
        attribute
            The protected attribute.
        """
        for part in self.parts:
            if [each.attribute for each in part.plan.protections] == [attribute]:
                return part
        known = ", ".join(part.plan.status for part in self.parts)
        raise PlanError(f"This audit has no part {attribute!r}. It has {known}.")

    def counts(self) -> Any:
        """Count cases for every method and k: a table with one row for each."""
        return self._frame(columns_of(self.count_records()))

    def count_records(self) -> list[dict[str, Any]]:
        """Give the counts as plain records, one per method and k."""
        return [dict(self.count(method, k)) for method in self.methods for k in self.ks]

    def findings(self, method: str | None = None, *, k: int | None = None) -> Any:
        """Give one row per complainant under one method and k.

        Those of the headline have `tipping`, `grade` and `robustness`, unless the settings say that
        these are not measured, and `stays_under` and `breaks_under` where worldviews are compared.

        Parameters
        ----------
        method, k
            Default: the primary ones.
        """
        return self._frame(self._columns(self.evaluate(method, k)))

    def people(self, method: str | None = None, *, k: int | None = None) -> Any:
        """Give the findings with everyone's attributes, as they are and as they would have been.

        Counterfactual columns are there for the attributes that move. An attribute with the name
        of a finding has "attribute " in front.

        Parameters
        ----------
        method, k
            Default: the primary ones.

        Examples
        --------
        >>> import mutandis as mm
        >>> found = mm.audit(
        ...     mm.datasets.loan(n=400, seed=1),
        ...     outcome="LoanApproval",
        ...     negative=-1,
        ...     protected=mm.Protection("Gender", value=1, reference=0),
        ...     attributes={"AnnualSalary": "continuous"},
        ...     worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
        ...     ks=(10,),
        ... )
        >>> found.people().columns[-3:].tolist()
        ['Gender', 'AnnualSalary', 'AnnualSalary (counterfactual)']
        """
        return self._frame(self._people_columns(method, k))

    def export(
        self,
        path: str | PathLike[str],
        method: str | None = None,
        *,
        k: int | None = None,
        table: Literal["people", "counts"] = "people",
    ) -> None:
        """Write `people`, or `counts`, to a file: CSV, Parquet or Excel, as its name ends.

        Parameters
        ----------
        path
            Such as "people.csv", "people.parquet" or "people.xlsx" (needs openpyxl).
        method, k
            Of `people`; default: the primary ones. The counts have all methods and group sizes.
        table
            "people" or "counts".
        """
        from mutandis.store.files import write_people

        if table not in ("people", "counts"):
            raise PlanError(f"table={table!r} is unknown. Allowed: people, counts.")
        if table == "counts":
            if method is not None or k is not None:
                raise PlanError("The counts have all methods and group sizes: leave out both.")
            write_people(path, columns_of(self.count_records()), sheet=table)
        else:
            write_people(path, self._people_columns(method, k))

    def _people_columns(self, method: str | None, k: int | None) -> dict[str, Any]:
        columns = self._columns(self.evaluate(method, k))
        rows, other = self.study.people, self.world.point
        statuses = [each.attribute for each in self.plan.protections]
        attributes = [each.name for each in self.plan.attributes]

        def add(title: str, values: Any) -> None:
            columns[f"attribute {title}" if title in columns else title] = values

        for name in dict.fromkeys([*statuses, *attributes]):
            values = plain_values(self.plan.population.part(name, rows))
            add(name, values)
            if other is not None and name not in statuses:
                would_be = plain_values(other.part(name, rows))
                if not np.array_equal(values, would_be):
                    add(f"{name} (counterfactual)", would_be)
        return columns

    def _columns(self, found: Findings, place: int | None = None) -> dict[str, NDArray[Any]]:
        """Give the columns of all complainants or of one, graded where they are the headline's."""
        if (found.method, found.k) == self.plan.settings.primary:
            found = self.graded(found, place)
        return found.columns()

    def evaluate(self, method: str | None = None, k: int | None = None) -> Findings:
        """Give the findings under one method and k in their compact form, and keep them.

        Parameters
        ----------
        method, k
            The method and the group size; default: the primary ones.
        """
        chosen, size = self.plan.choose(method, k)
        key = (chosen.name, size)
        if key in self._findings:
            return self._findings[key]
        found = self.compute_findings(*key)
        if len(found) * len(self.methods) * len(self.ks) <= _KEPT:
            self._findings[key] = found
        return found

    def test_everyone(self, method: str | None = None, k: int | None = None) -> Findings:
        """Test all complainants, and give no bounds, which take long.

        The headline's findings are kept, and the last others.

        Parameters
        ----------
        method, k
            The method and the group size; default: the primary ones.
        """
        chosen, size = self.plan.choose(method, k)
        key = (chosen.name, size)
        if key in self._findings:
            return self._findings[key]
        found = self._tested.get(key)
        if found is None:
            # before the next ones are made, as they take much memory; the headline is needed again
            for other in self._tested.keys() - {self.plan.settings.primary}:
                del self._tested[other]
            found = self._tested[key] = self.compute_findings(*key, depth="significance")
            self._counts.setdefault(key, found.counts())
        return found

    def findings_of(self, only: NDArray[np.intp], method: str, k: int) -> Findings:
        """Give some complainants' findings: among many, bounds are computed for these alone.

        Parameters
        ----------
        only
            Their places among the complainants.
        method, k
            The method and the group size.
        """
        key = (method, k)
        if key in self._findings or len(self.study.people) <= _FEW:
            return self.evaluate(method, k).take(only)
        # q-values need the p-values of all complainants, and are all that is kept of them
        groups: Findings | Pair[Group]
        if key in self._q_values:
            groups = self.tally.at(METHODS[method], self.ks.index(k))
        else:
            if key not in self._tested:
                self._tested.clear()  # of one person, all methods are asked for, and once
            groups = self.test_everyone(method, k)
            which = number_equal(groups.q_value.view(np.int64))  # as bits, for what is missing
            values = np.empty(int(which.max(initial=-1)) + 1)
            values[which] = groups.q_value
            self._q_values[key] = values, which.astype(np.min_scalar_type(len(values)))
        values, which = self._q_values[key]
        groups = Pair(control=groups.control.take(only), test=groups.test.take(only))
        return self._put_together(method, k, groups, places=only, q_value=values[which[only]])

    def remember(self, what: str, key: Any, make: Callable[[], _T]) -> _T:
        """Give what was asked for last of its kind, or make it.

        Parameters
        ----------
        what
            The kind, of which one is kept.
        key
            What it depends on, beside the audit.
        make
            Makes it.
        """
        kept = self._last.get(what)
        if kept is None or kept[0] != key:
            # one assignment: pages about other people may be made at the same time
            kept = self._last[what] = (key, make())
        found: _T = kept[1]
        return found

    def each_findings(self) -> Iterator[Findings]:
        """Give the findings of every method and k, one after the other, with their robustness."""
        # mapped, not looped over: findings that are not kept are gone when the next are made
        return (
            self.graded(self._noted(self.evaluate(method, k)))
            for method in self.methods
            for k in self.ks
        )

    def digest(self, method: str, k: int) -> Digest:
        """Give what a report says about everyone under one method and k, found once.

        Everyone's differences are in it for the k of the headline.

        Parameters
        ----------
        method, k
            The method and the group size.
        """
        key = (method, k)
        if key not in self._digests:
            if key == self.plan.settings.primary or key in {*self._findings, *self._tested}:
                self._noted(self.test_everyone(method, k))
            else:
                self._note(key, self._digest(method, k))
        return self._digests[key]

    def _noted(self, found: Findings) -> Findings:
        """Keep the digest of findings; these themselves are kept if they are the headline's."""
        key, primary = (found.method, found.k), self.plan.settings.primary
        if key not in self._digests:
            self._note(key, found.digest(whole=found.k == primary[1]))
        if key == primary:
            self._tested[key] = found
        return found

    def _note(self, key: tuple[str, int], digest: Digest) -> None:
        self._digests[key] = digest
        self._counts.setdefault(key, dict(digest.counts))

    def graded(self, found: Findings, place: int | None = None) -> Findings:
        """Give findings with their robustness, where the settings ask for it.

        Parameters
        ----------
        found
            The findings of all complainants, or of one.
        place
            The place of the one among the complainants.
        """
        from mutandis.auditing.tipping import describe_all

        if not self.plan.settings.uncertainty.tipping:
            return found
        return replace(found, robustness=describe_all(self, found, place))

    def count(self, method: str, k: int) -> dict[str, Any]:
        """Count the cases under one method and one k: that takes neither bounds nor a table.

        Parameters
        ----------
        method, k
            The method and the group size.
        """
        key = (method, k)
        if key not in self._counts:
            # a report says more about everyone, which is noted while it is known
            self._note(key, self._digest(method, k))
        return self._counts[key]

    def support(self, method: str | None = None, *, k: int | None = None) -> Any:
        """Tell, for each complainant, how far away her groups are and what is usual there.

        Parameters
        ----------
        method, k
            Default: the primary ones.
        """
        return self._frame(self.measure_support(method, k).columns())

    def measure_support(self, method: str | None = None, k: int | None = None) -> Support:
        """Measure how well each complainant's groups support the comparison.

        Parameters
        ----------
        method, k
            The method and the group size; default: the primary ones.
        """
        chosen, size = self.plan.choose(method, k)
        if len(self.parts) > 1:
            raise PlanError(
                "Support is measured within one pair of groups on one scale. An audit of multiple "
                "discrimination has a pair for each attribute: ask audit.part(attribute)."
            )
        least = self.plan.settings.similarity.min_group
        return self.remember(
            "support",
            (chosen.name, size),
            lambda: measure_support(
                self.engine, self.world, self.tally, chosen, size, min_group=least
            ),
        )

    def case(self, id: Any) -> Case:  # noqa: A002 - the public name
        """Give everything about one complainant: her results under all methods and k.

        Parameters
        ----------
        id
            Her id: the value of the id column, or her row position.
        """
        place, row = self.locate(id)
        results = {
            (method, k): MappingProxyType(
                {
                    name: plain_value(value[0])
                    for name, value in self._columns(
                        self.findings_of(np.array([place]), method, k), place
                    ).items()
                }
            )
            for method in self.methods
            for k in self.ks
        }
        first = next(iter(results.values()))
        counterfactual = self.world.point
        return Case(
            id=plain_value(self.plan.population.ids[row]),
            outcome=first["outcome"],
            outcome_cf=first["outcome_cf"],
            factual=self._attributes(self.plan.population, row),
            counterfactual=None
            if counterfactual is None
            else self._attributes(counterfactual, row),
            results=MappingProxyType(results),
            couplings=self.provenance.computed["couplings"],
            drawn=self.drawn_values(row),
            audit=self,
            place=place,
            row=row,
        )

    def drawn_values(self, row: int) -> Mapping[str, tuple[tuple[Any, float], ...]]:
        """Give the values that open attributes of one row have in draws, the most frequent first.

        Parameters
        ----------
        row
            The row of a complainant.
        """
        draws, only = self.world.draws, np.array([row])
        found = {}
        for name in sorted(draws[0].changed) if draws else ():
            values = Counter(_cell(drawn.part(name, only)) for drawn in draws)
            if len(values) > 1 or name in self.provenance.computed["couplings"]:
                order = sorted(values.items(), key=lambda pair: (-pair[1], str(pair[0])))
                found[name] = tuple((value, number / len(draws)) for value, number in order)
        return MappingProxyType(found)

    def with_levels(
        self,
        *,
        alpha: float | None = None,
        tau: float | None = None,
        method: str | None = None,
        k: int | None = None,
    ) -> Audit:
        """Give the same audit with other levels and another headline; nothing is searched again.

        Sham audits are left out: they belong to the levels of the audit.

        Parameters
        ----------
        alpha, tau
            The significance level and the least deviation; default: those of the audit.
        method, k
            What the headline is about, of what was run; default: the primary ones.

        Examples
        --------
        >>> import mutandis as mm
        >>> found = mm.audit(
        ...     mm.datasets.loan(n=400, seed=1),
        ...     outcome="LoanApproval",
        ...     negative=-1,
        ...     protected=mm.Protection("Gender", value=1, reference=0),
        ...     attributes={"AnnualSalary": "continuous"},
        ...     ks=(10,),
        ... )
        >>> found.counts()["cases"].tolist()
        [23]
        >>> found.with_levels(tau=0.2).counts()["cases"].tolist()
        [9]
        """
        plan = self.plan
        chosen, size = plan.choose(method, k)
        settings = replace(
            plan.settings,
            alpha=plan.settings.alpha if alpha is None else alpha,
            tau=plan.settings.tau if tau is None else tau,
            evidence=replace(plan.settings.evidence, primary=(chosen.name, size)),
        )
        settings = settle_interval(settings)
        same = (settings.alpha, settings.tau) == (plan.settings.alpha, plan.settings.tau)
        # shares and tipping points are about verdicts that were given at the levels of the audit
        shares, tippings = (self.verdict_shares, self.tippings) if same else ({}, {})
        compared = self.compared
        if not same or settings.primary != plan.settings.primary:
            doubt = replace(settings.uncertainty, tipping=False, variants=None, worldviews=None)
            settings, compared = replace(settings, uncertainty=doubt), []
        plan = replace(plan, settings=settings)
        return replace(
            self,
            plan=plan,
            verdict_shares=shares,
            tippings=tippings,
            compared=compared,
            sham_audits=None,
        )

    def with_worldviews(
        self, worldviews: Mapping[str, Worldview] | None = None, *, variants: bool = False
    ) -> Audit:
        """Give the same audit with its headline's verdicts under further worldviews.

        What was found stays as it is. Findings, reports, case files and results then say under how
        many worldviews each verdict is the same or stronger, and under which it is not
        (docs/robustness.md). Those that the audit had before are compared with again.

        Parameters
        ----------
        worldviews
            Other worldviews by name. None of them may need columns that the audit did not read,
            if it was opened from results.
        variants
            Add the variants of the audit's own worldview that differ in one choice each, as
            `vary_worldview` lists them.

        Examples
        --------
        >>> import mutandis as mm
        >>> found = mm.audit(
        ...     mm.datasets.loan(n=600, seed=1),
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
        ...     ks=(15,),
        ...     uncertainty=mm.Uncertainty(refits=0),
        ... ).with_worldviews(variants=True)
        >>> found.measure_worldviews().count_stays()
        {5: 1, 4: 56, 3: 5, 2: 3}
        """
        from mutandis.auditing.plan import settle_robustness
        from mutandis.auditing.provenance import describe_settings

        plan, doubt = self.plan, self.plan.settings.uncertainty
        more = {**(doubt.worldviews or {}), **(worldviews or {})}
        wanted = replace(
            doubt,
            variants=variants or doubt.variants,
            worldviews=more or None,
            tipping=doubt.tipping or None,
        )
        method, _ = plan.choose(None, None)
        doubt = settle_robustness(wanted, plan.worldview, method, rows=len(plan.population))
        plan = replace(plan, settings=replace(plan.settings, uncertainty=doubt))
        return replace(
            self,
            plan=plan,
            provenance=replace(self.provenance, settings=describe_settings(plan)),
            compared=[],
        )

    def with_labels(self, labels: Labels) -> Audit:
        """Give the same audit with words for its columns, values and outcomes.

        They change no number and no finding; nothing is run again.

        Parameters
        ----------
        labels
            The words, as for `Plan.with_labels`.
        """
        return replace(self, plan=self.plan.with_labels(labels))

    def counterfactuals(self) -> Any:
        """Give D^CF: the table as it would have been, or None if the audit has none.

        Its outcome column holds the counterfactual outcomes; it has none if b() is not known.
        The table can be handed to another audit as `counterfactuals=`.
        """
        population, would_be = self.world.point, self.world.decided
        if population is None:
            return None
        outcome = self.plan.outcome
        if would_be is None:
            return open_frame(population.frame()).drop(outcome.column).to_native()
        # of several classes, it is known on which side the outcome would have been
        decided = outcome.kind.column(would_be)
        return population.with_columns({outcome.column: decided}).frame()

    def flips(self) -> Flips | None:
        """Count outcomes that change under do(), in either direction; None if b() is not known."""
        after = self.refused_counterfactually
        if after is None:
            return None
        before = self.study.outcomes[self.study.people]
        # more is worse, of refusals as of steps of a score
        return Flips(
            negative_to_positive=int((before > after).sum()),
            positive_to_negative=int((before < after).sum()),
        )

    @property
    def refused_counterfactually(self) -> NDArray[Any] | None:
        """Which complainants would have been refused under do(); None if b() is not known.

        Of a score: its steps.
        """
        would_be = self.world.decided
        return None if would_be is None else would_be[self.study.people]

    @property
    def refusal_cf(self) -> NDArray[Any] | None:
        """Outcomes in D^CF, as codes; of complainants with draws, what is averaged over these."""
        would_be, drawn = self.world.decided, self.world.decided_parts
        if would_be is None:
            return None
        return self.plan.outcome.kind.expected(would_be, self.study.people, drawn)

    @cached_property
    def refits(self) -> Sequence[Population]:
        """The counterfactuals of refitted equations, as cases ask for them: made once for all."""
        return list(refits_of(self.plan, self.plan.settings.uncertainty.refits or REFITS))

    def cautions(self) -> list[str]:
        """Say what makes the headline doubtful: group sizes, few comparable people, wrong side."""
        from mutandis.auditing.cautions import caution_about

        return caution_about(self)

    def sham(
        self,
        number: int = 19,
        *,
        method: str | None = None,
        k: int | None = None,
        seed: int | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
    ) -> ShamAudits:
        """Count what the same audit finds where there is nothing to find (docs/robustness.md).

        Only reference rows are kept, and a random part of them is given the protected status.

        Parameters
        ----------
        number
            The number of sham audits.
        method, k
            Default: the primary ones.
        seed
            Seed of the random statuses; default: the one of the audit.
        progress
            Called with two numbers: the sham audits done, and all.

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
        ...     ks=(50,),
        ... )
        >>> sham = found.sham(19)
        >>> sham.count, sham.largest, sham.exceeds_all
        (202, 62, True)
        """
        from mutandis.auditing.sham import sham_audits

        return sham_audits(self, number, method=method, k=k, seed=seed, progress=progress)

    def with_sham(
        self,
        number: int = 19,
        *,
        seed: int | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
    ) -> Audit:
        """Return the same audit with sham audits of its headline, which documents then show.

        Parameters
        ----------
        number, seed, progress
            As for `sham`.
        """
        return replace(self, sham_audits=self.sham(number, seed=seed, progress=progress))

    def tipping(
        self,
        method: str | None = None,
        *,
        k: int | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
    ) -> Any:
        """Tell how much of the effect of the status must be real for each verdict to stand.

        The table has a row per complainant: `tipping` is the least part λ of the difference that
        the worldview attributes to her status such that her verdict is the same or stronger from λ
        to the whole of it, `grade` says whether that is robust, sensitive or fragile
        (docs/robustness.md); `appears` is, where nothing is significant, the
        least λ up to 1.5 at which something is; `stands_without_…` whether the verdict stands with
        one attribute held at its fact.

        Parameters
        ----------
        method, k
            `cst_matched` or `cst_without`, and the group size; default: the primary ones.
        progress
            Called with two numbers: the worlds tried, and all.

        Examples
        --------
        >>> import mutandis as mm
        >>> found = mm.audit(
        ...     mm.datasets.loan(n=600, seed=1),
        ...     outcome="LoanApproval",
        ...     negative=-1,
        ...     protected=mm.Protection("Gender", value=1, reference=0),
        ...     attributes={"AnnualSalary": "continuous"},
        ...     worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
        ...     ks=(15,),
        ...     uncertainty=mm.Uncertainty(refits=0),
        ... )
        >>> found.tipping()["grade"].value_counts().to_dict()
        {'robust': 62, 'fragile': 31, 'sensitive': 15}
        """
        return self._frame(self.measure_tipping(method, k, progress).columns())

    def hidden_cause(self) -> HiddenCause:
        """Tell how strong a hidden common cause of the status and an attribute would have to be.

        That is one that would make a verdict fall (docs/robustness.md). It needs a worldview, and
        a headline that has tipping points.
        """
        from mutandis.auditing.hidden_cause import find_hidden_cause

        return find_hidden_cause(self)

    def measure_tipping(
        self,
        method: str | None = None,
        k: int | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
    ) -> Tipping:
        """Find tipping points in their compact form, unless that was done.

        Parameters
        ----------
        method, k, progress
            As for `tipping`.
        """
        from mutandis.auditing.tipping import find_tipping

        chosen, size = self.plan.choose(method, k)
        key = (chosen.name, size)
        if key not in self.tippings:
            self.tippings[key] = find_tipping(self, chosen, size, progress=progress)
        compared = self.measure_worldviews() if key == self.plan.settings.primary else None
        found = self.tippings[key]
        return found if compared is None else replace(found, share=compared.share)

    def measure_worldviews(
        self,
        progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
    ) -> WorldviewVerdicts | None:
        """Give the headline's verdicts under other worldviews, unless that was done.

        None where the settings ask for no other worldview.

        Parameters
        ----------
        progress
            Called with two numbers: the worldviews done, and all.
        """
        from mutandis.auditing.worldviews import find_worldview_verdicts

        if not self.compares_worldviews:
            return None
        if not self.compared:
            self.compared.append(find_worldview_verdicts(self, progress))
        return self.compared[0]

    def case_file(
        self,
        id: Any,  # noqa: A002 - the public name
        path: str | PathLike[str] | None = None,
        *,
        redact: bool = False,
    ) -> CaseDocument:
        """Collect everything about one complainant in a document that can be handed over.

        Parameters
        ----------
        id
            The complainant.
        path
            Where to write it, whole or not at all: a file that ends in .html, .json or
            .pdf.
        redact
            Leave out all others: her own record stays, and verdicts and coarse shares of groups
            of at least ten people.
        """
        from mutandis.report.case_file import case_document

        document = case_document(self, id, redact=redact)
        if path is not None:
            document.write(path)
        return document

    def report(
        self,
        path: str | PathLike[str] | None = None,
        *,
        diagnosis: Diagnosis | None = None,
    ) -> Report:
        """Write the report: one HTML page that loads nothing, runs no script and prints well.

        Parameters
        ----------
        path
            Where to write it, whole or not at all; left out, it is only given back.
        diagnosis
            What `plan.check_worldview()` has given; asked again if left out.

        Examples
        --------
        >>> import mutandis as mm
        >>> found = mm.audit(
        ...     {
        ...         "woman": [1, 1, 0, 0, 0, 0],
        ...         "salary": [10.0, 11.0, 10.0, 11.0, 15.0, 16.0],
        ...         "granted": ["no", "no", "no", "yes", "yes", "yes"],
        ...     },
        ...     outcome="granted",
        ...     negative="no",
        ...     protected=mm.Protection("woman", value=1, reference=0),
        ...     attributes={"salary": "continuous"},
        ...     ks=(1,),
        ... )
        >>> "there is for 1 of 2 complainants (50.0%)" in found.report().html
        True
        """
        from mutandis.report.report import make_report

        report = make_report(self, diagnosis=diagnosis)
        if path is not None:
            report.write(path)
        return report

    def explore(
        self, *, other: Audit | None = None, port: int = 0, open_browser: bool = True
    ) -> None:
        """Look into the audit in a web browser, until this is interrupted (Ctrl-C).

        The pages are served from this computer, to this computer alone; the address that is printed
        holds a token, without which none is shown (``pip install 'mutandis[explorer]'``).

        Parameters
        ----------
        other
            Another audit to compare it with: another model, period or worldview.
        port
            Where to listen; default: a port that is free.
        open_browser
            Open the address in a browser.
        """
        from mutandis.registry import find

        find("room", "explorer").serve(self, other=other, port=port, open_browser=open_browser)

    def save(
        self,
        folder: str | PathLike[str],
        *,
        overwrite: bool = False,
        sign: str | PathLike[str] | None = None,
    ) -> None:
        """Write the results into a folder, which appears whole or not at all.

        `mutandis.open_results` reads them back.

        Parameters
        ----------
        folder
            The folder to make.
        overwrite
            Replace older results in that folder.
        sign
            A private Ed25519 key in PEM to sign the results with (docs/how-to/verify.md).
        """
        from mutandis.store.results_folder import read_key
        from mutandis.store.saved_audit import save_audit

        save_audit(self, Path(folder), overwrite=overwrite, key=read_key(sign, "private"))

    def members(self, place: int, method: str, k: int) -> Pair[Members]:
        """List the people in both groups of one complainant, by her place among complainants.

        Parameters
        ----------
        place
            Her place among the complainants; see `locate`.
        method, k
            The method and the group size.
        """
        return self.remember(
            "members",
            (place, method, k),
            lambda: list_members(self, place, METHODS[method], self.ks.index(k)),
        )

    def balance(self, place: int, method: str, k: int) -> Pair[Mapping[str, float]]:
        """Compare one complainant's search centers with the people around them.

        Parameters
        ----------
        place
            Her place among the complainants; see `locate`.
        method, k
            The method and the group size.
        """
        row = int(self.study.people[place])
        groups = self.members(place, method, k)
        return measure_balance(self.study, self.world, row, METHODS[method], groups)

    def locate(self, id: Any) -> tuple[int, int]:  # noqa: A002
        """Find a complainant's place among the complainants, and her row.

        Parameters
        ----------
        id
            Her id: the value of the id column, or her row position.
        """
        ids = self.plan.population.ids
        # a list would be compared element by element
        same = ids == id if np.ndim(id) == 0 else np.zeros(len(ids), dtype=np.bool_)
        matches = np.flatnonzero(same)
        if not len(matches):
            column = self.plan.id
            known = "row positions, from 0" if column is None else f"the values of {column!r}"
            raise UnknownIdError(f"No row has this id. Ids in this audit are {known}.")
        row = int(matches[0])
        rows = self.study.people
        place = int(np.searchsorted(rows, row))
        if place == len(rows) or rows[place] != row:
            raise UnknownIdError(
                f"This row is not a complainant: its protected attribute {self.plan.status} does "
                "not have a protected value."
            )
        return place, row

    def adjust(self, p_values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Adjust p-values for the number of complainants.

        Parameters
        ----------
        p_values
            One per complainant.
        """
        method = self.plan.settings.evidence.adjust
        # what was not adjusted must not count as significant after adjustment
        if method == "none":
            return np.full_like(p_values, np.nan)
        return adjust(p_values, method=method)

    def compute_findings(self, method: str, k: int, *, depth: Depth = "bounds") -> Findings:
        """Compare the groups of every complainant under one method and one k.

        Parameters
        ----------
        method, k
            The method and the group size.
        depth
            How much is computed: evidence alone, tests, or bounds too.
        """
        groups = self.tally.at(METHODS[method], self.ks.index(k))
        groups = Pair(control=groups.control.kept(), test=groups.test.kept())
        return self._put_together(method, k, groups, depth=depth)

    def _put_together(
        self,
        method: str,
        k: int,
        groups: Pair[Group],
        *,
        depth: Depth = "bounds",
        places: NDArray[np.intp] | slice = slice(None),
        q_value: NDArray[np.float64] | None = None,
    ) -> Findings:
        """Give the findings on the groups of complainants at some places, whose q-values are known.

        Default: all of them.
        """
        comparison = compare_groups(self.plan, METHODS[method], groups, depth=depth)
        rows, outcome = self.study.people[places], self.plan.outcome
        own, would_be = self.study.outcomes[rows], self.refused_counterfactually
        share = self._verdict_share(method, self.ks.index(k))
        found = Findings(
            method=method,
            k=k,
            ids=self.plan.population.ids[rows],
            outcome=outcome.recorded(rows),
            outcome_cf=None if would_be is None else outcome.kind.values(would_be[places]),
            is_negative=self._had_it_worse(own, groups),
            kind=outcome.kind,
            control=groups.control,
            test=groups.test,
            comparison=comparison,
            q_value=self._adjust(comparison, METHODS[method]) if q_value is None else q_value,
            alpha=self.plan.settings.alpha,
            measure=self.plan.settings.measure,
            **self._own_case(METHODS[method], own, places),
            verdict_share=None if share is None else share[places],
        )
        return found.kept()

    def _verdict_share(self, method: str, index: int) -> NDArray[np.float64] | None:
        if not self.plan.settings.uncertainty.worlds:
            return None
        unknown = np.full((len(self.study.people), len(self.ks)), np.nan)
        return self.verdict_shares.get(method, unknown)[:, index]

    def _had_it_worse(self, own: NDArray[Any], groups: Pair[Group]) -> NDArray[np.bool_]:
        """Mark who was refused; of other outcomes, whose was worse than the test group's."""
        return self.plan.outcome.kind.is_worse(own, groups.test.share, tau=self.plan.rule.tau)

    def _own_case(
        self, method: Method, outcomes: NDArray[Any], places: NDArray[np.intp] | slice
    ) -> dict[str, Any]:
        own = self.tally.matches
        if own is None or not method.matched:
            return {}
        kind, rule = self.plan.outcome.kind, self.plan.rule
        shown, answer = kind.own_case(outcomes, own.take(places), rule)
        return {"p_own": shown, "own_case": answer}

    def _adjust(self, comparison: Comparison, method: Method) -> NDArray[np.float64]:
        """Adjust for all whom a method was to compare: the matched one drops those unlike."""
        p_values = comparison.interval.p_value
        if not method.matched:
            return self.adjust(p_values)
        # means of few people are compared and not tested
        untested = np.isnan(p_values)
        return np.where(untested, np.nan, self.adjust(np.where(untested, 1.0, p_values)))

    def _digest(self, method: str, k: int) -> Digest:
        # the groups are not kept: they take much memory
        groups = self.tally.at(METHODS[method], self.ks.index(k))
        comparison = compare_groups(self.plan, METHODS[method], groups, depth="significance")
        own = self.study.outcomes[self.study.people]
        is_negative = self._had_it_worse(own, groups)
        del groups
        return Digest.of(
            comparison,
            self._adjust(comparison, METHODS[method]),
            method=method,
            k=k,
            alpha=self.plan.settings.alpha,
            is_negative=is_negative,
            kind=self.plan.outcome.kind,
            whole=k == self.plan.settings.primary[1],
        )

    def _attributes(self, population: Population, row: int) -> Mapping[str, Any]:
        values = {}
        for attribute in self.plan.attributes:
            values[attribute.name] = _cell(population.part(attribute.name, np.array([row])))
        return MappingProxyType(values)

    def _frame(self, columns: Mapping[str, Any]) -> Any:
        return to_frame(columns, self.plan.population.source)

    def __repr__(self) -> str:
        """Summarise in a few lines."""
        method, k = self.plan.settings.primary
        row = self.count(method, k)
        return printable(
            f"Audit of {len(self.plan.population):,} decisions, "
            f"{row['complainants']:,} complainants; methods {', '.join(self.methods)}; "
            f"k = {', '.join(map(str, self.ks))}\n"
            f"{method} at k={k}: evidence for {row['cases']:,} ({row['share']:.1%}), significant "
            f"for {row['significant']:,}, after adjustment for {row['significant_adjusted']:,}"
            f"{self._graded()}{self._left_out()}{self._assumed()}"
        )

    def _repr_html_(self) -> str:
        """Show the summary and the counts in a notebook."""
        records = self.count_records()
        titles = {"cases_refused": f"cases {printable(self.plan.labels.negative)}"}
        head = "".join(f"<th>{escape(titles.get(name, name))}</th>" for name in records[0])
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{escape(_shown(value))}</td>" for value in row.values())
            + "</tr>"
            for row in records
        )
        summary = escape(repr(self)).replace("\n", "<br>")
        return f"<p>{summary}</p><table><tr>{head}</tr>{rows}</table>"

    def _graded(self) -> str:
        from mutandis.auditing.tipping import summarise_grades

        said = summarise_grades(self)
        return f"\n{said}" if said else ""

    def _left_out(self) -> str:
        from mutandis.auditing.cautions import caution_about_matches

        found = self.compute_findings(*self.plan.settings.primary, depth="evidence")
        return "".join(f"\n{said}" for said in caution_about_matches(found, self.plan.labels))

    def _assumed(self) -> str:
        couplings = self.provenance.computed["couplings"]
        column = self.plan.labels.column
        assumed = ", ".join(f"{each} for {column(name)}" for name, each in couplings.items())
        return f"\nassumed, beyond what data can test: {assumed}" if assumed else ""


def _cell(column: Column) -> Any:
    """Give the only value of a column."""
    if isinstance(column, Numbers):
        return float(column.values[0])
    return column.levels[column.codes[0]]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
