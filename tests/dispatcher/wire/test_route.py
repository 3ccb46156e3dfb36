"""The route of conversations with the store's own flows and rules."""

from __future__ import annotations

import json

import pytest
from testbed.serving import running
from uncaged_dispatcher.wire.client import DispatcherClient, RemoteError
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import token_of


@pytest.mark.slow
def test_the_verb_serves_sentences(engine: Engine) -> None:
    """A sentence that a shipped flow's pattern reads is run and explained; one that no pattern
    reads is missed with the nearest flows, and starts nothing.
    """
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
            schemas = {flow["flow"]: flow for flow in client.call("schemas")["flows"]}
            assert "parameters" in schemas["current-time"]
            assert schemas["current-time"]["pack"] == "system"
            system = client.call("schemas", pack="system")["flows"]
            assert {flow["pack"] for flow in system} == {"system"}
            later = client.call("schemas", after="current-time")["flows"]
            assert min(flow["flow"] for flow in later) > "current-time"
        assert len(engine.threads()) == 1
