"""The first draft of an audit file, from a look at the table.

What a column may be is guessed from its type, the number of its distinct values, and the words in
its name. The reader of the draft is to correct it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.config.schema import FILL_IN
from mutandis.config.worldview import PROTECTED
from mutandis.config.yaml import write_flow
from mutandis.data.columns import plain_value
from mutandis.errors import InputError, listed, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["draft_config"]

# beginnings of words, the more telling first; whether the larger of two values is unfavourable
_OUTCOME = dict.fromkeys(
    ("approv", "grant", "accept", "admit", "admis", "hire", "award", "promot", "select", "pass",
     "decision", "outcome"), False,
) | dict.fromkeys(("reject", "denied", "denial", "deny", "refus", "declin"), True)  # fmt: skip
_PROTECTED = (
    "gender", "sex", "female", "woman", "women", "race", "racial", "ethnic", "nonwhite", "black",
    "hispan", "latin", "asian", "minorit", "foreign", "migrant", "immigra", "nationalit",
    "citizen", "religio", "disab", "handicap", "pregnan", "male", "white", "marital", "married",
)  # fmt: skip
_ID = ("id", "key", "uuid", "identifier", "number", "no", "nr")
_HIGHER_IS_WORSE = ("rate", "interest", "apr", "price", "cost", "fee", "premium", "wait", "rank")
_NEGATIVE_WORDS = {"no", "n", "false", "f", "denied", "rejected", "refused", "declined", "fail"}

_FEW = 10  # this many different numbers may be codes or grades
_NAMES = 30  # this many different texts may be categories
_LACKING = 0.05  # a column that lacks more of its values costs more rows than it is worth
_SEVERAL = 20  # people who are alike in more attributes than this are hardly ever found
_NAMED = 100  # columns that are named where they are left out
_KEY = 900  # YAML reads keys of up to 1,024 characters
_KS = (15, 30, 50, 100)
_EQUATIONS = {"continuous": "linear", "ordinal": "ordinal", "nominal": "categorical"}

_GROUND = "sounds like a protected ground"
_NUMBERED = "another value in every row, like an identifier"
_BEYOND = "people could be compared on it, but others are more associated with the decision"
_OPEN = """may be the decision or the protected attribute, which are not clear from the names: once
they are, add it, or run `mutandis init` again with --outcome and --protected"""

_HEADING = """Everything here is a guess from names and values. Two lines need you: EDIT 1 and
EDIT 2. Then let `mutandis check` look at it, strike what people should not be compared on, and
argue about the worldview before any result is seen."""
_MISSING = """Some values are missing (see below). `missing: drop` leaves such rows out and counts
them; `missing: error` refuses them."""
_CODED = """Some numbers look like codes for missing values (see below). If they are, add here, for
a CSV file: `missing_text: ['{code}'], missing: drop`; otherwise people are compared on them."""
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
evidence. Further settings: docs/reference/audit-file.md."""


@dataclass(slots=True, kw_only=True)
class _Column:
    """What can be seen of a column without knowing what it means, and what it is taken for."""

    name: str
    kind: str  # number, boolean, text, date or other
    rows: int
    missing: int = 0
    distinct: int = 0
    levels: tuple[Any, ...] = ()  # the distinct values in order, where they are few
    common: Any = None  # the most frequent one
    whole: bool = False
    lowest: float = float("-inf")
    code: tuple[int, int] | None = None  # a number like -999, and how many rows have it
    role: str = ""  # id, outcome, protected, a kind of attribute; empty: left out
    why: str = ""

    @property
    def words(self) -> list[str]:
        """The words in the name: "LoanApproved_2" has loan, approved and 2."""
        found = re.findall(r"[A-Z]?[a-zà-ÿ]+|[A-Z]+(?![a-z])|\d+", self.name)
        return [word.lower() for word in found]

    def sounds_like(self, stems: Iterable[str]) -> str | None:
        """Return the first stem that one of the words begins with."""
        return next((s for s in stems if any(word.startswith(s) for word in self.words)), None)

    @property
    def is_unique(self) -> bool:
        return self.distinct == self.rows > 1 and (self.whole or self.kind == "text")

    def leave_out(self, why: str) -> None:
        self.role, self.why = "", why


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
    columns = [_look(str(name), table.iloc[:, i]) for i, name in enumerate(table.columns)]
    _guess_roles(columns, {"outcome": outcome, "protected": protected, "id": id})
    for role, value in (("outcome", negative), ("protected", reference)):
        if value is not None and _of_role(columns, role) is None:
            raise InputError(
                f"{shown(value)} is given as a value of the {role} column, and it is not clear "
                f"which column that is. Name it with --{role}."
            )
    _leave_out(columns, table)
    rows = f"{len(table):,} rows, {len(columns):,} columns"
    blocks = (
        [f"# {shown(title)}: {rows}, looked at by `mutandis init`.", *_comment(_HEADING)],
        _data_lines(columns, data),
        _outcome_lines(columns, negative),
        _protected_lines(columns, reference),
        [*_attribute_lines(columns), *_left_out_lines(columns)],
        _worldview_lines(columns),
        [*_comment(_DECISION), "decision: {recorded: true}"],
        [*_comment(_TEST), f"ks: [{_sizes(columns, table)}]", "alpha: 0.05", "tau: 0.0"],
    )
    return "\n".join("\n".join(block) + "\n" for block in blocks)


# --- looking --------------------------------------------------------------------------------------


def _look(name: str, column: pd.Series[Any]) -> _Column:
    kind, present = _kind_of(column), column.dropna()
    found = _Column(name=name, kind=kind, rows=len(column), missing=len(column) - len(present))
    if kind == "other" or not len(present):
        return found
    counted = present.value_counts()
    numbers = present.to_numpy(dtype=np.float64) if kind == "number" else np.empty(0)
    found.whole = kind == "number" and bool(np.all(np.mod(numbers, 1) == 0))
    plain = int if found.whole else plain_value
    found.distinct, found.common = len(counted), plain(counted.index[0])
    if len(counted) <= _NAMES:
        found.levels = tuple(sorted(plain(value) for value in counted.index.tolist()))
    if len(numbers):
        found.lowest = float(numbers.min())
        found.code = _find_code(numbers)
    return found


def _find_code(numbers: NDArray[np.float64]) -> tuple[int, int] | None:
    """Find a number such as -999 or 99, farther from all others than these are from each other."""
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) < 3:
        return None
    for place, others in ((0, values[1:]), (-1, values[:-1])):
        value, gap = values[place], np.abs(values[place] - others).min()
        nines = re.fullmatch(r"-9+|99+", f"{value:.0f}") if value % 1 == 0 else None
        if nines and counts[place] > 1 and gap > others[-1] - others[0]:
            return int(value), int(counts[place])
    return None


def _kind_of(column: pd.Series[Any]) -> str:
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
    kinds = {"date": "date", "datetime": "date", "time": "date", "boolean": "boolean"}
    return kinds.get(inferred, "other")


# --- guessing -------------------------------------------------------------------------------------


def _of_role(columns: Iterable[_Column], role: str) -> _Column | None:
    return next((each for each in columns if each.role == role), None)


def _compared(columns: Iterable[_Column]) -> list[_Column]:
    return [each for each in columns if each.role in _EQUATIONS]


def _guess_roles(columns: Sequence[_Column], told: Mapping[str, str | None]) -> None:
    """Guess what each column is; what the caller knows is taken for granted."""
    for each in columns:
        _guess(each)
    outcome, protected, known = told["outcome"], told["protected"], told["id"]
    if outcome is None:
        outcome = _most_telling(columns, _OUTCOME, 2)
    if protected is None:
        others = [each for each in columns if each.name != outcome]
        protected = _most_telling(others, _PROTECTED, _FEW)
    if known is None:
        known = _find_id(columns)
    # the outcome last: a column that the caller names twice is refused later, as the outcome
    for role, name in (("id", known), ("protected", protected), ("outcome", outcome)):
        for each in columns:
            if each.name == name:
                each.role, each.why = role, ""


def _most_telling(columns: Iterable[_Column], stems: Iterable[str], most: int) -> str | None:
    """Name the column with few values whose name begins with the most telling stem."""
    order = list(stems)
    found = {
        each.name: order.index(stem)
        for each in columns
        if _has_few(each, most) and (stem := each.sounds_like(order)) is not None
    }
    return min(found, key=lambda name: found[name], default=None)


def _has_few(column: _Column, most: int) -> bool:
    return 2 <= column.distinct <= most and column.kind != "date"


def _find_id(columns: Sequence[_Column]) -> str | None:
    for each in columns:
        if each.is_unique and not set(each.words).isdisjoint(_ID):
            return each.name
    return None


def _guess(column: _Column) -> None:
    """Take a column for an attribute, or leave it out and say why."""
    share = column.missing / max(column.rows, 1)
    few, many = column.distinct <= _FEW, column.distinct > _NAMES
    reasons = {
        "values of several types": column.kind == "other",
        "no values": column.distinct == 0,
        "the same value in every row": column.distinct == 1,
        "a date: turn it into a number, such as an age": column.kind == "date",
        f"{share:.0%} of its values are missing": share > _LACKING,
        "sounds like a record of the decision": bool(column.sounds_like(_OUTCOME)),
        _GROUND: few and bool(column.sounds_like(_PROTECTED)),
        "free text, or too many names to compare people on": column.kind == "text" and many,
        _NUMBERED: column.whole and column.is_unique and not few,
        "its name is too long; rename it": len(write_flow(column.name)) > _KEY,
    }
    for reason, found in reasons.items():
        if found:
            column.leave_out(reason)
            return
    notes = [f"{column.missing:,} values are missing"] if column.missing else []
    if column.code is not None:
        value, number = column.code
        notes.append(f"{value} in {number:,} rows: a code for missing values?")
    if column.distinct == 2 or column.kind != "number":
        column.role = "nominal"
    elif column.whole and few:
        column.role = "ordinal"
        notes.insert(0, "grades, low to high? Codes are nominal, amounts continuous")
    else:
        column.role = "continuous"
    column.why = "; ".join(notes)


def _leave_out(columns: Sequence[_Column], table: pd.DataFrame) -> None:
    """Leave out what may be, or records, the decision or the status, and the weakest of many."""
    decided = _of_role(columns, "outcome")
    most = max(2 * (decided is None), _FEW * (_of_role(columns, "protected") is None))
    for each in _compared(columns):
        if _has_few(each, most):
            each.leave_out(_OPEN)
        elif decided is not None and _gives_away(table, each, decided.name):
            each.leave_out("each of its values goes with one outcome")
    left = _compared(columns)
    if decided is not None and len(left) > _SEVERAL:
        left.sort(key=lambda each: _association(table, each, decided.name), reverse=True)
    for each in left[_SEVERAL:]:
        each.leave_out(_BEYOND)


def _gives_away(table: pd.DataFrame, column: _Column, outcome: str) -> bool:
    # a column with many values gives any outcome away, by chance
    if not column.levels or column.rows < 10 * column.distinct:
        return False
    pairs = table[[column.name, outcome]].dropna().drop_duplicates()
    return bool(len(pairs) == pairs[column.name].nunique())


def _association(table: pd.DataFrame, column: _Column, outcome: str) -> float:
    """Measure how far a column goes with a binary outcome, from 0 to 1.

    Numbers by the correlation of their ranks with the outcome, everything else by Cramér's V, which
    for two outcomes is the correlation with their mean in each category.
    """
    both = table[[column.name, outcome]].dropna()
    granted = (both[outcome] == both[outcome].iloc[:1].squeeze()).astype(float)
    values = both[column.name].rank()
    if column.kind != "number" or column.distinct == 2:
        values = granted.groupby(both[column.name], observed=True).transform("mean")
    if both[outcome].nunique() != 2 or values.nunique() < 2:
        return 0.0
    return abs(float(np.corrcoef(values, granted)[0, 1]))


# --- writing --------------------------------------------------------------------------------------


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


def _name_some(columns: Sequence[_Column], most: int) -> str:
    more = f" and {len(columns) - most:,} more" if len(columns) > most else ""
    return ", ".join(shown(each.name) for each in columns[:most]) + more


def _candidates(title: str, columns: Sequence[_Column]) -> list[str]:
    return _comment(f"{title}: {_name_some(columns, 12)}.") if columns else []


def _find_level(column: _Column, text: str) -> Any:
    """Find the value of a column with few values that is written like this."""
    for form in (str, lambda each: str(each).casefold()):  # a file says false, and Python False
        found = [level for level in column.levels if form(level) == form(text)]
        if len(found) == 1:
            return found[0]
    texts = [str(level) for level in column.levels]
    has = listed(texts, near=text) if texts else f"more than {_NAMES} values"
    raise InputError(
        f"{shown(text)} is not a value of the column {shown(column.name)}, which has {has}. Give "
        "one of its values, as it is written there."
    )


def _data_lines(columns: Sequence[_Column], data: Mapping[str, Any]) -> list[str]:
    entries, comments = dict(data), list[str]()
    known = _of_role(columns, "id")
    if known is not None:
        entries["id"] = known.name
    if any(each.missing for each in columns if each.role not in {"", "id"}):
        comments = _comment(_MISSING)
        entries["missing"] = "drop"
    coded = next((each.code[0] for each in _compared(columns) if each.code), None)
    if coded is not None:
        comments += _comment(_CODED.format(code=coded))
    return [*comments, f"data: {write_flow(entries)}"]


def _outcome_lines(columns: Sequence[_Column], negative: str | None) -> list[str]:
    chosen = _of_role(columns, "outcome")
    levels = chosen.levels if chosen else ()
    if chosen and chosen.kind == "number" and chosen.distinct > _FEW:
        worse = "higher" if chosen.sounds_like(_HIGHER_IS_WORSE) else "lower"
        return [
            "# EDIT 1. The column with the decision is a number: is higher worse, or lower?",
            f"outcome: {_flow(column=chosen.name, worse=worse)}",
        ]
    named = [shown(each) if isinstance(each, str) else str(each) for each in levels]
    if chosen and len(levels) > 2:
        return [
            *_comment(
                f"EDIT 1. The column with the decision has several values ({', '.join(named)}). "
                f"List the unfavourable ones: negative: [{named[0]}, …]; or, where they have an "
                "order, all of them instead of negative: best_to_worst: [the best, …, the worst]."
            ),
            f"outcome: {_flow(column=chosen.name, negative=FILL_IN)}",
        ]
    bad: Any = FILL_IN
    if chosen and len(levels) == 2:
        bad = _unfavourable(chosen) if negative is None else _find_level(chosen, negative)
    others = [each for each in columns if each.distinct == 2 and each.role != "outcome"]
    values = " or ".join(named) if len(named) == 2 else "two values"
    return [
        f"# EDIT 1. The column with the decision, and its unfavourable value ({values}).",
        *_candidates("Other columns with two values", others),
        f"outcome: {_flow(column=chosen.name if chosen else FILL_IN, negative=bad)}",
    ]


def _unfavourable(column: _Column) -> Any:
    """Guess which of two outcome values is the unfavourable one."""
    low, high = column.levels
    stem = column.sounds_like(_OUTCOME)
    reverse = stem is not None and _OUTCOME[stem]
    return high if reverse or str(high).lower() in _NEGATIVE_WORDS else low


def _protected_lines(columns: Sequence[_Column], reference: str | None) -> list[str]:
    chosen = _of_role(columns, "protected")
    status: dict[str, Any] = {"attribute": FILL_IN, "value": FILL_IN, "reference": FILL_IN}
    if chosen is not None:
        common = chosen.common if chosen.levels else FILL_IN
        common = common if reference is None else _find_level(chosen, reference)
        others = [each for each in chosen.levels if each != common]
        value = {"value": others[0]} if len(others) == 1 else {}
        status = {"attribute": chosen.name, **value, "reference": common}
    return [
        *_comment(_PROTECTED_LINE),
        *_candidates(
            "Others that sound like protected grounds", [x for x in columns if x.why == _GROUND]
        ),
        f"protected: {write_flow(status)}",
    ]


def _attribute_lines(columns: Sequence[_Column]) -> Iterator[str]:
    yield from _comment(_COMPARED)
    compared = _compared(columns)
    beyond = sum(each.why == _BEYOND for each in columns)
    if beyond:
        yield (
            f"# Of {len(compared) + beyond} columns, these are most associated with the decision."
        )
    if not compared:
        yield "# EDIT 3. None could be guessed: name columns, and whether they are continuous,"
        yield "# ordinal or nominal."
    yield "attributes:" if compared else f"attributes: {{{FILL_IN}: continuous}}"
    for each in compared:
        comment = f"  # {each.why}" if each.why else ""
        ordinal = _flow(kind="ordinal", levels=each.levels)
        kind = ordinal if each.role == "ordinal" else each.role
        yield f"  {write_flow(each.name)}: {kind}{comment}"


def _left_out_lines(columns: Sequence[_Column]) -> Iterator[str]:
    reasons: dict[str, list[_Column]] = {}
    for each in columns:
        if not each.role:
            reasons.setdefault(each.why, []).append(each)
    if reasons:
        yield "# Left out:"
    for why, left in reasons.items():
        yield from _comment(f"{why}: {_name_some(left, _NAMED)}", "# - ", "#   ")


def _worldview_lines(columns: Sequence[_Column]) -> list[str]:
    lines = []
    for each in _compared(columns):
        never_negative = each.role == "continuous" and each.lowest >= 0
        bounds = {"bounds": [0, None]} if never_negative else {}
        equation = _flow(equation=_EQUATIONS[each.role], parents=[PROTECTED], **bounds)
        lines.append(f"  {write_flow(each.name)}: {equation}")
    if not lines:
        return ["# No worldview could be drafted; see the documentation on worldviews."]
    return [*_comment(_CLAIM), "worldview:", *lines]


def _sizes(columns: Sequence[_Column], table: pd.DataFrame) -> str:
    """Choose group sizes that half of the smaller group can fill."""
    chosen = _of_role(columns, "protected")
    smaller = len(table) // 10
    if chosen is not None:
        smaller = int(table[chosen.name].value_counts().min())
    fitting = tuple(k for k in _KS if 2 * k <= smaller)
    return ", ".join(map(str, fitting or (max(1, smaller // 2),)))
