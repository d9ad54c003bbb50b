"""A worldview as a picture: who causes whom, and what is special about whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.causal import Graph
from mutandis.errors import PlanError
from mutandis.pictures.graph_ordering import longest_paths
from mutandis.pictures.graph_picture import Arrow, Kind, Node, Picture
from mutandis.pictures.graph_svg import render

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mutandis.causal import Worldview

__all__ = ["draw_worldview"]


def draw_worldview(
    worldview: Worldview,
    *,
    protected: Collection[str] | str = (),
    outcome: str | None = None,
    decision_inputs: Collection[str] = (),
) -> str:
    """Draw a worldview as SVG.

    Causes stand before their effects. Protected attributes have a double border, hidden causes a
    dashed one, resolving attributes a lock; a legend says so. The text has no script and refers to
    nothing outside itself, so it can be put into a page as it is.

    Parameters
    ----------
    worldview
        What to draw.
    protected
        The protected attributes.
    outcome
        The name of the decision's outcome, drawn last.
    decision_inputs
        The attributes that the decision is made from; each gets an arrow to the outcome.

    Returns
    -------
    str
        The drawing, the same for the same arguments to the last byte.

    Examples
    --------
    >>> from mutandis.causal import Linear, Worldview
    >>> drawing = draw_worldview(
    ...     Worldview({"Salary": Linear("Gender"), "Balance": Linear("Salary", "Gender")}),
    ...     protected=["Gender"],
    ...     outcome="Approved",
    ...     decision_inputs=["Salary", "Balance"],
    ... )
    >>> drawing.count('class="node'), drawing.count('class="arrow')
    (4, 5)
    """
    marked = (protected,) if isinstance(protected, str) else tuple(protected)
    inputs = (decision_inputs,) if isinstance(decision_inputs, str) else tuple(decision_inputs)
    if inputs and outcome is None:
        raise PlanError(
            "decision_inputs are given, but not the outcome that they lead to. Give outcome= too."
        )
    graph = _with_decision(worldview.graph.parents, marked, outcome, inputs)
    hidden = [Node(name=latent.name, kind=Kind.LATENT) for latent in worldview.latents]
    nodes = [_node(name, worldview, marked, outcome) for name in graph.names]
    place = {name: len(hidden) + index for index, name in enumerate(graph.names)}
    arrows = {
        (place[cause], place[child]): Arrow.CAUSE
        for child, causes in graph.parents.items()
        for cause in causes
    }
    for index, latent in enumerate(worldview.latents):
        arrows.update({(index, place[child]): Arrow.HIDDEN for child in latent.equations})
    if outcome is not None:
        arrows.update({(place[name], place[outcome]): Arrow.READ for name in inputs})
    layers = longest_paths(len(hidden) + len(nodes), tuple(arrows))
    _move_hidden(layers, len(hidden), arrows)
    if outcome is not None:
        _move_outcome(layers, place[outcome], arrows)
    return render(Picture(nodes=(*hidden, *nodes), arrows=arrows, layers=tuple(layers)))


def _with_decision(
    parents: Mapping[str, tuple[str, ...]],
    protected: tuple[str, ...],
    outcome: str | None,
    inputs: tuple[str, ...],
) -> Graph:
    """Add what the worldview does not mention: lone attributes, and the decision."""
    everything = {**dict.fromkeys((*protected, *inputs), ()), **parents}
    if outcome is not None:
        everything[outcome] = tuple(dict.fromkeys((*everything.get(outcome, ()), *inputs)))
    return Graph.from_parents(everything)


def _node(name: str, worldview: Worldview, protected: Collection[str], outcome: str | None) -> Node:
    locked = name in worldview.resolving
    if name == outcome:
        return Node(name=name, kind=Kind.OUTCOME, locked=locked)
    if name in protected:
        return Node(name=name, kind=Kind.PROTECTED, locked=locked)
    return Node(name=name, kind=Kind.RESOLVING if locked else Kind.ATTRIBUTE, locked=locked)


def _move_hidden(layers: list[int], hidden: int, arrows: Collection[tuple[int, int]]) -> None:
    """Put hidden causes right before what they drive; nothing leads to them."""
    for index in range(hidden):
        driven = [layers[effect] for cause, effect in arrows if cause == index]
        layers[index] = min(driven) - 1


def _move_outcome(layers: list[int], outcome: int, arrows: Collection[tuple[int, int]]) -> None:
    """Put the decision last, if it has no effects itself."""
    if all(cause != outcome for cause, _ in arrows):
        others = (layer for node, layer in enumerate(layers) if node != outcome)
        layers[outcome] = max(others, default=-1) + 1
