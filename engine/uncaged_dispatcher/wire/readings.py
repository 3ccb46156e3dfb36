"""Readings of a sentence for a client that asks what would run. Nothing is started, no model is
asked, and nothing is remembered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from uncaged_engine.api import Engine

from ..readings.candidates import CandidateReading
from ..readings.context import SentenceContext
from ..readings.interpreter import Interpreter

T = TypeVar("T")
MAX_READINGS = 50


class SentenceReadings:
    """The interpreter of a store, in an operating-system thread of its own, as its index needs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._interpreter: Interpreter | None = None
        self._thread = ThreadPoolExecutor(1, "readings")

    async def explain(self, text: str, directory: Path) -> dict[str, object]:
        """Return the readings of a sentence, the best first, with the reason where one is
        refused.
        """
        context = SentenceContext(directory=directory)
        found = await self._run(lambda interpreter: interpreter.candidates(text, context=context))
        return {
            "sentence": text.strip(),
            "readings": [reading_document(one) for one in found[:MAX_READINGS]],
            "more": len(found) > MAX_READINGS,
        }

    async def close(self) -> None:
        """Close the index."""
        if self._interpreter is not None:
            await self._run(lambda interpreter: interpreter.close())
        self._thread.shutdown()

    async def _run(self, use: Callable[[Interpreter], T]) -> T:
        def run() -> T:
            if self._interpreter is None:
                self._interpreter = Interpreter(self._engine)
            return use(self._interpreter)

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)


def reading_document(reading: CandidateReading) -> dict[str, Any]:
    """Return a reading as JSON."""
    return {
        "calls": [call.document() for call in reading.calls],
        "by": reading.by,
        "rule": reading.rule,
        "pattern": reading.pattern,
        "pack": reading.pack,
        "implicit": reading.implicit,
        "confirm": list(reading.confirm),
        "disabled": reading.disabled,
        "refused": reading.refused,
    }
