"""Restate server of the npm package, for the tests of one process: ports of loopback, a temporary
directory, and no name server, so that nothing of it leaves this machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

INSTALLED = Path(__file__).parents[2] / ".restate"
"""Where `npm install --prefix .restate @restatedev/restate-server` puts it."""
PROGRAM = "node_modules/@restatedev/restate-server-*/bin/restate-server"
START_ATTEMPTS = 5
READY_S = 60.0


def program() -> str | None:
    """Return the server's program, None if there is none."""
    found = next(INSTALLED.glob(PROGRAM), None)
    return shutil.which("restate-server") if found is None else str(found)


@dataclass(slots=True, kw_only=True)
class RestateServer:
    """A running server."""

    admin: str
    ingress: str
    words: list[str]
    variables: Mapping[str, str]
    process: subprocess.Popen[bytes]

    def query(self, statement: str) -> list[dict[str, Any]]:
        """Return the rows of a statement."""
        headers = {"accept": "application/json"}
        done = httpx2.post(f"{self.admin}/query", json={"query": statement}, headers=headers)
        return list(done.raise_for_status().json()["rows"])

    def kill(self, invocation: str) -> None:
        """End an invocation, as a person does."""
        httpx2.patch(f"{self.admin}/invocations/{invocation}/kill").raise_for_status()

    def restart(self) -> None:
        """End the server as a crash does, and start it again with its data."""
        self.end()
        self.begin()

    def begin(self) -> None:
        """Start the server, once it was ended."""
        self.process = _begun(self.words, self.variables)
        assert _is_ready(self.admin, self.ingress, self.process)

    def end(self) -> None:
        """End the server as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def restate_server() -> Iterator[RestateServer]:
    """Start a server; end it by its process id."""
    found = program()
    assert found is not None
    directory = tempfile.mkdtemp(prefix="restate-")
    try:
        server = _started(found, directory)
        try:
            yield server
        finally:
            server.end()
    finally:
        shutil.rmtree(directory)


def _started(found: str, directory: str) -> RestateServer:
    """Start the server at free ports. Another process may take one first; then take others."""
    words = [
        *("bwrap", "--dev-bind", "/", "/", "--ro-bind", "/dev/null", "/etc/resolv.conf"),
        *("--die-with-parent", found, "--no-logo", "--base-dir", directory),
    ]
    for _ in range(START_ATTEMPTS):
        node, admin, ingress = _free_ports(3)
        variables = {
            **os.environ,
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_BIND_IP": "127.0.0.1",
            "RESTATE_BIND_PORT": str(node),
            "RESTATE_ADMIN__BIND_PORT": str(admin),
            "RESTATE_INGRESS__BIND_PORT": str(ingress),
            "RESTATE_DISABLE_TELEMETRY": "true",
        }
        server = RestateServer(
            admin=f"http://127.0.0.1:{admin}",
            ingress=f"http://127.0.0.1:{ingress}",
            words=words,
            variables=variables,
            process=_begun(words, variables),
        )
        if _is_ready(server.admin, server.ingress, server.process):
            return server
        server.end()
    raise AssertionError("Restate does not start")


def _begun(words: list[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        words, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _is_ready(admin: str, ingress: str, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the server answers at both ports; return whether it lives."""
    give_up_s = time.monotonic() + READY_S
    while process.poll() is None and time.monotonic() < give_up_s:
        try:
            for url in (f"{admin}/health", f"{ingress}/restate/health"):
                httpx2.get(url).raise_for_status()
        except httpx2.HTTPError:
            time.sleep(0.05)
        else:
            return True
    return False


def _free_ports(count: int) -> list[int]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports
