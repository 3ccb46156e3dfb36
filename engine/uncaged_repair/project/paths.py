"""Classification of files by name: Python sources, which may be repaired, and tests, which
may not.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

TEST_DIRECTORIES = frozenset({"tests", "test", "spec", "specs"})
TEST_SETTINGS = frozenset({"conftest.py", "pytest.ini", "tox.ini", ".coveragerc", "noxfile.py"})
LEFT_OUT = frozenset(
    {
        ".git",
        "node_modules",
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".tox",
        ".nox",
        ".hypothesis",
        ".eggs",
        ".uncaged",
    }
)
NOT_SOURCES = frozenset({"build", "dist", "site-packages", "docs", "examples", "migrations"})
MAX_SOURCES = 20_000
MAX_SOURCE_BYTES = 1 << 20


def is_test_path(path: str) -> bool:
    """Return whether *path* (relative, forward slashes) is a test or a configuration of tests."""
    pure = PurePosixPath(path)
    name = pure.name
    named = (
        name.startswith("test_")
        or name.endswith(("_test.py", "_tests.py"))
        or name in TEST_SETTINGS
        or name in ("test.py", "tests.py")
    )
    return named or any(part in TEST_DIRECTORIES for part in pure.parts[:-1])


def virtual_environments(top: Path) -> tuple[str, ...]:
    """Return the names of the virtual environments in *top*."""
    return tuple(
        entry.name for entry in os.scandir(top) if Path(entry.path, "pyvenv.cfg").is_file()
    )


def has_python(top: Path) -> bool:
    """Return whether there is any Python file below *top*, a test or not."""
    for directory, names, files in os.walk(top):
        if any(name.endswith(".py") for name in files):
            return True
        names[:] = [
            name
            for name in names
            if name not in LEFT_OUT and not Path(directory, name, "pyvenv.cfg").is_file()
        ]
    return False


def sources(top: Path) -> tuple[str, ...]:
    """Return the Python files below *top* that an edit may change, sorted."""
    found: list[str] = []
    for directory, names, files in os.walk(top):
        inside = PurePosixPath(Path(directory).relative_to(top).as_posix())
        names[:] = sorted(
            name
            for name in names
            if not name.startswith(".")
            and name not in LEFT_OUT | NOT_SOURCES
            and not Path(directory, name, "pyvenv.cfg").is_file()
        )
        for name in files:
            path = (inside / name).as_posix()
            if (
                name.endswith(".py")
                and not is_test_path(path)
                and name != "setup.py"
                and _small(Path(directory, name))
            ):
                found.append(path)
        if len(found) >= MAX_SOURCES:
            break
    return tuple(sorted(found)[:MAX_SOURCES])


def _small(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.stat().st_size <= MAX_SOURCE_BYTES
    except OSError:
        return False
