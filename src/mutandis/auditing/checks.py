"""Checks across the settings of an audit: each refusal says what to do instead."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, get_args

from mutandis.causal import Worldview
from mutandis.data.protection import Protection
from mutandis.errors import PlanError
from mutandis.evidence.intervals import DEFAULT_INTERVAL, IntervalName
from mutandis.evidence.multiplicity import Adjustment
from mutandis.evidence.spaces import GroupSize
from mutandis.search.embedding import Scaling
from mutandis.search.ties import Ties

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mutandis.data.attribute import Attribute

__all__ = [
    "DEFAULT_DRAWS",
    "check_choices",
    "check_decision",
    "check_one_source",
    "check_roles",
    "check_worldview",
    "read_draws",
    "read_interval",
]

DEFAULT_DRAWS = 20
"""How many draws show what a coupling is worth, where nobody says how many."""


def check_roles(attributes: Sequence[Attribute], protected: object, *, outcome: object) -> None:
    """Refuse a column in two roles."""
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
    """Refuse a worldview in which the protected attribute has causes, or the outcome has a part."""
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


def check_one_source(worldview: object, counterfactuals: object) -> None:
    """Refuse two sources of counterfactuals."""
    if worldview is not None and counterfactuals is not None:
        raise PlanError(
            "Both worldview= and counterfactuals= are given. Counterfactuals come from one of "
            "them: leave the other out."
        )


def check_decision(needed: Collection[str], *, outcome: str) -> None:
    """Refuse a decision that looks at the recorded outcome."""
    if outcome in needed:
        raise PlanError(
            f"The decision reads the outcome {outcome!r}, which is on record before anybody is "
            "asked again: no counterfactual could change it. Decide from the other columns."
        )


def read_draws(draws: int | None, *, bootstrap: bool, worldview: Worldview | None) -> int:
    """Settle how many draws to make; refuse those that cannot be made, or would all be the same.

    Where counterfactuals rest on an assumed coupling, a verdict is to be shown with the share of
    draws that agree: some are made even if nobody asked.
    """
    varies = worldview is not None and bool(worldview.couplings or worldview.latents)
    assumed = worldview is not None and bool(worldview.couplings)
    wanted: object = draws
    if wanted is None:
        wanted = DEFAULT_DRAWS if assumed or bootstrap else 0
    if isinstance(wanted, bool) or not isinstance(wanted, Integral) or int(wanted) < 0:
        raise PlanError(f"draws={wanted!r} is not allowed. Give how many to make, 0 for none.")
    draws = int(wanted)
    if bootstrap and not draws:
        raise PlanError("bootstrap=True refits the equations for each draw; draws=0 makes none.")
    if draws and worldview is None:
        raise PlanError(
            f"draws={draws} needs worldview=: draws come from its equations, not from a table."
        )
    if draws and not (bootstrap or varies):
        raise PlanError(
            f"draws={draws} would all be the same: in this worldview the facts determine every "
            "noise. Add bootstrap=True to see the doubt about the coefficients, or leave draws out."
        )
    return draws


def check_choices(**choices: str) -> None:
    """Refuse a choice that does not exist."""
    allowed = {
        "adjust": get_args(Adjustment),
        "ties": get_args(Ties),
        "scaling": get_args(Scaling),
        "group_size": get_args(GroupSize),
        "missing": ("error", "drop"),
    }
    for name, choice in choices.items():
        if choice not in allowed[name]:
            raise PlanError(f"{name}={choice!r} is unknown. Allowed: {', '.join(allowed[name])}.")


def read_interval(
    interval: IntervalName | None, *, tau: object, preset: str | None
) -> IntervalName:
    """Take the interval; without a wish the default, or the one that the publication used."""
    if interval is None:
        return DEFAULT_INTERVAL if preset is None else "wald"
    if interval not in get_args(IntervalName):
        allowed = ", ".join(get_args(IntervalName))
        raise PlanError(f"interval={interval!r} is unknown. Allowed: {allowed}.")
    if preset is not None and interval != "wald":
        raise PlanError(
            f"preset={preset!r} repeats a publication that used the Wald interval, and "
            f"interval={interval!r} is another one. Leave interval out, or leave the preset out."
        )
    if interval == "fisher" and tau != 0:
        raise PlanError(
            f"interval='fisher' tests against τ = 0 only, not against tau={tau}. "
            "Use 'miettinen-nurminen' for another τ."
        )
    return interval
