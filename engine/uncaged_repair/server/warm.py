"""Warm process: it has imported everything once, and each run is a fork of it with the changed
functions patched.
"""

from __future__ import annotations

import base64
import gc
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .compare import CallComparison
from .gather import gather
from .patch import LiveFunctions, swap
from .runs import ForkedRun, run_each
from .trace import CallTracer
from .wire import Message, MessageReader, send

if TYPE_CHECKING:
    from typing import Any

    from .outcome import Supervisor


class WarmProcess:
    """Warm process. sources: absolute path to path in the repository. commands, answers:
    descriptors.
    """

    def __init__(
        self, settings: Message, sources: dict[str, str], commands: int, answers: int
    ) -> None:
        self._settings, self._sources, self._commands, self._answers = (
            settings,
            sources,
            commands,
            answers,
        )
        self._calls = CallTracer(sources)
        self._errors: list[Message] = []
        self._looped = False

    def serve(self) -> None:
        """Collect, send the names, and answer commands until the other side closes."""
        self._calls.start()
        gather(self._settings, None, self._loop, self._calls.stop, self._errors)
        if not self._looped:
            self._calls.stop()
            self._emit_collected([], self._settings["cwd"], frozenset(), [])

    def _loop(self, items: Any) -> None:
        self._looped = True
        files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        paths = [self._sources.get(str(Path(file).absolute())) for file in files if file]
        imported = frozenset(path for path in paths if path is not None)
        self._emit_collected(
            items.names, items.root, imported, getattr(items, "unknown_options", [])
        )
        functions = LiveFunctions(self._sources, self._calls.keys(), imported)
        gc.collect()
        gc.freeze()  # children then touch, and copy, fewer pages
        reader = MessageReader(self._commands)
        while not reader.ended:
            for command in reader.take():
                send(self._answers, self._run(command, items, functions))

    def _emit_collected(
        self,
        names: list[str],
        root: str,
        imported: frozenset[str],
        unknown_options: list[str],
    ) -> None:
        found: Message = {
            "tests": names,
            "errors": self._errors,
            "rootdir": root,
            "imported": sorted(imported),
            "unknown_options": unknown_options,
        }
        send(self._answers, {**found, "called": sorted(self._calls.keys()), "end": "finished"})

    def _run(self, command: Message, items: Any, functions: LiveFunctions) -> Message:
        """Run the tests of *command* on patched functions; the run ends "cold" or "same" if that
        proves nothing.
        """
        started = time.process_time()
        planned = []
        for path, old, new in command["pairs"]:
            verdict, plan = functions.plan(path, base64.b64decode(old), base64.b64decode(new))
            if verdict != "patched":
                return {"end": verdict, "cpu_s": time.process_time() - started}
            planned += plan
        planning_s = time.process_time() - started

        def work(left: list[str], supervisor: Supervisor) -> None:
            if "compare" in command:
                CallComparison(functions, command, supervisor).run(items, left)
                return
            swap(planned)
            run_each(items, left, command, supervisor)

        def emit(message: Message) -> None:
            send(self._answers, message)

        run = ForkedRun(
            command, self._settings["memory_bytes"], work, emit, (self._commands, self._answers)
        )
        end = run.run()
        return {**end, "end": end.get("end", "died"), "cpu_s": run.cpu_s + planning_s}
