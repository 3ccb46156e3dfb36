"""Conversations of a store: new, list, find by name, rename, current one, delete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from getpass import getuser
from pathlib import Path
from socket import gethostname

from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError, UsageError
from uncaged_bundles.ids import is_thread_id, new_thread_id
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.files import changing, read_if_there, write_atomically
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.conversations import copies_of, remove_from
from uncaged_engine.services.journal import JournalBusy

from .execution import ENTROPY_BYTES
from .log import (
    MEMORY_SUFFIX,
    SUFFIX,
    create_log,
    directory_of,
    is_held,
    path_of,
    read_state,
    socket_of,
)

DEFAULT_NAME = "default"
MAX_NAME_CHARACTERS = 100
LOCK_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSummary:
    """One conversation of a list. open: its requests that are not settled. is_waiting: one of them
    waits for an answer. problem: why it cannot be used, if it cannot; it has no name then.
    """

    id: str
    name: str
    created_ms: int
    updated_ms: int
    settled: int
    open: int
    is_current: bool
    is_held: bool
    is_waiting: bool = False
    problem: str | None = None


def new_conversation(store: Store, name: str | None, now_ms: int) -> str:
    """Make a conversation, make it the current one, and return its id. Without a name it gets a
    free one.

    Raises:
        RefusedError: another conversation has the name.
    """
    with _changing(store):
        names = _names(store)
        if name is None:
            name = _free_name(set(names))
        _require_free(name, names)
        id = _create(store, name, now_ms)
        _set_current(store, id)
    return id


def current_conversation(store: Store, now_ms: int) -> str:
    """Return the id of the current conversation; the first one is made."""
    id = _current(store)
    if id is not None and _exists(store, id):
        return id
    with _changing(store):
        id = _current(store)
        if id is None or not _exists(store, id):
            name = _first_name(store)
            id = _names(store).get(name.casefold()) or _create(store, name, now_ms)
            _set_current(store, id)
    return id


def existing_conversation(store: Store, text: str | None) -> str | None:
    """Return the conversation that *text* names, as `find_conversation`; without a text the current
    one, or None if there is none.
    """
    if text is not None:
        return find_conversation(store, text)
    id = _current(store)
    return id if id is not None and _exists(store, id) else None


def list_conversations(store: Store) -> list[ConversationSummary]:
    """Return all conversations, those used last first. A damaged one is listed with its problem."""
    _forget_memories(store)
    current = _current(store)
    found = [_summary(store, id, current) for id in _ids(store)]
    return sorted(found, key=lambda one: (one.updated_ms, one.id), reverse=True)


def newest_conversations(store: Store, limit: int) -> list[str]:
    """Return the ids of the conversations that were made last, the newest first."""
    return sorted(_ids(store), reverse=True)[:limit]


def chosen_conversation(store: Store, text: str | None, now_ms: int) -> str:
    """Return the conversation that *text* names, as `find_conversation`; the current one without a
    text.
    """
    return current_conversation(store, now_ms) if text is None else find_conversation(store, text)


def find_conversation(store: Store, text: str) -> str:
    """Return the conversation with this name, this id, or the only id that begins with it.

    Raises:
        NotFoundError: there is none. UsageError: there are several.
    """
    ids = _ids(store)
    if text.upper() in ids:
        return text.upper()
    named = _names(store).get(text.casefold())
    if named is not None:
        return named
    found = [id for id in ids if text and id.startswith(text.upper())]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{text!r} is the start of {len(found)} conversation ids; type more of it")
    raise NotFoundError(f"no conversation {text[:80]!r}; `conversation list` shows what there is")


def switch_conversation(store: Store, id: str) -> None:
    """Make a conversation the current one.

    Raises:
        DamagedError: it cannot be used.
    """
    read_state(store, id)
    with _changing(store):
        _set_current(store, id)


def check_new_name(store: Store, name: str, id: str) -> None:
    """Check a name for the conversation *id*.

    Raises:
        UsageError, RefusedError: it is no name, or another conversation has it.
    """
    _require_free(name, {other: owner for other, owner in _names(store).items() if owner != id})


def delete_conversation(store: Store, id: str) -> None:
    """Delete a conversation with its memory. Its threads stay.

    Raises:
        RefusedError: a process uses it.
    """
    with _changing(store):
        try:
            remove_from(store, id)
        except JournalBusy as exc:
            copies = copies_of(store)
            holder = "" if copies is None else copies.holder(id)
            raise RefusedError(
                f"conversation {id} is in use by {holder or 'another process'}; end that first"
            ) from exc
        except NotFoundError as exc:
            raise NotFoundError(f"no conversation {id}") from exc
        if _current(store) == id:
            _current_path(store).unlink(missing_ok=True)
        socket_of(store, id).unlink(missing_ok=True)
    _forget_memories(store)


def _forget_memories(store: Store) -> None:
    """Remove this machine's memories of a shared store's conversations that were deleted, here or
    elsewhere.
    """
    copies = copies_of(store)
    memories = () if copies is None else store.derived.glob(f"*{MEMORY_SUFFIX}*")
    names = frozenset(() if copies is None else copies.names())
    for path in memories:
        if path.name.partition(".")[0] not in names:
            path.unlink(missing_ok=True)


def _summary(store: Store, id: str, current: str | None) -> ConversationSummary:
    path = path_of(store, id)
    try:
        state = read_state(store, id)
    except (DamagedError, NotFoundError) as exc:
        changed_ms = 0
        with suppress(OSError):
            changed_ms = path.stat().st_mtime_ns // 1_000_000
        return ConversationSummary(
            id=id,
            name="",
            created_ms=0,
            updated_ms=changed_ms,
            settled=0,
            open=0,
            is_current=id == current,
            is_held=is_held(store, id),
            problem=str(exc),
        )
    return ConversationSummary(
        id=id,
        name=state.name,
        created_ms=state.created_ms,
        updated_ms=state.updated_ms,
        settled=state.settled,
        open=len(state.open),
        is_current=id == current,
        is_held=is_held(store, id),
        is_waiting=any(one.question is not None for one in state.open),
    )


def _names(store: Store) -> dict[str, str]:
    """Return the ids of the readable conversations by their names, in lower case."""
    return dict(_named(store))


def _named(store: Store) -> Iterator[tuple[str, str]]:
    for id in _ids(store):
        with suppress(DamagedError, NotFoundError):
            yield read_state(store, id).name.casefold(), id


def _exists(store: Store, id: str) -> bool:
    copies = copies_of(store)
    return path_of(store, id).exists() if copies is None else id in copies.names()


def _first_name(store: Store) -> str:
    """Return the name of the conversation that is made for a person; of a shared store it is one
    per person and machine, since a conversation has one holder at a time.
    """
    if copies_of(store) is None:
        return DEFAULT_NAME
    return f"{getuser()}@{gethostname()}"[:MAX_NAME_CHARACTERS]


def _ids(store: Store) -> list[str]:
    copies = copies_of(store)
    if copies is not None:
        return copies.names()
    try:
        names = [path.name for path in directory_of(store).iterdir()]
    except FileNotFoundError:
        return []
    stems = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
    return sorted(filter(is_thread_id, stems))


def _require_free(name: str, names: dict[str, str]) -> None:
    if not (0 < len(name) <= MAX_NAME_CHARACTERS and name.isprintable() and name == name.strip()):
        raise UsageError(
            f"{name[:80]!r} is no name for a conversation: 1 to {MAX_NAME_CHARACTERS} printable characters"
        )
    if is_thread_id(name.upper()):
        raise UsageError(f"{name!r} looks like an id; choose another name")
    if name.casefold() in names:
        raise RefusedError(f"conversation {names[name.casefold()]} has the name {name!r} already")


def _free_name(names: set[str]) -> str:
    number = 1
    while f"conversation {number}" in names:
        number += 1
    return f"conversation {number}"


def _create(store: Store, name: str, now_ms: int) -> str:
    id = new_thread_id(now_ms, os.urandom(ENTROPY_BYTES))
    create_log(store, id, name, now_ms)
    return id


def _changing(store: Store) -> AbstractContextManager[None]:
    _current_path(store).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return changing(_current_path(store), timeout_s=LOCK_TIMEOUT_S)


def _current_path(store: Store) -> Path:
    # which one is current is a matter of each person
    return (directory_of(store) if copies_of(store) is None else store.derived) / "current"


def _current(store: Store) -> str | None:
    text = read_if_there(_current_path(store))
    id = "" if text is None else text.decode("ascii", "replace").strip()
    return id if is_thread_id(id) else None


def _set_current(store: Store, id: str) -> None:
    write_atomically(_current_path(store), f"{id}\n".encode())
