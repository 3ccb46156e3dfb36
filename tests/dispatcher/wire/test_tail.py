"""Records of a log as they are written: each once, in order, and whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_dispatcher.wire.tail import MAX_RECORDS, LogTail

HEAD = b'{"format":1}\n'


def line(seq: int) -> bytes:
    return b'{"seq":%d,"text":"%s"}\n' % (seq, b"x" * (seq % 50))


def numbers(tail: LogTail) -> list[int]:
    found = []
    while records := tail.read():
        found += [record["seq"] for record in records]
    return found


@given(cuts=st.lists(st.integers(0, 600), max_size=8), after=st.integers(0, 12))
def test_records_come_once_and_in_order_however_the_file_grows(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], after: int
) -> None:
    """A file that is cut anywhere gives its whole records; the rest comes when it is written."""
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    data = HEAD + b"".join(line(seq) for seq in range(1, 11))
    path.touch()
    tail = LogTail(path, after)
    found = []
    for end in [*sorted(cuts), len(data)]:
        path.write_bytes(data[:end])
        found += numbers(tail)
    assert found == list(range(after + 1, 11))
    assert not tail.has_more()


def test_a_tail_from_now_on_skips_what_is_there(tmp_path: Path) -> None:
    """Whole records that are in the file are skipped; a torn one is read when it is whole."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(HEAD + line(1) + line(2)[:5])
    tail = LogTail(path, None)
    assert numbers(tail) == []
    path.write_bytes(HEAD + line(1) + line(2) + line(3))
    assert numbers(tail) == [2, 3]


def test_a_long_log_is_read_in_parts(tmp_path: Path) -> None:
    """One read returns a bounded number of records, and a record may be longer than a read."""
    path = tmp_path / "log.jsonl"
    long = b'{"seq":301,"text":"%s"}\n' % (b"x" * (3 << 20))
    path.write_bytes(HEAD + b"".join(line(seq) for seq in range(1, 301)) + long)
    tail = LogTail(path, 0)
    assert len(tail.read()) == MAX_RECORDS
    assert numbers(tail) == list(range(MAX_RECORDS, 302))[1:]


def test_a_damaged_or_deleted_log_is_an_error(tmp_path: Path) -> None:
    """A line that is no record is named with its place; a file that is gone is named as deleted."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(HEAD + b"nonsense\n")
    with pytest.raises(DamagedError, match="byte 13"):
        LogTail(path, 0).read()
    path.unlink()
    with pytest.raises(NotFoundError, match="deleted"):
        LogTail(path, 0).read()
    with pytest.raises(NotFoundError):
        LogTail(path, None)
