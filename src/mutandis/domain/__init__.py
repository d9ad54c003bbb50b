"""What an audit is about: attributes, the population, the protection, the outcome."""

from mutandis.domain.attribute import Attribute, AttributeKind
from mutandis.domain.columns import Categories, Column, Numbers
from mutandis.domain.formula import Formula
from mutandis.domain.outcome import Outcome
from mutandis.domain.population import Population
from mutandis.domain.protection import Protection

__all__ = [
    "Attribute",
    "AttributeKind",
    "Categories",
    "Column",
    "Formula",
    "Numbers",
    "Outcome",
    "Population",
    "Protection",
]
