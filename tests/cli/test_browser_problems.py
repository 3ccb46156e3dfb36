"""Failures of a browser session under the commands that use it: an exit code and a sentence, and no
report of a bug.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.scripted_sessions import scripted_session
from uncaged_browser.session.address import DEFAULT_SESSION, socket_path
from uncaged_bundles.storage.store import Store
from uncaged_cli.main import run

ADDRESS = "http://shop.test/"
PAGE_COMMANDS = (
    ("open", ADDRESS),
    ("tabs",),
    ("close",),
    ("status",),
    ("external", "on"),
    ("external", "off"),
    ("search", "otters"),
    ("ask", "otters?", "--no-model"),
    ("extract", "prices"),
    ("extract", "the button", "--component"),
    ("knowledge", "add"),
    ("actions", "discover"),
    ("actions", "run", "form:search"),
    ("actions", "keep", "form:search", "--as", "find-product"),
    ("actions", "stop"),
    ("actions", "goal", "order a lamp"),
)
"""Commands whose first request to the session decides."""
BY_NAME = ("open", "otters")
RECORD = ("record", "order-it", "--url", ADDRESS, "--headless")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, shipped_files: Path) -> Iterator[Store]:
    """The store of the commands."""
    root = tmp_path_factory.mktemp("house") / "store"
    shutil.copytree(shipped_files, root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNCAGED_WORKFLOW_HOME", str(root))
        yield Store.open(root)


@pytest.mark.parametrize("words", [*PAGE_COMMANDS, ("stop",)], ids=" ".join)
@pytest.mark.parametrize(("kind", "code"), [("crashed", 1), ("timeout", 1), ("not-found", 5)])
def test_a_problem_of_the_browser_is_a_failure_of_the_command(
    house: Store, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], kind: str, code: int
) -> None:
    """Code 1 and the problem's message; code 5 if something was not found."""
    problem = {"problem": {"kind": kind, "message": "the page is in pieces"}}
    with scripted_session(house, lambda _request, _number: problem):
        assert run(["browser", *words]) == code
    assert "the page is in pieces" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("browser", *words) for words in (*PAGE_COMMANDS, BY_NAME)] + [RECORD], ids=" ".join
)
def test_the_end_of_a_session_is_a_failure_of_the_command(
    house: Store, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """A session that ends before it replies gives code 1 and the next step."""
    with scripted_session(house, lambda _request, _number: None) as session:
        assert run(words) == 1
    assert session.requests
    assert "the browser session ended; try again" in capsys.readouterr().err


def test_a_session_that_ends_at_once_is_stopped(
    house: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """The end of the session is what `stop` asks for."""
    with scripted_session(house, lambda _request, _number: None):
        assert run(["browser", "stop"]) == 0
    assert "is ending" in capsys.readouterr().out


@pytest.mark.parametrize("text", [None, "the page is in pieces"])
def test_a_proof_that_cannot_be_begun_leaves_the_flow_unproved(
    house: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str | None
) -> None:
    """The flow is saved, and its description says why it was not proved."""
    file = tmp_path / "recording.json"
    steps = [
        {"type": "navigate", "url": ADDRESS},
        {"type": "change", "selectors": ["aria/Search"], "value": "lamp"},
        {"type": "click", "selectors": ["aria/Go"], "offsetX": 1, "offsetY": 1},
    ]
    file.write_text(json.dumps({"title": "x", "steps": steps}))
    reply = None if text is None else {"problem": {"kind": "crashed", "message": text}}
    with scripted_session(house, lambda _request, _number: reply):
        assert run(["record", "order-it", "--import", str(file), "--accept", "--json"]) == 0
    proof = json.loads(capsys.readouterr().out)["proof"]
    assert proof["state"] == "unproved" and (text or "ended") in proof["reason"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("x", "--provider", "nope"), 5, "there is no search provider 'nope'"),
        (("",), 2, "give 1 to 500 characters"),
        (("x" * 501,), 2, "give 1 to 500 characters"),
    ],
)
def test_a_search_that_cannot_be_made_starts_no_session(
    house: Store,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    """An unknown provider, and words of a wrong length, are refused before a browser is started."""
    assert run(["browser", "search", *words]) == code
    assert message in capsys.readouterr().err
    assert not socket_path(house, DEFAULT_SESSION).exists()
