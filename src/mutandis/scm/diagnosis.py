"""What a check of a worldview found, as records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from mutandis.data.columns import jsonable
from mutandis.errors import printable
from mutandis.scm.dependence import Dependence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mutandis.data.labels import Labels


Aspect = Literal["level", "spread", "interaction", "distribution"]
Severity = Literal["large", "small", "none", "unknown"]

NOTICEABLE = 0.1
"""Counterfactuals off by a tenth of a standard deviation make cases where no harm was done."""
# The share of the changed rows that have to move so far for a problem to be called large.
_MANY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """How far counterfactuals move where a problem is mended.

    One equation is fitted again as the problem suggests; compared are the counterfactuals of the
    rows that the intervention changes.

    Parameters
    ----------
    repair
        What the equation was given: "an arrow from AnnualSalary to AccountBalance", for example.
        Where there are several ways, the one that moves most.
    attribute
        The attribute that moves most; None if no counterfactual moves.
    share
        The share of the rows whose counterfactual moves by a tenth of a standard deviation of the
        attribute or more; of a nominal attribute, that get another category.
    median, largest
        How far it moves, in standard deviations of the attribute; None for a nominal one.
    note
        Why nothing was measured; empty if something was.

    Examples
    --------
    >>> import mutandis as mm
    >>> worldview = mm.Worldview(
    ...     {"AnnualSalary": mm.Linear("Gender"), "AccountBalance": mm.Linear("AnnualSalary")}
    ... )
    >>> table = mm.datasets.loan(n=2000, seed=1)
    >>> problem = worldview.check(table, protected="Gender", do={"Gender": 0}).problems[0]
    >>> movement = problem.movement
    >>> movement.repair
    'an arrow from Gender to AccountBalance'
    >>> movement.attribute, round(movement.median, 2), movement.severity
    ('AccountBalance', 0.11, 'large')
    """

    repair: str = ""
    attribute: str | None = None
    share: float = 0.0
    median: float | None = None
    largest: float | None = None
    note: str = ""
    # what `repair` is made of, where it names columns: a form, and what it is filled with
    made_of: tuple[str, ...] = field(default=(), compare=False, metadata={"json": False})

    def with_labels(self, labels: Labels) -> Movement:
        """Name columns by their labels.

        Parameters
        ----------
        labels
            The words.
        """
        form, *names = self.made_of or (self.repair,)
        return replace(
            self,
            repair=form.format(*map(labels.column, names)) if names else self.repair,
            attribute=None if self.attribute is None else labels.column(self.attribute),
        )

    @property
    def severity(self) -> Severity:
        """How much it matters: "large", "small", "none", or "unknown".

        It is large if a tenth of the rows move by a tenth of a standard deviation or more.
        """
        if self.note:
            return "unknown"
        if self.attribute is None:
            return "none"
        return "large" if self.share >= _MANY else "small"


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationCheck:
    """How much an equation explains."""

    # the attribute, the family of its equation and its causes
    child: str
    family: str
    parents: tuple[str, ...]
    measure: str  # how the fit is measured: "R²", "deviance explained" …, or "not available"
    fit: float | None = None  # the fit by that measure
    # the hidden common cause that drives it too; the fit does not count what that explains
    hidden: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Dependence):
    """A test of the worldview, beside the others of its diagnosis."""

    # the p-value, adjusted for the number of tests in the diagnosis by Holm's method
    p_adjusted: float | None = None
    # how far counterfactuals move where a problem is mended, if there is an intervention
    movement: Movement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualCheck(Check):
    """Whether what an equation leaves over still depends on a column."""

    child: str  # the attribute
    # the column; missing for the aspect "distribution", which is of the residuals alone
    on: str | None
    # for the aspect "interaction", the column that the effect of `on` may change with
    with_column: str | None = None
    # whether the mean of the residuals changes with the column ("level"), how far they spread
    # ("spread"), whether the effects of two causes change with each other ("interaction"), or
    # whether values are spread as the family says ("distribution")
    aspect: Aspect


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependenceCheck(Check):
    """Whether two attributes are independent where the graph says so."""

    # the worldview says: among people alike in `given`, `first` tells nothing about `second`
    first: str
    second: str
    given: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Diagnosis:
    """What a table says about a worldview.

    Parameters
    ----------
    rows
        How many rows the worldview was checked on.
    taken_from
        How many rows the table has, where not all of them were looked at: they are taken evenly
        from those in the order of what they hold.
    alpha
        A test whose adjusted p-value is below it is a problem.
    equations, residuals, independences
        The checks. One without a p-value was not done; its note says why.
    protected
        The protected attribute, and those that the intervention sets.
    roots
        Attributes that nothing in the worldview causes.
    changed
        How many rows the intervention changes; missing without one.
    clipped
        For each attribute that moves, the share of these rows whose counterfactual was cut off at
        the bounds of its equation.
    outside
        For each, the share of these rows whose counterfactual lies outside the range of the facts.
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
    equations: tuple[EquationCheck, ...] = ()
    residuals: tuple[ResidualCheck, ...] = ()
    independences: tuple[IndependenceCheck, ...] = ()
    protected: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    changed: int | None = None
    clipped: Mapping[str, float] = field(default_factory=dict)
    outside: Mapping[str, float] = field(default_factory=dict)
    couplings: Mapping[str, str] = field(default_factory=dict)
    taken_from: int | None = None

    def with_labels(self, labels: Labels) -> Diagnosis:
        """Give the same diagnosis with columns named by their labels, for sentences.

        Parameters
        ----------
        labels
            The words.
        """
        column = labels.column

        def names(given: Iterable[str]) -> tuple[str, ...]:
            return tuple(map(column, given))

        def moved(check: Check) -> dict[str, Any]:
            return {"movement": check.movement and check.movement.with_labels(labels)}

        return replace(
            self,
            equations=tuple(
                replace(each, child=column(each.child), parents=names(each.parents))
                for each in self.equations
            ),
            residuals=tuple(
                replace(
                    each,
                    child=column(each.child),
                    on=None if each.on is None else column(each.on),
                    with_column=None if each.with_column is None else column(each.with_column),
                    **moved(each),
                )
                for each in self.residuals
            ),
            independences=tuple(
                replace(
                    each,
                    first=column(each.first),
                    second=column(each.second),
                    given=names(each.given),
                    **moved(each),
                )
                for each in self.independences
            ),
            protected=names(self.protected),
            roots=names(self.roots),
            clipped={column(name): share for name, share in self.clipped.items()},
            outside={column(name): share for name, share in self.outside.items()},
            couplings={column(name): each for name, each in self.couplings.items()},
        )

    @property
    def checks(self) -> tuple[ResidualCheck | IndependenceCheck, ...]:
        """All checks that could have a p-value."""
        return (*self.residuals, *self.independences)

    @property
    def tests(self) -> int:
        """How many tests were done, and p-values are adjusted for."""
        return sum(check.p_value is not None for check in self.checks)

    @property
    def problems(self) -> tuple[ResidualCheck | IndependenceCheck, ...]:
        """The checks that contradict the worldview: adjusted p-value below alpha."""
        return tuple(check for check in self.checks if self.is_problem(check))

    def is_problem(self, check: ResidualCheck | IndependenceCheck) -> bool:
        """Tell whether a check of this diagnosis contradicts the worldview.

        Parameters
        ----------
        check
            One of `residuals` or `independences`.
        """
        return check.p_adjusted is not None and check.p_adjusted < self.alpha

    def by_severity(self, severity: Severity) -> tuple[ResidualCheck | IndependenceCheck, ...]:
        """Choose the problems that move counterfactuals as far as this, the farthest first.

        Parameters
        ----------
        severity
            "large", "small" or "none", or "unknown" where it was not measured.
        """
        chosen = [check for check in self.problems if _movement(check).severity == severity]
        return tuple(sorted(chosen, key=lambda check: _rank(_movement(check)), reverse=True))

    def sections(self) -> dict[str, tuple[str, ...]]:
        """Say what was found in plain sentences, under headings: problems first, then the rest."""
        unknown = _UNMEASURED if self.changed is None else _UNKNOWN
        headed: dict[str, Iterable[str]] = {
            "Problems that move counterfactuals": self._problem_sentences("large"),
            "Problems that move counterfactuals little": self._problem_sentences("small"),
            unknown: self._problem_sentences("unknown"),
            "Problems that move no counterfactual": self._problem_sentences("none"),
            "What agrees with the worldview": _reassurances(self),
            "What the equations explain": map(_fit, self.equations),
            "How far the equations are carried": _intervention(self),
            "What was not tested": _untested(self),
            "What no table can show": _limits(self),
        }
        found = {heading: tuple(sentences) for heading, sentences in headed.items()}
        return {heading: sentences for heading, sentences in found.items() if sentences}

    def _problem_sentences(self, severity: Severity) -> Iterator[str]:
        return (_problem(check, self) for check in self.by_severity(severity))

    @property
    def summary(self) -> str:
        """The number of tests and of problems, in a sentence."""
        tests = _number(self.tests, "test")
        found = _number(len(self.problems), "problem") if self.problems else "no problem"
        table = f" of {self.taken_from:,}" if self.taken_from else ""
        return (
            f"Checked on {_number(self.rows, 'row')}{table} with {tests}: {found}. p-values are "
            f"adjusted for the number of tests (Holm); a problem is one below {self.alpha:g}."
        )

    @property
    def next_step(self) -> str:
        """What to do next, in a sentence."""
        return _next_step(self)

    def sentences(self) -> tuple[str, ...]:
        """Say what was found in plain sentences, without headings: the summary, then all else."""
        said = (sentence for section in self.sections().values() for sentence in section)
        return (self.summary, *said, self.next_step)

    def __str__(self) -> str:
        """Give the sentences under their headings, one per line."""
        parts = [self.summary]
        for heading, sentences in self.sections().items():
            parts += ["", heading, *(f"- {sentence}" for sentence in sentences)]
        return printable("\n".join([*parts, "", self.next_step]))

    def __repr__(self) -> str:
        found = f"tests={self.tests}, problems={len(self.problems)}"
        return f"Diagnosis(rows={self.rows}, {found}, alpha={self.alpha:g})"

    def _repr_html_(self) -> str:
        """Show the sentences as lists under their headings, in a notebook."""
        from html import escape

        parts = [f"<p>{escape(self.summary)}</p>"]
        for heading, sentences in self.sections().items():
            items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
            parts.append(f"<p><strong>{escape(heading)}</strong></p><ul>{items}</ul>")
        return "".join([*parts, f"<p>{escape(self.next_step)}</p>"])

    def as_dict(self) -> dict[str, Any]:
        """Give everything in types that JSON has."""
        found: dict[str, Any] = jsonable(self)
        for check, written in zip(
            self.checks, [*found["residuals"], *found["independences"]], strict=True
        ):
            written["problem"] = self.is_problem(check)
        return {
            **found,
            "tests": self.tests,
            "adjustment": "holm",
            "summary": self.summary,
            "sections": jsonable(self.sections()),
            "next_step": self.next_step,
        }


_UNKNOWN = "Problems of which it is not known whether they move counterfactuals"
_UNMEASURED = "Problems (give an intervention, `do`, to see how far they move counterfactuals)"


def _movement(check: ResidualCheck | IndependenceCheck) -> Movement:
    return check.movement or Movement(note="no intervention was given")


def _rank(movement: Movement) -> tuple[float, float, float]:
    return movement.share, movement.median or 0.0, movement.largest or 0.0


def _problem(check: ResidualCheck | IndependenceCheck, diagnosis: Diagnosis) -> str:
    if isinstance(check, IndependenceCheck):
        fact = _contradicted(check, diagnosis)
    elif check.aspect == "spread":
        fact = _spread_problem(check, diagnosis)
    else:
        fact = _misfit(check, diagnosis)
    return " ".join(filter(None, [fact, _moved(check, diagnosis)]))


def _misfit(check: ResidualCheck, diagnosis: Diagnosis) -> str:
    child, on, p = check.child, check.on, _p(check)
    if check.aspect == "level":
        causes = {check.child: check.parents for check in diagnosis.equations}
        part = "part of the" if on in causes.get(child, ()) else "an"
        return (
            f"{child}: residuals still depend on {on} ({p}): the equation misses {part} effect of "
            f"{on}. {_size(check)}"
        )
    if check.aspect == "interaction":
        return (
            f"{child}: the effect of {on} changes with {check.with_column} ({p}), which the "
            f"equation leaves out. {_size(check)}"
        )
    return (
        f"{child}: its values are not distributed as the equation says ({p}). On the scale on "
        f"which they should be standard normal, their standard deviation is {check.effect:.2f}: "
        "another family may fit better."
    )


def _moved(check: ResidualCheck | IndependenceCheck, diagnosis: Diagnosis) -> str:
    """Say how far counterfactuals move where a problem is mended."""
    movement = _movement(check)
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


def _deviations(distance: float) -> str:
    return "less than 0.01" if distance < 0.01 else f"{distance:.2f}"


def _size(check: ResidualCheck) -> str:
    """Say how much there is to it: with many rows, what hardly matters is significant too."""
    single = check.effect_name == "correlation"
    share = (check.effect or 0.0) ** (2 if single else 1)
    return f"That is {_percent(share)} of the variance that the equation leaves."


def _spread_problem(check: ResidualCheck, diagnosis: Diagnosis) -> str:
    ratio = f", {check.effect:.2f} times as widely in one group as in another"
    missed = any(
        other.child == check.child and other.on == check.on and diagnosis.is_problem(other)
        for other in diagnosis.residuals
        if other.aspect == "level"
    )
    if missed:
        follows = "that may follow from the effect that is missed."
    else:
        follows = (
            "averages may be right, but the equation carries each person's noise over in the "
            "same way."
        )
    return (
        f"{check.child}: the noise spreads differently over the values of {check.on} "
        f"({_p(check)}{ratio if check.effect else ''}): {follows}"
    )


def _contradicted(check: IndependenceCheck, diagnosis: Diagnosis) -> str:
    size = f"correlation {check.effect:.2f}, " if check.effect_name == "correlation" else ""
    partial = "partial " if size and check.given else ""
    fact = (
        f"{check.first} and {check.second} are not independent{_given(check)} "
        f"({partial}{size}{_p(check)})"
    )
    if {check.first, check.second} <= set(diagnosis.roots):
        return (
            f"{fact}, although nothing in the worldview connects them: if one is a cause of the "
            "other, an arrow is missing; if both follow from something hidden, or from who came "
            "into the table, the equations can still hold."
        )
    return (
        f"{fact}, although the worldview says that they are: a hidden common cause of both is "
        "missing, or an arrow between them."
    )


def _reassurances(diagnosis: Diagnosis) -> Iterator[str]:
    for equation in diagnosis.equations:
        own = [check for check in diagnosis.residuals if check.child == equation.child]
        troubled = {check.on for check in own if diagnosis.is_problem(check)}
        done = [check for check in own if check.p_value is not None]
        columns = dict.fromkeys(
            check.on
            for check in done
            if check.aspect in {"level", "spread"} and check.on not in troubled
        )
        if columns:
            yield (
                f"{equation.child}: found no sign that what the equation leaves over depends on "
                f"{_listed(filter(None, columns), last='or')}."
            )
        for check in done:
            if check.aspect == "interaction" and not diagnosis.is_problem(check):
                yield (
                    f"{equation.child}: found no sign that the effect of {check.on} changes with "
                    f"{check.with_column}."
                )
            if check.aspect == "distribution" and not diagnosis.is_problem(check):
                yield f"{equation.child}: found no sign against its family ({equation.family})."
    for independence in diagnosis.independences:
        if independence.p_value is not None and not diagnosis.is_problem(independence):
            yield (
                f"{independence.first} and {independence.second}: found no sign that they depend "
                f"on each other{_given(independence)}."
            )


def _fit(check: EquationCheck) -> str:
    explain = f"{_listed(check.parents)} explain{'' if len(check.parents) > 1 else 's'}"
    family = check.family if check.hidden is None else f"{check.family}, driven by {check.hidden}"
    if check.fit is None:
        return f"{check.child} ({family}): how much of it {explain} is {check.measure}."
    return (
        f"{check.child} ({family}): {explain} {_percent(max(check.fit, 0.0))} of it "
        f"({check.measure} = {check.fit:.3f})."
    )


def _intervention(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.changed is None:
        return
    whose = f"the {_number(diagnosis.changed, 'row')} that the intervention changes"
    if not diagnosis.changed:
        yield "The intervention changes no rows: all rows have these values already."
    elif not diagnosis.outside:
        yield f"The intervention moves nothing else in {whose}: the worldview gives it no effects."
    elif not any(diagnosis.outside.values()) and not any(diagnosis.clipped.values()):
        moved = _listed(diagnosis.outside)
        yield f"{moved}: no counterfactual of {whose} lies outside the range of the facts."
    else:
        yield from _beyond(diagnosis, whose)


def _beyond(diagnosis: Diagnosis, whose: str) -> Iterator[str]:
    for child, outside in diagnosis.outside.items():
        if outside:
            yield (
                f"{child}: {_percent(outside)} of the counterfactuals of {whose} lie outside the "
                "range of the facts: there the equation is carried further than any data."
            )
        clipped = diagnosis.clipped[child]
        if clipped:
            yield (
                f"{child}: {_percent(clipped)} of the counterfactuals of {whose} were cut off at "
                "the bounds: there the equation leads to values that cannot be."
            )


def _untested(diagnosis: Diagnosis) -> Iterator[str]:
    yield from _untested_residuals(diagnosis)
    for check in diagnosis.independences:
        pair = f"{check.first} and {check.second}{_given(check)}"
        if check.p_value is None:
            yield f"{pair}: not tested whether they are independent: {check.note}."
        elif check.note:
            yield f"{pair}: {check.note}."


def _limits(diagnosis: Diagnosis) -> Iterator[str]:
    """Say what raises no alarm although it makes counterfactuals wrong."""
    if diagnosis.protected:
        status, effects = _listed(diagnosis.protected), _effects(diagnosis)
        yield (
            f"Something hidden that drives both {status} and {effects}, or a table that people "
            f"came into by both, is taken for an effect of {status}. No test above can see it, and "
            "many of the significant cases can then be false (docs/diagnostics.md has numbers)."
        )
    for child, coupling in diagnosis.couplings.items():
        yield f"{child}: its counterfactuals rest on {coupling}, which no data can test."
    if not diagnosis.problems:
        yield (
            "Finding no sign of a problem does not show that the worldview is right: another one "
            "may agree with the table as well and give other counterfactuals."
        )


def _effects(diagnosis: Diagnosis) -> str:
    """Name what the protected attributes move, as far as a sentence can hold it."""
    reached = set(diagnosis.protected)
    for equation in diagnosis.equations:  # causes come before their effects
        if not reached.isdisjoint(equation.parents):
            reached.add(equation.child)
    effects = [each.child for each in diagnosis.equations if each.child in reached]
    return _listed(effects, last="or") if 0 < len(effects) <= 3 else "an attribute"


def _next_step(diagnosis: Diagnosis) -> str:
    if diagnosis.problems and diagnosis.changed is None:
        return "Next: check again with an intervention, do={…}, to see which problems matter."
    large, unknown = (diagnosis.by_severity(each) for each in ("large", "unknown"))
    if large:
        return (
            "Next: mend the problem that moves counterfactuals most "
            f"({_movement(large[0]).repair}), and check again. Where those who know the field "
            "disagree about it, audit under both worldviews (mm.compare_worldviews)."
        )
    if unknown:
        return (
            "Next: ask those who know the field about the problems that were not measured, and "
            "audit under each worldview that they hold possible (mm.compare_worldviews)."
        )
    if not diagnosis.protected:
        return "Next: check again with the protected attribute and its intervention, do={…}."
    status = _listed(diagnosis.protected)
    return (
        f"Next: ask those who know the field whether anything hidden drives both {status} and "
        f"{_effects(diagnosis)}, and how people came into the table; then run the audit."
    )


def _untested_residuals(diagnosis: Diagnosis) -> Iterator[str]:
    gathered: dict[tuple[str, str, str], list[str]] = {}
    for check in diagnosis.residuals:
        if check.p_value is None:
            over = [check.on] if check.on else []
            over += [f"with {check.with_column}"] if check.with_column else []
            same = gathered.setdefault((check.child, check.aspect, check.note), [])
            same.append(" ".join(over))
    for (child, aspect, note), columns in gathered.items():
        over_columns = f" over {_listed(columns)}" if all(columns) else ""
        yield f"{child}: {aspect}{over_columns} not tested: {note}."


def _given(check: IndependenceCheck) -> str:
    return f" given {_listed(check.given)}" if check.given else ""


def _p(check: ResidualCheck | IndependenceCheck) -> str:
    value = 1.0 if check.p_adjusted is None else check.p_adjusted
    return "p < 0.001" if value < 0.0005 else f"p = {value:.3f}"


def _percent(share: float) -> str:
    if 0.0 < share < 0.001:
        return "less than 0.1 %"
    return f"{100.0 * share:.1f} %"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _listed(names: Iterable[str], *, last: str = "and") -> str:
    *others, final = [*names] or [""]
    return f"{', '.join(others)} {last} {final}" if others else final
