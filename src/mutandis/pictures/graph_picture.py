"""What a drawing of a worldview is made of, before it has places and colours."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from mutandis.pictures.svg import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Arrow", "Kind", "Node", "Picture"]


class Kind(Enum):
    """What a node is; the value says it in the legend."""

    PROTECTED = "protected attribute"
    ATTRIBUTE = "attribute"
    RESOLVING = "resolving: kept as it is"
    LATENT = "hidden common cause"
    OUTCOME = "decision"


class Arrow(Enum):
    """What an arrow says; the value says it in the legend."""

    CAUSE = "is a cause of"
    HIDDEN = "drives, unobserved"
    READ = "is used to decide"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An attribute, a hidden cause or the decision; `locked` if interventions leave it alone."""

    name: str
    kind: Kind
    locked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Nodes, arrows between them by their positions, and the layer of each node."""

    nodes: tuple[Node, ...]
    arrows: Mapping[tuple[int, int], Arrow]
    layers: tuple[int, ...]

    def described(self) -> str:
        """Say in words what the picture shows, to those who cannot see it."""
        kinds: dict[Kind, list[str]] = {}
        for node in self.nodes:
            kinds.setdefault(node.kind, []).append(printable(node.name))
        said = [
            f"{kind.value[0].upper()}{kind.value[1:]}: {', '.join(kinds[kind])}."
            for kind in Kind
            if kind in kinds and kind is not Kind.ATTRIBUTE
        ]
        effects: dict[int, list[str]] = {}
        for cause, effect in self.arrows:
            effects.setdefault(cause, []).append(printable(self.nodes[effect].name))
        said += [
            f"{printable(self.nodes[cause].name)} → {', '.join(names)}."
            for cause, names in sorted(effects.items())
        ]
        return " ".join(said)
