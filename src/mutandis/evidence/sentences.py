"""Two answers as sentences that can be read out in court: the pattern, and her own case.

The wording is careful on purpose. A comparison of groups provides prima facie evidence *for* a
pattern of discrimination against people like the complainant: it may shift the burden of
explanation, and the other side may explain. No sentence here claims more, what is true of people
like her is not said of her, and the absence of evidence is not called an absence of discrimination.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Literal

from mutandis.data.labels import PLAIN, Labels
from mutandis.engine.methods import METHODS, Center
from mutandis.outcomes.binary import SHARES
from mutandis.outcomes.measures import RISK_DIFFERENCE
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mutandis.engine.methods import Method
    from mutandis.outcomes.measures import Measure
    from mutandis.outcomes.words import Words

__all__ = [
    "Answer",
    "ExplanationContext",
    "answer_about_her",
    "explain",
    "explain_drawn",
    "explain_insufficient",
    "explain_own_case",
    "explain_unfit",
    "list_reasons",
]


Answer = Literal["yes", "no", "not known", "withheld"]

_UNTOLD = "and what was decided on the people most like her own counterfactual is not told here"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationContext:
    """What sentences about a case need to know of its audit."""

    ground: str  # the protected ground, as it follows the word "on"
    # the level, the minimum deviation, and whether worse or better treatment is looked for
    alpha: float
    tau: float
    direction: Literal["negative", "positive"]
    # how far away people may be who are compared, and how few a group may hold
    max_distance: float | None
    min_group: int
    primary: tuple[str, int]  # the method and k of the headline
    given: str = "the worldview"  # what counterfactual methods rest on beside the records
    others: str = "of the reference status"  # who is in the test groups
    note: str = ""  # what must be said about the figures; empty if nothing
    labels: Labels = PLAIN  # what columns, values and outcomes are called
    measure: Measure = RISK_DIFFERENCE  # what τ is a threshold of
    words: Words = SHARES  # how outcomes, averages and differences are written

    @property
    def worse(self) -> bool:
        """Whether worse treatment is looked for."""
        return self.direction == "negative"


def explain(result: Mapping[str, Any], method: str, k: int, context: ExplanationContext) -> str:
    """Say in one sentence what a complainant's row of the findings means: the pattern."""
    result = context.words.kind.plain(result)
    asked = METHODS[method]
    verdict = Verdict(result["verdict"])
    subject = f"{asked.title} with k = {k}" if asked.count_neighbours else asked.title
    if verdict is Verdict.INSUFFICIENT:
        reason = explain_unfit(result["unfit"], context.labels) or explain_insufficient(
            result["n_control"] - int(asked.count_centers),
            result["n_test"] - int(asked.count_centers),
            max_distance=context.max_distance,
            min_group=context.min_group,
        )
        return (
            f"{subject} gives no answer about complainant {result['id']}: there are "
            f"{'too few' if not result['unfit'] else 'no comparable'} people to compare with, "
            f"since {reason}."
        )
    given = f", given {context.given}," if asked.needs_counterfactual else ""
    found = "no evidence" if verdict is Verdict.NO_EVIDENCE else "prima facie evidence"
    compared, chance = _comparison(result, asked, context), _CHANCE[verdict](result, context)
    return (
        f"{subject}{given} provides {found} for {_claim(asked, context)} complainant "
        f"{result['id']} on {context.ground}: {compared}{chance}{context.note}."
    )


def answer_about_her(
    result: Mapping[str, Any], context: ExplanationContext, *, withheld: bool = False
) -> Answer:
    """Answer whether she has a case of her own, from a row of the matched comparison.

    `withheld` leaves out what was decided on others, who are too few to be told of.
    """
    result = context.words.kind.plain(result)
    if not _is_concerned(result, context):
        return "no"
    own = result["own_case"]
    if withheld and result["p_own"] is not None:
        return "withheld"
    return "not known" if own is None else "yes" if own else "no"


def explain_own_case(
    result: Mapping[str, Any], context: ExplanationContext, *, withheld: bool = False
) -> str:
    """Say what was decided on her, and on the people like her own counterfactual."""
    result = context.words.kind.plain(result)
    answer = answer_about_her(result, context, withheld=withheld)
    who = f"complainant {result['id']}"
    decided = context.words.had(result["outcome"])
    if not _is_concerned(result, context):
        said = f"{who} herself {decided}"
        said = f"{who} is part of the pattern: she herself {decided}" if _found(result) else said
    else:
        others = _own_matches(result, context) if answer != "withheld" else _UNTOLD
        said = f"{who} {decided}, {others}"
    return f"Own case: {answer}. {said[0].upper()}{said[1:]}.{_second_reading(result, context)}"


def _is_concerned(result: Mapping[str, Any], context: ExplanationContext) -> bool:
    """Whether the complainant's own outcome is one that is looked for."""
    return context.words.is_concerned(result["outcome"], worse=context.worse)


def _found(result: Mapping[str, Any]) -> bool:
    """Whether there is a pattern, as headlines count them: after adjustment, if that was made."""
    verdict = Verdict(result["verdict"])
    unadjusted = verdict is Verdict.SIGNIFICANT and isnan(result["q_value"])
    return verdict is Verdict.SIGNIFICANT_ADJUSTED or unadjusted


def _own_matches(result: Mapping[str, Any], context: ExplanationContext) -> str:
    if result["p_own"] is None:
        return "and people were not matched to her own counterfactual in this audit"
    if isnan(result["p_own"]):
        return "and there are no people near enough to her own counterfactual to compare with"
    return context.words.own_matches(
        result["p_own"], has_case=bool(result["own_case"]), worse=context.worse, tau=context.tau
    )


def _second_reading(result: Mapping[str, Any], context: ExplanationContext) -> str:
    """Compare the decision on the complainant with that on their counterfactual."""
    if result["outcome_cf"] is None:
        return ""
    decided = context.words.counterfactual(result["outcome_cf"], result["outcome"])
    likewise, worlds = result.get("decided_likewise") or (0, "")
    likewise = f"; the rule decides so in {likewise} of {worlds}" if worlds else ""
    return f" A second reading, given {context.given}: her counterfactual {decided}{likewise}."


def explain_insufficient(
    n_control: int, n_test: int, *, max_distance: float | None, min_group: int
) -> str:
    """Say which group is too small, in people beside the search centers; empty if none is."""
    small = [
        (name, size)
        for name, size in (("control", n_control), ("test", n_test))
        if size < min_group
    ]
    if not small:
        return ""
    where = "" if max_distance is None else f" within distance {max_distance:g}"
    parts = [f"the {name} group holds {_people(size)}{where}" for name, size in small[:1]]
    parts += [f"the {name} group {_people(size)}" for name, size in small[1:]]
    least = "one is" if min_group == 1 else f"{min_group} are"
    return f"{' and '.join(parts)}, and at least {least} asked for"


def explain_unfit(unfit: str, labels: Labels = PLAIN) -> str:
    """Say why matched groups are not comparable; empty if they are."""
    if unfit == "far":
        return "most people in the control group have no match as near as the control group reaches"
    return f"the averages of both groups differ in {labels.quoted(unfit)}" if unfit else ""


def list_reasons(
    unfit: Iterable[str],
    *,
    most: int | None = None,
    small: str = "groups are too small",
    labels: Labels = PLAIN,
) -> str:
    """Say for how many complainants each reason holds that they cannot be compared.

    The most frequent reasons come first; beyond `most`, they are counted together.
    """
    found = sorted(Counter(unfit).items(), key=lambda each: (-each[1], each[0]))
    said = [
        f"for {number:,}, {explain_unfit(reason, labels) or small}"
        for reason, number in found[:most]
    ]
    rest = sum(number for _, number in found[len(said) :])
    return "; ".join([*said, f"for {rest:,}, other reasons"] if rest else said)


# of more values than these, the range says more than a list
_FEW = 8


def explain_drawn(
    value: Any, drawn: Sequence[tuple[Any, float]], show: Callable[[Any], str]
) -> str:
    """Say how likely a counterfactual value is that the facts leave open; empty if they do not.

    `drawn` are the values in draws, each with the share of them, the most frequent first.

    Examples
    --------
    >>> explain_drawn("cook", [("cook", 0.6), ("clerk", 0.4)], str)
    'most likely, 60% of draws'
    >>> explain_drawn(2.0, [(3.0, 0.6), (2.0, 0.4)], "{:g}".format)
    '40% of draws; most likely 3, 60%'
    >>> explain_drawn(2.0, [(1.7, 0.5), (2.1, 0.5)], str)
    'drawn from 1.7 to 2.1'
    """
    if not drawn:
        return ""
    share = dict(drawn).get(value, 0.0)
    values = [each for each, _ in drawn]
    if isinstance(value, float) and (share == 0 or len(values) > _FEW):
        return f"drawn from {show(min(values))} to {show(max(values))}"
    top, most = drawn[0]
    if share == most:
        return f"most likely, {share:.0%} of draws"
    return f"{share:.0%} of draws; most likely {show(top)}, {most:.0%}"


def _people(size: int) -> str:
    if size == 0:
        return "no people"
    return "1 person" if size == 1 else f"{size} people"


def _claim(method: Method, context: ExplanationContext) -> str:
    """Name what there is evidence for: groups tell of people like her, and not of herself."""
    claim = (
        "discrimination against" if context.direction == "negative" else "favourable treatment of"
    )
    return f"a pattern of {claim} people like" if method.count_neighbours else claim


def _comparison(result: Mapping[str, Any], method: Method, context: ExplanationContext) -> str:
    beyond, words = _beyond(result, context), context.words
    delta = words.delta(result["delta_p"], decisions=not method.count_neighbours)
    if not method.count_neighbours:
        return (
            f"the outcome on record is {words.value(result['outcome'])}, the outcome of the "
            f"counterfactual would be {words.value(result['outcome_cf'])} "
            f"({delta}, {beyond})"
        )
    control, test = words.averages(result["p_control"], result["p_test"])
    if method.matched:
        return (
            f"{control[0]} the control group (the {result['n_control']} of the "
            f"same protected status most like the complainant) {control[1]}, "
            f"against {test} the test group ({result['rows_test']} "
            f"{context.others} who are like the counterfactuals of that control group, counted as "
            f"{result['n_effective']:.0f}; {delta}, {beyond})"
        )
    around = "the complainant"
    if method.center is Center.COUNTERFACTUAL:
        around = "the complainant's counterfactual"
    centered = method.count_centers
    return (
        f"{control[0]} the control group ({result['n_control']} of the same "
        f"protected status{', the complainant included' if centered else ''}) {control[1]}, "
        f"against {test} the test group "
        f"({result['n_test']} {context.others} around {around}"
        f"{', itself included' if centered else ''}; {delta}, {beyond})"
    )


def _beyond(result: Mapping[str, Any], context: ExplanationContext) -> str:
    if context.measure.is_ratio:
        return _ratio_beyond(result, context)
    sign, more = ("", "more") if context.direction == "negative" else ("-", "less")
    threshold = f"{sign if context.tau else ''}τ = {sign if context.tau else ''}{context.tau:g}"
    negated = "not " if result["verdict"] == Verdict.NO_EVIDENCE else ""
    return f"{negated}{more} than {threshold}"


def _ratio_beyond(result: Mapping[str, Any], context: ExplanationContext) -> str:
    """Say "risk ratio = 1.500, more than τ = 1.25"; of better treatment, "less than 1/τ = 0.8"."""
    measure, worse = context.measure, context.direction == "negative"
    more = "more" if measure.above(worse=worse) else "less"
    threshold = f"{'' if worse else '1/'}τ = {measure.threshold(context.tau, worse=worse):g}"
    negated = "not " if result["verdict"] == Verdict.NO_EVIDENCE else ""
    return f"{measure.describe(result[measure.column])}, {negated}{more} than {threshold}"


def _nothing_shown(result: Mapping[str, Any], context: ExplanationContext) -> str:  # noqa: ARG001
    return ", which does not rule it out"


def _perhaps_chance(result: Mapping[str, Any], context: ExplanationContext) -> str:
    if isnan(result["p_value"]):
        return f", {context.words.untested(several=result['n_control'] > 1)}"
    return (
        f", a difference that chance may explain ({_p('p', result['p_value'])} "
        f"at the level α = {context.alpha:g})"
    )


def _hardly_chance(result: Mapping[str, Any], context: ExplanationContext) -> str:
    others = (
        "not adjusted for the number of complainants tested"
        if isnan(result["q_value"])
        else "but may explain when all complainants tested are taken into account "
        f"({_p('q', result['q_value'])})"
    )
    return (
        f", a difference that chance alone hardly explains when the case is taken by itself "
        f"({_p('p', result['p_value'])} at the level α = {context.alpha:g}), {others}"
    )


def _hardly_chance_at_all(result: Mapping[str, Any], context: ExplanationContext) -> str:
    return (
        f", a difference that chance alone hardly explains, all complainants tested taken into "
        f"account ({_p('q', result['q_value'])} at the level α = {context.alpha:g})"
    )


_CHANCE: dict[Verdict, Callable[[Mapping[str, Any], ExplanationContext], str]] = {
    Verdict.NO_EVIDENCE: _nothing_shown,
    Verdict.EVIDENCE: _perhaps_chance,
    Verdict.SIGNIFICANT: _hardly_chance,
    Verdict.SIGNIFICANT_ADJUSTED: _hardly_chance_at_all,
}


def _p(name: str, value: float) -> str:
    return f"{name} < 0.001" if value < 0.001 else f"{name} = {value:.3f}"
