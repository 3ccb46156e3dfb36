"""PostgreSQL server of the distribution's package, for the tests of one process: a Unix socket and
a port of loopback, in a temporary directory, without flushes to disk.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

SUPERUSER = "postgres"
UNPRIVILEGED_ID = 65534
"""The server refuses to run as root; then it runs as this user and group."""
READY = b"database system is ready to accept connections"
START_ATTEMPTS = 5
STOP_S = 60.0
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
}


def programs() -> Path | None:
    """Return the directory of the newest installed server's programs, as Debian installs them;
    None if there is none.
    """
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda path: int(path.parent.name), default=None)


@dataclass(slots=True, kw_only=True)
class PostgresServer:
    """A running server. directory: of its Unix socket. password: of the superuser, at the port;
    the socket asks for none. words: the command that runs.
    """

    directory: Path
    port: int
    password: str
    words: Sequence[str]
    process: subprocess.Popen[bytes]

    def restart(self, by: signal.Signals) -> None:
        """End the server by a signal, and start it again: SIGINT ends the sessions first, SIGQUIT
        ends it as a crash does.
        """
        _end(self.process, by)
        process, seen = _begun(self.words, self.directory)
        assert process is not None, seen
        self.process = process

    def address(self, schema: str, *, user: str = SUPERUSER, database: str = SUPERUSER) -> str:
        """Return the address of the store in a schema, through the Unix socket."""
        return f"postgresql://{user}@/{database}?host={self.directory}&port={self.port}&schema={schema}"

    def connect(self, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """Connect as the superuser. options: of libpq."""
        import psycopg  # 60 ms, which the tests of other parts do not need

        chosen = {"host": str(self.directory), "port": self.port, "dbname": SUPERUSER}
        return psycopg.connect(autocommit=True, **{"user": SUPERUSER, **chosen, **options})

    def new_schema(self) -> str:
        """Return the name of a schema that no other test uses."""
        return f"test_{secrets.token_hex(6)}"


@contextmanager
def postgres_server(**settings: object) -> Iterator[PostgresServer]:
    """Start a server; end it by its process id. settings: in place of those of `SETTINGS`."""
    bin_directory = programs()
    assert bin_directory is not None
    directory = Path(
        tempfile.mkdtemp(prefix="pg-", dir="/tmp")
    )  # open to the server's user, and short
    if os.geteuid() == 0:
        os.chown(directory, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
    try:
        password = _initialise(bin_directory, directory)
        port, words, process = _started(bin_directory, directory, settings)
        server = PostgresServer(
            directory=directory, port=port, password=password, words=words, process=process
        )
        try:
            yield server
        finally:
            _end(server.process, signal.SIGINT)  # ends its sessions
    finally:
        shutil.rmtree(directory)


def _initialise(bin_directory: Path, directory: Path) -> str:
    password = secrets.token_hex(8)
    file = directory / "password"
    file.write_text(password)
    file.chmod(0o644)
    words = [
        *(str(bin_directory / "initdb"), "-D", str(directory / "data"), "-U", SUPERUSER),
        *("--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C"),
        *("--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={file}"),
    ]
    done = subprocess.run(
        [*_unprivileged(), *words], capture_output=True, text=True, check=False, cwd=directory
    )
    assert done.returncode == 0, done.stderr
    return password


def _started(
    bin_directory: Path, directory: Path, chosen: Mapping[str, object]
) -> tuple[int, Sequence[str], subprocess.Popen[bytes]]:
    """Start the server at a free port. Another process may take the port first; then take the
    next one.
    """
    seen = b""
    for _ in range(START_ATTEMPTS):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port: int = free.getsockname()[1]
        settings = {
            **SETTINGS,
            **chosen,
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": str(directory),
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        words = [str(bin_directory / "postgres"), "-D", str(directory / "data"), *options]
        process, seen = _begun(words, directory)
        if process is not None:
            return port, words, process
    raise AssertionError(seen.decode())


def _begun(words: Sequence[str], directory: Path) -> tuple[subprocess.Popen[bytes] | None, bytes]:
    """Start the server, and wait until it answers; return its process, None if it ended, and what
    it printed.
    """
    process = subprocess.Popen(
        [*_unprivileged(), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=directory,
    )
    assert process.stderr is not None
    seen = b""
    for line in process.stderr:
        seen += line
        if READY in line:
            threading.Thread(target=_drain, args=(process.stderr,), daemon=True).start()
            return process, seen
    process.wait()
    process.stderr.close()
    return None, seen


def _unprivileged() -> Sequence[str]:
    """Words before a program: it ends with the tests, and is not root."""
    user, group = f"--reuid={UNPRIVILEGED_ID}", f"--regid={UNPRIVILEGED_ID}"
    become = (user, group, "--clear-groups") if os.geteuid() == 0 else ()
    return ("setpriv", *become, "--pdeathsig=INT")


def _drain(stream: IO[bytes]) -> None:
    with stream:
        while stream.read(65536):
            pass


def _end(process: subprocess.Popen[bytes], by: signal.Signals) -> None:
    process.send_signal(by)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
