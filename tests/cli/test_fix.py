"""The verb `fix` and flows that say ``"onFailure": "fix"``."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_templates.fixing import flows

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]


def add_flow(command: Command, tmp_path: Path, **more: object) -> str:
    """Add a flow whose file moved, and return the file's new path."""
    for name, source in flows():
        Engine(Store.open(tmp_path / "store")).add(name, source, accept=lambda _sentences: True)
    old, new = tmp_path / "d" / "numbers.txt", tmp_path / "d" / "numbers-2.txt"
    new.parent.mkdir()
    new.write_text("7\n")
    recipe = {
        "actionName": "numbers",
        "description": "Print the numbers.",
        "script": {"language": "bash", "body": f"cat {old}\n"},
        "policy": {"script": {"executables": ["cat"], "read": [str(old.parent)]}},
        **more,
    }
    file = tmp_path / "numbers.json"
    file.write_text(json.dumps(recipe))
    added = command("add", "numbers", str(file), "--accept")
    assert added.returncode == 0, added.stderr
    return str(new)


def test_a_person_fixes_a_failed_flow(command: Command, tmp_path: Path) -> None:
    """The failure names the command; its report has cause, change, evidence and the commands that
    accept the version and finish the thread.
    """
    new = add_flow(command, tmp_path)
    failed = command("run", "numbers")
    assert failed.returncode == 3
    assert "fix 01" in failed.stderr
    done = command("fix", "latest")
    assert done.returncode == 0, done.stderr
    place = [done.stdout.index(text) for text in ("No such file", new, "evidence", "success: 7")]
    assert place == sorted(place)
    again = json.loads(command("fix", failed_id(tmp_path), "--json").stdout)
    id = again["proposalId"]
    assert f"proposal accept {id}" in done.stderr, "the same version is proposed once"
    assert command("proposal", "accept", id).returncode == 0
    finished = command(*again["finish"].split()[1:])
    assert (finished.returncode, "completed" in finished.stdout) == (0, True), finished.stderr


def test_a_flow_fixes_itself_if_it_says_so(command: Command, tmp_path: Path) -> None:
    """The run still fails, and ends in a proposal. After its rejection no command follows."""
    new = add_flow(command, tmp_path, onFailure="fix")
    failed = command("run", "numbers")
    assert failed.returncode == 3
    assert new in failed.stdout
    assert "proposal accept" in failed.stderr
    assert (
        command("proposal", "reject", failed.stdout.split("proposal ")[-1].split(",")[0]).returncode
        == 0
    )
    again = command("fix", failed_id(tmp_path))
    assert again.returncode == 3
    assert ", rejected" in again.stdout
    assert "next:" not in again.stderr


def test_nothing_is_proposed_without_a_likely_change(command: Command, tmp_path: Path) -> None:
    """Exit code 3, and the report names what was looked at."""
    new = add_flow(command, tmp_path)
    Path(new).unlink()
    assert command("run", "numbers").returncode == 3
    done = command("fix", "latest")
    assert done.returncode == 3
    assert "none near it is like it" in done.stderr
    refused = json.loads(command("fix", "latest", "--json").stdout)
    assert refused["threadId"] == failed_id(tmp_path), "`latest` is the thread of the fix by now"
    assert (refused["proposalId"], refused["finish"]) == (None, "")


def failed_id(tmp_path: Path) -> str:
    """Return the id of the flow's failed thread."""
    return Engine(Store.open(tmp_path / "store")).threads("numbers")[-1].thread_id


def test_a_changed_default_needs_a_new_run(command: Command, tmp_path: Path) -> None:
    """A fork would keep the old value; the trial has the new one."""
    new = tmp_path / "d" / "numbers-2.txt"
    default = str(tmp_path / "d" / "numbers.txt")
    more = {
        "parameters": [
            {"name": "file", "type": "path", "default": default, "description": "the file"}
        ],
        "script": {"language": "bash", "body": 'cat "$PARAM_FILE"\n'},
        "policy": {"script": {"executables": ["cat"], "read": ["param:file"]}},
    }
    add_flow(command, tmp_path, **more)
    assert command("run", "numbers").returncode == 3
    done = json.loads(command("fix", "latest", "--json").stdout)
    assert done["evidence"]["trial"] == f'success: 7; with file "{new}"'
    assert command("proposal", "accept", done["proposalId"]).returncode == 0
    assert done["finish"] == f"uncaged-workflow run numbers --param file={new}"
    assert command(*done["finish"].split()[1:]).returncode == 0
