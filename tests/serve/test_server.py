"""The server's life: one per port, ended by a signal after its routes are done, and no trace but
the token.
"""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from testbed.bundles import COUNT, granted
from testbed.serving import SCRIPT, authorization, running
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import LOOPBACK, token_of, token_path
from uncaged_engine.threads.starting import Chance
from uncaged_schedules.changes import add, find

from .conftest import Distribution

MODULE = """
import asyncio

ending = None

async def app(scope, receive, send):
    global ending
    if scope["type"] == "lifespan":
        ending, done = asyncio.Event(), asyncio.Event()
        await receive()
        app.done = done
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("draining", flush=True)
        ending.set()
        await done.wait()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"begun ", "more_body": True})
    await ending.wait()
    await send({"type": "http.response.body", "body": b"done"})
    app.done.set()

def route(engine):
    return app
"""
YEAR_MS = 366 * 24 * 3_600_000
SERVE = ["-m", "uncaged_cli", "serve", "--port"]


@contextmanager
def begun(server: subprocess.Popen[str], engine: Engine) -> Iterator[http.client.HTTPResponse]:
    """Wait until the server is ready, and begin a request that is answered only at its end."""
    assert server.stdout is not None
    parts = urlsplit(json.loads(server.stdout.readline())[0])
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    with closing(connection):
        connection.request("GET", "/held", headers=authorization(engine))
        with connection.getresponse() as response:
            assert response.read(6) == b"begun "
            yield response


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_after_its_requests(
    number: signal.Signals, engine: Engine, distribution: Distribution
) -> None:
    """A request in flight is answered, the process ends with success, and it prints no error."""
    site = distribution(MODULE, {"held": "mine:route"})
    with running(["-c", SCRIPT, "{}"], engine, site) as server:
        with begun(server, engine) as response:
            server.send_signal(number)
            assert response.read() == b"done"
        assert server.communicate(timeout=60) == ("draining\nended\n", "")
        assert server.returncode == 0


@pytest.mark.slow
def test_a_server_that_drains_accepts_no_connection(
    engine: Engine, distribution: Distribution
) -> None:
    """Once a signal has arrived, the port is closed for clients that come late; a second signal
    skips what is left of the drain time.
    """
    module = MODULE.replace("ending.set()", "pass")
    site = distribution(module, {"held": "mine:route"})
    with running(["-c", SCRIPT, "{}"], engine, site) as server:
        assert server.stdout is not None
        port = urlsplit(json.loads(server.stdout.readline())[0]).port
        server.terminate()
        assert server.stdout.readline() == "draining\n"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, port), timeout=60)
        server.terminate()
        assert server.communicate(timeout=60) == ("ended\n", "")


@pytest.mark.slow
def test_a_route_that_does_not_end_is_reported_and_left(
    engine: Engine, distribution: Distribution
) -> None:
    """A route with requests after the drain time keeps the process no longer, and is named."""
    module = MODULE.replace("ending.set()", "pass")
    site = distribution(module, {"held": "mine:route"})
    with running(["-c", SCRIPT, json.dumps({"drain_s": 1})], engine, site) as server:
        with begun(server, engine) as response:
            server.terminate()
            with pytest.raises((http.client.HTTPException, OSError, ValueError)):
                response.read()  # an incomplete chunk
        out, _ = server.communicate(timeout=60)
        assert out == "draining\nthe route 'held' had requests left after 1 s\nended\n"


@pytest.mark.slow
def test_the_verb_prints_one_line_and_leaves_only_the_token(engine: Engine) -> None:
    """The line has the address and the path of the token, and neither it nor the address has the
    token; after the end the store is as it was.
    """
    token = token_of(engine.store)
    with running([*SERVE, "0"], engine) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        before = files(engine.store.root)
        server.send_signal(signal.SIGINT)
        assert server.communicate(timeout=60) == ("", "")
        assert server.returncode == 0
    assert "http://127.0.0.1:" in line
    assert str(token_path(engine.store)) in line
    assert token not in line
    assert files(engine.store.root) == before


def files(root: Path) -> dict[str, int]:
    """Return each file of a store with its size, but for the index of threads, which the first look
    for due ones makes.
    """
    return {
        str(path.relative_to(root)): path.stat().st_size
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith("index.db")
    }


@pytest.mark.slow
def test_a_second_server_on_the_port_is_refused(engine: Engine) -> None:
    """The error says which port is taken, and the first server goes on."""
    with running([*SERVE, "0", "--json"], engine) as first:
        assert first.stdout is not None
        ready = json.loads(first.stdout.readline())
        port = urlsplit(ready["address"]).port
        with running([*SERVE, str(port)], engine) as second:
            out, error = second.communicate(timeout=60)
        assert (second.returncode, out) == (2, "")
        assert error == (
            f"error: port {port} cannot be served: Address already in use; choose another, or 0 for a free one\n"
        )
        with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=60)) as connection:
            connection.request("GET", "/", headers=authorization(engine))
            with connection.getresponse() as response:
                assert response.status == 200
        assert ready["tokenFile"] == str(token_path(engine.store))
        assert Path(ready["tokenFile"]).stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_the_server_starts_due_schedules(engine: Engine, tmp_path: Path) -> None:
    """One that is due is started, and one that cannot be is reported, also if they were added while
    the server runs.
    """
    granted(engine.store, COUNT)
    before = Engine(engine.store, Chance(clock_ms=lambda: engine.clock_ms() - YEAR_MS))
    with running(["-c", SCRIPT, '{"due_s": 0.1}'], engine) as server:
        assert server.stdout is not None
        server.stdout.readline()
        for name, place in (("fine", tmp_path), ("unstarted", tmp_path / "gone")):
            add(before, "count", "@yearly", name=name, directory=place, params={"n": 1})
        assert "'unstarted' runs in" in server.stdout.readline()
        server.send_signal(signal.SIGTERM)
        assert server.communicate(timeout=60) == ("ended\n", "")
    assert find(engine, "fine").thread_id is not None
