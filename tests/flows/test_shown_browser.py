"""A session with a window, on a display of its own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testbed.forked_commands import ForkedCommands
from testbed.recordings import Commands, commands_of
from testbed.webserver import serving, text
from uncaged_bundles.storage.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium", "xvfb")]

PAGE = "<!doctype html><title>Green</title><body style='background: #3c8f2d'>"
PIXEL = bytes([0x2D, 0x8F, 0x3C])
"""The colour of the page, in the order of the frame buffer."""
MANY = 100_000
WAIT_S = 60.0


@contextmanager
def display(directory: Path) -> Iterator[str]:
    """A display for the block, as the variable ``DISPLAY`` names it; its picture is in a file."""
    reader, writer = os.pipe()
    words = ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1280x800x24", "-ac"]
    words += ["-nolisten", "tcp", "-fbdir", str(directory)]
    with subprocess.Popen(words, pass_fds=[writer], stderr=subprocess.DEVNULL) as server:
        os.close(writer)
        with os.fdopen(reader) as number:
            name = f":{number.readline().strip()}"
        try:
            yield name
        finally:
            server.terminate()


@pytest.fixture
def commands(store: Store, tmp_path: Path, forked: ForkedCommands) -> Iterator[Commands]:
    """The command with a display."""
    with display(tmp_path) as name, commands_of(store, tmp_path, os.environ, forked) as found:
        found.environment["DISPLAY"] = name
        yield found


def pixels(directory: Path) -> int:
    """How much of the display has the colour of the page."""
    return (directory / "Xvfb_screen0").read_bytes().count(PIXEL)


def test_a_session_that_is_shown_has_a_window(commands: Commands, tmp_path: Path) -> None:
    """The page is on the display until the session's end."""
    with serving(lambda _: text(PAGE, "text/html")) as site:
        assert commands.run("browser", "launch", "--shown").code == 0
        assert pixels(tmp_path) < MANY
        assert commands.run("browser", "open", f"{site.url}/").code == 0
        end_s = time.monotonic() + WAIT_S
        while pixels(tmp_path) < MANY:
            assert time.monotonic() < end_s, "the page is not on the display"
            time.sleep(0.05)
        assert commands.run("browser", "stop").code == 0
        while pixels(tmp_path) >= MANY:
            assert time.monotonic() < end_s, "the window is still there"
            time.sleep(0.05)


def test_a_display_that_is_not_there_is_an_error(commands: Commands) -> None:
    """Without a display the command says why no window can be shown."""
    commands.environment["DISPLAY"] = ":65000"
    failed = commands.run("browser", "launch", "--shown")
    assert failed.code != 0
    assert "has no display for a window; start it without --shown" in failed.err
