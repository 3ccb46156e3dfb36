"""Real processes that change one registry at the same time, some of them killed in the middle."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store

FORKED = """
import contextlib, os, signal, sys
from pathlib import Path
import yaml
from uncaged_bundles.storage import document, draft, registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle

root, count, way = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if way == "unlocked":
    registry.changing = lambda *_a, **_k: contextlib.nullcontext()
store = Store.open(root)
head, tail = os.pipe()
acks, ack = os.pipe()
children = []
for number in range(count):
    child = os.fork()
    if child == 0:
        os.close(tail)
        os.close(acks)
        os.read(head, 1)  # until all are there
        descriptor = {"contract": 1, "name": "demo", "description": str(number), "kind": "task", "policy": {"null": {}}}
        bundle = read_bundle((f"descriptor = {descriptor!r}\\n" + "def run(input, options):\\n    yield {'null': {}}\\n").encode())
        registry.Registry(store).add(f"flow-{number}", bundle, now_ms=number, granted=True)
        os.write(1, f"flow-{number}\\n".encode())
        os.write(ack, bytes([number]))
        os._exit(0)
    children.append(child)
os.close(head)
os.close(ack)
os.close(tail)
done, victims = set(), set(range(1, count, 2)) if way == "killing" else set()
while numbers := os.read(acks, count):  # until all have ended
    done |= set(numbers)
    for victim in sorted(victims - done)[: len(numbers)]:
        victims.remove(victim)
        os.kill(children[victim], signal.SIGKILL)  # not reaped yet, so the process number is still this child's
for child in children:
    os.waitpid(child, 0)
"""


def add_at_once(root: Path, count: int, way: str = "locked") -> set[str]:
    """The names whose add returned."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(root), str(count), way],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.slow
def test_a_hundred_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    """Every flow, every grant and every bundle is there afterwards, and no temporary file."""
    added = add_at_once(tmp_path, 100)
    store = Store.open(tmp_path)
    snapshot = Registry(store).read()
    assert len(added) == 100
    assert snapshot.flows.keys() == {f"flow-{number}" for number in range(100)}
    assert len(store.find_bundles()) == 100
    assert all(Registry(store).granted(store.load_bundle(hash)) for hash in store.find_bundles())
    assert snapshot.problems == ()
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.slow
def test_without_the_lock_the_same_hundred_lose_flows(tmp_path: Path) -> None:
    """The positive control: the race is real, and the lock is what decides it."""
    assert len(add_at_once(tmp_path, 100, "unlocked")) == 100
    assert len(Registry(Store.open(tmp_path)).read().flows) < 100


@pytest.mark.slow
def test_what_was_acknowledged_survives_killed_writers(tmp_path: Path) -> None:
    """Up to every second process is killed while it waits or works, one for each that is done; the
    others lose nothing.
    """
    acknowledged = add_at_once(tmp_path, 100, "killing")
    store = Store.open(tmp_path)
    registry = Registry(store)
    snapshot = registry.read()
    assert snapshot.problems == ()
    assert (
        {f"flow-{number}" for number in range(0, 100, 2)} <= acknowledged <= snapshot.flows.keys()
    )
    assert len(acknowledged) < 100
    for flow in snapshot.flows.values():
        assert registry.granted(store.load_bundle(flow.hash))


def test_threads_of_one_process_lose_nothing_either(tmp_path: Path) -> None:
    """A worker changes the registry from several threads: each change takes the lock for itself."""
    registry = Registry(Store.open(tmp_path))
    store_path = Store.open(tmp_path).registry_path
    entry = "{hash: C9NMV6V2TQT81, timestamp: 1}"
    names = [f"flow-{number}" for number in range(8)]
    store_path.write_text("workflows:\n" + "".join(f"  {name}: {entry}\n" for name in names))
    threads = [threading.Thread(target=registry.set_enabled, args=(name, False)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [flow.enabled for flow in registry.read().flows.values()] == [False] * 8
