"""Reading of files named on the command line, with the same error messages in every verb."""

from __future__ import annotations

import json
from pathlib import Path

from uncaged_bundles.errors import NotFoundError, UsageError

MAX_FILE_BYTES = 64 << 20


def read_bytes(file: Path, *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return a file's bytes. A device or a pipe may have no end, so no more than *max_bytes* are
    read.

    Raises:
        NotFoundError, UsageError: it is missing, cannot be read, or is larger than *max_bytes*.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(max_bytes + 1)
    except FileNotFoundError as problem:
        raise NotFoundError(f"no file {str(file)!r}") from problem
    except OSError as problem:
        raise UsageError(f"{str(file)!r} cannot be read: {problem.strerror}") from problem
    except ValueError as problem:  # a NUL byte in the name
        raise UsageError(f"{str(file)!r} is not a file name: {problem}") from problem
    if len(data) > max_bytes:
        raise UsageError(f"{str(file)!r} has too many bytes; at most {max_bytes:,} are read")
    return data


def read_text(file: Path) -> str:
    """Return a file's text; UsageError if it is not UTF-8."""
    return decode_text(read_bytes(file), file)


def parse_json(text: str) -> object:
    """Return the value of JSON text; ValueError if it is invalid or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as problem:
        raise ValueError("it is nested too deeply") from problem


def decode_text(data: bytes, file: Path) -> str:
    """Decode the bytes of a file; UsageError if they are not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise UsageError(
            f"{str(file)!r} is not UTF-8 at byte {problem.start}; save it as UTF-8"
        ) from problem
