"""`feedback` and `random` through the real command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import source
from testbed.sentences import flow_source, parameters
from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.calls import Call, Question
from uncaged_dispatcher.constructions.construction import learn
from uncaged_dispatcher.constructions.kept import Constructions
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_engine.api import Engine

from .conftest import register_flow

pytestmark = pytest.mark.slow
Command = Callable[..., subprocess.CompletedProcess[str]]
WHO = parameters("who", who={})
SLEEP = '    yield {"null": {"sleep_s": 600}}\n'


@pytest.fixture
def engine(environment: dict[str, str]) -> Engine:
    """A store with two flows of one pattern, one of which was learned from a translation."""
    for name in ("greet", "salute"):
        example = [{"sentence": f"hail Ada by {name}"}]
        text = flow_source(name, "hail $(who:wildcard)", schema=WHO, examples=example)
        register_flow(environment, name, text)
    engine = Engine(Store.open(Path(environment["UNCAGED_WORKFLOW_HOME"])))
    call = Call(flow="greet", params={"who": "Ada"})
    learned = learn(
        "say hi to Ada", call, engine.bundle("greet").descriptor.parameters, thread="T", now_ms=7
    )
    assert learned is not None
    Constructions(engine.store).add("", learned)
    return engine


def judged(command: Command, *words: str) -> Any:
    done = command("feedback", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_construction_that_misread_is_deleted_after_a_yes(
    command: Command, engine: Engine
) -> None:
    """The record is in the log either way; without a terminal only --yes deletes."""
    assert command("do", "say hi to Bob").returncode == 0
    kept = command("feedback", "bad", "not", "Bob")
    [construction] = Constructions(engine.store).all()
    assert f"constructions delete {construction.construction.id}" in kept.stderr
    assert judged(command, "good")["learned"] == []
    found = judged(command, "bad", "--yes", "--request", "1")
    assert [(one["kind"], one["deleted"]) for one in found["learned"]] == [("construction", True)]
    assert list(Constructions(engine.store).all()) == []
    assert command("do", "say hi to Bob", "--no-model").returncode == 5
    shown = command("conversation", "show").stdout
    assert shown.index("feedback: bad: not Bob") < shown.index("feedback: good")


def test_a_remembered_choice_is_forgotten(command: Command, engine: Engine) -> None:
    """After `feedback bad --yes` the person is asked again."""
    (engine.store.root / "config.yaml").write_text("collisions: {strategy: remembered-or-ask}\n")
    interpreter = Interpreter(engine)
    question = interpreter.interpret("hail Ada")
    assert isinstance(question, Question)
    interpreter.choose(question, "2", remember=True)
    assert command("do", "hail Eve").returncode == 0
    [choice] = judged(command, "bad")["learned"]
    assert (choice["kind"], choice["deleted"]) == ("choice", False)
    assert command("do", "hail Eve").returncode == 0
    [choice] = judged(command, "bad", "--yes")["learned"]
    assert choice["deleted"] is True
    assert command("do", "hail Eve").returncode == 1, "it needs an answer"


@pytest.mark.usefixtures("engine")
def test_feedback_reaches_the_holder_of_the_conversation(
    command: Command, environment: dict[str, str]
) -> None:
    """While another process runs a request, feedback on a former one is recorded by that process;
    feedback on the running one is refused.
    """
    register_flow(environment, "rest", source("rest", SLEEP, policy={"null": {}}))
    assert command("action", "greet", "--param", "who=Ada").returncode == 0
    with subprocess.Popen(
        [sys.executable, "-m", "uncaged_cli", "action", "rest", "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        try:
            assert holder.stdout is not None
            lines = (json.loads(line) for line in holder.stdout)
            assert any(line["event"] == "start" for line in lines)
            assert judged(command, "good", "--request", "1")["rating"] == "good"
            records = json.loads(command("conversation", "show", "--json").stdout)["records"]
            assert records[-1]["feedback"] == {"rating": "good"}
            running = next(one["seq"] for one in records if "rest" in str(one.get("request")))
            assert command("feedback", "bad", "--request", str(running)).returncode == 1
        finally:
            assert command("kill", "latest").returncode == 0
        assert holder.wait(timeout=60) == 3


@pytest.mark.usefixtures("engine")
def test_feedback_of_several_processes_is_kept(
    command: Command, environment: dict[str, str]
) -> None:
    """Processes that write to one conversation at once wait for each other."""
    assert command("action", "greet", "--param", "who=Ada").returncode == 0
    line = [sys.executable, "-m", "uncaged_cli", "feedback", "good"]
    writers = [
        subprocess.Popen([*line, str(number)], env=environment, stdout=subprocess.DEVNULL)
        for number in range(3)
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    records = json.loads(command("conversation", "show", "--json").stdout)["records"]
    kept = [one["feedback"]["comment"] for one in records if "feedback" in one]
    assert sorted(kept) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["good"], 5),
        (["good", "--request", "999999999999999999999999"], 5),
        (["good", "--request", "\x1b[2J"], 5),
        (["good", "a\x07"], 2),
        (["good", "x" * 3_000], 2),
        (["meh"], 2),
    ],
)
def test_feedback_without_a_request_or_with_hidden_text_is_refused(
    command: Command, words: list[str], code: int
) -> None:
    """Nothing is recorded, and the message cannot steer a terminal."""
    done = command("feedback", *words)
    assert (done.returncode, "\x1b" in done.stderr) == (code, False)
    assert json.loads(command("conversation", "show", "--json").stdout)["records"] == []


@pytest.mark.usefixtures("engine")
def test_a_random_example_is_of_an_enabled_flow(command: Command, tmp_path: Path) -> None:
    """A disabled flow, and one of a disabled or another pack, is never chosen."""
    (tmp_path / "hails.yaml").write_text("name: hails\nflows: [salute]\n")
    assert command("pack", "add", "hails.yaml").returncode == 0
    found = json.loads(command("random", "--pack", "hails", "--json").stdout)
    assert found == {"sentence": "hail Ada by salute", "flow": "salute", "pack": "hails"}
    assert command("pack", "disable", "hails").returncode == 0
    assert command("random", "--pack", "hails").returncode == 5
    assert {command("random").stdout for _ in range(3)} == {"hail Ada by greet\n"}
    assert "'who': 'Ada by greet'" in command("random", "--run").stdout
    assert command("disable", "greet").returncode == 0
    assert command("random").returncode == 5
