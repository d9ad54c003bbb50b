"""Worldviews: what experts hold true about causes and effects, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import EquationError, RootError, WorldviewError
from mutandis.numeric.order import ReorderedColumns, canonical_order
from mutandis.registry import find
from mutandis.scm.counterfactual import FittedWorldview, make_draws, population_of, require_columns
from mutandis.scm.family import Declaration, Equation, Fitted, naming
from mutandis.scm.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    import networkx as nx

    from mutandis.data.attribute import AttributeDeclaration
    from mutandis.data.columns import Columns
    from mutandis.data.population import Missing, Population
    from mutandis.report.chart import Picture
    from mutandis.scm.counterfactual import Counterfactuals, Draws
    from mutandis.scm.diagnosis import Diagnosis
    from mutandis.scm.family import HiddenCause, Rng


# A level that one row in a thousand has is lost from a resample of a thousand with probability
# 0.37; that often in succession only if the worldview cannot be bootstrapped at all.
_RESAMPLES = 50


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Worldview(Declaration):
    """A structural causal model: one equation for each attribute that has causes.

    Attributes without an equation are roots: nothing in the worldview causes them, and an
    intervention elsewhere leaves them as they are.

    Parameters
    ----------
    equations
        The equation of each attribute that has causes, by column name.
    latents
        Hidden common causes, each with the equations of the attributes that it drives.
    resolving
        Attributes that an intervention leaves as they are, although it would move them: the
        decision maker may rightly use them as they stand (business necessity), so the paths
        through them are not followed.

    Examples
    --------
    >>> from mutandis.scm import Linear
    >>> worldview = Worldview(
    ...     {"Salary": Linear("Gender"), "Balance": Linear("Salary", "Gender")}
    ... )
    >>> worldview.names
    ('Gender', 'Salary', 'Balance')
    >>> people = {
    ...     "Gender": [0, 0, 1, 1],
    ...     "Salary": [40.0, 60.0, 30.0, 40.0],
    ...     "Balance": [8.0, 12.0, 5.0, 7.0],
    ... }
    >>> counterfactuals = worldview.counterfactuals(people, do={"Gender": 0})
    >>> counterfactuals.moved
    ('Salary', 'Balance')
    >>> counterfactuals.population.numbers("Salary").round(6).tolist()
    [40.0, 60.0, 45.0, 55.0]
    >>> counterfactuals.population.numbers("Balance").round(6).tolist()
    [8.0, 12.0, 9.0, 11.0]
    """

    equations: Mapping[str, Equation]
    latents: tuple[HiddenCause, ...]
    resolving: tuple[str, ...]
    graph: Graph = field(compare=False)

    def __init__(
        self,
        equations: Mapping[str, Equation],
        *,
        latents: Iterable[HiddenCause] = (),
        resolving: Iterable[str] = (),
    ) -> None:
        if not isinstance(equations, Mapping):
            raise WorldviewError(
                f"A worldview was made from {type(equations).__name__}. "
                "Give a dict of equations: Worldview({'Salary': Linear('Gender')})."
            )
        for child, equation in equations.items():
            _check_equation(child, equation)
        latents = tuple(latents)
        _check_latents(equations, latents)
        self._set(equations=MappingProxyType(dict(equations)), latents=latents)
        graph = Graph.from_parents(
            {child: equation.parents for child, equation in self.all_equations.items()}
        )
        self._set(resolving=_read_resolving(resolving, graph), graph=graph)

    def __hash__(self) -> int:
        """Hash as equality compares: the same equations, in whatever order they were written."""
        return hash((frozenset(self.equations.items()), self.latents, self.resolving))

    @classmethod
    def read(cls, source: str | Path) -> Worldview:
        """Read a worldview from a YAML file; text with line breaks is taken for the YAML itself.

        Examples
        --------
        >>> worldview = Worldview.read('''
        ... equations:
        ...   salary: {equation: linear, parents: [gender], bounds: [0, null]}
        ... edges: [gender -> balance, salary -> balance]
        ... ''')
        >>> worldview.names
        ('gender', 'salary', 'balance')
        """
        from mutandis.config.worldview import read_worldview

        return read_worldview(source)

    @classmethod
    def from_graph(cls, graph: nx.DiGraph) -> Worldview:
        """Make a worldview of a networkx graph: every node is linear in the nodes that point to it.

        A node is named by itself if it is text, unless that text is a number and the node has a
        ``label``; any other node is named by its ``label``.

        Examples
        --------
        >>> import networkx as nx
        >>> Worldview.from_graph(nx.DiGraph([("gender", "salary"), ("salary", "balance")]))
        Worldview({'salary': Linear('gender'), 'balance': Linear('salary')})
        """
        from mutandis.config.worldview import worldview_from_graph

        return worldview_from_graph(graph)

    @classmethod
    def from_dowhy(cls, model: Any, *, outcome: str | None = None) -> Worldview:
        """Take a fitted DoWhy model as a worldview (``pip install 'mutandis[dowhy]'``).

        It is a `dowhy.gcm.InvertibleStructuralCausalModel` whose nodes are columns of the table,
        and is copied. Fitting the worldview leaves DoWhy's coefficients as they are. `outcome`
        names the node of the decision, if the model has one: it is left out, because outcomes are
        decided by b(), and its mechanism need not be invertible. docs/dowhy.md has an example.
        """
        made: Worldview = find("room", "dowhy").worldview_from_dowhy(model, outcome=outcome)
        return made

    def write(self, path: str | Path | None = None) -> str:
        """Return the worldview as YAML, and write it to a path; reading gives an equal worldview.

        Equations around a Python object, or of a family of your own, are refused.

        Examples
        --------
        >>> from mutandis.scm import Linear
        >>> print(Worldview({"salary": Linear("gender", decimals=2)}).write(), end="")
        equations:
          salary: {equation: linear, parents: [gender], decimals: 2}
        """
        from pathlib import Path

        from mutandis.config.worldview import write_worldview

        text = write_worldview(self)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def draw(
        self,
        *,
        protected: str | Collection[str] = (),
        outcome: str | None = None,
        decision_inputs: Collection[str] = (),
    ) -> Picture:
        """Draw the worldview, causes before their effects; `save(path)` writes the picture.

        Parameters
        ----------
        protected
            The protected attributes, drawn with a double border.
        outcome
            The name of the decision's outcome, drawn last.
        decision_inputs
            The attributes that the decision is made from; each gets an arrow to the outcome.

        Examples
        --------
        >>> from mutandis.scm import Linear
        >>> Worldview({"Salary": Linear("Gender")}).draw(protected="Gender")
        Picture('Worldview')
        """
        from mutandis.report.graph_plot import draw_worldview

        return draw_worldview(
            self, protected=protected, outcome=outcome, decision_inputs=decision_inputs
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that the worldview mentions, causes before their effects."""
        return self.graph.names

    @property
    def all_equations(self) -> dict[str, Equation]:
        """The equations, including those of attributes with a hidden common cause."""
        groups = (self.equations, *(latent.equations for latent in self.latents))
        return {child: equation for group in groups for child, equation in group.items()}

    @property
    def hidden(self) -> dict[str, tuple[str, ...]]:
        """The attributes that each hidden common cause drives."""
        return {latent.name: tuple(latent.equations) for latent in self.latents}

    def check_root(self, attribute: str) -> None:
        """Refuse a protected attribute that has causes: counterfactual statuses start from it."""
        causes = self.graph.parents.get(attribute, ())
        if causes:
            raise RootError(
                f"The protected attribute {attribute!r} must be a root, but the worldview says "
                f"that it is caused by {', '.join(map(repr, causes))}. "
                f"Remove the equation for {attribute!r}."
            )

    @property
    def couplings(self) -> Mapping[str, str]:
        """The attributes whose counterfactuals rest on an assumed coupling, with its name."""
        # Additive noise is determined by the facts. The noise behind a count or a category is not:
        # how it carries over to other causes is an assumption that no data can test.
        own = {child: each.coupling for child, each in self.equations.items()}
        found = {child: name for child, name in own.items() if name is not None}
        for latent in self.latents:
            # what is assumed of an attribute under a hidden cause, only the hidden cause knows
            found.update(latent.couplings)
        return found

    def fit(self, table: Any) -> FittedWorldview:
        """Fit every equation to the facts: a `Population`, any dataframe or a dict of columns."""
        population = population_of(table, self.names)
        require_columns(population, self.names)
        return self._fit_columns({name: population.columns[name] for name in self.names})

    def counterfactuals(
        self, table: Any, *, do: Mapping[str, Any], draws: int = 0, rng: Rng = None
    ) -> Counterfactuals:
        """Fit to a population, and compute its counterfactuals.

        Parameters
        ----------
        table
            The facts: a `Population`, any dataframe or a dict of columns.
        do
            The intervened attributes and the value each is set to, in all rows.
        draws
            How many further counterfactual populations to draw (`Counterfactuals.draws`). A
            person's draws do not depend on how the table is sorted.
        rng
            The generator of the draws.
        """
        population = population_of(table, (*self.names, *do))
        return self.fit(population).counterfactuals(population, do=do, draws=draws, rng=rng)

    def refits(self, table: Any, *, do: Mapping[str, Any], refits: int, rng: Rng) -> Draws:
        """Compute counterfactuals by equations that are fitted to resampled rows.

        As many rows are drawn with replacement as there are; a resample from which a rare level is
        missing, so that an equation cannot be fitted or applied, is drawn again. Noise that the
        facts leave open is the same in all refits, so that they show the uncertainty of the
        coefficients alone.

        Parameters
        ----------
        table, do
            As in `counterfactuals`.
        refits
            How many to make. They do not depend on how the table is sorted.
        rng
            Their generator.
        """
        population = population_of(table, (*self.names, *do))
        noise = [] if rng is None else rng.integers(0, 2**32, size=4).tolist()

        def refit(ordered: Population, generator: np.random.Generator) -> Counterfactuals:
            again = self._fit_resampled(ordered, do, generator)
            return again.counterfactuals_once(ordered, do=do, rng=np.random.default_rng(noise))

        return make_draws(population, self.names, do=do, draws=refits, rng=rng, draw=refit)

    def check(
        self,
        table: Any,
        *,
        protected: str | None = None,
        do: Mapping[str, Any] | None = None,
        alpha: float = 0.01,
        attributes: Mapping[str, AttributeDeclaration] | None = None,
        missing: Missing = "error",
    ) -> Diagnosis:
        """Test whether a table contradicts this worldview; `print` shows sentences.

        What is tested, how to read it and what it cannot see is described in docs/diagnostics.md.

        Parameters
        ----------
        table
            The facts, to which the equations are fitted: any dataframe, a dict of columns, or a
            `Population`.
        protected
            The protected attribute A. Residuals are tested on it even where it is not a cause, and
            its effect is tested for interactions with other causes.
        do
            An intervention, as counterfactuals will ask for. Its attributes are treated as A is,
            and it is reported how far each problem moves counterfactuals, and how many of them lie
            outside the facts or were cut off.
        alpha
            The chance of finding any problem in a worldview that is right. p-values are adjusted
            for the number of tests by Holm's method.
        attributes
            The kinds of columns that are not to be read by their type, as in `mutandis.audit`.
        missing
            What to do with rows that lack a value: refuse ("error"), or leave them out ("drop").

        Examples
        --------
        >>> import numpy as np
        >>> from mutandis.scm import Linear
        >>> rng = np.random.default_rng(1)
        >>> age = rng.uniform(20, 60, size=1000)
        >>> salary = 30 + 0.02 * (age - 20) ** 2 + rng.normal(size=1000)
        >>> diagnosis = Worldview({"Salary": Linear("Age")}).check({"Age": age, "Salary": salary})
        >>> round(diagnosis.equations[0].fit, 2), len(diagnosis.problems)
        (0.93, 1)
        >>> print(diagnosis.sentences()[1])
        Salary: residuals still depend on Age (p < 0.001): the equation misses part of the effect of
        Age. That is 83.9 % of the residual variance.
        """
        from mutandis.scm.check import check_worldview

        names = (*self.names, *([protected] if protected else []), *(do or {}))
        population = population_of(table, names, attributes=attributes, missing=missing)
        return check_worldview(self, population, protected=protected, do=do, alpha=alpha)

    def _fit_resampled(
        self, population: Population, do: Mapping[str, Any], rng: np.random.Generator
    ) -> FittedWorldview:
        """Fit to rows drawn with replacement, and again where a draw has lost a rare level."""
        left = _RESAMPLES
        while True:
            left -= 1
            rows = rng.integers(0, len(population), size=len(population))
            columns = {name: population.columns[name].take(rows) for name in self.names}
            try:
                fitted = self._fit_columns(columns)
                fitted.counterfactuals_once(population, do=do)  # refuses a level that was lost
            except EquationError:
                if not left:
                    raise
            else:
                return fitted

    def _fit_columns(self, columns: Columns) -> FittedWorldview:
        # a column is reordered where it is needed: all of them at once would be a second table
        order = canonical_order(columns)
        ordered = ReorderedColumns(columns, columns, order=order)
        fitted: dict[str, Fitted[Any]] = {}
        for child, equation in self.equations.items():
            causes = ReorderedColumns(columns, equation.parents, order=order)
            with naming(child):
                fitted[child] = equation.fit(ordered[child], causes)
        latents = tuple(latent.fit(dict(ordered)) for latent in self.latents)
        for latent in latents:
            fitted.update(latent.equations)
        return FittedWorldview(
            graph=self.graph,
            equations=MappingProxyType(fitted),
            latents=latents,
            resolving=self.resolving,
            couplings=MappingProxyType(dict(self.couplings)),
        )


def _check_equation(child: object, equation: object) -> None:
    # a class has the attributes of its instances: Linear instead of Linear("Gender")
    if isinstance(equation, type) or not isinstance(equation, Equation):
        shown = equation.__name__ if isinstance(equation, type) else type(equation).__name__
        raise WorldviewError(
            f"What is given for {child!r} is not an equation ({shown}). "
            "An equation has parents and fit(): use Linear('Gender'), for example."
        )


def _check_latents(equations: Mapping[str, Equation], latents: tuple[HiddenCause, ...]) -> None:
    explained = list(equations)
    for latent in latents:
        for child in latent.equations:
            if child in explained:
                raise WorldviewError(
                    f"{child!r} has two equations, one of them under the hidden cause "
                    f"{latent.name!r}. Keep one of them."
                )
            explained.append(child)


def _read_resolving(resolving: Iterable[str], graph: Graph) -> tuple[str, ...]:
    if isinstance(resolving, str):
        raise WorldviewError(
            f"resolving={resolving!r} is one text. Give a tuple of names: ({resolving!r},)."
        )
    names = tuple(dict.fromkeys(resolving))
    for name in names:
        if name not in graph.names:
            raise WorldviewError(
                f"The resolving attribute {name!r} is not in the worldview. "
                f"It has {', '.join(map(repr, graph.names))}."
            )
    return names
