"""What a finished audit can be asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from mutandis.auditing.k_sweep import sweep_ks
from mutandis.auditing.placebo import run_placebo
from mutandis.auditing.shared_neighbours import measure_shared_neighbours
from mutandis.errors import PlanError
from mutandis.evidence.agreement import Agreement
from mutandis.evidence.methods import METHODS
from mutandis.frames import columns_of, to_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike

    from mutandis.auditing.placebo import Placebo
    from mutandis.auditing.provenance import Provenance
    from mutandis.auditing.run import AuditResult
    from mutandis.auditing.shared_neighbours import SharedNeighbours
    from mutandis.causal import Diagnosis
    from mutandis.evidence.case import Case
    from mutandis.evidence.findings import Findings
    from mutandis.pictures.picture import Picture
    from mutandis.report import CaseDocument, Report

__all__ = ["Audit", "Flips"]

# Findings follow from integer counts. They are kept once worked out, unless a large audit would
# fill the memory with them: a row of findings takes about 170 bytes.
_KEPT = 500_000


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
    _counted: dict[tuple[str, int], dict[str, Any]] = field(
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
        return [dict(self._counts(method, k)) for method in self.methods for k in self.ks]

    def findings(self, method: str | None = None, *, k: int | None = None) -> Any:
        """Give one row per complainant under one method and k; default: the primary ones."""
        primary_method, primary_k = self.result.plan.settings.primary
        found = self._findings(method or primary_method, primary_k if k is None else k)
        return to_frame(found.columns(), self._like)

    def each_findings(self) -> Iterator[Findings]:
        """Give the findings of every method and k, one after the other, in their compact form."""
        return (self._findings(method, k) for method in self.methods for k in self.ks)

    def support(self, method: str | None = None, *, k: int | None = None) -> Any:
        """Tell, for each complainant, how far away her groups are and what is usual there."""
        primary_method, primary_k = self.result.plan.settings.primary
        found = self._findings(method or primary_method, primary_k if k is None else k)
        return to_frame(self.result.support(METHODS[found.method], found.k).columns(), self._like)

    def k_sweep(self, ks: Iterable[int]) -> Any:
        """Count cases and average Δp for every method and any group sizes, from one search."""
        return to_frame(columns_of(sweep_ks(self.result, ks)), self._like)

    def plot_k_sweep(self, ks: Iterable[int]) -> Picture:
        """Draw how the share of cases and the mean Δp depend on k."""
        from mutandis.pictures.findings import plot_k_sweep

        titles = {method.name: method.title for method in self.result.plan.methods}
        return plot_k_sweep(sweep_ks(self.result, ks), titles=titles)

    def case(self, id: Any) -> Case:  # noqa: A002 - the public name
        """Give everything about one complainant: her results under all methods and k."""
        # one after the other: all findings of a large audit would not fit into memory
        findings = (((m, k), self._findings(m, k)) for m in self.methods for k in self.ks)
        return self.result.case(id, findings)

    def part(self, attribute: str) -> Audit:
        """Give the audit of one attribute, where several were audited one by one ("multiple")."""
        parts = self.result.parts
        if attribute not in parts:
            known = ", ".join(map(repr, parts)) or "none: combine='multiple' makes them"
            raise PlanError(f"This audit has no part {attribute!r}. It has {known}.")
        return Audit(parts[attribute])

    def agreement(self, *, k: int | None = None) -> Agreement:
        """See which methods find the same cases at one k; default: the primary one."""
        size = self.result.plan.settings.primary[1] if k is None else k
        found = {method: self._findings(method, size) for method in self.methods}
        return Agreement.of_methods(found, k=size, like=self._like)

    def counterfactuals(self) -> Any:
        """Give D^CF: the table as it would have been, or None if the audit has none.

        Its outcome column holds the counterfactual outcomes; it has none if nobody decided them.
        The table can be handed to another audit as `counterfactuals=`.
        """
        return self.result.counterfactual_table()

    def shared_neighbours(self, *, k: int | None = None) -> SharedNeighbours:
        """Measure how much control groups overlap: how far many tests are one test."""
        k = self.result.plan.settings.primary[1] if k is None else k
        self._check_k(k)
        return measure_shared_neighbours(self.result, k)

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

    def placebo(
        self,
        *,
        repeats: int = 20,
        seed: int = 0,
        kind: Literal["a", "b", "both"] = "both",
        ks: Iterable[int] | None = None,
    ) -> Placebo:
        """Run the same audit where there is nothing to find: its noise floor (docs/placebo.md).

        Kind "a" draws a pseudo-protected group from the reference rows, "b" draws outcomes that
        leave CST nothing but the counterfactual shift, "both" is all of this that can be done.
        """
        return run_placebo(
            self.result,
            repeats=repeats,
            seed=seed,
            kind=kind,
            ks=ks,
        )

    def case_file(
        self,
        id: Any,  # noqa: A002 - the public name
        path: str | PathLike[str] | None = None,
        *,
        redact: bool = False,
        source: Mapping[str, Any] | None = None,
    ) -> CaseDocument:
        """Collect everything about one complainant in a document that can be handed over.

        Parameters
        ----------
        id
            The complainant.
        path
            Where to write it, whole or not at all: a file that ends in .html, .json or .pdf.
        redact
            Replace ids, coarsen values and withhold small numbers of the people she is compared
            with; her own data and the verdict stay.
        source
            What is known of where the table came from, listed under the provenance.
        """
        from mutandis.report import case_document

        found = {(method, k): self._findings(method, k) for method in self.methods for k in self.ks}
        document = case_document(self.result, id, redact=redact, source=source, findings=found)
        if path is not None:
            document.write(path)
        return document

    def report(
        self,
        path: str | PathLike[str] | None = None,
        *,
        placebo: Placebo | None = None,
        diagnosis: Diagnosis | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> str:
        """Write the report: one HTML page that loads nothing, runs no script and prints well.

        Parameters
        ----------
        path
            Where to write it, whole or not at all; left out, it is only given back.
        placebo
            What `placebo()` has given, to be shown beside the findings.
        diagnosis
            What `worldview.check` has given; asked again if left out.
        source
            What is known of where the table came from, listed under the data.

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
        >>> "evidence for discrimination of 1 of 2 complainants (50.0%)" in found.report()
        True
        """
        from mutandis.files.text_files import write_atomically

        html = self.make_report(placebo=placebo, diagnosis=diagnosis, source=source).html
        if path is not None:
            write_atomically(path, html)
        return html

    def make_report(
        self,
        *,
        placebo: Placebo | None = None,
        diagnosis: Diagnosis | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> Report:
        """Give the report with its pictures as SVG; the parameters are those of `report`."""
        from mutandis.report import make_report

        return make_report(
            self.result, self._findings, placebo=placebo, diagnosis=diagnosis, source=source
        )

    def __repr__(self) -> str:
        """Summarise in two lines."""
        method, k = self.result.plan.settings.primary
        row = self._counts(method, k)
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
        self._check_k(k)
        if (method, k) in self._cache:
            return self._cache[method, k]
        found = self.result.findings(METHODS[method], k)
        if len(found) * len(self.methods) * len(self.ks) <= _KEPT:
            self._cache[method, k] = found
        return found

    def _counts(self, method: str, k: int) -> dict[str, Any]:
        if (method, k) not in self._counted:
            self._counted[method, k] = self.result.count(METHODS[method], k)
        return self._counted[method, k]

    def _check_k(self, k: int) -> None:
        if k not in self.ks:
            raise PlanError(f"k={k} was not run. This audit ran k = {list(self.ks)}.")
