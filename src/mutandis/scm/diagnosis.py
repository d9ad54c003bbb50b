"""The results of checking a worldview, as records and as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from mutandis.data.columns import jsonable
from mutandis.errors import printable
from mutandis.scm.dependence import Dependence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mutandis.data.labels import Labels


Aspect = Literal["level", "spread", "interaction", "distribution", "independence"]
Severity = Literal["large", "small", "none", "unknown"]

NOTICEABLE = 0.1
"""Counterfactuals off by a tenth of a standard deviation make cases where no harm was done."""
# share of the changed rows that have to move so far for a problem to be large
_MANY = 0.1

# marks fields that hold names of columns, which documents replace by labels
_COLUMNS = {"columns": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """How far counterfactuals move once one equation is fitted again to repair a problem.

    Compared are the counterfactuals of the rows that the intervention changes. Of several repairs,
    this is the one that moves them most.
    """

    form: str = ""  # the text of the repair, with places for the columns
    columns: tuple[str, ...] = field(default=(), metadata=_COLUMNS)
    # the attribute that moves most; None if no counterfactual moves
    attribute: str | None = field(default=None, metadata=_COLUMNS)
    # the share of rows that move by a tenth of a standard deviation, or to another category
    share: float = 0.0
    median: float | None = None  # in standard deviations; None for a nominal attribute
    largest: float | None = None
    note: str = ""  # why nothing was measured; empty if something was

    @property
    def repair(self) -> str:
        """The repair, in words."""
        return self.form.format(*self.columns)

    @property
    def severity(self) -> Severity:
        """The importance: "large" if a tenth of the rows move noticeably, "small" or "none"."""
        if self.note:
            return "unknown"
        if self.attribute is None:
            return "none"
        return "large" if self.share >= _MANY else "small"

    @property
    def size(self) -> tuple[float, float, float]:
        """The key by which movements are ordered."""
        return self.share, self.median or 0.0, self.largest or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationCheck:
    """How much of an attribute its equation explains."""

    child: str = field(metadata=_COLUMNS)
    family: str
    parents: tuple[str, ...] = field(metadata=_COLUMNS)
    measure: str  # "R²", "deviance explained" …, or "not available"
    fit: float | None = None
    hidden: str | None = None  # the hidden cause that drives it too, which the fit does not count


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Dependence):
    """One test of the worldview, or the reason why it was not done."""

    # "level": the mean of residuals changes with a column; "spread": their width does;
    # "interaction": the effects of two causes change with each other; "distribution": values are
    # not distributed as the family says; "independence": two attributes depend on each other
    aspect: Aspect
    child: str = field(metadata=_COLUMNS)
    on: str | None = field(default=None, metadata=_COLUMNS)
    # the column that the effect of `on` may change with, or what independence is given
    further: tuple[str, ...] = field(default=(), metadata=_COLUMNS)
    p_adjusted: float | None = None  # for the number of tests in the diagnosis, by Holm's method
    movement: Movement | None = field(default=None, metadata=_COLUMNS)

    @property
    def effect_on_counterfactuals(self) -> Movement:
        return self.movement or Movement(note="no intervention was given")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Diagnosis:
    """The evidence in a table against a worldview.

    Parameters
    ----------
    rows
        How many rows the worldview was checked on.
    taken_from
        How many rows the table has, if not all were used: they are taken evenly from the rows in
        the order of their contents.
    alpha
        A test whose adjusted p-value is below it is a problem.
    equations, findings
        How much equations explain, and all tests. One without a p-value was not done.
    protected
        The protected attribute, and those that the intervention sets.
    roots
        Attributes that nothing in the worldview causes.
    changed
        How many rows the intervention changes; missing without one.
    clipped, outside
        For each attribute that moves, the share of these rows whose counterfactual was cut off at
        the bounds of its equation, or lies outside the range of the facts.
    couplings
        Attributes whose counterfactuals rest on an assumed coupling, with its name.

    Examples
    --------
    >>> import mutandis as mm
    >>> worldview = mm.Worldview(
    ...     {"AnnualSalary": mm.Linear("Gender"), "AccountBalance": mm.Linear("Gender")}
    ... )
    >>> diagnosis = worldview.check(mm.datasets.loan(n=400, seed=1))
    >>> diagnosis
    Diagnosis(rows=399, tests=3, problems=1, alpha=0.01)
    >>> len(diagnosis.problems)
    1
    """

    rows: int
    alpha: float
    equations: tuple[EquationCheck, ...] = field(default=(), metadata=_COLUMNS)
    findings: tuple[Finding, ...] = field(default=(), metadata=_COLUMNS)
    protected: tuple[str, ...] = field(default=(), metadata=_COLUMNS)
    roots: tuple[str, ...] = field(default=(), metadata=_COLUMNS)
    changed: int | None = None
    clipped: Mapping[str, float] = field(default_factory=dict, metadata=_COLUMNS)
    outside: Mapping[str, float] = field(default_factory=dict, metadata=_COLUMNS)
    couplings: Mapping[str, str] = field(default_factory=dict, metadata=_COLUMNS)
    taken_from: int | None = None

    def with_labels(self, labels: Labels) -> Diagnosis:
        """Return the same diagnosis with columns named by their labels, for sentences."""
        labelled: Diagnosis = _renamed(self, labels.column)
        return labelled

    @property
    def tests(self) -> int:
        """The number of tests that were done, which p-values are adjusted for."""
        return sum(finding.p_value is not None for finding in self.findings)

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The tests that contradict the worldview: adjusted p-value below alpha."""
        return tuple(filter(self.is_problem, self.findings))

    def is_problem(self, finding: Finding) -> bool:
        """Return whether a test of this diagnosis contradicts the worldview."""
        return finding.p_adjusted is not None and finding.p_adjusted < self.alpha

    def by_severity(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the problems that move counterfactuals this far, the farthest first."""
        by_size = sorted(
            self.problems, key=lambda each: each.effect_on_counterfactuals.size, reverse=True
        )
        return tuple(
            each for each in by_size if each.effect_on_counterfactuals.severity == severity
        )

    def sections(self) -> dict[str, tuple[str, ...]]:
        """Describe the results in sentences under headings, problems first."""
        unknown = _UNMEASURED if self.changed is None else _UNKNOWN
        found: dict[str, Iterable[str]] = {
            "Problems that move counterfactuals": self._problems("large"),
            "Problems that move counterfactuals little": self._problems("small"),
            unknown: self._problems("unknown"),
            "Problems that move no counterfactual": self._problems("none"),
            "What agrees with the worldview": _agreement(self),
            "What the equations explain": map(_fit, self.equations),
            "How far the equations are carried": _extrapolation(self),
            "What was not tested": _untested(self),
            "What no table can show": _limits(self),
        }
        listed = {heading: tuple(sentences) for heading, sentences in found.items()}
        return {heading: sentences for heading, sentences in listed.items() if sentences}

    def _problems(self, severity: Severity) -> Iterator[str]:
        for each in self.by_severity(severity):
            yield " ".join(filter(None, [_fact(each, self), _moved(each, self)]))

    @property
    def summary(self) -> str:
        """The number of tests and of problems, in a sentence."""
        found = _number(len(self.problems), "problem") if self.problems else "no problem"
        table = f" of {self.taken_from:,}" if self.taken_from else ""
        return (
            f"Checked on {_number(self.rows, 'row')}{table} with {_number(self.tests, 'test')}: "
            f"{found}. p-values are adjusted for the number of tests (Holm); a problem is one "
            f"below {self.alpha:g}."
        )

    @property
    def next_step(self) -> str:
        """What to do next, in a sentence."""
        return _next_step(self)

    def sentences(self) -> tuple[str, ...]:
        """Describe the results in sentences without headings, the summary first."""
        described = (sentence for section in self.sections().values() for sentence in section)
        return (self.summary, *described, self.next_step)

    def __str__(self) -> str:
        """Return the sentences under their headings, one per line."""
        lines = [self.summary]
        for heading, sentences in self.sections().items():
            lines += ["", heading, *(f"- {sentence}" for sentence in sentences)]
        return printable("\n".join([*lines, "", self.next_step]))

    def __repr__(self) -> str:
        found = f"tests={self.tests}, problems={len(self.problems)}"
        return f"Diagnosis(rows={self.rows}, {found}, alpha={self.alpha:g})"

    def as_dict(self) -> dict[str, Any]:
        """Return everything in types that JSON has."""
        found: dict[str, Any] = jsonable(self)
        for finding, written in zip(self.findings, found["findings"], strict=True):
            written["problem"] = self.is_problem(finding)
        return {
            **found,
            "tests": self.tests,
            "adjustment": "holm",
            "summary": self.summary,
            "sections": jsonable(self.sections()),
            "next_step": self.next_step,
        }


def _renamed(value: Any, column: Callable[[str], str]) -> Any:
    """Replace names of columns by labels, in all fields that hold them."""
    if isinstance(value, str):
        return column(value)
    if isinstance(value, Mapping):
        return {column(name): each for name, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_renamed(each, column) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    held = [each.name for each in fields(value) if each.metadata.get("columns")]
    return replace(value, **{name: _renamed(getattr(value, name), column) for name in held})


# --- sentences --------------------------------------------------------------------------------

_UNKNOWN = "Problems of which it is not known whether they move counterfactuals"
_UNMEASURED = "Problems (give an intervention, `do`, to see how far they move counterfactuals)"


def _fact(finding: Finding, diagnosis: Diagnosis) -> str:
    child, on, p = finding.child, finding.on, _p(finding)
    match finding.aspect:
        case "level":
            causes = {each.child: each.parents for each in diagnosis.equations}
            part = "part of the" if on in causes.get(child, ()) else "an"
            return (
                f"{child}: residuals still depend on {on} ({p}): the equation misses {part} effect "
                f"of {on}. {_size(finding)}"
            )
        case "interaction":
            return (
                f"{child}: the effect of {on} changes with {_listed(finding.further)} ({p}), which "
                f"the equation leaves out. {_size(finding)}"
            )
        case "distribution":
            return (
                f"{child}: its values are not distributed as the equation says ({p}). On the scale "
                "on which they should be standard normal, their standard deviation is "
                f"{finding.effect:.2f}: another family may fit better."
            )
        case "spread":
            ratio = f", {finding.effect:.2f} times as widely in one group as in another"
            return (
                f"{child}: the noise spreads differently over the values of {on} "
                f"({p}{ratio if finding.effect else ''}). Averages may be right, but the equation "
                "carries every person's noise over unchanged."
            )
        case "independence":
            return _dependence(finding, diagnosis)


def _dependence(finding: Finding, diagnosis: Diagnosis) -> str:
    size = f"correlation {finding.effect:.2f}, " if finding.effect_name == "correlation" else ""
    partial = "partial " if size and finding.further else ""
    fact = f"{_pair(finding, 'are not independent')} ({partial}{size}{_p(finding)})"
    if {finding.on, finding.child} <= set(diagnosis.roots):
        return (
            f"{fact}, although nothing in the worldview connects them: an arrow is missing if one "
            "causes the other; with a hidden common cause, or selection into the table, the "
            "equations can still hold."
        )
    return (
        f"{fact}, although the worldview says that they are: a hidden common cause of both is "
        "missing, or an arrow between them."
    )


def _size(finding: Finding) -> str:
    """Describe the size of an effect: with many rows, negligible ones are significant too."""
    single = finding.effect_name == "correlation"
    share = (finding.effect or 0.0) ** (2 if single else 1)
    return f"That is {_percent(share)} of the residual variance."


def _moved(finding: Finding, diagnosis: Diagnosis) -> str:
    movement = finding.effect_on_counterfactuals
    if movement.note:
        without = diagnosis.changed is None
        return "" if without else f"How far counterfactuals move was not measured: {movement.note}."
    if movement.attribute is None:
        return f"With {movement.repair}, no counterfactual moves."
    whose = f"With {movement.repair}, counterfactuals of {movement.attribute}"
    if movement.median is None or movement.largest is None:
        return f"{whose} change their category in {_percent(movement.share)} of the rows."
    some = f" ({NOTICEABLE} or more in {_percent(movement.share)} of the rows)"
    return (
        f"{whose} move by {_deviations(movement.median)} standard deviations in the median, by "
        f"{_deviations(movement.largest)} at most{some if 0.0 < movement.share < 1.0 else ''}."
    )


def _agreement(diagnosis: Diagnosis) -> Iterator[str]:
    agreeing = diagnosis.tests - len(diagnosis.problems)
    if agreeing:
        other = "other " if diagnosis.problems else ""
        yield f"{_number(agreeing, f'{other}test')} found no evidence against the worldview."


def _fit(check: EquationCheck) -> str:
    explain = f"{_listed(check.parents)} explain{'' if len(check.parents) > 1 else 's'}"
    family = check.family if check.hidden is None else f"{check.family}, driven by {check.hidden}"
    if check.fit is None:
        return f"{check.child} ({family}): how much of it {explain} is {check.measure}."
    return (
        f"{check.child} ({family}): {explain} {_percent(max(check.fit, 0.0))} of it "
        f"({check.measure} = {check.fit:.3f})."
    )


def _extrapolation(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.changed is None:
        return
    whose = f"the {_number(diagnosis.changed, 'row')} that the intervention changes"
    beyond = [(child, share) for child, share in diagnosis.outside.items() if share]
    clipped = [(child, share) for child, share in diagnosis.clipped.items() if share]
    if not diagnosis.changed:
        yield "The intervention changes no rows: all rows have these values already."
    elif not diagnosis.outside:
        yield f"The intervention moves nothing else in {whose}: the worldview gives it no effects."
    elif not beyond and not clipped:
        moved = _listed(diagnosis.outside)
        yield f"{moved}: no counterfactual of {whose} lies outside the range of the facts."
    for child, share in beyond:
        yield (
            f"{child}: {_percent(share)} of the counterfactuals of {whose} lie outside the range "
            "of the facts: there the equation extrapolates."
        )
    for child, share in clipped:
        yield (
            f"{child}: {_percent(share)} of the counterfactuals of {whose} were cut off at the "
            "bounds: there the equation predicts impossible values."
        )


def _untested(diagnosis: Diagnosis) -> Iterator[str]:
    gathered: dict[tuple[str, str, str], list[str]] = {}
    for finding in diagnosis.findings:
        if finding.aspect == "independence":
            continue
        if finding.p_value is None:
            over = " with ".join(filter(None, [finding.on, *finding.further]))
            same = gathered.setdefault((finding.child, finding.aspect, finding.note), [])
            same.append(over)
    for (child, aspect, note), columns in gathered.items():
        over = f" over {_listed(columns)}" if all(columns) else ""
        yield f"{child}: {aspect}{over} not tested: {note}."
    for finding in diagnosis.findings:
        if finding.aspect == "independence" and finding.note:
            tested = finding.p_value is not None
            said = "were compared, but" if tested else "were not tested for independence:"
            yield f"{_pair(finding, said)} {finding.note}."


def _limits(diagnosis: Diagnosis) -> Iterator[str]:
    """List what makes counterfactuals wrong without a test that shows it."""
    if diagnosis.protected:
        status, effects = _listed(diagnosis.protected), _effects(diagnosis)
        yield (
            f"A hidden cause of both {status} and {effects}, or selection into the table by both, "
            f"is taken for an effect of {status}. No test above can see it, and many of the "
            "significant cases can then be false (docs/diagnostics.md has numbers)."
        )
    for child, coupling in diagnosis.couplings.items():
        yield f"{child}: its counterfactuals rest on {coupling}, which no data can test."
    if not diagnosis.problems:
        yield (
            "The absence of problems does not show that the worldview is right: another one may "
            "agree with the table as well and give other counterfactuals."
        )


def _next_step(diagnosis: Diagnosis) -> str:
    if diagnosis.problems and diagnosis.changed is None:
        return "Next: check again with an intervention, do={…}, to see which problems matter."
    large = diagnosis.by_severity("large")
    if large:
        return (
            "Next: repair the problem that moves counterfactuals most "
            f"({large[0].effect_on_counterfactuals.repair}), and check again. Where experts "
            "disagree about it, audit under both worldviews (audit.with_worldviews)."
        )
    if diagnosis.by_severity("unknown"):
        return (
            "Next: ask experts about the problems that were not measured, and audit under each "
            "worldview that they hold possible (audit.with_worldviews)."
        )
    if not diagnosis.protected:
        return "Next: check again with the protected attribute and its intervention, do={…}."
    return (
        f"Next: ask experts whether anything hidden drives both {_listed(diagnosis.protected)} and "
        f"{_effects(diagnosis)}, and how people came into the table; then run the audit."
    )


def _effects(diagnosis: Diagnosis) -> str:
    """Name what the protected attributes move, as far as a sentence can hold it."""
    reached = set(diagnosis.protected)
    for equation in diagnosis.equations:  # causes come before their effects
        if not reached.isdisjoint(equation.parents):
            reached.add(equation.child)
    effects = [each.child for each in diagnosis.equations if each.child in reached]
    return _listed(effects, last="or") if 0 < len(effects) <= 3 else "an attribute"


def _pair(finding: Finding, said: str) -> str:
    given = f" given {_listed(finding.further)}" if finding.further else ""
    return f"{finding.on} and {finding.child} {said}{given}"


def _p(finding: Finding) -> str:
    value = 1.0 if finding.p_adjusted is None else finding.p_adjusted
    return "p < 0.001" if value < 0.0005 else f"p = {value:.3f}"


def _deviations(distance: float) -> str:
    return "less than 0.01" if distance < 0.01 else f"{distance:.2f}"


def _percent(share: float) -> str:
    return "less than 0.1 %" if 0.0 < share < 0.001 else f"{100.0 * share:.1f} %"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _listed(names: Iterable[str], *, last: str = "and") -> str:
    *others, final = [*names] or [""]
    return f"{', '.join(others)} {last} {final}" if others else final
