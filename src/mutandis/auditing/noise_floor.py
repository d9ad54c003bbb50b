"""The noise floor of an audit: the most that audits find where there is nothing to find.

Every audit sets its headline count beside the largest count of placebo audits (a), in which people
of the reference status are given the protected one at random. "More than every one of R placebos"
is a test of the whole table. Its level is 1 / (R + 1), as far as complainants who are not
discriminated against are like those people and as many. It tests neither the worldview nor any
person's case.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import floor
from typing import TYPE_CHECKING, Any, Final

from mutandis.auditing.placebo import PlaceboLine, run_kind
from mutandis.decision.maker import query_records
from mutandis.errors import MutandisError, PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.engine.methods import Method

__all__ = ["NoiseFloor", "measure_noise_floor", "no_noise_floor"]

# The most complainants of one placebo audit: of more, a sample is taken, so that the placebos of a
# large table take less time than its audit.
_MOST: Final = 1_000

_WORDS: Final = {
    "cases": "evidence for",
    "significant": "significant for",
    "significant_adjusted": "significant after adjustment for",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """An audit's headline count beside the counts of audits in which there is nothing to find.

    Parameters
    ----------
    runs, seed
        How many placebo audits were run, and where their randomness starts.
    k, measure
        The group size of the headline, and what it counts: "significant_adjusted", "significant"
        (without adjustment) or "cases" (where the method has no test).
    complainants
        The number of complainants of the audit.
    lines
        The shares in the audit and in each placebo, by k and measure; none if there is no floor.
    reason
        Why there is no noise floor; empty if there is one.

    Examples
    --------
    >>> import mutandis as mm
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=2000, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    ...     worldview=mm.Worldview(
    ...         {
    ...             "AnnualSalary": mm.Linear("Gender"),
    ...             "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
    ...         }
    ...     ),
    ...     ks=(50,),
    ... )
    >>> found.noise_floor.count, found.noise_floor.largest
    (202, 62)
    >>> found.noise_floor.more_than_every_placebo
    True
    """

    runs: int
    seed: int
    k: int
    measure: str
    complainants: int
    lines: tuple[PlaceboLine, ...] = ()
    reason: str = ""

    @property
    def line(self) -> PlaceboLine | None:
        """The shares that the headline is about; None if there is no floor."""
        found = (each for each in self.lines if (each.k, each.measure) == (self.k, self.measure))
        return next(found, None)

    @property
    def count(self) -> int | None:
        """The count of the audit's headline."""
        return None if self.line is None else self._scaled(self.line.share)

    @property
    def largest(self) -> int | None:
        """The largest placebo count, as many of the audit's complainants, rounded down."""
        return None if self.line is None else self._scaled(self.line.largest)

    @property
    def more_than_every_placebo(self) -> bool | None:
        """Whether the share of the audit is larger than that of every placebo."""
        return None if self.line is None else self.line.share > self.line.largest

    def _scaled(self, share: float) -> int:
        # a share of n people, as a part of m: not an integer, or farther from one than this
        return floor(share * self.complainants + 1e-9)

    def sentence(self) -> str:
        """Say the headline count, and the largest of the placebos beside it."""
        if self.line is None:
            return f"No noise floor: {self.reason}"
        said = (
            f"{_WORDS[self.measure]} {self.count:,} of {self.complainants:,} complainants; "
            f"none of {self.runs} placebo audits found more than {self.largest:,}"
        )
        return f"{said[0].upper()}{said[1:]}{self._scale()}."

    def _scale(self) -> str:
        if self.line is None or self.line.complainants == self.complainants:
            return ""
        each = f"{self.line.complainants:,} placebo complainants"
        each = f"a sample of {each}" if self.line.complainants == _MOST else f"{each} each"
        return f" (scaled from {each})"

    def verdict(self) -> str:
        """Say what that means about the table as a whole, and what it does not."""
        if self.line is None:
            return ""
        if not self.more_than_every_placebo:
            return (
                "That is not more than in every placebo audit: of the table as a whole, this is "
                "what an audit may find where there is nothing to find. That rules nothing out."
            )
        return (
            "That is more than in every placebo audit. As a test of the whole table: if the status "
            "made no difference to any decision, and the complainants were otherwise like the "
            f"people who got it at random, about 1 of {self.runs + 1} tables would show that. "
            "It is a test neither of the worldview nor of any one person's case."
        )

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain data, with what follows from it."""
        return {
            **asdict(self),
            "count": self.count,
            "largest": self.largest,
            "more_than_every_placebo": self.more_than_every_placebo,
            "sentence": self.sentence(),
        }

    @classmethod
    def of_dict(cls, data: Mapping[str, Any]) -> NoiseFloor:
        """Read it back from plain data.

        Parameters
        ----------
        data
            What `as_dict` has given.
        """
        lines = (
            PlaceboLine(**{**each, "placebos": tuple(each["placebos"])}) for each in data["lines"]
        )
        names = ("runs", "seed", "k", "measure", "complainants", "reason")
        return cls(**{name: data[name] for name in names}, lines=tuple(lines))


def no_noise_floor(plan: Plan, reason: str) -> NoiseFloor:
    """Say why there is no noise floor."""
    return NoiseFloor(
        runs=plan.settings.uncertainty.placebo,
        seed=plan.settings.seed or 0,
        k=plan.settings.primary[1],
        measure=_measure(plan),
        complainants=sum(len(stratum.complainants) for stratum in plan.strata),
        reason=reason,
    )


def measure_noise_floor(
    result: Audit,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> NoiseFloor:
    """Run the placebo audits of the primary method, or say why there are none."""
    plan = result.plan
    settings, (method, _) = plan.settings, plan.choose(None, None)
    none = no_noise_floor(plan, "")
    try:
        _check_runs(plan, method)
        lines = run_kind(
            result,
            "a",
            (method,),
            settings.ks,
            repeats=none.runs,
            seed=none.seed,
            most=_MOST,
            progress=progress,
        )
    except MutandisError as error:
        return replace(none, reason=str(error))
    return replace(none, lines=lines)


def _measure(plan: Plan) -> str:
    method, _ = plan.choose(None, None)
    if not method.count_neighbours:
        return "cases"
    return "significant" if plan.settings.evidence.adjust == "none" else "significant_adjusted"


def _check_runs(plan: Plan, method: Method) -> None:
    runs = plan.settings.uncertainty.placebo
    if not runs:
        raise PlanError("the audit was run with placebo = 0.")
    if method.needs_counterfactual_outcome and query_records(plan.decision):
        raise PlanError(
            f"b() is asked over a network, and {runs} placebo audits would ask it about every row "
            "again. Ask for them with audit.placebo(), or take a primary method without b()."
        )
