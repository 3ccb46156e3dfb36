"""Trying agents of every kind, good and bad, against a real model server, the test agent of the
protocol and fake programs.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from testbed.health import ACP, PLANTED, Proving, shown
from testbed.modelserver import Turn, fails, says, serving
from testbed.tool_loops import WIRES
from uncaged_engine.processes.leftovers import marked
from uncaged_models.settings import Wire

BAD: dict[str, tuple[Turn, str, str, str]] = {
    "wrong key": (
        fails(401, "authentication_error", f"invalid key {PLANTED}"),
        "problem",
        r"URL does not accept the key \(.*invalid key secret:K\)",
        "put a valid one where its secret comes from",
    ),
    "no rights": (
        fails(403, "permission_error", "no"),
        "problem",
        "denies the key access to 'tiny'",
        "use another key or model",
    ),
    "no money": (
        fails(402, "billing_error", "pay"),
        "problem",
        "asks for payment",
        "settle that or use another model in config.yaml",
    ),
    "no model": (
        fails(404, "not_found_error", "tiny"),
        "problem",
        "URL has no model 'tiny'",
        "fix model or baseUrl in config.yaml",
    ),
    "busy": (
        fails(429, "rate_limit_error", "slow down"),
        "note",
        "it is there, but busy: URL answered 429",
        "try again later",
    ),
    "no request": (
        fails(400, "invalid_request_error", "odd"),
        "problem",
        "refused the request",
        "fix agents.mine in config.yaml",
    ),
    "cut": (
        says("re", cut="hard"),
        "problem",
        "broke off|gave no answer",
        "look at the server, and at the network between",
    ),
    "a page": (
        Turn(body="<html>"),
        "problem",
        "which is no stream of events",
        "fix baseUrl in config.yaml",
    ),
    "refusal": (
        says("no", stop="refusal"),
        "note",
        "tiny at URL refused to say a word",
        "ask it for something else to see more",
    ),
}


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory of their own for the checks' temporary files."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
def proving(tmp_path: Path) -> Proving:
    return Proving.make(tmp_path)


def nothing_left(proving: Proving) -> bool:
    """No process of the check runs, and its directory is gone."""
    return list(marked(proving.thread)) == [] and list(Path(tempfile.gettempdir()).iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
def test_a_model_is_asked_one_tiny_thing_once(proving: Proving, wire: Wire) -> None:
    """Few tokens, no tools, over the client of real turns; what it used is counted, and priced
    where the price is known.
    """
    with serving([says("ready", input_tokens=20, output_tokens=2)]) as server:
        found = proving.find(
            wire, baseUrl=server.base_url(wire), model="claude-haiku-4-5", key="secret:K"
        )
        url = server.base_url(wire)
    [asked] = server.asked
    assert shown(found) == {
        "level": "ok",
        "text": f"claude-haiku-4-5 at {url} answered",
        "remedy": "",
        "asked": True,
    }
    assert (asked["max_tokens"], len(asked["messages"]), asked.get("tools")) == (64, 1, None)
    assert (found.model, found.usage["inputTokens"], found.usage["outputTokens"]) == (
        "claude-haiku-4-5",
        20,
        2,
    )
    assert found.usage.get("cost") == 0.00003
    assert 0 < found.seconds < 20
    assert PLANTED in str(server.seen[0].headers)


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_a_model_comes_with_its_remedy(
    proving: Proving, wire: Wire, case: str
) -> None:
    """A problem takes one request: a busy endpoint is not asked again, and no key is shown."""
    turn, level, words, remedy = BAD[case]
    with serving([turn, says("again")]) as server:
        url = server.base_url(wire)
        found = proving.find(wire, baseUrl=url, model="tiny", key="secret:K")
        assert len(server.asked) == 1
    assert (found.level, found.remedy) == (level, remedy)
    assert re.search(words.replace("URL", re.escape(url)), found.text), found.text
    assert PLANTED not in repr(found)


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
def test_a_model_that_does_not_answer_is_left_in_time(proving: Proving, wire: Wire) -> None:
    """The agent's own time counts if it is shorter."""
    with serving(lambda _seen: says("re", gate=threading.Event())) as server:
        found = proving.find(
            wire, baseUrl=server.base_url(wire), model="tiny", key="secret:K", timeoutSeconds=0.3
        )
        assert found.text == f"tiny at {server.base_url(wire)} gave no answer within 0.3 s"
    assert (found.level, found.asked, found.seconds < 60) == ("problem", True, True)
    assert found.remedy.startswith("see whether it is still starting")


def test_a_budget_for_thinking_is_left_as_it_is(proving: Proving) -> None:
    """Options are sent as the person wrote them; fewer tokens than they need would be an error that
    no turn has.
    """
    with serving([says("ready")]) as server:
        proving.find(
            "openai",
            baseUrl=server.base_url("openai"),
            model="tiny",
            maxTokens=9000,
            options={"budget": 4000},
        )
    assert (server.asked[0]["max_tokens"], server.asked[0]["budget"]) == (9000, 4000)


def test_a_closed_address_and_a_missing_key_are_problems(proving: Proving) -> None:
    """No request that costs is needed for either."""
    gone = proving.find("openai", baseUrl="http://127.0.0.1:9/v1", model="tiny")
    assert "http://127.0.0.1:9/v1 cannot be reached (" in gone.text
    assert gone.remedy == "start it, or fix baseUrl in config.yaml"
    lacking = proving.find(
        "openai", baseUrl="http://127.0.0.1:9/v1", model="tiny", key="secret:NONE"
    )
    assert (lacking.text, lacking.remedy) == (
        "secret:NONE comes from the variable NOT_SET, which is not set",
        "set it",
    )
    unset = proving.find("anthropic")
    assert unset.text.startswith(
        "secret:ANTHROPIC_API_KEY comes from the variable ANTHROPIC_API_KEY"
    )
    assert (gone.asked, lacking.asked, unset.asked) == (False, False, False)


@pytest.mark.slow
def test_an_agent_of_the_protocol_opens_a_session_and_is_not_asked(proving: Proving) -> None:
    """The check has the agent's name and version; its process and directory are gone."""
    found = proving.acp("say:never")
    assert found.text.endswith("(test-agent 7) opened a session")
    assert (found.level, found.asked, dict(found.usage)) == ("ok", False, {})
    [session] = (proving.root / "sessions").iterdir()
    assert session.read_text() == ""
    assert nothing_left(proving)


@pytest.mark.slow
def test_the_check_has_the_model_of_a_session(proving: Proving) -> None:
    """The model is known for agents that let people choose one."""
    assert proving.acp("model:clever-2").model == "clever-2"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "settings", "text", "remedy"),
    [
        (
            ["locked"],
            {},
            "is not logged in (Authentication required: no key)",
            "log in with its own command",
        ),
        (["old"], {}, "speaks version 0 of the Agent Client Protocol", "bring it up to date"),
        (
            ["broken"],
            {},
            "no model is configured",
            "if it is not set up, log in with its own command",
        ),
        (
            ["mute"],
            {"startSeconds": 0.5},
            "did not take part in the Agent Client Protocol within 0.5 s",
            "wait for a person",
        ),
        (["mute"], {"timeoutSeconds": 0.5}, "within 0.5 s", "wait for a person"),
    ],
    ids=["locked", "old", "broken", "mute", "slow"],
)
def test_an_agent_of_the_protocol_that_cannot_begin(
    proving: Proving, words: list[str], settings: dict[str, Any], text: str, remedy: str
) -> None:
    """Not logged in, too old, not set up, silent: each has its own words, and none is left
    running.
    """
    found = proving.acp(*words, graceSeconds=0.2, **settings)
    assert (found.level, found.asked) == ("problem", False)
    assert text in found.text
    assert remedy in found.remedy
    assert nothing_left(proving)


@pytest.mark.slow
def test_an_agent_is_asked_where_only_an_answer_tells(proving: Proving) -> None:
    """Claude Code's adapter opens sessions without a login; only a prompt shows that it is
    missing.
    """
    proving.program("claude-agent-acp", f"exec python {ACP} unlocked")
    locked = proving.find("acp", row="claude-acp")
    assert (locked.level, "is not logged in" in locked.text) == ("problem", True)
    assert locked.remedy.startswith("run `claude` once and log in with /login")
    proving.program("claude-agent-acp", f"exec python {ACP} say:ready cost:500=0.01")
    found = proving.find("acp", row="claude-acp")
    assert (found.text, found.asked, found.usage["cost"]) == (
        "Claude Code, through its ACP adapter answered",
        True,
        0.01,
    )


@pytest.mark.slow
def test_a_program_has_one_turn_in_an_empty_directory(proving: Proving) -> None:
    """The program gets no rights; the check has its own figures."""
    found = proving.find("program", row="claude")
    assert shown(found) == {
        "level": "ok",
        "text": "Claude Code answered",
        "remedy": "",
        "asked": True,
    }
    assert (found.usage["cost"], found.usage["inputTokens"]) == (0.125, 100)
    [call] = [json.loads(line) for line in (proving.root / "calls").read_text().splitlines()]
    assert call["prompt"].startswith("This only tests the connection.")
    assert Path(call["cwd"]).name == "empty"
    assert Path(call["cwd"]).parent.name.startswith("uncaged-doctor-")
    assert "--permission-mode" not in call["argv"]
    assert nothing_left(proving)


PROGRAMS: dict[str, tuple[str, Mapping[str, object], str, str]] = {
    "not logged in": (
        "claude",
        {"result": {"is_error": True, "result": "Invalid API key · Please run /login"}},
        "Claude Code: Invalid API key",
        "run `claude` once and log in with /login",
    ),
    "its code says so": (
        "gemini-headless",
        {"error": "auth", "exit": 41},
        "it is not logged in",
        "run `gemini` once",
    ),
    "too old": (
        "claude",
        {"plain": 1, "exit": 1, "stderr": "error: unknown option"},
        "does not know what we ask",
        "bring it up to date",
    ),
    "fails": (
        "codex",
        {"failed": "stream disconnected"},
        "failed with exit code 1: stream disconnected",
        "run it by hand",
    ),
    "dies": (
        "claude",
        {"no_result": 1, "signal": "SIGKILL"},
        "was ended by signal 9",
        "run it by hand",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", PROGRAMS)
def test_what_is_wrong_with_a_program_comes_with_its_remedy(tmp_path: Path, case: str) -> None:
    """The output is read by the rules of the program's row, as in a real turn."""
    row, part, text, remedy = PROGRAMS[case]
    found = Proving.make(tmp_path, json.dumps(part)).find("program", row=row)
    assert found.level == "problem"
    assert text in found.text
    assert found.remedy.startswith(remedy)


@pytest.mark.slow
def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    """A program over its time limit is ended with the processes that it started."""
    proving = Proving.make(tmp_path, '{"hang": true}')
    found = proving.find("program", row="claude", timeoutSeconds=0.5, graceSeconds=0.2)
    assert found.text == "Claude Code gave no answer within 0.5 s and was stopped"
    assert found.remedy.endswith("then try again")
    assert nothing_left(proving)


def test_what_is_not_installed_says_how_it_is(proving: Proving) -> None:
    """Programs of the table, and those of a person's own."""
    kimi = proving.find("acp", row="kimi")
    assert (kimi.text, kimi.remedy) == (
        "Kimi Code is not installed: 'kimi' is not on PATH",
        "install it (see https://www.kimi.com/code) and run `kimi login`",
    )
    mine = proving.find("command", argv=["no-such-agent"])
    assert (mine.text, mine.remedy) == (
        "the agent's program 'no-such-agent' is not on PATH",
        "install it, or set argv of the agent in config.yaml",
    )


def test_what_costs_nothing_is_not_asked(proving: Proving) -> None:
    """Commands, scripts, the built-in repair, people."""
    script = proving.root / "answers.yaml"
    script.write_text("- {role: a, answer: hello}\n- {role: b, answer: hello}\n")
    findings = [
        proving.find("command", argv=["sh", "-c", f"touch {proving.root}/asked"]),
        proving.find("scripted", file=str(script)),
        proving.find("repair"),
        proving.find("person"),
    ]
    assert [(found.level, found.asked) for found in findings] == [("ok", False)] * 4
    assert findings[1].text == f"{script} has 2 answers"
    assert not (proving.root / "asked").exists()
    assert proving.find("scripted", file="/no/such").remedy == "bring it back"
    assert "not YAML" in _spoilt(proving, script).text


def _spoilt(proving: Proving, script: Path) -> Any:
    script.write_text("[")
    return proving.find("scripted", file=str(script))


def test_settings_that_are_wrong_are_named(proving: Proving) -> None:
    """The remedy is the place to fix; a secret there is not shown."""
    found = proving.find("command", argv=["true"], timeoutSeconds="secret:K")
    assert "needs timeoutSeconds in seconds above 0, not 'secret:K'" in found.text
    assert found.remedy == "fix agents.mine in config.yaml"
    assert proving.find("nonsense").level == "problem"
