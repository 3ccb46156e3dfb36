"""Cost of a tool call over the Model Context Protocol, against the library."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from statistics import median

from uncaged_tools.flows import call

from . import flows
from .bench import Bench, Figure
from .laboratory import Laboratory
from .table import Row, ratios

STEPS = 3
CALLS = 10
"""Of each kind in a round, taking turns."""

FLOW = """\
    if input["prompt"] == "stay":
        yield {"null": {"sleep_s": 86400}}
    for number in range(3):
        yield {"null": {"value": number}}
    return {"success": True, "message": "done"}
"""


def calling(bench: Bench) -> Sequence[Row]:
    """A tool call over standard input and output, against the same flow through the library, both
    with its worker alive.
    """
    import anyio

    with bench.laboratory() as laboratory:
        laboratory.add("short", flows.source("short", FLOW))
        laboratory.engine.run("short", prompt="stay")  # keeps the worker alive
        pairs = anyio.run(_pairs, bench, laboratory)
    return (
        Row(
            figure="calling",
            title=f"tool call through MCP, {STEPS} steps",
            values=ratios(pairs),
            unit="×",
            baseline=f"{median(bare for _, bare in pairs) * 1000:.1f} ms the same flow through the library, live worker",
            reach=3.0,
            missed="a call is five messages through two processes, each checked by the protocol's own models",
        ),
    )


async def _pairs(bench: Bench, laboratory: Laboratory) -> list[tuple[float, float]]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    environment = {**os.environ, "UNCAGED_WORKFLOW_HOME": str(laboratory.engine.store.root)}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "uncaged_cli", "mcp"], env=environment
    )
    pairs = []
    async with Client(server) as client:
        await client.call_tool("short", {})
        for _ in bench.rounds(7):
            through, bare = [], []
            for _ in range(bench.scaled(CALLS)):
                begin = time.perf_counter()
                called = call(laboratory.engine, "short", {})
                bare.append(time.perf_counter() - begin)
                begin = time.perf_counter()
                result = await client.call_tool("short", {})
                through.append(time.perf_counter() - begin)
                if not called.success or result.is_error:
                    raise ValueError(
                        f"the flow did not succeed: {called.message}, {result.content}"
                    )
            pairs.append((median(through), median(bare)))
    return pairs


FIGURES = (Figure(name="calling", measure=calling),)
