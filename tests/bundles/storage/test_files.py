from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from uncaged_bundles.errors import UncagedError
from uncaged_bundles.storage.files import (
    read_if_there,
    remove_stale_temporaries,
    sync_directory,
    write_atomically,
)


@contextmanager
def small_files_only() -> Iterator[None]:
    """Have the kernel refuse to let any file of this process grow beyond 1000 bytes; a report of
    pytest may be such a file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """The file has the new bytes and nothing else, and only the owner can read it."""
    path = tmp_path / "file"
    for data in (b"first", b"", b"x" * 300_000):
        write_atomically(path, data)
        assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_reader_keeps_what_it_opened(tmp_path: Path) -> None:
    """A replaced file is another file: no reader gets half of each."""
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with path.open("rb") as reader:
        write_atomically(path, b"new")
        assert reader.read() == b"old"


def test_a_write_that_fails_leaves_the_old_file_and_no_temporary(tmp_path: Path) -> None:
    """The kernel cuts the write off at 1000 bytes; what was there before is still whole."""
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with (
        small_files_only(),
        pytest.raises(UncagedError, match=r"cannot write .*file: File too large"),
    ):
        write_atomically(path, b"x" * 2000)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_target_that_cannot_be_replaced_leaves_no_temporary(tmp_path: Path) -> None:
    """A directory at the path is an error that names it, and no file is left behind."""
    path = tmp_path / "file"
    path.mkdir()
    with pytest.raises(UncagedError, match="cannot write"):
        write_atomically(path, b"x")
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_directory_is_an_error_of_ours(tmp_path: Path) -> None:
    """No bare OSError reaches a person."""
    with pytest.raises(UncagedError, match="No such file or directory"):
        write_atomically(tmp_path / "missing" / "file", b"x")


def test_a_symbolic_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """The target of a link is unchanged."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"outside")
    link.symlink_to(target)
    write_atomically(link, b"x")
    assert (target.read_bytes(), link.read_bytes(), link.is_symlink()) == (b"outside", b"x", False)


def test_only_old_temporaries_are_removed(tmp_path: Path) -> None:
    """A young temporary file may belong to a running writer; other files are never touched."""
    names = [".file.aaa.tmp", ".file.bbb.tmp", "file", "file.tmp", ".file"]
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000, 1000))
    os.utime(tmp_path / ".file.bbb.tmp", (5000, 5000))
    remove_stale_temporaries(tmp_path, before_s=2000)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])


def test_a_missing_file_is_none_and_an_unreadable_one_an_error(tmp_path: Path) -> None:
    """Absence is None; any other problem is an error with the path."""
    (tmp_path / "file").write_bytes(b"x")
    assert read_if_there(tmp_path / "file") == b"x"
    assert read_if_there(tmp_path / "missing") is None
    with pytest.raises(UncagedError, match=r"cannot read .*: Is a directory"):
        read_if_there(tmp_path)


def test_syncing_a_missing_directory_fails(tmp_path: Path) -> None:
    """Durability is never claimed for what is not there."""
    sync_directory(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_directory(tmp_path / "missing")
