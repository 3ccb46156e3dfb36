"""Settings of a shared store's queues, one for each flow: limits over all workers, priority, and
what a worker must offer. They are a document of the store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated

from uncaged_bundles import fields, shapes
from uncaged_bundles.errors import DamagedError, UsageError
from uncaged_bundles.names import parse_flow_name
from uncaged_bundles.records import dataclass, field, replace

from ..stores.protocol import ChangedMeanwhile, DocumentStorage

DOCUMENT = "queues.json"
HIGHEST_PRIORITY = 1000
MOST = 1_000_000
LONGEST_RATE_S = 7 * 24 * 3600
WRITE_ATTEMPTS = 20
_NEED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,59}")


def parse_need(text: str) -> str:
    """Return the name of something that a worker offers and a thread needs.

    Raises:
        UsageError: *text* is no such name.
    """
    if _NEED.fullmatch(text) is None:
        raise UsageError(
            f"{text[:100]!r} is no name of what a worker offers: letters, digits and . _ : - only, at most 60, such as 'gpu'"
        )
    return text


def _needs(value: object, path: shapes.Path) -> tuple[str, ...]:
    try:
        return tuple(parse_need(one) for one in shapes.texts(value, path))
    except UsageError as exc:
        raise shapes.ShapeError(path, str(exc)) from None


def _rate(value: object, path: shapes.Path) -> StartRate | None:
    return None if value is None else fields.read(StartRate, value, path)


def _flows(value: object, path: shapes.Path) -> dict[str, FlowQueue]:
    return {
        name: fields.read(FlowQueue, one, (*path, name))
        for name, one in shapes.mapping(value, path).items()
    }


_Count = Annotated[int, shapes.whole_between(0, MOST)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRate:
    """Limit on the threads that begin within each period of so many seconds."""

    threads: Annotated[int, shapes.whole_between(1, MOST)]
    seconds: Annotated[int, shapes.whole_between(1, LONGEST_RATE_S)]

    def __str__(self) -> str:
        return f"{self.threads}/{self.seconds}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowQueue:
    """Settings of one flow's queue.

    concurrency: threads of the flow that workers drive at a time; None for any number, 0 for none.
    priority: threads of a higher one are taken first. needs: what a worker must offer, besides what
    the flow itself tells.
    """

    concurrency: _Count | None = None
    rate: Annotated[StartRate | None, _rate] = None
    priority: Annotated[int, shapes.whole_between(-HIGHEST_PRIORITY, HIGHEST_PRIORITY)] = 0
    needs: Annotated[tuple[str, ...], _needs] = ()

    def document(self) -> dict[str, object]:
        """Return the settings that differ from the default, as JSON values."""
        rate = self.rate
        named = {
            "concurrency": self.concurrency,
            "rate": None if rate is None else {"threads": rate.threads, "seconds": rate.seconds},
            "priority": self.priority or None,
            "needs": list(self.needs) or None,
        }
        return {name: value for name, value in named.items() if value is not None}


DEFAULT_QUEUE = FlowQueue()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """Settings of a store's queues.

    concurrency: threads that all workers drive at a time, children not counted. agents: agents that
    work at a time, in all workers. flows: by name.
    """

    concurrency: _Count | None = None
    agents: _Count | None = None
    flows: Annotated[Mapping[str, FlowQueue], _flows] = field(default_factory=dict)

    def of(self, flow: str) -> FlowQueue:
        """Return the settings of a flow's queue."""
        return self.flows.get(flow, DEFAULT_QUEUE)

    def with_flow(self, flow: str, queue: FlowQueue) -> QueueSettings:
        """Return these settings with those of one flow.

        Raises:
            UsageError: *flow* is no flow's name.
        """
        flows = {**self.flows, parse_flow_name(flow): queue}
        return replace(self, flows={name: one for name, one in flows.items() if one.document()})

    def document(self) -> dict[str, object]:
        """Return the settings that differ from the default, as JSON values."""
        named = {
            "concurrency": self.concurrency,
            "agents": self.agents,
            "flows": {name: self.flows[name].document() for name in sorted(self.flows)} or None,
        }
        return {name: value for name, value in named.items() if value is not None}


DEFAULT_SETTINGS = QueueSettings()


def parse_settings(data: bytes | None) -> QueueSettings:
    """Return the settings of a document; the defaults if there is none.

    Raises:
        DamagedError: it cannot be read.
    """
    if data is None:
        return DEFAULT_SETTINGS
    try:
        return fields.read(QueueSettings, json.loads(data), (DOCUMENT,))
    except (ValueError, RecursionError, shapes.ShapeError) as exc:
        raise DamagedError(
            f"the settings of the queues cannot be read: {exc}; `uncaged-workflow queue reset --all` removes them"
        ) from None


def read_settings(documents: DocumentStorage) -> QueueSettings:
    """Return a store's settings. Raises: as `parse_settings`."""
    found = documents.read(DOCUMENT)
    return parse_settings(None if found is None else found.data)


def change_settings(
    documents: DocumentStorage, change: Callable[[QueueSettings], QueueSettings]
) -> QueueSettings:
    """Change a store's settings, again if another one changed them meanwhile; return the new ones.

    Raises:
        DamagedError: as `parse_settings`. ChangedMeanwhile: others go on changing them.
    """
    for attempt in range(WRITE_ATTEMPTS):
        found = documents.read(DOCUMENT)
        changed = change(parse_settings(None if found is None else found.data))
        try:
            _write(documents, changed, None if found is None else found.version)
            break
        except ChangedMeanwhile:
            if attempt == WRITE_ATTEMPTS - 1:
                raise
    return changed


def reset_settings(documents: DocumentStorage) -> None:
    """Replace a store's settings by the defaults, whatever they are. Raises: as
    `change_settings`.
    """
    found = documents.read(DOCUMENT)
    if found is not None:
        _write(documents, DEFAULT_SETTINGS, found.version)


def _write(documents: DocumentStorage, settings: QueueSettings, version: str | None) -> None:
    text = json.dumps(settings.document(), indent=2, sort_keys=True)
    documents.replace(DOCUMENT, f"{text}\n".encode(), version=version)
