"""Release of a journal's lock while a child process is being started."""

from __future__ import annotations

import os
from pathlib import Path

from uncaged_engine.journal import lock


def test_a_released_lock_is_free_though_a_child_has_its_file(tmp_path: Path) -> None:
    """A forked process has a duplicate of the descriptor until it runs its program: after a close
    alone, the lock would be held.
    """
    path = tmp_path / "journal"
    path.touch()
    for end, is_live in ((os.close, True), (lock.release, False)):
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        assert lock.take(handle)
        inherited = os.dup(handle)
        end(handle)
        assert lock.is_live(path) is is_live
        os.close(inherited)
