"""The settings of an audit: each is defined, documented, checked and given its default here, once.

The classes are arguments of `mutandis.plan` and sections of an audit file alike. Defaults, error
messages, the keys of files, the JSON Schema that editors complete from, and the record of an audit
all follow from them; so a new setting touches its definition here, and the code that uses it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from inspect import cleandoc
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from mutandis.config.fields import (
    At,
    FileSection,
    Flag,
    Name,
    Number,
    Section,
    Size,
    Value,
    Values,
    Whole,
    allowed,
    check_keys,
    fault,
    given,
    one_of,
    placed,
    section,
    several,
)
from mutandis.config.worldview import PROTECTED, AnyWorldview
from mutandis.data.labels import Labels
from mutandis.data.protection import Combine, ComparedWith, Protection
from mutandis.engine.tally import METHODS
from mutandis.errors import PlanError, SettingsError, listed, shown, suggest
from mutandis.geometry.distances import distance_named
from mutandis.geometry.embedding import Scaling
from mutandis.geometry.index import Ties
from mutandis.outcomes import ALL_INTERVALS, ALL_MEASURES, DECLARATIONS, declare, measure_named
from mutandis.outcomes.intervals import DEFAULT_INTERVAL
from mutandis.outcomes.outcome import Direction
from mutandis.outcomes.score import Worse
from mutandis.registry import is_known, names
from mutandis.verdicts.compare import Adjustment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.config.yaml import Document
    from mutandis.outcomes.measures import Measure
    from mutandis.scm import Worldview

__all__ = [
    "AS_GIVEN",
    "FILL_IN",
    "AuditFile",
    "DataSection",
    "DecisionSection",
    "Evidence",
    "MethodName",
    "Settings",
    "Similarity",
    "Uncertainty",
    "audit_file_schema",
    "kind_of_maker",
    "read_audit_file",
    "settle_interval",
]

MethodName = Literal["st", "cst_without", "cst_with", "cf", "cst_matched"]

AS_GIVEN = "as given"
"""The name of the plan's own worldview among others."""


# --- types of settings ----------------------------------------------------------------------------


def _once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return each value once, in order: methods in that of the paper, sizes smallest first."""
    order = list(METHODS).index if isinstance(values[0], str) else None
    return tuple(sorted(set(values), key=order))


def _check_names(worldviews: Mapping[str, Worldview]) -> Mapping[str, Worldview]:
    if AS_GIVEN in worldviews:
        raise At(
            (AS_GIVEN,),
            PlanError(f"{AS_GIVEN!r} is the name of the audit's own worldview. Choose another."),
        )
    return MappingProxyType(dict(worldviews))


Distance = Annotated[
    str,
    one_of(lambda: names("distance")),
    WithJsonSchema({"examples": list(names("distance")), "type": "string"}),
]
"""The name of a distance: a built-in one, or one of another package."""

_MeasureName = Annotated[
    str, one_of(lambda: ALL_MEASURES), WithJsonSchema({"enum": [*ALL_MEASURES], "type": "string"})
]
_IntervalName = Annotated[
    str, one_of(lambda: ALL_INTERVALS), WithJsonSchema({"enum": [*ALL_INTERVALS], "type": "string"})
]
_Several = BeforeValidator(several)
_Sizes = Annotated[
    tuple[Size, ...],
    Field(min_length=1),
    AfterValidator(_once),
    _Several,
    allowed("group sizes", (15, 30)),
]
if TYPE_CHECKING:
    _Methods = Sequence[str]
else:
    _Methods = Annotated[
        tuple[MethodName, ...],
        Field(min_length=1),
        AfterValidator(_once),
        _Several,
        allowed("a list of methods", ("st", "cf")),
    ]
_Primary = Annotated[tuple[str, Size], _Several, allowed("a method and a k", ("cst_without", 30))]
_Number = Annotated[Whole, Field(ge=0), allowed("the number to make, 0 for none")]
_Worldviews = Annotated[
    dict[str, AnyWorldview],
    Field(min_length=1),
    AfterValidator(_check_names),
    BeforeValidator(lambda value: dict(value) if isinstance(value, Mapping) else value),
    allowed("worldviews by name"),
]


# --- settings -------------------------------------------------------------------------------------


@section
class Similarity(Section):
    """Who is compared with whom.

    Parameters
    ----------
    distance
        How alike two people are: "gower", the weighted mean of differences in ranges (default), or
        one of the others of docs/distances.md.
    scaling
        Numeric differences are divided by their range in D ("range"), or were scaled by the caller
        ("none").
    ties
        People at the same distance share the last places of a group ("fair"), or the group takes
        all of them ("all").
    max_distance
        A caliper: people farther away are left out of the groups. Default: no limit.
    min_group
        A complainant whose groups hold fewer people, search centers not counted, gets the verdict
        "insufficient", and is neither tested nor a case.
    test_space
        Compare with people of the reference status ("reference"), or with everyone who is not
        protected on all attributes ("complement").

    Examples
    --------
    >>> import mutandis as mm
    >>> mm.Similarity(max_distance=0.1, min_group=5).min_group
    5
    >>> mm.Similarity(max_distance=-1)
    Traceback (most recent call last):
    mutandis.errors.PlanError: max_distance=-1 is not allowed. Give the largest distance at which...
    """

    distance: Distance = "gower"
    scaling: Scaling = "range"
    ties: Ties = "fair"
    max_distance: Annotated[
        Annotated[Number, Field(ge=0)] | None,
        allowed("the largest distance at which people are comparable, or leave it out", 0.1),
    ] = None
    min_group: Annotated[
        Whole, Field(ge=1), allowed("the fewest people that a group may hold, at least 1")
    ] = 1
    test_space: ComparedWith = "reference"

    def __post_init__(self) -> None:
        if self.distance != "gower" and self.scaling != "range":
            raise PlanError(
                f"The distance {self.distance!r} scales numbers itself, and the scaling "
                f"{self.scaling!r} would have no effect. Leave 'scaling' out, or take the distance "
                "'gower'."
            )

    @property
    def description(self) -> str:
        """What the distance measures."""
        if self.scaling == "none":
            return "numbers taken as they are, then averaged"
        return distance_named(self.distance).description


@section
class Evidence(Section):
    """What counts as evidence.

    Parameters
    ----------
    measure
        How differently two groups were treated: by the difference of their shares of refusals
        ("risk-difference"), by their ratio ("risk-ratio"), by the ratio of their approvals
        ("selection-ratio"), or by the ratio of their odds ("odds-ratio"). Each has a τ of its own
        (docs/outcomes.md). Scores have "mean-difference" and ordered outcomes "relative-effect",
        and no other.
    interval
        The interval, with the test that belongs to it: "miettinen-nurminen" (default) or "wald".
        Ratios have the first one only, scores "welch", and ordered outcomes "brunner-munzel".
    adjust
        How p-values are adjusted for the number of complainants.
    direction
        Look for complainants who are treated worse ("negative") or better ("positive").
    primary
        The (method, k) of the headline verdict. Default: the matched comparison, at the largest k
        up to 50 that is at most a third of the protected and a fifth of the reference rows.

    Examples
    --------
    >>> import mutandis as mm
    >>> mm.Evidence(interval="wald", primary=("cst_without", 30)).primary
    ('cst_without', 30)
    >>> mm.Evidence(measure="selection-ratio").measure
    'selection-ratio'
    """

    measure: _MeasureName = "risk-difference"
    interval: _IntervalName | None = None
    adjust: Adjustment = "benjamini-hochberg"
    direction: Direction = "negative"
    primary: _Primary | None = None


@section
class Uncertainty(Section):
    """How far verdicts depend on open noise, on estimated coefficients, and on the worldview.

    With draws or refits, findings have a `verdict_share`: the share of them under which the verdict
    is the same or stronger. Below .9 a verdict is `fragile`.

    Parameters
    ----------
    draws
        The number of counterfactual tables to draw, where the facts leave the noise open (hidden
        causes, counts, categories). Default: 20 where a coupling is assumed, else none.
    refits
        The number of times that the equations are fitted again, to resampled rows. In the matched
        comparison, the variance of p_test over refits is added to the one under the null. Default:
        20 below 2,000 rows where that comparison is run on an estimated worldview, else none.
    tipping
        Find, for every verdict of the headline, how much of the effect of the status must be real
        for it to stand (docs/robustness.md). Default: up to 10,000 rows, where the headline
        compares with counterfactuals, and wherever worldviews are compared.
    variants
        Give the headline's verdicts also under variants of the worldview that differ in one choice
        each (`vary_worldview`), and say under how many each one holds. Default: no.
    worldviews
        Further worldviews by name, under which the same is done.

    Examples
    --------
    >>> import mutandis as mm
    >>> mm.Uncertainty(refits=50).refits
    50
    """

    draws: _Number | None = None
    refits: _Number | None = None
    tipping: Flag | None = None
    variants: Flag | None = None
    worldviews: _Worldviews | None = None

    @property
    def worlds(self) -> int:
        """How many other counterfactual worlds verdicts are tried in."""
        return (self.draws or 0) + (self.refits or 0)

    @property
    def compares_worldviews(self) -> bool:
        """Whether verdicts are given under other worldviews too."""
        return bool(self.variants or self.worldviews)


@section
class Settings(Section):
    """All choices of an audit that are not data; they are recorded with every result.

    Parameters
    ----------
    methods
        Which of "st", "cst_without", "cst_with", "cf", "cst_matched". Default: all that the inputs
        allow.
    ks
        Group sizes. One search serves them all.
    alpha
        The level of a one-sided test.
    similarity
        Who is compared with whom.
    evidence
        What counts as evidence.
    tau
        The deviation beyond which Δp is evidence; of a score, in its units.
    uncertainty
        How far verdicts depend on open noise, on estimated coefficients, and on the worldview.
    seed
        For everything random. Default: 0, recorded with the result.
    cluster_by
        A column that says which rows are not independent, such as applications to one employer.
        The answer sums their residuals before it squares them.
    """

    methods: _Methods | None = None
    ks: _Sizes = (15, 30, 50, 100)
    alpha: Annotated[
        Number,
        Field(gt=0, lt=0.5),
        allowed("the level of a one-sided test, above 0 and below 0.5", 0.05),
    ] = 0.05
    similarity: Similarity = Similarity()
    evidence: Evidence = Evidence()
    tau: Any = 0.0
    uncertainty: Uncertainty = Uncertainty()
    seed: Annotated[Whole, Field(ge=0), allowed("an integer of at least 0")] | None = None
    cluster_by: Name | None = None

    @field_validator("tau")
    @classmethod
    def _check_tau(cls, value: Any, info: ValidationInfo) -> float:
        """Check τ by the measure that it is a threshold of."""
        evidence = info.data.get("evidence", Evidence())
        only = (info.context or {}).get("measure")  # of the outcome in an audit file
        return (only or measure_named(evidence.measure)).read_tau(value)

    @property
    def measure(self) -> Measure:
        """How differently two groups were treated, and what τ is a threshold of."""
        return measure_named(self.evidence.measure)

    @property
    def worse(self) -> bool:
        """Whether complainants who are treated worse are looked for."""
        return self.evidence.direction == "negative"

    @property
    def interval(self) -> str:
        """The interval, once a plan has settled it."""
        if self.evidence.interval is None:
            raise PlanError("The interval is settled by a plan.")
        return self.evidence.interval

    @property
    def primary(self) -> tuple[str, int]:
        """The method and k of the headline, once a plan has settled them."""
        if self.evidence.primary is None:
            raise PlanError("The primary method and k are settled by a plan.")
        return self.evidence.primary


def settle_interval(settings: Settings) -> Settings:
    """Choose the default interval where none was asked for; refuse one that cannot be used."""
    evidence = settings.evidence
    measure_named(evidence.measure).check_interval(evidence.interval)
    interval = evidence.interval or DEFAULT_INTERVAL
    return replace(settings, evidence=replace(evidence, interval=interval))


# --- the sections that describe a table -----------------------------------------------------------


class _Outcome(FileSection):
    what = "the section 'outcome'"
    column: Name
    """The column with the decision."""
    negative: Values = None
    """The unfavourable value, or the list of the unfavourable classes."""
    worse: Worse | None = None
    """Instead of `negative`, where the decision is a number: the end that is worse."""
    best_to_worst: Annotated[
        list[Value] | None, allowed("a list of all values, the best first", ["A", "B", "C"])
    ] = None
    """Instead of `negative`, where the values have an order: all of them, the best first."""


def _read_outcome(written: _Outcome) -> dict[str, Any]:
    """Return the arguments `outcome` and `negative` of a plan."""
    found = given(written)
    kinds = [each for each in DECLARATIONS if each in found]
    if len(kinds) > 1:
        titles = " and ".join(f"{each!r} is for {DECLARATIONS[each].title}" for each in kinds[:2])
        raise SettingsError(
            f"{kinds[0]!r} and {kinds[1]!r} contradict each other: {titles}. Keep one of them."
        )
    if not kinds:
        raise SettingsError(
            "'negative' is missing in the section 'outcome': the unfavourable value. Where the "
            "decision is a number, write worse: higher, or worse: lower; where its values have an "
            "order, list them all: best_to_worst: [approved, on conditions, refused]."
        )
    if kinds == ["negative"]:
        return {"outcome": written.column, "negative": written.negative}
    return {"outcome": declare(written.column, **{kinds[0]: found[kinds[0]]})}


class _Protection(FileSection):
    what = "the section 'protected'"
    attribute: Name
    """The column."""
    value: Values = None
    """The protected value, or a list; default: all but the reference."""
    reference: Value
    """The value that the counterfactual takes."""
    pool: bool = False
    """Look for the control group among all protected values together."""


class _Attribute(FileSection):
    what = "an attribute"
    kind: Literal["continuous", "ordinal", "nominal", "categorical"]
    """How its values are compared."""
    levels: Annotated[
        list[Value] | None, allowed("a list of levels, low to high", ["low", "mid", "high"])
    ] = None
    """Of an ordinal attribute: its levels, low to high."""
    weight: Number = 1.0
    """How much it counts in the distance."""
    compare_missing: bool = False
    """Compare missing values, as different from all others."""


def _read_attribute(written: _Attribute) -> dict[str, Any]:
    return {**given(written), "levels": tuple(written.levels or ())}


class _Labels(FileSection):
    what = "the section 'labels'"
    outcome: dict[str, Name] = Field(default_factory=dict)
    """What was decided, as it follows "was"."""
    columns: dict[str, Name] = Field(default_factory=dict)
    """The label of a column."""
    levels: dict[str, dict[str, Name]] = Field(default_factory=dict)
    """By column, the label of a value, as one says it of one person."""
    statuses: dict[str, dict[str, Name]] = Field(default_factory=dict)
    """By protected attribute, what people with a value are called."""


# --- the section on data --------------------------------------------------------------------------


class DataSection(FileSection):
    """Where the table is, and how it is read."""

    what = "the section 'data'"
    source: Name | None = None
    """A file, a folder or a pattern; an SQLite file with `query`."""
    url: Name | None = None
    """Instead of `source`: a database."""
    id: Name | None = None
    """A column with a unique value for each row; default: the row number, from 0."""
    missing: Literal["error", "drop"] = "error"
    """Refuse rows that lack a value, or leave them out and count them."""
    query: Name | None = None
    """Of a database: one SELECT."""
    password_env: Name | None = None
    """Of a database: the environment variable that holds the password."""
    separator: Name | None = None
    """Of CSV: what separates fields; default: detected."""
    decimal: Literal[".", ","] = "."
    """Of CSV: the decimal mark."""
    encoding: Name | None = None
    """Of CSV: how text is encoded; default: UTF-8."""
    header: bool = False
    """Of CSV: the first line holds the names, even if they look like numbers."""
    missing_text: Annotated[
        tuple[Name, ...],
        BeforeValidator(lambda each: tuple(each) if isinstance(each, list) else (each,)),
    ] = ()
    """Of CSV: texts that mark a missing value, next to the empty field."""


# --- the section on decisions ---------------------------------------------------------------------

_CHOICES = (
    "One of: rule: 'salary > 30000'; python: module:function; onnx, skops or pickle with the file "
    "of a model; http with its address; or recorded: true if there are only recorded decisions."
)
_SCORED = ("threshold", "favourable")
_ANSWERED = (*_SCORED, "columns", "answers")
_MODELLED = (*_ANSWERED, "score_of")
_KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "rule": ("a decision by rule", _SCORED),
    "python": ("a decision in Python", _MODELLED),
    "onnx": ("a decision by ONNX model", (*_ANSWERED, "output", "score_of")),
    "skops": ("a decision by skops model", _MODELLED),
    "pickle": ("a decision by pickled model", _MODELLED),
    "http": ("a decision over HTTP", _ANSWERED),
    "recorded": ("the section 'decision'", ()),
}
"""The keys that each kind of decision maker has next to its own; those of other packages have
the keys of models."""


def _check_columns(names: list[str]) -> tuple[str, ...]:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise fault(f"The column {name!r} is listed twice.", place)
    return tuple(names)


_Columns = Annotated[
    list[Name],
    Field(min_length=1),
    AfterValidator(_check_columns),
    allowed("a list of columns", ["salary", "balance"]),
]


def _either(kind: type, name: str) -> Discriminator:
    """Choose between a list (or a mapping), and one thing in it."""
    return Discriminator(lambda value: f"({name})" if isinstance(value, kind) else "(one)")


_OneOrMore = Annotated[
    Annotated[Name, Tag("(one)")] | Annotated[_Columns, Tag("(list)")], _either(list, "list")
]
_ColumnsByInput = Annotated[
    Annotated[_Columns, Tag("(one)")] | Annotated[dict[str, _OneOrMore], Tag("(inputs)")],
    _either(dict, "inputs"),
]
_Threshold = Annotated[
    Annotated[Number, Tag("(one)")] | Annotated[list[Number], AfterValidator(tuple), Tag("(list)")],
    _either(list, "list"),
]
_Seconds = Annotated[Number, Field(gt=0), allowed("a number of seconds above 0")]


class _Answers(FileSection):
    what = "a pair of answers"
    favourable: Value
    unfavourable: Value


class _Address(FileSection):
    what = "an endpoint"
    url: Name
    batch: Whole = 500
    envelope: Name | None = None
    token_variable: Name | None = None
    token_header: Name = "Authorization"  # noqa: S105 - a name, not a secret
    timeout: _Seconds = 60.0
    deadline: _Seconds = 3600.0
    retries: Whole = 5


class DecisionSection(FileSection):
    """Who decides."""

    model_config = ConfigDict(extra="allow")
    what = "the section 'decision'"
    rule: Name | None = None
    """A formula."""
    python: Name | None = None
    """module:function"""
    onnx: Name | None = None
    """The file of a model."""
    skops: Name | None = None
    """The file of a model."""
    pickle: Name | None = None
    """The file of a model."""
    http: Annotated[
        Annotated[Name, Tag("(one)")] | Annotated[_Address, Tag("(address)")],
        _either(dict, "address"),
    ] = ""
    """An address, or a mapping with `url` and further settings."""
    recorded: bool = False
    """Only recorded decisions are available: no model or person can be asked."""
    threshold: _Threshold | None = None
    """The answer is a score, and this the border."""
    favourable: Literal["above", "below"] = "above"
    """The side of the threshold with the favourable outcome."""
    columns: _ColumnsByInput | None = None
    """What the decision maker gets; of an ONNX model also by input."""
    answers: _Answers | None = None
    """Its words for the two outcomes."""
    score_of: Value = None
    """The class that scores are for."""
    """Where scores come from."""
    output: Name | None = None
    """Of an ONNX model: which output."""

    @classmethod
    def check(cls, written: Any) -> None:
        """Refuse a decision without a maker or with two, and keys of another kind."""
        kind = kind_of_maker(written) if isinstance(written, dict) else "recorded"
        what, further = _KINDS.get(kind, (f"a decision by {kind}", _MODELLED))
        check_keys(written, {kind: True, **dict.fromkeys(further, False)}, what, "")
        if kind != "onnx" and isinstance(written.get("columns"), dict):
            raise fault("Only an ONNX model has columns by input. List them.", "columns")


def kind_of_maker(written: Mapping[str, Any]) -> str:
    """Name the kind of decision maker that a section is about."""
    found = [key for key in written if key in _KINDS]
    found = found or [key for key in written if is_known("decision", key)]
    if len(found) > 1:
        raise fault(
            f"Name who decides: {listed(found)} are written, and only one of them can.", found[1]
        )
    for key in () if found else written:
        if key not in DecisionSection.model_fields:
            raise fault(
                f"{shown(key)} is not a key of the section 'decision'."
                f"{suggest(key, (*_KINDS, *names('decision')))} {_CHOICES}",
                key,
            )
    if not found or (found == ["recorded"] and written["recorded"] is False):
        raise fault(f"Name who decides. {_CHOICES}")
    return found[0]


# --- the file -------------------------------------------------------------------------------------

_ONE, _LIST = Tag("(one)"), Tag("(list)")
_Kinds = Literal["continuous", "ordinal", "nominal", "categorical"]


def _is(kind: type) -> Discriminator:
    """Choose between a list (a mapping), and one thing in it (a word)."""
    return Discriminator(lambda value: "(list)" if isinstance(value, kind) else "(one)")


if TYPE_CHECKING:
    AnyOutcome = dict[str, Any]
    OneProtection = Protection
    AnyAttribute = Any
    AnyLabels = Labels
else:
    AnyOutcome = Annotated[_Outcome, AfterValidator(_read_outcome)]
    OneProtection = Annotated[
        _Protection,
        AfterValidator(lambda w: Protection(**given(w))),
    ]
    AnyAttribute = Annotated[
        Annotated[_Kinds, _ONE]
        | Annotated[_Attribute, AfterValidator(_read_attribute), Tag("(list)")],
        _is(dict),
    ]
    AnyLabels = Annotated[_Labels, AfterValidator(lambda w: Labels(**given(w)))]


@section
class AuditFile(Settings):
    """An audit file: where the table is, what its columns mean, and all settings."""

    what: ClassVar[str] = "an audit"

    data: DataSection
    """Where the table is."""
    outcome: AnyOutcome
    """The decision, and its unfavourable value."""
    protected: Annotated[
        Annotated[OneProtection, _ONE] | Annotated[list[OneProtection], _LIST], _is(list)
    ]
    """Who is protected, and whom they are compared with."""
    attributes: dict[str, AnyAttribute]
    """What people are compared on."""
    combine: Combine | None = None
    """How several protections are combined."""
    worldview: AnyWorldview | None = None
    """What causes what; without it only ST can be run."""
    decision: DecisionSection | None = None
    """Who decides, if that can be asked again."""
    labels: AnyLabels | None = None
    """What columns, values and outcomes are called in documents."""


def read_audit_file(document: Document) -> AuditFile:
    """Check what an audit file says.

    Examples
    --------
    >>> from mutandis.config.yaml import read_yaml
    >>> text = '''
    ... data: {source: loans.csv}
    ... outcome: {column: granted, negative: 'no'}
    ... protected: {attribute: gender, reference: male}
    ... attributes: {salary: continuous}
    ... '''
    >>> read_audit_file(read_yaml(text)).outcome
    {'outcome': 'granted', 'negative': 'no'}
    >>> read_audit_file(read_yaml(text + "ks: 30"))
    Traceback (most recent call last):
    mutandis.errors.SettingsError: Line 6, at 'ks': 30 is not allowed. Give group sizes, such as...
    """
    _check_filled_in(document)
    context = {
        "protected": _protected_names(document.data),
        "measure": _only_measure(document.data),
    }
    with placed(document):
        read: AuditFile = TypeAdapter(AuditFile).validate_python(document.data, context=context)
    return read


def _protected_names(data: Any) -> list[str]:
    """List the protected attributes before anything is checked: worldviews refer to them."""
    section = data.get("protected") if isinstance(data, dict) else None
    parts = section if isinstance(section, list) else [section]
    found = [each.get("attribute") for each in parts if isinstance(each, dict)]
    return [str(name) for name in found if isinstance(name, str | int)] or [PROTECTED]


def _only_measure(data: Any) -> Measure | None:
    """Return the measure of the kind of outcome, before anything is checked: τ refers to it."""
    outcome = data.get("outcome") if isinstance(data, dict) else None
    kinds = [
        DECLARATIONS[key] for key in DECLARATIONS if isinstance(outcome, dict) and key in outcome
    ]
    return kinds[0].measure if kinds else None


FILL_IN = "FILL IN"
"""The text of a draft where nothing could be guessed."""
_EDITS = {
    "outcome": ("EDIT 1", "the column with the decision and its unfavourable value belong"),
    "protected": ("EDIT 2", "the protected attribute and its values belong"),
    "attributes": ("EDIT 3", "what people are compared on belongs"),
}
"""The lines that a draft leaves to its reader, by section: their numbers, what belongs there."""


def _check_filled_in(document: Document) -> None:
    """Name the first line that a draft left to its reader and that is still to be filled in."""
    for path in document.lines:
        if path and path[0] in _EDITS and FILL_IN in (path[-1], document.value(path)):
            edit, what = _EDITS[str(path[0])]
            raise document.error(path, f"Fill in {edit}: {FILL_IN!r} is still where {what}.")


def audit_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of audit files, from which editors complete and check them.

    Examples
    --------
    >>> schema = audit_file_schema()
    >>> schema["$defs"]["Similarity"]["properties"]["ties"]["enum"]
    ['fair', 'all']
    """
    schema = TypeAdapter(AuditFile).json_schema()
    for kind in (Similarity, Evidence, Uncertainty, Settings):
        described = _descriptions(kind)
        place = schema if kind is Settings else schema["$defs"][kind.__name__]
        for key, description in described.items():
            place["properties"][key]["description"] = description
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _descriptions(kind: type) -> dict[str, str]:
    """Read what a docstring says about each parameter."""
    _, _, parameters = cleandoc(kind.__doc__ or "").partition("Parameters\n----------\n")
    found = re.findall(r"^(\w+)\n((?: {4}.*\n?)+)", parameters, re.MULTILINE)
    return {name: " ".join(body.split()) for name, body in found}
