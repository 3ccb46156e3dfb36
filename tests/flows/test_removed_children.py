"""Children of unfinished threads are kept; a child that is gone all the same is never started again
without a question.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from testbed.bundles import MARKED, PLANNED, Placed, granted, place_script, script_of, thread_id
from testbed.foreground import at_window, environment
from testbed.journals import NOW_MS, Script
from testbed.steering import finish, marks
from testbed.windows import window
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import HOME_VARIABLE, Store
from uncaged_cli import main
from uncaged_engine.api import Cut, Engine
from uncaged_engine.door.children import derived_id
from uncaged_engine.journal import archive
from uncaged_engine.threads import transfer
from uncaged_engine.threads.housekeeping import archive_threads, prune

pytestmark = pytest.mark.slow

WIDE = PLANNED.replace(b"'name': 'planned'", b"'name': 'wide'").replace(
    b"'policy': {'null': {}}", b"'policy': {'null': {}, 'all': {}, 'flow': {}}"
)
FLOW: Mapping[str, object] = {"flow": {"name": "marked", "params": {"n": 2}}}
ALL: Mapping[str, object] = {"all": {"effects": [{"null": {"value": "first"}}, FLOW], "limit": 1}}
MARKER = "the marker is there, and so is the journal, which counts"


def parent_of(
    engine: Engine, effect: Mapping[str, object], *, number: int = 0, **start: object
) -> tuple[Script, Placed]:
    """A thread whose worker died while *effect*, its only one, was open."""
    bundle = granted(engine.store, WIDE)
    granted(engine.store, MARKED)
    script = script_of(bundle, number=number, params={"plan": [effect]}, **start).intent(1, effect)
    return script, place_script(engine.store, bundle, script)


def child_of(
    engine: Engine, parent: ThreadId, *, part: str = "", depth: int = 1, ended: bool = True
) -> Placed:
    """A thread that the parent's first effect started and that has ended."""
    bundle = granted(engine.store, MARKED)
    thread = derived_id(f"{parent}/1{part}", NOW_MS + 1)
    start = {
        "parent": {"threadId": parent, "seq": 1, "depth": depth},
        "params": {"n": 2},
        "name": "marked",
    }
    script = Script.begun(bundle.hash, thread, **start)
    for seq in (1, 2):
        script.done(seq, {"null": {"value": seq, "mark": True, "rule": "repeat"}}, outcome=seq)
    script.end(
        "completed", result={"success": True, "message": "2 answers", "data": [1, 2]}
    ) if ended else script.end("killed")
    return place_script(engine.store, bundle, script)


def end_of(script: Script, placed: Placed, status: str) -> None:
    """Bring the parent into a state in which it can still go on."""
    match status:
        case "paused":
            script.control("pause")
        case "killed":
            script.void(1).end("killed")
        case "limit":
            script.void(1, "limit").end("limit", limit="maxSeconds", value=1, message="1 s")
        case _:
            pass
    placed.path.write_bytes(script.data)


@pytest.mark.parametrize("status", ["interrupted", "paused", "killed", "limit"])
def test_prune_and_rm_keep_children_of_an_unfinished_parent(engine: Engine, status: str) -> None:
    """A child that has ended is kept as long as its parent may go on; the refusal names the parent
    and the next step.
    """
    script, parent = parent_of(engine, FLOW)
    child = child_of(engine, parent.thread)
    end_of(script, parent, status)
    assert engine.thread(parent.thread).summary.status == status
    with pytest.raises(
        RefusedError, match=rf"its parent {parent.thread} \(wide\) is {status} .*; `resume`.* first"
    ):
        engine.remove_thread(child.thread)
    grown = parent.path.read_bytes()
    assert prune(engine, older_than_ms=0, dry_run=True).threads == (
        (parent.thread, child.thread) if status == "killed" else ()
    )
    if status != "killed":  # a killed parent is old enough itself: the family goes together
        assert prune(engine, older_than_ms=0).kept == (child.thread,)
    assert (parent.path.read_bytes(), child.path.exists()) == (grown, True)


def test_a_kept_child_is_found_and_not_run_again(engine: Engine) -> None:
    """The parent goes on after `prune` and takes the child's result; archiving the child changes
    nothing.
    """
    _, parent = parent_of(engine, FLOW)
    child = child_of(engine, parent.thread)
    prune(engine, older_than_ms=0)
    archive_threads(engine, [child.thread])
    engine.resume(parent.thread)
    assert finish(engine, parent.thread)["data"][0]["message"] == "2 answers"
    assert marks(engine, child.thread) == []
    assert len(engine.threads("marked")) == 1


def test_a_parent_that_is_gone_or_finished_keeps_no_child(engine: Engine) -> None:
    """A finished parent and its child can be removed; a grandchild needs its own parent only."""
    script, parent = parent_of(engine, FLOW)
    child = child_of(engine, parent.thread)
    grandchild = child_of(engine, child.thread, depth=2)
    engine.remove_thread(grandchild.thread)
    parent.path.write_bytes(script.step(1).end("completed", result=None).data)
    engine.remove_thread(child.thread)
    engine.remove_thread(parent.thread)
    assert engine.threads() == []


def test_a_family_that_has_ended_goes_as_a_whole(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`prune`, and `thread rm CHILD PARENT` in any order, remove parents before their children."""
    monkeypatch.setenv(HOME_VARIABLE, str(engine.store.root))
    for sweep in (["prune", "--older-than", "0d"], None):
        script, parent = parent_of(engine, FLOW)
        child, other = (
            child_of(engine, parent.thread, ended=False),
            child_of(engine, derived_id(f"{parent.thread}/1", NOW_MS + 1), depth=2),
        )
        end_of(script, parent, "killed")
        assert main.run(sweep or ["thread", "rm", other.thread, child.thread, parent.thread]) == 0
        assert engine.threads() == []


def test_a_fork_of_a_child_is_no_child(engine: Engine) -> None:
    """The parent never looks for the fork's id, so it can be removed, and leaves no marker."""
    _, parent = parent_of(engine, FLOW)
    child = child_of(engine, parent.thread)
    fork = engine.fork(child.thread, cut=Cut(at=1), start=False)
    engine.remove_thread(fork)
    assert not list(engine.store.logs.glob("*/*.removed"))


@pytest.mark.parametrize(("effect", "part"), [(FLOW, ""), (ALL, ".1")])
def test_a_removed_child_makes_its_parents_effect_a_question(
    engine: Engine, tmp_path: Path, effect: Mapping[str, object], part: str
) -> None:
    """A parent that comes back from an export is `unknown`; only `--redo` starts the child
    again.
    """
    _, parent = parent_of(engine, effect)
    child = child_of(engine, parent.thread, part=part)
    transfer.export_thread(engine, parent.thread, tmp_path / "parent.tar.zst")
    engine.remove_thread(parent.thread)
    engine.remove_thread(child.thread)
    assert (
        transfer.import_thread(engine, tmp_path / "parent.tar.zst", now_ms=NOW_MS) == parent.thread
    )
    assert [(one.thread_id, one.status) for one in engine.threads()] == [(parent.thread, "unknown")]
    with pytest.raises(RefusedError, match="--redo"):
        engine.resume(parent.thread)
    engine.resume(parent.thread, redo=True, accept=lambda _: True)
    assert finish(engine, parent.thread)["success"]
    assert marks(engine, child.thread) == [1, 2]


def test_a_removed_child_is_not_run_again_after_a_skip(engine: Engine) -> None:
    """The parent goes on without the child's result."""
    _, parent = parent_of(engine, FLOW)
    child = child_of(engine, parent.thread)
    engine.store.mark_removed(child.bundle.hash, child.thread)
    child.path.unlink()
    engine.resume(parent.thread, skip=True)
    assert finish(engine, parent.thread)["data"][0]["caught"]["kind"] == "skipped"
    assert marks(engine, child.thread) == []


def test_a_child_without_journal_and_marker_never_began(engine: Engine) -> None:
    """The control: without a marker the parent starts it, without a question."""
    _, parent = parent_of(engine, FLOW)
    assert engine.thread(parent.thread).summary.status == "interrupted"
    engine.resume(parent.thread)
    assert finish(engine, parent.thread)["data"][0]["message"] == "2 answers"


def test_an_imported_parent_asks_for_children_that_ran_elsewhere(
    engine: Engine, tmp_path: Path
) -> None:
    """Another store has neither the child's journal nor its marker: `import` leaves the marker."""
    _, parent = parent_of(engine, FLOW)
    child_of(engine, parent.thread)
    transfer.export_thread(engine, parent.thread, tmp_path / "parent.tar.zst")
    other = Engine(Store.open(tmp_path / "other"))
    granted(other.store, WIDE)
    transfer.import_thread(other, tmp_path / "parent.tar.zst", now_ms=NOW_MS)
    assert other.thread(parent.thread).summary.status == "unknown"


def test_a_crash_between_marker_and_unlink_loses_nothing(engine: Engine) -> None:
    """The journal counts as long as it is there; a second removal ends the first."""
    orphan = child_of(engine, thread_id(9))
    command = [
        sys.executable,
        *at_window(window(MARKER), "testbed.store_actions"),
        str(engine.store.root),
        "remove",
        orphan.thread,
    ]
    assert (
        subprocess.run(
            command, env=environment(), check=False, capture_output=True, timeout=60
        ).returncode
        == -9
    )
    assert [one.status for one in engine.threads()] == ["completed"]
    assert engine.store.journal_of(orphan.thread) == orphan.path
    assert not engine.store.was_removed(orphan.thread)
    engine.remove_thread(orphan.thread)
    assert engine.store.was_removed(orphan.thread)
    assert engine.threads() == []
    assert sorted(path.name for path in orphan.path.parent.iterdir()) == [
        f"{orphan.thread}.removed"
    ]


def test_the_marker_is_durable_before_the_journal_goes(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut never leaves a child without journal and without marker."""
    orphan = child_of(engine, thread_id(9))
    seen: list[bool] = []
    unlink = Path.unlink

    def noted(self: Path, missing_ok: bool = False) -> None:
        if self == orphan.path:
            seen.append(self.with_name(f"{orphan.thread}.removed").exists())
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", noted)
    engine.remove_thread(orphan.thread)
    assert seen == [True]


def test_a_marker_in_any_directory_of_logs_counts(engine: Engine) -> None:
    """A flow's name may mean another bundle by the time the parent goes on."""
    child = derived_id(f"{thread_id()}/1", NOW_MS + 1)
    engine.store.mark_removed(BundleHash("0000000000000"), child)
    _, parent = parent_of(engine, FLOW)
    assert engine.thread(parent.thread).summary.status == "unknown"
    assert archive.plain_of(parent.path) == parent.path
