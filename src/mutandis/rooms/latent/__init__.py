"""Hidden common causes: one unobserved U behind several attributes."""

from mutandis.rooms.latent.equations import Latent

__all__ = ["Latent"]
