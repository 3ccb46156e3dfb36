"""The route of conversations with the store's own flows and rules."""

from __future__ import annotations

import json
import queue
from typing import Any

import pytest
from testbed.bundles import source
from testbed.sentences import add_flow, parameters
from testbed.serving import running
from uncaged_dispatcher.wire.client import DispatcherClient, RemoteError
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import token_of


@pytest.mark.slow
def test_the_verb_serves_sentences(engine: Engine) -> None:
    """A sentence that a shipped flow's pattern reads is run and explained; one that no pattern
    reads is missed with the nearest flows, and starts nothing; a name that may mean two things is
    asked about, and another client chooses.
    """
    entities = [{"name": f"Blue Tra{end}", "type": "Song"} for end in ("in", "ne")]
    body = f'    return {{"success": True, "entities": {entities!r}}}\n    yield\n'
    album = source("album", body, patterns=["show the album"], policy={})
    engine.add("album", album, accept=lambda _: True)
    add_flow(engine, "play", "play $(song:Song)", schema=parameters("song", song={}))
    with running(["-m", "uncaged_cli", "serve", "--port", "0", "--json"], engine) as server:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        with DispatcherClient(address, token_of(engine.store)) as client:
            request = client.submit("what time is it")
            result = request.result(60)
            assert (result["status"], result["success"]) == ("completed", True)
            [record] = [
                record["reading"] for record in client.call("log")["records"] if "reading" in record
            ]
            assert (record["by"], record["calls"][0]["flow"]) == ("grammar", "current-time")
            [reading] = client.call("explain", text="what time is it")["readings"]
            assert reading["calls"] == record["calls"]
            offered = client.call("complete", text="what time i")
            words = {word for group in offered["groups"] for word in group["completions"]}
            assert "is" in words
            missed = client.submit("sing me a song about xylophones").result(60)
            assert missed["status"] == "missed"
            assert missed["details"]["nearest"]
            with pytest.raises(RemoteError, match="absolute"):
                client.call("explain", text="x", directory="here")
            asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
            with DispatcherClient(
                address, token_of(engine.store), notice=lambda _, params: asked.put(params)
            ) as other:
                assert other.submit("show the album").result(60)["success"]
                playing = other.submit("play blue tran")
                while "question" not in (record := asked.get(timeout=60).get("record", {})):
                    pass
                assert [one["label"] for one in record["question"]["choices"]] == [
                    "Blue Train",
                    "Blue Trane",
                ]
                client.call("choose", request=playing.id, question=record["seq"], choice="2")
                assert playing.result(60)["data"] == {"song": "Blue Trane"}
            schemas = {flow["flow"]: flow for flow in client.call("schemas")["flows"]}
            assert "parameters" in schemas["current-time"]
            assert schemas["current-time"]["pack"] == "system"
            system = client.call("schemas", pack="system")["flows"]
            assert {flow["pack"] for flow in system} == {"system"}
            later = client.call("schemas", after="current-time")["flows"]
            assert min(flow["flow"] for flow in later) > "current-time"
        assert len(engine.threads()) == 3
