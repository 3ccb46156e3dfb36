"""Bytecode of modules, from one answer of the repair for the next ones."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest
from uncaged_repair.harness.harness import Harness
from uncaged_repair.harness.host import RunRequest
from uncaged_repair.harness.library_bytecode import (
    MAX_BYTES,
    drop_bytecode,
    keep_bytecode,
    kept_bytecode,
)
from uncaged_repair.task import RepairLimits, Task

COUNTER = """\
import sys
COMPILED = []
def listen(event, arguments):
    if event == "compile":
        name = arguments[1]
        COMPILED.append(name if isinstance(name, str) else "")
sys.addaudithook(listen)
"""
TESTS = """\
import counter, helper, mine, pytest
helpers = sum("/library/" in name for name in counter.COMPILED)
own = sum(name.endswith("mine.py") for name in counter.COMPILED)
@pytest.mark.parametrize("helpers", [helpers])
@pytest.mark.parametrize("own", [own])
def test_counts(helpers, own):
    import later
    assert not any(name.endswith("later.py") for name in counter.COMPILED)
"""
OWN_FILE = """\
import os, mine
def test_value_and_place():
    assert mine.value == 3
    place = os.path.dirname(os.path.abspath(__file__))
    for code in (test_value_and_place.__code__, mine.get.__code__):
        assert os.path.dirname(code.co_filename) == place
"""
WRITES = """\
import pathlib, sys
def test_a_file_is_written():
    kept = pathlib.Path(sys.modules["_uncaged_repair.bytecode"]._installed[0]._path)
    assert any(kept.iterdir())
    (kept / ("0" * 32)).write_text("x")
"""


class Repository(Protocol):
    @property
    def top(self) -> Path: ...
    @property
    def scratch(self) -> Path: ...


Make = Callable[[Mapping[str, str]], Repository]


def add_environment(top: Path) -> Path:
    """Make a virtual environment in *top* with a pytest plugin and two modules, all without
    bytecode; return the directory of these.
    """
    library = top.parent / "library"
    information = library / "plugged-1.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Name: plugged\nVersion: 1\n")
    (information / "RECORD").write_text("plugged.py,,\nplugged-1.dist-info/RECORD,,\n")
    (information / "entry_points.txt").write_text("[pytest11]\nplugged = plugged\n")
    (library / "plugged.py").write_text("assert True\n")
    (library / "helper.py").write_text("value = 1\n")
    (library / "later.py").write_text("value = 2\n")
    beside = top.parent / "beside"
    beside.mkdir()
    (beside / "counter.py").write_text(COUNTER)
    environment = top / ".venv"
    packages = environment / f"lib/python3.{sys.version_info[1]}/site-packages"
    packages.mkdir(parents=True)
    (environment / "bin").mkdir()
    (environment / "bin/python").symlink_to(os.path.realpath(sys.executable))
    (environment / "pyvenv.cfg").write_text(
        f"home = {Path(os.path.realpath(sys.executable)).parent}\n"
    )
    lines = [*site.getsitepackages(), str(library), str(beside), "import counter"]
    (packages / "all.pth").write_text("".join(f"{line}\n" for line in lines))
    return library


def opened(made: Repository, *, fill: bool, sandbox: str = "auto") -> Harness:
    task = Task(
        role="planner",
        worktree=made.top,
        scratch=made.scratch,
        text="",
        steps=(),
        environment={"PATH": os.environ["PATH"]},
        test_command=None,
        sandbox=sandbox,
        limits=RepairLimits(),
        wall_s=600.0,
    )
    return Harness(task, lambda *_given, **_named: None, fill_bytecode=fill)


def outcome_of(harness: Harness, *, warm: bool) -> tuple[str, str]:
    """Run the only test and return its name, which has the counts, and its outcome."""
    [name] = harness.collect().tests
    request = RunRequest(tests=[name], cpu_s=20, wall_s=60, total_s=240, warm=warm)
    return name, harness.host.run(request).outcomes[name]


@pytest.fixture
def made(make_repository: Make) -> Repository:
    files = {
        "mine.py": "value = 3\ndef get():\n    return value\n",
        "test_counts.py": TESTS,
        "pytest.ini": "[pytest]\n# pytest-plugged\n",
    }
    repository = make_repository(files)
    add_environment(repository.top)
    return repository


@pytest.mark.slow
def test_later_answers_compile_no_unchanged_module_again(made: Repository) -> None:
    """Modules of libraries and of the repository are compiled and rewritten once for all answers
    and all copies, those that a test imports included.
    """
    with opened(made, fill=True) as first:
        name, outcome = outcome_of(first, warm=True)
        assert name == "test_counts.py::test_counts[1-2]"
        assert outcome == "failed"
        first.keep_bytecode()
    with opened(made, fill=True) as second:
        assert second.host.working_copy.bytecode is None
        name, outcome = outcome_of(second, warm=True)
        assert name == "test_counts.py::test_counts[0-0]"
        assert outcome == "passed"
        request = RunRequest(tests=[name], cpu_s=20, wall_s=60, total_s=240, warm=False)
        assert second.host.run(request).outcomes == {name: "passed"}
        hosts = second.all_hosts()
        assert all(host.run(request).outcomes == {name: "passed"} for host in hosts)


@pytest.mark.slow
def test_a_changed_library_is_compiled_again(made: Repository) -> None:
    """Bytecode of an older text is not used, even if size and time of the file are the same."""
    library = made.top.parent / "library"
    with opened(made, fill=True) as first:
        outcome_of(first, warm=True)
        first.keep_bytecode()
    before = (library / "helper.py").stat()
    (library / "helper.py").write_text("value = 4\n")
    os.utime(library / "helper.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    with opened(made, fill=False) as second:
        assert outcome_of(second, warm=True)[0] == "test_counts.py::test_counts[0-1]"


@pytest.mark.slow
def test_a_changed_file_of_the_repository_is_compiled_again(made: Repository) -> None:
    """A candidate's file and a changed test run as they are now, not as the first answer compiled
    them, and name the copy that they lie in.
    """
    (made.top / "test_counts.py").write_text(OWN_FILE)
    with opened(made, fill=True) as first:
        assert outcome_of(first, warm=False)[1] == "passed"
        first.keep_bytecode()
    with opened(made, fill=False) as second:
        [name] = second.collect().tests
        request = RunRequest(tests=[name], cpu_s=20, wall_s=60, total_s=240, warm=False)
        candidate = replace(
            request, files={"mine.py": b"value = 4\ndef get():\n    return value\n"}
        )
        hosts = second.all_hosts()
        assert [host.run(request).outcomes[name] for host in hosts] == ["passed"] * len(hosts)
        assert {host.run(candidate).outcomes[name] for host in hosts} == {"failed"}
    (made.top / "test_counts.py").write_text(OWN_FILE.replace("3", "5"))
    with opened(made, fill=False) as third:
        assert outcome_of(third, warm=True)[1] == "failed"


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
def test_no_later_test_can_write_the_kept_bytecode(made: Repository, sandbox: str) -> None:
    """Code of a candidate finds the kept directory read-only; the first answer's runs write it."""
    (made.top / "test_counts.py").write_text(WRITES)
    with opened(made, fill=True, sandbox=sandbox) as first:
        assert outcome_of(first, warm=True)[1] == "passed"
        first.keep_bytecode()
    kept = kept_bytecode(made.scratch)
    assert kept is not None
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    with opened(made, fill=False, sandbox=sandbox) as second:
        assert outcome_of(second, warm=True)[1] == "failed"
        assert outcome_of(second, warm=False)[1] == "failed"
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before


def test_only_regular_files_with_the_name_of_an_entry_are_kept(tmp_path: Path) -> None:
    """A link to a private file is not followed, and a pipe is not waited for."""
    filled, scratch = tmp_path / "filled", tmp_path / "scratch"
    filled.mkdir()
    scratch.mkdir()
    (tmp_path / "private").write_text("secret")
    (filled / ("a" * 32)).write_bytes(b"code")
    (filled / ("b" * 32)).symlink_to(tmp_path / "private")
    os.mkfifo(filled / ("c" * 32))
    (filled / ("d" * 32)).mkdir()
    (filled / "evil.pth").write_text("import os\n")
    (filled / f"{'e' * 32}.77").write_bytes(b"half")
    keep_bytecode(filled, scratch)
    kept = kept_bytecode(scratch)
    assert kept is not None
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == {"a" * 32: b"code"}
    drop_bytecode(scratch)
    assert kept_bytecode(scratch) is None
    assert not list(scratch.iterdir())


def test_a_directory_without_entries_or_with_too_much_is_not_kept(tmp_path: Path) -> None:
    filled, scratch = tmp_path / "filled", tmp_path / "scratch"
    filled.mkdir()
    scratch.mkdir()
    keep_bytecode(filled, scratch)
    assert not list(scratch.iterdir())
    with (filled / ("a" * 32)).open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    keep_bytecode(filled, scratch)
    assert not list(scratch.iterdir())


def test_a_link_in_place_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / ("a" * 32)).write_bytes(b"code")
    (tmp_path / "filled").symlink_to(tmp_path)
    keep_bytecode(tmp_path / "filled", tmp_path / "scratch")
    assert not list((tmp_path / "scratch").iterdir())
