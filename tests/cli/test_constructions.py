"""The verb `constructions`: what it lists, what `promote` makes of a construction."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.calls import Call
from uncaged_dispatcher.constructions.construction import learn
from uncaged_dispatcher.constructions.kept import Constructions
from uncaged_engine.api import Engine

Command = Callable[..., subprocess.CompletedProcess[str]]
RECIPE = {
    "version": 1,
    "actionName": "greet",
    "description": "Greets a person.",
    "parameters": [{"name": "who", "type": "string", "required": True, "description": "Whom."}],
    "script": {"language": "bash", "body": 'echo "hello $PARAM_WHO"'},
    "grammarPatterns": [{"pattern": "greet $(who:wildcard)"}],
}


@pytest.fixture
def learned(command: Command, environment: dict[str, str], tmp_path: Path) -> str:
    """A store with the flow `greet` and one construction; returns the construction's id."""
    (tmp_path / "greet.recipe.json").write_text(json.dumps(RECIPE))
    assert command("add", "greet", "greet.recipe.json", "--accept").returncode == 0
    store = Store.open(Path(environment["UNCAGED_WORKFLOW_HOME"]))
    parameters = Engine(store).bundle("greet").descriptor.parameters
    call = Call(flow="greet", params={"who": "Ada"})
    construction = learn("say hi to Ada", call, parameters, thread="T", now_ms=7)
    assert construction is not None
    Constructions(store).add("", construction)
    return construction.id


def printed(command: Command, *words: str) -> Any:
    done = command("constructions", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_promoted_construction_is_a_pattern_of_a_new_version(
    command: Command, learned: str
) -> None:
    """`promote` adds the pattern, deletes the construction, and `rollback` returns."""
    [found] = printed(command, "list")["constructions"]
    assert (found["constructionId"], found["active"]) == (learned, True)
    assert printed(command, "show", learned)["sentence"] == "say hi to Ada"
    promoted = printed(command, "promote", learned[:5])
    assert promoted["pattern"] == "say hi to $(who:wildcard)"
    assert printed(command, "list") == {"constructions": []}
    assert promoted["pattern"] in command("show", "greet").stdout
    assert command("rollback", "greet").returncode == 0
    assert promoted["pattern"] not in command("show", "greet").stdout


@pytest.mark.slow
def test_silent_constructions_are_pruned(command: Command, learned: str) -> None:
    """A construction of a disabled flow is silent: it is listed so, not promoted, and pruned."""
    assert printed(command, "prune") == {"deleted": []}
    assert command("disable", "greet").returncode == 0
    assert "silent" in command("constructions", "list").stdout
    refused = command("constructions", "promote", learned)
    assert (refused.returncode, "is silent" in refused.stderr) == (1, True)
    assert [one["constructionId"] for one in printed(command, "prune")["deleted"]] == [learned]
    missing = command("constructions", "delete", learned)
    assert missing.returncode == 5
    assert "'uncaged-workflow constructions list' shows all" in missing.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("learned")
def test_suggested_patterns_are_written_as_a_new_version(
    command: Command, environment: dict[str, str]
) -> None:
    """`patterns suggest` proposes what was learned and the patterns do not read; --write adds it,
    and deletes the construction.
    """
    store = Path(environment["UNCAGED_WORKFLOW_HOME"])
    done = command("patterns", "suggest", "greet", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["hash"] is None
    assert [(one["pattern"], one["origin"], one["refused"]) for one in found["patterns"]] == [
        ("say hi to $(who:wildcard)", "construction", None)
    ]
    written = command("patterns", "suggest", "greet", "--write")
    assert written.returncode == 0, written.stderr
    assert "greet@" in written.stdout
    assert "rollback greet" in written.stderr
    assert printed(command, "list") == {"constructions": []}
    explained = json.loads(command("explain", "say hi to Eve", "--json").stdout)
    assert explained["calls"]["by"] == "grammar"
    assert json.loads(command("patterns", "suggest", "greet", "--json").stdout)["patterns"] == []
    assert command("patterns", "suggest", "absent").returncode == 5
    bundle = command("patterns", "suggest", Engine(Store.open(store)).bundle("greet").hash)
    assert (bundle.returncode, "by its name" in bundle.stderr) == (2, True)
