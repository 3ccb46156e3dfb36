"""`memory` and `token` through the real command."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import source
from testbed.sentences import flow_source, parameters

pytestmark = pytest.mark.slow
Command = Callable[..., subprocess.CompletedProcess[str]]
ENTITIES: list[dict[str, Any]] = [
    {"name": "Summer Report", "type": "file", "value": {"path": "/reports/7"}},
    {"name": "Blue Lamp", "type": "lamp", "value": "lamp-7"},
    {"name": "Blue\x1b[31m Vase", "type": "vase"},
]
NAMING = f"""
    return {{"success": True, "message": "named", "data": None, "entities": {ENTITIES!r}}}
    yield
"""


@pytest.fixture
def named(command: Command, tmp_path: Path) -> Command:
    """The command on a store in whose conversation a result named three things."""
    (tmp_path / "name-them.py").write_bytes(source("name-them", NAMING, head="", policy={}))
    assert command("add", "name-them", "name-them.py", "--accept").returncode == 0
    assert command("action", "name-them").returncode == 0
    return command


def entities(command: Command, *words: str) -> list[Any]:
    done = command("memory", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)["entities"]
    return found


def test_the_memory_of_a_conversation_is_listed_shown_and_searched(named: Command) -> None:
    """What a call's result named is found by its name in any case, or a similar one, and in its own
    conversation only; a name cannot steer the terminal.
    """
    assert [one["name"] for one in entities(named)] == [one["name"] for one in ENTITIES]
    [shown] = entities(named, "show", "blue LAMP")
    [thread] = json.loads(named("threads", "--json").stdout)
    assert (shown["value"], shown["threadId"]) == ("lamp-7", thread["threadId"])
    assert [one["name"] for one in entities(named, "search", "sumer reprot")] == ["Summer Report"]
    assert "\x1b" not in named("memory").stdout + named("memory", "search", "vase").stdout
    assert "lamp-7" in named("memory", "show", "blue lamp").stdout
    missing = named("memory", "show", "\x1b[2J" + "x" * 10_000)
    assert (missing.returncode, "\x1b" in missing.stderr) == (5, False)
    assert len(missing.stderr) < 500
    assert entities(named, "search", "y" * 100_000) == []
    assert named("conversation", "new", "other").returncode == 0
    assert entities(named) == []
    assert len(entities(named, "list", "--conversation", "default")) == 3
    assert named("memory", "list", "--conversation", "absent").returncode == 5
    assert named("memory", "forget", "x").returncode == 2


def test_a_damaged_memory_is_rebuilt_and_a_newer_log_refused(
    named: Command, tmp_path: Path
) -> None:
    """The index is made anew from the log; a log of a later version is refused by its format."""
    conversations = tmp_path / "store" / "conversations"
    [log] = conversations.glob("*.jsonl")
    assert len(entities(named)) == 3
    log.with_suffix(".memory.sqlite3").write_bytes(b"no database" * 100)
    assert len(entities(named)) == 3
    log.with_suffix(".memory.sqlite3").unlink()
    log.write_bytes(log.read_bytes().replace(b'"format":1', b'"format":2', 1))
    for words in (["memory"], ["token"]):
        refused = named(*words)
        assert (refused.returncode, "newer version" in refused.stderr) == (1, True), words


def test_requests_without_a_model_use_no_tokens(named: Command) -> None:
    """Each request with a thread is listed with its threads; threads are counted by their ids."""
    [request] = json.loads(named("token", "--json").stdout)["requests"]
    assert (len(request["threadIds"]), request["used"]) == (1, {})
    assert "1 request used no tokens" in named("token").stderr
    [thread] = json.loads(named("token", "--thread", "latest", "--json").stdout)["threads"]
    assert thread["threadId"] == request["threadIds"][0]
    assert named("token", "--thread", "latest", "--conversation", "default").returncode == 2
    assert named("thread", "rm", "latest").returncode == 0
    assert "usage unknown" in named("token").stdout
    assert named("token", "--thread", request["threadIds"][0]).returncode == 5


def test_an_explanation_is_about_the_conversation(named: Command, tmp_path: Path) -> None:
    """A thing named in a conversation is a value of a sentence there, and nowhere else."""
    text = flow_source("light", "light $(lamp:lamp)", schema=parameters("lamp", lamp={}))
    (tmp_path / "light.py").write_bytes(text)
    assert named("add", "light", "light.py", "--accept").returncode == 0

    def explained(*options: str) -> dict[str, Any]:
        done = named("explain", "light the blue lamp", *options, "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    assert explained()["calls"]["calls"] == [{"flow": "light", "params": {"lamp": "lamp-7"}}]
    assert named("conversation", "new", "other").returncode == 0
    assert explained()["result"] == "miss"
    assert explained("--conversation", "default")["result"] == "calls"
    assert named("explain", "light the blue lamp", "--conversation", "none").returncode == 5
    by_do = named("do", "light the blue lamp", "--explain", "--conversation", "default", "--json")
    assert json.loads(by_do.stdout)["result"] == "calls"
