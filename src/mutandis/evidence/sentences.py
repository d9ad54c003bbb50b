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
from mutandis.data.wording import SHARES, Wording
from mutandis.evidence.findings import Verdict, as_shares
from mutandis.evidence.measures import RISK_DIFFERENCE
from mutandis.evidence.methods import METHODS, Center

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mutandis.evidence.measures import Measure
    from mutandis.evidence.methods import Method

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
    negative: Any  # the unfavourable outcome value, or a name for all of them
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
    negatives: tuple[Any, ...] = ()  # the unfavourable ones of several classes
    note: str = ""  # what must be said about the figures; empty if nothing
    labels: Labels = PLAIN  # what columns, values and outcomes are called
    said: Callable[[Any], str] = str  # what an outcome value is called
    measure: Measure = RISK_DIFFERENCE  # what τ is a threshold of
    wording: Wording = SHARES  # how averages and differences are written

    def is_negative(self, outcome: Any) -> bool:
        return bool(outcome == self.negative) or outcome in self.negatives

    def decided(self, outcome: Any) -> str:
        """Say what was decided, as it follows "she was"."""
        return self.labels.decided(self.is_negative(outcome))


def explain(result: Mapping[str, Any], method: str, k: int, context: ExplanationContext) -> str:
    """Say in one sentence what a complainant's row of the findings means: the pattern."""
    result = as_shares(result)
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
    result = as_shares(result)
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
    result = as_shares(result)
    answer = answer_about_her(result, context, withheld=withheld)
    who = f"complainant {result['id']}"
    outcome = result["outcome"]
    decided = f"was {context.decided(outcome)} (outcome {context.said(outcome)})"
    if context.wording.scale is not None:
        decided = f"had the {context.wording.score} {context.said(outcome)}"
    if not _is_concerned(result, context):
        said = f"{who} herself {decided}"
        said = f"{who} is part of the pattern: she herself {decided}" if _found(result) else said
    else:
        others = _own_matches(result, context) if answer != "withheld" else _UNTOLD
        said = f"{who} {decided}, {others}"
    return f"Own case: {answer}. {said[0].upper()}{said[1:]}.{_second_reading(result, context)}"


def _is_concerned(result: Mapping[str, Any], context: ExplanationContext) -> bool:
    """Whether her own outcome is the one that is looked for; a score always is."""
    if context.wording.scale is not None:
        return True
    return context.is_negative(result["outcome"]) == (context.direction == "negative")


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
    if context.wording.scale is not None:
        return _own_mean(result, context)
    others, share = "of the people most like her own counterfactual", f"{result['p_own']:.1%}"
    yes = "although fewer than half", "although more than half"
    no = "and not fewer than half", "and not more than half"
    how_many = (yes if result["own_case"] else no)[context.direction == "positive"]
    return f"{how_many} {others} were {context.labels.negative} ({share})"


def _own_mean(result: Mapping[str, Any], context: ExplanationContext) -> str:
    """Set her own score or level beside those of her own matches."""
    wording, worse = context.wording, context.direction == "negative"
    beside = f"{wording.average(result['p_own'])} on average"
    if wording.levels:
        beside = f"θ = {wording.number(result['p_own'])}, where ½ is neither worse nor better"
    by = f" by more than τ = {context.tau:g}" if context.tau else ""
    that = "those" if wording.levels else "that"
    than = f"{'worse' if worse else 'better'} than {that} of the people most like her own"
    negated = "" if result["own_case"] else "not "
    return f"{negated}{than} counterfactual{by} ({beside})"


def _second_reading(result: Mapping[str, Any], context: ExplanationContext) -> str:
    """Set the decision on her beside that on her counterfactual, where there is one."""
    if result["outcome_cf"] is None:
        return ""
    if context.wording.scale is not None:
        return (
            f" A second reading, given {context.given}: her counterfactual would have had the "
            f"{context.wording.score} {context.said(result['outcome_cf'])}."
        )
    same = context.is_negative(result["outcome_cf"]) == context.is_negative(result["outcome"])
    likewise, worlds = result.get("decided_likewise") or (0, "")
    return (
        f" A second reading, given {context.given}: her counterfactual would have been "
        f"{context.decided(result['outcome_cf'])} (outcome {context.said(result['outcome_cf'])}), "
        f"{'as she was' if same else 'unlike her'}"
        f"{f'; the rule decides so in {likewise} of {worlds}' if worlds else ''}."
    )


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
    beyond, wording = _beyond(result, context), context.wording
    # of one decision, the difference is a whole number
    places = 0 if wording.scale is None and not method.count_neighbours else 3
    delta = f"{wording.symbol} = {result['delta_p']:.{places}f}"
    if wording.levels:
        theta = wording.number(result["delta_p"] + 1 / 2)
        delta = f"θ = {theta}, Δ = θ − ½ = {wording.number(result['delta_p'])}"
    elif wording.scale is not None:
        delta = f"{wording.symbol} = {wording.number(result['delta_p'])}"
    if not method.count_neighbours:
        return (
            f"the outcome on record is {context.said(result['outcome'])}, the outcome of the "
            f"counterfactual would be {context.said(result['outcome_cf'])} "
            f"({delta}, {beyond})"
        )
    control, test = _averages(result, context)
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


def _averages(result: Mapping[str, Any], context: ExplanationContext) -> tuple[Any, str]:
    """Say what was decided on average: words around the control group, and before the test one."""
    wording = context.wording
    here, there = (wording.average(result[name]) for name in ("p_control", "p_test"))
    if wording.scale is None:
        return (f"{here} of", f"had the outcome {context.said(context.negative)}"), f"{there} of"
    if wording.levels:
        return ("of all pairs,", f"had the worse {wording.score} in {here}"), f"{there} for"
    return (f"the mean {wording.score} of", f"was {here}"), f"{there} in"


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
        several = result["n_control"] > 1 and context.wording.scale is not None
        return (
            ", a difference between too few people to be tested"
            if several and context.wording.levels
            else ", a difference of means of too few people to be tested"
            if several
            else ", a single comparison to which no test applies"
        )
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
