"""The self-test must find open doors: here it runs in an ordinary process, where all of them
are.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from uncaged_engine.sandbox.interpreter import HIDDEN_NAMES, find_interpreter
from uncaged_engine.sandbox.payload import filtered_calls

TRY = """
import os, sys
from uncaged_engine.sandbox import lockdown
from uncaged_engine.sandbox.payload import call_numbers, filtered_calls
machine = os.uname().machine
doors = {"read": ["/etc/passwd", "/nonexistent"], "write": [sys.argv[1]],
         "socket": call_numbers(machine)["socket"], "calls": filtered_calls(machine)}
print("\\n".join(lockdown.remaining_access(doors)))
"""


def test_every_open_door_is_found(tmp_path: Path) -> None:
    """Reading, writing, each kind of socket, each call left to the filter, fork and exec are tried;
    the probe leaves nothing behind.
    """
    place = tmp_path / "probe"
    done = subprocess.run(
        [sys.executable, "-c", TRY, str(place)], capture_output=True, text=True, check=True
    )
    expected = [
        "read /etc/passwd",
        f"write {place}",
        "open an unix socket",
        "open an internet socket",
        "open an netlink socket",
        *filtered_calls(os.uname().machine),
        "fork",
        "exec",
    ]
    assert done.stdout.splitlines() == expected
    assert not place.exists()


def test_the_interpreter_is_the_real_one() -> None:
    """The interpreter behind a virtual environment is found with its own library; no installed
    package comes along.
    """
    found = find_interpreter()
    assert found.executable.is_file()
    assert not found.executable.is_symlink()
    for directory in found.stdlib:
        assert (directory / "os.py").is_file() or directory.name == "lib-dynload"
    everything = [found.executable, *found.stdlib, *found.libraries, *found.files]
    assert all(path.exists() for path in everything)
    assert not [path for path in everything if set(path.parts) & set(HIDDEN_NAMES)]
    assert Path(sys.prefix) == Path(sys.base_prefix) or not [
        path for path in everything if path.is_relative_to(sys.prefix)
    ]
