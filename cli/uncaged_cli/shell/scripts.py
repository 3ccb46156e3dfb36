"""Lines of a script or a pipe, one request each. Empty lines and those that begin with ``#`` are
skipped.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from uncaged_bundles.errors import UsageError, os_problem

from ..display.output import Styled, note
from ..entry import EXIT_INTERRUPTED
from ..main import guarded

if TYPE_CHECKING:
    from .line_host import LineHost

MAX_LINE_BYTES = 1 << 20
"""The rest of a longer line is dropped; what is left of it is still too long for a request."""
MAX_LINE_PARTS = 64
"""In multiples of `MAX_LINE_BYTES`: where the end of a line must be. A device may have none."""
MAX_NESTED = 20


def request_lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yield the requests of a file with the numbers of their lines. Bytes that are not UTF-8 are
    kept as surrogates, which a request refuses.

    Raises:
        UsageError: a line does not end.
    """
    number = 0
    while data := stream.readline(MAX_LINE_BYTES):
        number += 1
        part, count = data, 1
        while len(part) == MAX_LINE_BYTES and not part.endswith(b"\n"):
            if count == MAX_LINE_PARTS:
                raise UsageError(
                    f"line {number} is longer than {MAX_LINE_PARTS * MAX_LINE_BYTES:,} bytes; give a file with one request a line"
                )
            part, count = stream.readline(MAX_LINE_BYTES), count + 1
        line = data.removeprefix(codecs.BOM_UTF8) if number == 1 else data
        text = line.decode("utf-8", "surrogateescape").strip()
        if text and not text.startswith("#"):
            yield number, text


def run_lines(stream: BinaryIO, host: LineHost) -> int:
    """Run all lines of a pipe, one after the other, and return the exit code of the first that
    failed.
    """
    codes = [0]
    for _, line in request_lines(stream):
        codes.append(guarded(lambda line=line: host.run_line(line), [line]))  # type: ignore[misc]
        if host.is_ending or codes[-1] == EXIT_INTERRUPTED:
            break
    return next((code for code in codes if code), 0)


def run_script(path: Path, host: LineHost, *, keep_going: bool) -> int:
    """Run the lines of a script until one fails, or all of them with *keep_going*, and return the
    exit code of the first that failed.

    Raises:
        UsageError: the file cannot be read, or runs itself.
    """
    place = path.resolve()
    if place in host.scripts:
        raise UsageError(f"{path} runs itself; remove that line")
    if len(host.scripts) == MAX_NESTED:
        raise UsageError(f"{path}: more than {MAX_NESTED} scripts run each other")
    host.scripts.append(place)
    try:
        with path.open("rb") as stream:
            return _run_script(path, stream, host, keep_going=keep_going)
    except OSError as exc:
        raise UsageError(os_problem(exc, path)) from exc
    finally:
        host.scripts.pop()


def _run_script(path: Path, stream: BinaryIO, host: LineHost, *, keep_going: bool) -> int:
    first = 0
    for number, line in request_lines(stream):
        note(Styled(f"> {line}", "cyan"))
        code = guarded(lambda line=line: host.run_line(line), [line])  # type: ignore[misc]
        first = first or code
        if host.is_ending:
            break
        if code == EXIT_INTERRUPTED or (code and not keep_going):
            note(f"{path}:{number}: stopped; this request ended with exit code {code}")
            break
    return first
