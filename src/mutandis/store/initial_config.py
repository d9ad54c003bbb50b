"""The first draft of an audit file, from a look at the table.

What a column may be is guessed from its type, from how many distinct values it has, and from the
words in its name. The reader of the draft is to correct it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mutandis.config.schema import FILL_IN
from mutandis.config.worldview import PROTECTED
from mutandis.config.yaml import write_flow
from mutandis.data.columns import plain_value
from mutandis.errors import InputError, listed, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

__all__ = [
    "Profile",
    "draft_config",
    "find_level",
    "name_outcomes",
    "name_statuses",
    "profile_columns",
]

Role = Literal["id", "outcome", "protected", "continuous", "ordinal", "nominal", "left out"]
Kind = Literal["number", "boolean", "text", "date", "other"]

# beginnings of words, the more telling first
_OUTCOME = {
    "approv": False, "grant": False, "accept": False, "admit": False, "admis": False,
    "hire": False, "award": False, "promot": False, "select": False, "pass": False,
    "decision": False, "outcome": False, "reject": True, "denied": True, "denial": True,
    "deny": True, "refus": True, "declin": True,
}  # fmt: skip
"""By word: whether the larger of two values (1, true, yes) is the unfavourable one."""
_PROTECTED = (
    "gender", "sex", "female", "woman", "women", "race", "racial", "ethnic", "nonwhite", "black",
    "hispan", "latin", "asian", "minorit", "foreign", "migrant", "immigra", "nationalit",
    "citizen", "religio", "disab", "handicap", "pregnan", "male", "white", "marital", "married",
)  # fmt: skip
_ID = ("id", "key", "uuid", "identifier", "number", "no", "nr")

# scores of which more is worse
_HIGHER_IS_WORSE = ("rate", "interest", "apr", "price", "cost", "fee", "premium", "wait", "rank")
_NEGATIVE_WORDS = {"no", "n", "false", "f", "denied", "rejected", "refused", "declined", "fail"}

_FEW = 10  # this many different numbers may be codes or grades
_NAMES = 30  # this many different texts may be categories
_LACKING = 0.05  # a column that lacks more of its values costs more rows than it is worth
_FAR = 100  # this many times the spread of the middle half

_GROUND = "sounds like a protected ground"
_OPEN = "may be the decision or the protected attribute, which are not clear from the names: once \
they are, add it, or run `mutandis init` again with --outcome and --protected"
_NUMBERED = "another value in every row, like an identifier"
_SEVERAL = 20  # people who are alike in more attributes than this are hardly ever found
_BEYOND = "people could be compared on it, but others are more associated with the decision"
_NAMED = 100  # this many names help to find one
_KEY = 900  # YAML reads keys of up to 1,024 characters
_KS = (15, 30, 50, 100)

_HEADING = """Everything here is a guess from names and values. Two lines need you: EDIT 1 and
EDIT 2. Then let `mutandis check` look at it, strike what people should not be compared on, and
argue about the worldview before any result is seen."""
_MISSING = """Some values are missing (see below). `missing: drop` leaves such rows out and counts
them; `missing: error` refuses them."""
_ID_LINE = """`id` says what people are called: {} has another whole number in every row. If that is
an amount and names no one, strike `id`: rows are numbered then."""
_PROTECTED_LINE = """EDIT 2. Who may have been treated worse: the attribute, the protected value,
and the value they are compared with. Without `value`, all others are protected."""
_COMPARED = """What people are compared on: people who are alike in these should be treated alike.
Strike what the decision may not, or does not, depend on, here and in the worldview. How alike:
Gower's distance; `similarity: {distance: heom}` sets another, of docs/distances.md."""
_CLAIM = f"""The worldview: what the protected attribute causes. THIS IS A CLAIM, TO BE ARGUED. The
draft says that it affects every attribute directly, and that nothing else does, which is hardly
true. `{PROTECTED}` stands for the attribute of EDIT 2. Strike attributes that it does not affect,
and add other causes: `parents: [{PROTECTED}, income]`. Without a worldview the audit runs plain
situation testing."""
_DECISION = """Who decides. `recorded` is the table itself. If the model can be asked again, name
it, and the other methods (CST with centers, CF) can be run too: {rule: 'income > 30000'},
{python: module:function}, {onnx: model.onnx}, {skops: model.skops}, {http: …}."""
_TEST = """How: the sizes of the groups, the level of the test, and the difference that counts as
evidence. The headline is the matched comparison at the largest size up to 50 that is at most a
third of the protected and a fifth of the reference rows; `evidence: {primary: [METHOD, K]}` sets
another. The measure is the difference of two shares of refusals; `evidence: {measure: risk-ratio}`,
`selection-ratio` or `odds-ratio` compare them by a ratio, with a `tau` from 1 on, or up to 1 for
the selection ratio, such as 0.8 (docs/outcomes.md)."""

_EQUATIONS = {"continuous": "linear", "ordinal": "ordinal", "nominal": "categorical"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What can be seen of a column without knowing what it means.

    `levels` are the distinct values in order, where they are few, and `common` is the most frequent
    one; `far` says that the largest number is so far off that it may stand for "unknown".
    """

    name: str
    kind: Kind
    rows: int
    missing: int
    distinct: int
    levels: tuple[Any, ...] = ()
    common: Any = None
    whole: bool = False
    far: bool = False
    lowest: float = float("-inf")

    @property
    def words(self) -> tuple[str, ...]:
        """The words in the name, in lower case: "LoanApproved_2" has loan, approved and 2."""
        parts = re.findall(r"[A-Z]?[a-zà-ÿ]+|[A-Z]+(?![a-z])|\d+", self.name)
        return tuple(part.lower() for part in parts)

    def sounds_like(self, stems: Iterable[str]) -> str | None:
        """Give the first stem that one of the words begins with."""
        return next((s for s in stems if any(word.startswith(s) for word in self.words)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """What a column is taken for, and what its reader should know about it."""

    profile: Profile
    role: Role
    why: str = ""

    @property
    def name(self) -> str:
        """The column's name."""
        return self.profile.name


def draft_config(
    table: pd.DataFrame,
    *,
    data: Mapping[str, Any],
    title: str,
    outcome: str | None = None,
    negative: str | None = None,
    protected: str | None = None,
    reference: str | None = None,
    id: str | None = None,  # noqa: A002 - the public name of the option
) -> str:
    r"""Write an audit file with every guess explained.

    `table` may be only some rows; `data` is what the section of that name is to say, and `title`
    what the table is called in the first line. Columns that are named are not guessed, nor are
    values: `negative` of the outcome and `reference` of the protected attribute, as text.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"approved": [1, 0, 1, 0], "sex": ["f", "m", "f", "m"]})
    >>> text = draft_config(table, data={"source": "loan.csv"}, title="loan.csv")
    >>> print("\n".join(line for line in text.splitlines() if line.startswith("outcome")))
    outcome: {column: approved, negative: 0}
    """
    guesses = guess_columns(profile_columns(table), outcome=outcome, protected=protected, id=id)
    given: tuple[tuple[Role, str | None], ...] = (("outcome", negative), ("protected", reference))
    for role, value in given:
        if value is not None and _of_role(guesses, role) is None:
            raise InputError(
                f"{shown(value)} is given as a value of the {role} column, and it is not clear "
                f"which column that is. Name it with --{role}."
            )
    guesses = _leave_out_leaks(_leave_out_open(guesses), table)
    guesses = _leave_out_weakest([_leave_out_unnameable(guess) for guess in guesses], table)
    return _Draft(guesses, table, negative=negative, reference=reference).write(data, title)


def name_outcomes(profiles: Iterable[Profile]) -> tuple[list[str], list[str]]:
    """Name the columns whose names tell that they hold the decision, and those that may hold it.

    The more telling come first. The outcome is clear if there is one such name.
    """
    return _part(profiles, _OUTCOME, most=2)


def name_statuses(profiles: Iterable[Profile]) -> tuple[list[str], list[str]]:
    """Name the columns that sound like the protected attribute, and those that may be it."""
    return _part(profiles, _PROTECTED, most=_FEW)


def _part(
    profiles: Iterable[Profile], stems: Iterable[str], *, most: int
) -> tuple[list[str], list[str]]:
    """Part the columns with few values into those with telling names, and the others."""
    order = list(stems)
    telling, others = [], []
    for each in profiles:
        if 2 <= each.distinct <= most and each.kind != "date":
            stem = each.sounds_like(order)
            if stem is None:
                others.append(each.name)
            else:
                telling.append((order.index(stem), each.name))
    return [name for _, name in sorted(telling, key=lambda pair: pair[0])], others


def find_level(profile: Profile, text: str) -> Any:
    """Find the value of a column with few values that is written like this."""
    for form in (str, lambda each: str(each).casefold()):  # a file says false, and Python False
        found = [level for level in profile.levels if form(level) == form(text)]
        if len(found) == 1:
            return found[0]
    texts = [str(level) for level in profile.levels]
    has = listed(texts, near=text) if texts else f"more than {_NAMES} values"
    raise InputError(
        f"{shown(text)} is not a value of the column {shown(profile.name)}, which has {has}. Give "
        "one of its values, as it is written there."
    )


def _of_role(guesses: Iterable[Guess], role: Role) -> Guess | None:
    return next((guess for guess in guesses if guess.role == role), None)


def _compared(guesses: Iterable[Guess]) -> list[Guess]:
    return [guess for guess in guesses if guess.role in _EQUATIONS]


def _leave_out(guess: Guess, why: str) -> Guess:
    return replace(guess, role="left out", why=why)


def _leave_out_open(guesses: Sequence[Guess]) -> list[Guess]:
    """Leave out what may turn out to be the outcome or the status: neither is ever compared on."""
    profiles = [guess.profile for guess in guesses if guess.role in _EQUATIONS]
    # what sounds like one of them is left out already
    possible = {
        *(name_outcomes(profiles)[1] if _of_role(guesses, "outcome") is None else ()),
        *(name_statuses(profiles)[1] if _of_role(guesses, "protected") is None else ()),
    }
    return [_leave_out(guess, _OPEN) if guess.name in possible else guess for guess in guesses]


def _leave_out_leaks(guesses: Sequence[Guess], table: pd.DataFrame) -> list[Guess]:
    """Leave out what tells the outcome: a column each of whose values goes with one outcome."""
    decided = _of_role(guesses, "outcome")
    if decided is None:
        return list(guesses)
    return [
        _leave_out(guess, "each of its values goes with one outcome")
        if guess.role in _EQUATIONS and gives_away(table, guess.profile, decided.name)
        else guess
        for guess in guesses
    ]


def _leave_out_unnameable(guess: Guess) -> Guess:
    # one character may take up to ten in quotes
    if len(guess.name) * 10 <= _KEY or len(write_flow(guess.name)) <= _KEY:
        return guess
    return _leave_out(guess, "its name is too long; rename it")


def _leave_out_weakest(guesses: Sequence[Guess], table: pd.DataFrame) -> list[Guess]:
    """Keep those of many columns that are most strongly associated with the decision."""
    order = _compared(guesses)
    if len(order) <= _SEVERAL:
        return list(guesses)
    decided = _of_role(guesses, "outcome")
    if decided is not None:
        strength = {g.name: association(table, g.profile, decided.name) for g in order}
        order = sorted(order, key=lambda guess: strength[guess.name], reverse=True)
    weak = {guess.name for guess in order[_SEVERAL:]}
    return [_leave_out(guess, _BEYOND) if guess.name in weak else guess for guess in guesses]


def _flow(**entries: Any) -> str:
    return write_flow(entries)


def _comment(text: str, first: str = "# ", further: str = "# ") -> list[str]:
    """Fold a paragraph into lines of comment."""
    return wrap(
        " ".join(text.split()),
        width=98,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _name_some(guesses: Sequence[Guess], most: int) -> str:
    more = f" and {len(guesses) - most:,} more" if len(guesses) > most else ""
    return ", ".join(shown(guess.name) for guess in guesses[:most]) + more


class _Draft:
    """The blocks of the file, one method each."""

    def __init__(
        self,
        guesses: Sequence[Guess],
        table: pd.DataFrame,
        *,
        negative: str | None,
        reference: str | None,
    ) -> None:
        self._guesses = guesses
        self._table = table
        self._negative = negative
        self._reference = reference
        self._compared = _compared(guesses)
        self._left_out = [guess for guess in guesses if guess.role == "left out"]

    def write(self, data: Mapping[str, Any], title: str) -> str:
        """Write all blocks, with an empty line between them."""
        rows, columns = self._table.shape
        looked_at = f"{shown(title)}: {rows:,} rows, {columns:,} columns"
        blocks = (
            [f"# {looked_at}, looked at by `mutandis init`.", *_comment(_HEADING)],
            self._data(data),
            self._outcome(),
            self._protected(),
            [*self._attributes(), *self._reasons()],
            self._worldview(),
            [*_comment(_DECISION), "decision: {recorded: true}"],
            [*_comment(_TEST), f"ks: [{self._ks()}]", "alpha: 0.05", "tau: 0.0"],
        )
        return "\n".join("\n".join(block) + "\n" for block in blocks)

    def _data(self, data: Mapping[str, Any]) -> list[str]:
        entries, said = dict(data), []
        known = _of_role(self._guesses, "id")
        if known is not None:
            entries["id"] = known.name
            said += _comment(known.why)
        used = [guess for guess in self._guesses if guess.role not in ("left out", "id")]
        if any(guess.profile.missing for guess in used):
            said += _comment(_MISSING)
            entries["missing"] = "drop"
        return [*said, f"data: {write_flow(entries)}"]

    def _outcome(self) -> list[str]:
        chosen = _of_role(self._guesses, "outcome")
        if chosen and chosen.profile.kind == "number" and chosen.profile.distinct > _FEW:
            return [
                "# EDIT 1. The column with the decision is a number: is higher worse, or lower?",
                f"outcome: {_flow(column=chosen.name, worse=worse_end(chosen.profile))}",
            ]
        others = [g for g in self._guesses if g.profile.distinct == 2 and g.role != "outcome"]
        negative, values = FILL_IN, "two values"
        if chosen and len(levels := chosen.profile.levels) == 2:
            negative = (
                unfavourable(chosen.profile)
                if self._negative is None
                else find_level(chosen.profile, self._negative)
            )
            values = " or ".join(shown(v) if isinstance(v, str) else str(v) for v in levels)
        if chosen and len(chosen.profile.levels) > 2:
            return self._several(chosen)
        return [
            f"# EDIT 1. The column with the decision, and its unfavourable value ({values}).",
            *_candidates("Other columns with two values", others),
            f"outcome: {_flow(column=chosen.name if chosen else FILL_IN, negative=negative)}",
        ]

    def _several(self, chosen: Guess) -> list[str]:
        """Ask which of several classes are unfavourable: that cannot be guessed."""
        classes = [shown(v) if isinstance(v, str) else str(v) for v in chosen.profile.levels]
        return [
            *_comment(
                "EDIT 1. The column with the decision has several values "
                f"({', '.join(classes)}). List the unfavourable ones: negative: [{classes[0]}, …]; "
                "or, where they have an order, all of them instead of negative: best_to_worst: "
                "[the best, …, the worst]."
            ),
            f"outcome: {_flow(column=chosen.name, negative=FILL_IN)}",
        ]

    def _protected(self) -> list[str]:
        others = [guess for guess in self._guesses if guess.why == _GROUND]
        status = _status(_of_role(self._guesses, "protected"), self._reference)
        return [
            *_comment(_PROTECTED_LINE),
            *_candidates("Others that sound like protected grounds", others),
            f"protected: {write_flow(status)}",
        ]

    def _attributes(self) -> Iterator[str]:
        yield from _comment(_COMPARED)
        beyond = sum(guess.why == _BEYOND for guess in self._left_out)
        if beyond:
            considered = len(self._compared) + beyond
            yield f"# Of {considered} columns, these are most associated with the decision."
        if not self._compared:
            yield "# EDIT 3. None could be guessed: name columns, and whether they are continuous,"
            yield "# ordinal or nominal."
        yield "attributes:" if self._compared else f"attributes: {{{FILL_IN}: continuous}}"
        for guess in self._compared:
            comment = f"  # {guess.why}" if guess.why else ""
            levels = ", ".join(write_flow(level) for level in guess.profile.levels)
            ordinal = f"{{kind: ordinal, levels: [{levels}]}}"
            kind = ordinal if guess.role == "ordinal" else guess.role
            yield f"  {write_flow(guess.name)}: {kind}{comment}"

    def _reasons(self) -> Iterator[str]:
        """List what is left out, by reason."""
        reasons: dict[str, list[Guess]] = {}
        for guess in self._left_out:
            reasons.setdefault(guess.why, []).append(guess)
        if reasons:
            yield "# Left out:"
        for why, guesses in reasons.items():
            yield from _comment(f"{why}: {_name_some(guesses, _NAMED)}", "# - ", "#   ")

    def _worldview(self) -> list[str]:
        if not self._compared:
            return ["# No worldview could be drafted; see the documentation on worldviews."]
        lines = [*_comment(_CLAIM), "worldview:"]
        for guess in self._compared:
            never_negative = guess.role == "continuous" and guess.profile.lowest >= 0
            bounds = ", bounds: [0, null]" if never_negative else ""
            lines.append(
                f"  {write_flow(guess.name)}: {{equation: {_EQUATIONS[guess.role]}, "
                f"parents: [{PROTECTED}]{bounds}}}"
            )
        return lines

    def _ks(self) -> str:
        """Choose group sizes that half of the smaller group can fill."""
        chosen = _of_role(self._guesses, "protected")
        smaller = len(self._table) // 10
        if chosen is not None:
            smaller = int(self._table[chosen.name].value_counts().min())
        fitting = tuple(k for k in _KS if 2 * k <= smaller)
        return ", ".join(map(str, fitting or (max(1, smaller // 2),)))


def _status(chosen: Guess | None, reference: str | None) -> dict[str, Any]:
    if chosen is None:
        return {"attribute": FILL_IN, "value": FILL_IN, "reference": FILL_IN}
    levels, common = chosen.profile.levels, chosen.profile.common
    if reference is not None:
        common = find_level(chosen.profile, reference)
    if len(levels) == 2:
        other = levels[0] if levels[1] == common else levels[1]
        return {"attribute": chosen.name, "value": other, "reference": common}
    return {"attribute": chosen.name, "reference": common if levels else FILL_IN}


def _candidates(title: str, guesses: Sequence[Guess]) -> list[str]:
    return _comment(f"{title}: {_name_some(guesses, 12)}.") if guesses else []


def profile_columns(table: pd.DataFrame) -> list[Profile]:
    """Look at every column of a table."""
    return [_profile(str(name), table.iloc[:, i]) for i, name in enumerate(table.columns)]


def _profile(name: str, column: pd.Series[Any]) -> Profile:
    kind = _kind_of(column)
    present = column.dropna()
    if kind == "other":
        return Profile(name=name, kind=kind, rows=len(column), missing=0, distinct=0)
    counted = present.value_counts()
    numbers = present.to_numpy(dtype=np.float64) if kind == "number" else np.empty(0)
    whole = kind == "number" and bool(np.all(np.mod(numbers, 1) == 0))
    plain = int if whole else plain_value
    return Profile(
        name=name,
        kind=kind,
        rows=len(column),
        missing=len(column) - len(present),
        distinct=len(counted),
        levels=tuple(sorted(plain(value) for value in counted.index.tolist()))
        if len(counted) <= _NAMES
        else (),
        common=plain(counted.index[0]) if len(counted) else None,
        whole=whole,
        far=_is_far(numbers),
        lowest=float(numbers.min()) if len(numbers) else float("-inf"),
    )


def _kind_of(column: pd.Series[Any]) -> Kind:
    import pandas as pd

    types = pd.api.types
    if types.is_bool_dtype(column):
        return "boolean"
    if types.is_numeric_dtype(column):
        return "number"
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        return "date"
    inferred = types.infer_dtype(column, skipna=True)
    if inferred in {"string", "empty"} or isinstance(column.dtype, pd.CategoricalDtype):
        return "text"
    if inferred in {"date", "datetime", "time"}:
        return "date"
    return "boolean" if inferred == "boolean" else "other"


def _is_far(numbers: Any) -> bool:
    """Tell whether the largest number lies where people write 999999 for what they do not know."""
    finite = numbers[np.isfinite(numbers)]
    if len(finite) < 20:
        return False
    low, high = np.quantile(finite, [0.25, 0.75])
    return bool(high > low and finite.max() - high > _FAR * (high - low))


def guess_columns(
    profiles: Sequence[Profile],
    *,
    outcome: str | None = None,
    protected: str | None = None,
    id: str | None = None,  # noqa: A002 - the public name of the option
) -> list[Guess]:
    """Guess what each column is; what the caller knows is taken for granted."""
    chosen = {
        "outcome": next(iter(name_outcomes(profiles)[0]), None) if outcome is None else outcome,
        "protected": protected,
        "id": _find_id(profiles) if id is None else id,
    }
    if protected is None:
        others = [each for each in profiles if each.name != chosen["outcome"]]
        chosen["protected"] = next(iter(name_statuses(others)[0]), None)
    # the outcome last: a column that the caller names twice is refused later, as the outcome
    order: tuple[Role, ...] = ("id", "protected", "outcome")
    roles: dict[str | None, Role] = {chosen[role]: role for role in order}
    is_told = id is not None
    return [
        _take_for(each, roles[each.name], is_told=is_told) if each.name in roles else _guess(each)
        for each in profiles
    ]


def _take_for(profile: Profile, role: Role, *, is_told: bool) -> Guess:
    is_guess = role == "id" and not is_told and not _is_called_id(profile)
    why = _ID_LINE.format(shown(profile.name)) if is_guess else ""
    return Guess(profile=profile, role=role, why=why)


def _find_id(profiles: Sequence[Profile]) -> str | None:
    """Find the column that is called an id; else the only one that numbers rows."""
    for each in profiles:
        unique = each.distinct == each.rows and each.rows > 1
        plain = each.whole or each.kind == "text"
        if unique and plain and _is_called_id(each):
            return each.name
    numbering = [each.name for each in profiles if _reason_to_leave_out(each) == _NUMBERED]
    return numbering[0] if len(numbering) == 1 else None


def _is_called_id(profile: Profile) -> bool:
    return any(word in _ID for word in profile.words)


def _guess(profile: Profile) -> Guess:
    reason = _reason_to_leave_out(profile)
    if reason:
        return Guess(profile=profile, role="left out", why=reason)
    if profile.distinct == 2 or profile.kind != "number":
        return Guess(profile=profile, role="nominal", why=_lacking(profile))
    if profile.whole and profile.distinct <= _FEW:
        why = "grades, low to high? Codes are nominal, amounts continuous"
        return Guess(profile=profile, role="ordinal", why=_and(why, _lacking(profile)))
    far = "its largest value may stand for 'unknown': look" if profile.far else ""
    return Guess(profile=profile, role="continuous", why=_and(far, _lacking(profile)))


def _and(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _lacking(profile: Profile) -> str:
    return f"{profile.missing:,} values are missing" if profile.missing else ""


def _reason_to_leave_out(profile: Profile) -> str:
    """Say why a column can be nothing that people are compared on; nothing if it can."""
    reasons = (
        (profile.kind == "other", "values of several types"),
        (profile.distinct == 0, "no values"),
        (profile.distinct == 1, "the same value in every row"),
        (profile.kind == "date", "a date: turn it into a number, such as an age"),
        (
            profile.missing > _LACKING * profile.rows,
            f"{profile.missing / max(profile.rows, 1):.0%} of its values are missing",
        ),
        (bool(profile.sounds_like(_OUTCOME)), "sounds like a record of the decision"),
        (profile.distinct <= _FEW and bool(profile.sounds_like(_PROTECTED)), _GROUND),
        (
            profile.kind == "text" and profile.distinct > _NAMES,
            "free text, or too many names to compare people on",
        ),
        (
            profile.whole and profile.distinct == profile.rows and profile.rows > _FEW,
            _NUMBERED,
        ),
    )
    return next((reason for found, reason in reasons if found), "")


def unfavourable(profile: Profile) -> Any:
    """Guess which of two outcome values is the unfavourable one."""
    low, high = profile.levels[0], profile.levels[-1]
    stem = profile.sounds_like(_OUTCOME)
    if stem is not None and _OUTCOME[stem]:
        return high
    return high if str(high).lower() in _NEGATIVE_WORDS else low


def worse_end(profile: Profile) -> str:
    """Guess which end of a score is worse, from its name."""
    return "higher" if profile.sounds_like(_HIGHER_IS_WORSE) else "lower"


def gives_away(table: pd.DataFrame, profile: Profile, outcome: str) -> bool:
    """Tell whether each value of a column goes with one outcome: it records the decision again."""
    # a column with many values gives any outcome away, by chance
    if not profile.levels or profile.rows < 10 * profile.distinct:
        return False
    pairs = table[[profile.name, outcome]].dropna().drop_duplicates()
    return bool(len(pairs) == pairs[profile.name].nunique())


def association(table: pd.DataFrame, profile: Profile, outcome: str) -> float:
    """Measure how far a column goes with a binary outcome, from 0 to 1.

    Numbers by the correlation of their ranks with the outcome, everything else by Cramér's V.
    """
    import pandas as pd
    from scipy.stats.contingency import association as cramers_v

    values, decided = table[profile.name], table[outcome]
    both = values.notna().to_numpy() & decided.notna().to_numpy()
    present, answers = values[both], decided[both].to_numpy()
    granted = answers == answers[0] if len(answers) else answers
    if len(set(answers.tolist())) != 2 or present.nunique() < 2:
        return 0.0
    if profile.kind == "number" and profile.distinct > 2:
        return abs(float(np.corrcoef(present.rank().to_numpy(), granted)[0, 1]))
    return float(cramers_v(pd.crosstab(present.to_numpy(), granted)))
