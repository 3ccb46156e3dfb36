"""Every test has a store of its own: none sees the real home directory, and none leaves a process
behind.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from testbed.forked_commands import ForkedCommands, forked_commands
from testbed.postgres import PostgresServer, postgres_server
from testbed.processes import end_workers, workers_of
from testbed.requirements import NAMES, need
from testbed.restate import RestateServer, restate_server
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine

# as many examples as a quick suite can afford, no deadlines; the same ones in each run, so that a
# failure has its cause in what changed
settings.register_profile(
    "quick",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
settings.register_profile(
    "search", settings.get_profile("quick"), max_examples=3000, derandomize=False
)
settings.load_profile("quick")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test needs what its marks name, and each sandbox that is one of its parameters."""
    parameters = (
        item.callspec.params.values()
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else ()
    )
    marked = (name for mark in item.iter_markers("needs") for name in mark.args)
    need([*marked, *(value for value in parameters if isinstance(value, str) and value in NAMES)])


@pytest.fixture(scope="session", autouse=True)
def _no_real_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The home directory and the default store are empty temporary ones, for this process and all
    that it starts.
    """
    home = tmp_path_factory.mktemp("home")
    runtime = tmp_path_factory.mktemp("runtime")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("UNCAGED_WORKFLOW_HOME", str(home / "store"))
        # agents of other test processes must not take places from ours
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
            patch.delenv(name, raising=False)
        yield
    assert not (home / ".uncaged").exists(), (
        "something used ~/.uncaged although UNCAGED_WORKFLOW_HOME is set"
    )


@pytest.fixture(scope="session", autouse=True)
def _interrupts_reach_children() -> None:
    """A job in the background ignores Ctrl-C, and its children would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _no_worker_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    yield
    left = [process.pid for process in workers_of(tmp_path_factory.getbasetemp())]
    assert left == [] or end_workers(tmp_path_factory.getbasetemp()) == [], (
        f"workers {left} could not be ended"
    )


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for this process's tests; each takes a schema of its own."""
    need(["postgres"])
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def restate() -> Iterator[RestateServer]:
    """A Restate server for this process's tests; each store has a name of its own there."""
    need(["restate"])
    with restate_server() as server:
        yield server


@pytest.fixture(scope="session")
def forked() -> Iterator[ForkedCommands]:
    """The command without the time that its imports take."""
    with TemporaryDirectory() as directory, forked_commands(Path(directory)) as found:
        yield found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store; the workers that were started for it are ended after the test."""
    root = tmp_path / "store"
    yield Store.open(root)
    _end(root)


@pytest.fixture
def full_store(tmp_path: Path, shipped_files: Path) -> Iterator[Store]:
    """A store with the shipped flows, as the first command makes it; ended like the other."""
    root = tmp_path / "store"
    shutil.copytree(shipped_files, root)
    yield Store.open(root)
    _end(root)


@pytest.fixture(scope="session")
def shipped_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a store with the shipped flows, for copies: to build them takes a second."""
    root = tmp_path_factory.mktemp("shipped") / "store"
    Engine.open(root)
    return root


def _end(root: Path) -> None:
    if any((root / "run").glob("*.lock")):  # a worker was there
        assert end_workers(root) == []


@pytest.fixture
def engine(store: Store) -> Engine:
    """The engine on that store, without the shipped flows."""
    return Engine(store)
