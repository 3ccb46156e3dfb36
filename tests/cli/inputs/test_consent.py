"""Confirmation of permissions."""

from __future__ import annotations

import io

import pytest
from uncaged_bundles.errors import RefusedError
from uncaged_cli.inputs.consent import asker


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_accept_says_yes_but_still_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """Permissions that `--accept` grants are still listed on stderr."""
    assert asker("flow 'x'", accept=True)(("http: may send requests",))
    assert capsys.readouterr().err == "flow 'x' asks to be allowed:\n  - http: may send requests\n"


def test_without_a_terminal_the_option_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal names the option."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(RefusedError, match="--accept"):
        asker("flow 'x'", accept=False)(("a",))


@pytest.mark.parametrize(("answer", "granted"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_terminal_is_asked_and_no_is_the_default(
    monkeypatch: pytest.MonkeyPatch, answer: str, granted: bool
) -> None:
    """Only a yes is a yes."""
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", Terminal())
    if granted:
        assert asker("flow 'x'", accept=False)(("a",))
    else:
        with pytest.raises(RefusedError, match="nothing was changed"):
            asker("flow 'x'", accept=False)(("a",))
