"""The parts of the repair's measurement that run processes: control groups and recorded calls."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from benchmarks.repair.cases import case_of
from benchmarks.repair.control_group import NoControlGroup, control_group
from benchmarks.repair.differential import compare
from benchmarks.repair.reach import reach_of
from benchmarks.repair.releases import VENV, Release
from benchmarks.repair.sandbox import INSIDE

PYTEST = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")
BURN = "import time\nwhile time.process_time() < 0.3: pass"
DAEMON = f"""
import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open(PATH, "w").write("x")
{BURN}
time.sleep(600)
"""
LIBRARY = """
def limit(value, most=3):
    return min(value, most)

def items(count):
    yield from range(count)
"""
TESTS = """
from library import items, limit

def test_limit():
    assert limit(1) == 1
    assert limit(9, most=5) == 5
    assert list(items(4)) == [0, 1, 2, 3]
"""


@pytest.mark.slow
def test_processor_time_of_a_daemon_is_counted(tmp_path: Path) -> None:
    """A process that left its parent and its session is counted, killed and gone."""
    try:
        with control_group() as group:
            code = DAEMON.replace("PATH", repr(str(tmp_path / "begun")))
            subprocess.run(group.enter([sys.executable, "-c", code]), check=True, timeout=60)
            while group.cpu_s < 0.3:
                assert (group.path / "cgroup.procs").exists()
            path = group.path
    except NoControlGroup as exc:
        pytest.skip(str(exc))
    assert not path.exists()


@pytest.mark.slow
def test_recorded_calls_tell_two_versions_apart(tmp_path: Path) -> None:
    """Calls are recorded once each with their arguments, a generator's at its start; a version
    that differs on other arguments than those of the tests is found by variations.
    """
    library = tmp_path / "library.py"
    library.write_text(LIBRARY)
    (tmp_path / "test_library.py").write_text(TESTS)
    wanted = json.dumps([[str(library), "limit"], [str(library), "items"]])
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{INSIDE}:{tmp_path}",
        "UNCAGED_RECORD": wanted,
        "UNCAGED_RECORDED": str(tmp_path / "recorded"),
    }
    plugin = ["-m", "pytest", "-q", "-p", "record_calls", "-p", "no:cacheprovider"]
    subprocess.run(
        [sys.executable, "-B", *plugin, "test_library.py"],
        cwd=tmp_path,
        env=environment,
        check=True,
        timeout=60,
    )

    def replay() -> list[tuple[bool, str]]:
        words = [str(INSIDE / "replay_calls.py"), str(tmp_path / "recorded"), "60", "0"]
        done = subprocess.run(
            [sys.executable, "-B", *words],
            env=environment,
            check=True,
            timeout=60,
            stdout=subprocess.PIPE,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [(line["varied"], line["outcome"]) for line in lines if "outcome" in line]

    released = replay()
    assert len(released) == 3 + 60
    assert sum(not varied for varied, _ in released) == 3
    assert "generator(int:0,int:1,int:2,int:3)" in " ".join(text for _, text in released)
    assert replay() == released
    library.write_text(LIBRARY.replace("min(value, most)", "min(value, 5 if value > 5 else most)"))
    overfit = replay()
    assert [text for varied, text in overfit if not varied] == [
        text for varied, text in released if not varied
    ]
    assert overfit != released


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """A release of the library above, prepared as a downloaded one is."""
    found = Release(directory=tmp_path / "library-1.0")
    found.pristine.mkdir(parents=True)
    (found.pristine / "library.py").write_text(LIBRARY)
    (found.pristine / "test_library.py").write_text(TESTS)
    venv.create(found.repo / VENV, symlinks=True)
    [packages] = (found.repo / VENV).glob("lib/python*/site-packages")
    ours = Path(sysconfig.get_path("purelib"))
    for name in PYTEST:  # copied: the sandbox may hide where ours is
        shutil.copytree(ours / name, packages / name)
    shutil.copy(ours / "py.py", packages)
    return found


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize(
    ("old", "new", "equal", "still_failing"),
    [
        ("min(value, most)", "value if value < most else most", True, ()),
        ("min(value, most)", "min(value, 5 if value > 5 else most)", False, ()),
        ("min(value, most)", "min(value, 3)", False, ("test_library.py::test_limit",)),
        ("most=3", "most=2", False, ()),
    ],
)
def test_a_repair_is_compared_with_the_release(
    release: Release, old: str, new: str, *, equal: bool, still_failing: tuple[str, ...]
) -> None:
    """A repair that does the same in other words is equal; one that suits only the tests is not,
    nor is another default, and a test that still fails is found.
    """
    found = compare(release, {"library.py": LIBRARY.replace(old, new)}, ())
    assert found.functions == ("limit",)
    assert found.compared > 400
    assert (found.differing == 0) is equal
    assert found.still_failing == still_failing
    assert found.unreadable == 0


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize(
    ("released", "broken", "kind"),
    [
        ("    return min(value, most)\n", "    return max(value, most)\n", "sibling call"),
        ("    return min(value, most)\n", "    return min(value, moist)\n", "unknown name"),
        ("    return min(value, most)\n", "    return sum(map(int, str(value)))\n", None),
    ],
)
def test_one_edit_restores_the_release_or_none_does(
    release: Release, released: str, broken: str, kind: str | None
) -> None:
    """A place is within reach if the repair's own edits contain the released text; the errors of
    the failing tests are known to it.
    """
    place = {"name": "library-1", "library": "library", "release": "library-1.0", "line": 3}
    texts = {"file": "library.py", "released": released, "broken": broken}
    case = case_of("fixes", {**place, **texts, "failing": ["test_library.py::test_limit"]})
    found = reach_of(case, release, Path(sys.executable))
    assert found.candidates > 20
    assert found.kind == kind
    assert (found.rank is None) is (kind is None)
