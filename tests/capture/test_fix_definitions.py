"""Fixing of flows that were built from a definition: their roles' steps are not asked for again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import source as source_of_bundle
from testbed.processes import end, workers_of
from uncaged_bundles.builders.definition import build_definition
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_capture.fixing.failed import failed_thread
from uncaged_capture.fixing.start import remove_directory, result_of, start_fix
from uncaged_engine.api import Cut, Engine, RunOptions
from uncaged_engine.proposals import Proposals
from uncaged_engine.threads.ending import is_fixable
from uncaged_tools.flows import wait

pytestmark = pytest.mark.slow

DEFINITION = """
from uncaged_bundles.authoring import END, Role, View, Workflow

SCHEMA = {"type": "object", "properties": {"status": {"enum": ["written"]}}, "required": ["status"]}
writer = Role(name="writer", description="Writes.", system_prompt="Write.", extract_prompt="Say.", schema=SCHEMA)
TIMES = {"type": "string", "default": "2", "description": "how often"}


def moderator(ctx: View) -> str:
    return "writer" if len(ctx.steps) < CONDITION else END


workflow = Workflow(
    name="NAME",
    description="Writes several times.",
    roles=[writer],
    moderator=moderator,
    parameters={"type": "object", "properties": {"times": TIMES}, "additionalProperties": False},
)
"""
WRITTEN = {"role": "writer", "meta": {"status": "written"}}
NOW_MS = 1_800_000_000_000


@pytest.fixture(scope="module")
def engine(shipped_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    root = tmp_path_factory.mktemp("definitions") / "store"
    shutil.copytree(shipped_files, root)
    yield Engine(Store.open(root))
    end([worker.pid for worker in workers_of(root)])


def add(engine: Engine, directory: Path, name: str, condition: str) -> None:
    """Add a flow whose only role is asked as long as there are fewer steps than the condition."""
    file = directory / f"{name}_flow.py"
    file.write_text(DEFINITION.replace("NAME", name).replace("CONDITION", condition))
    engine.add(name, build_definition(file), accept=lambda _sentences: True)


def run(engine: Engine, directory: Path, name: str, **params: object) -> ThreadId:
    options = RunOptions(agents={"": scripted(directory, WRITTEN, WRITTEN, WRITTEN)})
    thread = engine.run(name, prompt="", params=params, options=options)
    wait(engine, thread)
    return thread


def scripted(directory: Path, *answers: Mapping[str, object]) -> str:
    path = directory / "answers.yaml"
    path.write_text(json.dumps(answers), "utf-8")
    return f"scripted:{path}"


def fix(engine: Engine, thread: str, directory: Path, agent: str = "") -> Mapping[str, Any]:
    started = start_fix(
        engine,
        thread,
        agents={"": agent} if agent else {},
        agent_settings={},
        directory=directory,
        environment=dict(os.environ),
        now_ms=NOW_MS,
    )
    wait(engine, started.thread)
    remove_directory(started)
    return result_of(engine.thread(started.thread).records)


def answering(directory: Path, *changed: Mapping[str, object]) -> str:
    """Return an agent that writes these definitions, one after the other."""
    found = {"role": "diagnostician", "meta": {"status": "found", "cause": "misspelt"}}
    meta = {"status": "changed", "summary": "as asked"}
    fixes = [
        {"role": "fixer", "files": {"flow.json": json.dumps(one)}, "meta": meta} for one in changed
    ]
    return scripted(directory, found, *fixes)


def test_a_parameter_of_the_wrong_type_is_fixed_without_a_model(
    engine: Engine, tmp_path: Path
) -> None:
    """The answer that is recorded is not asked for again; the step after it would be."""
    add(engine, tmp_path, "several", "(1 if not ctx.steps else ctx.start.params.times)")
    bad = run(engine, tmp_path, "several", times="2")
    view = engine.thread(bad)
    assert is_fixable(view, engine.store)
    result = fix(engine, bad, tmp_path)
    assert result["success"] is True, result
    evidence = result["data"]["evidence"]
    assert (evidence["policy"], evidence["prefix"]) == ("not wider", "1 step, identical")
    assert evidence["trial"] == "unproved at step 2: role writer is not done again"
    proposals = Proposals(engine.store)
    proposals.accept(result["data"]["proposalId"], accept=lambda _wider: False, now_ms=NOW_MS)
    good = run(engine, tmp_path, "several", times=2)
    assert engine.thread(good).summary.success is True


def test_an_agent_changes_the_code_of_a_definition(engine: Engine, tmp_path: Path) -> None:
    """The proof runs the new code on the recorded answers, and a fork finishes the failed thread.
    Another flow, code that is no definition's, and a trusted one are refused with the reason.
    """
    add(engine, tmp_path, "often", "(2 if len(ctx.steps) < 2 else int(ctx.start.params.tims))")
    bad = run(engine, tmp_path, "often", times="2")
    source = dict(failed_thread(engine, bad).case.recipe)
    right = {**source, "code": str(source["code"]).replace("tims", "times")}
    agent = answering(
        tmp_path,
        {**right, "code": f"import os\n{right['code']}"},
        {**right, "policy": {"role": {}, "trusted": True}},
        right,
    )
    result = fix(engine, bad, tmp_path, agent)
    assert result["success"] is True, result
    journal = json.dumps(engine.thread("latest").records)
    for reason in ("import of 'os': yield a 'script' effect", "cannot make a flow trusted"):
        assert reason in journal, reason
    evidence = result["data"]["evidence"]
    assert evidence["prefix"] == "2 steps, identical"
    assert evidence["trial"].startswith("success: ")
    assert evidence["trial"].endswith("recorded outcomes at step 1, 2")
    assert "attention" not in evidence
    proposals = Proposals(engine.store)
    proposals.accept(result["data"]["proposalId"], accept=lambda _wider: False, now_ms=NOW_MS)
    assert not is_fixable(engine.thread(bad), engine.store), "the flow has another version by now"
    forked = engine.fork(bad, cut=Cut(at=result["data"]["keep"]), on="often")
    assert wait(engine, forked).success is True


def test_a_definition_whose_policy_or_checks_change_is_shown_first(
    engine: Engine, tmp_path: Path
) -> None:
    """A wider one is not tried and needs a person's yes; so does a role whose answers are checked
    for less.
    """
    add(engine, tmp_path, "once", "int(ctx.start.params.tims)")
    bad = run(engine, tmp_path, "once", times="0")
    source: dict[str, Any] = dict(failed_thread(engine, bad).case.recipe)
    writer = source["roles"]["writer"]
    wider = {
        **source,
        "code": source["code"].replace("tims", "times"),
        "policy": {"role": {"workspace": "write"}, "http": {"hosts": ["evil.example"]}},
        "roles": {"writer": {**writer, "schema": {"type": "object"}}},
    }
    result = fix(engine, bad, tmp_path, answering(tmp_path, wider))
    assert result["success"] is True, result
    evidence = result["data"]["evidence"]
    assert next(iter(evidence)) == "policy"
    assert any("evil.example" in sentence for sentence in evidence["policy"])
    assert evidence["attention"] == ["what checks the answers of the role 'writer' was changed"]
    assert "not granted" in evidence["trial"]
    with pytest.raises(RefusedError, match="asks for more"):
        Proposals(engine.store).accept(
            result["data"]["proposalId"], accept=lambda _wider: False, now_ms=NOW_MS
        )


@pytest.mark.parametrize("kind", ["workflow", "task", "script"])
def test_a_bundle_that_a_person_wrote_is_refused_with_the_next_step(
    engine: Engine, kind: str
) -> None:
    """Its source is a file of that person, and no fix is offered, whatever kind it says."""
    name = f"written-{kind}"
    body = "    yield {'null': {}}\n    return {'success': False}\n"
    written = source_of_bundle(name, body, kind=kind)
    engine.add(name, written, accept=lambda _sentences: True)
    thread = engine.run(name, prompt="")
    wait(engine, thread)
    assert not is_fixable(engine.thread(thread), engine.store)
    with pytest.raises(RefusedError, match=f"uncaged-workflow add {name} FILE"):
        failed_thread(engine, thread)


def test_a_trusted_flow_is_not_fixable(engine: Engine) -> None:
    """However it was built: a fix of it would be trusted, too."""
    body = "    yield {'null': {}}\n    return {'success': False}\n"
    written = source_of_bundle("free", body, kind="task", policy={"trusted": True})
    engine.add("free", written, accept=lambda _sentences: True)
    thread = engine.run("free", prompt="")
    wait(engine, thread)
    view = engine.thread(thread)
    assert view.summary.status == "failed"
    assert not is_fixable(view, engine.store)
