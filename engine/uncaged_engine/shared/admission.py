"""Admission of a shared store's threads: which of those that wait a worker takes next, and why
another one waits. Pure functions of the store's settings and of what waits and runs.

Rule 1: a worker takes a thread whose flow it serves, if it offers what the thread needs and no
limit is reached. Limits hold over all workers; slots are each worker's own.
Rule 2: a child takes no slot, since its parent has one and waits for it. A flow's limit does not
hold a child of a thread of the same flow back, which would wait for itself.
Rule 3: a rate counts threads that begin. One that was begun goes on when a person resumes it or its
worker dies, whatever began meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from uncaged_bundles.records import dataclass

from .queues import QueueSettings

CHILD, NESTED, LATER, NEED = "^", "^^", ">", "+"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnKind:
    """What the turns of one group have in common: a turn drives a thread from one of its lines on.

    needs: what a worker must offer. is_child: another thread waits for it. is_nested: among those
    that wait is one of the same flow. is_later: the thread was driven before, and was resumed.
    """

    flow: str
    needs: frozenset[str] = frozenset()
    is_child: bool = False
    is_nested: bool = False
    is_later: bool = False

    def __str__(self) -> str:
        """Return the kind as one text, from which `turn_kind` makes it again."""
        marks = [NESTED if self.is_nested else CHILD] * self.is_child + [LATER] * self.is_later
        return " ".join((self.flow, *marks, *(f"{NEED}{need}" for need in sorted(self.needs))))


def turn_kind(text: str) -> TurnKind:
    """Return the kind of which *text* is the spelling."""
    flow, *marks = text.split(" ")
    return TurnKind(
        flow=flow,
        needs=frozenset(mark[1:] for mark in marks if mark.startswith(NEED) and mark != NEED),
        is_child=CHILD in marks or NESTED in marks,
        is_nested=NESTED in marks,
        is_later=LATER in marks,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Turn of a thread that is to be driven.

    priority: of the thread itself; its flow's is added.
    """

    kind: TurnKind
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOffer:
    """What a worker takes. slots: threads at a time. flows: those that it serves; None for all."""

    slots: int
    offers: frozenset[str] = frozenset()
    flows: frozenset[str] | None = None

    def takes(self, kind: TurnKind, settings: QueueSettings) -> bool:
        """Tell whether the worker takes turns of this kind."""
        serves = self.flows is None or kind.flow in self.flows
        return serves and self.offers >= kind.needs.union(settings.of(kind.flow).needs)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTurn:
    """Turn that waits. since: a number that orders by age. begun: its beginning was counted
    already, before its worker died.
    """

    id: str
    kind: TurnKind
    priority: int
    since: int
    begun: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLoad:
    """What the workers of a store drive.

    running: turns by kind. begun: threads of each flow with a rate that began within its period.
    """

    running: Mapping[TurnKind, int]
    begun: Mapping[str, int]

    def of(self, flow: str) -> int:
        """Return how many turns of a flow run."""
        return sum(count for kind, count in self.running.items() if kind.flow == flow)

    @property
    def total(self) -> int:
        """Return how many turns run, children not counted."""
        return sum(count for kind, count in self.running.items() if not kind.is_child)


def admitted(
    waiting: Iterable[WaitingTurn],
    load: StoreLoad,
    settings: QueueSettings,
    offer: WorkerOffer,
    *,
    free: int,
) -> list[WaitingTurn]:
    """Return the turns that a worker with *free* slots takes now, in order."""
    by_flow = Counter({kind.flow: load.of(kind.flow) for kind in load.running})
    total = load.total
    begun = Counter(load.begun)
    chosen: list[WaitingTurn] = []
    for turn in sorted(waiting, key=lambda one: (-_priority(one, settings), one.since, one.id)):
        kind, queue = turn.kind, settings.of(turn.kind.flow)
        takes_slot = not kind.is_child
        if not offer.takes(kind, settings) or (takes_slot and not free):
            continue
        if takes_slot and settings.concurrency is not None and total >= settings.concurrency:
            continue
        is_held = not kind.is_nested
        if is_held and queue.concurrency is not None and by_flow[kind.flow] >= queue.concurrency:
            continue
        if is_held and queue.rate is not None and not kind.is_later and not turn.begun:
            if begun[kind.flow] >= queue.rate.threads:
                continue
            begun[kind.flow] += 1
        chosen.append(turn)
        by_flow[kind.flow] += 1
        total += takes_slot
        free -= takes_slot
    return chosen


def wait_reason(
    kind: TurnKind, settings: QueueSettings, workers: Sequence[WorkerOffer], load: StoreLoad
) -> str:
    """Return why a turn waits, as a sentence without a subject.

    Args:
        workers: the living ones that take threads.
    """
    needs = kind.needs.union(settings.of(kind.flow).needs)
    if not workers:
        return "waits for a worker"
    if not any(one.offers >= needs for one in workers):
        return f"waits for a worker that offers {_listed(needs - _offered(workers) or needs)}"
    if not any(one.takes(kind, settings) for one in workers):
        return f"waits for a worker that takes {kind.flow}"
    queue = settings.of(kind.flow)
    running = load.of(kind.flow)
    if queue.concurrency is not None and running >= queue.concurrency:
        return f"waits: {running} of at most {queue.concurrency} threads of {kind.flow} run"
    most = settings.concurrency
    if most is not None and load.total >= most and not kind.is_child:
        return f"waits: {load.total} of at most {most} threads of the store run"
    rate = queue.rate
    if rate is not None and not kind.is_later and load.begun.get(kind.flow, 0) >= rate.threads:
        return f"waits: {rate.threads} threads of {kind.flow} began in the last {rate.seconds} s"
    return "waits for a worker"


def _priority(turn: WaitingTurn, settings: QueueSettings) -> int:
    return turn.priority + settings.of(turn.kind.flow).priority


def _offered(workers: Iterable[WorkerOffer]) -> frozenset[str]:
    return frozenset[str]().union(*(one.offers for one in workers))


def _listed(names: Collection[str]) -> str:
    return " and ".join(sorted(names))
