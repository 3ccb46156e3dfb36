"""The verb `queue`: changes the settings of a shared store's queues."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.output import result
from ..display.queue_list import spell_queue, spell_store
from ..inputs.completion import complete_flows
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_shared
from ..worker_offers import note_unknown, split_names

if TYPE_CHECKING:
    from uncaged_engine.shared.queues import FlowQueue, QueueSettings, StartRate

NO_LIMIT = "none"
_RATE = re.compile(r"([0-9]{1,7})/([0-9]{1,6})?(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@click.group("queue")
def command() -> None:
    """Set limits, priority and needs of a flow's threads on a shared store. All machines see the
    same settings, and `queues` lists them.
    """


@command.command("set", short_help="Change settings of a flow's queue, or of all threads.")
@click.argument("flow", required=False, shell_complete=complete_flows)
@click.option(
    "--concurrency",
    metavar="N|none",
    help="Threads that workers drive at a time; 0 holds all back. Without FLOW: of all flows, without children.",
)
@click.option(
    "--rate",
    metavar="N/PERIOD|none",
    help="Threads that begin within each period, such as 10/60s, 1/m or 500/h.",
)
@click.option(
    "--priority",
    type=click.IntRange(-1000, 1000),
    metavar="N",
    help="Added to that of a thread (`run --priority`); threads of a higher one are taken first.",
)
@click.option(
    "--needs",
    metavar="NAME,…|none",
    help="What a worker must offer (`work --offers`), besides what the flow itself tells.",
)
@click.option(
    "--agents", metavar="N|none", help="Without FLOW: agents that work at a time, in all workers."
)
@shared_option
@json_option
def set_queue(
    *,
    flow: str | None,
    concurrency: str | None,
    rate: str | None,
    priority: int | None,
    needs: str | None,
    agents: str | None,
    as_json: bool,
) -> None:
    """Change those settings of FLOW's queue that are named, or of all threads of the store.

    \b
    Examples:
      uncaged-workflow queue set report --concurrency 2 --rate 10/60s
      uncaged-workflow queue set train --needs gpu --priority 5
      uncaged-workflow queue set --concurrency 100 --agents 20
    """
    from uncaged_bundles.records import replace
    from uncaged_engine.services.shared import parse_need

    options = {"--concurrency": concurrency, "--rate": rate, "--needs": needs, "--agents": agents}
    named = {option for option, value in options.items() if value is not None}
    named |= {"--priority"} if priority is not None else set()
    foreign = named & ({"--agents"} if flow is not None else {"--rate", "--priority", "--needs"})
    if foreign:
        raise UsageError(
            f"{min(foreign)} is a setting of {'all threads: leave FLOW out' if flow else 'one flow: name it'}"
        )
    if not named:
        raise UsageError("name a setting; `queues` lists them")
    count = None if concurrency is None else parse_count("--concurrency", concurrency)
    agent_count = None if agents is None else parse_count("--agents", agents)
    names = None if needs is None else [] if needs == NO_LIMIT else split_names([needs])
    parsed_rate = None if rate is None else parse_rate(rate)

    def change_flow(queue: FlowQueue) -> FlowQueue:
        if concurrency is not None:
            queue = replace(queue, concurrency=count)
        if rate is not None:
            queue = replace(queue, rate=parsed_rate)
        if priority is not None:
            queue = replace(queue, priority=priority)
        if names is not None:
            queue = replace(queue, needs=tuple(sorted({parse_need(name) for name in names})))
        return queue

    def change(settings: QueueSettings) -> QueueSettings:
        if flow is not None:
            return settings.with_flow(flow, change_flow(settings.of(flow)))
        if concurrency is not None:
            settings = replace(settings, concurrency=count)
        return replace(settings, agents=agent_count) if agents is not None else settings

    engine = open_shared()
    settings = engine.change_queues(change)
    note_unknown(engine.registry, [flow] if flow is not None else [])
    if as_json:
        json_output.document(settings.document())
    elif flow is None:
        result(f"all threads: {spell_store(settings)}")
    else:
        result(f"{flow}: {spell_queue(settings.of(flow))}")


@command.command("reset", short_help="Remove all settings of a flow's queue, or of the store.")
@click.argument("flow", required=False, shell_complete=complete_flows)
@click.option(
    "--all", "all_settings", is_flag=True, help="The settings of the store and all flows."
)
@shared_option
@json_option
def reset_queue(*, flow: str | None, all_settings: bool, as_json: bool) -> None:
    """Remove the settings of FLOW's queue, or all."""
    if (flow is not None) == all_settings:
        raise UsageError("name a flow, or say --all")
    engine = open_shared()
    if flow is None:
        engine.reset_queues()
    else:
        from uncaged_engine.shared.queues import DEFAULT_QUEUE

        name = flow
        engine.change_queues(lambda settings: settings.with_flow(name, DEFAULT_QUEUE))
    if as_json:
        json_output.document({"flow": flow, "reset": True})
        return
    result("removed all settings of queues" if flow is None else f"{flow}: no settings")


def parse_count(option: str, text: str) -> int | None:
    """Return a limit; None for ``none``.

    Raises:
        UsageError: *text* is neither.
    """
    if text == NO_LIMIT:
        return None
    if not text.isascii() or not text.isdecimal() or int(text) > 1_000_000:
        raise UsageError(f"{option}: {text!r} is no number from 0 to 1000000, nor 'none'")
    return int(text)


def parse_rate(text: str) -> StartRate | None:
    """Return a rate; None for ``none``.

    Raises:
        UsageError: *text* is neither.
    """
    from uncaged_engine.shared.queues import LONGEST_RATE_S, MOST, StartRate

    if text == NO_LIMIT:
        return None
    found = _RATE.fullmatch(text)
    threads, seconds = (int(found[1]), int(found[2] or 1) * _SECONDS[found[3]]) if found else (0, 0)
    if not (1 <= threads <= MOST and 1 <= seconds <= LONGEST_RATE_S):
        raise UsageError(
            f"--rate: {text!r} is no rate of at least one thread in at most a week, such as 10/60s, 1/m or 500/h, nor 'none'"
        )
    return StartRate(threads=threads, seconds=seconds)
