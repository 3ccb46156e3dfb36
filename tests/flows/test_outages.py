"""Models and agents that are away for a while, in whole threads on real workers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testbed.bundles import granted, source
from testbed.modelserver import Seen, Turn, fails, says, serving
from testbed.steering import finish, settle
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

ASKING = source(
    "asking",
    """
    heard = yield {"llm": {"prompt": "Which city?"}} if input["params"]["kind"] == "llm" else {"role": {"name": "guide"}}
    return {"success": True, "message": heard if isinstance(heard, str) else heard["meta"]["city"]}
""",
    roles={
        "guide": {
            "description": "Names a city.",
            "systemPrompt": "You are the guide.",
            "extractPrompt": "The city.",
            "schema": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        }
    },
    policy={"llm": {}, "role": {}},
)
ANSWERS = {"llm": "Bern", "role": '{"city": "Bern"}'}
AWAY = {
    "429": Turn(status=429, headers={"retry-after": "0"}, body={"error": {"message": "slow down"}}),
    "503": fails(503, message="overloaded"),
    "cut": says("Be", cut="hard"),
}


def start(store: Store, agent: dict[str, object], kind: str) -> tuple[Engine, ThreadId]:
    """A thread whose agent and model are these, and that has not been followed yet."""
    config = {"agents": {"mine": agent}, "agent": "mine"}
    if kind == "llm":
        config["models"] = {"mine": agent}
    store.config_path.write_text(json.dumps(config))
    engine = Engine(store)
    granted(store, ASKING)
    return engine, engine.run(
        "asking",
        prompt="",
        params={"kind": kind},
        options=RunOptions(environment={"PATH": "/usr/bin:/bin"}),
    )


def tries(engine: Engine, thread: ThreadId) -> tuple[list[object], str]:
    """The tries that a follower saw, and the status at which the thread stopped."""
    events = list(engine.follow(thread))
    return [event.body["try"] for event in events if "try" in event.body], str(
        events[-1].body["status"]
    )


@pytest.mark.parametrize("kind", ["llm", "role"])
@pytest.mark.parametrize("outage", ["429", "503", "cut"])
def test_a_lasting_outage_of_a_model_pauses_and_resume_continues(
    store: Store, kind: str, outage: str
) -> None:
    """A model that answers 429 or 503, or cuts its stream, is asked four times, seen by followers;
    the thread is then `paused`, its bundle sees nothing of it, and `resume` continues."""
    recovered = False

    def answer(_: Seen) -> Turn:
        return says(ANSWERS[kind]) if recovered else AWAY[outage]

    with serving(answer) as server:
        engine, thread = start(
            store, {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}, kind
        )
        assert tries(engine, thread) == ([2, 3, 4], "paused")
        assert len(server.asked) == 4
        void = next(record for record in engine.thread(thread).records if "void" in record)
        # what was paid for is counted
        assert (void["void"], "usage" in void) == ("environment", outage == "cut")
        assert "(tried 4 times); wait until it answers again, then resume" in void["message"]
        assert "cannot be reached" not in void["message"]
        recovered = True
        engine.resume(thread)
        assert finish(engine, thread)["message"] == "Bern"
    assert engine.verify(thread).ok


@pytest.mark.parametrize("outage", ["429", "503", "cut"])
def test_a_short_outage_of_a_model_is_not_noticed_by_the_thread(store: Store, outage: str) -> None:
    """A model that is away for one request is asked again, and nothing is paused."""
    with serving([AWAY[outage], says("Bern")]) as server:
        engine, thread = start(
            store, {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}, "llm"
        )
        assert tries(engine, thread) == ([2], "completed")


def test_a_lasting_outage_of_an_agent_pauses_and_resume_continues(
    store: Store, tmp_path: Path
) -> None:
    """A program that reports an overloaded service is asked four times, then the thread is
    `paused`, and `resume` continues.
    """
    up, asked = tmp_path / "up", tmp_path / "asked"
    script = f"echo x >> {asked}; test -e {up} || {{ echo 'API Error: 529 Overloaded' >&2; exit 1; }}; echo '{ANSWERS['role']}'"
    engine, thread = start(store, {"use": "command", "argv": ["sh", "-c", script]}, "role")
    assert tries(engine, thread) == ([2, 3, 4], "paused")
    assert (
        "sh failed with exit code 1: API Error: 529 Overloaded (tried 4 times)"
        in engine.thread(thread).summary.message
    )
    up.touch()
    engine.resume(thread)
    assert finish(engine, thread)["message"] == "Bern"
    assert len(asked.read_text().split()) == 5


def test_an_agent_that_fails_by_itself_is_no_outage(store: Store) -> None:
    """An error that does not report an outage is a failure at once; the bundle gets it."""
    engine, thread = start(
        store, {"use": "command", "argv": ["sh", "-c", "echo 503 tests failed >&2; exit 1"]}, "role"
    )
    assert settle(engine, thread)["status"] == "failed"
    assert tries(engine, thread) == ([], "failed")
