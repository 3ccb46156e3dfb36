"""The debug log of a thread is bounded, and a tag in it leads to one place in the code."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import uncaged_engine
from uncaged_engine.journal import infolog
from uncaged_engine.journal.infolog import InfoLog

TAG = re.compile(r'\.note\(\s*"([^"]*)",')
CROCKFORD = re.compile(r"[0-9A-HJKMNP-TV-Z]{8}")


def test_each_call_site_has_a_tag_of_its_own() -> None:
    """Eight characters of Crockford's alphabet, each once in the packages of the engine."""
    root = Path(uncaged_engine.__file__).parents[1]
    tags = Counter(
        tag for path in root.rglob("*.py") for tag in TAG.findall(path.read_text("utf-8"))
    )
    assert len(tags) >= 8
    assert [tag for tag, times in tags.items() if times > 1 or not CROCKFORD.fullmatch(tag)] == []


def test_a_line_is_short_and_the_log_stops_growing(tmp_path: Path) -> None:
    """Both ends of a long remark are kept; a log that is full takes no more lines."""
    path = tmp_path / "x.info.jsonl"
    log = InfoLog(path, lambda: 7)
    log.note("AAAAAAAA", "begin" + "x" * 100_000 + "end")
    record = json.loads(path.read_text())
    assert set(record) == {"tag", "content", "timestamp"}
    assert record["content"].startswith("beginx")
    assert record["content"].endswith("xend")
    assert len(record["content"]) < infolog.MAX_CONTENT + 10
    for _ in range(400):
        log.note("AAAAAAAA", "y" * 4000)
    assert infolog.MAX_BYTES - 5000 < path.stat().st_size <= infolog.MAX_BYTES


def test_a_log_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """A full disk or a missing directory loses the remark and nothing else."""
    InfoLog(tmp_path / "gone" / "x.info.jsonl", lambda: 7).note("AAAAAAAA", "text")
