"""Flows of the pack `browser`: each performs one operation on the current tab of the browser
session. `web-goal` lets an agent reach a goal on web pages.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["flows"]

HEAD = "# The flow {name!r}, as uncaged-workflow built it."
RUN = "def run(input, options):\n    return (yield from drive_page(input, {operation!r}))\n"
RUN_GOAL = "def run(input, options):\n    return (yield from drive_goal(input))\n"


def flows() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bundle of each flow."""
    from uncaged_bundles.builders.text.layout import write_driven

    from . import goal, page
    from .goal_descriptor import GOAL
    from .table import FLOWS, descriptor_of

    for flow in FLOWS:
        yield (
            flow.name,
            write_driven(
                HEAD.format(name=flow.name),
                descriptor_of(flow),
                page.__name__,
                ["drive_page"],
                RUN.format(operation=dict(flow.operation)),
            ),
        )
    name = str(GOAL["name"])
    head = HEAD.format(name=name)
    yield name, write_driven(head, GOAL, goal.__name__, ["drive_goal"], RUN_GOAL)
