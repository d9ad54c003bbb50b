"""Everything short of the search: facts about a plan, a trial of b(), a check of the worldview."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.labels import PLAIN, Labels
from mutandis.decision.maker import decide
from mutandis.errors import printable
from mutandis.frames import open_frame
from mutandis.numeric.order import canonical_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.auditing.plan import Plan
    from mutandis.scm import Diagnosis

__all__ = ["PlanCheck", "check_plan"]

# enough to see whether the decision maker answers as agreed, few enough for one that is slow
_TRIAL = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """What can be said about an audit before it is run.

    Parameters
    ----------
    rows, dropped, compared_missing
        Decisions, and those left out for a missing value, by column.
    complainants, reference_rows
        Complainants by protected status, and the rows that they are compared with.
    outcomes, outcome
        What is on record, as it follows the number of decisions, and as plain data: the number of
        refusals, the range of a score, or the number of decisions at each level.
    methods, ks
        What the audit can run.
    distance, alike
        The name of the distance between people, which has been fitted, and what it measures.
    measure
        How differently two groups were treated, and from which value on it is evidence.
    asked, as_recorded
        The rows on which the decision maker was tried, and those on which it said what is on
        record; None without a decision maker.
    worldview
        What the table says about the worldview; None without one.
    labels, called, called_reference
        The words of sentences, what complainants of each status are called, and those whom they
        are compared with.
    """

    rows: int
    dropped: Mapping[str, int]
    compared_missing: Mapping[str, int]
    complainants: Mapping[str, int]
    reference_rows: int
    outcomes: str
    outcome: Mapping[str, Any]
    methods: tuple[str, ...]
    ks: tuple[int, ...]
    distance: str
    alike: str
    measure: Mapping[str, str]
    asked: int | None
    as_recorded: int | None
    worldview: Diagnosis | None
    labels: Labels = PLAIN
    called: Mapping[str, str] = field(default_factory=dict)
    called_reference: str = "people of the reference status"

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What the table says about the worldview, in the words of the labels."""
        return None if self.worldview is None else self.worldview.with_labels(self.labels)

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "rows": self.rows,
            "dropped": dict(self.dropped),
            **({"compared_missing": dict(self.compared_missing)} if self.compared_missing else {}),
            "complainants": dict(self.complainants),
            "reference_rows": self.reference_rows,
            **self.outcome,
            "methods": list(self.methods),
            "ks": list(self.ks),
            "distance": self.distance,
            "measure": dict(self.measure),
            "decision": None
            if self.asked is None
            else {"asked": self.asked, "as_recorded": self.as_recorded},
            "worldview": None if self.worldview is None else self.worldview.as_dict(),
        }

    def sentences(self) -> list[str]:
        """Say the facts in words; what is said about the worldview is in `worldview`."""
        who = ", ".join(
            f"{count:,} {self.called.get(label) or f'with status {label}'}"
            for label, count in self.complainants.items()
        )
        methods, ks = ", ".join(self.methods), ", ".join(map(str, self.ks))
        name, formula, evidence = (self.measure[each] for each in ("name", "formula", "evidence"))
        lines = [
            f"{self.rows:,} decisions{self.outcomes}",
            f"Complainants: {who}; {self.reference_rows:,} {self.called_reference}.",
            f"The audit can run {methods} at k = {ks}.",
            *([f"Distance {self.distance!r}: {self.alike}."] if self.alike else []),
            f"Measure {name!r}: {formula}; evidence is {evidence}.",
        ]
        if self.dropped:
            dropped = ", ".join(
                f"{count:,} for {self.labels.quoted(name)}" for name, count in self.dropped.items()
            )
            lines.append(f"Rows left out because a value is missing: {dropped}.")
        for name, count in self.compared_missing.items():
            lines.append(
                f"Missing values of {self.labels.quoted(name)} are compared, as different from all "
                f"others: {count:,}."
            )
        if self.asked is not None:
            lines.append(
                f"Asked about {self.asked:,} people, the decision maker answers, and says what is "
                f"on record for {self.as_recorded:,} of them."
            )
        return lines

    def __str__(self) -> str:
        """Show the sentences, those about the worldview last."""
        said = [] if self.diagnosis is None else ["", str(self.diagnosis)]
        return printable("\n".join([*self.sentences(), *said]))


def check_plan(plan: Plan) -> PlanCheck:
    """Try worldview and decision maker; nothing is searched."""
    asked, as_recorded = _try_decision(plan)
    settings, (outcomes, outcome) = plan.settings, plan.words.facts(plan.outcome)
    return PlanCheck(
        rows=len(plan.population),
        dropped=plan.population.dropped,
        compared_missing=plan.compared_missing,
        complainants={s.label: len(s.complainants) for s in plan.strata},
        reference_rows=len(plan.strata[0].test),
        outcomes=outcomes,
        outcome=outcome,
        methods=tuple(method.name for method in plan.methods),
        ks=plan.settings.ks,
        distance=_try_distance(plan),
        alike=settings.similarity.description,
        measure={
            "name": settings.measure.name,
            "formula": settings.measure.formula,
            "evidence": settings.measure.condition(settings.tau, worse=settings.worse),
        },
        asked=asked,
        as_recorded=as_recorded,
        worldview=plan.check_worldview(),
        labels=plan.labels,
        **_called(plan),
    )


def _called(plan: Plan) -> dict[str, Any]:
    """Say what people are called, where one attribute is protected and they have labels."""
    if len(plan.protections) > 1:
        return {}
    protection, labels = plan.protections[0], plan.labels
    name = protection.attribute
    named = {
        each.label: labels.people(name, each.label) or labels.level(name, each.label)
        for each in plan.strata
    }
    others = labels.people(name, protection.reference)
    said = {"called_reference": others} if others else {}
    return {"called": {label: each for label, each in named.items() if each != label}, **said}


def _try_distance(plan: Plan) -> str:
    """Fit the distance to the table: one that cannot be is refused here."""
    from mutandis.auditing.run import study_of

    distance = plan.settings.similarity.distance
    if distance != "gower":
        study_of(plan).embed()
    return distance


def _try_decision(plan: Plan) -> tuple[int | None, int | None]:
    """Ask b() about some rows, spread evenly over the table whatever the order of its rows."""
    if plan.decision is None:
        return None, None
    population, total = plan.population, len(plan.population)
    places = np.unique(np.linspace(0, total - 1, min(_TRIAL, total)).astype(np.intp))
    rows = canonical_order(population.columns, ids=population.ids)[places]
    some = open_frame(population.frame())[rows].to_native()
    decided = decide(plan.decision, some, plan.outcome)
    return len(rows), int((decided == plan.outcome.codes[rows]).sum())
