"""The choices of a plan, checked one against the other, with defaults for those left open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from mutandis.auditing.doubt import DRAWS, REFITS
from mutandis.config.schema import Evidence
from mutandis.data.protection import (
    Combine,
    ComparedWith,
    Protection,
    draw_joint_strata,
    draw_multiple_strata,
    largest_sound_k,
)
from mutandis.decision.maker import BooleanMaker, LevelMaker
from mutandis.decision.model import as_decision_maker, as_scoring_maker
from mutandis.engine.tally import METHODS, Method
from mutandis.errors import PlanError
from mutandis.outcomes import owner_of
from mutandis.scm import Worldview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.config.schema import Uncertainty
    from mutandis.data.attribute import Attribute
    from mutandis.data.population import Population
    from mutandis.data.protection import Stratum
    from mutandis.decision.maker import DecisionMaker
    from mutandis.outcomes.outcome import Declaration

__all__ = [
    "apart_from",
    "check_missing",
    "check_sources",
    "check_worldview",
    "choose_methods",
    "draw_spaces",
    "read_maker",
    "read_protections",
    "settle_doubt",
    "settle_evidence",
    "settle_primary",
    "settle_robustness",
]

# from here on, what a table says about coefficients is doubted only if asked for
_FEW_ROWS = 2_000
_TIPPING_ROWS = 10_000


# --- who complains --------------------------------------------------------------------------------


def read_protections(
    protected: Protection | Sequence[Protection],
    combine: Combine | None,
    *,
    attributes: Sequence[Attribute],
    outcome: str,
    worldview: Worldview | None,
) -> tuple[Protection, ...]:
    """Read one protection, or several and how they are combined; refuse a column in two roles.

    In an audit of multiple discrimination one attribute is intervened on at a time: the others may
    be listed among the attributes, and then enter the distance.
    """
    if combine is not None and combine not in get_args(Combine):
        raise PlanError(f"combine={combine!r} is unknown. Allowed: {', '.join(get_args(Combine))}.")
    several = tuple(protected) if isinstance(protected, list | tuple) else (protected,)
    if not several:
        raise PlanError("protected= is an empty list. Give at least one Protection.")
    if len(several) > 1:
        _check_several(several, combine)
    elif combine is not None:
        raise PlanError(
            f"combine={combine!r} needs at least two protections, and there is one. "
            "Leave combine out, or give a list of protections."
        )
    for each in several:
        listed = apart_from(attributes, [each]) if combine == "multiple" else attributes
        _check_roles(listed, each, outcome=outcome)
        if worldview is not None:
            check_worldview(worldview, each, outcome=outcome)
    return several


def _check_several(several: Sequence[Protection], combine: Combine | None) -> None:
    for each in several:
        if not isinstance(each, Protection):
            raise PlanError(
                f"protected= holds {type(each).__name__} among its protections. "
                "Write [Protection('race', reference='white'), Protection('sex', …)]."
            )
    if combine is None:
        raise PlanError(
            f"{len(several)} protections, and no word on how they are combined. Give "
            "combine='multiple' (discrimination on every one of these attributes, each by itself) "
            "or combine='intersectional' (on all of them together)."
        )
    if len({each.attribute for each in several}) < len(several):
        raise PlanError(
            "Two protections are about the same attribute. Name all its protected values in one "
            "Protection: each is compared with the reference by itself."
        )


def _check_roles(attributes: Sequence[Attribute], protected: object, *, outcome: object) -> None:
    if not isinstance(protected, Protection):
        raise PlanError(
            f"protected= takes a Protection, not {type(protected).__name__}. "
            "Write Protection('Gender', value='female', reference='male')."
        )
    if not isinstance(outcome, str):
        raise PlanError(
            f"outcome= takes the name of a column, not {type(outcome).__name__}. "
            "Write outcome='LoanApproval'."
        )
    if protected.attribute == outcome:
        raise PlanError(f"{outcome!r} cannot be both the outcome and the protected attribute.")
    for attribute in attributes:
        if attribute.name in (protected.attribute, outcome):
            role = "outcome" if attribute.name == outcome else "protected attribute"
            raise PlanError(
                f"{attribute.name!r} is the {role} and takes no part in the distance (Def. 4). "
                "Remove it from attributes."
            )


def check_worldview(worldview: Worldview, protected: Protection, *, outcome: str) -> None:
    """Refuse a worldview in which the protected attribute has causes, or that has the outcome."""
    if not isinstance(worldview, Worldview):
        raise PlanError(
            f"worldview= takes a Worldview, not {type(worldview).__name__}. "
            "Write Worldview({'Salary': Linear('Gender')})."
        )
    worldview.check_root(protected.attribute)
    if outcome in worldview.names:
        raise PlanError(
            f"The worldview mentions the outcome {outcome!r}. Outcomes are decided by b(), not by "
            "an equation: give decision= and remove it from the worldview."
        )


def apart_from(
    attributes: Sequence[Attribute], protections: Sequence[Protection]
) -> tuple[Attribute, ...]:
    """Return the attributes without those that are intervened on."""
    intervened = {each.attribute for each in protections}
    return tuple(attribute for attribute in attributes if attribute.name not in intervened)


def draw_spaces(
    protections: Sequence[Protection],
    population: Population,
    *,
    combine: Combine | None,
    test_space: ComparedWith,
) -> tuple[tuple[Stratum, ...], ...]:
    """Partition D once for each intervention: per attribute if "multiple", else one for all."""
    statuses = {each.attribute: population.categories(each.attribute) for each in protections}
    if combine == "multiple":
        return draw_multiple_strata(protections, statuses, test_space=test_space)
    return (draw_joint_strata(protections, statuses, test_space=test_space),)


# --- who decides, and where counterfactuals come from ---------------------------------------------


def check_sources(
    worldview: Worldview | None, counterfactuals: object, combine: Combine | None
) -> None:
    """Refuse two sources of counterfactuals, and one ready D^CF for several interventions."""
    if counterfactuals is not None and combine == "multiple":
        raise PlanError(
            "counterfactuals= is one table, and combine='multiple' intervenes on each attribute by "
            "itself: each has counterfactuals of its own. Give worldview=, or audit the attributes "
            "one at a time."
        )
    if worldview is not None and counterfactuals is not None:
        raise PlanError(
            "Both worldview= and counterfactuals= are given. Counterfactuals come from one of "
            "them: leave the other out."
        )


def read_maker(decision: Any, declared: Declaration) -> DecisionMaker:
    """Read b() as one that answers in terms of the outcome."""
    if declared.numeric:
        return as_scoring_maker(decision)
    maker, column, values = as_decision_maker(decision), declared.column, declared.values or 2
    told = maker.levels if isinstance(maker, LevelMaker) else None
    if values == 2 and told is not None:
        raise PlanError(
            f"The decision has {told - 1} thresholds, and the outcome has no order. Give one "
            "threshold, or an outcome with an order: outcome=Ordered(…)."
        )
    if values > 2 and isinstance(maker, BooleanMaker):
        raise PlanError(
            f"The decision grants or refuses, and {column!r} has {values} levels. Give a function "
            f"or a model that returns one of them for each row, {values - 1} thresholds for a "
            "score, or counterfactuals= with a column of levels."
        )
    if told not in {None, values}:
        raise PlanError(
            f"The decision tells {told} levels apart, and {column!r} has {values}. Give "
            f"{values - 1} thresholds."
        )
    return maker


def check_missing(
    attributes: Sequence[Attribute], worldview: Worldview | None, needed: Sequence[str]
) -> None:
    """Refuse to compare missing values where more than a comparison is asked of them."""
    for each in (attribute.name for attribute in attributes if attribute.compare_missing):
        if worldview is not None and each in worldview.names:
            raise PlanError(
                f"Attribute {each!r} has compare_missing, and the worldview says what causes it or "
                "what it causes: a value that is missing has no counterfactual, and no effect. "
                "Leave it out of the worldview, or leave compare_missing out."
            )
        if each in needed:
            raise PlanError(
                f"Attribute {each!r} has compare_missing, and the decision reads it: it cannot be "
                "made again where the value is missing. Leave compare_missing out."
            )


# --- what is run ----------------------------------------------------------------------------------


def choose_methods(
    names: Sequence[str] | None, *, counterfactual: bool, decided: bool
) -> tuple[Method, ...]:
    """Choose the methods that were asked for; default: all that the inputs allow."""
    found, asked = [], names or ()
    for name, method in METHODS.items():
        lacking = ""
        if method.needs_counterfactual and not counterfactual:
            lacking = "counterfactuals: give worldview= or counterfactuals="
        elif method.needs_counterfactual_outcome and not decided:
            lacking = (
                "the outcome of each counterfactual: give decision=, or counterfactuals= with the "
                "outcome column in it"
            )
        if lacking and name in asked:
            raise PlanError(f"Method {name!r} needs {lacking}.")
        if not lacking and (names is None or name in asked):
            found.append(method)
    return tuple(found)


def settle_evidence(evidence: Evidence, declared: Declaration) -> Evidence:
    """Settle measure and interval where the outcome has one of each; refuse those of others."""
    default = {"interval": None, "measure": "risk-difference"}
    measure = declared.measure.name if declared.measure else None
    only: dict[str, Any] = {"interval": declared.interval, "measure": measure}
    for name, value in only.items() if isinstance(evidence, Evidence) else ():
        asked = getattr(evidence, name)
        owner = owner_of(asked)
        if asked in {value, default[name]}:
            continue
        if value is not None:
            raise PlanError(
                f"{name}={asked!r} is not for {declared.plural}, which have {value!r} and no "
                f"other: leave {name}= out."
            )
        if owner is not None:
            raise PlanError(
                f"{name}={asked!r} is one for {owner.plural}. Leave it out, or write "
                f"outcome={owner.example.format(repr(declared.column))} without negative=."
            )
    if declared.measure is None or not isinstance(evidence, Evidence):
        return evidence
    return replace(evidence, **only)


def settle_primary(
    evidence: Evidence,
    methods: Sequence[Method],
    ks: Sequence[int],
    spaces: Sequence[Sequence[Stratum]],
) -> tuple[str, int]:
    """Choose the headline's method and k.

    The default is the matched comparison, at the largest k that `largest_sound_k` allows; where it
    is not run, CST without centers, at the second k.
    """
    names = [method.name for method in methods]
    if evidence.primary is None:
        if "cst_matched" in names:
            sound = largest_sound_k([each for strata in spaces for each in strata])
            return "cst_matched", max([k for k in ks if k <= sound] or [min(ks)])
        method = "cst_without" if "cst_without" in names else names[0]
        return method, ks[min(1, len(ks) - 1)]
    method, k = evidence.primary
    if method not in names or k not in ks:
        raise PlanError(
            f"primary={evidence.primary!r} is not run. Methods: {', '.join(names)}; ks: {list(ks)}."
        )
    return method, k


# --- what is doubted ------------------------------------------------------------------------------


def settle_doubt(
    wanted: Uncertainty, worldview: Worldview | None, *, rows: int, tested: bool
) -> Uncertainty:
    """Settle the number of draws and of refits; refuse those that cannot be made.

    Where counterfactuals rest on an assumed coupling, and where a test would take what a small
    table estimates for a fact, some are made even without being asked for.
    """
    draws, refits = wanted.draws, wanted.refits
    if draws is None:
        draws = DRAWS if worldview is not None and worldview.couplings else 0
    if refits is None:
        refits = REFITS if worldview is not None and tested and rows < _FEW_ROWS else 0
    for name, number in (("draws", draws), ("refits", refits)):
        if number and worldview is None:
            raise PlanError(
                f"{name}={number} needs worldview=: {name} come from its equations, not from a "
                "table."
            )
    if draws and worldview is not None and not (worldview.couplings or worldview.latents):
        raise PlanError(
            f"draws={draws} would all be the same: in this worldview the facts determine every "
            f"noise. Write refits={draws} to see the doubt about the coefficients, or leave draws "
            "out."
        )
    return replace(wanted, draws=draws, refits=refits)


def settle_robustness(
    wanted: Uncertainty, worldview: Worldview | None, primary: Method, *, rows: int
) -> Uncertainty:
    """Settle whether tipping points are found: by default in small tables.

    Other worldviews are compared where there are tipping points, which then are found too.
    """
    asked = "tipping=True" if wanted.tipping else ""
    if wanted.compares_worldviews:
        _check_comparison(wanted, worldview)
        asked = asked or "comparing worldviews"
    if asked and not primary.has_tipping:
        raise PlanError(
            f"{asked} needs 'cst_matched' or 'cst_without' as the primary method: "
            f"{primary.name!r} has no tipping points."
        )
    few = rows <= _TIPPING_ROWS or wanted.compares_worldviews
    default = primary.has_tipping and few
    return replace(wanted, tipping=default if wanted.tipping is None else wanted.tipping)


def _check_comparison(wanted: Uncertainty, worldview: Worldview | None) -> None:
    if worldview is None:
        raise PlanError(
            "variants= and worldviews= are about other worldviews than the plan's own, and it has "
            "none. Give worldview=."
        )
    if wanted.tipping is False:
        raise PlanError(
            "tipping=False and a comparison of worldviews contradict each other: both are parts of "
            "one statement on robustness. Leave one of the two out."
        )
    if wanted.variants and worldview.latents:
        raise PlanError(
            "variants=True: worldviews with hidden causes are not varied. Write the variants down "
            "as worldviews=."
        )
