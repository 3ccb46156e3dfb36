"""Watch on a script's calls that the sandbox may refuse, by seccomp notifications: the kernel
reports each before it goes on.

The report changes nothing: enforcement is elsewhere, and a script that rewrites a path while it is
read here deceives only the report. The cost is about 10 microseconds a call, for calls that name a
path from the current directory or the root; paths below an open directory, as in a walk of a tree,
are not shown.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import ipaddress
import os
import select
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Literal

from .scratch import ScratchUser
from .syscalls import number_of

Kind = Literal["execute", "open", "write", "look", "space", "reach"]
"""space: free space of a file system. reach: an address of the network."""

MOST = 2_000
PATH_BYTES = 4096
PAGE_BYTES = 4096
CLOSE_TIMEOUT_S = 10.0
_RECEIVE, _SEND, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082104
_SYNCHRONOUS = 1  # Linux 6.6: the engine's thread wakes where the script's process waits
_CONTINUE = 1
_REQUEST, _REPLY = struct.Struct("<QIIiIQ6Q"), struct.Struct("<QqiI")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CAP_SYS_PTRACE = 19

_CALLS: Mapping[str, tuple[Kind, int, int | None]] = {
    # name: kind of attempt, which argument is the path or address, which one has flags or a length
    "execve": ("execute", 0, None),
    "execveat": ("execute", 1, None),
    "open": ("open", 0, 1),
    "openat": ("open", 1, 2),
    **dict.fromkeys(("creat", "truncate", "mkdir"), ("write", 0, None)),
    "mkdirat": ("write", 1, None),
    **dict.fromkeys(("stat", "lstat", "access", "readlink", "chdir"), ("look", 0, None)),
    **dict.fromkeys(
        ("newfstatat", "statx", "faccessat", "faccessat2", "readlinkat"), ("look", 1, None)
    ),
    "statfs": ("space", 0, None),
    "connect": ("reach", 1, 2),
    "sendto": ("reach", 4, 5),
    "socket": ("reach", 0, None),
}
ANY_ADDRESS = "any address"
SOCKET_TABLES = "the table of sockets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Attempt of a script. what: an absolute path, an address with its port, `ANY_ADDRESS` or
    `SOCKET_TABLES`.
    """

    kind: Kind
    what: str


class Interest(IntEnum):
    """Relevance of an attempt: none, only if a path leads elsewhere than it says, or certain. Of
    each, `MOST` are kept.
    """

    NONE = 0
    LOW = 1
    HIGH = 2


class Watch:
    """Observer of one script's calls in a thread of its own, until the script's last process has
    ended.
    """

    def __init__(
        self,
        listener: int,
        *,
        machine: str,
        user: ScratchUser,
        interest: Callable[[Kind, str], Interest],
        sockets: bool,
    ) -> None:
        """Start the thread.

        Args:
            listener: the listener descriptor of the script's filter; owned from here on.
            interest: decides quickly how relevant an attempt at a path is.
            sockets: internet sockets are allowed; if not, this thread refuses them.
        """
        self._listener = listener
        self._calls = {
            number: call
            for name, call in _CALLS.items()
            if (number := number_of(name, machine)) is not None
        }
        self._socket_number = number_of("socket", machine)
        self._user = user
        self._interest = interest
        self._sockets = sockets
        self._attempts: dict[Attempt, None] = {}
        self._capacity = {Interest.NONE: 0, Interest.LOW: MOST, Interest.HIGH: MOST}
        self._error: BaseException | None = None
        self._wake, self._woken = os.pipe()
        with suppress(OSError):
            fcntl.ioctl(listener, _SET_FLAGS, _SYNCHRONOUS)
        self._thread = threading.Thread(target=self._run, name="script watch", daemon=True)
        self._thread.start()

    def finish(self) -> tuple[Attempt, ...]:
        """Stop, after the script's end, and return its attempts in order."""
        os.close(self._wake)
        self._thread.join(CLOSE_TIMEOUT_S)
        if self._error is not None:
            raise self._error
        return tuple(self._attempts)

    def _run(self) -> None:
        try:
            _become_able_to_read(self._user)
            read = _reader()
            poll = select.poll()
            poll.register(self._listener, select.POLLIN)
            poll.register(self._woken, select.POLLIN)
            while True:
                ready = dict(poll.poll())
                if ready.get(self._listener, 0) & select.POLLIN:
                    self._answer(read)
                elif ready:
                    return  # no process of the script is left, or none waits
        except BaseException as exc:
            self._error = exc
        finally:
            os.close(self._listener)
            os.close(self._woken)

    def _answer(self, read: Read) -> None:
        request = bytearray(_REQUEST.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, request)
        except OSError as exc:
            if exc.errno in (errno.ENOENT, errno.EINTR):
                return  # the process was killed meanwhile
            raise
        identity, pid, _, number, _, _, *arguments = _REQUEST.unpack(request)
        refused = number == self._socket_number and not self._sockets
        try:
            self._note(_Call(number=number, pid=pid, arguments=tuple(arguments), read=read))
        finally:
            reply = (
                _REPLY.pack(identity, 0, -errno.EPERM, 0)
                if refused
                else _REPLY.pack(identity, 0, 0, _CONTINUE)
            )
            with suppress(FileNotFoundError):  # the process was killed meanwhile
                fcntl.ioctl(self._listener, _SEND, bytearray(reply))

    def _note(self, call: _Call) -> None:
        kind, place, more = self._calls[call.number]
        path = what = None
        if kind == "reach":
            what = self._address(call, place, more)
            if what is not None and what.startswith("/"):
                kind, path = "open", what
        else:
            path = call.text(place)
            if kind == "open" and more is not None:
                flags = call.arguments[more]
                kind = "write" if flags & _WRITING else "look" if flags & os.O_PATH else kind
        if path is not None:
            what = _absolute(call.pid, kind, path)
        interest = (
            Interest.NONE
            if what is None
            else self._interest(kind, what)
            if path is not None
            else Interest.HIGH
        )
        if (
            what is not None
            and self._capacity[interest]
            and (attempt := Attempt(kind=kind, what=what)) not in self._attempts
        ):
            self._attempts[attempt] = None
            self._capacity[interest] -= 1

    def _address(self, call: _Call, place: int, more: int | None) -> str | None:
        """Return the target of a socket: an address with its port, or a path; None if it cannot be
        refused.
        """
        if more is None:
            return SOCKET_TABLES if self._sockets else ANY_ADDRESS
        data = call.read(call.pid, call.arguments[place], min(call.arguments[more], 128))
        family = int.from_bytes(data[:2], sys.byteorder)
        if family == socket.AF_UNIX:
            return os.fsdecode(data[2:].partition(b"\0")[0]) or None
        if family not in (socket.AF_INET, socket.AF_INET6) or len(data) < (
            8 if family == socket.AF_INET else 24
        ):
            return None
        port = int.from_bytes(data[2:4], "big")
        address = ipaddress.ip_address(data[4:8] if family == socket.AF_INET else data[8:24])
        if (address.is_loopback or address.is_unspecified) and port in listening_ports(
            f"/proc/{call.pid}/net"
        ):
            return None  # the script's own, or the proxy
        return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


Read = Callable[[int, int, int], bytes]
"""Reads the memory of a process: process id, address, count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """Call that waits for the decision."""

    number: int
    pid: int
    arguments: tuple[int, ...]
    read: Read

    def text(self, place: int) -> str | None:
        """Return the path that an argument points to; None if it is none, or cannot be read."""
        address, found = self.arguments[place], b""
        while len(found) < PATH_BYTES:
            start = address + len(found)
            # the next page may not be mapped
            chunk = self.read(self.pid, start, min(256, PAGE_BYTES - start % PAGE_BYTES))
            text, end, _ = chunk.partition(b"\0")
            found += text
            if end:
                return os.fsdecode(found) or None
            if not chunk:
                return None
        return None


def _absolute(pid: int, kind: Kind, path: str) -> str | None:
    """Return a path from the root; None if it cannot lead to hidden things."""
    if not path.startswith("/"):
        if kind in ("look", "space") and ".." not in path:
            return None  # the script sees that directory
        try:
            path = f"{Path(f'/proc/{pid}/cwd').readlink()}/{path}"
        except OSError:
            return None
    return os.path.normpath(path) if "/." in path or "//" in path or path[-1] == "/" else path


def listening_ports(tables: str) -> frozenset[int]:
    """Return the ports with a listener, from the kernel's tables in a directory such as
    ``/proc/net``.
    """
    return frozenset(_ports(tables))


def _ports(tables: str) -> Iterator[int]:
    for name, states in (("tcp", ("0A",)), ("tcp6", ("0A",)), ("udp", ("07",)), ("udp6", ("07",))):
        try:
            lines = Path(tables, name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state, *_ = line.split()
            if state in states:
                yield int(local.rpartition(":")[2], 16)


def _reader() -> Read:
    """Return the function that reads memory; its bytes are empty if the process has ended or access
    is refused.
    """
    import ctypes  # only for scripts

    buffer = ctypes.create_string_buffer(PATH_BYTES)
    local, remote = bytearray(16), bytearray(16)
    vectors = [(ctypes.c_char * 16).from_buffer(vector) for vector in (local, remote)]
    copy = ctypes.PyDLL(None).process_vm_readv
    copy.restype = ctypes.c_ssize_t
    pair = struct.Struct("<QQ")

    def read(pid: int, address: int, count: int) -> bytes:
        pair.pack_into(local, 0, ctypes.addressof(buffer), count)
        pair.pack_into(remote, 0, address, count)
        done = int(copy(pid, vectors[0], 1, vectors[1], 1, 0))
        return buffer.raw[:done] if done > 0 else b""

    return read


def _become_able_to_read(user: ScratchUser) -> None:
    """Change this thread to the script's user, as root without the capability to inspect processes,
    as in many containers.
    """
    if os.geteuid() != 0 or _may_inspect():
        return
    import ctypes

    library, machine = ctypes.CDLL(None, use_errno=True), os.uname().machine
    # by number: the C library would change all threads
    for name, number in (("setresgid", user.gid), ("setresuid", user.uid)):
        if library.syscall(number_of(name, machine), number, number, number):
            raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


@functools.cache
def _may_inspect() -> bool:
    """Return whether the engine has the capability to inspect processes."""
    status = Path("/proc/self/status").read_text()
    effective = next(line for line in status.splitlines() if line.startswith("CapEff")).split()[1]
    return bool(int(effective, 16) >> _CAP_SYS_PTRACE & 1)
