"""Sandbox for a library's own code: its tests, and the scripts of this measurement that run in its
environment.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .releases import VENV, Release

INSIDE = Path(__file__).parent / "inside"
TESTS_S = 600
FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+)(?:.*? - (\w[\w.]*): (.*))?", re.MULTILINE)


def run_tests(
    release: Release,
    scratch: Path,
    words: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run pytest in the repository; return its output, which ends with a line for each failure."""
    command = ["-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", *words]
    wide = {"COLUMNS": "2000", **(environment or {})}
    return run_python(release, scratch, command, TESTS_S, wide).decode("utf-8", "replace")


def failures(output: str) -> list[str]:
    """Return the names of the failing tests in the output of pytest."""
    return [found[1] for found in FAILURE.finditer(output)]


def errors(output: str) -> list[tuple[str, str]]:
    """Return the distinct exceptions of the failing tests: class name and message."""
    found = [
        (match[2].rpartition(".")[2], match[3]) for match in FAILURE.finditer(output) if match[2]
    ]
    return list(dict.fromkeys(found))


def run_python(
    release: Release,
    scratch: Path,
    words: Sequence[str],
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """Run the repository's Python without network; return its output, without a torn last line if
    time ran out. It can write only in the repository, in *scratch*, and in a /tmp of its own.
    """
    places = [
        word for path in (release.directory, scratch) for word in ("--bind", str(path), str(path))
    ]
    command = [
        *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),  # noqa: S108 - the sandbox's own
        *("--ro-bind", str(INSIDE), str(INSIDE), *places),
        *("--ro-bind", str(release.repo / VENV), str(release.repo / VENV)),
        *("--unshare-all", "--die-with-parent", "--chdir", str(release.repo)),
        *("--", str(release.python), "-B", *words),
    ]
    own = {"PYTHONPATH": str(INSIDE), "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}
    try:
        return subprocess.run(
            command,
            env={"PATH": os.environ["PATH"], "HOME": str(scratch), **own, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
        ).stdout
    except subprocess.TimeoutExpired as exc:
        return (exc.stdout or b"").rpartition(b"\n")[0]
