"""Forks of one prefix, run side by side: each with another outcome of the last kept step, or with
another agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import replace
from uncaged_engine.api import Cut, Engine, Event, Replacement, RunOptions, ThreadView
from uncaged_engine.services.threads import Step, common_steps, steps_of

__all__ = [
    "ForkComparison",
    "ForkVariant",
    "Side",
    "compare_sides",
    "end_sides",
    "run_sides",
    "start_sides",
]

Accept = Callable[[tuple[str, ...]], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkVariant:
    """What differs in a fork. instead: outcome of the last kept step. agents: by role."""

    label: str
    instead: Replacement | None = None
    agents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A fork that was started. label: of its variant."""

    label: str
    thread_id: ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkComparison:
    """Forks as they ended. kept: number of inherited steps. views, futures: of each side; a future
    is the steps after the kept ones. together: number of their first steps that are equal.
    """

    kept: int
    sides: tuple[Side, ...]
    views: tuple[ThreadView, ...]
    futures: tuple[tuple[Step, ...], ...]
    together: int


def start_sides(
    engine: Engine,
    thread: str,
    variants: Sequence[ForkVariant],
    *,
    at: int,
    options: RunOptions,
    accept: Accept,
) -> list[Side]:
    """Start a fork for each variant, after all were checked: of one that is refused nothing is
    written. If a worker cannot start, the others are ended.

    Args:
        at: number of kept steps. accept: as for `Engine.fork`.
    """
    plans = [
        engine.plan_fork(
            thread,
            cut=Cut(at=at),
            instead=variant.instead,
            options=replace(options, agents={**options.agents, **variant.agents}),
            accept=accept,
        )
        for variant in variants
    ]
    sides: list[Side] = []
    try:
        for variant, plan in zip(variants, plans, strict=True):
            sides.append(Side(label=variant.label, thread_id=engine.start_fork(plan)))
    except BaseException:
        end_sides(engine, sides)
        raise
    return sides


def run_sides(engine: Engine, sides: Sequence[Side], report: Callable[[Side, Event], None]) -> None:
    """Follow all sides until they stop; a KeyboardInterrupt ends their threads.

    Args:
        report: called with each event, from a thread for each side.
    """

    def follow(side: Side) -> None:
        for event in engine.follow(side.thread_id):
            report(side, event)

    with ThreadPoolExecutor(max_workers=len(sides)) as pool:
        try:
            following = [pool.submit(follow, side) for side in sides]
            for one in following:
                one.result()
        except BaseException:
            end_sides(engine, sides)  # the pool waits for its threads, which end with these
            raise


def end_sides(engine: Engine, sides: Sequence[Side]) -> None:
    """End the threads that have not ended."""
    for side in sides:
        try:
            engine.kill(side.thread_id)
        except UncagedError:
            continue  # it has ended


def compare_sides(engine: Engine, sides: Sequence[Side], kept: int) -> ForkComparison:
    """Return the sides as they are now."""
    views = tuple(engine.thread(side.thread_id) for side in sides)
    futures = tuple(tuple(steps_of(view)[kept:]) for view in views)
    return ForkComparison(
        kept=kept,
        sides=tuple(sides),
        views=views,
        futures=futures,
        together=common_steps(futures),
    )
