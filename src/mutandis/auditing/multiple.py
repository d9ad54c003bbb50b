"""Multiple discrimination: one intervention per attribute, flagged only if flagged on each."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.audit import Audit
from mutandis.auditing.protections import draw_spaces
from mutandis.auditing.provenance import record
from mutandis.engine.methods import METHODS
from mutandis.engine.study import World
from mutandis.engine.tally import Tally
from mutandis.frames import open_frame
from mutandis.verdicts.findings import combine_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from mutandis.auditing.plan import Plan
    from mutandis.data.labels import Labels
    from mutandis.engine.members import Members
    from mutandis.engine.tally import Pair
    from mutandis.outcomes.outcome import Depth
    from mutandis.verdicts.findings import Digest, Findings

__all__ = ["MultipleAudit", "run_multiple"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class MultipleAudit(Audit):
    """An audit of multiple discrimination: it holds an audit of each attribute.

    Complainants are protected on all attributes. Where a question has one answer per attribute,
    the answer is about the attribute with the weakest evidence, or has a row per attribute.
    """

    by_attribute: tuple[Audit, ...] = field(default=())

    @property
    def parts(self) -> tuple[Audit, ...]:
        """The audit of each attribute."""
        return self.by_attribute

    def support(self, method: str | None = None, *, k: int | None = None) -> Any:
        """Tell how far away each complainant's groups are: one row per attribute and person."""
        tables = {_ground(part): part.measure_support(method, k).columns() for part in self.parts}
        names = next(iter(tables.values()))
        rows = len(self.study.people)
        return self._frame(
            {
                "attribute": np.repeat(list(tables), rows),
                **{n: np.concatenate([table[n] for table in tables.values()]) for n in names},
            }
        )

    def counterfactuals(self) -> Any:
        """Give the counterfactual tables below each other; `do` names the attribute set."""
        import narwhals as nw

        tables = {_ground(part): part.counterfactuals() for part in self.parts}
        if any(table is None for table in tables.values()):
            return None
        return nw.concat(
            [
                open_frame(table).with_columns(nw.lit(name).alias("do"))
                for name, table in tables.items()
            ]
        ).to_native()

    @property
    def refused_counterfactually(self) -> NDArray[Any] | None:
        """Which complainants would have been refused, whichever attribute is intervened on.

        Treated worse on every attribute means: favourable under every intervention. Treated
        better on every attribute means: unfavourable under every one.
        """
        decided = [each.refused_counterfactually for each in self.parts]
        known = [mask for mask in decided if mask is not None]
        if not known:
            return None
        # True is more than False, and more steps of a score are worse
        worst = np.max if self.plan.settings.evidence.direction == "negative" else np.min
        return np.asarray(worst(known, axis=0), dtype=known[0].dtype)

    def with_levels(self, **levels: Any) -> MultipleAudit:
        """Give the same audit with other levels, on each attribute."""
        changed = super().with_levels(**levels)
        parts = tuple(part.with_levels(**levels) for part in self.parts)
        return replace(changed, by_attribute=parts)  # type: ignore[return-value,call-arg]

    def with_labels(self, labels: Labels) -> MultipleAudit:
        """Give the same audit with other words, on each attribute."""
        changed = super().with_labels(labels)
        parts = tuple(replace(part, plan=replace(part.plan, labels=labels)) for part in self.parts)
        return replace(changed, by_attribute=parts)  # type: ignore[return-value,call-arg]

    def members(self, place: int, method: str, k: int) -> Pair[Members]:
        """List the groups of one complainant on the attribute with her weakest evidence."""
        return self._weakest_part(place, method, k).members(place, method, k)

    def balance(self, place: int, method: str, k: int) -> Pair[Mapping[str, float]]:
        """Compare centers and groups on the attribute with the weakest evidence."""
        return self._weakest_part(place, method, k).balance(place, method, k)

    def findings_of(self, only: NDArray[np.intp], method: str, k: int) -> Findings:
        """Give some complainants' findings, put together from all attributes."""
        return self.evaluate(method, k).take(only)

    def _weakest_part(self, place: int, method: str, k: int) -> Audit:
        only = np.array([place])
        against = [part.evaluate(method, k).take(only).against for part in self.parts]
        return self.parts[int(self._weakest(np.stack(against))[0])]

    def compute_findings(self, method: str, k: int, *, depth: Depth = "bounds") -> Findings:
        """Put the findings on each attribute together."""
        would_be = self.refused_counterfactually
        return combine_findings(
            {_ground(part): part.compute_findings(method, k, depth=depth) for part in self.parts},
            outcome_cf=None if would_be is None else self.plan.outcome.kind.values(would_be),
            weakest=self._weakest,
            adjust=partial(self._adjust, method=METHODS[method]),
        )

    def _digest(self, method: str, k: int) -> Digest:
        found = self.compute_findings(method, k, depth="significance")
        return found.digest(whole=k == self.plan.settings.primary[1])

    def _weakest(self, delta_p: NDArray[np.float64]) -> NDArray[np.intp]:
        """Find, among differences (attributes × complainants), each one's weakest evidence.

        Where one is missing, it is that.
        """
        towards_zero = delta_p if self.plan.settings.evidence.direction == "negative" else -delta_p
        return np.asarray(np.argmin(towards_zero, axis=0), dtype=np.intp)


def _ground(part: Audit) -> str:
    return part.plan.protections[0].attribute


def run_multiple(plan: Plan, run: Callable[[Plan], Audit]) -> MultipleAudit:
    """Run the audit of each attribute for those who are protected on all of them."""
    spaces = draw_spaces(
        plan.protections,
        plan.population,
        combine="multiple",
        test_space=plan.settings.similarity.test_space,
    )
    parts = tuple(
        run(replace(plan.restricted_to([each], None), strata=strata))
        for each, strata in zip(plan.protections, spaces, strict=True)
    )
    first = parts[0]
    tally = Tally(metric=first.tally.metric)
    provenance = record(plan, tally, None, with_record=first.with_record)
    computed = {_ground(part): part.provenance.computed for part in parts}
    return MultipleAudit(
        plan=plan,
        engine=first.engine,
        world=World(),
        tally=tally,
        clipped={},
        provenance=replace(
            provenance,
            computed={
                **provenance.computed,
                "couplings": dict(ChainMap(*(each["couplings"] for each in computed.values()))),
                "parts": computed,
            },
        ),
        with_record=first.with_record,
        by_attribute=parts,
    )
