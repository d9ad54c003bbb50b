"""The workbench: another worldview, run in the background next to the audit."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import TYPE_CHECKING, Any

from mutandis.auditing.plan import plan as make_plan
from mutandis.config.worldview import FAMILIES, describe_equation, make_worldview, write_worldview
from mutandis.config.yaml import read_yaml
from mutandis.data.columns import plain_value
from mutandis.data.protection import Protection
from mutandis.decision.maker import describe_maker
from mutandis.errors import MutandisError, MutandisWarning, PlanError
from mutandis.outcomes import declare
from mutandis.rooms.explorer.views import Lens
from mutandis.scm import Worldview
from mutandis.store.audit_file import write_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mutandis.auditing.plan import Plan
    from mutandis.scm.family import Equation

__all__ = ["ROLES", "Draft", "Trial", "why_locked"]

ROLES = {
    "moves": "moves with its causes",
    "resolving": "resolving: kept as it is",
    "root": "a root: without causes",
}
"""What an attribute can be."""


def why_locked(plan: Plan) -> str:
    """Return why the worldview of a plan cannot be changed here; empty if it can."""
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
    reference: int | None = None

    @classmethod
    def read(cls, plan: Plan, pairs: Sequence[tuple[str, str]]) -> Draft:
        """Read a draft from the pairs of a form; what is as in the audit is left out."""
        off, roles, reference = set(), {}, None
        for name, value in pairs:
            kind, _, number = name.partition(":")
            if kind == "off":
                attribute, _, cause = value.partition(":")
                off.add((_whole(attribute), _whole(cause)))
            elif kind == "role" and value in ROLES:
                roles[_whole(number)] = value
            elif name == "reference":
                reference = _whole(value)
        draft = cls(plan=plan)
        count = len(draft.children)
        return cls(
            plan=plan,
            off=frozenset(
                (each, cause)
                for each, cause in off
                if each < count and cause < len(draft.causes(each))
            ),
            roles={i: role for i, role in roles.items() if i < count and role != draft.role(i)},
            reference=None if reference in {None, draft.chosen_reference} else reference,
        )

    def pairs(self) -> list[tuple[str, str]]:
        """Return the pairs of a query that asks for this draft."""
        return [
            *(("off", f"{each}:{cause}") for each, cause in sorted(self.off)),
            *((f"role:{each}", role) for each, role in sorted(self.roles.items())),
            *([("reference", str(self.reference))] if self.reference is not None else []),
        ]

    @property
    def base(self) -> Worldview:
        """The worldview of the audit."""
        if self.plan.worldview is None:
            raise PlanError("This audit has no worldview.")
        return self.plan.worldview

    @property
    def children(self) -> tuple[str, ...]:
        """The attributes that have an equation of their own, in the order of the worldview."""
        return () if self.plan.worldview is None else tuple(self.plan.worldview.equations)

    def equation(self, number: int) -> Equation:
        """Return the equation of an attribute in the audit."""
        return self.base.equations[self.children[number]]

    def causes(self, number: int) -> tuple[str, ...]:
        """Name the causes of an attribute in the audit."""
        return tuple(self.equation(number).parents)

    def role(self, number: int) -> str:
        """Return the role of an attribute: as drafted, or as in the audit."""
        resolving = self.children[number] in self.base.resolving
        return self.roles.get(number, "resolving" if resolving else "moves")

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
        """Return the protections, with another reference if one is drafted."""
        if self.reference is None:
            return self.plan.protections
        if self.reference >= len(self.references):
            raise PlanError("There is no such status to compare with.")
        old, reference = self.plan.protections[0], self.references[self.reference]
        value = list(old.values) or None
        return (Protection(old.attribute, value=value, reference=reference, pool=old.pool),)

    def worldview(self) -> Worldview:
        """Make the drafted worldview; equations without a cause are left out."""
        equations = {}
        for number, child in enumerate(self.children):
            causes = self.causes(number)
            kept = tuple(name for i, name in enumerate(causes) if (number, i) not in self.off)
            if self.role(number) != "root" and kept:
                whole = kept == causes
                equations[child] = self.equation(number) if whole else self._with(number, kept)
        known = {*equations, *(name for each in equations.values() for name in each.parents)}
        known |= {name for latent in self.base.latents for name in latent.equations}
        roles = {child: self.role(number) for number, child in enumerate(self.children)}
        resolving = [
            name
            for name in dict.fromkeys([*self.base.resolving, *self.children])
            if name in known and roles.get(name, "resolving") == "resolving"
        ]
        return Worldview(equations, latents=self.base.latents, resolving=resolving)

    def _with(self, number: int, causes: tuple[str, ...]) -> Equation:
        """Return an equation with fewer causes, all else as it is."""
        equation, child = self.equation(number), self.children[number]
        family = next((each for each in FAMILIES.values() if type(equation) is each), None)
        settings = {} if family is None else describe_equation(child, equation)
        if family is None or "formula" in settings:
            raise PlanError(
                f"The equation for {child!r} cannot be changed here: its causes are written in a "
                "formula or in an object. Make the attribute a root, or change the audit file."
            )
        settings = {k: v for k, v in settings.items() if k not in {"equation", "parents"}}
        changed: Equation = family(*causes, **settings)
        return changed

    def changes(self) -> list[str]:
        """Describe in words what is drafted."""
        labels = self.plan.labels
        children = [labels.column(each) for each in self.children]
        found = [
            f"the arrow {labels.column(self.causes(each)[cause])} → {children[each]} is switched "
            "off"
            for each, cause in sorted(self.off)
        ]
        found += [f"{children[i]}: {ROLES[role]}" for i, role in sorted(self.roles.items())]
        if self.reference is not None:
            one = self.protections()[0]
            value = labels.level(one.attribute, one.reference)
            found.append(f"{labels.column(one.attribute)} is set to {value}")
        return found

    def to_plan(self) -> Plan:
        """Plan the audit again under the drafted worldview."""
        plan, settings = self.plan, self.plan.settings
        methods = _methods(plan)
        worldview, protections = self.worldview(), self.protections()
        primary = settings.primary if settings.primary[0] in methods else None
        is_open = bool(worldview.couplings or worldview.latents)
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
                settings.uncertainty,
                draws=(settings.uncertainty.draws or None) if is_open else 0,
                tipping=False,
                variants=None,
                worldviews=None,
            ),
            seed=settings.seed,
            id=plan.id,
        ).with_labels(plan.labels)

    def to_yaml(self) -> str:
        """Write the audit file: the one of the audit, with another worldview."""
        origin, wanted = self.plan.origin, self.worldview()
        if origin is None:
            return write_plan(self.to_plan())
        from ruamel.yaml import YAML

        yaml = YAML(typ="rt")
        yaml.preserve_quotes, yaml.width = True, 4096
        document = yaml.load(origin.text)
        if wanted != self.base:
            document["worldview"] = yaml.load(write_worldview(wanted))
        if self.reference is not None:
            protected = document["protected"]
            one = protected[0] if isinstance(protected, list) else protected
            one["reference"] = self.protections()[0].reference
        written = StringIO()
        yaml.dump(document, written)
        text = written.getvalue()
        statuses = [each.attribute for each in self.plan.protections]
        if make_worldview(read_yaml(text).data["worldview"], statuses) != wanted:
            raise PlanError("This worldview cannot be written into the audit file of the results.")
        return text


def _rule(plan: Plan) -> str | None:
    """Return the text of the rule that decides; no model is loaded, and no address asked."""
    described = {} if plan.decision is None else describe_maker(plan.decision)
    return str(described["rule"]) if set(described) == {"kind", "rule"} else None


def _methods(plan: Plan) -> list[Any]:
    decided = _rule(plan) is not None
    return [each.name for each in plan.methods if decided or not each.needs_counterfactual_outcome]


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise PlanError("The changes in this address cannot be read. Start from the workbench.")
    return int(text)


class _CancelledError(Exception):
    """The run was cancelled."""


class Trial:
    """The run of one draft in a thread of its own; its result is a lens on the audit."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.result: Lens | None = None
        self.failure = ""
        self.done, self.total = 0, 0
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread.is_alive()

    def cancel(self) -> None:
        """Stop it at the next report."""
        self._cancelled.set()

    def wait(self, seconds: float) -> None:
        """Wait for its end."""
        self._thread.join(seconds)

    def _report(self, done: int, total: int) -> None:
        if self._cancelled.is_set():
            raise _CancelledError
        self.done, self.total = done, total

    def _run(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MutandisWarning)
                found = Lens(self.draft.to_plan().run(progress=self._report))
            self._report(self.total, self.total)
            self.result = found
        except _CancelledError:
            self.failure = "The run was cancelled."
        except MutandisError as error:
            self.failure = str(error)
        except Exception as error:  # noqa: BLE001 - a message may hold values of the table
            self.failure = f"The run failed ({type(error).__name__})."
