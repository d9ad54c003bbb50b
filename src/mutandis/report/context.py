"""What documents are made of: an audit, its findings, and the words for who is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mutandis.decision.maker import required_columns
from mutandis.engine.tally import CST_MATCHED
from mutandis.report.formatting import listed, plural
from mutandis.report.graph_plot import draw_worldview

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.data.labels import Labels
    from mutandis.data.protection import Protection
    from mutandis.engine.tally import Method
    from mutandis.outcomes.outcome import Words
    from mutandis.report.chart import Picture
    from mutandis.verdicts.findings import Findings

__all__ = ["ReportContext", "draw_plan", "read_by_decision", "record_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContext:
    """An audit with its findings, and the words for who is compared with whom."""

    audit: Audit

    def findings(self, method: str, k: int) -> Findings:
        """Return verdicts, shares and p-values; bounds take long for many, and few are shown."""
        return self.audit.evaluate(method, k, depth="significance")

    @property
    def plan(self) -> Plan:
        return self.audit.plan

    @property
    def labels(self) -> Labels:
        return self.plan.labels

    @property
    def words(self) -> Words:
        """How outcomes, averages and differences are written."""
        return self.plan.words

    @property
    def worse(self) -> bool:
        """Whether worse treatment is looked for, not better."""
        return self.plan.settings.evidence.direction == "negative"

    @property
    def methods(self) -> tuple[Method, ...]:
        return self.plan.methods

    @property
    def primary(self) -> tuple[Method, int]:
        name, k = self.plan.settings.primary
        return next(method for method in self.methods if method.name == name), k

    @property
    def headline(self) -> Findings:
        return self.findings(*self.plan.settings.primary)

    @property
    def own(self) -> NDArray[Any] | None:
        """Whether each complainant has a case of their own; None where people were not matched."""
        if CST_MATCHED not in self.methods:
            return None
        return self.findings(CST_MATCHED.name, self.primary[1]).has_own_case

    @property
    def parts(self) -> Mapping[str, Audit]:
        """The audits with groups of their own: one by attribute, or just this one, unnamed."""
        return self.audit.parts

    @property
    def where(self) -> str:
        """What the headline is about: "CST (w/o) with k = 30"."""
        method, k = self.primary
        return f"{method.title} with k = {k}" if method.count_neighbours else method.title

    @property
    def grounds(self) -> str:
        """The protected attributes, in quotation marks."""
        return listed(f"“{self.labels.column(each.attribute)}”" for each in self.plan.protections)

    @property
    def complainants(self) -> str:
        """Who complains, by their label or their protected values: "women", "Gender = 1"."""
        return self._called or self._conditions

    @property
    def people(self) -> str:
        """The same of people: "women", "people with Gender = 1"."""
        return self._called or f"people with {self._conditions}"

    def count_people(self, number: int) -> str:
        """How many people they are: "5 women", "5 people with Gender = 1"."""
        if self._called and number != 1:
            return f"{number:,} {self._called}"
        return f"{plural(number, 'person', 'people')} with {self._conditions}"

    @property
    def _conditions(self) -> str:
        return " and ".join(_protected(each, self.labels) for each in self.plan.protections)

    @property
    def _called(self) -> str | None:
        """What complainants are called, where all of their statuses have a label."""
        protection = self.plan.protections[0]
        column = self.plan.population.categories(protection.attribute)
        others = [each for each in column.occurring() if each != protection.reference]
        return self._labels_of(protection.values or others)

    def _labels_of(self, values: Sequence[Any]) -> str | None:
        """Join the labels of people with these values of the one protected attribute."""
        attribute = self.plan.protections[0].attribute
        names = [self.labels.people(attribute, each) for each in values]
        if len(self.plan.protections) > 1 or None in names:
            return None
        return listed(names)

    @property
    def reference(self) -> str:
        """What status the counterfactual takes: "men", "Gender = 0"."""
        # multiple discrimination intervenes on each ground by itself
        together = " or " if self.plan.combine == "multiple" else " and "
        return together.join(
            self._reference_people or self.labels.equals(each.attribute, each.reference)
            for each in self.plan.protections
        )

    @property
    def _reference_people(self) -> str | None:
        return self._labels_of([self.plan.protections[0].reference])

    @property
    def others(self) -> str:
        """With whom complainants are compared."""
        if self.plan.settings.similarity.test_space == "complement":
            return f"everyone but {self._called or f'those with {self._conditions}'}"
        return self._reference_people or f"people with {self.reference}"

    @property
    def source_of_counterfactuals(self) -> str:
        """Where counterfactuals come from; empty if there are none."""
        if self.plan.worldview is not None:
            return "the worldview"
        return "" if self.plan.counterfactuals is None else "the counterfactuals supplied"

    @property
    def decided_worlds(self) -> list[tuple[str, NDArray[Any]]]:
        """The counterfactual worlds that were decided on: the status there, and the outcomes.

        Where counterfactuals are open, outcomes are averaged over draws.
        """
        references = {
            each.attribute: self.labels.equals(each.attribute, each.reference)
            for each in self.plan.protections
        }
        return [
            (references.get(part, self.reference), outcomes)
            for part, audit in self.parts.items()
            if (outcomes := audit.ground.expected()) is not None
        ]

    def by_part(self, part: str) -> str:
        """Name the attribute that a part intervenes on, in brackets; empty where there is one."""
        return f" (do {self.labels.column(part)})" if part else ""


def _protected(protection: Protection, labels: Labels) -> str:
    name = protection.attribute
    if not protection.values:
        return f"{labels.column(name)} other than {labels.level(name, protection.reference)}"
    values = [labels.level(name, each) for each in protection.values]
    return f"{labels.column(name)} = {listed(values, last='or')}"


def read_by_decision(plan: Plan) -> list[str]:
    """List the attributes of the worldview that the decision maker is known to read."""
    if plan.decision is None or plan.worldview is None:
        return []
    return [name for name in required_columns(plan.decision) if name in plan.worldview.names]


def draw_plan(plan: Plan) -> Picture | None:
    """Draw the worldview of a plan, and what its decision reads or people are compared on."""
    if plan.worldview is None:
        return None
    return draw_worldview(
        plan.worldview,
        protected=[each.attribute for each in plan.protections],
        outcome=plan.outcome.column,
        decision_inputs=read_by_decision(plan),
        compared=[each.name for each in plan.attributes],
        label=plan.labels.column,
    )


def record_of(audit: Audit) -> dict[str, Any]:
    """Return the provenance of an audit, with what is known of where its table came from."""
    origin = audit.plan.origin
    source = None
    if origin is not None:
        source = {name: each for name, each in origin.source.items() if each is not None}
    return {**audit.provenance.as_dict(), "source": source}
