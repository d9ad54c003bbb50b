"""Two texts that others ask for, in Markdown: a prima facie summary, and a section of a model card.

They say what the report says, in the order in which their readers ask. Neither is legal advice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from mutandis.errors import PlanError, suggest
from mutandis.report.context import ReportContext
from mutandis.report.formatting import count, listed, percent, plural
from mutandis.report.sentences import describe_headline, summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mutandis.auditing.audit import Audit

__all__ = ["ComplianceText", "write_text"]

ComplianceText = Literal["prima-facie", "model-card"]

_NOT_ADVICE: Final = (
    "This text states what a statistical audit found. It is not legal advice, and no finding that "
    "the law was broken: whether these facts shift a burden of proof, and whether the other side "
    "discharges it, is for a court to decide."
)


def write_text(audit: Audit, kind: str) -> str:
    """Write a text that others ask for, in Markdown (docs/compliance.md).

    Parameters
    ----------
    audit
        The audit that it reports.
    kind
        "prima-facie", a summary for the question of who has to prove what, or "model-card", a
        section of a model card. Neither is legal advice.
    """
    if kind not in _WRITERS:
        raise PlanError(
            f"{kind!r} is not a text that can be written.{suggest(kind, _WRITERS)} Allowed: "
            f"{', '.join(_WRITERS)}."
        )
    lines = _WRITERS[kind](ReportContext(audit=audit))
    return "\n\n".join(lines) + "\n"


def _prima_facie(context: ReportContext) -> Iterator[str]:
    outcome = context.labels.column(context.plan.outcome.column)
    yield f"# Prima facie summary: {_text(outcome)}, {_text(context.grounds)}"
    yield (
        "*Burden of proof.* In Great Britain, section 136 of the Equality Act 2010 asks for facts "
        "from which the court could decide, in the absence of any other explanation, that there "
        "was a contravention; it then holds that there was, unless the other side shows that there "
        "was not. In the European Union, Article 19(1) of Directive 2006/54/EC (sex), Article 8(1) "
        "of Directive 2000/43/EC (race and ethnic origin) and Article 10(1) of Directive "
        "2000/78/EC (religion or belief, disability, age, sexual orientation; employment) ask for "
        "facts from which it may be presumed that there has been discrimination; it is then for "
        "the respondent to prove that there has been no breach."
    )
    yield "## The facts"
    for said in summarise(context):
        yield _text(said)
    yield _table(_counts(context))
    yield "## How they were compared"
    yield _bullets(_compared(context))
    yield "## What they rest on"
    yield _bullets(_rests_on(context))
    yield "## What they leave to be explained"
    yield _bullets(_left_to_explain(context))
    yield _repeat(context)
    yield f"*{_NOT_ADVICE}*"


def _left_to_explain(context: ReportContext) -> Iterator[str]:
    yield (
        "A reason for the difference that is not in the table, and that has nothing to do with "
        f"{context.grounds}."
    )
    if context.source_of_counterfactuals:
        yield (
            "A counterfactual that is not the right one: how far the verdicts depend on it is part "
            "of the report."
        )
    yield "Whether a justification is one in law. The audit knows none."


def _model_card(context: ReportContext) -> Iterator[str]:
    audit, plan = context.audit, context.plan
    row = context.headline.counts()
    yield "## Individual discrimination (counterfactual situation testing)"
    yield (
        f"**Decisions audited.** {_text(plural(len(plan.population), 'decision'))} on "
        f"`{_code(context.labels.column(plan.outcome.column))}`; {_text(context.refused)} is the "
        "unfavourable outcome. "
        f"**Ground.** {_text(context.grounds)}: {_text(context.complainants)}, compared with "
        f"{_text(context.others)}. **Alike in.** "
        f"{_text(listed(context.labels.column(each.name) for each in plan.attributes))}."
    )
    adjusted = plan.settings.evidence.adjust != "none"
    number = row["significant_adjusted"] if adjusted else row["significant"]
    yield (
        f"**Headline.** {_text(context.where)}: a pattern that chance alone hardly explains for "
        f"{count(number)} of {plural(row['complainants'], 'complainant')} "
        f"({percent(number / row['complainants'])}"
        f"{', all tests taken into account' if adjusted else ', each test by itself'}). "
        f"{_text(describe_headline(audit))}"
    )
    yield "### Quantitative analysis"
    yield _table(_counts(context))
    yield _bullets(_compared(context))
    yield "### Caveats"
    yield _bullets([*_rests_on(context), _NOT_ADVICE])
    yield _repeat(context)


_WRITERS: Final[dict[str, Callable[[ReportContext], Iterator[str]]]] = {
    "prima-facie": _prima_facie,
    "model-card": _model_card,
}


def _counts(context: ReportContext) -> list[list[str]]:
    rows = [["Method", "k", "Evidence", "Significant", "After adjustment", "Complainants"]]
    for method in context.methods:
        for k in context.plan.settings.ks:
            row = context.audit.count(method.name, k)
            tested = method.count_neighbours
            rows.append(
                [
                    method.title,
                    str(k) if tested else "any",
                    count(row["cases"]),
                    count(row["significant"]) if tested else "no test",
                    count(row["significant_adjusted"]) if tested else "no test",
                    count(row["complainants"]),
                ]
            )
            if not tested:
                break
    return rows


def _compared(context: ReportContext) -> Iterator[str]:
    settings = context.plan.settings
    measure = settings.measure
    yield (
        f"Measure: {measure.name}, {measure.formula}; evidence is "
        f"{measure.condition(settings.tau, worse=context.worse)}."
    )
    yield (
        f"Test: one-sided at the level {settings.alpha:g} ({settings.interval}), adjusted by "
        f"{settings.evidence.adjust}."
    )
    yield f"Headline: {context.where}."
    column = context.labels.column
    yield f"Alike in {listed(column(each.name) for each in context.plan.attributes)}."
    source = context.source_of_counterfactuals
    yield f"Counterfactuals from {source}." if source else "No counterfactuals were needed."


def _rests_on(context: ReportContext) -> Iterator[str]:
    yield "What is not in the table is not seen: attributes, people who never applied, reasons."
    if context.source_of_counterfactuals:
        yield (
            f"Every figure of a counterfactual method is conditional on "
            f"{context.source_of_counterfactuals}, which no test here examines."
        )
    yield "A pattern is a finding about similar people, not about the complainant."
    yield from context.audit.cautions()


def _repeat(context: ReportContext) -> str:
    provenance = context.audit.provenance
    return (
        f"Computed by mutandis {_text(str(provenance.versions['mutandis']))} with the seed "
        f"{context.plan.settings.seed or 0} from a table with the SHA-256 "
        f"`{provenance.data['sha256']}`; all settings are in the record of the audit."
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    first, *others = [[_text(cell) for cell in row] for row in rows]
    rule = ["---" if place == 0 else "--:" for place in range(len(first))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [first, rule, *others])


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_text(line)}" for line in lines)


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$&!])")


def _text(shown: str) -> str:
    """Write names and values of the table so that no Markdown and no HTML is made of them."""
    return _SPECIAL.sub(r"\\\1", " ".join(shown.split()))


def _code(shown: str) -> str:
    return " ".join(shown.split()).replace("`", "'")
