"""Calls to the preparations of effect kinds: before a thread starts, at a fork, at an import, at
removal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store

from .. import plugins
from ..door.preparing import NewThread, Preparation
from ..effect_kinds import preparation_of, preparations_of


def prepare(thread: NewThread) -> dict[str, Any]:
    """Return the fields that the effect kinds add to the start record of a thread."""
    return {
        name: value for one in _preparations(thread) for name, value in one.prepare(thread).items()
    }


def prepare_fork(
    thread: NewThread, source: Mapping[str, Any], *, other_version: bool
) -> dict[str, Any]:
    """Return the fields in which a fork differs from the start record of its source.

    Args:
        other_version: whether fields of *source* may be those of another version's kinds.
    """
    return {
        name: value
        for one in _preparations_of_fork(thread, other_version=other_version)
        for name, value in one.prepare_fork(thread, source).items()
    }


def prepare_import(thread: NewThread, steps: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """Return the fields for a thread that was recorded elsewhere and goes on here after *steps*."""
    return {
        name: value
        for one in _preparations(thread)
        for name, value in one.prepare_import(thread, steps).items()
    }


def describe(thread: NewThread, fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each resource of this machine that *fields* let an imported thread
    use.
    """
    for one in _preparations(thread):
        yield from one.describe(fields)


def secure(
    thread: NewThread, fields: Mapping[str, Any], steps: Sequence[Mapping[str, object]]
) -> None:
    """Protect what *fields* name from removal by other programs, such as commits from git's
    garbage collection.
    """
    for one in _preparations(thread):
        one.secure(thread, fields, steps)


def secure_fork(
    thread: NewThread,
    fields: Mapping[str, Any],
    steps: Sequence[Mapping[str, object]],
    *,
    other_version: bool,
) -> None:
    """Do the same for a fork. other_version: as for `prepare_fork`."""
    for one in _preparations_of_fork(thread, other_version=other_version):
        one.secure(thread, fields, steps)


def forget(
    store: Store, thread: ThreadId, start: Mapping[str, Any], environment: Mapping[str, str]
) -> None:
    """Remove what a thread leaves outside of its journal. Every installed preparation is called:
    the bundle, which names the kinds, may be gone.

    Raises:
        EnvironmentLacks: a preparation cannot do so now.
    """
    for preparation in _installed():
        preparation.forget(store, thread, start, environment)


def _preparations(thread: NewThread) -> Iterator[Preparation]:
    named = thread.bundle.descriptor.policy.limits
    # agents that a person named are checked even where the policy lets the bundle ask none
    asked = any(thread.options.agents) or bool(thread.options.agent_settings)
    return preparations_of([*named, *({"role"} - named.keys() if asked else ())])


def _preparations_of_fork(thread: NewThread, *, other_version: bool) -> Iterator[Preparation]:
    # a version without a kind inherits its fields from the source all the same. The search for
    # other distributions takes 35 ms, which a fork within one version does not need
    named = thread.bundle.descriptor.policy.limits
    yield from preparations_of({**named, **plugins.ours(plugins.PREPARATIONS)})
    if other_version:
        yield from _installed(without={*named, *plugins.ours(plugins.PREPARATIONS)})


def _installed(*, without: Collection[str] = ()) -> Iterator[Preparation]:
    for kind in plugins.names(group=plugins.PREPARATIONS):
        if kind in without:
            continue
        try:
            preparation = preparation_of(kind)
        except EnvironmentLacks:
            continue  # another distribution is broken: the files of its effects stay
        yield preparation
