"""Verbs on threads of a shared store, with a real worker that holds its requests until the test
lets it go on.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click import Command, Context
from psycopg import sql
from testbed.answering import answering
from testbed.bundles import source, thread_id
from testbed.cluster_commands import told
from testbed.foreground import at_window, environment
from testbed.journals import Script
from testbed.postgres import PostgresServer
from testbed.stored_threads import BUNDLE, entry_of
from testbed.windows import Window, window
from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError, UsageError
from uncaged_bundles.ids import parse_thread_id
from uncaged_bundles.records import replace
from uncaged_cli.entry import STORE_VARIABLE
from uncaged_cli.runtime import open_engine
from uncaged_cluster.admitting import COUNT_RUNNING, FIRST_WAITING, WAITING_KINDS
from uncaged_cluster.pending import DRIVEN, PENDING
from uncaged_cluster.store import PostgresStore, open_store
from uncaged_cluster.threads import ENTRY_COLUMNS
from uncaged_cluster.turns import table_of
from uncaged_cluster.workers import PROTOCOL
from uncaged_engine.api import Engine
from uncaged_engine.journal import lines
from uncaged_engine.services.stores import ThreadNotes
from uncaged_engine.shared.dispatch import SharedStore
from uncaged_engine.stores.checking import check_store
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.threads.transfer import export_thread

REQUESTED = window("the worker carries it out all the same")
UNSUBMITTED = window("the thread is `interrupted`, and `resume` has it driven")
CHANGED = window("the store has the change, and this process's copy ends with it")
TWICE = window("the threads are in both stores; the next run finds them there")
PATIENCE_S = 120
CALLER = """
    child = yield {{"flow": {{"name": "{name}", "params": {{}}}}}}
    return {{"success": child["success"], "message": child["message"]}}
"""
NAPS = """
    yield {"sleep": {"seconds": 3600}}
"""
FLOW = """
    for n in range(2):
        yield {{"http": {{"url": "http://127.0.0.1:{port}/" + str(n)}}}}
    answer = yield {{"ask": {{"question": "go on?"}}}}
    return {{"success": True, "message": str(answer)}}
"""


@dataclass
class HeldServer:
    """A web server that answers each request when the test allows it. asked: released by each
    request. allowed: releases one.
    """

    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    allowed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    port: int = 0

    def wait(self) -> None:
        assert self.asked.acquire(timeout=PATIENCE_S)


@contextmanager
def held_server() -> Iterator[HeldServer]:
    held = HeldServer()

    def hold(_path: str) -> None:
        held.asked.release()
        held.allowed.acquire(timeout=PATIENCE_S)

    with answering(hold) as held.port:
        yield held
        held.allowed.release(100)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A shared store with one flow. The variables of this process name the store and the directory
    of a person.
    """

    address: str
    server: HeldServer
    directory: Path
    engine: str

    @property
    def schema(self) -> str:
        return self.address.partition("schema=")[2]

    @property
    def turns(self) -> sql.Identifier:
        """The table with the turns of threads."""
        return table_of(self.schema, self.engine)

    @contextmanager
    def worker(self, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a worker."""
        words = [sys.executable, "-m", "uncaged_cli", "work", "--store", self.address, *options]
        home = self.directory / "worker"
        home.mkdir(exist_ok=True)
        variables = {**environment(), "UNCAGED_WORKFLOW_HOME": str(home)}
        with subprocess.Popen(words, env=variables, cwd=home) as process:
            try:
                yield process
            finally:
                process.kill()  # at once: a thread of a failed test may wait

    def wait_for_worker(self, thread: str) -> None:
        """Wait until the request for a thread was carried out."""
        with closing(open_store(self.address, create=False, is_visible=True)) as store:
            assert isinstance(store, SharedStore)
            while store.queue.is_requested(parse_thread_id(thread)):
                time.sleep(0.02)

    def back(self) -> Engine:
        """Return the store's copy in a directory."""
        target = Engine.open(self.directory / "back")
        with closing(open_store(self.address, create=False, is_visible=True)) as store:
            assert check_store(store, progress=lambda _kind, _count: None).problems == []
            backend = DirectoryBackend(target.store)
            copy_store(store, backend, replace=True, progress=lambda _kind, _count: None)
        return target


@pytest.fixture(scope="module", params=["dbos", "restate"])
def scene(
    postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Scene]:
    """The same store twice: DBOS runs its threads, and Restate."""
    directory = tmp_path_factory.mktemp("shared")
    address = postgres.address(postgres.new_schema())
    with held_server() as server, ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        origin = Engine.open(directory / "origin")
        policy = {"http": {"hosts": [f"127.0.0.1:{server.port}"], "private": True}, "ask": {}}
        flow = source("asks", FLOW.format(port=server.port), policy=policy)
        origin.add("asks", flow, accept=lambda _: True)
        for name, called in (("calls", "gets"), ("calls-twice", "calls"), ("calls-asks", "asks")):
            caller = source(name, CALLER.format(name=called), policy={"flow": {}})
            origin.add(name, caller, accept=lambda _: True)
        body = f"""
    got = yield {{"http": {{"url": "http://127.0.0.1:{server.port}/0"}}}}
    return {{"success": True, "message": str(got["status"])}}
"""
        naps = source("naps", NAPS, policy={"sleep": {}})
        origin.add("naps", naps, accept=lambda _: True)
        gets = source("gets", body, policy={"http": policy["http"]})
        origin.add("gets", gets, accept=lambda _: True)
        store = stack.enter_context(closing(open_store(address, create=True, is_visible=True)))
        assert isinstance(store, SharedStore)
        backend = DirectoryBackend(origin.store)
        copy_store(backend, store, replace=False, progress=lambda _kind, _count: None)
        if request.param == "restate":
            restate = request.getfixturevalue("restate")
            store.run_with_restate(restate.admin, restate.ingress)
        patch.setenv("UNCAGED_WORKFLOW_HOME", str(directory / "person"))
        patch.setenv(STORE_VARIABLE, address)
        yield Scene(address=address, server=server, directory=directory, engine=request.param)


def started(*words: str) -> str:
    """Start a thread and return its id."""
    done = told(*words, "--detach")
    assert done.code == 0, done.err
    return done.out.strip()


def killed_at(where: Window, *words: str) -> None:
    """Run a command that dies in a window."""
    python = [sys.executable, *at_window(where, "uncaged_cli")]
    done = subprocess.run(
        [*python, *words], env=environment(), timeout=PATIENCE_S, check=False, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def status_of(thread: str) -> str:
    document = told("thread", thread, "--json").document
    return str(document["status"])


@pytest.mark.slow
def test_a_thread_is_looked_at_and_steered_from_another_machine(scene: Scene) -> None:
    """One thread from its start to its end: listed while it runs, paused in an effect, resumed,
    asked, answered, replayed; its fork is paused, killed in an effect and resumed. Two commands
    die on the way. Some fifteen seconds.
    """
    thread = started("run", "asks")
    assert told("ps", "--json").document[0]["doing"] == "waits for a worker"
    with scene.worker():
        scene.server.wait()
        [running] = told("ps", "--json").document
        assert (running["threadId"], running["status"]) == (thread, "running")
        assert running["worker"] and running["doing"].startswith("http")
        assert [one["status"] for one in told("threads", "asks", "--json").document] == ["running"]
        assert told("resume", thread).code == RefusedError.exit_code

        killed_at(REQUESTED, "pause", thread)
        scene.wait_for_worker(thread)
        scene.server.allowed.release()
        followed = told("thread", thread, "--follow")
        assert followed.code == 8 and "paused" in followed.out
        assert status_of(thread[:12]) == "paused"

        killed_at(UNSUBMITTED, "resume", thread)
        assert status_of(thread) == "interrupted"
        scene.server.allowed.release()
        resumed = told("resume", thread, "--json")
        assert json.loads(resumed.out.splitlines()[-1])["thread"]["status"] == "waiting"
        answered = told("answer", "latest", "yes", "--json")
        assert answered.code == 0
        assert json.loads(answered.out.splitlines()[-1])["thread"]["message"] == "yes"
        assert told("verify", thread).code == 0

        scene.server.wait()  # the second request
        fork = started("fork", thread, "--at", "1")
        scene.server.wait()
        assert "will pause" in told("pause", fork).out
        assert told("kill", fork).out.startswith(f"killed {fork}")
        listed = told("threads", "--status", "killed", "--json").document
        assert [one["threadId"] for one in listed] == [fork]
        scene.server.allowed.release()  # of the request whose client is gone
        assert told("resume", fork, "--redo", "--detach").code == 0
        scene.server.wait()
        scene.server.allowed.release()
        assert told("thread", fork, "--follow").code == 8
    copy = scene.back()
    assert copy.verify(thread).ok
    assert [one.status for one in copy.threads()] == ["waiting", "completed"]


@pytest.mark.slow
def test_forks_are_compared_from_another_machine(scene: Scene, tmp_path: Path) -> None:
    """Each fork of a shared thread goes on from its own outcome, on a worker; both are shown."""
    files = [tmp_path / f"{word}.json" for word in ("yes", "no")]
    for file in files:
        file.write_text(json.dumps(file.stem))
    sides = [word for file in files for word in ("--set", str(file))]
    thread = started("run", "asks")
    with scene.worker():
        for _ in range(2):
            scene.server.wait()
            scene.server.allowed.release()
        assert told("thread", thread, "--follow").code == 8
        assert told("answer", thread, "yes").code == 0
        kept = str(told("thread", thread, "--json").document["steps"])
        compared = told("compare", thread, "--at", kept, *sides, "--json")
    assert compared.code == 0, compared
    assert {f'"{word}"' in compared.out for word in ("yes", "no")} == {True}


def test_pending_threads_are_found_by_index(scene: Scene, postgres: PostgresServer) -> None:
    """However many ended ones there are: neither list needs a look at all rows."""
    thread = started("run", "asks")
    assert told("kill", thread).code == 0
    name = {"dbos": "workflow_status", "restate": "turns"}[scene.engine]
    options = f"-c search_path={scene.schema} -c enable_seqscan=off"
    with postgres.connect(options=options) as rows:
        for statement, values, index in (
            (PENDING, [[thread]], f"{name}_pkey"),
            (DRIVEN, [10], "dequeue"),
            (WAITING_KINDS, [], "dequeue"),
            (FIRST_WAITING, [["asks"], PROTOCOL, 4], "dequeue"),
            (COUNT_RUNNING, [["worker-1"]], name),
        ):
            composed = sql.SQL("EXPLAIN " + statement).format(
                status=scene.turns, columns=ENTRY_COLUMNS
            )
            plan = "\n".join(row[0] for row in rows.execute(composed, values))
            assert "Seq Scan" not in plan and index in plan, plan


@pytest.mark.slow
def test_a_thread_without_a_worker_is_steered_by_the_command(scene: Scene) -> None:
    """The line is written under the thread's fence; a worker that takes it afterwards leaves it."""
    thread = started("run", "asks")
    assert told("pause", thread).out == f"paused {thread}\n"
    assert told("kill", thread).code == 0
    assert status_of(thread) == "killed"
    with scene.worker():
        assert told("thread", thread, "--follow").code == 3
    records = scene.back().thread(thread).records
    assert [one.get("control") or one.get("end") for one in records] == ["pause", "killed"]


@pytest.mark.slow
def test_progress_of_an_effect_reaches_a_follower_elsewhere(scene: Scene) -> None:
    """While the effect is in flight; the journal has nothing of it."""
    words = [sys.executable, "-m", "uncaged_cli", "run", "naps", "--verbose"]
    with (
        subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, text=True) as following,
        scene.worker(),
    ):
        assert following.stdout is not None
        assert any("until 20" in line for line in following.stdout)
        assert told("kill", "latest").code == 0
    assert "until 20" not in told("thread", "latest", "--json").out


def test_a_flow_calls_flows_on_workers_with_one_slot(scene: Scene) -> None:
    """Children take no slot, also after the death of the worker that drove them all. A killed
    parent takes its child with it.
    """
    thread = started("run", "calls-twice")
    with scene.worker("--slots", "1") as first:
        scene.server.wait()
        first.kill()
        first.wait()
    scene.server.allowed.release()  # of the request whose client is gone
    with scene.worker("--slots", "1"):
        scene.server.wait()
        assert len(told("ps", "--json").document) == 3
        scene.server.allowed.release()
        done = told("thread", thread, "--follow", "--json")
        assert done.code == 0
        assert json.loads(done.out.splitlines()[-1])["thread"]["message"] == "200"

        other = started("run", "calls-asks")
        scene.server.wait()
        assert told("kill", other).code == 0
        scene.server.allowed.release()
        newest = told("threads", "-n", "2", "--json").document
        assert [one["status"] for one in newest] == ["killed", "killed"]
        assert newest[1]["threadId"] == other
    copy = scene.back()
    for one in copy.threads():
        assert one.status != "completed" or copy.verify(one.thread_id).ok


def test_a_thread_of_a_dead_worker_is_steered_by_the_command(
    scene: Scene, postgres: PostgresServer
) -> None:
    """It counts as one that waits; a resume leaves it in the queue, where it is, once."""
    thread = started("run", "asks")
    with postgres.connect() as rows:
        took = "UPDATE {} SET status = 'PENDING', executor_id = 'gone.1#999999' WHERE workflow_uuid = %s"
        rows.execute(sql.SQL(took).format(scene.turns), [thread])
        [waiting] = told("ps", "--json").document
        assert (waiting["worker"], waiting["doing"]) == ("", "waits for a worker")
        assert told("pause", thread).out == f"paused {thread}\n"
        followed = told("thread", thread, "--follow")
        assert followed.code == 8 and "paused" in followed.out
        assert told("resume", thread, "--detach").code == 0
        assert "is running" in told("resume", thread, "--detach").err
        assert len(told("ps", "--json").document) == 1
        counted = sql.SQL("SELECT count(*) FROM {} WHERE workflow_uuid LIKE %s")
        assert rows.execute(counted.format(scene.turns), [f"{thread}%"]).fetchone() == (1,)
    assert told("kill", thread).code == 0
    assert status_of(thread) == "killed"


def test_a_damaged_thread_hides_no_other(scene: Scene, postgres: PostgresServer) -> None:
    """`ps` lists the threads beside it, and `threads` names the damage."""
    thread, damaged = started("run", "asks"), started("run", "asks")
    change = "UPDATE thread_lines SET line = {} FROM threads WHERE log = number AND name = %s"
    with postgres.connect(options=f"-c search_path={scene.schema}") as rows:
        rows.execute(change.format("line || '\\x20'"), [damaged])
        try:
            assert [one["threadId"] for one in told("ps", "--json").document] == [thread]
            newest = told("threads", "-n", "2", "--json").document
            assert [one["status"] for one in newest] == ["corrupt", "running"]
        finally:
            rows.execute(change.format("rtrim(line, '\\x20')"), [damaged])
    assert told("kill", thread, damaged).code == 0


def test_a_corrupt_thread_is_shown_and_forked_up_to_its_damage(
    scene: Scene, postgres: PostgresServer
) -> None:
    """As one of a directory: a line that valid ones follow. It is neither resumed nor exported, and
    is whole again once its row is.
    """
    with closing(open_store(scene.address, create=False, is_visible=True)) as store:
        flow = Engine.open(scene.directory / "origin").bundle("asks").hash
        script = Script.begun(flow, thread_id(77), name="asks").done(1).done(2).end("killed")
        store.threads.start(entry_of(script, place=0), script.sealed, ThreadNotes())
    thread = script.thread
    change = (
        "UPDATE thread_lines SET line = {} FROM threads"
        " WHERE log = number AND name = %s AND position = 3"
    )
    with postgres.connect(options=f"-c search_path={scene.schema}") as rows:
        assert rows.execute(change.format("'\\x20' || line"), [thread]).rowcount == 1
        shown = told("thread", thread, "--json").document
        assert (shown["status"], shown["steps"]) == ("corrupt", 1)
        listed = told("threads", "-n", "1", "--json").document[0]
        assert (listed["status"], listed["threadId"]) == ("corrupt", thread)
        for words in (("resume", thread), ("export", thread, "x.tar.zst")):
            refused = told(*words)
            assert refused.code == DamagedError.exit_code, refused
            assert thread in refused.err and "Traceback" not in refused.err
        fork = started("fork", thread, "--at", "1")
        assert told("kill", fork).code == 0
        assert told("thread", fork, "--json").document["steps"] == 1
        rows.execute(change.format("ltrim(line, '\\x20')"), [thread])
    assert told("thread", thread, "--json").document["status"] == "killed"


def test_a_shared_thread_is_exported_as_its_copy(scene: Scene, tmp_path: Path) -> None:
    """Each byte: bundle, journal and blobs."""
    thread = started("run", "asks", "--prompt", "x" * 100_000)
    assert told("kill", thread).code == 0
    assert told("export", thread, str(tmp_path / "shared.tar.zst")).code == 0
    export_thread(scene.back(), parse_thread_id(thread), tmp_path / "copied.tar.zst")
    assert (tmp_path / "shared.tar.zst").read_bytes() == (tmp_path / "copied.tar.zst").read_bytes()


def test_a_kill_replaces_a_pause(scene: Scene) -> None:
    """A pause that comes after a kill is of no use, and a request that was carried out takes no
    later one with it.
    """
    thread = thread_id(9)
    with closing(open_store(scene.address, create=False, is_visible=True)) as store:
        assert isinstance(store, PostgresStore)
        queue = store.queue
        queue.request(thread, "pause")
        queue.request(thread, "kill")
        queue.request(thread, "pause")
        assert queue.requests() == [(thread, "kill")]
        queue.obeyed(thread, "pause")
        assert queue.is_requested(thread)
        queue.withdraw(thread)
        assert queue.requests() == []


def test_an_imported_thread_is_listed_as_such(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the list, which does not read the note of its origin."""
    address = postgres.address(postgres.new_schema())
    agents = {"default": {"name": "stranger"}}
    with closing(open_store(address, create=True, is_visible=True)) as store:
        for number, place in ((1, -1), (2, 0)):
            found = Script.begun(BUNDLE, thread_id(number), agents=agents)
            found.intent(1).step(1).end("completed", result=None)
            store.threads.start(entry_of(found, place=place), found.sealed, ThreadNotes())
    monkeypatch.setenv("UNCAGED_WORKFLOW_HOME", str(tmp_path))
    monkeypatch.setenv(STORE_VARIABLE, address)
    listed = told("threads", "--json").document
    assert [(one["threadId"], one["imported"]) for one in listed] == [
        (thread_id(2), False),
        (thread_id(1), True),
    ]


def test_a_flow_of_a_shared_store_is_exported(scene: Scene, tmp_path: Path) -> None:
    """Its bundle is fetched for that, and for a replay of past threads."""
    file = tmp_path / "asks.py"
    assert told("export", "asks", str(file)).code == 0
    assert file.read_bytes() == Engine.open(scene.directory / "origin").bundle("asks").source
    assert "diverge" in told("verify", "asks", "--on", "head").out


def test_a_person_sees_what_ended_on_a_shared_store(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once on each machine, without children, and apart from the threads of its directory."""
    with closing(open_store(scene.address, create=False, is_visible=True)) as store:
        flow = Engine.open(scene.directory / "origin").bundle("asks").hash
        now_ms = time.time_ns() // 1_000_000
        for number, by_thread in ((78, False), (79, True)):
            script = Script.begun(flow, thread_id(number), name="asks")
            script.add(lines.end("failed", {"error": {"message": "no"}}, now_ms))
            entry = entry_of(script, place=0)
            entry = replace(entry, by_thread=by_thread)
            store.threads.start(entry, script.sealed, ThreadNotes())
    for home in ("one", "two"):
        monkeypatch.setenv("UNCAGED_WORKFLOW_HOME", str(tmp_path / home))
        listed = told("notify", "--json").document["notifications"]
        found = [one["threadId"] for one in listed]
        assert thread_id(78) in found and thread_id(79) not in found
        shown = told(
            "notify", "show", str(found.index(thread_id(78)) + 1), "--store", scene.address
        )
        assert thread_id(78) in shown.out
        left = [one["threadId"] for one in told("notify", "--json").document["notifications"]]
        assert thread_id(78) not in left
        assert told("notify", "clear").code == 0
        assert told("notify", "--json").document["notifications"] == []
        assert not (tmp_path / home / "notifications.jsonl").exists()


def test_an_error_names_the_store_of_its_command(scene: Scene) -> None:
    """As the next steps do."""
    refused = told("run", "nothing", "--store", scene.address)
    assert refused.code == NotFoundError.exit_code
    assert f"`uncaged-workflow list --store '{scene.address}'`" in refused.err


def test_the_setting_names_the_store(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """config.yaml is looked at last; a verb about this machine alone works as ever, and one of
    another distribution that knows directories alone is refused.
    """
    config = scene.directory / "person" / "config.yaml"
    config.parent.mkdir(exist_ok=True)
    config.write_text(f"store: {json.dumps(scene.address)}\n")
    monkeypatch.delenv(STORE_VARIABLE)
    try:
        assert told("threads", "--json").code == 0
        assert told("agents").code == 0
        with Context(Command("theirs")), pytest.raises(RefusedError, match=str(config)):
            open_engine()
        monkeypatch.setenv(STORE_VARIABLE, "postgresql://127.0.0.1:1/none")
        assert told("threads").code != 0
    finally:
        config.unlink()


def test_ended_threads_are_removed_with_what_the_dispatcher_knows_of_them(
    scene: Scene, postgres: PostgresServer, tmp_path: Path
) -> None:
    """By name, by age into a directory, and by age. The last test: it takes the threads of the
    others. Two commands die on the way.
    """
    going, named = started("run", "asks"), started("run", "gets")
    assert told("thread", "rm", going).code == RefusedError.exit_code
    assert told("kill", named).code == 0
    assert "in the queue still" in told("thread", "rm", named).err
    with postgres.connect() as rows:
        column = {"dbos": "completed_at", "restate": "ended_at"}[scene.engine]
        end = sql.SQL(
            "UPDATE {} SET status = 'SUCCESS', {} = created_at WHERE workflow_uuid = ANY(%s)"
        ).format(scene.turns, sql.Identifier(column))
        all_turns = sql.SQL("SELECT workflow_uuid FROM {}").format(scene.turns)
        others = {name for (name,) in rows.execute(all_turns)} - {going}
        rows.execute(end, [list(others)])
        assert told("archive", named).code == UsageError.exit_code
        kept = tmp_path / "kept"
        assert told("thread", "pin", named[:14]).out == f"pinned {named}\n"
        for words in (("thread", "rm", named), ("archive", named, "--to", str(kept))):
            refused = told(*words)
            assert refused.code == RefusedError.exit_code and "is pinned" in refused.err
        aged = told("prune", "--older-than", "0s", "--dry-run", "--json").document
        assert aged["pinned"] == [named] and named not in aged["threadIds"]
        assert told("thread", "pin").out == f"{named}\n"
        assert told("thread", "pin", "--off", named, "--json").document == {"pinned": []}
        killed_at(TWICE, "archive", named, "--to", str(kept))
        assert status_of(named) == "killed"
        moved = told("archive", named, "--to", str(kept), "--json").document
        assert (moved["threadIds"], moved["problems"]) == ([named], [])
        assert Engine.open(kept).thread(named).summary.status == "killed"
        would = told("prune", "--older-than", "0s", "--dry-run", "--json").document
        assert would["dryRun"] and going not in would["threadIds"]
        found = told("prune", "--older-than", "0s", "--json").document
        assert (found["threadIds"], found["problems"]) == (would["threadIds"], [])
        assert told("thread", named).code == NotFoundError.exit_code
        assert [one["threadId"] for one in told("ps", "--json").document] == [going]
        assert rows.execute(all_turns).fetchall() == [(going,)]
        assert told("kill", going).code == 0
        rows.execute(end, [[going]])
    assert told("thread", "rm", going).out == f"removed {going}\n"
    killed_at(CHANGED, "disable", "gets")
    assert "is disabled" in told("run", "gets").err
    left = {one["status"] for one in told("threads", "--json").document}
    assert not left & {"completed", "failed", "killed"}
