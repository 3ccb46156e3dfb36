"""Models as agents: real clients, real tools, a real server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testbed.modelserver import ModelServer, Seen, Turn, calls, fails, says, serving
from testbed.repositories import make_repository
from testbed.roles import SCHEMA, request, role_spec
from testbed.tool_loops import KEY, WIRES
from uncaged_agents.kinds import factory_of
from uncaged_agents.local_server import find_server, first_model
from uncaged_agents.turns.dialogue import ask_until_usable
from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_bundles.rights import Rights
from uncaged_engine.door.agents import AgentFailed, AgentRequest
from uncaged_models.prompts.extract import checker
from uncaged_models.prompts.prompt import build_prompt
from uncaged_models.settings import Wire

pytestmark = pytest.mark.slow

DONE = '```json\n{"status": "done"}\n```\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository")


@pytest.fixture
def asked(tmp_path: Path, repository: Path) -> AgentRequest:
    """Return the request to a coder, as the role effect would send it."""
    role = role_spec()
    prompt = build_prompt(
        role=role,
        task="Fix add().",
        params={},
        steps=[],
        extra=None,
        note=None,
        max_history_characters=1000,
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return request(
        repository,
        role=role,
        prompt=prompt,
        scratch=scratch,
        environment={"PATH": os.environ["PATH"]},
    )


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    yield request.param


def agent_for(server: ModelServer, wire: Wire, **more: object) -> Any:
    return factory_of(wire)({"baseUrl": server.base_url(wire), "model": "tiny", "key": KEY, **more})


def texts(server: ModelServer, wire: Wire, number: int = 0) -> tuple[str, str]:
    """The system prompt and the last turn of a request."""
    body = server.asked[number]
    system = body["system"][0]["text"] if wire == "anthropic" else body["messages"][0]["content"]
    last = body["messages"][-1]["content"]
    return system, last if isinstance(last, str) else last[-1]["text"]


def test_it_works_in_the_worktree_and_answers(
    asked: AgentRequest, repository: Path, wire: Wire
) -> None:
    """Read, edit, check, answer: four requests, one answer, the file changed, every token
    counted.
    """
    check = "python3 -c 'import add; print(add.add(2, 3))'"
    script = [
        calls(("read", {"path": "add.py"})),
        calls(("edit", {"path": "add.py", "old": "a - b", "new": "a + b"})),
        calls(("run", {"command": check})),
        says("Fixed.\n\n", DONE),
    ]
    heard: list[Any] = []
    with serving(script) as server:
        answer = agent_for(server, wire).answer(replace(asked, progress=heard.append))
        assert "5" in json.dumps(server.asked[3]["messages"][-1])
    assert answer.text == f"Fixed.\n\n{DONE}"
    assert (repository / "add.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert answer.usage["turns"] == 4
    assert answer.usage["inputTokens"] == 400
    assert [event["tool"] for event in heard if "tool" in event] == ["read", "edit", "run"]
    assert {"file": "add.py"}.items() <= next(
        event for event in heard if event.get("tool") == "edit"
    ).items()
    assert KEY not in str(heard)


def test_the_role_is_the_system_prompt_and_the_rest_is_the_first_turn(
    asked: AgentRequest, wire: Wire
) -> None:
    """No part of the prompt is lost or repeated."""
    with serving([says(DONE)]) as server:
        agent_for(server, wire).answer(asked)
        system, prompt = texts(server, wire)
    assert system.endswith("# Your role: coder\n\nYou are the coder.")
    assert "Commands have no network." in system
    assert prompt.startswith("# The task\n\nFix add().")
    assert "You are the coder." not in prompt
    assert "exactly one fenced block" in prompt
    assert (
        f"{system.partition('# Your role')[1]}{system.partition('# Your role')[2]}\n\n{prompt}"
        == asked.prompt
    )


def test_a_good_answer_costs_one_request_and_a_bad_one_goes_on_in_the_same_conversation(
    asked: AgentRequest, wire: Wire
) -> None:
    """A repair hears only what was wrong; the file of the conversation is the thread's own."""
    with serving([says("All is well.\n", DONE)]) as server:
        first = ask_until_usable(agent_for(server, wire), asked, checker(SCHEMA), lambda _: None)
        assert (first.meta, first.calls, len(server.asked)) == ({"status": "done"}, 1, 1)
    attempts: list[Any] = []
    with serving(
        [calls(("list", {})), says('```json\n{"status": "finished"}\n```'), says("Sorry.\n", DONE)]
    ) as server:
        corrected = ask_until_usable(
            agent_for(server, wire), asked, checker(SCHEMA), attempts.append
        )
        assert corrected.meta == {"status": "done"}
        assert len(server.asked) == 3
        assert len(server.asked[2]["messages"]) == len(server.asked[1]["messages"]) + 2
        assert texts(server, wire, 2)[1].startswith("# Your answer could not be used")
        assert "Fix add()" not in texts(server, wire, 2)[1]
    assert corrected.usage["turns"] == 3
    assert corrected.usage["inputTokens"] == 300
    assert [attempt["problem"] for attempt in attempts] == [
        "status: 'finished' is not one of ['done', 'stuck']"
    ]
    assert [
        path.stat().st_mode & 0o777 for path in (asked.scratch / "conversations").iterdir()
    ] == [0o600]


def test_a_repair_is_forced_into_the_schema_where_the_endpoint_can(asked: AgentRequest) -> None:
    """The first answer is free to say more than its data; one that had to be put right is the data
    alone.
    """
    with serving([says("no block"), says('{"status": "done"}')]) as server:
        corrected = ask_until_usable(
            agent_for(server, "anthropic"), asked, checker(SCHEMA), lambda _: None
        )
        assert (corrected.meta, corrected.content) == ({"status": "done"}, '{"status": "done"}')
        assert "output_config" not in server.asked[0]
        form = server.asked[1]["output_config"]["format"]
        assert (
            form["type"],
            form["schema"]["required"],
            form["schema"]["additionalProperties"],
        ) == ("json_schema", ["status"], False)
    with serving([says("no block"), says(DONE)]) as server:
        ask_until_usable(agent_for(server, "openai"), asked, checker(SCHEMA), lambda _: None)
        assert not any("response_format" in body for body in server.asked)
    with serving([says("no block"), says(DONE)]) as server:
        ask_until_usable(
            agent_for(server, "openai", structured=True), asked, checker(SCHEMA), lambda _: None
        )
        assert ["response_format" in body for body in server.asked] == [False, True]


def test_a_lost_conversation_is_replaced_by_the_whole_prompt(
    asked: AgentRequest, wire: Wire
) -> None:
    """The correction has the whole prompt if the file of the conversation is gone."""

    def forget(_: object) -> None:
        for path in (asked.scratch / "conversations").iterdir():
            path.unlink()

    with serving([says("nothing"), says(DONE)]) as server:
        assert ask_until_usable(agent_for(server, wire), asked, checker(SCHEMA), forget).meta == {
            "status": "done"
        }
        assert "Fix add()" in texts(server, wire, 1)[1]


def test_without_a_workspace_it_only_talks(asked: AgentRequest, wire: Wire) -> None:
    """No tools are described, and one that is called all the same is not there."""
    with serving([calls(("run", {"command": "id"})), says(DONE)]) as server:
        agent_for(server, wire).answer(replace(asked, worktree=None))
        assert "tools" not in server.asked[0]
        assert "You have no tools" in texts(server, wire)[0]
        assert "there is no tool 'run'" in json.dumps(server.asked[1]["messages"])


def test_a_role_gets_what_its_policy_names(asked: AgentRequest, wire: Wire) -> None:
    """The tools by name, and the network for its commands if that is named."""
    with serving([says(DONE)]) as server:
        agent_for(server, wire).answer(
            replace(asked, rights=Rights(tools=frozenset({"read", "run"}), network=True))
        )
        described = [
            tool["name"] if wire == "anthropic" else tool["function"]["name"]
            for tool in server.asked[0]["tools"]
        ]
        assert described == ["read", "run"]
        assert "Commands may use the network." in texts(server, wire)[0]


@pytest.mark.parametrize("network", [True, False])
def test_commands_of_a_role_have_a_network_only_by_its_policy(
    asked: AgentRequest, network: bool
) -> None:
    """The server of the model itself is reached from a command with it, and not without."""

    def script(seen: Seen) -> Turn:
        if len(seen.body["messages"]) > 1:
            return says(DONE)
        program = f"import urllib.request; print(urllib.request.urlopen('http://{seen.headers['host']}/v1/models', timeout=3).status)"
        return calls(("run", {"command": f'python3 -c "{program}"'}))

    with serving(script) as server:
        agent_for(server, "anthropic").answer(
            replace(asked, rights=Rights(tools=frozenset({"run"}), network=network))
        )
        assert ("[exit code 0]\\n200" in json.dumps(server.asked[1]["messages"])) is network


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (says("I", stop="refusal"), "refusal"),
        (fails(400, "invalid_request_error", "nonsense"), "model"),
    ],
    ids=["refusal", "model"],
)
def test_a_failure_says_its_kind_and_what_was_used(
    asked: AgentRequest, wire: Wire, turn: Turn, kind: str
) -> None:
    """Tokens of the turns before it are not lost."""
    with serving([calls(("list", {})), turn]) as server, pytest.raises(AgentFailed) as caught:
        agent_for(server, wire).answer(asked)
    assert caught.value.kind == kind
    usage = caught.value.more["usage"]
    assert isinstance(usage, dict)
    assert usage["inputTokens"] >= 100
    assert usage["turns"] == 2


def test_what_repairs_use_up_is_added_while_they_run_and_when_they_fail(
    asked: AgentRequest, wire: Wire
) -> None:
    """A limit that is watched while a model answers sees the whole step, and a failure loses no
    token of it.
    """
    heard: list[Any] = []
    with (
        serving([says("no block"), fails(400, "invalid_request_error", "nonsense")]) as server,
        pytest.raises(AgentFailed) as caught,
    ):
        ask_until_usable(
            agent_for(server, wire),
            replace(asked, progress=heard.append),
            checker(SCHEMA),
            lambda _: None,
        )
    usage = caught.value.more["usage"]
    assert isinstance(usage, dict)
    assert (usage["inputTokens"], usage["outputTokens"], usage["turns"], usage["model"]) == (
        100,
        10,
        2,
        "tiny",
    )
    with serving([says("no block"), says(DONE)]) as server:
        ask_until_usable(
            agent_for(server, wire),
            replace(asked, progress=heard.append),
            checker(SCHEMA),
            lambda _: None,
        )
    assert [event["usage"]["inputTokens"] for event in heard if "usage" in event][-1] == 200


def test_its_turns_and_its_time_have_bounds(asked: AgentRequest, wire: Wire) -> None:
    """The number of turns and the time are limited by settings."""
    with (
        serving(lambda _: calls(("list", {}))) as server,
        pytest.raises(AgentFailed, match="within 2 turns; raise maxTurns"),
    ):
        agent_for(server, wire, maxTurns=2).answer(asked)
    slow = calls(("run", {"command": "sleep 60"}))
    with (
        serving([slow]) as server,
        pytest.raises(AgentFailed, match=r"no answer within 0\.5 s") as caught,
    ):
        agent_for(server, wire).answer(replace(asked, timeout_s=0.5))
    assert caught.value.kind == "timeout"


def test_settings_are_checked_before_anything_starts(wire: Wire) -> None:
    """A slip names the nearest right word."""
    with pytest.raises(UsageError, match="did you mean 'maxTurns'"):
        factory_of(wire)({"maxTurn": 3})
    with pytest.raises(UsageError, match="maxTurns"):
        factory_of(wire)({"maxTurns": 0})
    factory_of(wire)({})


def test_a_wrong_key_is_a_lack(asked: AgentRequest, wire: Wire) -> None:
    """A refused key pauses the thread; the message does not hold it."""
    with (
        serving([fails(401, "authentication_error", "invalid x-api-key")]) as server,
        pytest.raises(EnvironmentLacks) as caught,
    ):
        agent_for(server, wire).answer(asked)
    assert "then resume" in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_model_server_on_loopback_is_found_by_asking() -> None:
    """The first of its models that can talk; ports without an answer, or with another server's, are
    passed over.
    """
    with serving([]) as server, serving([]) as other:
        other.models = ["only-embeddings"]
        closed = 1  # no server listens there
        found = find_server((closed, other.port, server.port))
        assert found is not None
        assert (found.port, found.model) == (server.port, "tiny-coder")
        assert found.url == f"http://127.0.0.1:{server.port}/v1"
        server.models = []
        assert find_server((closed, server.port)) is None
        assert first_model(closed) == ""
