"""Cache of test results, by the exact state of the repository's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from uncaged_repair.harness.host import HostGone, RunRequest
from uncaged_repair.harness.result_cache import CachedHost, tree_digest
from uncaged_repair.harness.results import BROKEN, Message

ASK = RunRequest(tests=["t"], cpu_s=1.0, wall_s=1.0, total_s=1.0)


class Counting:
    """Answers with how often it was asked."""

    def __init__(self, *, gone: bool = False) -> None:
        self.asked = 0
        self._gone = gone

    def messages(self, request: RunRequest) -> Sequence[Message]:
        self.asked += 1
        if self._gone:
            raise HostGone("gone")
        return [
            {"test": request.tests[0], "outcome": "passed", "cpu_s": 0.1 * self.asked},
            {"end": "finished"},
        ]


def test_what_was_measured_once_is_not_measured_again(tmp_path: Path) -> None:
    """Not in the same process, and not in the next one for the same files."""
    host, path = Counting(), tmp_path / "kept.json"
    first = CachedHost(host, path, "tree")
    before = first.run(ASK)
    assert first.run(ASK) == before
    first.save()
    assert CachedHost(host, path, "tree").run(ASK) == before
    assert host.asked == 1


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b'{"tree": "tree", "runs": 3}', b'{"tree": "tree", "runs": {"x": 3}}'],
)
def test_other_files_and_damage_are_measured_anew(tmp_path: Path, damage: bytes) -> None:
    host, path = Counting(), tmp_path / "kept.json"
    first = CachedHost(host, path, "tree")
    first.run(ASK)
    first.save()
    CachedHost(host, path, "other tree").run(ASK)
    path.write_bytes(damage)
    CachedHost(host, path, "tree").run(ASK)
    assert host.asked == 3


def test_a_run_that_was_lost_is_not_remembered(tmp_path: Path) -> None:
    runs = CachedHost(Counting(gone=True), tmp_path / "kept.json", "tree")
    assert runs.run(ASK) == BROKEN
    runs.save()
    assert not (tmp_path / "kept.json").exists()


def test_the_digest_follows_every_change(tmp_path: Path) -> None:
    """Content, name, mode and links count, and so does how tests are run."""
    (tmp_path / "a").write_text("1")
    seen = [tree_digest(tmp_path), tree_digest(tmp_path, "how")]
    (tmp_path / "a").write_text("2")
    seen.append(tree_digest(tmp_path))
    (tmp_path / "a").chmod(0o755)
    seen.append(tree_digest(tmp_path))
    (tmp_path / "a").rename(tmp_path / "b")
    seen.append(tree_digest(tmp_path))
    (tmp_path / "link").symlink_to("b")
    seen.append(tree_digest(tmp_path))
    (tmp_path / "link").unlink()
    assert len(set(seen)) == len(seen)
    assert tree_digest(tmp_path) == seen[-2]
