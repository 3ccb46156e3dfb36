"""Lockdown, inside the sandbox: the process gives up its rights before it reads a byte of the
bundle, and then verifies that they are gone.

Runs as compiled code sent by the parent, imports nothing of ours, and reaches the kernel through
``_ctypes`` alone (``ctypes`` would cost a quarter of the interpreter's start). Filter and numbers
come from the parent, which knows the machine.
"""

from __future__ import annotations

import _ctypes
import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION_3 = 0x20080522
SECCOMP_SET_MODE_FILTER = 1
NEW_LISTENER = 1 << 3
WAIT_KILLABLE = 1 << 5  # Linux 5.19: a signal does not interrupt a call that the listener has seen
EINVAL = 22
SIGKILL = 9
SOCK_DGRAM = 2


class _Long(_ctypes._SimpleCData):  # type: ignore[type-arg]  # generic in the stubs only
    _type_ = "l"


class _Pointer(_ctypes._SimpleCData):  # type: ignore[type-arg]  # generic in the stubs only
    _type_ = "z"


class _Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Long


_process = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: the process itself
_syscall = _Function(_ctypes.dlsym(_process, "syscall"))


def syscall(number: int, *arguments: int | bytes) -> int:
    """Call the kernel; bytes are passed by address.

    Raises:
        OSError: it refused.
    """
    passed = [item if isinstance(item, bytes) else _Long(item) for item in arguments]
    result = int(_syscall(_Long(number), *passed))
    if result < 0:
        code = _ctypes.get_errno()
        raise OSError(code, posix.strerror(code))
    return result


def follow_parent(settings: Mapping[str, Any]) -> None:
    """Die when the parent's thread does; bubblewrap's child (parent 0) follows bubblewrap."""
    syscall(settings["numbers"]["prctl"], PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    if settings["parent"] and posix.getppid() != settings["parent"]:
        posix._exit(0)  # the parent ended before the signal was set


def lock_down(settings: Mapping[str, Any], landlock: Mapping[str, Any] | None) -> int | None:
    """Set limits, no_new_privs and non-dumpable, then the file system, then the filter;
    irrevocable.

    Returns:
        If the settings ask for it, the listener descriptor of the filter.
    """
    numbers = settings["numbers"]
    syscall(numbers["prctl"], PR_SET_DUMPABLE, 0, 0, 0, 0)
    syscall(numbers["prctl"], PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for resource, soft, hard in settings["limits"]:
        pair = soft.to_bytes(8, "little") + hard.to_bytes(8, "little")
        syscall(numbers["prlimit64"], 0, resource, pair, 0)
    if landlock is not None:
        landlock["restrict"](syscall, numbers, settings["landlock"])
        if posix.geteuid() == 0:  # bubblewrap does this for its own
            syscall(
                numbers["capset"], CAPABILITY_VERSION_3.to_bytes(4, "little") + bytes(4), bytes(24)
            )
    if settings.get("watch"):
        return install_watched_filter(numbers["seccomp"], settings["filter"])
    install_filter(numbers["prctl"], settings["filter"])
    return None


def install_filter(prctl: int, program: bytes) -> None:
    """Install a seccomp program (8 bytes an instruction)."""
    syscall(prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, _program(program), 0, 0)


def install_watched_filter(seccomp: int, program: bytes) -> int:
    """Install a seccomp program with notifications; return the listener's descriptor."""
    try:
        return syscall(
            seccomp, SECCOMP_SET_MODE_FILTER, NEW_LISTENER | WAIT_KILLABLE, _program(program)
        )
    except OSError as error:
        if error.errno != EINVAL:
            raise
    return syscall(seccomp, SECCOMP_SET_MODE_FILTER, NEW_LISTENER, _program(program))


def _program(program: bytes) -> bytes:
    return (len(program) // 8).to_bytes(8, "little") + _address(program)  # struct sock_fprog


def _address(data: bytes) -> bytes:
    return bytes(_Pointer(data))


def send_descriptor(sendmsg: int, to: int, word: bytes, descriptor: int) -> None:
    """Send a word with a descriptor over a local socket."""
    part = _address(word) + len(word).to_bytes(8, "little")  # struct iovec
    # SOL_SOCKET, SCM_RIGHTS
    rights = (
        (20).to_bytes(8, "little")
        + (1).to_bytes(4, "little") * 2
        + descriptor.to_bytes(8, "little")
    )
    message = (
        bytes(16)
        + _address(part)
        + (1).to_bytes(8, "little")
        + _address(rights)
        + len(rights).to_bytes(8, "little")
        + bytes(8)
    )
    syscall(sendmsg, to, message, 0)


def remaining_access(doors: Mapping[str, Any]) -> list[str]:
    """Try to read, write, connect, make the calls that only the filter refuses, fork and exec;
    return what succeeded.
    """
    return [
        *_read(doors["read"]),
        *_write(doors["write"]),
        *_connect(doors["socket"]),
        *_call(doors["calls"]),
        *_fork(),
        *_exec(),
    ]


def _read(paths: list[str]) -> list[str]:
    found = []
    for path in paths:
        try:
            posix.close(posix.open(path, posix.O_RDONLY))
        except OSError:
            continue
        found.append(f"read {path}")
    return found


def _write(paths: list[str]) -> list[str]:
    found = []
    for path in paths:
        try:
            posix.close(posix.open(path, posix.O_WRONLY | posix.O_CREAT, 0o600))
        except OSError:
            continue
        posix.unlink(path)
        found.append(f"write {path}")
    return found


def _connect(number: int) -> list[str]:
    found = []
    for name, family in (("unix", 1), ("internet", 2), ("netlink", 16)):
        try:
            posix.close(syscall(number, family, SOCK_DGRAM, 0))
        except OSError:
            continue
        found.append(f"open an {name} socket")
    return found


def _call(numbers: Mapping[str, int]) -> list[str]:
    found = []
    for name, number in numbers.items():
        try:
            syscall(
                number,
                -1,
                0,
                -1,
                0,
                # no such descriptor, path or process: the call must fail, and its error number is
                # the
                # answer
            )
        except PermissionError:
            continue
        except OSError:
            pass
        found.append(name)
    return found


def _fork() -> list[str]:
    try:
        child = posix.fork()
    except OSError:
        return []
    if child == 0:
        posix._exit(0)
    posix.waitpid(child, 0)
    return ["fork"]


def _exec() -> list[str]:
    try:
        # the call must fail, and its error number is the answer
        posix.execv("/nonexistent/program", ["program"])
    except PermissionError:
        return []
    except OSError:
        return ["exec"]
