"""The two answers of a case as sentences that can be read out in court: pattern and own case.

The wording is careful on purpose. A comparison of groups provides prima facie evidence *for* a
pattern of discrimination against people like the complainant: it may shift the burden of
explanation, and the other side may explain. No sentence here claims more, what is true of people
like the complainant is not said of the complainant, and the absence of evidence is not called an
absence of discrimination.
"""

from __future__ import annotations

from collections import Counter
from math import isnan
from typing import TYPE_CHECKING, Any, Literal

from mutandis.data.labels import PLAIN, Labels
from mutandis.engine.tally import METHODS, Center
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mutandis.auditing.plan import Plan
    from mutandis.engine.tally import Method

__all__ = [
    "CHANCE",
    "Answer",
    "answer_own_case",
    "describe_claim",
    "explain",
    "explain_drawn",
    "explain_own_case",
    "explain_small",
    "explain_unfit",
    "list_reasons",
]

Answer = Literal["yes", "no", "not known", "withheld"]

_UNTOLD = (
    "and what was decided on the people most like the complainant's own counterfactual is not told "
    "here"
)
# of more values than these, the range says more than a list
_FEW = 8


# --- the pattern ---------------------------------------------------------------------------------


def explain(result: Mapping[str, Any], method: str, k: int, plan: Plan) -> str:
    """Describe the pattern in one sentence, from a complainant's row of the findings."""
    result = plan.outcome.kind.plain(result)
    asked, verdict = METHODS[method], Verdict(result["verdict"])
    if verdict is Verdict.INSUFFICIENT:
        similarity, centers = plan.settings.similarity, int(asked.count_centers)
        reason = explain_unfit(result["unfit"], plan.labels) or explain_small(
            result["n_control"] - centers,
            result["n_test"] - centers,
            max_distance=similarity.max_distance,
            min_group=similarity.min_group,
        )
        return (
            f"{_subject(asked, k)} gives no answer about complainant {result['id']}: there are "
            f"{'too few' if not result['unfit'] else 'no comparable'} people to compare with, "
            f"since {reason}."
        )
    weakest = ", the figures being those of the attribute with the weakest evidence"
    note = weakest if plan.combine == "multiple" else ""
    claim = describe_claim(verdict, asked, k, result["id"], plan)
    return f"{claim}: {_comparison(result, asked, plan)}{_chance(result, plan)}{note}."


def describe_claim(verdict: str, method: Method, k: int, person: Any, plan: Plan) -> str:
    """Name what there is evidence for: "… provides prima facie evidence for …"."""
    given = f", given {_basis(plan)}," if method.needs_counterfactual else ""
    found = "no evidence" if verdict == Verdict.NO_EVIDENCE else "prima facie evidence"
    claim = "discrimination against" if _worse(plan) else "favourable treatment of"
    if method.count_neighbours:  # groups are about people like the complainant
        claim = f"a pattern of {claim} people like"
    names = " and ".join(plan.labels.quoted(each.attribute) for each in plan.protections)
    ground = {
        None: f"the ground of {names}",
        "multiple": f"each of the grounds {names}",
        "intersectional": f"the combination of the grounds {names}",
    }[plan.combine]
    return (
        f"{_subject(method, k)}{given} provides {found} for {claim} complainant {person} on "
        f"{ground}"
    )


def _subject(method: Method, k: int) -> str:
    return f"{method.title} with k = {k}" if method.count_neighbours else method.title


def _basis(plan: Plan) -> str:
    return "the worldview" if plan.worldview is not None else "the counterfactuals supplied"


def _worse(plan: Plan) -> bool:
    return plan.settings.evidence.direction == "negative"


def _comparison(result: Mapping[str, Any], method: Method, plan: Plan) -> str:
    words = plan.words
    delta = words.delta(result["delta_p"], decisions=not method.count_neighbours)
    beyond = f"{delta}, {_beyond(result, plan)}"
    if not method.count_neighbours:
        return (
            f"the outcome on record is {words.value(result['outcome'])}, the outcome of the "
            f"counterfactual would be {words.value(result['outcome_cf'])} ({beyond})"
        )
    control, test = words.averages(result["p_control"], result["p_test"])
    others = "who are not protected on all of the grounds"
    if plan.settings.similarity.test_space == "reference":
        others = "of the reference status"
    if method.matched:
        return (
            f"{control[0]} the control group (the {result['n_control']} of the "
            f"same protected status most like the complainant) {control[1]}, "
            f"against {test} the test group ({result['rows_test']} "
            f"{others} who are like the counterfactuals of that control group, counted as "
            f"{result['n_effective']:.0f}; {beyond})"
        )
    around = "the complainant"
    if method.center is Center.COUNTERFACTUAL:
        around = "the complainant's counterfactual"
    also = (", the complainant included", ", itself included") if method.count_centers else ("", "")
    return (
        f"{control[0]} the control group ({result['n_control']} of the same protected "
        f"status{also[0]}) {control[1]}, against {test} the test group "
        f"({result['n_test']} {others} around {around}{also[1]}; {beyond})"
    )


def _beyond(result: Mapping[str, Any], plan: Plan) -> str:
    """Compare with the threshold: "more than τ = 0.1"; of a ratio, "less than 1/τ = 0.8"."""
    measure, tau, worse = plan.settings.measure, plan.settings.tau, _worse(plan)
    negated = "not " if result["verdict"] == Verdict.NO_EVIDENCE else ""
    if measure.is_ratio:
        more = "more" if measure.above(worse=worse) else "less"
        threshold = f"{'' if worse else '1/'}τ = {measure.threshold(tau, worse=worse):g}"
        return f"{measure.describe(result[measure.column])}, {negated}{more} than {threshold}"
    sign = "-" if tau and not worse else ""
    return f"{negated}{'more' if worse else 'less'} than {sign}τ = {sign}{tau:g}"


CHANCE = {
    Verdict.NO_EVIDENCE: ", which does not rule it out",
    Verdict.EVIDENCE: ", a difference that chance may explain",
    Verdict.SIGNIFICANT: ", a difference that chance alone hardly explains when the case is taken "
    "by itself",
    Verdict.SIGNIFICANT_ADJUSTED: ", a difference that chance alone hardly explains, all "
    "complainants tested taken into account",
}
"""What chance explains, by the verdict."""


def _chance(result: Mapping[str, Any], plan: Plan) -> str:
    """Describe what chance explains, with the p-value or q-value."""
    p_value, q_value, verdict = result["p_value"], result["q_value"], Verdict(result["verdict"])
    said, level = CHANCE[verdict], f"at the level α = {plan.settings.alpha:g}"
    if verdict is Verdict.NO_EVIDENCE:
        return said
    if verdict is Verdict.SIGNIFICANT_ADJUSTED:
        return f"{said} ({_p('q', q_value)} {level})"
    if isnan(p_value):
        return f", {plan.words.untested(several=result['n_control'] > 1)}"
    said = f"{said} ({_p('p', p_value)} {level})"
    if verdict is Verdict.EVIDENCE:
        return said
    if isnan(q_value):
        return f"{said}, not adjusted for the number of complainants tested"
    return (
        f"{said}, but may explain when all complainants tested are taken into account "
        f"({_p('q', q_value)})"
    )


def _p(name: str, value: float) -> str:
    return f"{name} < 0.001" if value < 0.001 else f"{name} = {value:.3f}"


# --- the own case --------------------------------------------------------------------------------


def answer_own_case(result: Mapping[str, Any], plan: Plan, *, withheld: bool = False) -> Answer:
    """Return whether a complainant has a case of their own, from a row of the matched comparison.

    `withheld` leaves out what was decided on others, who are too few to be told of.
    """
    result = plan.outcome.kind.plain(result)
    if not plan.words.is_concerned(result["outcome"], worse=_worse(plan)):
        return "no"
    own = result["own_case"]
    if withheld and result["p_own"] is not None:
        return "withheld"
    return "not known" if own is None else "yes" if own else "no"


def explain_own_case(result: Mapping[str, Any], plan: Plan, *, withheld: bool = False) -> str:
    """Describe the complainant's decision, and those on people like their own counterfactual."""
    result, words = plan.outcome.kind.plain(result), plan.words
    answer = answer_own_case(result, plan, withheld=withheld)
    who, decided = f"complainant {result['id']}", words.had(result["outcome"])
    if words.is_concerned(result["outcome"], worse=_worse(plan)):
        others = _own_matches(result, plan) if answer != "withheld" else _UNTOLD
        said = f"{who} {decided}, {others}"
    elif _has_pattern(result):
        said = f"{who} is part of the pattern, but {decided}"
    else:
        said = f"{who} {decided}"
    return f"Own case: {answer}. {said[0].upper()}{said[1:]}.{_second_reading(result, plan)}"


def _has_pattern(result: Mapping[str, Any]) -> bool:
    """Return whether there is a pattern after adjustment, or without it where none was made."""
    verdict = Verdict(result["verdict"])
    unadjusted = verdict is Verdict.SIGNIFICANT and isnan(result["q_value"])
    return verdict is Verdict.SIGNIFICANT_ADJUSTED or unadjusted


def _own_matches(result: Mapping[str, Any], plan: Plan) -> str:
    if result["p_own"] is None:
        return "and no people were matched to the complainant's own counterfactual in this audit"
    if isnan(result["p_own"]):
        return (
            "and no people are near enough to the complainant's own counterfactual to compare with"
        )
    own = bool(result["own_case"])
    tau = plan.settings.tau
    return plan.words.own_matches(result["p_own"], has_case=own, worse=_worse(plan), tau=tau)


def _second_reading(result: Mapping[str, Any], plan: Plan) -> str:
    """Compare the decision on the complainant with that on their counterfactual."""
    if result["outcome_cf"] is None:
        return ""
    decided = plan.words.counterfactual(result["outcome_cf"], result["outcome"])
    return f" A second reading, given {_basis(plan)}: the counterfactual {decided}."


# --- reasons and values --------------------------------------------------------------------------


def explain_small(
    n_control: int, n_test: int, *, max_distance: float | None, min_group: int
) -> str:
    """Name the groups that are too small, in people apart from centers; empty if none is."""

    def people(size: int) -> str:
        return "no people" if size == 0 else "1 person" if size == 1 else f"{size} people"

    sizes = {"control": n_control, "test": n_test}
    small = [(name, size) for name, size in sizes.items() if size < min_group]
    if not small:
        return ""
    where = "" if max_distance is None else f" within distance {max_distance:g}"
    parts = [f"the {name} group holds {people(size)}{where}" for name, size in small[:1]]
    parts += [f"the {name} group {people(size)}" for name, size in small[1:]]
    least = "one is" if min_group == 1 else f"{min_group} are"
    return f"{' and '.join(parts)}, and at least {least} asked for"


def explain_unfit(unfit: str, labels: Labels = PLAIN) -> str:
    """Describe why matched groups are not comparable; empty if they are."""
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
    """Count the complainants who cannot be compared by reason, the most frequent first.

    Reasons beyond `most` are counted together.
    """
    found = sorted(Counter(unfit).items(), key=lambda each: (-each[1], each[0]))
    said = [
        f"for {number:,}, {explain_unfit(reason, labels) or small}"
        for reason, number in found[:most]
    ]
    rest = sum(number for _, number in found[len(said) :])
    return "; ".join([*said, f"for {rest:,}, other reasons"] if rest else said)


def explain_drawn(
    value: Any, drawn: Sequence[tuple[Any, float]], show: Callable[[Any], str]
) -> str:
    """Describe how likely an open counterfactual value is; empty if it is not open.

    `drawn` are the values in draws with their shares, the most frequent first.

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
    shares = dict(drawn)
    share = shares.get(value, 0.0)
    if isinstance(value, float) and (share == 0 or len(shares) > _FEW):
        return f"drawn from {show(min(shares))} to {show(max(shares))}"
    top, most = drawn[0]
    if share == most:
        return f"most likely, {share:.0%} of draws"
    return f"{share:.0%} of draws; most likely {show(top)}, {most:.0%}"
