"""One protection or several: how they are declared, and which spaces follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from mutandis.data.protection import (
    Combine,
    ComparedWith,
    Protection,
    draw_joint_strata,
    draw_multiple_strata,
)
from mutandis.errors import PlanError
from mutandis.scm import Worldview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.data.attribute import Attribute
    from mutandis.data.population import Population
    from mutandis.data.protection import Stratum

__all__ = [
    "apart_from",
    "check_one_table",
    "check_protections",
    "check_worldview",
    "draw_spaces",
    "read_protections",
]


def read_protections(
    protected: Protection | Sequence[Protection], combine: Combine | None
) -> tuple[Protection, ...]:
    """Take one protection, or several with a word on how they are combined."""
    if combine is not None and combine not in get_args(Combine):
        raise PlanError(f"combine={combine!r} is unknown. Allowed: {', '.join(get_args(Combine))}.")
    # what is no list is looked at where the roles of the columns are checked
    several = tuple(protected) if isinstance(protected, list | tuple) else (protected,)
    if not several:
        raise PlanError("protected= is an empty list. Give at least one Protection.")
    for each in several[1:] and several:
        if not isinstance(each, Protection):
            raise PlanError(
                f"protected= holds {type(each).__name__} among its protections. "
                "Write [Protection('race', reference='white'), Protection('sex', …)]."
            )
    if len(several) > 1 and combine is None:
        raise PlanError(
            f"{len(several)} protections, and no word on how they are combined. Give "
            "combine='multiple' (discrimination on every one of these attributes, each by itself) "
            "or combine='intersectional' (on all of them together)."
        )
    if len(several) == 1 and combine is not None:
        raise PlanError(
            f"combine={combine!r} needs at least two protections, and there is one. "
            "Leave combine out, or give a list of protections."
        )
    names = [each.attribute for each in several] if len(several) > 1 else []
    if len(set(names)) < len(names):
        raise PlanError(
            "Two protections are about the same attribute. Name all its protected values in one "
            "Protection: each is compared with the reference by itself."
        )
    return several


def check_protections(
    protections: Sequence[Protection],
    combine: Combine | None,
    *,
    attributes: Sequence[Attribute],
    outcome: str,
    worldview: Worldview | None,
) -> None:
    """Refuse a column in two roles, and a worldview in which a protected attribute has causes.

    In an audit of multiple discrimination one attribute is intervened on at a time: the others may
    be listed among the attributes, and then enter the distance.
    """
    for each in protections:
        listed = apart_from(attributes, [each]) if combine == "multiple" else attributes
        _check_roles(listed, each, outcome=outcome)
        if worldview is not None:
            check_worldview(worldview, each, outcome=outcome)


def check_one_table(counterfactuals: object, combine: Combine | None) -> None:
    """Refuse one ready D^CF for several interventions."""
    if counterfactuals is not None and combine == "multiple":
        raise PlanError(
            "counterfactuals= is one table, and combine='multiple' intervenes on each attribute by "
            "itself: each has counterfactuals of its own. Give worldview=, or audit the attributes "
            "one at a time."
        )


def apart_from(
    attributes: Sequence[Attribute], protections: Sequence[Protection]
) -> tuple[Attribute, ...]:
    """Give what people are compared on when these are intervened on: they take no part in it."""
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


def _check_roles(attributes: Sequence[Attribute], protected: object, *, outcome: object) -> None:
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
