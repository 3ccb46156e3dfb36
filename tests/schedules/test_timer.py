"""The timer of the system: units of systemd with any path, and the line for cron."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.storage.store import Store
from uncaged_schedules.timer import Timer, has_user_systemd, install, timer_of

SYSTEMCTL = """#!/bin/sh
echo "$@" >> "$CALLS"
test "$2" != "$FAILS" || { echo "no bus" >&2; exit 1; }
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The words that a `systemctl` of its own on the PATH was called with."""
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(SYSTEMCTL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("FAILS", "")
    return tmp_path / "calls"


def timer(root: Path) -> Timer:
    return timer_of(Store.open(root), ["/opt/a b/uncaged-workflow"], {"PATH": "/bin:/100%/$x"})


def test_the_cron_line_runs_due_with_the_store_and_the_path(tmp_path: Path) -> None:
    """A shell reads the line's words as they were, with cron's own escapes taken back."""
    program = tmp_path / "a b" / "uncaged-workflow"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" "$UNCAGED_WORKFLOW_HOME" "$PATH" >&2\n')
    program.chmod(0o755)
    root = tmp_path / "the 'store' 50%"
    made = timer_of(Store.open(root), [str(program)], {"PATH": "/bin:/usr/bin:/$x"})
    fields, line = made.cron_line[:10], made.cron_line[10:]
    assert fields == "* * * * * "
    assert "%" not in line.replace(r"\%", "")
    done = subprocess.run(
        ["/bin/sh", "-c", line.replace(r"\%", "%")], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines() == ["due", str(root), "/bin:/usr/bin:/$x"]


def test_units_are_written_and_started(tmp_path: Path, calls: Path) -> None:
    """Values are quoted as systemd reads them; each store has units of its own."""
    made = timer(tmp_path / 'st"ore')
    assert 'Environment="PATH=/bin:/100%%/$x"' in made.service
    assert f'Environment="UNCAGED_WORKFLOW_HOME={tmp_path}/st\\"ore"' in made.service
    assert 'ExecStart="/opt/a b/uncaged-workflow" "due"' in made.service
    assert "KillMode=process" in made.service
    assert timer(tmp_path / "other").name != made.name
    paths = install(made, tmp_path / "systemd" / "user")
    assert [path.read_text() for path in paths] == [made.service, made.timer]
    assert calls.read_text().splitlines() == [
        "--user daemon-reload",
        f"--user enable --now {made.name}.timer",
    ]


def test_a_systemd_that_does_not_answer_is_none(
    tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without systemd as init, or without the user's bus, the cron line is the way; a refusal is
    said with it.
    """
    assert not has_user_systemd(tmp_path / "absent")
    assert has_user_systemd(tmp_path)
    monkeypatch.setenv("FAILS", "show-environment")
    assert not has_user_systemd(tmp_path)
    monkeypatch.setenv("FAILS", "enable")
    with pytest.raises(EnvironmentLacks, match="no bus"):
        install(timer(tmp_path / "store"), tmp_path / "units")
    assert calls.read_text().count("show-environment") == 2
