"""Interface of what runs a line: the shell, a pipe, a script, or `do`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from uncaged_engine.api import Engine


class LineHost(Protocol):
    """Caller of a line, with its conversation."""

    as_json: bool
    is_shell: bool
    is_ending: bool
    """No further line is read."""
    scripts: list[Path]
    """The scripts that are being run, the outer one first."""

    def engine(self) -> Engine:
        """Return the engine of its store."""

    def conversation_id(self) -> str:
        """Return the conversation to which its requests belong."""

    def enter(self, id: str) -> None:
        """Use another conversation from now on."""

    def released(self, id: str) -> AbstractContextManager[None]:
        """Leave a conversation for the length of the block, so that it can be deleted."""

    def run_line(self, line: str) -> int:
        """Run a line to its end and return its exit code."""

    def run_reason(self, text: str) -> int:
        """Let the flow `reason` work on a text, as a request of the conversation."""
