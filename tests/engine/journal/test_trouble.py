"""Notes about threads that were left outlive the process that wrote them, not the boot whose memory
they are about.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from uncaged_bundles.storage.runtime import VARIABLE
from uncaged_engine.journal import trouble
from uncaged_engine.journal.trouble import Trouble


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime directory of the test's own."""
    directory = tmp_path / "runtime"
    directory.mkdir(mode=0o700)
    monkeypatch.setenv(VARIABLE, str(directory))
    return directory / "uncaged" / trouble.DIRECTORY


def test_a_note_is_found_by_every_name_of_its_journal(tmp_path: Path, runtime: Path) -> None:
    """The journal's real path counts; after it was cleared nothing of the note is left."""
    journal, link = tmp_path / "one.jsonl", tmp_path / "link"
    link.symlink_to(tmp_path)
    note = Trouble(message="/disk: full", on_disk=7)
    trouble.write(journal, note)
    assert trouble.find(link / "one.jsonl") == note
    assert trouble.find(tmp_path / "other.jsonl") is None
    trouble.clear(link / "one.jsonl")
    assert trouble.find(journal) is None
    assert not runtime.exists()


def test_after_a_reboot_nothing_is_in_doubt(tmp_path: Path, runtime: Path) -> None:
    """A journal holds after a reboot what the disk kept; the failure is still shown."""
    journal = tmp_path / "one.jsonl"
    trouble.write(journal, Trouble(message="/disk: full", on_disk=7))
    [file] = runtime.iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), "boot": "another"}))
    assert trouble.find(journal) == Trouble(message="/disk: full")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"message": 1, "on_disk": "x"}'])
def test_a_note_that_cannot_be_read_is_none_or_says_little(
    tmp_path: Path, runtime: Path, text: str
) -> None:
    """A damaged note never hides a thread."""
    journal = tmp_path / "one.jsonl"
    trouble.write(journal, Trouble(message="/disk: full", on_disk=7))
    [file] = runtime.iterdir()
    file.write_text(text)
    found = trouble.find(journal)
    assert found is None or found.on_disk is None


def test_without_a_runtime_directory_there_are_no_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is raised where the place is another file."""
    (tmp_path / "taken").mkdir(mode=0o700)
    (tmp_path / "taken" / "uncaged").write_bytes(b"")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "taken"))
    trouble.write(tmp_path / "one.jsonl", Trouble(message="x"))
    assert trouble.find(tmp_path / "one.jsonl") is None
    trouble.clear(tmp_path / "one.jsonl")
