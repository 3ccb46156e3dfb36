"""Names of other hosts that a page makes the browser ask a resolver for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from testbed.name_server import LAST, WAYS
from testbed.requirements import OWN_NETWORK

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium", "own-network")]

TESTS = Path(__file__).parents[2]


def names_asked(kind: str) -> set[str]:
    """The names that the resolver was asked for during one visit of a kind of browser."""
    words = [*OWN_NETWORK, sys.executable, "-m", "testbed.name_server", kind]
    done = subprocess.run(words, cwd=TESTS, capture_output=True, text=True, timeout=300, check=True)
    return set(json.loads(done.stdout))


def test_a_page_makes_the_session_ask_for_no_other_name() -> None:
    """Prefetches, early connections, pictures, frames, requests and WebSockets to hosts outside the
    policy make a browser without our options ask for their names, and a session for none, neither
    the browser nor its proxy; the resolver answers in both cases.
    """
    others = {f"{way}.elsewhere.example" for way in WAYS}
    assert others | {LAST} <= names_asked("plain"), "the control asks for each"
    assert names_asked("guarded") == {LAST}
