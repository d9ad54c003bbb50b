"""The settings of an audit: each is defined, documented, validated and given its default here.

The sections are arguments of `mutandis.plan` and sections of an audit file alike; provenance and
"how to repeat this" are the same objects written down. Each field has a reader, which returns the
value to keep or raises `PlanError`; `files.audit_file` applies the same readers key by key, so that
its errors can name a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from mutandis.data.columns import is_number
from mutandis.data.spaces import ComparedWith
from mutandis.engine.methods import METHODS
from mutandis.errors import PlanError, suggest
from mutandis.outcomes.intervals import DEFAULT_INTERVAL, IntervalName
from mutandis.outcomes.measures import AnyMeasure, Measure, measure_named
from mutandis.outcomes.outcome import Direction
from mutandis.registry import is_known, names
from mutandis.search.distances import distance_named
from mutandis.search.embedding import Scaling
from mutandis.search.ties import Ties
from mutandis.verdicts.multiplicity import Adjustment

if TYPE_CHECKING:
    from mutandis.scm import Worldview

__all__ = [
    "AS_GIVEN",
    "Evidence",
    "MethodName",
    "Settings",
    "Similarity",
    "Uncertainty",
    "read_ks",
    "read_whole",
    "settle_interval",
]

MethodName = Literal["st", "cst_without", "cst_with", "cf", "cst_matched"]
AnyInterval = Literal[IntervalName, "welch", "brunner-munzel"]
"""Those for shares of refusals, and those for scores and for ordered outcomes."""

Reader = Callable[[str, Any], Any]

AS_GIVEN = "as given"
"""What the plan's own worldview is called among others."""


def _setting(default: Any, read: Reader) -> Any:
    return field(default=default, metadata={"read": read})


class _Section:
    """A group of settings: every field is read by its own reader."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            read = each.metadata.get("read")
            if read is not None:
                object.__setattr__(self, each.name, read(each.name, getattr(self, each.name)))


def _choice(choices: Any) -> Reader:
    def read(name: str, value: Any) -> Any:
        if value in get_args(choices):
            return value
        allowed = get_args(choices)
        raise PlanError(
            f"{name}={value!r} is unknown.{suggest(value, allowed)} Allowed: {', '.join(allowed)}."
        )

    return read


def _read_distance_name(name: str, value: Any) -> str:
    if isinstance(value, str) and is_known("distance", value):
        return value
    allowed = names("distance")
    raise PlanError(
        f"{name}={value!r} is unknown.{suggest(value, allowed)} Allowed: {', '.join(allowed)}."
    )


def _unless_none(read: Reader) -> Reader:
    return lambda name, value: None if value is None else read(name, value)


def read_whole(least: int) -> Reader:
    """Read integers from a least one on."""

    def read(name: str, value: Any) -> int:
        # np.int64 is Integral too, and becomes an int; so is True, which counts nothing
        if not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least:
            return int(value)
        raise PlanError(f"{name}={value!r} is not allowed. Give an integer of at least {least}.")

    return read


def _read_least(name: str, value: Any) -> int:
    try:
        return int(read_whole(1)(name, value))
    except PlanError:
        raise PlanError(
            f"{name}={value!r} is not allowed. Give the fewest people that a group may hold, an "
            "integer of at least 1."
        ) from None


def _read_flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise PlanError(f"{name}={value!r} is not allowed. Give True or False.")


def _read_distance(name: str, value: Any) -> float:
    if is_number(value) and value >= 0:
        return float(value)
    raise PlanError(
        f"{name}={value!r} is not allowed. Give the largest distance at which people are "
        "comparable, such as 0.1, or leave it out."
    )


def _read_alpha(name: str, value: Any) -> float:
    if is_number(value) and 0 < value < 0.5:
        return float(value)
    raise PlanError(
        f"{name}={value!r} is outside (0, 0.5). Give the level of a one-sided test, such as 0.05."
    )


def _read_with_measure(name: str, value: Any) -> Any:  # noqa: ARG001 - as every reader
    # what is allowed depends on the measure: `Settings` checks both together
    return value


def _read_primary(name: str, value: Any) -> tuple[str, int]:
    if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str):
        return value[0], read_whole(1)("k", value[1])
    raise PlanError(f"{name}={value!r} is not a method and a k. Write ('cst_without', 30).")


def _read_methods(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise PlanError(f"{name}= takes a list, not a text. Write {name}=[{value!r}].")
    if not isinstance(value, Iterable):
        raise PlanError(f"{name}={value!r} is not a list of methods. Write {name}=['st'].")
    names = list(value)
    for each in names:
        if each not in list(METHODS):
            raise PlanError(
                f"Unknown method {each!r}.{suggest(each, METHODS)} Allowed: {', '.join(METHODS)}."
            )
    if not names:
        raise PlanError(f"No methods. Name at least one of {', '.join(METHODS)}.")
    return tuple(each for each in METHODS if each in names)


def read_ks(name: str, value: Any) -> tuple[int, ...]:
    """Read group sizes, each once and smallest first."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise PlanError(f"{name}={value!r} is not a list of group sizes. Write {name}=(15, 30).")
    sizes = tuple(sorted({read_whole(1)("k", k) for k in value}))
    if not sizes:
        raise PlanError(f"{name} is empty. Give at least one group size: {name}=(15, 30).")
    return sizes


def _read_draws(name: str, value: Any) -> int:
    if not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 0:
        return int(value)
    raise PlanError(f"{name}={value!r} is not allowed. Give the number to make, 0 for none.")


def _read_worldviews(name: str, value: Any) -> Mapping[str, Worldview]:
    from mutandis.scm import Worldview

    if not isinstance(value, Mapping) or not value:
        raise PlanError(f"{name}= takes worldviews by name. Write {name}={{'bank': Worldview(…)}}.")
    for each, worldview in value.items():
        if not isinstance(each, str) or not isinstance(worldview, Worldview):
            raise PlanError(
                f"{name}= has {type(worldview).__name__} under a name of type "
                f"{type(each).__name__}. Write {name}={{'bank': Worldview(…)}}."
            )
    if AS_GIVEN in value:
        raise PlanError(f"{name}= has {AS_GIVEN!r}, which is the plan's own. Choose another name.")
    return MappingProxyType(dict(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity(_Section):
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

    distance: str = _setting("gower", _read_distance_name)
    scaling: Scaling = _setting("range", _choice(Scaling))
    ties: Ties = _setting("fair", _choice(Ties))
    max_distance: float | None = _setting(None, _unless_none(_read_distance))
    min_group: int = _setting(1, _read_least)
    test_space: ComparedWith = _setting("reference", _choice(ComparedWith))

    def __post_init__(self) -> None:
        _Section.__post_init__(self)
        if self.distance != "gower" and self.scaling != "range":
            raise PlanError(
                f"distance={self.distance!r} scales numbers itself, and scaling={self.scaling!r} "
                "would have no effect. Leave scaling out, or take distance='gower'."
            )

    @property
    def description(self) -> str:
        """What the distance measures."""
        if self.scaling == "none":
            return "numbers taken as they are, then averaged"
        return distance_named(self.distance).description


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(_Section):
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

    measure: AnyMeasure = _setting("risk-difference", _choice(AnyMeasure))
    interval: AnyInterval | None = _setting(None, _unless_none(_choice(AnyInterval)))
    adjust: Adjustment = _setting("benjamini-hochberg", _choice(Adjustment))
    direction: Direction = _setting("negative", _choice(Direction))
    primary: tuple[str, int] | None = _setting(None, _unless_none(_read_primary))


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty(_Section):
    """What is doubted: how far verdicts depend on open noise and on estimated coefficients.

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
    placebo
        The number of placebo audits, in which there is nothing to find (docs/placebo.md). The
        largest count among them is set beside the audit's; 0 runs none.
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

    draws: int | None = _setting(None, _unless_none(_read_draws))
    refits: int | None = _setting(None, _unless_none(_read_draws))
    placebo: int = _setting(19, _read_draws)
    tipping: bool | None = _setting(None, _unless_none(_read_flag))
    variants: bool | None = _setting(None, _unless_none(_read_flag))
    worldviews: Mapping[str, Worldview] | None = _setting(None, _unless_none(_read_worldviews))

    @property
    def worlds(self) -> int:
        """How many other counterfactual worlds verdicts are tried in."""
        return (self.draws or 0) + (self.refits or 0)

    @property
    def compares_worldviews(self) -> bool:
        """Whether verdicts are given under other worldviews too."""
        return bool(self.variants or self.worldviews)


def _section(kind: type[Any]) -> Reader:
    def read(name: str, value: Any) -> Any:
        if isinstance(value, kind):
            return value
        raise PlanError(
            f"{name}= takes {kind.__name__}(…), not {type(value).__name__}. "
            f"Write {name}={kind.__name__}({fields(kind)[0].name}=…)."
        )

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(_Section):
    """All choices of an audit that are not data; they are recorded with every result."""

    methods: Sequence[str] | None = _setting(None, _unless_none(_read_methods))
    ks: tuple[int, ...] = _setting((15, 30, 50, 100), read_ks)
    alpha: float = _setting(0.05, _read_alpha)
    tau: float = _setting(0.0, _read_with_measure)
    similarity: Similarity = _setting(Similarity(), _section(Similarity))
    evidence: Evidence = _setting(Evidence(), _section(Evidence))
    uncertainty: Uncertainty = _setting(Uncertainty(), _section(Uncertainty))
    seed: int | None = _setting(None, _unless_none(read_whole(0)))

    def __post_init__(self) -> None:
        _Section.__post_init__(self)
        object.__setattr__(self, "tau", self.measure.read_tau(self.tau))

    @property
    def measure(self) -> Measure:
        """How differently two groups were treated, and what τ is a threshold of."""
        return measure_named(self.evidence.measure)

    @property
    def worse(self) -> bool:
        """Whether complainants who are treated worse are looked for."""
        return self.evidence.direction == "negative"

    @property
    def interval(self) -> AnyInterval:
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
