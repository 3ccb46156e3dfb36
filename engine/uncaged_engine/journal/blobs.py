"""Contents that are too large for a journal line, named by their hash and durable before the line
that names them.
"""

from __future__ import annotations

import json
import os
import re
from _blake2 import blake2b
from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from uncaged_bundles.errors import DamagedError, StorageError, os_problem
from uncaged_bundles.storage.files import held, new_file, sync_directory, write_atomically

from . import lines
from .codec import encode

_NAME = re.compile(r"[0-9a-f]{32}")
_NAMED = re.compile(
    rb'"(?:blob":\{"field":"[^"]*","hash|checkpoint|screenshot|trace)":"([0-9a-f]{32})"'
)
_PACKS = re.compile(rb'"gitPack":"([0-9a-f]{32})"')


def blob_hash(data: bytes) -> str:
    """Return thirty-two hexadecimal digits of BLAKE2b."""
    return str(blake2b(data, digest_size=16).hexdigest())


def effect_mark(effect: bytes) -> bytes:
    """Return what the digest over a thread's effects covers of one: its bytes, or its hash if it is
    long.
    """
    return effect if len(effect) <= lines.MARK_BYTES else lines.blob_mark(blob_hash(effect))


def named_in(lines: bytes) -> set[str]:
    """Return the blobs that a journal's lines name."""
    return needed_in(lines) | {match.decode() for match in _PACKS.findall(lines)}


def needed_in(lines: bytes) -> set[str]:
    """Return the blobs that a reader of these lines needs: all but packs of git objects."""
    return {match.decode() for match in _NAMED.findall(lines)}


class Blobs(Protocol):
    """Store of blobs, and the notes in a thread's lines that name them."""

    def put(self, data: bytes) -> str:
        """Make *data* durable and return its hash."""

    def get(self, name: str) -> bytes:
        """Return the bytes with this hash.

        Raises:
            DamagedError: they are missing or are not those that were hashed, or *name* is no hash
                but perhaps a path.
        """

    def spill(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Return the same fields with the largest of them moved to a blob."""
        encoded = {name: encode(value).encode() for name, value in fields.items()}
        largest = max(encoded, key=lambda name: len(encoded[name]))
        return lines.spill(fields, largest, self.put(encoded[largest]), len(encoded[largest]))

    def expand(self, line: bytes) -> bytes:
        """Return a sealed line as the bundle gets it: unchanged, or with its blob put back in (and
        then without a chain).
        """
        if lines.blob_of(line) is None:
            return line
        record = self.expand_record(json.loads(line[:-1]))
        del record["chain"]
        return encode(record).encode() + b"\n"

    def expand_record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a parsed record with its blob, if it names one, put back in."""
        expanded = dict(record)
        note = expanded.pop("blob", None)
        if note is not None:
            expanded[note["field"]] = json.loads(self.get(str(note["hash"])))
        return expanded


class BlobDirectory(Blobs):
    """Blobs as the files of a store's `blobs` directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put(self, data: bytes) -> str:
        return self._put(data, names=True)

    def put_aside(self, data: bytes) -> str:
        """Make *data* durable with one flush instead of two, and return its hash. A power failure
        may lose the name of the file, and with it the blob: for what no replay needs.
        """
        return self._put(data, names=False)

    def _put(self, data: bytes, *, names: bool) -> str:
        """Args: names: flush the directory, too."""
        name = blob_hash(data)
        path = self.directory / name
        try:
            # shared with other writers, not with a sweep: it would remove the file that was found
            with held(self.directory, alone=False):
                if _is(path, data):
                    # young again: `prune` must not remove it before the line that names it is there
                    os.utime(path)
                    # its writer may have died before the name was durable
                    if names:
                        sync_directory(self.directory)
                elif names:
                    write_atomically(path, data)
                else:
                    with new_file(path, data) as new:
                        new.temporary.replace(path)
        except OSError as exc:
            raise StorageError(
                f"cannot put {os_problem(exc, path)}; correct that, then `resume`"
            ) from exc
        return name

    def sweep(self, named: Container[str], *, before_s: float) -> int:
        """Remove the blobs that are not among *named* and were put before *before_s* (seconds since
        1970); return their bytes.
        """
        freed = 0
        for path in self.directory.iterdir():
            if not _NAME.fullmatch(path.name) or path.name in named:
                continue
            # one lock per file, so that writers wait for one unlink only; another sweep may run too
            with held(self.directory, alone=True), suppress(FileNotFoundError):
                found = path.stat()
                if found.st_mtime < before_s:
                    path.unlink()
                    freed += found.st_size
        return freed

    def get(self, name: str) -> bytes:
        if not _NAME.fullmatch(name):
            raise DamagedError(f"{name[:100]!r} is no hash of a blob")
        try:
            data = (self.directory / name).read_bytes()
        except FileNotFoundError as exc:
            raise DamagedError(f"blob {name} is missing from {self.directory}") from exc
        if blob_hash(data) != name:
            raise DamagedError(
                f"blob {name} in {self.directory} does not hold the bytes that were hashed"
            )
        return data


def _is(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except FileNotFoundError:
        return False
