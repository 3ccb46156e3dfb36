"""Closed files and directories under both mechanisms: files that only root may read and the
engine's store stay closed; a closed directory opens if it is granted.
"""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from pathlib import Path

import pytest
from testbed.cells import MECHANISMS
from testbed.processes import end_workers
from testbed.scripting import Perform, harness_for, told
from testbed.steering import finish
from testbed.users import as_user
from uncaged_bundles.errors import EnvironmentLacks, SandboxUnavailable
from uncaged_bundles.storage.store import Store
from uncaged_effects.script import ScriptHandler
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.door.outcomes import Outcome
from uncaged_engine.sandbox import closed
from uncaged_engine.sandbox.bounds import ScriptView
from uncaged_engine.sandbox.closed import allows, shown_by_rights
from uncaged_engine.sandbox.script import ScratchUser
from uncaged_templates.recipes import flows

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what only root can read")


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that is closed to others, as root's is, with the engine's store in it."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / "open").mkdir()
    for name, mode in (
        ("notes", 0o644),
        ("closed", 0o600),
        (".ssh/key", 0o644),
        ("open/notes", 0o644),
        ("open/closed", 0o600),
    ):
        (home / name).write_text(f"words in {name}\n")
        (home / name).chmod(mode)
    (home / "link").symlink_to("/etc/hostname")
    (home / ".ssh").chmod(0o700)
    home.chmod(0o700)
    Store.open(home / "store").config_path.write_text("words in the store\n")
    return home


def perform(home: Path, mechanism: str, body: str, policy: dict[str, object]) -> Outcome:
    harness = harness_for(
        Store(root=home / "store"), mechanism, {"executables": ["cat", "ls"], **policy}
    )
    return ScriptHandler().perform(
        {"language": "bash", "body": body}, harness.context(1, directory=home)
    )


@pytest.mark.slow
@as_root
def test_a_script_of_roots_reads_what_modes_let_others_read(home: Path, mechanism: str) -> None:
    """A closed directory that is granted opens and is listed; files and directories in it that only
    root may read stay closed.
    """
    policy: dict[str, object] = {"read": [str(home)]}
    listing = told(
        perform(home, mechanism, f"ls -A {home}; cat {home}/notes {home}/open/notes; pwd", policy)
    )
    assert listing["stdout"].split("\n") == [
        *(".ssh", "closed", "link", "notes", "open", "store"),
        *("words in notes", "words in open/notes", str(home), ""),
    ]
    for name in ("closed", ".ssh/key", "open/closed", "store/config.yaml"):
        found = told(perform(home, mechanism, f"cat {home}/{name}", policy))
        assert (found["success"], found["stdout"]) == (False, ""), name


@pytest.mark.slow
@as_root
def test_a_file_that_only_root_may_read_stays_closed(home: Path, mechanism: str) -> None:
    """A granted file, too, is read as its own mode lets others: by the script's user, not by
    root.
    """
    policy: dict[str, object] = {"read": [str(home / "closed"), str(home / "notes")]}
    assert (
        told(perform(home, mechanism, f"cat {home}/notes", policy))["stdout"] == "words in notes\n"
    )
    assert told(perform(home, mechanism, f"cat {home}/closed", policy))["stdout"] == ""


@pytest.mark.slow
def test_a_script_does_not_see_the_store(home: Path, mechanism: str) -> None:
    """A granted directory around the store is used without it, and where it cannot be hidden
    nothing is written around it.
    """
    home.chmod(0o755)
    policy: dict[str, object] = {"read": [str(home)]}
    found = told(
        perform(home, mechanism, f"cat {home}/notes; cat {home}/store/config.yaml", policy)
    )
    assert (found["stdout"], found["success"]) == ("words in notes\n", False)
    writing: dict[str, object] = {"write": [str(home)]}
    body = f"echo new > {home}/new; cat {home}/store/config.yaml; echo x > {home}/store/evil"
    if mechanism == "landlock":
        with pytest.raises(EnvironmentLacks, match="the engine's store"):
            perform(home, mechanism, body, writing)
    else:
        found = told(perform(home, mechanism, body, writing))
        assert (found["stdout"], (home / "new").read_text()) == ("", "new\n")
    assert (home / "store" / "config.yaml").stat().st_uid == os.geteuid()
    assert not (home / "store" / "evil").exists()


@pytest.mark.slow
def test_list_files_works_in_a_home(home: Path) -> None:
    """The first command of a person in a container, `list-files` in a closed home with the store in
    it, lists the files.
    """
    (home / "store" / "config.yaml").unlink()
    engine = Engine(Store(root=home / "store"))
    engine.add(
        "list-files",
        {name: source for name, source, _ in flows()}["list-files"],
        accept=lambda _: True,
        origin="sample",
    )
    result = finish(engine, engine.run("list-files", prompt="", options=RunOptions(directory=home)))
    assert end_workers(engine.store.root) == []
    assert result["success"], result
    assert {"notes", "closed", "link", "open/"} <= {
        line.split()[-1] for line in result["message"].splitlines()
    }


@pytest.mark.slow
def test_a_granted_account_file_is_the_machines_own(perform_granted: Perform) -> None:
    """A script that may read /etc/passwd reads the real one; any other sees one account, its
    own.
    """
    granted = told(
        perform_granted("cat /etc/passwd", {"executables": ["cat"], "read": ["/etc/passwd"]})
    )
    assert granted["stdout"] == Path("/etc/passwd").read_text()


@pytest.mark.slow
@as_root
def test_git_works_in_a_granted_repository(perform_granted: Perform, tmp_path: Path) -> None:
    """The script's user need not own a repository that was granted; git itself says how many
    commits it has.
    """
    repository = tmp_path / "repository"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    git = ["git", "-C", str(repository), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "-q", str(repository)], check=True, env=environment)
    subprocess.run(
        [*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True, env=environment
    )
    policy = {"executables": ["git"], "read": [str(repository)]}
    found = told(perform_granted(f"git -C {repository} rev-list --count HEAD", policy))
    assert (found["stdout"], found["stderr"]) == ("1\n", "")


@pytest.fixture
def perform_granted(store: Store, mechanism: str, tmp_path: Path) -> Perform:
    tmp_path.chmod(0o755)

    def run(body: str, policy: dict[str, object]) -> Outcome:
        harness = harness_for(store, mechanism, policy)
        return ScriptHandler().perform(
            {"language": "bash", "body": body}, harness.context(1, directory=tmp_path)
        )

    return run


def test_modes_are_read_for_a_user(tmp_path: Path) -> None:
    """Owner, group and others have their own bits; the first that fits decides."""
    (tmp_path / "file").write_text("")
    (tmp_path / "file").chmod(0o241)
    status = (tmp_path / "file").stat()
    owner, group = status.st_uid, status.st_gid
    users = [
        ScratchUser(uid=owner, gid=0),
        ScratchUser(uid=owner + 1, gid=group),
        ScratchUser(uid=owner + 1, gid=group + 1),
    ]
    assert [[allows(status, user, bit) for bit in (4, 2, 1)] for user in users] == [
        [False, True, False],
        [True, False, False],
        [False, False, True],
    ]
    assert stat.S_IMODE(status.st_mode) == 0o241


def test_a_tree_too_large_to_look_through_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A closed directory with too many files is no silent gap: the message says what to do."""
    monkeypatch.setattr(closed, "MOST_WALKED", 2)
    for number in range(4):
        (tmp_path / str(number)).write_text("")
    view = ScriptView(read=(tmp_path,), write=(), execute=(), links=())
    with pytest.raises(SandboxUnavailable, match="too large to be looked through"):
        shown_by_rights(view, (tmp_path,), ScratchUser(uid=64001, gid=64001), {})


OWNERS = """
import json, sys
from pathlib import Path
from uncaged_engine.sandbox.mechanism import choose
from uncaged_engine.sandbox.script import ScriptBounds, run_script
bounds = ScriptBounds(read=(Path("/proc"),), executables=(Path("/bin/sh"), Path("/usr/bin/ps")))
mechanism = choose(sys.argv[1], scripts=True, owners=True)
done = run_script(["/bin/sh", "-c", "ps -o user:12= -p 1; ps -o user:12= -p $PARENT"], bounds, mechanism=mechanism, cwd=None,
                  environment={"PATH": "/usr/bin:/bin", "PARENT": str(__import__("os").getpid())})
print(json.dumps([mechanism.name, *done.stdout.decode().split(), done.stderr.decode()]))
"""


@pytest.mark.slow
@as_root
@pytest.mark.needs("landlock")
@pytest.mark.needs("bubblewrap")
def test_an_ordinary_user_sees_whose_processes_run() -> None:
    """Owners have their names where the mechanism is free to choose; under bubblewrap the others
    are one `other-user`, never the system's user without rights.
    """
    owner = pwd.getpwuid(Path("/proc/1").stat().st_uid).pw_name
    assert as_user(OWNERS, "auto", uid=65533) == ["landlock", owner, "65533", ""]
    assert as_user(OWNERS, "bubblewrap", uid=65533) == ["bubblewrap", "other-user", "script", ""]


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
def test_a_script_moves_no_directory_around_the_store(home: Path) -> None:
    """A directory on the way to the store keeps its name, so that the store stays covered for the
    scripts that follow.
    """
    home.chmod(0o755)
    store = home / "a" / "b" / "store"
    store.parent.mkdir(parents=True)
    (home / "store").rename(store)
    policy: dict[str, object] = {
        "write": [str(home)],
        "executables": ["cat", "mv"],
        "tolerate": True,
    }
    body = f"mv {home}/a/b {home}/a/c; mv {home}/a {home}/d; cat {home}/d/b/store/config.yaml; mv {home}/open {home}/opened"
    harness = harness_for(Store(root=store), "bubblewrap", policy)
    found = told(
        ScriptHandler().perform(
            {"language": "bash", "body": body}, harness.context(1, directory=home)
        )
    )
    assert found["stderr"].count("Device or resource busy") == 2, found
    assert ((store / "config.yaml").read_text(), found["stdout"]) == ("words in the store\n", "")
    assert (home / "opened" / "notes").exists()
