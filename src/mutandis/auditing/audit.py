"""A finished audit, and what it can be asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mutandis.auditing.case import Case
from mutandis.auditing.members import list_members
from mutandis.auditing.results import assess, decided_on_all, evaluate
from mutandis.auditing.support import measure_balance, measure_support
from mutandis.config.schema import settle_interval
from mutandis.data.columns import Numbers, plain_value, plain_values
from mutandis.decision.maker import RecordAgreement
from mutandis.engine.methods import METHODS
from mutandis.errors import PlanError, UnknownIdError, printable
from mutandis.frames import columns_of, open_frame, to_frame
from mutandis.verdicts.findings import weakest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from os import PathLike

    from numpy.typing import NDArray

    from mutandis.auditing.hidden_cause import HiddenCause
    from mutandis.auditing.plan import Plan
    from mutandis.auditing.provenance import Provenance
    from mutandis.auditing.results import Ground, Results
    from mutandis.auditing.robustness import Tipping
    from mutandis.auditing.sham import ShamAudits
    from mutandis.auditing.support import Support
    from mutandis.data.columns import Column
    from mutandis.data.labels import Labels
    from mutandis.data.population import Population
    from mutandis.engine.members import Members
    from mutandis.engine.study import Study
    from mutandis.engine.tally import Pair
    from mutandis.report.case_model import CaseDocument
    from mutandis.report.report import Report
    from mutandis.scm import Diagnosis, Worldview
    from mutandis.verdicts.findings import Findings

__all__ = ["Audit", "Flips"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Complainants whose outcome changes under do(): what counterfactual fairness looks at.

    Of scores and ordered outcomes: who would have had a better one, and who a worse one.
    """

    negative_to_positive: int
    positive_to_negative: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Audit:
    """A finished audit.

    Frames come back in the caller's own frame type (pandas, where the table was lazy or a file).

    Parameters
    ----------
    plan
        What was run.
    grounds
        What was counted: one ground, or one for each protected attribute if several are audited
        one by one ("multiple").
    results
        Verdicts, with what else the plan asks for, such as tipping points.
    provenance
        What is needed to repeat the audit.

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
    grounds: tuple[Ground, ...]
    results: Results
    provenance: Provenance

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that were run."""
        return tuple(method.name for method in self.plan.methods)

    @property
    def ground(self) -> Ground:
        """The ground; the first one, where several were audited one by one."""
        return self.grounds[0]

    @property
    def study(self) -> Study:
        """Who is compared with whom, on what, and how: on the first ground."""
        return self.ground.study

    @property
    def ks(self) -> tuple[int, ...]:
        """The group sizes that were run."""
        return self.plan.settings.ks

    @property
    def parts(self) -> tuple[Audit, ...]:
        """The audit of each ground by itself; of one ground, this audit."""
        if len(self.grounds) == 1:
            return (self,)
        return tuple(
            Audit(
                plan=ground.plan,
                grounds=(ground,),
                results=results,
                provenance=replace(self.provenance, computed=ground.computed),
            )
            for ground, results in zip(self.grounds, self.results.grounds, strict=True)
        )

    @property
    def by_ground(self) -> dict[str, Audit]:
        """The parts by protected attribute; one part alone has the empty name."""
        if len(self.grounds) == 1:
            return {"": self}
        return {ground.name: part for ground, part in zip(self.grounds, self.parts, strict=True)}

    @property
    def with_record(self) -> RecordAgreement | None:
        """How b(X) and the recorded outcomes agree; None without b()."""
        counts = self.provenance.computed["with_record"]
        return None if counts is None else RecordAgreement(**counts)

    @property
    def disagreement(self) -> float | None:
        """The share of rows on which b(X) differs from the recorded outcome (None: no b()).

        Of scores, the share of their variation on record that b(X) does not explain.
        """
        found: float | None = self.provenance.computed["disagreement"]
        return found

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
        return [dict(each.counts) for each in self.results.summaries.values()]

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
        # several interventions have no counterfactual in common
        other = self.ground.world.point if len(self.grounds) == 1 else None
        rows = self.study.people
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

    def evaluate(
        self,
        method: str | None = None,
        k: int | None = None,
        *,
        places: NDArray[np.intp] | None = None,
    ) -> Findings:
        """Compute findings with bounds, which take long where there are many complainants.

        Parameters
        ----------
        method, k
            The method and the group size; default: the primary ones.
        places
            The complainants, by their places among all; default: everyone.
        """
        chosen, size = self.plan.choose(method, k)
        key = (chosen.name, size)
        return evaluate(self.plan, self.grounds, key, self.results, places=places)

    def test_everyone(self, method: str | None = None, k: int | None = None) -> Findings:
        """Return findings with verdicts and p-values, and without bounds.

        Parameters
        ----------
        method, k
            The method and the group size; default: the primary ones, which are known.
        """
        chosen, size = self.plan.choose(method, k)
        key = (chosen.name, size)
        if key == self.plan.settings.primary:
            return self.results.headline
        return evaluate(self.plan, self.grounds, key, self.results, depth="significance")

    def each_findings(self) -> Iterator[Findings]:
        """Iterate over the findings of every method and k, with their robustness."""
        # mapped, not looped over: findings are gone when the next are made
        return (self.graded(self.evaluate(method, k)) for method in self.methods for k in self.ks)

    def graded(self, found: Findings, place: int | None = None) -> Findings:
        """Add their robustness to findings, where the settings ask for it.

        Parameters
        ----------
        found
            The findings of all complainants, or of one.
        place
            The place of the one among the complainants.
        """
        from mutandis.auditing.robustness import describe_all

        if not self.plan.settings.uncertainty.tipping:
            return found
        return replace(found, robustness=describe_all(self, found, place))

    def _columns(self, found: Findings, place: int | None = None) -> dict[str, NDArray[Any]]:
        """Return the columns of findings, graded where they are the headline's."""
        if (found.method, found.k) == self.plan.settings.primary:
            found = self.graded(found, place)
        return found.columns()

    def count(self, method: str, k: int) -> Mapping[str, Any]:
        """Return the number of cases under one method and one k.

        Parameters
        ----------
        method, k
            The method and the group size.
        """
        return self.results.summaries[method, k].counts

    def support(self, method: str | None = None, *, k: int | None = None) -> Any:
        """Compare how far away everyone's groups are with what is usual: a row per complainant.

        Of several grounds, there is a row per attribute and complainant.

        Parameters
        ----------
        method, k
            Default: the primary ones.
        """
        parts = self.by_ground
        tables = {name: part.measure_support(method, k).columns() for name, part in parts.items()}
        columns = {
            name: np.concatenate([table[name] for table in tables.values()])
            for name in next(iter(tables.values()))
        }
        if len(tables) > 1:
            names = np.repeat(list(tables), len(self.study.people))
            columns = {"attribute": names, **columns}
        return self._frame(columns)

    def measure_support(self, method: str | None = None, k: int | None = None) -> Support:
        """Measure how well each complainant's groups support the comparison.

        Parameters
        ----------
        method, k
            The method and the group size; default: the primary ones.
        """
        chosen, size = self.plan.choose(method, k)
        if len(self.grounds) > 1:
            raise PlanError(
                "Support is measured within one pair of groups on one scale. An audit of multiple "
                "discrimination has a pair for each attribute: ask audit.part(attribute)."
            )
        ground, least = self.ground, self.plan.settings.similarity.min_group
        return measure_support(
            ground.engine, ground.world, ground.tally, chosen, size, min_group=least
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
                        self.evaluate(method, k, places=np.array([place])), place
                    ).items()
                }
            )
            for method in self.methods
            for k in self.ks
        }
        first = next(iter(results.values()))
        counterfactual = self.ground.world.point if len(self.grounds) == 1 else None
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
        draws, only = self.ground.world.draws, np.array([row])
        found: dict[str, Any] = {}
        if len(self.grounds) > 1:
            return found
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
        results = self.results
        if not same or settings.primary != plan.settings.primary:
            doubt = replace(settings.uncertainty, tipping=False, variants=None, worldviews=None)
            settings = replace(settings, uncertainty=doubt)
        plan = replace(plan, settings=settings)
        # shares are about verdicts that were given at the levels of the audit
        grounds = tuple(
            replace(
                each,
                plan=replace(each.plan, settings=settings),
                verdict_shares=each.verdict_shares if same else {},
            )
            for each in self.grounds
        )
        if plan.settings != self.plan.settings:
            results = assess(plan, grounds, like=self.results if same else None)
        results = replace(results, sham=None)
        return replace(self, plan=plan, grounds=grounds, results=results)

    def with_worldviews(
        self,
        worldviews: Mapping[str, Worldview] | None = None,
        *,
        variants: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
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
        progress
            Called with two numbers: the worldviews done, and all.

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
        >>> found.results.worldviews.count_stays()
        {5: 1, 4: 56, 3: 5, 2: 3}
        """
        from mutandis.auditing.plan import settle_robustness
        from mutandis.auditing.provenance import describe_settings
        from mutandis.auditing.robustness import find_robustness
        from mutandis.auditing.worldviews import find_worldview_verdicts

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
        provenance = replace(self.provenance, settings=describe_settings(plan))
        changed = replace(self, plan=plan, provenance=provenance)
        results = replace(self.results, worldviews=find_worldview_verdicts(changed, progress))
        return find_robustness(replace(changed, results=results))

    def with_labels(self, labels: Labels) -> Audit:
        """Give the same audit with words for its columns, values and outcomes.

        They change no number and no finding; nothing is run again.

        Parameters
        ----------
        labels
            The words, as for `Plan.with_labels`.
        """
        plan = self.plan.with_labels(labels)
        grounds = tuple(
            replace(each, plan=replace(each.plan, labels=labels)) for each in self.grounds
        )
        return replace(self, plan=plan, grounds=grounds)

    def counterfactuals(self) -> Any:
        """Return D^CF, the table as it would have been; None if the audit has none.

        Its outcome column holds the counterfactual outcomes; it has none if b() is not known.
        The table can be handed to another audit as `counterfactuals=`. The tables of several
        grounds lie below each other, and `do` names the attribute that was set.
        """
        tables = {each.name: _counterfactual_table(each) for each in self.grounds}
        if any(table is None for table in tables.values()):
            return None
        if len(tables) == 1:
            return next(iter(tables.values())).to_native()
        import narwhals as nw

        named = (table.with_columns(nw.lit(name).alias("do")) for name, table in tables.items())
        return nw.concat(list(named)).to_native()

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
        """Complainants' outcomes under do() as codes; None if b() is not known."""
        return decided_on_all(self.plan, self.grounds)

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
        sham = self.sham(number, seed=seed, progress=progress)
        return replace(self, results=replace(self.results, sham=sham))

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
        """Find tipping points in their compact form, unless the results have them.

        Parameters
        ----------
        method, k, progress
            As for `tipping`.
        """
        from mutandis.auditing.robustness import find_tipping

        chosen, size = self.plan.choose(method, k)
        known = self.results.tipping
        if known is not None and (chosen.name, size) == self.plan.settings.primary:
            return known
        return find_tipping(self, chosen, size, progress=progress)

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

    def explore(self, *, port: int = 0, open_browser: bool = True) -> None:
        """Look into the audit in a web browser, until this is interrupted (Ctrl-C).

        The pages are served from this computer, to this computer alone; the address that is printed
        holds a token, without which none is shown (``pip install 'mutandis[explorer]'``).

        Parameters
        ----------
        port
            Where to listen; default: a port that is free.
        open_browser
            Open the address in a browser.
        """
        from mutandis.registry import find

        find("room", "explorer").serve(self, port=port, open_browser=open_browser)

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
        """List the people in both groups of one complainant.

        Of several grounds, the one with the weakest evidence.

        Parameters
        ----------
        place
            Her place among the complainants; see `locate`.
        method, k
            The method and the group size.
        """
        ground = self._weakest(place, method, k)
        return list_members(ground, place, METHODS[method], self.ks.index(k))

    def balance(self, place: int, method: str, k: int) -> Pair[Mapping[str, float]]:
        """Compare one complainant's search centers with the people around them.

        Parameters
        ----------
        place
            Her place among the complainants; see `locate`.
        method, k
            The method and the group size.
        """
        ground = self._weakest(place, method, k)
        row = int(ground.study.people[place])
        groups = list_members(ground, place, METHODS[method], self.ks.index(k))
        return measure_balance(ground.study, ground.world, row, METHODS[method], groups)

    def _weakest(self, place: int, method: str, k: int) -> Ground:
        if len(self.grounds) == 1:
            return self.ground
        found = self.evaluate(method, k, places=np.array([place]))
        against = np.stack([each.against for each in found.parts.values()])
        return self.grounds[int(weakest(against, worse=self.plan.rule.worse)[0])]

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
        from mutandis.auditing.robustness import summarise_grades

        said = summarise_grades(self)
        return f"\n{said}" if said else ""

    def _left_out(self) -> str:
        from mutandis.auditing.cautions import caution_about_matches

        said = caution_about_matches(self.results.headline, self.plan.labels)
        return "".join(f"\n{each}" for each in said)

    def _assumed(self) -> str:
        couplings = self.provenance.computed["couplings"]
        column = self.plan.labels.column
        assumed = ", ".join(f"{each} for {column(name)}" for name, each in couplings.items())
        return f"\nassumed, beyond what data can test: {assumed}" if assumed else ""


def _counterfactual_table(ground: Ground) -> Any:
    """Return the table as it would have been, as a Narwhals frame; None if there is none."""
    population, would_be = ground.world.point, ground.world.decided
    outcome = ground.plan.outcome
    if population is None:
        return None
    if would_be is None:
        return open_frame(population.frame()).drop(outcome.column)
    # of several classes, it is known on which side the outcome would have been
    decided = {outcome.column: outcome.kind.column(would_be)}
    return open_frame(population.with_columns(decided).frame())


def _cell(column: Column) -> Any:
    """Give the only value of a column."""
    if isinstance(column, Numbers):
        return float(column.values[0])
    return column.levels[column.codes[0]]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
