"""A worker, its sandbox or its client dies in each window that the code names."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
import yaml
from testbed.bundles import (
    COUNT,
    MARKED,
    PLANNED,
    Placed,
    granted,
    place,
    place_script,
    script_of,
    source,
)
from testbed.fault_checks import Follower, check_the_disk, check_the_recovery, drive
from testbed.foreground import at_window, environment, worker
from testbed.journals import records_of
from testbed.processes import end, workers_of
from testbed.repositories import git, make_repository, write
from testbed.scripting import objects_at
from testbed.steering import finish, intent_of, marks, settle, wait_for
from testbed.windows import Window, window, windows
from testbed.windows import place as code_at
from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_bundles.ids import bundle_hash
from uncaged_capture.fixing.start import WEEK_MS, remove_directory, start_fix
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.journal import archive
from uncaged_engine.sandbox.granted_paths import GrantedPaths
from uncaged_engine.sandbox.ownership import restore_owners, temporary_owner, user_for
from uncaged_engine.shipped import add_shipped_flows
from uncaged_engine.threads.housekeeping import prune
from uncaged_engine.threads.transfer import export_thread, import_thread
from uncaged_engine.worker import address, client, server
from uncaged_engine.worker.wire import pack, receive_line

pytestmark = pytest.mark.slow

SENT = "outcome on disk, not yet sent; replay sends it"
OPEN = "the intent is open, and whether it was performed is unknown"
FAST_SENT = "the fast lane's outcome on disk, not yet sent; replay sends it"
FAST_OPEN = "the fast lane's intent is open, and whether it was performed is unknown"
TORN = "or a full disk: a torn tail, which the next owner cuts"
CUT = "the tail is kept aside and still there; the next owner cuts it again"
LEAVING = "or a client that connected just now: no client can come any more, those that came are still served"
LEFT = "the worker left between our connect and its answer, or takes no more threads; ask again"
STARTED = "the thread is `interrupted`, and `resume` starts it"
ANSWERED = "the answer is kept, the thread is `interrupted`, and `resume` goes on with it"
ARCHIVED = "both are there; the next `archive` removes the plain one"
RESTORED = "both are there, and readers take the plain one"
READ_BOTH = "archived, the plain one not yet unlinked"
NAMED = "at the former try: renamed, and the name not yet on disk"
CHILD = "the child runs; asked again, we find it"
SNAPPED = "the snapshot is made, no line names it; the next attempt starts from the one before it"
OWNED = "the record names the former owner"
LINKED = "the next call starts it anew"
UNPACKED = "it is no longer archived, and otherwise as it was"
MARKED_REMOVED = "the marker is there, and so is the journal, which counts"
ORIGIN_ALONE = "an origin without a journal, which nothing reads"
NAMED_AS_LOCKED = "named as locked, and nothing written; the next reader finds the lock free"
UNUSED = "the end is on disk, the unused worktree still there; `prune` removes it"
MAKING_ROOM = "no worker listens, and the lock goes with this one"
UNNAMED_SCRATCH = "an empty directory stays in the system's temporary one"
UNUSED_REPOSITORY = "a repository that no thread works in; a later fix sweeps it"
INDEX_BEHIND = "the index is the former text's, and is rebuilt by the next reader"
CALLER = source(
    "caller",
    """
    child = yield {"flow": {"name": "count", "params": {"n": 1}}}
    return {"success": True, "message": child["message"]}
""",
    policy={"flow": {}},
)
TIMED = {"maxSeconds": 3600}
RESULT = {"success": True, "message": "5 answers", "data": [1, 2, 3, 4, 5]}


def test_every_window_has_a_fault_test_that_names_it() -> None:
    """Each `# crash here` comment has a test with the same words, in which a process dies there."""
    tests = "".join(
        path.read_text("utf-8") for path in Path(__file__).parent.parent.rglob("test_*.py")
    )
    assert [
        f"{one.path.name}:{one.line}: {one.text}" for one in windows() if one.text not in tests
    ] == []


@pytest.fixture
def placed(engine: Engine) -> Placed:
    return place(engine.store, MARKED, params={"n": 5})


def suffer(
    engine: Engine, placed: Placed, at: Window, *, count: int = 1, before: Sequence[str] = ()
) -> Follower:
    """Drive the thread on a worker that dies there."""
    follower = Follower()
    with worker(
        engine.store,
        placed.bundle.hash,
        python=at_window(at, "uncaged_engine.worker", count=count),
        before=before,
    ) as process:
        drive(engine.store, placed, follower)
        assert process.wait(timeout=60) == -9, "it did not come to that place"
    return follower


def act(engine: Engine, python: Sequence[str], *words: str) -> str:
    """Do one thing in a process that dies; returns what it acknowledged."""
    command = [sys.executable, *python, str(engine.store.root), *words]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == -9, (done.returncode, done.stderr)
    return done.stdout


BETWEEN = [*((text, count, TIMED) for text in (SENT, OPEN) for count in (1, 3, 5))]
BETWEEN += [*((text, count, {}) for text in (FAST_SENT, FAST_OPEN) for count in (1, 4))]
"""A window, the how-manyth time it is open, and limits: where time is limited the loop takes all
steps, else the first one only.
"""


@pytest.mark.parametrize(("text", "count", "limits"), BETWEEN)
def test_the_worker_dies_between_effects(
    engine: Engine, text: str, count: int, limits: Mapping[str, int]
) -> None:
    """An effect whose outcome was written is not repeated, one that was not begun is performed:
    each exactly once.
    """
    placed = place(engine.store, MARKED, params={"n": 5}, limits=limits)
    follower = suffer(engine, placed, window(text), count=count)
    assert engine.thread(placed.thread).summary.status == "interrupted"
    check_the_disk(placed, placed.path.read_bytes(), follower, marks(engine, placed.thread))
    check_the_recovery(engine, placed, RESULT)
    assert marks(engine, placed.thread) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("text", "count", "limits"), BETWEEN)
def test_the_sandbox_dies_between_effects(
    engine: Engine, text: str, count: int, limits: Mapping[str, int]
) -> None:
    """The worker replays the thread in a new process without a resume, and each effect is performed
    once.
    """
    placed = place(engine.store, MARKED, params={"n": 5}, limits=limits)
    python = at_window(window(text), "uncaged_engine.worker", count=count, deed="sandbox")
    with worker(engine.store, placed.bundle.hash, python=python):
        drive(engine.store, placed)
    assert finish(engine, placed.thread) == RESULT
    assert marks(engine, placed.thread) == [1, 2, 3, 4, 5]
    assert "attempt" not in placed.path.read_text()
    assert engine.verify(placed.thread).ok


def test_the_worker_dies_with_half_a_line_written(engine: Engine) -> None:
    """The disk took a part of the line: the next owner cuts it, and the effect's outcome is found
    missing, not half there.
    """
    long = place(engine.store, MARKED, params={"n": 5}, prompt="p" * 20_000)
    limit = long.path.stat().st_size + 2 * 125 + 79 + 40  # in the second outcome
    follower = suffer(engine, long, window(TORN), before=["prlimit", f"--fsize={limit}"])
    assert long.path.stat().st_size == limit
    assert not long.path.read_bytes().endswith(b"\n")
    check_the_disk(long, long.path.read_bytes(), follower, marks(engine, long.thread))
    check_the_recovery(engine, long, RESULT)
    assert [
        part.stat().st_size > 0 for part in long.path.parent.glob(f"{long.thread}.*.torn-*")
    ] == [True]


def test_the_worker_dies_before_it_cuts_a_torn_tail(engine: Engine) -> None:
    """The tail is there twice then; the next owner cuts it."""
    bundle = granted(engine.store, MARKED)
    script = script_of(bundle, params={"n": 5})
    placed = place_script(engine.store, bundle, script)
    placed.path.write_bytes(script.data + b'{"seq":1,"inte')
    suffer(engine, placed, window(CUT))
    assert placed.path.read_bytes() == script.data + b'{"seq":1,"inte'
    check_the_recovery(engine, placed, RESULT)
    assert [part.read_bytes() for part in placed.path.parent.glob("*.torn-*")] == [
        b'{"seq":1,"inte'
    ]


def test_the_worker_dies_while_it_leaves(engine: Engine, placed: Placed) -> None:
    """The dead worker's socket and lock are gone: the next request starts another worker."""
    with worker(
        engine.store, placed.bundle.hash, python=at_window(window(LEAVING), "uncaged_engine.worker")
    ) as process:
        drive(engine.store, placed)
        assert process.wait(timeout=60) == -9
    assert finish(engine, placed.thread) == RESULT
    assert finish(engine, engine.run("marked", prompt=""))["message"] == "5 answers"


def test_the_worker_dies_before_it_writes_a_resume(engine: Engine) -> None:
    """A killed thread that was named as locked is still killed, in a list and for `resume`; `ps`
    lists it once a worker has it.
    """
    granted(engine.store, source("sleeper", "    yield {'null': {'sleep_s': 600}}\n"))
    thread = engine.run("sleeper", prompt="")
    wait_for(engine, thread, intent_of(1))
    assert [one.thread_id for one in engine.running()] == [thread], "the control"
    engine.kill(thread)
    settle(engine, thread)
    [killed] = engine.threads()
    workers = [one.pid for one in workers_of(engine.store.root)]
    assert end(workers) == []
    with worker(
        engine.store,
        killed.hash,
        python=at_window(window(NAMED_AS_LOCKED), "uncaged_engine.worker"),
    ) as process:
        message = {
            "op": "drive",
            "threadId": thread,
            "environment": {},
            "directory": "/",
            "resume": {},
        }
        assert client.request(engine.store, killed.hash, message, start=False) is None
        assert process.wait(timeout=60) == -9
    assert engine.running() == []
    assert engine.threads() == [killed]
    engine.resume(thread)
    wait_for(
        engine,
        thread,
        lambda event: event.kind == "record" and event.body.get("control") == "resume",
    )
    assert [one.thread_id for one in engine.running()] == [thread]
    assert [one.status for one in engine.threads()] == ["running"]
    engine.kill(thread)
    settle(engine, thread)
    assert engine.running() == []


def test_a_caller_that_came_while_the_worker_left_is_served(engine: Engine) -> None:
    """The worker runs the caller's thread, stays, and listens again for others."""
    sleeper = place(engine.store, source("sleeper", "    yield {'null': {'sleep_s': 600}}\n"))
    leaving = code_at(Path(server.__file__), "path.unlink(missing_ok=True)")
    with worker(
        engine.store,
        sleeper.bundle.hash,
        python=at_window(leaving, "uncaged_engine.worker", deed="hold"),
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        caller = client.connect(engine.store, sleeper.bundle.hash)
        assert caller is not None
        with caller:
            caller.sendall(
                pack(
                    {"op": "drive", "threadId": sleeper.thread, "environment": {}, "directory": "/"}
                )
            )
            process.stdin.write(b"\n")
            process.stdin.flush()
            assert receive_line(caller, bytearray()) == pack({"ok": True})
        wait_for(engine, sleeper.thread, intent_of(1))
        engine.kill(sleeper.thread)
        assert settle(engine, sleeper.thread)["status"] == "killed"
        assert "killed while it slept" in sleeper.path.read_text(), (
            "the worker did it, which was alive all along"
        )
        assert [worker.pid for worker in workers_of(engine.store.root)] in ([], [process.pid]), (
            "it was the same worker all along"
        )


def test_the_worker_leaves_between_connect_and_answer(engine: Engine, placed: Placed) -> None:
    """The caller gets no answer and asks again, which starts another worker; the thread is driven
    once.
    """
    path = address.socket_path(engine.store, placed.bundle.hash)
    assert window(LEFT).path.name == "client.py"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def leave() -> None:
            connection, _ = listener.accept()
            path.unlink()
            connection.recv(1 << 16)
            connection.close()

        leaving = threading.Thread(target=leave)
        leaving.start()
        message = {"op": "drive", "threadId": placed.thread, "environment": {}, "directory": "/"}
        assert client.request(engine.store, placed.bundle.hash, message, start=True) == {"ok": True}
        leaving.join(timeout=60)
    assert finish(engine, placed.thread) == RESULT
    assert marks(engine, placed.thread) == [1, 2, 3, 4, 5]


def test_the_client_dies_before_its_thread_has_a_worker(engine: Engine) -> None:
    """A thread whose id was never printed is interrupted, and resume starts it."""
    granted(engine.store, MARKED)
    assert act(engine, at_window(window(STARTED), "testbed.store_actions"), "run", "marked") == ""
    [thread] = engine.threads()
    assert (thread.status, thread.steps) == ("interrupted", 0)
    engine.resume(thread.thread_id)
    assert finish(engine, thread.thread_id) == RESULT


def test_the_client_dies_after_its_answer_is_kept(engine: Engine) -> None:
    """The person's answer is on disk: the thread is not waiting any more, and resume continues with
    the answer.
    """
    granted(engine.store, source("asking", _ASKING, policy={"ask": {}}))
    thread = engine.run("asking", prompt="")
    assert settle(engine, thread)["status"] == "waiting"
    act(engine, at_window(window(ANSWERED), "testbed.store_actions"), "answer", thread, "red")
    assert engine.thread(thread).summary.status == "interrupted"
    engine.resume(thread)
    assert finish(engine, thread)["message"] == "red"
    assert engine.verify(thread).ok


_ASKING = """
    colour = yield {"ask": {"question": "which?"}}
    return {"success": True, "message": colour}
"""


def test_the_archiver_dies_with_both_files_there(engine: Engine) -> None:
    """The thread is listed once and reads as before; archiving again leaves the packed one only."""
    granted(engine.store, COUNT)
    thread = engine.run("count", prompt="", params={"n": 3})
    finish(engine, thread)
    before = engine.thread(thread)
    path = engine.store.data_path(before.summary.hash, thread)
    for text in (ARCHIVED, READ_BOTH):
        assert window(text).line
    act(engine, at_window(window(ARCHIVED), "testbed.store_actions"), "pack", thread)
    assert sorted(one.name for one in path.parent.glob(f"{thread}.data*")) == [
        path.name,
        f"{path.name}.zst",
    ]
    assert [one.thread_id for one in engine.threads()] == [thread]
    assert engine.thread(thread) == before
    archive.compress(path)
    assert not path.exists()
    assert engine.thread(thread) == before
    assert engine.verify(thread).ok


def test_who_takes_a_thread_out_of_the_archive_dies_with_both_files_there(engine: Engine) -> None:
    """The thread goes on from the plain one, and the packed one does not come back when it is
    archived again.
    """
    granted(engine.store, COUNT)
    thread = engine.run("count", prompt="", params={"n": 3}, options=RunOptions(max_steps=2))
    assert settle(engine, thread)["status"] == "limit"
    path = engine.store.data_path(engine.thread(thread).summary.hash, thread)
    archive.compress(path)
    act(engine, at_window(window(RESTORED), "testbed.store_actions"), "unpack", thread)
    assert sorted(one.name for one in path.parent.glob(f"{thread}.data*")) == [
        path.name,
        f"{path.name}.zst",
    ]
    engine.resume(thread, options=RunOptions(max_steps=10))
    finish(engine, thread)
    archive.compress(path)
    assert engine.thread(thread).summary.status == "completed"


def test_who_cuts_an_archived_tail_dies_after_unpacking(engine: Engine) -> None:
    """An archived thread with a torn tail reads as before, from the plain file; the next `verify`
    cuts the tail.
    """
    bundle = granted(engine.store, COUNT)
    script = (
        script_of(bundle, params={"n": 2})
        .done(1)
        .done(2)
        .end("completed", result={"success": True, "message": "", "data": None})
    )
    placed = place_script(engine.store, bundle, script)
    placed.path.write_bytes(script.data + b'{"seq":9,"inte')
    archive.compress(placed.path)
    act(engine, at_window(window(UNPACKED), "testbed.store_actions"), "verify", placed.thread)
    assert placed.path.read_bytes() == script.data + b'{"seq":9,"inte'
    assert [one.thread_id for one in engine.threads()] == [placed.thread]
    kept = engine.verify(placed.thread).kept_aside
    assert kept is not None
    assert kept.read_bytes() == b'{"seq":9,"inte'
    assert placed.path.read_bytes() == script.data


def test_who_removes_a_child_dies_before_the_journal_goes(engine: Engine) -> None:
    """The child is still a thread, whatever its marker says; removing it again takes the
    journal.
    """
    granted(engine.store, COUNT)
    granted(engine.store, CALLER)
    parent = engine.run("caller", prompt="")
    finish(engine, parent)
    [child] = [one.thread_id for one in engine.threads() if one.name == "count"]
    path = engine.store.locate_thread(child)[2]
    act(engine, at_window(window(MARKED_REMOVED), "testbed.store_actions"), "remove", child)
    assert path.with_name(f"{child}.removed").exists()
    assert engine.thread(child).summary.status == "completed"
    engine.remove_thread(child)
    assert [one.thread_id for one in engine.threads()] == [parent]


def test_importing_dies_before_the_journal_is_there(engine: Engine, tmp_path: Path) -> None:
    """The interrupted import lists no thread, and the same file is imported at the next try."""
    granted(engine.store, COUNT)
    thread = engine.run("count", prompt="", params={"n": 1})
    finish(engine, thread)
    exported = tmp_path / "thread.tar.zst"
    export_thread(engine, thread, exported)
    engine.remove_thread(thread)
    act(engine, at_window(window(ORIGIN_ALONE), "testbed.store_actions"), "import", str(exported))
    assert engine.threads() == []
    assert import_thread(engine, exported, now_ms=0) == thread
    assert [one.imported for one in engine.threads()] == [True]


def test_a_worker_that_met_a_bug_dies_while_it_makes_room(engine: Engine) -> None:
    """The next request starts another worker, and the threads of the dead one are interrupted and
    go on.
    """
    failing = place(
        engine.store, PLANNED, params={"plan": [{"null": {"fail": "bug"}}, {"null": {"value": 2}}]}
    )
    python = [
        *at_window(window(MAKING_ROOM), "testbed.patched"),
        "bug-in-null",
        "uncaged_engine.worker",
    ]
    with worker(engine.store, failing.bundle.hash, python=python) as process:
        drive(engine.store, failing)
        assert process.wait(timeout=60) == -9
    assert engine.thread(failing.thread).summary.status == "interrupted"
    engine.resume(failing.thread)
    assert finish(engine, failing.thread)["data"] == [
        {"caught": {"kind": "null", "message": "bug"}},
        2,
    ]


def test_adding_dies_again_at_the_same_place(engine: Engine, tmp_path: Path) -> None:
    """The second `add` of a bundle whose file has its name, which may not be on disk yet, first
    makes the name durable.
    """
    file = tmp_path / "count.py"
    file.write_bytes(COUNT)
    engine.store.bundle_path(bundle_hash(COUNT)).write_bytes(COUNT)
    assert (
        act(engine, at_window(window(NAMED), "testbed.store_actions"), "add", "count", str(file))
        == ""
    )
    assert engine.registry.read().flows == {}
    assert engine.add("count", COUNT, accept=lambda _widened: True).changed
    finish(engine, engine.run("count", prompt="", params={"n": 1}))


def test_adding_dies_before_the_index_of_the_registry_is_written(
    engine: Engine, tmp_path: Path
) -> None:
    """A flow whose entry is in the registry's file is found by the next reader, though the index
    beside it does not have it.
    """
    granted(engine.store, CALLER)
    engine.registry.read()
    file = tmp_path / "count.py"
    file.write_bytes(COUNT)
    assert (
        act(
            engine,
            at_window(window(INDEX_BEHIND), "testbed.store_actions"),
            "add",
            "count",
            str(file),
        )
        == ""
    )
    assert engine.registry.resolve("count") == ("count", bundle_hash(COUNT))
    assert "count" in engine.registry.read().flows


PARENT = source(
    "parent",
    """
    child = yield {"flow": {"name": "marked", "prompt": "from above"}}
    return {"success": child["success"], "message": child["message"]}
""",
    policy={"flow": {"names": ["marked"]}},
)


def test_the_worker_dies_after_its_thread_started_another(engine: Engine) -> None:
    """Asked again, it finds the same child: there is one, it ran once, and its result is the
    parent's.
    """
    granted(engine.store, MARKED)
    parent = place(engine.store, PARENT)
    suffer(engine, parent, window(CHILD))
    assert len(engine.threads("marked")) == 1
    engine.resume(parent.thread)
    assert finish(engine, parent.thread)["message"] == "5 answers"
    [child] = engine.threads("marked")
    assert finish(engine, child.thread_id) == RESULT
    assert marks(engine, child.thread_id) == [1, 2, 3, 4, 5]
    assert [record for record in records_of(parent.path.read_bytes()) if "because" in record]


CODER = source(
    "coder",
    """
    first = yield {"role": {"name": "coder"}}
    second = yield {"role": {"name": "coder"}}
    return {"success": True, "message": second["content"]}
""",
    kind="workflow",
    roles={
        "coder": {
            "description": "The coder.",
            "systemPrompt": "You code.",
            "extractPrompt": "Say how it went.",
            "schema": {
                "type": "object",
                "properties": {"status": {"enum": ["done"]}},
                "required": ["status"],
            },
        }
    },
    policy={"role": {"workspace": "write"}},
)
AGENT = 'echo line >> add.py; wc -l < add.py; printf \'```json\\n{"status": "done"}\\n```\\n\''


def test_the_worker_dies_after_a_snapshot_that_no_line_names(
    engine: Engine, tmp_path: Path
) -> None:
    """The second try starts from what the last finished step left: the work of the first try is not
    in it twice.
    """
    repository = make_repository(tmp_path / "repository", {"add.py": "one\n"})
    engine.store.config_path.write_text(
        yaml.safe_dump(
            {"agent": "shell", "agents": {"shell": {"use": "command", "argv": ["sh", "-c", AGENT]}}}
        )
    )
    bundle = granted(engine.store, CODER)
    with worker(
        engine.store,
        bundle.hash,
        python=at_window(window(SNAPPED), "uncaged_engine.worker", count=2),
    ):
        thread = engine.run("coder", prompt="Mend it.", options=RunOptions(workspace=repository))
        status = settle(engine, thread)
    assert (status["status"], status["steps"]) == ("interrupted", 1)
    engine.resume(thread)
    assert finish(engine, thread)["message"] == "3"
    steps = [record for record in engine.thread(thread).records if "role" in record]
    assert [git(repository, "show", f"{step['snapshot']}:add.py") for step in steps] == [
        "one\nline\n",
        "one\nline\nline\n",
    ]
    assert engine.verify(thread).ok


@pytest.mark.parametrize("half_way", [False, True], ids=["before", "half-way"])
def test_the_worker_dies_before_an_unused_worktree_is_removed(
    engine: Engine, tmp_path: Path, half_way: bool
) -> None:
    """The thread has ended as it should, and `prune` removes the worktree and the branch."""
    repository = make_repository(tmp_path / "repository", {"add.py": "one\n"})
    idle = ["sh", "-c", AGENT.partition("; ")[2]]
    engine.store.config_path.write_text(
        yaml.safe_dump({"agent": "shell", "agents": {"shell": {"use": "command", "argv": idle}}})
    )
    bundle = granted(engine.store, CODER.replace(b'"success": True', b'"success": False'))
    at = window(UNUSED)
    if half_way:  # the worktree is gone, its branch is not
        at = code_at(at.path.with_name("worktree.py"), '"branch", "--delete", "--force"')
    with worker(
        engine.store, bundle.hash, python=at_window(at, "uncaged_engine.worker")
    ) as process:
        thread = engine.run("coder", prompt="Mend it.", options=RunOptions(workspace=repository))
        assert process.wait(timeout=60) == -9
    assert settle(engine, thread)["status"] == "completed"
    assert len(git(repository, "worktree", "list").splitlines()) == (1 if half_way else 2)
    assert len(git(repository, "branch", "--list").splitlines()) == 2
    assert prune(engine, older_than_ms=0).threads == (thread,)
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert len(git(repository, "branch", "--list").splitlines()) == 1


LENDING = """
import sys
from pathlib import Path
from uncaged_engine.sandbox.scratch import scratch_user
from uncaged_engine.sandbox.ownership import temporary_owner

place, home = map(Path, sys.argv[1:])
found = place.stat()
with temporary_owner({place: (found.st_dev, found.st_ino)}, scratch_user(home), home / "lent"):
    pass
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes owners")
def test_the_worker_dies_while_a_directory_is_lent(tmp_path: Path) -> None:
    """A directory of a dead worker's script gets its owner back at the next start, with its groups,
    and a script can own it again before that.
    """
    shared, home = tmp_path / "shared", tmp_path / "home"
    write(shared, {"a.txt": "1", "below/b.txt": "2"})
    os.chown(shared / "a.txt", 0, 7)
    home.mkdir()
    (tmp_path / "lending_out.py").write_text(LENDING)
    words = [sys.executable, *at_window(window(OWNED), "lending_out"), str(shared), str(home)]
    variables = {**environment(), "PYTHONPATH": f"{environment()['PYTHONPATH']}:{tmp_path}"}
    for again in (False, True):
        assert subprocess.run(words, env=variables, check=False, timeout=60).returncode == -9
        owners = {path.stat().st_uid for path in (shared, *shared.rglob("*"))}
        assert len(owners) == 1
        assert owners != {0}
        if again:
            restore_owners(home / "lent")
        else:
            user = user_for(GrantedPaths(read=(), write=(shared,)), home)
            assert {user.uid} == owners
            with temporary_owner(objects_at(shared), user, home / "lent"):
                assert shared.stat().st_uid == user.uid
        assert {path.stat().st_uid for path in (shared, *shared.rglob("*"))} == {0}
        assert (shared / "a.txt").stat().st_gid == 7
        assert list((home / "lent").glob("*.json")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes owners")
def test_the_next_worker_gives_back_what_a_dead_one_lent(engine: Engine, tmp_path: Path) -> None:
    """Any worker of the store restores the owner of a directory, whatever flow it runs."""
    shared = tmp_path / "shared"
    write(shared, {"a.txt": "1"})
    (tmp_path / "lending_out.py").write_text(LENDING)
    words = [
        sys.executable,
        *at_window(window(OWNED), "lending_out"),
        str(shared),
        str(engine.store.root),
    ]
    variables = {**environment(), "PYTHONPATH": f"{environment()['PYTHONPATH']}:{tmp_path}"}
    assert subprocess.run(words, env=variables, check=False, timeout=60).returncode == -9
    assert (shared / "a.txt").stat().st_uid != 0
    granted(engine.store, COUNT)
    finish(engine, engine.run("count", prompt="", params={"n": 1}))
    assert {path.stat().st_uid for path in (shared, shared / "a.txt")} == {0}


def test_linking_dies_half_way(tmp_path: Path) -> None:
    """The next call starts the directory anew and leaves nothing half-made behind."""
    repository, tree = tmp_path / "repository", tmp_path / "tree"
    write(repository, {"node_modules/a/x.js": "1", "node_modules/b.js": "2"})
    tree.mkdir()
    code = "import sys; from pathlib import Path; from uncaged_agents.workspace.links import make_links; "
    code += "make_links(['node_modules'], Path(sys.argv[1]), Path(sys.argv[2]))"
    script = tmp_path / "linking.py"
    script.write_text(code)
    renaming = window(LINKED)
    late = code_at(renaming.path, "half.rename(target)")
    for at in (renaming, late):
        words = [sys.executable, *at_window(at, "linking"), str(repository), str(tree)]
        variables = {**environment(), "PYTHONPATH": f"{environment()['PYTHONPATH']}:{tmp_path}"}
        assert subprocess.run(words, env=variables, check=False, timeout=60).returncode == -9
        assert not (tree / "node_modules").exists()
    subprocess.run(
        [sys.executable, str(script), str(repository), str(tree)], check=True, timeout=60
    )
    assert [one.name for one in tree.iterdir()] == ["node_modules"]
    assert (tree / "node_modules" / "a" / "x.js").read_text() == "1"


def test_a_trial_dies_before_its_directory_is_named(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is empty, and the next trial removes what the store has of the trial."""
    granted(engine.store, COUNT)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    act(engine, at_window(window(UNNAMED_SCRATCH), "testbed.store_actions"), "trial", "count")
    [left] = tmp_path.glob("uncaged-trial-*")
    assert list(left.iterdir()) == []
    trials = engine.store.work / ".trials"
    assert len(list(trials.iterdir())) == 1
    assert engine.trial(engine.bundle("count")).ending == "completed"
    assert list(trials.iterdir()) == []


def test_a_fix_dies_before_its_thread_is_started(engine: Engine, tmp_path: Path) -> None:
    """The next fix starts with a repository of its own, and removes the old one after a week."""
    recipe = {"name": "broken", "description": "Fails.", "script": BROKEN, "policy": {}}
    granted(engine.store, build_flow(parse_recipe(recipe)).source)
    add_shipped_flows(engine.store, engine.registry, 0)
    thread = engine.run("broken", prompt="")
    assert finish(engine, thread)["success"] is False
    act(engine, at_window(window(UNUSED_REPOSITORY), "testbed.store_actions"), "fix", thread)
    [left] = (engine.store.root / "fixing").iterdir()
    threads = len(engine.threads())
    again = partial(
        start_fix,
        engine,
        thread,
        agents={},
        agent_settings={},
        directory=tmp_path,
        environment=dict(os.environ),
    )
    started = again(now_ms=WEEK_MS)
    assert len(engine.threads()) == threads + 1
    assert left.exists()
    later = again(now_ms=WEEK_MS + 1)
    assert not left.exists()
    for one in (started, later):
        assert finish(engine, one.thread)["success"] is False
        remove_directory(one)


BROKEN = "async def execute(api, params):\n    return 1 // 0\n"
