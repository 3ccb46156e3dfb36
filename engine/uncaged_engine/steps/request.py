"""Inputs of a driver: the caller's request, and the services of its worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass, field
from uncaged_bundles.storage.store import Store

from ..cells.shared import Cells
from ..door.effects import AgentPermits, Handler, RunChild
from ..effect_kinds import handler_for
from ..notify.sender import Sender
from .observing import Observers


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveRequest:
    """Request of a caller to drive a thread.

    environment, directory: the caller's; kept in memory only. resume: the fields of a resume
    control, None for a first start.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path = field(default_factory=Path)
    resume: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """Services that all threads of a worker share.

    handlers: the handler of an effect kind. run_child, agents: see `ThreadContext`. sender: of
    notifications; None sends none. observers: None for threads that are not observed, as those of a
    trial.
    """

    store: Store
    cells: Cells
    clock_ms: Callable[[], int]
    publish: Callable[[ThreadId, Mapping[str, object]], None]
    handlers: Callable[[str], Handler] = handler_for
    run_child: RunChild | None = None
    agents: AgentPermits | None = None
    sender: Sender | None = None
    observers: Observers | None = None
