"""Classification of files: sources that may be repaired, and tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_repair.project.paths import is_test_path, sources


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("pkg/mod.py", False), ("tests/mod.py", True), ("pkg/tests/data/x.txt", True), ("test_mod.py", True), ("mod_test.py", True),
        ("conftest.py", True), ("pkg/testing.py", False), ("pkg/contest.py", False), ("latest/mod.py", False), ("tests.py", True),
    ],
)  # fmt: skip
def test_tests_are_recognised_by_their_names(path: str, test: bool) -> None:
    assert is_test_path(path) is test


def test_the_sources_are_the_repositorys_own_python_files(tmp_path: Path) -> None:
    """No tests, no environments, no caches, no generated trees, no links, nothing huge."""
    for path in (
        "a.py",
        "pkg/b.py",
        "tests/c.py",
        "test_d.py",
        ".venv/lib/e.py",
        "env/f.py",
        "build/g.py",
        ".hidden/h.py",
        "docs/i.py",
        "j.txt",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / "env/pyvenv.cfg").write_text("")
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "huge.py").write_bytes(b"#" * (2 << 20))
    assert sources(tmp_path) == ("a.py", "pkg/b.py")
