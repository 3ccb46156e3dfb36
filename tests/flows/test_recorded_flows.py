"""Recorded and imported tasks as flows: added, run in threads, proved, and stopped by drift."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from testbed.bundles import granted
from testbed.processes import end, workers_of
from testbed.shop import Shop, open_shop
from testbed.steering import finish
from uncaged_browser.recording.imports import import_recording
from uncaged_browser.session.address import DEFAULT_SESSION, profile_path
from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.effect_kinds import KNOWN

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]


@pytest.fixture
def engine(store: Store) -> Iterator[Engine]:
    """The engine; its browser session is ended after the test, and the profile removed."""
    yield Engine(store)
    for session in workers_of(store.root):
        end([child.pid for child in session.children(recursive=True)] + [session.pid])
    shutil.rmtree(profile_path(store, DEFAULT_SESSION).parent, ignore_errors=True)


@pytest.fixture
def shop() -> Iterator[Shop]:
    """A shop that keeps its orders."""
    with open_shop(3) as open:
        yield open


def recorded_elsewhere(url: str) -> str:
    """JSON of the DevTools Recorder for an order."""

    def on(*selectors: str, **more: object) -> dict[str, object]:
        return {"selectors": [[one] for one in selectors], **more}

    found = {"type": "navigation", "url": f"{url}/find?q=lamp", "title": "Find"}
    steps = [
        {"type": "setViewport", "width": 800, "height": 600},
        {"type": "navigate", "url": f"{url}/"},
        on("aria/Search", "input", type="change", value="lamp"),
        {"type": "keyDown", "key": "Enter", "assertedEvents": [found]},
        {"type": "keyUp", "key": "Enter"},
        on('aria/Order Blue Lamp[role="link"]', "li:nth-of-type(3) > a", type="click"),
        on("aria/Mail", "[name='mail']", type="change", value="ada@shop.test"),
        on("aria/Gift wrap", "[name='gift']", type="change", value="true"),
        on("aria/City", "[name='city']", type="change", value="Bern", frame=[0]),
        on("aria/Speed", "select", type="change", value="Fast", frame=[0]),
        {
            "type": "click",
            "selectors": [["x-confirm", "button:first-of-type"]],
            "assertedEvents": [{"type": "navigation", "title": "Thanks"}],
        },
    ]
    return json.dumps({"title": "Order", "steps": steps})


def run(engine: Engine, recipe: Mapping[str, object], **params: object) -> ThreadId:
    granted(engine.store, build_flow(parse_recipe(recipe), KNOWN).source)
    return engine.run("order", prompt="", params=params)


def test_an_imported_recording_becomes_a_flow_that_is_proved(engine: Engine, shop: Shop) -> None:
    """A recording of the DevTools Recorder runs as a thread with other values, `verify` proves it,
    and a page that differs ends it without success and without an order.
    """
    recording = import_recording(recorded_elsewhere(shop.web.url), "recorder")
    assert [line.partition(" ")[2].partition(":")[0] for line in recording.left_out] == ["1"]
    recipe: Any = recording.to_recipe("order")
    assert set(recipe["parameters"]) == {"search", "mail", "gift_wrap", "city", "speed", "origin"}
    thread = run(engine, recipe, mail="b@c.test", city="Basel")
    result = finish(engine, thread)
    assert result["success"], result
    assert shop.orders == [
        {
            "item": "Blue Lamp",
            "city": "Basel",
            "speed": "Fast",
            "mail": "b@c.test",
            "gift": "yes",
        }
    ]
    assert engine.verify(thread).ok
    recipe["steps"][-1]["expect"] = {"title": "Sorry"}
    failed = finish(engine, run(engine, recipe))
    assert failed["success"] is False
    [drift] = failed["data"]["drift"]
    assert (drift["what"], drift["expected"], drift["found"]) == ("title", "Sorry", "Thanks")
