"""Pages that show a thread, for threads without pictures."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

Command = Callable[..., subprocess.CompletedProcess[str]]
FORGED = "</pre><script>alert(1)</script><img src=http://x.test/>\x1b[31m&amp;"


class Elements(HTMLParser):
    """Names of the elements of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.shown = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.names.add(tag)

    def handle_data(self, data: str) -> None:
        self.shown += data


def test_a_page_of_any_thread_shows_texts_as_they_are(
    command: Command, flow: Callable[[str], str], tmp_path: Path
) -> None:
    """A prompt with tags and control sequences is text of the page; a directory, and --json beside
    it, are refused.
    """
    flow("echo")
    assert command("run", "echo", "--prompt", FORGED).returncode == 0
    file = tmp_path / "strip.html"
    file.write_text("former")
    done = command("thread", "show", "latest", "--html", str(file))
    assert done.returncode == 0 and "0 pictures" in done.stdout, done.stderr
    page = Elements(file.read_text())
    assert not page.names & {"script", "img", "iframe", "link"}
    assert FORGED.replace("\x1b[31m", "") in page.shown and "\x1b" not in page.shown
    assert command("thread", "latest", "--html", str(tmp_path)).returncode == 2
    assert command("thread", "latest", "--html", str(file), "--json").returncode == 2
