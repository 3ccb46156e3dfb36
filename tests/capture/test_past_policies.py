"""Past effects against a stricter policy, in journals made by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testbed.bundles import granted, place_script, script_of, source
from testbed.journals import Script
from uncaged_bundles.policy import parse_policy
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle
from uncaged_capture.past_policies import PolicyCheck, check_past_policy
from uncaged_engine.api import Engine
from uncaged_engine.door.traces import AgentTrace
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.journal import archive
from uncaged_engine.services.blobs import BlobDirectory

WIDE: dict[str, Any] = {
    "all": {},
    "http": {"private": True, "secrets": {"KEY": ["a.example", "b.example"]}},
    "fetch": {},
    "llm": {},
    "flow": {},
    "null": {},
    "script": {
        "executables": ["cat", "curl"],
        "write": ["/data"],
        "secrets": {"KEY": ["cat", "curl"]},
    },
    "browser": {},
    "role": {"workspace": "write", "tools": ["read", "write", "run", "effect:browser"]},
}
FLOW = source("wide", "\n    yield {'null': {}}\n", policy=WIDE, kind="workflow")
GET = {"http": {"url": "https://b.example/x"}}
CURL = {"script": {"language": "bash", "body": "curl -s x | cat"}}


@pytest.fixture
def bundle(store: Store) -> Bundle:
    return granted(store, FLOW)


def check(engine: Engine, journal: Script, bundle: Bundle, /, **limits: Any) -> PolicyCheck:
    """Check one thread against the wide policy with these kinds replaced; None removes one."""
    place_script(engine.store, bundle, journal)
    policy = {kind: one for kind, one in {**WIDE, **limits}.items() if one is not None}
    return check_past_policy(engine, "wide", parse_policy(policy, KNOWN))


def thread(bundle: Bundle, effect: object, **fields: object) -> Script:
    return script_of(bundle).done(1, effect, **fields)


@pytest.mark.parametrize(
    ("effect", "limits", "words"),
    [
        (GET, {"http": None}, "effect 'http' is not in the bundle's policy"),
        (GET, {"http": {"hosts": ["a.example"]}}, "does not name the host b.example"),
        (
            {"http": {"url": "https://a.example", "headers": {"X": "Bearer secret:KEY"}}},
            {"http": {"secrets": {"KEY": ["b.example"]}}},
            "does not bind secret:KEY to https://a.example",
        ),
        (
            {"http": {"url": "https://a.example", "method": "POST", "json": {"k": "secret:KEY"}}},
            {"http": {}},
            "binds secret:KEY to no host",
        ),
        ({"http": {"url": "http://127.0.0.1:80"}}, {"http": {}}, "only a policy with"),
        (
            {"fetch": {"url": "https://b.example", "retry": {"times": 1}}},
            {"fetch": {"hosts": ["a.example"]}},
            "fetch: GET https://b.example/: the policy does not name",
        ),
        ({"llm": {"prompt": "?", "model": "big"}}, {"llm": {"models": ["small"]}}, "not 'big'"),
        ({"flow": {"name": "other"}}, {"flow": {"names": ["mine"]}}, "'other' is not among"),
        (CURL, {"script": {"executables": ["cat"]}}, "script: the command 'curl' is not among"),
        (
            {"script": {"language": "bash", "body": "cat x", "timeout_s": 9}},
            {"script": {**WIDE["script"], "timeout_s": 5}},
            "9 seconds are more than the policy's 5",
        ),
        (
            {"script": {"body": "cat x", "parameters": {"k": "secret:KEY"}}},
            {"script": {"executables": ["cat", "curl"]}},
            "which the policy does not name",
        ),
        (
            {"browser": {"do": "open", "url": "https://b.example"}},
            {"browser": {"hosts": ["a.example"]}},
            "browser: open https://b.example: the policy does not name the host",
        ),
        (
            {"browser": {"do": "tabs"}},
            {"browser": {"profile": "kept"}},
            "the session's own tabs reach this machine",
        ),
    ],
)
def test_a_past_effect_is_refused_as_at_run_time(
    engine: Engine, bundle: Bundle, effect: object, limits: dict[str, Any], words: str
) -> None:
    """Each kind's own checks give the sentence; the policy that was granted refuses nothing."""
    found = check(engine, thread(bundle, effect), bundle)
    assert (found.threads, found.effects, found.refused) == (1, 1, ())
    [refused] = check(engine, thread(bundle, effect), bundle, **limits).refused
    assert (refused.step, refused.part) == (1, None)
    assert words in refused.message


def test_a_redirect_is_checked(engine: Engine, bundle: Bundle) -> None:
    """The answer has the address that a request was redirected to."""
    answer = {"status": 200, "headers": {}, "url": "https://c.example/y", "truncated": False}
    script = thread(bundle, GET, outcome=answer)
    [refused] = check(engine, script, bundle, http={"hosts": ["b.example"]}).refused
    assert "redirected from https://b.example to https://c.example/y" in refused.message


def test_parts_are_checked(engine: Engine, bundle: Bundle) -> None:
    """A part of an `all` counts, except one that was not begun."""
    parts = [{"null": {}}, GET, {"http": {"url": "https://never.example"}}]
    not_begun = {"error": {"kind": "not-begun", "message": "-"}}
    results = [{"outcome": 1}, {"error": {"kind": "connect", "message": "-"}}, not_begun]
    script = thread(bundle, {"all": {"effects": parts}}, outcome=results)
    found = check(engine, script, bundle, http=None)
    assert [(one.step, one.part, one.kind) for one in found.refused] == [(1, 1, "http")]
    assert found.effects == 3


def test_calls_of_an_agent_are_checked(engine: Engine, bundle: Bundle) -> None:
    """A traced call of a tool that the policy withholds refuses its step."""
    trace = AgentTrace()
    trace.add("read", {"path": "a"}, "text")
    trace.add("run", {"command": "make"}, "done")
    name = BlobDirectory(engine.store.blobs).put(json.dumps(trace.document()).encode())
    script = thread(
        bundle, {"role": {"name": "r"}}, role="r", content="", meta={}, by="m", trace=name
    )
    narrow = {"workspace": "write", "tools": ["read", "write", "effect:browser"]}
    [refused] = check(engine, script, bundle, role=narrow).refused
    assert (
        refused.message == "role: its agent used the tool 'run'; the policy gives it: read, write"
    )
    assert check(engine, script, bundle, role={**narrow, "tools": ["read", "run"]}).refused == ()
    [lacking] = check(engine, script, bundle, browser=None).refused
    assert lacking.message == "role: the policy has no 'browser' beside the tool effect:browser"
    hosts = check(engine, script, bundle, browser={"hosts": ["a.example"]})
    assert (hosts.refused, hosts.undecided) == ((), {"browser: hosts": 1})


def test_what_no_journal_tells_is_counted(engine: Engine, bundle: Bundle) -> None:
    """A limit that the sandbox enforces is named with the number of effects, if it is narrower."""
    found = check(engine, thread(bundle, CURL), bundle, script={**WIDE["script"], "write": []})
    assert (found.refused, found.undecided) == ((), {"script: write": 1})
    wider = check(
        engine, thread(bundle, CURL), bundle, script={**WIDE["script"], "write": ["/data", "/x"]}
    )
    assert wider.undecided == {}
    public = check(engine, thread(bundle, GET), bundle, http={"secrets": WIDE["http"]["secrets"]})
    assert (public.refused, public.undecided) == ((), {"http: private": 1})


def test_effects_that_were_not_performed_here_are_left_out(engine: Engine, bundle: Bundle) -> None:
    """What the thread's own policy refused, what had a wrong form, and what a fork inherited; an
    open effect counts.
    """
    fork = {"threadId": "0" * 26, "hash": bundle.hash, "seq": 1}
    script = script_of(bundle, forkFrom=fork).done(1, GET)
    for seq, kind in enumerate(("policy", "refused-address", "effect"), start=2):
        script.done(seq, GET, error={"kind": kind, "message": "no"})
    script.intent(5, GET)
    found = check(engine, script, bundle, http=None)
    assert [one.step for one in found.refused] == [5]


def test_an_archived_thread_is_checked_and_a_damaged_one_named(
    engine: Engine, bundle: Bundle
) -> None:
    """An intent in a blob and a packed journal count; a journal without a start hides no other."""
    effect = {"http": {"url": "https://b.example", "method": "POST", "text": "x" * 2000}}
    blobs = BlobDirectory(engine.store.blobs)
    spilled = script_of(bundle).step(1, **blobs.spill({"intent": effect})).step(1, outcome=1)
    archive.compress(place_script(engine.store, bundle, spilled.end("completed")).path)
    damaged = place_script(engine.store, bundle, script_of(bundle, number=1))
    damaged.path.write_bytes(b"nothing\n")
    found = check_past_policy(engine, "wide", parse_policy({}, KNOWN))
    assert [one.effect for one in found.refused] == ["http POST https://b.example"]
    assert list(found.unread) == [damaged.thread]
