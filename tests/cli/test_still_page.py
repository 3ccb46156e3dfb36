"""Page of a thread as one file: its data and its policy."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from testbed.still_pages import data_of

Command = Callable[..., subprocess.CompletedProcess[str]]
FORGED = "</pre></script><script>alert(1)</script><img src=http://x.test/>\x1b[31m&amp;"


def test_a_page_of_any_thread_holds_texts_as_data(
    command: Command, flow: Callable[[str], str], tmp_path: Path
) -> None:
    """A prompt with tags and control sequences is data of the page, whose policy lets only its own
    script and style run; a directory, and --json beside it, are refused and change nothing.
    """
    flow("echo")
    assert command("run", "echo", "--prompt", FORGED).returncode == 0
    file = tmp_path / "thread.html"
    file.write_text("former")
    assert command("thread", "latest", "--html", str(file), "--json").returncode == 2
    assert command("thread", "latest", "--html", str(tmp_path)).returncode == 2
    assert file.read_text() == "former"
    done = command("thread", "show", "latest", "--html", str(file))
    assert done.returncode == 0 and "0 pictures" in done.stdout, done.stderr
    page = file.read_text()
    assert data_of(page)["thread"]["prompt"] == FORGED
    assert page.count("<script") == page.count("</script>") == 2
    for tag in ("script", "style"):
        text = page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = base64.b64encode(sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page
    assert list(tmp_path.glob("*.tmp")) == []
    printed = command("thread", "show", "latest", "--html", "-")
    assert data_of(printed.stdout) == data_of(page) and "0 pictures" in printed.stderr
