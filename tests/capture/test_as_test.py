"""Threads as pytest files, replayed without a store."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from testbed.bundles import granted, place, place_script, script_of, source
from testbed.foreground import at_window, environment
from testbed.windows import window
from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_bundles.storage.store import HOME_VARIABLE
from uncaged_capture.as_test import MAX_BYTES, default_name, replay_past_run, write_test
from uncaged_engine.api import Engine
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.settings import keys

FLOW = source(
    "two-steps",
    """
    small = yield {"null": {"value": 1}}
    large = yield {"null": {"value": 2}}
    return {"success": True, "message": f"{small} {len(large)}"}
""",
)


def written(engine: Engine, target: Path, value: str = "x" * 50, *, force: bool = False) -> Path:
    """The directory of the test of a thread whose second answer is in a blob."""
    bundle = granted(engine.store, FLOW)
    spilled = BlobDirectory(engine.store.blobs).spill({"outcome": value})
    script = script_of(bundle).done(1, {"null": {"value": 1}}, outcome=1)
    script.intent(2, {"null": {"value": 2}}).step(2, **spilled)
    result = {"success": True, "message": f"1 {len(value)}"}
    placed = place_script(engine.store, bundle, script.end("completed", result=result))
    return write_test(engine, placed.thread, target, {}, force=force).directory


def replayed(target: Path) -> str:
    """The message of a replay with what the test file holds; empty if it is ok."""
    lines = target.read_text().splitlines()
    thread, bundle, digest = (
        next(line.split('"')[1] for line in lines if line.startswith(f"{name} = "))
        for name in ("THREAD", "BUNDLE", "DIGEST")
    )
    found = replay_past_run(target.with_suffix(""), thread=thread, bundle=bundle, digest=digest)
    return "" if found.ok else found.message


@pytest.mark.slow
def test_pytest_replays_it_elsewhere(engine: Engine, tmp_path: Path) -> None:
    """The file and its directory, moved, pass in another process without a store and a home."""
    written(engine, tmp_path / "test_first.py")
    target = tmp_path / default_name(engine, "latest")
    written(engine, target)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for path in (target, target.with_suffix("")):
        path.rename(moved / path.name)
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(
        argv, cwd=moved, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    assert "1 passed" in done.stdout


def test_a_changed_file_fails(engine: Engine, tmp_path: Path) -> None:
    """Another bundle, journal or blob, and a missing one, are named."""
    target = tmp_path / "test_run.py"
    directory = written(engine, target)
    assert replayed(target) == ""
    [blob] = directory.joinpath("blobs").iterdir()
    for path, words in (
        (directory / "bundle.py", "bundle.py is "),
        (directory / "journal.data.jsonl", "is not the journal that was exported"),
        (blob, "does not hold the bytes"),
    ):
        data = path.read_bytes()
        path.write_bytes(data + b"\n")
        assert words in replayed(target)
        path.unlink()
        assert path.name in replayed(target)
        path.write_bytes(data)
    assert replayed(target) == ""


def test_a_bundle_that_replays_otherwise_fails(engine: Engine, tmp_path: Path) -> None:
    """A journal that another code of the same flow wrote is not what this code yields."""
    target = tmp_path / "test_run.py"
    bundle = granted(engine.store, FLOW)
    script = script_of(bundle).done(1, {"null": {"value": 7}}).end("completed")
    placed = place_script(engine.store, bundle, script)
    write_test(engine, placed.thread, target, {}, force=False)
    assert 'step 1: the journal holds {"null":{"value":7}}' in replayed(target)


def test_an_existing_test_is_replaced_only_if_asked(engine: Engine, tmp_path: Path) -> None:
    """`force` replaces a past run, and no other directory."""
    target = tmp_path / "test_run.py"
    stale = written(engine, target) / "blobs" / "0"
    stale.touch()
    with pytest.raises(RefusedError, match="already exists"):
        written(engine, target)
    written(engine, target, force=True)
    assert not stale.exists()
    other = tmp_path / "test_other"
    other.mkdir()
    with pytest.raises(RefusedError, match="holds no past run"):
        written(engine, tmp_path / "test_other.py", force=True)


def test_a_failed_replacement_keeps_the_former_test(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is moved back if the new one cannot take its place."""
    target = tmp_path / "test_run.py"
    written(engine, target)
    rename = Path.rename

    def failing(self: Path, goal: Path) -> Path:
        if self.name == "new":
            raise OSError(errno.EIO, "no such luck")
        return rename(self, goal)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", failing)
        with pytest.raises(UsageError, match="test_run"):
            written(engine, target, "y" * 60, force=True)
    assert replayed(target) == ""
    assert sorted(path.name for path in tmp_path.glob("*test_run*")) == ["test_run", "test_run.py"]


@pytest.mark.slow
def test_a_kill_between_the_two_renames_loses_no_test(engine: Engine, tmp_path: Path) -> None:
    """The former directory is in the temporary one, which stays; the next export has its place."""
    target = tmp_path / "test_run.py"
    former = (written(engine, target) / "journal.data.jsonl").read_bytes()
    at = window("the former directory is in the temporary one, which stays")
    done = subprocess.run(
        [
            *(sys.executable, *at_window(at, "uncaged_cli")),
            *("export", "latest", str(target), "--as-test", "--force"),
        ],
        env={**environment(), HOME_VARIABLE: str(engine.store.root)},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == -9, done.stderr
    assert not target.with_suffix("").exists()
    [kept] = tmp_path.glob(".test_run-*/old/journal.data.jsonl")
    assert kept.read_bytes() == former
    written(engine, target, force=True)
    assert replayed(target) == ""


def test_a_secret_of_this_machine_is_refused(engine: Engine, tmp_path: Path) -> None:
    """A value in a blob, as JSON spells it, stops the export; its message has the name alone."""
    secret = 'hunter"22-ü'
    keys.put(engine.store.root / "keys", "SHOP_KEY", secret)
    with pytest.raises(RefusedError, match=r"secret:SHOP_KEY is in blobs/\w+; ") as found:
        written(Engine(engine.store), tmp_path / "test_run.py", f"it is {secret}")
    assert secret not in str(found.value)
    assert list(tmp_path.glob("test_*")) == []


def test_what_makes_no_test_is_refused(engine: Engine, tmp_path: Path) -> None:
    """Too large, not ended, trusted, or named so that pytest would not collect it."""
    with pytest.raises(RefusedError, match="at most"):
        written(engine, tmp_path / "test_run.py", "x" * MAX_BYTES)
    with pytest.raises(UsageError, match="no name of a test"):
        written(engine, tmp_path / "run.py")
    open_thread = place(engine.store, number=1).thread
    with pytest.raises(RefusedError, match="needs its end"):
        write_test(engine, open_thread, tmp_path / "test_run.py", {}, force=False)
    text = source("trusted", "\n    yield {'null': {}}\n", policy={"trusted": True, "null": {}})
    bundle = granted(engine.store, text)
    ended = place_script(engine.store, bundle, script_of(bundle, number=2).end("completed"))
    with pytest.raises(RefusedError, match="is trusted"):
        write_test(engine, ended.thread, tmp_path / "test_run.py", {}, force=False)
