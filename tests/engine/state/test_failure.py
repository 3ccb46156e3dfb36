"""Why a bundle failed, from its thread's end record and its source."""

from __future__ import annotations

import pytest
from uncaged_engine.state.failure import bundle_failure

SOURCE = b"descriptor = {}\n\ndef run(input, options):\n    yield {}\n    int('x')\n"
TRACE = "B.py:5 in run: int('x')\n/usr/lib/python3/json/decoder.py:9 in decode"


def end(**error: object) -> dict[str, object]:
    return {"end": "failed", "error": {"kind": "bundle", **error}}


def test_the_innermost_frame_of_the_bundle_is_the_failing_line() -> None:
    """A trace may end in the standard library; the line that is shown is the bundle's own, from its
    source and not from the trace.
    """
    found = bundle_failure(
        end(
            type="ValueError",
            message="bad",
            trace=f"B.py:4 in run: x\n{TRACE.replace(': int', ': lie')}",
        ),
        "B.py",
        SOURCE,
    )
    assert found is not None
    assert (found.type, found.message, found.line, found.function, found.source) == (
        "ValueError",
        "bad",
        5,
        "run",
        "    int('x')",
    )
    assert len(found.trace) == 3


@pytest.mark.parametrize(
    ("trace", "source", "line"),
    [
        ("", SOURCE, None),
        ("/lib/x.py:5 in f", SOURCE, None),
        ("B.py:5 in run", None, 5),
        ("B.py:99 in run: y", SOURCE, 99),
        ("nonsense", b"", None),
    ],
)
def test_a_trace_without_a_line_of_the_source_shows_none(
    trace: str, source: bytes | None, line: int | None
) -> None:
    """A missing bundle, a foreign trace and a line behind the end of the file leave the source
    empty.
    """
    found = bundle_failure(end(type="E", trace=trace), "B.py", source)
    assert found is not None
    assert (found.line, found.source) == (line, "")


def test_a_trace_of_any_length_is_shown_in_part() -> None:
    """A journal from elsewhere cannot fill the screen; the innermost frames stay."""
    found = bundle_failure(
        end(type="E", trace="\n".join(f"B.py:{n} in f" for n in range(1, 100_000))), "B.py", SOURCE
    )
    assert found is not None
    assert (len(found.trace), found.line) == (40, 99_999)


@pytest.mark.parametrize(
    "record",
    [None, {"end": "killed"}, end(message="took too long"), {"end": "failed", "error": "text"}],
)
def test_an_end_without_an_exception_has_no_failure(record: dict[str, object] | None) -> None:
    """A limit, a kill and a bundle that did not answer raised nothing."""
    assert bundle_failure(record, "B.py", SOURCE) is None
