"""The first draft of an audit file, from a look at the table."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from mutandis.files.association import association, gives_away
from mutandis.files.column_guesses import Guess, guess_columns, profile_columns, unfavourable
from mutandis.files.worldview_file import PROTECTED
from mutandis.files.yaml_nodes import shown, write_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

__all__ = ["draft_config"]

FILL_IN = "FILL IN"
"""What stands where nothing could be guessed."""

_SEVERAL = 20  # people who are alike in more attributes than this are hardly ever found
_BEYOND = "people could be compared on it, but it goes with the decision less than the others"
_NAMED = 100  # so many names help to find one
_KEY = 900  # YAML reads keys of up to 1,024 characters
_KS = (15, 30, 50, 100)

_HEADING = """Everything here is a guess from names and values. Two lines need you: EDIT 1 and
EDIT 2. Then let `mutandis check` look at it, strike what people should not be compared on, and
argue about the worldview before anybody sees a result."""
_MISSING = """Some values are missing (see below). `missing: drop` leaves such rows out and counts
them; `missing: error` refuses them."""
_PROTECTED_LINE = """EDIT 2. Who may have been treated worse: the attribute, the protected value,
and the value they are compared with. Without `value`, all others are protected."""
_COMPARED = """What people are compared on: people who are alike in these should be treated alike.
Strike what the decision may not, or does not, depend on, here and in the worldview."""
_CLAIM = f"""The worldview: what the protected attribute causes. THIS IS A CLAIM, TO BE ARGUED. The
draft says that it affects every attribute directly, and that nothing else does, which is hardly
true. `{PROTECTED}` stands for the attribute of EDIT 2. Strike attributes that it does not affect,
and add other causes: `parents: [{PROTECTED}, income]`. Without a worldview the audit runs plain
situation testing."""
_DECISION = """Who decides. `recorded` is the table itself. If the model can be asked again, name
it, and the other methods (CST with centers, CF) can be run too: {rule: 'income > 30000'},
{python: module:function}, {onnx: model.onnx}, {skops: model.skops}, {http: …}."""
_TEST = """How: the sizes of the groups, the level of the test, and the difference that counts as
evidence."""

_EQUATIONS = {"continuous": "linear", "ordinal": "ordinal", "nominal": "categorical"}


def draft_config(
    table: pd.DataFrame,
    *,
    data: Mapping[str, Any],
    title: str,
    outcome: str | None = None,
    protected: str | None = None,
    id: str | None = None,  # noqa: A002 - the public name of the option
) -> str:
    r"""Write an audit file with every guess explained.

    Parameters
    ----------
    table
        The table, or as many of its rows as tell what it is.
    data
        What the section `data` is to say.
    title
        What the table is called in the first line.
    outcome, protected, id
        Columns that are known; the others are guessed.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"approved": [1, 0, 1, 0], "sex": ["f", "m", "f", "m"]})
    >>> text = draft_config(table, data={"source": "loan.csv"}, title="loan.csv")
    >>> print("\n".join(line for line in text.splitlines() if line.startswith("outcome")))
    outcome: {column: approved, negative: 0}
    """
    profiles = profile_columns(table)
    guesses = _without_leaks(
        guess_columns(profiles, outcome=outcome, protected=protected, id=id), table
    )
    guesses = _limited([_nameable(guess) for guess in guesses], table)
    blocks = (
        _heading(table, title),
        _data(guesses, data),
        _outcome(guesses),
        _protected(guesses),
        _attributes(guesses),
        _worldview(guesses),
        _rest(guesses, table),
    )
    return "\n".join("\n".join(block) + "\n" for block in blocks)


def _scalar(value: Any) -> str:
    """Write one value so that YAML gives it back, on one line."""
    return write_yaml({"a": [value]})[len("{a: [") : -len("]}\n")]


def _flow(**entries: Any) -> str:
    return "{" + ", ".join(f"{key}: {_scalar(value)}" for key, value in entries.items()) + "}"


def _without_leaks(guesses: Sequence[Guess], table: pd.DataFrame) -> list[Guess]:
    """Leave out what tells the outcome: a column each of whose values goes with one outcome."""
    decided = next((guess.name for guess in guesses if guess.role == "outcome"), None)
    if decided is None:
        return list(guesses)
    return [
        Guess(
            profile=guess.profile, role="left out", why="each of its values goes with one outcome"
        )
        if guess.role in _EQUATIONS and gives_away(table, guess.profile, decided)
        else guess
        for guess in guesses
    ]


def _nameable(guess: Guess) -> Guess:
    # one character may take up to ten in quotes
    if len(guess.name) * 10 <= _KEY or len(_scalar(guess.name)) <= _KEY:
        return guess
    return Guess(profile=guess.profile, role="left out", why="its name is too long; rename it")


def _limited(guesses: Sequence[Guess], table: pd.DataFrame) -> list[Guess]:
    """Keep those of many columns that go with the decision most."""
    compared = [guess for guess in guesses if guess.role in _EQUATIONS]
    if len(compared) <= _SEVERAL:
        return list(guesses)
    decided = next((guess.name for guess in guesses if guess.role == "outcome"), None)
    order = compared
    if decided is not None:
        strength = {g.name: association(table, g.profile, decided) for g in compared}
        order = sorted(compared, key=lambda guess: strength[guess.name], reverse=True)
    kept = {guess.name for guess in order[:_SEVERAL]}
    return [
        Guess(profile=guess.profile, role="left out", why=_BEYOND)
        if guess.role in _EQUATIONS and guess.name not in kept
        else guess
        for guess in guesses
    ]


def _heading(table: pd.DataFrame, title: str) -> list[str]:
    looked_at = f"{shown(title)}: {len(table):,} rows, {len(table.columns):,} columns"
    return [f"# {looked_at}, looked at by `mutandis init`.", *_comment(_HEADING)]


def _comment(text: str) -> list[str]:
    """Fold a paragraph into lines of comment."""
    return wrap(
        " ".join(text.split()),
        width=98,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _data(guesses: Sequence[Guess], data: Mapping[str, Any]) -> list[str]:
    entries = dict(data)
    known = next((guess.name for guess in guesses if guess.role == "id"), None)
    if known is not None:
        entries["id"] = known
    lacking = [g for g in guesses if g.profile.missing and g.role not in ("left out", "id")]
    lines = []
    if lacking:
        entries["missing"] = "drop"
        lines = _comment(_MISSING)
    return [*lines, f"data: {_flow(**entries)}"]


def _outcome(guesses: Sequence[Guess]) -> list[str]:
    chosen = next((guess for guess in guesses if guess.role == "outcome"), None)
    others = [g for g in guesses if g.profile.distinct == 2 and g.role != "outcome"]
    usable = chosen is not None and len(chosen.profile.levels) == 2
    negative = unfavourable(chosen.profile) if chosen and usable else FILL_IN
    values = _listed(chosen.profile.levels) if chosen and usable else "two values"
    return [
        f"# EDIT 1. The column with the decision, and its unfavourable value ({values}).",
        *_candidates("Other columns with two values", others),
        f"outcome: {_flow(column=chosen.name if chosen else FILL_IN, negative=negative)}",
    ]


def _protected(guesses: Sequence[Guess]) -> list[str]:
    chosen = next((guess for guess in guesses if guess.role == "protected"), None)
    others = [g for g in guesses if g.why == "sounds like a protected ground"]
    return [
        *_comment(_PROTECTED_LINE),
        *_candidates("Others that sound like protected grounds", others),
        f"protected: {_flow(**_status(chosen))}",
    ]


def _status(chosen: Guess | None) -> dict[str, Any]:
    if chosen is None:
        return {"attribute": FILL_IN, "value": FILL_IN, "reference": FILL_IN}
    levels, common = chosen.profile.levels, chosen.profile.common
    if len(levels) == 2:
        other = levels[0] if levels[1] == common else levels[1]
        return {"attribute": chosen.name, "value": other, "reference": common}
    reference = common if levels else FILL_IN
    return {"attribute": chosen.name, "reference": reference}


def _listed(values: Sequence[Any]) -> str:
    return " or ".join(shown(value) if isinstance(value, str) else str(value) for value in values)


def _candidates(title: str, guesses: Sequence[Guess], most: int = 12) -> Iterator[str]:
    if guesses:
        more = f" and {len(guesses) - most} more" if len(guesses) > most else ""
        names = ", ".join(shown(guess.name) for guess in guesses[:most])
        yield from _comment(f"{title}: {names}{more}.")


def _attributes(guesses: Sequence[Guess]) -> list[str]:
    compared = [guess for guess in guesses if guess.role in _EQUATIONS]
    left = [guess for guess in guesses if guess.role == "left out"]
    beyond = [guess for guess in left if guess.why == _BEYOND]
    considered = len(compared) + len(beyond)
    lines = [
        *_comment(_COMPARED),
        *(_comment(f"Of {considered} columns, these go with the decision most.") if beyond else ()),
        "attributes:" if compared else f"attributes: {{{FILL_IN}: continuous}}",
    ]
    for guess in compared:
        comment = f"  # {guess.why}" if guess.why else ""
        lines.append(f"  {_scalar(guess.name)}: {_attribute(guess)}{comment}")
    return [*lines, *_left_out(left)]


def _left_out(guesses: Sequence[Guess]) -> Iterator[str]:
    """List what is left out, by reason."""
    reasons: dict[str, list[str]] = {}
    for guess in guesses:
        reasons.setdefault(guess.why, []).append(shown(guess.name))
    if reasons:
        yield "# Left out:"
    for why, names in reasons.items():
        text = f"{why}: {', '.join(names[:_NAMED])}"
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        yield from wrap(
            f"{text}{more}",
            width=98,
            initial_indent="# - ",
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _attribute(guess: Guess) -> str:
    if guess.role != "ordinal":
        return guess.role
    levels = ", ".join(_scalar(level) for level in guess.profile.levels)
    return f"{{kind: ordinal, levels: [{levels}]}}"


def _worldview(guesses: Sequence[Guess]) -> list[str]:
    compared = [guess for guess in guesses if guess.role in _EQUATIONS]
    if not compared:
        return ["# No worldview could be drafted; see the documentation on worldviews."]
    lines = [
        *_comment(_CLAIM),
        "worldview:",
    ]
    for guess in compared:
        bounds = ", bounds: [0, null]" if _never_negative(guess) else ""
        lines.append(
            f"  {_scalar(guess.name)}: {{equation: {_EQUATIONS[guess.role]}, "
            f"parents: [{PROTECTED}]{bounds}}}"
        )
    return lines


def _never_negative(guess: Guess) -> bool:
    return guess.role == "continuous" and guess.profile.lowest >= 0


def _rest(guesses: Sequence[Guess], table: pd.DataFrame) -> list[str]:
    ks = ", ".join(map(str, _group_sizes(guesses, table)))
    return [
        *_comment(_DECISION),
        "decision: {recorded: true}",
        "",
        *_comment(_TEST),
        f"test: {{ks: [{ks}], alpha: 0.05, tau: 0.0}}",
    ]


def _group_sizes(guesses: Sequence[Guess], table: pd.DataFrame) -> tuple[int, ...]:
    """Choose group sizes that half of the smaller group can fill."""
    chosen = next((guess for guess in guesses if guess.role == "protected"), None)
    smaller = len(table) // 10
    if chosen is not None:
        smaller = int(table[chosen.name].value_counts().min())
    fitting = tuple(k for k in _KS if 2 * k <= smaller)
    return fitting or (max(1, smaller // 2),)
