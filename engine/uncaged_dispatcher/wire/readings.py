"""Readings and completions of a sentence for a client that asks what would run. Nothing is started,
no model is asked, and nothing is remembered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from uncaged_engine.api import Engine

from ..grammar.compiled import CompiledGrammar
from ..grammar.continuations import Direction
from ..readings.completing import EnabledRules, complete_sentence
from ..readings.context import SentenceContext
from ..readings.explanation import explain
from ..readings.interpreter import Interpreter

T = TypeVar("T")


class SentenceReadings:
    """The interpreter of a store, in an operating-system thread of its own, as its index needs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._interpreter: Interpreter | None = None
        self._thread = ThreadPoolExecutor(1, "readings")
        self._rules: EnabledRules | None = None

    async def explain(self, text: str, directory: Path) -> dict[str, object]:
        """Return the readings of a sentence, the best first, and why it won."""
        context = SentenceContext(directory=directory)
        found = await self._run(lambda interpreter: explain(interpreter, text, context=context))
        return found.document()

    async def complete(self, prefix: str, direction: Direction) -> dict[str, object]:
        """Return the words that can come after the beginning of a sentence."""
        found = await self._run(
            lambda interpreter: complete_sentence(self._read_rules(interpreter), prefix, direction)
        )
        return found.document()

    async def close(self) -> None:
        """Close the index."""
        if self._interpreter is not None:
            await self._run(lambda interpreter: interpreter.close())
        self._thread.shutdown()

    async def _run(self, use: Callable[[Interpreter], T]) -> T:
        def run() -> T:
            self._engine.read_sentences()
            if self._interpreter is None:
                self._interpreter = Interpreter(self._engine)
            return use(self._interpreter)

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    def _read_rules(self, interpreter: Interpreter) -> list[CompiledGrammar]:
        if self._rules is None:
            self._rules = EnabledRules(interpreter)
        return self._rules.read()
