"""A case: everything about one complainant, as a view on an audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.sentences import answer_own_case, explain, explain_drawn, explain_own_case
from mutandis.engine.methods import CST_MATCHED
from mutandis.errors import PlanError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.sentences import Answer
    from mutandis.engine.members import Members
    from mutandis.engine.tally import Pair
    from mutandis.outcomes.measures import Measure

__all__ = ["Case"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Case:
    """One complainant.

    Parameters
    ----------
    id
        Who.
    outcome, outcome_cf
        The outcome on record, and the one her counterfactual would have had (None: not known).
    factual, counterfactual
        Her attributes, as they are and as they would have been; None without counterfactuals.
    results
        Her row of the findings, for each (method, k).
    couplings
        The attributes whose counterfactual value rests on an assumption that no data can test.
    drawn
        By attribute that the facts leave open: the values that it has in draws, each with the share
        of draws, the most frequent first. The comparison averages over the draws; the one value in
        `counterfactual` decides nothing.
    audit, place, row
        The audit, her place among its complainants, and her row.

    Examples
    --------
    >>> import mutandis as mm
    >>> found = mm.audit(
    ...     mm.datasets.loan(n=400, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous"},
    ...     worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
    ...     ks=(10,),
    ... )
    >>> case = found.case(found.findings()["id"].iloc[0])
    >>> case.result("cst_without", k=10)["verdict"]
    'evidence'
    >>> case.own_case
    'yes'
    """

    id: Any
    outcome: Any
    outcome_cf: Any
    factual: Mapping[str, Any]
    counterfactual: Mapping[str, Any] | None
    results: Mapping[tuple[str, int], Mapping[str, Any]]
    couplings: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    drawn: Mapping[str, tuple[tuple[Any, float], ...]] = field(default_factory=dict, kw_only=True)
    audit: Audit = field(repr=False, compare=False)
    place: int = field(repr=False, compare=False)
    row: int = field(repr=False, compare=False)

    def result(self, method: str, *, k: int) -> Mapping[str, Any]:
        """Give her row of the findings under one method and one k.

        Parameters
        ----------
        method, k
            What was run.
        """
        if (method, k) not in self.results:
            raise PlanError(f"The audit did not run method {method!r} at k={k}.")
        return self.results[method, k]

    def groups(self, method: str, *, k: int) -> Pair[Members]:
        """List the people in her control and test group; they are searched when asked for.

        Parameters
        ----------
        method, k
            What was run.
        """
        self.result(method, k=k)
        return self.audit.members(self.place, method, k)

    def explain(self, method: str | None = None, k: int | None = None) -> str:
        """Say in careful sentences what was found: the pattern, and then her own case.

        Parameters
        ----------
        method, k
            Default: the primary ones.
        """
        return f"{self.explain_pattern(method, k)} {self.explain_own_case()}"

    def explain_pattern(self, method: str | None = None, k: int | None = None) -> str:
        """Say in one sentence what was found about people like her.

        Parameters
        ----------
        method, k
            Default: the primary ones.
        """
        primary_method, primary_k = self.audit.plan.settings.primary
        method, k = method or primary_method, primary_k if k is None else k
        return explain(self.result(method, k=k), method, k, self.audit.plan)

    @property
    def own_case(self) -> Answer:
        """Whether she has a case of her own: refused, although most people like her were not.

        Of a score: whether hers is worse than the mean of theirs, by more than τ.
        These are the people most like her own counterfactual, where the audit runs `cst_matched`.
        """
        return answer_own_case(self.own_result(), self.audit.plan)

    def explain_own_case(self) -> str:
        """Describe what was decided on her, and on the people most like her own counterfactual."""
        return explain_own_case(self.own_result(), self.audit.plan)

    def own_result(self) -> dict[str, Any]:
        """Give her row of the headline, with what the matched comparison says of her own case."""
        method, k = self.audit.plan.settings.primary
        matched = self.audit.plan.outcome.kind.plain(self.results.get((CST_MATCHED.name, k), {}))
        own = {name: matched.get(name) for name in ("p_own", "own_case")}
        return {**self.audit.plan.outcome.kind.plain(self.results[method, k]), **own}

    def balance(self, method: str, k: int) -> Pair[Mapping[str, float]]:
        """Tell how far her search centers stand from the people around them, by attribute.

        Parameters
        ----------
        method, k
            What was run.
        """
        self.result(method, k=k)
        return self.audit.balance(self.place, method, k)

    def __repr__(self) -> str:
        """Name the case and its two answers; no value of a row."""
        method, k = self.audit.plan.settings.primary
        verdict = self.results[method, k]["verdict"]
        return f"Case({method} at k={k}: {verdict}; own case: {self.own_case})"

    def _repr_html_(self) -> str:
        """Show the page of text in a notebook."""
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        """Show the case as a page of text."""
        outcome = self._said(self.outcome)
        lines = [f"Complainant {self.id}: outcome {outcome}, counterfactual {self._would_be()}"]
        lines.extend(self._attribute_lines())
        method, k = self.audit.plan.settings.primary
        verdict = self.results[method, k]["verdict"]
        lines.append(f"Pattern among people like her ({method} at k = {k}): {verdict}")
        lines.extend(wrap(self.explain_own_case(), width=96, subsequent_indent="  "))
        lines.extend(self._result_lines())
        return printable("\n".join(lines))

    def _result_lines(self) -> Iterator[str]:
        words, measure = self.audit.plan.words, self.audit.plan.settings.measure
        named = f"{measure.symbol:>15}" if measure.is_ratio else ""
        titles, wide = words.row()
        yield (
            f"  {'method':<12} {'k':>4} {titles[0]:>{wide + 2}} {titles[1]:>{wide}} "
            f"{words.symbol:>{wide}}{named}  interval          verdict{self._share_heading()}"
        )
        for (method, k), result in self.results.items():
            row = words.kind.plain(result)
            yield _result_line(method, k, row, measure, show=words.number, wide=wide)

    def _share_heading(self) -> str:
        drawn = any("verdict_share" in result for result in self.results.values())
        return f"{'verdict stays':>30}" if drawn else ""

    @property
    def outcome_cf_share(self) -> float | None:
        """The share of draws with the counterfactual outcome; None where it is not open."""
        if len(self.audit.grounds) > 1:
            return None
        drawn, would_be = self.audit.ground.world.decided_parts, self.audit.ground.world.decided
        if drawn is None or would_be is None or self.audit.plan.outcome.kind.numeric:
            return None
        return float((drawn[:, self.place] == would_be[self.row]).mean())

    def _said(self, outcome: Any) -> str:
        return self.audit.plan.words.value(outcome)

    def _would_be(self) -> str:
        if self.outcome_cf is None:
            return "not decided"
        share, said = self.outcome_cf_share, self._said(self.outcome_cf)
        return said if share is None else f"{said} (in {share:.0%} of draws)"

    def _likelihood(self, name: str) -> str:
        if self.counterfactual is None:
            return ""
        show = partial(self.audit.plan.labels.level, name, show=_show)
        said = explain_drawn(self.counterfactual[name], self.drawn.get(name, ()), show)
        return f" ({said})" if said else ""

    def _attribute_lines(self) -> list[str]:
        labels = self.audit.plan.labels
        width = max((len(labels.column(name)) for name in self.factual), default=0)
        lines = []
        for name, value in self.factual.items():
            line = f"  {labels.column(name):<{width}}  {labels.level(name, value, _show)}"
            if self.counterfactual is not None:
                would_be = labels.level(name, self.counterfactual[name], _show)
                line += f"  →  {would_be}{self._likelihood(name)}"
            if name in self.couplings:
                line += f"  (assuming {self.couplings[name]}, which no data can test)"
            lines.append(line)
        return lines


def _result_line(
    method: str,
    k: int,
    result: Mapping[str, Any],
    measure: Measure,
    *,
    show: Callable[[float], str],
    wide: int,
) -> str:
    low, high = result["ci_low"], result["ci_high"]
    ratio = ""
    if measure.is_ratio:  # the interval is the ratio's
        low, high = result[f"{measure.column}_low"], result[f"{measure.column}_high"]
        ratio = f"{result[measure.column]:>15.3f}"
    interval = "" if np.isnan(low) else f"[{show(low):>6}, {show(high):>6}]"
    share = (
        f"{result['verdict_share']:>{37 - len(result['verdict'])}.2f}"
        if "verdict_share" in result
        else ""
    )
    control, test, delta = (show(result[name]) for name in ("p_control", "p_test", "delta_p"))
    return (
        f"  {method:<12} {k:>4} {control:>{wide + 2}} {test:>{wide}} "
        f"{delta:>{wide}}{ratio}  {interval:<16}  {result['verdict']}{share}"
    )


def _show(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
