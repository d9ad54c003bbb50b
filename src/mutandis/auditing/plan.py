"""The plan of an audit: every setting checked, and the table read, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

from mutandis.auditing.caliper_settings import read_caliper
from mutandis.auditing.checks import (
    check_choices,
    check_decision,
    check_one_source,
    read_draws,
    read_interval,
)
from mutandis.auditing.counterfactual_table import CounterfactualTable
from mutandis.auditing.protections import (
    check_direction,
    check_one_table,
    check_protections,
    draw_spaces,
    read_protections,
)
from mutandis.data.attribute import Attribute, AttributeKind, read_attributes
from mutandis.data.outcome import Outcome
from mutandis.data.population import Population
from mutandis.decision import as_decision_maker, required_columns
from mutandis.errors import PlanError
from mutandis.evidence.methods import METHODS, Method
from mutandis.evidence.semantics import PAPER_DEFINITIONS, Semantics
from mutandis.evidence.spaces import Stratum, check_group_sizes
from mutandis.frames import EncodedTable, open_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mutandis.causal import Worldview
    from mutandis.data.attribute import AttributeDeclaration
    from mutandis.data.population import Missing
    from mutandis.data.protection import Protection
    from mutandis.decision import DecisionMaker
    from mutandis.evidence.comparison import Direction
    from mutandis.evidence.intervals import IntervalName
    from mutandis.evidence.multiplicity import Adjustment
    from mutandis.evidence.spaces import Combine, ComparedWith, GroupSize
    from mutandis.search.embedding import Scaling
    from mutandis.search.ties import Ties

__all__ = ["MethodName", "Plan", "Preset", "Settings", "draft_plan", "read_ks"]

MethodName = Literal["st", "cst_without", "cst_with", "cf"]
Preset = Literal["eaamo23"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The choices of an audit that are not data: they are recorded with every result.

    Parameters
    ----------
    ks
        Group sizes, smallest first.
    alpha, tau
        Significance level, and the minimum deviation that counts as evidence.
    interval, adjust
        Which interval, and how p-values are adjusted for many complainants.
    ties, scaling, group_size
        The policy on equal distances, how numbers are scaled, and how many rows a test group takes.
    max_distance, min_group
        How far away people may be who are compared (None: any distance), and how few a group may
        hold before its complainant's verdict is "insufficient".
    primary
        The method and k that headlines are about, fixed before the run.
    draws, bootstrap
        How many further counterfactual tables to draw, and whether to refit the equations for each.
    seed, threads
        For anything random, and for the search (-1: all cores, which changes no number).
    direction
        Whether complainants who are treated worse ("negative") or better are looked for.
    test_space
        Compare with people of the reference status, or with everybody who is not protected.
    """

    ks: tuple[int, ...]
    alpha: float
    tau: float
    interval: IntervalName
    adjust: Adjustment
    ties: Ties
    scaling: Scaling
    group_size: GroupSize
    max_distance: float | None
    min_group: int
    primary: tuple[str, int]
    draws: int
    bootstrap: bool
    seed: int | None
    threads: int
    direction: Direction = "negative"
    test_space: ComparedWith = "reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An audit that can be run: everything named exists, nothing contradicts itself.

    Parameters
    ----------
    population, outcome
        D and its recorded outcomes.
    protection, strata
        Who complains, and among whom each is compared.
    attributes
        What people are compared on.
    worldview, counterfactuals
        Where counterfactuals come from: equations, or a ready table (at most one of the two).
    decision
        b(), if it can be asked.
    methods
        What is to be run.
    settings
        All other choices.
    semantics
        How the definitions are read.
    further, combine
        Further protections beside the first, and how they are combined with it: an intervention
        on each by itself ("multiple") or on all together ("intersectional").
    """

    population: Population
    outcome: Outcome
    protection: Protection
    strata: tuple[Stratum, ...]
    attributes: tuple[Attribute, ...]
    worldview: Worldview | None
    counterfactuals: CounterfactualTable | None
    decision: DecisionMaker | None
    methods: tuple[Method, ...]
    settings: Settings
    semantics: Semantics
    further: tuple[Protection, ...] = ()
    combine: Combine | None = None

    @property
    def protections(self) -> tuple[Protection, ...]:
        """All protections, in the order in which they were given."""
        return (self.protection, *self.further)

    @property
    def do(self) -> dict[str, Any]:
        """The intervention: every protected attribute takes its reference value."""
        return {each.attribute: each.reference for each in self.protections}


def draft_plan(
    decisions: Any,
    *,
    outcome: str,
    negative: object,
    protected: Protection | Sequence[Protection],
    attributes: Mapping[str, AttributeDeclaration],
    combine: Combine | None = None,
    worldview: Worldview | None = None,
    counterfactuals: Any = None,
    decision: DecisionMaker | Callable[[Any], Any] | str | None = None,
    methods: Sequence[MethodName] | None = None,
    ks: Iterable[int] = (15, 30, 50, 100),
    alpha: float = 0.05,
    tau: float = 0.0,
    direction: Direction = "negative",
    test_space: ComparedWith = "reference",
    interval: IntervalName | None = None,
    adjust: Adjustment = "benjamini-hochberg",
    ties: Ties = "fair",
    scaling: Scaling = "range",
    group_size: GroupSize = "k",
    max_distance: float | None = None,
    min_group: int | None = None,
    missing: Missing = "error",
    id: str | None = None,  # noqa: A002 - the public name of the option
    primary: tuple[MethodName, int] | None = None,
    draws: int | None = None,
    bootstrap: bool = False,
    seed: int | None = None,
    threads: int | None = None,
    preset: Preset | None = None,
) -> Plan:
    """Read the table and check every setting; the parameters are those of `mutandis.audit`."""
    compared = read_attributes(attributes)
    maker = None if decision is None else as_decision_maker(decision)
    needed = required_columns(maker) if maker else ()
    protections = read_protections(protected, combine)
    check_protections(
        protections, combine, attributes=compared, outcome=outcome, worldview=worldview
    )
    check_one_table(counterfactuals, combine)
    check_direction(direction, test_space, preset=preset)
    check_one_source(worldview, counterfactuals)
    check_decision(needed, outcome=outcome)
    drawn = read_draws(draws, bootstrap=bootstrap, worldview=worldview)
    resolved = read_interval(interval, tau=tau, preset=preset)
    check_choices(adjust=adjust, ties=ties, scaling=scaling, group_size=group_size, missing=missing)
    farthest, fewest = read_caliper(max_distance, min_group, preset=preset, group_size=group_size)

    source = decisions if isinstance(decisions, EncodedTable) else open_frame(decisions)
    nominal = [_nominal(outcome), *(_nominal(each.attribute) for each in protections)]
    others = [*(worldview.names if worldview else ()), *needed]
    population = Population.from_frame(
        source, columns=others, attributes=[*compared, *nominal], id=id, missing=missing
    )
    recorded = Outcome.read(outcome, population.categories(outcome), negative=negative)
    spaces = draw_spaces(protections, population, combine=combine, test_space=test_space)
    ready = (
        None
        if counterfactuals is None
        else CounterfactualTable.read(
            counterfactuals,
            population=population,
            rows_given=len(source),
            attributes=compared,
            outcome=recorded,
            protections=protections,
            id=id,
        )
    )
    chosen = _choose_methods(
        methods,
        counterfactual=worldview is not None or ready is not None,
        decided=maker is not None or (ready is not None and ready.is_negative is not None),
    )
    sizes = read_ks(ks)
    for strata in spaces:
        check_group_sizes(strata, sizes, group_size=group_size)
    return Plan(
        population=population,
        outcome=recorded,
        protection=protections[0],
        further=protections[1:],
        combine=combine,
        strata=spaces[0],
        attributes=compared,
        worldview=worldview,
        counterfactuals=ready,
        decision=maker,
        methods=chosen,
        settings=Settings(
            ks=sizes,
            alpha=_read_alpha(alpha),
            tau=_read_tau(tau),
            interval=resolved,
            adjust=adjust,
            ties=ties,
            scaling=scaling,
            group_size=group_size,
            max_distance=farthest,
            min_group=fewest,
            primary=_read_primary(primary, chosen, sizes),
            draws=drawn,
            bootstrap=bootstrap,
            seed=_read_seed(seed, draws=drawn),
            threads=-1 if threads in (None, -1) else _whole("threads", threads, least=1),
            direction=direction,
            test_space=test_space,
        ),
        semantics=_read_preset(preset, compared, ties=ties, scaling=scaling, group_size=group_size),
    )


def _read_seed(seed: int | None, *, draws: int) -> int | None:
    """Take the seed; draws without one start from 0, which is recorded."""
    if seed is None:
        return 0 if draws else None
    return _whole("seed", seed, least=0)


def _nominal(name: str) -> Attribute:
    return Attribute(name=name, kind=AttributeKind.NOMINAL)


def _choose_methods(
    names: Sequence[str] | None, *, counterfactual: bool, decided: bool
) -> tuple[Method, ...]:
    """Take the methods that were asked for; without a wish, all that the inputs allow."""
    lacking = {name: _lacking(m, counterfactual, decided) for name, m in METHODS.items()}
    if names is None:
        return tuple(m for name, m in METHODS.items() if not lacking[name])
    if isinstance(names, str):
        raise PlanError(f"methods= takes a list, not a text. Write methods=[{names!r}].")
    for name in names:
        if name not in METHODS:
            raise PlanError(f"Unknown method {name!r}. Allowed: {', '.join(METHODS)}.")
        if lacking[name]:
            raise PlanError(f"Method {name!r} needs {lacking[name]}.")
    if not names:
        raise PlanError(f"No methods. Name at least one of {', '.join(METHODS)}.")
    return tuple(m for name, m in METHODS.items() if name in names)


def _lacking(method: Method, counterfactual: bool, decided: bool) -> str:  # noqa: FBT001
    if method.needs_counterfactual and not counterfactual:
        return "counterfactuals: give worldview= or counterfactuals="
    if method.needs_counterfactual_outcome and not decided:
        return (
            "the outcome of each counterfactual: give decision=, or counterfactuals= with the "
            "outcome column in it"
        )
    return ""


def read_ks(ks: object) -> tuple[int, ...]:
    """Take group sizes, each once and smallest first."""
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        raise PlanError(f"ks={ks!r} is not a list of group sizes. Write ks=(15, 30).")
    sizes = tuple(sorted({_whole("k", k, least=1) for k in ks}))
    if not sizes:
        raise PlanError("ks is empty. Give at least one group size: ks=(15, 30).")
    return sizes


def _whole(name: str, value: object, *, least: int) -> int:
    # np.int64 is Integral too, and becomes an int; so is True, which counts nothing
    if not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least:
        return int(value)
    raise PlanError(f"{name}={value!r} is not allowed. Give an integer of at least {least}.")


def _read_alpha(alpha: object) -> float:
    if isinstance(alpha, Real) and 0 < float(alpha) < 0.5:
        return float(alpha)
    raise PlanError(
        f"alpha={alpha!r} is outside (0, 0.5). Give the level of a one-sided test, such as 0.05."
    )


def _read_tau(tau: object) -> float:
    if isinstance(tau, Real) and 0 <= float(tau) < 1:
        return float(tau)
    raise PlanError(
        f"tau={tau!r} is outside [0, 1). Give the least difference between two shares that counts "
        "as evidence, such as 0.1; 0 takes any."
    )


def _read_primary(
    primary: tuple[str, int] | None, methods: Sequence[Method], ks: Sequence[int]
) -> tuple[str, int]:
    """Take the headline's method and k, or the default: CST without centers at the second k."""
    names = [method.name for method in methods]
    if primary is None:
        method = "cst_without" if "cst_without" in names else names[0]
        return method, ks[min(1, len(ks) - 1)]
    method, k = primary
    if method not in names or k not in ks:
        raise PlanError(
            f"primary={primary!r} is not run. Methods: {', '.join(names)}; ks: {list(ks)}."
        )
    return method, k


def _read_preset(
    preset: str | None,
    attributes: Sequence[Attribute],
    *,
    ties: Ties,
    scaling: Scaling,
    group_size: GroupSize,
) -> Semantics:
    if preset is None:
        return PAPER_DEFINITIONS
    if preset != "eaamo23":
        raise PlanError(f"Unknown preset {preset!r}. Allowed: 'eaamo23', or none.")
    from mutandis.published.semantics import AS_PUBLISHED

    if (ties, scaling, group_size) != ("fair", "range", "k"):
        raise PlanError(
            f"preset='eaamo23' has its own ties, scale and groups: ties={ties!r}, "
            f"scaling={scaling!r} and group_size={group_size!r} would have no effect. "
            "Leave them out, or leave the preset out."
        )
    for attribute in attributes:
        if attribute.kind is AttributeKind.ORDINAL or attribute.weight != 1:
            raise PlanError(
                f"preset='eaamo23' knows no ordinal and no weighted attributes, but "
                f"{attribute.name!r} is one. Declare it otherwise, or leave the preset out."
            )
    return AS_PUBLISHED
