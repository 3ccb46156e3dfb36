"""Errors that reach a person, in classes by who can fix them.

The class carries the exit code of the command line, so that no other table has to be kept in step
with it. A message says what is wrong (values with !r), where (path:line, hash, thread id), and the
next step.
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
    """Base of all: the command failed."""

    exit_code = 1


class UsageError(UncagedError):
    """The person's words are off: a malformed name, an unknown option value, a missing
    parameter.
    """

    exit_code = 2


class RefusedError(UncagedError):
    """The request is well-formed, but the present state forbids it (resume of a completed thread, a
    widened policy without a yes).
    """


class BundleError(UncagedError):
    """The bundle's author can fix it; the message has line and column where there are any."""


class DamagedError(UncagedError):
    """Something on disk is not what was written: a bundle whose hash lies, a corrupt journal, an
    unreadable registry.
    """


class StorageError(UncagedError):
    """The system refused to read or write a file of the store; the message has its path and the
    reason.
    """


class ReplayError(UncagedError):
    """A bundle did not yield what its journal holds; the message shows both."""


class EnvironmentLacks(UncagedError):
    """The machine lacks something (no agent, no credentials, a login expired); fix it, then resume.

    what: the message without the next step. remedy: the next step alone, if it is known apart.
    begun: False if the effect that met the lack had certainly not begun, so that it may be
    performed again without a question.
    """

    exit_code = 4

    def __init__(self, what: str, *, remedy: str = "", begun: bool = True) -> None:
        super().__init__(f"{what}; {remedy}, then resume" if remedy else what)
        self.what = what
        self.remedy = remedy
        self.begun = begun


def os_problem(problem: OSError, place: object = "") -> str:
    """Return an error of the system with its path; *place* is named where the error has none."""
    where = problem.filename or place
    return f"{where}: {problem.strerror or problem}" if where else str(problem.strerror or problem)


class NotFoundError(UncagedError):
    """No flow, thread, hash or role of that name; the message names the nearest ones."""

    exit_code = 5


class SandboxUnavailable(UncagedError):
    """No sandbox that holds can be built here. reason: why. remedy: what to install or to change,
    where that is known.
    """

    exit_code = 7

    def __init__(self, reason: str, *, remedy: str = "") -> None:
        super().__init__(f"{reason}. Next step: {remedy}" if remedy else reason)
        self.reason, self.remedy = reason, remedy


class EngineBug(UncagedError):
    """Our own fault; the message says where the report is."""

    exit_code = 70
