"""Process of the repair agent: a task on standard input, progress on standard error, one JSON
object on standard output.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from types import FrameType

from uncaged_bundles.errors import (
    EnvironmentLacks,
    SandboxUnavailable,
    StorageError,
    UncagedError,
    UsageError,
    os_problem,
)

from .roles.coder import code
from .roles.committer import commit
from .roles.planner import plan
from .roles.reviewer import review
from .task import PersonNeeded, task_of

ROLE_FUNCTIONS = {"planner": plan, "coder": code, "reviewer": review, "committer": commit}
PROGRESS_EVERY_S = 0.25
PR_SET_PDEATHSIG = 1


class Reporter:
    """Writer of progress as JSON lines, at most a few per second."""

    def __init__(self) -> None:
        self._last_s = 0.0

    def __call__(
        self, message: str, *, candidates: int | None = None, file: str | None = None
    ) -> None:
        now = time.monotonic()
        if candidates is not None and now - self._last_s < PROGRESS_EVERY_S:
            return
        self._last_s = now
        fields = {"message": message, "candidates": candidates, "file": file}
        sys.stderr.write(
            json.dumps({key: value for key, value in fields.items() if value is not None}) + "\n"
        )
        sys.stderr.flush()


def main() -> None:
    """Play one role and print the outcome: "text", "question" (for a person), "lacks" (a person can
    fix the environment and resume) or "failed".
    """
    parent = os.getppid()
    signal.signal(signal.SIGTERM, _stop)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # the worker ended before the signal was set
            raise SystemExit(143)
    task = task_of(json.loads(sys.stdin.buffer.readline()))
    try:
        result: dict[str, object] = {"text": ROLE_FUNCTIONS[task.role](task, Reporter())}
    except PersonNeeded as exc:
        result = {"question": str(exc), "choices": exc.choices}
    except (EnvironmentLacks, SandboxUnavailable, UsageError) as exc:
        result = {"lacks": str(exc)}
    except (StorageError, OSError) as exc:
        why = os_problem(exc, task.scratch) if isinstance(exc, OSError) else str(exc)
        result = {"lacks": f"the built-in repair stopped at {why}; correct that, then resume"}
    except UncagedError as exc:
        result = {"failed": str(exc)}
    sys.stdout.buffer.write(json.dumps(result).encode() + b"\n")
    sys.stdout.buffer.flush()


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """Raise an exception, so that every ``with`` block ends its processes."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(143)


if __name__ == "__main__":
    main()
