"""Task of the server that starts due schedules and resumes sleeping threads, as `due` does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uncaged_bundles.errors import UncagedError
from uncaged_engine.api import Engine
from uncaged_schedules.due import due


async def start_due(engine: Engine, every_s: float, report: Callable[[str], None]) -> None:
    """Look until cancelled, and report each problem once.

    Args:
        every_s: seconds between two looks.
    """
    known: set[str] = set()
    while True:
        try:
            problems = {one.message for one in (await asyncio.to_thread(due, engine)).problems}
        except (UncagedError, OSError) as exc:  # a store that cannot be read just now
            problems = {str(exc)}
        for message in sorted(problems - known):
            report(message)
        known = problems
        await asyncio.sleep(every_s)
