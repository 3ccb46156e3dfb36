"""The command on machines that lack something: a real limit of user namespaces, in a namespace of
its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.needs("bubblewrap", "landlock")]

FLOW = """descriptor = {"contract": 1, "name": "hello", "description": "Says hello.", "kind": "task", "policy": {"now": {}}}


def run(input, options):
    yield {"now": {}}
    return {"success": True, "message": "hello"}
"""
HERE = [sys.executable, "-m", "uncaged_cli"]


def limited(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command where the kernel allows no further user namespace."""
    command = [
        "unshare",
        "-Ur",
        "sh",
        "-c",
        'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"',
        "sh",
        *HERE,
        *words,
    ]
    return subprocess.run(
        command,
        env=environment,
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_doctor_says_how_to_lift_a_restriction_of_namespaces(environment: dict[str, str]) -> None:
    """Where user namespaces are restricted, `doctor` prints the command that allows them, and is
    content with Landlock.
    """
    done = limited(environment, "doctor")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("note    bubblewrap  "))
    assert "/usr/bin/bwrap makes no sandbox here (bwrap: " in lines[at]
    assert lines[at + 1].endswith("Allow some: sudo sysctl -w user.max_user_namespaces=15000")
    assert any(line.startswith("ok      landlock    version ") for line in lines)


def test_a_flow_runs_where_namespaces_are_restricted(environment: dict[str, str]) -> None:
    """A bundle runs under Landlock there; a configuration that insists on bubblewrap gets exit 7
    and the same command.
    """
    home = Path(environment["HOME"])
    (home / "hello.py").write_text(FLOW)
    assert limited(environment, "add", "hello", "hello.py", "--accept").returncode == 0
    ran = limited(environment, "run", "hello")
    assert ran.returncode == 0, ran
    assert "sandbox landlock" in ran.stdout
    (home / "store" / "config.yaml").write_text("sandbox: bubblewrap\n")
    refused = limited(environment, "run", "hello")
    assert refused.returncode == 7, refused
    assert "sudo sysctl -w user.max_user_namespaces=15000" in refused.stderr
