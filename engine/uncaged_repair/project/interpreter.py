"""Choice of the Python interpreter for the repository's tests, with the reason."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks

PROBE = "import json, sys; print(json.dumps(list(sys.version_info[:3])))"
PROBE_TIMEOUT_S = 20.0
OLDEST = (3, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectInterpreter:
    """Python interpreter of a repository. executable: its path with links unresolved, as a virtual
    environment is known by it.
    """

    executable: Path
    version: tuple[int, ...]
    reason: str

    @property
    def label(self) -> str:
        return f"Python {'.'.join(map(str, self.version))} ({self.reason})"


def choose_interpreter(
    directory: Path, top: Path, environment: Mapping[str, str], asked: Path | None
) -> ProjectInterpreter:
    """Return the first that works: the interpreter *asked* for, `.venv` beside the code, the active
    environment, ours.

    Raises:
        EnvironmentLacks: none of them runs, or the repository's own is too old.
    """
    problems: list[str] = []
    for path, reason in _candidates(directory, top, environment, asked):
        if not path.is_file() and path == asked:
            problems.append(f"{path}: is not there")
            break
        if not path.is_file():
            continue
        version = _version(path)
        if version is None:
            problems.append(f"{path}: does not start")
        elif version < OLDEST:
            problems.append(
                f"{path}: Python {'.'.join(map(str, version))} is older than {'.'.join(map(str, OLDEST))}"
            )
            break
        else:
            return ProjectInterpreter(executable=path, version=version, reason=reason)
        if path == asked:
            break
    raise EnvironmentLacks(
        f"no Python can run the tests of {top}: {'; '.join(problems)}",
        remedy="fix the environment, or give --test-command",
    )


def _candidates(
    directory: Path, top: Path, environment: Mapping[str, str], asked: Path | None
) -> Iterator[tuple[Path, str]]:
    """Yield the paths to try, each with the reason that a person is shown."""
    if asked is not None:
        yield asked, "named by the test command"
    for place in dict.fromkeys((directory, top)):
        for name in (".venv", "venv"):
            yield place / name / "bin" / "python", f"the repository's {name}"
    if active := environment.get("VIRTUAL_ENV"):
        yield Path(active) / "bin" / "python", "the active virtual environment"
    yield Path(sys.executable), "ours"


def _version(path: Path) -> tuple[int, ...] | None:
    """Return the version of the interpreter *path*. It runs isolated and without `site`, so that no
    code of the repository runs.
    """
    try:
        done = subprocess.run(
            [path, "-I", "-S", "-c", PROBE],
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
            env={},
            cwd="/",
        )
        return tuple(json.loads(done.stdout))
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
