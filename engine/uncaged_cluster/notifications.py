"""Notifications of a database: one connection of a process listens to the channels of all its
followers, in a system thread that lives as long as there is one.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from contextlib import suppress

import psycopg
from psycopg import sql
from uncaged_bundles.errors import StorageError, UncagedError

from .address import ClusterAddress
from .problems import explained
from .session import Connection, connect

CHECK_S = 5.0
"""How often the connection is looked at without an event."""
RETRY_S = 0.5
MOST_PAYLOADS = 100


class Notifications:
    """Channels of one database. Its methods may be called from several threads of execution."""

    def __init__(self, address: ClusterAddress) -> None:
        self._address = address
        self._changed = threading.Condition()
        self._subscriptions: dict[str, list[Subscription]] = {}
        self._reader: threading.Thread | None = None
        self._wake_read, self._wake_write = -1, -1
        self._failures = 0
        self._problem: UncagedError | None = None

    def subscribe(self, channel: str) -> Subscription:
        """Return a subscription to a channel, which the caller closes."""
        made = Subscription(self, channel)
        with self._changed:
            self._subscriptions.setdefault(channel, []).append(made)
            if self._reader is None:
                self._wake_read, self._wake_write = os.pipe()
                os.set_blocking(self._wake_write, False)
                self._reader = threading.Thread(target=self._run, name="notifications", daemon=True)
                self._reader.start()
            self._wake()
        return made

    def listen(self, subscription: Subscription) -> None:
        """Wait until the connection listens to a subscription's channel. Raises: as `connect`."""
        with self._changed:
            failures = self._failures
            while not subscription.is_listening:
                if self._failures != failures and self._problem is not None:
                    raise StorageError(str(self._problem)) from self._problem
                self._changed.wait()

    def wait(self, subscription: Subscription, timeout_s: float) -> bool:
        """Return True after a notification or a loss of the connection, False after *timeout_s*."""
        with self._changed:
            self._changed.wait_for(lambda: subscription.has_news, timeout_s)
            had_news, subscription.has_news = subscription.has_news, False
            return had_news

    def wake(self, subscription: Subscription) -> None:
        """End the present wait, or the next one."""
        with self._changed:
            subscription.has_news = True
            self._changed.notify_all()

    def leave(self, subscription: Subscription) -> None:
        """End a subscription. Idempotent."""
        with self._changed:
            left = self._subscriptions.get(subscription.channel, [])
            if subscription in left:
                left.remove(subscription)
                if not left:
                    del self._subscriptions[subscription.channel]
                self._wake()

    def _wake(self) -> None:
        """Have the reader look at the subscriptions; the caller holds the lock."""
        with suppress(BlockingIOError):  # it is full, so that the reader wakes anyway
            os.write(self._wake_write, b".")

    def _run(self) -> None:
        connection: Connection | None = None
        listening: set[str] = set()
        try:
            while (wanted := self._wanted()) is not None:
                try:
                    with explained(self._address):
                        if connection is None:
                            connection, listening = connect(self._address), set()
                            connection.add_notify_handler(self._notify)
                        _listen(connection, listening, wanted)
                        listening = wanted
                        self._mark_listening(listening)
                        if self._has_input(CHECK_S, connection.fileno()):
                            self._take_notifications(connection)
                except UncagedError as exc:
                    if connection is not None:
                        connection.close()
                        connection = None
                    self._lose(exc)
                    self._has_input(RETRY_S)
        except BaseException as exc:
            self._lose(StorageError(f"{self._address}: notifications ended: {exc!r}"))
            with self._changed:
                self._reader = None
            raise
        finally:
            if connection is not None:
                with suppress(psycopg.Error):
                    connection.close()

    def _wanted(self) -> set[str] | None:
        """Return the channels with subscriptions; None if there is none, and the reader ends."""
        with self._changed:
            if self._subscriptions:
                return set(self._subscriptions)
            self._reader = None  # under the lock: who subscribes after this starts another one
            os.close(self._wake_read)
            os.close(self._wake_write)
            return None

    def _has_input(self, timeout_s: float, *handles: int) -> bool:
        """Wait for one of some handles, a change of the subscriptions, or *timeout_s*; return
        False after a change of the subscriptions alone.
        """
        looked = select.poll()  # unlike `select`, it takes any number of a handle
        for handle in (self._wake_read, *handles):
            looked.register(handle, select.POLLIN)
        ready = {handle for handle, _ in looked.poll(timeout_s * 1000)}
        if self._wake_read in ready:
            os.read(self._wake_read, 65536)
        return ready != {self._wake_read}

    def _take_notifications(self, connection: Connection) -> None:
        connection.pgconn.consume_input()
        while (found := connection.pgconn.notifies()) is not None:
            self._take(found.relname.decode(), found.extra.decode())

    def _notify(self, found: psycopg.Notify) -> None:
        self._take(found.channel, found.payload)

    def _take(self, channel: str, payload: str) -> None:
        with self._changed:
            for one in self._subscriptions.get(channel, ()):
                one.has_news = True
                if payload:
                    one.payloads.append(payload)
            self._changed.notify_all()

    def _mark_listening(self, channels: set[str]) -> None:
        with self._changed:
            for channel in channels:
                for one in self._subscriptions.get(channel, ()):
                    one.is_listening = True
            self._changed.notify_all()

    def _lose(self, problem: UncagedError) -> None:
        with self._changed:
            self._failures += 1
            self._problem = problem
            for all_of_one in self._subscriptions.values():
                for one in all_of_one:
                    one.is_listening, one.has_news = False, True
            self._changed.notify_all()


class Subscription:
    """Subscription of one follower. is_listening: the connection listens to its channel.
    has_news: there was a notification, a `wake`, or a loss of the connection, since the last wait.
    payloads: those of notifications that have one, the newest.
    """

    def __init__(self, notifications: Notifications, channel: str) -> None:
        self.channel = channel
        self.is_listening = False
        self.has_news = False
        self.payloads: deque[str] = deque(maxlen=MOST_PAYLOADS)
        self._notifications = notifications

    def listen(self) -> None:
        """Wait until each later notification is listening of. Raises: as `connect`."""
        self._notifications.listen(self)

    def wait(self, timeout_s: float) -> bool:
        """Return True after a notification or a loss of the connection, False after *timeout_s*."""
        return self._notifications.wait(self, timeout_s)

    def wake(self) -> None:
        """End the present wait, or the next one, as a notification does."""
        self._notifications.wake(self)

    def close(self) -> None:
        """End the subscription. Idempotent; raises nothing."""
        self._notifications.leave(self)


def _listen(connection: Connection, listening: set[str], wanted: set[str]) -> None:
    for channel in wanted - listening:
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
    for channel in listening - wanted:
        connection.execute(sql.SQL("UNLISTEN {}").format(sql.Identifier(channel)))
