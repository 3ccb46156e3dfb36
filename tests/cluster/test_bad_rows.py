"""Rows that someone changed, met by a worker that drives other threads, and workers that lack
rights.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from testbed.bundles import source
from testbed.foreground import environment
from testbed.postgres import PostgresServer
from uncaged_bundles.errors import DamagedError, RefusedError, SandboxUnavailable
from uncaged_cli.entry import STORE_VARIABLE
from uncaged_cluster.store import open_store
from uncaged_engine.api import Engine
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend

from .conftest import Rows

PATIENCE_S = 60
BODY = """
    yield {"null": {"value": 1}}
    return {"success": True, "message": "done"}
"""
LARGE = "x" * 2_000_000
"""A prompt that is kept in a blob."""


def variables(home: Path, address: str) -> dict[str, str]:
    home.mkdir(exist_ok=True)
    return {**environment(), "UNCAGED_WORKFLOW_HOME": str(home), STORE_VARIABLE: address}


def told(
    home: Path, address: str, *words: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "uncaged_cli", *words],
        env=variables(home, address),
        cwd=home if home.exists() else None,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def started(home: Path, address: str, flow: str, prompt: str = "p") -> str:
    done = told(home, address, "run", flow, "--detach", "--prompt", "-", stdin=prompt)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextmanager
def worker(home: Path, address: str, *more: str) -> Iterator[tuple[psutil.Process, Path]]:
    """Run a worker; its lines are in the file."""
    log = home / "worker.log"
    names = variables(home, address)
    words = [sys.executable, "-m", "uncaged_cli", "work", "--json", *more]
    with (
        log.open("w") as file,
        subprocess.Popen(words, env=names, cwd=home, stdout=file, stderr=file) as process,
    ):
        try:
            yield psutil.Process(process.pid), log
        finally:
            process.kill()


def wait_until(is_met: Callable[[], Any], log: Path) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not is_met():
        assert time.monotonic() < give_up_s, log.read_text()
        time.sleep(0.1)


@contextmanager
def worker_after(
    rows: Rows, home: Path, address: str, threads: Mapping[str, str]
) -> Iterator[tuple[psutil.Process, Path]]:
    """Run a worker once the rows of the threads were changed."""
    for name, statement in CHANGES.items():
        assert rows.execute(statement, [threads[name]]).rowcount == 1, name
    with worker(home, address, "--slots", "8") as found:
        yield found


def events(log: Path) -> list[dict[str, Any]]:
    lines = log.read_text().splitlines(keepends=True)
    return [json.loads(one) for one in lines if one.startswith("{") and one.endswith("\n")]


def warnings(log: Path) -> list[dict[str, Any]]:
    return [one for one in events(log) if one["event"] == "warning"]


def lefts(log: Path) -> dict[str, str]:
    """Return the status in which each thread was left."""
    return {one["threadId"]: one["status"] for one in events(log) if one["event"] == "left"}


def made(tmp_path: Path, address: str, *flows: str) -> Path:
    """Make a store with flows; return a directory of a person."""
    origin = Engine.open(tmp_path / "origin")
    for name in flows:
        origin.add(name, source(name, BODY, policy={"null": {}}), accept=lambda _: True)
    with closing(open_store(address, create=True, is_visible=True)) as store:
        copy_store(
            DirectoryBackend(origin.store),
            store,
            replace=False,
            progress=lambda _kind, _count: None,
        )
    (tmp_path / "person").mkdir()
    return tmp_path / "person"


CHANGES = {
    "bundle": "UPDATE bundles SET source = source || 'x' WHERE hash = (SELECT bundle FROM threads WHERE name = %s)",
    "blob": "UPDATE blobs SET content = 'x' WHERE %s <> ''",
    "line": "UPDATE thread_lines SET line = 'x' WHERE log = (SELECT number FROM threads WHERE name = %s)",
    "notes": "DELETE FROM thread_notes WHERE thread = (SELECT number FROM threads WHERE name = %s)",
    "inputs": "UPDATE workflow_input SET inputs = 'nonsense' WHERE workflow_uuid = %s",
    "kind": "UPDATE workflow_status SET queue_partition_key = 'a ^ x +' WHERE workflow_uuid = %s",
    "version": "UPDATE workflow_status SET application_version = 'uncaged-workflow-0' WHERE workflow_uuid = %s",
    "status": "UPDATE workflow_status SET status = 'NONSENSE' WHERE workflow_uuid = %s",
}
"""What someone changes of a thread that waits."""
NAMED = {
    "bundle": "its bytes have another hash",
    "blob": "does not hold the bytes that were hashed",
    "line": "does not follow the chain",
    "notes": "the row of its notes is missing",
}
"""What a worker says of it, and so does `thread`."""
LISTED = frozenset(("bundle", "line"))
"""Which of it `threads` says: it reads neither blobs nor notes."""


@pytest.mark.slow
def test_a_worker_reports_bad_rows_and_goes_on(
    postgres: PostgresServer, address: str, tmp_path: Path
) -> None:
    """Each in a sentence with the thread's id, without a traceback; then the worker is idle. A
    document that cannot be read keeps it from taking threads until it is corrected.
    """
    home = made(tmp_path, address, "adds", "broken")
    threads = {
        name: started(
            home,
            address,
            "broken" if name == "bundle" else "adds",
            LARGE if name == "blob" else "p",
        )
        for name in (*CHANGES, "good")
    }
    schema = address.partition("schema=")[2]
    with (
        postgres.connect(options=f"-c search_path={schema},{schema}_dbos") as rows,
        worker_after(rows, home, address, threads) as (process, log),
    ):
        wait_until(lambda: threads["good"] in lefts(log), log)
        wait_until(
            lambda: NAMED.keys() <= {name for name in NAMED if threads[name] in lefts(log)}, log
        )
        text = log.read_text()
        for name, sentence in NAMED.items():
            [warning] = [one for one in warnings(log) if one.get("threadId") == threads[name]]
            assert sentence in warning["message"]
            shown = told(home, address, "thread", threads[name])
            assert sentence in shown.stdout + shown.stderr
            listed = told(home, address, "threads", "--json")
            [one] = [row for row in json.loads(listed.stdout) if row["threadId"] == threads[name]]
            assert (sentence in (one["problem"] or "")) == (name in LISTED), one
        assert "Traceback" not in text and f"Error executing workflow {threads['inputs']}" in text
        assert (
            "waits for a worker of version uncaged-workflow-0" in told(home, address, "ps").stdout
        )
        rows.execute("INSERT INTO documents (name, content) VALUES ('queues.json', 'nonsense')")
        late = started(home, address, "adds")
        wait_until(
            lambda: [one for one in warnings(log) if "queue reset --all" in one["message"]], log
        )
        listed = told(home, address, "ps")
        assert listed.returncode == 0 and "settings of the queues" in listed.stdout, listed
        assert told(home, address, "queues").returncode == DamagedError.exit_code
        assert told(home, address, "queue", "reset", "--all").returncode == 0
        wait_until(lambda: late in lefts(log), log)
        assert len([one for one in warnings(log) if "threadId" not in one]) == 1
        rows.execute(
            "UPDATE documents SET content = '}{', version = 99 WHERE name = 'workflow.yaml'"
        )
        refused = told(home, address, "run", "adds", "--detach")
        assert refused.returncode == DamagedError.exit_code and "not YAML" in refused.stderr
        assert process.is_running()


@pytest.mark.slow
def test_a_worker_without_a_right_takes_nothing(
    postgres: PostgresServer, address: str, tmp_path: Path
) -> None:
    """Before it takes a thread it ends with one sentence, which has the statement that helps. With
    all rights, the same user drives the thread to its end.
    """
    home = made(tmp_path, address, "adds")
    thread = started(home, address, "adds")
    schema = address.partition("schema=")[2]
    dispatcher, user = f"{schema}_dbos", f"user_{schema}"
    allow = "".join(
        f"GRANT ALL ON SCHEMA {one} TO {user}; GRANT ALL ON ALL TABLES IN SCHEMA {one} TO {user};"
        f"GRANT ALL ON ALL SEQUENCES IN SCHEMA {one} TO {user};"
        for one in (schema, dispatcher)
    )
    mine = postgres.address(schema, user=user)

    def worked(**more: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "uncaged_cli", "work", "--json", "--until-idle"]
        names = {**variables(tmp_path / "worker", mine), **more}
        return subprocess.run(
            words, env=names, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    with postgres.connect() as rows:
        rows.execute(f"CREATE USER {user}")
        for lacking, sentence in (
            (
                f"INSERT ON {schema}.thread_lines",
                f"`GRANT INSERT ON {schema}.thread_lines TO {user}`",
            ),
            (f"INSERT ON {dispatcher}.operation_outputs", f"`GRANT INSERT ON {dispatcher}."),
            (f"ALL ON {schema}.workers", f"DELETE ON {schema}.workers TO {user}"),
            (f"ALL ON SCHEMA {dispatcher}", f"may not use the schema {dispatcher}"),
        ):
            rows.execute(allow)
            rows.execute(f"REVOKE {lacking} FROM {user}")
            refused = worked()
            assert (refused.returncode, refused.stdout) == (RefusedError.exit_code, ""), refused
            [error] = [one for one in refused.stderr.splitlines() if one.startswith("error: ")]
            assert sentence in error and "Traceback" not in refused.stderr
        rows.execute(allow)
        refused = worked(PGOPTIONS="-c default_transaction_read_only=on")
        assert refused.returncode == RefusedError.exit_code and "read-only" in refused.stderr
        done = worked()
        assert done.returncode == 0 and thread in done.stdout, done
        rows.execute(f"DROP OWNED BY {user}; DROP USER {user}")
    assert "completed" in told(home, address, "thread", thread).stdout


@pytest.mark.slow
@pytest.mark.needs("own-network")
def test_a_worker_without_a_sandbox_takes_nothing(address: str, tmp_path: Path) -> None:
    """Before it takes a thread it ends with the reason; a worker that has one drives the thread."""
    home = made(tmp_path, address, "adds")
    thread = started(home, address, "adds")
    (home / "config.yaml").write_text("sandbox: bubblewrap\n")
    hide = 'for one in $(type -aP bwrap); do mount --bind /dev/null "$one"; done; exec "$@"'
    refused = subprocess.run(
        [
            *("unshare", "--mount", "bash", "-c", hide, "bash"),
            *(sys.executable, "-m", "uncaged_cli", "work", "--json", "--until-idle"),
        ],
        env=variables(home, address),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (refused.returncode, refused.stdout) == (SandboxUnavailable.exit_code, ""), refused
    assert "bubblewrap" in refused.stderr and "Traceback" not in refused.stderr
    assert told(home, address, "work", "--until-idle").returncode == 0
    assert "completed" in told(home, address, "thread", thread).stdout
