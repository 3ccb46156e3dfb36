"""A POST that a server has seen is never sent again without a question, whatever cut it off: a
kill, a limit, a crash, a lack.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from testbed.bundles import PLANNED, granted, source
from testbed.journals import NOW_MS
from testbed.processes import end_workers
from testbed.roles import EffectHarness
from testbed.steering import finish, intent_of, settle, wait_for, written
from testbed.webserver import Reply, Seen, WebServer, data, serving
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import HOME_VARIABLE
from uncaged_cli import main
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.door.outcomes import Answer
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.services.children import result_of
from uncaged_engine.threads.transfer import export_thread, import_thread

pytestmark = pytest.mark.slow

BODY = PLANNED[PLANNED.index(b"def run") :].partition(b"\n")[2].decode()
LEADING = """
    done = yield {"flow": {"name": "post", "params": input["params"]}}
    return {"message": str(done["success"])}
"""


class Counting:
    """A server that leaves the first request to each of some paths without an answer, and counts
    them all.
    """

    def __init__(self, *hanging: str) -> None:
        self.hanging = set(hanging)
        self.reached = {path: threading.Event() for path in hanging}
        self.web: WebServer

    def __call__(self, seen: Seen) -> Reply:
        if seen.path in self.hanging:
            self.hanging.remove(seen.path)
            self.reached[seen.path].set()
            self.web.ended.wait()
        return data(seen.path)

    def count(self, path: str) -> int:
        return sum(seen.path == path for seen in self.web.seen)

    def ask(self, method: str, path: str) -> dict[str, object]:
        return {"http": {"method": method, "url": f"{self.web.url}{path}", "timeout_s": 600}}

    def await_all(self) -> None:
        assert all(event.wait(60) for event in self.reached.values())


@contextmanager
def counting(*hanging: str) -> Iterator[Counting]:
    script = Counting(*hanging)
    with serving(script) as script.web:
        yield script


def post(
    engine: Engine,
    server: Counting,
    *plan: object,
    name: str = "post",
    max_seconds: float | None = None,
) -> ThreadId:
    reach = {"hosts": [server.web.host], "private": True, "secrets": {"KEY": [server.web.host]}}
    granted(engine.store, source("post", BODY, policy={"http": reach, "all": {}, "null": {}}))
    granted(engine.store, source("lead", LEADING, policy={"flow": {}}))
    return engine.run(
        name, prompt="", params={"plan": list(plan)}, options=RunOptions(max_seconds=max_seconds)
    )


def by_kill(engine: Engine, thread: ThreadId) -> None:
    engine.kill(thread)


def by_crash(engine: Engine, thread: ThreadId) -> None:
    end_workers(engine.store.root)
    assert engine.thread(thread).summary.status == "unknown"
    engine.kill(thread)


def by_time(engine: Engine, thread: ThreadId) -> None:
    """Nothing to do."""


WAYS: dict[str, tuple[Callable[[Engine, ThreadId], None], float | None, str]] = {
    "a kill in flight": (by_kill, None, "killed"),
    "a limit of time that is raised": (by_time, 8.0, "limit"),
    "a crash of the worker and a kill of the unknown thread": (by_crash, None, "killed"),
}


@pytest.mark.parametrize("word", ["redo", "skip"])
@pytest.mark.parametrize("way", WAYS)
def test_a_begun_post_is_not_sent_again_without_a_question(
    engine: Engine, way: str, word: str
) -> None:
    """A server has the POST; the next resume needs redo or skip, names the effect, and sends
    nothing until it has one of them.
    """
    cut, seconds, status = WAYS[way]
    more = RunOptions(max_seconds=600) if seconds else None
    with counting("/pay") as server:
        thread = post(
            engine,
            server,
            server.ask("POST", "/pay"),
            server.ask("POST", "/next"),
            max_seconds=seconds,
        )
        server.await_all()
        cut(engine, thread)
        assert settle(engine, thread)["status"] == status
        [void] = [record for record in written(engine, thread) if "void" in record]
        assert void["begun"] is True
        summary = engine.thread(thread).summary
        assert summary.undecided == (f"step 1 (http POST {server.web.url}/pay)",)
        assert [one for one in engine.threads() if one.thread_id == thread] == [summary]
        for _ in range(2):
            with pytest.raises(
                RefusedError,
                match=rf"is {status}: step 1 \(http POST .*/pay\) was begun .*--redo.*--skip",
            ):
                engine.resume(thread, options=more)
        assert server.count("/pay") == 1
        engine.resume(thread, options=more, redo=word == "redo", skip=word == "skip")
        finish(engine, thread)
        assert server.count("/pay") == (2 if word == "redo" else 1)
        assert server.count("/next") == 1
        assert engine.verify(thread).ok


def test_a_begun_get_is_sent_again_without_a_question(engine: Engine) -> None:
    """An effect that may be repeated is repeated: the question is for the rule `ask` alone."""
    with counting("/look") as server:
        thread = post(engine, server, server.ask("GET", "/look"))
        server.await_all()
        engine.kill(thread)
        settle(engine, thread)
        assert engine.thread(thread).summary.undecided == ()
        engine.resume(thread)
        finish(engine, thread)
        assert server.count("/look") == 2


def test_a_redo_that_is_cut_off_again_asks_again(engine: Engine) -> None:
    """A decision is for one try: a second kill in flight is a second question."""
    with counting("/pay") as server:
        thread = post(engine, server, server.ask("POST", "/pay"))
        server.await_all()
        engine.kill(thread)
        settle(engine, thread)
        server.hanging.add("/pay")
        server.reached["/pay"].clear()
        engine.resume(thread, redo=True)
        server.await_all()
        engine.kill(thread)
        settle(engine, thread)
        with pytest.raises(RefusedError, match="--redo"):
            engine.resume(thread)
        assert server.count("/pay") == 2


def test_a_lack_before_the_post_was_sent_needs_no_decision(engine: Engine) -> None:
    """A missing secret is noticed before anything is sent: the void says begun: false, and a plain
    resume sends the POST once.
    """
    with counting() as server:
        plan = {
            "http": {
                "method": "POST",
                "url": f"{server.web.url}/pay",
                "headers": {"X-Key": "secret:KEY"},
            }
        }
        engine.store.config_path.write_text("secrets: {KEY: {env: A_KEY_FOR_TESTS}}\n")
        thread = post(engine, server, plan)
        assert settle(engine, thread)["status"] == "paused"
        [void] = [record for record in written(engine, thread) if "void" in record]
        assert (void["void"], void["begun"]) == ("environment", False)
        engine.resume(
            thread, options=RunOptions(environment={"A_KEY_FOR_TESTS": "a secret of sixteen"})
        )
        finish(engine, thread)
        assert server.count("/pay") == 1


def test_a_lack_in_the_middle_of_an_effect_needs_a_decision(engine: Engine) -> None:
    """An environment void of a begun effect of rule `ask` leaves the thread paused, and resume
    asks.
    """
    with counting() as server:
        thread = post(engine, server, {"null": {"value": 1, "lack": "a part of it", "rule": "ask"}})
        assert settle(engine, thread) == {
            "status": "paused",
            "message": "a part of it; step 1 (null) was begun and may have been performed",
            "steps": 0,
        }
        with pytest.raises(RefusedError, match=r"is paused: step 1 \(null\) was begun .*--redo"):
            engine.resume(thread)
        engine.resume(thread, redo=True)
        assert finish(engine, thread)["data"] == [1]


def together(*effects: Mapping[str, object], **more: object) -> dict[str, object]:
    return {"all": {"effects": list(effects), **more}}


@pytest.mark.parametrize("cut", ["kill", "crash"])
def test_the_parts_of_an_all_count_one_by_one(engine: Engine, cut: str) -> None:
    """A finished POST, one in flight, a GET in flight, one POST not begun: a kill asks about one, a
    crash about all without an outcome.
    """
    with counting("/second", "/look") as server:
        parts = [
            server.ask("POST", "/first"),
            server.ask("POST", "/second"),
            server.ask("GET", "/look"),
            server.ask("POST", "/last"),
        ]
        thread = post(engine, server, together(*parts, limit=2))
        server.await_all()
        (by_kill if cut == "kill" else by_crash)(engine, thread)
        settle(engine, thread)
        begun = [
            f"step 1, part 1 (http POST {server.web.url}/second)",
            f"step 1, part 3 (http POST {server.web.url}/last)",
        ]
        assert engine.thread(thread).summary.undecided == tuple(
            begun if cut == "crash" else begun[:1]
        )
        [void] = [record for record in written(engine, thread) if "void" in record]
        assert void.get("parts") == ([1, 2] if cut == "kill" else None)
        with pytest.raises(RefusedError, match="part 1"):
            engine.resume(thread)
        engine.resume(thread, redo=True)
        [answers] = finish(engine, thread)["data"]
        assert [answer["outcome"]["json"] for answer in answers] == [
            "/first",
            "/second",
            "/look",
            "/last",
        ]
        assert [server.count(path) for path in ("/first", "/second", "/look", "/last")] == [
            1,
            2,
            2,
            1,
        ]
        assert engine.verify(thread).ok


def test_an_all_whose_unfinished_parts_may_be_repeated_needs_no_decision(engine: Engine) -> None:
    """A POST with an outcome beside a GET without one: nothing is in doubt, also after a crash."""
    with counting("/look") as server:
        thread = post(
            engine,
            server,
            together(server.ask("POST", "/pay"), server.ask("GET", "/look"), limit=1),
        )
        server.await_all()
        end_workers(engine.store.root)
        assert engine.thread(thread).summary.status == "interrupted"
        engine.resume(thread)
        finish(engine, thread)
        assert (server.count("/pay"), server.count("/look")) == (1, 2)


def test_a_skipped_all_leaves_nothing_to_the_next_one(engine: Engine) -> None:
    """Results of a skipped `all` are its own: the next `all` performs each of its effects, and
    verify agrees.
    """
    with counting("/b") as server:
        first = together(server.ask("POST", "/a"), server.ask("POST", "/b"), limit=1)
        second = together(server.ask("POST", "/c"), server.ask("POST", "/d"), limit=1)
        thread = post(engine, server, first, second)
        server.await_all()
        end_workers(engine.store.root)
        engine.resume(thread, skip=True)
        skipped, answers = finish(engine, thread)["data"]
        assert skipped["caught"]["kind"] == "skipped"
        assert [answer["outcome"]["json"] for answer in answers] == ["/c", "/d"]
        assert [server.count(path) for path in ("/a", "/b", "/c", "/d")] == [1, 1, 1, 1]
        assert engine.verify(thread).ok


@pytest.mark.parametrize("way", ["killed", "crashed"])
def test_a_child_with_a_begun_post_waits_for_its_own_decision(engine: Engine, way: str) -> None:
    """A parent that is cut off and resumed does not send its child's POST again: it says what the
    child needs, then both go on.
    """
    with counting("/pay") as server:
        thread = post(engine, server, server.ask("POST", "/pay"), name="lead")
        server.await_all()
        engine.kill(thread) if way == "killed" else end_workers(engine.store.root)
        assert settle(engine, thread)["status"] == ("killed" if way == "killed" else "interrupted")
        [child] = engine.threads("post")
        assert child.undecided
        engine.resume(thread)
        said = wait_for(
            engine,
            thread,
            lambda event: event.kind == "progress" and "--redo" in str(event.body.get("text")),
        )
        assert child.thread_id in said.body["text"]
        assert server.count("/pay") == 1
        engine.resume(child.thread_id, redo=True)
        assert finish(engine, thread)["message"] == "True"
        assert server.count("/pay") == 2


class Beside(Engine):
    """An engine whose caller is always a moment later than a person who resumes the same thread."""

    def resume(self, text: str, **more: Any) -> ThreadId:
        super().resume(text, **more)
        return super().resume(text, **more)


def test_a_child_that_a_person_resumes_at_the_same_time_is_waited_for(engine: Engine) -> None:
    """A parent that comes too late to resume its child takes the child's result, instead of
    reporting that it failed.
    """
    with counting("/look") as server:
        child = post(engine, server, server.ask("GET", "/look"))
        server.await_all()
        end_workers(engine.store.root)
        assert engine.thread(child).summary.status == "interrupted"
        context = EffectHarness(
            store=engine.store,
            bundle=engine.store.load_bundle(engine.thread(child).summary.hash, KNOWN),
            start={},
            environment={},
        )
        server.hanging.add("/look")
        server.reached["/look"].clear()
        with ThreadPoolExecutor() as aside:
            outcome = aside.submit(result_of, Beside(engine.store), child, context.context(1))
            server.await_all()
            server.web.ended.set()
            assert isinstance(outcome.result(), Answer)
        assert engine.thread(child).summary.success


def test_a_thread_that_was_imported_asks_too(engine: Engine) -> None:
    """The question travels with the journal."""
    with counting("/pay") as server:
        thread = post(engine, server, server.ask("POST", "/pay"))
        server.await_all()
        engine.kill(thread)
        settle(engine, thread)
        parcel = engine.store.root / "thread.tar.zst"
        export_thread(engine, thread, parcel)
        engine.remove_thread(thread)
        assert import_thread(engine, parcel, now_ms=NOW_MS) == thread
        with pytest.raises(RefusedError, match="--redo"):
            engine.resume(thread)


def test_the_commands_name_the_effect_and_both_ways_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`kill`, `threads`, `thread` and `resume` all say which effect may have been performed, and
    print the two commands.
    """
    monkeypatch.setenv(HOME_VARIABLE, str(engine.store.root))
    with counting("/pay") as server:
        thread = post(engine, server, server.ask("POST", "/pay"), max_seconds=600)
        server.await_all()
        wait_for(engine, thread, intent_of(1))
        words = "was begun and may have been performed"
        commands = (
            f"uncaged-workflow resume {thread} --redo",
            f"uncaged-workflow resume {thread} --skip",
        )
        assert main.run(["kill", thread]) == 0
        for arguments in (None, ["thread", thread], ["threads"], ["resume", thread]):
            if arguments is not None:
                assert main.run(arguments) == (1 if arguments[0] == "resume" else 0)
            shown = capsys.readouterr()
            assert words in " ".join((shown.out + shown.err).split()), arguments
            if arguments in (None, ["thread", thread]):
                assert all(command in shown.out + shown.err for command in commands)
        assert main.run(["threads", "--json"]) == 0
        [listed] = json.loads(capsys.readouterr().out)
        assert listed["undecided"] == [f"step 1 (http POST {server.web.url}/pay)"]
        assert server.count("/pay") == 1
