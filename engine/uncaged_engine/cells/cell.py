"""Client side of a bundle's sandbox process, over one pair of pipes.

The process is an adversary: one request at a time under one lock, a deadline for reading the
request and for writing the reply, and a reply that carries the request's slot and seq. Any other
output ends the process.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, NoReturn

from uncaged_bundles.errors import BundleError, SandboxUnavailable
from uncaged_bundles.records import dataclass

from ..journal.codec import CodecError, decode, encode
from ..journal.lines import MARK_BYTES
from ..sandbox.launch import EXIT_GRACE_MS, Launched, launch
from ..sandbox.mechanism import Mechanism
from ..sandbox.rlimits import cell_limits
from .frames import CHUNK_BYTES, batches, frame_of
from .reply import BundleReply

if TYPE_CHECKING:
    from uncaged_bundles.validation.validate import Bundle

_HEADER_BYTES = 256
_RUNNING_WORDS = frozenset({b"effect", b"return", b"raise"})
_WORDS = {
    "B": frozenset({b"ready", b"raise"}),
    "L": frozenset({b"locked", b"open"}),
    "D": frozenset({b"dropped"}),
}
Reason = Literal["deadline", "died", "protocol", "closed"]


def _do_nothing() -> None:
    """Ignore a slow bundle."""


class CellDied(Exception):
    """The sandbox process has ended.

    reason: how the request in flight ended it (deadline, died, protocol); closed: it had ended
    before the request was sent, so that the requesting thread is not the culprit. detail: exit
    status and last output.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"the sandbox process is gone ({reason}): {detail}")
        self.reason: Reason = reason
        self.detail = detail


@dataclass(slots=True)
class _Expected:
    """Request that a reply must belong to. seq: for a replay the highest one possible."""

    letter: str
    slot: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLimits:
    """Limits of one process, for all its threads together.

    slow_ms: how long an outcome waits for the bundle's next effect, to be flushed together with its
    intent: without it 16 threads cost 1.95 flushes a step, with these 5 ms 1.12. A deadline shorter
    than that is noticed late.
    """

    memory_bytes: int = 1 << 30
    cpu_s: int = 600
    answer_bytes: int = 8 << 20
    start_s: float = 20.0
    slow_ms: int = 5


class Cell:
    """One sandbox process with one bundle in it."""

    def __init__(self, launched: Launched, mechanism: str, limits: CellLimits) -> None:
        self.mechanism = mechanism
        self._launched = launched
        self._limits = limits
        self._slow_ms = limits.slow_ms
        self._slow_s = limits.slow_ms / 1000
        self._lock = threading.Lock()
        self._end_reason = ""  # empty while it lives
        self._answers = select.poll()
        self._answers.register(launched.answer_fd, select.POLLIN)
        self._poll = self._answers.poll  # bound once: it is called twice a step
        self._either = select.poll()
        self._either.register(launched.answer_fd, select.POLLIN)
        self._either.register(launched.request_fd, select.POLLOUT)

    @classmethod
    def start(
        cls,
        bundle: Bundle,
        mechanism: Mechanism | None,
        *,
        limits: CellLimits | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Cell:
        """Start a process for *bundle* and wait until it has compiled the bundle.

        Call this from a thread that outlives the cell: `--die-with-parent` ends the process with
        the thread that started it.

        Args:
            mechanism: may be None for a trusted bundle only, which gets a plain process.
            environment: for a trusted bundle's process.
        Raises:
            SandboxUnavailable: no sandbox could be set up, or its self-test failed.
            BundleError: the bundle does not compile.
        """
        confined = not bundle.trusted
        if confined and mechanism is None:
            raise _unconfined(bundle)
        cell = cls.spawn(mechanism if confined else None, limits=limits, environment=environment)
        cell.load(bundle)
        return cell

    @classmethod
    def spawn(
        cls,
        mechanism: Mechanism | None,
        *,
        limits: CellLimits | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Cell:
        """Start a process without waiting for it, so that a worker imports its modules meanwhile;
        `load` sends the bundle.
        """
        limits = limits or CellLimits()
        # the child caps its replies itself: a large effect is an error then, no broken protocol
        settings = {"answer_bytes": limits.answer_bytes - _HEADER_BYTES, "mark_bytes": MARK_BYTES}
        confined = cell_limits(memory_bytes=limits.memory_bytes, cpu_s=limits.cpu_s)
        launched = launch(mechanism, limits=confined, settings=settings, environment=environment)
        return cls(launched, "none" if mechanism is None else mechanism.name, limits)

    def load(self, bundle: Bundle) -> None:
        """Wait for the lock-down, send the bundle and wait until it is compiled.

        Raises:
            As `start`; the process has been ended then.
        """
        try:
            if self.mechanism == "none" and not bundle.trusted:
                raise _unconfined(bundle)
            self._begin(bundle, _source(bundle))
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Tell whether it was ended; a process that died by itself is noticed at the next
        request.
        """
        return not self._end_reason

    def ask(
        self, letter: str, slot: int, seq: int, body: bytes, *, deadline_s: float
    ) -> BundleReply:
        """Send one request, other than an outcome, and return the reply.

        Args:
            body: JSON, with or without a line feed at its end.
            deadline_s: for reading the request and answering it; the wait for the lock does not
                count.
        Raises:
            CellDied: the process ended, or was ended, instead.
        """
        frame = frame_of(letter, slot, seq, body)
        with self._lock:
            self._require_open()
            return self._exchange(
                [frame], _Expected(letter, slot, seq + (letter == "S")), deadline_s=deadline_s
            )

    def send_outcome(
        self,
        slot: int,
        seq: int,
        line: bytes,
        *,
        deadline_s: float,
        on_slow: Callable[[], None] = _do_nothing,
    ) -> BundleReply:
        """Send the outcome of step *seq* and return the reply: the one request that every step
        makes.

        Args:
            line: as the body for `ask`. deadline_s: the same.
            on_slow: called once if the lock or the reply takes longer than the limits' `slow_ms`,
                so that the outcome is flushed meanwhile.
        Raises:
            CellDied: as in `ask`.
        """
        # the sealed line is the message: live run and replay send the same bytes, encoded once
        frame = b"O %d %d %b" % (slot, seq, line)
        if frame.find(b"\n") != len(frame) - 1:
            frame = frame_of("O", slot, seq, line)
        if not self._lock.acquire(timeout=self._slow_s):
            on_slow()
            on_slow = _do_nothing
            self._lock.acquire()
        try:
            if self._end_reason:
                self._require_open()
            # A reply that is there before its request could be taken for the answer to it.
            if self._poll(0):
                self._fail("protocol", "it wrote without being asked")
            # the clock is read only if a system call has to wait
            end = 0.0
            try:
                sent = os.write(self._launched.request_fd, frame)
            except BlockingIOError:
                sent = 0
            except BrokenPipeError:
                self._fail("died", "it was gone before the request")
            if sent < len(frame):
                end = time.monotonic() + deadline_s
                self._send(frame[sent:], end)
            chunk: bytes | None = None
            if self._poll(self._slow_ms):
                chunk = os.read(self._launched.answer_fd, CHUNK_BYTES)
                # the usual reply is recognised by one comparison; `_parsed` is for all others
                usual = b"%d %d effect - " % (slot, seq + 1)
                if chunk.startswith(usual) and chunk.find(b"\n") == len(chunk) - 1:
                    return BundleReply("effect", chunk[len(usual) : -1], seq + 1)
                end = end or time.monotonic() + deadline_s
            else:
                end = self._extended(end, deadline_s, on_slow)
            return self._parsed(self._receive(end, chunk), _Expected("O", slot, seq + 1))
        except BaseException:  # a late reply would be taken for that of the next request
            self._end("it was ended by an earlier error")
            raise
        finally:
            self._lock.release()

    def _extended(self, end: float, deadline_s: float, on_slow: Callable[[], None]) -> float:
        """Call *on_slow*, and return the end of the bundle's time without the time of that call,
        which is ours. end: 0 if its time began with the wait that is over now.
        """
        before = time.monotonic()
        on_slow()
        return (end or before - self._slow_s + deadline_s) + time.monotonic() - before

    def replay(
        self,
        slot: int,
        start_body: bytes,
        lines: Iterable[bytes],
        *,
        deadline_s: float,
        meanwhile: Callable[[], None] | None = None,
    ) -> BundleReply:
        """Start a run and feed it the outcomes of its first effects, without a round trip for each.

        Args:
            lines: sealed step lines, step 1 first; a collection is streamed, other iterables are
                collected first.
            meanwhile: called after the request is written; its time does not count towards the
                deadline.
        Returns:
            The reply after the last outcome, with the digest of the effects before it.
        Raises:
            CellDied: as in `ask`.
        """
        # the child is silent until the last line, so that writing before reading cannot deadlock
        steps = lines if isinstance(lines, Collection) else list(lines)
        count = len(steps)
        frames = (
            b"O %d %d %b" % (slot, seq, line)
            if line.find(b"\n") == len(line) - 1
            else frame_of("O", slot, seq, line)
            for seq, line in enumerate(steps, 1)
        )
        with self._lock:
            self._require_open()
            chunks = batches(frame_of("P", slot, count, start_body), frames)
            return self._exchange(
                chunks, _Expected("P", slot, count + 1), deadline_s=deadline_s, meanwhile=meanwhile
            )

    def close(self) -> None:
        """End the process and reap it. Idempotent."""
        # after the request in flight: its thread gets its reply, or its own error
        with self._lock:
            self._end("it was closed")

    def _begin(self, bundle: Bundle, source: str) -> None:
        try:
            locked = self._exchange([], _Expected("L", 0, 0), deadline_s=self._limits.start_s)
        except CellDied as exc:
            raise SandboxUnavailable(
                f"the {self.mechanism} sandbox did not start: {exc.detail}"
            ) from exc
        # before the bundle's bytes are sent: what would escape is not there yet
        if locked.word != "locked":
            self.close()
            doors = locked.body[:1000].decode(errors="replace")
            raise SandboxUnavailable(
                f"the {self.mechanism} sandbox does not hold on this machine; still open: {doors}"
            )
        request = {"source": source, "name": f"{bundle.hash}.py", "trusted": bundle.trusted}
        try:
            reply = self.ask("B", 0, 0, encode(request).encode(), deadline_s=self._limits.start_s)
        except CellDied as exc:
            raise BundleError(
                f"bundle {bundle.hash}: compiling it ended the sandbox process: {exc.detail}"
            ) from exc
        if reply.word == "raise":
            self.close()
            raise BundleError(f"bundle {bundle.hash}: {_message(reply.body)}")

    def _require_open(self) -> None:
        if self._end_reason:
            raise CellDied("closed", self._end_reason)

    def _exchange(
        self,
        chunks: Iterable[bytes],
        expected: _Expected,
        *,
        deadline_s: float,
        meanwhile: Callable[[], None] | None = None,
    ) -> BundleReply:
        try:
            if chunks and self._poll(0):
                self._fail("protocol", "it wrote without being asked")
            end = time.monotonic() + deadline_s
            for chunk in chunks:
                self._send(chunk, end)
            if meanwhile is not None:
                before = time.monotonic()
                meanwhile()
                end += time.monotonic() - before
            return self._parsed(self._receive(end), expected)
        except BaseException:  # a late reply would be taken for that of the next request
            self._end("it was ended by an earlier error")
            raise

    def _send(self, data: bytes, end: float) -> None:
        fd = self._launched.request_fd
        sent = 0
        while sent < len(data):
            try:
                sent += os.write(fd, data[sent:] if sent else data)
            except BlockingIOError:
                # a process that writes while it reads would block both sides for ever
                ready = dict(self._either.poll(_remaining_ms(end)))
                if not ready:
                    self._fail("deadline", "it did not take the request in time")
                if ready.get(self._launched.answer_fd, 0) & select.POLLIN:
                    self._fail("protocol", "it answered before it had the whole request")
            except BrokenPipeError:
                self._fail("died", "it was gone before the request")

    def _receive(self, end: float, first: bytes | None = None) -> bytes:
        """Read one line, which must be all that is readable. first: a chunk of it that was read
        already; empty at the end of the pipe.
        """
        fd = self._launched.answer_fd
        received: list[bytes] = []
        size = 0
        while True:
            if first is None and not self._poll(_remaining_ms(end)):
                self._fail("deadline", "it did not answer in time")
            chunk, first = os.read(fd, CHUNK_BYTES) if first is None else first, None
            if not chunk:
                self._fail("died", "it ended instead of answering")
            received.append(chunk)
            size += len(chunk)
            at = chunk.find(b"\n")
            if at >= 0:
                if at != len(chunk) - 1:
                    self._fail("protocol", "it wrote more than one answer")
                return b"".join(received) if len(received) > 1 else chunk
            # while reading: a process that never ends its line must not fill the worker's memory
            if size > self._limits.answer_bytes:
                self._fail(
                    "protocol", f"its answer is longer than {self._limits.answer_bytes} bytes"
                )

    def _parsed(self, line: bytes, expected: _Expected) -> BundleReply:
        letter, slot, seq = expected.letter, expected.slot, expected.seq
        parts = line[:-1].split(b" ", 4)
        if len(parts) != 5:
            self._fail("protocol", f"its answer has no header: {line[:80]!r}")
        slot_text, seq_text, word, digest, body = parts
        if word not in _WORDS.get(letter, _RUNNING_WORDS) or slot_text != b"%d" % slot:
            self._fail(
                "protocol",
                f"its answer does not belong to the request {letter} of slot {slot}: {line[:80]!r}",
            )
        # a replay may end early, at a step that the child names; it is the only other seq possible
        ended_at = seq
        if seq_text != b"%d" % seq:
            if (
                letter != "P"
                or word == b"effect"
                or not seq_text.isdigit()
                or len(seq_text) > 9
                or not 1 <= int(seq_text) < seq
            ):
                self._fail("protocol", f"its answer is not about step {seq}: {line[:80]!r}")
            ended_at = int(seq_text)
        if len(digest) > 64 or not digest.isascii():
            self._fail("protocol", f"its answer has no digest: {line[:80]!r}")
        return BundleReply(word.decode(), body, ended_at, digest.decode())

    def _fail(self, reason: Reason, what: str) -> NoReturn:
        # one that is ending gets a moment, for its exit status; any other is killed now
        detail = self._end(what, grace_ms=EXIT_GRACE_MS if reason == "died" else 0)
        raise CellDied(reason, f"{what}; {detail}")

    def _end(self, why: str, *, grace_ms: int = 0) -> str:
        # the first reason is the cause; those that follow are its consequences
        if self._end_reason:
            return self._end_reason
        self._end_reason = why
        detail = self._launched.finish(grace_ms=grace_ms)
        self._end_reason = f"{why}; {detail}"
        return detail


def _unconfined(bundle: Bundle) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"bundle {bundle.hash} is not trusted, and no sandbox was chosen; install bubblewrap"
    )


def _source(bundle: Bundle) -> str:
    try:
        return bundle.source.decode()
    except UnicodeDecodeError as exc:
        raise BundleError(
            f"bundle {bundle.hash} is not UTF-8: byte {exc.start} is {bundle.source[exc.start]:#04x}"
        ) from exc


def _remaining_ms(end: float) -> float:
    return max(0.0, (end - time.monotonic()) * 1000)


def _message(body: bytes) -> str:
    """Format the error of a `raise` in one line."""
    try:
        error = decode(body)
    except CodecError:
        return "it raised an error that is no JSON"
    return (
        f"{error.get('type')}: {error.get('message')}"
        if isinstance(error, dict)
        else "it raised an error without a description"
    )
