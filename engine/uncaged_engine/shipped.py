"""Flows that come with a distribution are found through its entry points, ours like everybody else's."""

from __future__ import annotations

from collections.abc import Iterable

from uncaged_bundles.names import FlowName, parse_flow_name
from uncaged_bundles.validation.validate import Bundle, read_bundle

from .known_effects import KNOWN

TEMPLATES = "uncaged_workflow.templates"


def shipped_flows() -> Iterable[tuple[FlowName, Bundle]]:
    from importlib.metadata import entry_points

    from uncaged_bundles.builders import build_workflow

    for entry in sorted(entry_points(group=TEMPLATES), key=lambda one: one.name):
        found = entry.load()
        for name, source in found() if callable(found) else [(entry.name, found)]:  # a function gives several flows, each with its name
            yield parse_flow_name(name), read_bundle(source if isinstance(source, bytes) else build_workflow(source, KNOWN), KNOWN)
