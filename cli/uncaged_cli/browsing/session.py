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

__all__ = ["opened_session", "performed", "reported", "running_session", "session_option"]

session_option = click.option(
    "--session",
    "name",
    default=DEFAULT_SESSION,
    metavar="NAME",
    help="The browser session; each has a browser with a profile of its own.",
)


@contextmanager
def running_session(name: str) -> Iterator[SessionClient]:
    """Connect to a session for the block; its problems are raised as errors of the command.

    Raises:
        NotFoundError: it does not run.
    """
    client = SessionClient.connect(open_engine(of_machine=True).store, checked_name(name))
    if client is None:
        raise NotFoundError(
            f"browser session {name} does not run; start it: uncaged-workflow browser launch"
        )
    with client, reported():
        yield client


@contextmanager
def opened_session(name: str) -> Iterator[SessionClient]:
    """Connect for the block to a session, which is started if it does not run; its problems are
    raised as errors of the command.

    Raises:
        EnvironmentLacks: it cannot be started.
    """
    with SessionClient.open(open_engine(of_machine=True).store, name) as client, reported():
        yield client


def performed(client: SessionClient, operation: Mapping[str, object]) -> Any:
    """Perform an operation in the session's own tabs.

    Raises:
        BrowserProblem, SessionGone: as `SessionClient.perform`.
    """
    return client.perform(KEPT, operation, read_operation(operation).timeout_s)


@contextmanager
def reported(place: str = "") -> Iterator[None]:
    """Raise the problems of a session in the block as errors of the command.

    Args:
        place: an address that the message begins with.
    """
    try:
        yield
    except BrowserProblem as exc:
        error = NotFoundError if exc.kind == "not-found" else UncagedError
        raise error(f"{place}: {exc}" if place else str(exc)) from exc
    except SessionGone as exc:
        raise UncagedError("the browser session ended; try again") from exc
