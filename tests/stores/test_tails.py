"""Readers of a conversation's lines: each line once, in order, and whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_bundles.errors import NotFoundError
from uncaged_engine.journal import chain
from uncaged_engine.stores.directory.tails import FileTail
from uncaged_engine.stores.protocol import LineTail, StoreBackend

NAME = "01K" + "A" * 23
LIMIT = 100


def line(number: int) -> bytes:
    return b'{"seq":%d,"text":"%s"}\n' % (number, b"x" * (number % 50))


def rest(tail: LineTail) -> list[bytes]:
    found = []
    while lines := tail.read(limit=LIMIT):
        assert len(lines) <= LIMIT
        found += lines
    return found


@given(cuts=st.lists(st.integers(0, 600), max_size=8), from_line=st.integers(0, 12))
def test_lines_come_once_and_in_order_however_the_file_grows(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], from_line: int
) -> None:
    """A file that is cut anywhere gives its whole lines; the rest comes when it is written."""
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    lines = [line(number) for number in range(11)]
    data = b"".join(lines)
    path.touch()
    tail = FileTail(path, from_line)
    found = []
    for end in [*sorted(cuts), len(data)]:
        path.write_bytes(data[:end])
        found += rest(tail)
    assert found == lines[from_line:]
    assert not tail.has_more()


def test_a_tail_from_now_on_skips_what_is_there(tmp_path: Path) -> None:
    """Whole lines that are in the file are skipped; a torn one is read when it is whole."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(line(0) + line(1) + line(2)[:5])
    tail = FileTail(path, None)
    assert rest(tail) == []
    path.write_bytes(line(0) + line(1) + line(2) + line(3))
    assert rest(tail) == [line(2), line(3)]


def test_a_long_file_is_read_in_parts(tmp_path: Path) -> None:
    """One read returns a bounded number of lines, and a line may be longer than a read."""
    path = tmp_path / "log.jsonl"
    lines = [line(number) for number in range(301)] + [b'{"text":"%s"}\n' % (b"x" * (3 << 20))]
    path.write_bytes(b"".join(lines))
    assert rest(FileTail(path, 0)) == lines
    assert rest(FileTail(path, 150)) == lines[150:]


def test_a_deleted_file_is_an_error(tmp_path: Path) -> None:
    """A file that is gone is named as deleted; one that was never there has no tail from now on."""
    path = tmp_path / "log.jsonl"
    with pytest.raises(NotFoundError, match="deleted"):
        FileTail(path, 0).read(limit=1)
    with pytest.raises(NotFoundError):
        FileTail(path, None)


def test_a_tail_reads_what_another_process_appends(
    backend: StoreBackend, connect: Callable[[], StoreBackend]
) -> None:
    """A tail of each kind of store begins at any line, or now, and reads bounded parts; without a
    read when nothing came. The holder is named while there is one.
    """
    lines, digest = [], chain.conversation_seed(NAME)
    for number in range(300):
        sealed, digest = chain.seal(digest, b'{"seq":%d,"timestamp":1' % number)
        lines.append(sealed)
    other = connect().conversations
    backend.conversations.start(NAME, lines[:1])
    with (
        closing(other.tail(NAME, from_line=0)) as whole,
        closing(other.tail(NAME, from_line=None)) as new,
    ):
        assert rest(whole) == lines[:1]
        assert rest(new) == []
        assert not whole.has_more()
        assert not other.holder(NAME)
        with backend.conversations.open(NAME) as owner:
            assert "process" in other.holder(NAME)
            owner.append(lines[1:])
            assert until_more(whole) == lines[1:]
            assert until_more(new) == lines[1:]
        assert not other.holder(NAME)
    with pytest.raises(NotFoundError):
        other.tail("01K" + "B" * 23, from_line=None)


def until_more(tail: LineTail) -> list[bytes]:
    """Return the next lines as soon as the tail tells of them."""
    while not tail.has_more():
        pass
    return rest(tail)
