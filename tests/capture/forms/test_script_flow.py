"""Script flows of threads that workers of a shared store drove."""

from __future__ import annotations

import pytest
from testbed.bundles import thread_id
from testbed.traced_calls import ran, trace_of, traced, wrote
from uncaged_capture.calls import Command, FileWrite
from uncaged_capture.forms.script_flow import worktree_in

TREE = f"/home/w/work/.trials/{thread_id(1)}/work/{thread_id(2)}"


@pytest.mark.parametrize("end", ["/app.log", " && ls", "/lib'", ""])
def test_the_worktree_of_a_worker_is_found_in_the_calls(end: str) -> None:
    """By the thread's id at the end of a path, as a word or a part of one."""
    trace = trace_of(ran("ls"), ran(f"cd '{TREE}{end}"))
    assert worktree_in(trace, thread_id(2)) == TREE
    assert worktree_in(trace, thread_id(3)) == ""
    assert worktree_in(trace_of(ran(f"cat {TREE}-2/a")), thread_id(2)) == ""


def test_paths_in_it_become_relative() -> None:
    """So that they mean the files of the proof, and of a run elsewhere."""
    calls = (ran(f"cd {TREE} && ls"), wrote(f"{TREE}/a.txt", "a"))
    command, written = (one.action for one in traced(*calls, top=TREE))
    assert isinstance(command, Command) and command.text == "cd . && ls"
    assert isinstance(written, FileWrite) and written.path == "a.txt"
