"""Endpoints of one thread, called as functions: documents, and actions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest
from testbed.journals import Script
from testbed.thread_pages import (
    asking_store,
    called,
    hostile_journal,
    long_journal,
    put_journal,
    until_stopped,
    waiting_thread,
)
from uncaged_bundles.errors import EnvironmentLacks, NotFoundError, RefusedError, UsageError
from uncaged_engine.api import Engine
from uncaged_engine.journal import archive
from uncaged_engine.journal.blobs import BlobDirectory
from uncaged_serve.api.endpoints import Bytes, ConflictError
from uncaged_serve.api.errors import response_of

THREAD = "/api/threads/{id}"
PNG = b"\x89PNG\r\n\x1a\n a picture"


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with asking_store(tmp_path_factory.mktemp("asking") / "store") as engine:
        yield engine


def fitting(engine: Engine, method: str, path: str, values: Mapping[str, str], **more: Any) -> Any:
    """Return an endpoint's answer as a client gets it; it fits the endpoint's schema."""
    answer, endpoint = called(engine, method, path, values, more)
    assert endpoint.answer is not None
    document = json.loads(json.dumps(answer))
    jsonschema.validate(document, endpoint.answer.model_json_schema())
    return document


def test_a_question_is_answered_once(asking: Engine) -> None:
    """A wrong answer is refused and the question stays; of answers that come at once one counts,
    and each other one is refused with it, also later.
    """
    thread = waiting_thread(asking)
    shown = fitting(asking, "GET", THREAD, {"id": thread})
    assert (shown["status"], shown["question"]["question"]) == ("waiting", "how many?")
    at = shown["question"]["at"]
    with pytest.raises(UsageError, match="count"):
        called(asking, "POST", f"{THREAD}/answer", {"id": thread}, {"value": {}, "question": at})

    def answer(count: int) -> object:
        body = {"value": {"count": count}, "question": at}
        try:
            called(asking, "POST", f"{THREAD}/answer", {"id": thread}, body)
        except ConflictError as exc:
            return exc.document
        return count

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(answer, [1, 2, 3, 4]))
    [won] = [one for one in outcomes if isinstance(one, int)]
    others: list[Any] = [one for one in outcomes if not isinstance(one, int)]
    assert [one["answer"]["value"] for one in others] == [{"count": won}] * 3
    assert until_stopped(asking, thread) == "completed"
    assert answer(9) == others[0]


def test_a_thread_is_steered_forked_compared_and_verified(asking: Engine) -> None:
    """Each action does what the command does, and what the state forbids is refused."""
    thread = waiting_thread(asking, "one")
    values = {"id": thread}
    assert fitting(asking, "POST", f"{THREAD}/pause", values)["threadId"] == thread
    assert fitting(asking, "GET", THREAD, values)["status"] == "paused"
    fitting(asking, "POST", f"{THREAD}/resume", values, maxSteps=3)
    assert until_stopped(asking, thread) == "waiting"
    with pytest.raises(RefusedError, match="something else"):
        late = {"value": {"count": 1}, "question": 1}
        called(asking, "POST", f"{THREAD}/answer", values, late)
    limits = fitting(asking, "GET", THREAD, values)["limits"]
    assert (limits["maxSteps"], limits["maxRounds"]) == (3, 10)
    called(asking, "POST", f"{THREAD}/answer", values, {"value": {"count": 5}})
    assert until_stopped(asking, thread) == "limit"
    with pytest.raises(RefusedError, match="--max-steps"):
        called(asking, "POST", f"{THREAD}/resume", values)
    fitting(asking, "POST", f"{THREAD}/resume", values, maxSteps=100)
    assert until_stopped(asking, thread) == "completed"
    assert fitting(asking, "POST", f"{THREAD}/verify", values)["ok"] is True
    fork = fitting(asking, "POST", f"{THREAD}/fork", values, at=1)["threadId"]
    assert until_stopped(asking, fork) == "waiting"
    called(asking, "POST", f"{THREAD}/answer", {"id": fork}, {"value": {"count": 1}})
    assert until_stopped(asking, fork) == "completed"
    shown = fitting(asking, "GET", THREAD, values)
    assert [one["threadId"] for one in shown["forks"]] == [fork]
    assert fitting(asking, "GET", THREAD, {"id": fork})["source"]["threadId"] == thread
    apart = fitting(asking, "GET", "/api/compare", {}, a=thread, b=fork)
    assert apart["together"] == 1
    assert [len(pair) for pair in apart["pairs"]] == [2] * 7
    assert apart["pairs"][3][1] is None
    with pytest.raises(RefusedError):
        called(asking, "POST", f"{THREAD}/kill", values)


def test_rows_come_page_by_page(asking: Engine) -> None:
    """Pages are numbered on, and an archived journal has the same rows at the same place."""
    thread = long_journal(asking, 30).thread
    values = {"id": thread}
    first = fitting(asking, "GET", f"{THREAD}/rows", values, limit=20)
    rest = fitting(asking, "GET", f"{THREAD}/rows", values, after=20)
    assert [one["number"] for one in [*first["rows"], *rest["rows"]]] == list(range(1, 31))
    assert first["total"] == 30
    archive.compress(asking.store.locate_thread(thread)[2])
    again = fitting(asking, "GET", f"{THREAD}/rows", values, after=20)
    assert (again["rows"], again["place"]) == (rest["rows"], first["place"])


def test_a_step_and_its_picture_are_named_by_the_journal(asking: Engine) -> None:
    """A picture is served with its own type and other bytes with none; a blob that the journal does
    not name, and a path instead of a name, are not found.
    """
    blobs = BlobDirectory(asking.store.blobs)
    picture, page, other = blobs.put(PNG), blobs.put(b"<script>"), blobs.put(b"of another thread")
    script = put_journal(asking, 10)
    script.done(1, {"null": {}}, outcome=1, screenshot=picture).done(2, outcome=page)
    thread = put_journal(asking, 10, script).thread
    step = fitting(asking, "GET", f"{THREAD}/steps/{{place}}", {"id": thread, "place": "1"})
    assert step["pictures"] == [{"hash": picture, "problem": None}]
    for name, kind in ((picture, "image/png"), (page, "application/octet-stream")):
        values = {"id": thread, "digest": name}
        found, _ = called(asking, "GET", f"{THREAD}/blobs/{{digest}}", values)
        assert isinstance(found, Bytes) and found.media_type == kind
    for name in (other, "0" * 32, "../config.yaml", "..%2fconfig.yaml", "", picture.upper()):
        with pytest.raises(NotFoundError):
            called(asking, "GET", f"{THREAD}/blobs/{{digest}}", {"id": thread, "digest": name})


def test_hostile_and_large_and_damaged_threads_have_documents(asking: Engine) -> None:
    """Markup stays text, an outcome of 10 MB is shown in part, a corrupt thread up to its damage,
    and one without a start has a summary; a thread that is gone is not found.
    """
    hostile = hostile_journal(asking, 20)
    for place in ("1", "2", "3"):
        fitting(asking, "GET", f"{THREAD}/steps/{{place}}", {"id": hostile, "place": place})
    assert fitting(asking, "GET", THREAD, {"id": hostile})["rows"] == 3
    large = put_journal(asking, 21)
    outcome = BlobDirectory(asking.store.blobs).spill({"outcome": {"text": "x" * 10_000_000}})
    large.intent(1).step(1, **outcome).end("completed", result={"message": "y" * 500_000})
    values = {"id": put_journal(asking, 21, large).thread, "place": "1"}
    step = fitting(asking, "GET", f"{THREAD}/steps/{{place}}", values)
    assert len(json.dumps(step)) < 300_000
    assert step["cut"][0] == {"path": "data.text", "characters": 10_000_000}
    assert len(json.dumps(fitting(asking, "GET", THREAD, values))) < 1_000_000
    damaged = put_journal(asking, 22).done(1).done(2).done(3)
    damaged.sealed[3] = damaged.sealed[3].replace(b"2", b"7")
    values = {"id": put_journal(asking, 22, damaged).thread}
    shown = fitting(asking, "GET", THREAD, values)
    assert (shown["status"], shown["readable"], shown["rows"]) == ("corrupt", True, 1)
    blank = Script(bundle=damaged.bundle, thread=put_journal(asking, 23).thread)
    blank.sealed.append(b"no journal\n")
    values = {"id": put_journal(asking, 23, blank).thread}
    shown = fitting(asking, "GET", THREAD, values)
    assert (shown["status"], shown["readable"]) == ("corrupt", False)
    asking.remove_thread(hostile)
    for name in (hostile, "../../etc/passwd", "0", "x" * 5000, "%00"):
        with pytest.raises((NotFoundError, UsageError)):
            called(asking, "GET", THREAD, {"id": name})


def test_an_answer_of_the_api_advises_to_resume_nothing() -> None:
    """The request has no thread: the message has the remedy alone."""
    _, document = response_of(EnvironmentLacks("there is no agent", remedy="install one"))
    assert document["error"]["message"] == "there is no agent; install one"  # type: ignore[index]
