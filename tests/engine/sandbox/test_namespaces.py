"""What to do where user namespaces are forbidden: settings in a directory of their own, and a real
limit in a namespace of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from uncaged_engine.sandbox.installed import SYSTEM, Program
from uncaged_engine.sandbox.mechanism import Unusable, try_bubblewrap
from uncaged_engine.sandbox.namespaces import advice

BWRAP = Path("/usr/bin/bwrap")
LIMITED = """
from pathlib import Path
Path("/proc/sys/user/max_user_namespaces").write_text("0")
from uncaged_engine.sandbox.mechanism import choose
print(choose("auto").name)
choose("bubblewrap")
"""


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
