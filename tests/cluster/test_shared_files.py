"""Threads of a shared store whose roles work on files: one worker is killed while an agent works,
another one with other directories finishes, and the person's repository gets the branch.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from testbed.bundles import source
from testbed.cluster_commands import Told, told, worker
from testbed.postgres import PostgresServer
from testbed.repositories import contents, git, make_repository
from testbed.roles import ROLE
from uncaged_agents.fetching import fetch_branch
from uncaged_bundles.errors import DamagedError, RefusedError, UsageError
from uncaged_bundles.ids import parse_thread_id
from uncaged_bundles.storage.store import Store
from uncaged_cli.entry import STORE_VARIABLE
from uncaged_cluster.store import open_store
from uncaged_engine.api import Engine
from uncaged_engine.shared_engine import shared_engine
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.threads.scratch import sweep

pytestmark = pytest.mark.slow

PATIENCE_S = 120
FLOW = """
    for name in ("planner", "coder", "committer"):
        yield {"role": {"name": name}}
    return {"success": True, "message": "mended"}
"""
PLAN = [{"files": {"plan.txt": "Add."}, "meta": {"status": "done"}}]
CODE = """
echo half > half.txt
if [ ! -e {directory}/go ]; then echo $$ > {directory}/new; mv {directory}/new {directory}/pid; exec sleep 600; fi
grep -q Add plan.txt && sed -i 's/a - b/a + b/' ../add.py && rm half.txt
printf '{{"status": "done"}}'
"""
COMMIT = """
git add --all && git -c user.name=A -c user.email=a@example.org commit -qm mended
printf '{"status": "done"}'
"""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A thread whose coder's worker was killed, and which another worker finished; its fork.

    before: files of the repository at the start. orphan: the killed agent's process. followed: the
    end of the command that followed it.
    """

    address: str
    directory: Path
    repository: Path
    before: dict[str, bytes]
    thread: str
    followed: Told
    fork: Told
    left: list[Path]


@pytest.fixture(scope="module")
def scene(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    directory = tmp_path_factory.mktemp("files")
    address = postgres.address(postgres.new_schema())
    repository = make_repository(directory / "repository")
    before = contents(repository)
    origin = Engine(Store.open(directory / "origin"))
    roles = dict.fromkeys(("planner", "coder", "committer"), ROLE)
    policy = {"role": {"workspace": "write"}}
    flow = source("mends", FLOW, kind="workflow", roles=roles, policy=policy)
    origin.add("mends", flow, accept=lambda _: True)
    with closing(open_store(address, create=True, is_visible=True)) as store:
        backend = DirectoryBackend(origin.store)
        copy_store(backend, store, replace=False, progress=lambda _kind, _count: None)
    script = directory / "plan.json"
    script.write_text(json.dumps({"planner": PLAN}))
    person = Store.open(directory / "person")
    agents = {
        "plans": {"use": "scripted", "file": str(script)},
        "codes": {"use": "command", "argv": ["sh", "-c", CODE.format(directory=directory)]},
        "commits": {"use": "command", "argv": ["sh", "-c", COMMIT]},
    }
    chosen = {"planner": "plans", "coder": "codes", "committer": "commits"}
    person.config_path.write_text(json.dumps({"agents": agents, "roles": chosen}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNCAGED_WORKFLOW_HOME", str(person.root))
        patch.setenv(STORE_VARIABLE, address)
        with worker(address, directory / "first") as first:
            started = told("run", "mends", "--workspace", str(repository / "lib"), "--detach")
            assert started.code == 0, started.err
            give_up_s = time.monotonic() + PATIENCE_S
            while not (directory / "pid").exists():
                assert time.monotonic() < give_up_s
                time.sleep(0.05)
            first.kill()
            first.wait()
        (directory / "go").touch()
        with worker(address, directory / "second"):
            followed = told("thread", started.out.strip(), "--follow", "--json")
            fork = told("fork", started.out.strip(), "--at", "1")
            left = list((directory / "second").rglob("repository.git"))
        yield Scene(
            address=address,
            directory=directory,
            repository=repository,
            before=before,
            thread=started.out.strip(),
            followed=followed,
            fork=fork,
            left=left,
        )


def branches(repository: Path) -> list[str]:
    return git(repository, "branch", "--format=%(refname:short)").split()


def test_another_worker_finishes_what_a_killed_one_began(scene: Scene) -> None:
    """The branch is in the repository with the coder's and the planner's files and without the half
    one of the killed attempt; nothing else changed there.
    """
    assert scene.followed.code == 0, scene.followed.err
    assert "has the branch uncaged/mends/" in scene.followed.err
    [branch] = [name for name in branches(scene.repository) if scene.thread[:14].lower() in name]
    files = git(scene.repository, "ls-tree", "-r", "--name-only", branch).split()
    assert files == ["add.py", "lib/deep.txt", "lib/plan.txt"]
    assert "a + b" in git(scene.repository, "show", f"{branch}:add.py")
    assert git(scene.repository, "rev-parse", f"{branch}^") == git(
        scene.repository, "rev-parse", "main"
    )
    assert contents(scene.repository) == scene.before
    refs = git(scene.repository, "for-each-ref", "--format=%(refname)").split()
    assert len(refs) == 3 and not any(ref.startswith("refs/uncaged") for ref in refs)
    git(scene.repository, "fsck", "--strict")
    records = told("thread", scene.thread, "--json").document["records"]
    assert [one["seq"] for one in records if one.get("attempt") == 2] == [2]
    assert told("verify", scene.thread).code == 0


def test_a_fork_begins_with_the_files_of_its_last_step(scene: Scene) -> None:
    """The worker has never seen its source: the planner's file comes from the store."""
    assert scene.fork.code == 0, scene.fork.err
    both = [name for name in branches(scene.repository) if name.startswith("uncaged/")]
    trees = {git(scene.repository, "rev-parse", f"{name}^{{tree}}") for name in both}
    assert (len(both), len(trees)) == (2, 1)


def test_a_worker_keeps_no_files_of_a_thread(scene: Scene) -> None:
    """Once it has left the thread. What a killed one left goes with the next in its directory, and
    so does its agent.
    """
    assert scene.left == []
    first = Store.open(scene.directory / "first")
    assert list(first.root.rglob("repository.git"))
    sweep(first)
    assert not list(first.root.rglob("repository.git"))
    pid = (scene.directory / "pid").read_text().strip()
    state = Path(f"/proc/{pid}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_the_files_are_looked_at_from_any_machine(scene: Scene) -> None:
    """No worktree is there, only the store."""
    whole = told("thread", "diff", scene.thread, "--json").document
    assert sorted(file["path"] for file in whole["files"]) == ["add.py", "lib/plan.txt"]
    step = told("thread", "diff", scene.thread, "1", "--json").document
    assert [file["path"] for file in step["files"]] == ["lib/plan.txt"]


def test_a_branch_is_fetched_into_a_clone(scene: Scene) -> None:
    """It is moved along the thread's own commits, and never from where a person put it."""
    clone = scene.directory / "clone"
    git(scene.directory, "clone", "--quiet", "--single-branch", str(scene.repository), str(clone))
    words = ("thread", "fetch", scene.thread, "--workspace", str(clone))
    fetched = told(*words, "--json").document
    assert (fetched["changed"], fetched["repository"]) == (True, str(clone))
    branch = fetched["branch"]
    assert git(clone, "rev-parse", branch).strip() == fetched["commit"]
    assert told(*words, "--json").document == {**fetched, "changed": False}

    git(clone, "branch", "--force", branch, "main")  # where the thread was before its commit
    assert told(*words, "--json").document == fetched
    git(clone, "commit", "--quiet", "--allow-empty", "--message=a person's")
    git(clone, "branch", "--force", branch, "main")
    moved = told(*words)
    assert moved.code == RefusedError.exit_code and "rename it" in moved.err
    git(clone, "branch", "--force", branch, fetched["commit"] + "^")
    git(clone, "switch", "--quiet", branch)
    used = told(*words)
    assert used.code == RefusedError.exit_code and "is checked out" in used.err
    assert git(clone, "rev-parse", branch).strip() != fetched["commit"]


def test_a_branch_is_merged_into_a_clone(scene: Scene) -> None:
    """It is fetched first; a merge that git refuses leaves the checkout as it was."""
    clone = scene.directory / "merging"
    git(scene.directory, "clone", "--quiet", "--single-branch", str(scene.repository), str(clone))
    words = ("thread", "merge", scene.thread, "--workspace", str(clone), "--yes")
    (clone / "add.py").write_text("a person's\n")
    refused = told(*words)
    assert refused.code == RefusedError.exit_code and "did not merge" in refused.err
    assert (clone / "add.py").read_text() == "a person's\n"
    git(clone, "checkout", "--quiet", "add.py")
    merged = told(*words, "--json").document
    assert (merged["into"], merged["changed"]) == ("main", True)
    assert "a + b" in (clone / "add.py").read_text()
    assert told(*words, "--json").document["changed"] is False


def test_a_forged_record_moves_no_branch_of_a_person(scene: Scene) -> None:
    """A start record that names `main` as the thread's own. Who only reads it copies no pack."""
    clone = scene.directory / "forged"
    git(scene.directory, "clone", "--quiet", str(scene.repository), str(clone))
    home = Store.open(scene.directory / "person")
    with shared_engine(scene.address, home, is_visible=True, report=lambda _reason: None) as engine:
        view = engine.thread(parse_thread_id(scene.thread))
        assert not (engine.store.blobs / view.start["workspace"]["gitPack"]).exists()
        start = {**view.start, "workspace": {**view.start["workspace"], "branch": "main"}}
        with pytest.raises(DamagedError, match="names the branch 'main', which is another's"):
            fetch_branch(engine.store, replace(view, start=start), clone, os.environ)
    assert git(clone, "rev-parse", "main") == git(scene.repository, "rev-parse", "main")


def test_a_branch_is_not_fetched_where_its_commits_do_not_fit(scene: Scene) -> None:
    """A repository without the commit from which the thread started gets nothing."""
    other = make_repository(scene.directory / "other", {"x": "y"})
    refused = told("thread", "fetch", scene.thread, "--workspace", str(other))
    assert refused.code == RefusedError.exit_code and "lacks commit" in refused.err
    assert branches(other) == ["main"]
    shallow = scene.directory / "shallow"
    origin = scene.repository.as_uri()
    git(scene.directory, "clone", "--quiet", "--depth=1", origin, str(shallow))
    assert told("thread", "fetch", scene.thread, "--workspace", str(shallow)).code == 0
    outside = told("thread", "fetch", scene.thread, "--workspace", str(scene.directory))
    assert outside.code == UsageError.exit_code
