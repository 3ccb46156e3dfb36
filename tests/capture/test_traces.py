"""Traces that the records of a thread name."""

from __future__ import annotations

import json

import pytest
from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_bundles.storage.store import Store
from uncaged_engine.door.traces import AgentTrace
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.services.secrets import redact
from uncaged_engine.services.threads import traces_of

CALL = {"number": 1, "tool": "look", "arguments": {}, "failed": False}


def record(name: str) -> dict[str, object]:
    return {"seq": 3, "role": "navigator", "by": "m", "trace": name}


def test_a_trace_is_read_as_it_was_written(store: Store) -> None:
    """Calls, notes of the tools, and calls beyond the limit."""
    written = AgentTrace()
    for _ in range(501):
        written.add("look", {"at": "x"}, "seen", duration_ms=5)
    written.note("recording", {"steps": []})
    name = BlobDirectory(store.blobs).put(json.dumps(written.document()).encode())
    (found,) = traces_of(store, [record(name)])
    assert (found.seq, found.role, found.agent, found.left_out) == (3, "navigator", "m", 1)
    assert len(found.calls) == 500
    assert found.notes == {"recording": {"steps": []}}


@pytest.mark.parametrize(
    "document",
    [
        *("no JSON", "[]", "{}", '{"calls": [1]}', '{"calls": [{}]}', "[" * 100_000),
        json.dumps({"calls": [CALL], "leftOut": "many"}),
        json.dumps({"calls": [{**CALL, "durationMs": "long"}]}),
        json.dumps({"calls": [{**CALL, "result": {"head": 1}}]}),
        json.dumps({"calls": [{key: one for key, one in CALL.items() if key != "arguments"}]}),
    ],
)
def test_another_blob_is_no_trace(store: Store, document: str) -> None:
    """The records of an imported thread may name any blob of the store."""
    name = BlobDirectory(store.blobs).put(document.encode())
    with pytest.raises(DamagedError, match="step 3 names is no trace"):
        traces_of(store, [record(name)])


@pytest.mark.parametrize("name", ["0" * 32, "../config.yaml"])
def test_a_missing_trace_is_named(store: Store, name: str) -> None:
    """A hash without a blob, and a path."""
    with pytest.raises(NotFoundError, match="the trace of step 3 is not in this store"):
        traces_of(store, [record(name)])


def test_the_traceback_of_a_failed_thread_is_no_trace(store: Store) -> None:
    """The end record of a bundle that raised has an error with lines of Python."""
    error = {"kind": "bundle", "message": "no", "trace": "line 1"}
    assert traces_of(store, [{"end": "failed", "error": error}]) == []


def test_secrets_are_replaced_before_anything_is_cut() -> None:
    """In names, arguments, results and notes; no part of one is left at the end of a head."""
    secret = "hunter22-and-more"
    written = AgentTrace(lambda value: redact(value, {secret: "SHOP"}))
    written.add(f"curl {secret}", {"command": f"login {secret}"}, "x" * 390 + secret)
    written.add("long", {"text": "y" * 3990 + secret})
    written.note("recording", {"steps": [secret]})
    text = json.dumps(written.document())
    assert "hunter" not in text
    assert text.count("secret:SHOP") == 3  # and once as `secret:S`, which is cut
