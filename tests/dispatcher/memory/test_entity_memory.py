"""The memory of a conversation follows its log, and is made again from it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from uncaged_bundles.errors import StorageError
from uncaged_dispatcher.memory.entity_memory import EntityMemory

Records = list[dict[str, Any]]


def settled(seq: int, *entities: tuple[str, str, object]) -> dict[str, Any]:
    listed = [{"name": name, "type": type, "value": value} for name, type, value in entities]
    return {
        "seq": seq,
        "result": {"status": "completed", "threadId": f"T{seq}", "entities": listed},
        "of": f"R{seq}",
        "timestamp": seq,
    }


def other(seq: int) -> dict[str, Any]:
    return {"seq": seq, "request": {"text": "x"}, "timestamp": seq}


@pytest.fixture
def log() -> Records:
    return [
        other(1),
        settled(2, ("Yesterday", "song", {"id": 1}), ("Help", "song", {"id": 2})),
        other(3),
        settled(4, ("yesterday", "song", {"id": 1}), ("Yesterday", "film", None)),
    ]


@pytest.fixture
def memory(tmp_path: Path, log: Records) -> EntityMemory:
    def after(seq: int) -> Iterator[dict[str, Any]]:
        return iter([record for record in log if record["seq"] > seq])

    return EntityMemory(tmp_path / "memory.sqlite3", after)


def test_the_nearest_things_are_those_named_last(memory: EntityMemory) -> None:
    """Each thing of a type is there once, as it was named last; a limit keeps the nearest."""
    assert [(one.name, one.type, one.seq) for one in memory.nearest()] == [
        ("yesterday", "song", 4),
        ("Yesterday", "film", 4),
        ("Help", "song", 2),
    ]
    assert [one.type for one in memory.nearest(1)] == ["song"]


def test_a_name_is_found_in_any_case(memory: EntityMemory) -> None:
    """Things with the same value are one; a type narrows the search."""
    assert [(one.type, one.value) for one in memory.named("YESTERDAY")] == [
        ("song", {"id": 1}),
        ("film", None),
    ]
    [film] = memory.named("yesterday", "film")
    assert (film.request, film.thread) == ("R4", "T4")
    assert memory.named("Tomorrow") == []
    assert memory.names() == ["yesterday", "Help"]
    assert memory.names("film") == ["Yesterday"]


def test_new_records_are_added_at_the_next_look_up(memory: EntityMemory, log: Records) -> None:
    """A result that was recorded since is found."""
    assert memory.named("Michelle") == []
    log.append(settled(5, ("Michelle", "song", 3)))
    assert [one.value for one in memory.named("Michelle")] == [3]


@pytest.mark.parametrize("damage", ["removed", "garbage", "other layout"])
def test_the_memory_is_made_again(memory: EntityMemory, tmp_path: Path, damage: str) -> None:
    """A file that is gone, damaged or of another version gives the same answers afterwards."""
    before = memory.nearest()
    path = tmp_path / "memory.sqlite3"
    if damage == "removed":
        path.unlink()
    elif damage == "garbage":
        path.write_bytes(b"not a database" * 1000)
    else:
        import sqlite3

        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 9")
        connection.commit()
        connection.close()
    assert memory.nearest() == before


def test_a_log_whose_tail_was_cut_is_read_anew(memory: EntityMemory, log: Records) -> None:
    """Things of records that the log does not have any more are forgotten."""
    assert memory.named("Yesterday", "film")
    del log[3:]
    assert memory.named("Yesterday", "film") == []
    log.append(settled(4, ("Girl", "song", 4)))
    assert memory.names() == ["Girl", "Yesterday", "Help"]


def test_two_threads_look_up_at_once(memory: EntityMemory, log: Records) -> None:
    """Each finds all; no record is added twice."""
    log.extend(settled(seq, (f"thing {seq}", "", seq)) for seq in range(5, 200))
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(memory.names()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [197] * 4


def test_a_memory_without_a_place_is_refused_by_name(tmp_path: Path) -> None:
    """The message has the path."""
    memory = EntityMemory(tmp_path / "none" / "memory.sqlite3", lambda _after: [])
    with pytest.raises(StorageError, match="none/memory"):
        memory.nearest()
