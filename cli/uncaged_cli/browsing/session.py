"""Browser session of a command, and operations in its own tabs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
from uncaged_browser.operations import read_operation
from uncaged_browser.problems import BrowserProblem
from uncaged_browser.session.address import DEFAULT_SESSION, checked_name
from uncaged_browser.session.client import SessionClient, SessionGone
from uncaged_browser.session.messages import KEPT
from uncaged_bundles.errors import NotFoundError, UncagedError

from ..runtime import open_engine

__all__ = ["performed", "reported", "running_session", "session_option"]

session_option = click.option(
    "--session",
    "name",
    default=DEFAULT_SESSION,
    metavar="NAME",
    help="The browser session; each has a browser with a profile of its own.",
)


def running_session(name: str) -> SessionClient:
    """Return a connection to a session.

    Raises:
        NotFoundError: it does not run.
    """
    client = SessionClient.connect(open_engine().store, checked_name(name))
    if client is None:
        raise NotFoundError(
            f"browser session {name} does not run; start it: uncaged-workflow browser launch"
        )
    return client


def performed(client: SessionClient, operation: Mapping[str, object]) -> Any:
    """Perform an operation in the session's own tabs."""
    with reported():
        return client.perform(KEPT, operation, read_operation(operation).timeout_s)


@contextmanager
def reported() -> Iterator[None]:
    """Raise the problems of a session in the block as errors of the command."""
    try:
        yield
    except BrowserProblem as exc:
        raise UncagedError(str(exc)) from exc
    except SessionGone as exc:
        raise UncagedError("the browser session ended; try again") from exc
