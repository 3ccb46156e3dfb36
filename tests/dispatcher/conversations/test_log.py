"""The log of a conversation: what its owner finds again, and files that it refuses."""

from __future__ import annotations

import json

import pytest
from testbed.bundles import thread_id
from testbed.conversing import now_ms
from uncaged_bundles.errors import DamagedError, NotFoundError, UncagedError
from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.calls import Call
from uncaged_dispatcher.conversations.log import (
    ConversationLog,
    create_log,
    directory_of,
    path_of,
    read_records,
    read_state,
)
from uncaged_dispatcher.conversations.requests import ConversationRequest
from uncaged_dispatcher.conversations.results import NamedEntity, RequestResult, ResultChoice
from uncaged_engine.services.journal import conversation_seed, create_chained

ID = thread_id(7)
RESULT = RequestResult(
    status="completed",
    success=True,
    message="done",
    thread=thread_id(8),
    data={"n": 1},
    display="**done**",
    choices=(ResultChoice(id="a", label="again", call=Call(flow="count", params={"n": 1})),),
    changes_activity=True,
    entities=(NamedEntity(name="Yesterday", type="song", value={"id": 1}),),
    follow_ups=(Call(flow="count"),),
    problems=("data: large",),
)


@pytest.fixture
def log(store: Store) -> ConversationLog:
    directory_of(store).mkdir()
    create_log(store, ID, "default", now_ms())
    found = ConversationLog.open(store, ID, now_ms)
    assert found is not None
    return found


def request(number: int) -> ConversationRequest:
    return ConversationRequest(
        id=thread_id(number), text=f"sentence {number}", client_id=f"c{number}", attachments=("/a",)
    )


def test_the_next_owner_finds_the_same_state(store: Store, log: ConversationLog) -> None:
    """Each kind of record is found again: order, readings, threads, cancels, settings, results."""
    for number in range(1, 6):
        log.request(request(number), first=number == 5)
    log.promote(thread_id(3))
    log.reading(thread_id(3), {"calls": [], "by": "grammar"})
    log.thread(thread_id(3), thread_id(9), {"flow": "count", "params": {"n": 1}})
    log.request(request(6), first=True)
    log.cancel(thread_id(3), "cancel")
    log.question(thread_id(5), {"kind": "confirm"})
    log.answer(thread_id(5), {"run": True})
    log.result(thread_id(5), RESULT)
    log.settings({"name": "work", "model": False})
    log.close()
    found = read_state(store, ID)
    assert found == log.state
    assert [one.request.id for one in found.open] == [thread_id(n) for n in (3, 6, 1, 2, 4)]
    assert found.open[0].cancelled
    assert found.open[0].thread == {
        "threadId": thread_id(9),
        "flow": "count",
        "params": {"n": 1},
    }
    assert found.name == "work"
    assert [one.result for one in found.exchanges] == [RESULT]


def test_a_request_that_arrives_first_does_not_overtake_the_one_that_runs(
    log: ConversationLog,
) -> None:
    """A request whose thread is recorded stays before those that are put first."""
    log.request(request(1))
    log.thread(thread_id(1), thread_id(9), {"flow": "count"})
    log.request(request(2), first=True)
    log.request(request(3), first=True)
    assert [one.request.id for one in log.state.open] == [thread_id(n) for n in (1, 3, 2)]


def test_records_of_a_later_engine_are_skipped(store: Store, log: ConversationLog) -> None:
    """A record of an unknown shape, and an unknown field of a request, hide nothing else."""
    log._write({"weather": "sunny"})
    log._write({"request": {**request(1).document(), "colour": "red"}})
    log.close()
    found = read_state(store, ID)
    assert [one.request for one in found.open] == [request(1)]
    assert found.seq == 2


def test_a_torn_tail_is_cut_and_the_rest_kept(store: Store, log: ConversationLog) -> None:
    """Half of a last line is no record; the next owner writes behind the line before it."""
    log.request(request(1))
    log.close()
    path = path_of(store, ID)
    with path.open("ab") as file:
        file.write(b'{"seq":2,"requ')
    assert len(list(read_records(store, ID))) == 1
    again = ConversationLog.open(store, ID, now_ms)
    assert again is not None
    again.request(request(2))
    again.close()
    assert [record["seq"] for record in read_records(store, ID)] == [1, 2]


def test_a_damaged_conversation_is_refused_by_name(store: Store, log: ConversationLog) -> None:
    """The message has the file, the line and the next step; nothing of the file is changed."""
    for number in range(1, 5):
        log.request(request(number))
    log.close()
    path = path_of(store, ID)
    damaged = path.read_bytes().replace(b"sentence 2", b"sentence 3", 1)
    path.write_bytes(damaged)
    with pytest.raises(DamagedError, match=rf"{ID}\.jsonl:3: .*conversation new"):
        ConversationLog.open(store, ID, now_ms)
    with pytest.raises(DamagedError, match=rf"{ID}\.jsonl:3"):
        read_state(store, ID)
    assert path.read_bytes() == damaged


def test_a_newer_conversation_is_refused_with_its_format(store: Store) -> None:
    """The message names both formats, whether or not the chain is one that we know."""
    directory_of(store).mkdir()
    path = path_of(store, ID)
    first = {"format": 2, "conversation": ID, "name": "x", "timestamp": 1}
    create_chained(path, json.dumps(first)[:-1].encode(), conversation_seed(ID))
    with pytest.raises(DamagedError, match="format 2 of a newer version"):
        read_state(store, ID)
    path.write_text(json.dumps({**first, "chain": "another"}) + "\n")
    with pytest.raises(DamagedError, match="format 2 of a newer version"):
        ConversationLog.open(store, ID, now_ms)


@pytest.mark.parametrize("text", ["", "hello\n", '{"format":1}\n', "[1]\n", "\0" * 100])
def test_a_file_that_is_no_conversation_is_refused(store: Store, text: str) -> None:
    """Anything else under the name of a conversation is called that."""
    directory_of(store).mkdir()
    path_of(store, ID).write_text(text)
    with pytest.raises(DamagedError, match="is no conversation"):
        ConversationLog.open(store, ID, now_ms)


def test_a_missing_conversation_is_not_found(store: Store) -> None:
    """The message names the command that lists conversations."""
    with pytest.raises(NotFoundError, match="conversation list"):
        read_state(store, ID)


def test_a_sealed_record_that_cannot_follow_is_refused(store: Store, log: ConversationLog) -> None:
    """A request twice under one id was written by no engine of ours, although the chain holds."""
    log.request(request(1))
    log._file.append(
        b'{"seq":2,"request":{"directory":"/","id":"%b","text":"x"},"timestamp":1' % ID.encode()
    )
    log._file.append(b'{"seq":2,"promote":"x","timestamp":1')
    log.close()
    with pytest.raises(UncagedError, match="record 2 follows record 2"):
        read_state(store, ID)
