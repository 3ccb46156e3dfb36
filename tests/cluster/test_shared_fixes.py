"""Fixes of failed threads of a shared store: proved on a worker, decided about from any machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from testbed.cluster_commands import told, worker
from testbed.foreground import environment
from testbed.postgres import PostgresServer
from uncaged_cli.entry import STORE_VARIABLE

pytestmark = pytest.mark.slow

PATIENCE_S = 120


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A store, and two people with directories of their own. place: files of the flows."""

    address: str
    directory: Path
    place: Path
    patch: pytest.MonkeyPatch

    def at(self, machine: str) -> None:
        """Let the next commands be those of a machine."""
        self.patch.setenv("UNCAGED_WORKFLOW_HOME", str(self.directory / machine))

    def add(self, name: str, body: str, **more: object) -> None:
        """Add a flow that reads a file which moved."""
        recipe = {
            "actionName": name,
            "description": "Print the numbers.",
            "script": {"language": "bash", "body": body.format(place=self.place)},
            "policy": {"script": {"executables": ["cat", "sleep"], "read": [str(self.place)]}},
            **more,
        }
        file = self.directory / f"{name}.json"
        file.write_text(json.dumps(recipe))
        added = told("add", name, str(file), "--accept")
        assert added.code == 0, added.err


@contextmanager
def opened(postgres: PostgresServer, directory: Path) -> Iterator[Scene]:
    place = directory / "numbers"
    place.mkdir()
    (place / "numbers-2.txt").write_text("7\n")
    address = postgres.address(postgres.new_schema())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STORE_VARIABLE, address)
        patch.chdir(directory)
        scene = Scene(address=address, directory=directory, place=place, patch=patch)
        scene.at("first")
        yield scene


@pytest.fixture(scope="module")
def scene(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A store with a worker."""
    with opened(postgres, tmp_path_factory.mktemp("fixes")) as found:
        found.add("numbers", "cat {place}/numbers.txt\n")
        with worker(found.address, found.directory / "worker"):
            yield found


def test_a_failed_thread_is_fixed_from_another_machine(scene: Scene) -> None:
    """The version is proved on a worker, accepted on the first machine, and finishes the thread."""
    failed = told("run", "numbers")
    assert (failed.code, "fix 01" in failed.err) == (3, True), failed.err
    scene.at("second")
    done = told("fix", "latest", "--json")
    assert done.code == 0, done.err
    found = done.document
    assert found["evidence"]["trial"] == "success: 7" and "ignored" not in found["evidence"]
    assert not list((scene.directory / "second" / "fixing").iterdir())
    scene.at("first")
    again = told("fix", found["threadId"][:12])
    assert f"proposal accept {found['proposalId']}" in again.err, "it is proposed once"
    assert told("proposal", "accept", found["proposalId"]).code == 0
    finished = told(*found["finish"].split()[1:])
    assert (finished.code, "7" in finished.out) == (0, True), finished.err
    assert told("verify", found["fixThreadId"]).code == 0
    refused = told("fix", found["threadId"])
    assert (refused.code, "by now" in refused.err) == (1, True)


def test_a_flow_of_a_shared_store_fixes_itself_if_it_says_so(scene: Scene) -> None:
    """The command that follows its thread ends in a proposal."""
    scene.add("selfish", "cat {place}/numbers.txt\n", onFailure="fix")
    failed = told("run", "selfish")
    assert failed.code == 3
    assert "numbers-2.txt" in failed.out and "proposal accept" in failed.err


def test_a_fix_whose_worker_dies_in_its_proof_is_finished_by_another(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """The proof is made again, of the files that the last step left."""
    with opened(postgres, tmp_path) as scene:
        body = "while [ -e {place}/hold ]; do sleep 0.1; done\ncat {place}/numbers.txt\n"
        scene.add("numbers", body)
        with worker(scene.address, tmp_path / "dies") as dies:
            assert told("run", "numbers").code == 3
            (scene.place / "hold").touch()
            words = [sys.executable, "-m", "uncaged_cli", "fix", "latest", "--json"]
            home = {"UNCAGED_WORKFLOW_HOME": str(tmp_path / "first")}
            variables = {**environment(), **home, STORE_VARIABLE: scene.address}
            fixing = subprocess.Popen(words, env=variables, stdout=subprocess.PIPE, text=True)
            with fixing:
                give_up_s = time.monotonic() + PATIENCE_S
                while not is_proving():
                    assert time.monotonic() < give_up_s
                    time.sleep(0.1)
                dies.kill()
                dies.wait()
                (scene.place / "hold").unlink()
                with worker(scene.address, tmp_path / "finishes"):
                    out, _ = fixing.communicate(timeout=PATIENCE_S)
        assert fixing.returncode == 0, out
        assert json.loads(out)["evidence"]["trial"] == "success: 7"
        assert told("verify", json.loads(out)["fixThreadId"]).code == 0


def is_proving() -> bool:
    """Tell whether the newest thread is a fix whose version is being proved."""
    found = told("thread", "latest", "--json").document
    return any("prove" in one.get("intent", ()) for one in found["records"])
