"""Cost that the engine adds to an HTTP request: policy, address check, journal, kept
connections.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median

from . import flows
from .baseline import bare_step_us
from .bench import Bench, Figure
from .laboratory import step_lines, timeline
from .table import Row, ratios

WARM_UP = 20
BODY_BYTES = 1000

SERVER = """\
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Answer(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

    def do_GET(self):
        body = json.dumps({"value": "v" * %d}).encode()
        head = "HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %%d\\r\\n\\r\\n" %% len(body)
        self.wfile.write(head.encode() + body)

    def log_message(self, *words):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def http(bench: Bench) -> Sequence[Row]:
    """One thread that asks a server on loopback, against the client that we use, bare, and one
    flush for each answer.
    """
    pairs, asked, flushed = [], [], []
    count = bench.scaled(500)
    with bench.laboratory() as laboratory, serving() as port:
        laboratory.add("asks", asking(port))
        line = step_lines(laboratory.run("asks", WARM_UP))[WARM_UP // 2]
        for _ in bench.rounds(9):
            asked.append(bare_request_us(port, count))
            flushed.append(bare_step_us(laboratory.directory, line, count))
            ours = timeline(laboratory.run("asks", count + WARM_UP)).per_step_us(
                WARM_UP, count + WARM_UP
            )
            pairs.append((ours, asked[-1] + flushed[-1]))
    return (
        Row(
            figure="http",
            title="http effect against a loopback server",
            values=ratios(pairs),
            unit="×",
            baseline=f"{median(asked):.0f} µs bare httpx2 client + {median(flushed):.0f} µs dump + append + fdatasync",
            reach=2.0,
            missed="beside the request there are the step itself, its checks and a second process, which share two CPUs with the server",
        ),
    )


def asking(port: int) -> bytes:
    """A flow that asks the server as often as its prompt says."""
    body = f"""\
    for number in range(int(input["prompt"])):
        yield {{"http": {{"url": "http://127.0.0.1:{port}/x"}}}}
    return {{"success": True, "message": "done"}}
"""
    policy = f'{{"http": {{"hosts": ["127.0.0.1:{port}"], "private": True}}}}'
    return flows.source("asks", body).replace(b'{"null": {}}', policy.encode(), 1)


def bare_request_us(port: int, count: int) -> float:
    """Microseconds of one request and its parsed answer over a kept connection."""
    import httpx2

    with httpx2.Client(trust_env=False) as client:
        for _ in range(WARM_UP):
            client.get(f"http://127.0.0.1:{port}/x").raise_for_status()
        begin = time.perf_counter()
        for _ in range(count):
            json.loads(client.get(f"http://127.0.0.1:{port}/x").content)
        return (time.perf_counter() - begin) / count * 1e6


@contextmanager
def serving() -> Iterator[int]:
    """A server in a process of its own; yields its port."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER % BODY_BYTES], stdout=subprocess.PIPE
    ) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("a process with a pipe for its output has none")
            yield int(process.stdout.readline())
        finally:
            process.kill()


FIGURES = (Figure(name="http", measure=http),)
