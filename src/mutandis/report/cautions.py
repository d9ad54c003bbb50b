"""What limits a report's findings: counted where it can be counted, said where it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.auditing.shared_neighbours import measure_shared_neighbours
from mutandis.errors import PlanError
from mutandis.report.formatting import by_value, count, listed, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.auditing.run import AuditResult
    from mutandis.causal import Diagnosis
    from mutandis.report.context import Material

__all__ = ["Caution", "cautions_of", "diagnose", "diagnosis_sentences"]

# of sentences that only reassure; problems are all said
_MOST_SENTENCES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """One thing to know; `serious` ones are said in the summary too."""

    about: str
    sentence: str
    serious: bool = False


def diagnose(material: Material) -> Diagnosis | None:
    """Check the worldview against the table, if there is one."""
    plan = material.plan
    if plan.worldview is None:
        return None
    return plan.worldview.check(
        plan.population, protected=plan.protection.attribute, do=dict(plan.do)
    )


def diagnosis_sentences(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Give what the diagnosis says; of very many sentences the first, which are the problems."""
    said = diagnosis.sentences()
    most = max(_MOST_SENTENCES, len(diagnosis.problems) + 1)
    if len(said) <= most:
        return said
    left_out = plural(len(said) - most, "further sentence")
    return (*said[:most], f"{left_out} without a problem; worldview.check() gives them all.")


def cautions_of(material: Material, diagnosis: Diagnosis | None) -> tuple[Caution, ...]:
    """Collect what limits the findings, in the order of the pipeline."""
    return (
        *_rows_dropped(material),
        *_of_worldview(material, diagnosis),
        *_of_counterfactuals(material),
        *_of_decision(material),
        *_of_groups(material),
        *_of_tests(material),
        *_of_semantics(material),
    )


def _rows_dropped(material: Material) -> Iterator[Caution]:
    dropped = material.plan.population.dropped
    if dropped:
        said = listed(f"{count(number)} for {name}" for name, number in dropped.items())
        yield Caution(
            about="Missing values",
            sentence=f"Rows left out because a value is missing, by the column that lacks it: "
            f"{said}. Who lacks a value may differ from who does not.",
        )
    else:
        yield Caution(about="Missing values", sentence="No row was left out for a missing value.")


def _of_worldview(material: Material, diagnosis: Diagnosis | None) -> Iterator[Caution]:
    if diagnosis is not None and diagnosis.problems:
        yield Caution(
            about="The worldview and the data",
            sentence=f"The table contradicts the worldview: {_problems(diagnosis)} in "
            f"{plural(diagnosis.tests, 'test')}. Counterfactuals may be biased; see the section "
            "on the worldview.",
            serious=True,
        )
    for part, result in material.parts.items():
        held = result.provenance.computed["held"]
        if held:
            yield Caution(
                about=f"Resolving attributes{material.by_part(part)}",
                sentence=f"{listed(held)} kept as on record, although the status affects "
                f"{'it' if len(held) == 1 else 'them'}: the worldview says that the decision may "
                "rightly use what is there.",
            )


def _problems(diagnosis: Diagnosis) -> str:
    return plural(len(diagnosis.problems), "problem")


def _of_counterfactuals(material: Material) -> Iterator[Caution]:
    if material.plan.counterfactuals is not None:
        yield Caution(
            about="Counterfactuals",
            sentence="The counterfactuals were supplied as a table. How they were made is not "
            "known here and was not checked.",
        )
    for part, result in material.parts.items():
        clipped = {name: number for name, number in result.clipped.items() if number}
        if clipped:
            rows = len(material.plan.population)
            said = listed(
                f"{count(number)} of {name} ({percent(number / rows)} of all rows)"
                for name, number in clipped.items()
            )
            yield Caution(
                about=f"Values moved to their bounds{material.by_part(part)}",
                sentence=f"Counterfactual values that the equations led beyond what can be, and "
                f"that were moved to the bounds: {said}.",
            )
    couplings = material.result.provenance.computed["couplings"]
    for coupling, names in by_value(couplings).items():
        yield Caution(
            about=f"Assumed for {listed(names)}",
            sentence=f"{'Its' if len(names) == 1 else 'Their'} counterfactuals rest on {coupling}, "
            "which no data can test.",
        )


def _of_decision(material: Material) -> Iterator[Caution]:
    agreement = material.result.with_record
    plan = material.plan
    if agreement is not None:
        rows = agreement.rows
        yield Caution(
            about="The decision maker and the record",
            sentence=f"b(X) gives the outcome on record in {count(rows - agreement.differing)} of "
            f"{plural(rows, 'row')} ({percent(1 - agreement.disagreement)})."
            + (
                ""
                if not agreement.differing
                else " Where it does not, counterfactual outcomes answer for another decision "
                "maker than the one who decided."
            ),
            serious=agreement.disagreement > 0.05,
        )
    elif plan.counterfactuals is not None and plan.counterfactuals.is_negative is not None:
        yield Caution(
            about="The decision maker",
            sentence="The outcomes of counterfactuals came with the table of counterfactuals.",
        )
    else:
        yield Caution(
            about="The decision maker",
            sentence="Nobody could be asked for new decisions: outcomes are those on record. "
            "Methods that need the outcome of a counterfactual were not run.",
        )


def _of_groups(material: Material) -> Iterator[Caution]:
    method, k = material.primary
    insufficient = material.headline.comparison.insufficient
    if insufficient.any():
        settings = material.plan.settings
        limit = (
            "" if settings.max_distance is None else f" within distance {settings.max_distance:g}"
        )
        yield Caution(
            about="Too few comparable people",
            sentence=f"{count(int(insufficient.sum()))} of "
            f"{plural(len(insufficient), 'complainant')} have fewer than {settings.min_group} "
            f"people{limit} in a group and get no verdict ({material.where}).",
        )
    if not any(each.count_neighbours for each in material.methods):
        return
    for part, result in material.parts.items():
        try:
            shared = measure_shared_neighbours(result, k)
        except PlanError:  # the preset keeps no groups that could be measured
            pass
        else:
            yield Caution(
                about=f"Shared neighbours{material.by_part(part)}",
                sentence=shared.sentence(),
                serious=shared.strong,
            )
        if method.count_neighbours:
            yield from _of_support(material, part, result)


def _of_support(material: Material, part: str, result: AuditResult) -> Iterator[Caution]:
    method, k = material.primary
    try:
        support = result.support(method, k)
    except PlanError:
        return
    everybody = len(support.ids)
    far = int((support.control.off_support | support.test.off_support).sum())
    outside = int(np.any(list(support.outside.values()), axis=0).sum()) if support.outside else 0
    center = "counterfactual" if method.needs_counterfactual else "own values"
    yield Caution(
        about=f"Support{material.by_part(part)}",
        sentence=f"{count(far)} of {plural(everybody, 'complainant')} ({percent(far / everybody)}) "
        "have a group that reaches farther than 99 of 100 groups in that space; for "
        f"{count(outside)} the {center} {'lies' if method.needs_counterfactual else 'lie'} beyond "
        f"all people they are compared with on some attribute ({material.where}).",
        serious=far > 0.1 * everybody,
    )


def _of_tests(material: Material) -> Iterator[Caution]:
    settings, found = material.plan.settings, material.headline
    if not material.primary[0].count_neighbours:
        return
    degenerate = int((found.comparison.interval.degenerate & found.comparison.significant).sum())
    if degenerate:
        yield Caution(
            about="Intervals of no width",
            sentence=f"{plural(degenerate, 'significant case')} of {material.where} rest on an "
            f"interval without width ({settings.interval}: all were refused in one group and "
            "nobody in the other). Their significance is not worth the name.",
            serious=True,
        )
    if settings.adjust == "none":
        yield Caution(
            about="Many tests",
            sentence=f"p-values were not adjusted for {plural(len(found), 'complainant')}: with "
            f"nothing to find, about {percent(settings.alpha)} of them would be significant.",
            serious=True,
        )


def _of_semantics(material: Material) -> Iterator[Caution]:
    caution = material.plan.semantics.caution
    if caution:
        yield Caution(about="Preset", sentence=caution)
