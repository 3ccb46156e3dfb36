"""Refusals of a script, found by the sandbox: counted if the thing exists on this machine, under
both mechanisms.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from testbed.scripting import Perform, told
from uncaged_engine.sandbox.watch import MOST

pytestmark = pytest.mark.slow

HEREDOC = "cat <<END\ntoday is $(date)\nEND\n"


def unnoticed(found: dict[str, Any]) -> list[str]:
    """The refusals of a script that ended with exit code 0 and would have been a success."""
    assert (found["exitCode"], found["success"]) == (0, False), found
    return list(found["refused"])


def test_a_hidden_program_in_a_heredoc_counts(perform: Perform) -> None:
    """The recipe with ``$(date)`` in a heredoc is no success, and the message has the line that
    makes it right.
    """
    [sentence] = unnoticed(told(perform(HEREDOC, {"executables": ["cat"]})))
    assert sentence == (
        'the command \'date\' is not among the policy\'s executables; declare it in the policy: "script": {"executables": ["cat", "date"]}'
    )
    right = told(perform(HEREDOC, {"executables": ["cat", "date"]}))
    assert (right["success"], "refused" in right) == (True, False)


@pytest.mark.parametrize(
    ("language", "body"),
    [
        ("python", "import os\nos.system('date')\n"),
        ("python", "import os\nprint(len(os.popen('date').read()))\n"),
        ("python", "import subprocess\nsubprocess.run(['/bin/sh', '-c', 'date; true'])\n"),
        ("bash", "command -v date || echo there is no date"),
        ("bash", 'tar czf "$TMPDIR/a.tgz" /dev/null 2>/dev/null; true'),
        ("bash", "find . -maxdepth 0 -exec date ';'; true"),
    ],
)
def test_a_program_started_by_a_program_counts(
    perform: Perform, mechanism: str, language: str, body: str
) -> None:
    """A program that ``system``, ``popen``, ``tar`` or ``find`` would start is found out, whatever
    they do about it.
    """
    found = told(perform(body, {"executables": ["find", "sh", "tar"]}, language=language))
    if "command -v" in body and mechanism == "landlock":
        # names can be seen there, so that the answer is right
        assert found["stdout"].strip().endswith("/date")
        return
    name = "gzip" if "tar" in body else "date"
    assert any(
        sentence.startswith(f"the command '{name}' is not among") for sentence in unnoticed(found)
    ), found


def test_a_missing_shell_counts(perform: Perform) -> None:
    """A program that needs a shell where none is declared names it."""
    sentences = unnoticed(told(perform("import os\nos.system('echo x')\n", language="python")))
    assert any('"executables": ["sh"]' in sentence for sentence in sentences), sentences


@pytest.mark.parametrize(
    "body",
    [
        "cat '{hidden}' 2>/dev/null || echo none",
        "exec 3<'{hidden}' || true; true",
        "cat data/link 2>/dev/null || echo none",
        "cat data/../data2/file.txt || true",
        "ls '{place}/data2' || true",
    ],
)
def test_a_hidden_file_counts(perform: Perform, place: Path, body: str) -> None:
    """An existing file outside the policy is found out by any way that leads to it, with the line
    to declare.
    """
    (place / "data" / "link").symlink_to(place / "data2" / "file.txt")
    policy = {"executables": ["cat", "ls"], "read": [str(place / "data")]}
    text = f"cd '{place}/data/..' 2>/dev/null || cd /; " if "cat data/" in body else ""
    found = told(
        perform(
            text + body.format(place=place, hidden=place / "data2" / "file.txt"),
            policy,
            directory=place / "data",
        )
    )
    sentences = unnoticed(found)
    assert all(
        "is outside what the policy allows; declare it in the policy: " in sentence
        for sentence in sentences
    )
    assert any(
        '"read": [' in sentence and f"{place}/data2" in sentence for sentence in sentences
    ), sentences


def test_a_look_at_a_hidden_file_counts_where_it_deceives(
    perform: Perform, mechanism: str, place: Path
) -> None:
    """The test ``[ -f FILE ]`` for a hidden file is no success under bubblewrap, and right under
    Landlock.
    """
    found = told(
        perform(
            f"[ -f {place}/data2/file.txt ] && echo yes || echo no", {"read": [str(place / "data")]}
        )
    )
    if mechanism == "landlock":
        assert (found["success"], found["stdout"]) == (True, "yes\n")
    else:
        assert "data2/file.txt' is outside" in unnoticed(found)[0]


def test_what_does_not_exist_is_an_error_of_the_script(
    perform: Perform, place: Path, mechanism: str
) -> None:
    """A program, a file and a listener that are not there are not refused, and do not count."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    body = f'no-such-program; cat {place}/data/none {place}/none; command -v none; ls {place}/data; echo x > "$TMPDIR/x"; cat "$TMPDIR/x"'
    found = told(perform(body, {"executables": ["cat", "ls"], "read": [str(place / "data")]}))
    assert (found["success"], "refused" in found) == (True, False), found
    connect = f"import socket\nprint(socket.socket().connect_ex(('127.0.0.1', {closed})) != 0)\n"
    if mechanism == "bubblewrap":
        assert told(perform(connect, language="python"))["success"]


def test_configuration_of_the_system_does_not_count(perform: Perform) -> None:
    """A hidden file of ``/etc`` is named when a script fails, and makes none fail: programs look
    there for much that they do without.
    """
    policy = {"executables": ["cat"]}
    assert told(perform("cat /etc/shadow || true", policy))["success"]
    assert (
        "'/etc/shadow' is outside what the policy allows"
        in told(perform("cat /etc/shadow", policy))["refused"][0]
    )


def test_own_servers_are_reached(perform: Perform, mechanism: str) -> None:
    """A script that talks to itself over its own loopback is refused nothing."""
    if mechanism == "landlock":
        pytest.skip("without network there are no internet sockets at all")
    program = """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
print("connected")
"""
    found = told(perform(program, language="python"))
    assert (found["success"], found["stdout"], "refused" in found) == (
        True,
        "connected\n",
        False,
    ), found


@pytest.mark.parametrize(("command", "line"), [("ps", '"read": ["/proc"]'), ("df", '"read": ["/')])
def test_answers_about_the_sandbox_count(perform: Perform, command: str, line: str) -> None:
    """The programs ``ps`` and ``df`` would tell of the sandbox's processes and file systems, not of
    the machine's.
    """
    sentences = unnoticed(told(perform(f"{command} || true", {"executables": [command]})))
    assert line in sentences[0], sentences


def test_df_of_a_granted_directory_is_right(perform: Perform, place: Path, mechanism: str) -> None:
    """The program ``df`` answers for a directory that the policy names."""
    if mechanism == "landlock":
        pytest.skip("the table of mounts is closed there")
    found = told(
        perform(
            f"df --output=size {place}/data", {"executables": ["df"], "read": [str(place / "data")]}
        )
    )
    assert (found["success"], "refused" in found) == (True, False), found


@pytest.mark.parametrize(
    ("tolerate", "is_success"),
    [(True, True), (["date"], True), (["/usr/bin/date"], False), (["cat"], False), ([], False)],
)
def test_the_policy_tolerates_what_it_names(
    perform: Perform, tolerate: object, is_success: bool
) -> None:
    """A tolerated refusal does not make a script fail."""
    found = told(perform(HEREDOC, {"executables": ["cat"], "tolerate": tolerate}))
    assert found["success"] is is_success


def test_tolerated_paths_and_addresses_are_named_by_their_beginning(
    perform: Perform, place: Path
) -> None:
    """A tolerated path includes what lies in it, a host its ports, and the word network any
    address.
    """
    read = {"executables": ["cat"], "read": [str(place / "data")]}
    assert told(
        perform(f"cat {place}/data2/file.txt || true", {**read, "tolerate": [f"{place}/data2"]})
    )["success"]
    assert not told(
        perform(f"cat {place}/data2/file.txt || true", {**read, "tolerate": [f"{place}/data"]})
    )["success"]
    assert told(perform("exec 3<>/dev/tcp/192.0.2.1/80 || true; true", {"tolerate": ["network"]}))[
        "success"
    ]


def test_hundreds_of_processes_are_watched(perform: Perform) -> None:
    """A refusal in one of many processes that run at once is found."""
    body = "for i in $(seq 1 200); do (cat /dev/null; [ $i = 150 ] && date) & done; wait; true"
    assert unnoticed(told(perform(body, {"executables": ["cat", "seq"], "processes": 400})))


def test_many_open_files_hide_no_refusal(perform: Perform, place: Path) -> None:
    """A hidden file is found after thousands of files that a script may read and write."""
    for number in range(MOST + 100):
        (place / "data" / f"f{number}").touch()
    count = MOST + 100
    body = (
        f"for f in {place}/data/f*; do : < $f; done; "
        f'for i in $(seq {count}); do : > "$TMPDIR/$i"; done; : < {place}/data2/file.txt; true'
    )
    [sentence] = unnoticed(
        told(perform(body, {"executables": ["seq"], "read": [str(place / "data")]}))
    )
    assert "data2/file.txt" in sentence


def test_a_path_of_any_bytes_is_named(perform: Perform, place: Path) -> None:
    """A hidden file whose name is no text gives a sentence that is."""
    (place / os.fsdecode(b"data2/\xff\n")).touch()
    [sentence] = unnoticed(
        told(perform(f"cat {place}/data2/$'\\xff\\n' || true", {"executables": ["cat"]}))
    )
    assert sentence.encode("utf-8")


PLAIN = """
import json, sys
from pathlib import Path
from uncaged_engine.sandbox.mechanism import choose
from uncaged_engine.sandbox.script import ScriptBounds, run_script
place = Path(sys.argv[2])
bounds = ScriptBounds(write=(place,), executables=(Path("/usr/bin/bash"), Path("/usr/bin/cat")))
body = f"cat <<END\\n$(date)\\nEND\\ncat {place.parent}/hidden; true"
done = run_script(["/usr/bin/bash", "-c", body], bounds, mechanism=choose(sys.argv[1]), cwd=place,
                  environment={"PATH": "/usr/bin"}, watch_path="/usr/bin:/bin")
print(json.dumps([done.exit_code, [[refusal.kind, Path(refusal.what).name] for refusal in done.refused]]))
"""
USERS = {
    "plain": ("--reuid", "65534", "--regid", "65534", "--clear-groups"),
    "root that may look into no process": ("--bounding-set", "-sys_ptrace"),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("words", USERS.values(), ids=USERS)
def test_refusals_are_found_by_every_user(mechanism: str, words: tuple[str, ...]) -> None:
    """An ordinary user, and root without the capability to look into processes, find the same
    refusals.
    """
    paths = [path for path in sys.path if "site-packages" not in path and "lib/python" not in path]
    with TemporaryDirectory() as name:
        place = Path(name, "place")
        place.mkdir()
        Path(name).chmod(0o755)
        Path(name, "hidden").touch()
        os.chown(place, 65534, 65534)
        command = [
            "/usr/bin/setpriv",
            *words,
            "/usr/bin/python3",
            "-B",
            "-c",
            PLAIN,
            mechanism,
            str(place),
        ]
        environment = {"PYTHONPATH": os.pathsep.join(paths), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, cwd="/"
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [0, [["execute", "date"], ["open", "hidden"]]]
