"""A diagnosis in plain sentences: problems first, then what is in order, then what is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mutandis.causal.diagnostics.diagnosis import (
        Diagnosis,
        EquationCheck,
        IndependenceCheck,
        ResidualCheck,
    )

__all__ = ["sentences_of"]


def sentences_of(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Say what a diagnosis found."""
    return (
        _heading(diagnosis),
        *(
            _problem(check, diagnosis)
            for check in diagnosis.residuals
            if diagnosis.is_problem(check)
        ),
        *(
            _contradicted(check, diagnosis)
            for check in diagnosis.independences
            if diagnosis.is_problem(check)
        ),
        *_reassurances(diagnosis),
        *map(_fit, diagnosis.equations),
        *_intervention(diagnosis),
        *_limits(diagnosis),
    )


def _heading(diagnosis: Diagnosis) -> str:
    tests = _number(diagnosis.tests, "test")
    found = _number(len(diagnosis.problems), "problem") if diagnosis.problems else "no problem"
    return (
        f"Checked on {_number(diagnosis.rows, 'row')} with {tests}: {found}. p-values are adjusted "
        f"for the number of tests (Holm); a problem is one below {diagnosis.alpha:g}."
    )


def _problem(check: ResidualCheck, diagnosis: Diagnosis) -> str:
    child, on, p = check.child, check.on, _p(check)
    if check.aspect == "level":
        part = "part of the" if on in _parents(child, diagnosis) else "an"
        return (
            f"{child}: residuals still depend on {on} ({p}): the equation misses {part} effect of "
            f"{on}, counterfactuals for it will be biased. {_size(check)}"
        )
    if check.aspect == "interaction":
        return (
            f"{child}: the effect of {on} changes with {check.with_column} ({p}), which the "
            "equation leaves out: counterfactuals will be biased, upwards for some people and "
            f"downwards for others. {_size(check)}"
        )
    if check.aspect == "spread":
        return _spread_problem(check, diagnosis)
    return (
        f"{child}: its values are not distributed as the equation says ({p}). On the scale on "
        f"which they should be standard normal, their standard deviation is {check.effect:.2f}. "
        "Averages may be right, but counterfactuals of single people will be off: another family "
        "may fit better."
    )


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
            "averages may be right, but the equation carries everybody's noise over in the same "
            "way, so counterfactuals of people far from the average will be off."
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
            "other, counterfactuals leave that path out; if both follow from something hidden, or "
            "from who came into the table, the equations can still hold."
        )
    return (
        f"{fact}, although the worldview says so: a hidden common cause of both is missing, or an "
        "arrow between them."
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
        yield "The intervention changes nobody: all rows have these values already."
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


def _limits(diagnosis: Diagnosis) -> Iterator[str]:
    yield from _untested_residuals(diagnosis)
    for check in diagnosis.independences:
        pair = f"{check.first} and {check.second}{_given(check)}"
        if check.p_value is None:
            yield f"{pair}: not tested whether they are independent: {check.note}."
        elif check.note:
            yield f"{pair}: {check.note}."
    for child, coupling in diagnosis.couplings.items():
        yield f"{child}: its counterfactuals rest on {coupling}, which no data can test."
    if not diagnosis.problems:
        yield (
            "Finding no sign of a problem does not show that the worldview is right: another one "
            "may agree with the table as well and give other counterfactuals."
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


def _parents(child: str, diagnosis: Diagnosis) -> tuple[str, ...]:
    return next((check.parents for check in diagnosis.equations if check.child == child), ())


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
