"""Sources of recordings: a browser session that is recorded until a person ends it, and files."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from uncaged_browser.browsers.installed import check_display
from uncaged_browser.recording.imports import import_recording
from uncaged_browser.recording.recording import Recording, read_recording
from uncaged_browser.recording.summary import summary_of
from uncaged_browser.session.address import checked_name
from uncaged_browser.session.client import SessionClient, SessionGone
from uncaged_bundles.errors import EnvironmentLacks, RefusedError, UsageError
from uncaged_bundles.records import replace

from .browsing.session import reported
from .display.output import is_terminal, note
from .inputs.files import decode_text, read_bytes

if TYPE_CHECKING:
    from uncaged_bundles.storage.store import Store

POLL_S = 0.25
EXTENSION_S = 35.0
MAX_FILE_BYTES = 8 << 20
FORMATS = {
    "devtools": "recorder",
    "codegen": "playwright",
    "selenium": "selenium",
    "recording": "recording",
}
BrowserChoice = Literal["shown", "headless", "external"]
INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


def imported(file: Path, name: str, form: str | None) -> Recording:
    """Return the recording in a file of another tool.

    Raises:
        NotFoundError, UsageError, RecordingError: it is missing, or cannot be used.
    """
    text = decode_text(read_bytes(file, max_bytes=MAX_FILE_BYTES), file)
    chosen: Any = FORMATS[form or recognised(text, file)]
    return replace(import_recording(text, chosen), name=name)


def recognised(text: str, file: Path) -> str:
    """Return the format of a recording's text."""
    if file.suffix.lower() == ".py" or not text.lstrip().startswith("{"):
        return "codegen"
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return "devtools"  # its reader says what is wrong
    return "recording" if "format" in fields else "selenium" if "tests" in fields else "devtools"


def with_hosts(recording: Recording, allowed: Iterable[str]) -> Recording:
    """Return a recording whose flow may also reach the *allowed* hosts."""
    hosts = dict.fromkeys((*recording.hosts, *(host.casefold() for host in allowed)))
    return replace(recording, hosts=tuple(hosts))


def recorded(store: Store, session: str, url: str, name: str, browser: BrowserChoice) -> Recording:
    """Record a browser session's own tabs until the person ends it.

    Raises:
        EnvironmentLacks: there is no display, no browser, or no extension.
        RefusedError: the session is not of that kind, or is recorded already.
    """
    with open_session(store, session, browser) as client:
        live = LiveRecording(client)
        with live.ended_by_signals():
            with reported(url):
                client.record("start", url=url)
            note(f"recording the tabs of browser session {session}, beginning at {url}")
            ways = (
                "press Enter or Ctrl-C" if is_terminal(sys.stdin) else f"`kill -INT {os.getpid()}`"
            )
            note(f"to end it: {ways}, or close the tab")
            return replace(live.read(), name=name)


@contextmanager
def open_session(store: Store, name: str, browser: BrowserChoice) -> Iterator[SessionClient]:
    """Connect to a session whose own tabs are of the browser asked for; its problems are raised as
    errors of the command.
    """
    running = SessionClient.connect(store, checked_name(name))
    if browser == "shown" and running is None:
        try:
            check_display(os.environ)
        except EnvironmentLacks as exc:
            ways = "run this in a desktop session, or add --headless or --external"
            raise EnvironmentLacks(f"{exc.what}; {ways}") from None
    with running or SessionClient.open(store, name, shown=browser == "shown") as client, reported():
        status = client.status()
        external = status["external"]
        if browser == "external":
            wait_extension(client, external)
        elif external["connected"] and not status["shown"]:
            raise RefusedError(
                f"browser session {name} uses your own browser; add --external to record that,"
                " or: uncaged-workflow browser external off"
            )
        elif browser == "shown" and not status["shown"]:
            raise RefusedError(
                f"browser session {name} runs without a window; end it (uncaged-workflow browser stop),"
                " or add --headless, or --session with another name"
            )
        yield client


def wait_extension(client: SessionClient, external: dict[str, Any]) -> None:
    """Wait until the extension of the person's browser is connected."""
    if not external["on"]:
        raise RefusedError(
            "your own browser is not used yet; switch it on: uncaged-workflow browser external on"
        )
    end_s = time.monotonic() + EXTENSION_S
    while not client.status()["external"]["connected"]:
        if time.monotonic() > end_s:
            raise EnvironmentLacks(
                "no extension is connected", remedy="uncaged-workflow browser external on"
            )
        time.sleep(POLL_S)


class LiveRecording:
    """A recording under way: prints each step, and ends with a line, a signal, or its tabs."""

    def __init__(self, client: SessionClient) -> None:
        self._client = client
        self._newest: Recording | None = None
        self._printed: list[str] = []
        self._is_ended = False

    @contextmanager
    def ended_by_signals(self) -> Iterator[None]:
        """End the recording with the first signal in the block, and the command with the second."""

        def end(_number: int, _frame: object) -> None:
            if self._is_ended:
                raise KeyboardInterrupt
            self._is_ended = True

        former = {number: signal.signal(number, end) for number in INTERRUPTS}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def read(self) -> Recording:
        """Return the recording after its end."""
        try:
            while not self._is_ended and self._poll():
                self._wait()
            self._take(self._client.record("stop"))
        except SessionGone:
            note("the browser was closed")
        if self._newest is None:
            raise UsageError("the browser was closed before anything was noted")
        self._print(self._newest, whole=True)
        return self._newest

    def _poll(self) -> bool:
        """Take what was noted; return whether the recorded tabs are open."""
        reply = self._client.record("read")
        former = self._newest
        self._take(reply)
        if self._newest is not None:
            # a field that is typed into changes its step until something else is done
            self._print(self._newest, whole=self._newest is former)
        return bool(reply["open"])

    def _take(self, reply: dict[str, Any]) -> None:
        if "recording" in reply:
            self._newest = read_recording(json.dumps(reply["recording"]))

    def _print(self, recording: Recording, *, whole: bool) -> None:
        steps = recording.document()["steps"]
        lines = [summary_of(step) for step in steps] if isinstance(steps, list) else []
        for number, line in enumerate(lines if whole else lines[:-1]):
            if self._printed[number : number + 1] != [line]:
                note(f"{number + 1:3}  {line}")
                self._printed[number : number + 1] = [line]

    def _wait(self) -> None:
        """Wait a moment for a line, which ends the recording; an input without any does not."""
        try:
            ready, _, _ = select.select([sys.stdin], [], [], POLL_S)
        except (OSError, ValueError):  # closed
            time.sleep(POLL_S)
            return
        if ready and sys.stdin.readline():
            self._is_ended = True
        elif ready:
            time.sleep(POLL_S)
