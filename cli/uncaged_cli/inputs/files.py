"""A file that a person names is read here, and what is wrong with it is said in the same words by
every verb.
"""

from __future__ import annotations

import json
from pathlib import Path

from uncaged_bundles.errors import NotFoundError, UsageError


def read_bytes(file: Path, *, max_bytes: int | None = None) -> bytes:
    """Return a file's bytes.

    Raises:
        NotFoundError, UsageError: it is missing, cannot be read, or is larger than *max_bytes*.
    """
    try:
        if max_bytes is not None and file.stat().st_size > max_bytes:
            raise UsageError(
                f"{str(file)!r} has {file.stat().st_size:,} bytes; at most {max_bytes:,} are read"
            )
        return file.read_bytes()
    except FileNotFoundError as problem:
        raise NotFoundError(f"no file {str(file)!r}") from problem
    except OSError as problem:
        raise UsageError(f"{str(file)!r} cannot be read: {problem.strerror}") from problem
    except ValueError as problem:  # a NUL in the name
        raise UsageError(f"{str(file)!r} is no file name: {problem}") from problem


def read_text(file: Path) -> str:
    """Return a file's text; UsageError if it is not UTF-8."""
    return decoded(read_bytes(file), file)


def parse_json(text: str) -> object:
    """Return the value of JSON text; ValueError says what is wrong with it, nesting that no reader
    holds included.
    """
    try:
        return json.loads(text)
    except RecursionError as problem:
        raise ValueError("it is nested too deeply to be read") from problem


def decoded(data: bytes, file: Path) -> str:
    """Return the text that a file's bytes are; UsageError if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise UsageError(
            f"{str(file)!r} is not UTF-8 at byte {problem.start}; save it as UTF-8"
        ) from problem
