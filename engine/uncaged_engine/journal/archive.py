"""A finished journal may be kept compressed; every reader reads it all the same."""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.errors import DamagedError
from uncaged_bundles.storage.files import write_atomically

SUFFIX = ".zst"
MAX_BYTES = 1 << 30


def is_archived(path: Path) -> bool:
    return path.name.endswith(SUFFIX)


def read(path: Path) -> bytes:
    """The journal's bytes. Raises: DamagedError: the file is not exactly one zstandard frame, or larger than 1 GiB unpacked."""
    import zstandard

    packed = path.read_bytes()
    try:
        if zstandard.frame_content_size(packed) > MAX_BYTES:  # a size that the frame states is believed when it is unpacked
            raise DamagedError(f"{path} cannot be unpacked: it says that it holds more than {MAX_BYTES} bytes")
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_BYTES, allow_extra_data=False)
    except zstandard.ZstdError as exc:
        raise DamagedError(f"{path} cannot be unpacked: {exc}") from exc


def compress(path: Path) -> Path:
    """Replace a journal that nobody writes by its compressed form.

    The compressed file is durable before the plain one goes, so a crash between leaves both, and readers take the plain one.
    """
    import zstandard

    data = path.read_bytes()
    packed = zstandard.ZstdCompressor(level=10, write_checksum=True).compress(data)
    target = path.with_name(path.name + SUFFIX)
    write_atomically(target, packed)
    # crash here: both are there; the next `archive` removes the plain one
    path.unlink()
    return target


def restore(path: Path) -> Path:
    """The plain journal again, for going on with it."""
    target = path.with_suffix("")
    write_atomically(target, read(path))
    path.unlink()
    return target
