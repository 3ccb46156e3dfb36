"""API, event streams and schedules of servers of one shared store, with a real worker."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import ExitStack, aclosing, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import source
from testbed.foreground import environment
from testbed.postgres import PostgresServer
from uncaged_bundles.errors import RefusedError, StorageError
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_cluster.store import open_store
from uncaged_engine.api import Engine
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.journal.blobs import named_in
from uncaged_engine.services.shared_engine import SharedEngine
from uncaged_engine.shared import copies, following
from uncaged_engine.shared_engine import shared_engine
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_schedules.changes import add, find, list_schedules, remove, set_enabled
from uncaged_schedules.due import due
from uncaged_serve.api import events, flows, machine, proposals, steps, thread, thread_events
from uncaged_serve.api.endpoints import Asked, ConflictError, ServerEvent
from uncaged_serve.api.proposals import AcceptBody, ProposalQuery
from uncaged_serve.api.thread import RowsQuery
from uncaged_serve.api.thread_actions import AnswerBody, ForkBody, answered, forked
from uncaged_serve.api.thread_events import PlaceQuery
from uncaged_serve.api.threads import ActionBody, ListQuery, RunBody, act, listed, numbers, start
from uncaged_serve.health import answers
from uncaged_serve.metrics import Scrape
from uncaged_serve.routes import load_routes

PATIENCE_S = 120.0
DATABASE = "served"
ASKING = """
    yield {"null": {"value": "x" * 600_000}}
    answer = yield {"ask": {"question": "go on?"}}
    return {"success": True, "message": str(answer)}
"""
COUNTING = """
    yield {"null": {"value": 1}}
    return {"success": True, "message": "counted"}
"""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """A store in a database of its own, which can be away. home: of the server's machine."""

    engine: SharedEngine
    address: str
    home: Path
    server: PostgresServer

    def away(self) -> None:
        """End all connections of the database, and refuse new ones."""
        with self.server.connect() as rows:
            rows.execute(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS false")
            rows.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                [DATABASE],
            )

    def back(self) -> None:
        with self.server.connect() as rows:
            rows.execute(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS true")

    def connections(self) -> int:
        with self.server.connect() as rows:
            [(number,)] = rows.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [DATABASE]
            )
        return int(number)

    def opened(self, stack: ExitStack, name: str) -> SharedEngine:
        """Open the store from another directory."""
        home = Store.open(self.home.parent / name)
        return stack.enter_context(
            shared_engine(self.address, home, is_visible=True, report=lambda _: None)
        )


@pytest.fixture(scope="module")
def shared(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    directory = tmp_path_factory.mktemp("served")
    with postgres.connect() as rows:
        rows.execute(f"CREATE DATABASE {DATABASE}")
    address = postgres.address("team", database=DATABASE)
    origin = Engine(Store.open(directory / "origin"))
    policy: dict[str, dict[str, object]] = {"null": {}, "ask": {}}
    origin.add("asks", source("asks", ASKING, policy=policy), accept=lambda _: True)
    origin.add("counts", source("counts", COUNTING), accept=lambda _: True)
    with closing(open_store(address, create=True, is_visible=True)) as store:
        copy_store(
            DirectoryBackend(origin.store),
            store,
            replace=False,
            progress=lambda _kind, _count: None,
        )
    with shared_engine(
        address, Store.open(directory / "home"), is_visible=True, report=lambda _: None
    ) as engine:
        yield Shared(engine=engine, address=address, home=directory / "home", server=postgres)


@pytest.fixture
def thread_id(shared: Shared) -> str:
    """A thread that waits for a worker, of which there is none."""
    return _started(shared.engine, "counts")


def _started(engine: Engine, flow: str) -> str:
    document: Any = start(engine, Asked(body=RunBody(flow=flow)))
    return str(document["threadId"])


def _of(thread: str, **fields: Any) -> Asked:
    return Asked(path={"id": thread}, **fields)


def _shown(engine: Engine, thread_id: str) -> Any:
    return thread.shown(engine, _of(thread_id))


def _changes(engine: Engine) -> AsyncGenerator[ServerEvent]:
    stream = events.changes(engine, Asked())
    assert isinstance(stream, AsyncGenerator)
    return stream


def _stream(engine: Engine, name: str) -> AsyncGenerator[ServerEvent]:
    stream = thread_events.followed(engine, _of(name, query=PlaceQuery()))
    assert isinstance(stream, AsyncGenerator)
    return stream


async def _until(
    stream: AsyncIterator[ServerEvent], fits: Callable[[ServerEvent], bool]
) -> list[ServerEvent]:
    """Return the events up to the first one that fits."""
    found: list[ServerEvent] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in stream:
            found.append(event)
            if fits(event):
                return found
    raise AssertionError([event.kind for event in found])


def _is_status(word: str) -> Callable[[ServerEvent], bool]:
    def fits(event: ServerEvent) -> bool:
        data: Any = event.data
        return event.kind in ("status", "thread") and data["status"] == word

    return fits


@pytest.mark.slow
def test_a_thread_is_followed_from_its_start_to_its_end(shared: Shared) -> None:
    """A thread is started, followed by two clients of one reader, listed, asked and answered, all
    from a machine that is no worker.
    """
    engine = shared.engine

    async def scenario() -> tuple[str, list[ServerEvent], list[ServerEvent]]:
        async with aclosing(_changes(engine)) as changes:
            await anext(changes)
            name = await asyncio.to_thread(_started, engine, "asks")
            [waiting] = _mapping(await asyncio.to_thread(machine.machine, engine, Asked()))[
                "workers"
            ]
            assert (waiting["threadId"], waiting["worker"]) == (name, "")
            words = [sys.executable, "-m", "uncaged_cli", "work", "--store", shared.address]
            (home := shared.home.parent / "worker").mkdir()
            variables = {**environment(), "UNCAGED_WORKFLOW_HOME": str(home)}
            with subprocess.Popen(words, env=variables) as worker:
                try:
                    found = await asyncio.gather(follow(name, 2), list_of(changes))
                    state = _mapping(await asyncio.to_thread(machine.machine, engine, Asked()))
                    [one] = state["sharedWorkers"]
                    assert (one["slots"], one["flows"], one["drains"]) == (4, None, False)
                    return name, *found
                finally:
                    worker.kill()

    async def follow(name: str, clients: int) -> list[ServerEvent]:
        streams = [_stream(engine, name) for _ in range(clients)]
        await asyncio.gather(*(_until(one, _is_status("waiting")) for one in streams))
        assert len(_readers(name)) <= 1
        document = await asyncio.to_thread(_shown, engine, name)
        body = AnswerBody(value="yes", question=document["question"]["at"])
        await asyncio.to_thread(answered, engine, _of(name, body=body))
        found = await asyncio.gather(*(_until(one, _is_status("completed")) for one in streams))
        for one in streams:
            await one.aclose()
        return found[0]

    async def list_of(changes: AsyncIterator[ServerEvent]) -> list[ServerEvent]:
        return await _until(changes, _is_status("completed"))

    name, followed, listing = asyncio.run(scenario())
    assert [row["label"] for event in followed for row in _rows_of(event)][-1] == "ask"
    assert {_mapping(event.data)["threadId"] for event in listing if event.kind == "thread"} == {
        name
    }

    rows = _mapping(thread.rows(engine, _of(name, query=RowsQuery())))
    assert [row["kind"] for row in rows["rows"]][:1] == ["null"]
    assert _mapping(steps.step(engine, Asked(path={"id": name, "place": "1"})))["kind"] == "null"
    digest = max(one for line in _lines(engine, name) for one in named_in(line))
    whole: Any = steps.blob(engine, Asked(path={"id": name, "digest": digest}))
    assert b"x" * 600_000 in whole.data

    [listed_one] = _mapping(listed(engine, Asked(query=ListQuery(flow="asks"))))["threads"]
    assert (listed_one["threadId"], listed_one["status"]) == (name, "completed")
    assert _mapping(numbers(engine, Asked()))["statuses"]["completed"] == 1
    assert 'uncaged_threads{flow="asks",status="completed"} 1.0' in Scrape(engine).text()
    shown = _mapping(flows.flow(engine, Asked(path={"flow": "asks"})))
    assert [one["threadId"] for one in shown["past"]] == [name] and shown["estimate"][
        "threads"
    ] == 1
    assert _mapping(machine.costs(engine, Asked()))["complete"]


def _readers(name: str) -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == f"follow-{name}"]


def _lines(engine: Engine, name: str) -> list[bytes]:
    return engine.store.locate_thread(name)[2].read_bytes().splitlines(keepends=True)


def _rows_of(event: ServerEvent) -> list[Any]:
    return list(_mapping(event.data)["rows"]) if event.kind == "rows" else []


def _mapping(document: Any) -> dict[str, Any]:
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("follower_waits_s", [60.0, -1.0])
def test_an_outage_of_the_database_ends_no_stream(
    shared: Shared, thread_id: str, follower_waits_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams of a thread that stopped, of one that waits for a worker, and of the list go on after
    an outage, also one that a follower of threads does not wait for. Meanwhile requests are refused
    as those of a store that is away.
    """
    monkeypatch.setattr(following, "OUTAGE_S", follower_waits_s)
    engine = shared.engine
    fork = _mapping(forked(engine, _of(thread_id, body=ForkBody(at=0, start=False))))["threadId"]

    async def scenario() -> None:
        streams = [_stream(engine, name) for name in (thread_id, fork)]
        async with aclosing(_changes(engine)) as changes:
            await _until(changes, lambda event: _names(event) == thread_id)
            await _until(streams[0], _is_status("running"))
            await _until(streams[1], _is_status("paused"))
            await asyncio.to_thread(shared.away)
            try:
                with pytest.raises(StorageError):
                    await asyncio.to_thread(listed, engine, Asked(query=ListQuery()))
                assert not await asyncio.to_thread(answers, engine)
                while follower_waits_s < 0 and _readers(thread_id):
                    await asyncio.sleep(0.02)
            finally:
                await asyncio.to_thread(shared.back)
            body = ActionBody(action="kill", threads=[thread_id, fork])
            done = await asyncio.to_thread(act, engine, Asked(body=body))
            assert [one["error"] for one in _mapping(done)["results"]] == [None, None]
            for stream in streams:
                await _until(stream, _is_status("killed"))
                await stream.aclose()
            await _until(changes, _is_status("killed"))
        assert await asyncio.to_thread(answers, engine)

    asyncio.run(scenario())


def _names(event: ServerEvent) -> object:
    return _mapping(event.data).get("threadId")


def test_followers_share_one_connection(shared: Shared) -> None:
    """Fifty followed threads take one connection more than none."""
    engine = shared.engine
    names = [_started(engine, "counts") for _ in range(50)]

    async def scenario() -> tuple[int, int]:
        before = await asyncio.to_thread(shared.connections)
        streams = [_stream(engine, name) for name in names]
        await asyncio.gather(*(_until(one, _is_status("running")) for one in streams))
        found = await asyncio.to_thread(shared.connections)
        for one in streams:
            await one.aclose()
        return before, found

    before, found = asyncio.run(scenario())
    assert found <= before + 1
    done = act(engine, Asked(body=ActionBody(action="kill", threads=names)))
    assert all(one["done"] for one in _mapping(done)["results"])


def test_copies_that_nobody_looks_at_are_removed(
    shared: Shared, thread_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of a thread goes after its time, and is made anew when the thread is looked at."""
    engine = shared.engine
    other = _started(engine, "counts")
    _shown(engine, thread_id)
    path = engine.store.locate_thread(thread_id)[2]
    lines = path.read_bytes()
    monkeypatch.setattr(copies, "SWEEP_S", -1.0)
    monkeypatch.setattr(copies, "IDLE_S", -1.0)
    _shown(engine, other)
    assert not path.exists()
    monkeypatch.setattr(copies, "IDLE_S", 600.0)
    assert _shown(engine, thread_id)["status"] == "running"
    assert path.read_bytes() == lines


def test_what_a_shared_store_has_not_is_refused(shared: Shared) -> None:
    """All routes are served, and an agent of this machine is not scheduled for all."""
    engine = shared.engine
    routes, problems = load_routes(engine)
    assert not problems
    assert {one.name for one in routes} >= {"api", "dispatcher", "healthz", "mcp", "page"}
    with pytest.raises(RefusedError):
        add(engine, "counts", "@daily", agents={"": "claude"})


def test_two_machines_decide_about_proposals(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proposal is listed, shown, accepted and rejected on any machine, also at the same moment:
    the first decision counts, and the second person gets to know it. Files of the server's own
    directory are not shown.
    """
    engine = shared.engine
    (engine.store.root / "proposals").mkdir()
    (engine.store.root / "proposals" / f"{'0' * 26}.json").write_text("{}")
    with ExitStack() as stack:
        here, there = engine, shared.opened(stack, "decider")
        ours, theirs, last = (_proposed(here, kind) for kind in ("now", "then", "last"))
        found = _mapping(proposals.proposals(there, Asked(query=ProposalQuery(flow="counts"))))
        assert {one["proposalId"] for one in found["proposals"]} == {last, theirs, ours}
        assert not found["problems"]
        shown = _mapping(proposals.proposal(there, _decided(ours)))
        body = AcceptBody(granted=tuple(shown["widened"]))
        with pytest.raises(ConflictError):
            proposals.accept(there, _decided(ours, AcceptBody()))
        assert _mapping(proposals.reject(there, _decided(last)))["state"] == "rejected"
        with pytest.raises(RefusedError, match="was rejected"):
            proposals.accept(here, _decided(last, body))

        _meanwhile(
            monkeypatch, here.documents, lambda: proposals.accept(there, _decided(ours, body))
        )
        with pytest.raises(RefusedError, match="just now: it is accepted"):
            proposals.reject(here, _decided(ours))
        here.refresh()
        assert here.registry.entry("counts").hash == shown["to"]
        with pytest.raises(RefusedError, match="was accepted already"):
            proposals.accept(here, _decided(ours, body))
        with pytest.raises(RefusedError, match="is stale"):
            proposals.accept(here, _decided(theirs, body))

        both = _decided(_proposed(here, "both"), body)
        _meanwhile(monkeypatch, here.registry._storage, lambda: proposals.accept(there, both))
        with pytest.raises(RefusedError, match="was accepted already"):
            proposals.accept(here, both)
        assert _mapping(proposals.proposal(there, both))["state"] == "accepted"


def _proposed(engine: SharedEngine, kind: str) -> str:
    """Propose a version of `counts` that asks for more."""
    flow = engine.registry.entry("counts")
    policy: dict[str, dict[str, object]] = {"null": {}, "sleep": {}}
    text = COUNTING + f"# {kind}, after {flow.hash}\n"
    after = read_bundle(source("counts", text, policy=policy), KNOWN)
    made = engine.proposals.propose(
        flow.name, before=flow.hash, after=after, by="test", evidence={}, threads=(), now_ms=engine.clock_ms()
    )  # fmt: skip
    return made.id


def _decided(proposal: str, body: AcceptBody | None = None) -> Asked:
    return Asked(path={"proposal": proposal}, body=body)


def _meanwhile(patch: pytest.MonkeyPatch, storage: Any, action: Callable[[], object]) -> None:
    """Perform an action just before the next write to a storage."""
    replace, once = storage.replace, [action]

    def replaced(*words: Any, **fields: Any) -> str:
        while once:
            once.pop()()
        return str(replace(*words, **fields))

    patch.setattr(storage, "replace", replaced)


@pytest.mark.slow
def test_each_due_time_of_a_shared_store_has_one_thread(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes that look at the same time start each due time once, and one of them reports
    it; so does a process that another one overtakes between the start and the note of it.
    """
    engine = shared.engine
    past_ms = engine.clock_ms() - 3_600_000
    monkeypatch.setattr(engine, "clock_ms", lambda: past_ms)
    for name in ("one", "two", "three"):
        add(engine, "counts", "0 * * * *", name=name, timezone="UTC")
    monkeypatch.undo()
    words = [sys.executable, "-m", "uncaged_cli", "due", "--json", "--store", shared.address]
    processes = [
        subprocess.Popen(
            words,
            env={**environment(), "UNCAGED_WORKFLOW_HOME": str(shared.home.parent / f"due{n}")},
            stdout=subprocess.PIPE,
        )
        for n in range(2)
    ]
    reports = [json.loads(one.communicate(timeout=PATIENCE_S)[0]) for one in processes]
    started = [run["schedule"] for report in reports for run in report["started"]]
    assert sorted(started) == ["one", "three", "two"]
    assert [report["problems"] for report in reports] == [[], []]
    for schedule in list_schedules(engine).schedules:
        assert _shown(engine, str(schedule.thread_id))["flow"] == "counts"

    remove(engine, "one")
    assert not set_enabled(engine, "two", enabled=False).enabled
    monkeypatch.setattr(engine, "clock_ms", lambda: past_ms)
    add(engine, "counts", "0 * * * *", name="overtaken", timezone="UTC")
    monkeypatch.undo()
    with ExitStack() as stack:
        other = shared.opened(stack, "other")
        run = engine.run

        def overtaken(*args: Any, **fields: Any) -> Any:
            assert [one.schedule for one in due(other).started] == ["overtaken"]
            return run(*args, **fields)

        monkeypatch.setattr(engine, "run", overtaken)
        found = due(engine)
    assert (found.started, found.problems) == ((), ())
    thread_of = find(engine, "overtaken").thread_id
    assert thread_of is not None and engine.has_thread(thread_of)  # type: ignore[arg-type]
