"""A finished audit, and what it can be asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.answer import MOST_ROWS, groups_table, path_of, slices_table, words_of
from mutandis.auditing.case import Case, locate, open_case
from mutandis.auditing.results import assess, evaluate
from mutandis.config.schema import settle_interval
from mutandis.data.columns import plain_values
from mutandis.decision.maker import RecordAgreement
from mutandis.errors import PlanError, printable
from mutandis.frames import columns_of, open_frame, to_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from numpy.typing import NDArray

    from mutandis.auditing.answer import Answer
    from mutandis.auditing.answer import Path as PersonPath
    from mutandis.auditing.hidden_cause import HiddenCause
    from mutandis.auditing.plan import Plan
    from mutandis.auditing.provenance import Provenance
    from mutandis.auditing.results import Ground, Results
    from mutandis.auditing.robustness import Tipping
    from mutandis.auditing.sham import ShamAudits
    from mutandis.auditing.support import Support
    from mutandis.data.labels import Labels
    from mutandis.engine.study import Study
    from mutandis.outcomes.outcome import Depth
    from mutandis.report.case_model import CaseDocument
    from mutandis.report.report import Report
    from mutandis.scm import Diagnosis, Worldview
    from mutandis.verdicts.findings import Findings

__all__ = ["Audit"]


def _ignore(done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Audit:
    """A finished audit.

    Frames come back in the caller's own frame type (pandas, where the table was lazy or a file).
    In all methods, `method` and `k` are the primary ones by default.

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
    >>> found.people().columns[-3:].tolist()
    ['woman', 'salary', 'salary (counterfactual)']
    >>> found.case(0).groups("cst_without", k=1).test.ids.tolist()
    [4]
    >>> found.with_levels(alpha=0.01).plan.settings.alpha
    0.01
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
    def ks(self) -> tuple[int, ...]:
        """The group sizes that were run."""
        return self.plan.settings.ks

    @property
    def ground(self) -> Ground:
        """The ground; the first one, where several were audited one by one."""
        return self.grounds[0]

    @property
    def study(self) -> Study:
        """Who is compared with whom, on what, and how: on the first ground."""
        return self.ground.study

    @property
    def parts(self) -> dict[str, Audit]:
        """The audit of each ground by itself, by protected attribute; of one, this, unnamed."""
        if len(self.grounds) == 1:
            return {"": self}
        return {
            ground.name: Audit(
                plan=ground.plan,
                grounds=(ground,),
                results=results,
                provenance=replace(self.provenance, computed=ground.computed),
            )
            for ground, results in zip(self.grounds, self.results.grounds, strict=True)
        }

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
        return None if self.with_record is None else self.with_record.disagreement

    # --- what was found ---

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answer for each ground."""
        return tuple(
            replace(each.answer, words=words_of(each.plan))
            for each in self.grounds
            if each.answer is not None
        )

    @property
    def answer(self) -> Answer:
        """The answer: the gap on record, people alike on record, and the worldview.

        Where several protected attributes are audited one by one, that of the first: ask each of
        `audit.parts`.
        """
        if not self.answers:
            raise PlanError(
                f"Tables of up to {MOST_ROWS:,} rows are answered, and this one has "
                f"{len(self.plan.population):,}. Ask for findings and counts, or audit a sample."
            )
        return self.answers[0]

    def slices(self) -> Any:
        """Return the difference in each level or quarter of each attribute, as a table.

        Bounds hold for all slices at once; `p` is adjusted for their number (Holm), and `differs`
        is the p-value that all slices of the attribute have one difference.
        """
        return self._frame(slices_table(self.answer, self.plan))

    def groups(self) -> Any:
        """Return the nested groups between the table and people, as a table."""
        return self._frame(groups_table(self.answer, self.plan.settings.alpha))

    def person(self, id: Any) -> PersonPath:  # noqa: A002 - the public name
        """Return what is established on the way from the table to one person.

        Parameters
        ----------
        id
            The value of the id column, or the row position.
        """
        place, _ = locate(self, id)
        names = [each.name for each in self.plan.attributes]
        return path_of(self.answer, place, names, self.plan.settings.alpha)

    def counts(self) -> Any:
        """Count cases for every method and k: a table with one row for each."""
        return self._frame(columns_of(self.results.records()))

    def findings(self, method: str | None = None, *, k: int | None = None) -> Any:
        """Compute one row per complainant under one method and k.

        The primary ones have `tipping`, `grade` and `robustness`, unless the settings say that
        these are not measured, and `stays_under` and `breaks_under` where worldviews are compared.
        """
        return self._frame(self._columns(method, k))

    def people(self, method: str | None = None, *, k: int | None = None) -> Any:
        """Compute the findings with everyone's answer and attributes, actual and counterfactual.

        Of the answer: the size of the smallest group or neighbourhood for which a difference is
        established (`step`, 0: none), its `estimate` with bounds and `p`, and `due_at_least`, the
        least share of the refusals there that is due to status.
        Counterfactual columns are there for the attributes that move. An attribute with the name
        of a finding has "attribute " in front.
        """
        return self._frame(self._people_columns(method, k))

    def export(
        self, path: str | PathLike[str], method: str | None = None, *, k: int | None = None
    ) -> None:
        """Write `people` to a file: CSV, Parquet or Excel (with openpyxl), as its name ends."""
        from mutandis.store.files import write_people

        write_people(path, self._people_columns(method, k))

    def evaluate(
        self,
        method: str | None = None,
        k: int | None = None,
        *,
        depth: Depth = "bounds",
        places: NDArray[np.intp] | None = None,
    ) -> Findings:
        """Compute findings in their compact form; those of the headline without bounds are known.

        Parameters
        ----------
        method, k
            Default: the primary ones.
        depth
            "bounds", which take long where there are many complainants, or "significance".
        places
            The complainants, by their places among all; default: everyone.
        """
        chosen, size = self.plan.choose(method, k)
        key = (chosen.name, size)
        if key == self.plan.settings.primary and depth != "bounds" and places is None:
            return self.results.headline
        return evaluate(self.plan, self.grounds, key, self.results, depth=depth, places=places)

    def case(self, id: Any) -> Case:  # noqa: A002 - the public name
        """Return everything about one complainant: the results under all methods and k.

        Parameters
        ----------
        id
            The value of the id column, or the row position.
        """
        return open_case(self, id)

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

    def cautions(self) -> list[str]:
        """List what makes the headline doubtful: group sizes, few comparable people, wrong side."""
        from mutandis.auditing.support import caution_about

        return caution_about(self)

    # --- what is computed on request ---

    def support(self, method: str | None = None, *, k: int | None = None) -> Any:
        """Compare how far away everyone's groups are with what is usual: a row per complainant.

        Of several grounds, there is a row per attribute and complainant.
        """
        parts = self.parts
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
        """Measure how well each complainant's groups support the comparison, on one ground."""
        from mutandis.auditing.support import measure_support

        chosen, size = self.plan.choose(method, k)
        if len(self.grounds) > 1:
            raise PlanError(
                "Support is measured within one pair of groups on one scale. An audit of multiple "
                f"discrimination has one for each attribute: ask audit.parts[{self.ground.name!r}]."
            )
        ground, least = self.ground, self.plan.settings.similarity.min_group
        return measure_support(
            ground.engine, ground.world, ground.tally, chosen, size, min_group=least
        )

    def sham(
        self,
        number: int = 19,
        *,
        method: str | None = None,
        k: int | None = None,
        seed: int | None = None,
        progress: Callable[[int, int], None] = _ignore,
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
        """
        from mutandis.auditing.sham import sham_audits

        return sham_audits(self, number, method=method, k=k, seed=seed, progress=progress)

    def with_sham(
        self,
        number: int = 19,
        *,
        seed: int | None = None,
        progress: Callable[[int, int], None] = _ignore,
    ) -> Audit:
        """Return the same audit with sham audits of its headline, which documents then show."""
        sham = self.sham(number, seed=seed, progress=progress)
        return replace(self, results=replace(self.results, sham=sham))

    def tipping(
        self,
        method: str | None = None,
        *,
        k: int | None = None,
        progress: Callable[[int, int], None] = _ignore,
    ) -> Any:
        """Return how much of the effect of the status must be real for each verdict to stand.

        The table has a row per complainant: `tipping` is the least part λ of the difference that
        the worldview attributes to the status such that the verdict is the same or stronger from λ
        to the whole of it, `grade` says whether that is robust, sensitive or fragile
        (docs/robustness.md); `appears` is, where nothing is significant, the least λ up to 1.5 at
        which something is; `stands_without_…` whether the verdict stands with one attribute held
        at its fact.

        Parameters
        ----------
        method, k
            `cst_matched` or `cst_without`, and the group size; default: the primary ones.
        progress
            Called with two numbers: the worlds tried, and all.
        """
        return self._frame(self.measure_tipping(method, k, progress).columns())

    def measure_tipping(
        self,
        method: str | None = None,
        k: int | None = None,
        progress: Callable[[int, int], None] = _ignore,
    ) -> Tipping:
        """Find tipping points in their compact form, unless the results have them."""
        from mutandis.auditing.robustness import find_tipping

        chosen, size = self.plan.choose(method, k)
        known = self.results.tipping
        if known is not None and (chosen.name, size) == self.plan.settings.primary:
            return known
        return find_tipping(self, chosen, size, progress=progress)

    def hidden_cause(self) -> HiddenCause:
        """Measure how strong a hidden common cause of status and attribute would have to be.

        That is one that would make a verdict fall (docs/robustness.md). It needs a worldview, and
        a headline that has tipping points.
        """
        from mutandis.auditing.hidden_cause import find_hidden_cause

        return find_hidden_cause(self)

    # --- the same audit, otherwise ---

    def with_levels(
        self,
        *,
        alpha: float | None = None,
        tau: float | None = None,
        method: str | None = None,
        k: int | None = None,
    ) -> Audit:
        """Return the same audit with other levels and another headline, without a search.

        Sham audits are left out: they belong to the levels of the audit.

        Parameters
        ----------
        alpha, tau
            The significance level and the least deviation; default: those of the audit.
        method, k
            What the headline is about, of what was run; default: the primary ones.
        """
        plan, own = self.plan, self.plan.settings
        chosen, size = plan.choose(method, k)
        settings = replace(
            own,
            alpha=own.alpha if alpha is None else alpha,
            tau=own.tau if tau is None else tau,
            evidence=replace(own.evidence, primary=(chosen.name, size)),
        )
        settings = settle_interval(settings)
        same = (settings.alpha, settings.tau) == (own.alpha, own.tau)
        if not same or settings.primary != own.primary:
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
        results = self.results
        if settings != own:
            results = assess(plan, grounds, like=results if same else None)
        return replace(self, plan=plan, grounds=grounds, results=replace(results, sham=None))

    def with_worldviews(
        self,
        worldviews: Mapping[str, Worldview] | None = None,
        *,
        variants: bool = False,
        progress: Callable[[int, int], None] = _ignore,
    ) -> Audit:
        """Return the same audit with its headline's verdicts under further worldviews.

        Findings, reports, case files and results then have the number of worldviews under which
        each verdict is the same or stronger, and name the others (docs/robustness.md). Worldviews
        that the audit had before are compared with again.

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
        """
        from mutandis.auditing.provenance import describe_settings
        from mutandis.auditing.robustness import find_robustness
        from mutandis.auditing.settle import settle_robustness
        from mutandis.auditing.worldviews import find_worldview_verdicts

        plan, doubt = self.plan, self.plan.settings.uncertainty
        wanted = replace(
            doubt,
            variants=variants or doubt.variants,
            worldviews={**(doubt.worldviews or {}), **(worldviews or {})} or None,
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
        """Return the same audit with words for its columns, values and outcomes.

        They change no number and no finding.
        """
        plan = self.plan.with_labels(labels)
        grounds = tuple(
            replace(each, plan=replace(each.plan, labels=labels)) for each in self.grounds
        )
        return replace(self, plan=plan, grounds=grounds)

    # --- documents and files ---

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
            Where to write it, whole or not at all: a file that ends in .html, .json or .pdf.
        redact
            Leave out all other people: the complainant's own record stays, with verdicts and coarse
            shares of groups of at least ten people.
        """
        from mutandis.report.case_file import case_document

        document = case_document(self, id, redact=redact)
        if path is not None:
            document.write(path)
        return document

    def report(
        self, path: str | PathLike[str] | None = None, *, diagnosis: Diagnosis | None = None
    ) -> Report:
        """Write the report: one HTML page that loads nothing, runs no script and prints well.

        Parameters
        ----------
        path
            Where to write it, whole or not at all; default: it is only returned.
        diagnosis
            What `plan.check_worldview()` returns; default: it is asked again.
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

    # --- how it is shown ---

    def _columns(self, method: str | None, k: int | None) -> dict[str, NDArray[Any]]:
        """Return the columns of findings, graded where they are the headline's."""
        from mutandis.auditing.robustness import add_robustness

        found = self.evaluate(method, k)
        if (found.method, found.k) == self.plan.settings.primary:
            found = add_robustness(self, found)
        return found.columns()

    def _people_columns(self, method: str | None, k: int | None) -> dict[str, NDArray[Any]]:
        columns = self._columns(method, k)
        # several interventions have no counterfactual in common
        other = self.ground.world.point if len(self.grounds) == 1 else None
        if self.ground.answer is not None:
            found = self.ground.answer.people
            names = ("step", "estimate", "low", "high", "p", "due_at_least")
            columns |= {name: getattr(found, name) for name in names}
        rows = self.study.people
        statuses = [each.attribute for each in self.plan.protections]
        for name in dict.fromkeys([*statuses, *(each.name for each in self.plan.attributes)]):
            title = f"attribute {name}" if name in columns else name
            columns[title] = values = plain_values(self.plan.population.part(name, rows))
            if other is not None and name not in statuses:
                would_be = plain_values(other.part(name, rows))
                if not np.array_equal(values, would_be):
                    columns[f"{name} (counterfactual)"] = would_be
        return columns

    def _frame(self, columns: Mapping[str, Any]) -> Any:
        return to_frame(columns, self.plan.population.source)

    def __repr__(self) -> str:
        """Summarise in a few lines."""
        from mutandis.auditing.robustness import summarise_grades
        from mutandis.auditing.support import caution_about_matches

        (method, k), labels = self.plan.settings.primary, self.plan.labels
        row = self.results.summaries[method, k].counts
        couplings = self.provenance.computed["couplings"].items()
        assumed = ", ".join(f"{each} for {labels.column(name)}" for name, each in couplings)
        run = (
            f"Audit of {len(self.plan.population):,} decisions, {row['complainants']:,} "
            f"complainants; methods {', '.join(self.methods)}; k = {', '.join(map(str, self.ks))}"
        )
        headline = (
            f"{method} at k={k}: evidence for {row['cases']:,} ({row['share']:.1%}), significant "
            f"for {row['significant']:,}, after adjustment for {row['significant_adjusted']:,}"
        )
        lines = [
            run,
            *map(repr, self.answers),
            headline,
            summarise_grades(self),
            *caution_about_matches(self.results.headline, labels),
            f"assumed, beyond what data can test: {assumed}" if assumed else "",
        ]
        return printable("\n".join(filter(None, lines)))

    def _repr_html_(self) -> str:
        """Show the summary and the counts in a notebook."""
        records = self.results.records()
        titles = {"cases_refused": f"cases {printable(self.plan.labels.negative)}"}
        cells = [[titles.get(name, name) for name in records[0]]]
        cells += [[_shown(value) for value in row.values()] for row in records]
        rows = [
            "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
            for row, tag in zip(cells, ["th", *["td"] * len(records)], strict=True)
        ]
        table = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<p>{escape(repr(self)).replace(chr(10), '<br>')}</p><table>{table}</table>"


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


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
