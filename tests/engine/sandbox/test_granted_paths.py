"""Granted paths are objects: what is put in their place later is refused, as root and as an
ordinary user, under both mechanisms.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from testbed.cells import MECHANISMS
from testbed.roles import EffectHarness
from testbed.scripting import harness_for, told
from testbed.users import as_user
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.storage.store import Store
from uncaged_effects.script import ScriptHandler
from uncaged_engine.door.outcomes import Failure, Outcome
from uncaged_engine.sandbox.granted_paths import (
    Refused,
    WrittenDirectories,
    open_beneath,
    open_granted_paths,
    open_without_links,
)

SWAP_BY_LINK = "mv shared/in shared/gone && ln -s ../secret shared/in"
SWAP_BY_NAME = "mv shared/in shared/gone && mkdir shared/in && echo swapped > shared/in/file.txt"
USE = "cat shared/in/file.txt; echo written > shared/in/new.txt"
SWAPPING: Mapping[str, object] = {"executables": ["mv", "ln", "mkdir"], "write": ["shared"]}
USING: Mapping[str, object] = {"executables": ["cat"], "write": ["shared/in"]}


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory that two flows share, and beside it one that neither policy names."""
    make_place(tmp_path)
    return tmp_path


def make_place(place: Path) -> None:
    (place / "shared" / "in").mkdir(parents=True)
    (place / "shared" / "in" / "file.txt").write_text("granted")
    (place / "secret").mkdir()
    (place / "secret" / "file.txt").write_text("planted secret")
    for path in (place, *place.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)  # only the sandbox is in the way


def perform(harness: EffectHarness, body: str, place: Path) -> Outcome:
    context = harness.context(1, directory=place)
    return ScriptHandler().perform(
        {"language": "bash", "body": f"cd {place} && {{ {body}; }}"}, context
    )


def refusal(outcome: Outcome) -> str:
    assert isinstance(outcome, Failure), outcome
    assert outcome.error["kind"] == "policy"
    return str(outcome.error["message"])


@pytest.mark.slow
@pytest.mark.parametrize("swap", [SWAP_BY_LINK, SWAP_BY_NAME])
def test_a_granted_path_stays_the_object_of_its_first_use(
    store: Store, mechanism: str, place: Path, swap: str
) -> None:
    """A thread refuses a directory that another flow swapped after the thread's first use: device
    and inode, then and now, are shown.
    """
    using, swapping = harness_for(store, mechanism, USING), harness_for(store, mechanism, SWAPPING)
    before = (place / "shared" / "in").stat()
    assert told(perform(using, USE, place))["stdout"] == "granted"
    assert told(perform(swapping, swap, place))["success"]
    message = refusal(perform(using, USE, place))
    assert (place / "secret" / "file.txt").read_text() == "planted secret"
    assert not (place / "secret" / "new.txt").exists()
    assert not (place / "shared" / "in" / "new.txt").exists()
    if swap == SWAP_BY_NAME:
        now = (place / "shared" / "in").stat()
        assert (
            f"then device {before.st_dev}, inode {before.st_ino}; now device {now.st_dev}, inode {now.st_ino}"
            in message
        )
        # another thread's first use is of what is there now
        fresh = told(perform(harness_for(store, mechanism, USING), USE, place))
        assert fresh["stdout"] == "swapped\n"
    else:
        # nor does a later thread follow the link
        for harness in (using, harness_for(store, mechanism, USING)):
            assert f"leads over a link out of '{place}/shared', which scripts may write" in refusal(
                perform(harness, USE, place)
            )
        (place / "shared" / "in").unlink()
        (place / "shared" / "gone").rename(place / "shared" / "in")
        assert told(perform(using, USE, place))["stdout"] == "granted"


@pytest.mark.slow
def test_a_thread_swaps_no_path_of_its_own(store: Store, mechanism: str, place: Path) -> None:
    """A first script that turns a granted path into a link opens nothing to the second, whichever
    way the policy names it.
    """
    own = {"executables": ["cat", "mv", "ln"], "write": ["shared"], "read": ["shared/later"]}
    harness = harness_for(store, mechanism, own)
    assert told(perform(harness, "ln -s ../secret shared/later", place))["success"]
    assert "leads over a link out of" in refusal(
        perform(harness, "cat shared/later/file.txt", place)
    )
    (place / "shared" / "later").unlink()
    (place / "shared" / "later").symlink_to("in")  # a link that stays inside is followed
    assert told(perform(harness, "cat shared/later/file.txt", place))["stdout"] == "granted"


ORDINARY = """
import json, sys
from pathlib import Path
from uncaged_engine.sandbox.mechanism import choose
from uncaged_engine.sandbox.script import ScriptBounds, run_script
from uncaged_effects.scripting.paths import resolve_paths
from uncaged_engine.sandbox.granted_paths import WrittenDirectories, check_unchanged
place, mechanism, swap, use = Path(sys.argv[1]), choose(sys.argv[2]), sys.argv[3], sys.argv[4]
written = WrittenDirectories(place / "written.jsonl")
def run(write, body, kept):
    places = resolve_paths([], write, params={}, environment={}, directory=place, written=written.known())
    first = {one.entry: one.record() for one in places.paths}
    kept.update({**first, **kept})
    check_unchanged(places.paths, kept)
    written.note(places.write)
    bounds = ScriptBounds(write=places.write, identities=places.identities)
    return run_script(["/bin/sh", "-c", f"cd {place} && {{ {body}; }}"], bounds, mechanism=mechanism, cwd=Path("/"),
                      environment={"PATH": "/usr/bin:/bin"}).stdout.decode()
kept = {}
results = [run(["shared/in"], use, kept), run(["shared"], swap, {})]
for thread in (kept, {}):
    try:
        results.append(run(["shared/in"], use, thread))
    except Exception as exc:
        results.append(f"{type(exc).__name__}: {exc}")
print(json.dumps(results))
"""


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory like `place`, of another user, in a directory that every user can enter (pytest
    closes its own).
    """
    with tempfile.TemporaryDirectory() as name:
        make_place(Path(name))
        for path in (Path(name), *Path(name).rglob("*")):
            os.chown(path, 65534, 65534)
        yield Path(name)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("swap", [SWAP_BY_LINK, SWAP_BY_NAME])
def test_an_ordinary_users_paths_stay_what_they_were(
    open_place: Path, mechanism: str, swap: str
) -> None:
    """Without root the same swaps are refused, and what a first use finds is used."""
    use = USE.replace("new.txt", "new-$$.txt")
    results = as_user(ORDINARY, str(open_place), mechanism, swap, use)
    assert results[0] == "granted"
    if swap == SWAP_BY_NAME:
        assert "is not what it was when this thread first used it: then device" in results[2]
        assert results[3] == "swapped\n"
    else:
        assert all("leads over a link out of" in result for result in results[2:])
    assert [path.name for path in (open_place / "secret").iterdir()] == ["file.txt"]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["read", "write"])
def test_a_path_swapped_after_the_check_is_refused(
    store: Store, mechanism: str, place: Path, key: str
) -> None:
    """The object that is mounted is compared with the one that was checked: nothing of the script
    runs when they differ.
    """
    harness = harness_for(store, mechanism, {"executables": ["touch"], key: ["shared/in"]})

    def swap(found: Mapping[str, object]) -> Mapping[str, object]:
        (place / "shared" / "in").rename(place / "shared" / "gone")
        (place / "shared" / "in").symlink_to("../secret")
        return found

    changed_ns = (place / "secret").stat().st_ctime_ns
    context = harness.context(1, directory=place, remember_paths=swap)
    message = refusal(
        ScriptHandler().perform(
            {"language": "bash", "body": f"cd {place} && touch shared/in/touched"}, context
        )
    )
    assert f"{place}/shared/in' was replaced by something else just now" in message
    assert [path.name for path in (place / "secret").iterdir()] == ["file.txt"]
    # not even its owner changed for a moment
    assert (place / "secret").stat().st_ctime_ns == changed_ns


def test_an_entry_that_means_another_path_waits_for_the_person(
    store: Store, mechanism: str, place: Path
) -> None:
    """A resume from another directory changes no relative path: the thread says from where it was
    started.
    """
    harness = harness_for(store, mechanism, {"executables": ["cat"], "read": ["shared"]})
    perform(harness, "cat shared/in/file.txt", place)
    (place / "other" / "shared").mkdir(parents=True)
    with pytest.raises(
        EnvironmentLacks, match=f"read 'shared' was '{place}/shared' when this thread first used it"
    ):
        perform(harness, "cat shared/in/file.txt", place / "other")


@pytest.mark.parametrize("opening", [open_beneath, open_without_links])
def test_no_link_leads_out_of_a_written_directory(tmp_path: Path, opening: Any) -> None:
    """Both ways to open a path below a directory stay in it: no link, absolute link or magic link
    of /proc leads out.
    """
    for name in ("root/a", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "root" / "a" / "out").symlink_to("../../outside")
    (tmp_path / "root" / "a" / "absolute").symlink_to(tmp_path / "outside")
    root = os.open(tmp_path / "root", os.O_PATH)
    try:
        inside = opening(root, "a")
        assert os.path.samestat(os.fstat(inside), (tmp_path / "root" / "a").stat())
        os.close(inside)
        for name in ("a/out", "a/absolute", "a/out/x", "a/../../outside"):
            with pytest.raises(OSError) as caught:
                opening(root, name)
            assert caught.value.errno in (errno.EXDEV, errno.ELOOP)
    finally:
        os.close(root)


@pytest.mark.parametrize("make", [False, True])
@pytest.mark.parametrize("name", ["/", "link"])
def test_the_root_directory_is_not_granted(tmp_path: Path, name: str, make: bool) -> None:
    """A policy that names /, or a link to it, is refused with the entry and the path."""
    (tmp_path / "link").symlink_to("/")
    path = tmp_path / name
    with pytest.raises(Refused) as caught:
        open_granted_paths([("read 'param:path'", path)], {}, make=make)
    assert f"read 'param:path' grants {str(path)!r}, the whole file system" in str(caught.value)


def test_a_link_outside_of_written_directories_is_followed(tmp_path: Path) -> None:
    """A person's own link is no swap: it is followed, also when it leads into a directory that
    scripts may write.
    """
    (tmp_path / "real" / "in").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/in")
    written = WrittenDirectories(tmp_path / "list")
    written.note([tmp_path / "real"])
    written.note([tmp_path / "real"])
    assert (tmp_path / "list").read_text().count("\n") == 1
    [root] = open_granted_paths([("read 'link'", tmp_path / "link")], written.known())
    assert (root.real, root.path) == (tmp_path / "real" / "in", tmp_path / "link")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(Refused, match="too many links"):
        open_granted_paths([("read 'loop'", tmp_path / "loop")], {})
