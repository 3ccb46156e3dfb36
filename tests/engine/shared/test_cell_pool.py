"""Sandbox processes by bundle: shared while they are used, and a few are kept."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

import pytest
from uncaged_bundles.ids import BundleHash, bundle_hash
from uncaged_engine.shared import cell_pool
from uncaged_engine.shared.cell_pool import CellPool

A, B, C = (bundle_hash(name) for name in (b"a", b"b", b"c"))


@dataclass
class RecordingCells:
    """Sandbox processes that only note their end."""

    bundle: BundleHash
    ended: list[BundleHash]

    def close(self) -> None:
        self.ended.append(self.bundle)


def test_only_idle_processes_are_ended_the_longest_unused_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Users of one bundle share its processes; those in use outlive any number of idle ones."""
    started: list[BundleHash] = []
    ended: list[BundleHash] = []

    def start(_pool: CellPool, bundle: BundleHash) -> Any:
        started.append(bundle)
        return RecordingCells(bundle, ended)

    monkeypatch.setattr(CellPool, "_start", start)
    monkeypatch.setattr(cell_pool, "MOST_IDLE", 1)
    with closing(CellPool(cast("Any", None))) as pool:
        with pool.of(A) as first:
            with pool.of(A) as second:
                assert second is first
            with pool.of(B), pool.of(C):
                pass
            assert (started, ended) == ([A, B, C], [B])
        assert ended == [B, A]
        with pool.of(C):
            assert started == [A, B, C]
    assert ended == [B, A, C]
