"""The private history of the shell's lines."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from uncaged_cli.shell.history import KEPT_LINES, MAX_BYTES, PrivateHistory, history_of
from uncaged_engine.api import Engine
from uncaged_engine.settings import keys


def history(path: Path) -> PrivateHistory:
    return PrivateHistory(path, dict)


def test_lines_are_kept_for_the_next_shell(tmp_path: Path) -> None:
    """Lines come back, the last one first, but those that begin with a space; the file is private,
    even if it was not before.
    """
    path = tmp_path / "history"
    path.touch(mode=0o644)
    for line in ("one", " secret", "two é", "three"):
        history(path).append_string(line)
    assert list(history(path).load_history_strings()) == ["three", "two é", "one"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_known_secrets_are_kept_by_name(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of a stored key or of a variable that config names is not in the file."""
    engine.store.config_path.write_text("secrets: {SITE: {env: SITE_TOKEN}}\n")
    keys.put(engine.store.root / "keys", "MY_KEY", "hunter2-hunter2")
    monkeypatch.setenv("SITE_TOKEN", "s3cr3t-token")
    history_of(engine).append_string("use hunter2-hunter2 with s3cr3t-token now")
    [line] = history_of(engine).load_history_strings()
    assert line == "use secret:MY_KEY with secret:SITE now"


def test_a_strange_file_stops_nothing(tmp_path: Path) -> None:
    """Lines that are no texts are left out; a file that cannot be written is not written."""
    path = tmp_path / "history"
    path.write_bytes(b'{"a":1}\n\xff\xfe\n"a\\u001bb"\n' + b"[" * 100_000 + b'\n"good"\n"torn')
    assert list(history(path).load_history_strings()) == ["good"]
    blocked = tmp_path / "folder"
    blocked.mkdir()
    history(blocked).append_string("x")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    history(link).append_string("x")
    assert not (tmp_path / "elsewhere").exists()


def test_a_large_file_is_cut(tmp_path: Path) -> None:
    """The last lines are left, and the file stays private."""
    path = tmp_path / "history"
    lines = [json.dumps(f"line {number} {'x' * 100}") for number in range(MAX_BYTES // 100)]
    path.write_text("\n".join(lines) + "\n")
    found = list(history(path).load_history_strings())
    assert len(found) == KEPT_LINES
    assert path.stat().st_size < MAX_BYTES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(history(path).load_history_strings()) == found
