"""A verdict as one sentence that can be read out in court.

The wording is careful on purpose. A comparison of groups provides prima facie evidence *for*
discrimination: it may shift the burden of explanation, and the other side may explain. No sentence
here claims more, and the absence of evidence is not called an absence of discrimination.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Literal

from mutandis.evidence.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["MethodWords", "Terms", "explain", "explain_insufficient"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodWords:
    """What sentences say about a method.

    Parameters
    ----------
    title
        Its name in words.
    around
        Around whom the test group was searched.
    given
        What its answer rests on beside the records; empty if nothing.
    counts_neighbours
        Whether groups of people are compared, or the search centers alone.
    centers
        How many search centers each group holds beside the people found (0 or 1).
    """

    title: str
    around: str
    given: str
    counts_neighbours: bool
    centers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What sentences about a case need to know of its audit.

    Parameters
    ----------
    ground
        The protected ground, as it follows the word "on".
    negative
        The unfavourable outcome value.
    alpha, tau, direction
        The level, the minimum deviation, and whether worse or better treatment is looked for.
    max_distance, min_group
        How far away people may be who are compared, and how few a group may hold.
    primary
        The method and k of the headline.
    methods
        The words for each method that was run.
    others
        Who is in the test groups.
    note
        What must be said about the figures; empty if nothing.
    """

    ground: str
    negative: Any
    alpha: float
    tau: float
    direction: Literal["negative", "positive"]
    max_distance: float | None
    min_group: int
    primary: tuple[str, int]
    methods: Mapping[str, MethodWords]
    others: str = "of the reference status"
    note: str = ""


def explain(result: Mapping[str, Any], method: str, k: int, terms: Terms) -> str:
    """Say in one sentence what a complainant's row of the findings means.

    Examples
    --------
    >>> words = MethodWords(
    ...     title="ST", around="the complainant", given="", counts_neighbours=True, centers=0
    ... )
    >>> terms = Terms(
    ...     ground="the ground of 'Gender'",
    ...     negative="no",
    ...     alpha=0.05,
    ...     tau=0.0,
    ...     direction="negative",
    ...     max_distance=0.1,
    ...     min_group=5,
    ...     primary=("st", 15),
    ...     methods={"st": words},
    ... )
    >>> row = {"id": 44, "verdict": "insufficient", "n_control": 15, "n_test": 3}
    >>> print(explain(row, "st", 15, terms))
    ST with k = 15 gives no answer about complainant 44: there are too few people to compare with,
    since the test group holds 3 people within distance 0.1, and at least 5 are asked for.
    """
    words = terms.methods[method]
    verdict = Verdict(result["verdict"])
    subject = f"{words.title} with k = {k}" if words.counts_neighbours else words.title
    if verdict is Verdict.INSUFFICIENT:
        reason = explain_insufficient(
            result["n_control"] - words.centers,
            result["n_test"] - words.centers,
            max_distance=terms.max_distance,
            min_group=terms.min_group,
        )
        return (
            f"{subject} gives no answer about complainant {result['id']}: there are too few people "
            f"to compare with, since {reason}."
        )
    given = f", given {words.given}," if words.given else ""
    found = "no evidence" if verdict is Verdict.NO_EVIDENCE else "prima facie evidence"
    return (
        f"{subject}{given} provides {found} for {_claim(terms)} complainant {result['id']} on "
        f"{terms.ground}: {_comparison(result, words, terms)}{_CHANCE[verdict](result, terms)}"
        f"{terms.note}."
    )


def explain_insufficient(
    n_control: int, n_test: int, *, max_distance: float | None, min_group: int
) -> str:
    """Say which group is too small, in people beside the search centers; empty if none is.

    Examples
    --------
    >>> explain_insufficient(0, 1, max_distance=0.1, min_group=2)
    'the control group holds nobody within distance 0.1 and the test group 1 person, and at least...
    """
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


def _people(size: int) -> str:
    if size == 0:
        return "nobody"
    return "1 person" if size == 1 else f"{size} people"


def _claim(terms: Terms) -> str:
    return "discrimination against" if terms.direction == "negative" else "favourable treatment of"


def _comparison(result: Mapping[str, Any], words: MethodWords, terms: Terms) -> str:
    beyond = _beyond(result, terms)
    if not words.counts_neighbours:
        return (
            f"the outcome on record is {result['outcome']}, the outcome of the counterfactual "
            f"would be {result['outcome_cf']} (Δp = {result['delta_p']:.0f}, {beyond})"
        )
    return (
        f"{result['p_control']:.1%} of the control group ({result['n_control']} of the same "
        f"protected status{', the complainant included' if words.centers else ''}) had the outcome "
        f"{terms.negative}, against {result['p_test']:.1%} of the test group ({result['n_test']} "
        f"{terms.others} around {words.around}{', itself included' if words.centers else ''}; "
        f"Δp = {result['delta_p']:.3f}, {beyond})"
    )


def _beyond(result: Mapping[str, Any], terms: Terms) -> str:
    sign, more = ("", "more") if terms.direction == "negative" else ("-", "less")
    threshold = f"{sign if terms.tau else ''}τ = {sign if terms.tau else ''}{terms.tau:g}"
    negated = "not " if result["verdict"] == Verdict.NO_EVIDENCE else ""
    return f"{negated}{more} than {threshold}"


def _nothing_shown(result: Mapping[str, Any], terms: Terms) -> str:  # noqa: ARG001
    return ", which does not rule it out"


def _perhaps_chance(result: Mapping[str, Any], terms: Terms) -> str:
    if isnan(result["p_value"]):
        return ", a single comparison to which no test applies"
    return (
        f", a difference that chance may explain ({_p('p', result['p_value'])} "
        f"at the level α = {terms.alpha:g})"
    )


def _hardly_chance(result: Mapping[str, Any], terms: Terms) -> str:
    others = (
        "not adjusted for the number of complainants tested"
        if isnan(result["q_value"])
        else "but may explain when all complainants tested are taken into account "
        f"({_p('q', result['q_value'])})"
    )
    return (
        f", a difference that chance alone hardly explains when the case is taken by itself "
        f"({_p('p', result['p_value'])} at the level α = {terms.alpha:g}), {others}"
    )


def _hardly_chance_at_all(result: Mapping[str, Any], terms: Terms) -> str:
    return (
        f", a difference that chance alone hardly explains, all complainants tested taken into "
        f"account ({_p('q', result['q_value'])} at the level α = {terms.alpha:g})"
    )


_CHANCE: dict[Verdict, Callable[[Mapping[str, Any], Terms], str]] = {
    Verdict.NO_EVIDENCE: _nothing_shown,
    Verdict.EVIDENCE: _perhaps_chance,
    Verdict.SIGNIFICANT: _hardly_chance,
    Verdict.SIGNIFICANT_ADJUSTED: _hardly_chance_at_all,
}


def _p(name: str, value: float) -> str:
    return f"{name} < 0.001" if value < 0.001 else f"{name} = {value:.3f}"
