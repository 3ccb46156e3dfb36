"""Block flows through the real command: add, list, show, enable, export, import."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]


def write(path: Path, *steps: object, **fields: object) -> Path:
    path.write_text(
        json.dumps(
            {
                "name": "Add One",
                "description": "Adds one.",
                "active": True,
                "steps": list(steps),
                **fields,
            }
        )
    )
    return path


START = {
    "type": "start",
    "config": {
        "variables": [{"name": "n", "type": "integer", "value": "1", "description": "The number."}]
    },
}
ADD = {
    "type": "code",
    "config": {"expression": "n + 1", "resultVariable": "sum", "directOutput": True},
}
CALL = {
    "type": "apiCall",
    "config": {
        "url": "https://api.example.com/x",
        "headers": [{"key": "Authorization", "value": "Bearer planted-token"}],
    },
}


def test_a_block_flow_is_added_and_run(command: Command, tmp_path: Path) -> None:
    """The flow's JSON is added as it is; its start variables are parameters; the data has the
    results of its blocks.
    """
    done = command("add", "add-one", str(write(tmp_path / "one.json", START, ADD)), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["enabled"] is True
    assert "n (integer, default 1): The number." in command("show", "add-one").stdout
    ran = command("run", "add-one", "--param", "n=41", "--json")
    assert ran.returncode == 0, ran.stderr
    result = next(
        json.loads(line)["record"]["result"]
        for line in ran.stdout.splitlines()
        if '"end":"completed"' in line
    )
    assert (result["data"]["directOutput"], result["direct"]) == (42, True)
    [tool] = json.loads(command("tools", "--format", "openai").stdout)
    assert tool["function"]["name"] == "add-one"
    assert tool["function"]["parameters"]["properties"]["n"]["type"] == "integer"
    again = write(tmp_path / "two.json", START, {"type": "code", "config": {"expression": "n + 2"}})
    assert command("add", "add-one", str(again)).returncode == 0, (
        "a file that was changed is a new version"
    )


def test_an_edit_of_its_policy_names_the_way(command: Command, tmp_path: Path) -> None:
    """A block flow is run, and what it may do comes from its blocks: the refusal names `add`."""
    assert command("add", "add-one", str(write(tmp_path / "one.json", START, ADD))).returncode == 0
    refused = command("edit", "add-one", "--allow-host", "api.example.com")
    assert (refused.returncode, "uncaged-workflow add add-one FILE" in refused.stderr) == (
        2,
        True,
    ), refused.stderr


def test_an_inactive_one_is_disabled(command: Command, tmp_path: Path) -> None:
    """`active: false` keeps it from starting threads until a person enables it."""
    done = command("add", "add-one", str(write(tmp_path / "one.json", START, ADD, active=False)))
    assert done.returncode == 0
    assert "is disabled" in done.stderr
    refused = command("run", "add-one")
    assert refused.returncode == 1
    assert "disabled" in refused.stderr
    assert command("enable", "add-one").returncode == 0


def test_a_wrong_file_stores_nothing(command: Command, tmp_path: Path) -> None:
    """The error has the file and the place."""
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps({"name": "x", "steps": [{"type": "teleport", "config": {}}]}))
    done = command("add", "wrong", str(path), "--accept")
    assert done.returncode == 1
    assert (
        f"{path}: flow.steps[0].type: 'teleport' is no type of block (block 1); known: start, apiCall"
        in done.stderr
    )
    assert command("list").stdout == ""


def test_an_export_has_no_credential_and_comes_back_disabled(
    command: Command, tmp_path: Path
) -> None:
    """Export says what it left out, import what must be filled in; filled in and added again, it is
    whole.
    """
    assert (
        command("add", "caller", str(write(tmp_path / "one.json", CALL)), "--accept").returncode
        == 0
    )
    exported = command("export", "caller")
    assert exported.returncode == 0, exported.stderr
    path = tmp_path / "caller.json"
    assert "planted-token" not in path.read_text()
    assert "omitted: block 1 (apiCall): 'Authorization'" in exported.stderr
    assert command("export", "caller").returncode == 1, "it does not write over a file"
    refused = command("import", str(path), "--name", "caller", "--accept")
    assert "a flow 'caller' already exists" in refused.stderr
    imported = command("import", str(path), "--name", "again", "--accept")
    assert imported.returncode == 0, imported.stderr
    listed = {
        one["flow"]: one["source"] for one in json.loads(command("list", "--json").stdout)["flows"]
    }
    assert listed == {"caller": "person", "again": "import"}
    assert (
        "block 1 (apiCall): 'Authorization' was left out when the flow was exported: fill it in"
        in imported.stderr
    )
    assert "disabled" in command("run", "again").stderr
    path.write_text(path.read_text().replace("<fill in>", "Bearer mine"))
    assert command("add", "again", str(path)).returncode == 0
    assert command("enable", "again").returncode == 0


def test_what_cannot_be_exported_is_told(command: Command, flow: Callable[[str], str]) -> None:
    """A name that is neither a flow nor a thread finds the closest flow."""
    flow("echo")
    done = command("export", "ecko")
    assert (
        done.returncode,
        "'ecko' is neither a flow nor a thread: no flow 'ecko'; did you mean 'echo'?"
        in done.stderr,
    ) == (5, True)
    assert command("export", "01HX5WBE00").returncode == 5


def test_any_other_flow_is_exported_as_its_bundle(
    command: Command, tmp_path: Path, flow: Callable[[str], str]
) -> None:
    """Byte for byte, so that its hash is the same elsewhere."""
    bundle_hash = flow("echo")
    done = command("export", "echo", "there.py", "--json")
    assert json.loads(done.stdout) == {
        "flow": "echo",
        "hash": bundle_hash,
        "file": "there.py",
        "masked": [],
    }
    assert (tmp_path / "there.py").read_bytes() == (tmp_path / "echo.py").read_bytes()
