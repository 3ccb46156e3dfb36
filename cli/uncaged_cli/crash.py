"""Crash report for a bug of the engine: one line for the user, the details in a private file."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from uncaged_bundles.version import __version__

EXIT_BUG = 70
_PASSWORD = re.compile(r"(?<=://)[^/?]*(?=@)|(?<=password=)[^&]*")
"""User and password, and the parameter of a password, in the address of a store."""


def write_report(
    problem: BaseException, argv: Sequence[str], environment: Mapping[str, str]
) -> Path | None:
    """Write a report that only its owner can read; return None if no directory is writable."""
    text = "\n".join(
        (
            f"uncaged-workflow {__version__}, Python {sys.version.split()[0]}, {platform.platform()}",
            f"arguments: {[_without_password(word) for word in argv]!r}",
            f"directory: {os.environ.get('PWD', '?')}",
            "",
            "".join(traceback.format_exception(problem)),
        )
    )
    for directory in (_run_directory(environment), Path(tempfile.gettempdir())):
        try:
            descriptor, name = tempfile.mkstemp(
                prefix=time.strftime("crash-%Y%m%dT%H%M%S-"), suffix=".txt", dir=directory
            )
        except OSError:
            continue
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as report:
            report.write(text)
        return Path(name)
    return None


def _without_password(word: str) -> str:
    return _PASSWORD.sub("…", word)


def _run_directory(environment: Mapping[str, str]) -> Path:
    """Return the run directory of the store, without the store's code, which may be what failed."""
    root = environment.get("UNCAGED_WORKFLOW_HOME")
    return (Path(root) if root else Path("~/.uncaged/workflow").expanduser()) / "run"
