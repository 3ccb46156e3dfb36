"""Descriptor of a flow that was made from a recipe."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.contract import CONTRACT
from uncaged_bundles.errors import BundleError, UsageError
from uncaged_bundles.names import parse_flow_name

from .flows import RecipeFlow


def describe(
    flow: RecipeFlow, *, kind: str, policy: Mapping[str, object], **more: object
) -> dict[str, object]:
    """Return the descriptor of *flow*; *more* are further keys of it."""
    try:
        parse_flow_name(flow.name)
    except UsageError as exc:
        raise BundleError(f"the flow's name: {exc}") from exc
    descriptor: dict[str, object] = {
        "contract": CONTRACT,
        "name": flow.name,
        "description": flow.description,
        "displayName": flow.display_name,
        "kind": kind,
        "parameters": dict(flow.parameters),
        "policy": dict(policy),
        "continues": False,
        "patterns": list(flow.patterns),
        "aliases": list(flow.aliases),
        "examples": list(flow.examples),
        "source": flow.source,
        "onFailure": flow.on_failure,
        **more,
    }
    optional = ("displayName", "patterns", "aliases", "examples", "source", "onFailure")
    return {key: value for key, value in descriptor.items() if key not in optional or value}
