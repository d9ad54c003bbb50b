"""Tables of a case file about one ground: how she moved, and how her groups stand."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING, Any

from mutandis.report.case_model import WITHHELD
from mutandis.report.case_numbers import counted, distance, written
from mutandis.report.formatting import MISSING, by_value, listed, percent, signed, value
from mutandis.report.html import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.report.case_model import Part
    from mutandis.report.case_movement import Movement

__all__ = ["balance_table", "movement_lines", "movement_table", "summary_table", "support_table"]


def movement_table(part: Part, prefix: str) -> Table | None:
    """Show her attributes in both worlds."""
    if not part.movements:
        return None
    rows = [_movement_row(each) for each in part.movements]
    do = listed([f"{name} := {value(to)}" for name, to in part.do.items()])
    return Table(
        name=f"{prefix}-movements",
        caption="Her attributes on record, and as they would have been.",
        aside=f"do({do})",
        columns=(
            Column(label="Attribute", numeric=False),
            Column(label="On record"),
            Column(label="Counterfactual"),
            Column(label="Change"),
            Column(label="Through", numeric=False),
        ),
        rows=tuple(rows),
        note=""
        if all(each.compared for each in part.movements)
        else "People are not compared on "
        + listed([each.attribute for each in part.movements if not each.compared])
        + "; the change passes through.",
    )


def _movement_row(each: Movement) -> Row:
    if each.change is None:
        both, change = (value(each.factual), value(each.counterfactual)), MISSING
    else:
        decimals = _decimals(each)
        both = (_number(each.factual, decimals), _number(each.counterfactual, decimals))
        change = _amount(each.change, decimals)
    return Row(cells=(each.attribute, *both, change, _through(each)))


_STILL = {
    "given": "as supplied",
    "held": "held as on record (business necessity)",
    "intervened": "set by the intervention",
    "unaffected": "nothing that changed causes it",
}


def _through(each: Movement) -> str:
    if each.how in _STILL:
        return _STILL[each.how]
    if not each.causes:
        return "no cause of it changed"
    if any(cause.amount is None for cause in each.causes):
        names = listed([" × ".join(cause.parents) for cause in each.causes])
        return f"{names}, together" if len(each.causes) > 1 else names
    decimals = _decimals(each)
    parts = [
        f"{' × '.join(cause.parents)} "
        + (_factor(cause.amount) if each.how == "factor" else _amount(cause.amount, decimals))
        for cause in each.causes
        if cause.amount is not None
    ]
    if each.remainder:
        parts.append(f"rounding and bounds {_amount(each.remainder, decimals)}")
    return "; ".join(parts)


def movement_lines(part: Part) -> tuple[str, ...]:
    """Say by which ways the change came, and what is assumed on them."""
    return tuple(_movement_lines(part))


def _movement_lines(part: Part) -> Iterator[str]:
    for each in part.movements:
        # one step from what was set is no way worth describing
        if any(way.count("→") > 1 for way in each.paths):
            yield f"{each.attribute}: {'; '.join(each.paths)}."
    assumed = {each.attribute: each.coupling for each in part.movements if each.coupling}
    for coupling, names in by_value(assumed).items():
        rests = "its counterfactual value rests" if len(names) == 1 else "their values there rest"
        yield f"{listed(names)}: {rests} on an assumption that no data can test, {coupling}."


def summary_table(part: Part, prefix: str, *, negative: Any) -> Table | None:
    """Count both groups."""
    if part.control is None or part.test is None:
        return None
    groups = (("Control group", part.control), ("Test group", part.test))
    shares = any(group.shared not in (0, WITHHELD) for _, group in groups)
    centres = any(member.role != "person" for _, group in groups for member in group.members)
    rows = [
        Row(
            cells=(
                name,
                group.around,
                counted(group.places),
                counted(group.people),
                counted(group.refused),
                counted(group.granted),
                written(group.share, percent),
                distance(group.radius),
            )
        )
        for name, group in groups
    ]
    notes = []
    if shares:
        notes.append(
            "People at the same distance share the last places, so more people stand in a group "
            "than it has places, and the share is one of places."
        )
    if centres:
        notes.append(
            "The complainant's own outcome and her counterfactual's hold one place each; they are "
            "not counted among the people."
        )
    return Table(
        name=f"{prefix}-groups",
        caption="Who was compared with whom.",
        columns=(
            Column(label="Group", numeric=False),
            Column(label="Around", numeric=False),
            Column(label="Places"),
            Column(label="People"),
            Column(label=f"Outcome {value(negative)}"),
            Column(label="Other outcome"),
            Column(label=f"Share {value(negative)}"),
            Column(label="Farthest at"),
        ),
        rows=tuple(rows),
        note=" ".join(notes),
    )


def support_table(part: Part, prefix: str) -> Table | None:
    """Show how far the groups reach."""
    if not part.support:
        return None
    rows = [
        Row(
            cells=(
                f"{check.role.capitalize()} group",
                distance(check.radius),
                distance(check.typical),
                distance(check.limit),
                "no: off support" if check.off_support else "yes",
                listed(check.outside) if check.outside else MISSING,
            )
        )
        for check in part.support
    ]
    return Table(
        name=f"{prefix}-support",
        caption="How far each group reaches, against what is usual in its part of the table.",
        columns=(
            Column(label="Group", numeric=False),
            Column(label="Reaches to"),
            Column(label="Usual there"),
            Column(label="99 of 100 reach to"),
            Column(label="Within that", numeric=False),
            Column(label="Center outside the range in", numeric=False),
        ),
        rows=tuple(rows),
    )


def balance_table(part: Part, prefix: str) -> Table | None:
    """Show how the search centers stand to the people around them."""
    if not part.support:
        return None
    names = tuple(part.support[0].balance)
    return Table(
        name=f"{prefix}-balance",
        caption="How each search center stands to the people around it.",
        columns=(
            Column(label="Attribute", numeric=False),
            *(Column(label=f"{check.role.capitalize()} group") for check in part.support),
        ),
        rows=tuple(
            Row(cells=(name, *(written(check.balance[name], signed) for check in part.support)))
            for name in names
        ),
        note="In standard deviations of the table, above the mean of the group; 0 is exactly in "
        "the middle. For a nominal attribute: how rare the center's own level is in the group.",
    )


def _decimals(each: Movement) -> int:
    """Give so many decimals that the larger of the two values has five digits."""
    largest = max(abs(float(each.factual)), abs(float(each.counterfactual)))
    return max(0, 4 - floor(log10(largest))) if largest > 0 else 0


def _number(number: object, decimals: int) -> str:
    if not isinstance(number, float):
        return value(number)
    shown = f"{number:,.{decimals}f}"
    shown = shown.rstrip("0").rstrip(".") if decimals else shown
    return shown.replace("-", "−")


def _amount(number: float, decimals: int) -> str:
    if number == 0:
        return "0"
    shown = f"{number:+,.{decimals}f}"
    if decimals < 9 and number and not float(shown.replace(",", "")):
        shown = f"{number:+.1g}"  # smaller than it could be shown, but not nothing
    return shown.replace("-", "−")


def _factor(number: float) -> str:
    return f"× {number:,.4g}"
