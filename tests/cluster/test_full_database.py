"""A database whose disk is full while threads run: workers wait, and go on once there is space."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from psycopg import errors, sql
from testbed.cluster_scene import CALLS, ClusterScene, cluster_scene
from testbed.postgres import UNPRIVILEGED_ID, PostgresServer
from uncaged_engine.services.stores import StoreLacks

DISK_BYTES = 40 << 20

pytestmark = [pytest.mark.slow, pytest.mark.needs("postgres")]


@dataclass(frozen=True, kw_only=True)
class SmallDisk:
    """A mounted disk that the server's user owns."""

    directory: Path

    def database_on(self, server: PostgresServer) -> str:
        """Make a database on the disk; return its name."""
        with server.connect() as rows:
            rows.execute(sql.SQL("CREATE TABLESPACE small LOCATION {}").format(str(self.directory)))
            rows.execute("CREATE DATABASE small TABLESPACE small")
        return "small"

    def fill(self, server: PostgresServer) -> None:
        """Take all the room there is."""
        with pytest.raises(errors.DiskFull):
            self._write(server, DISK_BYTES)

    def free(self, server: PostgresServer) -> None:
        self._write(server, 0)

    def _write(self, server: PostgresServer, count: int) -> None:
        filler = str(self.directory / "filler")
        copy = sql.SQL("COPY (SELECT repeat('x', 4096) FROM generate_series(1, {})) TO {}").format(
            count // 4096, filler
        )
        with server.connect() as rows:
            rows.execute(copy)


@pytest.fixture(scope="module")
def disk() -> Iterator[SmallDisk]:
    directory = Path(tempfile.mkdtemp(prefix="pg-disk-", dir="/tmp"))  # open to the server's user
    owner = f"uid={UNPRIVILEGED_ID},gid={UNPRIVILEGED_ID},mode=700,size={DISK_BYTES}"
    words = ["mount", "-t", "tmpfs", "-o", owner, "tmpfs", str(directory)]
    directory.chmod(0o755)
    try:
        if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
            pytest.skip("only root, and not in every container, can mount a small disk")
        yield SmallDisk(directory=directory)
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
    finally:
        directory.rmdir()


@pytest.fixture(scope="module")
def scene(disk: SmallDisk, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterScene]:
    directory = tmp_path_factory.mktemp("full")
    with cluster_scene(directory, database_of=disk.database_on) as found:
        yield found


def test_threads_wait_while_the_database_has_no_space(scene: ClusterScene, disk: SmallDisk) -> None:
    """Two workers say so, and perform no further effect; readers read, and a new thread is refused
    with the reason. With space again all end by themselves, and nothing was performed twice. Some
    eight seconds.
    """
    gate = scene.gate
    gate.close(held=CALLS // 2)
    names = ("one", "two")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(scene.worker(name, scene.at_socket()))
        threads = scene.start(4)
        gate.wait_for(4 * (CALLS // 2 + 1))
        disk.fill(scene.server)
        # what is free in the pages of the tables is used up, too
        with scene.rows() as rows, pytest.raises(errors.DiskFull):
            rows.execute(
                "INSERT INTO thread_lines (log, position, line)"
                " SELECT 1, 1000000 + n, '' FROM generate_series(1, 1000000) AS n"
            )
        gate.is_open.set()
        scene.wait_until(lambda: any("disk is full" in scene.log(name) for name in names), *names)
        assert all(scene.engine.thread(one).summary.status == "running" for one in threads)
        with pytest.raises(StoreLacks, match="the database's disk is full"):
            scene.start(100)
        disk.free(scene.server)
        scene.wait_for_ends(threads)
        assert not any("lost" in scene.events(name) for name in names)
        assert len(gate.seen) == len(set(gate.seen)) == len(threads) * CALLS
