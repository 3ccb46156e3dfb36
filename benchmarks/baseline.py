"""Baselines: the minimal work without an engine, measured on the same machine at the same time."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import zstandard
from uncaged_engine.journal.archive import LEVEL
from uncaged_engine.threads.housekeeping import BATCH

WINDOW_BYTES = 4096


def bare_step_us(
    directory: Path, line: bytes, count: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the microseconds to encode a record, append it and flush it, in a loop of *count*.

    Args:
        clock: `time.process_time` counts only the time of the processor.
    """
    record = json.loads(line)
    fd = os.open(
        directory / "bare.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o600
    )
    try:
        begin = clock()
        for _ in range(count):
            os.write(fd, json.dumps(record).encode() + b"\n")
            os.fdatasync(fd)
        return (clock() - begin) / count * 1e6
    finally:
        os.close(fd)


def loads_us(lines: Sequence[bytes]) -> float:
    """Return the microseconds to parse one of *lines*."""
    begin = time.perf_counter()
    for line in lines:
        json.loads(line)
    return (time.perf_counter() - begin) / len(lines) * 1e6


def python_s(*arguments: str) -> float:
    """Return the seconds of a Python process with these arguments."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - begin


def pack_files_s(logs: Path) -> float:
    """Return the seconds to replace the files below *logs* by compressed ones, with two flushes per
    batch.
    """
    begin = time.perf_counter()
    library = ctypes.CDLL(None, use_errno=True)
    packer = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    for directory, names in _files_below(logs):
        for batch in (names[at : at + BATCH] for at in range(0, len(names), BATCH)):
            for name in batch:
                packed = packer.compress(_bytes_of(name, directory))
                fd = os.open(f".{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=directory)
                os.write(fd, packed)
                os.close(fd)
            library.syncfs(directory)
            for name in batch:
                os.rename(f".{name}", f"{name}.zst", src_dir_fd=directory, dst_dir_fd=directory)
            os.fsync(directory)
            for name in batch:
                os.unlink(name, dir_fd=directory)
    return time.perf_counter() - begin


def remove_files_s(logs: Path) -> float:
    """Return the seconds to read and remove the files below *logs*, with one flush per
    directory.
    """
    begin = time.perf_counter()
    for directory, names in _files_below(logs):
        for name in names:
            _bytes_of(name, directory)
        for name in names:
            os.unlink(name, dir_fd=directory)
        os.fsync(directory)
    return time.perf_counter() - begin


def _files_below(logs: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the open directories in *logs*, each with the names of its files."""
    for path in [Path(entry.path) for entry in os.scandir(logs) if entry.is_dir()]:
        directory = os.open(path, os.O_RDONLY)
        try:
            yield directory, os.listdir(directory)  # noqa: PTH208 - bare names are cheaper than paths
        finally:
            os.close(directory)


def _bytes_of(name: str, directory: int) -> bytes:
    fd = os.open(name, os.O_RDONLY, dir_fd=directory)
    try:
        return os.read(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def read_tails_s(logs: Path) -> float:
    """Return the seconds to list the journals below *logs* and read the last 4 KB of each."""
    begin = time.perf_counter()
    for directory in os.scandir(logs):
        for entry in os.scandir(directory):
            fd = os.open(entry.path, os.O_RDONLY)
            os.pread(fd, WINDOW_BYTES, max(0, os.fstat(fd).st_size - WINDOW_BYTES))
            os.close(fd)
    return time.perf_counter() - begin


@contextmanager
def pinned() -> Iterator[None]:
    """Pin this thread, and all processes that it starts meanwhile, to one CPU."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
