"""Completion of the shell's line, over a real store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from testbed.sentences import add_flow
from uncaged_bundles.errors import UsageError
from uncaged_cli.main import group
from uncaged_cli.shell.at_verbs import command_words
from uncaged_cli.shell.completer import LineCompleter
from uncaged_dispatcher.readings.pack_management import PackManager
from uncaged_engine.api import Engine


@pytest.fixture
def completer(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[LineCompleter]:
    """The completer of a store with two flows, in a directory with files."""
    add_flow(engine, "play-song", "play $(title) by $(artist)", "play (some | any) music")
    add_flow(engine, "code", "code $(n:number)")
    (tmp_path / "album").mkdir()
    (tmp_path / "album.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNCAGED_WORKFLOW_HOME", str(engine.store.root))
    completer = LineCompleter(engine, lambda: group)
    yield completer
    completer.close()


def completed(completer: LineCompleter, text: str) -> list[str]:
    """Return the lines that the completions of a beginning make."""
    found = completer.get_completions(Document(text), CompleteEvent())
    return [text[: len(text) + one.start_position] + one.text for one in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pl", ["play", "please"]),
        ("  pl", ["  play", "  please"]),
        ("play", ["play some", "play any"]),
        ("play ", ["play some", "play any"]),
        ("play  so", ["play  so by", "play  some"]),
        ("play Blue b", ["play Blue by"]),
        ("play any mu", ["play any mu by", "play any music"]),
        ("play alb", ["play alb by", "play album.txt", "play album/"]),
        ("code ./al", ["code ./album.txt", "code ./album/"]),
        ("@thr", ["@threads", "@thread"]),
        ("@conversation re", ["@conversation rename"]),
        ("@threads --sta", ["@threads --status"]),
        ("@show pl", ["@show play-song"]),
        ("@run co", ["@run code"]),
        ("@run ./al", ["@run ./album.txt", "@run ./album/"]),
        ("@run ./album.txt --k", ["@run ./album.txt --keep-going"]),
        ("@explain play  so", ["@explain play  so by", "@explain play  some"]),
        ("@history a", ["@history after"]),
        ("@help his", ["@help history"]),
        ("@unknown x", []),
        ("/nowhere/x", []),
        ("a\x00b", []),
        ("x" * 3000, []),
        ('@show "open', []),
    ],
)
def test_a_beginning_is_completed(completer: LineCompleter, text: str, expected: list[str]) -> None:
    """Words of rules follow with the space that the rules want, and verbs, options, flows and
    paths where they are allowed; a line that nothing continues has no completion, and no error.
    """
    assert completed(completer, text) == expected


def test_a_new_flow_is_offered_at_once(completer: LineCompleter, engine: Engine) -> None:
    """The rules are read again after a change of the store."""
    assert completed(completer, "dan") == []
    add_flow(engine, "dance", "dance")
    assert completed(completer, "dan") == ["dance"]


def test_the_name_of_a_server_starts_no_server(
    completer: LineCompleter, engine: Engine, tmp_path: Path
) -> None:
    """The pack of an MCP server is offered after its mark, and an unknown verb is refused, before
    any tool is known; the control: a list of the packs starts the server.
    """
    started = tmp_path / "started"
    server = {"command": "touch", "args": [str(started)]}
    engine.store.config_path.write_text(json.dumps({"mcpServers": {"weather": server}}))
    assert completed(completer, "@weat") == ["@weather"]
    with pytest.raises(UsageError, match="no verb 'wether'; did you mean 'weather'"):
        command_words(["wether"], lambda: engine)
    assert not started.exists()
    PackManager(Engine(engine.store)).reports()
    assert started.exists()
