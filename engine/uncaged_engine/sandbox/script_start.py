"""Start of a script: gathers what its sandbox needs, starts the stage in it, and returns when the
script begins.
"""

from __future__ import annotations

import json
import os
import pwd
import select
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from uncaged_bundles.errors import RefusedError, SandboxUnavailable

from . import bubblewrap, seccomp
from .bounds import DEFAULT_PATH, ScriptBounds, ScriptView, find_program, view_of
from .closed import shown_by_entries, shown_by_rights
from .hidden import OWN, Walls
from .interpreter import find_interpreter
from .launch import kill_group
from .mechanism import INSTALL, SCRIPT_ABI, Mechanism, known_landlock_abi
from .mounted import Hold
from .payload import LOADER, call_numbers, make_payload
from .reach import carries, execute_landlock, script_landlock
from .rlimits import count_tasks, script_limits
from .scratch import ScratchUser, scratch_user
from .script_process import ScriptProcess
from .watch import Watch

START_TIMEOUT_S = 20.0
OVERFLOW_UID = 65534


def start_script(
    argv: Sequence[str],
    bounds: ScriptBounds,
    *,
    mechanism: Mechanism,
    cwd: Path | None,
    environment: Mapping[str, str],
    user: ScratchUser | None = None,
    prepare: Callable[[int], None] | None = None,
    watch_path: str | None = None,
) -> ScriptProcess:
    """Start a script and return when its sandbox is in force. Its time limit is not watched here;
    all other bounds are.

    Args:
        cwd: None: the private directory.
        watch_path: report the script's refusals on this machine, with programs on this PATH; None:
            its calls are not watched.
        prepare: called with bubblewrap's process 1, whose namespaces exist, before it gets its
            command; never called for Landlock.
    Raises:
        SandboxUnavailable, FileNotFoundError, RefusedError: as in `run_script`.
    """
    if not mechanism.holds_scripts:
        reason = f"Landlock {mechanism.landlock_abi} does not hold scripts; version {SCRIPT_ABI} does (Linux 6.12)"
        raise SandboxUnavailable(reason, remedy=INSTALL)
    program = find_program(argv[0], environment, cwd or Path("/"))
    if program is None:
        raise FileNotFoundError(
            f"no program {argv[0]!r} on PATH {environment.get('PATH', DEFAULT_PATH)!r}"
        )
    view = view_of(bounds, program)
    private = private_directory() if mechanism.name == "landlock" else None
    user = user or scratch_user(cwd or Path("/"))
    try:
        if private is not None and os.geteuid() == 0:
            os.chown(private, user.uid, user.gid)
        shown, payload = _payload(
            argv,
            program,
            view,
            bounds,
            mechanism=mechanism,
            cwd=cwd,
            environment=environment,
            user=user,
            private=private,
            watch=watch_path is not None,
        )
        with Hold(
            _accounts(user), bubblewrap.places_of(shown, find_interpreter()), shown.links
        ) as hold:
            process, tree_fd, listener = _start(
                mechanism, shown, bounds, hold=hold, payload=payload, prepare=prepare
            )
    except BaseException:
        if private is not None:
            shutil.rmtree(private, ignore_errors=True)  # the supervisor removes it, too
        raise
    if listener is None or watch_path is None:
        return ScriptProcess(process, tree_fd=tree_fd, private=private)
    stage = find_interpreter()
    own = (
        (*OWN, *map(str, (stage.executable, *stage.libraries, *stage.stdlib, *stage.files)))
        if private is None
        else (str(private),)
    )
    walls = Walls(
        view=view,
        own=own,
        mounted=private is None,
        shared_network=bounds.network,
        only_listed=private is not None or bool(known_landlock_abi(mechanism.machine)),
        script_path=environment.get("PATH", DEFAULT_PATH),
        machine_path=watch_path,
    )
    sockets = private is None or bounds.network
    watch = Watch(
        listener, machine=mechanism.machine, user=user, interest=walls.interest(), sockets=sockets
    )
    return ScriptProcess(
        process, tree_fd=tree_fd, private=private, refusals=lambda: walls.refusals(watch.finish())
    )


def private_directory() -> Path:
    """Make a directory that every user can reach; the caller removes it."""
    return Path(tempfile.mkdtemp(prefix="uncaged-script-", dir="/tmp"))


def _payload(
    argv: Sequence[str],
    program: Path,
    view: ScriptView,
    bounds: ScriptBounds,
    *,
    mechanism: Mechanism,
    cwd: Path | None,
    environment: Mapping[str, str],
    user: ScratchUser,
    private: Path | None,
    watch: bool,
) -> tuple[ScriptView, bytes]:
    """Return the view with closed directories opened, and the stage's payload: program, user, and
    sandbox settings.
    """
    root = os.geteuid() == 0
    home = str(private or "/tmp")  # noqa: S108 - a private one, inside
    directory = (
        cwd
        or private
        or Path(home if {*view.read, *view.write} & {Path(home), Path("/")} else bubblewrap.SCRATCH)
    )
    others = 0 if root or mechanism.name == "bubblewrap" else count_tasks(user.uid)
    carry = root and private is not None and carries(view, program, directory, bounds.read, user)
    known = dict(bounds.identities)
    if private is None and root:
        view, known = shown_by_entries(view, bounds.read, user, known)
    elif private is not None and (carry or view.hidden):
        view, known = shown_by_rights(view, bounds.read, user if carry else None, known)
    identities = {str(path): identity for path, identity in known.items()}
    settings: dict[str, object] = {
        "numbers": call_numbers(mechanism.machine),
        "parent": os.getpid(),
        "program": str(program),
        "argv": list(argv),
        "environment": {"HOME": home, "TMPDIR": home, "PATH": DEFAULT_PATH, **environment},
        "directory": str(directory),
        "user": (user.uid, user.gid) if root else None,
        "identities": identities,
        "carry": carry,
        "supervise": private is not None,
        "watch": watch,
        "filter": seccomp.script_filter(
            network=bounds.network,
            mounted=mechanism.name == "bubblewrap",
            watch=watch,
            machine=mechanism.machine,
        ),
        "limits": script_limits(
            memory_bytes=bounds.memory_bytes,
            cpu_s=bounds.cpu_s,
            file_bytes=bounds.file_bytes,
            tasks=bounds.processes + others + 1,
        ),
    }
    modules = ["lockdown"]
    if private is not None:
        modules.append("landlock")
        settings["private"] = str(private)
        walls = script_landlock(view, private, network=bounds.network, abi=mechanism.landlock_abi)
        settings["landlock"] = {**walls, "identities": identities}
    elif bounds.executables is not None and (abi := known_landlock_abi(mechanism.machine)):
        modules.append("landlock")
        settings["landlock"] = execute_landlock(view, abi=abi)
    return view, make_payload("stage", modules, settings)


def _start(
    mechanism: Mechanism,
    view: ScriptView,
    bounds: ScriptBounds,
    *,
    hold: Hold,
    payload: bytes,
    prepare: Callable[[int], None] | None,
) -> tuple[subprocess.Popen[bytes], int | None, int | None]:
    """Start the stage and wait until it reports that the sandbox is in force.

    Returns:
        The process, for bubblewrap a descriptor of the process whose end ends all others, and if
        the script is watched, the listener descriptor of its filter.
    """
    payload_read, payload_write = os.pipe()
    status_read, status_write = (end.detach() for end in socket.socketpair())
    info_read, info_write = os.pipe()
    passed = (payload_read, status_write, info_write, hold.read_fd)
    try:
        process = _begin(_command(mechanism, view, bounds, passed, hold=hold), passed)
    except SandboxUnavailable:
        for fd in (payload_write, status_read, info_read):
            os.close(fd)
        raise
    finally:
        for fd in passed:
            os.close(fd)
    with (
        socket.socket(fileno=status_read) as status,
        os.fdopen(info_read, "rb", buffering=0) as info,
    ):
        # before the payload, so that it cannot have ended yet
        first = _process_1(info.fileno()) if mechanism.program is not None else None
        tree_fd = None
        if first is not None:
            with suppress(ProcessLookupError):  # the process has ended; its error is read below
                tree_fd = os.pidfd_open(first)
        try:
            if tree_fd is not None and first is not None:
                hold.check(first, START_TIMEOUT_S)
                if prepare is not None:
                    prepare(first)
        except BaseException:
            for fd in (payload_write, *(() if tree_fd is None else (tree_fd,))):
                os.close(fd)
            kill_group(process)
            process.communicate()
            raise
        hold.release()
        with suppress(BrokenPipeError), os.fdopen(payload_write, "wb", buffering=0) as pipe:
            pipe.write(payload)
        word, listener = _receive_within(status, START_TIMEOUT_S)
    if word == b"ok":
        return process, tree_fd, listener
    if tree_fd is not None:
        os.close(tree_fd)
    kill_group(process)
    _, complaint = process.communicate()
    if word.startswith(b"at"):
        raise RefusedError(
            f"the granted path {os.fsdecode(word[2:])!r} was replaced by something else just now; nothing was run"
        )
    why = (
        word[2:].decode(errors="replace")
        or complaint.decode(errors="replace").strip()[:1000]
        or "it did not start in time"
    )
    raise SandboxUnavailable(f"the {mechanism.name} sandbox for scripts does not work here: {why}")


def _begin(command: list[str], passed: tuple[int, ...]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=passed,
            env=bubblewrap.ENVIRONMENT,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
    except OSError as exc:
        raise SandboxUnavailable(f"a script's sandbox cannot be started: {exc}") from exc


def _command(
    mechanism: Mechanism,
    view: ScriptView,
    bounds: ScriptBounds,
    passed: tuple[int, ...],
    *,
    hold: Hold,
) -> list[str]:
    payload, status, info, accounts = passed
    interpreter = find_interpreter()
    stage = [
        str(interpreter.executable),
        *bubblewrap.PYTHON_FLAGS,
        "-c",
        LOADER,
        str(payload),
        str(status),
    ]
    if mechanism.program is None:
        return stage
    return bubblewrap.script_command(
        mechanism.program,
        view,
        disable_userns=mechanism.disable_userns,
        network=bounds.network,
        root=os.geteuid() == 0,
        temporary_bytes=bounds.scratch_bytes,
        accounts_fd=accounts if hold.mounts_accounts else None,
        info_fd=info,
        places=hold.places,
        arguments=stage,
    )


def _process_1(info_fd: int) -> int | None:
    """Return bubblewrap's process 1, which cannot end before it gets its command."""
    text = b""
    while b"}" not in text:
        more = _read_within(info_fd, START_TIMEOUT_S)
        if not more:
            return None  # bubblewrap failed; its error is read later
        text += more
    return int(json.loads(text)["child-pid"])


def _read_within(fd: int, timeout_s: float) -> bytes:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return os.read(fd, 4096) if poll.poll(timeout_s * 1000) else b""


def _receive_within(status: socket.socket, timeout_s: float) -> tuple[bytes, int | None]:
    """Receive a word with its descriptor; nothing at the timeout."""
    status.settimeout(timeout_s)
    try:
        word, descriptors, _, _ = socket.recv_fds(status, 4096, 1)
    except (TimeoutError, ConnectionError):
        return b"", None
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return word, descriptors[0] if descriptors else None


def _accounts(user: ScratchUser) -> bytes:
    """Return an /etc/passwd of one user; as an ordinary user with the name that person has.

    In the user namespace of an ordinary user's bubblewrap the kernel shows every other owner as the
    overflow user, so that one is named for what it means.
    """
    name, others = "script", ""
    if os.geteuid() != 0:
        with suppress(KeyError):
            name = pwd.getpwuid(user.uid).pw_name
        if user.uid != OVERFLOW_UID:
            others = f"other-user:x:{OVERFLOW_UID}:{OVERFLOW_UID}::/:/bin/false\n"
    return f"{name}:x:{user.uid}:{user.gid}::/tmp:/bin/sh\n{others}".encode()
