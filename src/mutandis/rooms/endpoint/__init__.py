"""Decision makers behind an HTTP address (extra ``endpoint``: httpx)."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from mutandis.decision.kinds import Made
from mutandis.rooms.endpoint.maker import HttpMaker, RetryPolicy

if TYPE_CHECKING:
    from mutandis.decision.kinds import DecisionContext

__all__ = ["HttpMaker", "RetryPolicy", "make"]


def make(settings: dict[str, Any], context: "DecisionContext") -> Made:
    """Make the endpoint that ``http`` describes: an address, or its settings."""
    written = settings["http"]
    options: dict[str, Any] = {"url": written} if isinstance(written, str) else dict(written)
    if "log" in options:
        options["log"] = context.folder / options["log"]
    waiting = [each.name for each in fields(RetryPolicy) if each.name in options]
    policy = RetryPolicy(**{name: options.pop(name) for name in waiting})
    columns = settings.get("columns", context.columns)
    return Made(maker=HttpMaker(columns=columns, retry_policy=policy, **options))
