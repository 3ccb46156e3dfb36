"""A process that takes a thread out of the archive stalls at each named window while a second
process uses the same thread.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testbed.bundles import MARKED, Placed, granted, place_script, script_of
from testbed.foreground import at_window, environment, stop
from testbed.steering import finish, marks
from testbed.windows import Window, place, window
from uncaged_bundles.errors import RefusedError, UncagedError
from uncaged_engine.api import Engine
from uncaged_engine.journal import archive
from uncaged_engine.threads import housekeeping, removal

pytestmark = pytest.mark.slow

LOCKED = place(Path(archive.__file__), "data = _unpacked(")
WRITTEN = window("only the archive has the journal's name, a temporary file has its bytes")
RESTORED = window("both are there, and readers take the plain one")
PLAIN = place(Path(archive.__file__), "return target  # plain")
RESULT = {"success": True, "message": "3 answers", "data": [1, 2, 3]}


@pytest.fixture
def packed(engine: Engine) -> Placed:
    """A killed thread of three effects, one of them performed, in the archive."""
    bundle = granted(engine.store, MARKED)
    effect = {"null": {"value": 1, "mark": True, "rule": "repeat"}}
    script = script_of(bundle, params={"n": 3}).done(1, effect, outcome=1).end("killed")
    placed = place_script(engine.store, bundle, script)
    archive.compress(placed.path)
    return placed


@contextmanager
def stalled(engine: Engine, placed: Placed, at: Window) -> Iterator[subprocess.Popen[bytes]]:
    """A process that takes the thread out of the archive and stalls in a window until it is fed a
    line.
    """
    command = [
        sys.executable,
        *at_window(at, "testbed.store_actions", deed="hold"),
        str(engine.store.root),
        "unpack",
        placed.thread,
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            stop(process)


@pytest.mark.parametrize("at", [LOCKED, WRITTEN, RESTORED, PLAIN], ids=lambda at: at.text)
def test_a_stalled_resume_never_deletes_a_finished_journal(
    engine: Engine, packed: Placed, at: Window
) -> None:
    """A second process resumes, finishes and archives the thread, or is refused; the stalled one
    then removes nothing of that.
    """
    with stalled(engine, packed, at) as process:
        try:
            engine.resume(packed.thread)
            assert finish(engine, packed.thread) == RESULT
            housekeeping.archive_threads(engine, [packed.thread])
            finished = True
        except UncagedError:  # refused here, or by the worker that found the journal locked
            finished = False
        process.communicate(b"\n", timeout=60)
    if not finished:
        engine.resume(packed.thread)
        assert finish(engine, packed.thread) == RESULT
    assert finish(engine, packed.thread) == RESULT, "what was finished is still there"
    assert marks(engine, packed.thread) == [2, 3]
    assert engine.verify(packed.thread).ok


@pytest.mark.parametrize("at", [LOCKED, WRITTEN, RESTORED], ids=lambda at: at.text)
def test_a_thread_is_not_removed_or_archived_while_another_process_unpacks_it(
    engine: Engine, packed: Placed, at: Window
) -> None:
    """The process that unpacks holds the locks of both files until only one of them is left."""
    with stalled(engine, packed, at) as process:
        bundle, thread, path = engine.store.locate_thread(packed.thread)
        with pytest.raises(RefusedError):
            removal.remove(engine.store, bundle, thread, path)
        if not archive.is_archived(path):
            with pytest.raises(RefusedError):
                housekeeping.archive_threads(engine, [thread])
        process.communicate(b"\n", timeout=60)
        assert process.returncode == 0
    assert engine.thread(packed.thread).summary.status == "killed"
    assert not packed.path.with_name(f"{packed.path.name}.zst").exists()


def test_an_old_archive_is_never_put_over_a_newer_journal(engine: Engine, packed: Placed) -> None:
    """A crash left both files, and the plain one went on since: a caller that still holds the
    archive's name is refused.
    """
    _, thread, path = engine.store.locate_thread(packed.thread)
    old = path.read_bytes()
    archive.restore(path)
    path.write_bytes(old)  # the crash: restored, the archive not yet unlinked
    engine.resume(thread)
    assert finish(engine, thread) == RESULT
    with pytest.raises(RefusedError, match="look at it again"):
        archive.restore(path)
    assert finish(engine, thread) == RESULT


def test_a_crash_while_a_thread_is_removed_does_not_bring_back_its_old_archive(
    engine: Engine, packed: Placed
) -> None:
    """The plain journal is the last file to go, or an outdated archive beside it would become the
    thread.
    """
    bundle, thread, path = engine.store.locate_thread(packed.thread)
    old = path.read_bytes()
    archive.restore(path)
    path.write_bytes(old)
    gone: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        unlink = Path.unlink

        def noted(self: Path, missing_ok: bool = False) -> None:
            gone.append(self.name)
            unlink(self, missing_ok=missing_ok)

        patch.setattr(Path, "unlink", noted)
        removal.remove(engine.store, bundle, thread, packed.path)
    ours = [name for name in gone if name.startswith(thread) and ".data." in name]
    assert ours == [path.name, packed.path.name]
