"""The order log is read from where a reader knows it, and is not mistaken for another one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from uncaged_bundles.errors import StorageError
from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.storage import order
from uncaged_bundles.storage.order import START, OrderPlace

HASH = BundleHash("C9NMV6V2TQT81")


def ids(count: int) -> list[ThreadId]:
    return [
        new_thread_id(1_700_000_000_000 + number, number.to_bytes(10, "big"))
        for number in range(count)
    ]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "order"


def test_each_line_is_read_once(log: Path) -> None:
    """A reader that goes on from its place gets what was appended since, and nothing twice."""
    one, two, three = ids(3)
    order.append(log, one)
    first = order.read_since(log, START)
    assert first is not None
    assert (first.started, first.taken_up) == ({one: 1}, ())
    order.append(log, f"{order.CHILD}{two}")
    order.append(log, f"{order.TAKEN_UP}{HASH}/{three}")
    second = order.read_since(log, first.place)
    assert second is not None
    assert (second.started, second.taken_up) == ({two: first.place.offset + 1}, ((HASH, three),))
    third = order.read_since(log, second.place)
    assert third is not None
    assert (third.started, third.taken_up, third.place) == ({}, (), second.place)


def test_a_torn_line_is_read_when_it_is_whole_and_spoils_no_other(log: Path) -> None:
    """A reader stops before a line without its end, and passes over what a full disk left of
    one.
    """
    one, two = ids(2)
    order.append(log, one)
    with log.open("ab") as file:
        file.write(b"\n+" + HASH.encode())
    first = order.read_since(log, START)
    assert first is not None
    assert list(first.started) == [one]
    order.append(log, f"{order.TAKEN_UP}{HASH}/{two}")
    second = order.read_since(log, first.place)
    assert second is not None
    assert (second.started, second.taken_up) == ({}, ((HASH, two),))


@pytest.mark.parametrize("change", ["removed", "cut", "replaced"])
def test_another_log_is_noticed(log: Path, change: str) -> None:
    """A place in a log that was removed, cut or replaced by a longer one is no place in the new
    one.
    """
    for one in ids(5):
        order.append(log, one)
    tail = order.read_since(log, START)
    assert tail is not None
    match change:
        case "removed":
            log.unlink()
        case "cut":
            os.truncate(log, tail.place.offset - 1)
        case _:
            log.unlink()
            for one in ids(20)[::-1]:
                order.append(log, one)
    assert order.read_since(log, tail.place) is None
    assert order.read_since(log, START) is not None, "the control"


def test_a_missing_log_is_an_empty_one(log: Path) -> None:
    """Before the first start there is nothing to read."""
    tail = order.read_since(log, START)
    assert tail is not None
    assert tail.place == START
    assert order.read_since(log, OrderPlace(offset=9, preceding=b"x" * 9)) is None
    assert order.start_order(log) == {}
    assert list(order.last_started(log)) == []


def test_children_have_a_place_and_are_not_the_last_start(log: Path) -> None:
    """A thread that another one started is in the order, and is passed over where the last start of
    a person is asked for.
    """
    one, two, three = ids(3)
    for text in (
        one,
        f"{order.CHILD}{two}",
        f"{order.TAKEN_UP}{HASH}/{one}",
        three,
        f"{order.CHILD}{two}",
    ):
        order.append(log, text)
    places = order.start_order(log)
    assert set(places) == {one, two, three}
    assert places[one] < places[three] < places[two]
    assert list(order.last_started(log)) == [three, one]
    assert order.children(log) == {two}


def test_a_line_that_is_not_wholly_written_is_refused(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk may take a part of a line; the caller hears of it, since the line names nothing
    then.
    """
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:5]))
    with pytest.raises(StorageError, match=os.strerror(errno.ENOSPC)):
        order.append(log, ids(1)[0])
