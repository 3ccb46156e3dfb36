"""Tests and candidates inside the sandbox."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from uncaged_repair.harness.harness import Harness
from uncaged_repair.harness.host import Host, RunRequest
from uncaged_repair.task import RepairLimits, Task

pytestmark = pytest.mark.slow


class Repository(Protocol):
    @property
    def top(self) -> Path: ...
    @property
    def scratch(self) -> Path: ...


Make = Callable[[Mapping[str, str | bytes]], Repository]
Open = Callable[[Mapping[str, str]], Host]


def silent(message: str, *, candidates: int | None = None, file: str | None = None) -> None:
    """Drop progress: there are no followers."""


@pytest.fixture(params=["bubblewrap", "landlock"])
def open_host(request: pytest.FixtureRequest, make_repository: Make) -> Iterator[Open]:
    """A host on a repository with these files, its tests collected, in each of the two
    sandboxes.
    """
    opened: list[Harness] = []

    def make(files: Mapping[str, str]) -> Host:
        made = make_repository(dict(files))
        task = Task(
            role="coder",
            worktree=made.top,
            scratch=made.scratch,
            text="",
            steps=(),
            environment={"PATH": os.environ["PATH"], "SECRET_OF_OURS": "x"},
            test_command=None,
            sandbox=request.param,
            limits=RepairLimits(),
            wall_s=60.0,
        )
        harness = Harness(task, silent)
        opened.append(harness)
        harness.__enter__()
        assert harness.collect().end == "finished"
        return harness.host

    yield make
    for harness in opened:
        harness.__exit__()


def outcomes(
    host: Host,
    *tests: str,
    warm: bool = True,
    files: Mapping[str, bytes] | None = None,
    cpu_s: float = 10.0,
    wall_s: float = 60.0,
) -> dict[str, str]:
    asked = RunRequest(
        tests=tests, cpu_s=cpu_s, wall_s=wall_s, total_s=240.0, warm=warm, files=files or {}
    )
    return host.run(asked).outcomes


def test_tests_reach_nothing_outside(open_host: Open, tmp_path: Path) -> None:
    """No network, not even loopback; no file of the person, to read or to write; no variable of the
    person's environment.
    """
    (tmp_path / "private").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        tests = (
            "import os, pathlib, socket, pytest\n\n\n"
            "def test_network():\n    with pytest.raises(OSError):\n"
            f"        socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), timeout=2)\n\n\n"
            f"def test_read():\n    with pytest.raises(OSError):\n        pathlib.Path({str(tmp_path / 'private')!r}).read_text()\n\n\n"
            f"def test_write():\n    with pytest.raises(OSError):\n        pathlib.Path({str(tmp_path / 'new')!r}).write_text('x')\n\n\n"
            "def test_environment():\n    assert not [name for name in os.environ if 'SECRET' in name]\n"
        )
        host = open_host({"test_reach.py": tests})
        names = [
            f"test_reach.py::test_{name}" for name in ("network", "read", "write", "environment")
        ]
        assert outcomes(host, *names) == dict.fromkeys(names, "passed")
    assert not (tmp_path / "new").exists()


def test_a_test_that_kills_its_parents_costs_a_new_process_and_no_more(open_host: Open) -> None:
    """After whatever happened the next question is answered, on an intact copy."""
    tests = (
        "import os, pathlib, signal\n\n\ndef test_kill():\n    pathlib.Path('test_more.py').unlink()\n"
        "    for _ in range(3):\n        os.kill(os.getppid(), signal.SIGKILL)\n    os.killpg(0, signal.SIGKILL)\n\n\n"
        "def test_fine():\n    pass\n"
    )
    host = open_host({"test_kill.py": tests, "test_more.py": "def test_more():\n    pass\n"})
    assert outcomes(host, "test_kill.py::test_kill").get("test_kill.py::test_kill") != "passed"
    wanted = {"test_kill.py::test_fine": "passed", "test_more.py::test_more": "passed"}
    assert outcomes(host, *wanted) == wanted


def test_a_changed_function_counts_warm_and_cold(open_host: Open) -> None:
    """Swapped in where it was imported already, or imported afresh: the same answer; and afterwards
    all is as before.
    """
    files = {
        "code_of.py": "RATE = 2\n\n\ndef f(x):\n    return x + RATE\n",
        "test_code.py": "from code_of import f\n\n\ndef test_f():\n    assert f(3) == 6\n",
    }
    host = open_host(files)
    better = {"code_of.py": files["code_of.py"].replace("x + RATE", "x * RATE").encode()}
    other = {"code_of.py": files["code_of.py"].replace("RATE = 2", "RATE = 3").encode()}
    name = "test_code.py::test_f"
    for changed in (better, other):
        assert outcomes(host, name, files=changed) == {name: "passed"}
        assert outcomes(host, name, files=changed, warm=False) == {name: "passed"}
        assert outcomes(host, name) == {name: "failed"}


def test_endless_and_greedy_tests_are_cut_off(open_host: Open) -> None:
    """A test is limited in processor time, real time and memory; the tests after it run."""
    tests = (
        "import time\n\n\ndef test_loop():\n    while True:\n        pass\n\n\ndef test_sleep():\n    time.sleep(60)\n\n\n"
        "def test_memory():\n    bytearray(3 << 30)\n\n\ndef test_fine():\n    pass\n"
    )
    host = open_host({"test_bounds.py": tests})
    names = [f"test_bounds.py::test_{name}" for name in ("loop", "sleep", "memory", "fine")]
    found = outcomes(host, *names, cpu_s=0.8, wall_s=2.5)
    assert list(found.values()) == ["timeout", "timeout", "failed", "passed"]


def test_the_lines_of_a_loop_are_known_although_it_never_ends(open_host: Open) -> None:
    files = {
        "code_of.py": "def f(x):\n    while x:\n        x += 1\n    return x\n",
        "test_code.py": "from code_of import f\n\n\ndef test_f():\n    f(1)\n",
    }
    run = open_host(files).run(
        RunRequest(
            tests=["test_code.py::test_f"],
            cpu_s=0.5,
            wall_s=60.0,
            total_s=240.0,
            cover=True,
            types=True,
        )
    )
    result = run.results[0]
    assert result.outcome == "timeout"
    assert result.lines == {"code_of.py": frozenset({1, 2, 3})}
    assert [(frame.path, frame.function) for frame in result.frames] == [
        ("test_code.py", "test_f"),
        ("code_of.py", "f"),
    ]
    assert ("code_of.py", 1, "x", frozenset({"int"})) in result.held


def test_an_installation_that_points_to_the_checkout_uses_the_copy(open_host: Open) -> None:
    """A path in the interpreter's own search path that lies in the checkout is replaced by the same
    path in the copy.
    """
    host = open_host(
        {
            "src/pkg/__init__.py": "def f():\n    return __file__\n",
            "test_pkg.py": "import pkg, pathlib\n\n\ndef test_f():\n    assert pathlib.Path.cwd() in pathlib.Path(pkg.f()).parents\n",
        }
    )
    assert outcomes(host, "test_pkg.py::test_f") == {"test_pkg.py::test_f": "passed"}


def test_data_for_the_sandbox_is_bytes(open_host: Open) -> None:
    """A file that is no UTF-8 arrives as it is."""
    raw = b"# -*- coding: latin-1 -*-\nNAME = '\xe4'\n\n\ndef f():\n    return NAME\n"
    host = open_host(
        {
            "code_of.py": "NAME = 'b'\n\n\ndef f():\n    return NAME\n",
            "test_code.py": "from code_of import f\n\n\ndef test_f():\n    assert f() == '\\xe4'\n",
        }
    )
    assert outcomes(host, "test_code.py::test_f", files={"code_of.py": raw}) == {
        "test_code.py::test_f": "passed"
    }
