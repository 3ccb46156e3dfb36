"""Denials of each version of Landlock by itself, tried in an ordinary process without a system call
filter.

These denials are the control for the attacks on bundles under older versions: what is open here is
closed there by the filter alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from testbed.cells import LANDLOCK_VERSIONS, mechanism_for, version_of

TRY = """
import json, os, socket, sys
from pathlib import PosixPath
from uncaged_engine.sandbox import landlock, lockdown
from uncaged_engine.sandbox.interpreter import find_interpreter
from uncaged_engine.sandbox.mechanism import Mechanism, landlock_settings
from uncaged_engine.sandbox.payload import call_numbers
mechanism, place = eval(sys.argv[1]), sys.argv[2]
numbers = call_numbers(mechanism.machine)
lockdown.syscall(numbers["prctl"], lockdown.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
landlock.restrict(lockdown.syscall, numbers, landlock_settings(mechanism, find_interpreter()))
actions = {
    "read": lambda: open(place).read(),
    "write": lambda: open(place, "r+"),
    "remove": lambda: os.unlink(place),
    "move": lambda: os.rename(place, place + "2"),
    "truncate": lambda: os.truncate(place, 1),
    "bind": lambda: socket.socket().bind(("127.0.0.1", 0)),
    "signal": lambda: os.kill(os.getppid(), 0),
}
found = []
for name, action in actions.items():
    try:
        action()
    except OSError:
        continue
    found.append(name)
print(json.dumps(found))
"""
LEFT_OPEN = {
    1: ["truncate", "bind", "signal"],
    2: ["truncate", "bind", "signal"],
    3: ["bind", "signal"],
    4: ["signal"],
    5: ["signal"],
}


@pytest.mark.parametrize("name", LANDLOCK_VERSIONS)
def test_each_version_closes_files_and_what_it_knows(name: str, tmp_path: Path) -> None:
    """From version 1 on no file is read, written, removed or moved; truncating, ports and signals
    follow in 3, 4 and 6.
    """
    place = tmp_path / "file"
    place.write_text("four")
    done = subprocess.run(
        [sys.executable, "-c", TRY, repr(mechanism_for(name)), str(place)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == LEFT_OPEN.get(version_of(name), [])
    assert place.read_text() == ("f" if version_of(name) < 3 else "four")
