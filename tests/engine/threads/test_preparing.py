"""Preparations of threads: what a fork gets of its own, and what removal may not pass over."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from testbed.bundles import granted, place_script, script_of, source
from testbed.foreground import environment
from testbed.journals import NOW_MS
from testbed.repositories import git, make_repository, write
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
OTHER = "    yield {'null': {'value': 2}}\n"
VATS = """
from uncaged_engine.door.preparing import Preparation


class Vat(Preparation):
    def prepare_fork(self, thread, source):
        return {"vat": f"of {thread.thread_id}"}

    def secure(self, thread, fields, steps):
        print(f"secured:{fields['threadId']}")
"""


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
    """A removed fork leaves its source's branch alone, and its files cannot be collected."""
    fork = NewThread(
        thread_id=FORK,
        flow="silent",
        bundle=granted(store, SILENT),
        store=store,
        config=Config(),
        options=RunOptions(),
        now_ms=NOW_MS,
    )
    forked = {**start, **preparing.prepare_fork(fork, start, other_version=True)}
    preparing.secure_fork(fork, forked, (), other_version=True)
    workspace = Workspace.of(forked, store, FORK, environment={})
    assert workspace is not None
    assert workspace.branch != "uncaged/silent/source"
    refs = git(workspace.repository, "for-each-ref", "--format=%(refname)")
    assert f"refs/uncaged/{FORK}\n" in refs
    preparing.forget(store, FORK, forked, {})
    left = git(workspace.repository, "for-each-ref", "--format=%(refname)").splitlines()
    assert left == ["refs/heads/main", "refs/heads/uncaged/silent/source"]


def forked_by(
    python: Sequence[str], store: Store, thread: str, target: str
) -> tuple[dict[str, object], list[str]]:
    """Fork a thread onto another version in a process with further packages; return the fork's
    start record, and what the process printed.
    """
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from uncaged_engine.api import Cut, Engine\n"
        "from uncaged_bundles.storage.store import Store\n"
        "engine = Engine(Store.open(Path(sys.argv[1])))\n"
        "print(engine.fork(sys.argv[2], cut=Cut(at=0), on=sys.argv[3], start=False))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(store.root), thread, target],
        env={**environment(), "PYTHONPATH": os.pathsep.join(python)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    *printed, fork = done.stdout.split()
    return dict(Engine(store).thread(fork).start), printed


@pytest.mark.slow
def test_a_fork_onto_a_version_without_a_kind_asks_the_preparation_of_another_package(
    store: Store, tmp_path: Path
) -> None:
    """A preparation of another distribution gives the fork fields of its own, whose source had them
    from a version that named the kind; a fork of that fork asks it again, a broken package is
    passed over, and within one version no other package is loaded.
    """
    packages = tmp_path / "packages"
    write(
        packages,
        {
            "vats.py": VATS,
            "vats-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: vats\nVersion: 1\n",
            "vats-1.dist-info/entry_points.txt": "[uncaged_workflow.preparations]\nvat = vats:Vat\n",
            "broken-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: broken\nVersion: 1\n",
            "broken-1.dist-info/entry_points.txt": "[uncaged_workflow.preparations]\ntub = none:Tub\n",
        },
    )
    first, second = granted(store, SILENT), granted(store, source("silent", OTHER, continues=True))
    script = script_of(first, vat="of the source").done(1).end("killed")
    placed = place_script(store, first, script)
    within, printed = forked_by([str(packages)], store, placed.thread, first.hash)
    assert (within["vat"], printed) == ("of the source", []), "the control"
    fork, printed = forked_by([str(packages)], store, placed.thread, second.hash)
    assert (fork["vat"], printed) == (f"of {fork['threadId']}", [f"secured:{fork['threadId']}"])
    again, _ = forked_by([str(packages)], store, str(fork["threadId"]), second.hash)
    assert again["vat"] == f"of {again['threadId']}"


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
