"""A process dies in each window of a proposal that the code names."""

from __future__ import annotations

import subprocess
import sys

import pytest
from testbed.bundles import granted, source
from testbed.foreground import at_window, environment
from testbed.windows import window
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.proposals import Proposals

pytestmark = pytest.mark.slow

UNNAMED = "a bundle that nothing names; the next run proposes it again"
MOVED = "the name is moved, the proposal still says open; readers see it accepted"
UNANNOUNCED = "the proposal is on disk, the notification not sent; it never is"
OLD, NEW = (
    source("count", f'\n    yield {{"null": {{"value": {number}}}}}\n') for number in (1, 2)
)


def die(store: Store, deed: str, text: str) -> None:
    """Propose or accept in a process that dies in a window."""
    python = at_window(window(text), "testbed.proposing")
    done = subprocess.run(
        [sys.executable, *python, str(store.root), deed],
        input=NEW,
        env=environment(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == -9, (done.returncode, done.stderr)


def run(store: Store, deed: str) -> bytes:
    """Propose or accept in a process; return what it announced."""
    command = [sys.executable, "-m", "testbed.proposing", str(store.root), deed]
    done = subprocess.run(
        command, input=NEW, env=environment(), check=True, timeout=60, stdout=subprocess.PIPE
    )
    return done.stdout


def test_a_process_dies_between_the_bundle_and_the_proposal(store: Store) -> None:
    """The bundle is there without a grant, and the next run makes the proposal."""
    granted(store, OLD)
    die(store, "propose", UNNAMED)
    assert Proposals(store).all() == ()
    assert not Registry(store).granted(read_bundle(NEW, KNOWN))
    assert run(store, "propose") == b"announced count\n"
    assert [one.state for one in Proposals(store).all()] == ["open"]


def test_a_process_dies_between_the_name_and_the_proposal(store: Store) -> None:
    """The flow has the proposed head; the proposal reads as accepted, and is accepted only once."""
    granted(store, OLD)
    run(store, "propose")
    die(store, "accept", MOVED)
    assert Registry(store).resolve("count")[1] == read_bundle(NEW, KNOWN).hash
    assert [one.state for one in Proposals(store).all()] == ["accepted"]
    flow = Registry(store).flow("count")
    assert flow is not None and len(flow.versions) == 2


def test_a_process_dies_before_a_proposal_is_announced(store: Store) -> None:
    """The proposal is kept, and no later run announces it: at most once."""
    granted(store, OLD)
    die(store, "propose", UNANNOUNCED)
    assert [one.state for one in Proposals(store).all()] == ["open"]
    assert run(store, "propose") == b""
