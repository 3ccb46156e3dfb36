"""Files that the base interpreter needs to run with its standard library only, on any
installation.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

from uncaged_bundles.records import dataclass

HIDDEN_NAMES = ("site-packages", "dist-packages")
_LOADER_DIRECTORIES = ("/lib64", "/lib")
_RUNTIME_PREFIXES = ("libc.", "libc-", "libm.", "libm-", "ld-", "libpython")


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonInterpreter:
    """Base interpreter behind a virtual environment, at its own path.

    stdlib: directories of the standard library, without HIDDEN_NAMES beneath them.
    libraries: directories with shared libraries. files: single files.
    links: symbolic links in the root directory that the loader's path goes through, with their
    targets.
    """

    executable: Path
    stdlib: tuple[Path, ...]
    libraries: tuple[Path, ...]
    files: tuple[Path, ...]
    links: tuple[tuple[Path, str], ...]


@functools.cache
def find_interpreter() -> PythonInterpreter:
    """Describe the interpreter that runs this code."""
    executable = Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))
    stdlib = [Path(os.__file__).parent]
    stdlib += [
        Path(entry)
        for entry in sys.path
        if entry.endswith("lib-dynload") and not entry.startswith(str(stdlib[0]))
    ]
    mapped = [path for path in _mapped_libraries() if path.name.startswith(_RUNTIME_PREFIXES)]
    prefix_libraries = Path(sys.base_prefix, "lib")
    own = list(prefix_libraries.glob("lib*.so*")) if sys.base_prefix not in ("/usr", "/") else []
    # one of these is used, and each costs a mount
    own = [path for path in own if not path.name.startswith("libpython")]
    own += [path for path in mapped if path.name.startswith("libpython")]
    libraries = {path.parent for path in mapped if path.parent != prefix_libraries}
    links, loaders = [], []
    for name in _LOADER_DIRECTORIES:
        directory = Path(name)
        if directory.is_symlink():
            links.append((directory, str(directory.readlink())))
        loaders += [
            Path(os.path.realpath(directory)) / path.name for path in directory.glob("ld-*")
        ]
    cache = Path("/etc/ld.so.cache")
    files = {
        executable,
        *own,
        *(path for path in loaders if path.parent not in libraries),
        *([cache] if cache.is_file() else []),
    }
    return PythonInterpreter(
        executable=executable,
        stdlib=tuple(dict.fromkeys(stdlib)),
        libraries=tuple(sorted(libraries)),
        files=tuple(sorted(files)),
        links=tuple(links),
    )


def _mapped_libraries() -> list[Path]:
    """Return the shared libraries mapped into this process."""
    found = set()
    with Path("/proc/self/maps").open() as maps:
        for line in maps:
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and ".so" in fields[5]:
                found.add(Path(fields[5].rstrip("\n")))
    return sorted(found)
