"""Files of a thread that go through the blobs of its store: made again on another machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from testbed.repositories import contents, git, make_repository, write
from uncaged_agents.workspace import Workspace, carried, carry, forked, inspect
from uncaged_bundles.errors import DamagedError, RefusedError, UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.services.git import WorkspaceError

pytestmark = pytest.mark.slow  # some dozens of git processes each

THREAD = ThreadId("01HX5WBE00ABCDEFGHJKMNPQRS")
FORK = ThreadId("01HX5WBE01ABCDEFGHJKMNPQRS")
LARGE = 1 << 18


def look(repository: Path, store: Store, *links: str, **more: Any) -> dict[str, object]:
    """Return the workspace of a start record, with the base pack among the blobs of *store*."""
    found = inspect(
        repository,
        flow="fix",
        thread_id=THREAD,
        now_ms=1000,
        links=links,
        environment=os.environ,
        **{"include_changes": False, **more},
    )
    return carry(found, BlobDirectory(store.blobs), links=links, environment=os.environ)


def machine(
    store: Store, workspace: dict[str, object], name: str, *, thread: ThreadId = THREAD
) -> Workspace:
    """Return the thread's workspace on another machine, which has the same blobs."""
    here = Store.open(store.root.parent / name)
    shutil.copytree(store.blobs, here.blobs, dirs_exist_ok=True)
    found = Workspace.of({"workspace": workspace}, here, thread, environment=os.environ)
    assert found is not None
    return found


def step(workspace: Workspace, number: int, before: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Finish a step as the role effect does, with its pack among the blobs that others copy."""
    latest = before[-1]["snapshot"] if before else None
    commit = workspace.snapshot(number, latest, now_ms=3000)
    return {"seq": number, "snapshot": commit, **workspace.kept_pack(commit, latest)}


def begin(workspace: Workspace, steps: Sequence[dict[str, Any]]) -> None:
    workspace.bring(steps)
    workspace.ensure(steps[-1]["snapshot"] if steps else None, now_ms=2000)


def test_the_files_of_the_base_are_carried_without_its_history(
    store: Store, tmp_path: Path
) -> None:
    """A large file that the commit before had is not in the pack; each present one is."""
    repository = make_repository(tmp_path / "r", {"large": os.urandom(LARGE), "dir/small": "s"})
    git(repository, "rm", "--quiet", "large")
    git(repository, "commit", "--quiet", "--message=two")
    workspace = look(repository, store)
    [blob] = [path for path in store.blobs.iterdir() if path.name == workspace["gitPack"]]
    assert blob.stat().st_size < LARGE / 4
    repository.rename(tmp_path / "away")
    found = machine(store, workspace, "other")
    begin(found, [])
    assert contents(found.tree) == contents(tmp_path / "away")
    assert git(found.tree, "rev-list", "HEAD").split() == [workspace["base"]]
    assert git(found.tree, "status", "--porcelain", "--branch") == f"## {found.branch}\n"


def test_another_machine_goes_on_from_a_step(store: Store, tmp_path: Path) -> None:
    """Committed, uncommitted and new files, HEAD and the branch, which are apart; then a fork has
    the files of the step before. A step costs what it changed.
    """
    workspace = look(make_repository(tmp_path / "r", {"a": "1", "b": os.urandom(LARGE)}), store)
    one = machine(store, workspace, "one")
    begin(one, [])
    write(one.tree, {"a": "2"})
    git(one.tree, "commit", "--quiet", "--all", "--message=mine")
    git(one.tree, "switch", "--quiet", "--detach", "HEAD~1")
    write(one.tree, {"a": "3", "new/file": "n"})
    first = step(one, 1, [])
    write(one.tree, {"a": "4"})
    steps = [first, step(one, 2, [first])]
    assert one.carried is not None
    blobs = one.carried.blobs
    assert all(len(blobs.get(found["gitPack"])) < LARGE / 4 for found in steps)

    shutil.copytree(Store.open(store.root.parent / "one").blobs, store.blobs, dirs_exist_ok=True)
    two = machine(store, workspace, "two")
    begin(two, steps)
    assert contents(two.tree) == contents(one.tree)
    for name in ("HEAD", two.branch):
        assert git(two.tree, "rev-parse", name) == git(one.tree, "rev-parse", name)
    assert git(two.tree, "status", "--porcelain") == " M a\n?? new/\n"
    assert (two.current_branch(), one.current_branch()) == (None, None)
    steps.append(step(two, 3, steps))

    fork = forked(workspace, flow="fix", thread_id=FORK)
    three = machine(store, fork, "three", thread=FORK)
    begin(three, [first])
    assert (three.tree / "a").read_text() == "3"


def test_a_pack_without_its_commit_is_damaged(store: Store, tmp_path: Path) -> None:
    """As is one that is none, and the base's own for a step; the message names the blob. The right
    one is read afterwards.
    """
    workspace = look(make_repository(tmp_path / "r"), store)
    found = machine(store, workspace, "other")
    begin(found, [])
    write(found.tree, {"new": "n"})
    right = step(found, 1, [])
    assert found.carried is not None
    blobs = found.carried.blobs
    again = machine(store, workspace, "again")
    assert again.carried is not None
    data = blobs.get(right["gitPack"])
    for wrong in (b"no pack", data[:-30], blobs.get(str(workspace["gitPack"]))):
        name = again.carried.blobs.put(wrong)
        with pytest.raises(DamagedError, match=f"blob {name} holds no usable files of commit"):
            again.bring([{**right, "gitPack": name}])
    with pytest.raises(DamagedError, match="is missing"):
        again.bring([{**right, "gitPack": "0" * 32}])
    again.carried.blobs.put(data)
    begin(again, [right])
    assert (again.tree / "new").read_text() == "n"


def test_objects_that_lack_others_are_refused(store: Store, tmp_path: Path) -> None:
    """Git checks the links of a stranger's objects: here the pack of a step before is left out."""
    workspace = look(make_repository(tmp_path / "r"), store)
    found = machine(store, workspace, "other")
    begin(found, [])
    write(found.tree, {"new": "n"})
    steps = [step(found, 1, [])]
    steps.append(step(found, 2, steps))
    shutil.copytree(Store.open(store.root.parent / "other").blobs, store.blobs, dirs_exist_ok=True)
    with pytest.raises(DamagedError, match="holds no usable files"):
        machine(store, workspace, "again").bring(steps[1:])


def test_what_is_not_carried_is_refused_or_named(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ignored dependencies are named and stay behind; a link that a person wants, the files of a
    submodule, and what is too large are refused.
    """
    repository = make_repository(tmp_path / "r", {".gitignore": ".venv/\n", "a": "1"})
    write(repository, {".venv/x": ""})
    found = look(repository, store)
    assert (found["links"], found["leftBehind"]) == ([], [".venv"])
    with pytest.raises(UsageError, match=r"--link \.venv: ignored files are not carried"):
        look(repository, store, ".venv")
    inner = make_repository(tmp_path / "inner")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(repository, *add)
    with pytest.raises(RefusedError, match=r"has submodules \(sub\), whose files are not carried"):
        look(repository, store, include_changes=True)
    git(repository, "commit", "--quiet", "--message=two")
    git(repository, "submodule", "--quiet", "deinit", "--force", "sub")
    empty = machine(store, look(repository, store), "other")
    begin(empty, [])
    write(empty.tree, {"b": "2"})
    assert empty.changed_paths(None) == {"b"}
    monkeypatch.setattr(carried, "MAX_PACK_BYTES", 10)
    with pytest.raises(RefusedError, match="MiB packed"):
        look(repository, store)
    with pytest.raises(WorkspaceError, match="have git ignore those"):
        step(empty, 1, [])
