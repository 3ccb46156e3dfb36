"""Another distribution brings a role, an agent, an effect and flows, all found through entry
points.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

OUTSIDE = Path(__file__).parent / "outside"
CODE = """
import json
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from uncaged_agents.choice import Choice, agent_named
from uncaged_agents.choose import expect_plays
from uncaged_bundles.builders import build_workflow
from uncaged_bundles.errors import EnvironmentLacks, NotFoundError
from uncaged_bundles.rights import Rights
from uncaged_bundles.validation.validate import read_bundle
from uncaged_bundles.fields import shape_of
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.services.settings import Config

def load(group, name):
    return entry_points(group="uncaged_workflow." + group)[name].load()

def limits(use):
    return Choice(name=use, use=use, settings={}, reason="").recorded(Rights(tools=frozenset())).get("limits")

def settings(word):
    try:
        return dict(agent_named(word, Config(), "", Path("/here")).settings)
    except NotFoundError:
        return None

def refusal(use):
    try:
        expect_plays("greet", use, ["greeter", "poet"])
    except EnvironmentLacks as exc:
        return exc.what

greet = read_bundle(build_workflow(load("templates", "greet"), KNOWN), KNOWN)
loudly = read_bundle(load("templates", "greet-loudly"), KNOWN)
agent = load("agents", "polite")({"word": "Good day"})
handler = load("effects", "shout")()
context = SimpleNamespace(bundle=loudly)
print(json.dumps({
    "role": load("roles", "greeter").name,
    "roles": [*greet.descriptor.roles, *loudly.descriptor.roles],
    "graph": greet.descriptor.raw["graph"],
    "answer": agent.answer(SimpleNamespace(task="Ada")).text,
    "loud": handler.perform({"text": "hello"}, context).fields,
    "too loud": handler.perform({"text": "x" * 41}, context).error,
    "policy": loudly.descriptor.raw["policy"],
    "limits": [limits("polite"), limits("curt")],
    "settings": [settings("polite:Hi"), settings("curt:Hi")],
    "refusals": [refusal("polite"), refusal("curt")],
    "known": [KNOWN["shout"].meaning, *shape_of(KNOWN["shout"]).checks],
}))
"""


@pytest.mark.slow
def test_an_outside_distribution_is_found_through_its_entry_points() -> None:
    """A directory with a package and its metadata is enough; no shipped file names it."""
    environment = {**os.environ, "PYTHONPATH": str(OUTSIDE), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["role"] == "greeter"
    assert found["roles"] == ["greeter", "greeter"]
    assert found["graph"]["__start__"] == "greeter"
    assert '{"status": "greeted", "greeting": "Good day, Ada!"}' in found["answer"]
    assert found["loud"] == {"outcome": "HELLO"}
    assert found["too loud"] == {
        "kind": "refused",
        "message": "shout: the policy allows 40 characters, not 41",
    }
    assert found["policy"] == {"role": {}, "shout": {"maxCharacters": 40}}
    assert found["known"] == ["shout", "maxCharacters"]
    assert found["limits"] == ["told of the policy's tools, not held to it", None]
    assert found["settings"] == [None, {"word": "Hi"}]
    assert found["refusals"][0] is None
    assert "'poet'" in found["refusals"][1]


@pytest.mark.slow
def test_a_verb_of_another_distribution_is_called_and_replaces_none_of_ours(tmp_path: Path) -> None:
    """A verb registered elsewhere runs and is listed in the help; one that has the name of ours is
    passed over.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(OUTSIDE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "UNCAGED_WORKFLOW_HOME": str(tmp_path),
    }

    def run(*words: str) -> str:
        argv = [sys.executable, "-c", "from uncaged_cli.entry import main; main()", *words]
        return subprocess.run(
            argv, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert run("greetings") == "greetings from outside\n"
    assert "greetings" in run("--help")
    assert "greetings" not in run("list")
