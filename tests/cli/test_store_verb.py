"""The verb `store`: copy and check on the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.filled_stores import LONG, filled

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_a_store_is_copied_and_checked(command: Command, tmp_path: Path) -> None:
    """Figures on standard output, problems on standard error; exit code 1 with a problem, 5 without
    a store.
    """
    source, target = str(filled(tmp_path / "a").root), str(tmp_path / "b")
    done = command("store", "copy", source, target)
    assert done.returncode == 0 and "threads: 4 copied, 0 there already" in done.stdout
    assert "store check" in done.stderr
    again = json.loads(command("store", "copy", source, target, "--json").stdout)
    assert again["threads"] == {"copied": 0, "present": 4} and again["problems"] == []
    checked = json.loads(command("store", "check", target, "--json").stdout)
    assert (checked["threads"], checked["lines"], checked["problems"]) == (4, 2012, [])
    (tmp_path / "b" / "conversations" / f"{LONG}.jsonl").unlink()
    next((tmp_path / "b" / "blobs").iterdir()).unlink()
    wrong = command("store", "check", target)
    assert wrong.returncode == 1 and LONG in wrong.stderr and "Traceback" not in wrong.stderr
    assert command("store", "check", str(tmp_path / "none")).returncode == 5
    repaired = command("store", "copy", source, target)
    assert repaired.returncode == 0 and "blobs: 1 copied" in repaired.stdout
