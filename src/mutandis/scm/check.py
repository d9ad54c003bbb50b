"""The check of a worldview: fit, residuals, implied independences, extrapolation.

What is tested, how to read it and what it cannot see is described in docs/diagnostics.md.

*Residuals* are tested on causes and protected attributes: level, spread, interactions,
distribution. Least squares makes residuals uncorrelated with the fitted columns. These have to be
projected out of the tested columns too, or the variance is wrong. Whether an equation was fitted
that way shows in the residuals, so that no family needs to be known here.

*Independences* follow from the graph (d-separation). The noises of equations are independent unless
a hidden common cause is declared. Hence an attribute is independent of everything before it in the
order of causes, given its parents; all other independences of the graph follow from that (Verma and
Pearl 1990, "Causal networks: semantics and expressiveness"). Taken apart, it is one statement for
each pair without an arrow.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mutandis.data.columns import Categories, Numbers
from mutandis.errors import PlanError
from mutandis.numeric.order import canonical_order
from mutandis.scm.counterfactual import act, require_columns, take_rows
from mutandis.scm.dependence import (
    NOTHING_LEFT,
    Conditioning,
    Dependence,
    codes_of,
    crossed,
    dot,
    features_of,
    g_dependence,
    group_codes,
    holm,
    indicators,
    is_nominal,
    mean_dependence,
    normal_departure,
    spread_dependence,
    takes_few_values,
)
from mutandis.scm.diagnosis import Diagnosis, EquationCheck, Finding
from mutandis.scm.family import naming
from mutandis.scm.graph import Graph, arrows_of
from mutandis.scm.movement import MovementMeter, generator_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.data.population import Population
    from mutandis.scm.counterfactual import FittedWorldview
    from mutandis.scm.family import Leftover
    from mutandis.scm.worldview import Worldview


# of a larger table, the tests use as many rows, evenly
_MOST_ROWS = 250_000
# rows whose counterfactuals are computed together
_BLOCK = 1 << 18
# Residuals and a column with no larger correlation than this were made uncorrelated by the fit.
_UNCORRELATED = 1e-8
# A factor with more levels than these is taken out only if it is the one with most.
_MANY_LEVELS = 50

_LEVEL = "robust score test"
_SPREAD = "Brown-Forsythe test"
_DISTRIBUTION = "Kolmogorov-Smirnov test"
_TIED = "both have a hidden cause, so that residuals may depend on it"


def check_worldview(
    worldview: Worldview,
    population: Population,
    *,
    protected: str | None = None,
    do: Mapping[str, Any] | None = None,
    alpha: float = 0.01,
) -> Diagnosis:
    if not 0.0 < alpha < 0.5:
        raise PlanError(f"alpha={alpha} is outside (0, 0.5). Give the level of the tests: 0.01.")
    if protected is not None:
        worldview.check_root(protected)
    attributes = tuple(dict.fromkeys([*([protected] if protected else []), *(do or {})]))
    names = tuple(dict.fromkeys([*worldview.names, *attributes]))
    require_columns(population, names)
    fitted = worldview.fit(population)
    columns = {name: population.columns[name] for name in names}
    # equal rows are interchangeable, so nothing below depends on how the table was sorted
    everyone = canonical_order(columns)
    order = everyone[:: -(-len(everyone) // _MOST_ROWS) or 1]
    ordered = {name: column.take(order) for name, column in columns.items()}
    # an attribute that the worldview does not mention has no causes in it
    alone: dict[str, tuple[str, ...]] = {n: () for n in attributes if n not in worldview.names}
    graph = Graph.from_parents({**alone, **worldview.graph.parents})
    explained = dict(_explain(worldview, fitted, ordered))
    findings = [
        *_test_residuals(worldview, explained, ordered, attributes),
        *_test_independences(worldview, graph, explained, ordered),
    ]
    adjusted = iter(holm([each.p_value for each in findings if each.p_value is not None]))
    findings = [
        each if each.p_value is None else replace(each, p_adjusted=next(adjusted))
        for each in findings
    ]
    if do is not None and len(changed := _changed_rows(population, do, order)):
        facts = take_rows(population, changed, population.columns)
        meter = MovementMeter(
            worldview=worldview, fitted=fitted, columns=ordered, do=do, facts=facts
        )
        findings = [
            replace(each, movement=meter.movement_of(each))
            if each.p_adjusted is not None and each.p_adjusted < alpha
            else each
            for each in findings
        ]
    return Diagnosis(
        rows=len(order),
        taken_from=len(population) if len(order) < len(population) else None,
        alpha=alpha,
        equations=tuple(record for record, _ in explained.values()),
        findings=tuple(findings),
        protected=attributes,
        roots=graph.roots,
        couplings=MappingProxyType(dict(worldview.couplings)),
        **({} if do is None else _reach(fitted, population, do, everyone)),
    )


def _explain(
    worldview: Worldview, fitted: FittedWorldview, columns: Columns
) -> Iterator[tuple[str, tuple[EquationCheck, Leftover]]]:
    """Measure what each equation explains, causes before their effects."""
    noise: dict[str, Any] = {}
    for declared_latent, latent in zip(worldview.latents, fitted.latents, strict=True):
        noise.update(latent.abduct(columns, rng=generator_of(declared_latent.name)))
    driven = {child: name for name, children in worldview.hidden.items() for child in children}
    declared = worldview.all_equations
    for child in (name for name in worldview.names if name in declared):
        equation = fitted.equations[child]
        causes = {name: columns[name] for name in declared[child].parents}
        with naming(child):
            if child not in noise:
                noise[child] = equation.abduct(columns[child], causes, rng=generator_of(child))
            leftover = equation.leftover(columns[child], causes, noise[child])
        record = EquationCheck(
            child=child,
            family=type(declared[child]).__name__,
            parents=tuple(causes),
            measure=leftover.measure,
            fit=leftover.fit,
            hidden=driven.get(child),
        )
        yield child, (record, leftover)


def _changed_rows(
    population: Population, do: Mapping[str, Any], order: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Find the rows that an intervention changes, in the given order."""
    intervened = act(population, do)  # refuses what is not an intervention
    changed = np.zeros(len(population), dtype=np.bool_)
    for name in do:
        changed |= population.columns[name].data != intervened.columns[name].data
    return order[changed[order]]


def _reach(
    fitted: FittedWorldview, population: Population, do: Mapping[str, Any], order: NDArray[np.intp]
) -> dict[str, Any]:
    """Compute the shares of counterfactuals beyond the facts or cut off at bounds."""
    rows = _changed_rows(population, do, order)
    clipped: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    for start in range(0, len(rows), _BLOCK):
        facts = take_rows(population, rows[start : start + _BLOCK], population.columns)
        made = fitted.counterfactuals_once(facts, do=do)
        for name in made.moved:
            beyond = _outside(made.population.columns[name], population.columns[name])
            clipped[name] += made.clipped[name]
            outside[name] += int(beyond.sum())
    shares = {
        key: MappingProxyType({name: count / len(rows) for name, count in counts.items()})
        for key, counts in (("clipped", clipped), ("outside", outside))
        if len(rows)
    }
    return {"changed": len(rows), **shares}


def _outside(counterfactual: Column, factual: Column) -> NDArray[np.bool_]:
    """Mark numbers beyond all facts, and names that no fact has."""
    if isinstance(counterfactual, Numbers) and isinstance(factual, Numbers):
        below = counterfactual.values < factual.values.min()
        return np.asarray(below | (counterfactual.values > factual.values.max()))
    if isinstance(counterfactual, Categories) and isinstance(factual, Categories):
        facts = dict.fromkeys(factual.occurring(), False)
        return counterfactual.look_up(facts, otherwise=True)
    return np.ones(len(counterfactual), dtype=np.bool_)


# --- residuals ------------------------------------------------------------------------------------


def _test_residuals(
    worldview: Worldview,
    explained: Mapping[str, tuple[EquationCheck, Leftover]],
    columns: Columns,
    attributes: Sequence[str],
) -> Iterator[Finding]:
    """Test all residuals on causes and on the protected attributes."""
    for child, (record, leftover) in explained.items():
        # what has causes may follow from this very noise: the implied independences take care of it
        further = [name for name in attributes if name in record.parents or name not in explained]
        # what follows from a hidden cause of the child may depend on its noise
        siblings = {name for own in worldview.hidden.values() if child in own for name in own}
        siblings.discard(child)
        tied = siblings | set(worldview.graph.descendants(siblings))
        for result, about in check_residuals(leftover, columns, record.parents, further, tied):
            yield Finding(child=child, **about, **asdict(result))


def check_residuals(
    leftover: Leftover,
    columns: Columns,
    parents: Sequence[str],
    attributes: Sequence[str],
    tied: Collection[str] = (),
) -> Iterator[tuple[Dependence, dict[str, Any]]]:
    """Test residuals on each cause, on further attributes, and on pairs of both."""
    over = tuple(dict.fromkeys([*parents, *attributes]))
    for on in over:
        if not leftover.vectors or on in tied:
            reason = _TIED if leftover.vectors else leftover.reason
            yield Dependence(test="none", note=reason), {"on": on, "aspect": "level"}
    if not leftover.vectors:
        return
    equation = _Residuals.of(leftover.vectors, [columns[name] for name in parents])
    for on in [name for name in over if name not in tied]:
        features = features_of(columns[on])
        level = equation.level(features.vectors, fitted=on in parents)
        yield level, {"on": on, "aspect": "level"}
        if leftover.spreading:
            spread = spread_dependence(leftover.vectors[0], features, test=_SPREAD)
            yield spread, {"on": on, "aspect": "spread"}
    for on, other in _pairs([name for name in parents if name not in tied], attributes):
        together = equation.interaction(columns[on], columns[other])
        yield together, {"on": on, "further": (other,), "aspect": "interaction"}
    if leftover.standard:
        departure = normal_departure(leftover.vectors[0], test=_DISTRIBUTION)
        yield departure, {"aspect": "distribution"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Residuals:
    """Residuals, and what the fit has made them uncorrelated with."""

    residuals: tuple[Floats, ...]
    fitted: Conditioning

    @classmethod
    def of(cls, residuals: tuple[Floats, ...], parents: Sequence[Column]) -> _Residuals:
        factors: list[NDArray[np.intp]] = []
        vectors: list[Floats] = []
        for column in parents:
            if isinstance(column, Categories):
                codes = codes_of(column)
                factors += [codes] if _are_free_of_levels(residuals, codes) else []
            else:
                vectors += [column.values] if _are_uncorrelated(residuals, column.values) else []
        factors.sort(key=lambda codes: -int(codes.max()))
        cells = factors[0] if factors else np.zeros(len(residuals[0]), dtype=np.intp)
        for codes in factors[1:]:
            vectors += indicators(codes) if codes.max() < _MANY_LEVELS else ()
        return cls(residuals=residuals, fitted=Conditioning.on_vectors(vectors, cells=cells))

    def level(self, features: Sequence[Floats], *, fitted: bool) -> Dependence:
        result = mean_dependence(self.residuals, features, given=self.fitted, test=_LEVEL)
        if not features:
            return replace(result, note="the column does not vary")
        if fitted and result.note == NOTHING_LEFT:
            return replace(result, note="the equation is saturated in this cause")
        return result

    def interaction(self, one: Column, other: Column) -> Dependence:
        """Test whether products of two columns explain residuals, given a curve in each."""
        together = [left * right for left in _design(one) for right in _design(other)]
        products = [each for each in together if not _are_uncorrelated(self.residuals, each)]
        if not products:
            held = "the equation contains their interaction"
            return Dependence(
                test=_LEVEL, note=held if together else "one of the columns does not vary"
            )
        alone = [*features_of(one).vectors, *features_of(other).vectors]
        given = Conditioning.on_vectors([*self.fitted.basis, *alone], cells=self.fitted.cells)
        return mean_dependence(self.residuals, products, given=given, test=_LEVEL)


def _pairs(parents: Sequence[str], attributes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pair each protected cause with each other cause, once."""
    protected = [name for name in attributes if name in parents]
    for place, on in enumerate(protected):
        for other in parents:
            if other != on and other not in protected[:place]:
                yield on, other


def _design(column: Column) -> list[Floats]:
    """Return the vectors through which a column acts: indicators, or centred numbers."""
    if isinstance(column, Categories) or takes_few_values(column):
        return list(indicators(group_codes(column)))
    centred = column.values - np.add.reduce(column.values) / len(column)
    return [centred / float(np.abs(centred).max())]


def _are_uncorrelated(residuals: Sequence[Floats], vector: Floats) -> bool:
    right = _standardised(vector)
    return all(abs(dot(_standardised(left), right)) <= _UNCORRELATED for left in residuals)


def _are_free_of_levels(residuals: Sequence[Floats], codes: NDArray[np.intp]) -> bool:
    counts = np.bincount(codes)
    return all(
        bool((np.abs(sums) <= _UNCORRELATED * counts**0.5).all())
        for sums in (np.bincount(codes, weights=_standardised(left)) for left in residuals)
    )


def _standardised(vector: Floats) -> Floats:
    """Scale a vector to mean 0 and length 1, or 0 throughout."""
    centred = vector - np.add.reduce(vector) / len(vector)
    # scaled first: squares of large numbers overflow
    centred /= float(np.abs(centred).max()) or 1.0
    scaled: Floats = centred / (dot(centred, centred) ** 0.5 or 1.0)
    return scaled


# --- independences --------------------------------------------------------------------------------


class Independence(NamedTuple):
    """`first` and `second` are independent given the attributes in `given`."""

    first: str
    second: str
    given: tuple[str, ...] = ()


def implied_independences(
    graph: Graph, *, hidden: Mapping[str, Collection[str]] | None = None
) -> tuple[Independence, ...]:
    """List a basis of the independences that a graph implies, one for each separable pair.

    `hidden` has the attributes that each hidden common cause drives.
    """
    # roots first: the later of a pair then has parents to condition on, if one of them has any
    names = (*graph.roots, *(name for name in graph.names if name not in graph.roots))
    arrows: Any = None
    if hidden:
        arrows = arrows_of(graph.parents)
        # a pair, so that no attribute can have the same name
        arrows.add_edges_from(
            (("hidden", name), child) for name, driven in hidden.items() for child in driven
        )
    basis = []
    # combinations come in an order of causes, so `second` is not a cause of `first`
    for first, second in combinations(names, 2):
        if first in graph.parents[second]:
            continue
        given = _separator(arrows, first, second, graph)
        if given is not None:
            basis.append(Independence(first, second, tuple(sorted(given, key=names.index))))
    return tuple(basis)


def _separator(arrows: Any, first: str, second: str, graph: Graph) -> Collection[str] | None:
    """Find observed attributes that separate a pair: the parents of the later, or others."""
    parents = graph.parents[second]
    if arrows is None:
        return parents
    from networkx.algorithms import d_separation

    separation: Any = d_separation  # which the stubs lack
    if separation.is_d_separator(arrows, {first}, {second}, set(parents)):
        return parents
    observed = set(graph.names) - {first, second}
    found: set[str] | None = separation.find_minimal_d_separator(
        arrows, {first}, {second}, restricted=observed
    )
    return found


def _test_independences(
    worldview: Worldview,
    graph: Graph,
    explained: Mapping[str, tuple[EquationCheck, Leftover]],
    columns: Columns,
) -> Iterator[Finding]:
    # given a draw of a hidden cause, residuals contain no information on what holds without it
    residuals = {
        child: leftover.vectors
        for child, (record, leftover) in explained.items()
        if leftover.vectors and record.hidden is None
    }
    held: dict[tuple[str, ...], Conditioning] = {}
    for first, second, given in implied_independences(graph, hidden=worldview.hidden):
        fixed = [columns[name] for name in given]
        if given not in held:
            held[given] = Conditioning.on_columns(fixed, rows=len(columns[first]))
        # given its own causes, an attribute is represented by its residuals
        own = residuals.get(second) if set(given) == set(graph.parents[second]) else None
        result = _dependence(columns[first], columns[second], own, fixed=fixed, given=held[given])
        yield Finding(
            aspect="independence", child=second, on=first, further=given, **asdict(result)
        )


def _dependence(
    first: Column,
    second: Column,
    residuals: Sequence[Floats] | None,
    *,
    fixed: Sequence[Column],
    given: Conditioning,
) -> Dependence:
    """Test by counting if both are nominal, by means otherwise."""
    nominal = is_nominal(first), is_nominal(second)
    by_counting = None
    if all(nominal) and all(map(takes_few_values, fixed)):
        strata = crossed(fixed, rows=len(first))
        by_counting = g_dependence(group_codes(first), group_codes(second), strata)
        if by_counting.p_value is not None or not fixed:
            return by_counting
    if any(nominal):
        test = "robust regression score"
    else:
        test = "robust partial correlation" if fixed else "robust correlation"
    by_means = mean_dependence(
        residuals or _vectors(second), _vectors(first), given=given, test=test
    )
    return by_counting if by_counting and by_means.p_value is None else by_means


def _vectors(column: Column) -> Sequence[Floats]:
    if isinstance(column, Categories) or is_nominal(column):
        return indicators(group_codes(column))
    return [column.values]
