"""Standard output and standard error of the interactive shell. The main thread writes directly, and
only while no prompt is shown; text of the threads that show requests appears above the prompt.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TextIO, cast

from prompt_toolkit.application import Application

Mode = Literal["prompt", "held", "direct"]


class TerminalOutput:
    """Text of all threads on its way to the terminal."""

    def __init__(self, app: Application[Any], loop: asyncio.AbstractEventLoop) -> None:
        """Args: app, loop: the prompt's; the loop may be still at times."""
        self._app, self._loop = app, loop
        self._stream = sys.stdout
        self._lock = threading.RLock()
        self._pending: list[str] = []
        self._mode: Mode = "prompt"

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Replace the standard streams that are terminals."""
        former = sys.stdout, sys.stderr
        sys.stdout = cast(TextIO, AbovePrompt(sys.stdout, self))
        if sys.stderr.isatty():
            sys.stderr = cast(TextIO, AbovePrompt(sys.stderr, self))
        try:
            yield
        finally:
            self._write_pending()
            sys.stdout, sys.stderr = former

    @contextmanager
    def foreground(self) -> Iterator[None]:
        """Give the terminal to the main thread; other text is held back."""
        with self._in_mode("held"):
            yield

    @contextmanager
    def background(self) -> Iterator[None]:
        """Give the terminal to the other threads, without a prompt."""
        with self._in_mode("direct"):
            yield

    def write(self, text: str) -> None:
        """Write text of another thread than the main one."""
        with self._lock:
            self._pending.append(text)
            if self._mode == "direct":
                self._write_pending()
            elif self._mode == "prompt" and "\n" in text:
                self._loop.call_soon_threadsafe(self._write_above)

    @contextmanager
    def _in_mode(self, mode: Mode) -> Iterator[None]:
        with self._lock:
            former, self._mode = self._mode, mode
            self._write_pending()
        try:
            yield
        finally:
            with self._lock:
                self._mode = former
                if self._pending:
                    self._loop.call_soon_threadsafe(self._write_above)

    def _write_above(self) -> None:
        """Write above the prompt. The terminal stays in raw mode: keys that are typed meanwhile
        keep their meaning.
        """
        with self._lock:
            if not self._pending:
                return
            if self._app.is_running:
                self._app.renderer.erase()
            self._write_pending()
            if self._app.is_running:
                self._app.renderer.request_absolute_cursor_position()
                self._app.invalidate()

    def _write_pending(self) -> None:
        """Write all whole lines."""
        with self._lock:
            text = "".join(self._pending)
            end = text.rfind("\n") + 1
            self._pending = [text[end:]] if text[end:] else []
            self._stream.write(text[:end])
            self._stream.flush()


class AbovePrompt:
    """A standard stream, replaced for all threads but the main one."""

    def __init__(self, stream: TextIO, output: TerminalOutput) -> None:
        self._stream = stream
        self._output = output

    def write(self, text: str) -> int:
        """Write text above the prompt, or directly."""
        if threading.current_thread() is threading.main_thread():
            return self._stream.write(text)
        self._output.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush what the main thread wrote; the rest is written at each end of a line."""
        if threading.current_thread() is threading.main_thread():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
