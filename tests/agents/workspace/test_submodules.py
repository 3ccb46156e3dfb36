"""Submodules in a thread's worktree: files without their repositories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from testbed.repositories import contents, git, make_repository, write
from uncaged_agents.workspace import Workspace, WorkspaceError, forked, inspect
from uncaged_bundles.errors import UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store

pytestmark = pytest.mark.slow  # a few dozen git processes each

THREAD = ThreadId("01HX5WBE00ABCDEFGHJKMNPQRS")
FORK = ThreadId("01HX5WBE01ABCDEFGHJKMNPQRS")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the submodule `vendor/inner`, which has the submodule `deep` itself."""
    deep = make_repository(tmp_path / "deep", {"deep.py": "DEPTH = 2\n"})
    inner = make_repository(tmp_path / "inner", {"inner.py": "def f():\n    return 1\n"})
    add_submodule(inner, deep, "deep")
    repository = make_repository(tmp_path / "r")
    add_submodule(repository, inner, "vendor/inner")
    git(repository, *FROM_FILES, "submodule", "--quiet", "update", "--init", "--recursive")
    return repository


FROM_FILES = ("-c", "protocol.file.allow=always")


def add_submodule(repository: Path, source: Path, path: str) -> None:
    git(repository, *FROM_FILES, "submodule", "--quiet", "add", str(source), path)
    git(repository, "commit", "--quiet", "--message=submodule")


def look(repository: Path, *, include_changes: bool = False) -> dict[str, object]:
    return inspect(
        repository,
        flow="fix",
        thread_id=THREAD,
        include_changes=include_changes,
        environment=os.environ,
        now_ms=1000,
    )


def workspace_of(recorded: dict[str, object], store: Store, thread: ThreadId = THREAD) -> Workspace:
    workspace = Workspace.of({"workspace": recorded}, store, thread, environment=os.environ)
    assert workspace is not None
    return workspace


def made(repository: Path, store: Store) -> Workspace:
    workspace = workspace_of(look(repository), store)
    workspace.ensure(None, now_ms=2000)
    return workspace


def test_a_repository_without_submodules_records_none(tmp_path: Path) -> None:
    assert "submodules" not in look(make_repository(tmp_path / "r"))


def test_the_worktree_has_the_files_of_nested_submodules(store: Store, repository: Path) -> None:
    """All files are those of the checkout, no git directory comes with them, and the worktree's
    status is clean.
    """
    assert look(repository)["submodules"] == ["vendor/inner"]
    workspace = made(repository, store)
    assert contents(workspace.tree) == contents(repository)
    assert [path.name for path in workspace.tree.rglob(".git")] == [".git"]
    assert git(workspace.tree, "status", "--porcelain") == ""
    assert git(repository, "status", "--porcelain") == ""
    assert workspace.changed_paths(None) == frozenset()


def test_a_commit_of_the_branch_has_no_file_of_a_submodule(store: Store, repository: Path) -> None:
    """A role that commits everything commits its own files; the submodule's entry stays."""
    workspace = made(repository, store)
    before = git(workspace.tree, "rev-parse", "HEAD:vendor/inner")
    write(workspace.tree, {"add.py": "new\n", "vendor/inner/inner.py": "changed\n"})
    git(workspace.tree, "add", "--all")
    git(workspace.tree, "commit", "--quiet", "--all", "--message=fix")
    assert git(workspace.tree, "show", "--name-only", "--format=", "HEAD").split() == ["add.py"]
    assert git(workspace.tree, "rev-parse", "HEAD:vendor/inner") == before


def test_a_change_in_a_submodule_is_reported_and_kept(store: Store, repository: Path) -> None:
    """The snapshot has the changed, the new and the deleted file; restoring and forking bring
    exactly these back; the checkout keeps its own.
    """
    original = contents(repository)
    recorded = look(repository)
    workspace = workspace_of(recorded, store)
    workspace.ensure(None, now_ms=2000)
    write(workspace.tree, {"vendor/inner/inner.py": "changed\n", "vendor/inner/new.py": "new\n"})
    (workspace.tree / "vendor/inner/deep/deep.py").unlink()
    changed = (
        "vendor/inner/deep/deep.py",
        "vendor/inner/inner.py",
        "vendor/inner/new.py",
    )
    assert workspace.changed_in_submodules(None) == changed
    assert workspace.changed_paths(None) == frozenset(changed)
    snapshot = workspace.snapshot(1, None, now_ms=3000)
    assert workspace.changed_in_submodules(snapshot) == ()
    kept = contents(workspace.tree)
    write(workspace.tree, {"vendor/inner/inner.py": "lost\n", "vendor/inner/more.py": "lost\n"})
    workspace.restore(snapshot)
    assert contents(workspace.tree) == kept
    fork = workspace_of(forked(recorded, flow="fix", thread_id=FORK), store, FORK)
    fork.pin(snapshot)
    fork.ensure(snapshot, now_ms=4000)
    assert contents(fork.tree) == kept
    assert git(fork.tree, "status", "--porcelain") == ""
    workspace.restore(None)
    assert contents(workspace.tree) == original == contents(repository)


def test_an_uninitialised_submodule_stays_empty(
    store: Store, repository: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(repository), str(clone))
    workspace = made(clone, store)
    assert list((workspace.tree / "vendor/inner").iterdir()) == []
    assert git(workspace.tree, "status", "--porcelain") == ""
    assert workspace.changed_paths(None) == frozenset()


def test_local_changes_in_a_submodule_count_as_uncommitted(store: Store, repository: Path) -> None:
    """They are an error that names the submodule, or are started from on request."""
    write(repository, {"vendor/inner/inner.py": "local\n", "vendor/inner/untracked.py": "local\n"})
    with pytest.raises(UsageError, match=r"uncommitted changes \(vendor/inner\)"):
        look(repository)
    workspace = workspace_of(look(repository, include_changes=True), store)
    workspace.ensure(None, now_ms=2000)
    assert contents(workspace.tree) == contents(repository)


def test_a_strangers_submodule_settings_are_not_used(
    store: Store, repository: Path, tmp_path: Path
) -> None:
    """No address of `.gitmodules` is used, and its paths mean nothing; git refuses a command."""
    ran, outside = tmp_path / "ran", tmp_path / "outside"
    write(outside, {"secret.txt": "secret\n"})
    hostile = (
        f'[submodule "a"]\n\tpath = ../outside\n\turl = ext::sh -c "touch {ran}"\n'
        f'[submodule "vendor/inner"]\n\tpath = vendor/inner\n\turl = {outside}\n'
    )
    write(repository, {".gitmodules": hostile})
    git(repository, "commit", "--quiet", "--all", "--message=hostile")
    assert look(repository)["submodules"] == ["vendor/inner"]
    workspace = made(repository, store)
    workspace.restore(workspace.snapshot(1, None, now_ms=3000))
    assert contents(workspace.tree) == contents(repository)
    write(repository, {".gitmodules": f"{hostile}\tupdate = !touch {ran}\n"})
    git(repository, "update-index", "--assume-unchanged", ".gitmodules")
    with pytest.raises(
        WorkspaceError, match=r"invalid value for 'submodule\.vendor/inner\.update'"
    ):
        look(repository)
    assert not ran.exists()


def test_links_lead_no_copy_outside(store: Store, repository: Path, tmp_path: Path) -> None:
    """A link in a submodule is copied as a link; a submodule that is reached through a link, or
    has a path outside, is not copied.
    """
    outside = tmp_path / "outside"
    write(outside, {"inner/secret.txt": "secret\n"})
    recorded = look(repository)
    (repository / "vendor/inner/linked").symlink_to(outside)
    workspace = workspace_of(recorded, store)
    workspace.ensure(None, now_ms=2000)
    assert (workspace.tree / "vendor/inner/linked").is_symlink()
    (repository / "vendor").rename(repository / "kept")
    (repository / "vendor").symlink_to(outside)
    escaping = {**recorded, "submodules": ["vendor/inner", "../outside", str(outside), ".git"]}
    other = workspace_of(forked(escaping, flow="fix", thread_id=FORK), store, FORK)
    other.ensure(None, now_ms=3000)
    assert not list(other.tree.rglob("secret.txt"))
    assert not (other.tree.parent / "outside").exists()


def test_a_removed_thread_leaves_no_worktree(store: Store, repository: Path) -> None:
    """A worktree with submodules is removed like any other, and its branch with it."""
    workspace = made(repository, store)
    assert workspace.remove() is None
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "branch", "--list", workspace.branch) == ""
