"""One repair by the whole command, from outside: its exit code, its commit, its answers and the
processor time of all its processes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .cases import Case
from .control_group import control_group
from .releases import Release

TRIED = re.compile(r"[Tt]ried (\d+) candidates? in")
CONFIG = "agents:\n  repair:\n    use: repair\n    budgetSeconds: {budget_s:g}\n"
TIMED_OUT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Result of the command.

    files: path to text of each file that the commit changes, None if it removes it. message: the
    commit's message, else the end of the command's output. answers: the repair's answers, in order.
    """

    exit_code: int
    cpu_s: float
    wall_s: float
    tried: int
    message: str
    answers: tuple[str, ...] = ()
    diff: str = ""
    files: Mapping[str, str | None]

    @property
    def committed(self) -> bool:
        return bool(self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Settings of the runs. program: the command of the product. budget_s: processor time of a
    search. wall_s: when a run is killed.
    """

    program: Path
    budget_s: float
    wall_s: float

    def attempt(self, case: Case, release: Release) -> Attempt:
        """Run the command on the broken repository with a fresh home; nothing of it remains
        running.
        """
        base = release.make_repository(case)
        home = Path(tempfile.mkdtemp(prefix="uncaged-bench-"))
        try:
            return self._attempt(case, release, base, home)
        finally:
            shutil.rmtree(home, ignore_errors=True)

    def _attempt(self, case: Case, release: Release, base: str, home: Path) -> Attempt:
        store = home / "store"
        store.mkdir()
        (store / "config.yaml").write_text(CONFIG.format(budget_s=self.budget_s))
        words = ["run", "solve-issue", "--workspace", str(release.repo), "--agent", "repair"]
        begin = time.monotonic()
        with control_group() as group, (home / "output").open("wb") as output:
            command = group.enter([str(self.program), *words, "--prompt", case.prompt])
            try:
                exit_code = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=_environment(home, store),
                    timeout=self.wall_s,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                exit_code = TIMED_OUT
            wall_s = time.monotonic() - begin
            group.kill()
            cpu_s = group.cpu_s
        answers = answers_of(store)
        last = (home / "output").read_text("utf-8", "replace").strip()
        commit = _commit(release, base)
        files = _files(release, base, commit) if commit else {}
        return Attempt(
            exit_code=exit_code,
            cpu_s=cpu_s,
            wall_s=wall_s,
            tried=sum(int(number) for answer in answers for number in TRIED.findall(answer)[:1]),
            message=release.git("log", "-1", "--format=%B", commit) if commit else last[-3000:],
            answers=tuple(answers),
            diff=release.git("diff", base, commit) if commit else "",
            files=files,
        )


def answers_of(store: Path) -> list[str]:
    """Return the answers of the roles that the threads in *store* have recorded, in order."""
    found = []
    for path in sorted(store.glob("logs/*/*.data.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            record = json.loads(line)
            if "role" in record and "content" in record:
                found.append(f"[{record['role']}] {record['content']}")
    return found


def _environment(home: Path, store: Path) -> dict[str, str]:
    runtime = home / "runtime"
    runtime.mkdir(mode=0o700)
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(runtime),
        "UNCAGED_WORKFLOW_HOME": str(store),
    }


def _commit(release: Release, base: str) -> str | None:
    """Return the commit on the thread's branch; snapshots are on no branch."""
    heads = release.git("for-each-ref", "--format=%(objectname)", "refs/heads").split()
    return next((head for head in heads if head != base), None)


def _files(release: Release, base: str, commit: str) -> dict[str, str | None]:
    changed = release.git("diff", "--name-only", "--no-renames", base, commit).splitlines()
    kept = set(release.git("ls-tree", "-r", "--name-only", commit).splitlines())
    return {
        path: release.git("show", f"{commit}:{path}") if path in kept else None for path in changed
    }
