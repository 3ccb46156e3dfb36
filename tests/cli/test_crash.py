"""Crash reports."""

from __future__ import annotations

import stat
from pathlib import Path

from uncaged_cli.crash import write_report


def boom() -> Exception:
    try:
        raise ValueError("boom \ud800")
    except ValueError as problem:
        return problem


def test_the_report_is_private_and_whole(tmp_path: Path) -> None:
    """The report is in the store's run directory, has trace and arguments, and only its owner can
    read it.
    """
    (tmp_path / "run").mkdir()
    path = write_report(boom(), ["run", "x"], {"UNCAGED_WORKFLOW_HOME": str(tmp_path)})
    assert path is not None
    assert path.parent == tmp_path / "run"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert "ValueError: boom" in text
    assert "['run', 'x']" in text


def test_the_report_has_no_password_of_an_address(tmp_path: Path) -> None:
    """The arguments may have the address of a store with a password, which is refused elsewhere."""
    (tmp_path / "run").mkdir()
    words = ["--store=postgresql://me:s3cr@host/db", "postgresql:///db?password=s3cr&schema=a"]
    path = write_report(boom(), words, {"UNCAGED_WORKFLOW_HOME": str(tmp_path)})
    assert path is not None
    text = path.read_text()
    assert "s3cr" not in text and "host/db" in text and "schema=a" in text


def test_without_a_store_the_report_is_in_the_temporary_directory(tmp_path: Path) -> None:
    """A report never fails for want of a directory."""
    path = write_report(boom(), [], {"UNCAGED_WORKFLOW_HOME": str(tmp_path / "none")})
    assert path is not None
    path.unlink()
