"""Check of a reading's calls: each flow is enabled and accepts the parameters, as when a thread
starts.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.errors import UsageError
from uncaged_engine.services.parameters import settle

from ..calls import Call
from .context import SentenceContext


def refusal(call: Call, facts: Mapping[str, object], context: SentenceContext) -> str | None:
    """Return why a flow refuses a call's parameters, or None.

    facts: those about the flow's bundle in the index.
    """
    language = facts.get("unsupported")
    if language:
        return f"{call.flow} is written in {language}, which is not run here"
    schema = facts.get("parameters")
    try:
        settle(
            call.flow,
            schema if isinstance(schema, Mapping) else {},
            call.params,
            environment=context.environment,
            directory=context.directory,
        )
    except UsageError as exc:
        return str(exc)
    return None
