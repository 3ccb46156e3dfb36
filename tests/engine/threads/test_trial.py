"""Trials of bundles: what is performed, answered from the record or held, and what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Timer

import pytest
from testbed.bundles import COUNT, granted, source
from testbed.webserver import Reply, Seen, WebServer, data, serving
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.door.effects import Cancel
from uncaged_engine.door.outcomes import Answer
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.services.trials import Decisions, TrialEffect, shown
from uncaged_engine.threads.scratch import NAME

POLICY = {"http": {"hosts": ["127.0.0.1:*"], "private": True}, "all": {}, "null": {}, "flow": {}}


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    """A server that answers every request."""

    def script(seen: Seen) -> Reply:
        return data({"method": seen.method})

    with serving(script) as server:
        yield server


@pytest.fixture(autouse=True)
def _unseen(web: WebServer) -> None:
    web.seen.clear()


def bundle(body: str, name: str = "tried", **more: object) -> Bundle:
    descriptor = {"policy": POLICY, **more}
    return read_bundle(source(name, body, head="", **descriptor), KNOWN)


def left_in(engine: Engine) -> list[Path]:
    """Return the files that the store's directories for threads hold."""
    places = (engine.store.logs, engine.store.blobs, engine.store.work)
    return [path for place in places for path in place.rglob("*") if path.is_file()]


def requests(web: WebServer, *methods: str, **more: object) -> str:
    """Return the body of a bundle that sends requests and returns their statuses."""
    lines = [
        f"    {name.lower()} = yield {{'http': {{'method': {name!r}, 'url': {web.url!r}, **{more!r}}}}}\n"
        for name in methods
    ]
    return (
        "\n"
        + "".join(lines)
        + f"    return {{'data': [{', '.join(m.lower() for m in methods)}]}}\n"
    )


def test_a_trial_performs_harmless_effects_and_leaves_nothing(engine: Engine) -> None:
    """The result is the bundle's; no thread, blob or file of it is in the store."""
    found = engine.trial(read_bundle(COUNT, KNOWN), params={"n": 3})
    assert found.success
    assert found.result == {"success": True, "message": "sum 6"}
    assert [tried.source for tried in found.effects] == ["performed"] * 3
    assert engine.threads() == []
    assert left_in(engine) == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("more", [{}, {"idempotent": True}, {"retry": {"times": 3}}])
def test_an_unsafe_request_is_not_sent(
    method: str, more: Mapping[str, object], engine: Engine, web: WebServer
) -> None:
    """The server sees the requests before it, and the trial ends there."""
    found = engine.trial(bundle(requests(web, "GET", method, "GET", **more)))
    assert (found.ending, found.success) == ("held", False)
    assert [seen.method for seen in web.seen] == ["GET"]
    unproved = found.unproved
    assert unproved is not None
    assert (unproved.effect.step, unproved.source) == (2, "held")
    assert shown(unproved.effect) == f"http {method} {web.url}"


def test_a_recorded_outcome_answers_an_unsafe_request(engine: Engine, web: WebServer) -> None:
    """The bundle goes on with it, and the result says which effect was not performed."""
    recorded = {"status": 201, "headers": {}, "url": web.url}

    def known(effect: TrialEffect) -> Answer | None:
        return None if effect.harmless else Answer(fields={"outcome": recorded})

    found = engine.trial(
        bundle(requests(web, "GET", "POST", "HEAD")), decisions=Decisions(known=known)
    )
    assert isinstance(found.result, Mapping)
    assert found.result["data"][1] == recorded
    assert [seen.method for seen in web.seen] == ["GET", "HEAD"]
    assert [tried.source for tried in found.effects] == ["performed", "recorded", "performed"]
    assert found.unproved is not None
    assert found.unproved.effect.step == 2


def test_an_allowed_request_is_sent(engine: Engine, web: WebServer) -> None:
    """Only the allowed one is: the decision sees each effect."""
    decisions = Decisions(allow=lambda effect: "POST" in shown(effect))
    found = engine.trial(bundle(requests(web, "POST", "PUT")), decisions=decisions)
    assert [seen.method for seen in web.seen] == ["POST"]
    assert found.ending == "held"


def test_parts_are_decided_one_by_one(engine: Engine, web: WebServer) -> None:
    """The harmless part of an effect of several is performed, the other one is held."""
    parts = [{"http": {"url": web.url, "method": method}} for method in ("GET", "POST")]
    body = f"\n    yield {{'all': {{'effects': {parts!r}}}}}\n"
    found = engine.trial(bundle(body))
    assert found.ending == "held"
    assert [seen.method for seen in web.seen] == ["GET"]
    assert {(tried.effect.part, tried.source) for tried in found.effects} >= {
        (0, "performed"),
        (1, "held"),
    }


def test_the_policy_is_enforced(engine: Engine, web: WebServer) -> None:
    """A request that the bundle's policy does not allow fails, although the caller allows all."""
    body = f"\n    yield {{'http': {{'url': {web.url!r}}}}}\n"
    found = engine.trial(
        bundle(body, policy={"null": {}}), decisions=Decisions(allow=lambda _: True)
    )
    assert found.ending == "failed"
    assert "http" in found.message
    assert web.seen == []


@pytest.mark.parametrize(
    ("body", "options", "ending"),
    [
        (
            "\n    yield {'null': {}}\n    raise ValueError('wrong number')\n",
            RunOptions(),
            "failed",
        ),
        ("\n    while True:\n        yield {'null': {}}\n", RunOptions(max_steps=20), "limit"),
        (
            "\n    while True:\n        yield {'sleep': {'seconds': 30}}\n",
            RunOptions(max_seconds=0.5),
            "limit",
        ),
        (
            "\n    yield {'null': {}}\n    while True:\n        pass\n",
            RunOptions(bundle_seconds=0.5),
            "limit",
        ),
        ("\n    yield {'ask': {'question': 'Which one?'}}\n", RunOptions(), "held"),
        ("\n    yield {'null': {}}\n    return {'success': False}\n", RunOptions(), "completed"),
    ],
    ids=["raises", "endless effects", "long", "endless computation", "question", "no success"],
)
def test_a_bundle_without_success_ends(
    body: str, options: RunOptions, ending: str, engine: Engine
) -> None:
    """Whatever a bundle does, its trial ends with a word for it and leaves nothing."""
    policy: dict[str, object] = {"null": {}, "sleep": {}, "ask": {}}
    found = engine.trial(bundle(body, policy=policy), options=options)
    assert (found.ending, found.success) == (ending, False)
    assert ending == "completed" or found.message
    assert left_in(engine) == []


def test_a_called_flow_is_tried_as_well(engine: Engine, web: WebServer) -> None:
    """A request inside a called flow is held; the step that is named is the caller's."""
    granted(engine.store, source("poster", requests(web, "GET", "POST"), policy=POLICY))
    body = "\n    yield {'null': {}}\n    yield {'flow': {'name': 'poster'}}\n"
    found = engine.trial(bundle(body))
    assert found.ending == "held"
    assert [seen.method for seen in web.seen] == ["GET"]
    assert found.unproved is not None
    assert (found.unproved.effect.step, found.unproved.effect.flows) == (2, ("poster",))
    assert shown(found.unproved.effect) == f"flow poster: http POST {web.url}"
    assert engine.threads() == []


def test_the_result_of_a_called_flow_reaches_its_caller(engine: Engine) -> None:
    """The outcome has the form of a thread's; a flow that raises is a failure for its caller."""
    granted(engine.store, COUNT)
    granted(
        engine.store, source("broken", "\n    yield {'null': {}}\n    raise ValueError('no')\n")
    )
    body = """
    counted = yield {'flow': {'name': 'count', 'params': {'n': 2}}}
    try:
        yield {'flow': {'name': 'broken'}}
    except Exception as exc:
        return {'data': [counted['success'], counted['message'], str(exc)]}
"""
    found = engine.trial(bundle(body))
    assert isinstance(found.result, Mapping)
    assert found.result["data"][:2] == [True, "sum 3"]
    assert "broken failed" in found.result["data"][2]
    assert engine.threads() == []


def test_a_flow_that_was_not_granted_is_not_tried(engine: Engine) -> None:
    """The caller gets a failure: a trial's bundle cannot use what a person did not grant."""
    engine.store.put_bundle(read_bundle(source("own", "\n    yield {'null': {}}\n"), KNOWN))
    for name in ("absent", read_bundle(source("own", "\n    yield {'null': {}}\n"), KNOWN).hash):
        found = engine.trial(bundle(f"\n    yield {{'flow': {{'name': {name!r}}}}}\n"))
        assert found.ending == "failed"


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("inside", [True, False])
def test_a_script_writes_in_the_fresh_directory_only(
    inside: bool, engine: Engine, tmp_path: Path
) -> None:
    """A script that may write elsewhere is held, though its body calls it repeatable."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    policy = {"script": {"write": ["." if inside else str(elsewhere)]}}
    script = {"language": "bash", "body": "echo 1 > new; pwd", "repeat": True}
    body = f"\n    done = yield {{'script': {script!r}}}\n    return {{'data': done}}\n"
    found = engine.trial(bundle(body, policy=policy))
    if inside:
        assert isinstance(found.result, Mapping)
        assert found.result["data"]["success"] is True, found
        assert not Path(found.result["data"]["stdout"].strip()).exists()
    else:
        assert found.ending == "held"
        assert list(elsewhere.iterdir()) == []


def test_a_cancelled_trial_ends_at_once(engine: Engine) -> None:
    """Also while an effect waits."""
    cancel = Cancel()

    def allow(effect: TrialEffect) -> bool:
        Timer(0.05, cancel.request).start()
        return effect.kind == "null"

    waits = bundle("\n    yield {'null': {'sleep_s': 600, 'rule': 'ask'}}\n")
    found = engine.trial(waits, decisions=Decisions(allow=allow), cancel=cancel)
    assert found.ending == "killed"
    assert left_in(engine) == []


def test_a_script_with_a_network_is_held(engine: Engine) -> None:
    """It might send something, though it writes nothing."""
    script = {"language": "bash", "body": "echo 1", "repeat": True}
    policy: dict[str, object] = {"script": {"network": ["127.0.0.1:1"], "private": True}}
    found = engine.trial(bundle(f"\n    yield {{'script': {script!r}}}\n", policy=policy))
    assert found.ending == "held"


KILLED = """
import sys
from pathlib import Path
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.api import Engine
from uncaged_engine.services.trials import Decisions

def allow(effect):
    print("at it", flush=True)
    return True

bundle = read_bundle(Path(sys.argv[2]).read_bytes())
Engine.open(Path(sys.argv[1])).trial(bundle, decisions=Decisions(allow=allow))
"""


def test_a_killed_trial_leaves_nothing_that_the_next_does_not_remove(
    engine: Engine, tmp_path: Path
) -> None:
    """While it lives its scratch directory stays; after SIGKILL the next trial removes it."""
    file = tmp_path / "waits.py"
    body = "\n    yield {'null': {'sleep_s': 600, 'rule': 'ask'}}\n"
    file.write_bytes(source("waits", body))
    trials = engine.store.work / NAME
    argv = [sys.executable, "-c", KILLED, str(engine.store.root), str(file)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"at it\n"
            [lock] = trials.glob("*.lock")
            fresh = Path(lock.read_text())
            engine.trial(read_bundle(COUNT, KNOWN))
            assert lock.exists()
            assert lock.with_suffix("").is_dir()
            assert fresh.is_dir()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert lock.exists()
    engine.trial(read_bundle(COUNT, KNOWN))
    assert list(trials.iterdir()) == []
    assert not fresh.exists()
