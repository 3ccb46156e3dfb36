"""Preparation of a new thread for its effects, and the removal of what was prepared.

An effect kind that needs fields of its own in the start record has a preparation beside its
handler, registered under the kind's name in the group ``uncaged_workflow.preparations``. It is
apart from the handler because a command that starts a thread loads no handler.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass, field
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..settings.config import Config
from .effects import ThreadContext

__all__ = ["NewThread", "Preparation", "RunOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a new thread, besides its prompt and parameters.

    max_rounds, max_steps: None takes the config's. max_cost (US dollars), max_tokens, max_seconds:
    None binds nothing.
    max_journal_bytes: of the journal and the blobs it names. bundle_seconds: for one computation of
    the bundle; None takes the config's.
    agents: agent name by role, "" for the default one. agent_settings: settings of these agents for
    this thread alone, by role and key. attended: a person follows the thread on a terminal.
    screenshots: keep a picture of the page after each step that acts in a browser.
    heal: for web flows, see `BrowserSettings.heal`; None takes the config's.
    workspace: the repository directory (None: *directory*). links: ignored directories to link into
    the worktree. parent_workspace: that of the thread whose effect starts this one, if its files
    are carried: it works on the same commit.
    priority: on a shared store, see `shared.queues.FlowQueue`.
    directory, environment: the caller's, for child processes; never written to disk.
    """

    max_rounds: int | None = None
    max_steps: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_journal_bytes: int | None = None
    bundle_seconds: float | None = None
    agents: Mapping[str, str] = field(default_factory=dict)
    agent_settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    attended: bool = False
    screenshots: bool = False
    heal: str | None = None
    priority: int = 0
    workspace: Path | None = None
    parent_workspace: Mapping[str, object] | None = None
    include_changes: bool = False
    links: tuple[str, ...] = ()
    test_command: str | None = None
    directory: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def binds_workspace(self) -> bool:
        """Whether the caller chose where roles work or how tests are run."""
        return (
            self.workspace is not None
            or self.include_changes
            or bool(self.links)
            or self.test_command is not None
        )

    @property
    def binds(self) -> bool:
        """Whether the caller chose agents or a workspace."""
        return bool(self.agents) or bool(self.agent_settings) or self.binds_workspace

    def recorded(self) -> dict[str, float]:
        """Return the limits that are set, ``screenshots`` and the priority, by their names in a
        journal.
        """
        named = {
            "maxRounds": self.max_rounds,
            "maxSteps": self.max_steps,
            "maxCost": self.max_cost,
            "maxTokens": self.max_tokens,
            "maxSeconds": self.max_seconds,
            "maxJournalBytes": self.max_journal_bytes,
            "bundleSeconds": self.bundle_seconds,
            "screenshots": True if self.screenshots else None,
            "priority": self.priority or None,
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewThread:
    """Thread that is about to be started, forked, or imported. flow: the name under which it
    runs.
    """

    thread_id: ThreadId
    flow: str
    bundle: Bundle
    store: Store
    config: Config
    options: RunOptions
    now_ms: int


class Preparation:
    """Fields that one effect kind adds to the start record of a thread; each method is optional.

    Fields are JSON values by name. A preparation refuses before anything is written.
    """

    def prepare(self, thread: NewThread) -> Mapping[str, Any]:
        """Return the fields for a thread that is started.

        Raises:
            UncagedError: the thread cannot be started.
        """
        del thread
        return {}

    def prepare_fork(self, thread: NewThread, source: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields in which a fork differs from the start record of its source."""
        del thread, source
        return {}

    def prepare_import(
        self, thread: NewThread, steps: Sequence[Mapping[str, object]]
    ) -> Mapping[str, Any]:
        """Return the fields for an imported thread. steps: those that are kept."""
        del steps
        return self.prepare(thread)

    def describe(self, fields: Mapping[str, Any]) -> Iterator[str]:
        """Yield a sentence for each resource of this machine that the fields grant to an imported
        thread.
        """
        del fields
        yield from ()

    def secure(
        self, thread: NewThread, fields: Mapping[str, Any], steps: Sequence[Mapping[str, object]]
    ) -> None:
        """Protect what the fields name from removal by others. Called after every refusal is ruled
        out.
        """
        del thread, fields, steps

    def conclude(self, thread: ThreadContext) -> None:
        """Keep what follows from a thread that ended with success. A fault here does not change its
        end.
        """
        del thread

    def release(
        self,
        store: Store,
        thread: ThreadId,
        start: Mapping[str, Any],
        environment: Mapping[str, str],
    ) -> None:
        """Remove what a thread that ended without success has outside of its journal and that holds
        no work. What a fork of it needs must stay.
        """
        del store, thread, start, environment

    def forget(
        self,
        store: Store,
        thread: ThreadId,
        start: Mapping[str, Any],
        environment: Mapping[str, str],
    ) -> None:
        """Remove what the thread has outside of its journal. start: its start record, of any
        flow.
        """
        del store, thread, start, environment
