"""Chained files: one owner at a time, torn tails cut, damage refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_engine.journal import chain
from uncaged_engine.journal.chained import ChainedFile, create_chained, read_chained
from uncaged_engine.journal.journal import JournalBusy
from uncaged_engine.journal.lines import MAX_LINE_BYTES

SEED = chain.seed("test", "file")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A chained file with a first line and three more."""
    found = tmp_path / "file.jsonl"
    create_chained(found, b'{"n":0', SEED)
    file = opened(found)
    for number in range(1, 4):
        file.append(b'{"n":%d' % number, flush=number == 3)
    file.close()
    return found


def opened(path: Path) -> ChainedFile:
    file = ChainedFile.open(path, SEED)
    assert file is not None
    return file


def test_lines_are_read_back_in_order(path: Path) -> None:
    """The next owner finds each line as it was sealed, and so does a reader without the lock."""
    file = opened(path)
    assert b"".join(file.lines) == path.read_bytes()
    assert len(file.lines) == 4
    assert read_chained(path, SEED).lines == file.lines
    file.close()


def test_a_second_owner_is_refused_until_the_first_closes(path: Path) -> None:
    """The lock belongs to one open file, also within one process."""
    file = opened(path)
    assert ChainedFile.open(path, SEED) is None
    file.close()
    opened(path).close()


def test_a_closed_file_takes_no_line(path: Path) -> None:
    """A late line is refused, and the file is as it was."""
    file = opened(path)
    file.close()
    before = path.read_bytes()
    with pytest.raises(JournalBusy):
        file.append(b'{"n":4')
    with pytest.raises(JournalBusy):
        file.flush()
    assert path.read_bytes() == before


def test_a_torn_tail_at_every_byte_is_kept_aside_and_cut(path: Path) -> None:
    """Whatever part of the last line was written, the lines before it are there and writing goes
    on behind them.
    """
    whole = path.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    for end in range(start + 1, len(whole)):
        path.write_bytes(whole[:end])
        file = opened(path)
        assert len(file.lines) == 3
        file.append(b'{"n":9')
        file.close()
        aside = path.with_name(f"{path.name}.torn-{start}")
        assert aside.read_bytes() == whole[start:end]
        assert len(read_chained(path, SEED).lines) == 4


def test_damage_with_valid_lines_after_it_is_refused(path: Path) -> None:
    """A changed byte in any line but the last makes the file unusable, and nothing is moved."""
    whole = path.read_bytes()
    last = whole[:-1].rindex(b"\n")
    for place in range(0, last, 7):
        damaged = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        path.write_bytes(damaged)
        with pytest.raises(DamagedError, match=r"file\.jsonl:\d: the line was changed"):
            ChainedFile.open(path, SEED)
        assert path.read_bytes() == damaged


def test_a_file_under_another_name_is_refused(path: Path) -> None:
    """The first digest has the name in it."""
    with pytest.raises(DamagedError):
        ChainedFile.open(path, chain.seed("test", "other"))


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    """There is no file without a first line."""
    with pytest.raises(NotFoundError):
        ChainedFile.open(tmp_path / "none", SEED)
    with pytest.raises(NotFoundError):
        read_chained(tmp_path / "none", SEED)
    (tmp_path / "empty").touch()
    with pytest.raises(DamagedError):
        ChainedFile.open(tmp_path / "empty", SEED)


def test_a_line_has_a_limit(path: Path) -> None:
    """A longer line is refused before it is written."""
    file = opened(path)
    with pytest.raises(ValueError, match="are the most"):
        file.append(b'{"n":"' + b"x" * MAX_LINE_BYTES)
    file.append(b'{"n":"' + b"x" * (MAX_LINE_BYTES - 200) + b'"')
    file.close()
    assert len(read_chained(path, SEED).lines) == 5
