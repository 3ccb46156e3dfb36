"""Sentences, conversations and tools of a shared store, from two machines with a real worker."""

from __future__ import annotations

import json
import os
from contextlib import closing

import pytest
from click import Command, Context
from testbed.bundles import thread_id
from testbed.kitchens import EXIT_WAITING, Kitchen, Machine, opened
from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_cli.entry import STORE_VARIABLE
from uncaged_cli.inputs import completion, stores
from uncaged_cluster.conversations import RowTail
from uncaged_cluster.store import open_store
from uncaged_dispatcher.constructions.construction import Construction, Phrases
from uncaged_dispatcher.constructions.kept import Constructions, FlowDigests
from uncaged_dispatcher.conversations import log
from uncaged_dispatcher.conversations.catalog import current_conversation, new_conversation
from uncaged_dispatcher.conversations.log import ConversationLog, HeldElsewhere, read_state
from uncaged_dispatcher.translation.catalog import Catalog
from uncaged_serve.routes import load_routes
from uncaged_tools.flows import call
from uncaged_tools.mcp.resources import list_threads


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_a_conversation_goes_on_at_another_machine(machine: Machine) -> None:
    """A question that the first one left open is answered at the second, and its result is in the
    conversation. What needs a yes does not run without one.
    """
    said = machine.said("first", ["do", "bake some cakes"], code=EXIT_WAITING)
    assert "how many?" in said
    listed = json.loads(machine.said("second", ["conversation", "list", "--json"]))
    assert [(one["open"], one["current"]) for one in listed] == [(1, False)]
    chosen = ["--conversation", listed[0]["name"]]
    refused = machine.said("second", ["do", "what is the hour", *chosen], code=1)
    assert "waits for an answer" in refused
    assert "5 cakes" in machine.said("second", ["answer", "latest", "5"])
    assert "it is late" in machine.said("second", ["do", "what is the hour", *chosen])
    shown = machine.said("first", ["conversation", "show"])
    assert "5 cakes" in shown and "it is late" in shown

    machine.said("second", ["enable", "clock", "--confirm"])
    assert "Run clock?" in machine.said("first", ["do", "what is the hour"], code=1)
    assert "it is late" in machine.said("first", ["do", "what is the hour", "--yes"])
    machine.said("second", ["enable", "clock", "--no-confirm"])


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_what_one_machine_learned_is_forgotten_at_another(
    kitchen: Kitchen, machine: Machine
) -> None:
    """Things that results named are known everywhere; feedback of another machine is in the log,
    and what was learned wrongly is gone for all. Of two changes at the same time one is refused.
    """
    machine.said("first", ["conversation", "new", "learning"])
    chosen = ["--conversation", "learning"]
    machine.said("first", ["do", "what is the hour", *chosen])
    assert "tonight" in machine.said("second", ["memory", *chosen])
    assert "23" in machine.said("second", ["memory", "show", "TONIGHT", *chosen])
    shown = json.loads(machine.said("first", ["conversation", "show", "learning", "--json"]))
    [thread] = [one["thread"]["threadId"] for one in shown["records"] if "thread" in one]
    with opened(kitchen.address, kitchen.directory / "first") as engine:
        engine.read_sentences()
        constructions = Constructions(engine.store)
        learned = (("clock", "how late is it", thread), ("cakes", "make a cake", thread_id(7)))
        for flow, sentence, source_thread in learned:
            one = Construction(
                id=f"of-{flow}",
                flow=flow,
                parts=(Phrases(texts=(sentence,)),),
                schema=FlowDigests(engine.store).of(flow) or "",
                thread=source_thread,
                sentence=sentence,
                learned_ms=1,
            )
            constructions.add("", one)
        engine.keep_sentences()
        said = machine.said("second", ["feedback", "bad", "wrong", "--yes", *chosen])
        assert "forgotten: construction" in said
        constructions.remove("of-cakes")
        with pytest.raises(RefusedError, match="at the same time"):
            engine.keep_sentences()
    assert "wrong" in machine.said("first", ["conversation", "show", "learning", "--json"])
    assert "make a cake" in machine.said("first", ["constructions", "show", "of-cakes"])
    assert "cakes" in machine.said("second", ["explain", "make a cake"])
    assert "of-cakes" in machine.said("second", ["constructions", "delete", "of-cakes"])
    assert "nothing was learned" in machine.said("first", ["constructions", "list"])


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_flows_of_a_shared_store_are_tools(kitchen: Kitchen) -> None:
    """A worker performs the call. Another machine's change of the flows is noticed, and threads are
    listed page by page.
    """
    with (
        opened(kitchen.address, kitchen.directory / "first") as engine,
        opened(kitchen.address, kitchen.directory / "second") as other,
    ):
        called = call(engine, "clock", {})
        assert (called.status, called.message, called.data) == ("completed", "it is late", True)
        assert "mcp" in {route.name for route in load_routes(engine)[0]}
        newest = list_threads(engine, None).resources[0]
        assert newest.name == called.thread_id
        before = engine.registry_mark()
        assert engine.registry_mark() == before
        other.registry.set_enabled("clock", False)
        assert engine.registry_mark() != before
        with pytest.raises(NotFoundError, match="only enabled flows"):
            call(engine, "clock", {})
        other.registry.set_enabled("clock", True)


def test_a_conversation_has_one_holder(
    kitchen: Kitchen, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine cannot reach it and says so. After its death the next one goes on."""
    created = json.loads(machine.said("first", ["conversation", "new", "held", "--json"]))
    id = created["conversationId"]
    monkeypatch.setattr(log, "ELSEWHERE_S", 0.1)
    with closing(open_store(kitchen.address, create=False, is_visible=True)) as holder:
        holder.conversations.open(id)
        said = machine.said("second", ["do", "what is the hour", "--conversation", "held"], code=1)
        assert f"process {os.getpid()}, which cannot be reached from here" in said
    assert "free" in machine.said("first", ["conversation", "rename", "held", "free"])


def test_a_copy_of_a_conversation_follows_the_store(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a process that held it, whose copy was ahead. Which one is current is kept beside
    each machine's indexes.
    """
    monkeypatch.setattr(log, "ELSEWHERE_S", 0.1)
    home = kitchen.directory / "first"
    with (
        opened(kitchen.address, home) as engine,
        opened(kitchen.address, kitchen.directory / "second") as other,
    ):
        id = new_conversation(engine.store, "copied", 1)
        assert read_state(other.store, id).name == "copied"
        for number, (writer, reader) in enumerate(((engine, other), (other, engine))):
            held = ConversationLog.open(writer.store, id, writer.clock_ms)
            assert held is not None
            with pytest.raises(HeldElsewhere):
                ConversationLog.open(reader.store, id, reader.clock_ms)
            held.settings({"name": f"copied {number}"})
            held.close()
            assert {read_state(one.store, id).name for one in (engine, other)} == {
                f"copied {number}"
            }
    with opened(kitchen.address, home) as again:
        assert current_conversation(again.store, 1) == id


def test_a_deleted_conversation_is_gone_for_all(
    kitchen: Kitchen, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its lines, and with the memory of it that another machine has derived. A conversation
    that a process uses is kept, and its user is named; a follower learns of the deletion.
    """
    monkeypatch.setattr(log, "ELSEWHERE_S", 0.1)
    created = json.loads(machine.said("first", ["conversation", "new", "doomed", "--json"]))
    id = created["conversationId"]
    machine.said("second", ["memory", "--conversation", "doomed"])
    derived = list((kitchen.directory / "second").glob(f"dispatcher/shared/*/{id}.*"))
    assert derived
    words = ["conversation", "delete", "doomed", "--yes"]
    with closing(open_store(kitchen.address, create=False, is_visible=True)) as holder:
        owner = holder.conversations.open(id)
        said = machine.said("second", words, code=1)
        assert f"process {os.getpid()}" in said and "is in use by" in said
        owner.close()
        tail = holder.conversations.tail(id, from_line=None)
        assert isinstance(tail, RowTail)
        assert tail.read(limit=1) == [] and not tail.has_more()
        assert id in machine.said("first", words)
        assert tail._subscription.wait(10.0)
        with pytest.raises(NotFoundError):
            tail.read(limit=1)
        tail.close()
    lines = "SELECT count(*) FROM conversation_lines WHERE log NOT IN (SELECT number FROM conversations)"
    assert kitchen.rows.execute(lines).fetchall() == [(0,)]
    assert id not in machine.said("second", ["conversation", "list"])
    assert not any(path.exists() for path in derived)
    assert "no conversation" in machine.said("second", words, code=5)


def test_a_poisoned_conversation_is_named(kitchen: Kitchen, machine: Machine) -> None:
    """It is listed with its problem, nothing of it is used, and the others stay usable."""
    created = json.loads(machine.said("first", ["conversation", "new", "bad", "--json"]))
    id = created["conversationId"]
    kitchen.rows.execute(
        "UPDATE conversation_lines SET line = line || '\\x20' FROM conversations"
        " WHERE log = number AND name = %s",
        [id],
    )
    try:
        said = machine.said("first", ["do", "what is the hour", "--conversation", id], code=1)
        assert id in said
        listed = json.loads(machine.said("second", ["conversation", "list", "--json"]))
        assert [one["conversationId"] for one in listed if one["problem"]] == [id]
    finally:
        kitchen.rows.execute("DELETE FROM conversations WHERE name = %s", [id])


def test_a_document_of_another_machine_is_not_overwritten(kitchen: Kitchen) -> None:
    """Of two that learn at the same time, the first one's is kept."""
    name = "dispatcher/preferences.json"
    with (
        opened(kitchen.address, kitchen.directory / "first") as first,
        opened(kitchen.address, kitchen.directory / "second") as second,
    ):
        for number, engine in enumerate((first, second)):
            engine.read_sentences()
            (engine.store.documents / "dispatcher").mkdir(exist_ok=True)
            (engine.store.documents / name).write_text(json.dumps({"number": number}))
    with closing(open_store(kitchen.address, create=False, is_visible=True)) as store:
        found = store.documents.read(name)
    assert found is not None and json.loads(found.data) == {"number": 1}


def test_a_worker_has_the_catalogue_of_the_store(kitchen: Kitchen) -> None:
    """In a directory where no sentence was read yet."""
    with opened(kitchen.address, kitchen.directory / "fresh") as engine:
        engine.refresh()  # as before each thread of a worker
        found = Catalog(engine.store).search("the cakes", limit=3)
    assert found[0].flow == "cakes"


def test_names_are_completed_from_the_shared_store(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flows and former versions; a server that is not there completes to nothing."""
    machine.said("first", ["conversation", "list"])
    context = Context(Command("run"))
    context.meta[stores._ADDRESS] = None
    assert [one.value for one in completion.complete_flows(context, None, "c")] == [
        "cakes",
        "clock",
    ]
    monkeypatch.setenv(STORE_VARIABLE, "postgresql://127.0.0.1:1/none")
    assert completion.complete_flows(context, None, "c") == []


def test_options_before_a_verb_of_a_sentence_are_refused(
    kitchen: Kitchen, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the verb would look at another store than the option names; a sentence that means a
    verb runs it on the same store.
    """
    monkeypatch.delenv(STORE_VARIABLE)
    said = machine.said("first", ["do", "--store", kitchen.address, "@list"], code=2)
    assert "--store belongs to sentences" in said
    machine.said("first", ["do", "--store", kitchen.address, "new conversation called sub"])
    listed = machine.said("second", ["conversation", "list", "--store", kitchen.address])
    assert "sub" in listed
