"""Everything short of the search: facts about a plan, a trial of b(), a check of the worldview."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.decision.maker import decide
from mutandis.errors import printable
from mutandis.frames import open_frame
from mutandis.numeric.order import canonical_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.auditing.plan import Plan
    from mutandis.scm import Diagnosis

__all__ = ["PlanCheck", "check_plan"]

# enough to see whether the decision maker answers as agreed, few enough for one that is slow
_TRIAL = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """What can be said about an audit before it is run."""

    plan: Plan
    # rows on which the decision maker was tried, and those on which it agreed with the record;
    # None without a decision maker
    asked: int | None
    as_recorded: int | None
    worldview: Diagnosis | None  # what the table says about the worldview; None without one

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What the table says about the worldview, in the words of the labels."""
        return None if self.worldview is None else self.worldview.with_labels(self.plan.labels)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        plan, settings = self.plan, self.plan.settings
        missing, tried = plan.compared_missing, self.asked is not None
        return {
            "rows": len(plan.population),
            "dropped": dict(plan.population.dropped),
            **({"compared_missing": missing} if missing else {}),
            "complainants": {each.label: len(each.complainants) for each in plan.strata},
            "reference_rows": len(plan.strata[0].test),
            **plan.words.facts(plan.outcome)[1],
            "methods": [method.name for method in plan.methods],
            "ks": list(settings.ks),
            "distance": settings.similarity.distance,
            "measure": {
                "name": settings.measure.name,
                "formula": settings.measure.formula,
                "evidence": settings.measure.condition(settings.tau, worse=settings.worse),
            },
            "decision": {"asked": self.asked, "as_recorded": self.as_recorded} if tried else None,
            "worldview": None if self.worldview is None else self.worldview.as_dict(),
        }

    def sentences(self) -> list[str]:
        """Describe the facts in words, without those about the worldview."""
        return list(self._sentences())

    def _sentences(self) -> Iterator[str]:
        facts, plan = self.as_dict(), self.plan
        called, reference = _called(plan)
        who = ", ".join(
            f"{count:,} {called.get(label) or f'with status {label}'}"
            for label, count in facts["complainants"].items()
        )
        yield f"{facts['rows']:,} decisions{plan.words.facts(plan.outcome)[0]}"
        yield f"Complainants: {who}; {facts['reference_rows']:,} {reference}."
        ks = ", ".join(map(str, facts["ks"]))
        yield f"The audit can run {', '.join(facts['methods'])} at k = {ks}."
        if plan.settings.similarity.description:
            yield f"Distance {facts['distance']!r}: {plan.settings.similarity.description}."
        name, formula, evidence = facts["measure"].values()
        yield f"Measure {name!r}: {formula}; evidence is {evidence}."
        quoted = plan.labels.quoted
        if facts["dropped"]:
            dropped = ", ".join(f"{n:,} for {quoted(name)}" for name, n in facts["dropped"].items())
            yield f"Rows left out because a value is missing: {dropped}."
        for name, count in plan.compared_missing.items():
            yield (
                f"Missing values of {quoted(name)} are compared, as different from all others: "
                f"{count:,}."
            )
        if self.asked is not None:
            yield (
                f"Asked about {self.asked:,} people, the decision maker answers, and says what is "
                f"on record for {self.as_recorded:,} of them."
            )

    def __str__(self) -> str:
        """Show the sentences, those about the worldview last."""
        said = [] if self.diagnosis is None else ["", str(self.diagnosis)]
        return printable("\n".join([*self.sentences(), *said]))


def _called(plan: Plan) -> tuple[dict[str, str], str]:
    """Return what complainants of each status are called, where they have labels, and others."""
    others = "people of the reference status"
    if len(plan.protections) > 1:
        return {}, others
    (protection,), labels = plan.protections, plan.labels
    name = protection.attribute
    named = {
        each.label: labels.people(name, each.label) or labels.level(name, each.label)
        for each in plan.strata
    }
    return (
        {label: each for label, each in named.items() if each != label},
        labels.people(name, protection.reference) or others,
    )


def check_plan(plan: Plan) -> PlanCheck:
    """Try distance, decision maker and worldview; nothing is searched."""
    from mutandis.auditing.run import study_of

    asked, as_recorded = _try_decision(plan)
    if plan.settings.similarity.distance != "gower":
        study_of(plan).embed()  # a distance that cannot be fitted is refused here
    return PlanCheck(
        plan=plan, asked=asked, as_recorded=as_recorded, worldview=plan.check_worldview()
    )


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
