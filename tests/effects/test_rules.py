"""Rules of effects that a crash left open, read from the intent as the journal holds it."""

from __future__ import annotations

import pytest
from testbed.bundles import source
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.effect_kinds import handler_for, outcome_schema
from uncaged_engine.state.children import OpenEffect, parts_of
from uncaged_engine.threads.resuming import is_due

THREAD = ThreadId("01HX5WBE000000000000000000")
POST = {"method": "POST", "url": "http://127.0.0.1/1"}
BODY = {"language": "python", "body": "1"}
BUNDLE = read_bundle(
    source(
        "rules",
        "    yield {'now': {}}\n",
        policy={
            "http": {"hosts": ["127.0.0.1"]},
            "script": {"write": ["/srv/data"]},
            "all": {},
        },
    )
)


@pytest.mark.parametrize("more", [{}, {"label": "pay"}, {"retry": {"times": 2}}])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param("http", POST, id="http"),
        pytest.param("script", BODY, id="script"),
        pytest.param("all", {"effects": [{"http": {**POST, "label": "pay"}}]}, id="all"),
    ],
)
def test_an_open_effect_that_acts_is_a_persons_to_settle(
    kind: str, body: dict[str, object], more: dict[str, object], store: Store
) -> None:
    """A POST, a script that writes, or an `all` with one is asked about, whatever its labels."""
    place = OpenEffect(store=store, thread=THREAD, seq=1, intended_ms=0)
    assert place.rule(handler_for(kind), {**body, **more}, BUNDLE) == "ask"


@pytest.mark.parametrize("more", [{}, {"label": "pay"}, {"retry": {"times": 2}}])
def test_labels_and_retries_hide_no_part_no_moment_and_no_schema(more: dict[str, object]) -> None:
    """Parts of an `all`, the end of a `sleep` and the answers to an `ask` are found beside them."""
    assert parts_of("all", {"effects": [{"http": POST}], **more}) == [("http", POST)]
    intent = {"seq": 1, "intent": {"sleep": {"seconds": 1, **more}}, "timestamp": 5}
    assert (is_due([intent], 1004), is_due([intent], 1005)) == (False, True)
    assert outcome_schema("ask", {"question": "?", "choices": [1], **more}) == {"enum": [1]}


def test_a_body_that_is_refused_today_is_a_persons_to_settle() -> None:
    """An older version may have performed a body with a key that this version refuses."""
    assert handler_for("http").rule({**POST, "unknown": 1}, BUNDLE) == "ask"
    assert handler_for("script").rule({**BODY, "unknown": 1}, BUNDLE) == "ask"
