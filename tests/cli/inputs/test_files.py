"""Reading of files named on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_cli.inputs.files import read_bytes, read_text


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    """Exit code 5, whatever the file was to be."""
    with pytest.raises(NotFoundError, match=r"^no file '.*/none'$"):
        read_bytes(tmp_path / "none")


@pytest.mark.parametrize("read", [read_bytes, read_text])
def test_a_directory_is_no_file(tmp_path: Path, read: object) -> None:
    """The system's words are kept, its number is not."""
    assert callable(read)
    with pytest.raises(UsageError, match=r"cannot be read: Is a directory$"):
        read(tmp_path)


def test_a_file_has_a_size_and_a_name() -> None:
    """No more than the limit is read, of a device without an end, too; a name that no file can
    have is said to be one.
    """
    for file in (Path(__file__), Path("/dev/zero")):
        with pytest.raises(UsageError, match="at most 3 are read"):
            read_bytes(file, max_bytes=3)
    with pytest.raises(UsageError, match="is not a file name"):
        read_bytes(Path("a\0b"))


def test_text_is_utf8(tmp_path: Path) -> None:
    """A mark at its beginning is not part of it, and another encoding is named by its first wrong
    byte.
    """
    file = tmp_path / "text"
    file.write_bytes(b"\xef\xbb\xbfone")
    assert read_text(file) == "one"
    file.write_bytes(b"on\xe9")
    with pytest.raises(UsageError, match="not UTF-8 at byte 2"):
        read_text(file)
