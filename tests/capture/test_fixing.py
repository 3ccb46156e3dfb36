"""Fixing of failed flows: the path without a model, refusals, and the limits of agents."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from testbed.bundles import source
from testbed.webserver import Reply, Seen, WebServer, data, serving
from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_capture.fixing.effects import ProposeHandler, last_proof
from uncaged_capture.fixing.failed import failed_thread
from uncaged_capture.fixing.proof import Proof, prove
from uncaged_capture.fixing.repeated import repeated_failure
from uncaged_capture.fixing.start import remove_directory, result_of, start_fix
from uncaged_engine.api import Cut, Engine, RunOptions
from uncaged_engine.door.effects import Cancel
from uncaged_engine.proposals import Proposals
from uncaged_tools.flows import wait

pytestmark = pytest.mark.slow

SCRIPT = """\
async def execute(api, params):
    answer = await api.http("GET", {url!r}, query={{"city": params.city}})
    if answer.error:
        return {{"success": False, "error": answer.error}}
    report = answer.data["json"]
    return f"{{report['temp']}} degrees"
"""
SENTENCE = {
    "sentence": "the weather in Oslo",
    "params": {"city": "Oslo"},
    "expect": {"contains": "5 degrees"},
}
CITY = {"name": "city", "type": "string", "required": True, "description": "the city"}
NOW_MS = 1_800_000_000_000


@pytest.fixture(scope="module")
def answer() -> dict[str, object]:
    """What the server answers; tests change it."""
    return {}


@pytest.fixture(scope="module")
def web(answer: dict[str, object]) -> Iterator[WebServer]:
    def script(_seen: Seen) -> Reply:
        fields = dict(answer)
        return data(fields, status=int(str(fields.pop("status", 200))))

    with serving(script) as server:
        yield server


@pytest.fixture
def engine(full_store: Store) -> Engine:
    return Engine(full_store)


def add_weather(engine: Engine, web: WebServer, **more: object) -> None:
    recipe: dict[str, object] = {
        "name": "weather",
        "description": "The temperature in a city.",
        "parameters": [CITY],
        "script": SCRIPT.format(url=web.url),
        "policy": {"http": {"hosts": ["127.0.0.1:*"], "private": True}},
        "examples": [SENTENCE],
        **more,
    }
    source = build_flow(parse_recipe(recipe)).source
    engine.add("weather", source, accept=lambda _sentences: True)


def run(engine: Engine) -> ThreadId:
    thread = engine.run("weather", prompt="", params={"city": "Oslo"})
    wait(engine, thread)
    return thread


def fix(
    engine: Engine, thread: str, directory: Path, now_ms: int = NOW_MS, agent: str = ""
) -> Mapping[str, Any]:
    """Fix a thread and return the result of the thread that does it."""
    started = start_fix(
        engine,
        thread,
        agents={"": agent} if agent else {},
        agent_settings={},
        directory=directory,
        environment=dict(os.environ),
        now_ms=now_ms,
    )
    wait(engine, started.thread)
    remove_directory(started)
    return result_of(engine.thread(started.thread).records)


def proved(engine: Engine, thread: str, recipe: object, directory: Path) -> Proof:
    """Return the proof of a changed recipe."""
    return prove(
        engine,
        failed_thread(engine, thread),
        json.dumps(recipe),
        ignored=[],
        directory=directory,
        environment=dict(os.environ),
        cancel=Cancel(),
    )


def failing(engine: Engine, web: WebServer, answer: dict[str, object]) -> tuple[ThreadId, ThreadId]:
    """Return a thread with success, and one after a field was renamed."""
    answer.clear()
    answer.update({"temp": 5, "wind": 3})
    add_weather(engine, web)
    good = run(engine)
    answer.clear()
    answer.update({"temperature": 5, "wind": 3})
    return good, run(engine)


def test_a_renamed_field_is_read_by_its_new_name(
    engine: Engine, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """The proposal has its evidence; accepted, a fork finishes the failed thread without sending
    again; the same failure within a day of it is not fixed again.
    """
    good, bad = failing(engine, web, answer)
    result = fix(engine, bad, tmp_path)
    assert result["success"] is True, result
    proposals = Proposals(engine.store)
    [proposal] = proposals.all()
    assert result["data"]["proposalId"] == proposal.id
    evidence: Any = proposal.evidence
    assert evidence["policy"] == "not wider"
    assert evidence["prefix"] == "1 step, identical"
    assert evidence["examples"] == [
        {"sentence": "the weather in Oslo", "outcome": "passed", "message": ""}
    ]
    assert [one["thread"] for one in evidence["threads"]["different"]] == [good]
    assert evidence["trial"].startswith("success: 5 degrees")
    proposals.accept(proposal.id, accept=lambda _wider: False, now_ms=NOW_MS)
    sent = len(web.seen)
    forked = engine.fork(bad, cut=Cut(at=result["data"]["keep"]), on="weather")
    assert wait(engine, forked).message == "5 degrees"
    assert len(web.seen) == sent
    assert engine.verify(forked).ok
    answer.clear()
    answer.update({"temp_c": 5, "wind": 3})
    again = run(engine)
    failed = failed_thread(engine, again)
    for hours in (0, 23):
        now_ms = proposal.created_ms + hours * 3_600_000
        with pytest.raises(RefusedError, match="failed in the same way"):
            fix(engine, again, tmp_path, now_ms)
    assert repeated_failure(proposals, failed, proposal.created_ms + 25 * 3_600_000) is None
    assert list((engine.store.root / "fixing").iterdir()) == []


def test_only_the_effect_prove_gives_a_proof(
    engine: Engine, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """Another effect that answers with what looks like a proof is none, nor is the proof of another
    thread.
    """
    _, bad = failing(engine, web, answer)
    fix(engine, bad, tmp_path)
    fixing = engine.thread("latest").summary.thread_id
    proof = last_proof(engine, fixing, bad)
    assert proof is not None
    assert proof["held"] is True
    assert last_proof(engine, fixing, fixing) is None
    forged = source(
        "forged",
        f"""
    yield {{"null": {{"value": {dict(proof)!r}}}}}
    return {{"success": True}}
""",
    )
    engine.add("forged", forged, accept=lambda _sentences: True)
    thread = engine.run("forged", prompt="")
    assert wait(engine, thread).status == "completed"
    assert last_proof(engine, thread, bad) is None


def test_a_script_that_only_reads_is_tried_where_its_files_are(
    engine: Engine, tmp_path: Path
) -> None:
    """Relative paths belong to the caller's directory, in the failed run and in the proof."""
    recipe = {
        "actionName": "prices",
        "description": "The prices.",
        "script": {"language": "bash", "body": "cat data/prices.txt\n", "arguments": []},
        "policy": {"script": {"executables": ["cat"], "read": ["."]}},
    }
    engine.add("prices", build_flow(parse_recipe(recipe)).source, accept=lambda _sentences: True)
    (tmp_path / "data" / "archive").mkdir(parents=True)
    (tmp_path / "data" / "archive" / "prices.txt").write_text("5 and 7\n", "utf-8")
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)
    options = RunOptions(directory=tmp_path, environment=dict(os.environ))
    thread = engine.run("prices", prompt="", options=options)
    assert not wait(engine, thread).success
    result = fix(engine, thread, tmp_path)
    assert result["success"] is True, result
    [proposal] = Proposals(engine.store).all()
    assert proposal.evidence["trial"] == "success: 5 and 7"


def test_a_script_that_writes_is_tried_elsewhere(engine: Engine, tmp_path: Path) -> None:
    """The caller's files are neither read nor changed by the proof."""
    body = "import os\nopen('made', 'w').write('x')\nprint(2 * int(os.environ['PARAM_N']) + 1)\n"
    recipe = {
        "actionName": "double",
        "description": "Twice a number.",
        "parameters": [{"name": "n", "type": "integer", "required": True, "description": "n"}],
        "script": {"language": "python", "body": body},
        "policy": {"script": {"read": ["."], "write": ["."]}},
        "examples": [{"sentence": "double 3", "params": {"n": 3}, "expect": {"equals": "6"}}],
    }
    engine.add("double", build_flow(parse_recipe(recipe)).source, accept=lambda _sentences: True)
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)
    options = RunOptions(directory=tmp_path, environment=dict(os.environ))
    thread = engine.run("double", prompt="double 3", params={"n": 3}, options=options)
    assert wait(engine, thread).message == "7"
    (tmp_path / "made").unlink()
    right = {**recipe, "script": {"language": "python", "body": body.replace(" + 1", "")}}
    answers = scripted(tmp_path, {**dict(failed_thread(engine, thread).case.recipe), **right})
    result = fix(engine, thread, tmp_path, agent=answers)
    assert result["success"] is True, result
    [proposal] = Proposals(engine.store).all()
    assert proposal.evidence["trial"] == "success: 6"
    assert not (tmp_path / "made").exists()


def test_a_past_success_with_another_result_refutes_a_change(
    engine: Engine, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """An agent reads a field that every answer has, and takes it for the one that was renamed."""
    good, bad = failing(engine, web, answer)
    recipe = dict(failed_thread(engine, bad).case.recipe)
    wrong = {**recipe, "script": recipe["script"].replace("temp", "wind"), "examples": []}
    proof = proved(engine, bad, wrong, tmp_path)
    assert proof.problems[0] == (
        f'{good} had success with "5 degrees"; its result is "3 degrees" now'
    )
    assert "the example 'the weather in Oslo' fails" in proof.problems[1]


def test_past_values_speak_against_a_plausible_script(engine: Engine, tmp_path: Path) -> None:
    """A changed script runs with past values. Another result refutes it where the present version
    still gives the recorded one; else it is listed first, and a person decides.
    """
    recipe = {
        "actionName": "prices",
        "description": "A price.",
        "parameters": [{**CITY, "name": "name"}],
        "script": {"language": "bash", "body": 'cat "data/$PARAM_NAME.txt"\n', "arguments": []},
        "policy": {"script": {"executables": ["cat"], "read": ["."]}},
    }
    engine.add("prices", build_flow(parse_recipe(recipe)).source, accept=lambda _sentences: True)
    (tmp_path / "data").mkdir()
    for name in ("drum", "flute"):
        (tmp_path / "data" / f"{name}.txt").write_text(f"price of {name}\n", "utf-8")
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)
    options = RunOptions(directory=tmp_path, environment=dict(os.environ))
    drum, flute, oar = (
        engine.run("prices", prompt="", params={"name": name}, options=options)
        for name in ("drum", "flute", "oar")
    )
    assert [wait(engine, one).success for one in (drum, flute, oar)] == [True, True, False]
    kept = dict(failed_thread(engine, oar).case.recipe)

    def of(body: str) -> Proof:
        changed = {**kept, "script": {**kept["script"], "body": body}}
        return proved(engine, oar, changed, tmp_path)

    (tmp_path / "data").rename(tmp_path / "stock")
    (tmp_path / "stock" / "oar.txt").write_text("price of oar\n", "utf-8")
    right: Any = of('cat "stock/$PARAM_NAME.txt"\n')
    assert (right.problems, right.evidence["pastValues"]) == ((), {"tried": 2, "same": 2})
    wrong: Any = of('echo "$PARAM_NAME"\n')
    assert wrong.problems == ()
    assert next(iter(wrong.evidence)) == "contradictions"
    assert wrong.evidence["contradictions"] == [
        f'{flute} had success with "price of flute"; with its values the result is "flute" now',
        f'{drum} had success with "price of drum"; with its values the result is "drum" now',
    ]
    (tmp_path / "stock").rename(tmp_path / "data")
    (tmp_path / "data" / "drum.txt").unlink()
    [problem] = of("true\n").problems
    assert problem.startswith(f'{flute} had success with "price of flute", as the present version')


def test_a_fraction_whose_text_is_not_recorded_stays_unproved(
    engine: Engine, tmp_path: Path
) -> None:
    """A code that was declared as a number lost its zeros before it was recorded."""
    code = {"name": "code", "type": "number", "required": True, "description": "a code"}
    recipe: dict[str, Any] = {
        "actionName": "codes",
        "description": "A code.",
        "parameters": [code],
        "script": {"language": "bash", "body": '[ "$PARAM_CODE" = 1.50 ]\n', "arguments": []},
    }
    engine.add("codes", build_flow(parse_recipe(recipe)).source, accept=lambda _sentences: True)
    bad = engine.run("codes", prompt="", params={"code": 1.5})
    assert not wait(engine, bad).success
    kept = dict(failed_thread(engine, bad).case.recipe)
    text = {**kept, "parameters": [{**code, "type": "string"}]}
    proof = proved(engine, bad, text, tmp_path)
    assert proof.problems == ()
    assert str(proof.evidence["trial"]).startswith("unproved: code was recorded as a number")


def test_a_version_that_lacks_the_same_command_is_refuted(engine: Engine, tmp_path: Path) -> None:
    """The trial pauses as the failed thread did, and proves nothing."""
    recipe: dict[str, Any] = {
        "actionName": "stamp",
        "description": "A stamp.",
        "script": {"language": "bash", "body": "no-such-stamp\n", "arguments": []},
        "policy": {"script": {"executables": ["no-such-stamp"]}},
    }
    engine.add("stamp", build_flow(parse_recipe(recipe)).source, accept=lambda _sentences: True)
    thread = engine.run("stamp", prompt="")
    assert wait(engine, thread).status == "paused"
    kept = dict(failed_thread(engine, thread).case.recipe)
    other = {**kept, "script": {**kept["script"], "body": "echo stamped\n"}}
    [problem] = proved(engine, thread, other, tmp_path).problems
    assert problem.startswith("a run with the same values pauses: ")


def test_only_the_version_whose_proof_held_is_proposed(
    engine: Engine, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """Neither one whose proof failed, nor one that took its place afterwards."""
    _, bad = failing(engine, web, answer)
    recipe = dict(failed_thread(engine, bad).case.recipe)
    right = {**recipe, "script": recipe["script"].replace("temp", "temperature")}
    wrong = {**recipe, "script": recipe["script"].replace("temp", "wind")}

    def proposed(thread: ThreadId, text: Mapping[str, object]) -> Any:
        tree = engine.store.work / thread
        tree.mkdir(exist_ok=True)
        (tree / "flow.json").write_text(json.dumps(text), "utf-8")
        context: Any = SimpleNamespace(
            store=engine.store, thread_id=thread, clock_ms=lambda: NOW_MS, directory=tmp_path
        )
        return ProposeHandler().perform({"thread": bad}, context)

    fix(engine, bad, tmp_path, agent=scripted(tmp_path, wrong, wrong, wrong))
    refuted = engine.thread("latest").summary.thread_id
    assert "no proof of this version held" in proposed(refuted, wrong).error["message"]
    fix(engine, bad, tmp_path, agent=scripted(tmp_path, right))
    proved = engine.thread("latest").summary.thread_id
    assert "no proof of this version held" in proposed(proved, wrong).error["message"]
    assert proposed(proved, right).fields["outcome"]["flow"] == "weather"


def test_a_cancelled_proof_ends_its_trials(
    full_store: Store, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """The trial that runs gets the token, and no other one is started."""
    cancel, seen = Cancel(), list[object]()

    class Counted(Engine):
        def trial(self, *_: object, **named: object) -> Any:
            seen.append(named["cancel"])
            cancel.request()
            raise RefusedError("it was ended")

    engine = Counted(full_store)
    _, bad = failing(engine, web, answer)
    failed = failed_thread(engine, bad)
    recipe = {**failed.case.recipe, "description": "Another one."}
    proof = prove(
        engine,
        failed,
        json.dumps(recipe),
        ignored=[],
        directory=tmp_path,
        environment=dict(os.environ),
        cancel=cancel,
    )
    assert seen == [cancel], "of the example"
    assert proof.evidence["trial"] == "it was cancelled"
    assert proof.problems


def test_two_likely_fields_are_reported_and_none_is_taken(
    engine: Engine, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """A guess between two names would be wrong half of the time."""
    answer.clear()
    answer.update({"tempInside": 5, "tempOutside": 3})
    add_weather(engine, web)
    result = fix(engine, run(engine), tmp_path)
    assert result["success"] is False
    assert "'tempInside'" in result["message"]
    assert "'tempOutside'" in result["message"]
    assert Proposals(engine.store).all() == ()


def test_a_field_without_a_likely_name_gets_a_report(
    engine: Engine, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """The report names the fields that were compared; nothing is proposed."""
    answer.clear()
    answer.update({"wind": 3, "humidity": 80})
    add_weather(engine, web)
    result = fix(engine, run(engine), tmp_path)
    assert result["success"] is False
    assert "'temp' is missing" in result["message"]
    assert "humidity" in result["message"]


def test_only_a_failed_thread_of_the_present_version_is_fixed(
    engine: Engine, web: WebServer, answer: dict[str, object]
) -> None:
    """Success, another version by now, and a flow without a recipe are refused with the reason."""
    good, bad = failing(engine, web, answer)
    with pytest.raises(RefusedError, match="has success"):
        failed_thread(engine, good)
    assert failed_thread(engine, bad).case.sign == "KeyError, after step 1"
    add_weather(engine, web, description="Another one.")
    with pytest.raises(RefusedError, match="by now"):
        failed_thread(engine, bad)


def scripted(tmp_path: Path, *recipes: Mapping[str, object], more: object = None) -> str:
    """Return an agent that writes these recipes, one after the other."""
    answers: list[dict[str, object]] = [
        {"role": "diagnostician", "meta": {"status": "found", "cause": "renamed"}}
    ]
    for recipe in recipes:
        files = {"flow.json": json.dumps(recipe), **({"notes.txt": "x"} if more else {})}
        meta = {"status": "changed", "summary": "as asked"}
        answers.append({"role": "fixer", "files": files, "meta": meta})
    path = tmp_path / "answers.yaml"
    path.write_text(json.dumps(answers), "utf-8")
    return f"scripted:{path}"


def test_an_agent_cannot_hide_what_it_changes(
    engine: Engine, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """Another flow and a broken recipe are refused with the reason; a wider policy is shown and not
    tried; removed examples are shown, and still run; other files are named.
    """
    _, bad = failing(engine, web, answer)
    recipe = dict(failed_thread(engine, bad).case.recipe)
    right = recipe["script"].replace("temp", "temperature")
    wider = {"http": {"hosts": ["127.0.0.1:*", "evil.example"], "private": True}}
    agent = scripted(
        tmp_path,
        {**recipe, "name": "other", "policy": {"trusted": True}},
        {**recipe, "script": right.replace("degrees", "grades"), "examples": []},
        {**recipe, "script": right, "examples": [], "policy": wider},
        more=True,
    )
    sent = len(web.seen)
    result = fix(engine, bad, tmp_path, agent=agent)
    assert result["success"] is True, result
    journal = json.dumps(engine.thread("latest").records)
    assert "not of 'weather'" in journal
    assert "should contain" in journal
    [proposal] = Proposals(engine.store).all()
    evidence: Any = proposal.evidence
    assert "evil.example" in evidence["policy"][0]
    assert "no example is left" in evidence["attention"]
    assert evidence["ignored"] == ["notes.txt"]
    assert "not granted" in evidence["trial"]
    assert len(web.seen) - sent <= 2  # the example of the second change, and none of the third
    with pytest.raises(RefusedError, match="asks for more"):
        Proposals(engine.store).accept(proposal.id, accept=lambda _wider: False, now_ms=NOW_MS)


def test_two_rounds_of_correction_are_the_end(
    engine: Engine, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """Three changes whose proofs fail give a report and no proposal."""
    _, bad = failing(engine, web, answer)
    recipe = dict(failed_thread(engine, bad).case.recipe)
    wrong = [
        {**recipe, "script": recipe["script"].replace("temp", name)}
        for name in ("a", "b", "c", "d")
    ]
    result = fix(engine, bad, tmp_path, agent=scripted(tmp_path, *wrong))
    assert result["success"] is False
    assert "the proof failed" in result["message"]
    assert Proposals(engine.store).all() == ()


def test_a_success_that_an_example_does_not_expect_is_a_failure(
    engine: Engine, tmp_path: Path
) -> None:
    """The script is corrected, and the fork runs it again."""
    examples = [
        {"sentence": f"double {n}", "params": {"n": n}, "expect": {"equals": str(2 * n)}}
        for n in (3, 10, 0)
    ]
    recipe = {
        "actionName": "double",
        "description": "Twice a number.",
        "parameters": [{"name": "n", "type": "integer", "required": True, "description": "n"}],
        "script": {
            "language": "python",
            "body": "import os\nprint(len(range(2 * int(os.environ['PARAM_N']) + 1)))\n",
        },
        "policy": {"script": {}},
        "examples": examples,
    }
    source = build_flow(parse_recipe(recipe)).source
    engine.add("double", source, accept=lambda _sentences: True)
    thread = engine.run("double", prompt="double 3", params={"n": 3})
    assert wait(engine, thread).message == "7"
    result = fix(engine, thread, tmp_path)
    assert result["success"] is True, result
    [proposal] = Proposals(engine.store).all()
    evidence: Any = proposal.evidence
    assert {one["outcome"] for one in evidence["examples"]} == {"passed"}
    Proposals(engine.store).accept(proposal.id, accept=lambda _wider: False, now_ms=NOW_MS)
    forked = engine.fork(thread, cut=Cut(at=result["data"]["keep"]), on="double")
    assert wait(engine, forked).message == "6"
    other = engine.run("double", prompt="", params={"n": 3})
    wait(engine, other)
    with pytest.raises(RefusedError, match="has success"):
        failed_thread(engine, other)


def test_a_request_that_sends_is_not_sent_again(
    engine: Engine, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """A POST that lacks a new field is proposed as unproved at its step."""
    script = (
        "async def execute(api, params):\n"
        f'    sent = await api.http("POST", {web.url!r}, json={{"city": params.city}})\n'
        "    return sent.text if not sent.error else {'success': False, 'error': sent.error}\n"
    )
    units = {**CITY, "name": "units", "required": False, "default": "metric"}
    add_weather(engine, web, script=script, parameters=[CITY, units], examples=[])
    answer.clear()
    answer.update({"status": 422, "error": "'units' is required"})
    bad = run(engine)
    sent = len(web.seen)
    result = fix(engine, bad, tmp_path)
    assert len(web.seen) == sent
    assert result["success"] is True, result
    [proposal] = Proposals(engine.store).all()
    assert str(proposal.evidence["trial"]).startswith("unproved at step 1")


def test_a_fix_cannot_make_a_flow_trusted_or_be_something_else(
    engine: Engine, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """Out of the sandbox, unchanged, and no recipe at all: each with its reason."""
    _, bad = failing(engine, web, answer)
    recipe = dict(failed_thread(engine, bad).case.recipe)
    wrong = [{**recipe, "policy": {"trusted": True}}, recipe, {"flow": "no"}]
    result = fix(engine, bad, tmp_path, agent=scripted(tmp_path, *wrong))
    assert result["success"] is False
    journal = json.dumps(engine.thread("latest").records)
    for reason in ("cannot make a flow trusted", "flow.json is unchanged", "is no recipe"):
        assert reason in journal, reason
    assert Proposals(engine.store).all() == ()


def test_a_flow_that_moved_meanwhile_gets_no_proposal(
    engine: Engine, web: WebServer, answer: dict[str, object], tmp_path: Path
) -> None:
    """The reason is the result; the thread does not fail."""
    _, bad = failing(engine, web, answer)
    started = start_fix(
        engine,
        bad,
        agents={"diagnostician": "person", "fixer": "fixer"},
        agent_settings={},
        directory=tmp_path,
        environment=dict(os.environ),
        now_ms=NOW_MS,
    )
    assert wait(engine, started.thread).status == "waiting"
    add_weather(engine, web, description="Another one.")
    engine.answer(started.thread, {"status": "found", "cause": "renamed"})
    done = wait(engine, started.thread)
    assert (done.status, done.success) == ("completed", False)
    assert "by now" in str(done.message)
