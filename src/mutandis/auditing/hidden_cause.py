"""A hidden common cause of the status and an attribute: how strong it would have to be.

Of an estimated effect of the status on an attribute, an unmeasured cause of both explains the
relative part BF / f, where f² is what the status explains of the attribute, over what is left, and
BF² = R²_x · R²_a / (1 - R²_a) is made of the parts that the cause explains of what is left of the
attribute and of the status (Cinelli and Hazlett 2020, Journal of the Royal Statistical Society B,
82, 39-67). A verdict with the tipping point λ* falls where it explains more than q = 1 - λ* of the
effect. Its robustness value is the part that such a cause would have to explain of both.

Everything is linear: the total effect of the status on an attribute, given the ancestors of the
attribute that the intervention does not move. Those are benchmarks as well: a cause k times as
strong as one of them explains k times as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.robustness import moved_attributes
from mutandis.data.columns import Categories, Numbers
from mutandis.errors import PlanError
from mutandis.frames import to_frame
from mutandis.numeric.least_squares import CollinearError, least_squares
from mutandis.numeric.order import canonical_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.data.columns import Column, Floats
    from mutandis.data.protection import Stratum
    from mutandis.report.chart import Picture

__all__ = ["Benchmark", "HiddenCause", "LinearEffect", "find_hidden_cause"]

_ENOUGH = 60  # bisections: to the last bits of a float


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """Partial R² of an observed cause, given the others."""

    name: str
    status: float
    attribute: float  # given the status as well

    def times(self, number: float) -> tuple[float, float]:
        """Return the bounds for a confounder so many times as strong, capped at 1."""
        if self.status >= 1 or self.attribute >= 1:
            return 1.0, 1.0
        status = number * self.status / (1 - self.status)
        common = number * self.status**2
        if status >= 1 or common >= (1 - number * self.status) * (1 - self.status):
            return 1.0, 1.0
        both = common / ((1 - number * self.status) * (1 - self.status))
        root = (number**0.5 + both**0.5) / (1 - both) ** 0.5
        return status, min(root**2 * self.attribute / (1 - self.attribute), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearEffect:
    """The total effect of the status on one attribute, in a linear fit."""

    attribute: str
    strength: float  # f, the root of what the status explains over what is left
    benchmarks: tuple[Benchmark, ...]

    def robustness_value(self, share: float) -> float:
        """Return what a cause must explain of both to account for a share of the effect."""
        square = (share * self.strength) ** 2
        return float(((square**2 + 4 * square) ** 0.5 - square) / 2)

    def accounted(self, status: float, attribute: float) -> float:
        """Return the share of the effect that a cause accounts for which explains so much."""
        if status >= 1 or not self.strength:
            return float("inf")
        bias: float = (attribute * status / (1 - status)) ** 0.5
        return bias / self.strength

    def needed(self, benchmark: Benchmark, share: float) -> float | None:
        """Return how many times as strong as a benchmark a cause must be; None beyond 100."""
        low, high = 0.0, 100.0
        if self.accounted(*benchmark.times(high)) < share:
            return None
        for _ in range(_ENOUGH):
            middle = (low + high) / 2
            if self.accounted(*benchmark.times(middle)) < share:
                low = middle
            else:
                high = middle
        return high


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class HiddenCause:
    """How strong a hidden common cause of the status and an attribute would have to be.

    Examples
    --------
    >>> import mutandis as mm
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=600, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous"},
    ...     worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
    ...     ks=(15,),
    ...     uncertainty=mm.Uncertainty(refits=0),
    ... )
    >>> cause = found.hidden_cause()
    >>> cause.table()["robustness_value"].max().round(3)
    np.float64(0.2)
    """

    audit: Audit
    # by stratum of complainants, on each ground: the effects of the status on the attributes that
    # it moves, the weakest first; there are none on names
    effects: tuple[tuple[NDArray[np.intp], tuple[LinearEffect, ...]], ...]

    def table(self) -> Any:
        """Return one row per complainant with evidence: how strong the cause would have to be.

        `robustness_value` is the part that it would have to explain of what is left of the status
        and of `attribute`, the one that takes least; `times` how many times as strong as the
        observed `benchmark` it would have to be.
        """
        return to_frame(self.columns(), self.audit.plan.population.source)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the table, column by column."""
        tipping = self.audit.measure_tipping()
        rows = [self.at(place, point) for place, point in enumerate(tipping.point.tolist())]
        values: dict[str, NDArray[Any]] = {"id": tipping.ids, "tipping": tipping.point}
        for number, name in (("robustness_value", "attribute"), ("times", "benchmark")):
            values[number] = np.array([row.get(number, np.nan) for row in rows])
            values[name] = np.array([row.get(name) for row in rows], dtype=object)
        return values

    def at(self, place: int, point: float) -> Mapping[str, Any]:
        """Return one row by place and tipping point; empty without a point or an effect."""
        effects = self._of(place)
        if not effects or np.isnan(point):
            return {}
        weakest, share = min(effects, key=lambda each: each.strength), 1 - point
        found: dict[str, Any] = {
            "robustness_value": weakest.robustness_value(share),
            "attribute": weakest.attribute,
        }
        times = {each.name: weakest.needed(each, share) for each in weakest.benchmarks}
        known = {name: number for name, number in times.items() if number is not None}
        if known:
            name = min(known, key=lambda each: known[each])
            found |= {"benchmark": name, "times": known[name]}
        return found

    def sentence(self, place: int, point: float) -> str:
        """Describe that row in words; empty where the row is."""
        found = self.at(place, point)
        if not found:
            return ""
        status, labels = self.audit.plan.status_label, self.audit.plan.labels
        both = f"unmeasured common cause of {status} and {labels.quoted(found['attribute'])}"
        if not point:
            return f"Even an {both} that accounts for all of the effect leaves the verdict."
        said = (
            f"An {both} would have to explain {found['robustness_value']:.1%} of what is left of "
            "both for the verdict to fall"
        )
        if "times" in found:
            said += f"; it would have to be {found['times']:.1f} times as strong as "
            said += labels.quoted(found["benchmark"])
        return f"{said}."

    def plot(self, place: int | None = None) -> Picture:
        """Draw how much of the weakest effect remains, by the strength of a hidden cause.

        Parameters
        ----------
        place
            One complainant, where whose verdict falls is marked. Default: the effect in the first
            stratum.
        """
        from mutandis.report.plots import plot_hidden_cause

        effects = self.effects[0][1] if place is None else self._of(place)
        if not effects:
            raise PlanError("No attribute that is moved has a linear effect to draw.")
        point = None if place is None else float(self.audit.measure_tipping().point[place])
        weakest = min(effects, key=lambda each: each.strength)
        plan = self.audit.plan
        return plot_hidden_cause(weakest, plan.status_label, point, label=plan.labels.column)

    def _of(self, place: int) -> list[LinearEffect]:
        row = self.audit.study.people[place]
        return [
            effect
            for rows, effects in self.effects
            if rows[min(np.searchsorted(rows, row), len(rows) - 1)] == row
            for effect in effects
        ]


def find_hidden_cause(audit: Audit) -> HiddenCause:
    """Fit the effects of the status on every attribute that it moves."""
    if audit.plan.worldview is None:
        raise PlanError(
            "How strong a hidden cause would have to be follows from the fit of a worldview, and "
            "this audit has none: its counterfactuals were supplied, or it needs none."
        )
    effects = [
        (
            stratum.complainants,
            tuple(sorted(_effects(part, stratum), key=lambda each: each.strength)),
        )
        for part in audit.parts.values()
        for stratum in part.plan.strata
    ]
    return HiddenCause(audit=audit, effects=tuple(effects))


def _effects(part: Audit, stratum: Stratum) -> list[LinearEffect]:
    population, worldview = part.plan.population, part.plan.worldview
    if worldview is None:
        return []
    rows = np.union1d(stratum.control, stratum.test)
    graph = worldview.graph.parents
    # whatever the intervention changes is no cause to compare with, nor to condition on
    changed = {*worldview.graph.descendants(tuple(part.plan.do), held=worldview.resolving)}
    changed |= {*part.plan.do}
    known = population.columns
    used = {name: known[name].take(rows) for name in sorted(graph.keys() & known.keys())}
    order = canonical_order(used, ids=population.ids[rows])
    status = np.isin(rows, stratum.control)[order].astype(np.float64)
    levels = {each.name: each.levels for each in part.plan.attributes}
    effects = []
    for name in moved_attributes(part):
        column = used[name].take(order)
        if not isinstance(column, Numbers) and not levels[name]:
            continue
        response = column.data.astype(np.float64)
        if getattr(worldview.equations.get(name), "link", "identity") == "log":
            response = np.log(response)
        causes = {
            each: _design(used[each].take(order))
            for each in sorted(_ancestors(graph, name) & used.keys() - changed)
        }
        effects.append(_fit(name, response, status, causes))
    return [each for each in effects if each is not None]


def _ancestors(parents: Mapping[str, Sequence[str]], name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        causes = {*parents.get(waiting.pop(), ())} - found
        found |= causes
        waiting += causes
    return found


def _design(column: Column) -> list[Floats]:
    """Return the columns of a cause: a number, or an indicator per level but for the first."""
    if isinstance(column, Categories):
        present = np.flatnonzero(column.counts() > 0)[1:]
        return [(column.codes == code).astype(np.float64) for code in present.tolist()]
    return [column.values]


def _fit(
    name: str, response: Floats, status: Floats, causes: Mapping[str, Sequence[Floats]]
) -> LinearEffect | None:
    """Compute partial R² from residual sums of squares; None where causes are collinear."""

    def left(target: Floats, names: Sequence[str], *more: Floats) -> float:
        design = [*(column for each in names for column in causes[each]), *more]
        rest = target - target.mean()
        if design:
            intercept, slopes = least_squares(target, [("", column) for column in design])
            rest = target - intercept
            for slope, column in zip(slopes, design, strict=True):
                rest -= slope * column
        return float(np.add.reduce(rest**2))

    def partial(fewer: float, more: float) -> float:
        return max(1 - more / fewer, 0.0) if fewer > 0 else 0.0

    everything = list(causes)
    try:
        full = left(response, everything, status)
        explained = partial(left(response, everything), full)
        of_status = left(status, everything)
        benchmarks = tuple(
            Benchmark(
                name=each,
                status=partial(left(status, others), of_status),
                attribute=partial(left(response, others, status), full),
            )
            for each in everything
            for others in [[other for other in everything if other != each]]
            if causes[each]
        )
    except CollinearError:
        return None
    strength = (explained / (1 - explained)) ** 0.5 if explained < 1 else float("inf")
    return LinearEffect(attribute=name, strength=strength, benchmarks=benchmarks)
