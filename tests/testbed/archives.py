"""Archives of exported threads, valid and forged."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import zstandard
from uncaged_engine.threads.transfer import BUNDLE, JOURNAL

Member = tuple[tarfile.TarInfo, bytes]


def member(name: str, data: bytes = b"", **fields: object) -> Member:
    """A member of an archive; *fields* are set on its header, such as ``type`` or ``linkname``."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def tar_of(members: Iterable[Member], form: int = tarfile.USTAR_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def write_archive(
    path: Path, bundle: bytes, journal: bytes, blobs: Mapping[str, bytes] | None = None
) -> Path:
    """Write the archive of a thread, whatever its journal says."""
    members = [member(BUNDLE, bundle), member(JOURNAL, journal)]
    members += [member(f"blobs/{name}", data) for name, data in (blobs or {}).items()]
    path.write_bytes(zstandard.ZstdCompressor().compress(tar_of(members)))
    return path
