"""Flows of a shared store: its registry is changed and looked at from several machines."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection
from testbed.bundles import source, thread_id
from testbed.journals import Script
from testbed.postgres import PostgresServer
from testbed.stored_threads import entry_of
from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError
from uncaged_bundles.ids import ThreadId, bundle_hash
from uncaged_bundles.policy import parse_policy
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_capture.past_policies import check_past_policy
from uncaged_cli.entry import STORE_VARIABLE
from uncaged_cli.main import run as run_words
from uncaged_cluster.documents import REGISTRY
from uncaged_cluster.store import open_store
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.services.proposals import Proposal, Proposals
from uncaged_engine.services.stores import ChangedMeanwhile, ThreadNotes
from uncaged_engine.shared.past import find_shared_past
from uncaged_engine.shared.proposals import ProposalDocuments
from uncaged_engine.shared_engine import SharedEngine, shared_engine

Rows = Connection[tuple[Any, ...]]
NOW: Mapping[str, object] = {"now": {}}
WEB: Mapping[str, object] = {**NOW, "http": {"hosts": ["example.com"]}}


def version(message: str, policy: Mapping[str, object], name: str = "flow") -> bytes:
    body = f"""
    yield {{"now": {{}}}}
    return {{"success": True, "message": {message!r}}}
"""
    return source(name, body, policy=policy)


def accept(_widened: tuple[str, ...]) -> bool:
    return True


def refuse(widened: tuple[str, ...]) -> bool:
    raise AssertionError(widened)


def nothing(*_: object) -> None: ...


class FirstThread:
    """The threads that a worker drives: the first one."""

    def pending(self, threads: Collection[ThreadId]) -> dict[ThreadId, str]:
        return {one: "worker" for one in threads if one == thread_id(1)}


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Two machines with directories of their own, and a person's connection to the tables."""

    address: str
    first: SharedEngine
    second: SharedEngine
    rows: Rows


@pytest.fixture(scope="module")
def machines(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machines]:
    """A store that the first machine makes, with the flows of this distribution."""
    schema = postgres.new_schema()
    address = postgres.address(schema)
    with ExitStack() as stack:

        def machine(made: Callable[[str], None] | None) -> SharedEngine:
            home = Store.open(tmp_path_factory.mktemp("home"))
            opened = shared_engine(address, home, is_visible=True, report=nothing, made=made)
            return stack.enter_context(opened)

        with pytest.raises(NotFoundError, match="no store in this schema"):
            machine(None)
        first, second = machine(nothing), machine(None)
        rows = stack.enter_context(postgres.connect(options=f"-c search_path={schema}"))
        yield Machines(address=address, first=first, second=second, rows=rows)


def test_a_new_store_has_the_shipped_flows(machines: Machines) -> None:
    """Once for each version of this distribution; one that a person removed does not come again."""
    assert machines.second.bundle("list-files").descriptor.name == "list-files"
    machines.first.registry.remove("find-files")
    machines.first.add_shipped_flows()
    assert "find-files" not in machines.first.registry.names()


def test_a_flow_is_added_and_changed_from_two_machines(machines: Machines) -> None:
    """Each sees the other's changes; what one person accepted, no other one is asked."""
    first, second = machines.first, machines.second
    one, two = version("one", NOW), version("two", WEB)
    asked: list[tuple[str, ...]] = []

    def decline(widened: tuple[str, ...]) -> bool:
        asked.append(widened)
        return False

    with pytest.raises(RefusedError, match="not accepted"):
        first.add("flow", one, accept=decline)
    assert len(asked) == 1 and "flow" not in first.registry.names()
    assert first.add("flow", one, accept=accept).changed
    second.registry.refresh()
    assert not second.add("flow", one, accept=refuse).changed
    assert second.add("flow", two, accept=accept).changed
    first.registry.refresh()
    assert first.bundle("flow").source == two
    assert first.registry.rollback("flow").hash == bundle_hash(one)
    second.registry.set_enabled("flow", False)
    first.registry.set_confirm("flow", True)
    second.registry.refresh()
    found = second.registry.entry("flow")
    assert (found.hash, found.enabled, found.confirm) == (bundle_hash(one), False, True)
    assert [one.hash for one in found.history] == [bundle_hash(two)]
    second.registry.remove("flow")


def test_changes_at_the_same_time_are_all_kept(machines: Machines) -> None:
    """Each is made again on the text of the one that was quicker."""

    def add(engine: SharedEngine, letter: str) -> None:
        for number in range(4):
            name = f"both-{letter}{number}"
            engine.add(name, version(name, NOW, name), accept=accept)

    adding = [
        threading.Thread(target=add, args=(machines.first, "a")),
        threading.Thread(target=add, args=(machines.second, "b")),
    ]
    for one in adding:
        one.start()
    for one in adding:
        one.join()
    machines.first.registry.refresh()
    assert len(machines.first.registry.names("both-")) == 8


def test_a_person_is_asked_again_only_about_what_changed(machines: Machines) -> None:
    """While the first one thinks, another flow changes: no second question. While the second one
    does, the flow itself loses what it was allowed: that is asked for.
    """
    first, second = machines.first, machines.second
    first.add("asked", version("one", WEB, "asked"), accept=accept)
    asked: list[tuple[str, ...]] = []

    def change_another(widened: tuple[str, ...]) -> bool:
        asked.append(widened)
        second.add("other", version("other", NOW, "other"), accept=accept)
        return True

    wider = {"http": {"hosts": ["example.com", "example.org"]}, **NOW}
    assert first.add("asked", version("two", wider, "asked"), accept=change_another).changed
    assert [len(one) for one in asked] == [1]
    asked.clear()

    def take_back(widened: tuple[str, ...]) -> bool:
        asked.append(widened)
        if len(asked) == 1:
            second.add("asked", version("three", NOW, "asked"), accept=accept)
        return True

    widest = {"http": {"hosts": ["*"]}, **NOW}
    assert first.add("asked", version("four", widest, "asked"), accept=take_back).changed
    assert len(asked) == 2 and asked[0] != asked[1]


def test_a_change_is_given_up_after_some_tries(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another one changes the registry each time."""
    monkeypatch.setattr("uncaged_engine.shared.registry.MOST_TRIES", 3)
    first, second = machines.first, machines.second
    first.add("busy", version("one", NOW, "busy"), accept=accept)
    marks = iter(range(10))

    def change() -> None:
        first.registry.entry("busy")
        second.registry.set_confirm("busy", next(marks) % 2 == 0)
        first.registry.set_enabled("busy", False)

    with pytest.raises(ChangedMeanwhile):
        first.registry.again(change)
    assert first.registry.entry("busy").enabled
    first.registry.refresh()
    assert second.registry.entry("busy").enabled and next(marks) == 3


def test_past_threads_are_replayed_and_checked_against_a_policy(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the flow's versions, oldest first, without those of others; no copy stays here."""
    engine = machines.first
    one, two = version("one", NOW, "past"), version("two", NOW, "past")
    for each in (one, two):
        engine.add("past", each, accept=accept)
    with closing(open_store(machines.address, create=False, is_visible=True)) as store:
        for number, name in ((1, "past"), (2, "past"), (3, "else")):
            found = Script.begun(bundle_hash(one), thread_id(number), name=name)
            found.intent(1, {"now": {}}).step(1, outcome=1700000000000)
            found.end("completed", result={"success": True, "message": "one"})
            store.threads.start(entry_of(found), found.sealed, ThreadNotes())
        past = find_shared_past(store, FirstThread(), "past", [bundle_hash(one)])
        assert [each.thread_id for each in past] == [thread_id(2)]
    same = engine.check("past", engine.store.load_bundle(bundle_hash(one)))
    assert [(each.thread_id, each.identical) for each in same] == [
        (thread_id(1), True),
        (thread_id(2), True),
    ]
    assert not any(each.identical for each in engine.check("past", engine.bundle("past")))
    assert engine.check("no-such", engine.bundle("past")) == []
    monkeypatch.setattr("uncaged_engine.shared.listing.PAGE", 1)
    refused = check_past_policy(engine, "past", parse_policy({}, KNOWN)).refused
    assert [(one.thread_id, one.kind) for one in refused] == [
        (thread_id(1), "now"),
        (thread_id(2), "now"),
    ]
    assert not [path for path in engine.store.logs.rglob("*") if path.is_file()]


def test_two_machines_propose_the_same_version_at_the_same_time(machines: Machines) -> None:
    """One proposal has the threads of both, also of the one whose write was refused."""
    first, second = machines.first, machines.second
    head = first.add("twice", version("one", NOW, "twice"), accept=accept)
    after = read_bundle(version("two", NOW, "twice"), KNOWN)

    def propose(proposals: Proposals, number: int) -> Proposal:
        return proposals.propose(
            head.name,
            before=head.hash,
            after=after,
            by="test",
            evidence={},
            threads=[thread_id(number)],
            now_ms=number,
        )

    class Overtaken(ProposalDocuments):
        def _write(self, id: str, data: bytes) -> None:
            if number := next(late, 0):
                propose(second.proposals, number)
            super()._write(id, data)

    second.registry.refresh()
    late, kept = iter((2,)), propose(first.proposals, 1)
    files = Overtaken(first.documents, machines.address)
    done = propose(Proposals(first.store, registry=first.registry, files=files), 3)
    assert done.id == kept.id
    assert first.proposals.find(kept.id).threads == tuple(map(thread_id, (1, 2, 3)))


def test_a_poisoned_row_is_named_and_never_run(machines: Machines) -> None:
    """Other bytes of a bundle, with or without its grant, and a registry that is none."""
    engine, rows = machines.first, machines.rows
    good, bad = version("good", NOW, "poisoned"), version("bad", NOW, "poisoned")
    added = engine.add("poisoned", good, accept=accept)
    change = "UPDATE bundles SET source = %s WHERE hash = %s"
    rows.execute(change, [bad, added.hash])
    for action in (
        lambda: machines.second.run("poisoned", prompt=""),
        lambda: machines.second.bundle("poisoned"),
    ):
        with pytest.raises(DamagedError, match=added.hash):
            action()
    rows.execute("INSERT INTO bundles (hash, source) VALUES (%s, %s)", [bundle_hash(bad), bad])
    text = rows.execute("SELECT content FROM documents WHERE name = %s", [REGISTRY]).fetchone()
    assert text is not None
    poison = (
        "UPDATE documents SET content = %s, version = nextval('document_versions') WHERE name = %s"
    )
    try:
        rows.execute(poison, [b"\x00\xff", REGISTRY])
        with pytest.raises(DamagedError, match=r"workflow\.yaml in postgresql://"):
            machines.second.run("poisoned", prompt="")
        heads = re.compile(b"(hash: .?)" + added.hash.encode())
        forged, count = heads.subn(b"\\g<1>" + bundle_hash(bad).encode(), text[0])
        assert count == 1
        rows.execute(poison, [forged, REGISTRY])
        with pytest.raises(RefusedError, match="were not granted"):
            machines.second.run("poisoned", prompt="")
    finally:
        rows.execute(poison, [text[0], REGISTRY])
        rows.execute(change, [good, added.hash])


def test_verbs_of_the_registry_work_on_a_shared_store(
    machines: Machines,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From a flow's first version to its removal. The question says whom the answer binds."""
    monkeypatch.setenv("UNCAGED_WORKFLOW_HOME", str(tmp_path / "person"))
    monkeypatch.setenv(STORE_VARIABLE, machines.address)
    files = []
    for number, policy in enumerate((NOW, WEB)):
        files.append(tmp_path / f"{number}.py")
        files[-1].write_bytes(version(str(number), policy, "verbs"))

    def done(*words: str, code: int = 0) -> str:
        assert run_words(words) == code
        said = capsys.readouterr()
        return said.out + said.err

    assert f"on every worker of {machines.address}" in done("add", "verbs", str(files[0]), code=1)
    done("add", "verbs", str(files[0]), "--accept")
    assert "0 identical, 0 diverge" in done("add", "verbs", str(files[1]), "--check")
    done("add", "verbs", str(files[1]), "--accept")
    assert "example.com" in done("diff", "verbs") and "example.com" in done("show", "verbs")
    assert len(done("history", "verbs").splitlines()) == 3
    assert "nothing was checked" in done("regress", "verbs")
    done("rollback", "verbs")
    assert "disabled" in done("disable", "verbs")
    assert "is disabled" in done("run", "verbs", code=1)
    done("enable", "verbs", "--confirm")
    assert "verbs" in done("list") and '"usageCount": null' in done("list", "--json")
    assert "no roles" in done("graph", "verbs")
    machines.first.registry.refresh()
    flow = machines.first.registry.entry("verbs")
    wider = read_bundle(version("wider", {**NOW, "sleep": {}}, "verbs"), KNOWN)
    proposed = machines.first.proposals.propose(
        flow.name, before=flow.hash, after=wider, by="test", evidence={}, threads=(), now_ms=0
    ).id
    assert proposed[:10] in done("proposals") and "further permission" not in done(
        "proposal", "show", proposed
    )
    assert "on every worker" in done("proposal", "accept", proposed, code=1)
    assert f"was {flow.hash}" in done("proposal", "accept", proposed, "--accept")
    assert "was accepted" in done("proposal", "reject", proposed, code=1)
    strict = tmp_path / "policy.json"
    strict.write_text("{}")
    assert "0 past effects of 0 threads" in done("add", "verbs", "--policy", str(strict), "--check")
    assert "removed verbs" in done("remove", "verbs")
    assert "no flow 'verbs'" in done("show", "verbs", code=NotFoundError.exit_code)
