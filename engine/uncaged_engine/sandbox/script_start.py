"""Start of a script: checks its request, starts the stage in a sandbox, and returns when the script
begins.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from uncaged_bundles.errors import SandboxUnavailable
from uncaged_bundles.records import dataclass

from . import bubblewrap, seccomp
from .bounds import DEFAULT_PATH, ScriptBounds, ScriptView, find_program, view_of
from .closed import shown_by_entries, shown_by_rights
from .handshake import start_stage
from .hidden import OWN, RefusalFinder
from .interpreter import find_interpreter
from .mechanism import INSTALL, SCRIPT_ABI, Mechanism, known_landlock_abi
from .payload import call_numbers, make_payload
from .reach import execute_landlock, needs_capability, script_landlock
from .rlimits import count_tasks, script_limits
from .scratch import ScratchUser, scratch_user
from .script_process import Refusals, ScriptProcess
from .watch import Watch


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
    program = _program(argv[0], mechanism, environment, cwd)
    request = _Request(
        argv=argv,
        program=program,
        view=view_of(bounds, program),
        bounds=bounds,
        mechanism=mechanism,
        cwd=cwd,
        environment=environment,
        user=user or scratch_user(cwd or Path("/")),
        private=private_directory() if mechanism.name == "landlock" else None,
        watched=watch_path is not None,
    )
    try:
        if request.private is not None and os.geteuid() == 0:
            os.chown(request.private, request.user.uid, request.user.gid)
        view, payload = request.prepared()
        script, listener = start_stage(
            mechanism, view, bounds, user=request.user, payload=payload, prepare=prepare
        )
    except BaseException:
        if request.private is not None:
            shutil.rmtree(request.private, ignore_errors=True)  # the supervisor removes it, too
        raise
    script.private = request.private
    if listener is not None and watch_path is not None:
        script.watch = _watch(request, listener, watch_path)
    return script


def private_directory() -> Path:
    """Make a directory that every user can reach; the caller removes it."""
    return Path(tempfile.mkdtemp(prefix="uncaged-script-", dir="/tmp"))


def _program(
    name: str, mechanism: Mechanism, environment: Mapping[str, str], cwd: Path | None
) -> Path:
    """Find the script's program, after a check that the mechanism can hold scripts."""
    if not mechanism.holds_scripts:
        reason = f"Landlock {mechanism.landlock_abi} does not hold scripts; version {SCRIPT_ABI} does (Linux 6.12)"
        raise SandboxUnavailable(reason, remedy=INSTALL)
    program = find_program(name, environment, cwd or Path("/"))
    if program is None:
        raise FileNotFoundError(
            f"no program {name!r} on PATH {environment.get('PATH', DEFAULT_PATH)!r}"
        )
    return program


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """Arguments of one start, checked. private: a directory for HOME and TMPDIR under Landlock;
    None under bubblewrap, which makes one inside.
    """

    argv: Sequence[str]
    program: Path
    view: ScriptView
    bounds: ScriptBounds
    mechanism: Mechanism
    cwd: Path | None
    environment: Mapping[str, str]
    user: ScratchUser
    private: Path | None
    watched: bool

    def prepared(self) -> tuple[ScriptView, bytes]:
        """Return the view with closed directories opened, and the stage's payload: program, user,
        and sandbox settings.
        """
        root = os.geteuid() == 0
        carry = (
            root
            and self.private is not None
            and needs_capability(
                self.view, self.program, self._directory, self.bounds.read, self.user
            )
        )
        view, known = self.view, dict(self.bounds.identities)
        if self.private is None and root:
            view, known = shown_by_entries(view, self.bounds.read, self.user, known)
        elif self.private is not None and (carry or view.hidden):
            view, known = shown_by_rights(
                view, self.bounds.read, self.user if carry else None, known
            )
        identities = {str(path): identity for path, identity in known.items()}
        settings = self._settings(root) | {"identities": identities, "carry": carry}
        modules = ["lockdown"]
        landlock = self._landlock(view)
        if landlock is not None:
            modules.append("landlock")
            settings["landlock"] = landlock
        if landlock is not None and self.private is not None:
            settings["private"] = str(self.private)
            settings["landlock"] = {**landlock, "identities": identities}
        return view, make_payload("stage", modules, settings)

    @property
    def _home(self) -> str:
        return str(self.private or "/tmp")  # noqa: S108 - a private one, inside

    @property
    def _directory(self) -> Path:
        """Return the working directory; without another an empty one, unless /tmp is granted."""
        if self.cwd is not None or self.private is not None:
            return self.cwd or Path(self._home)
        shared = {*self.view.read, *self.view.write} & {Path(self._home), Path("/")}
        return Path(self._home if shared else bubblewrap.SCRATCH)

    def _settings(self, root: bool) -> dict[str, object]:
        """Return the settings of the stage that do not depend on the view."""
        mechanism, bounds, home = self.mechanism, self.bounds, self._home
        mounted = mechanism.name == "bubblewrap"
        others = 0 if root or mounted else count_tasks(self.user.uid)
        return {
            "numbers": call_numbers(mechanism.machine),
            "parent": os.getpid(),
            "program": str(self.program),
            "argv": list(self.argv),
            "environment": {
                "HOME": home,
                "TMPDIR": home,
                "PATH": DEFAULT_PATH,
                **self.environment,
            },
            "directory": str(self._directory),
            "user": (self.user.uid, self.user.gid) if root else None,
            "supervise": self.private is not None,
            "watch": self.watched,
            "filter": seccomp.script_filter(
                network=bounds.network,
                mounted=mounted,
                watch=self.watched,
                machine=mechanism.machine,
            ),
            "limits": script_limits(
                memory_bytes=bounds.memory_bytes,
                cpu_s=bounds.cpu_s,
                file_bytes=bounds.file_bytes,
                tasks=bounds.processes + others + 1,
            ),
        }

    def _landlock(self, view: ScriptView) -> dict[str, object] | None:
        """Return Landlock's rules: all of them, or under bubblewrap those for execution."""
        if self.private is not None:
            return script_landlock(
                view,
                self.private,
                network=self.bounds.network,
                abi=self.mechanism.landlock_abi,
            )
        abi = known_landlock_abi(self.mechanism.machine)
        return (
            execute_landlock(view, abi=abi) if self.bounds.executables is not None and abi else None
        )


def _watch(request: _Request, listener: int, machine_path: str) -> Refusals:
    """Watch the script's calls; return the function that ends that with the refusals."""
    stage, private = find_interpreter(), request.private
    own = (
        (*OWN, *map(str, (stage.executable, *stage.libraries, *stage.stdlib, *stage.files)))
        if private is None
        else (str(private),)
    )
    machine, network = request.mechanism.machine, request.bounds.network
    finder = RefusalFinder(
        view=request.view,
        own=own,
        mounted=private is None,
        shared_network=network,
        only_listed=private is not None or bool(known_landlock_abi(machine)),
        script_path=request.environment.get("PATH", DEFAULT_PATH),
        machine_path=machine_path,
    )
    watch = Watch(
        listener,
        machine=machine,
        user=request.user,
        interest=finder.interest(),
        sockets=private is None or network,
    )
    return lambda: finder.refusals(watch.finish())
