"""Script and task flows as whole threads: they call one another, survive a killed worker, and tell
what they were denied.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import granted, source
from testbed.processes import end_workers
from testbed.steering import finish, settle
from testbed.webserver import Reply, Seen, data, serving
from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow


def add_task(
    engine: Engine, name: str, script: str, policy: dict[str, Any] | None = None, *parameters: str
) -> None:
    listed = [
        {"name": one, "type": "string", "required": True, "description": ""} for one in parameters
    ]
    recipe = {
        "name": name,
        "description": "d",
        "parameters": listed,
        "script": script,
        "grammarPatterns": [],
    }
    engine.add(
        name,
        build_flow(
            parse_recipe({**recipe, **({} if policy is None else {"policy": policy})})
        ).source,
        accept=lambda _: True,
    )


def add_script(engine: Engine, name: str, body: str, *, form: str = "text", **sandbox: Any) -> None:
    script = {"language": "bash", "body": body, "expectedOutputFormat": form}
    recipe = {
        "actionName": name,
        "description": "d",
        "parameters": [],
        "script": script,
        "sandbox": {"allowedCommands": [], **sandbox},
    }
    engine.add(name, build_flow(parse_recipe(recipe)).source, accept=lambda _: True)


def test_flows_call_one_another(engine: Engine) -> None:
    """A task starts a script and another task, at once; their results are its data; a failure and
    an unknown flow arrive as errors.
    """
    add_script(engine, "forty-one", "echo '{\"n\": 41}'", form="json")
    add_task(
        engine, "more", "async def execute(api, params):\n    return int(params.n) + 1\n", {}, "n"
    )
    add_task(
        engine,
        "asker",
        """
async def execute(api, params):
    first = await api.call_action("forty-one")
    n = first.data.output.n
    good, bad, unknown = await api.gather(
        api.call_action("more", None, {"n": str(n)}), api.call_action("more", None, {"n": "x"}), api.call_action("mroe")
    )
    return {"success": True, "message": "ok", "data": [n, good.data, bad.error, unknown.error]}
""",
        {"flow": {}, "all": {}},
    )
    result = finish(engine, engine.run("asker", prompt=""))
    n, good, bad, unknown = result["data"]
    assert (n, good) == (41, 42)
    assert "invalid literal for int()" in bad
    assert "did you mean 'more'" in unknown


def test_a_task_whose_child_failed_unseen_is_unsuccessful(engine: Engine) -> None:
    """A task that never looked at its child's failure completes without success, and its message
    names the child and its error.
    """
    add_task(
        engine,
        "broken",
        "async def execute(api, params):\n    return {'success': False, 'message': 'no disc'}\n",
        {},
    )
    add_task(
        engine,
        "parent",
        "async def execute(api, params):\n    await api.call_action('broken')\n",
        {"flow": {}},
    )
    thread = engine.run("parent", prompt="")
    assert finish(engine, thread)["message"].startswith(
        "flow broken: no disc (the script did not look at this error"
    )
    assert engine.thread(thread).summary.success is False
    assert engine.verify(thread).ok


def test_a_granted_directory_is_remembered_across_workers(engine: Engine, tmp_path: Path) -> None:
    """A directory that is swapped while a thread waits and no worker lives is refused by the next
    worker; the thread verifies.
    """
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_text("granted")
    script = f"yield {{'script': {{'language': 'bash', 'body': 'cat {tmp_path}/in/file'}}}}"
    body = f"""
    first = {script}
    yield {{"ask": {{"question": "go on?"}}}}
    try:
        second = {script}
    except Exception as error:
        return {{"success": False, "message": str(error), "data": first["stdout"]}}
    return {{"success": True, "message": second["stdout"]}}
"""
    policy = {"ask": {}, "script": {"executables": ["cat"], "read": ["in"]}}
    (tmp_path / "in").chmod(0o755)
    tmp_path.chmod(0o755)
    granted(engine.store, source("reading", body, policy=policy))
    thread = engine.run("reading", prompt="", options=RunOptions(directory=tmp_path))
    assert settle(engine, thread)["status"] == "waiting"
    assert end_workers(engine.store.root) == []
    (tmp_path / "in").rename(tmp_path / "former")
    (tmp_path / "in").mkdir()
    engine.answer(thread, "yes", options=RunOptions(directory=tmp_path))
    settle(engine, thread)
    result = engine.thread(thread).records[-1]["result"]
    assert "is not what it was when this thread first used it: then device" in result["message"]
    assert result["data"] == "granted"
    assert engine.verify(thread).ok


def test_a_killed_worker_performs_nothing_twice(engine: Engine) -> None:
    """Six effects, the worker killed in the middle of the fifth: each of the others reaches the
    server once.
    """
    seen: list[str] = []
    reached, go = threading.Event(), threading.Event()

    def answer(request: Seen) -> Reply:
        seen.append(request.method + request.path)
        if request.path == "/4" and not go.is_set():
            reached.set()
            go.wait(60)
        return data({"n": request.path})

    with serving(answer) as server:
        script = f"""
async def execute(api, params):
    found = []
    for n in range(6):
        method = "GET" if n == 4 else "POST"
        step = await api.http(method, f"http://127.0.0.1:{server.port}/{{n}}", timeout_s=60)
        found.append(step.data.json.n if step.error is None else step.error)
    return found
"""
        add_task(
            engine,
            "poster",
            script,
            {"http": {"hosts": [f"127.0.0.1:{server.port}"], "private": True}},
        )
        thread = engine.run("poster", prompt="")
        assert reached.wait(60)
        assert end_workers(engine.store.root) == []
        go.set()
        assert engine.thread(thread).summary.status == "interrupted"
        engine.resume(thread)
        assert finish(engine, thread)["data"] == [f"/{n}" for n in range(6)]
    assert sorted(seen) == ["GET/4", "GET/4", "POST/0", "POST/1", "POST/2", "POST/3", "POST/5"]
    assert engine.verify(thread).ok


def test_a_script_whose_end_nobody_knows_is_asked_about(engine: Engine, tmp_path: Path) -> None:
    """A script that may write is not run again by itself after a crash in the middle of it: a
    person decides.
    """
    place = tmp_path / "place"
    place.mkdir()
    tmp_path.chmod(0o755)
    ready = place / "ready"
    os.mkfifo(ready)
    ready.chmod(0o666)
    body = f"echo x >> {place}/marks; [ -e {place}/again ] || {{ echo begun > {ready}; while :; do :; done; }}"
    add_script(engine, "writer", body, writePaths=[str(place)], maxExecutionTime=60)
    thread = engine.run("writer", prompt="", options=RunOptions(directory=tmp_path))
    assert ready.read_text() == "begun\n"
    assert end_workers(engine.store.root) == []
    assert engine.thread(thread).summary.status == "unknown"
    with pytest.raises(RefusedError, match="--redo"):
        engine.resume(thread)
    (place / "again").touch()
    engine.resume(thread, redo=True)
    assert finish(engine, thread)["success"]
    assert (place / "marks").read_text() == "x\nx\n"


FORBIDDEN = [
    ("wget http://example.org", {}, "the command 'wget' is not among the policy's executables"),
    (
        "cat /etc/shadow",
        {"allowedCommands": ["cat"]},
        "the path '/etc/shadow' is outside what the policy allows",
    ),
    ("curl -sS http://example.org/", {"allowedCommands": ["curl"]}, "the network is off"),
    (
        "cat <<END\ntoday is $(date)\nEND",
        {"allowedCommands": ["cat"]},
        "\nthe command 'date' is not among the policy's executables; "
        'declare it in the policy: "script": {"executables": ["cat", "date"]}',
    ),
    (
        'tar czf "$TMPDIR/x.tgz" . || true',
        {"allowedCommands": ["tar"]},
        '{"executables": ["tar", "gzip"]}',
    ),
    ("while :; do :; done", {"maxExecutionTime": 1}, "its time was over after 1 s"),
]


@pytest.mark.parametrize(
    ("body", "sandbox", "words"), FORBIDDEN, ids=[case[0] for case in FORBIDDEN]
)
def test_what_is_denied_is_named(
    engine: Engine, body: str, sandbox: dict[str, Any], words: str
) -> None:
    """The result names the item, how to declare it, and the command that changes the flow; the
    thread itself completed.
    """
    if "wget" in body and not any(
        Path(place, "wget").exists() for place in ("/usr/bin", "/bin", "/usr/local/bin")
    ):
        body, words = body.replace("wget", "od"), words.replace("wget", "od")
    add_script(engine, "tries", body, **sandbox)
    result = finish(engine, engine.run("tries", prompt=""))
    assert result["success"] is False
    assert words in result["message"]
    assert "change it with 'uncaged-workflow edit tries'" in result["message"]


def test_what_is_tolerated_is_no_failure(engine: Engine) -> None:
    """The recipe's ``tolerate`` lets a script succeed without what it names; declared commands make
    it right.
    """
    body = "cat <<END\ntoday is $(date +%Y)\nEND"
    add_script(engine, "tolerant", body, allowedCommands=["cat"], tolerate=["date"])
    result = finish(engine, engine.run("tolerant", prompt=""))
    assert (result["success"], result["message"]) == (True, "today is ")
    add_script(engine, "right", body, allowedCommands=["cat", "date"])
    assert finish(engine, engine.run("right", prompt=""))["message"].startswith("today is 2")


def test_parameters_are_checked_before_a_thread_exists(engine: Engine) -> None:
    """A task's parameters are checked, too; the start record has them as the flow got them."""
    add_task(engine, "greet", "async def execute(api, params):\n    return params.who\n", {}, "who")
    with pytest.raises(UsageError, match="who: is required"):
        engine.run("greet", prompt="")
    assert engine.threads() == []
    thread = engine.run("greet", prompt="", params={"WHO": "you"})
    assert finish(engine, thread)["data"] == "you"
    assert json.loads(json.dumps(engine.thread(thread).start))["parameters"]["params"] == {
        "who": "you"
    }


def test_a_missing_program_pauses_the_thread(engine: Engine) -> None:
    """A missing program pauses the thread, whose message names the program."""
    add_script(engine, "lacks", "true", allowedCommands=["no-such-program"])
    thread = engine.run("lacks", prompt="")
    assert settle(engine, thread)["status"] == "paused"
    assert "no-such-program" in engine.thread(thread).summary.message
