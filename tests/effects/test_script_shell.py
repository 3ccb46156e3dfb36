"""The programs around a script's own: ``/bin``, ``/sbin`` and the shell that ``system()`` starts,
under both mechanisms.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.scripting import Perform, told

pytestmark = pytest.mark.slow


def test_programs_lie_where_the_distribution_has_them(perform: Perform) -> None:
    """The places ``/bin`` and ``/sbin`` lead where they lead on the machine, and a declared program
    is there by either name.
    """
    found = told(
        perform(
            "readlink /bin /sbin; /bin/cat /dev/null && echo started",
            {"executables": ["readlink", "cat"]},
        )
    )
    links = [str(Path(name).readlink()) for name in ("/bin", "/sbin") if Path(name).is_symlink()]
    assert found["stdout"].splitlines() == [*links, "started"], found


@pytest.mark.parametrize(
    "body",
    [
        'mkdir "$TMPDIR/d"; echo hello > "$TMPDIR/d/f"; cd "$TMPDIR"; tar czf d.tgz d; tar xzOf d.tgz d/f',
        "perl -e 'exit system(q(echo hello | cat && true)) >> 8'",
        "awk 'BEGIN { while ((\"echo hello\" | getline line) > 0) print line }'",
    ],
    ids=["tar czf", "system", "popen"],
)
def test_the_shell_of_system_is_there(perform: Perform, body: str) -> None:
    """The shell that ``tar -z``, ``system()`` and ``popen()`` start is the declared one, with the
    results that they have outside.
    """
    found = told(perform(body, {"executables": ["awk", "cat", "gzip", "mkdir", "perl", "tar"]}))
    assert (found["success"], found["stdout"], "refused" in found) == (True, "hello\n", False), (
        found
    )


def test_a_helper_with_a_shebang_starts(perform: Perform, place: Path) -> None:
    """A declared helper that begins with ``#!/bin/sh`` runs."""
    helper = place / "data" / "helper"
    helper.write_text("#!/bin/sh\necho helped\n")
    helper.chmod(0o755)
    found = told(perform("helper", {"executables": [str(helper)]}))
    assert (found["success"], found["stdout"]) == (True, "helped\n"), found


def test_bin_sh_is_the_declared_shell(perform: Perform, mechanism: str) -> None:
    """The name ``/bin/sh`` means the script's own shell; where nothing can be mounted, it is the
    machine's.
    """
    found = told(perform("/bin/sh -c 'echo \"${BASH_VERSION:+bash}\"'"))
    assert (found["success"], found["stdout"]) == (
        True,
        "bash\n" if mechanism == "bubblewrap" else found["stdout"],
    ), found


@pytest.mark.parametrize("directory", ["/usr", "/usr/bin"])
def test_a_granted_directory_keeps_its_own_shell(perform: Perform, directory: str) -> None:
    """A script that may read the directory of ``/bin/sh`` starts, and ``system()`` finds the
    machine's shell there.
    """
    body = f"perl -e 'exit system(q(ls {directory} | wc -l >/dev/null && echo hello)) >> 8'"
    found = told(perform(body, {"read": [directory], "executables": ["ls", "perl", "wc"]}))
    assert (found["success"], found["stdout"]) == (True, "hello\n"), found
