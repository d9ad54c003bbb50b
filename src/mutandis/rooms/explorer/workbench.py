"""The workbench: another worldview, run in the background beside the audit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from mutandis.auditing.plan import plan as make_plan
from mutandis.config.worldview import FAMILIES, describe_equation
from mutandis.data.columns import plain_value
from mutandis.data.protection import Protection
from mutandis.decision.maker import describe_maker
from mutandis.errors import PlanError
from mutandis.outcomes.declaration import declare
from mutandis.rooms.explorer.jobs import Job
from mutandis.rooms.explorer.view import Lens
from mutandis.scm import Worldview

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mutandis.auditing.plan import Plan
    from mutandis.scm.family import Equation

__all__ = ["ROLES", "Draft", "Trial", "editable"]


def _keys(family: Any) -> Collection[str]:
    return signature(family).parameters.keys()


ROLES = {
    "moves": "moves with its causes",
    "resolving": "resolving: kept as it is",
    "root": "a root: without causes",
}
"""What an attribute can be."""

_NAMES = {family: name for name, family in FAMILIES.items()}
# without a formula of its own, a family needs nothing but causes
_PLAIN = tuple(name for name, each in FAMILIES.items() if "formula" not in _keys(each))


def editable(plan: Plan) -> str:
    """Say why the worldview of a plan cannot be changed here; empty if it can."""
    if plan.worldview is None:
        return "This audit has no worldview: there is nothing to change."
    if not _methods(plan):
        return (
            "The methods of this audit ask a decision maker about counterfactuals, and only rules "
            "can be asked again from a results folder."
        )
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Changes to the worldview of a plan, by the numbers of its attributes and their causes."""

    plan: Plan
    off: frozenset[tuple[int, int]] = frozenset()  # (attribute, cause)
    roles: Mapping[int, str] = field(default_factory=dict)
    families: Mapping[int, str] = field(default_factory=dict)
    reference: int | None = None

    @classmethod
    def read(cls, plan: Plan, pairs: Sequence[tuple[str, str]]) -> Draft:
        """Read a draft from the pairs of a form; what is not changed is left out of it."""
        off, roles, families, reference = set(), {}, {}, None
        draft = cls(plan=plan)
        for name, value in pairs:
            kind, _, number = name.partition(":")
            if kind == "off":
                attribute, _, cause = value.partition(":")
                off.add((_whole(attribute), _whole(cause)))
            elif kind == "role" and value in ROLES:
                roles[_whole(number)] = value
            elif kind == "family" and value in FAMILIES:
                families[_whole(number)] = value
            elif name == "reference":
                reference = _whole(value)
        count = len(draft.children)
        return cls(
            plan=plan,
            off=frozenset(
                (each, cause)
                for each, cause in off
                if each < count and cause < len(draft.causes(each))
            ),
            roles={i: role for i, role in roles.items() if i < count and role != draft.role(i)},
            families={
                i: name for i, name in families.items() if i < count and name != draft.family(i)
            },
            reference=None if reference in {None, draft.chosen_reference} else reference,
        )

    def pairs(self) -> list[tuple[str, str]]:
        """Give the pairs of a query that asks for this draft."""
        return [
            *(("off", f"{each}:{cause}") for each, cause in sorted(self.off)),
            *((f"role:{each}", role) for each, role in sorted(self.roles.items())),
            *((f"family:{each}", name) for each, name in sorted(self.families.items())),
            *([("reference", str(self.reference))] if self.reference is not None else []),
        ]

    @property
    def children(self) -> tuple[str, ...]:
        """The attributes that have an equation of their own, in the order of the worldview."""
        return () if self.plan.worldview is None else tuple(self.plan.worldview.equations)

    def equation(self, number: int) -> Equation:
        """Give the equation that an attribute has in the audit."""
        if self.plan.worldview is None:
            raise PlanError("This audit has no worldview.")
        return self.plan.worldview.equations[self.children[number]]

    def causes(self, number: int) -> tuple[str, ...]:
        """Name the causes that an attribute has in the audit."""
        return tuple(self.equation(number).parents)

    def role(self, number: int) -> str:
        """Say what an attribute is: as drafted, or as in the audit."""
        worldview = self.plan.worldview
        resolving = worldview is not None and self.children[number] in worldview.resolving
        return self.roles.get(number, "resolving" if resolving else "moves")

    def family(self, number: int) -> str:
        """Name the family of an equation; empty for one that no file can hold."""
        own = _NAMES.get(type(self.equation(number)), "")
        return self.families.get(number, own)

    def choices(self, number: int) -> tuple[str, ...]:
        """Name the families that an attribute can have."""
        own = self.family(number)
        return tuple(dict.fromkeys([own, *_PLAIN])) if own in _PLAIN else (own,)

    @property
    def references(self) -> list[Any]:
        """The values that the status can take in the other world, where there is one status."""
        if len(self.plan.protections) != 1:
            return []
        protection = self.plan.protections[0]
        column = self.plan.population.categories(protection.attribute)
        return [plain_value(x) for x in column.occurring() if x not in protection.values]

    @property
    def chosen_reference(self) -> int | None:
        """The number of the reference: as drafted, or as in the audit."""
        if self.reference is not None or not self.references:
            return self.reference
        return self.references.index(plain_value(self.plan.protections[0].reference))

    def protections(self) -> tuple[Protection, ...]:
        """Give the protections, with another reference if one is drafted."""
        if self.reference is None:
            return self.plan.protections
        if self.reference >= len(self.references):
            raise PlanError("There is no such status to compare with.")
        old = self.plan.protections[0]
        return (
            Protection(
                old.attribute,
                value=list(old.values) or None,
                reference=self.references[self.reference],
                pool=old.pool,
            ),
        )

    def worldview(self) -> Worldview:
        """Make the drafted worldview; equations without a cause are left out."""
        base = self.plan.worldview
        if base is None:
            raise PlanError("This audit has no worldview.")
        equations = {}
        for number, child in enumerate(self.children):
            causes = self.kept(number)
            if self.role(number) != "root" and causes:
                equations[child] = self._changed(number, causes)
        known = {*equations, *(name for each in equations.values() for name in each.parents)}
        known |= {name for latent in base.latents for name in latent.equations}
        resolving = [
            name
            for name in dict.fromkeys([*base.resolving, *self.children])
            if name in known and self._resolves(name)
        ]
        return Worldview(equations, latents=base.latents, resolving=resolving)

    def _resolves(self, name: str) -> bool:
        if name in self.children:
            return self.role(self.children.index(name)) == "resolving"
        return True

    def kept(self, number: int) -> tuple[str, ...]:
        """Name the causes whose arrows are on."""
        causes = self.causes(number)
        return tuple(name for i, name in enumerate(causes) if (number, i) not in self.off)

    def _changed(self, number: int, causes: tuple[str, ...]) -> Equation:
        """Give an equation with other causes or of another family, all else as it is."""
        equation = self.equation(number)
        if causes == self.causes(number) and number not in self.families:
            return equation
        old = _NAMES.get(type(equation), "")
        if old not in _PLAIN:
            raise PlanError(
                f"The equation for {self.children[number]!r} cannot be changed here: its causes "
                "are written in a formula or in an object. Make the attribute a root, or change "
                "the audit file."
            )
        name = self.family(number)
        # bounds and levels mean the same in all families that know them
        kept = set(_keys(FAMILIES[name]))
        kept &= kept if name == old else {"bounds", "levels"}
        settings = describe_equation(self.children[number], equation)
        shared = {k: v for k, v in settings.items() if k in kept and k != "parents"}
        changed: Equation = FAMILIES[name](*causes, **shared)
        return changed

    def changes(self) -> list[str]:
        """Say in words what is drafted."""
        labels = self.plan.labels
        children = [labels.column(each) for each in self.children]
        said = [
            f"the arrow {labels.column(self.causes(each)[cause])} → {children[each]} is switched "
            "off"
            for each, cause in sorted(self.off)
        ]
        said += [f"{children[i]}: {ROLES[role]}" for i, role in sorted(self.roles.items())]
        said += [f"{children[i]}: {name} equation" for i, name in sorted(self.families.items())]
        if self.reference is not None:
            one = self.protections()[0]
            value = labels.level(one.attribute, one.reference)
            said.append(f"{labels.column(one.attribute)} is set to {value}")
        return said

    def to_plan(self) -> Plan:
        """Plan the audit again under the drafted worldview."""
        plan, settings = self.plan, self.plan.settings
        methods = _methods(plan)
        worldview = self.worldview()
        primary = settings.primary if settings.primary[0] in methods else None
        doubt = settings.uncertainty
        is_open = bool(worldview.couplings or worldview.latents)
        protections = self.protections()
        return make_plan(
            plan.population,
            outcome=declare(**plan.outcome.declaration),
            protected=protections if plan.combine else protections[0],
            combine=plan.combine,
            attributes={each.name: each for each in plan.attributes},
            worldview=worldview,
            decision=_rule(plan),
            methods=methods,
            ks=settings.ks,
            alpha=settings.alpha,
            tau=settings.tau,
            similarity=settings.similarity,
            evidence=replace(settings.evidence, primary=primary),
            uncertainty=replace(
                doubt,
                draws=(doubt.draws or None) if is_open else 0,
                tipping=False,
                variants=None,
                worldviews=None,
            ),
            seed=settings.seed,
            id=plan.id,
        ).with_labels(plan.labels)


def _rule(plan: Plan) -> str | None:
    """Give the text of the rule that decides; no model is loaded, and no address asked."""
    if plan.decision is None:
        return None
    described = describe_maker(plan.decision)
    if set(described) != {"kind", "rule"}:
        return None
    return str(described["rule"])


def _methods(plan: Plan) -> list[Any]:
    decided = _rule(plan) is not None
    return [each.name for each in plan.methods if decided or not each.needs_counterfactual_outcome]


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise PlanError("The changes in this address cannot be read. Start from the workbench.")
    return int(text)


class Trial(Job):
    """The run of one draft in the background; its result is a lens on the audit."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        super().__init__(lambda report: Lens(draft.to_plan().run(progress=report)))
