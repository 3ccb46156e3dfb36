"""Errors that people see, in classes by who can fix them.

The class has the exit code of the command line. A message has the problem (values with !r), its
place (path:line, hash, thread id), and the next step.
"""

from __future__ import annotations

__all__ = [
    "BundleError",
    "DamagedError",
    "EngineBug",
    "EnvironmentLacks",
    "NotFoundError",
    "RefusedError",
    "ReplayError",
    "SandboxUnavailable",
    "StorageError",
    "UncagedError",
    "UsageError",
    "os_problem",
]


class UncagedError(Exception):
    """Base class: the command failed."""

    exit_code = 1


class UsageError(UncagedError):
    """The person's input is wrong: a malformed name, an unknown option value, a missing
    parameter.
    """

    exit_code = 2


class RefusedError(UncagedError):
    """The request is valid, but the present state forbids it (resume of a completed thread, a
    widened policy without consent).
    """


class BundleError(UncagedError):
    """The bundle's author can fix it; the message has line and column where possible."""


class DamagedError(UncagedError):
    """A file is damaged: a bundle whose bytes have another hash, a corrupt journal, an unreadable
    registry.
    """


class StorageError(UncagedError):
    """The system refused to read or write a file of the store; the message has its path and the
    reason.
    """


class ReplayError(UncagedError):
    """A bundle yielded another effect than its journal has; the message shows both."""


class EnvironmentLacks(UncagedError):
    """The machine lacks something (no agent, no credentials, an expired login); fix it, then
    resume.

    what: the message without the next step. remedy: the next step, if it is known. begun: False if
    the effect had certainly not begun, so that it may be performed again without a question.
    """

    exit_code = 4

    def __init__(self, what: str, *, remedy: str = "", begun: bool = True) -> None:
        super().__init__(f"{what}; {remedy}, then resume" if remedy else what)
        self.what = what
        self.remedy = remedy
        self.begun = begun


def without_thread(problem: Exception) -> str:
    """Return the text of an error for a caller that has no thread to resume."""
    if isinstance(problem, EnvironmentLacks):
        return f"{problem.what}; {problem.remedy}" if problem.remedy else problem.what
    return str(problem)


def os_problem(problem: OSError, place: object = "") -> str:
    """Return the text of a system error with its path, else with *place*."""
    where = problem.filename or place
    return f"{where}: {problem.strerror or problem}" if where else str(problem.strerror or problem)


class NotFoundError(UncagedError):
    """No flow, thread, hash or role has that name; the message names the nearest ones."""

    exit_code = 5


class SandboxUnavailable(UncagedError):
    """No sandbox can be built on this machine. reason: why. remedy: what to install or to change,
    if known.
    """

    exit_code = 7

    def __init__(self, reason: str, *, remedy: str = "") -> None:
        super().__init__(f"{reason}. Next step: {remedy}" if remedy else reason)
        self.reason, self.remedy = reason, remedy


class EngineBug(UncagedError):
    """A bug of the engine; the message has the path of the report."""

    exit_code = 70
