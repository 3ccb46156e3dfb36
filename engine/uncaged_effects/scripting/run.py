"""One run of a script: its files, bounds, environment and secrets, and the outcome."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import cast

from uncaged_bundles.limits import ScriptLimits
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.door.outcomes import Answer, Outcome, Void
from uncaged_engine.services import secrets
from uncaged_engine.services.journal import InfoLog
from uncaged_engine.services.sandbox import (
    ANY_OWNER,
    DEFAULT_PATH,
    GrantedPaths,
    Mechanism,
    ScratchUser,
    ScriptBounds,
    ScriptResult,
    WrittenDirectories,
    check_unchanged,
    choose,
    may_enter,
    private_directory,
    run_script,
    temporary_owner,
    user_for,
)

from .checks import check_secrets
from .network import Network, opened
from .paths import check_inside, resolve, resolve_paths
from .programs import find_binary, find_interpreter_of, find_shell, twins_of
from .refusals import ReportedRefusal, reported_refusals
from .spec import (
    ScriptSpec,
    environment_of,
    output_bytes,
    whole,
)

SUFFIXES = {"bash": "sh", "python": "py", "powershell": "ps1"}
FLAGS = {
    "bash": ("--noprofile", "--norc"),
    "python": ("-I", "-B", "-X", "utf8"),
    "powershell": ("-NoProfile", "-NonInteractive", "-File"),
}


class ScriptRun:
    """One run of a script. has_started: whether the script may have done something. private: the
    directory of its text.
    """

    def __init__(self, spec: ScriptSpec, limits: ScriptLimits, context: EffectContext) -> None:
        self.has_started = False
        self.private = context.store.work
        self._spec = spec
        self._limits = limits
        self._context = context
        self._path = context.environment.get("PATH") or DEFAULT_PATH
        self._mechanism: Mechanism = choose(
            context.config.sandbox,
            scripts=True,
            owners=Path("/proc") in map(Path, limits.read) and not limits.hosts,
        )

    def perform(self) -> Outcome:
        """Prepare and run the script; return its outcome."""
        context, limits = self._context, self._limits
        interpreter = find_interpreter_of(self._spec.language, self._path)
        executables = (interpreter, *self._programs())
        granted = self._granted_paths()
        parameters, known = self._resolved_secrets()
        with self._private_directory() as private, ExitStack() as stack:
            self.private = private
            user = user_for(granted, private)
            script = self._write_script(private)
            stack.enter_context(temporary_owner(granted.writable, user, context.store.lent))
            network = stack.enter_context(opened(limits, self._mechanism))
            result = run_script(
                [str(interpreter), *FLAGS[self._spec.language], str(script), *self._spec.arguments],
                self._bounds(granted, executables, (script, *self._beside(interpreter)), network),
                mechanism=self._mechanism,
                cwd=self._start_directory(granted, user),
                environment={
                    **self._environment(executables),
                    **network.variables,
                    **environment_of(parameters),
                },
                user=user,
                stop=self._stopping,
                prepare=network.enter,
                watch_path=None if limits.tolerate is True else self._path,
            )
        self._note(result)
        if context.cancel.requested:
            return Void(word="killed", message="the script was killed", begun=self.has_started)
        answer = self._answer(
            result, script, tuple(reported_refusals(result.refused, network.refused, limits))
        )
        return Answer(fields={"outcome": secrets.redact(answer, known)})

    def _programs(self) -> Iterator[Path]:
        """Find the programs that the policy names."""
        for name in self._limits.executables:
            if not self._is_cmdlet(name):
                yield find_binary(name, self._path)

    def _write_script(self, private: Path) -> Path:
        script = private / f"script.{SUFFIXES[self._spec.language]}"
        script.write_text(self._spec.body, "utf-8")
        script.chmod(0o444)
        return script

    def _bounds(
        self,
        granted: GrantedPaths,
        executables: tuple[Path, ...],
        read: tuple[Path, ...],
        network: Network,
    ) -> ScriptBounds:
        """Return the bounds of the run; the store is hidden from it."""
        root = self._context.store.root
        return ScriptBounds(
            read=(*granted.read, *read),
            write=granted.write,
            hidden=tuple({root, Path(os.path.realpath(root))}),
            executables=(*executables, *twins_of(executables)),
            shell=find_shell(executables),
            identities=granted.identities,
            network=network.shared,
            timeout_s=self._spec.timeout_s,
            output_bytes=output_bytes(self._limits),
            **self._sizes(),
        )

    def _start_directory(self, granted: GrantedPaths, user: ScratchUser) -> Path | None:
        """Return the caller's directory if the script may enter it; None: the private one."""
        here = self._context.directory
        may_start = here in granted.read or (granted.covers(here) and may_enter(here, user))
        return here if may_start else None

    def _note(self, result: ScriptResult) -> None:
        context = self._context
        info = InfoLog(
            context.store.info_path(context.bundle.hash, context.thread_id), context.clock_ms
        )
        info.note(
            "M4ZC7H2Q",
            f"script {context.key}: {self._mechanism.name}, exit code {result.exit_code}, {result.duration_ms} ms",
        )

    def _stopping(self, interrupt: Callable[[], None]) -> AbstractContextManager[None]:
        """Let a kill interrupt the script; this is the first call after its start."""
        self.has_started = True
        return self._context.cancel.on_request(interrupt)

    def _is_cmdlet(self, name: str) -> bool:
        return (
            self._spec.language == "powershell"
            and "-" in name
            and shutil.which(name, path=self._path) is None
        )

    def _granted_paths(self) -> GrantedPaths:
        """Return the granted paths; path parameters must lie inside them."""
        context = self._context
        start = cast("Mapping[str, Mapping[str, object]]", context.start["parameters"])
        params = start.get("params", {})
        environment = context.config.for_agents(context.environment)
        written = WrittenDirectories(context.store.written)
        granted = resolve_paths(
            self._limits.read,
            self._limits.write,
            params=params,
            environment=environment,
            directory=context.directory,
            written=written.known(),
        )
        properties = context.bundle.descriptor.parameters.get("properties", {})
        paths = {
            name: params[name]
            for name, part in (properties.items() if isinstance(properties, Mapping) else ())
            if isinstance(part, Mapping)
            and part.get("format") == "path"
            and isinstance(params.get(name), str)
        }
        passed = {
            name: str(path)
            for name, path in paths.items()
            if self._spec.parameters.get(name) == path
        }
        check_inside(granted, passed)
        first = {path.entry: path.record() for path in granted.paths if path.identity is not None}
        check_unchanged(granted.paths, context.remember_paths(first))
        written.note(path for path in granted.write if path.is_dir())
        return granted

    def _resolved_secrets(self) -> tuple[Mapping[str, object], dict[str, str]]:
        """Return the parameters with their secrets, each bound to all commands that could read it,
        and the secrets' values.
        """
        check_secrets(self._spec.parameters, self._limits)
        resolved, known = secrets.resolve(
            dict(self._spec.parameters), self._context.config, self._context.environment
        )
        return cast("Mapping[str, object]", resolved), known

    @contextmanager
    def _private_directory(self) -> Iterator[Path]:
        """Yield a directory for the script's text and remove it afterwards."""
        private = private_directory()
        private.chmod(0o711)
        try:
            yield private
        finally:
            shutil.rmtree(private, ignore_errors=True)

    def _beside(self, interpreter: Path) -> tuple[Path, ...]:
        """Return the directory of PowerShell's own files, which are beside its program."""
        return (
            (Path(os.path.realpath(interpreter)).parent,)
            if self._spec.language == "powershell"
            else ()
        )

    def _sizes(self) -> dict[str, int]:
        sizes = {
            "memory_bytes": whole(self._limits.memory_bytes),
            "processes": whole(self._limits.processes),
        }
        return {name: size for name, size in sizes.items() if size is not None}

    def _environment(self, executables: tuple[Path, ...]) -> dict[str, str]:
        """Return PATH with the directories of the commands, LANG, and the caller's variables that
        the policy names.
        """
        allowed = self._context.config.for_agents(self._context.environment)
        chosen = {name: allowed[name] for name in self._limits.environment if name in allowed}
        path = ":".join(dict.fromkeys(str(program.parent) for program in executables))
        git = (
            ANY_OWNER
            if os.geteuid() == 0 and any(program.name == "git" for program in executables)
            else {}
        )
        return {"PATH": path, "LANG": "C.UTF-8", **git, **chosen}

    @staticmethod
    def _answer(
        result: ScriptResult, script: Path, refusals: Sequence[ReportedRefusal]
    ) -> dict[str, object]:
        texts = (stream.decode("utf-8", "replace") for stream in (result.stdout, result.stderr))
        # the script's temporary path has no meaning outside
        stdout, stderr = (text.replace(str(script), script.name) for text in texts)
        ended_well = result.exit_code == 0 and not result.timed_out
        answer: dict[str, object] = {
            "success": ended_well and not any(refusal.counted for refusal in refusals),
            "stdout": stdout,
            "stderr": stderr,
            "exitCode": result.exit_code,
            "durationMs": result.duration_ms,
            "truncated": result.truncated,
            "timedOut": result.timed_out,
        }
        refused = list(
            dict.fromkeys(
                refusal.sentence for refusal in refusals if refusal.counted or not ended_well
            )
        )
        return {**answer, "refused": refused} if refused else answer


def is_below_directory(text: str, context: EffectContext) -> bool:
    """Tell whether a path that the policy lets the script write is below the context's directory,
    or is that of a parameter without a value.

    Raises:
        Refused: it cannot be resolved.
    """
    start = cast("Mapping[str, Mapping[str, object]]", context.start["parameters"])
    path = resolve(
        text,
        "write",
        params=start.get("params", {}),
        environment=context.config.for_agents(context.environment),
        directory=context.directory,
    )
    if path is None:
        return True
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(context.directory))
