"""Stage of a script's sandbox: the last code of ours, which gives up every right and becomes the
script.

With Landlock there is no process namespace that dies as a whole, so a supervisor stays outside the
script's sandbox: it adopts orphans, and when the script ends, or the engine says so or dies, it
ends them all. Runs as compiled code sent by the parent; imports nothing of ours.
"""

from __future__ import annotations

import posix
from _signal import SIG_DFL, SIGKILL, SIGPIPE, SIGTERM, SIGXFSZ, signal  # type: ignore[import-not-found]  # typeshed does not know it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import BufferedReader
    from typing import Any

PR_SET_SECUREBITS = 28
# capabilities stay with a change of user, and access(2), by which git looks, counts them
NO_SETUID_FIXUP = 1 << 2
PR_SET_CHILD_SUBREAPER = 36
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_READ_SEARCH = 2
NOT_STARTED = 127


class EndRequested(BaseException):
    """Request of the engine to end, or the engine's own end."""


def main(payload: Mapping[str, Any], reader: BufferedReader, status_fd: int) -> None:
    """Become the script, or write the error to the status pipe; ``ok`` means that the sandbox is in
    force.
    """
    reader.close()
    posix.set_inheritable(status_fd, False)
    settings = payload["settings"]
    lockdown = _load(payload["modules"]["lockdown"], "lockdown")
    landlock = (
        _load(payload["modules"]["landlock"], "landlock")
        if "landlock" in payload["modules"]
        else None
    )
    try:
        if landlock is not None and settings["supervise"]:
            supervise(settings, lockdown, landlock, status_fd)
        listener = confine(settings, lockdown, landlock)
        if listener is None:
            posix.write(status_fd, b"ok")
        else:
            lockdown["send_descriptor"](settings["numbers"]["sendmsg"], status_fd, b"ok", listener)
            posix.close(listener)
    except OSError as error:
        posix.write(status_fd, f"no{error}".encode(errors="replace"))
        posix._exit(NOT_STARTED)
    except LookupError as error:
        posix.write(status_fd, b"at" + error.args[0].encode(errors="surrogateescape"))
        posix._exit(NOT_STARTED)
    posix.close(status_fd)
    try:
        posix.execve(settings["program"], settings["argv"], settings["environment"])
    except OSError as error:
        posix.write(2, f"{settings['program']}: {error.strerror}\n".encode(errors="replace"))
        posix._exit(NOT_STARTED)


def _load(code: Any, name: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": name}
    exec(code, namespace)  # noqa: S102 - the engine's own code
    return namespace


def confine(
    settings: Mapping[str, Any], lockdown: Mapping[str, Any], landlock: Mapping[str, Any] | None
) -> int | None:
    """Change the user, set no_new_privs, limits, file system and filter; return the listener
    descriptor of the filter.
    """
    posix.umask(0o022)
    if settings["user"] is not None:
        _drop_privileges(
            *settings["user"],
            carry=settings["carry"],
            lockdown=lockdown,
            numbers=settings["numbers"],
        )
    posix.chdir(settings["directory"])
    for number in (SIGPIPE, SIGXFSZ, SIGTERM):
        signal(number, SIG_DFL)  # the interpreter ignores the first two, and exec would keep that
    check_identities(settings["identities"])
    listener: int | None = lockdown["lock_down"](settings, landlock)
    return listener


def check_identities(identities: Mapping[str, tuple[int, int]]) -> None:
    """Compare mounted objects with granted ones: nothing of the script runs yet, and a mount stays
    with its object.

    Under Landlock, where nothing is mounted, `landlock.restrict` compares each object that it opens
    for a rule.

    Raises:
        LookupError: a path is another object; names the path.
    """
    for path, identity in identities.items():
        try:
            found = posix.stat(path)
        except PermissionError:
            continue  # closed to the script, too
        except OSError:
            raise LookupError(path) from None
        if (found.st_dev, found.st_ino) != identity:
            raise LookupError(path)


def _drop_privileges(
    uid: int, gid: int, *, carry: bool, lockdown: Mapping[str, Any], numbers: Mapping[str, int]
) -> None:
    """Give up root irrevocably.

    Args:
        carry: keep the one capability to pass through directories that are closed to others;
            Landlock says which files can be read.
    """
    syscall = lockdown["syscall"]
    if carry:
        syscall(numbers["prctl"], PR_SET_SECUREBITS, NO_SETUID_FIXUP, 0, 0, 0)
    syscall(numbers["setgroups"], 0, 0)
    syscall(numbers["setresgid"], gid, gid, gid)
    syscall(numbers["setresuid"], uid, uid, uid)
    if carry:
        bit = (1 << CAP_DAC_READ_SEARCH).to_bytes(4, "little")
        header = lockdown["CAPABILITY_VERSION_3"].to_bytes(4, "little") + bytes(4)
        syscall(numbers["capset"], header, bit * 3 + bytes(12))
        syscall(numbers["prctl"], PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0)


def supervise(
    settings: Mapping[str, Any],
    lockdown: Mapping[str, Any],
    landlock: Mapping[str, Any],
    status_fd: int,
) -> None:
    """Return in a child that becomes the script; the supervisor itself never returns."""
    syscall, numbers = lockdown["syscall"], settings["numbers"]
    signal(SIGTERM, _end)
    syscall(numbers["prctl"], lockdown["PR_SET_PDEATHSIG"], int(SIGTERM), 0, 0, 0)
    if posix.getppid() != settings["parent"]:
        posix._exit(NOT_STARTED)
    syscall(numbers["prctl"], PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    syscall(numbers["prctl"], lockdown["PR_SET_NO_NEW_PRIVS"], 1, 0, 0, 0)
    # From here on signals of this process reach only its own processes: that makes the mass kill
    # below safe.
    landlock["restrict"](
        syscall,
        numbers,
        {"abi": settings["landlock"]["abi"], "files": 0, "network": 0, "scopes": 0b10, "rules": ()},
    )
    outside = settings["parent"]
    child = posix.fork()
    if child == 0:
        return
    code = NOT_STARTED
    try:
        posix.close(status_fd)
        for fd in (0, 1):
            posix.close(fd)
        code = _wait_for(child)
    except EndRequested:
        code = 128 + SIGTERM
    finally:
        signal(SIGTERM, SIG_DFL)
        end_all(outside)
        try:
            remove(settings["private"])  # the engine may have ended
        finally:
            posix._exit(code)


def remove(directory: str) -> None:
    """Remove a directory of the script's with its content; links are not followed, and no process
    is left that could make one.
    """
    for entry in list(posix.scandir(directory)):
        if entry.is_dir(follow_symlinks=False):
            posix.chmod(entry.path, 0o700)
            remove(entry.path)
        else:
            posix.unlink(entry.path)
    posix.rmdir(directory)


def _end(*_: object) -> None:
    raise EndRequested


def _wait_for(child: int) -> int:
    while True:
        pid, status = posix.waitpid(-1, 0)
        if pid == child:
            return (
                posix.WEXITSTATUS(status)
                if posix.WIFEXITED(status)
                else 128 + posix.WTERMSIG(status)
            )


def end_all(outside: int) -> None:
    """Kill all started processes, however often they fork, and reap them."""
    while True:
        if _is_scoped(outside):
            _kill(-1)  # one atomic kill, so that nothing can fork between two
        else:
            for pid in children():
                _kill(pid)
        try:
            posix.waitpid(-1, 0)
        except ChildProcessError:
            return


def _kill(pid: int) -> None:
    try:
        posix.kill(pid, SIGKILL)
    except ProcessLookupError:
        return


def _is_scoped(outside: int) -> bool:
    """Return whether the kernel refuses signals to processes outside of the Landlock scope; tested
    with signal 0, which has no effect.
    """
    if posix.getppid() != outside:
        return False
    try:
        posix.kill(outside, 0)
    except PermissionError:
        return True
    return False


def children() -> list[int]:
    """Return the process ids of our children, orphans included."""
    me, found = posix.getpid(), []
    for name in posix.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - pathlib is not imported here
                    if int(file.read().rpartition(b")")[2].split()[1]) == me:
                        found.append(int(name))
            except OSError:
                continue
    return found
