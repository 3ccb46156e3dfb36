"""Client of a browser session, which it starts when it is needed."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from uncaged_bundles.errors import EngineBug, StorageError, os_problem
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.local_sockets import pack, raise_error, unpack

from ..problems import BrowserProblem
from ..scope import EVERYWHERE, BrowserScope
from ..secrets import NO_BOUND_SECRETS, BoundSecrets
from .address import checked_name, socket_path
from .messages import ContextSpec, MissingContext
from .starting import start_session

__all__ = ["SessionClient", "SessionGone", "kept_client"]

START_TIMEOUT_S = 60.0
PAUSE_S = 0.05
MARGIN_S = 30.0
CURRENT_S = 2.0
CHUNK_BYTES = 1 << 16


class SessionGone(Exception):
    """The session ended, or was killed, before it replied."""


class SessionClient:
    """One connection to a session. It belongs to one thread of execution, apart from `cut`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._waiting = False

    def __del__(self) -> None:
        self._connection.close()  # one that is kept ends with its thread of execution

    @property
    def is_alive(self) -> bool:
        """Whether a session listens at the other end, which owes no reply. It may end at any time:
        a request that it does not answer fails with `SessionGone`.
        """
        if self._waiting or self._connection.fileno() < 0:
            return False
        self._connection.setblocking(False)
        try:
            self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:  # nothing was sent, and the other end is open
            return True
        except OSError:
            return False
        return False

    @classmethod
    def connect(cls, store: Store, name: str) -> SessionClient | None:
        """Connect to a session; None if it does not run."""
        path = socket_path(store, checked_name(name))
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            return None
        except OSError as exc:
            connection.close()
            raise StorageError(
                f"cannot reach a browser session at {os_problem(exc, path)}"
            ) from exc
        return cls(connection)

    @classmethod
    def open(cls, store: Store, name: str, *, shown: bool = False) -> SessionClient:
        """Connect to a session, which is started if it does not run.

        Raises:
            EnvironmentLacks: it cannot be started.
        """
        end_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < end_s:
            client = cls.connect(store, name)
            if client is not None:
                return client
            if not start_session(store, name, shown=shown):
                time.sleep(PAUSE_S)  # another process is starting it
        raise EngineBug(f"browser session {name} does not answer")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def cut(self) -> None:
        """Make a call that waits in another thread of execution fail with `SessionGone`."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def open_context(self, spec: ContextSpec) -> bool:
        """Open a context unless it is open; return whether it is new."""
        return bool(self._call({"op": "open", "context": spec.document()}, MARGIN_S)["new"])

    def keep_context(self, name: str) -> None:
        """Let a temporary context outlive this connection."""
        self._call({"op": "keep", "name": name}, MARGIN_S)

    def perform(
        self,
        name: str,
        operation: Mapping[str, object],
        timeout_s: float,
        secrets: BoundSecrets = NO_BOUND_SECRETS,
        scope: BrowserScope = EVERYWHERE,
        *,
        passes: bool = False,
    ) -> Any:
        """Perform an operation in a context and return its answer.

        Args:
            passes: the guard of a proof's context lets through what it sends.
        Raises:
            BrowserProblem: it failed; a `MissingContext` if the context is not open. SessionGone:
                the session ended; perhaps it was performed.
        """
        message = {
            "op": "perform",
            "name": name,
            "operation": operation,
            **({"secrets": secrets.document()} if secrets.values else {}),
            **({} if scope == EVERYWHERE else {"scope": scope.document()}),
            **({"passes": True} if passes else {}),
        }
        return self._call(message, timeout_s + MARGIN_S)

    def state(self, name: str) -> dict[str, Any] | None:
        """Return cookies and storage of a context."""
        found: dict[str, Any] | None = self._call({"op": "state", "name": name}, MARGIN_S)
        return found

    def held(self, name: str, *, send: bool | None = None) -> list[str]:
        """Return the requests that the guard of a proof's context holds. send: what is done with
        them; None leaves them.
        """
        more = {} if send is None else {"send": send}
        found: list[str] = self._call({"op": "held", "name": name, **more}, MARGIN_S)
        return found

    def record(self, action: str, **fields: object) -> dict[str, Any]:
        """Start, read or stop the recording of the session's own tabs; see `ClientResources`."""
        message = {"op": "record", "action": action, **fields}
        found: dict[str, Any] = self._call(message, 2 * MARGIN_S)
        return found

    def recorded(self, name: str) -> dict[str, Any] | None:
        """Return the recording of a context that is recorded; None without one."""
        found: dict[str, Any] | None = self._call({"op": "recorded", "name": name}, MARGIN_S)
        return found

    def close_context(self, name: str) -> bool:
        """Close the context of a thread; return whether there was one."""
        return bool(self._call({"op": "close", "name": name}, MARGIN_S)["closed"])

    def current_url(self) -> str | None:
        """Return the address of the session's own current tab, as it was reported last; the page is
        not asked, and no operation is waited for.
        """
        found: str | None = self._call({"op": "status"}, CURRENT_S)["url"]
        return found

    def status(self) -> dict[str, Any]:
        """Return the threads that have a context, whether there is a window, whether the person's
        browser is used, and the address of the current tab.
        """
        found: dict[str, Any] = self._call({"op": "status"}, MARGIN_S)
        return found

    def external(self, *, on: bool) -> dict[str, Any]:
        """Switch the person's browser on, which gives a new pairing code, or off."""
        found: dict[str, Any] = self._call({"op": "external", "on": on}, MARGIN_S)
        return found

    def stop(self) -> None:
        """End the session with its browser."""
        self._call({"op": "stop"}, MARGIN_S)

    def _call(self, message: Mapping[str, object], timeout_s: float) -> Any:
        self._waiting = True
        try:
            self._connection.settimeout(timeout_s)
            self._connection.sendall(pack(message))
            line = self._line()
        except TimeoutError:
            raise BrowserProblem(
                "timeout", f"the browser session did not answer within {timeout_s:g} s"
            ) from None
        except OSError as exc:
            raise SessionGone("the browser session ended") from exc
        self._waiting = False
        reply = unpack(line)
        raise_error(reply)
        if "missing" in reply:
            raise MissingContext(str(reply["missing"]))
        if "problem" in reply:
            raise BrowserProblem.of(reply["problem"])
        return reply.get("value")

    def _line(self) -> bytes:
        parts = []
        while b"\n" not in (part := self._connection.recv(CHUNK_BYTES)):
            if not part:
                raise ConnectionResetError
            parts.append(part)
        return b"".join((*parts, part))


class KeptClients(threading.local):
    """Connections of a thread of execution by the path of their sessions' sockets."""

    def __init__(self) -> None:
        self.by_path: dict[Path, SessionClient] = {}


_KEPT = KeptClients()


@contextmanager
def kept_client(store: Store, name: str) -> Iterator[SessionClient]:
    """Return the connection of this thread of execution to a session; it is opened once, and again
    when the session was ended and started anew. A block that fails for another reason than its
    page ends it, with what is temporary in it.

    Raises:
        EnvironmentLacks: the session cannot be started.
    """
    path = socket_path(store, checked_name(name))
    client = _KEPT.by_path.pop(path, None)
    if client is not None and not client.is_alive:
        client.close()
        client = None
    if client is None:
        client = SessionClient.open(store, name)
    try:
        yield client
    except BaseException:
        client.close()
        raise
    _KEPT.by_path[path] = client
