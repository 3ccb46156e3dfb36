"""Programs and kernel features that some tests need. A missing one skips the test, and fails it in
CI, which installs them all.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterable

import pytest
from testbed import postgres, restate, straced
from testbed.cells import LANDLOCK_VERSIONS, version_of
from uncaged_browser.browsers.installed import usable_browsers
from uncaged_bundles.errors import SandboxUnavailable
from uncaged_engine.sandbox.mechanism import choose, landlock_abi

NAMES = (
    "bubblewrap",
    "landlock",
    "strace",
    "chromium",
    "xvfb",
    "postgres",
    "restate",
    "own-network",
    *LANDLOCK_VERSIONS,
)


OWN_NETWORK = ("unshare", "--net", "--mount")
"""Words in front of a command that give it a network and mounts of its own."""


def need(names: Iterable[str]) -> None:
    """Skip the running test if this machine lacks something; in CI fail it."""
    reason = "; ".join(filter(None, map(lacking, names)))
    if reason and os.environ.get("CI"):
        pytest.fail(f"CI must have it: {reason}", pytrace=False)
    if reason:
        pytest.skip(reason)


@functools.cache
def lacking(name: str) -> str:
    """Return the reason why this machine lacks a requirement; empty if it has it."""
    if name == "strace":
        return "" if straced.available() else "strace is not installed, or may not trace here"
    if name == "chromium":
        return "" if usable_browsers(os.environ) else "no usable browser is installed"
    if name == "xvfb":
        return "" if shutil.which("Xvfb") else "Xvfb is not installed"
    if name == "postgres":
        return "" if postgres.programs() else "no PostgreSQL server is installed"
    if name == "restate":
        return "" if restate.program() else "no Restate server is installed below .restate"
    if name == "own-network":
        made = subprocess.run([*OWN_NETWORK, "true"], capture_output=True, text=True, check=False)
        return f"no network of its own: {made.stderr.strip()}" if made.returncode else ""
    if name in LANDLOCK_VERSIONS:
        offered = landlock_abi(os.uname().machine)
        return (
            ""
            if offered >= version_of(name)
            else f"the kernel offers Landlock {offered}, not {version_of(name)}"
        )
    if name not in NAMES:
        raise ValueError(f"tests need one of {NAMES}, not {name!r}")
    try:
        choose(name, scripts=True)
    except SandboxUnavailable as exc:
        return exc.reason
    return ""
