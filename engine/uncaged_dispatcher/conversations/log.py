"""Log of a conversation in a file: `conversations/ID.jsonl` in the store.

Its owner holds the file's lock and is the conversation's only writer. Other processes read it. Of a
shared store the file is a copy, and the owner is that of the lines in the database.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError
from uncaged_bundles.storage.store import Store
from uncaged_bundles.version import __version__
from uncaged_engine.services.conversations import ConversationCopies, OwnedConversation, copies_of
from uncaged_engine.services.journal import (
    ChainedFile,
    conversation_seed,
    create_chained,
    is_live,
    read_chained,
)
from uncaged_engine.services.local_sockets import named_socket

from .feedback import Feedback
from .records import FORMAT, ConversationState, first_record, open_line, parse, state_of
from .requests import ConversationRequest
from .results import RequestResult

SUFFIX = ".jsonl"
MEMORY_SUFFIX = ".memory.sqlite3"
"""Of the memory that is derived from a log."""
DIRECTORY = "conversations"
ELSEWHERE_S = 3.0
"""How long a holder that this process cannot reach may take to leave, or to listen."""
ELSEWHERE_LOOK_S = 0.1


class HeldElsewhere(RefusedError):
    """A process of another machine holds the conversation; the message names it."""


def directory_of(store: Store) -> Path:
    """Return the directory of the store's conversations."""
    return store.documents / DIRECTORY


def path_of(store: Store, id: str) -> Path:
    """Return the path of a conversation's log."""
    return directory_of(store) / f"{id}{SUFFIX}"


def socket_of(store: Store, id: str) -> Path:
    """Return the path of the socket at which a holder on this machine listens."""
    return named_socket(store, f"conversation-{id}.sock")


def is_held(store: Store, id: str) -> bool:
    """Tell whether a process holds a conversation."""
    copies = copies_of(store)
    return is_live(path_of(store, id)) if copies is None else bool(copies.holder(id))


def is_abandoned(store: Store, id: str) -> bool:
    """Tell whether a conversation has open requests and no holder. Raises: as `read_state`."""
    return bool(read_state(store, id).open) and not is_held(store, id)


def create_log(store: Store, id: str, name: str, now_ms: int) -> None:
    """Make the log of a new conversation."""
    body = open_line(first_record(id, name, __version__, now_ms))
    copies = copies_of(store)
    if copies is None:
        create_chained(path_of(store, id), body, conversation_seed(id))
    else:
        copies.start(id, body)


def read_state(store: Store, id: str) -> ConversationState:
    """Read a conversation as it is now, without its lock.

    Raises:
        NotFoundError: there is none with this id. DamagedError: as `ConversationLog.open`.
    """
    path = path_of(store, id)
    _bring(store, id)
    with _checked(path):
        return state_of(str(path), read_chained(path, conversation_seed(id)).lines)


def read_records(store: Store, id: str, after: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the records that came after number *after*, in order; the first line is number 0. Of a
    shared store those that it has, also where this process is the owner and has written more.

    Raises: as `read_state`.
    """
    path, copies = path_of(store, id), copies_of(store)
    with _checked(path):
        found = (
            read_chained(path, conversation_seed(id)).lines[after + 1 :]
            if copies is None
            else copies.read(id, from_line=after + 1)
        )
    # each line is one record, numbered from the first line on
    yield from map(parse, found)


def _bring(store: Store, id: str) -> None:
    copies = copies_of(store)
    if copies is None:
        return
    try:
        copies.bring(id)
    except NotFoundError as exc:
        raise NotFoundError(
            f"no conversation {id}; `conversation list` shows what there is"
        ) from exc


class ConversationLog:
    """The locked log with its present state. Its caller serialises the writes."""

    def __init__(
        self,
        file: ChainedFile | OwnedConversation,
        state: ConversationState,
        clock_ms: Callable[[], int],
    ):
        self.state = state
        self._file = file
        self._clock_ms = clock_ms

    @classmethod
    def open(cls, store: Store, id: str, clock_ms: Callable[[], int]) -> Self | None:
        """Lock and read the log, and cut a torn tail; None if another process has the lock.

        Raises:
            NotFoundError: there is no such conversation.
            DamagedError: the file is damaged, of a newer version, or no conversation.
            HeldElsewhere: a process of another machine has it.
            JournalBroken: the disk refuses.
        """
        path = path_of(store, id)
        copies = copies_of(store)
        _bring(store, id)
        file: ChainedFile | OwnedConversation | None
        with _checked(path):
            file = (
                ChainedFile.open(path, conversation_seed(id))
                if copies is None
                else _owned(store, copies, id)
            )
        if file is None:
            return None
        try:
            return cls(file, state_of(str(path), file.lines), clock_ms)
        except BaseException:
            file.close()
            raise

    def request(self, request: ConversationRequest, *, first: bool = False) -> None:
        """Record that a request was accepted."""
        self._write({"request": request.document(), **({"first": True} if first else {})})

    def promote(self, id: str) -> None:
        """Record that a queued request was moved to the front."""
        self._write({"promote": id})

    def reading(self, id: str, reading: Mapping[str, object]) -> None:
        """Record how a request was understood."""
        self._write({"reading": reading, "of": id})

    def translation(self, id: str, thread: str) -> None:
        """Record the thread in which a model is asked what a request means."""
        self._write({"translation": {"threadId": thread}, "of": id})

    def question(self, id: str, question: Mapping[str, object]) -> None:
        """Record a question to the person about a request."""
        self._write({"question": question, "of": id})

    def answer(self, id: str, answer: object) -> None:
        """Record the person's answer."""
        self._write({"answer": answer, "of": id})

    def thread(self, id: str, thread: str, call: Mapping[str, object]) -> None:
        """Record the thread that a request is about to start; durable when this returns."""
        self._write({"thread": {"threadId": thread, **call}, "of": id})
        self.flush()

    def cancel(self, id: str, why: str) -> None:
        """Record that a request was cancelled; durable when this returns."""
        self._write({"cancel": why, "of": id})
        self.flush()

    def result(self, id: str, result: RequestResult) -> int:
        """Record how a request ended and return the record's number; durable when this returns."""
        self._write({"result": result.document(), "of": id})
        self.flush()
        return self.state.seq

    def settings(self, changed: Mapping[str, object]) -> None:
        """Record settings that changed; durable when this returns."""
        self._write({"settings": dict(changed)})
        self.flush()

    def feedback(self, id: str, feedback: Feedback) -> None:
        """Record the person's feedback on a request; durable when this returns."""
        self._write({"feedback": feedback.document(), "of": id})
        self.flush()

    def flush(self) -> None:
        """Make everything durable that was recorded."""
        self._file.flush()

    def close(self) -> None:
        """Release the lock. Idempotent."""
        self._file.close()

    def _write(self, fields: Mapping[str, object]) -> None:
        record = {"seq": self.state.seq + 1, **fields, "timestamp": self._clock_ms()}
        line = self._file.append(open_line(record))
        # the line as it will be read, so that the present state is what the next owner finds
        self.state.add(parse(line))


def _owned(store: Store, copies: ConversationCopies, id: str) -> OwnedConversation | None:
    """Own a conversation of a shared store; None if another process of this machine does.

    Raises:
        HeldElsewhere: this machine cannot reach the process that has it.
    """
    until_s = time.monotonic() + ELSEWHERE_S
    while (found := copies.open(id)) is None and not _is_reached(socket_of(store, id)):
        if time.monotonic() > until_s:
            holder = copies.holder(id) or "a process that just left it"
            raise HeldElsewhere(
                f"conversation {id} is in use by {holder}, which cannot be reached from here: send the sentence there,"
                " wait until its requests have ended, or use another conversation"
            )
        time.sleep(ELSEWHERE_LOOK_S)
    return found


def _is_reached(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(path))
        except OSError:
            return False
    return True


@contextmanager
def _checked(path: Path) -> Iterator[None]:
    """Describe a file whose first line is not ours, which the chain alone would call damaged."""
    try:
        yield
    except NotFoundError as exc:
        raise NotFoundError(
            f"no conversation {path.stem}; `conversation list` shows what there is"
        ) from exc
    except DamagedError as exc:
        raise DamagedError(_described(path, exc)) from exc


def _described(path: Path, problem: DamagedError) -> str:
    remedy = "`conversation new` starts another one"
    try:
        with path.open("rb") as file:
            first = json.loads(file.readline(1 << 20))
    except (OSError, ValueError, RecursionError):
        first = None
    match first:
        case {"format": int(format), "conversation": str()} if format > FORMAT:
            return f"{path} has format {format} of a newer version, and this one reads format {FORMAT}; update uncaged-workflow"
        case {"format": int(), "conversation": str()}:
            return f"conversation {path.stem} cannot be used: {problem}; {remedy}"
        case _:
            return f"{path} is no conversation; {remedy}"
