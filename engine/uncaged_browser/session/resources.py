"""Resources of one client of a session: its recording, and its contexts for proofs. They end with
its connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from uncaged_bundles.errors import RefusedError, UsageError

from ..control import BrowserControl
from ..driving.context import DrivenContext
from ..operations import Open
from ..recording.recorder import Recorder
from ..relay.control import ExtensionControl
from .contexts import SessionContexts
from .messages import KEPT, ContextSpec

__all__ = ["ClientResources"]

LOAD_S = 30.0


class ClientResources:
    """What one client uses alone."""

    def __init__(self, contexts: SessionContexts) -> None:
        self._contexts = contexts
        self._names: set[str] = set()
        self._recorder: Recorder | None = None
        self._is_open: Callable[[], bool] = lambda: False
        self._former: dict[str, object] = {}

    async def open(self, spec: ContextSpec) -> bool:
        """Open a context unless it is open; return whether it is new."""
        new = await self._contexts.open(spec)
        if new and (spec.proof or spec.temporary):
            self._names.add(spec.name)
        return new

    def keep(self, name: str) -> None:
        """Let a context that was temporary outlive the connection."""
        self._names.discard(name)

    async def record(self, message: Mapping[str, Any]) -> dict[str, object]:
        """Control the recording of the session's own tabs: ``start`` opens ``url`` in a new tab,
        ``read`` returns what was noted if it changed, ``stop`` ends it. ``end`` asks the client
        that records to stop.

        Returns: ``{"recording"?, "open"}``; open is False when the recorded tabs were closed, or
            another client asked for the end.
        """
        match message.get("action"):
            case "start":
                return await self._start(str(message.get("url")))
            case "read":
                recording = self._recorded().recording().with_start().document()
                changed = recording != self._former
                self._former = recording
                is_open = self._is_open() and not self._contexts.is_recording_ended
                return {"open": is_open, **({"recording": recording} if changed else {})}
            case "stop":
                return await self._stop()
            case "end":
                if not self._contexts.recorded:
                    raise RefusedError("this browser session is not being recorded")
                self._contexts.is_recording_ended = True
                return {"open": False}
            case action:
                raise UsageError(f"a recording has no action {action!r}")

    async def aclose(self) -> None:
        """End the recording and close the contexts."""
        if self._recorder is not None:
            with suppress(UsageError):
                await self._stop()
        for name in self._names:
            await self._contexts.close(name)

    async def _start(self, url: str) -> dict[str, object]:
        kept = self._contexts.find(KEPT)
        if kept is None or self._contexts.recorded or self._recorder is not None:
            raise RefusedError("this browser session is being recorded already")
        self._contexts.recorded, self._contexts.is_recording_ended = True, False
        try:
            control = kept.control
            context = await _driven(control)
            others = frozenset(context.tabs.pages)
            tab = await control.perform(Open(url=url, timeout_s=LOAD_S))
            recorder = Recorder(await _driven(control))
            await recorder.start()
        except BaseException:
            self._contexts.recorded = False
            raise
        self._recorder = recorder
        self._is_open = lambda: any(page not in others for page in context.tabs.pages)
        return {"open": True, "tab": tab}

    async def _stop(self) -> dict[str, object]:
        recorder = self._recorded()
        self._recorder, self._contexts.recorded = None, False
        return {"open": False, "recording": (await recorder.stop()).with_start().document()}

    def _recorded(self) -> Recorder:
        if self._recorder is None:
            raise UsageError("this client records nothing")
        return self._recorder


async def _driven(control: BrowserControl) -> DrivenContext:
    """Return the context of the tabs that a control uses."""
    if isinstance(control, ExtensionControl):
        return await control.connected()
    if not isinstance(control, DrivenContext):
        raise UsageError("this browser cannot be recorded")
    return control
