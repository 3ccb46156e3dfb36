"""Conversations of a store with a few small flows."""

from __future__ import annotations

import pytest
from testbed.bundles import COUNT, MARKED, granted, source
from testbed.conversing import now_ms
from uncaged_dispatcher.conversations.catalog import current_conversation
from uncaged_engine.api import Engine

SLEEPER = source("sleeper", "    yield {'null': {'sleep_s': 600}}\n")
ASKING = source(
    "asking",
    """
    colour = yield {"ask": {"question": "which?"}}
    return {"success": True, "message": colour}
""",
    policy={"ask": {}},
)
CHOOSING = source(
    "choosing",
    """
    colour = yield {"ask": {"question": "which?", "choices": ["red", "blue"]}}
    return {"success": True, "message": colour}
""",
    policy={"ask": {}},
)


@pytest.fixture
def conversation(engine: Engine) -> str:
    """The id of a new conversation; the store has a few flows, two of which ask a person."""
    for text in (COUNT, MARKED, SLEEPER, ASKING, CHOOSING):
        granted(engine.store, text)
    return current_conversation(engine.store, now_ms())
