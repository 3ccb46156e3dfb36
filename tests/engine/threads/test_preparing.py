"""Preparations of threads: what a fork gets of its own, and what removal may not pass over."""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.bundles import granted, script_of, source
from testbed.journals import NOW_MS
from testbed.repositories import git, make_repository
from uncaged_agents.workspace import Workspace
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.door.preparing import NewThread, RunOptions
from uncaged_engine.settings.config import Config
from uncaged_engine.threads import preparing

SOURCE = ThreadId("01HX5WBE000000000000000000")
FORK = ThreadId("01HX5WBE100000000000000001")
SILENT = source("silent", "    yield {'null': {}}\n", continues=True)


@pytest.fixture
def start(tmp_path: Path) -> dict[str, object]:
    """Fields of a thread that worked in a repository, on a branch that is there."""
    repository = make_repository(tmp_path / "repository")
    git(repository, "branch", "uncaged/silent/source")
    workspace = {
        "repository": str(repository),
        "subdirectory": "",
        "base": git(repository, "rev-parse", "HEAD").strip(),
        "branch": "uncaged/silent/source",
        "links": [],
    }
    return {"threadId": SOURCE, "workspace": workspace, "agents": {}}


def test_a_fork_onto_a_version_without_roles_has_a_branch_of_its_own(
    store: Store, start: dict[str, object]
) -> None:
    """Its removal leaves the branch of its source alone, and its files cannot be collected."""
    fork = NewThread(
        thread_id=FORK,
        flow="silent",
        bundle=granted(store, SILENT),
        store=store,
        config=Config(),
        options=RunOptions(),
        now_ms=NOW_MS,
    )
    forked = {**start, **preparing.prepare_fork(fork, start)}
    preparing.secure_fork(fork, forked, ())
    workspace = Workspace.of(forked, store, FORK, environment={})
    assert workspace is not None
    assert workspace.branch != "uncaged/silent/source"
    refs = git(workspace.repository, "for-each-ref", "--format=%(refname)")
    assert f"refs/uncaged/{FORK}\n" in refs
    preparing.forget(store, FORK, forked, {})
    left = git(workspace.repository, "for-each-ref", "--format=%(refname)").splitlines()
    assert left == ["refs/heads/main", "refs/heads/uncaged/silent/source"]


def test_a_thread_whose_workspace_cannot_be_removed_stays(
    store: Store, start: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without git the worktree and its refs would be left behind; the journal stays with them."""
    script = script_of(granted(store, SILENT), workspace=start["workspace"])
    path = store.data_path(granted(store, SILENT).hash, script.thread)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(script.data)
    monkeypatch.setenv("PATH", str(store.root))
    with pytest.raises(EnvironmentLacks, match="git"):
        Engine(store).remove_thread(script.thread)
    assert path.read_bytes() == script.data
    monkeypatch.undo()
    Engine(store).remove_thread(script.thread)
    assert not path.exists()
