"""The command, run in processes that are forked from one that has imported it: a test that runs
many commands waits for the interpreter and the imports once.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

TESTS = Path(__file__).parent.parent
IMPORTED = ("uncaged_engine", "uncaged_dispatcher", "uncaged_cli")
SIZE_BYTES = 8


class ForkedCommands:
    """Client of the process that forks. path: of its socket."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def run(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: str | None = None,
        timeout_s: float,
    ) -> subprocess.CompletedProcess[str]:
        """Run the command as `subprocess.run` does with pipes; without *stdin* that is empty."""
        ours, theirs = zip(*(os.pipe() for _ in range(2)), strict=True)
        read, write = os.pipe()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(self._path))
            body = json.dumps([list(words), dict(env), str(cwd)]).encode()
            size = len(body).to_bytes(SIZE_BYTES, "big")
            socket.send_fds(connection, [size], [read, *theirs])
            for number in (read, *theirs):
                os.close(number)
            connection.sendall(body)
            typing = threading.Thread(target=_feed, args=(write, (stdin or "").encode()))
            printed: list[bytes] = [b"", b""]
            hearing = threading.Thread(target=_drain, args=(ours[1], printed, 1))
            for thread in (typing, hearing):
                thread.start()
            _drain(ours[0], printed, 0)
            for thread in (typing, hearing):
                thread.join()
            code = int(connection.recv(SIZE_BYTES))
        out, errors = (part.decode().replace("\r\n", "\n") for part in printed)
        return subprocess.CompletedProcess(list(words), code, out, errors)


def _feed(number: int, data: bytes) -> None:
    with open(number, "wb") as pipe:
        try:
            pipe.write(data)
            pipe.flush()
        except BrokenPipeError:
            pipe.detach()


def _drain(number: int, printed: list[bytes], place: int) -> None:
    with open(number, "rb") as pipe:
        printed[place] = pipe.read()


@contextmanager
def forked_commands(directory: Path) -> Iterator[ForkedCommands]:
    """Run the process that forks for the block, with its socket in *directory*."""
    path = directory / "commands"
    paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        [sys.executable, "-m", "testbed.forked_commands", str(path)],
        env={**os.environ, "PYTHONPATH": paths, "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        try:
            yield ForkedCommands(path)
        finally:
            server.kill()


def serve(path: str) -> None:
    """Fork a process for each connection and send its exit code; returns in the forked process,
    once it is as the client wants it.
    """
    selector = selectors.DefaultSelector()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        selector.register(listener, selectors.EVENT_READ)
        print("ready", flush=True)  # noqa: T201 - to the client
        while True:
            for key, _ in selector.select():
                if key.fileobj is not listener:
                    _tell(selector, key)
                    continue
                connection, _ = listener.accept()
                size, descriptors, _, _ = socket.recv_fds(connection, SIZE_BYTES, 3)
                with connection.makefile("rb") as stream:
                    body = json.loads(stream.read(int.from_bytes(size, "big")))
                if (child := os.fork()) == 0:
                    break
                for number in descriptors:
                    os.close(number)
                selector.register(os.pidfd_open(child), selectors.EVENT_READ, (child, connection))
            else:
                continue
            break
    selector.close()
    words, environment, directory = body
    for place, number in enumerate(descriptors):
        os.dup2(number, place)
        os.close(number)
    # the former objects know of other files
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - they stay open
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - the same
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115 - the same
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = words


def _tell(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    """Reap a child and send its exit code."""
    child, connection = key.data
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    selector.unregister(key.fileobj)
    os.close(key.fd)
    with connection:
        connection.sendall(str(code).encode())


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for package in map(importlib.import_module, IMPORTED):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    gc.freeze()
    serve(sys.argv[1])
    from uncaged_cli.entry import main

    try:
        main()
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(int(end.code or 0))  # taking the imported modules apart takes as long as the rest
