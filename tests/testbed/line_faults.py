"""Faults at a source line: runs a module until a line is reached for the COUNT-th time, as `python
-m testbed.line_faults PATH LINE COUNT DEED MODULE ARGUMENT…`.

DEED is the fault: ``self`` kills the process with SIGKILL; ``sandbox`` kills its child processes
and continues; ``hold`` writes to standard output and waits for standard input.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from types import FrameType
from typing import Any

import psutil


class Trap:
    """A trace function that stops at one line."""

    def __init__(self, path: str, line: int, count: int, deed: str) -> None:
        self._path = path
        self._line = line
        self._left = count
        self._deed = deed

    def watch(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002 - a trace function's signature
        return self.step if frame.f_code.co_filename == self._path else None

    def step(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002 - the same
        if event == "line" and frame.f_lineno == self._line:
            self._left -= 1
            if self._left == 0:
                self._do()
        return self.step

    def _do(self) -> None:
        match self._deed:
            case "self":
                os.kill(os.getpid(), signal.SIGKILL)
            case "sandbox":
                for child in psutil.Process().children(recursive=True):
                    child.kill()
            case "hold":
                os.write(1, b"held\n")
                os.read(0, 1)
            case _:
                pass


def main() -> None:
    path, line, count, deed, module, *arguments = sys.argv[1:]
    trap = Trap(path, int(line), int(count), deed)
    threading.settrace(trap.watch)
    sys.settrace(trap.watch)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
